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

#include "hangscope/hangscope.h"
#include "sync.h"

enum class Role : uint32_t { kReader, kUnpack, kMath, kPack, kWriter };
constexpr uint32_t kRoles = 5;
constexpr uint32_t kColumns = 2;  // of the grid
constexpr std::array<const char*, kRoles> kRoleNames = {"reader", "unpack", "math", "pack", "writer"};
#define PIPELINE_ROLES(NAME) NAME(0, "reader") NAME(1, "unpack") NAME(2, "math") NAME(3, "pack") NAME(4, "writer")

#define PIPELINE_KERNELS(NAME)                        \
  NAME(1, "dataflow", "examples/pipeline/stages.cc")  \
  NAME(2, "compute", "examples/pipeline/stages.cc")   \
  NAME(3, "handover", "examples/pipeline/faults.cc")
enum Kernel : uint32_t { kDataflowKernel = 1, kComputeKernel = 2, kHandoverKernel = 3 };

// What is waited for, of each node.
enum Resource : uint32_t {
  kCb = 1,      // + channel: a block in it
  kCbRoom = 5,  // + channel
  kCredit = 9,
  kLink = 10,   // from the node before
  kLinkRoom = 11,
  kRoleLock = 12,  // + role
  kBall = 17,      // + side: of the hand-overs
};
#define PIPELINE_RESOURCES(NAME) \
  NAME(1, "cb0")                 \
  NAME(2, "cb1")                 \
  NAME(3, "cb2")                 \
  NAME(4, "cb3")                 \
  NAME(5, "room in cb0")         \
  NAME(6, "room in cb1")         \
  NAME(7, "room in cb2")         \
  NAME(8, "room in cb3")         \
  NAME(9, "credit")              \
  NAME(10, "link")               \
  NAME(11, "room in link")       \
  NAME(12, "reader_lock")        \
  NAME(13, "unpack_lock")        \
  NAME(14, "math_lock")          \
  NAME(15, "pack_lock")          \
  NAME(16, "writer_lock")        \
  NAME(17, "ball_here")          \
  NAME(18, "ball_there")

#define PIPELINE_GUARDS(NAME) \
  NAME(0, "guard of node 0")  \
  NAME(1, "guard of node 1")  \
  NAME(2, "guard of node 2")  \
  NAME(3, "guard of node 3")
constexpr uint32_t kGuardWord = 0x5afe5afe;

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
  std::atomic<uint32_t> guarded = kGuardWord;  // nobody writes to it
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
