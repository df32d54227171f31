#include "runtime/v8/uv_signals.h"

#include <cstddef>
#include <set>
#include <vector>

namespace hangscope {
namespace {

// Of a uv_signal_t (uv.h, uv/unix.h).
constexpr uint64_t kKind = 16;
constexpr uint64_t kNumber = 104;
constexpr uint64_t kLeft = 112;
constexpr uint64_t kRight = 120;
constexpr int32_t kIsSignal = 16;
constexpr int32_t kMostSignal = 64;
constexpr size_t kMostHandles = 1024;

}  // namespace

std::optional<uint64_t> SignalsOfLoops(uint64_t tree, const ReadMemory& read) {
  uint64_t root = 0;
  if (!read(tree, &root, sizeof root)) return std::nullopt;
  uint64_t signals = 0;
  std::set<uint64_t> known;
  std::vector<uint64_t> open = {root};
  while (!open.empty()) {
    const uint64_t at = open.back();
    open.pop_back();
    if (at == 0) continue;
    int32_t kind = 0;
    int32_t number = 0;
    uint64_t left = 0;
    uint64_t right = 0;
    if (known.size() == kMostHandles || !known.insert(at).second ||
        !read(at + kKind, &kind, sizeof kind) || !read(at + kNumber, &number, sizeof number) ||
        !read(at + kLeft, &left, sizeof left) || !read(at + kRight, &right, sizeof right) ||
        kind != kIsSignal || number < 1 || number > kMostSignal)
      return std::nullopt;
    signals |= uint64_t{1} << (number - 1);
    open.push_back(left);
    open.push_back(right);
  }
  return signals;
}

}  // namespace hangscope
