#include "report/run_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/hash.h"
#include "model/event_format.h"
#include "ring/block_reader.h"
#include "snapshot/recording_kind.h"
#include "stream/line_reader.h"
#include "stream/log_line.h"
#include "stream/trace_line.h"
#include "trace/trace_source.h"

namespace hangscope {
namespace {

constexpr size_t kMostValues = 8;
constexpr size_t kMostDistinct = 64;  // of a field that says what, and not how many
constexpr size_t kLongestStep = 300;
constexpr std::string_view kAnchor = "anchor";

std::string CutStep(const std::string& text) {
  return text.size() <= kLongestStep ? text : text.substr(0, kLongestStep) + "...";
}

class StepsReader {
 public:
  StepsReader(const RunStepsLimits& limits, RunSteps* run) : limits_(limits), run_(*run) {}

  Status ReadTrace(FileSystem& files, Clock& clock, const ScopeSource& source,
                   const CodePlaces& code) {
    TraceRequest request;
    request.source = source;
    request.code = code;
    auto trace = OpenTraceSource(files, clock, request);
    if (!trace.ok()) return trace.status();
    TraceItem item;
    for (;;) {
      auto next = (*trace)->Next(&item);
      if (!next.ok()) run_.warnings.push_back(next.status().message());
      if (!next.ok() || !*next) break;
      if (const auto* event = std::get_if<TraceEvent>(&item)) Take(*event, (*trace)->head());
    }
    run_.end = (*trace)->head().time.to;
    run_.warnings.insert(run_.warnings.end(), (*trace)->head().warnings.begin(),
                         (*trace)->head().warnings.end());
    return {};
  }

  Status ReadLog(FileSystem& files, const std::string& prefix, const std::string& name);

  void Add(const std::string& name, RunStep step, const std::string& own_name = {}) {
    if (run_.sequences.size() == limits_.sequences && run_.sequences.count(name) == 0) return;
    const auto [at, fresh] = run_.sequences.try_emplace(name);
    if (fresh) run_.order.push_back(name);
    if (fresh) at->second.own_name = own_name;
    RunSequence& sequence = at->second;
    sequence.steps.push_back(std::move(step));
    if (sequence.steps.size() <= limits_.steps) return;
    sequence.steps.pop_front();
    ++sequence.omitted;
  }

 private:
  void Take(const TraceEvent& event, const TraceHead& head) {
    const TraceEventKind& kind = head.kinds[event.kind];
    if (kind.meaning == TraceMeaning::kFunctionLeave || kind.meaning == TraceMeaning::kLeave)
      return;
    const TraceTrack& track = head.tracks[event.track];
    // of the clock, at any time
    if (track.ring.kind == RingKind::kCore && kind.name == kAnchor) return;
    std::string name = track.name;
    if (track.ring.kind == RingKind::kCpu) {  // which CPU a thread runs on is chance
      if (!event.task || kind.meaning == TraceMeaning::kSwitch ||
          kind.meaning == TraceMeaning::kWake)
        return;
      const auto known = head.tasks.find(*event.task);
      if (known == head.tasks.end()) return;
      name = ThreadName(*event.task, known->second);
    }
    RunStep step;
    step.time = event.time;
    step.place = event.where;
    if (kind.meaning == TraceMeaning::kFunctionEnter) {  // its fields say the same, and an address
      step.kind = "function " + CutStep(event.what);
      step.text = CutStep(event.what);
      Add(name, std::move(step), track.own_name);
      return;
    }
    step.kind = kind.name + (event.what.empty() ? "" : " " + CutStep(event.what));
    for (const TraceValue& value : event.values) {
      if (step.values.size() == kMostValues) break;
      step.values.push_back(value.text.empty() ? value.bits : HashBytes(value.text));
    }
    const std::string values = FormatFields(kind.format, kind.fields, event.values);
    step.text = CutStep(step.kind + (values.empty() ? "" : " " + values));
    Add(name, std::move(step), track.own_name);
  }

  // Threads of one name are told apart in the order in which they are met first.
  const std::string& ThreadName(int64_t task, const std::string& name) {
    const auto [at, fresh] = threads_.try_emplace(task);
    if (!fresh) return at->second;
    const size_t before = named_[name]++;
    at->second = before == 0 ? name : fmt::format("{} ({})", name, before + 1);
    return at->second;
  }

  const RunStepsLimits& limits_;
  RunSteps& run_;
  std::map<int64_t, std::string> threads_;  // as they are told apart
  std::map<std::string, size_t> named_;     // how many have it
};

// The lines of a log; of an instruction trace none, for that is read as one.
class LogSteps final : public LineReader {
 public:
  LogSteps(std::string name, StepsReader* steps) : name_(std::move(name)), steps_(*steps) {}

 private:
  void HandleLine(std::string_view line, uint64_t) override {
    if (ParseTraceLine(line).kind != TraceLine::Kind::kOther) return;
    RunStep step;
    if (!NormalizeLogLine(line, &step.kind).has_place) return;
    step.text = CutStep(VisibleText(line, nullptr));
    steps_.Add(name_, std::move(step));
  }
  void HandleOverlongLine(uint64_t) override {}

  const std::string name_;
  StepsReader& steps_;
};

Status StepsReader::ReadLog(FileSystem& files, const std::string& prefix, const std::string& name) {
  auto reader = BlockReader::Open(files, prefix);
  if (!reader.ok()) return reader.status();
  LogSteps lines(name, this);
  const uint64_t held = reader->end_offset() - reader->begin_offset();
  reader->Seek(reader->end_offset() - std::min(held, limits_.stream_bytes));
  for (auto event = reader->Next(); event != BlockReader::Event::kEnd; event = reader->Next()) {
    if (event == BlockReader::Event::kBlock) lines.Feed(reader->block(), reader->block_offset());
  }
  return {};
}

// Of a field, the values that it has in a run.
using Values = std::map<std::pair<std::string, size_t>, std::set<uint64_t>>;

Values ValuesOf(const RunSteps& run) {
  Values values;
  for (const auto& [name, sequence] : run.sequences) {
    for (const RunStep& step : sequence.steps) {
      for (size_t i = 0; i < step.values.size(); ++i) {
        std::set<uint64_t>& mine = values[{step.kind, i}];
        if (mine.size() <= kMostDistinct) mine.insert(step.values[i]);
      }
    }
  }
  return values;
}

}  // namespace

// Few values, and in both runs mostly the same.
StableFields::StableFields(const RunSteps& a, const RunSteps& b) {
  const Values of_a = ValuesOf(a);
  const Values of_b = ValuesOf(b);
  for (const auto& [field, values] : of_a) {
    const auto other = of_b.find(field);
    if (other == of_b.end() || values.size() > kMostDistinct ||
        other->second.size() > kMostDistinct)
      continue;
    const auto common =
        static_cast<size_t>(std::count_if(values.begin(), values.end(), [&](uint64_t value) {
          return other->second.count(value) != 0;
        }));
    stable_[field] = common * 2 >= std::max(values.size(), other->second.size());
  }
}

StepNumber StableFields::NumberOf(const RunStep& step) const {
  std::string key = step.kind;
  for (size_t i = 0; i < step.values.size(); ++i) {
    const auto stable = stable_.find({step.kind, i});
    if (stable != stable_.end() && stable->second) key += fmt::format("\n{} {}", i, step.values[i]);
  }
  return HashBytes(key);
}

std::optional<std::string> CounterpartOf(const std::string& name, const RunSteps& run,
                                         const RunSteps& other) {
  if (other.sequences.count(name) != 0) return name;
  const std::string& own_name = run.sequences.at(name).own_name;
  if (own_name.empty()) return std::nullopt;
  const auto has_it = [&](const auto& sequence) { return sequence.second.own_name == own_name; };
  const auto found = std::find_if(other.sequences.begin(), other.sequences.end(), has_it);
  const bool single = std::count_if(run.sequences.begin(), run.sequences.end(), has_it) == 1 &&
                      std::count_if(other.sequences.begin(), other.sequences.end(), has_it) == 1;
  return single ? std::optional(found->first) : std::nullopt;
}

Result<RunSteps> ReadRunSteps(FileSystem& files, Clock& clock, const ScopeSource& source,
                              const CodePlaces& code, const RunStepsLimits& limits) {
  RunSteps run;
  StepsReader reader(limits, &run);
  Status status = reader.ReadTrace(files, clock, source, code);
  bool any = status.ok();
  if (IsFolder(KindOf(files, source.target))) {
    constexpr std::string_view kIndex = ".index";
    std::vector<std::string> names = files.List(source.target);
    std::sort(names.begin(), names.end());
    for (const std::string& name : names) {
      if (!name.ends_with(kIndex)) continue;
      const std::string stream = name.substr(0, name.size() - kIndex.size());
      const Status log = reader.ReadLog(files, source.target + "/" + stream, stream);
      if (!log.ok()) run.warnings.push_back(log.message());
      any = any || log.ok();
    }
  }
  if (!any) return status;
  return run;
}

}  // namespace hangscope
