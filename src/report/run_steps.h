// What each core, thread and stream of a recording did, step after step, in a form in which two
// runs can be compared.
#ifndef HANGSCOPE_REPORT_RUN_STEPS_H
#define HANGSCOPE_REPORT_RUN_STEPS_H

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/file_system.h"
#include "perf/code/code_places.h"
#include "scope/scope_view.h"
#include "stream/divergence.h"

namespace hangscope {

struct RunStep {
  TimeNs time = 0;  // of the recording's clock; of a line that has none, 0
  // "mutex_lock", "function cb_push"; of a line, what it says without its numbers
  std::string kind;
  std::vector<uint64_t> values;  // of an event's fields; texts by their hash
  std::string text;              // for people
  std::string place;             // "dataflow.c:88"; may be empty
};

struct RunSequence {
  std::string own_name;       // of a core that has one beside its number; else empty
  std::deque<RunStep> steps;  // the newest, the oldest first
  uint64_t omitted = 0;       // before them
};

struct RunSteps {
  std::map<std::string, RunSequence> sequences;  // by the name of core, thread or stream
  std::vector<std::string> order;                // of them, as the recording has it
  TimeNs end = 0;                                // of the recording
  std::vector<std::string> warnings;             // what could not be read, a sentence each
};

struct RunStepsLimits {
  size_t steps = 20'000;  // of each sequence
  size_t sequences = 2000;
  uint64_t stream_bytes = 4u << 20;  // of the end of a log
};

// Whose steps in `other` are those of `name`, which is one of `run`: the sequence of that name;
// where there is none, and a single core has the same name of its own in each of the runs, that
// core's. A thread has its number by chance. Nothing: nobody's.
std::optional<std::string> CounterpartOf(const std::string& name, const RunSteps& run,
                                         const RunSteps& other);

// Fails where nothing can be read.
Result<RunSteps> ReadRunSteps(FileSystem& files, Clock& clock, const ScopeSource& source,
                              const CodePlaces& code, const RunStepsLimits& limits);

// Which fields of which kind mean the same in both runs: a counter, a time or an address does not.
// By kind, then field.
class StableFields {
 public:
  StableFields(const RunSteps& a, const RunSteps& b);
  StepNumber NumberOf(const RunStep& step) const;

 private:
  std::map<std::pair<std::string, size_t>, bool> stable_;
};

}  // namespace hangscope

#endif
