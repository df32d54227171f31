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
  bool MayReturnFrom(uint64_t unit) const { return PythonInstructions(bytes_).MayReturnFrom(unit); }

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

std::string NamesOf(const std::string& bytes, uint64_t unit) {
  std::string text;
  for (const PythonNameUse& use : PythonInstructions(bytes).NamesFrom(unit))
    text += "gcamv?"[static_cast<int>(use.kind)] + std::to_string(use.name) +
            (use.of_last ? "* " : " ");
  return text;
}

// One global and its method: LOAD_GLOBAL, LOAD_METHOD with ten notes, CALL.
TEST(PythonInstructions, WhatIsCalledIsKnownByItsName) {
  constexpr int kGlobal = 116, kAttribute = 106, kMethod = 160, kName = 101, kNull = 2;
  std::string notes(2 * 5, '\0'), more_notes(2 * 10, '\0'), four_notes(2 * 4, '\0');
  const auto code = [](int opcode, int argument) {
    return std::string{static_cast<char>(opcode), static_cast<char>(argument)};
  };
  const std::string calls_method =
      code(kGlobal, 3 << 1) + notes + code(kMethod, 1) + more_notes + code(kCall, 0) + four_notes;
  EXPECT_EQ(NamesOf(calls_method, 0), "g3 m1* ");
  EXPECT_EQ(NamesOf(calls_method, 6), "m1 ") << "the global is behind it";
  EXPECT_EQ(NamesOf(code(kGlobal, 2 << 1 | 1) + notes, 0), "c2 ");
  EXPECT_EQ(NamesOf(code(kNull, 0) + code(kName, 4), 0), "c4 ");
  EXPECT_EQ(NamesOf(code(kName, 4) + code(kAttribute, 5) + four_notes, 0), "g4 a5* ");
  const std::string attribute = code(kAttribute, 5) + four_notes;
  EXPECT_EQ(NamesOf(code(kGlobal, 2 << 1 | 1) + notes + attribute, 0), "g2 m5* ") << "time.sleep";
  EXPECT_EQ(NamesOf(code(kNull, 0) + code(kName, 4) + attribute + attribute, 0), "g4 a5* m5* ");
  EXPECT_EQ(NamesOf(code(kNull, 0) + code(kLoadFast, 1) + attribute, 0), "v1 m5* ");
  EXPECT_EQ(NamesOf(code(kNull, 0) + code(kLoadFast, 1), 0), "?0 ") << "whatever that is";
  const std::string method = code(kMethod, 1) + more_notes;
  EXPECT_EQ(NamesOf(code(kNull, 0) + code(kName, 4) + method, 0), "?0 m1* ") << "what it gives";
  EXPECT_EQ(NamesOf(code(kNull, 0) + code(kGlobal, 2 << 1 | 1) + notes, 0), "?0 ");
  EXPECT_EQ(NamesOf(code(kGlobal, 2 << 1 | 1) + notes + code(kGlobal, 6) + notes + code(kCall, 0) +
                        four_notes + method,
                    0),
            "c2 g3 m1 ")
      << "of what the call gives, not of the argument";
  EXPECT_EQ(NamesOf(code(86, 0), 0), "?0 ") << "who resumes it?";
  EXPECT_EQ(NamesOf("", 0), "?0 ");
}

TEST(PythonInstructions, ALoopThatNothingLeavesNeverReturns) {
  constexpr int kReturn = 83;
  const Code loop = Code().Do(kReturn).Do(kLoadFast, 1).Do(kJumpBack, 2);
  EXPECT_FALSE(loop.MayReturnFrom(1));
  EXPECT_TRUE(loop.MayReturnFrom(0));
  EXPECT_TRUE(Code().Do(kLoadFast, 1).Do(kReturn).MayReturnFrom(0));
}

}  // namespace
}  // namespace hangscope
