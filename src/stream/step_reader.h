// From the bytes of a stream to the steps of its cores.
#ifndef HANGSCOPE_STREAM_STEP_READER_H
#define HANGSCOPE_STREAM_STEP_READER_H

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "stream/line_reader.h"
#include "stream/trace_line.h"

namespace hangscope {

// A core was here.
struct Step {
  uint64_t pc = 0;      // or the id of a text, see below
  uint64_t offset = 0;  // of its line in the stream
  uint64_t values = 0;  // identifies registers and addresses at this step
  bool has_values = false;
  bool starts_block = false;
  bool is_text = false;                // the place is a text: PlaceTexts knows it by `pc`
  std::optional<uint64_t> cycle = {};  // of simulated time, where the trace has it
};

// What a trace itself says about the code at a place.
struct TracedCode {
  uint32_t bits = 0;
  bool has_bits = false;
  std::string mnemonic;
  std::string function;
  uint32_t source_line = 0;
  std::vector<uint64_t> addresses;  // distinct ones its accesses went to, up to kMostAddresses
};
constexpr size_t kMostAddresses = 4;

// More cores than anybody simulates: such numbers come from damaged lines.
constexpr uint32_t kMostCores = 4096;

// Names of cores in order of their appearance: "hart 0", "/soc/host".
class CoreNames {
 public:
  uint32_t Number(const TraceLine& line);
  uint32_t Number(std::string_view name);
  const std::string& name(uint32_t core) const { return names_[core]; }
  // The number that the trace gives it; nothing: it names its cores otherwise.
  std::optional<uint32_t> hart(uint32_t core) const { return harts_[core]; }
  size_t size() const { return names_.size(); }

 private:
  uint32_t Add(std::string name, std::optional<uint32_t> hart);

  std::vector<std::string> names_;
  std::vector<std::optional<uint32_t>> harts_;
  std::array<uint32_t, 64> by_number_{};  // core number -> index + 1; the common, small numbers
  std::map<std::string, uint32_t, std::less<>> by_name_;
};

// Whatever makes steps of a stream's lines.
class StepSource : public LineReader {
 public:
  using Sink = std::function<void(uint32_t core, const Step& step)>;
  using Code = std::unordered_map<uint64_t, TracedCode>;

  // Hands out what still waits for its values. Half a line is dropped.
  virtual void Flush() = 0;
  // What the lines said about the code.
  virtual const Code& code() const = 0;
};

// The steps of an instruction trace.
class StepReader final : public StepSource {
 public:
  // What to collect into code(): all that lines say (slower; for short
  // stretches), or the listings of QEMU's in_asm alone.
  enum class Learn { kAll, kListings };

  // `cores` outlives the reader and may be shared by readers of one stream.
  StepReader(CoreNames* cores, Learn learn, Sink sink);

  void Flush() override;
  const Code& code() const override { return code_; }
  uint64_t lines() const { return lines_; }
  uint64_t trace_lines() const { return trace_lines_; }
  TraceFormat format() const { return format_; }  // of the latest step
  bool chained() const { return chained_; }
  bool wide() const { return wide_; }  // addresses have 64 bits
  // Blocks that QEMU translated, in order; nobody says which core ran them.
  uint64_t translated_pc() const { return translated_pc_; }
  bool only_translations() const { return steps_ == 0 && code_lines_ > 0; }

  // A stream is taken for a trace when most of its lines belong to one.
  bool IsTrace() const { return trace_lines_ >= 8 && trace_lines_ * 2 > lines_; }

 private:
  struct Pending {
    Step step;
    bool waiting = false;    // not handed out yet
    bool committed = false;  // its values are known
    bool from_dump = false;  // ... from some lines of a register dump, perhaps not from all
  };

  void HandleLine(std::string_view line, uint64_t offset) override;
  void HandleOverlongLine(uint64_t) override { ++lines_; }
  void Begin(const TraceLine& line, uint64_t offset);
  void Cancel(uint64_t pc);
  void NoteCode(const TraceLine& line);
  void HandOut(uint32_t core);
  Pending& PendingOf(uint32_t core);

  CoreNames* cores_;
  const Learn learn_;
  Sink sink_;
  std::vector<Pending> pending_;
  uint32_t state_core_ = 0;  // whose state is being printed
  Code code_;
  uint64_t lines_ = 0;
  uint64_t trace_lines_ = 0;
  uint64_t steps_ = 0;
  uint64_t code_lines_ = 0;
  uint64_t translated_pc_ = 0;
  bool block_head_ = false;
  TraceFormat format_ = TraceFormat::kNone;
  bool chained_ = false;
  bool wide_ = false;
  bool riscv_listing_ = false;  // the listing being read is of RISC-V code
};

}  // namespace hangscope

#endif
