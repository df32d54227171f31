#include "progress_bar.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "options.h"

namespace hangscope::cli {
namespace {

constexpr TimeNs kQuietFor = kSecond;  // no progress is told before
constexpr TimeNs kBetweenBars = 100 * kMillisecond;
constexpr int kBarWidth = 40;

}  // namespace

ProgressBar::ProgressBar(Clock& clock, bool beside_output, bool quiet)
    : clock_(clock),
      start_(clock.Monotonic()),
      wanted_(!quiet && isatty(STDERR_FILENO) != 0 &&
              !(beside_output && isatty(STDOUT_FILENO) != 0)) {}

ProgressBar::~ProgressBar() {
  if (shown_ > 0) WriteAll(STDERR_FILENO, "\r\033[K");
}

void ProgressBar::Begin(const char* work) {
  if (shown_ > 0) WriteAll(STDERR_FILENO, "\r\033[K");
  work_ = work;
}

void ProgressBar::Show(double part) {
  const TimeNs now = clock_.Monotonic();
  if (!wanted_ || now - start_ < kQuietFor || now - shown_ < kBetweenBars) return;
  shown_ = now;
  const int done = static_cast<int>(std::clamp(part, 0.0, 1.0) * kBarWidth);
  WriteAll(STDERR_FILENO,
           fmt::format("\r[{}{}] {:3.0f} % {}\033[K", std::string(static_cast<size_t>(done), '#'),
                       std::string(static_cast<size_t>(kBarWidth - done), ' '), part * 100, work_));
}

WorkLine::WorkLine(bool wanted) : wanted_(wanted && isatty(STDERR_FILENO) != 0) {}

void WorkLine::Show(const std::string& text) {
  if (!wanted_ || (text.empty() && !is_shown_)) return;
  is_shown_ = !text.empty();
  std::string line = text.empty() ? "" : "hangscope: " + text + " ...";
  line.resize(std::min(line.size(), static_cast<size_t>(TerminalColumns(STDERR_FILENO) - 1)));
  WriteAll(STDERR_FILENO, "\r\033[K" + line);
}

}  // namespace hangscope::cli
