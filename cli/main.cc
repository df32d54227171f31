// hangscope: where did it stop, and what led up to that?
#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "commands.h"
#include "hangscope/version.h"
#include "options.h"
#include "run/run_session.h"
#include "signals.h"

namespace hangscope::cli {
namespace {

constexpr char kMainHelp[] =
    R"(hangscope says where a program stopped and what led up to that.

usage: hangscope COMMAND [options]

  run [options] -- PROGRAM...   start a program, record its output into a bounded ring,
                                watch it, and name the loop when it hangs
  tee [options]                 the same for what comes on standard input
  ls                            the recorders that run now, and what they think
  snap PID|NAME|DIR             ask one of them for a snapshot
  cat RING|SNAPSHOT             print what a ring or a snapshot holds, oldest first
  show TARGET                   the events that a program recorded in its memory
  export --to FORMAT WHAT       what was recorded, in formats of other programs
  watch TARGET...               watch its cores and tasks: who hangs, who waits for whom
  why TARGET                    the verdict on one that hangs, or is dead
  report SNAPSHOT               one page about a hang, for a browser
  set WHAT TARGET CORES...      pause, resume, delay, mask, freeze
  doctor                        what this machine lets you record, and what grants the rest
  cost [options] -- QEMU...     count what pieces of the target's code cost

  hangscope COMMAND --help      the options of one command
  hangscope --version           the version

example:
  hangscope run --elf fw.elf -- qemu-system-riscv32 -machine virt -bios none \
    -kernel fw.elf -nographic -monitor none -serial none -d exec,nochain
)";

std::string_view own_command;
std::terminate_handler library_terminate = std::abort;  // says what it was, and aborts

// Without memory of its own, of which there may be none. A guard's words would come after those of
// its recorder, which had no more than it has.
[[noreturn]] void EndFor(std::string_view sentence) {
  if (own_command != "guard") (void)!write(STDERR_FILENO, sentence.data(), sentence.size());
  _exit(own_command == "run" ? int{kRunFailed} : int{kExitFailed});
}

// For what is caught nowhere, in any thread: where this machine, or a limit of it, gives no more.
// Else it is a defect, and ends as one.
[[noreturn]] void EndUncaught() {
  try {
    if (const auto uncaught = std::current_exception()) std::rethrow_exception(uncaught);
  } catch (const std::bad_alloc&) {
    EndFor("hangscope: error: there is no memory left; ulimit -v or its container sets a limit\n");
  } catch (const std::system_error& error) {
    if (error.code() == std::errc::resource_unavailable_try_again) {
      EndFor(
          "hangscope: error: a thread cannot be started; ulimit -v, ulimit -u or its container "
          "sets a limit\n");
    }
  } catch (...) {
  }
  library_terminate();
  std::abort();
}

int Dispatch(const std::vector<std::string>& words, const StartSignals& signals) {
  const std::string command = words.empty() ? "" : words[0];
  const std::vector<std::string> rest(words.begin() + (words.empty() ? 0 : 1), words.end());
  if (command == "run") return RunCommand(rest, signals);
  if (command == "tee") return TeeCommand(rest, signals);
  if (command == "cost") return CostCommand(rest, signals);
  if (command == "guard") return GuardCommand(rest);
  if (command == "watch") return WatchCommand(rest, signals);
  ReleaseSignals(signals);
  if (command == "snap") return SnapCommand(rest);
  if (command == "ls") return LsCommand(rest);
  if (command == "cat") return CatCommand(rest);
  if (command == "show") return ShowCommand(rest);
  if (command == "export") return ExportCommand(rest);
  if (command == "set") return SetCommand(rest);
  if (command == "doctor") return DoctorCommand(rest);
  if (command == "why") return WhyCommand(rest);
  if (command == "report") return ReportCommand(rest);
  if (command == "--version") {
    WriteOut("hangscope " HANGSCOPE_VERSION "\n");
    return kExitClean;
  }
  if (command == "--help" || command == "-h" || command == "help") {
    WriteOut(kMainHelp);
    return kExitClean;
  }
  if (command.empty()) {
    WriteAll(STDERR_FILENO, kMainHelp);
  } else {
    PrintError("unknown command '" + command +
               "'; there are run, tee, ls, snap, cat, show, export, watch, why, report, set, "
               "doctor and cost (hangscope --help)");
  }
  return kExitUsage;
}

}  // namespace
}  // namespace hangscope::cli

int main(int argc, char** argv) {
  hangscope::cli::own_command = argc > 1 ? argv[1] : "";
  hangscope::cli::library_terminate = std::set_terminate(hangscope::cli::EndUncaught);
  // before all that follows
  const hangscope::cli::StartSignals signals = hangscope::cli::InstallSignals();
  hangscope::cli::FillStandardDescriptors();
  return hangscope::cli::ConcludeOutput(hangscope::cli::Dispatch({argv + 1, argv + argc}, signals));
}
