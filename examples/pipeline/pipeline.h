// The device of ../device as a Linux program: nodes of five threads each, which pass numbered blocks
// through bounded channels and wait with mutexes and condition variables.
//
//   reader --cb0--> unpack --cb1--> math --cb2--> pack --cb3--> writer --link--> reader of the next node
//
// The writer returns a credit for each block, without which the reader begins none.
#ifndef EXAMPLES_PIPELINE_PIPELINE_H
#define EXAMPLES_PIPELINE_PIPELINE_H

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "../common/dataflow_names.h"
#include "hangscope/hangscope.h"
#include "sync.h"

enum class Role : uint32_t { kReader, kUnpack, kMath, kPack, kWriter };
constexpr uint32_t kRoles = 5;
constexpr uint32_t kColumns = 2;  // of the grid
#define PIPELINE_NAME(number, name) name,
constexpr std::array<const char*, kRoles> kRoleNames = {DATAFLOW_ROLES(PIPELINE_NAME)};

#define PIPELINE_KERNELS(NAME)                        \
  NAME(1, "dataflow", "examples/pipeline/stages.cc")  \
  NAME(2, "compute", "examples/pipeline/stages.cc")   \
  NAME(3, "handover", "examples/pipeline/faults.cc")
enum Kernel : uint32_t { kDataflowKernel = 1, kComputeKernel = 2, kHandoverKernel = 3 };

struct Place {
  uint32_t node = 0;
  Role role = Role::kReader;
  auto operator<=>(const Place&) const = default;
};
inline uint32_t Number(Role role) { return static_cast<uint32_t>(role); }

struct Node {
  explicit Node(uint32_t index);

  std::array<std::unique_ptr<Channel>, kRoles - 1> cbs;
  Channel link;    // from the node before
  Semaphore credits;
  std::array<std::unique_ptr<Lock>, kRoles> locks;  // of the roles
  std::array<uint64_t, kRoles> blocks_done{};       // each under its role's lock
  std::array<std::atomic<uint32_t>, kRoles> cores{};  // as the scope numbers the threads
  Meeting meeting;
  std::atomic<uint32_t> guarded = GUARD_WORD;  // nobody writes to it
};

struct Options {
  uint32_t nodes = 2;
  uint64_t blocks = 0;  // 0: no end
  uint32_t pace_us = 1000;
};

struct Pipeline {
  Options options;
  std::vector<std::unique_ptr<Node>> nodes;

  Node& NodeOf(Place place) { return *nodes[place.node]; }
  bool IsLastNode(Place place) const { return place.node + 1 == nodes.size(); }
};

// A thread's way through all its blocks.
void RunRole(Pipeline& pipeline, Place place);

// Names the thread, says what it fills and empties; before it begins.
void Introduce(Pipeline& pipeline, Place place);

#endif
