#include "scope/watch_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>

#include "base/utf8.h"
#include "hangscope/abi/watch.h"

namespace hangscope {
namespace {

#define HEADER_FIELD(field) offsetof(hangscope_header, field)
#define WATCH_FIELD(field) offsetof(hangscope_watch, field)
#define DETAIL_FIELD(field) offsetof(hangscope_detail, field)
#define FRAME_FIELD(field) offsetof(hangscope_frame, field)
#define FAULT_FIELD(field) offsetof(hangscope_fault, field)

constexpr size_t kMailboxWords = sizeof(hangscope_mailbox) / 4;
constexpr uint32_t kMostStride = 1u << 20;
constexpr int kLooks = 4;  // at what may be in the middle of a change
// Of a ring's control, up to the task that runs.
constexpr size_t kRingBytes = offsetof(hangscope_ring, last_task) + 4;

// A mailbox's words by their place.
enum Word : size_t {
  kWaypoint = offsetof(hangscope_mailbox, waypoint) / 4,
  kHeartbeat = offsetof(hangscope_mailbox, heartbeat) / 4,
  kWaitSequence = offsetof(hangscope_mailbox, wait_sequence) / 4,
  kWaitResource = offsetof(hangscope_mailbox, wait_resource) / 4,
  kWaitKind = offsetof(hangscope_mailbox, wait_kind) / 4,
  kWaitSince = offsetof(hangscope_mailbox, wait_since) / 4,
  kWaitEpoch = offsetof(hangscope_mailbox, wait_epoch) / 4,
  kKernelId = offsetof(hangscope_mailbox, kernel) / 4,
  kLaunch = offsetof(hangscope_mailbox, launch) / 4,
  kPause = offsetof(hangscope_mailbox, pause) / 4,
  kResumes = offsetof(hangscope_mailbox, resumes) / 4,
  kPaused = offsetof(hangscope_mailbox, paused) / 4,
  kFault = offsetof(hangscope_mailbox, fault) / 4,
  kStackFree = offsetof(hangscope_mailbox, stack_free) / 4,
  kGuard = offsetof(hangscope_mailbox, guard) / 4,
};

struct MailboxWords {
  std::array<uint32_t, kMailboxWords> word;
  uint16_t node;
  uint16_t role;

  bool waits() const { return (word[kWaitSequence] & 1) != 0; }
};

MailboxWords LoadMailbox(const char* bytes, ByteOrder order) {
  MailboxWords mailbox;
  std::memcpy(mailbox.word.data(), bytes, sizeof mailbox.word);
  const bool swapped = (order == ByteOrder::kBig) != (std::endian::native == std::endian::big);
  if (swapped) {
    for (uint32_t& word : mailbox.word) word = __builtin_bswap32(word);
  }
  mailbox.node = Load16(bytes + offsetof(hangscope_mailbox, node), order);
  mailbox.role = Load16(bytes + offsetof(hangscope_mailbox, role), order);
  return mailbox;
}

// Up to four printable characters, then zeros. No loop over the characters: this is in every poll.
bool IsWaypoint(uint32_t word) {
  constexpr uint32_t kOnes = 0x01010101u;
  if ((word & 0x80808080u) != 0) return false;
  // set where a character is 0x20 or more
  const uint32_t control = (word + (0x80u - 0x20u) * kOnes) & 0x80808080u;
  // clear where it is 0x7f
  const uint32_t del = ((word ^ 0x7fu * kOnes) + 0x7fu * kOnes) & 0x80808080u;
  const uint32_t nonzero = (word + 0x7fu * kOnes) & 0x80808080u;
  if (control != nonzero || del != 0x80808080u) return false;
  return (nonzero >> 8 & ~nonzero & 0x00808080u) == 0;  // no zero below a character
}

// Made, and not yet told whose it is; or a thread's that is being given to another one.
bool IsBlank(const MailboxWords& mailbox) {
  uint32_t any = mailbox.node | mailbox.role;
  for (size_t i = 0; i < kStackFree; ++i) any |= mailbox.word[i];
  const uint32_t stack_free = mailbox.word[kStackFree];
  return (any | mailbox.word[kGuard]) == 0 &&
         (stack_free == 0 || stack_free == HANGSCOPE_NOT_KNOWN);
}

// The wait's time: both words are of one clock's reading, whose bits 30 and 31 both have.
bool IsTime(uint32_t low, uint32_t epoch) { return low >> 30 == (epoch & 3); }

Corruption WrongField(uint32_t core, const char* field, uint32_t value, std::string why) {
  return {Corruption::Part::kCore, core, std::move(why), field, fmt::format("{:#010x}", value)};
}

// The first word that cannot be right; `node_count` as the layout says.
std::optional<Corruption> FindWrong(const MailboxWords& mailbox, uint32_t core,
                                    uint32_t node_count) {
  const auto& word = mailbox.word;
  const uint32_t guard = HANGSCOPE_MAILBOX_GUARD ^ core;
  if (word[kGuard] != guard)
    return WrongField(core, "guard", word[kGuard], fmt::format("{:#010x} is written there", guard));
  if (!IsWaypoint(word[kWaypoint]))
    return WrongField(core, "waypoint", word[kWaypoint], "four printable characters are possible");
  if (word[kWaitKind] > HANGSCOPE_RESOURCE_OUTSIDE)
    return WrongField(core, "wait_kind", word[kWaitKind], "0 to 5 are kinds");
  if (word[kLaunch] > HANGSCOPE_LAUNCH_ENDED)
    return WrongField(core, "launch", word[kLaunch], "0 to 4 are states");
  if (word[kPause] > 1) return WrongField(core, "pause", word[kPause], "0 and 1 are possible");
  if (word[kPaused] > HANGSCOPE_PAUSED_BY_HOST)
    return WrongField(core, "paused", word[kPaused], "0 to 2 are states");
  if (word[kFault] > HANGSCOPE_FAULT_GUARD)
    return WrongField(core, "fault", word[kFault], "0 to 7 are types");
  if (mailbox.node >= node_count)
    return WrongField(core, "node", mailbox.node, fmt::format("there are {}", node_count));
  if (!mailbox.waits()) return std::nullopt;
  if (word[kWaitResource] == 0)
    return WrongField(core, "wait_resource", 0, "a core that waits names what for");
  if (!IsTime(word[kWaitSince], word[kWaitEpoch])) {
    return WrongField(
        core, "wait_epoch", word[kWaitEpoch],
        fmt::format("wait_since {:#010x} is not of that quarter-wrap", word[kWaitSince]));
  }
  return std::nullopt;
}

// The same questions as FindWrong's, almost without branches: what almost every mailbox of every
// poll needs.
bool IsSound(const MailboxWords& mailbox, uint32_t core, uint32_t node_count) {
  const auto& word = mailbox.word;
  const bool states = (word[kGuard] == (HANGSCOPE_MAILBOX_GUARD ^ core)) &
                      (word[kWaitKind] <= HANGSCOPE_RESOURCE_OUTSIDE) &
                      (word[kLaunch] <= HANGSCOPE_LAUNCH_ENDED) & (word[kPause] <= 1) &
                      (word[kPaused] <= HANGSCOPE_PAUSED_BY_HOST) &
                      (word[kFault] <= HANGSCOPE_FAULT_GUARD) & (mailbox.node < node_count);
  const bool wait = (word[kWaitSequence] & 1) == 0 ||
                    ((word[kWaitResource] != 0) && IsTime(word[kWaitSince], word[kWaitEpoch]));
  return states && wait && IsWaypoint(word[kWaypoint]);
}

void Decode(const MailboxWords& mailbox, CoreSample* sample) {
  const auto& word = mailbox.word;
  const bool stack_known = word[kStackFree] != HANGSCOPE_NOT_KNOWN;
  sample->waypoint = word[kWaypoint];
  sample->heartbeat = word[kHeartbeat];
  sample->wait_sequence = word[kWaitSequence];
  sample->wait.reset();
  if (mailbox.waits()) {
    bool ambiguous = false;
    const uint64_t since = TimeFromEpoch(word[kWaitEpoch], word[kWaitSince], &ambiguous);
    sample->wait = WaitState{word[kWaitSequence], word[kWaitResource],
                             static_cast<ResourceKind>(word[kWaitKind]), since};
  }
  sample->kernel = word[kKernelId];
  sample->launch = static_cast<LaunchState>(word[kLaunch]);
  sample->pause_asked = word[kPause] != 0;
  sample->resumes = word[kResumes];
  sample->paused = static_cast<PausedState>(word[kPaused]);
  sample->fault = static_cast<FaultType>(word[kFault]);
  sample->stack_free = stack_known ? std::optional<uint32_t>(word[kStackFree]) : std::nullopt;
  sample->node = mailbox.node;
  sample->role = mailbox.role;
  sample->corrupt = false;
  sample->in_use = (word[kWaypoint] | word[kHeartbeat] | word[kWaitSequence] | word[kKernelId] |
                    word[kLaunch] | word[kPaused] | word[kFault]) != 0 ||
                   stack_known;
}

uint32_t CheckOf(const char* watch) {
  uint32_t check = HANGSCOPE_CHECK_SEED;
  for (size_t i = 4; i < HANGSCOPE_WATCH_CHECKED_BYTES; ++i) {
    check = (check ^ static_cast<uint8_t>(watch[i])) * HANGSCOPE_CHECK_PRIME;
  }
  return check;
}

// A row of claims as many slots want.
uint64_t ClaimBytes(const WatchLayout& layout) {
  return (uint64_t{layout.hold_slots} + layout.provide_slots + 1) * 4;
}
uint64_t DetailBytes(const WatchLayout& layout) {
  return sizeof(hangscope_detail) + uint64_t{layout.debug_slots} * sizeof(hangscope_debug_value);
}

}  // namespace

Result<WatchReader> WatchReader::Open(const ScopeReader& scope) {
  WatchReader reader(scope);
  if (Status status = reader.ReadLayout(); !status.ok()) return status;
  reader.suspect_.assign(scope.layout().core_count, false);
  reader.stack_bytes_.assign(scope.layout().core_count, 0);
  return reader;
}

Status WatchReader::ReadInto(uint64_t address, std::span<char> bytes) {
  bytes_read_ += bytes.size();
  ++reads_;
  return scope_->target().Read(address, bytes);
}

// Everything below relies on what is checked here.
Status WatchReader::ReadLayout() {
  const ScopeLayout& scope = scope_->layout();
  char header[sizeof(hangscope_header)];
  if (Status status = ReadInto(scope.address, header); !status.ok()) return status;
  const uint32_t mailboxes_at = Load32(header + HEADER_FIELD(mailboxes_at), scope.order);
  const uint32_t watch_at = Load32(header + HEADER_FIELD(watch_at), scope.order);
  const std::string where =
      fmt::format("the scope at {:#x} of {}", scope.address, scope_->target().name());
  if (mailboxes_at == 0 || watch_at == 0) {
    return Status::NotFound(
        fmt::format("{} has no mailboxes: the program was built without HANGSCOPE_WATCH, or "
                    "records events only",
                    where));
  }
  const auto refuse = [&](const std::string& why) {
    return Status::Corrupt(
        fmt::format("what {} says of its mailboxes contradicts itself: {}; the program and "
                    "hangscope do not fit, or something wrote over it",
                    where, why));
  };
  const auto fits = [&](uint64_t at, uint64_t count, uint64_t stride, uint64_t bytes) {
    return at >= sizeof(hangscope_header) && at % 4 == 0 && stride % 4 == 0 && stride >= bytes &&
           stride <= kMostStride &&
           at + (count == 0 ? 0 : (count - 1) * stride + bytes) <= scope.scope_bytes;
  };
  constexpr uint32_t kLeast = HANGSCOPE_WATCH_LEAST_BYTES;
  if (!fits(watch_at, 1, kLeast, kLeast)) {
    return refuse(fmt::format("watch_at {} in a scope of {} bytes", watch_at, scope.scope_bytes));
  }
  char watch[sizeof(hangscope_watch)] = {};
  const auto known = std::min<uint64_t>(sizeof watch, scope.scope_bytes - watch_at);
  if (Status status = ReadInto(scope.address + watch_at, {watch, known}); !status.ok())
    return status;
  const auto u32 = [&](size_t at) { return Load32(watch + at, scope.order); };
  const uint32_t check = u32(WATCH_FIELD(check));
  if (check != CheckOf(watch))
    return refuse(
        fmt::format("its check is {:#010x} and should be {:#010x}", check, CheckOf(watch)));
  const uint32_t watch_bytes = u32(WATCH_FIELD(watch_bytes));
  if (watch_bytes < kLeast)
    return refuse(fmt::format("a watch of {} bytes; it has {} at least", watch_bytes, kLeast));
  const bool may_have_frames = std::min<uint64_t>(watch_bytes, known) == sizeof watch;
  WatchLayout& l = layout_;
  l.watch_at = scope.address + watch_at;
  l.features = u32(WATCH_FIELD(features));
  l.mailbox_stride = Load32(header + HEADER_FIELD(mailbox_stride), scope.order);
  l.node_count = u32(WATCH_FIELD(node_count));
  l.node_stride = u32(WATCH_FIELD(node_stride));
  l.detail_stride = u32(WATCH_FIELD(detail_stride));
  l.claim_stride = u32(WATCH_FIELD(claim_stride));
  l.hold_slots = Load16(watch + WATCH_FIELD(hold_slots), scope.order);
  l.provide_slots = Load16(watch + WATCH_FIELD(provide_slots), scope.order);
  l.debug_slots = u32(WATCH_FIELD(debug_slots));
  l.program_at = u32(WATCH_FIELD(program_at)) | uint64_t{u32(WATCH_FIELD(program_at) + 4)} << 32;
  const uint32_t nodes_at = u32(WATCH_FIELD(nodes_at));
  const uint32_t details_at = u32(WATCH_FIELD(details_at));
  const uint32_t claims_at = u32(WATCH_FIELD(claims_at));
  const uint32_t frames_at = may_have_frames ? u32(WATCH_FIELD(frames_at)) : 0;
  l.frame_stride = may_have_frames ? u32(WATCH_FIELD(frame_stride)) : 0;
  const uint64_t rows = uint64_t{scope.core_count} + scope.task_count;
  const auto block = [&](const char* what, uint64_t count, uint64_t stride, uint64_t at) {
    return refuse(fmt::format("{} {} of {} bytes from offset {} on in a scope of {} bytes", count,
                              what, stride, at, scope.scope_bytes));
  };
  if (!fits(mailboxes_at, scope.core_count, l.mailbox_stride, sizeof(hangscope_mailbox))) {
    return block("mailboxes", scope.core_count, l.mailbox_stride, mailboxes_at);
  }
  if (l.node_count == 0 || !fits(nodes_at, l.node_count, l.node_stride, sizeof(hangscope_node))) {
    return block("nodes", l.node_count, l.node_stride, nodes_at);
  }
  if (l.debug_slots != 0 &&
      (details_at == 0 || l.debug_slots > kMostStride || !std::has_single_bit(l.debug_slots))) {
    return refuse(fmt::format("debug rings of {} values", l.debug_slots));
  }
  if (details_at != 0 && !fits(details_at, scope.core_count, l.detail_stride, DetailBytes(l))) {
    return block("details", scope.core_count, l.detail_stride, details_at);
  }
  if (claims_at != 0 && !fits(claims_at, rows, l.claim_stride, ClaimBytes(l))) {
    return block("rows of claims", rows, l.claim_stride, claims_at);
  }
  if (frames_at != 0 && !fits(frames_at, rows, l.frame_stride, sizeof(hangscope_frame))) {
    return block("frames", rows, l.frame_stride, frames_at);
  }
  l.mailboxes_at = scope.address + mailboxes_at;
  l.nodes_at = scope.address + nodes_at;
  l.details_at = details_at == 0 ? 0 : scope.address + details_at;
  l.claims_at = claims_at == 0 ? 0 : scope.address + claims_at;
  l.frames_at = frames_at == 0 ? 0 : scope.address + frames_at;
  return {};
}

Status WatchReader::Poll(ScopeSample* sample) {
  sample->corruptions.clear();
  if (Status status = PollCores(sample); !status.ok()) return status;
  return PollTasks(sample);
}

Status WatchReader::PollCores(ScopeSample* sample) {
  const ScopeLayout& scope = scope_->layout();
  const uint64_t bytes =
      uint64_t{scope.core_count - 1} * layout_.mailbox_stride + sizeof(hangscope_mailbox);
  mailboxes_.resize(bytes);
  sample->cores.resize(scope.core_count);
  if (Status status = ReadInto(layout_.mailboxes_at, mailboxes_); !status.ok()) return status;
  for (uint32_t core = 0; core < scope.core_count; ++core) {
    const MailboxWords mailbox =
        LoadMailbox(mailboxes_.data() + uint64_t{core} * layout_.mailbox_stride, scope.order);
    const uint32_t stack_free = mailbox.word[kStackFree];
    const bool stack_fits = stack_free == HANGSCOPE_NOT_KNOWN || stack_free <= stack_bytes_[core];
    if (IsSound(mailbox, core, layout_.node_count) && stack_fits) [[likely]] {
      Decode(mailbox, &sample->cores[core]);
      suspect_[core] = false;
    } else {
      SampleAgain(core, mailboxes_.data() + uint64_t{core} * layout_.mailbox_stride, sample);
    }
  }
  return {};
}

Result<bool> WatchReader::IsThere() {
  const ScopeLayout& scope = scope_->layout();
  for (uint32_t core = 0; core < scope.core_count; ++core) {
    char bytes[sizeof(hangscope_mailbox)];
    if (Status status =
            ReadInto(layout_.mailboxes_at + uint64_t{core} * layout_.mailbox_stride, bytes);
        !status.ok())
      return status;
    const uint32_t guard = LoadMailbox(bytes, scope.order).word[kGuard];
    if (guard == (HANGSCOPE_MAILBOX_GUARD ^ core)) return true;
  }
  return false;
}

// A mailbox that is wrong at first sight: it may have changed while it was read. What is wrong in
// each of several looks is. One that was wrong in the poll before needs no more looks.
void WatchReader::SampleAgain(uint32_t core, const char* first, ScopeSample* sample) {
  MailboxWords mailbox = LoadMailbox(first, scope_->layout().order);
  CoreSample& into = sample->cores[core];
  const uint64_t address = layout_.mailboxes_at + uint64_t{core} * layout_.mailbox_stride;
  const int looks = suspect_[core] ? 1 : kLooks;
  for (int look = 0;; ++look) {
    const bool whole = scope_->target().IsKnown(address, sizeof(hangscope_mailbox));
    if (whole && IsBlank(mailbox)) {
      into = CoreSample{};
      suspect_[core] = false;
      return;
    }
    auto wrong = FindWrong(mailbox, core, layout_.node_count);
    if (!whole) wrong = WrongField(core, "mailbox", 0, "it did not arrive");
    const uint32_t stack_free = mailbox.word[kStackFree];
    if (!wrong && stack_free != HANGSCOPE_NOT_KNOWN && stack_free > StackBytes(core)) {
      wrong = WrongField(core, "stack_free", stack_free,
                         fmt::format("the stack has {} bytes", stack_bytes_[core]));
    }
    if (!wrong) {
      Decode(mailbox, &into);
      suspect_[core] = false;
      return;
    }
    char bytes[sizeof(hangscope_mailbox)];
    if (look + 1 == looks || !whole || !ReadInto(address, bytes).ok()) {
      into = CoreSample{};
      into.in_use = into.corrupt = true;
      suspect_[core] = true;
      sample->corruptions.push_back(std::move(*wrong));
      return;
    }
    mailbox = LoadMailbox(bytes, scope_->layout().order);
  }
}

// How large the core's stack is now: it may have been painted since. Where nobody says, any is
// right.
uint32_t WatchReader::StackBytes(uint32_t core) {
  char bytes[4] = {};
  const uint64_t at =
      layout_.details_at + uint64_t{core} * layout_.detail_stride + DETAIL_FIELD(stack_bytes);
  const bool read = layout_.details_at != 0 && ReadInto(at, bytes).ok();
  const uint32_t now = read ? Load32(bytes, scope_->layout().order) : 0;
  stack_bytes_[core] = now == 0 ? HANGSCOPE_NOT_KNOWN - 1 : now;
  return stack_bytes_[core];
}

Result<uint64_t> WatchReader::ReadBegun(uint32_t core) {
  char head[8];
  const uint64_t at = scope_->layout().RingAddress(core) + offsetof(hangscope_ring, head);
  if (Status status = ReadInto(at, head); !status.ok()) return status;
  return RecordsBegun(head, scope_->layout());
}

Status WatchReader::PollTasks(ScopeSample* sample) {
  const ScopeLayout& scope = scope_->layout();
  sample->tasks.resize(scope.task_count);
  sample->running_tasks.resize(scope.core_count);
  if (scope.task_count == 0) return {};
  sample->rings.resize(scope.core_count);
  tasks_.resize(uint64_t{scope.task_count - 1} * scope.task_stride + sizeof(hangscope_task));
  if (Status status = ReadInto(scope.address + scope.tasks_at, tasks_); !status.ok()) return status;
  for (uint32_t i = 0; i < scope.task_count; ++i) ReadTask(i, sample);
  for (uint32_t core = 0; core < scope.core_count; ++core) {
    char bytes[kRingBytes];
    if (Status status = ReadInto(scope.RingAddress(core), bytes); !status.ok()) return status;
    sample->running_tasks[core] = Load32(bytes + offsetof(hangscope_ring, last_task), scope.order);
    sample->rings[core] = {RecordsBegun(bytes, scope),
                           Load32(bytes + offsetof(hangscope_ring, ticks), scope.order)};
  }
  return {};
}

// One that is in the middle of a change keeps its odd sequence: there is no wait in it. What is
// wrong in it may be half of a change, too, and is looked at again between two looks at its
// sequence.
void WatchReader::ReadTask(uint32_t index, ScopeSample* sample) {
  const ScopeLayout& scope = scope_->layout();
  const char* const bytes = tasks_.data() + uint64_t{index} * scope.task_stride;
  TaskSample& task = sample->tasks[index];
  task = TaskSample{};
  task.record.index = index;
  task.record.sequence = Load32(bytes, scope.order);
  const uint32_t state = Load32(bytes + offsetof(hangscope_task, state), scope.order);
  task.record.task = Load32(bytes + offsetof(hangscope_task, task), scope.order);
  if ((task.record.sequence & 1) != 0) {
    task.in_use = true;
    return;
  }
  if (state == HANGSCOPE_TASK_NONE) return;
  task.in_use = true;
  TaskRecord record = scope_->DecodeTask(index, bytes);
  if (record.wrong) {
    ++reads_;
    bytes_read_ += sizeof(hangscope_task);
    auto steady = scope_->ReadTask(index);
    if (steady.ok())
      record = std::move(*steady);
    else
      record.wrong = Corruption{Corruption::Part::kTaskRecord, index, steady.status().message()};
  }
  if (record.is_changing) {
    task.record.sequence |= 1;
  } else if (record.wrong) {
    task.corrupt = true;
    sample->corruptions.push_back(std::move(*record.wrong));
  } else {
    task.in_use = record.wait.has_value();
    task.record = record.wait.value_or(task.record);
  }
}

Result<CoreDetail> WatchReader::ReadDetail(uint32_t core, std::vector<Corruption>* corruptions) {
  const ScopeLayout& scope = scope_->layout();
  if (layout_.details_at == 0)
    return Status::NotFound("the program was built without what keeps a core's details");
  if (core >= scope.core_count)
    return Status::NotFound(
        fmt::format("there is no core {}: there are {}", core, scope.core_count));
  char bytes[sizeof(hangscope_detail)];
  if (Status status = ReadInto(layout_.details_at + uint64_t{core} * layout_.detail_stride, bytes);
      !status.ok())
    return status;
  const auto u32 = [&](size_t at) { return Load32(bytes + at, scope.order); };
  const auto wide = [&](size_t at) { return u32(at) | uint64_t{u32(at + 4)} << 32; };
  const auto report = [&](const char* field, uint32_t value, const std::string& why) {
    corruptions->push_back(WrongField(core, field, value, why));
  };
  CoreDetail detail;
  CoreFault& fault = detail.fault;
  const uint32_t type = u32(FAULT_FIELD(type));
  if (type > HANGSCOPE_FAULT_GUARD)
    report("fault.type", type, "0 to 7 are types");
  else
    fault.type = static_cast<FaultType>(type);
  fault.reason = u32(FAULT_FIELD(reason));
  fault.kind = u32(FAULT_FIELD(kind));
  if (fault.type == FaultType::kBus &&
      (fault.reason == 0 || fault.reason >= HANGSCOPE_BUS_REASONS)) {
    report("fault.reason", fault.reason,
           fmt::format("1 to {} are reasons", HANGSCOPE_BUS_REASONS - 1));
    fault.reason = 0;
  }
  if (fault.type == FaultType::kBus &&
      (fault.kind < HANGSCOPE_BUS_READ || fault.kind > HANGSCOPE_BUS_INLINE_WRITE)) {
    report("fault.kind", fault.kind, "1 to 5 are kinds");
    fault.kind = 0;
  }
  fault.line = u32(FAULT_FIELD(line));
  fault.pc = wide(FAULT_FIELD(pc));
  fault.address = wide(FAULT_FIELD(address));
  fault.local = wide(FAULT_FIELD(local));
  fault.length = u32(FAULT_FIELD(length));
  fault.where = u32(FAULT_FIELD(where));
  fault.value = wide(FAULT_FIELD(value));
  if (fault.type != FaultType::kNone && !IsTime(u32(FAULT_FIELD(time)), u32(FAULT_FIELD(epoch)))) {
    report("fault.epoch", u32(FAULT_FIELD(epoch)),
           fmt::format("time {:#010x} is not of that quarter-wrap", u32(FAULT_FIELD(time))));
  } else {
    bool ambiguous = false;
    fault.time = TimeFromEpoch(u32(FAULT_FIELD(epoch)), u32(FAULT_FIELD(time)), &ambiguous);
  }
  fault.faults = u32(DETAIL_FIELD(faults));
  for (size_t i = 0; i < detail.delays.size(); ++i) {
    detail.delays[i] = u32(DETAIL_FIELD(delays) + 4 * i);
    detail.delays_done[i] = u32(DETAIL_FIELD(delays_done) + 4 * i);
  }
  detail.delay_seed = u32(DETAIL_FIELD(delay_seed));
  detail.stack_bytes = u32(DETAIL_FIELD(stack_bytes));
  detail.stack_kernel = u32(DETAIL_FIELD(stack_kernel));
  detail.debug_written = u32(DETAIL_FIELD(debug_next)) - u32(DETAIL_FIELD(debug_refused));
  const uint32_t lowest = u32(DETAIL_FIELD(stack_lowest));
  if (lowest != HANGSCOPE_NOT_KNOWN && detail.stack_bytes != 0) {
    if (lowest > detail.stack_bytes)
      report("stack_lowest", lowest, fmt::format("the stack has {} bytes", detail.stack_bytes));
    else
      detail.stack_lowest = lowest;
  }
  return detail;
}

Result<std::vector<NodeSample>> WatchReader::ReadNodes(std::vector<Corruption>* corruptions) {
  const ScopeLayout& scope = scope_->layout();
  std::string bytes(uint64_t{layout_.node_count - 1} * layout_.node_stride + sizeof(hangscope_node),
                    '\0');
  if (Status status = ReadInto(layout_.nodes_at, bytes); !status.ok()) return status;
  std::vector<NodeSample> nodes(layout_.node_count);
  for (uint32_t i = 0; i < layout_.node_count; ++i) {
    const char* const node = bytes.data() + uint64_t{i} * layout_.node_stride;
    nodes[i].x = Load16(node + offsetof(hangscope_node, x), scope.order);
    nodes[i].y = Load16(node + offsetof(hangscope_node, y), scope.order);
    nodes[i].debug_values = Load32(node + offsetof(hangscope_node, debug_order), scope.order);
    const uint32_t first = Load32(node + offsetof(hangscope_node, first_fault), scope.order);
    if (first > scope.core_count) {
      corruptions->push_back({Corruption::Part::kNode, i,
                              fmt::format("there are {} cores", scope.core_count), "first_fault",
                              fmt::format("{:#010x}", first)});
    } else if (first != 0) {
      nodes[i].first_fault = first - 1;
    }
  }
  if ((scope.features & HANGSCOPE_FEATURE_NO_ATOMICS) != 0) FindFirstFaults(&nodes);
  return nodes;
}

// Two cores may each have found the node's word free: the earlier one was first, and where their
// clocks cannot be compared, nobody knows.
void WatchReader::FindFirstFaults(std::vector<NodeSample>* nodes) {
  const ScopeLayout& scope = scope_->layout();
  std::vector<uint64_t> times(nodes->size(), UINT64_MAX);
  std::vector<uint32_t> faulty(nodes->size(), 0);
  for (NodeSample& node : *nodes) node.first_fault.reset();
  if (mailboxes_.empty()) return;
  for (uint32_t core = 0; core < scope.core_count; ++core) {
    const MailboxWords mailbox =
        LoadMailbox(mailboxes_.data() + uint64_t{core} * layout_.mailbox_stride, scope.order);
    if (suspect_[core] || mailbox.word[kFault] == 0 || mailbox.node >= nodes->size()) continue;
    std::vector<Corruption> ignored;
    const auto detail = ReadDetail(core, &ignored);
    if (!detail.ok() || !ignored.empty()) continue;
    ++faulty[mailbox.node];
    if (detail->fault.time >= times[mailbox.node]) continue;
    times[mailbox.node] = detail->fault.time;
    (*nodes)[mailbox.node].first_fault = core;
  }
  for (size_t i = 0; i < nodes->size(); ++i) {
    if (faulty[i] > 1 && !scope.shared_clock()) (*nodes)[i].first_fault.reset();
  }
}

Result<std::vector<ClaimRow>> WatchReader::ReadClaims() {
  const ScopeLayout& scope = scope_->layout();
  const uint64_t rows = uint64_t{scope.core_count} + scope.task_count;
  std::vector<ClaimRow> claims(rows);
  if (layout_.claims_at == 0) return claims;
  std::string bytes((rows - 1) * layout_.claim_stride + ClaimBytes(layout_), '\0');
  if (Status status = ReadInto(layout_.claims_at, bytes); !status.ok()) return status;
  for (uint64_t i = 0; i < rows; ++i) {
    const char* slot = bytes.data() + i * layout_.claim_stride;
    const auto take = [&](uint32_t count, std::vector<uint32_t>* into) {
      for (uint32_t n = 0; n < count; ++n, slot += 4) {
        const uint32_t resource = Load32(slot, scope.order);
        if (resource != 0) into->push_back(resource);
      }
    };
    take(layout_.hold_slots, &claims[i].holds);
    take(layout_.provide_slots, &claims[i].provides);
    claims[i].lost = Load32(slot, scope.order);
  }
  return claims;
}

Result<WaitFrame> WatchReader::ReadFrame(uint32_t row) {
  const ScopeLayout& scope = scope_->layout();
  if (layout_.frames_at == 0)
    return Status::NotFound("the program was built without the frames of its waits");
  if (row >= uint64_t{scope.core_count} + scope.task_count)
    return Status::NotFound(fmt::format("there is no core or task record {}", row));
  char bytes[sizeof(hangscope_frame)];
  if (Status status = ReadInto(layout_.frames_at + uint64_t{row} * layout_.frame_stride, bytes);
      !status.ok())
    return status;
  const auto u64 = [&](size_t at) { return Load64(bytes + at, scope.order); };
  return WaitFrame{u64(FRAME_FIELD(pc)), u64(FRAME_FIELD(ra)), u64(FRAME_FIELD(sp)),
                   u64(FRAME_FIELD(fp))};
}

// Pairs with the stores of wait_sequence: the one that began the wait stands behind the frame's,
// and the one that ends it in front of what the next wait stores.
bool WatchReader::IsSameWait(uint32_t core, uint32_t wait_sequence) {
  char bytes[4];
  const uint64_t at = layout_.mailboxes_at + uint64_t{core} * layout_.mailbox_stride +
                      offsetof(hangscope_mailbox, wait_sequence);
  return ReadInto(at, bytes).ok() && (wait_sequence & 1) != 0 &&
         Load32(bytes, scope_->layout().order) == wait_sequence;
}

// Each core's part is read twice: a value counts whose order is the same in both, for it is 0 while
// the value changes.
Result<std::vector<DebugValue>> WatchReader::ReadDebugRing(uint32_t node,
                                                           const ScopeSample& sample) {
  const ScopeLayout& scope = scope_->layout();
  std::vector<DebugValue> values;
  if (layout_.debug_slots == 0) return values;
  std::string looks[2];
  for (uint32_t core = 0; core < std::min<size_t>(scope.core_count, sample.cores.size()); ++core) {
    if (sample.cores[core].corrupt || sample.cores[core].node != node) continue;
    const uint64_t at =
        layout_.details_at + uint64_t{core} * layout_.detail_stride + sizeof(hangscope_detail);
    for (std::string& look : looks) {
      look.resize(uint64_t{layout_.debug_slots} * sizeof(hangscope_debug_value));
      if (Status status = ReadInto(at, look); !status.ok()) return status;
    }
    for (size_t slot = 0; slot < looks[0].size(); slot += sizeof(hangscope_debug_value)) {
      const uint32_t order = Load32(looks[0].data() + slot, scope.order);
      if (order == 0 || order != Load32(looks[1].data() + slot, scope.order)) continue;
      values.push_back({order, core, Load32(looks[0].data() + slot + 4, scope.order)});
    }
  }
  if (values.empty()) return values;
  // Orders wrap: what counts is how long ago.
  uint32_t newest = values[0].order;
  for (const DebugValue& value : values) {
    if (static_cast<int32_t>(value.order - newest) > 0) newest = value.order;
  }
  std::sort(values.begin(), values.end(), [&](const DebugValue& a, const DebugValue& b) {
    return std::pair(newest - a.order, a.core) < std::pair(newest - b.order, b.core);
  });
  return values;
}

Result<uint32_t> WatchReader::ReadSwitches() {
  char bytes[4];
  if (Status status = ReadInto(layout_.watch_at + WATCH_FIELD(switches), bytes); !status.ok())
    return status;
  return Load32(bytes, scope_->layout().order);
}

}  // namespace hangscope
