#include "scope/scope_catalog.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/bytes.h"
#include "base/utf8.h"
#include "hangscope/abi/catalog.h"
#include "hangscope/abi/kernel_events.h"
#include "hangscope/abi/record.h"
#include "hangscope/abi/scope.h"
#include "model/event_format.h"

namespace hangscope {
namespace {

constexpr size_t kListHeaderBytes = 12;
constexpr size_t kEntryHeaderBytes = 12;
constexpr size_t kMostFields = ScopeEvent::kMostParameters;

struct TypeName {
  std::string_view name;
  EventField::Type type;
  int bits;
};
constexpr TypeName kTypes[] = {
    {"u8", EventField::Type::kUnsigned, 8},   {"i8", EventField::Type::kSigned, 8},
    {"u16", EventField::Type::kUnsigned, 16}, {"i16", EventField::Type::kSigned, 16},
    {"u32", EventField::Type::kUnsigned, 32}, {"i32", EventField::Type::kSigned, 32},
    {"u64", EventField::Type::kUnsigned, 64}, {"i64", EventField::Type::kSigned, 64},
    {"bool", EventField::Type::kBool, 32},    {"char4", EventField::Type::kText, 32},
    {"ptr", EventField::Type::kPointer, 0},
};

bool IsIdentifier(std::string_view text) {
  const auto fits = [](char c) {
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  };
  return !text.empty() && std::all_of(text.begin(), text.end(), fits);
}

// "u33" is a number's type that there is not, and no enumeration.
bool IsEnumeration(std::string_view type) {
  return IsIdentifier(type) && type.find_first_not_of("0123456789", 1) != std::string_view::npos;
}

// "type name"; nothing: no such type.
std::optional<EventField> ParseField(std::string_view text) {
  const size_t space = text.find(' ');
  if (space == std::string_view::npos || space + 1 >= text.size()) return std::nullopt;
  auto field = ScopeCatalog::ParseType(text.substr(0, space));
  if (field) field->name = text.substr(space + 1);
  return field;
}

// "type name,type name,"
std::optional<std::vector<EventField>> ParseFields(std::string_view text) {
  std::vector<EventField> fields;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    if (comma == std::string_view::npos || fields.size() == kMostFields) return std::nullopt;
    auto field = ParseField(text.substr(0, comma));
    if (!field) return std::nullopt;
    fields.push_back(std::move(*field));
    text.remove_prefix(comma + 1);
  }
  return fields;
}

// The lists of abi/kernel_events.h as text: "format", type, name, type, name
struct BuiltIn {
  std::string_view name;
  std::string_view rest;
};
#define HANGSCOPE_BUILT_IN(event_name, class_name, ...) {#event_name, #__VA_ARGS__},
constexpr BuiltIn kOwnEvents[] = {HANGSCOPE_OWN_EVENTS(HANGSCOPE_BUILT_IN)
                                      HANGSCOPE_HISTORY_EVENTS(HANGSCOPE_BUILT_IN)};
constexpr BuiltIn kKernelEvents[] = {HANGSCOPE_KERNEL_EVENTS(HANGSCOPE_BUILT_IN)};

// The enumeration of what a wait's kind is.
constexpr const char* kResourceKind = "resource_kind";

// What the fields of the kernel's events, and of hangscope's own, are numbers of.
uint32_t NamesOfKernelField(std::string_view field) {
  constexpr std::pair<std::string_view, uint32_t> kFields[] = {
      {"task", HANGSCOPE_CATALOG_TASK},          {"previous", HANGSCOPE_CATALOG_TASK},
      {"next", HANGSCOPE_CATALOG_TASK},          {"holder", HANGSCOPE_CATALOG_TASK},
      {"semaphore", HANGSCOPE_CATALOG_RESOURCE}, {"mutex", HANGSCOPE_CATALOG_RESOURCE},
      {"pipe", HANGSCOPE_CATALOG_RESOURCE},      {"queue", HANGSCOPE_CATALOG_RESOURCE},
      {"resource", HANGSCOPE_CATALOG_RESOURCE},  {"interrupt", HANGSCOPE_CATALOG_INTERRUPT},
      {"cause", HANGSCOPE_CATALOG_EXCEPTION},    {"previous_state", HANGSCOPE_CATALOG_TASK_STATE}};
  for (const auto& [name, kind] : kFields) {
    if (name == field) return kind;
  }
  return 0;
}

void NameKernelFields(EventKind* kind) {
  for (EventField& field : kind->fields) {
    field.names = NamesOfKernelField(field.name);
    if (field.name != "kind") continue;
    field.names = HANGSCOPE_CATALOG_ENUMERATION;
    field.enumeration = kResourceKind;
  }
}

EventKind FromBuiltIn(const BuiltIn& event) {
  const size_t end = event.rest.rfind('"');
  EventKind kind{std::string(event.name), std::string(event.rest.substr(1, end - 1)), {}};
  std::string fields;
  bool type = true;
  for (const char c : event.rest.substr(std::min(end + 2, event.rest.size()))) {
    if (c == ' ') continue;
    fields += c == ',' && type ? ' ' : c;
    if (c == ',') type = !type;
  }
  if (!fields.empty()) fields += ',';
  if (auto parsed = ParseFields(fields)) kind.fields = std::move(*parsed);
  NameKernelFields(&kind);
  return kind;
}

// Takes a text that ends with a zero byte; false: there is no end.
bool ScanText(std::string_view* rest, std::string* text) {
  const size_t end = rest->find('\0');
  if (end == std::string_view::npos) return false;
  text->assign(rest->substr(0, end));
  rest->remove_prefix(end + 1);
  return true;
}

// As the fields of any trace.
TraceField TraceFieldOf(const FieldValue& value) {
  constexpr TraceFieldType kSameOrder[] = {TraceFieldType::kUnsigned, TraceFieldType::kSigned,
                                           TraceFieldType::kBool, TraceFieldType::kText,
                                           TraceFieldType::kPointer};
  TraceField field{value.name, kSameOrder[static_cast<size_t>(value.type)], 64};
  if (!value.label.empty()) field.names = {{value.bits, value.label}};
  return field;
}

TraceValue TraceValueOf(const FieldValue& value) {
  const bool is_text = value.type == EventField::Type::kText;
  return {value.bits, is_text ? CharactersOf(value.bits, 4) : "", value.known};
}

}  // namespace

// A type that is none of ours is an enumeration's name.
std::optional<EventField> ScopeCatalog::ParseType(std::string_view text) {
  for (const TypeName& type : kTypes) {
    if (text == type.name) return EventField{"", type.type, type.bits};
  }
  if (!IsEnumeration(text)) return std::nullopt;
  return EventField{"", EventField::Type::kUnsigned, 32, HANGSCOPE_CATALOG_ENUMERATION,
                    std::string(text)};
}

ScopeCatalog::ScopeCatalog() {
  uint32_t id = HANGSCOPE_FIRST_OWN_ID;
  for (const BuiltIn& event : kOwnEvents) kinds_[id++] = FromBuiltIn(event);
  id = HANGSCOPE_FIRST_KERNEL_ID;
  for (const BuiltIn& event : kKernelEvents) kinds_[id++] = FromBuiltIn(event);
  for (uint32_t kind = 0; kind <= HANGSCOPE_RESOURCE_OUTSIDE; ++kind)
    enumerations_[kResourceKind][kind] = ResourceKindName(static_cast<ResourceKind>(kind));
}

Status ScopeCatalog::Add(std::string_view section) {
  while (!section.empty()) {
    // Padding between the pieces of different object files.
    if (section.size() >= 4 && section.substr(0, 4) == std::string_view("\0\0\0\0", 4)) {
      section.remove_prefix(4);
      continue;
    }
    if (section.size() < kListHeaderBytes)
      return Status::Corrupt("the catalog ends in the middle of a list");
    const bool big = Load32(section.data(), ByteOrder::kBig) == HANGSCOPE_CATALOG_MAGIC;
    const ByteOrder order = big ? ByteOrder::kBig : ByteOrder::kLittle;
    if (Load32(section.data(), order) != HANGSCOPE_CATALOG_MAGIC)
      return Status::Corrupt("the catalog has something else where a list should begin");
    const uint32_t version = Load32(section.data() + 4, order);
    const uint32_t bytes = Load32(section.data() + 8, order);
    if (version != HANGSCOPE_CATALOG_VERSION) {
      return Status::Corrupt(
          fmt::format("the catalog has version {}, and this hangscope reads version {}; use the "
                      "hangscope that belongs to the program",
                      version, HANGSCOPE_CATALOG_VERSION));
    }
    if (bytes < kListHeaderBytes || bytes > section.size()) {
      return Status::Corrupt(fmt::format("the catalog has a list of {} bytes where {} are left",
                                         bytes, section.size()));
    }
    if (Status status = AddList(section.substr(kListHeaderBytes, bytes - kListHeaderBytes), big);
        !status.ok())
      return status;
    section.remove_prefix(std::min<size_t>(section.size(), (size_t{bytes} + 3) / 4 * 4));
  }
  return {};
}

Status ScopeCatalog::AddList(std::string_view list, bool big) {
  const ByteOrder order = big ? ByteOrder::kBig : ByteOrder::kLittle;
  while (!list.empty()) {
    if (list.size() < kEntryHeaderBytes)
      return Status::Corrupt("the catalog has an entry that is cut off");
    const uint32_t kind = Load32(list.data(), order);
    const uint32_t id = Load32(list.data() + 4, order);
    const uint32_t classes = Load32(list.data() + 8, order);
    const size_t before = list.size();
    list.remove_prefix(kEntryHeaderBytes);
    EventKind event;
    std::string fields;
    if (!ScanText(&list, &event.name) || !ScanText(&list, &event.format) ||
        !ScanText(&list, &fields)) {
      return Status::Corrupt(
          fmt::format("the catalog's entry for id {} has a text without an end", id));
    }
    const size_t padding = (4 - (before - list.size()) % 4) % 4;
    list.remove_prefix(std::min(padding, list.size()));
    if (kind != HANGSCOPE_CATALOG_EVENT) {
      // Of a later version, too: it is kept, and nobody asks for it.
      AddEntry(
          {kind, id, classes, std::move(event.name), std::move(event.format), std::move(fields)});
      continue;
    }
    if (id == 0 || id > HANGSCOPE_ID_MASK)
      return Status::Corrupt(
          fmt::format("the catalog has an event of id {}: 1 to {} are ids", id, HANGSCOPE_ID_MASK));
    auto parsed = ParseFields(fields);
    if (!parsed)
      return Status::Corrupt(fmt::format("the catalog's fields of event {} are not readable: '{}'",
                                         id, Printable(fields, 100)));
    event.fields = std::move(*parsed);
    if (const EventKind* const fixed = id < HANGSCOPE_FIRST_USER_ID ? Find(id) : nullptr;
        fixed != nullptr && fixed->name == event.name) {
      NameKernelFields(&event);
    }
    kinds_[id] = std::move(event);
  }
  return {};
}

// The same list may come twice.
void ScopeCatalog::AddEntry(CatalogEntry entry) {
  if (entry.kind == HANGSCOPE_CATALOG_ENUMERATION) {
    enumerations_[entry.text].emplace(entry.id, std::move(entry.name));
    return;
  }
  const auto [begin, end] = entries_.equal_range({entry.kind, entry.id});
  const auto same = [&](const auto& known) {
    return known.second.name == entry.name && known.second.where == entry.where;
  };
  if (std::any_of(begin, end, same)) return;
  entries_.emplace(std::pair{entry.kind, entry.id}, std::move(entry));
}

void ScopeCatalog::SetGiven(const std::vector<GivenName>& names) {
  given_.clear();
  for (const GivenName& name : names) {
    if (!name.text.empty())
      given_[{name.kind, name.id}] = {name.kind, name.id, 0, name.text, "", ""};
  }
}

const CatalogEntry* ScopeCatalog::FindEntry(uint32_t kind, uint32_t id) const {
  if (const auto given = given_.find({kind, id}); given != given_.end()) return &given->second;
  const auto at = entries_.lower_bound({kind, id});
  return at == entries_.end() || at->first != std::pair{kind, id} ? nullptr : &at->second;
}

std::vector<const CatalogEntry*> ScopeCatalog::Entries(uint32_t kind) const {
  std::vector<const CatalogEntry*> found;
  for (auto at = entries_.lower_bound({kind, 0}); at != entries_.end() && at->first.first == kind;
       ++at)
    found.push_back(&at->second);
  return found;
}

// Two tasks may have one name, so theirs is told with the number.
std::string ScopeCatalog::LabelOf(const EventField& field, uint64_t bits) const {
  if (field.names == 0 || bits > UINT32_MAX) return {};
  const auto id = static_cast<uint32_t>(bits);
  if (field.names == HANGSCOPE_CATALOG_ENUMERATION) {
    const auto known = enumerations_.find(field.enumeration);
    if (known == enumerations_.end()) return {};
    const auto value = known->second.find(id);
    return value == known->second.end() ? std::string() : value->second;
  }
  const CatalogEntry* const entry = FindEntry(field.names, id);
  if (entry == nullptr && field.names == HANGSCOPE_CATALOG_RESOURCE && id >> 16 != 0) {
    const CatalogEntry* const of_node = FindEntry(HANGSCOPE_CATALOG_NODE_RESOURCE, id & 0xffffu);
    if (of_node != nullptr) return fmt::format("{} of node {}", of_node->name, (id >> 16) - 1);
  }
  if (entry == nullptr || entry->name.empty()) return {};
  const bool by_name =
      field.names == HANGSCOPE_CATALOG_RESOURCE || field.names == HANGSCOPE_CATALOG_TASK_STATE;
  return by_name ? entry->name : fmt::format("{} {}", id, entry->name);
}

std::map<uint32_t, std::string> ScopeCatalog::NamesOfKind(uint32_t kind) const {
  std::map<uint32_t, std::string> names;
  for (auto at = given_.lower_bound({kind, 0}); at != given_.end() && at->first.first == kind; ++at)
    names.emplace(at->first.second, at->second.name);
  for (const CatalogEntry* const entry : Entries(kind)) names.emplace(entry->id, entry->name);
  return names;
}

std::vector<std::pair<uint64_t, std::string>> ScopeCatalog::NamesOf(const EventField& field) const {
  std::vector<std::pair<uint64_t, std::string>> names;
  if (field.names == HANGSCOPE_CATALOG_ENUMERATION) {
    const auto known = enumerations_.find(field.enumeration);
    if (known != enumerations_.end()) names.assign(known->second.begin(), known->second.end());
    return names;
  }
  if (field.names == 0) return names;
  for (const auto& [id, name] : NamesOfKind(field.names))
    names.emplace_back(id, LabelOf(field, id));
  return names;
}

const EventKind* ScopeCatalog::Find(uint32_t id) const {
  const auto at = kinds_.find(id);
  return at == kinds_.end() ? nullptr : &at->second;
}

const EventKind* ScopeCatalog::FindName(std::string_view name, uint32_t* id) const {
  for (const auto& [number, kind] : kinds_) {
    if (kind.name != name) continue;
    *id = number;
    return &kind;
  }
  return nullptr;
}

std::string ScopeCatalog::Name(uint32_t id) const {
  const EventKind* kind = Find(id);
  return kind == nullptr ? fmt::format("event {}", id) : kind->name;
}

std::vector<FieldValue> ScopeCatalog::Fields(const ScopeEvent& event, uint32_t word_bytes) const {
  std::vector<FieldValue> values;
  const EventKind* kind = Find(event.id);
  if (kind == nullptr) return values;
  uint32_t at = 0;
  for (const EventField& field : kind->fields) {
    const FieldBits value = ExtractField(field, event, word_bytes, &at);
    values.push_back({field.name, field.type, value.bits, value.known,
                      value.known ? LabelOf(field, value.bits) : std::string()});
  }
  return values;
}

std::string ScopeCatalog::Format(const ScopeEvent& event, uint32_t word_bytes) const {
  const EventKind* kind = Find(event.id);
  if (kind == nullptr) {
    std::vector<uint32_t> parameters(event.parameters.begin(),
                                     event.parameters.begin() + event.parameter_count);
    return fmt::format("({})", fmt::join(parameters, ", "));
  }
  std::vector<TraceField> fields;
  std::vector<TraceValue> values;
  for (const FieldValue& value : Fields(event, word_bytes)) {
    fields.push_back(TraceFieldOf(value));
    values.push_back(TraceValueOf(value));
  }
  return FormatFields(kind->format, fields, values);
}

}  // namespace hangscope
