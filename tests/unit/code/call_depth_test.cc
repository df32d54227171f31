// How deep a function's stack is where it calls, by its instructions.
#include "code/call_depth.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "base/build_features.h"

namespace hangscope {
namespace {

constexpr uint64_t kCode = 0x401000;

class CallDepths : public testing::Test {
 protected:
  void SetUp() override {
#if !defined(__x86_64__)
    GTEST_SKIP() << "only instructions of x86-64 are followed";
#endif
  }
  void SetUpFollowing() {
    if (!HANGSCOPE_HAS_CAPSTONE) GTEST_SKIP() << "built without capstone";
  }
  void Code(std::vector<uint8_t> bytes) { code_ = std::move(bytes); }
  std::optional<CallDepth> At(uint64_t offset) const {
    return DepthAt(kCode, kCode + offset, read_);
  }

  const ReadCode read_ = [this](uint64_t address, void* into, size_t bytes) {
    const uint64_t at = address - kCode;
    if (at > code_.size() || code_.size() - at < bytes) return false;
    std::memcpy(into, code_.data() + at, bytes);
    return true;
  };

 private:
  std::vector<uint8_t> code_;
};

TEST_F(CallDepths, OfAFunctionWithAFramePointer) {
  SetUpFollowing();
  Code({0x55,                          // push rbp
        0x48, 0x89, 0xe5,              // mov rbp, rsp
        0x48, 0x83, 0xec, 0x20,        // sub rsp, 32
        0xe8, 0x00, 0x00, 0x00, 0x00,  // call
        0xc9, 0xc3});                  // leave; ret
  const auto depth = At(12);           // the last byte of the call
  ASSERT_TRUE(depth);
  EXPECT_EQ(depth->to_return, 40u);
  EXPECT_EQ(depth->frame_pointer, 8u);
  EXPECT_EQ(depth->saved_frame_pointer, 8u);
  EXPECT_FALSE(depth->keeps_frame_pointer);
  EXPECT_EQ(At(0).value_or(CallDepth{99, {}, {}, false}).to_return, 0u);
  EXPECT_EQ(At(14).value_or(CallDepth{99, {}, {}, false}).to_return, 0u) << "behind leave";
}

TEST_F(CallDepths, WhereTheCallersRegistersWereSaved) {
  SetUpFollowing();
  Code({0x55,                             // push rbp
        0x48, 0x89, 0xe5,                 // mov rbp, rsp
        0x41, 0x56,                       // push r14
        0x53,                             // push rbx
        0x48, 0x89, 0xfb,                 // mov rbx, rdi
        0x41, 0xbc, 1,    0,    0,    0,  // mov r12d, 1
        0xe8, 0x00, 0x00, 0x00, 0x00,     // call
        0x5b,                             // pop rbx
        0x90});                           // nop
  const auto depth = At(20);
  ASSERT_TRUE(depth);
  EXPECT_EQ(depth->saved[14], 16u);
  EXPECT_EQ(depth->saved[3], 24u);
  EXPECT_TRUE(depth->changed[3]);
  EXPECT_FALSE(depth->saved[12]) << "changed and not saved";
  EXPECT_TRUE(depth->changed[12]);
  EXPECT_FALSE(depth->saved[15]);
  EXPECT_FALSE(depth->changed[15]);
  const auto behind = At(22);
  ASSERT_TRUE(behind);
  EXPECT_FALSE(behind->saved[3]);
  EXPECT_FALSE(behind->changed[3]) << "it has the caller's again";
}

TEST_F(CallDepths, BehindBranchesAndOfWhatReturnsInTheMiddle) {
  SetUpFollowing();
  Code({0x53,                    // push rbx
        0x85, 0xff,              // test edi, edi
        0x74, 0x02,              // je +2
        0x5b, 0xc3,              // pop rbx; ret
        0x48, 0x83, 0xec, 0x10,  // sub rsp, 16
        0xff, 0xd0,              // call rax
        0x0f, 0x0b});            // ud2
  const auto depth = At(12);
  ASSERT_TRUE(depth);
  EXPECT_EQ(depth->to_return, 24u);
  EXPECT_TRUE(depth->keeps_frame_pointer);
  EXPECT_EQ(depth->saved_frame_pointer, std::nullopt);
}

TEST_F(CallDepths, BehindASystemCall) {
  SetUpFollowing();
  Code({0x50, 0x0f, 0x05, 0x58, 0xc3});  // push rax; syscall; pop rax; ret
  EXPECT_EQ(At(3).value_or(CallDepth{99, {}, {}, false}).to_return, 8u);
}

TEST_F(CallDepths, AreNotGuessed) {
  SetUpFollowing();
  Code({0x48, 0x29, 0xc4,              // sub rsp, rax
        0xe8, 0x00, 0x00, 0x00, 0x00,  // call
        0xc3, 0x90, 0xff, 0xd0});      // ret; and what nothing leads to
  EXPECT_FALSE(At(7)) << "room of a variable size";
  EXPECT_FALSE(At(11)) << "of another function";
  Code({0x5b, 0xff, 0xd0});  // pop rbx: of the caller's
  EXPECT_FALSE(At(2));
  Code({0x06, 0x06});  // no instruction
  EXPECT_FALSE(At(1));
}

TEST_F(CallDepths, WhereACallLeads) {
  Code({0xe8, 0x0b, 0x00, 0x00, 0x00,              // 0: call 16
        0x90, 0x90, 0x90, 0xff, 0xd0,              // 8: call rax
        0x90, 0x90, 0x90, 0x90, 0x90, 0x90,        // 10
        0xff, 0x25, 0x02, 0x00, 0x00, 0x00,        // 16: jmp *24
        0x90, 0x90,                                // 22
        0x78, 0x56, 0x34, 0x12, 0x00, 0x00, 0, 0,  // 24: where the function is
        0xff, 0x15, 0xf2, 0xff, 0xff, 0xff,        // 32: call *24
        0x90, 0x90, 0x90, 0x90});
  // The code begins 2 bytes earlier than what is read before an address.
  EXPECT_FALSE(TargetOfCall(kCode + 5, read_).is_call) << "not all of it is there";
  EXPECT_TRUE(TargetOfCall(kCode + 10, read_).is_call);
  EXPECT_EQ(TargetOfCall(kCode + 10, read_).address, 0u);
  EXPECT_FALSE(TargetOfCall(kCode + 16, read_).is_call);
  EXPECT_TRUE(TargetOfCall(kCode + 38, read_).is_call);
  EXPECT_EQ(TargetOfCall(kCode + 38, read_).address, 0x12345678u);
  std::vector<uint8_t> moved = {0x90, 0x90, 0xe8, 0x0b, 0x00, 0x00, 0x00};
  moved.insert(moved.end(), 11, 0x90);
  moved.insert(moved.end(),
               {0xff, 0x25, 0x00, 0x00, 0x00, 0x00, 0x78, 0x56, 0x34, 0x12, 0, 0, 0, 0});
  Code(moved);
  EXPECT_EQ(TargetOfCall(kCode + 7, read_).address, 0x12345678u) << "through the linker's stub";
}

}  // namespace
}  // namespace hangscope
