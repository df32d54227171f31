// hangscope set: docs/hangscope-set.md.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/near_name.h"
#include "base/units.h"
#include "base/utf8.h"
#include "commands.h"
#include "hangscope/abi/watch.h"
#include "help/all_helps.h"
#include "options.h"
#include "scope/delay_text.h"
#include "scope/live_scope.h"
#include "scope/settings/start_settings.h"
#include "scope/target_control.h"
#include "scope/watch_text.h"
#include "watch/core_set.h"
#include "watch/target_settings.h"

namespace hangscope::cli {
namespace {

const std::vector<std::string> kActions = {"pause", "resume", "delay",
                                           "mask",  "freeze", "features"};

constexpr size_t kMostNamed = 6;  // cores in one line

struct SetWords {
  std::string action;
  ScopeSource source;
  std::string start;     // the file to be written; empty: the target runs
  std::string cores_of;  // empty: cores have numbers alone
  std::vector<std::string> cores;
  std::vector<std::string> settings;
};

Result<std::vector<uint32_t>> ResolveCores(LiveScope& view, const SetWords& words,
                                           std::optional<uint32_t> count = std::nullopt) {
  std::vector<Corruption> corruptions;
  auto nodes = view.reader().ReadNodes(&corruptions);
  if (!nodes.ok()) return nodes.status();
  std::vector<NodePlace> places;
  for (const NodeSample& node : *nodes) places.push_back({node.x, node.y});
  const std::vector<ScopeCore> rings = view.view().Cores();
  std::vector<CoreIdentity> cores;
  if (count && *count != view.sample().cores.size())
    return Status::Usage(fmt::format("{} has {} cores, and the program {}: it is another program's",
                                     view.name(), view.sample().cores.size(), *count));
  for (size_t i = 0; i < view.sample().cores.size(); ++i) {
    const CoreSample& sample = view.sample().cores[i];
    const bool in_use = sample.in_use && sample.launch != LaunchState::kEnded;
    cores.push_back({in_use, sample.node, view.names().Role(sample.role),
                     i < rings.size() ? rings[i].name : ""});
  }
  return ParseCoreSet(words.cores, cores, places);
}

// Checked before anything is written: all cores or none.
struct Change {
  DelaySettings delays;
  uint32_t number = 0;  // classes, or records
};

Result<Change> ParseChange(const SetWords& words) {
  if (words.action == "delay" && !words.settings.empty()) {
    auto delays = ParseDelaySettings(words.settings);
    return delays.ok() ? Result<Change>(Change{*delays, 0}) : delays.status();
  }
  if (words.action == "mask" || words.action == "freeze") {
    auto number = words.action == "mask" ? ParseMaskSetting(words.settings)
                                         : ParseFreezeSetting(words.settings);
    return number.ok() ? Result<Change>(Change{{}, *number}) : number.status();
  }
  const bool takes_none = words.action == "pause" || words.action == "resume";
  if (takes_none && !words.settings.empty())
    return Status::Usage(
        fmt::format("'{}': {} takes no settings", Printable(words.settings[0]), words.action));
  return Change{};
}

Status Apply(TargetControl& control, const SetWords& words, const Change& change, uint32_t core) {
  if (words.action == "pause") return control.Pause(core);
  if (words.action == "resume") return control.Resume(core);
  if (words.action == "delay") return control.SetDelays(core, change.delays);
  if (words.action == "mask") return control.SetMask(core, change.number);
  return control.FreezeAfter(core, change.number);
}

std::string NamesOf(const LiveScope& view, const std::vector<uint32_t>& cores) {
  std::string text;
  for (size_t i = 0; i < std::min(cores.size(), kMostNamed); ++i) {
    text += (i == 0 ? "" : ", ") + view.names().Core(cores[i], view.sample().cores[cores[i]]);
  }
  if (cores.size() > kMostNamed) text += fmt::format(" and {} more", cores.size() - kMostNamed);
  return text;
}

// How many delays of each kind each core had so far; and whether any is set.
struct DelaysSoFar {
  std::vector<std::array<uint32_t, 3>> done;
  bool any_is_set = false;
};

Result<DelaysSoFar> ReadDelays(LiveScope& view, const std::vector<uint32_t>& cores) {
  DelaysSoFar all;
  for (const uint32_t core : cores) {
    auto detail = view.Detail(core);
    if (!detail.ok()) return detail.status();
    all.done.push_back(detail->delays_done);
    all.any_is_set = all.any_is_set || detail->delays != std::array<uint32_t, 3>{};
  }
  return all;
}

// Of each core, which delays ran between the two: "12 writes"; empty: none.
std::vector<std::string> DelaysBetween(const DelaysSoFar& before, const DelaysSoFar& after) {
  std::vector<std::string> texts;
  for (size_t i = 0; i < after.done.size(); ++i) {
    std::array<uint32_t, 3> done = after.done[i];
    for (size_t kind = 0; kind < done.size(); ++kind) done[kind] -= before.done[i][kind];
    texts.push_back(DelaysDoneText(done));
  }
  return texts;
}

// Of the cores for which `texts` have something, or, without texts, nothing.
std::string ListOf(const LiveScope& view, const std::vector<uint32_t>& cores,
                   const std::vector<std::string>& texts, bool with_text) {
  std::vector<std::string> list;
  for (size_t i = 0; i < cores.size(); ++i) {
    if (texts[i].empty() == with_text) continue;
    list.push_back(view.names().Core(cores[i], view.sample().cores[cores[i]]) +
                   (with_text ? " " + texts[i] : ""));
  }
  const size_t all = list.size();
  list.resize(std::min(all, kMostNamed));
  return fmt::format("{}{}", fmt::join(list, ", "),
                     all > kMostNamed ? fmt::format(" and {} more", all - kMostNamed) : "");
}

// Waits a moment until each of the cores had one, and says which ran: the proof.
Status ShowDelays(LiveScope& view, const std::vector<uint32_t>& cores, Clock& clock) {
  constexpr TimeNs kMost = kSecond;
  constexpr TimeNs kStep = 20 * kMillisecond;
  const TimeNs begin = clock.Monotonic();
  auto before = ReadDelays(view, cores);
  if (!before.ok()) return before.status();
  if (!before->any_is_set) return {};
  std::vector<std::string> texts;
  auto missing = static_cast<ptrdiff_t>(cores.size());
  while (missing > 0 && clock.Monotonic() - begin < kMost) {
    clock.Sleep(kStep);
    auto after = ReadDelays(view, cores);
    if (!after.ok()) return after.status();
    texts = DelaysBetween(*before, *after);
    missing = std::ranges::count(texts, std::string());
  }
  const std::string took = FormatElapsed(clock.Monotonic() - begin);
  if (missing < static_cast<ptrdiff_t>(cores.size()))
    WriteOut(fmt::format("{}: delayed in {}: {}\n", view.name(), took,
                         ListOf(view, cores, texts, true)));
  if (missing == 0) return {};
  auto switches = view.reader().ReadSwitches();
  const bool off = switches.ok() && (*switches & HANGSCOPE_WATCH_DELAYS) == 0;
  WriteOut(fmt::format("{}: nothing delayed in {}: {}{}\n", view.name(), took,
                       ListOf(view, cores, texts, false),
                       off ? "; delays are switched off for the whole target" : ""));
  return {};
}

// What is set of each, and ran since the target began.
int PrintDelays(LiveScope& view, const std::vector<uint32_t>& cores) {
  std::string text;
  for (const uint32_t core : cores) {
    auto detail = view.Detail(core);
    if (!detail.ok()) return Fail(detail.status());
    const std::string delays = DelaysText(*detail);
    if (!delays.empty())
      text += fmt::format("{}: {}: {}\n", view.name(),
                          view.names().Core(core, view.sample().cores[core]), delays);
  }
  if (text.empty())
    text =
        fmt::format("{}: no delay is set, and none ran: {}\n", view.name(), NamesOf(view, cores));
  return Succeed(text);
}

int SetFeatures(LiveScope& view, const SetWords& words) {
  if (!words.cores.empty())
    return Fail(Status::Usage(fmt::format(
        "'{}': features are of the whole target; for example hangscope set features TARGET waits=0",
        Printable(words.cores[0]))));
  auto switches = view.reader().ReadSwitches();
  if (!switches.ok()) return Fail(switches.status());
  const uint32_t built = view.reader().layout().features;
  auto wanted = ParseFeatureSettings(words.settings, built, *switches);
  if (!wanted.ok()) return Fail(wanted.status());
  if (*wanted != *switches) {
    if (Status status = TargetControl(view.reader()).SetSwitches(*wanted); !status.ok())
      return Fail(status);
  }
  WriteOut(fmt::format("{}: {}\n", view.name(), FeaturesText(built, *wanted)));
  return kExitClean;
}

// By number; or as the cores of a run are called.
Result<std::vector<uint32_t>> ResolveStartCores(const SetWords& words, uint32_t count,
                                                std::vector<std::string>* names) {
  if (words.cores_of.empty()) {
    for (uint32_t core = 0; core < count; ++core) names->push_back(fmt::format("core {}", core));
    auto cores = ParseCoreSet(words.cores, std::vector<CoreIdentity>(count), {});
    if (cores.ok()) return cores;
    return Status::Usage(cores.status().message() +
                         "; before the program runs cores have numbers alone, roles and nodes are "
                         "those of a run or snapshot that --cores-of names");
  }
  SystemClock clock;
  ScopeSource source = words.source;
  source.elf = std::exchange(source.target, words.cores_of);
  auto view = LiveScope::Open(PosixFileSystem(), source, {});
  if (!view.ok()) return view.status();
  if (Status status = (*view)->PollLiveOrDead(clock.Monotonic()); !status.ok()) return status;
  for (uint32_t core = 0; core < (*view)->sample().cores.size(); ++core)
    names->push_back((*view)->names().Core(core, (*view)->sample().cores[core]));
  return ResolveCores(**view, words, count);
}

Status WriteStart(const SetWords& words, const StartSettings& settings) {
  const std::string& elf = words.source.target;
  std::error_code error;
  if (std::filesystem::equivalent(elf, words.start, error))
    return Status::Usage(fmt::format("--start '{}' is the program itself; give another file",
                                     Printable(words.start)));
  if (Status status = WriteWholeFile(PosixFileSystem(), words.start, settings.program());
      !status.ok())
    return status;
  std::filesystem::permissions(words.start, std::filesystem::status(elf, error).permissions(),
                               error);
  return {};
}

// Changes what a program begins with.
int SetStart(const SetWords& words) {
  if (words.action != "delay" && words.action != "features")
    return Fail(Status::Usage(fmt::format(
        "--start writes delays and features; '{}' is for a target that runs", words.action)));
  auto settings = StartSettings::Read(PosixFileSystem(), words.source.target);
  if (!settings.ok()) return Fail(settings.status());
  std::string said;
  if (words.action == "features") {
    auto wanted =
        ParseFeatureSettings(words.settings, HANGSCOPE_WATCH_FEATURES, settings->switches());
    if (!wanted.ok()) return Fail(wanted.status());
    settings->SetSwitches(*wanted);
    said = fmt::format("{}: begins with {}\n", words.start,
                       FeaturesText(HANGSCOPE_WATCH_FEATURES, *wanted));
  } else {
    auto delays = ParseDelaySettings(words.settings);
    if (!delays.ok()) return Fail(delays.status());
    std::vector<std::string> names;
    auto cores = ResolveStartCores(words, settings->core_count(), &names);
    if (!cores.ok()) return Fail(cores.status());
    for (const uint32_t core : *cores) settings->SetDelays(core, *delays);
    for (uint32_t core = 0; core < settings->core_count(); ++core) {
      if (const std::string text = settings->DelaysText(core); !text.empty())
        said += fmt::format("{}: {} begins with delays of {}\n", words.start, names[core], text);
    }
    if (said.empty()) said = fmt::format("{}: begins without delays\n", words.start);
  }
  if (Status status = WriteStart(words, *settings); !status.ok()) return Fail(status);
  return Succeed(said);
}

int Set(const SetWords& words) {
  if (!words.start.empty()) return SetStart(words);
  auto change = ParseChange(words);
  if (!change.ok()) return Fail(change.status());
  SystemClock clock;
  auto view = LiveScope::Open(PosixFileSystem(), words.source, {});
  if (!view.ok()) return Fail(view.status());
  const bool only_prints = words.action == "delay" && words.settings.empty();
  if (Status status = (*view)->CheckChangeable(); !only_prints && !status.ok()) return Fail(status);
  for (const std::string& warning : (*view)->warnings()) PrintNote("warning: " + warning);
  if (Status status = (*view)->PollLiveOrDead(clock.Monotonic()); !status.ok()) return Fail(status);
  if (words.action == "features") return SetFeatures(**view, words);
  auto cores = ResolveCores(**view, words);
  if (!cores.ok()) return Fail(cores.status());
  if (only_prints) return PrintDelays(**view, *cores);
  TargetControl control((*view)->reader());
  for (const uint32_t core : *cores) {
    if (Status status = Apply(control, words, *change, core); !status.ok()) return Fail(status);
  }
  WriteOut(fmt::format("{}: {} set for {} core{}: {}\n", (*view)->name(), words.action,
                       cores->size(), cores->size() == 1 ? "" : "s", NamesOf(**view, *cores)));
  if (words.action == "delay") {
    if (Status status = ShowDelays(**view, *cores, clock); !status.ok())
      PrintNote("which delays ran cannot be read: " + status.message());
  }
  return kExitClean;
}

}  // namespace

int SetCommand(const std::vector<std::string>& words) {
  OptionParser parser(SetHelp());
  SetWords set;
  std::vector<std::string> rest;
  parser.Option("--elf", &set.source.elf);
  parser.Flag("--intrusive", &set.source.intrusive);
  parser.Option("--start", &set.start);
  parser.Option("--cores-of", &set.cores_of);
  parser.Positionals("words", &rest);
  if (const auto exit = parser.Parse(words)) return *exit;
  if (rest.empty())
    return Fail(Status::Usage("nothing to set; for example hangscope set pause pid:4711 all"));
  set.action = rest[0];
  if (std::find(kActions.begin(), kActions.end(), set.action) == kActions.end()) {
    const std::vector<std::string> near = NearNames(set.action, kActions, 2, 1);
    return Fail(Status::Usage(
        fmt::format("cannot set '{}'; {}", Printable(set.action),
                    near.empty() ? fmt::format("there are {}", fmt::join(kActions, ", "))
                                 : "did you mean '" + near[0] + "'?")));
  }
  if (rest.size() < 2)
    return Fail(Status::Usage(
        fmt::format("no target given; for example hangscope set {} pid:4711 all", set.action)));
  if (set.start.empty() && !set.cores_of.empty())
    return Fail(Status::Usage("--cores-of is for --start, which writes a program's copy"));
  set.source.target = rest[1];
  for (size_t i = 2; i < rest.size(); ++i)
    (rest[i].find('=') != std::string::npos ? set.settings : set.cores).push_back(rest[i]);
  return Set(set);
}

}  // namespace hangscope::cli
