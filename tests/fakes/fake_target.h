// Memory that a test writes itself: what a target would have left there.
#ifndef HANGSCOPE_TESTS_FAKES_FAKE_TARGET_H
#define HANGSCOPE_TESTS_FAKES_FAKE_TARGET_H

#include <cstring>
#include <functional>
#include <string>

#include "target/target.h"

namespace hangscope {

class FakeTarget final : public Target {
 public:
  explicit FakeTarget(std::string bytes = {}) { Set(std::move(bytes)); }
  void Set(std::string bytes) {
    memory = std::move(bytes);
    ranges_ = {{0, memory.size()}};
  }

  const std::string& name() const override { return name_; }
  Status Read(uint64_t address, std::span<char> bytes) override {
    if (before_read) before_read(address);
    if (Status status = CheckRange(address, bytes.size()); !status.ok()) return status;
    std::memcpy(bytes.data(), memory.data() + address, bytes.size());
    return {};
  }
  Status Write(uint64_t address, std::string_view bytes) override {
    if (Status status = CheckRange(address, bytes.size()); !status.ok()) return status;
    memory.replace(address, bytes.size(), bytes);
    return {};
  }
  Life life() override { return state; }
  const std::vector<MemoryRange>& ranges() const override { return ranges_; }

  std::string memory;
  Life state = Life::kLive;
  std::function<void(uint64_t)> before_read;  // the target goes on meanwhile

 private:
  const std::string name_ = "the fake";
  std::vector<MemoryRange> ranges_;
};

}  // namespace hangscope

#endif
