#include "why/why_all.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/units.h"
#include "base/utf8.h"
#include "process/process_text.h"
#include "process/process_verdict.h"
#include "process/process_words.h"
#include "why/why_process.h"

namespace hangscope {
namespace {

constexpr TimeNs kBudget = 30 * kSecond;  // of a look at all of them
constexpr size_t kMostCommand = 100;

InspectOptions Briefly() {
  InspectOptions brief;
  brief.stop = brief.step_running = brief.stacks = brief.follow = false;
  brief.descendants = true;
  brief.most_asked = SIZE_MAX;
  brief.budget = kBudget;
  return brief;
}

// Threads of the kernel have no program.
std::vector<int> Programs(const ProcFolder& proc) {
  std::vector<int> pids;
  for (const int pid : proc.Processes()) {
    const auto stat = proc.Stat(pid);
    if (stat && !stat->kernel_thread && pid != getpid()) pids.push_back(pid);
  }
  return pids;
}

// Whether the quick looks leave open that it hangs: some thread waits for others, or runs.
bool MayHang(const ProcessFacts& process, const ProcessJudgement& judgement) {
  return std::any_of(
      process.threads.begin(), process.threads.end(), [&](const ThreadFacts& thread) {
        const auto stand = judgement.stands.find(thread.tid);
        if (stand == judgement.stands.end()) return false;
        return stand->second != ThreadStand::kOutside && stand->second != ThreadStand::kTimed &&
               stand->second != ThreadStand::kEnded && stand->second != ThreadStand::kHalted &&
               stand->second != ThreadStand::kFrozen;
      });
}

bool IsHalted(const ProcessFacts& process) {
  return process.state == ThreadState::kStopped || process.state == ThreadState::kTraced;
}

// What one process hangs for, and whether that is its own doing rather than that of one it waits
// for.
struct Hang {
  std::string text;
  std::set<int> threads;
  bool is_bad = false;
  bool is_own = false;
};

class AllHung {
 public:
  AllHung(Clock& clock, const OpenInspector& open, const WhyAllOptions& options)
      : clock_(clock), open_(open), options_(options) {}

  Result<WhyReport> Ask(std::vector<int> pids) {
    if (pids.empty()) return Status::NotFound("/proc shows no process");
    std::vector<SystemSample> quick;
    auto inspector = open_();
    if (!inspector.ok()) return inspector.status();
    for (int i = 0; i < 2; ++i) {
      InspectOptions brief = Briefly();
      brief.also.assign(pids.begin() + 1, pids.end());
      if (i > 0) clock_.Sleep(options_.apart);
      auto look = (*inspector)->Inspect(pids[0], brief);
      if (!look.ok()) return look.status();
      quick.push_back(std::move(*look));
    }
    const ProcessJudgement judgement = JudgeProcess(quick);
    const SystemSample first = std::move(quick[0]);
    std::set<int> left(pids.begin(), pids.end());
    size_t done = 0;
    for (const ProcessFacts& process : quick[1].processes) {
      options_.progress(static_cast<double>(++done) /
                        static_cast<double>(quick[1].processes.size()));
      if (left.erase(process.pid) == 0) continue;
      ++looked_at_;
      if (process.is_hidden) hidden_.push_back(process.pid);
      if (IsHalted(process)) halted_.push_back(ProcessLabel(quick[1], process.pid));
      if (!process.is_hidden && MayHang(process, judgement)) AskOne(process.pid, first);
    }
    return WhyReport{options_.json ? std::move(json_) : Text(), IsBad()};
  }

 private:
  void AskOne(int pid, const SystemSample& first) {
    InspectOptions inspect;
    inspect.stop = inspect.step_running = options_.stop;
    auto inspector = open_();
    if (!inspector.ok()) return;
    auto look = (*inspector)->Inspect(pid, inspect);
    if (!look.ok() || look->processes.empty() || look->processes[0].pid != pid) return;  // it ended
    TwoLooks two;
    two.looks = {first, std::move(*look)};
    two.looks.front().asked = two.looks.back().asked;
    two.judgement = JudgeProcess(two.looks);
    const SystemSample& last = two.looks.back();
    longest_stop_ = std::max(longest_stop_, last.longest_stop);
    std::erase_if(two.judgement.findings, [](const ProcessFinding& finding) {
      return finding.kind == FindingKind::kStopped || finding.kind == FindingKind::kZombie;
    });
    WhyProcessOptions options;
    options.pid = pid;
    options.columns = options_.columns;
    if (options_.json && two.judgement.IsBad()) json_ += LooksJson(clock_, two, options);
    const std::vector<ProcessFinding> all = std::move(two.judgement.findings);
    for (const ProcessFinding& finding : all) {
      two.judgement.findings = {finding};
      const ThreadFacts* const whose =
          finding.threads.empty() ? nullptr : FindThread(last, finding.threads[0]);
      const int of = whose == nullptr ? pid : whose->pid;
      const ProcessFacts* const process = FindProcess(last, of);
      Hang hang;
      hang.text =
          ProcessFindingsText(
              {&last, &two.judgement, false, false, options_.columns, SIZE_MAX, {}}) +
          fmt::format("  in {}: {}; hangscope why {} shows the stacks\n", ProcessLabel(last, of),
                      process == nullptr ? "" : Printable(process->command, kMostCommand), of);
      hang.threads.insert(finding.threads.begin(), finding.threads.end());
      hang.is_bad = finding.IsBad();
      hang.is_own = of == pid;
      hangs_.push_back(std::move(hang));
    }
  }

  // Each once: those who wait for a hanging one know of it, too.
  std::vector<const Hang*> Distinct(bool bad) const {
    std::vector<const Hang*> distinct;
    std::set<std::set<int>> told;
    for (const bool own : {true, false}) {
      for (const Hang& hang : hangs_) {
        if (hang.is_own == own && hang.is_bad == bad && told.insert(hang.threads).second)
          distinct.push_back(&hang);
      }
    }
    return distinct;
  }

  bool IsBad() const {
    return std::any_of(hangs_.begin(), hangs_.end(), [](const Hang& hang) { return hang.is_bad; });
  }

  std::string Text() const {
    const std::vector<const Hang*> bad = Distinct(true);
    std::string text =
        bad.empty() ? fmt::format("no hang found in {} process{}\n", looked_at_,
                                  looked_at_ == 1 ? "" : "es")
                    : fmt::format("HANG: {} in {} processes\n",
                                  bad.size() == 1 ? "1 hang" : fmt::format("{} hangs", bad.size()),
                                  looked_at_);
    for (const Hang* hang : bad) text += hang->text;
    for (const Hang* hang : Distinct(false)) text += hang->text;
    if (!halted_.empty()) {
      text += fmt::format(
          "{} stopped, by a signal or a debugger: {}{}\n",
          halted_.size() == 1 ? "1 is" : fmt::format("{} are", halted_.size()), halted_[0],
          halted_.size() == 1 ? "" : fmt::format(" and {} more", halted_.size() - 1));
    }
    if (!hidden_.empty()) {
      text += fmt::format(
          "{} may not be looked into; hangscope why {} says what grants it\n",
          hidden_.size() == 1 ? "1 process" : fmt::format("{} processes", hidden_.size()),
          hidden_[0]);
    }
    if (longest_stop_ > 0)
      text += fmt::format("the longest was stopped for {:.1f} ms\n", Seconds(longest_stop_) * 1e3);
    return text;
  }

  Clock& clock_;
  const OpenInspector& open_;
  const WhyAllOptions& options_;
  std::vector<Hang> hangs_;
  std::vector<std::string> halted_;
  std::string json_;
  size_t looked_at_ = 0;
  std::vector<int> hidden_;
  TimeNs longest_stop_ = 0;
};

}  // namespace

Result<WhyReport> AskWhyAllHung(Clock& clock, const ProcFolder& proc, const OpenInspector& open,
                                const WhyAllOptions& options) {
  if (const std::string why = proc.WhyBlind(); !why.empty()) return Status::Io(why);
  return AllHung(clock, open, options).Ask(Programs(proc));
}

}  // namespace hangscope
