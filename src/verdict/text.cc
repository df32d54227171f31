#include "verdict/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/units.h"
#include "base/utf8.h"
#include "verdict/judge_picture.h"
#include "window/window_text.h"

namespace hangscope {
namespace {

constexpr size_t kMostCoresInLine = 4;
constexpr size_t kMostPlacesListed = 8;
constexpr size_t kMostHistoryTold = 8;
constexpr size_t kMostOfACommand = 200;
constexpr size_t kMostWaysTold = 16;  // in a report
constexpr size_t kMostCallersInLine = 4;
constexpr size_t kMostOfATrigger = 100;
constexpr size_t kMostTextsInReport = 3;
constexpr size_t kLongestText = 72;        // of a log line in the report
constexpr size_t kLongestTextInLine = 32;  // in the heartbeat

// Names come from the target: none of them may reach a terminal as it is.
std::string Quoted(const std::string& text, size_t most) {
  return "\"" + Printable(text, most) + "\"";
}

std::vector<std::string> Texts(const std::vector<Place>& places) {
  std::vector<std::string> texts;
  for (const Place& place : places) texts.push_back(PlaceText(place));
  return texts;
}

bool OfLogLines(const Loop& loop) { return !loop.places.front().text.empty(); }

// The lines of a round in order, each once.
std::string Lines(const Loop& loop) {
  std::vector<std::string> texts;
  for (const Place& place : loop.places) {
    const std::string text = PlaceText(place);
    if (std::find(texts.begin(), texts.end(), text) == texts.end()) texts.push_back(text);
  }
  const size_t all = texts.size();
  texts.resize(std::min(all, kMostTextsInReport));
  std::string text = fmt::format("{}", fmt::join(texts, ", "));
  if (texts.size() < all) text += fmt::format(" and {} more", all - texts.size());
  return text;
}

std::string AddressRange(const Loop& loop) {
  const auto [low, high] =
      std::minmax_element(loop.places.begin(), loop.places.end(),
                          [](const Place& a, const Place& b) { return a.pc < b.pc; });
  return low->pc == high->pc ? fmt::format("{:#x}", low->pc)
                             : fmt::format("{:#x}..{:#x}", low->pc, high->pc);
}

// The other functions that a loop runs through, in order.
std::string OtherFunctions(const Loop& loop) {
  std::vector<std::string> names;
  for (const Place& place : loop.places) {
    if (place.function.empty() || place.function == loop.places.front().function) continue;
    if (std::find(names.begin(), names.end(), place.function) == names.end())
      names.push_back(place.function);
  }
  if (names.empty()) return {};
  const size_t all = names.size();
  const size_t shown = std::min<size_t>(all, 3);
  names.resize(shown);
  for (std::string& name : names) name = Printable(name);
  std::string text = fmt::format("  through {}", fmt::join(names, ", "));
  if (shown < all) text += fmt::format(" and {} more", all - shown);
  return text;
}

// "31.0 s, 62 times round 2 lines ..." of a loop.
std::string SinceCycle(const CoreVerdict& core) {
  return core.since_cycle ? ", since cycle " + FormatCount(*core.since_cycle) : "";
}

std::string LoopText(const CoreVerdict& core, const std::string& age) {
  const Loop& loop = *core.loop;
  const bool lines = OfLogLines(loop);
  const std::string at_least = loop.at_least ? "at least " : "";
  // Where nobody could look into the loop, it only repeats.
  const char* word = loop.basis == LoopBasis::kPlaces || lines ? "repeats" : "spins";
  std::string text = fmt::format("{}  {} {}{}", Printable(core.name), word, at_least, age);
  text += SinceCycle(core);
  if (loop.rounds > 0) text += fmt::format(", {}{} times", at_least, FormatCount(loop.rounds));
  const char* noun = loop.basis == LoopBasis::kLines ? "line" : "place";
  text +=
      fmt::format(" round {} {}{}", loop.places.size(), noun, loop.places.size() == 1 ? "" : "s");
  if (lines) return text + "  " + Lines(loop);
  return text + " (" + AddressRange(loop) + ")  " + PlaceText(core.place) +
         CallersText(Texts(core.callers)) + OtherFunctions(loop);
}

std::string WayText(const CoreVerdict& core) {
  std::string text = fmt::format("  how {} got there, the oldest first:\n", Printable(core.name));
  for (const WayStep& step : core.way) {
    text += "    " + PlaceText(step.place) + CallersText(step.callers) + "\n";
  }
  return text;
}

// Whose way is told with the verdict: the first to stop's.
const CoreVerdict* FirstWithAWay(const Verdict& verdict) {
  const CoreVerdict* first = nullptr;
  for (const CoreVerdict& core : verdict.cores) {
    if (!core.way.empty() && (first == nullptr || core.since < first->since)) first = &core;
  }
  return first;
}

// What the headline says already is not said again.
std::string FindingText(const Finding& finding, const std::string& headline) {
  std::string text;
  if (finding.summary != headline)
    text += fmt::format("  also: {} ({})\n", Printable(finding.summary),
                        ConfidenceName(finding.confidence));
  for (const std::string& line : finding.lines) text += "  " + Printable(line) + "\n";
  if (finding.source != Source::kThreads || finding.history.empty()) return text;
  // A scope's own lines have them.
  text += "  what came before, the oldest first:\n";
  const size_t shown = std::min(finding.history.size(), kMostHistoryTold);
  for (size_t i = finding.history.size() - shown; i < finding.history.size(); ++i)
    text += "    " + Printable(finding.history[i]) + "\n";
  return text;
}

std::string StreamText(const StreamVerdict& stream, TimeNs now) {
  std::string text = stream.name + ": ";
  if (stream.last_byte == 0) return text + "nothing came";
  text += stream.state == State::kSilent
              ? fmt::format("silent for {}", FormatElapsed(now - stream.last_byte))
              : "alive";
  text += fmt::format(", {}", FormatSize(stream.total_bytes));
  if (!stream.format.empty()) text += fmt::format(" of {} trace", stream.format);
  return text;
}

std::string HowLastOutputCame(const LastOutput& output, TimeNs now) {
  std::string text = output.stream;
  if (output.time != 0)
    text += fmt::format(", {} ago", FormatElapsed(std::max<TimeNs>(0, now - output.time)));
  return text + (output.unfinished ? ", without an end of line" : "");
}

// The newest line of all streams; one beside a trace only where there is no other.
std::string LastOutputText(const Verdict& verdict) {
  const LastOutput* last = nullptr;
  for (const LastOutput& output : verdict.last_output) {
    if (output.lines.empty()) continue;
    const bool newer =
        last == nullptr ||
        (output.of_trace == last->of_trace ? output.time > last->time : last->of_trace);
    if (newer) last = &output;
  }
  if (last == nullptr) return {};
  return fmt::format("  last output: {}  ({})\n", Quoted(last->lines.back(), kLongestText),
                     HowLastOutputCame(*last, verdict.time));
}

// The newest lines of each stream.
std::string LastLinesText(const Verdict& verdict) {
  std::string text;
  for (const LastOutput& output : verdict.last_output) {
    if (output.lines.empty()) continue;
    text += fmt::format("\nprinted last ({}):\n", HowLastOutputCame(output, verdict.time));
    for (const std::string& line : output.lines) text += "  " + Printable(line) + "\n";
  }
  return text;
}

std::string Headline(const Verdict& verdict, TimeNs start) {
  const std::string after = FormatElapsed(verdict.time - start);
  if (verdict.state == State::kFinished || verdict.state == State::kDead) {
    return fmt::format("{} after {}: {}", verdict.state == State::kDead ? "DEAD" : "finished",
                       after, verdict.summary);
  }
  const char* word = verdict.IsHang() ? "HANG" : StateName(verdict.state).data();
  if (!verdict.IsHang() &&
      (verdict.state == State::kProgressing || verdict.state == State::kSlow)) {
    return fmt::format("{} after {}", verdict.summary, after);
  }
  const char* const part = verdict.state == State::kPartial ? "partial: " : "";
  const bool idle = verdict.state == State::kIdle;
  const char* const headline = verdict.IsHang() ? word : idle ? "no hang" : "not progressing";
  return fmt::format("{} after {}: {}{} ({})", headline, after, part, verdict.summary,
                     ConfidenceName(verdict.confidence));
}

// "2 progressing, hart 1 spins 3.1 s cb_wait_front".
std::string CoresInLine(const Heartbeat& beat) {
  const auto& cores = beat.verdict.cores;
  std::string text;
  if (cores.size() <= kMostCoresInLine) {
    for (const CoreVerdict& core : cores) {
      text += text.empty() ? "" : ", ";
      text += Printable(core.name);
      const bool line = !core.place.text.empty();
      if (core.state == State::kLooping)
        text += (line ? " repeats " : " spins ") + FormatElapsed(beat.now - core.since);
      if (core.state == State::kSilent) text += core.asleep ? " sleeps" : " silent";
      if (!core.place.function.empty()) text += " " + Printable(core.place.function);
      if (line) text += " " + Quoted(core.place.text, kLongestTextInLine);
    }
    return text;
  }
  std::map<State, int> counts;
  for (const CoreVerdict& core : cores) ++counts[core.state];
  for (const auto& [state, count] : counts) {
    text += text.empty() ? "" : ", ";
    text += fmt::format("{} {}", count, StateName(state));
  }
  return text;
}

std::string Numbers(const Heartbeat& beat) {
  std::string text;
  for (const StreamPulse& stream : beat.streams) {
    if (stream.total_bytes == 0 && beat.streams.size() > 1) continue;
    text += fmt::format("  {} {}", stream.name, FormatSize(stream.total_bytes));
    if (stream.last_byte_age < 0) {
      text += ", nothing yet";
    } else {
      text += fmt::format(" at {}, last byte {} ago", FormatRate(stream.bytes_per_second),
                          FormatElapsed(stream.last_byte_age));
    }
    text +=
        fmt::format(", ring {:.0f} % of {}", stream.fill() * 100, FormatSize(stream.bound_bytes));
    // Compressed: what matters is how much of the stream that is.
    if (stream.history_bytes > stream.disk_bytes)
      text += fmt::format(" ({} held)", FormatSize(stream.history_bytes));
    if (stream.lost_bytes > 0) text += fmt::format(", LOST {}", FormatSize(stream.lost_bytes));
  }
  if (beat.child_cpu >= 0) text += fmt::format("  child {:.0f} % CPU", beat.child_cpu * 100);
  return text;
}

std::string StateInLine(const Heartbeat& beat) {
  if (!beat.waits_for_output.empty()) return Printable(beat.waits_for_output);
  const Verdict& verdict = beat.verdict;
  std::string state =
      verdict.summary.empty() ? std::string(StateName(verdict.state)) : verdict.summary;
  const std::string cores = CoresInLine(beat);
  if (!cores.empty()) state += ": " + cores;
  if (verdict.state == State::kPartial) return "partial: " + state + "; others go on; no action";
  if (!verdict.StandsStill() || verdict.IsHang()) return state;
  // Why nothing is done about it.
  const std::string why = verdict.doubts.empty() ? "" : ": " + Printable(verdict.doubts.front());
  return fmt::format("possible: {}{}; no action", state, why);
}

}  // namespace

std::string StacksText(const Verdict& verdict) {
  std::string text;
  for (const SubjectStack& stack : verdict.stacks) {
    text += fmt::format("\nstack of {}, of process {}: {}\n", Printable(stack.name),
                        Printable(stack.process), Printable(stack.command, kMostOfACommand));
    for (const std::string& frame : stack.frames) text += "  " + Printable(frame) + "\n";
    if (stack.omitted > 0) text += fmt::format("  ... {} more\n", stack.omitted);
  }
  return text;
}

std::string PlaceText(const Place& place) {
  if (!place.text.empty()) return Quoted(place.text, kLongestText);
  std::string text =
      place.function.empty() ? fmt::format("{:#x}", place.pc) : Printable(place.function);
  if (!place.source.empty()) text += "  " + Printable(place.source);
  return text;
}

void NameCaller(const std::vector<Place>& stack, FindingSubject* core) {
  const auto has_waypoint = [&](const Place& place) {
    return std::find(core->functions.begin(), core->functions.end(), place.function) !=
           core->functions.end();
  };
  auto caller = stack.begin();
  if (!core->at.empty()) {
    const auto waits = std::find_if(stack.begin(), stack.end(), has_waypoint);
    caller = waits == stack.end() ? waits : std::next(waits);
  }
  if (caller == stack.end()) return;
  core->inside = std::exchange(core->where, PlaceText(*caller));
  core->callers = Texts({std::next(caller), stack.end()});
  core->callers.resize(std::min(core->callers.size(), kMostCallers));
}

std::string CallersText(const std::vector<std::string>& callers) {
  std::string text;
  for (size_t i = 0; i < std::min(callers.size(), kMostCallersInLine); ++i)
    text += " <- " + Printable(callers[i].substr(0, callers[i].find("  ")));
  if (callers.size() > kMostCallersInLine) text += " <- ...";
  return text.empty() ? text : " " + text;
}

std::string CoreText(const CoreVerdict& core, TimeNs now) {
  const std::string age = FormatElapsed(now - core.since);
  if (core.state == State::kLooping && core.loop) return LoopText(core, age);
  const std::string name = Printable(core.name);
  if (core.state == State::kSilent) {
    return fmt::format(
        "{}  {} since {}{}  {}{}", name, core.asleep ? "sleeps (wfi)" : "silent", age,
        core.since_cycle ? fmt::format(", cycle {},", FormatCount(*core.since_cycle)) : "",
        PlaceText(core.place), CallersText(Texts(core.callers)));
  }
  return fmt::format("{}  {}, last at  {}", name, StateName(core.state), PlaceText(core.place));
}

std::string HeartbeatText(const Heartbeat& beat) {
  return FormatElapsed(beat.elapsed) + Numbers(beat) + "  " + StateInLine(beat);
}

std::string LiveHeartbeatText(const Heartbeat& beat) {
  return FormatElapsed(beat.elapsed) + "  " + StateInLine(beat) + Numbers(beat);
}

std::string VerdictText(const Verdict& verdict, TimeNs start, const std::string& snapshot) {
  std::string text = "hangscope: " + Headline(verdict, start) + "\n";
  for (const Finding& found : verdict.findings) text += FindingText(found, verdict.summary);
  for (const CoreVerdict& core : verdict.cores) {
    if (!core.is_evidence) text += "  " + CoreText(core, verdict.time) + "\n";
  }
  for (const StreamVerdict& stream : verdict.streams)
    text += "  " + StreamText(stream, verdict.time) + "\n";
  // With one core its own line says it all.
  const CoreVerdict* first = nullptr;
  for (const CoreVerdict& core : verdict.cores) {
    if (core.state == State::kLooping && (first == nullptr || core.since < first->since))
      first = &core;
  }
  if (first != nullptr && verdict.cores.size() > 1 && verdict.state == State::kLooping) {
    text += fmt::format("  first to stop: {}, {} after the start{}\n", Printable(first->name),
                        FormatElapsed(first->since - start),
                        first->since_at_least ? " or earlier" : "");
  }
  if (verdict.state == State::kPartial)
    text += fmt::format("  others go on: {}\n", Printable(verdict.goes_on));
  if (const CoreVerdict* const core = FirstWithAWay(verdict)) text += WayText(*core);
  text += LastOutputText(verdict);
  for (const std::string& line : verdict.evidence) text += "  " + line + "\n";
  for (const std::string& doubt : verdict.doubts)
    text += "  not certain: " + Printable(doubt) + "\n";
  if (!snapshot.empty()) text += "  snapshot: " + snapshot + "\n";
  return text;
}

std::string StandingText(const Verdict& verdict) {
  if (verdict.state == State::kPartial)
    return "partial, others go on: " + Printable(verdict.goes_on);
  if (!verdict.findings.empty()) return "";
  const bool is_known = verdict.state == State::kIdle || verdict.state == State::kProgressing;
  if (is_known) return "no hang found: " + Printable(verdict.summary);
  const bool has_reason = !verdict.doubts.empty() && verdict.doubts.front() != kNothingKnown;
  return "no hang found" + (has_reason ? ": " + Printable(verdict.doubts.front()) : "");
}

std::string VerdictInReport(const std::string& report) {
  return report.substr(0, report.find("\n\n") + 1);
}

std::string TriggerText(const Trigger& trigger) {
  std::string text = Printable(trigger.name, kMostOfATrigger);
  if (!trigger.detail.empty()) {
    const std::string where = trigger.stream.empty() ? "" : trigger.stream + ": ";
    text += fmt::format(" ({}{})", where, Printable(trigger.detail, kMostOfATrigger));
  }
  if (trigger.suppressed > 0)
    text += fmt::format(", {} more since the last", FormatCount(trigger.suppressed));
  return text;
}

std::string ContentsText(const Manifest& manifest) {
  const std::vector<StreamWindow>& streams = manifest.streams;
  std::string text;
  for (const StreamWindow& stream : streams) {
    if (stream.bytes() == 0 && streams.size() > 1) continue;
    text += fmt::format("{}{} of {}", text.empty() ? "" : ", ", FormatSize(stream.bytes()),
                        stream.name);
  }
  if (text.empty() && !streams.empty()) text = "nothing was printed";
  if (!manifest.cpu.file.empty()) {
    text +=
        fmt::format("{}{} of {} CPU{}", text.empty() ? "" : ", ", FormatSize(manifest.cpu.bytes),
                    manifest.cpu.rings, manifest.cpu.rings == 1 ? "" : "s");
  }
  if (const auto& memories = manifest.device.memories; !memories.empty()) {
    const auto there = std::count_if(memories.begin(), memories.end(),
                                     [](const auto& memory) { return memory.unread.empty(); });
    text += fmt::format("{}{} of {} memories", text.empty() ? "" : ", ", there, memories.size());
  }
  return "(" + text + (text.empty() ? "" : ", ") + "report.html)";
}

namespace {

std::string MemoriesText(const DeviceManifest& device) {
  std::string text;
  for (const MemoryManifest& memory : device.memories) {
    const std::string name = Printable(memory.name);
    text += memory.unread.empty()
                ? fmt::format("memory {}: {} in {}\n", name, FormatSize(memory.image_bytes),
                              memory.image)
                : fmt::format("memory {}: could not be read: {}\n", name, Printable(memory.unread));
  }
  return text;
}

std::string MissingThreadsText(const CpuManifest& cpu) {
  if (cpu.threads_not_recorded == 0) return "";
  return fmt::format("  {} of {} threads are not recorded, and none of what they make later\n",
                     FormatCount(cpu.threads_not_recorded), FormatCount(cpu.threads_at_start));
}

}  // namespace

std::string ReportText(const Manifest& manifest) {
  std::string text = VerdictText(manifest.verdict, manifest.start, "");
  text += StacksText(manifest.verdict) + LastLinesText(manifest.verdict);
  text += "\n";
  if (!manifest.command.empty()) {
    text += "command:";
    for (const std::string& word : manifest.command) text += " " + word;
    text += "\n";
  }
  if (!manifest.elf.empty()) text += "elf: " + manifest.elf + "\n";
  const TimeNs later = manifest.time - manifest.trigger.time;
  text += fmt::format("trigger: {} at {}, {} after the start\n", TriggerText(manifest.trigger),
                      FormatWallTime(manifest.wall - later),
                      FormatElapsed(manifest.trigger.time - manifest.start));
  if (!manifest.post.none()) {
    const std::string wanted = manifest.post.time != 0 ? FormatElapsed(manifest.post.time)
                                                       : FormatSize(manifest.post.bytes);
    text += fmt::format("taken {} later, for --post {}\n", FormatElapsed(later), wanted);
  }
  for (const StreamWindow& stream : manifest.streams) {
    text += fmt::format("{}: bytes {}..{} ({}), the last {}", stream.name, stream.begin_offset,
                        stream.end_offset, FormatSize(stream.bytes()),
                        FormatElapsed(stream.end_time - stream.begin_time));
    if (stream.begin_offset > 0)
      text += fmt::format("; {} before that are overwritten", FormatSize(stream.begin_offset));
    text += "\n";
    for (const Loss& loss : stream.losses) {
      text += fmt::format("  missing: bytes {}..{} ({})\n", loss.begin, loss.end,
                          LossReasonName(loss.reason));
    }
  }
  text += MemoriesText(manifest.device);
  if (manifest.window) {
    WindowTextOptions options;
    options.wall_minus_monotonic = manifest.wall - manifest.time;
    text += "\n" + WindowText(*manifest.window, options);
  }
  text += MissingThreadsText(manifest.cpu);
  if (!manifest.scope.not_in_window.empty())
    text +=
        "\nthe scope's cores are not in the window: " + Printable(manifest.scope.not_in_window) +
        "\n";
  size_t ways = 0;
  for (const CoreVerdict& core : manifest.verdict.cores) {
    const bool told = core.way.empty() || &core == FirstWithAWay(manifest.verdict);
    if (!told && ++ways < kMostWaysTold) text += "\n" + WayText(core);
    if (!core.loop) continue;
    text += fmt::format("\nthe loop of {}, in order:\n", Printable(core.name));
    const auto& places = core.loop->places;
    for (size_t i = 0; i < std::min(places.size(), kMostPlacesListed * 8); ++i) {
      text += places[i].text.empty()
                  ? fmt::format("  {:#x}  {}\n", places[i].pc, PlaceText(places[i]))
                  : fmt::format("  {}\n", Printable(places[i].text));
    }
    if (places.size() > kMostPlacesListed * 8)
      text += fmt::format("  ... {} more\n", places.size() - kMostPlacesListed * 8);
  }
  return text;
}

}  // namespace hangscope
