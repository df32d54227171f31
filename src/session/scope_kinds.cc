#include "session/scope_kinds.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "decode/event_format.h"
#include "hangscope/abi/kernel_events.h"
#include "hangscope/abi/record.h"
#include "hangscope/abi/scope.h"

namespace hangscope {
namespace {

// The fixed ids' names and classes, in the order of their ids.
struct FixedEvent {
  std::string_view name;
  std::string_view category;
};
#define HANGSCOPE_FIXED(name, class_name, ...) {#name, #class_name},
constexpr FixedEvent kOwnEvents[] = {HANGSCOPE_OWN_EVENTS(HANGSCOPE_FIXED)};
constexpr FixedEvent kKernelEvents[] = {HANGSCOPE_KERNEL_EVENTS(HANGSCOPE_FIXED)};
#undef HANGSCOPE_FIXED

// Null: the program's own.
const FixedEvent* FindFixed(uint32_t id) {
  const uint32_t own = id - HANGSCOPE_FIRST_OWN_ID;
  const uint32_t kernel = id - HANGSCOPE_FIRST_KERNEL_ID;
  if (id >= HANGSCOPE_FIRST_OWN_ID && own < std::size(kOwnEvents)) return &kOwnEvents[own];
  if (id >= HANGSCOPE_FIRST_KERNEL_ID && kernel < std::size(kKernelEvents)) return &kKernelEvents[kernel];
  return nullptr;
}

std::string LowerCase(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return lower;
}

constexpr std::pair<std::string_view, std::string_view> kPairs[] = {{"_begin", "_end"}, {"_enter", "_exit"}, {"_start", "_done"}};

// Whether the task that records this gives the core up next, and not for another of higher priority (docs/porting.md:
// a semaphore's count is the one afterwards, a mutex's holder the caller or whom it waits for).
bool BeginsWait(const ScopeEvent& event, std::string_view name) {
  const auto parameter = [&](uint32_t i) { return i < event.parameter_count ? event.parameters[i] : 0; };
  if (name == "task_delay") return true;
  if (name == "task_suspend") return parameter(0) == event.task;
  if (name == "semaphore_wait") return static_cast<int32_t>(parameter(1)) < 0;
  return name == "mutex_lock" && event.parameter_count > 1 && parameter(1) != event.task;
}

TraceFieldType TypeOf(EventField::Type type) {
  switch (type) {
    case EventField::Type::kUnsigned: return TraceFieldType::kUnsigned;
    case EventField::Type::kSigned: return TraceFieldType::kSigned;
    case EventField::Type::kBool: return TraceFieldType::kBool;
    case EventField::Type::kText: return TraceFieldType::kText;
    case EventField::Type::kPointer: return TraceFieldType::kPointer;
  }
  return TraceFieldType::kUnsigned;
}

// Nobody's number is 0, or hangscope's own.
std::optional<int64_t> TaskOf(const ScopeEvent& event, uint32_t parameter) {
  if (parameter >= event.parameter_count || event.parameters[parameter] == 0 || event.parameters[parameter] == HANGSCOPE_NO_TASK) return std::nullopt;
  return event.parameters[parameter];
}

}  // namespace

ScopeKinds::ScopeKinds(const ScopeCatalog& catalog, const WatchNames* names, uint32_t word_bytes, uint32_t parameters)
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
    const int bits = field.type == EventField::Type::kPointer ? static_cast<int>(word_bytes_) * 8 : field.bits;
    kind.fields.push_back({field.name, TypeOf(field.type), is_text ? 0 : bits});
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
    return role;
  }
  // One without its partner begins what never ends.
  for (const auto& [begin, end] : kPairs) {
    const bool begins = name.ends_with(begin);
    if (!begins && !name.ends_with(end)) continue;
    role.what = name.substr(0, name.size() - (begins ? begin : end).size());
    uint32_t partner = 0;
    if (role.what.empty() || catalog_.FindName(role.what + std::string(begins ? end : begin), &partner) == nullptr) continue;
    role.meaning = begins ? TraceMeaning::kEnter : TraceMeaning::kLeave;
    return role;
  }
  return role;
}

size_t ScopeKinds::Of(uint32_t id, std::vector<TraceEventKind>* kinds) {
  const auto [at, fresh] = index_.emplace(id, kinds->size());
  if (!fresh) return at->second;
  TraceEventKind kind = Describe(id);
  // A catalog may give one name to two ids.
  const auto same = [&](const TraceEventKind& other) { return other.name == kind.name; };
  if (std::any_of(kinds->begin(), kinds->end(), same)) kind.name += fmt::format(" ({})", id);
  roles_[id] = RoleOf(id);
  kind.meaning = roles_[id].meaning;
  kinds->push_back(std::move(kind));
  return at->second;
}

// "mutex queue_lock", "being resumed".
std::string ScopeKinds::WaitText(const ScopeEvent& event) const {
  const EventKind* const kind = catalog_.Find(event.id);
  const std::string name = catalog_.Name(event.id);
  if (name == "task_suspend") return "being resumed";
  if (name == "task_delay") return "time to pass";
  if (kind == nullptr || kind->fields.empty() || event.parameter_count == 0) return name;
  const uint32_t resource = event.parameters[0];
  return fmt::format("{} {}", kind->fields[0].name, names_ == nullptr ? fmt::format("{:#x}", resource) : names_->Resource(resource));
}

void ScopeKinds::FillSwitch(const ScopeEvent& event, TraceEvent* filled) {
  filled->from = TaskOf(event, 0);
  filled->to = TaskOf(event, 1);
  LastWait& last = last_waits_[event.core];
  if (filled->from && last.task && *last.task == *filled->from) {
    filled->from_waits = true;
    filled->what = last.what;
  }
  last = LastWait();
}

// Interrupts come between a task's word and its switch.
void ScopeKinds::NoteWait(const ScopeEvent& event) {
  const FixedEvent* const fixed = FindFixed(event.id);
  if (fixed != nullptr && (fixed->category == "ISR" || fixed->category == "META")) return;
  LastWait& last = last_waits_[event.core];
  last = LastWait();
  if (fixed != nullptr && event.task && BeginsWait(event, fixed->name)) last = {event.task, WaitText(event)};
}

void ScopeKinds::Fill(const ScopeEvent& event, const TraceEventKind& kind, TraceEvent* filled) {
  if (event.task) filled->task = *event.task;
  filled->values.clear();
  filled->values.reserve(kind.fields.size());
  if (catalog_.Find(event.id) == nullptr) {
    for (uint32_t i = 0; i < parameters_; ++i) {
      const bool known = i < event.parameter_count;
      filled->values.push_back({known ? event.parameters[i] : 0, {}, known});
    }
  } else {
    for (const FieldValue& field : catalog_.Fields(event, word_bytes_)) {
      const bool is_text = field.type == EventField::Type::kText;
      filled->values.push_back({field.bits, is_text ? CharactersOf(field.bits, 4) : "", field.known});
    }
  }
  const Role& role = roles_[event.id];
  switch (role.meaning) {
    case TraceMeaning::kSwitch: return FillSwitch(event, filled);
    case TraceMeaning::kWake: filled->to = TaskOf(event, 0); break;
    case TraceMeaning::kEnter: filled->what = role.what.empty() ? FormatFields(kind.format, kind.fields, filled->values) : role.what; break;
    default: break;
  }
  NoteWait(event);
}

}  // namespace hangscope
