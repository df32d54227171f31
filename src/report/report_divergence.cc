#include "report/report_divergence.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/units.h"
#include "base/utf8.h"
#include "report/run_steps.h"

namespace hangscope {
namespace {

constexpr size_t kStepsShown = 8;
constexpr size_t kMostCoresInText = 12;
constexpr size_t kStepsInText = 3;

std::vector<StepNumber> NumbersOf(const RunSequence& sequence, const StableFields& fields) {
  std::vector<StepNumber> numbers;
  numbers.reserve(sequence.steps.size());
  for (const RunStep& step : sequence.steps) numbers.push_back(fields.NumberOf(step));
  return numbers;
}

std::vector<ReportStep> Shown(const RunSequence& sequence, size_t from, size_t to, TimeNs end) {
  std::vector<ReportStep> steps;
  for (size_t i = from; i < std::min(to, sequence.steps.size()); ++i) {
    const RunStep& step = sequence.steps[i];
    steps.push_back(
        {step.time == 0 ? ReportTime() : ReportTime(step.time - end), step.text, step.place});
  }
  return steps;
}

std::string Steps(uint64_t count) {
  return fmt::format("{} step{}", FormatCount(count), count == 1 ? "" : "s");
}

class Comparison {
 public:
  Comparison(const RunSteps& hung, const RunSteps& healthy, const Report& report)
      : hung_(hung), healthy_(healthy), report_(report), fields_(hung, healthy) {}

  ReportDivergentCore Compare(const std::string& name) {
    const RunSequence& mine = hung_.sequences.at(name);
    ReportDivergentCore core;
    core.name = name;
    const std::optional<std::string> counterpart = CounterpartOf(name, hung_, healthy_);
    if (!counterpart) {
      core.verdict = "there is nothing of that name in the healthy run";
      return core;
    }
    const RunSequence& other = healthy_.sequences.at(*counterpart);
    const Divergence found = FindDivergence(NumbersOf(mine, fields_), NumbersOf(other, fields_));
    core.matched = found.matched;
    if (found.kind == Divergence::Kind::kNothingCommon) {
      core.verdict = fmt::format("no common place: not one of {} is in the healthy run",
                                 Steps(mine.steps.size()));
      return core;
    }
    const size_t common_end = found.loop_steps > 0
                                  ? found.hung_next - (found.loop_rounds - 1) * found.loop_steps
                                  : found.hung_next;
    core.common =
        Shown(mine, common_end - std::min(found.matched, kStepsShown), common_end, hung_.end);
    core.healthy = Shown(other, found.healthy_next, found.healthy_next + kStepsShown, healthy_.end);
    core.hung = Shown(mine, found.hung_next, found.hung_next + kStepsShown, hung_.end);
    core.verdict = Verdict(found, core);
    core.note = Note(found, mine, other, name);
    if (*counterpart != name) core.note += fmt::format("; there it is {}", *counterpart);
    return core;
  }

 private:
  std::string Verdict(const Divergence& found, const ReportDivergentCore& core) const {
    const std::string after = fmt::format("after {} that both did", Steps(found.matched));
    if (found.kind == Divergence::Kind::kSameEnd) {
      if (found.loop_steps > 0)
        return fmt::format("no divergence seen: {}, both go round the same {}", after,
                           Steps(found.loop_steps));
      return fmt::format("no divergence seen: {}, the healthy run's recording ends, too", after);
    }
    std::string text =
        fmt::format("{}, the healthy run went on with '{}'", after, core.healthy[0].text);
    if (found.loop_steps > 0) {
      text += fmt::format(", and this one goes round {} {} times", Steps(found.loop_steps),
                          FormatCount(found.loop_rounds));
    } else if (core.hung.empty()) {
      text += ", and this one did nothing more";
    } else {
      text += fmt::format(", and this one with '{}'", core.hung[0].text);
    }
    return fmt::format("{} ({})", text, ConfidenceName(found.confidence));
  }

  std::string Note(const Divergence& found, const RunSequence& mine, const RunSequence& other,
                   const std::string& name) const {
    std::string text =
        found.places == 1
            ? "the healthy run was at that place once"
            : fmt::format("the healthy run was at that place {} times, and went on so {} times",
                          FormatCount(found.places), FormatCount(found.agreeing));
    if (found.healthy_rounds > 0)
      text +=
          fmt::format("; it went round the loop {} times more", FormatCount(found.healthy_rounds));
    if (mine.omitted + other.omitted > 0) text += "; only the newest steps of both are compared";
    for (const ReportTrack& track : report_.tracks) {
      if (track.name == name && !track.what.empty()) text += "; this one " + track.what;
    }
    return text;
  }

  const RunSteps& hung_;
  const RunSteps& healthy_;
  const Report& report_;
  const StableFields fields_;
};

void AddTroubles(const RunSteps& run, const std::string& name, Report* report) {
  for (const std::string& warning : run.warnings) {
    const bool known = std::find(report->warnings.begin(), report->warnings.end(), warning) !=
                       report->warnings.end();
    if (!known) report->warnings.push_back(fmt::format("{}: {}", name, warning));
  }
}

void AppendSteps(const char* who, const std::vector<ReportStep>& steps, std::string* text) {
  for (size_t i = 0; i < std::min(steps.size(), kStepsInText); ++i) {
    const std::string place = steps[i].place.empty() ? "" : "   " + Printable(steps[i].place);
    *text += fmt::format("  {:<8} {}{}\n", i == 0 ? who : "", Printable(steps[i].text), place);
  }
}

}  // namespace

Status AddDivergence(FileSystem& files, Clock& clock, const ScopeSource& hung,
                     const ScopeSource& healthy, const CodePlaces& code, Report* report) {
  auto mine = ReadRunSteps(files, clock, hung, code, {});
  if (!mine.ok()) return mine.status();
  auto other = ReadRunSteps(files, clock, healthy, code, {});
  if (!other.ok()) return other.status();
  AddTroubles(*other, NameOf(healthy.target), report);
  ReportDivergence divergence;
  divergence.healthy = NameOf(healthy.target);
  Comparison comparison(*mine, *other, *report);
  for (const std::string& name : mine->order) divergence.cores.push_back(comparison.Compare(name));
  // Those that part from the healthy run first; else as the recording has them.
  std::stable_partition(divergence.cores.begin(), divergence.cores.end(),
                        [](const ReportDivergentCore& core) { return !core.healthy.empty(); });
  report->divergence = std::move(divergence);
  return {};
}

std::string DivergenceText(const ReportDivergence& divergence) {
  std::string text = fmt::format("against {}:\n", Printable(divergence.healthy));
  if (divergence.cores.empty()) text += "nothing that could be compared was recorded\n";
  for (size_t i = 0; i < std::min(divergence.cores.size(), kMostCoresInText); ++i) {
    const ReportDivergentCore& core = divergence.cores[i];
    text += fmt::format("{}: {}\n", Printable(core.name), Printable(core.verdict));
    if (core.healthy.empty()) continue;
    const size_t behind = core.common.size() - std::min(core.common.size(), kStepsInText);
    AppendSteps("both", {core.common.begin() + static_cast<ptrdiff_t>(behind), core.common.end()},
                &text);
    AppendSteps("healthy", core.healthy, &text);
    AppendSteps("hung", core.hung, &text);
    if (!core.note.empty()) text += fmt::format("  {}\n", Printable(core.note));
  }
  if (divergence.cores.size() > kMostCoresInText)
    text += fmt::format("and {} more, in the page\n", divergence.cores.size() - kMostCoresInText);
  return text;
}

}  // namespace hangscope
