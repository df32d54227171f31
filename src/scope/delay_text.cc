#include "scope/delay_text.h"

#include <fmt/format.h>

#include "hangscope/abi/watch.h"

namespace hangscope {

std::string DelaysSetText(const CoreDetail& detail) {
  std::string text;
  bool draws = false;
  for (size_t i = 0; i < kDelayKinds.size(); ++i) {
    const uint32_t set = detail.delays[i];
    if (set == 0) continue;
    const bool random = (set & HANGSCOPE_DELAY_RANDOM) != 0;
    draws = draws || random;
    text += fmt::format("{}{} {}{}", text.empty() ? "" : ", ", kDelayKinds[i],
                        random ? "up to " : "", set & ~HANGSCOPE_DELAY_RANDOM);
  }
  return draws ? text + fmt::format(", seed {}", detail.delay_seed) : text;
}

std::string DelaysDoneText(const std::array<uint32_t, 3>& done) {
  std::string text;
  for (size_t i = 0; i < kDelayKinds.size(); ++i) {
    if (done[i] != 0)
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", done[i], kDelayKinds[i]);
  }
  return text;
}

std::string DelaysText(const CoreDetail& detail) {
  const std::string set = DelaysSetText(detail);
  const std::string done = DelaysDoneText(detail.delays_done);
  if (set.empty() && done.empty()) return "";
  return fmt::format("{} delayed ({})", done.empty() ? "nothing" : done,
                     set.empty() ? "none is set now" : set);
}

}  // namespace hangscope
