// Who may come to a variable, of a few functions written down by hand.
#include "runtime/go/go_uses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <optional>
#include <string>

#include "base/build_features.h"
#include "fakes/fake_memory.h"
#include "runtime/go/go_layout.h"

namespace hangscope {
namespace {

using ::testing::UnorderedElementsAre;

// Four functions of 256 bytes each, a variable, and the value of a function.
class FakeGoText : public FakeMemory {
 public:
  static constexpr uint64_t kUses = 0x400000, kCalls = 0x400100, kTakes = 0x400200,
                            kOther = 0x400300, kTextEnd = 0x400400;

  FakeGoText() : FakeMemory(kUses) {
    using namespace go_layout;
    Block(kTextEnd - kUses);
    PutText(kUses, std::string(kTextEnd - kUses, '\xcc'));
    const uint64_t data = Block(16);
    variable_ = Block(16), value_ = Block(16), spare_ = Block(16);
    types_ = Block(16);
    PutText(types_, std::string(16, '\xff'));
    end_ = Block(16);
    Put(value_, kCalls);
    Lead(kUses, "\x48\x8b\x05", variable_, "\xc3");  // mov rax, [variable]; ret
    Lead(kCalls, "\xe8", kUses, "\x90\xc3");         // call; nop; ret
    Lead(kTakes, "\x48\x8d\x05", value_, "\xc3");    // lea rax, [value]; ret
    PutText(kOther, "\xc3");
    const uint64_t places = Block(40);
    for (uint32_t i = 0; i < 5; ++i) Put(places + 8 * i, 0x100 * i);
    module_ = Block(kBytesOfModule);
    Put(module_ + kFunctionTable, places);
    Put<uint64_t>(module_ + kFunctionTable + 8, 5);
    Put(module_ + go_layout::kText, kUses);
    Put(module_ + go_layout::kTextEnd, uint64_t{kTextEnd});
    for (const uint64_t at : {kData, kPlainData, kReadOnlyData}) Put(module_ + at, data);
    Put(module_ + kTypesBegin, types_);
    Put(module_ + kTypesEnd, types_ + 16);
    Put(module_ + kModuleEnd, end_);
  }

  std::optional<GoUsers> Users(const KindOfGoFunction& kind_of = Plain, bool is_late = false) {
    auto uses = Uses();
    if (!uses.ok()) return std::nullopt;
    return uses->UsersOf(variable_, variable_ + 8, kind_of, [=] { return is_late; });
  }
  Result<GoUses> Uses() {
    const ReadMemory read = [this](uint64_t at, void* into, size_t bytes) {
      return Read(at, into, bytes);
    };
    auto code = GoCode::Read(module_, std::make_shared<GoMemory>(read, 1 << 20));
    EXPECT_TRUE(code.ok()) << code.status().message();
    return code.ok() ? GoUses::Read(*code, read) : Result<GoUses>(code.status());
  }
  static GoFunctionKind Plain(uint64_t) { return GoFunctionKind::kPlain; }
  void KeepInData(uint64_t what) { Put(spare_, what); }
  void DescribeMethod(uint64_t function) { Put(types_, static_cast<uint32_t>(function - kUses)); }
  uint64_t variable() const { return variable_; }
  uint64_t value() const { return value_; }

 private:
  // An instruction that leads there, counted from its end.
  void Lead(uint64_t at, const std::string& code, uint64_t to, const std::string& behind) {
    PutText(at, code);
    Put(at + code.size(), static_cast<uint32_t>(to - (at + code.size() + 4)));
    PutText(at + code.size() + 4, behind);
  }

  uint64_t variable_ = 0, value_ = 0, spare_ = 0, types_ = 0, end_ = 0, module_ = 0;
};

TEST(GoUses, AreWhoUsesAVariableWhoCallsTheseAndWhoTakesTheirAddresses) {
  FakeGoText text;
  const auto users = text.Users();
  ASSERT_TRUE(users);
  EXPECT_THAT(users->functions,
              UnorderedElementsAre(FakeGoText::kUses, FakeGoText::kCalls, FakeGoText::kTakes));
}

TEST(GoUses, AreNotFollowedOverWhatIsOver) {
  FakeGoText text;
  const auto users = text.Users([](uint64_t function) {
    return function == FakeGoText::kCalls ? GoFunctionKind::kOver : GoFunctionKind::kPlain;
  });
  ASSERT_TRUE(users);
  EXPECT_THAT(users->functions, UnorderedElementsAre(FakeGoText::kUses));
}

TEST(GoUses, AreNotKnownOfWhatLiesInDataOrIsDescribedToOthersOrWithoutTime) {
  const auto methods = [](uint64_t) { return GoFunctionKind::kMethod; };
  EXPECT_TRUE(FakeGoText().Users(methods));
  EXPECT_FALSE(FakeGoText().Users(FakeGoText::Plain, true));
  for (const bool of_value : {false, true}) {
    FakeGoText text;
    text.KeepInData(of_value ? text.value() : text.variable());
    EXPECT_FALSE(text.Users());
  }
  FakeGoText described;
  described.DescribeMethod(FakeGoText::kCalls);
  EXPECT_TRUE(described.Users());
  EXPECT_FALSE(described.Users(methods));
}

#if HANGSCOPE_HAS_CAPSTONE
TEST(GoUses, BehindACallItIsNotComeToAgain) {
  FakeGoText text;
  const auto users = text.Users();
  auto uses = text.Uses();
  ASSERT_TRUE(users && uses.ok());
  EXPECT_TRUE(uses->MayComeTo(users->places, FakeGoText::kCalls, FakeGoText::kTakes));
  EXPECT_FALSE(uses->MayComeTo(users->places, FakeGoText::kCalls + 5, FakeGoText::kTakes));
  // A jump back to the call: a loop.
  text.PutText(FakeGoText::kCalls + 5, "\xeb\xf9");
  auto loop = text.Uses();
  ASSERT_TRUE(loop.ok());
  EXPECT_TRUE(loop->MayComeTo(users->places, FakeGoText::kCalls + 5, FakeGoText::kTakes));
}

TEST(GoUses, BytesThatOnlyLookLikeADistanceAreNone) {
  FakeGoText text;
  // mov eax, N: the number would lead to the variable, were it a distance.
  text.PutText(FakeGoText::kOther, "\xb8");
  text.Put(FakeGoText::kOther + 1,
           static_cast<uint32_t>(text.variable() - (FakeGoText::kOther + 5)));
  text.PutText(FakeGoText::kOther + 5, "\xc3");
  const auto users = text.Users();
  ASSERT_TRUE(users);
  EXPECT_EQ(users->functions.count(FakeGoText::kOther), 0u);
}
#endif

}  // namespace
}  // namespace hangscope
