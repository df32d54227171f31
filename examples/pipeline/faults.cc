#include "faults.h"

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace {

Plan plan;

constexpr std::array<std::pair<std::string_view, Fault>, 18> kNames = {{
    {"none", Fault::kNone},
    {"deadlock2", Fault::kDeadlock2},
    {"deadlock5", Fault::kDeadlock5},
    {"no-credit", Fault::kNoCredit},
    {"missing-push", Fault::kMissingPush},
    {"lost-wakeup", Fault::kLostWakeup},
    {"kept-lock", Fault::kKeptLock},
    {"gone", Fault::kGone},
    {"slow", Fault::kSlow},
    {"handover", Fault::kHandover},
    {"assert", Fault::kAssert},
    {"argument", Fault::kArgument},
    {"pending", Fault::kPending},
    {"endless", Fault::kEndless},
    {"corrupt", Fault::kCorrupt},
    {"guard", Fault::kGuard},
    {"crash", Fault::kCrash},
    {"abort", Fault::kAbort},
}};

uint32_t BitOf(Role role) { return 1u << Number(role); }
Lock& LockOf(Pipeline& pipeline, Place place, Role role) { return *pipeline.NodeOf(place).locks[Number(role)]; }

// The one further on comes at the planned block, the one before it at the next: so neither waits for
// the other's blocks before both have their locks.
void MaybeDeadlock2(Pipeline& pipeline, Place place, uint64_t number) {
  const bool first = place.role == plan.place.role && number == plan.block;
  const bool second = place.role == plan.other && number == plan.block + 1;
  if (!first && !second) return;
  const Role other = first ? plan.other : plan.place.role;
  LockOf(pipeline, place, place.role).Acquire();
  pipeline.NodeOf(place).meeting.Come(BitOf(place.role), BitOf(other));
  if (first) TellPlanted(pipeline, place, number);
  LockOf(pipeline, place, other).Acquire();
}

// The same of five: the writer at the planned block, and each before it one later.
void MaybeDeadlock5(Pipeline& pipeline, Place place, uint64_t number) {
  if (number != plan.block + Number(Role::kWriter) - Number(place.role)) return;
  LockOf(pipeline, place, place.role).Acquire();
  pipeline.NodeOf(place).meeting.Come(BitOf(place.role), (1u << kRoles) - 1);
  if (place.role == Role::kWriter) TellPlanted(pipeline, place, number);
  LockOf(pipeline, place, static_cast<Role>((Number(place.role) + 1) % kRoles)).Acquire();
}

void WorkSlowly() {
  HANGSCOPE_WAYPOINT_NAMED("WRKR", "works slowly");
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(plan.value);
  while (std::chrono::steady_clock::now() < end) {
    hangscope_heartbeat();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

[[gnu::noinline]] void LoopForEver() {
  for (;;) __asm__ volatile("" ::: "memory");
}

[[gnu::noinline]] void WriteToNull() {
  volatile uint32_t* null = nullptr;
  __asm__("" : "+r"(null));  // what the compiler cannot see it cannot take for a mistake
  *null = 1;
}

void CorruptMailbox() {
  const uint32_t core = hangscope_core_of(hangscope_this_mailbox());
  volatile uint32_t* const words = reinterpret_cast<uint32_t*>(&hangscope_the_scope()->mailboxes[core]);
  words[plan.word] = static_cast<uint32_t>(plan.value);
}

}  // namespace

bool ParseFault(std::string_view name, Fault* fault) {
  for (const auto& [known, value] : kNames) {
    if (known == name) {
      *fault = value;
      return true;
    }
  }
  return false;
}

std::string FaultNames() {
  std::string names;
  for (const auto& [name, fault] : kNames) names += (names.empty() ? "" : " ") + std::string(name);
  return names;
}

void SetPlan(const Plan& wanted) { plan = wanted; }
const Plan& ThePlan() { return plan; }

bool IsPlanned(Fault fault, Place place, uint64_t number) {
  return plan.fault == fault && plan.place == place && plan.block == number;
}
bool IsPlannedFrom(Fault fault, Place place, uint64_t number) {
  return plan.fault == fault && plan.place == place && plan.block <= number;
}

void TellPlanted(Pipeline& pipeline, Place place, uint64_t number) {
  const Node& node = pipeline.NodeOf(place);
  std::printf("planted: fault %s node %u role %s other %s value %llu block %llu cores",
              std::string(kNames[static_cast<size_t>(plan.fault)].first).c_str(), place.node, kRoleNames[Number(place.role)],
              kRoleNames[Number(plan.other)], static_cast<unsigned long long>(plan.value),
              static_cast<unsigned long long>(number));
  for (const std::atomic<uint32_t>& core : node.cores) std::printf(" %u", core.load());
  std::printf("\n");
  std::fflush(stdout);
}

bool MaybeFail(Pipeline& pipeline, Place place, uint64_t number) {
  if (place.node == plan.place.node && plan.fault == Fault::kDeadlock2) MaybeDeadlock2(pipeline, place, number);
  if (place.node == plan.place.node && plan.fault == Fault::kDeadlock5) MaybeDeadlock5(pipeline, place, number);
  if (IsPlannedFrom(Fault::kSlow, place, number)) {
    if (number == plan.block) TellPlanted(pipeline, place, number);
    WorkSlowly();
  }
  if (plan.fault < Fault::kGone || plan.place != place || plan.block != number) return true;
  switch (plan.fault) {
    case Fault::kSlow:
    case Fault::kHandover: return true;
    default: TellPlanted(pipeline, place, number);
  }
  switch (plan.fault) {
    case Fault::kGone: return false;
    case Fault::kAssert: HANGSCOPE_ASSERT(plan.fault != Fault::kAssert, "the block is in order"); break;
    case Fault::kArgument: HANGSCOPE_ASSERT_ARGUMENT(plan.value < 4, "there is such a channel", plan.value); break;
    case Fault::kPending: hangscope_kernel_ends(static_cast<uint32_t>(plan.value)); break;
    case Fault::kEndless: LoopForEver(); break;
    case Fault::kCorrupt: CorruptMailbox(); break;
    case Fault::kGuard: pipeline.NodeOf(place).guarded = static_cast<uint32_t>(plan.value); break;
    case Fault::kCrash: WriteToNull(); break;
    case Fault::kAbort: std::abort();
    default: break;
  }
  return true;
}

void MaybeFailAtEnd(Pipeline& pipeline, Place place) {
  if (plan.block != pipeline.options.blocks + 1 || place.node != plan.place.node) return;
  if (plan.fault == Fault::kCorrupt && place == plan.place) {
    TellPlanted(pipeline, place, plan.block);
    CorruptMailbox();
  }
  if (plan.fault != Fault::kKeptLock) return;
  if (place == plan.place) {
    LockOf(pipeline, place, place.role).Acquire();
    TellPlanted(pipeline, place, plan.block);
    pipeline.NodeOf(place).meeting.Come(BitOf(place.role), 0);
  } else if (place.role == plan.other) {
    pipeline.NodeOf(place).meeting.Come(0, BitOf(plan.place.role));
    LockOf(pipeline, place, plan.place.role).Acquire();
  }
}

// Each waits for what the other provides, all the time, and at every instant one of them goes on. The
// giver has its lock until it has given, and the taker wants it at once.
void RunHandover(Pipeline& pipeline, Place place) {
  static std::array<std::unique_ptr<Semaphore>, 2> balls = {
      std::make_unique<Semaphore>(HANGSCOPE_NODE_RESOURCE(plan.place.node, RESOURCE_BALL), 0),
      std::make_unique<Semaphore>(HANGSCOPE_NODE_RESOURCE(plan.place.node, RESOURCE_BALL + 1), 0)};
  const size_t side = place.role == plan.place.role ? 0 : 1;
  const Role other = side == 0 ? plan.other : plan.place.role;
  hangscope_kernel_is(kHandoverKernel);
  HANGSCOPE_PROVIDES(HANGSCOPE_NODE_RESOURCE(plan.place.node, RESOURCE_BALL + 1 - side));
  const auto give = [&] {
    Lock& lock = LockOf(pipeline, place, place.role);
    lock.Acquire();
    balls[1 - side]->Post();
    lock.Release();
  };
  const auto take = [&] {
    balls[side]->Wait();
    Lock& lock = LockOf(pipeline, place, other);
    lock.Acquire();
    lock.Release();
  };
  if (side == 0) TellPlanted(pipeline, place, 0);
  for (uint64_t i = 0; i < plan.value; i++) {
    hangscope_heartbeat();
    if (side == 0) give();
    take();
    if (side == 1) give();
  }
  hangscope_kernel_ends(0);
}
