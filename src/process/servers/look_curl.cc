// Who waits in libcurl for the end of a transfer: ProcessLook's part.
#include <algorithm>
#include <iterator>
#include <string_view>

#include "process/process_graph.h"
#include "process/process_look.h"

namespace hangscope {
namespace {

// Of curl(1): whether an argument, or some letters of one, sets a time after which it gives up.
bool HasTimeLimit(std::string_view command) {
  constexpr std::string_view kLimitLetters = "mYyK";
  constexpr std::string_view kLimitNames[] = {"--max-time", "--speed-", "--config"};
  while (!command.empty()) {
    const std::string_view word = command.substr(0, command.find(' '));
    command.remove_prefix(std::min(command.size(), word.size() + 1));
    const bool is_letters = word.starts_with('-') && !word.starts_with("--");
    if (is_letters && word.find_first_of(kLimitLetters) != std::string_view::npos) return true;
    if (std::any_of(std::begin(kLimitNames), std::end(kLimitNames),
                    [&](std::string_view name) { return word.starts_with(name); }))
      return true;
  }
  return false;
}

}  // namespace

// While nothing comes it wakes every second, and finds that nothing did. What is watched beside the
// connection, it wakes itself by. Of curl_multi_perform the program may do anything in between.
void ProcessLook::ExplainTransferOfCurl(ThreadFacts* thread) const {
  constexpr TimeNs kLongestNap = kSecond;
  ThreadWait& wait = thread->wait;
  if (!wait.has_timeout || !wait.timeout || *wait.timeout > kLongestNap ||
      !IsTransferOfCurl(*thread))
    return;
  const bool is_here = std::all_of(wait.files.begin(), wait.files.end(), [](const WaitFile& file) {
    return (file.kind == FileKind::kSocket || file.kind == FileKind::kEvent ||
            file.kind == FileKind::kPipe) &&
           !file.outside;
  });
  if (!is_here || (facts_.name == "curl" && HasTimeLimit(facts_.command))) return;
  wait.has_timeout = false;
  wait.timeout.reset();
  wait.rechecks = true;
  thread->since.reset();
}

}  // namespace hangscope
