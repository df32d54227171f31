#include "stats/event_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/utf8.h"
#include "hangscope/abi/scope.h"
#include "scope/scope_text.h"

namespace hangscope {
namespace {

class TableMaker {
 public:
  TableMaker(const EventStats& stats, const ScopeLayout& layout, const WatchNames& names)
      : stats_(stats), layout_(layout), names_(names) {
    for (const CoreNumbers& core : stats.cores) {
      span_ += core.span();
      unknown_ += core.unknown;
      nobody_ += core.nobody;
    }
  }

  std::vector<NumberTable> Make() {
    if (stats_.empty()) return {};
    AddCores();
    AddTasks();
    AddWakes();
    AddInterrupts();
    AddMutexes();
    AddInversions();
    return std::move(tables_);
  }

 private:
  std::string Length(uint64_t ticks) const {
    const auto ns = layout_.Nanoseconds(ticks);
    const auto from_0 = layout_.Nanoseconds(0);
    if (!ns || !from_0) return fmt::format("{} ticks", ticks);
    const double length = static_cast<double>(*ns - *from_0);
    if (length < 1e3) return fmt::format("{:.0f} ns", length);
    if (length < 1e6) return fmt::format("{:.2f} us", length / 1e3);
    if (length < 1e9) return fmt::format("{:.3f} ms", length / 1e6);
    return fmt::format("{:.3f} s", length / 1e9);
  }
  std::string Moment(uint64_t time) const { return ScopeTimeText(time, false, layout_); }
  static std::string Percent(uint64_t part, uint64_t whole) {
    return whole == 0 ? ""
                      : fmt::format("{:.1f} %",
                                    100.0 * static_cast<double>(part) / static_cast<double>(whole));
  }
  std::string Task(uint32_t task) const { return names_.Task(task); }
  std::string Resource(uint32_t resource) const { return names_.LocalResource(resource); }
  static std::string CoreName(const CoreNumbers& core) {
    return fmt::format("core {}{}{}", core.core, core.name.empty() ? "" : " ", core.name);
  }

  // What is idle is the same of all cores; what is not known is part of neither.
  std::string Load(const CoreNumbers& core) const {
    if (!stats_.idle.known() || core.span() == 0) return "not known";
    const uint64_t busy = core.span() - core.idle - core.unknown;
    if (core.unknown == 0) return Percent(busy, core.span());
    return fmt::format("{} to {}", Percent(busy, core.span()),
                       Percent(busy + core.unknown, core.span()));
  }

  void AddCores() {
    NumberTable table;
    table.title = "Cores";
    table.note = IdleText() + NotesText();
    table.columns = {"Core", "From", "To", "Load", "Not known", "Records missing"};
    for (const CoreNumbers& core : stats_.cores) {
      const std::string missing =
          core.overwritten == 0 && core.lost == 0
              ? "none"
              : fmt::format("{} before, {} within", core.overwritten, core.lost);
      table.rows.push_back({CoreName(core), Moment(core.from), Moment(core.to), Load(core),
                            Length(core.unknown), missing});
    }
    tables_.push_back(std::move(table));
  }

  std::string IdleText() const {
    const IdleTasks& idle = stats_.idle;
    if (!idle.known()) return fmt::format("The load is not known: {}.", idle.why);
    if (idle.nobody) return fmt::format("Idle is when no task runs: {}.", idle.why);
    std::string names;
    for (const uint32_t task : idle.tasks) names += (names.empty() ? "" : ", ") + Task(task);
    return fmt::format("Taken for idle: {}, {}.", names, idle.why);
  }

  std::string NotesText() const {
    std::string text;
    const auto add = [&](const std::string& sentence) { text += " " + sentence; };
    if (layout_.clock_kind == HANGSCOPE_CLOCK_TICKS)
      add("The clock counts ticks of the OS: what is shorter than one is not seen.");
    if (!layout_.Nanoseconds(0)) add("The clock's frequency is not known: times are its ticks.");
    if (stats_.clocks_are_apart)
      add("Each core has a clock of its own: nothing is measured from one core to another, nor "
          "waits and mutexes.");
    if (stats_.earlier > 0)
      add(fmt::format("{} events of earlier starts of the target are left out.", stats_.earlier));
    if (stats_.doubtful > 0)
      add(
          fmt::format("The times of {} events may be wrong by turns of the clock: nothing is "
                      "measured from or to them.",
                      stats_.doubtful));
    for (const CoreNumbers& core : stats_.cores) AddMasked(core, add);
    return text;
  }

  template <typename Add>
  static void AddMasked(const CoreNumbers& core, const Add& add) {
    if (!core.classes) return;
    std::string classes;
    for (const auto& [bit, name] : {std::pair(kTaskClass, "TASK"), std::pair(kSyncClass, "SYNC"),
                                    std::pair(kIsrClass, "ISR")}) {
      if ((*core.classes & bit) == 0)
        classes += fmt::format("{}{}", classes.empty() ? "" : ", ", name);
    }
    if (!classes.empty())
      add(fmt::format("{} does not record class {} now: such events are missing since it does not.",
                      CoreName(core), classes));
  }

  void AddTasks() {
    NumberTable table;
    table.title = "Run time of tasks";
    table.note = stats_.cores.size() > 1
                     ? "Share: of the time of all cores together. Interrupts that came meanwhile "
                       "are included."
                     : "Interrupts that came meanwhile are included.";
    table.columns = {"Task", "Priority", unknown_ > 0 ? "Ran at least" : "Ran", "Share",
                     "Switches to it"};
    for (const TaskNumbers& task : stats_.tasks) {
      table.rows.push_back(
          {Task(task.task), task.priority ? std::to_string(*task.priority) : "not known",
           Length(task.ran), Percent(task.ran, span_), std::to_string(task.switches)});
    }
    if (nobody_ > 0)
      table.rows.push_back({"no task", "", Length(nobody_), Percent(nobody_, span_), ""});
    if (unknown_ > 0)
      table.rows.push_back({"not known who", "", Length(unknown_), Percent(unknown_, span_), ""});
    tables_.push_back(std::move(table));
  }

  void AddWakes() {
    NumberTable table;
    table.title = "From wake-up to switch";
    table.note =
        "From task_resume, semaphore_post or mutex_unlock to the task_switch to the task that "
        "waited. Not measured: delays, wake-ups by other calls, and one waiter of several.";
    table.columns = {"Task",   "Wake-ups", "Measured",         "Shortest",
                     "Median", "Longest",  "Longest woken at", "Woken, not run since"};
    for (const TaskNumbers& task : stats_.tasks) {
      if (task.wakes == 0 && !task.not_run) continue;
      const bool any = task.measured > 0;
      const auto text = [&](uint64_t length) { return any ? Length(length) : ""; };
      table.rows.push_back({Task(task.task), std::to_string(task.wakes),
                            std::to_string(task.measured), text(task.shortest), text(task.median),
                            text(task.longest.length), any ? Moment(task.longest.at) : "",
                            task.not_run ? fmt::format("{}: at least {}", Moment(task.not_run->at),
                                                       Length(task.not_run->length))
                                         : ""});
    }
    if (!table.rows.empty()) tables_.push_back(std::move(table));
  }

  std::vector<std::string> LengthCells(const Lengths& lengths) const {
    std::vector<std::string> cells = {std::to_string(lengths.seen()),
                                      std::to_string(lengths.measured)};
    const auto add = [&](const std::optional<Lengths::One>& one) {
      if (!one) return cells.insert(cells.end(), {"", ""}), void();
      std::string where = Moment(one->at);
      if (stats_.cores.size() > 1) where += fmt::format(", core {}", one->core);
      cells.insert(cells.end(), {Length(one->length), where});
    };
    add(lengths.longest);
    add(lengths.longest_cut);
    return cells;
  }

  void AddInterrupts() {
    NumberTable table;
    table.title = "Interrupts";
    table.note = "From isr_enter to isr_exit; interrupts that came meanwhile are included.";
    table.columns = {"Interrupt", "Seen", "Measured", "Longest", "At", "Cut off, at least", "From"};
    for (const InterruptNumbers& each : stats_.interrupts) {
      std::vector<std::string> row = LengthCells(each.lengths);
      row.insert(row.begin(), fmt::format("interrupt {}", each.interrupt));
      table.rows.push_back(std::move(row));
    }
    if (!table.rows.empty()) tables_.push_back(std::move(table));
  }

  void AddMutexes() {
    NumberTable table;
    table.title = "Mutexes held";
    table.note =
        "From mutex_lock, or from the mutex_unlock that gave it to a waiter, to mutex_unlock.";
    table.columns = {"Mutex", "Seen",      "Measured", "Longest", "At", "Cut off, at least",
                     "From",  "Longest by"};
    for (const MutexNumbers& each : stats_.mutexes) {
      std::vector<std::string> row = LengthCells(each.held);
      row.insert(row.begin(), Resource(each.mutex));
      const auto& by = each.held.longest ? each.held.longest : each.held.longest_cut;
      row.push_back(by && by->task ? Task(*by->task) : "");
      table.rows.push_back(std::move(row));
    }
    if (!table.rows.empty()) tables_.push_back(std::move(table));
  }

  void AddInversions() {
    if (stats_.contended == 0) return;
    NumberTable table;
    table.title = "Priority inversion";
    table.note = fmt::format(
        "A task waits for a mutex, and a less urgent one runs that is more urgent than the holder, "
        "by the priorities of task_create, where a larger number is more urgent. {} waits for a "
        "mutex of another task are in the rings",
        stats_.contended);
    table.note += stats_.not_judged == 0
                      ? "."
                      : fmt::format("; of {} the priorities are not known.", stats_.not_judged);
    table.columns = {"Mutex", "Waiter",           "Holder",  "Ran meanwhile",
                     "Waits", "In all, at least", "Longest", "From"};
    for (const Inversion& each : stats_.inversions) {
      table.rows.push_back({Resource(each.mutex), Task(each.waiter), Task(each.holder),
                            Task(each.runner), std::to_string(each.waits), Length(each.total),
                            Length(each.longest.length), Moment(each.longest.at)});
    }
    tables_.push_back(std::move(table));
  }

  const EventStats& stats_;
  const ScopeLayout& layout_;
  const WatchNames& names_;
  uint64_t span_ = 0, unknown_ = 0, nobody_ = 0;
  std::vector<NumberTable> tables_;
};

}  // namespace

EventStats TakeEventStats(ScopeView& view) {
  const std::vector<EventOrLoss> items = view.Take();
  const std::vector<ScopeCore> cores = view.Cores();
  return ComputeEventStats({items, cores, view.layout().shared_clock()});
}

std::vector<NumberTable> EventTables(const EventStats& stats, const ScopeLayout& layout,
                                     const WatchNames& names) {
  return TableMaker(stats, layout, names).Make();
}

std::string TablesText(const std::vector<NumberTable>& tables) {
  std::string text;
  for (const NumberTable& table : tables) {
    text += "\n" + table.title + "\n";
    if (!table.note.empty()) text += "  " + Printable(table.note) + "\n";
    std::vector<size_t> widths;
    for (const std::string& column : table.columns) widths.push_back(column.size());
    std::vector<std::vector<std::string>> rows = {table.columns};
    for (const std::vector<std::string>& row : table.rows) {
      rows.emplace_back();
      for (size_t i = 0; i < row.size(); ++i) {
        rows.back().push_back(Printable(row[i]));
        widths[i] = std::max(widths[i], rows.back()[i].size());
      }
    }
    if (rows.size() == 1) rows[0] = {"none"};
    for (const std::vector<std::string>& row : rows) {
      std::string line;
      for (size_t i = 0; i < row.size(); ++i) line += fmt::format("  {:<{}}", row[i], widths[i]);
      text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
    }
  }
  return text;
}

}  // namespace hangscope
