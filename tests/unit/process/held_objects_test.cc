// What a function holds at a place in it: of code that the assembler made.
#include "process/locks/held_objects.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <string>

#include "base/build_features.h"

namespace hangscope {
namespace {

TEST(LockCalls, AreKnownByTheirNames) {
  const struct {
    const char* function;
    LockCall call;
  } cases[] = {
      {"pthread_rwlock_wrlock", LockCall::kTakesFirst},
      {"__pthread_rwlock_rdlock", LockCall::kTakesFirst},
      {"pthread_rwlock_tryrdlock", LockCall::kNone},  // whether it has it, its result says
      {"pthread_mutex_timedlock", LockCall::kNone},
      {"pthread_rwlock_unlock", LockCall::kGivesFirst},
      {"sem_wait", LockCall::kTakesFirst},
      {"sem_post", LockCall::kGivesFirst},
      {"g_mutex_lock", LockCall::kTakesFirst},
      {"std::mutex::lock()", LockCall::kTakesFirst},
      {"std::mutex::unlock()", LockCall::kGivesFirst},
      {"void app::SpinLock<std::pair<int, int> >::lock(int)", LockCall::kTakesFirst},
      {"std::shared_mutex::lock_shared()", LockCall::kTakesFirst},
      {"std::lock_guard<std::mutex>::lock_guard(std::mutex&)", LockCall::kTakesSecond},
      {"std::shared_lock<std::shared_mutex>::shared_lock(std::shared_mutex&)",
       LockCall::kTakesSecond},
      {"std::lock_guard<std::mutex>::~lock_guard()", LockCall::kGivesAny},
      {"std::unique_lock<std::mutex>::unlock()", LockCall::kGivesAny},
      {"core::ptr::drop_in_place<std::sync::mutex::MutexGuard<i32>>", LockCall::kGivesAny},
      {"my_unlock_all", LockCall::kGivesAny},
      {"std::vector<int>::~vector()", LockCall::kNone},
      {"Clock::lock()", LockCall::kNone},
      {"std::sys::unix::locks::futex_mutex::Mutex::lock_contended", LockCall::kTakesFirst},
      {"__cxa_guard_acquire", LockCall::kTakesFirst},
      {"__cxa_guard_release", LockCall::kGivesFirst},
      {"sync.(*Mutex).lockSlow", LockCall::kTakesFirst},
      {"sync.(*RWMutex).RLock", LockCall::kTakesFirst},
      {"sync.(*RWMutex).Unlock", LockCall::kGivesFirst},
      {"sync.(*Mutex).unlockSlow", LockCall::kGaveFirst},
      {"sync.(*Mutex).Unlock-fm", LockCall::kGivesAny},
      {"sync.(*Mutex).TryLock", LockCall::kNone},
      {"main", LockCall::kNone},
  };
  for (const auto& c : cases) EXPECT_EQ(LockCallOf(c.function), c.call) << c.function;
}

#if defined(__x86_64__) && HANGSCOPE_HAS_CAPSTONE

extern "C" {
extern const char held_take[], held_give[], held_wait[], held_other[], held_semaphore[],
    held_gave[];
}

// Functions that are called, and those that call them: NAME, NAME_back and NAME_end.
asm(R"(
  .text
held_take: ret
held_give: ret
held_wait: ret
held_other: ret
held_semaphore: ret
held_gave: ret
held_lock: .quad 0

one_lock:
  push %rbx
  lea held_lock(%rip), %rdi
  call held_take
  mov %rdi, %rbx
  call held_wait
one_lock_back:
  pop %rbx
  ret
one_lock_end:

given_back:
  lea held_lock(%rip), %rdi
  call held_take
  lea held_lock(%rip), %rdi
  call held_give
  call held_wait
given_back_back:
  ret
given_back_end:

on_one_way_only:
  test %esi, %esi
  je 1f
  lea held_lock(%rip), %rdi
  call held_take
1: call held_wait
on_one_way_only_back:
  ret
on_one_way_only_end:

an_early_end_gives_it_back:
  lea held_lock(%rip), %rdi
  call held_take
in_the_call_back:
  test %eax, %eax
  je 1f
  lea held_lock(%rip), %rdi
  call held_give
  ret
1: call held_wait
an_early_end_gives_it_back_back:
  ret
an_early_end_gives_it_back_end:

in_a_saved_register:
  push %rbp
  mov %rsp, %rbp
  push %rbx
  sub $24, %rsp
  mov %rdi, %rbx
  lea 40(%rbx), %rdi
  call held_take
  call held_other
  call held_wait
in_a_saved_register_back:
  ret
in_a_saved_register_end:

on_the_stack:
  push %rbp
  mov %rsp, %rbp
  sub $32, %rsp
  mov %rdi, -8(%rbp)
  mov -8(%rbp), %rax
  add $16, %rax
  mov %rax, %rdi
  call held_take
  call held_wait
on_the_stack_back:
  leave
  ret
on_the_stack_end:

behind_pointers:
  push %rbx
  mov %rdi, %rbx
  mov 8(%rbx), %rdi
  add $4, %rdi
  call held_take
  call held_wait
behind_pointers_back:
  pop %rbx
  ret
behind_pointers_end:

in_a_loop_over_many:
  push %rbx
  mov %rdi, %rbx
1: mov %rbx, %rdi
  call held_take
  add $64, %rbx
  test %eax, %eax
  jne 1b
  call held_wait
in_a_loop_over_many_back:
  pop %rbx
  ret
in_a_loop_over_many_end:

exchanged:
  xor %eax, %eax
  mov $1, %ecx
  lock cmpxchg %ecx, held_lock(%rip)
  je 1f
  lea held_lock(%rip), %rdi
  call held_take
1: call held_wait
exchanged_back:
  ret
exchanged_end:

exchanged_back_again:
  xor %eax, %eax
  mov $1, %ecx
  lock cmpxchg %ecx, held_lock(%rip)
  xor %eax, %eax
  xchg %eax, held_lock(%rip)
  call held_wait
exchanged_back_again_back:
  ret
exchanged_back_again_end:

exchanged_for_a_number:
  mov $2, %eax
  xchg %eax, held_lock(%rip)
  test %eax, %eax
  je 1f
  ret
1: call held_wait
exchanged_for_a_number_back:
  ret
exchanged_for_a_number_end:

exchanged_in_vain:
1: xor %eax, %eax
  mov $1, %ecx
  lock cmpxchg %ecx, held_lock(%rip)
  je 2f
  call held_wait
exchanged_in_vain_back:
  jmp 1b
2: ret
exchanged_in_vain_end:

through_another:
  lea held_lock(%rip), %rdi
  call takes_by_code
  call held_wait
through_another_back:
  ret
through_another_end:

through_two:
  lea held_lock(%rip), %rdi
  call takes_by_code
  lea held_lock(%rip), %rdi
  call gives_by_code
  call held_wait
through_two_back:
  ret
through_two_end:

takes_by_code:
  push %rbp
  mov %rsp, %rbp
  mov %rdi, -8(%rbp)
  movl $0, -12(%rbp)
  mov -12(%rbp), %eax
  mov $1, %ecx
  mov -8(%rbp), %rdx
  lock cmpxchg %ecx, (%rdx)
  sete %al
  test %al, %al
  jne 2f
1: mov $2, %edx
  mov -8(%rbp), %rax
  xchg %edx, (%rax)
  mov %edx, -16(%rbp)
  cmpl $0, -16(%rbp)
  setne %al
  movzx %al, %eax
  test %al, %al
  jne 1b
2: pop %rbp
  ret
takes_by_code_back:
takes_by_code_end:

tries_by_code:
  xor %eax, %eax
  mov $1, %ecx
  lock cmpxchg %ecx, (%rdi)
  sete %al
  ret
tries_by_code_back:
tries_by_code_end:

gives_by_code:
  xor %eax, %eax
  xchg %eax, (%rdi)
  test %eax, %eax
  je 1f
  jmp held_other
1: ret
gives_by_code_back:
gives_by_code_end:

reads_by_code:
  mov (%rdi), %eax
  ret
reads_by_code_back:
reads_by_code_end:

takes_behind_a_jump:
  xor %esi, %esi
  jmp takes_by_code
takes_behind_a_jump_back:
takes_behind_a_jump_end:

of_go_for_reading:
  sub $0x48, %rsp
  mov %rax, 0x50(%rsp)
  lea 0x10(%rax), %rsi
  mov $1, %edx
  lock xadd %edx, (%rsi)
  inc %edx
  test %edx, %edx
  jge 1f
  mov 0x50(%rsp), %rax
  add $12, %rax
  call held_semaphore
of_go_waiting_back:
1: call held_wait
of_go_for_reading_back:
  mov 0x50(%rsp), %rax
  mov $-1, %edx
  lock xadd %edx, 0x10(%rax)
  call held_wait
of_go_given_back:
  add $0x48, %rsp
  ret
of_go_for_reading_end:

of_go_gives_its_callers:
  sub $0x48, %rsp
  mov %rax, 0x50(%rsp)
  mov $-1, %edx
  lock xadd %edx, 0x10(%rax)
  dec %edx
  test %edx, %edx
  je 1f
  add $0x10, %rax
  call held_gave
1: call held_wait
of_go_gives_its_callers_back:
  add $0x48, %rsp
  ret
of_go_gives_its_callers_end:

of_go_deferred:
  mov 8(%rdx), %rax
  mov $-1, %ecx
  lock xadd %ecx, 0x10(%rax)
  dec %ecx
  test %ecx, %ecx
  jge 1f
  call held_gave
1: ret
of_go_deferred_end:

of_go_defers:
  sub $0x48, %rsp
  mov %rax, 0x50(%rsp)
  mov $1, %edx
  lock xadd %edx, 0x10(%rax)
  inc %edx
  test %edx, %edx
  jge 1f
  mov 0x50(%rsp), %rax
  add $12, %rax
  call held_semaphore
  mov 0x50(%rsp), %rax
1: lea of_go_deferred(%rip), %rdx
  mov %rdx, 0x20(%rsp)
  mov %rax, 0x28(%rsp)
  lea 0x20(%rsp), %rdx
  mov %rdx, 0x30(%rsp)
  call held_wait
of_go_defers_back:
  mov 0x30(%rsp), %rdx
  mov (%rdx), %rsi
  call *%rsi
  call held_wait
of_go_deferred_back:
  add $0x48, %rsp
  ret
of_go_defers_end:

of_go_defers_of_its_callers:
  sub $0x48, %rsp
  lea of_go_deferred(%rip), %rdx
  mov %rdx, 0x20(%rsp)
  mov %rax, 0x28(%rsp)
  lea 0x20(%rsp), %rdx
  mov (%rdx), %rsi
  call *%rsi
  add $0x48, %rsp
  ret
of_go_defers_of_its_callers_end:

of_go_calls_what_it_was_given:
  sub $0x48, %rsp
  mov (%rax), %rsi
  mov %rax, %rdx
  call *%rsi
  add $0x48, %rsp
  ret
of_go_calls_what_it_was_given_end:

of_go_counting:
  sub $0x48, %rsp
  mov %rax, 0x50(%rsp)
  lea 0x10(%rax), %rsi
  mov $1, %edx
  lock xadd %edx, (%rsi)
  call held_wait
of_go_counting_back:
  add $0x48, %rsp
  ret
of_go_counting_end:

of_go:
  sub $0x48, %rsp
  mov %rbp, 0x40(%rsp)
  lea 0x40(%rsp), %rbp
  mov %rax, 0x50(%rsp)
  mov %rax, %rdx
  xor %eax, %eax
  mov $1, %esi
  lock cmpxchg %esi, 0x10(%rdx)
  sete %dil
  lea 0x10(%rdx), %rax
  test %dil, %dil
  jne 1f
  call held_take
1: call held_wait
of_go_back:
  mov 0x50(%rsp), %rax
  add $0x48, %rsp
  ret
of_go_end:

unknown_in_between:
  jmp *%rax
unknown_in_between_back:
  call held_wait
unknown_in_between_end:
)");

#define HELD_FUNCTION(name) extern "C" const char name[], name##_back[], name##_end[];
HELD_FUNCTION(one_lock)
HELD_FUNCTION(given_back)
HELD_FUNCTION(on_one_way_only)
HELD_FUNCTION(an_early_end_gives_it_back)
HELD_FUNCTION(in_a_saved_register)
HELD_FUNCTION(on_the_stack)
HELD_FUNCTION(behind_pointers)
HELD_FUNCTION(in_a_loop_over_many)
HELD_FUNCTION(exchanged)
HELD_FUNCTION(exchanged_back_again)
HELD_FUNCTION(exchanged_for_a_number)
HELD_FUNCTION(exchanged_in_vain)
HELD_FUNCTION(through_another)
HELD_FUNCTION(through_two)
HELD_FUNCTION(takes_by_code)
HELD_FUNCTION(tries_by_code)
HELD_FUNCTION(gives_by_code)
HELD_FUNCTION(reads_by_code)
HELD_FUNCTION(takes_behind_a_jump)
HELD_FUNCTION(unknown_in_between)
HELD_FUNCTION(of_go)
HELD_FUNCTION(of_go_for_reading)
HELD_FUNCTION(of_go_counting)
HELD_FUNCTION(of_go_defers)
HELD_FUNCTION(of_go_defers_of_its_callers)
HELD_FUNCTION(of_go_calls_what_it_was_given)
HELD_FUNCTION(of_go_gives_its_callers)
extern "C" const char held_lock[], in_the_call_back[], of_go_given_back[], of_go_waiting_back[],
    of_go_deferred_back[];
#undef HELD_FUNCTION

uint64_t At(const void* place) { return reinterpret_cast<uint64_t>(place); }

struct Stack {
  uint64_t begin = 0;
  std::map<uint64_t, uint64_t> words;
};

LockCall ByName(uint64_t target) {
  if (target == At(held_take)) return LockCall::kTakesFirst;
  if (target == At(held_semaphore)) return LockCall::kWaitsForSemaphore;
  if (target == At(held_gave)) return LockCall::kGaveFirst;
  return target == At(held_give) ? LockCall::kGivesFirst : LockCall::kNone;
}

bool ReadOwn(uint64_t address, void* into, size_t bytes) {
  std::memcpy(into, reinterpret_cast<const void*>(address), bytes);
  return true;
}

LockCall ByCode(uint64_t target) {
#define OF_FUNCTION(name) \
  { At(name), static_cast<uint64_t>(name##_end - name) }
  const std::map<uint64_t, uint64_t> sizes = {
      OF_FUNCTION(takes_by_code), OF_FUNCTION(tries_by_code), OF_FUNCTION(gives_by_code),
      OF_FUNCTION(reads_by_code), OF_FUNCTION(takes_behind_a_jump)};
#undef OF_FUNCTION
  const auto size = sizes.find(target);
  return size == sizes.end() ? LockCall::kNone
                             : LockCallByCode(target, size->second, ReadOwn, ByName, ByCode);
}

HeldObjectsAt HeldAt(const char* begin, const char* back, const char* end, const CallPlace& at = {},
                     const Stack& stack = {}) {
  CallPlace place = at;
  place.function = At(begin), place.bytes = static_cast<uint64_t>(end - begin);
  place.back = At(back);
  const ReadMemory read = [&](uint64_t address, void* into, size_t bytes) {
    if (stack.begin != 0 && address >= stack.begin && address < stack.begin + 4096) {
      const auto word = stack.words.find(address);
      if (word == stack.words.end() || bytes != sizeof word->second) return false;
      std::memcpy(into, &word->second, bytes);
      return true;
    }
    std::memcpy(into, reinterpret_cast<const void*>(address), bytes);
    return true;
  };
  return HeldObjects(place, read, ByName, ByCode);
}

std::vector<uint64_t> Held(const char* begin, const char* back, const char* end,
                           const CallPlace& at = {}, const Stack& stack = {}) {
  return HeldAt(begin, back, end, at, stack).held;
}

#define HELD(name, ...) Held(name, name##_back, name##_end __VA_OPT__(, ) __VA_ARGS__)

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(HeldObjects, WhatWasTakenOnEveryWayIsHeld) {
  EXPECT_THAT(HELD(one_lock), ElementsAre(At(held_lock)));
  EXPECT_THAT(HELD(an_early_end_gives_it_back), ElementsAre(At(held_lock)));
  EXPECT_THAT(HELD(exchanged), ElementsAre(At(held_lock)));
  EXPECT_THAT(HELD(exchanged_for_a_number), ElementsAre(At(held_lock)));
  EXPECT_THAT(HELD(through_another), ElementsAre(At(held_lock)));
}

TEST(HeldObjects, WhoeverTriesAgainDoesNotHoldIt) {
  EXPECT_THAT(HELD(exchanged_in_vain), IsEmpty());
}

TEST(HeldObjects, TheCodeOfAFunctionTellsThatItTakesALock) {
  EXPECT_EQ(ByCode(At(takes_by_code)), LockCall::kTakesFirst);
  EXPECT_EQ(ByCode(At(takes_behind_a_jump)), LockCall::kTakesFirst);
  EXPECT_EQ(ByCode(At(gives_by_code)), LockCall::kGivesFirst);
  EXPECT_NE(ByCode(At(tries_by_code)), LockCall::kTakesFirst);
  EXPECT_EQ(ByCode(At(reads_by_code)), LockCall::kNone);
}

TEST(HeldObjects, WhatWasGivenBackOrTakenOnSomeWaysIsNot) {
  EXPECT_THAT(HELD(given_back), IsEmpty());
  EXPECT_THAT(HELD(on_one_way_only), IsEmpty());
  EXPECT_THAT(HELD(in_a_loop_over_many), IsEmpty());
  EXPECT_THAT(HELD(exchanged_back_again), IsEmpty());
  EXPECT_THAT(HELD(through_two), IsEmpty());
  EXPECT_THAT(HELD(unknown_in_between), IsEmpty());
}

TEST(HeldObjects, AnObjectIsKnownByWhatARegisterOrTheStackKeeps) {
  CallPlace place;
  EXPECT_THAT(HELD(in_a_saved_register, place), IsEmpty());
  place.registers[3] = 0x7000;
  EXPECT_THAT(HELD(in_a_saved_register, place), ElementsAre(0x7000u + 40));
  Stack stack;
  stack.begin = 0x10000;
  place.stack_pointer = 0x10100;  // 32 below the saved frame pointer, whose slot is 8 below that
  stack.words[0x10100 + 24] = 0x9000;
  EXPECT_THAT(HELD(on_the_stack, place, stack), ElementsAre(0x9000u + 16));
  const uint64_t pair[] = {1, 0x5000};
  place.registers[3] = At(pair);
  EXPECT_THAT(HELD(behind_pointers, place), ElementsAre(0x5000u + 4));
}

// In a function of Go that has kept its first argument, 0x9000, on its stack.
std::pair<CallPlace, Stack> InGo() {
  CallPlace place;
  place.stack_pointer = 0x10100;
  place.convention = CallConvention::kGo;
  return {place, {0x10000, {{place.stack_pointer + 0x50, 0x9000}}}};
}

LockCall GivesInGo(const char* begin, const char* end) {
  return GivesOfOthersInGo(At(begin), static_cast<uint64_t>(end - begin), ReadOwn, ByName, {});
}

// Its first argument is in rax, and rbx is no register that a call leaves alone.
TEST(HeldObjects, GoPassesArgumentsInOtherRegisters) {
  auto [place, stack] = InGo();
  EXPECT_THAT(HELD(of_go, place, stack), ElementsAre(0x9000u + 0x10));
  place.convention = CallConvention::kSystemV;
  EXPECT_THAT(HELD(of_go, place, stack), IsEmpty());
  place.registers[3] = 0x7000;
  EXPECT_THAT(HELD(in_a_saved_register, place), ElementsAre(0x7000u + 40));
  place.convention = CallConvention::kGo;
  EXPECT_THAT(HELD(in_a_saved_register, place), IsEmpty());
}

TEST(HeldObjects, WhoReadsInGoCountsUpWhereASemaphoreLiesBeside) {
  auto [place, stack] = InGo();
  EXPECT_THAT(HELD(of_go_for_reading, place, stack), ElementsAre(0x9000u));
  EXPECT_THAT(Held(of_go_for_reading, of_go_given_back, of_go_for_reading_end, place, stack),
              IsEmpty());
  EXPECT_THAT(Held(of_go_for_reading, of_go_waiting_back, of_go_for_reading_end, place, stack),
              IsEmpty())
      << "it waits behind a writer";
  EXPECT_THAT(HELD(of_go_counting, place, stack), IsEmpty());
}

// A function that lets go of its caller's lock for a while.
TEST(HeldObjects, WhatACallGivesBackItsCallersDoNotHold) {
  auto [place, stack] = InGo();
  const HeldObjectsAt inner = HeldAt(of_go_gives_its_callers, of_go_gives_its_callers_back,
                                     of_go_gives_its_callers_end, place, stack);
  EXPECT_THAT(inner.held, IsEmpty());
  EXPECT_THAT(inner.given, Contains(0x9010u));
  EXPECT_FALSE(inner.gave_unknown);
  const HeldObjectsAt outer = HeldAt(of_go, of_go_back, of_go_end, place, stack);
  HeldByCalls alone, both;
  alone.Add(outer);
  EXPECT_THAT(alone.objects(), ElementsAre(0x9010u));
  both.Add(inner);
  both.Add(outer);
  EXPECT_THAT(both.objects(), IsEmpty());
  EXPECT_EQ(GivesInGo(of_go_gives_its_callers, of_go_gives_its_callers_end), LockCall::kGivesAny);
  EXPECT_EQ(GivesInGo(of_go_for_reading, of_go_for_reading_end), LockCall::kNone);
  EXPECT_EQ(GivesInGo(of_go_counting, of_go_counting_end), LockCall::kNone);
}

// A `defer` is a closure on the stack of its function, which calls it when it ends.
TEST(HeldObjects, WhatIsDeferredIsGivenBackAtTheEndOfItsFunction) {
  auto [place, stack] = InGo();
  EXPECT_THAT(HELD(of_go_defers, place, stack), ElementsAre(0x9000u));
  const HeldObjectsAt after =
      HeldAt(of_go_defers, of_go_deferred_back, of_go_defers_end, place, stack);
  EXPECT_THAT(after.held, IsEmpty());
  EXPECT_FALSE(after.gave_unknown);
  EXPECT_EQ(GivesInGo(of_go_defers, of_go_defers_end), LockCall::kNone);
  EXPECT_EQ(GivesInGo(of_go_defers_of_its_callers, of_go_defers_of_its_callers_end),
            LockCall::kGivesAny);
  EXPECT_EQ(GivesInGo(of_go_calls_what_it_was_given, of_go_calls_what_it_was_given_end),
            LockCall::kGivesAny);
}

TEST(HeldObjects, TheArgumentOfTheCallIsKnown) {
  CallPlace place;
  place.function = At(an_early_end_gives_it_back);
  place.bytes = static_cast<uint64_t>(an_early_end_gives_it_back_end - an_early_end_gives_it_back);
  place.back = At(in_the_call_back);
  const ReadMemory read = [](uint64_t address, void* into, size_t bytes) {
    std::memcpy(into, reinterpret_cast<const void*>(address), bytes);
    return true;
  };
  EXPECT_EQ(FirstArgument(place, read), At(held_lock));
  place.back = At(an_early_end_gives_it_back_back);  // what was an argument before is lost
  EXPECT_FALSE(FirstArgument(place, read));
}

#endif

}  // namespace
}  // namespace hangscope
