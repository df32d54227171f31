#include "scope/recent_events.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "base/utf8.h"
#include "hangscope/abi/record.h"
#include "scope/event_reader.h"

namespace hangscope {
namespace {

constexpr size_t kLastEvents = 6;

// The newest are kept.
void Keep(const ScopeEvent& event, size_t most, std::deque<ScopeEvent>* events) {
  events->push_back(event);
  if (events->size() > most) events->pop_front();
}

}  // namespace

const SubjectState* RecentEvents::TaskOf(const SubjectId& subject) const {
  const size_t at = view_.layout().core_count + subject.index;
  const bool known = subject.kind == SubjectId::Kind::kTask && at < watcher_.subjects().size();
  return known ? &watcher_.subjects()[at] : nullptr;
}

RingSample RecentEvents::Read(const SubjectId& subject, size_t most) {
  const bool of_a_core = subject.kind == SubjectId::Kind::kCore;
  const SubjectState* const task = TaskOf(subject);
  RingSample look;
  if (!of_a_core && task == nullptr) return look;
  Events events;
  const uint32_t cores = view_.layout().core_count;
  const uint32_t first = of_a_core ? subject.index : 0;
  const uint32_t end = of_a_core ? subject.index + 1 : cores;
  for (uint32_t core = first; core < std::min(end, cores); ++core) {
    const auto ring = ForEachEvent(core, [&](const ScopeEvent& event) {
      if (of_a_core || event.task == task->task) Keep(event, most, &events);
    });
    if (of_a_core) look.ring = ring;
  }
  look.events = Describe(events);
  return look;
}

// Those that the target's newest start recorded. Returns what the ring says of itself, unless it
// cannot be read.
std::optional<ScopeCore> RecentEvents::ForEachEvent(
    uint32_t core, const std::function<void(const ScopeEvent&)>& take) {
  EventReader reader(view_.scope(), core);
  if (!reader.Poll(!view_.IsLive()).ok()) return std::nullopt;
  const ScopeCore ring = reader.core();
  while (auto item = reader.Next()) {
    const auto* event = std::get_if<ScopeEvent>(&*item);
    if (event != nullptr && event->id != HANGSCOPE_ID_ANCHOR && event->age == 0) take(*event);
  }
  return ring;
}

const RecentEvents::Events& RecentEvents::OfTask(uint32_t task) {
  if (!of_tasks_) {
    of_tasks_.emplace();
    for (const SubjectState& subject : watcher_.subjects()) {
      if (subject.subject.kind == SubjectId::Kind::kTask) of_tasks_->try_emplace(subject.task);
    }
    for (uint32_t core = 0; core < view_.layout().core_count; ++core) {
      ForEachEvent(core, [this](const ScopeEvent& event) {
        const auto known = event.task ? of_tasks_->find(*event.task) : of_tasks_->end();
        if (known != of_tasks_->end()) Keep(event, kLastEvents, &known->second);
      });
    }
  }
  return (*of_tasks_)[task];
}

std::vector<std::string> RecentEvents::LastTexts(const SubjectId& subject) {
  const SubjectState* const task = TaskOf(subject);
  std::vector<std::string> texts;
  for (RingSample::Event& event :
       task != nullptr ? Describe(OfTask(task->task)) : Read(subject, kLastEvents).events)
    texts.push_back(std::move(event.text));
  return texts;
}

std::vector<RingSample::Event> RecentEvents::Describe(const Events& events) const {
  std::vector<RingSample::Event> described;
  for (const ScopeEvent& event : events) {
    const auto ns = view_.layout().Nanoseconds(event.time);
    const std::string parameters = catalog_.Format(event, view_.layout().word_bytes);
    described.push_back(
        {fmt::format("{}{}", event.ambiguous ? "~" : "",
                     ns ? fmt::format("{:.6f}", static_cast<double>(*ns) / 1e9)
                        : std::to_string(event.time)),
         Printable(catalog_.Name(event.id)) + (parameters.empty() ? "" : " " + parameters)});
  }
  return described;
}

}  // namespace hangscope
