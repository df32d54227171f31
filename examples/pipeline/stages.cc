// What the five roles do with each block.
#include <chrono>
#include <thread>

#include "faults.h"
#include "pipeline.h"

namespace {

constexpr uint64_t kBlocksPerLook = 16;

void Pace(const Options& options, uint64_t number) {
  static const auto begin = std::chrono::steady_clock::now();
  const auto time = begin + number * std::chrono::microseconds(options.pace_us);
  HANGSCOPE_WAYPOINT_NAMED("TIMW", "until it is time");
  HANGSCOPE_WAIT_FOR(HANGSCOPE_RESOURCE_TIME, 1);
  std::this_thread::sleep_until(time);
  HANGSCOPE_WAIT_DONE();
  HANGSCOPE_WAYPOINT("TIMD");
}

// Takes what the role before has for this one.
Block Take(Pipeline& pipeline, Place place, uint64_t number) {
  Node& node = pipeline.NodeOf(place);
  if (place.role != Role::kReader) return node.cbs[Number(place.role) - 1]->Pop();
  if (place.node == 0) Pace(pipeline.options, number);
  node.credits.Wait();
  return place.node == 0 ? Block{number, number} : node.link.Pop();
}

// Passes it on.
void Give(Pipeline& pipeline, Place place, const Block& block, uint64_t number) {
  if (IsPlanned(Fault::kMissingPush, place, number)) {
    TellPlanted(pipeline, place, number);
    return;
  }
  const bool lose = IsPlannedFrom(Fault::kLostWakeup, place, number);
  if (lose && number == ThePlan().block) TellPlanted(pipeline, place, number);
  if (place.role != Role::kWriter) {
    pipeline.NodeOf(place).cbs[Number(place.role)]->Push(block, !lose);
  } else if (!pipeline.IsLastNode(place)) {
    pipeline.nodes[place.node + 1]->link.Push(block, !lose);
  }
}

void GiveCredit(Pipeline& pipeline, Place place, uint64_t number) {
  if (IsPlannedFrom(Fault::kNoCredit, place, number)) {
    if (number == ThePlan().block) TellPlanted(pipeline, place, number);
    return;
  }
  pipeline.NodeOf(place).credits.Post();
}

void Compute(Role role, Block* block) {
  switch (role) {
    case Role::kUnpack: block->value ^= block->number; break;
    case Role::kMath: block->value = block->value * 5 + 1; break;
    case Role::kPack: block->value = block->value << 7 | block->value >> 57; break;
    default: break;
  }
}

void CountBlock(Pipeline& pipeline, Place place) {
  Node& node = pipeline.NodeOf(place);
  Lock& lock = *node.locks[Number(place.role)];
  lock.Acquire();
  node.blocks_done[Number(place.role)]++;
  lock.Release();
}

}  // namespace

void RunRole(Pipeline& pipeline, Place place) {
  const uint64_t blocks = pipeline.options.blocks;
  for (uint64_t number = 1; blocks == 0 || number <= blocks; number++) {
    hangscope_heartbeat();
    Block block = Take(pipeline, place, number);
    HANGSCOPE_WAYPOINT_NAMED("CMPR", "compute");
    if (!MaybeFail(pipeline, place, number)) return;
    Compute(place.role, &block);
    Give(pipeline, place, block, number);
    if (place.role == Role::kWriter) GiveCredit(pipeline, place, number);
    CountBlock(pipeline, place);
    HANGSCOPE_DEBUG(Number(place.role) << 24 | static_cast<uint32_t>(number));
    // One thread for all.
    if (place == Place{0, Role::kWriter} && number % kBlocksPerLook == 0) hangscope_guards_look();
  }
  MaybeFailAtEnd(pipeline, place);
  hangscope_kernel_ends(0);
}
