// The handlers of signals in a process of libuv, from an image of its memory.
#include "runtime/v8/uv_signals.h"

#include <gtest/gtest.h>
#include <signal.h>

#include "fakes/fake_memory.h"

namespace hangscope {
namespace {

constexpr uint64_t kRootAt = 0x10000;

class Signals : public FakeMemory {
 public:
  Signals() : FakeMemory(kRootAt) { Block(8); }

  uint64_t Handle(int number, uint64_t left = 0, uint64_t right = 0) {
    const uint64_t at = Block(152);
    Put<int32_t>(at + 16, 16);
    Put<int32_t>(at + 104, number);
    Put(at + 112, left);
    Put(at + 120, right);
    return at;
  }
  void Root(uint64_t handle) { Put(kRootAt, handle); }
  std::optional<uint64_t> All() {
    return SignalsOfLoops(
        kRootAt, [this](uint64_t at, void* into, size_t bytes) { return Read(at, into, bytes); });
  }
};

constexpr uint64_t Bit(int number) { return uint64_t{1} << (number - 1); }

TEST(UvSignals, AreAllThatTheTreeHas) {
  Signals signals;
  EXPECT_EQ(signals.All(), 0u);
  const uint64_t child = signals.Handle(SIGCHLD);
  signals.Root(child);
  EXPECT_EQ(signals.All(), Bit(SIGCHLD));
  signals.Root(signals.Handle(SIGTERM, signals.Handle(SIGINT), child));
  EXPECT_EQ(signals.All(), Bit(SIGINT) | Bit(SIGTERM) | Bit(SIGCHLD));
}

TEST(UvSignals, OfWhatIsNoSuchTreeNothingIsSaid) {
  Signals signals;
  const uint64_t handle = signals.Handle(SIGINT);
  signals.Root(handle);
  signals.Put<int32_t>(handle + 16, 13);  // of another kind
  EXPECT_EQ(signals.All(), std::nullopt);
  signals.Put<int32_t>(handle + 16, 16);
  signals.Put<int32_t>(handle + 104, 65);
  EXPECT_EQ(signals.All(), std::nullopt);
  signals.Put<int32_t>(handle + 104, SIGINT);
  signals.Put(handle + 112, handle);  // it is below itself
  EXPECT_EQ(signals.All(), std::nullopt);
  signals.Put<uint64_t>(handle + 112, 0x500000);
  EXPECT_EQ(signals.All(), std::nullopt);
}

}  // namespace
}  // namespace hangscope
