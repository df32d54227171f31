#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "hangscope/abi/catalog.h"
#include "scope/scope_text.h"
#include "verdict/json.h"

namespace hangscope {
namespace {

using Json = nlohmann::ordered_json;

Json Typed(const char* type) { return {{"type", type}, {"version", kJsonVersion}}; }

std::string Hex(uint64_t value) { return fmt::format("{:#x}", value); }

Json NanosecondsOrNull(const ScopeLayout& layout, uint64_t time) {
  const auto ns = layout.Nanoseconds(time);
  return ns ? Json(*ns) : Json(nullptr);
}

Json FieldJson(const FieldValue& field) {
  if (!field.known) return nullptr;
  switch (field.type) {
    case EventField::Type::kSigned:
      return static_cast<int64_t>(field.bits);
    case EventField::Type::kBool:
      return field.bits != 0;
    case EventField::Type::kPointer:
      return Hex(field.bits);
    case EventField::Type::kText: {
      std::string text;
      for (int i = 0; i < 4; ++i) text.push_back(static_cast<char>(field.bits >> 8 * i));
      while (!text.empty() && text.back() == '\0') text.pop_back();
      return text;
    }
    case EventField::Type::kUnsigned:
      break;
  }
  return field.bits;
}

}  // namespace

std::string ScopeJson(const ScopeLayout& layout) {
  Json json = Typed("scope");
  json["abi"] = fmt::format("{}.{}", layout.major, layout.minor);
  json["byte_order"] = layout.order == ByteOrder::kBig ? "big" : "little";
  json["word_bytes"] = layout.word_bytes;
  json["record_bytes"] = layout.record_bytes;
  json["ring_capacity"] = layout.ring_capacity;
  json["core_count"] = layout.core_count;
  json["task_count"] = layout.task_count;
  json["features"] = layout.features;
  json["clock_kind"] = layout.clock_kind;
  json["clock_hz"] = layout.clock_hz;
  json["boots"] = layout.boots;
  json["pid"] = layout.pid;
  json["lost_threads"] = layout.lost_threads;
  json["unknown_settings"] = layout.unknown_settings;
  return JsonLine(json);
}

std::string MemoryJson(const std::string& name, const std::string& unread) {
  Json json = Typed("memory");
  json["name"] = name;
  if (!unread.empty()) json["unread"] = unread;
  return JsonLine(json);
}

std::string ScopeCoreJson(const ScopeCore& core) {
  const EventCounts& counts = core.counts;
  Json json = Typed("core");
  json.update(Json{{"core", core.index},
                   {"name", core.name},
                   {"owner", core.owner},
                   {"in_use", core.in_use},
                   {"frozen", core.frozen},
                   {"emitted", counts.emitted},
                   {"returned", counts.returned},
                   {"overwritten", counts.overwritten},
                   {"torn", counts.torn},
                   {"refused", counts.refused},
                   {"pending", counts.pending},
                   {"unread", counts.unread}});
  if (core.records_until_frozen) json["records_until_frozen"] = *core.records_until_frozen;
  return JsonLine(json);
}

std::string TaskWaitJson(const TaskWait& task, const ScopeLayout& layout,
                         const ScopeCatalog& catalog) {
  Json json = Typed("task");
  json.update(Json{{"record", task.index},
                   {"sequence", task.sequence},
                   {"task", task.task},
                   {"state", task.state == TaskState::kWaiting ? "waiting" : "ready"}});
  if (const auto* const named = catalog.FindEntry(HANGSCOPE_CATALOG_TASK, task.task))
    json["name"] = named->name;
  if (task.state == TaskState::kWaiting) {
    json["kind"] = ResourceKindName(task.kind);
    json["resource"] = Hex(task.resource);
    json["holder"] = task.holder ? Json(*task.holder) : Json(nullptr);
    json["since_ticks"] = Hex(task.since);
    json["since_ns"] = NanosecondsOrNull(layout, task.since);
  }
  return JsonLine(json);
}

std::string ScopeEventJson(const ScopeEvent& event, const ScopeLayout& layout,
                           const ScopeCatalog& catalog) {
  Json json = Typed("event");
  json.update(Json{{"core", event.core},
                   {"sequence", event.sequence},
                   {"age", event.age},
                   {"ticks", Hex(event.time)}});
  json["ns"] = NanosecondsOrNull(layout, event.time);
  json["ambiguous"] = event.ambiguous;
  json["task"] = event.task ? Json(*event.task) : Json(nullptr);
  json["id"] = event.id;
  json["name"] = catalog.Name(event.id);
  json["parameters"] = Json::array();
  for (uint32_t i = 0; i < event.parameter_count; ++i)
    json["parameters"].push_back(event.parameters[i]);
  if (catalog.Find(event.id) != nullptr) {
    json["fields"] = Json::object();
    for (const FieldValue& field : catalog.Fields(event, layout.word_bytes))
      json["fields"][field.name] = FieldJson(field);
    json["text"] = catalog.Format(event, layout.word_bytes);
  }
  return JsonLine(json);
}

std::string EventLossJson(const EventLoss& loss) {
  Json json = Typed("missing");
  json.update(Json{{"core", loss.core},
                   {"begin", loss.begin},
                   {"end", loss.end},
                   {"age", loss.age},
                   {"reason", EventLossReasonName(loss.reason)}});
  return JsonLine(json);
}

std::string CorruptionJson(const Corruption& corruption) {
  Json json = Typed("corruption");
  json["where"] = CorruptPart(corruption);
  json["what"] = CorruptField(corruption);
  return JsonLine(json);
}

}  // namespace hangscope
