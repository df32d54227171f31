#include "base/capabilities.h"

#include <charconv>

#include "base/file_system.h"

namespace hangscope {

Capabilities::Capabilities(std::string_view status) {
  constexpr std::string_view kKey = "CapEff:\t";
  size_t at = status.find(kKey);
  while (at != std::string_view::npos && at != 0 && status[at - 1] != '\n')
    at = status.find(kKey, at + 1);
  if (at == std::string_view::npos) return;
  status.remove_prefix(at + kKey.size());
  std::from_chars(status.data(), status.data() + status.size(), bits_, 16);
}

Capabilities OwnCapabilities() {
  auto status = ReadWholeFile(PosixFileSystem(), "/proc/self/status");
  return status.ok() ? Capabilities(*status) : Capabilities();
}

}  // namespace hangscope
