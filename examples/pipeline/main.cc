// usage: pipeline [--nodes N] [--blocks N] [--pace-us N] [--fault NAME] [--node N] [--role NAME]
//                 [--other NAME] [--block N] [--value N] [--word N] [--seed N]
//
// Passes blocks through all nodes, at most one in --pace-us, for ever unless --blocks says how many. Where,
// between whom and at which block the fault happens is drawn from --seed; the other options say it. What is
// done wrong is told on stdout when it is done. Status: 0 all blocks came out right; 1 they did not; 2 usage.
#define HANGSCOPE_DEFINE
#include <pthread.h>

#include <barrier>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <random>
#include <string_view>
#include <thread>

#include "faults.h"
#include "pipeline.h"

HANGSCOPE_NAMED(pipeline_roles, HANGSCOPE_CATALOG_ROLE, DATAFLOW_ROLES);
HANGSCOPE_NAMED(pipeline_kernels, HANGSCOPE_CATALOG_KERNEL, PIPELINE_KERNELS);
HANGSCOPE_NAMED(pipeline_guards, HANGSCOPE_CATALOG_GUARD, DATAFLOW_GUARDS);
HANGSCOPE_NAMED(pipeline_resources, HANGSCOPE_CATALOG_NODE_RESOURCE, DATAFLOW_RESOURCES);

namespace {

constexpr uint32_t kCredits = 8;
constexpr uint32_t kMostNodes = 4;
constexpr uint64_t kFirstFault = 40;  // blocks that pass before, at least
constexpr uint64_t kFaultSpread = 60;

uint32_t NameOf(uint32_t node, uint32_t resource) { return HANGSCOPE_NODE_RESOURCE(node, resource); }

}  // namespace

Node::Node(uint32_t index) : link(NameOf(index, RESOURCE_LINK), NameOf(index, RESOURCE_LINK_ROOM)), credits(NameOf(index, RESOURCE_CREDIT), kCredits) {
  for (uint32_t i = 0; i < cbs.size(); i++) cbs[i] = std::make_unique<Channel>(NameOf(index, RESOURCE_CB + i), NameOf(index, RESOURCE_CB_ROOM + i));
  for (uint32_t i = 0; i < kRoles; i++) locks[i] = std::make_unique<Lock>(NameOf(index, RESOURCE_LOCK + i));
}

void Introduce(Pipeline& pipeline, Place place) {
  const uint32_t role = Number(place.role);
  const uint32_t core = hangscope_core_of(hangscope_this_mailbox());
  pipeline.NodeOf(place).cores[role] = core;
  hangscope_node_is(place.node, place.node % kColumns, place.node / kColumns);
  hangscope_core_is(core, place.node, role);
  hangscope_kernel_is(place.role == Role::kReader || place.role == Role::kWriter ? kDataflowKernel : kComputeKernel);
  hangscope_launch_is(HANGSCOPE_LAUNCH_RUNNING);
  if (place.role != Role::kWriter) {
    HANGSCOPE_PROVIDES(NameOf(place.node, RESOURCE_CB + role));
  } else {
    HANGSCOPE_PROVIDES(NameOf(place.node, RESOURCE_CREDIT));
    if (!pipeline.IsLastNode(place)) HANGSCOPE_PROVIDES(NameOf(place.node + 1, RESOURCE_LINK));
  }
  if (place.role != Role::kReader) {
    HANGSCOPE_PROVIDES(NameOf(place.node, RESOURCE_CB_ROOM + role - 1));
  } else if (place.node > 0) {
    HANGSCOPE_PROVIDES(NameOf(place.node, RESOURCE_LINK_ROOM));
  }
}

namespace {

// All have said who they are before the first begins.
void RunThread(Pipeline& pipeline, Place place, std::barrier<>& begin) {
  const std::string name = std::string(kRoleNames[Number(place.role)]) + "-" + std::to_string(place.node);
  pthread_setname_np(pthread_self(), name.c_str());
  Introduce(pipeline, place);
  begin.arrive_and_wait();
  const Plan& plan = ThePlan();
  if (plan.fault != Fault::kHandover) {
    RunRole(pipeline, place);
  } else if (place.node == plan.place.node && (place.role == plan.place.role || place.role == plan.other)) {
    RunHandover(pipeline, place);
  } else {
    hangscope_kernel_ends(0);
  }
}

bool ParseNumber(std::string_view text, uint64_t* number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && end == text.data() + text.size();
}

bool ParseRole(std::string_view text, Role* role) {
  for (uint32_t i = 0; i < kRoles; i++) {
    if (text == kRoleNames[i]) {
      *role = static_cast<Role>(i);
      return true;
    }
  }
  return false;
}

// Where it is to happen. The role that is drawn has one before it, which is the other.
void Draw(uint64_t seed, uint32_t nodes, Plan* plan) {
  std::mt19937_64 random(seed);
  plan->place.node = static_cast<uint32_t>(random() % nodes);
  const uint32_t role = 1 + static_cast<uint32_t>(random() % (kRoles - 1));
  plan->place.role = static_cast<Role>(role);
  plan->other = static_cast<Role>(random() % role);
  plan->block = kFirstFault + random() % kFaultSpread;
}

bool SetOption(std::string_view name, std::string_view text, Options* options, Plan* plan) {
  if (name == "--fault") return ParseFault(text, &plan->fault);
  if (name == "--role") return ParseRole(text, &plan->place.role);
  if (name == "--other") return ParseRole(text, &plan->other);
  uint64_t number = 0;
  if (!ParseNumber(text, &number)) return false;
  const uint32_t small = static_cast<uint32_t>(number);
  if (name == "--nodes") options->nodes = small;
  else if (name == "--blocks") options->blocks = number;
  else if (name == "--pace-us") options->pace_us = small;
  else if (name == "--node") plan->place.node = small;
  else if (name == "--block") plan->block = number;
  else if (name == "--value") plan->value = number;
  else if (name == "--word") plan->word = small;
  else return false;
  return true;
}

// Some faults are only possible at some roles.
void Settle(uint32_t nodes, Plan* plan) {
  const bool circle = plan->fault == Fault::kDeadlock5 || plan->fault == Fault::kNoCredit;
  const bool push = plan->fault == Fault::kMissingPush || plan->fault == Fault::kLostWakeup;
  if (circle) plan->place.role = Role::kWriter;
  if (push && plan->place.role == Role::kWriter && plan->place.node + 1 == nodes) plan->place.role = Role::kPack;
}

// First how many nodes there are, then what the seed draws among them, then what the others say otherwise.
bool ParseOptions(int argc, char** argv, Options* options, Plan* plan) {
  if (argc % 2 == 0) return false;
  for (int pass = 0; pass < 3; pass++) {
    for (int i = 1; i < argc; i += 2) {
      const std::string_view name = argv[i];
      const int its_pass = name == "--nodes" ? 0 : name == "--seed" ? 1 : 2;
      if (its_pass != pass) continue;
      uint64_t seed = 0;
      if (pass != 1 && !SetOption(name, argv[i + 1], options, plan)) return false;
      if (pass == 1 && (!ParseNumber(argv[i + 1], &seed) || options->nodes == 0)) return false;
      if (pass == 1) Draw(seed, options->nodes, plan);
    }
  }
  Settle(options->nodes, plan);
  return options->nodes >= 1 && options->nodes <= kMostNodes && plan->place.node < options->nodes && plan->word < 16;
}

}  // namespace

int main(int argc, char** argv) {
  Pipeline pipeline;
  Plan plan;
  if (!ParseOptions(argc, argv, &pipeline.options, &plan)) {
    std::fprintf(stderr, "usage: pipeline [--nodes 1-%u] [--blocks N] [--pace-us N] [--fault NAME] [--seed N] ...\n"
                 "faults: %s\n", kMostNodes, FaultNames().c_str());
    return 2;
  }
  SetPlan(plan);
  hangscope_launch_is(HANGSCOPE_LAUNCH_IDLE);  // this thread waits for the others
  for (uint32_t i = 0; i < pipeline.options.nodes; i++) {
    pipeline.nodes.push_back(std::make_unique<Node>(i));
    hangscope_guard(i, &pipeline.nodes[i]->guarded, GUARD_WORD);
  }
  const uint32_t count = pipeline.options.nodes * kRoles;
  std::barrier begin(count);
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < count; i++) {
    threads.emplace_back([&pipeline, &begin, i] { RunThread(pipeline, {i / kRoles, static_cast<Role>(i % kRoles)}, begin); });
  }
  for (std::thread& thread : threads) thread.join();
  const uint64_t done = pipeline.nodes.back()->blocks_done[Number(Role::kWriter)];
  std::printf("pipeline: %llu blocks\n", static_cast<unsigned long long>(done));
  return done == pipeline.options.blocks || plan.fault == Fault::kHandover ? 0 : 1;
}
