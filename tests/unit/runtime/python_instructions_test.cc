// Which variables the instructions of CPython 3.11 that are still to come use.
#include "runtime/python/python_instructions.h"

#include <gtest/gtest.h>

#include <string>

namespace hangscope {
namespace {

constexpr int kLoadFast = 124, kLoadDeref = 137, kLoadTwo = 46, kStoreFast = 125;
constexpr int kNothing = 9, kJumpBack = 140, kExtended = 144, kCall = 171;

class Code {
 public:
  Code& Do(int opcode, int argument = 0) {
    bytes_ += {static_cast<char>(opcode), static_cast<char>(argument)};
    return *this;
  }
  bool MayUseFrom(uint64_t unit, uint32_t variable) const {
    return PythonInstructions(bytes_).MayUseFrom(unit, variable);
  }

 private:
  std::string bytes_;
};

TEST(PythonInstructions, WhatIsReadLaterIsUsed) {
  const Code code = Code().Do(kLoadFast, 1).Do(kNothing).Do(kLoadDeref, 2).Do(kStoreFast, 3);
  EXPECT_TRUE(code.MayUseFrom(0, 1));
  EXPECT_FALSE(code.MayUseFrom(1, 1));
  EXPECT_TRUE(code.MayUseFrom(1, 2));
  EXPECT_FALSE(code.MayUseFrom(0, 3));  // it gets another value
  EXPECT_TRUE(Code().Do(kLoadTwo, 4).Do(kLoadFast, 5).MayUseFrom(0, 4));
}

TEST(PythonInstructions, AJumpBackMakesWhatLiesBetweenComeAgain) {
  const Code loop = Code()
                        .Do(kLoadFast, 1)
                        .Do(kLoadFast, 2)
                        .Do(kNothing)
                        .Do(kNothing)
                        .Do(kJumpBack, 4)
                        .Do(kNothing);
  EXPECT_FALSE(loop.MayUseFrom(3, 1));
  EXPECT_TRUE(loop.MayUseFrom(3, 2));
  EXPECT_FALSE(loop.MayUseFrom(5, 2));  // the loop is over
  const Code outer =
      Code().Do(kLoadFast, 1).Do(kLoadFast, 2).Do(kNothing).Do(kJumpBack, 3).Do(kJumpBack, 5);
  EXPECT_TRUE(outer.MayUseFrom(2, 1));
  const Code far = Code().Do(kLoadFast, 1).Do(kNothing).Do(kExtended, 1).Do(kJumpBack, 0);
  EXPECT_TRUE(far.MayUseFrom(1, 1));
}

TEST(PythonInstructions, NotesBetweenThemAreNone) {
  Code code;
  code.Do(kNothing).Do(kCall);
  for (int i = 0; i < 4; ++i) code.Do(kLoadFast, 1);
  code.Do(kNothing);
  EXPECT_FALSE(code.MayUseFrom(0, 1));
}

TEST(PythonInstructions, WithoutThemEachMayBeUsed) {
  EXPECT_TRUE(PythonInstructions().MayUseFrom(0, 1));
  EXPECT_TRUE(Code().Do(kNothing).MayUseFrom(7, 1));
}

}  // namespace
}  // namespace hangscope
