#include "proc/poll_calls.h"

#include <poll.h>

#include <algorithm>

namespace hangscope {
namespace {

constexpr size_t kMostPolled = 64;  // files that are taken of one call
constexpr int kMostDescriptors = 1 << 16;

void Add(PolledFiles* polled, int fd, bool wants_read) {
  if (polled->files.size() < kMostPolled)
    polled->files.push_back({fd, wants_read});
  else
    polled->cut = true;
}

PolledFiles ReadList(uint64_t address, uint64_t count, const ReadMemory& read) {
  PolledFiles polled;
  for (uint64_t i = 0; i < count && polled.files.size() < kMostPolled; ++i) {
    pollfd file = {};
    if (!read(address + i * sizeof file, &file, sizeof file)) break;
    // Without events it is only told of errors and the other end's closing, as a reader is.
    if (file.fd >= 0)
      Add(&polled, file.fd, (file.events & POLLIN) != 0 || (file.events & POLLOUT) == 0);
  }
  polled.cut = polled.cut || count > kMostPolled;
  return polled;
}

void AddSet(PolledFiles* polled, uint64_t set, int count, bool wants_read, const ReadMemory& read) {
  constexpr int kBits = 64;
  for (int word = 0; set != 0 && word * kBits < std::min(count, kMostDescriptors); ++word) {
    uint64_t bits = 0;
    if (!read(set + static_cast<uint64_t>(word) * sizeof bits, &bits, sizeof bits)) return;
    for (int bit = 0; bit < kBits && word * kBits + bit < count; ++bit) {
      if ((bits >> bit & 1) != 0) Add(polled, word * kBits + bit, wants_read);
    }
  }
}

}  // namespace

PolledFiles ReadPolledFiles(const TaskSystemCall& call, const ReadMemory& read) {
  const auto& a = call.arguments;
  switch (call.number) {
#if defined(__x86_64__)
    case SYS_poll:
#endif
    case SYS_ppoll:
      return ReadList(a[0], a[1], read);
#if defined(__x86_64__)
    case SYS_select:
#endif
    case SYS_pselect6: {
      PolledFiles polled;
      AddSet(&polled, a[1], static_cast<int>(a[0]), true, read);
      AddSet(&polled, a[2], static_cast<int>(a[0]), false, read);
      return polled;
    }
    default:
      return {};
  }
}

}  // namespace hangscope
