#include "process/linux_inspector.h"

#include <fmt/format.h>

#include <deque>
#include <set>
#include <thread>

#include "process/process_look.h"

namespace hangscope {
namespace {

constexpr size_t kMostProcesses = 64;

class LinuxInspector final : public ProcessInspector {
 public:
  LinuxInspector(Clock& clock, std::string proc_root)
      : clock_(clock), proc_root_(proc_root), proc_(std::move(proc_root)) {}

  Result<SystemSample> Inspect(int pid, const InspectOptions& options) override;

 private:
  std::vector<std::unique_ptr<ProcessLook>> ReadAll(int pid, InspectionContext& context,
                                                    size_t* left_out);

  Clock& clock_;
  const std::string proc_root_;
  const ProcFolder proc_;
  WalkerCache walkers_;
};

// The process, then those that its waits lead to, then those that theirs do; *left_out: how many
// were too many.
std::vector<std::unique_ptr<ProcessLook>> LinuxInspector::ReadAll(int pid,
                                                                  InspectionContext& context,
                                                                  size_t* left_out) {
  std::vector<std::unique_ptr<ProcessLook>> looks;
  std::set<int> known = {pid};
  std::deque<int> queue = {pid};
  for (; !queue.empty() && looks.size() < kMostProcesses && !(context.IsLate() && !looks.empty());
       queue.pop_front()) {
    auto look = std::make_unique<ProcessLook>(context, walkers_, queue.front());
    if (!look->Read()) continue;
    look->Explain();
    for (const int other : context.options.follow ? look->LeadsTo() : std::set<int>()) {
      if (known.insert(other).second) queue.push_back(other);
    }
    looks.push_back(std::move(look));
  }
  *left_out = looks.size() == kMostProcesses ? queue.size() : 0;
  return looks;
}

Result<SystemSample> LinuxInspector::Inspect(int pid, const InspectOptions& options) {
  // A thread's number leads to its process.
  const auto status = proc_.Read(fmt::format("{}/status", pid));
  const auto parsed = status ? ParseTaskStatus(*status) : std::nullopt;
  if (!parsed) return Status::NotFound(fmt::format("there is no process {}", pid));
  SystemSample look;
  InspectionContext context(clock_, proc_, options, proc_root_);
  look.begin = clock_.Monotonic();
  size_t left_out = 0;
  auto processes = ReadAll(parsed->process > 0 ? parsed->process : pid, context, &left_out);
  if (processes.empty()) return Status::NotFound(fmt::format("process {} has just ended", pid));
  if (options.stop) {
    const SuspensionPutOff put_off;
    // On a thread of its own: when that ends, the kernel lets go of whatever it still traces.
    std::thread([&] {
      for (auto& process : processes) process->Stop();
    }).join();
  }
  for (auto& process : processes) process->Verify();
  for (auto& process : processes) look.processes.push_back(process->ReleaseFacts());
  if (left_out > 0) {
    look.processes[0].warnings.push_back(
        fmt::format("the waits lead to more processes: {} {} not looked at, as {} is the most at a "
                    "time; ask for one of them by its own number",
                    left_out, left_out == 1 ? "is" : "are", kMostProcesses));
  }
  look.longest_stop = context.longest_stop;
  look.end = clock_.Monotonic();
  return look;
}

}  // namespace

Result<std::unique_ptr<ProcessInspector>> OpenLinuxInspector(Clock& clock,
                                                             const std::string& proc_root) {
  return std::unique_ptr<ProcessInspector>(std::make_unique<LinuxInspector>(clock, proc_root));
}

}  // namespace hangscope
