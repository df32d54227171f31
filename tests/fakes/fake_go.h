// The memory of a program of Go 1.19, as little of it as its goroutines need, written down as the
// runtime lays it out. Any byte of it may be changed then.
#ifndef HANGSCOPE_TESTS_FAKES_FAKE_GO_H
#define HANGSCOPE_TESTS_FAKES_FAKE_GO_H

#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fakes/fake_memory.h"
#include "runtime/go/go_layout.h"
#include "runtime/go/go_reader.h"

namespace hangscope {

// Of go_layout::kWaitReasons.
constexpr uint8_t kGoSleeps = 19, kGoReceives = 14, kGoSends = 15, kGoNilChannel = 3,
                  kGoCondition = 20, kGoSemaphore = 18;

class FakeGo : public FakeMemory {
 public:
  static constexpr uint64_t kBegin = 0x100000;

  explicit FakeGo(std::string version = "go1.19.8")
      : FakeMemory(kBegin), version_(std::move(version)) {
    names_["runtime.semtable"] = Block(go_layout::kSemaphoreLines * go_layout::kBytesOfLine);
    names_["runtime.allgs"] = Block(24);
  }

  uint64_t AddGoroutine(uint64_t id, go_layout::Status status, uint8_t reason = 0) {
    const uint64_t g = Block(go_layout::kBytesOfG);
    Put(g + go_layout::kId, id);
    Put(g + go_layout::kStatus, static_cast<uint32_t>(status));
    Put(g + go_layout::kWaitReason, reason);
    Put<uint64_t>(g + go_layout::kSavedPc, 0x401000 + id);
    Put<uint64_t>(g + go_layout::kSavedStackPointer, 0xc000001000);
    Put<uint64_t>(g + go_layout::kSavedFramePointer, 0xc000001040);
    Put<uint64_t>(g + go_layout::kStackEnd, 0xc000002000);
    Put<uint64_t>(g + go_layout::kFirstPc, 0x400000 + id);
    all_.push_back(g);
    const uint64_t list = Block(all_.size() * 8);
    for (size_t i = 0; i < all_.size(); ++i) Put(list + 8 * i, all_[i]);
    Put(names_["runtime.allgs"], list);
    Put<uint64_t>(names_["runtime.allgs"] + 8, all_.size());
    return g;
  }
  // In the tree of a line of the table, below its last one.
  void AddWaiter(size_t line, uint64_t goroutine, uint64_t semaphore) {
    const uint64_t sudog = Block(go_layout::kBytesOfSudog);
    Put(sudog + go_layout::kSudogGoroutine, goroutine);
    Put(sudog + go_layout::kSudogElement, semaphore);
    const uint64_t tree =
        names_["runtime.semtable"] + line * go_layout::kBytesOfLine + go_layout::kTree;
    const auto first = Get<uint64_t>(tree);
    Put(sudog + go_layout::kSudogNext, first);
    Put(tree, sudog);
  }
  void WaitForChannels(uint64_t goroutine, const std::vector<uint64_t>& channels) {
    uint64_t at = goroutine + go_layout::kQueues;
    for (const uint64_t channel : channels) {
      const uint64_t sudog = Block(go_layout::kBytesOfSudog);
      Put(sudog + go_layout::kSudogChannel, channel);
      Put(at, sudog);
      at = sudog + go_layout::kSudogWaitLink;
    }
    last_link_ = at;
  }
  void CloseTheRing(uint64_t goroutine) {
    const auto first = Get<uint64_t>(goroutine + go_layout::kQueues);
    Put(last_link_, first);
  }
  void Forget(const std::string& name) { names_.erase(name); }
  uint64_t AddressOf(const std::string& name) const { return names_.at(name); }

  Result<GoReader> Open() {
    return GoReader::Open(
        version_,
        [this](std::string_view name) {
          const auto at = names_.find(std::string(name));
          return at == names_.end() ? std::nullopt : std::optional(at->second);
        },
        [this](uint64_t address, void* into, size_t bytes) {
          ++reads;
          return FakeMemory::Read(address, into, bytes);
        });
  }
  size_t reads = 0;

 private:
  const std::string version_;
  std::map<std::string, uint64_t> names_;
  std::vector<uint64_t> all_;
  uint64_t last_link_ = 0;
};

}  // namespace hangscope

#endif
