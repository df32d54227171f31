#include "trace/scope_kinds.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "hangscope/abi/kernel_events.h"
#include "hangscope/abi/record.h"
#include "hangscope/abi/scope.h"
#include "model/event_format.h"

namespace hangscope {
namespace {

constexpr size_t kMostWaitTexts = 4096;

// The fixed ids' names and classes, in the order of their ids.
struct FixedEvent {
  std::string_view name;
  std::string_view category;
};
#define HANGSCOPE_FIXED(name, class_name, ...) {#name, #class_name},
constexpr FixedEvent kOwnEvents[] = {HANGSCOPE_OWN_EVENTS(HANGSCOPE_FIXED)
                                         HANGSCOPE_HISTORY_EVENTS(HANGSCOPE_FIXED)};
constexpr FixedEvent kKernelEvents[] = {HANGSCOPE_KERNEL_EVENTS(HANGSCOPE_FIXED)};
#undef HANGSCOPE_FIXED

// Null: the program's own.
const FixedEvent* FindFixed(uint32_t id) {
  const uint32_t own = id - HANGSCOPE_FIRST_OWN_ID;
  const uint32_t kernel = id - HANGSCOPE_FIRST_KERNEL_ID;
  if (id >= HANGSCOPE_FIRST_OWN_ID && own < std::size(kOwnEvents)) return &kOwnEvents[own];
  if (id >= HANGSCOPE_FIRST_KERNEL_ID && kernel < std::size(kKernelEvents))
    return &kKernelEvents[kernel];
  return nullptr;
}

bool IsHistoryBegin(uint32_t id) {
  return id == HANGSCOPE_ID_WAIT_BEGIN ||
         (id > HANGSCOPE_ID_BEFORE_BUS && id < HANGSCOPE_ID_BUS_END);
}
bool IsHistoryEnd(uint32_t id) { return id == HANGSCOPE_ID_WAIT_END || id == HANGSCOPE_ID_BUS_END; }

std::string LowerCase(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return lower;
}

constexpr std::pair<std::string_view, std::string_view> kPairs[] = {
    {"_begin", "_end"}, {"_enter", "_exit"}, {"_start", "_done"}};

TraceFieldType TypeOf(EventField::Type type) {
  switch (type) {
    case EventField::Type::kUnsigned:
      return TraceFieldType::kUnsigned;
    case EventField::Type::kSigned:
      return TraceFieldType::kSigned;
    case EventField::Type::kBool:
      return TraceFieldType::kBool;
    case EventField::Type::kText:
      return TraceFieldType::kText;
    case EventField::Type::kPointer:
      return TraceFieldType::kPointer;
  }
  return TraceFieldType::kUnsigned;
}

// Nobody's number is 0, or hangscope's own.
std::optional<int64_t> TaskOf(const ScopeEvent& event, uint32_t parameter) {
  if (parameter >= event.parameter_count || event.parameters[parameter] == 0 ||
      event.parameters[parameter] == HANGSCOPE_NO_TASK)
    return std::nullopt;
  return event.parameters[parameter];
}

}  // namespace

ScopeKinds::ScopeKinds(const ScopeCatalog& catalog, const WatchNames* names, uint32_t word_bytes,
                       uint32_t parameters)
    : catalog_(catalog), names_(names), word_bytes_(word_bytes), parameters_(parameters) {}

TraceEventKind ScopeKinds::Describe(uint32_t id) const {
  TraceEventKind kind;
  kind.name = catalog_.Name(id);
  const FixedEvent* const fixed = FindFixed(id);
  kind.category = fixed == nullptr ? "user" : LowerCase(fixed->category);
  const EventKind* const known = catalog_.Find(id);
  if (known == nullptr) {
    for (uint32_t i = 0; i < parameters_; ++i) kind.fields.push_back({fmt::format("p{}", i)});
    return kind;
  }
  kind.format = known->format;
  for (const EventField& field : known->fields) {
    const bool is_text = field.type == EventField::Type::kText;
    const int bits =
        field.type == EventField::Type::kPointer ? static_cast<int>(word_bytes_) * 8 : field.bits;
    kind.fields.push_back(
        {field.name, TypeOf(field.type), is_text ? 0 : bits, catalog_.NamesOf(field)});
    const bool is_address = field.name == "address" || field.name == "resource";
    if (kind.category == "history" && is_address && kind.fields.back().names.empty())
      kind.fields.back().type = TraceFieldType::kPointer;
  }
  return kind;
}

ScopeKinds::Role ScopeKinds::RoleOf(uint32_t id) const {
  const std::string name = catalog_.Name(id);
  Role role;
  if (FindFixed(id) != nullptr) {
    if (id == HANGSCOPE_ID_TASK_SWITCH) role.meaning = TraceMeaning::kSwitch;
    if (name == "task_resume") role.meaning = TraceMeaning::kWake;
    if (name == "isr_enter") role.meaning = TraceMeaning::kEnter;
    if (name == "isr_exit") role.meaning = TraceMeaning::kLeave;
    if (name == "queue_send" || name == "queue_receive" || id == HANGSCOPE_ID_COUNTER) {
      role.meaning = TraceMeaning::kCounter;
      role.counter = "fill";
    }
    if (id == HANGSCOPE_ID_WAYPOINT) role.meaning = TraceMeaning::kState;
    if (IsHistoryBegin(id)) role.meaning = TraceMeaning::kEnter;
    if (IsHistoryEnd(id)) role.meaning = TraceMeaning::kLeave;
    return role;
  }
  // One without its partner begins what never ends.
  for (const auto& [begin, end] : kPairs) {
    const bool begins = name.ends_with(begin);
    if (!begins && !name.ends_with(end)) continue;
    role.what = name.substr(0, name.size() - (begins ? begin : end).size());
    uint32_t partner = 0;
    if (role.what.empty() ||
        catalog_.FindName(role.what + std::string(begins ? end : begin), &partner) == nullptr)
      continue;
    role.meaning = begins ? TraceMeaning::kEnter : TraceMeaning::kLeave;
    return role;
  }
  return role;
}

ScopeKinds::Says ScopeKinds::SaysOf(uint32_t id) {
  const FixedEvent* const fixed = FindFixed(id);
  if (fixed == nullptr) return Says::kOther;
  // Interrupts come between a task's word and its switch.
  if (fixed->category == "ISR" || fixed->category == "META" || fixed->category == "HISTORY")
    return Says::kNothing;
  if (fixed->name == "task_delay") return Says::kDelays;
  if (fixed->name == "task_suspend") return Says::kSuspends;
  if (fixed->name == "semaphore_wait") return Says::kWaitsForSemaphore;
  if (fixed->name == "mutex_lock") return Says::kLocksMutex;
  return Says::kOther;
}

const ScopeKinds::Known* ScopeKinds::Know(uint32_t id, std::vector<TraceEventKind>* kinds) {
  const auto [at, fresh] = known_.try_emplace(id);
  Known& known = at->second;
  if (!fresh) return &known;
  known.number = kinds->size();
  known.entry = catalog_.Find(id);
  known.role = RoleOf(id);
  known.says = SaysOf(id);
  TraceEventKind kind = Describe(id);
  kind.meaning = known.role.meaning;
  kind.counter = known.role.counter;
  kind.also_event = !kind.counter.empty() && id != HANGSCOPE_ID_COUNTER;
  kind.of_track = IsHistoryBegin(id) || IsHistoryEnd(id);
  // The catalog of another core's program has the same.
  const auto twin = std::find(kinds->begin(), kinds->end(), kind);
  if (twin != kinds->end() && own_.insert(twin - kinds->begin()).second) {
    known.number = static_cast<size_t>(twin - kinds->begin());
    return &known;
  }
  own_.insert(static_cast<ptrdiff_t>(kinds->size()));
  // A catalog may give one name to two ids.
  const auto same = [&](const TraceEventKind& other) { return other.name == kind.name; };
  if (std::any_of(kinds->begin(), kinds->end(), same)) kind.name += fmt::format(" ({})", id);
  kinds->push_back(std::move(kind));
  return &known;
}

std::string ScopeKinds::ResourceText(uint32_t resource) const {
  return names_ == nullptr ? fmt::format("{:#x}", resource) : names_->Resource(resource);
}

// "mutex queue_lock", "being resumed", "waiting for cb3 of (1,2)", "queue jobs".
std::string ScopeKinds::WaitText(uint32_t id, uint32_t resource, uint32_t wait_kind) const {
  if (id == HANGSCOPE_ID_COUNTER) return ResourceText(resource);
  if (id == HANGSCOPE_ID_WAIT_BEGIN) {
    const auto kind = static_cast<ResourceKind>(wait_kind);
    return "waiting for " +
           (names_ == nullptr ? ResourceText(resource) : names_->WaitedFor(kind, resource));
  }
  const std::string name = catalog_.Name(id);
  if (name == "task_suspend") return "being resumed";
  if (name == "task_delay") return "time to pass";
  const EventKind* const kind = catalog_.Find(id);
  if (kind == nullptr || kind->fields.empty()) return name;
  return fmt::format("{} {}", kind->fields[0].name, ResourceText(resource));
}

// Tasks wait for few things, over and over.
void ScopeKinds::AddWaitText(const LastWait& wait, std::string* text) {
  const uint64_t key = (uint64_t{wait.id} | uint64_t{wait.kind} << 16) << 32 | wait.resource;
  const auto known = wait_texts_.find(key);
  if (known != wait_texts_.end()) {
    *text += known->second;
    return;
  }
  const std::string fresh = WaitText(wait.id, wait.resource, wait.kind);
  *text += fresh;
  if (wait_texts_.size() < kMostWaitTexts) wait_texts_.emplace(key, fresh);
}

ScopeKinds::LastWait& ScopeKinds::LastWaitOf(uint32_t core) {
  if (last_waits_.size() <= core) last_waits_.resize(size_t{core} + 1);
  return last_waits_[core];
}

void ScopeKinds::FillSwitch(const ScopeEvent& event, TraceEvent* filled) {
  filled->from = TaskOf(event, 0);
  filled->to = TaskOf(event, 1);
  LastWait& last = LastWaitOf(event.core);
  if (filled->from && last.task && *last.task == *filled->from) {
    filled->from_waits = true;
    AddWaitText(last, &filled->what);
  }
  last = LastWait();
}

// Whether the task that records this gives the core up next, and not for another of higher priority
// (docs/porting.md: a semaphore's count is the one afterwards, a mutex's holder the caller or whom
// it waits for).
bool ScopeKinds::BeginsWait(const ScopeEvent& event, Says says) {
  const auto parameter = [&](uint32_t i) {
    return i < event.parameter_count ? event.parameters[i] : 0;
  };
  switch (says) {
    case Says::kNothing:
    case Says::kOther:
      return false;
    case Says::kDelays:
      return true;
    case Says::kSuspends:
      return parameter(0) == event.task;
    case Says::kWaitsForSemaphore:
      return static_cast<int32_t>(parameter(1)) < 0;
    case Says::kLocksMutex:
      return event.parameter_count > 1 && parameter(1) != event.task;
  }
  return false;
}

void ScopeKinds::NoteWait(const ScopeEvent& event, Says says) {
  if (says == Says::kNothing) return;
  LastWait& last = LastWaitOf(event.core);
  last = LastWait();
  if (event.task && BeginsWait(event, says)) last = {event.task, event.id, event.parameters[0]};
}

void ScopeKinds::FillValues(const ScopeEvent& event, const Known& known, TraceEvent* filled) const {
  filled->values.resize(known.entry == nullptr ? parameters_ : known.entry->fields.size());
  uint32_t at = 0;
  for (size_t i = 0; i < filled->values.size(); ++i) {
    TraceValue& value = filled->values[i];
    const EventField* const field = known.entry == nullptr ? nullptr : &known.entry->fields[i];
    const FieldBits taken = field != nullptr ? ExtractField(*field, event, word_bytes_, &at)
                            : i < event.parameter_count ? FieldBits{event.parameters[i], true}
                                                        : FieldBits();
    value.bits = taken.bits;
    value.known = taken.known;
    value.text.clear();
    if (field != nullptr && field->type == EventField::Type::kText)
      value.text = CharactersOf(taken.bits, 4);
  }
}

void ScopeKinds::FillBegin(const ScopeEvent& event, const Known& known, const TraceEventKind& kind,
                           TraceEvent* filled) {
  constexpr std::string_view kBegin = "_begin";
  if (event.id == HANGSCOPE_ID_WAIT_BEGIN) {
    AddWaitText({{}, event.id, event.parameters[0], event.parameters[1] & 0xffffu}, &filled->what);
  } else if (kind.of_track) {
    filled->what = kind.name.substr(0, kind.name.rfind(kBegin));
  } else if (known.role.what.empty()) {
    filled->what = FormatFields(kind.format, kind.fields, filled->values);
  } else {
    filled->what = known.role.what;
  }
}

void ScopeKinds::Fill(const ScopeEvent& event, std::vector<TraceEventKind>* kinds,
                      TraceEvent* filled) {
  const Known& known = *Know(event.id, kinds);
  filled->kind = known.number;
  if (event.task) filled->task = *event.task;
  FillValues(event, known, filled);
  switch (known.role.meaning) {
    case TraceMeaning::kSwitch:
      return FillSwitch(event, filled);
    case TraceMeaning::kWake:
      filled->to = TaskOf(event, 0);
      break;
    case TraceMeaning::kCounter:
      filled->count = event.parameters[1];
      AddWaitText({{}, event.id, event.parameters[0]}, &filled->what);
      break;
    case TraceMeaning::kState:
      filled->what = WatchNames::Waypoint(event.parameters[0]);
      if (names_ != nullptr) filled->where = names_->WaypointPlace(event.parameters[0]);
      break;
    case TraceMeaning::kEnter:
      FillBegin(event, known, (*kinds)[known.number], filled);
      break;
    default:
      break;
  }
  NoteWait(event, known.says);
}

}  // namespace hangscope
