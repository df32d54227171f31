#include "process/linux_inspector.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <set>
#include <thread>

#include "process/process_look.h"

namespace hangscope {
namespace {

constexpr size_t kMostProcesses = 64;     // of one question about one process
constexpr size_t kMostRemoteEnds = 4096;  // connections to other machines that are told of

class LinuxInspector final : public ProcessInspector {
 public:
  LinuxInspector(Clock& clock, std::string proc_root)
      : clock_(clock), proc_root_(proc_root), proc_(std::move(proc_root)) {}

  Result<SystemSample> Inspect(int pid, const InspectOptions& options) override;

  LinuxInspector(Clock& clock, KeptProcess process)
      : clock_(clock),
        proc_(process.texts),
        kept_(std::make_unique<const KeptProcess>(std::move(process))) {}

 private:
  struct Looks {
    std::vector<std::unique_ptr<ProcessLook>> processes;
    std::vector<int> asked;
    bool asked_are_all = true;
    // Processes that were too many, or for which there was no time.
    size_t left_out = 0;
  };
  Looks ReadAll(int pid, InspectionContext& context);
  std::string FirstLine(const char* name) const {
    const std::string text = proc_.Read(name).value_or("");
    return text.substr(0, text.find('\n'));
  }

  Clock& clock_;
  const std::string proc_root_;
  const ProcFolder proc_;
  const std::unique_ptr<const KeptProcess> kept_;  // null: live ones
  WalkerCache walkers_;
};

// Whom the question is about: parents before children.
std::vector<int> WhoIsAsked(int pid, InspectionContext& context) {
  std::vector<int> asked = {pid};
  if (!context.options.descendants) return asked;
  std::set<int> known = {pid};
  const auto add = [&](int process) {
    if (known.insert(process).second) asked.push_back(process);
  };
  for (const int other : context.options.also) add(other);
  for (size_t i = 0; i < asked.size(); ++i) {
    for (const TaskStat& child : context.tree.Children(asked[i])) {
      if (child.state != ThreadState::kZombie) add(child.id);
    }
  }
  return asked;
}

// Those that are asked, then those that their waits lead to, then those that theirs do.
LinuxInspector::Looks LinuxInspector::ReadAll(int pid, InspectionContext& context) {
  Looks looks;
  std::vector<int> asked = WhoIsAsked(pid, context);
  const size_t too_many = asked.size() - std::min(asked.size(), context.options.most_asked);
  looks.asked_are_all = too_many == 0;
  asked.resize(asked.size() - too_many);
  std::set<int> known(asked.begin(), asked.end());
  std::deque<int> queue(asked.begin(), asked.end());
  for (const int other : context.options.with) {
    if (known.insert(other).second) queue.push_back(other);
  }
  const size_t most = asked.size() - 1 + kMostProcesses;
  const auto is_asked = [&](int process) {
    return std::count(asked.begin(), asked.end(), process) != 0;
  };
  auto& processes = looks.processes;
  for (; !queue.empty() && processes.size() < most && !(context.IsLate() && !processes.empty());
       queue.pop_front()) {
    auto look = std::make_unique<ProcessLook>(context, walkers_, queue.front());
    if (!look->Read()) continue;
    look->Explain();
    for (const int other : context.options.follow ? look->LeadsTo() : std::set<int>()) {
      if (known.insert(other).second) queue.push_back(other);
    }
    if (is_asked(queue.front())) looks.asked.push_back(queue.front());
    processes.push_back(std::move(look));
  }
  looks.asked_are_all = looks.asked_are_all && std::none_of(queue.begin(), queue.end(), is_asked);
  looks.left_out = queue.size() + too_many;
  return looks;
}

// Who naps and looks by turns with others is in vain only where all of them are at one time.
void CheckNaps(Clock& clock, const std::vector<std::unique_ptr<ProcessLook>>& processes) {
  constexpr TimeNs kLongest = 200 * kMillisecond;
  const TimeNs until = clock.Monotonic() + kLongest;
  for (; clock.Monotonic() < until; clock.Sleep(kMillisecond / 3)) {
    const auto all = [&](const auto& is_so) {
      return std::all_of(processes.begin(), processes.end(),
                         [&](const auto& process) { return is_so(*process); });
    };
    if (all([](ProcessLook& process) { return process.BeginOfNaps(); }) &&
        all([](ProcessLook& process) { return process.EndOfNaps(); }))
      return;
  }
  for (const auto& process : processes) process->ForgetNaps();
}

// Of several that spin, each was seen in its circle at another time: two that take turns with a
// lock are that, too. So all of them are held at one time, and stepped once more.
void StepTogether(InspectionContext& context,
                  const std::vector<std::unique_ptr<ProcessLook>>& processes) {
  std::vector<SteppedThread> threads;
  std::vector<ProcessLook*> looks;
  for (const auto& look : processes) {
    for (SteppedThread& thread : look->Spinners()) {
      threads.push_back(std::move(thread));
      looks.push_back(look.get());
    }
  }
  if (threads.size() < 2) return;
  StepTimes times;
  times.usual = context.options.step_time;
  times.longest = context.options.long_step_time;
  const auto loops = StepInHelper(context.clock, threads, times);
  if (!loops.ok()) return;  // then it is not known, as each of them says
  for (size_t i = 0; i < threads.size(); ++i) {
    const SteppedLoop& loop = loops.value()[i];
    looks[i]->StoreTogether(threads[i].tid, loop);
    context.longest_stop = std::max(context.longest_stop, loop.held);
  }
}

Result<SystemSample> LinuxInspector::Inspect(int pid, const InspectOptions& asked_for) {
  InspectOptions options = asked_for;
  if (kept_ != nullptr)
    options.stop = options.step_running = options.follow = options.remote_ends = false;
  if (const std::string why = proc_.WhyBlind(); !why.empty())
    return Status::Io(fmt::format("process {} cannot be looked at: {}", pid, why));
  // A thread's number leads to its process.
  const auto status = proc_.Read(fmt::format("{}/status", pid));
  const auto parsed = status ? ParseTaskStatus(*status) : std::nullopt;
  if (!parsed) return Status::NotFound(fmt::format("there is no process {}", pid));
  SystemSample look;
  InspectionContext context(clock_, proc_, options, proc_root_);
  context.kept = kept_.get();
  look.begin = clock_.Monotonic();
  auto [processes, asked, asked_are_all, left_out] =
      ReadAll(parsed->process > 0 ? parsed->process : pid, context);
  if (processes.empty()) return Status::NotFound(fmt::format("process {} has just ended", pid));
  if (options.stop) {
    const SuspensionPutOff put_off;
    // On a thread of its own: when that ends, the kernel lets go of whatever it still traces.
    std::thread([&all = processes, &context] {
      for (auto& process : all) process->Stop();
      StepTogether(context, all);
    }).join();
  }
  CheckNaps(clock_, processes);
  if (options.stacks) {
    for (auto& process : processes) process->FindHolders();
    for (auto& process : processes) {
      process->FindFeeders(processes);
      for (auto& other : processes) {
        if (other != process) process->FindOpeners(*other);
      }
    }
    for (auto& process : processes) process->NameObjects();
  }
  std::set<int> known;
  for (auto& process : processes) known.insert(process->pid());
  std::set<int> leads;
  for (auto& process : processes) {
    process->Verify();
    for (const int other : process->LeadsTo()) {
      if (known.count(other) == 0 && options.follow && left_out == 0) leads.insert(other);
    }
  }
  look.leads.assign(leads.begin(), leads.end());
  for (auto& process : processes) look.processes.push_back(process->ReleaseFacts());
  look.asked = std::move(asked);
  look.host = FirstLine("sys/kernel/hostname");
  look.boot = FirstLine("sys/kernel/random/boot_id");
  if (options.remote_ends) {
    std::vector<int> pids;
    for (const ProcessFacts& process : look.processes) pids.push_back(process.pid);
    size_t untold = 0;
    look.remote_ends = context.files.RemoteEndsOf(pids, kMostRemoteEnds, &untold);
    if (untold > 0) {
      look.processes[0].warnings.push_back(fmt::format(
          "{} more TCP connections to other machines {} not told of, as {} are the most; "
          "whoever waits at the other end of them cannot be joined",
          untold, untold == 1 ? "is" : "are", kMostRemoteEnds));
    }
  }
  look.asked_are_all = asked_are_all;
  if (left_out > 0) {
    look.processes[0].warnings.push_back(fmt::format(
        "{} more process{} not looked at: a look takes at most {} processes that it is asked "
        "about, {} more that their waits lead to, and {:.0f} s; ask for one of them by "
        "its own number",
        left_out, left_out == 1 ? " was" : "es were", options.most_asked, kMostProcesses - 1,
        Seconds(options.budget)));
  }
  look.longest_stop = context.longest_stop;
  look.whole_process_stopped = kept_ != nullptr;
  look.end = clock_.Monotonic();
  return look;
}

}  // namespace

Result<std::unique_ptr<ProcessInspector>> OpenLinuxInspector(Clock& clock,
                                                             const std::string& proc_root) {
  return std::unique_ptr<ProcessInspector>(std::make_unique<LinuxInspector>(clock, proc_root));
}

std::unique_ptr<ProcessInspector> OpenKeptInspector(Clock& clock, KeptProcess process) {
  return std::make_unique<LinuxInspector>(clock, std::move(process));
}

}  // namespace hangscope
