// A target that a test keeps, as LiveScope and its like open it: again and again, each their own.
#ifndef HANGSCOPE_TESTS_FAKES_BORROWED_TARGET_H
#define HANGSCOPE_TESTS_FAKES_BORROWED_TARGET_H

#include <memory>
#include <string>
#include <vector>

#include "fakes/fake_target.h"
#include "scope/scope_view.h"

namespace hangscope {

class BorrowedTarget final : public Target {
 public:
  explicit BorrowedTarget(FakeTarget& target) : target_(target) {}
  const std::string& name() const override { return target_.name(); }
  Status Read(uint64_t address, std::span<char> bytes) override {
    return target_.Read(address, bytes);
  }
  Status Write(uint64_t address, std::string_view bytes) override {
    return target_.Write(address, bytes);
  }
  Life life() override { return target_.life(); }
  const std::vector<MemoryRange>& ranges() const override { return target_.ranges(); }

 private:
  FakeTarget& target_;
};

// `target` outlives it.
inline ScopeSource SourceOf(FakeTarget& target) {
  ScopeSource source;
  source.target = "the fake";
  source.open = [&target]() -> Result<std::unique_ptr<Target>> {
    return std::unique_ptr<Target>(std::make_unique<BorrowedTarget>(target));
  };
  return source;
}

}  // namespace hangscope

#endif
