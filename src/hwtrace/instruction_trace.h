// Hardware instruction traces, decoded by the libraries made for them: CoreSight by libopencsd,
// Intel PT by libipt. Behind one interface, so that windows and reports do not care which it was,
// and so that a build without a library says so.
#ifndef HANGSCOPE_HWTRACE_INSTRUCTION_TRACE_H
#define HANGSCOPE_HWTRACE_INSTRUCTION_TRACE_H

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "hwtrace/auxtrace_info.h"

namespace hangscope {

// A branch that was taken, or an interruption of the flow.
struct TraceBranch {
  uint64_t from = 0;           // 0: the flow was entered here
  uint64_t to = 0;             // 0: left
  uint64_t offset = 0;         // of the trace's bytes, near
  std::optional<TimeNs> time;  // of the tracer's clock, as far as it says
  int cpu = -1;                // whose; -1: the stream does not say
  uint64_t after = 0;          // time stamps before this offset came before it
};

enum class DiscontinuityReason {
  kBegin,     // bytes before the first synchronisation point
  kNoSync,    // the decoder lost the thread, and found it again at a synchronisation point
  kOverflow,  // the tracer's own buffer overflowed
  kTraceOff,  // tracing was off: a filter, or another context
  kBadData,   // bytes that cannot be
  kNoCode,    // the program's code at this address is not there
};

constexpr std::string_view DiscontinuityReasonName(DiscontinuityReason reason) {
  switch (reason) {
    case DiscontinuityReason::kBegin:
      return "before the first synchronisation";
    case DiscontinuityReason::kNoSync:
      return "no sync";
    case DiscontinuityReason::kOverflow:
      return "overflow";
    case DiscontinuityReason::kTraceOff:
      return "trace off";
    case DiscontinuityReason::kBadData:
      return "bad data";
    case DiscontinuityReason::kNoCode:
      return "no code";
  }
  return "unknown";
}

struct Discontinuity {
  uint64_t offset = 0;  // of the trace's bytes
  std::optional<TimeNs> time;
  DiscontinuityReason reason = DiscontinuityReason::kNoSync;
  int cpu = -1;  // whose; -1: the stream does not say, or of all in it
};

// A time stamp in the trace: what comes behind it came later.
struct TraceTime {
  uint64_t offset = 0;  // of the trace's bytes
  // perf's, where the trace says how its clock relates to that; else there is none
  TimeNs time = 0;
  int cpu = -1;  // whose trace; -1: the stream does not say

  bool operator==(const TraceTime&) const = default;
};

// What a piece of trace holds.
struct TraceSummary {
  uint64_t bytes = 0;
  uint64_t packets = 0;
  std::map<std::string, uint64_t> packet_kinds;  // by the name that `perf report -D` prints
  // CoreSight in frames: whose trace; -1: no CPU has that id
  std::map<int, uint64_t> bytes_of_cpu;
  // of ETM: executed (E) and not executed (N) waypoint instructions; of PT: TNT bits
  uint64_t atoms = 0;
  uint64_t instructions = 0;  // only with the code
  bool instructions_known = false;
  uint64_t branches = 0;  // taken; only with the code
  uint64_t synchronisations = 0;
  uint64_t exceptions = 0;
  std::vector<Discontinuity> discontinuities;  // bounded; `more_discontinuities` beyond
  uint64_t more_discontinuities = 0;
  // By offset, those of a CPU ascending; of many, some: hwtrace/trace_times.h
  std::vector<TraceTime> times;
  uint64_t unconverted_times = 0;         // time stamps whose counter does not say what time it was
  std::deque<TraceBranch> last_branches;  // the newest, at most as many as asked for
};

// "3 no sync, 1 bad data", by what `summary` kept of them; `always`: a reason that is named even
// where it has none.
std::string DiscontinuitiesText(const TraceSummary& summary,
                                std::optional<DiscontinuityReason> always = {});

// The program's code at `address`, as it was mapped; how many bytes were there, 0: none.
using ReadCode = std::function<size_t(uint64_t address, std::span<char> bytes)>;

struct TraceDecodeOptions {
  size_t last_branches = 64;
  size_t most_discontinuities = 1000;
  // CoreSight: not in frames, as PERF_AUX_FLAG_CORESIGHT_FORMAT_RAW says
  bool raw = false;
  ReadCode read_code;  // may be empty
  // CoreSight: of the CPUs whose traces are in the same bytes, and which ran other code; not empty
  // each. Only beside `read_code`.
  std::map<int, ReadCode> code_of_cpu = {};
};

// A part of a stream, up to the begin of the next: what one AUX record tells.
struct AuxPart {
  uint64_t begin = 0;  // of the stream's bytes; the first part's is 0
  ReadCode read_code;  // of the thread that ran then; may be empty
};

// One trace stream; the bytes in the order of the ring.
class InstructionTrace {
 public:
  virtual ~InstructionTrace() = default;
  // Decodes a piece that is complete in itself: the decoder starts anew.
  virtual TraceSummary Decode(std::string_view bytes, const TraceDecodeOptions& options) = 0;

  // Whether AUX records whose offsets touch are one stream: the tracer synchronises after a number
  // of bytes, not where a record begins.
  virtual bool goes_on() const { return false; }
  // Decodes `bytes` as one stream, and gives each part what its bytes hold, with offsets from the
  // part's begin. A packet, and the instructions it tells of, belong to the part in which it
  // begins. `options.last_branches` are those of all parts; its `read_code` is not used. Only where
  // the stream goes on.
  virtual std::vector<TraceSummary> DecodeParts(std::string_view bytes,
                                                const std::vector<AuxPart>& parts,
                                                const TraceDecodeOptions& options);
  // The last place where the stream may be cut without a loss, behind its begin; 0: there is none.
  virtual uint64_t LastSynchronisation(std::string_view bytes) const;
};

// `auxtrace_info`: the body of PERF_RECORD_AUXTRACE_INFO, which says what kind of trace it is and
// how the tracer of each CPU was set. Fails with a sentence where the kind is not known, the body
// is damaged, or this build has no library for it. `cpu`: whose ring it is, -1: a thread's.
// `config`: the event's (perf_event_attr), where Intel PT says how often it writes the time; 0: not
// known, and times are coarser. `counter`: how perf's time follows the CPU's counter, for
// CoreSight, whose AUXTRACE_INFO does not say it.
Result<std::unique_ptr<InstructionTrace>> OpenInstructionTrace(
    std::string_view auxtrace_info, int cpu, uint64_t config = 0,
    const std::optional<CounterConversion>& counter = {});

}  // namespace hangscope

#endif
