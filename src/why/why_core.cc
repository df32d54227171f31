#include "why/why_core.h"

#include <fmt/format.h>

#include <utility>

#include "base/signal_text.h"
#include "process/kept/core_dump.h"
#include "process/linux_inspector.h"

namespace hangscope {

Result<WhyReport> AskWhyCore(Clock& clock, const std::string& path, WhyProcessOptions options) {
  auto dump = OpenCoreDump(path);
  if (!dump.ok()) return dump.status();
  options.pid = dump->process.pid;
  std::string kept = "as its core dump has it";
  if (dump->signal != 0) kept += fmt::format(", after {}", SignalText(dump->signal));
  auto inspector = OpenKeptInspector(clock, std::move(dump->process));
  InspectOptions inspect;
  inspect.budget = 10 * kSecond;  // nobody is kept waiting by that but who asks
  auto look = inspector->Inspect(options.pid, inspect);
  if (!look.ok()) return look.status();
  TwoLooks one;
  one.looks.push_back(std::move(*look));
  one.judgement = JudgeProcess(one.looks);
  return ReportLooks(clock, one, options, std::move(kept));
}

}  // namespace hangscope
