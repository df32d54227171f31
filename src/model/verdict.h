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
#include "model/process.h"
#include "model/watch.h"

namespace hangscope {

enum class State {
  kProgressing,
  kSlow,
  kLooping,
  kSilent,
  kStarved,
  kDeadlock,
  kFault,
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

struct CoreVerdict {
  std::string name;  // "hart 0", "/chip/cluster/pe1"
  std::string stream;
  State state = State::kProgressing;
  Confidence confidence = Confidence::kPossible;
  TimeNs since = 0;  // monotonic; when this state began
  bool since_at_least = false;
  Place place;               // the head of the loop, or the latest place
  std::optional<Loop> loop;  // if looping
  bool asleep = false;       // silent in a wfi
};

struct StreamVerdict {
  std::string name;
  State state = State::kProgressing;
  std::string format;    // of the trace it carries; empty: none recognised
  TimeNs last_byte = 0;  // monotonic
  uint64_t total_bytes = 0;
};

struct Verdict : Conclusion {
  State state = State::kProgressing;
  TimeNs time = 0;   // monotonic; when it was reached
  TimeNs since = 0;  // monotonic; when the state began
  std::vector<CoreVerdict> cores;
  std::vector<StreamVerdict> streams;
  // of the scope, where there is one
  std::vector<ScopeFinding> findings;
  bool of_scope = false;  // the first of these is what the verdict is about
  // of the threads of the program, likewise, where the scope does not say the same
  std::vector<ProcessFinding> threads;

  // A hang that is worth acting on: a merely possible one triggers nothing.
  bool IsHang() const {
    const bool stands = state == State::kLooping || state == State::kSilent ||
                        state == State::kStarved || state == State::kDeadlock ||
                        state == State::kFault;
    return stands && confidence > Confidence::kPossible;
  }
};

}  // namespace hangscope

#endif
