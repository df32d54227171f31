// hangscope show: docs/hangscope-show.md.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <functional>

#include "base/clock.h"
#include "base/numbers.h"
#include "base/utf8.h"
#include "commands.h"
#include "device/live_device.h"
#include "hangscope/abi/record.h"
#include "help/all_helps.h"
#include "options.h"
#include "scope/scope_text.h"
#include "scope/scope_view.h"
#include "snapshot/device_capture.h"
#include "stats/event_tables.h"
#include "target_words.h"
#include "trace/trace_filter.h"

namespace hangscope::cli {
namespace {

constexpr TimeNs kShowInterval = 50 * kMillisecond;

struct ShowWords {
  ScopeSource source;
  std::string core;
  std::string task;
  std::string event;
  std::string last;
  bool follow = false;
  bool json = false;
  bool stats = false;

  // Numbers are of all events that there are.
  bool IsPartOnly() const {
    return follow || !core.empty() || !task.empty() || !event.empty() || !last.empty();
  }
};

// What the events of a core are called by.
using CatalogOf = std::function<const ScopeCatalog&(uint32_t core)>;

// What of a scope is shown.
struct Filter {
  CoreChoice cores;
  std::string event;  // a name; empty: all, or a number is given
  std::optional<uint32_t> task, event_number, last;

  bool IncludesCore(const ScopeCore& core) const { return cores.Includes(core.index, core.name); }
  bool OfAllEvents() const { return event.empty() && !event_number; }
  bool IncludesEvent(uint32_t id, const ScopeCatalog& catalog) const {
    uint32_t named = 0;
    if (!event.empty() && catalog.FindName(event, &named) != nullptr) return id == named;
    return OfAllEvents() || (event_number && id == *event_number);
  }
};

Result<Filter> ParseFilter(const ShowWords& words, const CatalogOf& catalog_of,
                           const std::vector<ScopeCore>& cores) {
  Filter filter{CoreChoice(words.core), "", {}, {}, {}};
  const auto takes = [&](const ScopeCore& core) { return filter.IncludesCore(core); };
  if (!words.core.empty() && std::none_of(cores.begin(), cores.end(), takes)) {
    std::string names;
    for (const ScopeCore& core : cores) {
      if (!core.name.empty() && names.size() < 200) names += ", " + Printable(core.name);
    }
    return Status::Usage(
        fmt::format("--core '{}': there are cores 0 to {}{}", words.core, cores.size() - 1, names));
  }
  if (!words.task.empty()) {
    filter.task = ParseWhole<uint32_t>(words.task);
    if (!filter.task)
      return Status::Usage(
          fmt::format("--task '{}': a task's number; for example --task 3", words.task));
  }
  if (!words.event.empty()) {
    filter.event = words.event;
    filter.event_number = ParseWhole<uint32_t>(words.event);
    const auto knows = [&](const ScopeCore& core) {
      uint32_t id = 0;
      return catalog_of(core.index).FindName(words.event, &id) != nullptr;
    };
    if (!filter.event_number && std::none_of(cores.begin(), cores.end(), knows))
      return Status::Usage(fmt::format(
          "--event '{}': the catalog has no event of this name{}; its number does, too",
          words.event, words.source.elf.empty() ? " (it is in the program: --elf)" : ""));
  }
  if (!words.last.empty()) {
    filter.last = ParseWhole<uint32_t>(words.last);
    if (!filter.last)
      return Status::Usage(
          fmt::format("--last '{}': how many events; for example --last 100", words.last));
  }
  return filter;
}

class Shower {
 public:
  Shower(ScopeView& view, CatalogOf catalog_of, const Filter& filter, bool json)
      : view_(view), catalog_of_(std::move(catalog_of)), filter_(filter), json_(json) {}

  bool ShowHead(const std::vector<ScopeCore>& cores) {
    std::string text;
    if (json_) text += ScopeJson(view_.layout());
    for (const ScopeCore& core : cores) {
      if (!core.in_use && !json_) continue;
      if (filter_.IncludesCore(core)) text += json_ ? ScopeCoreJson(core) : ScopeCoreText(core);
    }
    if (!json_ && view_.layout().lost_threads != 0) {
      text += fmt::format("{} threads found no ring\n", view_.layout().lost_threads);
    }
    if (!json_ && view_.layout().unknown_settings != 0) {
      text += fmt::format("{} words of HANGSCOPE_FEATURES mean nothing\n",
                          view_.layout().unknown_settings);
    }
    return WriteOut(text);
  }

  Status ShowTasks() {
    auto tasks = view_.Tasks();
    if (!tasks.ok()) return tasks.status();
    std::string text;
    for (const TaskWait& task : *tasks) {
      if (filter_.task && *filter_.task != task.task) continue;
      if (json_)
        text += TaskWaitJson(task, view_.layout(), view_.catalog());
      else if (task.state == TaskState::kWaiting)
        text += TaskWaitText(task, view_.layout(), view_.catalog());
    }
    for (const Corruption& corruption : view_.Corruptions())
      text += json_ ? CorruptionJson(corruption) : CorruptionText(corruption);
    WriteOut(text);
    return {};
  }

  // False: nobody listens any more.
  bool ShowEvents(const std::vector<ScopeCore>& cores, bool only_last) {
    std::deque<std::string> lines;
    for (const EventOrLoss& item : view_.Take()) {
      std::string line = Line(item, cores);
      if (line.empty()) continue;
      lines.push_back(std::move(line));
      if (only_last && filter_.last && lines.size() > *filter_.last) lines.pop_front();
    }
    std::string text;
    for (const std::string& line : lines) text += line;
    return WriteOut(text);
  }

 private:
  // Empty: it is not wanted.
  std::string Line(const EventOrLoss& item, const std::vector<ScopeCore>& cores) const {
    if (const auto* loss = std::get_if<EventLoss>(&item)) {
      if (!filter_.IncludesCore(cores[loss->core]) || filter_.task || !filter_.OfAllEvents())
        return {};
      return json_ ? EventLossJson(*loss) : EventLossText(*loss);
    }
    const ScopeEvent& event = std::get<ScopeEvent>(item);
    if (!filter_.IncludesCore(cores[event.core])) return {};
    const ScopeCatalog& catalog = catalog_of_(event.core);
    if (!filter_.IncludesEvent(event.id, catalog)) return {};
    // Its times are those of the others already.
    if (event.id == HANGSCOPE_ID_ANCHOR && filter_.OfAllEvents() && !json_) return {};
    if (filter_.task && event.task != filter_.task) return {};
    return json_ ? ScopeEventJson(event, view_.layout(), catalog)
                 : ScopeEventText(event, view_.layout(), catalog);
  }

  ScopeView& view_;
  const CatalogOf catalog_of_;
  const Filter& filter_;
  const bool json_;
};

bool ShowStats(ScopeView& view, bool json) {
  const EventStats stats = TakeEventStats(view);
  if (json) return WriteOut(EventStatsJson(stats, view.layout()));
  if (stats.empty()) return WriteOut("no events\n");
  const WatchNames names(view.catalog(), nullptr, 0);
  return WriteOut(TablesText(EventTables(stats, view.layout(), names)));
}

volatile sig_atomic_t show_interrupted = 0;

// Until the target ends, nobody listens, or somebody interrupts.
int Follow(ScopeView& view, Shower& shower, Clock& clock) {
  for (bool live = true; live;) {
    if (show_interrupted != 0) return kExitInterrupted;
    clock.Sleep(kShowInterval);
    // Asked before the look, so that nothing that it wrote in between is missed.
    live = view.IsLive();
    if (Status status = view.Poll(!live); !status.ok()) return live ? Fail(status) : kExitClean;
    if (!shower.ShowEvents(view.Cores(), false)) return kExitClean;
  }
  return kExitClean;
}

// Before what a memory of a device has recorded, or why that is not known.
bool ShowMemory(const LiveDevice::Memory& memory, bool json) {
  const std::string& name = memory.spec.name;
  if (json) return WriteOut(MemoryJson(name, memory.why_unread));
  return WriteOut(memory.why_unread.empty()
                      ? fmt::format("memory {}\n", Printable(name))
                      : fmt::format("memory {} could not be read: {}\n", Printable(name),
                                    Printable(memory.why_unread)));
}

// The memories of a device in a snapshot, one after the other. What is asked for may be in some of
// them only.
int ShowDevice(const ShowWords& words, const std::string& folder) {
  SystemClock clock;
  auto spec = ReadCapturedDevice(PosixFileSystem(), folder);
  if (!spec.ok()) return Fail(spec.status());
  auto opened = LiveDevice::Open(PosixFileSystem(), *spec, WatcherOptions(), clock.Monotonic());
  if (!opened.ok()) return Fail(opened.status());
  LiveDevice& device = **opened;
  Status refused;
  bool any = false;
  for (const LiveDevice::Memory& memory : device.Memories()) {
    if (memory.scope == nullptr || !memory.why_unread.empty()) {
      if (!ShowMemory(memory, words.json)) return kExitClean;
      continue;
    }
    const CatalogOf catalog_of = [&](uint32_t core) -> const ScopeCatalog& {
      return device.CatalogOf({SubjectId::Kind::kCore, memory.first_core + core});
    };
    ScopeView& view = memory.scope->view();
    view.StartOver();
    if (Status status = view.SampleOnce(clock); !status.ok()) return Fail(status);
    const std::vector<ScopeCore> cores = view.Cores();
    auto filter = ParseFilter(words, catalog_of, cores);
    if (!filter.ok()) {
      refused = filter.status();
      continue;
    }
    any = true;
    Shower shower(view, catalog_of, *filter, words.json);
    if (!ShowMemory(memory, words.json) || !shower.ShowHead(cores)) return kExitClean;
    if (words.stats) {
      if (!ShowStats(view, words.json)) return kExitClean;
      continue;
    }
    if (Status status = shower.ShowTasks(); !status.ok()) return Fail(status);
    if (!shower.ShowEvents(cores, true)) return kExitClean;
  }
  return any || refused.ok() ? kExitClean : Fail(refused);
}

int Show(const ShowWords& words) {
  SystemClock clock;
  const std::string folder =
      words.source.target.substr(0, words.source.target.find_last_not_of('/') + 1);
  if (HasDevice(PosixFileSystem(), folder)) return ShowDevice(words, folder);
  if (words.follow) {
    struct sigaction action {};
    action.sa_handler = [](int) { show_interrupted = 1; };
    action.sa_flags = static_cast<int>(SA_RESETHAND);  // the second ends it at once
    sigaction(SIGINT, &action, nullptr);
  }
  auto opened = ScopeView::Open(PosixFileSystem(), words.source);
  if (!opened.ok())
    return Fail(WithAdvice(PosixFileSystem(), opened.status(), words.source.target));
  ScopeView& view = **opened;
  for (const std::string& warning : view.warnings()) PrintNote("warning: " + warning);
  const Status looked = words.follow ? view.Poll(false) : view.SampleOnce(clock);
  if (!looked.ok()) return Fail(looked);
  const std::vector<ScopeCore> cores = view.Cores();
  const CatalogOf catalog_of = [&](uint32_t) -> const ScopeCatalog& { return view.catalog(); };
  auto filter = ParseFilter(words, catalog_of, cores);
  if (!filter.ok()) return Fail(filter.status());
  Shower shower(view, catalog_of, *filter, words.json);
  if (!shower.ShowHead(cores)) return kExitClean;
  if (words.stats) {
    ShowStats(view, words.json);
    return kExitClean;
  }
  if (Status status = shower.ShowTasks(); !status.ok()) return Fail(status);
  if (!shower.ShowEvents(cores, true)) return kExitClean;
  return words.follow ? Follow(view, shower, clock) : kExitClean;
}

}  // namespace

int ShowCommand(const std::vector<std::string>& words) {
  OptionParser parser(ShowHelp());
  ShowWords show;
  parser.Positional("target", &show.source.target);
  parser.Option("--elf", &show.source.elf);
  parser.Option("--core", &show.core);
  parser.Option("--task", &show.task);
  parser.Option("--event", &show.event);
  parser.Option("--last", &show.last);
  parser.Flag("--follow", &show.follow);
  parser.Flag("--json", &show.json);
  parser.Flag("--stats", &show.stats);
  parser.Flag("--intrusive", &show.source.intrusive);
  if (const auto exit = parser.Parse(words)) return *exit;
  if (show.source.target.empty())
    return Fail(Status::Usage("no target given; for example hangscope show pid:4711"));
  if (show.stats && show.IsPartOnly())
    return Fail(Status::Usage(
        "--stats counts all events: not with --core, --task, --event, --last or --follow"));
  if (Status status = ResolveTarget(PosixFileSystem(), &show.source.target); !status.ok())
    return Fail(status);
  return Show(show);
}

}  // namespace hangscope::cli
