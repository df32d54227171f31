#include "base/signal_text.h"

#include <fmt/format.h>
#include <string.h>

namespace hangscope {

std::string SignalText(int number) {
  const char* const words = strsignal(number);
  return words == nullptr ? fmt::format("signal {}", number)
                          : fmt::format("signal {} ({})", number, words);
}

}  // namespace hangscope
