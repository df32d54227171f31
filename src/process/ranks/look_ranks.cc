// Ranks of an MPI job: who they are, what has passed between them, and which of them polls for what
// others send: ProcessLook's part.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "process/process_look.h"
#include "runtime/mpi/mpi_job.h"

namespace hangscope {
namespace {

constexpr size_t kMostShared = 64 << 20;  // bytes of memory that the ranks share
constexpr size_t kBlock = 1 << 20;

uint64_t Mix(uint64_t state, uint64_t word) {
  state = (state ^ word) * 0x9e3779b97f4a7c15;
  return state ^ (state >> 29);
}

}  // namespace

// Which rank the process is, and which processes are the others.
void ProcessLook::FindRank() {
  const bool has_library =
      std::any_of(mappings_.begin(), mappings_.end(),
                  [](const MemoryMapping& mapping) { return IsMpiLibrary(mapping.path); });
  const auto place_of = [&](int pid) {
    const auto environment = context_.proc.Read(fmt::format("{}/environ", pid));
    return environment ? MpiPlaceOf(*environment) : std::nullopt;
  };
  const auto own = has_library && context_.kept == nullptr ? place_of(living_) : std::nullopt;
  if (!own) return;
  RankFacts rank;
  rank.rank = own->rank;
  for (const TaskStat& sibling : context_.tree.Children(facts_.parent)) {
    if (sibling.id == pid_ || sibling.state == ThreadState::kZombie) continue;
    const auto other = place_of(sibling.id);
    if (!other || other->job != own->job) continue;
    rank.others.emplace_back(other->rank, sibling.id);
    leads_to_.insert(sibling.id);
  }
  std::sort(rank.others.begin(), rank.others.end());
  const auto passed = MessagesPassed();
  const bool is_twice =
      std::any_of(rank.others.begin(), rank.others.end(),
                  [&](const auto& other) { return other.first == own->rank; }) ||
      std::adjacent_find(rank.others.begin(), rank.others.end(), [](const auto& a, const auto& b) {
        return a.first == b.first;
      }) != rank.others.end();
  rank.others_unknown = is_twice || rank.others.empty() ||
                        rank.others.size() + 1 != static_cast<size_t>(own->size) || !passed ||
                        TalksInOtherWays(rank);
  rank.passed = passed.value_or(0);
  facts_.rank = std::move(rank);
}

// Stands for all that is in the memory through which ranks pass messages; nothing: there is none.
std::optional<uint64_t> ProcessLook::MessagesPassed() const {
  uint64_t state = 1;
  size_t all = 0;
  for (const MemoryMapping& mapping : mappings_) {
    if (!mapping.shared || !CarriesMpiMessages(mapping.path)) continue;
    const size_t bytes = mapping.end - mapping.begin;
    if (all += bytes; all > kMostShared) return std::nullopt;
    for (uint64_t at = mapping.begin; at < mapping.end; at += kBlock) {
      const std::string block = memory_.ReadUpTo(at, std::min<size_t>(kBlock, mapping.end - at));
      for (size_t i = 0; i + 8 <= block.size(); i += 8) {
        uint64_t word = 0;
        std::memcpy(&word, block.data() + i, sizeof word);
        state = Mix(state, word);
      }
    }
  }
  return all == 0 ? std::nullopt : std::optional<uint64_t>(state);
}

// Over a network, or by a device of one.
bool ProcessLook::TalksInOtherWays(const RankFacts& rank) {
  int error = 0;
  for (const DescriptorLink& link : context_.proc.Descriptors(living_, &error)) {
    if (link.target.find("infiniband") != std::string::npos) return true;
    if (!link.target.starts_with("socket:")) continue;
    const WaitFile file = context_.files.Describe(living_, link.fd, true);
    if (file.name.find("tcp") == std::string::npos || file.listening) continue;
    const bool is_to_rank =
        std::any_of(file.others.begin(), file.others.end(), [&](const auto& holder) {
          return std::any_of(rank.others.begin(), rank.others.end(),
                             [&](const auto& other) { return other.second == holder.first; });
        });
    if (file.outside || file.others_unknown || is_to_rank) return true;
  }
  return error != 0;
}

// Of a thread whose frames are known: it is in a call that only other ranks end, and MPI has not
// called the program. `only`: in this one; empty: in any.
bool ProcessLook::ExplainRanks(const Work& work, ThreadFacts* thread, std::string_view only) {
  if (!facts_.rank) return false;
  std::string call;
  for (const StackFrame& frame : thread->stack) {
    call = MpiWaitOf(frame.function);
    if (!call.empty()) break;
    if (!frame.of_system && !IsOfMpi(frame.module)) return false;
  }
  if (!only.empty() && call != only) return false;
  for (const StackPlace& place : work.places) {
    const auto function = call.empty() ? std::nullopt : walker_->FunctionAt(place.pc);
    if (!function || MpiWaitOf(function->name) != call || !place.stack_pointer) continue;
    thread->wait.kind = WaitKind::kRanks;
    thread->wait.object_type = call;
    thread->wait.address = Mix(facts_.rank->passed, *place.stack_pointer);
    return true;
  }
  return false;
}

// MPICH's ranks end together: the process that started them tells each once all have come.
void ProcessLook::ExplainLastCall(const Work& work, ThreadFacts* thread) {
  if (!facts_.rank || thread->wait.files.size() != 1) return;
  const WaitFile& file = thread->wait.files[0];
  const bool is_of_launcher =
      !file.outside && !file.others_unknown && !file.others.empty() &&
      std::all_of(file.others.begin(), file.others.end(),
                  [&](const auto& holder) { return holder.first == facts_.parent; });
  if (is_of_launcher) ExplainRanks(work, thread, kMpiFinalize);
}

}  // namespace hangscope
