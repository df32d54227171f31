#include "export/timeline_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include "model/event_format.h"

namespace hangscope {
namespace {

// Words of "raw_syscalls:sys_enter" are raw, syscalls, sys, enter.
bool HasWord(std::string_view text, std::initializer_list<std::string_view> words) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  for (size_t at = 0; at < text.size(); ++at) {
    size_t end = at;
    std::string word;
    while (end < text.size() && is_letter(text[end])) word += static_cast<char>(text[end++] | 0x20);
    if (std::find(words.begin(), words.end(), word) != words.end()) return true;
    at = end;
  }
  return false;
}

}  // namespace

const char* SliceStateName(SliceState state) {
  switch (state) {
    case SliceState::kRunning:
      return "running";
    case SliceState::kWaiting:
      return "waiting";
    case SliceState::kReady:
      return "ready";
    case SliceState::kHalted:
      return "halted";
    case SliceState::kStale:
      return "stale";
    case SliceState::kGap:
      return "gap";
    case SliceState::kFunction:
      return "function";
    case SliceState::kSystemCall:
      return "system call";
    case SliceState::kInterrupt:
      return "interrupt";
    case SliceState::kOther:
      return "other";
  }
  return "other";
}

std::string WaitingFor(const std::string& what) { return "waiting for " + what; }

SliceState SliceStateOf(const TraceEventKind& kind) {
  if (kind.of_track && HasWord(kind.name, {"wait"})) return SliceState::kWaiting;
  if (kind.meaning == TraceMeaning::kFunctionEnter || kind.meaning == TraceMeaning::kFunctionLeave)
    return SliceState::kFunction;
  for (const std::string* text : {&kind.category, &kind.name}) {
    if (HasWord(*text,
                {"irq", "isr", "softirq", "interrupt", "interrupts", "exception", "exceptions"}))
      return SliceState::kInterrupt;
    if (HasWord(*text, {"syscall", "syscalls", "sys"})) return SliceState::kSystemCall;
  }
  return SliceState::kOther;
}

TimelineGap GapOf(GapReason reason, uint64_t amount, AmountUnit unit) {
  TimelineGap gap{std::string(GapReasonName(reason)), ""};
  if (amount != 0 && unit != AmountUnit::kUnknown)
    gap.amount = fmt::format("{} {}{}", amount, unit == AmountUnit::kBytes ? "byte" : "record",
                             amount == 1 ? "" : "s");
  return gap;
}

TimelineArguments ArgumentsOf(const TraceEvent& event, const TraceEventKind& kind) {
  TimelineArguments arguments;
  const size_t count = std::min(kind.fields.size(), event.values.size());
  for (size_t i = 0; i < count; ++i)
    arguments.emplace_back(kind.fields[i].name, FieldText(kind.fields[i], event.values[i]));
  if (!event.where.empty()) arguments.emplace_back("where", event.where);
  return arguments;
}

std::optional<TimelineSlice> StandingSlice(const TraceStanding& standing) {
  TimelineSlice slice{SliceState::kOther, std::string(ActivityName(standing.activity))};
  switch (standing.activity) {
    case Activity::kUnused:
      return std::nullopt;
    case Activity::kRunning:
      slice.state = SliceState::kRunning;
      break;
    case Activity::kHalted:
      slice.state = SliceState::kHalted;
      break;
    case Activity::kWaiting:
      slice.state = SliceState::kWaiting;
      if (!standing.waits_for.empty()) slice.name = WaitingFor(standing.waits_for);
      break;
    default:
      break;
  }
  if (!standing.place.empty()) slice.arguments.emplace_back("place", standing.place);
  if (!standing.fault.empty()) slice.arguments.emplace_back("fault", standing.fault);
  return slice;
}

}  // namespace hangscope
