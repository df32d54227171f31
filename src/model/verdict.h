// What a watcher says about a target: plain types that travel from the judge to
// the report, the manifest, the heartbeat and CI.
#ifndef HANGSCOPE_MODEL_VERDICT_H
#define HANGSCOPE_MODEL_VERDICT_H

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "model/finding.h"

namespace hangscope {

enum class State {
  kProgressing,
  kSlow,
  kLooping,
  kSilent,
  kStarved,
  kDeadlock,
  kFault,
  kPartial,  // some hang for good while others go on
  kIdle,     // all that stands still waits for the outside, by design
  kDead,
  kFinished
};
constexpr std::string_view StateName(State state) {
  switch (state) {
    case State::kProgressing:
      return "progressing";
    case State::kSlow:
      return "slow";
    case State::kLooping:
      return "looping";
    case State::kSilent:
      return "silent";
    case State::kStarved:
      return "starved";
    case State::kDeadlock:
      return "deadlock";
    case State::kFault:
      return "fault";
    case State::kPartial:
      return "partial";
    case State::kIdle:
      return "idle";
    case State::kDead:
      return "dead";
    case State::kFinished:
      return "finished";
  }
  return "unknown";
}

// A place in the program, named as far as anybody could name it; or what a log
// line says.
struct Place {
  uint64_t pc = 0;
  std::string function;
  std::string source;     // "dataflow.c:88"
  std::string text = {};  // of a log line, as the target printed it; then there is no pc

  bool operator==(const Place&) const = default;
};

// Why a repetition is taken for what it is.
enum class LoopBasis {
  kValues,  // registers and addresses in the trace repeat exactly, or change
  kBody,    // places only; the code between them reproduces its own state, or does not
  kPlaces,  // places only, and no code to judge them by
  kLines,   // log lines, which repeat exactly but for time stamps
};

constexpr std::string_view LoopBasisName(LoopBasis basis) {
  switch (basis) {
    case LoopBasis::kValues:
      return "values";
    case LoopBasis::kBody:
      return "body";
    case LoopBasis::kPlaces:
      return "places";
    case LoopBasis::kLines:
      return "lines";
  }
  return "places";
}

struct Loop {
  std::vector<Place> places;  // in order of execution, the head first
  LoopBasis basis = LoopBasis::kPlaces;
  uint64_t rounds = 0;
  bool at_least = false;           // the start is overwritten: rounds and since are lower bounds
  uint64_t traps = 0;              // interrupts seen inside
  bool polls_known = false;        // every address it reads is known ...
  std::vector<uint64_t> polls;     // ... and these are they
  bool polls_memory_only = false;  // ... and none of them is a device
};

// A function that a core entered, or a line that a log printed.
struct WayStep {
  Place place;
  std::vector<std::string> callers = {};  // their functions, the innermost first, as far as known
};

struct CoreVerdict {
  std::string name;  // "hart 0", "/chip/cluster/pe1"
  std::string stream;
  State state = State::kProgressing;
  Confidence confidence = Confidence::kPossible;
  TimeNs since = 0;  // monotonic; when this state began
  bool since_at_least = false;
  std::optional<uint64_t> since_cycle = {};  // the same in simulated time, where the trace has it
  Place place;                               // the head of the loop, or the latest place
  std::vector<Place> callers;                // where each made the call, the nearest first
  std::optional<Loop> loop;                  // if looping
  bool asleep = false;                       // silent in a wfi
  std::optional<uint32_t> hart = {};         // by whose number the trace knows it
  // If it loops or is silent: the last steps on its way there, each once, the oldest first.
  std::vector<WayStep> way = {};
  bool is_evidence = false;  // the headline's finding is about it, and says what it does
};

struct StreamVerdict {
  std::string name;
  State state = State::kProgressing;
  std::string format;    // of the trace it carries; empty: none recognised
  TimeNs last_byte = 0;  // monotonic
  uint64_t total_bytes = 0;
};

// The newest lines of a stream, without those of an instruction trace and those without a character
// that can be seen.
struct LastOutput {
  std::string stream;
  // The oldest first; as a terminal shows them, without colours. As the target printed them: escape
  // them before they get to one.
  std::vector<std::string> lines;
  bool unfinished = false;  // the last of them has no end, as a prompt has none
  bool of_trace = false;    // the stream carries a trace, too
  TimeNs time = 0;          // monotonic; when the last of them came; 0: not known
};

// The stack of a thread that a finding is about, or who would have to act.
struct SubjectStack {
  int thread = 0;
  std::string name;     // "28528 a-to-b"
  std::string process;  // "28527 abba_locks"
  std::string command;  // of that process: its words
  std::vector<std::string>
      frames;          // "function  file.c:12" or "function  libc.so.6", innermost first
  size_t omitted = 0;  // frames further out
};

struct Verdict : Conclusion {
  State state = State::kProgressing;
  TimeNs time = 0;   // monotonic; when it was reached
  TimeNs since = 0;  // monotonic; when the state began
  std::vector<CoreVerdict> cores;
  std::vector<StreamVerdict> streams;
  std::vector<Finding> findings;        // of all sources, the weightiest first
  bool by_finding = false;              // the first of these is what the verdict is about
  std::vector<LastOutput> last_output;  // of each stream; empty: not asked
  std::vector<SubjectStack> stacks;     // as far as somebody looked
  std::string goes_on;  // of kPartial: who goes on; of kProgressing, where it is known
  // A source that was asked has not said all it may know: nothing is reported yet.
  bool undecided = false;

  // A hang that is worth reporting: a merely possible one triggers nothing.
  bool IsHang() const { return StandsStill() && confidence > Confidence::kPossible; }
  // All or some of it, however sure that is.
  bool StandsStill() const {
    return state == State::kLooping || state == State::kSilent || state == State::kStarved ||
           state == State::kDeadlock || state == State::kFault || state == State::kPartial;
  }
};

// Which hangs end a run, or start the user's command.
struct ActOn {
  Confidence least = Confidence::kLikely;
  bool partial = false;  // where others go on, too

  bool Covers(const Verdict& verdict) const {
    if (verdict.state == State::kFault) return verdict.IsHang();
    return verdict.StandsStill() && verdict.confidence >= least &&
           (partial || verdict.state != State::kPartial);
  }
};

}  // namespace hangscope

#endif
