#include "scope/scope_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <limits>

#include "hangscope/abi/record.h"
#include "hangscope/abi/scope.h"

namespace hangscope {
namespace {

constexpr size_t kHeaderBytes = sizeof(hangscope_header);
constexpr size_t kSearchedAtOnce = 1u << 20;
// of address space: a core of a large machine
// A file's holes cost its writer nothing, and who looks at it memory for each.
constexpr uint32_t kMostScopeCores = 65536;
constexpr uint32_t kMostScopeTasks = 65536;
constexpr uint64_t kMostSearched = uint64_t{64} << 30;

#define HEADER_FIELD(field) offsetof(hangscope_header, field)
#define TASK_FIELD(field) offsetof(hangscope_task, field)

bool HasMagic(const char* bytes, ByteOrder order) {
  return Load32(bytes, order) == HANGSCOPE_MAGIC0 && Load32(bytes + 4, order) == HANGSCOPE_MAGIC1;
}

std::optional<ByteOrder> OrderOf(const char* bytes) {
  if (HasMagic(bytes, ByteOrder::kLittle)) return ByteOrder::kLittle;
  if (HasMagic(bytes, ByteOrder::kBig)) return ByteOrder::kBig;
  return std::nullopt;
}

uint32_t Check(const char* header) {
  uint32_t check = HANGSCOPE_CHECK_SEED;
  for (size_t i = 0; i < HANGSCOPE_CHECKED_BYTES; ++i) {
    check = (check ^ static_cast<uint8_t>(header[i])) * HANGSCOPE_CHECK_PRIME;
  }
  return check;
}

// floor(a * b / c), c > 0; a is below 2^64 in size, b below 2^63.
std::optional<int64_t> Scaled(__int128 a, uint64_t b, uint64_t c) {
  const __int128 product = a * b;
  // Of numbers of 64 bits the processor has a division.
  if (product >= 0 && product <= std::numeric_limits<int64_t>::max())
    return static_cast<int64_t>(static_cast<uint64_t>(product) / c);
  __int128 quotient = product / c;
  if (product % c < 0) --quotient;
  if (quotient > std::numeric_limits<int64_t>::max() ||
      quotient < std::numeric_limits<int64_t>::min())
    return std::nullopt;
  return static_cast<int64_t>(quotient);
}

TaskRecord WrongTask(uint32_t index, const char* why, const char* field = "",
                     std::string value = "") {
  TaskRecord record;
  record.wrong = Corruption{Corruption::Part::kTaskRecord, index, why, field, std::move(value)};
  return record;
}

// Where the magic occurs in the target's memory, aligned to 4.
class MagicSearch {
 public:
  explicit MagicSearch(Target& target) : target_(target) {}

  // The next place; nothing: there is none.
  std::optional<uint64_t> Next() {
    while (range_ < target_.ranges().size() && searched_ < kMostSearched) {
      const MemoryRange& range = target_.ranges()[range_];
      for (; at_ + 8 <= filled_; at_ += 4) {
        if (!OrderOf(buffer_.data() + at_)) continue;
        at_ += 4;
        return range.begin + chunk_ + at_ - 4;
      }
      Advance(range);
    }
    return std::nullopt;
  }

 private:
  // The last 4 bytes of a chunk may begin what the next one goes on with.
  void Advance(const MemoryRange& range) {
    uint64_t next = filled_ == 0 ? chunk_ : chunk_ + (filled_ - filled_ % 4) - 4;
    const uint64_t data = target_.NextData(range.begin + next) - range.begin;
    if (data > next + kSearchedAtOnce) next = data - data % 4;
    if (range.size_bytes < 8 || next + 8 > range.size_bytes) {
      ++range_;
      chunk_ = filled_ = at_ = 0;
      return;
    }
    filled_ = static_cast<size_t>(std::min<uint64_t>(kSearchedAtOnce, range.size_bytes - next));
    buffer_.resize(filled_);
    chunk_ = next;
    at_ = (4 - (range.begin + chunk_) % 4) % 4;
    searched_ += filled_;
    if (!target_.Read(range.begin + next, buffer_).ok())
      std::fill(buffer_.begin(), buffer_.end(), '\0');
  }

  Target& target_;
  size_t range_ = 0;
  uint64_t chunk_ = 0;  // offset in the range
  size_t filled_ = 0;
  size_t at_ = 0;
  uint64_t searched_ = 0;
  std::string buffer_;
};

}  // namespace

bool ScopeLayout::shared_clock() const {
  return core_count == 1 || clock_kind == HANGSCOPE_CLOCK_SHARED ||
         clock_kind == HANGSCOPE_CLOCK_TICKS;
}

bool HeaderChecks(const char* header, ByteOrder order) {
  return Load32(header + HEADER_FIELD(check), order) == Check(header);
}

Corruption WrongHeaderWord(const char* before, const char* now, ByteOrder order) {
  struct Field {
    size_t at;
    const char* name;
  };
  constexpr Field kFields[] = {
      {HEADER_FIELD(magic), "magic"},
      {HEADER_FIELD(major), "version"},
      {HEADER_FIELD(header_bytes), "header_bytes"},
      {HEADER_FIELD(scope_bytes), "scope_bytes"},
      {HEADER_FIELD(features), "features"},
      {HEADER_FIELD(core_count), "core_count"},
      {HEADER_FIELD(ring_capacity), "ring_capacity"},
      {HEADER_FIELD(rings_at), "rings_at"},
      {HEADER_FIELD(ring_stride), "ring_stride"},
      {HEADER_FIELD(mailboxes_at), "mailboxes_at"},
      {HEADER_FIELD(mailbox_stride), "mailbox_stride"},
      {HEADER_FIELD(task_count), "task_count"},
      {HEADER_FIELD(tasks_at), "tasks_at"},
      {HEADER_FIELD(task_stride), "task_stride"},
      {HEADER_FIELD(clock_kind), "clock_kind"},
      {HEADER_FIELD(clock_hz), "clock_hz"},
      {HEADER_FIELD(boots), "boots"},
      {HEADER_FIELD(pid), "pid"},
      {HEADER_FIELD(build_id), "build_id"},
      {HEADER_FIELD(sync_time), "sync_time"},
      {HEADER_FIELD(sync_ns), "sync_ns"},
      {HANGSCOPE_CHECKED_BYTES, "check"},
  };
  size_t at = 0;
  while (at < HANGSCOPE_CHECKED_BYTES && Load32(before + at, order) == Load32(now + at, order))
    at += 4;
  if (at == HANGSCOPE_CHECKED_BYTES) at = HEADER_FIELD(check);
  const Field* name = std::begin(kFields);
  for (const Field& field : kFields) {
    if (field.at <= at) name = &field;
  }
  return {Corruption::Part::kHeader, 0,
          fmt::format("{:#010x} was written there", Load32(before + at, order)), name->name,
          fmt::format("{:#010x}", Load32(now + at, order))};
}

uint64_t RecordsBegun(const char* ring, const ScopeLayout& layout) {
  if (layout.word_bytes == 8) return Load64(ring, layout.order) >> HANGSCOPE_TICKET_SHIFT;
  return hangscope_begun(Load32(ring, layout.order), Load32(ring + 4, layout.order),
                         layout.ring_capacity);
}

std::optional<int64_t> ScopeLayout::Nanoseconds(uint64_t time) const {
  if (clock_hz != 0) return Scaled(time, 1'000'000'000u, clock_hz);
  constexpr uint64_t kLongest = uint64_t{1} << 62;  // keeps the product in range
  if (last_time <= sync_time || last_ns <= sync_ns || last_ns - sync_ns > kLongest)
    return std::nullopt;
  const auto since =
      Scaled(static_cast<__int128>(time) - sync_time, last_ns - sync_ns, last_time - sync_time);
  if (!since) return std::nullopt;
  const __int128 sum = static_cast<__int128>(*since) + sync_ns;
  if (sum > std::numeric_limits<int64_t>::max() || sum < std::numeric_limits<int64_t>::min())
    return std::nullopt;
  return static_cast<int64_t>(sum);
}

uint64_t TimeFromEpoch(uint32_t epoch, uint32_t low, bool* ambiguous) {
  const uint64_t reference = uint64_t{epoch} << 30;
  const auto distance =
      static_cast<int64_t>(static_cast<int32_t>(low - static_cast<uint32_t>(reference)));
  if (distance >= 0 || reference >= static_cast<uint64_t>(-distance))
    return reference + static_cast<uint64_t>(distance);
  *ambiguous = true;  // before the clock began
  return low;
}

Result<ScopeReader> ScopeReader::Open(Target& target, std::optional<uint64_t> symbol) {
  uint64_t address = 0;
  if (symbol) {
    address = *symbol;
  } else if (target.scope_address()) {
    address = *target.scope_address();
  } else {
    auto found = Find(target);
    if (!found.ok()) return found.status();
    address = *found;
  }
  ScopeReader reader(target);
  if (Status status = reader.ReadHeader(address); !status.ok()) return status;
  return reader;
}

// The magic alone may be a text that names hangscope: a sound header decides. Where there is none,
// what is wrong with the first is said.
Result<uint64_t> ScopeReader::Find(Target& target) {
  MagicSearch search(target);
  Status first_wrong;
  while (const auto address = search.Next()) {
    ScopeReader candidate(target);
    if (!target.CheckRange(*address, kHeaderBytes).ok()) continue;
    const Status status = candidate.ReadHeader(*address);
    if (status.ok()) return *address;
    if (first_wrong.ok()) first_wrong = status;
  }
  if (!first_wrong.ok()) return first_wrong;
  return Status::NotFound(
      fmt::format("{} has no scope: its magic is nowhere in it; a program that includes "
                  "hangscope has one as soon as it has started",
                  target.name()));
}

std::string ScopeReader::Where(uint64_t address) const {
  return fmt::format("the scope at {:#x} of {}", address, target_->name());
}

Status ScopeReader::ReadHeader(uint64_t address) {
  char header[kHeaderBytes];
  if (Status status = target_->Read(address, header); !status.ok()) return status;
  // The check tells whether what it covers is sound; the rest may be lost.
  const bool whole = target_->IsKnown(address, HANGSCOPE_CHECKED_BYTES);
  const auto order = OrderOf(header);
  if ((!order || Load32(header + HEADER_FIELD(check), *order) != Check(header)) && !whole) {
    return Status::Corrupt(
        fmt::format("the header of {} did not arrive whole; dump it again", Where(address)));
  }
  if (!order)
    return Status::NotFound(
        fmt::format("{} has no scope at {:#x}: there is no magic; has the program started?",
                    target_->name(), address));
  layout_.address = address;
  layout_.order = *order;
  if (Status status = CheckVersion(header); !status.ok()) return status;
  layout_.major = Load16(header + HEADER_FIELD(major), *order);
  layout_.minor = Load16(header + HEADER_FIELD(minor), *order);
  const auto u32 = [&](size_t at) { return Load32(header + at, *order); };
  const auto u64 = [&](size_t at) { return Load64(header + at, *order); };
  layout_.word_bytes = static_cast<uint8_t>(header[HEADER_FIELD(word_bytes)]);
  layout_.record_bytes = static_cast<uint8_t>(header[HEADER_FIELD(record_bytes)]);
  layout_.scope_bytes = u32(HEADER_FIELD(scope_bytes));
  layout_.features = u32(HEADER_FIELD(features));
  layout_.core_count = u32(HEADER_FIELD(core_count));
  layout_.ring_capacity = u32(HEADER_FIELD(ring_capacity));
  layout_.rings_at = u32(HEADER_FIELD(rings_at));
  layout_.ring_stride = u32(HEADER_FIELD(ring_stride));
  layout_.task_count = u32(HEADER_FIELD(task_count));
  layout_.tasks_at = u32(HEADER_FIELD(tasks_at));
  layout_.task_stride = u32(HEADER_FIELD(task_stride));
  layout_.clock_kind = u32(HEADER_FIELD(clock_kind));
  layout_.clock_hz = u64(HEADER_FIELD(clock_hz));
  layout_.boots = u32(HEADER_FIELD(boots));
  layout_.pid = u32(HEADER_FIELD(pid));
  layout_.build_id.assign(header + HEADER_FIELD(build_id), 20);
  if (layout_.build_id == std::string(20, '\0')) layout_.build_id.clear();
  layout_.sync_time = u64(HEADER_FIELD(sync_time));
  layout_.sync_ns = u64(HEADER_FIELD(sync_ns));
  ReadLastClocks();
  layout_.lost_threads = u32(HEADER_FIELD(lost_threads));
  layout_.unknown_settings = u32(HEADER_FIELD(unknown_settings));
  layout_.lost_tasks = u32(HEADER_FIELD(lost_tasks));
  layout_.names_at = u32(HEADER_FIELD(names_at));
  layout_.name_count = u32(HEADER_FIELD(name_count));
  if (Status status = CheckSizes(); !status.ok()) return status;
  CheckRest();
  return {};
}

// The pair changes while the target runs; one that never comes to rest is left out.
void ScopeReader::ReadLastClocks() {
  constexpr int kLooks = 4;
  char before[4] = {};
  char pair[16];
  char after[4] = {};
  const uint64_t at = layout_.address;
  if (!target_->IsKnown(at + HEADER_FIELD(last_time),
                        HEADER_FIELD(watch_at) - HEADER_FIELD(last_time)))
    return;
  for (int look = 0; look < kLooks; ++look) {
    const bool read = target_->Read(at + HEADER_FIELD(last_sequence), before).ok() &&
                      target_->Read(at + HEADER_FIELD(last_time), pair).ok() &&
                      target_->Read(at + HEADER_FIELD(last_sequence), after).ok();
    const uint32_t sequence = Load32(before, layout_.order);
    if (!read || (sequence & 1) != 0 || sequence != Load32(after, layout_.order)) continue;
    layout_.last_time = Load64(pair, layout_.order);
    layout_.last_ns = Load64(pair + 8, layout_.order);
    return;
  }
  corruptions_.push_back({Corruption::Part::kHeader, 0,
                          "somebody was in the middle of writing last_time and last_ns",
                          "last_sequence"});
}

// The version comes first: what a later one changed is not to be called damage.
Status ScopeReader::CheckVersion(const char* header) const {
  const ByteOrder order = layout_.order;
  const uint16_t major = Load16(header + HEADER_FIELD(major), order);
  const uint16_t minor = Load16(header + HEADER_FIELD(minor), order);
  const uint32_t check = Load32(header + HEADER_FIELD(check), order);
  const uint32_t computed = Check(header);
  const std::string where = Where(layout_.address);
  if (check == 0 && computed != 0) {
    return Status::NotFound(
        fmt::format("{} is not ready yet: the program has not finished its header; look again once "
                    "it has started",
                    where));
  }
  if (major != HANGSCOPE_ABI_MAJOR) {
    return Status::Corrupt(
        fmt::format("{} has version {}.{}{}, and this hangscope reads version {}; use the "
                    "hangscope that belongs to the program",
                    where, major, minor, check == computed ? "" : " (or its header is damaged)",
                    HANGSCOPE_ABI_MAJOR));
  }
  if (check != computed) {
    return Status::Corrupt(
        fmt::format("the header of {} is damaged: its check is {:#010x} and should be {:#010x}",
                    where, check, computed));
  }
  const uint16_t header_bytes = Load16(header + HEADER_FIELD(header_bytes), order);
  if (header_bytes < kHeaderBytes) {
    return Status::Corrupt(fmt::format("{} says that its header has {} bytes; it has {} at least",
                                       where, header_bytes, kHeaderBytes));
  }
  return {};
}

Status ScopeReader::CheckSizes() const {
  const ScopeLayout& l = layout_;
  const auto refuse = [&](const std::string& why) {
    return Status::Corrupt(
        fmt::format("{} contradicts itself: {}; the program and hangscope do not fit, or something "
                    "wrote over it",
                    Where(l.address), why));
  };
  if (l.word_bytes != 4 && l.word_bytes != 8)
    return refuse(fmt::format("words of {} bytes; 4 and 8 are possible", l.word_bytes));
  if (l.record_bytes < 16 || l.record_bytes > 64 || l.record_bytes % 8 != 0) {
    return refuse(fmt::format("records of {} bytes; 16, 24, ... 64 are possible", l.record_bytes));
  }
  if (!std::has_single_bit(l.ring_capacity) || l.ring_capacity < HANGSCOPE_LEAST_CAPACITY ||
      l.ring_capacity > HANGSCOPE_MOST_CAPACITY) {
    return refuse(fmt::format("rings of {} records; a power of two from {} to {} is possible",
                              l.ring_capacity, HANGSCOPE_LEAST_CAPACITY, HANGSCOPE_MOST_CAPACITY));
  }
  const uint64_t ring_bytes = sizeof(hangscope_ring) + uint64_t{l.ring_capacity} * l.record_bytes;
  if (l.core_count == 0) return refuse("no cores");
  if (l.ring_stride < ring_bytes || l.ring_stride % 4 != 0) {
    return refuse(fmt::format("rings that begin {} bytes from each other and have {} each",
                              l.ring_stride, ring_bytes));
  }
  if (l.rings_at < kHeaderBytes || l.rings_at % 4 != 0)
    return refuse(fmt::format("rings that begin at offset {}", l.rings_at));
  if (l.rings_at + uint64_t{l.core_count - 1} * l.ring_stride + ring_bytes > l.scope_bytes) {
    return refuse(fmt::format("{} rings of {} bytes from offset {} on in a scope of {} bytes",
                              l.core_count, ring_bytes, l.rings_at, l.scope_bytes));
  }
  if (l.task_count != 0) {
    const uint64_t end =
        l.tasks_at + uint64_t{l.task_count - 1} * l.task_stride + sizeof(hangscope_task);
    if (l.task_stride < sizeof(hangscope_task) || l.task_stride % 4 != 0 ||
        l.tasks_at < kHeaderBytes || l.tasks_at % 4 != 0 || end > l.scope_bytes) {
      return refuse(
          fmt::format("{} task records of {} bytes from offset {} on in a scope of {} bytes",
                      l.task_count, l.task_stride, l.tasks_at, l.scope_bytes));
    }
  }
  if (l.core_count > kMostScopeCores || l.task_count > kMostScopeTasks) {
    return refuse(fmt::format("{} cores and {} task records; up to {} of each are possible",
                              l.core_count, l.task_count, kMostScopeCores));
  }
  const auto holds = [&](const MemoryRange& range) {
    return range.Contains(l.address, l.scope_bytes);
  };
  if (std::any_of(target_->ranges().begin(), target_->ranges().end(), holds)) return {};
  return Status::Corrupt(
      fmt::format("{} has {} bytes by its header, and not all of them are there; the dump is cut "
                  "off, or the header is wrong",
                  Where(l.address), l.scope_bytes));
}

// What nothing else depends on.
void ScopeReader::CheckRest() {
  if (layout_.clock_kind < HANGSCOPE_CLOCK_CYCLES || layout_.clock_kind > HANGSCOPE_CLOCK_SHARED) {
    corruptions_.push_back({Corruption::Part::kHeader, 0, "1 to 3 are kinds", "clock_kind",
                            std::to_string(layout_.clock_kind)});
  }
  const uint64_t names_end =
      layout_.names_at + uint64_t{layout_.name_count} * sizeof(hangscope_name);
  if (layout_.names_at != 0 && (layout_.names_at < kHeaderBytes || layout_.names_at % 4 != 0 ||
                                names_end > layout_.scope_bytes)) {
    corruptions_.push_back({Corruption::Part::kHeader, 0,
                            fmt::format("{} names of {} bytes in a scope of {}", layout_.name_count,
                                        sizeof(hangscope_name), layout_.scope_bytes),
                            "names_at", std::to_string(layout_.names_at)});
    layout_.names_at = 0;
  }
}

bool ScopeReader::ReadExiting() const {
  char word[4];
  const uint64_t at = layout_.address + HEADER_FIELD(exiting);
  return target_->IsKnown(at, sizeof word) && target_->Read(at, word).ok() &&
         Load32(word, layout_.order) == 1;
}

Result<std::string> ScopeReader::ReadImage() const {
  std::string image(layout_.scope_bytes, '\0');
  if (Status status = target_->Read(layout_.address, image); !status.ok()) return status;
  return image;
}

TaskRecord ScopeReader::DecodeTask(uint32_t index, const char* bytes) const {
  const auto field = [&](size_t at) { return Load32(bytes + at, layout_.order); };
  TaskWait task;
  task.index = index;
  task.sequence = field(TASK_FIELD(sequence));
  task.task = field(TASK_FIELD(task));
  const uint32_t state = field(TASK_FIELD(state));
  if (state > HANGSCOPE_TASK_WAITING)
    return WrongTask(index, "0 to 2 are states", "state", std::to_string(state));
  task.state = state == HANGSCOPE_TASK_WAITING ? TaskState::kWaiting : TaskState::kReady;
  if (task.state != TaskState::kWaiting) return {task};
  const uint32_t kind = field(TASK_FIELD(kind));
  if (kind < HANGSCOPE_RESOURCE_EXCLUSIVE || kind > HANGSCOPE_RESOURCE_OUTSIDE)
    return WrongTask(index, "1 to 5 are kinds", "kind",
                     fmt::format("{} of a task that waits", kind));
  task.kind = static_cast<ResourceKind>(kind);
  task.resource = field(TASK_FIELD(resource));
  if (const uint32_t holder = field(TASK_FIELD(holder)); holder != HANGSCOPE_NO_TASK)
    task.holder = holder;
  const uint32_t since = field(TASK_FIELD(since));
  const uint32_t epoch = field(TASK_FIELD(since_epoch));
  bool ambiguous = false;
  task.since = TimeFromEpoch(epoch, since, &ambiguous);
  if (ambiguous)
    return WrongTask(index, "before the clock began", "since",
                     fmt::format("{:#x} in quarter-wrap {}", since, epoch));
  return {task};
}

// The sequence before and after; what is between is read between.
Result<TaskRecord> ScopeReader::ReadTask(uint32_t index) const {
  constexpr int kLooks = 4;
  const uint64_t address =
      layout_.address + layout_.tasks_at + uint64_t{index} * layout_.task_stride;
  char before[4];
  char record[sizeof(hangscope_task)];
  char after[4];
  if (!target_->IsKnown(address, sizeof record)) return WrongTask(index, "it did not arrive");
  for (int look = 0; look < kLooks; ++look) {
    for (const std::span<char> part :
         {std::span<char>(before), std::span<char>(record), std::span<char>(after)}) {
      if (Status status = target_->Read(address, part); !status.ok()) return status;
    }
    const uint32_t sequence = Load32(before, layout_.order);
    if ((sequence & 1) != 0 || sequence != Load32(after, layout_.order)) continue;
    if (Load32(record + TASK_FIELD(state), layout_.order) == HANGSCOPE_TASK_NONE)
      return TaskRecord{};
    return DecodeTask(index, record);
  }
  TaskRecord changing = WrongTask(index, "its task was in the middle of changing it", "sequence",
                                  std::to_string(Load32(after, layout_.order)));
  changing.is_changing = true;
  return changing;
}

Result<std::vector<TaskWait>> ScopeReader::ReadTasks(std::vector<Corruption>* corruptions) const {
  std::vector<TaskWait> tasks;
  for (uint32_t i = 0; i < layout_.task_count; ++i) {
    auto record = ReadTask(i);
    if (!record.ok() && record.status().code() != Status::Code::kCorrupt) return record.status();
    if (!record.ok())
      corruptions->push_back({Corruption::Part::kTaskRecord, i, record.status().message()});
    else if (record->wrong)
      corruptions->push_back(*record->wrong);
    else if (record->wait)
      tasks.push_back(*record->wait);
  }
  return tasks;
}

// Pairs with the stores of name_changes around each change.
Result<GivenNames> ScopeReader::ReadNames() const {
  constexpr int kLooks = 4;
  GivenNames given;
  if (layout_.names_at == 0) return given;
  const uint64_t changes_at = layout_.address + HEADER_FIELD(name_changes);
  std::string bytes(uint64_t{layout_.name_count} * sizeof(hangscope_name), '\0');
  char before[8];  // and behind it, how many were lost
  char after[4];
  for (int look = 0; look < kLooks; ++look) {
    for (const auto& [at, part] : {std::pair{changes_at, std::span<char>(before)},
                                   std::pair{layout_.address + layout_.names_at, std::span(bytes)},
                                   std::pair{changes_at, std::span<char>(after)}}) {
      if (Status status = target_->Read(at, part); !status.ok()) return status;
    }
    given.changes = Load32(before, layout_.order);
    if ((given.changes & 1) != 0 || given.changes != Load32(after, layout_.order)) continue;
    given.lost = Load32(before + 4, layout_.order);
    for (size_t at = 0; at < bytes.size(); at += sizeof(hangscope_name)) {
      const char* const name = bytes.data() + at;
      const uint32_t kind = Load32(name + offsetof(hangscope_name, kind), layout_.order);
      const char* const text = name + offsetof(hangscope_name, text);
      if (kind == 0) continue;
      given.names.push_back({kind & ~HANGSCOPE_NAME_RETIRED,
                             Load32(name + offsetof(hangscope_name, id), layout_.order),
                             std::string(text, strnlen(text, sizeof(hangscope_name::text))),
                             (kind & HANGSCOPE_NAME_RETIRED) != 0});
    }
    return given;
  }
  return Status::Corrupt("somebody was in the middle of giving a name all the time");
}

}  // namespace hangscope
