// Packets of a Perfetto trace, one sequence of them, with texts interned. The numbers of fields are
// those of perfetto/protos/perfetto/trace: trace_packet.proto, track_event/*.proto,
// interned_data.proto, clock_snapshot.proto.
#ifndef HANGSCOPE_EXPORT_PERFETTO_PACKETS_H
#define HANGSCOPE_EXPORT_PERFETTO_PACKETS_H

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "export/protobuf.h"
#include "export/trace_output.h"

namespace hangscope {

struct PerfettoTrack {
  uint64_t id = 0;
  uint64_t parent = 0;  // 0: none
  std::string name;
  bool is_counter = false;
  bool is_process = false;           // the root of all others
  std::vector<std::string> command;  // of a process
};

enum class PerfettoEventType { kBegin = 1, kEnd = 2, kInstant = 3, kCounter = 4 };

class PerfettoPackets {
 public:
  explicit PerfettoPackets(TraceOutput& output) : output_(output) {}

  // First of all: times are of the monotonic clock; 0: nobody knows which wall time that is.
  void Clocks(TimeNs now, TimeNs wall_minus_monotonic);
  void Track(const PerfettoTrack& track);

  // An event: begun, filled, and written with the next packet. A text need not be UTF-8.
  void BeginEvent(TimeNs time, uint64_t track, PerfettoEventType type);
  void Name(std::string_view name);
  void Category(std::string_view category);
  void Argument(std::string_view name, std::string_view text);
  void Unsigned(std::string_view name, uint64_t value);
  void Signed(std::string_view name, int64_t value);
  void Bool(std::string_view name, bool value);
  void Pointer(std::string_view name, uint64_t value);
  void Counter(uint64_t value);
  void FlowOut(uint64_t flow);
  void FlowIn(uint64_t flow);

  // What was begun is written; the output is not flushed.
  void Finish();
  // The first failure; what comes behind it is left out.
  const Status& status() const { return status_; }

 private:
  // Texts that were told, with their numbers, which are never used again.
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  struct Interned {
    uint32_t field = 0;  // of InternedData
    std::unordered_map<std::string, uint64_t, Hash, std::equal_to<>> known = {};
    uint64_t last = 0;
  };
  static constexpr size_t kMostTexts = 1 << 13;    // of each sort
  static constexpr size_t kLongestText = 1 << 10;  // in bytes

  // Nothing: too long to be kept, to be told where it is.
  std::optional<uint64_t> Intern(Interned& texts, std::string_view text);
  void AppendPacket(uint64_t flags);        // packet_
  void AddArgument(std::string_view name);  // argument_

  TraceOutput& output_;
  Status status_;
  Interned categories_{1}, names_{2}, argument_names_{3};
  bool cleared_ = true;  // the next packet says that no text was told before

  std::optional<TimeNs> pending_time_;
  ProtobufMessage event_, interned_, argument_;
  ProtobufMessage packet_, trace_;
};

}  // namespace hangscope

#endif
