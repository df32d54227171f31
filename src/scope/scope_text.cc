#include "scope/scope_text.h"

#include <fmt/format.h>

#include "base/utf8.h"
#include "scope/watch_names.h"

namespace hangscope {

std::string ScopeTimeText(uint64_t time, bool ambiguous, const ScopeLayout& layout) {
  const auto ns = layout.Nanoseconds(time);
  const std::string text =
      ns ? fmt::format("{:.6f}", static_cast<double>(*ns) / 1e9) : fmt::format("{} ticks", time);
  return (ambiguous ? "~" : "") + text;
}

std::string ScopeCoreText(const ScopeCore& core) {
  const EventCounts& counts = core.counts;
  std::string text = fmt::format("core {}", core.index);
  if (!core.name.empty()) text += fmt::format("  {}", Printable(core.name));
  text += fmt::format("  owner {}  emitted {}: returned {}, overwritten {}, torn {}, refused {}",
                      core.owner, counts.emitted, counts.returned, counts.overwritten, counts.torn,
                      counts.refused);
  if (counts.pending != 0) text += fmt::format(", pending {}", counts.pending);
  if (counts.unread != 0) text += fmt::format(", unread {}", counts.unread);
  if (core.frozen) text += "; frozen";
  if (core.records_until_frozen)
    text += fmt::format("; freezes after {} more", *core.records_until_frozen);
  return text + "\n";
}

std::string TaskWaitText(const TaskWait& task, const ScopeLayout& layout,
                         const ScopeCatalog& catalog) {
  const WatchNames names(catalog, nullptr, 0);
  const std::string who = names.Task(task.task);
  if (task.state != TaskState::kWaiting) return who + "  ready\n";
  std::string text =
      fmt::format("{}  waits since {}", who, ScopeTimeText(task.since, false, layout));
  switch (task.kind) {
    case ResourceKind::kTime:
      text += " for time to pass";
      break;
    case ResourceKind::kSuspended:
      text += " to be resumed";
      break;
    default:
      text += fmt::format(" for {} ({})", names.LocalResource(task.resource),
                          ResourceKindName(task.kind));
      break;
  }
  if (task.holder) text += ", held by " + names.Task(*task.holder);
  return text + "\n";
}

std::string ScopeEventText(const ScopeEvent& event, const ScopeLayout& layout,
                           const ScopeCatalog& catalog) {
  std::string text = fmt::format("{:>16}  core {}  ",
                                 ScopeTimeText(event.time, event.ambiguous, layout), event.core);
  if (event.task) text += fmt::format("task {:<4} ", *event.task);
  if (event.age > 0) text += fmt::format("(start -{}) ", event.age);
  text += Printable(catalog.Name(event.id));
  const std::string parameters = catalog.Format(event, layout.word_bytes);
  if (parameters.empty()) return text + "\n";
  return text + (catalog.Find(event.id) != nullptr ? "  " : " ") + parameters + "\n";
}

std::string EventLossText(const EventLoss& loss) {
  const uint64_t count = loss.end - loss.begin;
  const std::string which =
      count == 1 ? fmt::format("record {}", loss.begin)
                 : fmt::format("{} records, {}..{}", count, loss.begin, loss.end - 1);
  return fmt::format("{:>16}  core {}  missing: {} ({})\n", "", loss.core, which,
                     EventLossReasonName(loss.reason));
}

std::string CorruptionText(const Corruption& corruption) {
  return fmt::format("corrupt: {}: {}\n", Printable(CorruptPart(corruption)),
                     Printable(CorruptField(corruption)));
}

std::string CorruptPart(const Corruption& corruption) {
  constexpr const char* kParts[] = {"header", "core", "task record", "node"};
  const char* const part = kParts[static_cast<size_t>(corruption.part)];
  const std::string of = corruption.memory.empty() ? "" : " of " + corruption.memory;
  return corruption.part == Corruption::Part::kHeader
             ? part + of
             : fmt::format("{} {}{}", part, corruption.index - corruption.first, of);
}

std::string CorruptField(const Corruption& corruption) {
  if (corruption.field.empty()) return corruption.why;
  const char* const space = corruption.value.empty() ? "" : " ";
  return fmt::format("{}{}{}: {}", corruption.field, space, corruption.value, corruption.why);
}

}  // namespace hangscope
