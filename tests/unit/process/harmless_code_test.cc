// Whether code can come to what wakes somebody: of functions that the assembler made.
#include "process/locks/harmless_code.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "base/build_features.h"

namespace hangscope {
namespace {

TEST(CalledCode, IsKnownByItsName) {
  const struct {
    const char* function;
    CalledCode code;
  } cases[] = {
      {"nanosleep", CalledCode::kHarmless},
      {"__nanosleep", CalledCode::kHarmless},
      {"clock_nanosleep@@GLIBC_2.17", CalledCode::kHarmless},
      {"__memmove_avx_unaligned_erms", CalledCode::kHarmless},
      {"_IO_printf", CalledCode::kOfStreams},
      {"__dprintf_chk", CalledCode::kOfNumber},
      {"fopen", CalledCode::kOpens},
      {"__syslog_chk", CalledCode::kHarmless},
      {"recv", CalledCode::kOfFiles},
      {"__snprintf_chk", CalledCode::kHarmless},
      {"accept4", CalledCode::kGivesFile},
      {"__close", CalledCode::kCloses},
      {"___pthread_cond_timedwait64", CalledCode::kUnknown},
      {"__pthread_cond_timedwait", CalledCode::kHarmless},
      {"operator new(unsigned long)", CalledCode::kHarmless},
      {"std::chrono::_V2::steady_clock::now()", CalledCode::kHarmless},
      {"__stack_chk_fail", CalledCode::kNoReturn},
      {"sem_post", CalledCode::kUnknown},
      {"pthread_cond_signal", CalledCode::kUnknown},
      {"pthread_cond_broadcast", CalledCode::kUnknown},
      {"pthread_rwlock_unlock", CalledCode::kUnknown},
      {"pthread_create", CalledCode::kUnknown},
      {"raise", CalledCode::kUnknown},
      {"qsort", CalledCode::kUnknown},
      {"syscall", CalledCode::kUnknown},
      {"__cxa_throw", CalledCode::kUnknown},
      {"exit", CalledCode::kUnknown},
      {"", CalledCode::kUnknown},
  };
  for (const auto& c : cases) EXPECT_EQ(CalledCodeOf(c.function), c.code) << c.function;
}

#if defined(__x86_64__) && HANGSCOPE_HAS_CAPSTONE

extern "C" {
extern const char harmless_nap[], harmless_wake[], harmless_dies[], harmless_prints[],
    harmless_streams[], harmless_writes[], harmless_accepts[], harmless_closes[];
}

// NAME calls the nap and goes on at NAME_back.
asm(R"(
  .text
harmless_nap: ret
harmless_wake: ret
harmless_dies: ret
harmless_prints: ret
harmless_streams: ret
harmless_writes: ret
harmless_accepts: ret
harmless_closes: ret
harmless_word: .quad 0

h_counts:
  call harmless_nap
h_counts_back:
  incq harmless_word(%rip)
  cmpq $7, harmless_word(%rip)
  jne h_counts
  call harmless_dies
h_counts_end:

h_prints:
  call harmless_nap
h_prints_back:
  call harmless_prints
  jmp h_prints
h_prints_end:

h_writes:
  call harmless_nap
h_writes_back:
  movl $2, %edi
  movl $1, %esi
  call harmless_writes
  xorl %edi, %edi
  call harmless_writes
  call harmless_streams
  jmp h_writes
h_writes_end:

h_writes_any:
  call harmless_nap
h_writes_any_back:
  movl $2, %edi
  movl harmless_word(%rip), %edi
  call harmless_writes
  jmp h_writes_any
h_writes_any_end:

h_writes_again:
  call harmless_nap
h_writes_again_back:
  movl $2, %edi
  call harmless_writes
  call harmless_writes
  jmp h_writes_again
h_writes_again_end:

h_jumps_to_write:
  call harmless_nap
h_jumps_to_write_back:
  movl $2, %edi
1:
  call harmless_writes
  movl harmless_word(%rip), %edi
  jmp 1b
h_jumps_to_write_end:

h_serves:
  call harmless_accepts
h_serves_back:
  movl %eax, %edi
  call harmless_closes
  jmp h_serves
h_serves_end:

h_closes_another:
  call harmless_accepts
h_closes_another_back:
  movl harmless_word(%rip), %edi
  call harmless_closes
  jmp h_closes_another
h_closes_another_end:

h_jumps_to_close:
  call harmless_accepts
h_jumps_to_close_back:
  movl %eax, %edi
1: call harmless_closes
  movl harmless_word(%rip), %edi
  jmp 1b
h_jumps_to_close_end:

h_calls:
  call harmless_nap
h_calls_back:
  call h_helper
  jmp h_calls
h_calls_end:

h_helper:
  cmpq $3, harmless_word(%rip)
  jne 1f
  jmp h_tail
1: ret
h_helper_end:

h_tail: ret
h_tail_end:

h_wakes:
  call harmless_nap
h_wakes_back:
  cmpq $3, harmless_word(%rip)
  jne h_wakes
  call harmless_wake
  jmp h_wakes
h_wakes_end:

h_wakes_deep:
  call harmless_nap
h_wakes_deep_back:
  call h_deep
  jmp h_wakes_deep
h_wakes_deep_end:

h_deep: jmp h_wakes
h_deep_end:

h_by_register:
  call harmless_nap
h_by_register_back:
  call *%rax
  jmp h_by_register
h_by_register_end:

h_by_variable:
  call harmless_nap
h_by_variable_back:
  call *harmless_word(%rip)
  jmp h_by_variable
h_by_variable_end:

h_goes_on_by_variable: jmp *harmless_word(%rip)
  nop
  nop
  nop
  nop
  nop
  nop
  nop
  nop
  nop
  nop
h_goes_on_by_variable_end:

h_through_it:
  call harmless_nap
h_through_it_back:
  call h_goes_on_by_variable
  jmp h_through_it
h_through_it_end:

h_asks_kernel:
  call harmless_nap
h_asks_kernel_back:
  syscall
  jmp h_asks_kernel
h_asks_kernel_end:

h_returns:
  call harmless_nap
h_returns_back:
  ret
h_returns_end:

h_goes_round:
  call h_returns
h_goes_round_back:
  jmp h_goes_round
h_goes_round_end:

h_gives_outside:
  call h_returns
h_gives_outside_back:
  call harmless_wake
  jmp h_gives_outside
h_gives_outside_end:
)");

#define CODE(name) extern "C" const char name[], name##_back[], name##_end[]
CODE(h_counts);
CODE(h_prints);
CODE(h_writes);
CODE(h_writes_any);
CODE(h_writes_again);
CODE(h_jumps_to_write);
CODE(h_serves);
CODE(h_closes_another);
CODE(h_jumps_to_close);
CODE(h_calls);
CODE(h_wakes);
CODE(h_wakes_deep);
CODE(h_by_register);
CODE(h_by_variable);
CODE(h_through_it);
CODE(h_asks_kernel);
CODE(h_returns);
CODE(h_goes_round);
CODE(h_gives_outside);
#undef CODE
extern "C" const char h_helper[], h_helper_end[], h_tail[], h_tail_end[], h_deep[], h_deep_end[],
    h_goes_on_by_variable[], h_goes_on_by_variable_end[];

uint64_t CodeAt(const char* label) { return reinterpret_cast<uint64_t>(label); }

CallPlace PlaceIn(const char* begin, const char* back, const char* end) {
  CallPlace place;
  place.function = CodeAt(begin), place.back = CodeAt(back);
  place.bytes = static_cast<uint64_t>(end - begin);
  return place;
}

CodeEffect EffectOf(const std::vector<CallPlace>& places, bool gives_file = false,
                    UsedFiles* files = nullptr) {
  const ReadMemory read = [](uint64_t address, void* into, size_t bytes) {
    std::memcpy(into, reinterpret_cast<const void*>(address), bytes);
    return true;
  };
  const std::map<uint64_t, const char*> followed = {
      {CodeAt(h_helper), h_helper_end},
      {CodeAt(h_tail), h_tail_end},
      {CodeAt(h_deep), h_deep_end},
      {CodeAt(h_wakes), h_wakes_end},
      {CodeAt(h_returns), h_returns_end},
      {CodeAt(h_goes_on_by_variable), h_goes_on_by_variable_end}};
  const auto target = [&](uint64_t address) -> CodeTarget {
    if (address == CodeAt(harmless_nap)) return {CalledCode::kHarmless, 0, 0};
    if (address == CodeAt(harmless_dies)) return {CalledCode::kNoReturn, 0, 0};
    if (address == CodeAt(harmless_prints)) return {CalledCode::kOfFiles, 0, 0};
    if (address == CodeAt(harmless_streams)) return {CalledCode::kOfStreams, 0, 0};
    if (address == CodeAt(harmless_writes)) return {CalledCode::kOfNumber, 0, 0};
    if (address == CodeAt(harmless_accepts)) return {CalledCode::kGivesFile, 0, 0};
    if (address == CodeAt(harmless_closes)) return {CalledCode::kCloses, 0, 0};
    const auto function = followed.find(address);
    if (function == followed.end()) return {};
    return {CalledCode::kFollowed, address, CodeAt(function->second) - address};
  };
  UsedFiles ignored;
  return EffectOfCode(
      places, gives_file, read, target, [](uint64_t) { return false; },
      files != nullptr ? files : &ignored);
}

bool IsHarmlessCode(const std::vector<CallPlace>& places) {
  return EffectOf(places) != CodeEffect::kUnknown;
}

#define PLACE(name) PlaceIn(name, name##_back, name##_end)

TEST(HarmlessCode, WhoCountsWakesNobody) {
  EXPECT_TRUE(IsHarmlessCode({PLACE(h_counts)}));
  EXPECT_TRUE(IsHarmlessCode({PLACE(h_calls)}));
  EXPECT_TRUE(IsHarmlessCode({PLACE(h_returns), PLACE(h_goes_round)}))
      << "it goes on in its caller";
}

TEST(HarmlessCode, WhoUsesAFileMayMoveWhoWaitsForIt) {
  EXPECT_EQ(EffectOf({PLACE(h_counts)}), CodeEffect::kNone);
  EXPECT_EQ(EffectOf({PLACE(h_prints)}), CodeEffect::kFiles);
}

TEST(HarmlessCode, OfWhatIsWrittenTheDescriptorIsKnownWhereItIsANumber) {
  UsedFiles files;
  EXPECT_EQ(EffectOf({PLACE(h_writes)}, false, &files), CodeEffect::kSomeFiles);
  EXPECT_THAT(files.descriptors, testing::ElementsAre(0, 2));
  EXPECT_TRUE(files.streams);
  EXPECT_FALSE(files.opens);
  EXPECT_EQ(EffectOf({PLACE(h_writes_any)}), CodeEffect::kFiles);
  EXPECT_EQ(EffectOf({PLACE(h_writes_again)}), CodeEffect::kFiles)
      << "the first call may change it";
  EXPECT_EQ(EffectOf({PLACE(h_jumps_to_write)}), CodeEffect::kFiles);
}

TEST(HarmlessCode, WhoClosesWhatItHasAcceptedMovesNobody) {
  EXPECT_EQ(EffectOf({PLACE(h_serves)}, true), CodeEffect::kNone);
  EXPECT_EQ(EffectOf({PLACE(h_serves)}, false), CodeEffect::kFiles);
  EXPECT_EQ(EffectOf({PLACE(h_closes_another)}, true), CodeEffect::kFiles);
  EXPECT_EQ(EffectOf({PLACE(h_jumps_to_close)}, true), CodeEffect::kFiles);
}

TEST(HarmlessCode, AWayToACallThatIsNotKnownIsEnough) {
  EXPECT_FALSE(IsHarmlessCode({PLACE(h_wakes)}));
  EXPECT_FALSE(IsHarmlessCode({PLACE(h_wakes_deep)}));
  EXPECT_FALSE(IsHarmlessCode({PLACE(h_asks_kernel)}));
  EXPECT_FALSE(IsHarmlessCode({PLACE(h_returns), PLACE(h_gives_outside)}));
}

TEST(HarmlessCode, WhereAVariableLeadsNobodyKnows) {
  EXPECT_FALSE(IsHarmlessCode({PLACE(h_by_register)}));
  EXPECT_FALSE(IsHarmlessCode({PLACE(h_by_variable)}));
  EXPECT_FALSE(IsHarmlessCode({PLACE(h_through_it)})) << "it is no stub of the linker";
}

TEST(HarmlessCode, WhatIsDoneAtTheThreadsEndNobodyKnows) {
  EXPECT_FALSE(IsHarmlessCode({PLACE(h_returns)}));
  EXPECT_FALSE(IsHarmlessCode({}));
}

#endif

}  // namespace
}  // namespace hangscope
