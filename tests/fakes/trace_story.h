// A trace, told event by event into whatever writes one.
#ifndef HANGSCOPE_TESTS_FAKES_TRACE_STORY_H
#define HANGSCOPE_TESTS_FAKES_TRACE_STORY_H

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "export/trace_writer.h"

namespace hangscope {

class TraceStory {
 public:
  enum Kind : size_t {
    kPlain,
    kSwitch,
    kWake,
    kCallEnter,
    kCallLeave,
    kIrqEnter,
    kIrqLeave,
    kFunctionEnter,
    kFunctionLeave,
    kFill,
    kWaitBegin,
    kWaitEnd,
    kBusBegin,
    kBusEnd,
    kWaypoint,
    kQueueSend,
    kQueueReceive
  };

  // `cpus`: of Linux, else of a scope.
  explicit TraceStory(size_t cores = 2, bool cpus = false) {
    head.name = "story";
    for (size_t i = 0; i < cores; ++i) {
      const RingKind kind = cpus ? RingKind::kCpu : RingKind::kCore;
      head.tracks.push_back(
          {{kind, static_cast<int64_t>(i)}, (cpus ? "CPU " : "core ") + std::to_string(i)});
    }
    head.tasks = {{5, "reader"}, {6, "writer"}};
    const auto add = [&](const char* name, const char* category, TraceMeaning meaning,
                         std::vector<TraceField> fields = {}) {
      head.kinds.push_back({.name = name,
                            .category = category,
                            .format = "",
                            .fields = std::move(fields),
                            .meaning = meaning,
                            .counter = ""});
    };
    add("mutex_lock", "sync", TraceMeaning::kPlain,
        {{.name = "address", .type = TraceFieldType::kPointer, .bits = 64}});
    add("sched:sched_switch", "sched", TraceMeaning::kSwitch);
    add("sched:sched_wakeup", "sched", TraceMeaning::kWake);
    add("raw_syscalls:sys_enter", "raw_syscalls", TraceMeaning::kEnter);
    add("raw_syscalls:sys_exit", "raw_syscalls", TraceMeaning::kLeave);
    add("irq:irq_handler_entry", "irq", TraceMeaning::kEnter);
    add("irq:irq_handler_exit", "irq", TraceMeaning::kLeave);
    add("call", "", TraceMeaning::kFunctionEnter);
    add("return", "", TraceMeaning::kFunctionLeave);
    add("cb_push", "fill", TraceMeaning::kCounter);
    head.kinds.back().counter = "fill of cb3";
    const std::vector<TraceField> resource = {{.name = "resource"}};
    add("wait_begin", "history", TraceMeaning::kEnter, resource);
    add("wait_end", "history", TraceMeaning::kLeave, resource);
    add("bus_read_begin", "history", TraceMeaning::kEnter, resource);
    add("bus_end", "history", TraceMeaning::kLeave, resource);
    for (size_t i = kWaitBegin; i <= kBusEnd; ++i) head.kinds[i].of_track = true;
    add("waypoint", "history", TraceMeaning::kState);
    for (const char* name : {"queue_send", "queue_receive"}) {
      add(name, "sync", TraceMeaning::kCounter);
      head.kinds.back().counter = "fill";
      head.kinds.back().also_event = true;
    }
  }

  TraceEvent At(TimeNs time, Kind kind, size_t core = 0, std::optional<int64_t> task = {}) {
    TraceEvent event;
    event.track = core;
    event.kind = kind;
    event.time = time;
    event.task = task;
    event.sequence = ++events_;
    for (size_t i = 0; i < head.kinds[kind].fields.size(); ++i)
      event.values.push_back({.bits = 0x1000 + i});
    return event;
  }
  TraceStory& Add(TraceItem item) {
    items.push_back(std::move(item));
    return *this;
  }
  TraceStory& Plain(TimeNs time, size_t core = 0, std::optional<int64_t> task = {}) {
    return Add(At(time, kPlain, core, task));
  }
  TraceStory& Switch(TimeNs time, size_t core, std::optional<int64_t> from,
                     std::optional<int64_t> to, bool waits = true, const std::string& what = "") {
    TraceEvent event = At(time, kSwitch, core, from);
    event.from = from;
    event.to = to;
    event.from_waits = waits;
    event.what = what;
    return Add(event);
  }
  TraceStory& Wake(TimeNs time, size_t core, std::optional<int64_t> by, int64_t whom) {
    TraceEvent event = At(time, kWake, core, by);
    event.to = whom;
    return Add(event);
  }
  TraceStory& Enter(TimeNs time, Kind kind, size_t core, std::optional<int64_t> task,
                    const std::string& what) {
    TraceEvent event = At(time, kind, core, task);
    event.what = what;
    return Add(event);
  }
  TraceStory& Leave(TimeNs time, Kind kind, size_t core, std::optional<int64_t> task) {
    return Add(At(time, kind, core, task));
  }
  TraceStory& Fill(TimeNs time, size_t core, uint64_t count) {
    TraceEvent event = At(time, kFill, core);
    event.count = count;
    return Add(event);
  }
  // A core's, of a number: it waits for it, or it is the address of a transaction.
  TraceStory& OfCore(TimeNs time, Kind kind, size_t core, uint64_t number,
                     std::optional<int64_t> task = {}) {
    TraceEvent event = At(time, kind, core, task);
    event.values[0].bits = number;
    if (kind == kWaitBegin) event.what = "waiting for " + std::to_string(number);
    if (kind == kBusBegin) event.what = "bus_read";
    return Add(event);
  }
  TraceStory& AtWaypoint(TimeNs time, size_t core, const std::string& what,
                         const std::string& where = "") {
    TraceEvent event = At(time, kWaypoint, core);
    event.what = what;
    event.where = where;
    return Add(event);
  }
  TraceStory& Queue(TimeNs time, Kind kind, size_t core, const std::string& what, uint64_t count) {
    TraceEvent event = At(time, kind, core);
    event.what = what;
    event.count = count;
    return Add(event);
  }
  TraceStory& Lose(TimeNs from, TimeNs to, size_t core, uint64_t records,
                   GapReason reason = GapReason::kOverwritten) {
    return Add(TraceLoss{core, {from, to}, reason, records, AmountUnit::kRecords});
  }

  Status AnnounceTo(TraceWriter& writer) {
    if (end.time == 0) end.time = 1000;
    end.tasks = head.tasks;
    Status status = writer.Begin(head);
    for (const TraceItem& item : items) {
      if (!status.ok()) return status;
      status = std::visit([&](const auto& told) { return writer.Write(told); }, item);
    }
    return status.ok() ? writer.End(end) : status;
  }

  TraceHead head;
  std::vector<TraceItem> items;
  TraceEnd end;

 private:
  uint64_t events_ = 0;
};

}  // namespace hangscope

#endif
