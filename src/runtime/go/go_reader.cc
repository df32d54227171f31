#include "runtime/go/go_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <set>
#include <utility>

#include "base/utf8.h"
#include "runtime/go/go_layout.h"

namespace hangscope {
namespace {

using go_layout::Slice;

constexpr size_t kMostWaiters = 65'536;  // in all queues of semaphores together
constexpr size_t kMostChannels = 64;     // of one select
constexpr size_t kMostGoroutines = 1u << 20;

template <typename T>
T FieldOf(const char* object, uint64_t offset) {
  T value;
  std::memcpy(&value, object + offset, sizeof value);
  return value;
}

bool IsIn(const std::vector<std::string>& functions, std::string_view wanted) {
  return std::find(functions.begin(), functions.end(), wanted) != functions.end();
}

}  // namespace

GoObject ObjectOfSemaphore(uint64_t semaphore, const std::vector<std::string>& functions) {
  if (semaphore == 0) return {};
  const bool is_mutex = IsIn(functions, "sync.(*Mutex).lockSlow");
  // A writer takes the mutex of the object first, which lies at its beginning.
  if (is_mutex && IsIn(functions, "sync.(*RWMutex).Lock"))
    return {"rwmutex", semaphore - go_layout::kSemaphoreOfMutex, true};
  if (is_mutex) return {"mutex", semaphore - go_layout::kSemaphoreOfMutex, true};
  if (IsIn(functions, "sync.(*RWMutex).Lock"))
    return {"rwmutex", semaphore - go_layout::kWriterOfRwMutex, true};
  if (IsIn(functions, "sync.(*RWMutex).RLock"))
    return {"rwmutex", semaphore - go_layout::kReaderOfRwMutex, true};
  if (IsIn(functions, "sync.(*WaitGroup).Wait"))
    return {"wait group", semaphore - go_layout::kSemaphoreOfWaitGroup, false};
  return {};
}

bool GoReader::Knows(std::string_view version) { return version.starts_with("go1.19"); }

Result<GoReader> GoReader::Open(const std::string& version, const FindSymbol& find,
                                ReadMemory read) {
  if (!Knows(version))
    return Status::Io(
        fmt::format("{} is another version than 1.19, whose goroutines are known; "
                    "SIGQUIT ends the program and prints its goroutines",
                    Printable(version)));
  const auto all = find("runtime.allgs");
  const auto semaphores = find("runtime.semtable");
  if (!all || !semaphores) return Status::Io("the places of the runtime's variables are not found");
  GoReader reader(*all, *semaphores, std::move(read));
  reader.heap_ = find("runtime.mheap_").value_or(0);
  reader.module_ = find("runtime.firstmoduledata").value_or(0);
  return reader;
}

std::vector<uint64_t> GoReader::Channels(uint64_t sudog) const {
  std::vector<uint64_t> channels;
  std::array<char, go_layout::kBytesOfSudog> bytes;
  while (sudog != 0 && channels.size() < kMostChannels &&
         read_(sudog, bytes.data(), bytes.size())) {
    if (const auto channel = FieldOf<uint64_t>(bytes.data(), go_layout::kSudogChannel);
        channel != 0)
      channels.push_back(channel);
    const auto next = FieldOf<uint64_t>(bytes.data(), go_layout::kSudogWaitLink);
    if (next == sudog) break;
    sudog = next;
  }
  return channels;
}

std::map<uint64_t, uint64_t> GoReader::Semaphores() const {
  std::map<uint64_t, uint64_t> semaphores;
  std::string table(go_layout::kSemaphoreLines * go_layout::kBytesOfLine, '\0');
  if (!read_(semaphores_, table.data(), table.size())) return semaphores;
  std::vector<uint64_t> open;
  for (size_t line = 0; line < go_layout::kSemaphoreLines; ++line)
    open.push_back(
        FieldOf<uint64_t>(table.data() + line * go_layout::kBytesOfLine, go_layout::kTree));
  std::set<uint64_t> seen = {0};
  while (!open.empty() && seen.size() < kMostWaiters) {
    const uint64_t sudog = open.back();
    open.pop_back();
    std::array<char, go_layout::kBytesOfSudog> bytes;
    if (!seen.insert(sudog).second || !read_(sudog, bytes.data(), bytes.size())) continue;
    const char* const at = bytes.data();
    semaphores[FieldOf<uint64_t>(at, go_layout::kSudogGoroutine)] =
        FieldOf<uint64_t>(at, go_layout::kSudogElement);
    for (const uint64_t next :
         {go_layout::kSudogNext, go_layout::kSudogPrevious, go_layout::kSudogWaitLink})
      open.push_back(FieldOf<uint64_t>(at, next));
  }
  return semaphores;
}

bool GoReader::StandsAsBefore(const Goroutine& goroutine) const {
  const auto now = ReadGoroutine(goroutine.address);
  return now && now->id == goroutine.id && now->runs == goroutine.runs &&
         now->waits == goroutine.waits && now->pc == goroutine.pc &&
         now->stack_pointer == goroutine.stack_pointer &&
         now->frame_pointer == goroutine.frame_pointer;
}

std::optional<Goroutine> GoReader::ReadGoroutine(uint64_t address) const {
  using go_layout::Status;
  std::array<char, go_layout::kBytesOfG> g;
  if (!read_(address, g.data(), g.size())) return std::nullopt;
  const auto status =
      static_cast<Status>(FieldOf<uint32_t>(g.data(), go_layout::kStatus) & ~go_layout::kScanBit);
  if (status == Status::kDead || status == Status::kIdle) return std::nullopt;
  Goroutine goroutine;
  goroutine.address = address;
  goroutine.id = FieldOf<uint64_t>(g.data(), go_layout::kId);
  goroutine.waits = status == Status::kWaiting;
  goroutine.in_system_call = status == Status::kInSystemCall;
  goroutine.runs = status == Status::kRunning || goroutine.in_system_call;
  goroutine.first_pc = FieldOf<uint64_t>(g.data(), go_layout::kFirstPc);
  goroutine.stack_begin = FieldOf<uint64_t>(g.data(), go_layout::kStackBegin);
  goroutine.stack_end = FieldOf<uint64_t>(g.data(), go_layout::kStackEnd);
  if (goroutine.runs) {
    const auto thread = FieldOf<uint64_t>(g.data(), go_layout::kThread);
    uint64_t id = 0;
    if (read_(thread + go_layout::kThreadId, &id, sizeof id) && id < (1u << 30))
      goroutine.tid = static_cast<int>(id);
  }
  if (!goroutine.runs || goroutine.in_system_call) {
    goroutine.pc = FieldOf<uint64_t>(g.data(), go_layout::kSavedPc);
    goroutine.stack_pointer = FieldOf<uint64_t>(g.data(), go_layout::kSavedStackPointer);
  }
  // A system call saves none.
  if (!goroutine.runs)
    goroutine.frame_pointer = FieldOf<uint64_t>(g.data(), go_layout::kSavedFramePointer);
  if (goroutine.waits) {
    const auto reason = FieldOf<uint8_t>(g.data(), go_layout::kWaitReason);
    if (reason < std::size(go_layout::kWaitReasons))
      goroutine.reason = go_layout::kWaitReasons[reason];
    goroutine.channels = Channels(FieldOf<uint64_t>(g.data(), go_layout::kQueues));
  }
  return goroutine;
}

std::vector<Goroutine> GoReader::Goroutines(size_t most,
                                            const std::function<bool(uint64_t)>& is_of_runtime,
                                            std::string* warning) const {
  Slice all;
  if (!read_(all_, &all, sizeof all) || all.count > kMostGoroutines) {
    *warning = "the list of its goroutines cannot be read";
    return {};
  }
  std::vector<uint64_t> addresses(all.count);
  if (!addresses.empty() &&
      !read_(all.begin, addresses.data(), addresses.size() * go_layout::kBytesOfPointer)) {
    *warning = "the list of its goroutines cannot be read";
    return {};
  }
  const auto semaphores = Semaphores();
  std::vector<Goroutine> goroutines;
  for (const uint64_t address : addresses) {
    auto goroutine = ReadGoroutine(address);
    if (!goroutine || is_of_runtime(goroutine->first_pc)) continue;
    if (goroutines.size() == most) {
      *warning = fmt::format("only the first {} goroutines are looked at", most);
      break;
    }
    const auto semaphore = semaphores.find(address);
    if (goroutine->waits && semaphore != semaphores.end()) goroutine->semaphore = semaphore->second;
    goroutines.push_back(std::move(*goroutine));
  }
  return goroutines;
}

}  // namespace hangscope
