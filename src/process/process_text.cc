#include "process/process_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "base/units.h"
#include "base/utf8.h"
#include "process/process_words.h"

namespace hangscope {
namespace {

constexpr size_t kMostRows = 16;  // of a finding
constexpr size_t kMostVictims = 6;
constexpr size_t kMostFunction = 24;  // of a name in a row
constexpr size_t kLeastTableRows = 6;
constexpr size_t kLeastStackLines = 3;
constexpr size_t kLeastColumns = 40;

size_t Columns(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

std::string Padded(const std::string& text, size_t width) {
  const size_t columns = Columns(text);
  return columns < width ? text + std::string(width - columns, ' ') : text;
}

std::string Trimmed(const std::string& text) {
  return text.substr(0, text.find_last_not_of(' ') + 1);
}

// "2 wait" of "waits".
std::string ForMany(const std::string& state, size_t count) {
  return count > 1 && state.ends_with('s') ? state.substr(0, state.size() - 1) : state;
}

size_t CountLines(const std::string& text) {
  return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
}

// A thread of another process than the asked one says so.
std::string Label(const ThreadFacts& thread, const SystemSample& look) {
  const bool of_other = thread.pid != look.processes[0].pid && thread.tid != thread.pid;
  return ThreadLabel(thread) + (of_other ? fmt::format(" of {}", IdOnHost(thread.pid)) : "");
}

// "Bank::Transfer" of "(anonymous namespace)::Bank::Transfer(int)".
std::string ShortName(const std::string& name) {
  constexpr std::string_view kUnnamed = "(anonymous namespace)::";
  std::string function = InnermostName(name);
  for (size_t at; (at = function.find(kUnnamed)) != std::string::npos;)
    function.erase(at, kUnnamed.size());
  if (const size_t arguments = function.find('('); arguments != 0)
    function.resize(std::min(arguments, function.size()));
  return CutToColumns(function, kMostFunction);
}

// "Transfer  abba.cc:20", with the function's arguments left out.
std::string Where(const ThreadFacts& thread) {
  const StackFrame* const frame = OwnFrame(thread);
  if (frame == nullptr) return "";
  StackFrame shown = *frame;
  shown.function = ShortName(shown.function);
  return FrameText(&shown);
}

// " <- Reader::Next" of the program's own functions that called it: a wrapper of a lock or of a
// read says less than who called that. `main` says nothing.
std::string Callers(const ThreadFacts& thread) {
  constexpr size_t kMost = 2;
  std::string text;
  for (const StackFrame* frame : CallingFrames(thread, kMost)) {
    const std::string name = ShortName(frame->function);
    if (name == "main") break;
    text += " <- " + name;
  }
  return text;
}

// Cells in columns of their own where the lines are long enough; else the last cell stands on a
// line of its own.
std::string Rows(const std::vector<std::vector<std::string>>& rows, size_t columns) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], Columns(row[i]));
  }
  size_t whole = 2;
  for (const size_t width : widths) whole += width + 2;
  const bool split = whole - 2 > columns;
  std::string text;
  for (const auto& row : rows) {
    std::string line = " ";
    for (size_t i = 0; i < row.size(); ++i) {
      if (split && i + 1 == row.size() && !row[i].empty()) {
        text += CutToColumns(Trimmed(line), columns) + "\n";
        line = "     ";
      }
      line += (i == 0 ? " " : "  ") + Padded(row[i], widths[i]);
    }
    text += CutToColumns(Trimmed(line), columns) + "\n";
  }
  return text;
}

// Sentences of the finding, wrapped.
std::string Wrapped(const std::string& text, size_t columns) {
  std::string result;
  std::string line = " ";
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, end - at);
    if (Columns(line) + 1 + Columns(word) > columns && Trimmed(line).size() > 0) {
      result += CutToColumns(line, columns) + "\n";
      line = "   ";
    }
    line += " " + word;
    at = end + 1;
  }
  return result + CutToColumns(line, columns) + "\n";
}

bool IsHang(FindingKind kind) {
  return kind != FindingKind::kStopped && kind != FindingKind::kZombie;
}

std::string Headline(const ProcessFinding& finding) {
  const char* const before = finding.confidence == Confidence::kPossible ? "perhaps "
                             : IsHang(finding.kind)                      ? "HANG: "
                                                                         : "";
  return fmt::format("{}{} ({})", before, finding.summary, ConfidenceName(finding.confidence));
}

std::string WrappedHead(const std::string& text, size_t columns) {
  const std::string wrapped = Wrapped(text, columns);
  return wrapped.substr(wrapped.find_first_not_of(' '));
}

std::string VictimsText(const ProcessFinding& finding, const SystemSample& look) {
  std::string text;
  for (size_t i = 0; i < std::min(finding.victims.size(), kMostVictims); ++i) {
    const ThreadFacts* const thread = FindThread(look, finding.victims[i]);
    text += (i == 0 ? "" : ", ") +
            (thread == nullptr ? std::to_string(finding.victims[i]) : Label(*thread, look));
  }
  if (finding.victims.size() > kMostVictims)
    text += fmt::format(" and {} more", finding.victims.size() - kMostVictims);
  return text;
}

// Threads first, then the processes they wait for.
std::vector<std::vector<std::string>> MemberRows(const ProcessFinding& finding,
                                                 const SystemSample& look) {
  std::vector<std::vector<std::string>> rows;
  const auto add = [&](const ThreadFacts* thread) {
    if (thread != nullptr && rows.size() < kMostRows)
      rows.push_back(
          {Label(*thread, look), DoesWhat(*thread, look), Where(*thread) + Callers(*thread)});
  };
  for (const int tid : finding.threads) add(FindThread(look, tid));
  for (const int id : finding.partners) add(FindThread(look, id));
  return rows;
}

std::string FindingText(const ProcessFinding& finding, const ProcessScene& scene) {
  std::string text = WrappedHead(Headline(finding), scene.columns);
  if (!finding.of_goroutines) text += Rows(MemberRows(finding, *scene.look), scene.columns);
  if (finding.threads.size() > kMostRows)
    text += fmt::format("  and {} more threads\n", finding.threads.size() - kMostRows);
  if (!finding.victims.empty()) {
    const size_t victims = finding.victims.size();
    const char* const whom = finding.threads.size() == 1 ? "it" : "these";
    // Of whoever could be waited for by others it is not known that it is.
    const bool idle = finding.kind == FindingKind::kLostWakeup ||
                      finding.kind == FindingKind::kNoWriter || finding.kind == FindingKind::kSpin;
    text += Wrapped(idle ? fmt::format("{} more {} still: {}", victims, ForMany("stands", victims),
                                       VictimsText(finding, *scene.look))
                         : fmt::format("{} more {} for {}: {}", victims, ForMany("waits", victims),
                                       whom, VictimsText(finding, *scene.look)),
                    scene.columns);
  }
  for (const std::string& evidence : finding.evidence) text += Wrapped(evidence, scene.columns);
  for (const std::string& doubt : finding.doubts)
    text += Wrapped("not certain: " + doubt, scene.columns);
  return text;
}

const char* StateText(const ThreadFacts& thread, ThreadStand stand) {
  switch (thread.state) {
    case ThreadState::kRunning:
      return stand == ThreadStand::kSpins           ? "spins"
             : thread.wait.kind == WaitKind::kRanks ? "polls"
                                                    : "runs";
    case ThreadState::kSleeping:
      return thread.of_runtime                ? "serves"
             : stand == ThreadStand::kMoves   ? "works"
             : stand == ThreadStand::kUnknown ? "sleeps"
                                              : "waits";
    case ThreadState::kDiskSleep:
      return "in kernel";
    case ThreadState::kStopped:
      return "stopped";
    case ThreadState::kTraced:
      return "traced";
    case ThreadState::kFrozen:
      return "frozen";
    case ThreadState::kZombie:
    case ThreadState::kDead:
      return "ended";
    case ThreadState::kUnknown:
      break;
  }
  return "unknown";
}

ThreadStand StandOf(const ThreadFacts& thread, const ProcessJudgement& judgement) {
  const auto found = judgement.stands.find(thread.tid);
  return found == judgement.stands.end() ? ThreadStand::kUnknown : found->second;
}

// Those of the findings first.
std::vector<const ThreadFacts*> ThreadsInOrder(const ProcessScene& scene, std::set<int>* involved) {
  std::set<int> victims;
  for (const ProcessFinding& finding : scene.judgement->findings) {
    involved->insert(finding.threads.begin(), finding.threads.end());
    involved->insert(finding.partners.begin(), finding.partners.end());
    victims.insert(finding.victims.begin(), finding.victims.end());
  }
  std::vector<const ThreadFacts*> threads;
  for (const ProcessFacts& process : scene.look->processes) {
    for (const ThreadFacts& thread : process.threads) threads.push_back(&thread);
  }
  const auto rank = [&](const ThreadFacts* thread) {
    return involved->count(thread->tid) != 0 ? 0 : victims.count(thread->tid) != 0 ? 1 : 2;
  };
  std::stable_sort(threads.begin(), threads.end(),
                   [&](const ThreadFacts* a, const ThreadFacts* b) { return rank(a) < rank(b); });
  return threads;
}

std::vector<std::string> Cells(const ThreadFacts& thread, const ProcessScene& scene) {
  const std::string waits = thread.state == ThreadState::kSleeping ||
                                    thread.state == ThreadState::kDiskSleep ||
                                    thread.wait.kind == WaitKind::kRanks
                                ? WaitedFor(thread, *scene.look)
                                : "";
  const ThreadStand stand = StandOf(thread, *scene.judgement);
  const bool lasts = thread.state != ThreadState::kRunning && stand != ThreadStand::kMoves;
  return {Label(thread, *scene.look), StateText(thread, stand),
          lasts ? ForHowLong(thread, *scene.look) : "", waits, Where(thread)};
}

// Each column as wide as it needs to be; where that is too wide, what is waited for is cut, then
// where.
std::string Table(const std::vector<const ThreadFacts*>& threads, size_t most,
                  const ProcessScene& scene) {
  constexpr size_t kWaitsFor = 3;
  constexpr size_t kLeastCell = 12;
  std::vector<std::vector<std::string>> rows = {{"thread", "state", "for", "waits for", "at"}};
  for (size_t i = 0; i < std::min(most, threads.size()); ++i)
    rows.push_back(Cells(*threads[i], scene));
  std::vector<size_t> widths(rows[0].size());
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], Columns(row[i].empty() ? "-" : row[i]));
  }
  for (const size_t column : {kWaitsFor, kWaitsFor + 1, size_t{0}}) {
    size_t whole = 2 * (widths.size() - 1);
    for (const size_t width : widths) whole += width;
    const size_t over = whole > scene.columns ? whole - scene.columns : 0;
    widths[column] -= std::min(over, widths[column] - std::min(kLeastCell, widths[column]));
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i)
      line += (i == 0 ? "" : "  ") +
              Padded(CutToColumns(row[i].empty() ? "-" : row[i], widths[i]), widths[i]);
    text += CutToColumns(Trimmed(line), scene.columns) + "\n";
  }
  if (threads.size() > most)
    text += fmt::format("and {} more: --all shows all\n", threads.size() - most);
  return text;
}

// From the frame above the program's own innermost one on: those further in are how a library
// waits.
size_t FirstShown(const ThreadFacts& thread, size_t most) {
  const StackFrame* const own = OwnFrame(thread);
  if (own == nullptr || thread.stack.size() <= most) return 0;
  const auto at = static_cast<size_t>(own - thread.stack.data());
  return std::min(at == 0 ? 0 : at - 1, thread.stack.size() - 1);
}

std::string Stack(const ThreadFacts& thread, size_t most, const ProcessScene& scene) {
  std::string text =
      CutToColumns(fmt::format("stack of {}", Label(thread, *scene.look)), scene.columns) + "\n";
  if (!thread.kernel_stack.empty())
    text += CutToColumns(
                fmt::format("  in the kernel: {}",
                            Printable(fmt::format("{}", fmt::join(thread.kernel_stack, " < ")))),
                scene.columns) +
            "\n";
  const size_t first = FirstShown(thread, most);
  const size_t last = std::min(thread.stack.size(), first + std::min(most, thread.stack.size()));
  for (size_t i = first; i < last; ++i)
    text +=
        CutToColumns(fmt::format("  #{:<2} {}", i, FrameText(&thread.stack[i])), scene.columns) +
        "\n";
  // Of a program of Go they say more than the stack of the thread that they are told with.
  const bool is_whole = last == thread.stack.size();
  if (!thread.tasks.empty() && (is_whole || thread.tasks[0].is_goroutine)) {
    const size_t most_tasks = is_whole ? 32 : 8;
    const size_t shown = scene.all_stacks ? thread.tasks.size() : most_tasks;
    text += fmt::format("{} of {}\n", thread.tasks[0].is_goroutine ? "goroutines" : "tasks",
                        Label(thread, *scene.look));
    for (size_t i = 0; i < std::min(shown, thread.tasks.size()); ++i)
      text += CutToColumns("  " + TaskText(thread.tasks[i]), scene.columns) + "\n";
    if (thread.tasks.size() > shown)
      text += fmt::format("  and {} more: --all shows all\n", thread.tasks.size() - shown);
  }
  if (!thread.stack_warning.empty() && last == thread.stack.size())
    text += Wrapped(Printable(thread.stack_warning), scene.columns);
  return text;
}

// Of those that the findings are about, as far as the lines go; where there are none, of the asked
// process's threads.
std::string Stacks(const std::vector<const ThreadFacts*>& threads, const std::set<int>& involved,
                   size_t lines, const ProcessScene& scene) {
  std::string text;
  if (scene.all_stacks) {
    for (const ThreadFacts* thread : threads) text += Stack(*thread, thread->stack.size(), scene);
    return text;
  }
  std::vector<const ThreadFacts*> shown;
  for (const ThreadFacts* thread : threads) {
    if (!thread->stack.empty() && (involved.empty() || involved.count(thread->tid) != 0))
      shown.push_back(thread);
  }
  if (shown.empty()) return text;
  shown.resize(std::min(shown.size(), std::max<size_t>(1, lines / kLeastStackLines)));
  for (size_t i = 0; i < shown.size(); ++i) {
    const size_t left = lines - std::min(lines, CountLines(text));
    const size_t share = left / (shown.size() - i);
    if (share >= 2) text += Stack(*shown[i], share - 1, scene);
  }
  return text;
}

}  // namespace

std::string CutToColumns(const std::string& text, size_t columns) {
  if (Columns(text) <= columns) return text;
  const size_t dots = std::min<size_t>(columns, 3);
  size_t end = 0;
  for (size_t left = columns - dots; left > 0; --left)
    end += std::max<size_t>(1, Utf8Length(text, end));
  return text.substr(0, end) + std::string(dots, '.');
}

std::string ProcessFindingsText(const ProcessScene& scene) {
  std::string text;
  for (const ProcessFinding& finding : scene.judgement->findings)
    text += FindingText(finding, scene);
  return text;
}

std::string ProcessHead(const ProcessScene& scene) {
  const ProcessFacts& process = scene.look->processes[0];
  std::map<std::string, size_t> counts;
  for (const ThreadFacts& thread : process.threads)
    ++counts[StateText(thread, StandOf(thread, *scene.judgement))];
  std::string states;
  for (const auto& [state, count] : counts)
    states += fmt::format("{}{} {}", states.empty() ? "" : ", ", count, ForMany(state, count));
  const size_t threads = process.threads.size();
  std::string text =
      fmt::format("process {} ({}), {} thread{}: {}", IdOnHost(process.pid),
                  Printable(process.name, 32), threads, threads == 1 ? "" : "s", states);
  if (!scene.kept.empty()) return text + "; " + scene.kept;
  if (scene.look->longest_stop == 0)
    return text + (scene.look->asked_machines ? "; its virtual machine halted them"
                                              : "; none was stopped");
  const char* const who = scene.look->whole_process_stopped ? "all were" : "the longest was";
  return text +
         fmt::format("; {} stopped for {:.1f} ms", who, Seconds(scene.look->longest_stop) * 1e3);
}

std::string ProcessText(const ProcessScene& asked) {
  ProcessScene scene = asked;
  scene.columns = std::max(scene.columns, kLeastColumns);
  std::string text = ProcessFindingsText(scene);
  if (text.empty() && scene.standing.empty()) scene.standing = "no hang found";
  if (!scene.standing.empty()) text += Wrapped(scene.standing, scene.columns).substr(2);
  text += WrappedHead(ProcessHead(scene), scene.columns);
  for (const ProcessFacts& process : scene.look->processes) {
    // The head is that of the first.
    const bool is_other = &process != &scene.look->processes.front();
    for (const std::string& warning : process.warnings)
      text += Wrapped((is_other ? fmt::format("process {} ({}): ", IdOnHost(process.pid),
                                              Printable(process.name, 32))
                                : "") +
                          Printable(warning),
                      scene.columns);
  }
  std::set<int> involved;
  const std::vector<const ThreadFacts*> threads = ThreadsInOrder(scene, &involved);
  if (threads.empty()) return text;
  const size_t used = CountLines(text) + 2;
  const size_t left = used < scene.lines ? scene.lines - used : 0;
  const size_t rows = scene.all_threads
                          ? threads.size()
                          : std::max(kLeastTableRows, std::min(threads.size(), left / 2));
  text += Table(threads, rows, scene);
  const size_t lines = CountLines(text);
  return text + Stacks(threads, involved, lines < scene.lines ? scene.lines - lines : 0, scene);
}

}  // namespace hangscope
