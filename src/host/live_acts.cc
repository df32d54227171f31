#include "host/live_acts.h"

#include <fmt/format.h>

#include <utility>
#include <variant>

#include "hangscope/abi/watch.h"
#include "host/translation.h"
#include "scope/target_control.h"

namespace hangscope {
namespace {

static_assert(host::kFeatureWaypoints == HANGSCOPE_WATCH_WAYPOINTS &&
              host::kFeatureWaits == HANGSCOPE_WATCH_WAITS &&
              host::kFeatureAsserts == HANGSCOPE_WATCH_ASSERTS &&
              host::kFeaturePauses == HANGSCOPE_WATCH_PAUSES &&
              host::kFeatureDebug == HANGSCOPE_WATCH_DEBUG &&
              host::kFeatureDelays == HANGSCOPE_WATCH_DELAYS &&
              host::kFeatureBus == HANGSCOPE_WATCH_BUS &&
              host::kFeatureStacks == HANGSCOPE_WATCH_STACKS &&
              host::kFeatureGuards == HANGSCOPE_WATCH_GUARDS);

constexpr uint32_t kMostRounds = HANGSCOPE_DELAY_RANDOM - 1;
constexpr uint32_t kMostRecords = 0x7fffffffu;

host::Event EventOf(const ScopeEvent& from, const LiveScope& scope) {
  const ScopeLayout& layout = scope.layout();
  host::Event to;
  to.core = from.core;
  to.sequence = from.sequence;
  to.earlier_start = from.age;
  to.task = from.task;
  to.ticks = from.time;
  to.is_ambiguous = from.ambiguous;
  if (const auto time = layout.Nanoseconds(from.time)) to.time = std::chrono::nanoseconds(*time);
  to.name = scope.catalog().Name(from.id);
  to.text = scope.catalog().Format(from, layout.word_bytes);
  return to;
}

}  // namespace

template <typename Act>
host::Status LiveActs::OnCore(uint32_t core, Act act) {
  const uint32_t cores = scope_.layout().core_count;
  if (core >= cores) return {host::Code::kUsage, fmt::format("there are cores 0 to {}", cores - 1)};
  if (Status status = scope_.CheckChangeable(); !status.ok()) return ToHost(status);
  TargetControl control(scope_.reader());
  return ToHost(act(control));
}

host::Status LiveActs::Pause(uint32_t core) {
  return OnCore(core, [core](TargetControl& control) { return control.Pause(core); });
}

host::Status LiveActs::Resume(uint32_t core) {
  return OnCore(core, [core](TargetControl& control) { return control.Resume(core); });
}

host::Status LiveActs::SetDelays(uint32_t core, const host::Delays& delays) {
  DelaySettings settings;
  settings.seed = delays.seed;
  const std::optional<host::Delay> given[] = {delays.read, delays.write, delays.atomic};
  for (size_t i = 0; i < std::size(given); ++i) {
    if (!given[i]) continue;
    if (given[i]->rounds > kMostRounds)
      return {host::Code::kUsage, fmt::format("a delay of {} rounds; up to {} are possible",
                                              given[i]->rounds, kMostRounds)};
    settings.delays[i] = given[i]->rounds | (given[i]->random ? HANGSCOPE_DELAY_RANDOM : 0u);
  }
  return OnCore(core, [&](TargetControl& control) { return control.SetDelays(core, settings); });
}

host::Status LiveActs::SetMask(uint32_t core, uint32_t classes) {
  return OnCore(core, [=](TargetControl& control) { return control.SetMask(core, classes); });
}

host::Status LiveActs::FreezeAfter(uint32_t core, uint32_t records) {
  if (records > kMostRecords)
    return {host::Code::kUsage,
            fmt::format("{} records; up to {} are possible", records, kMostRecords)};
  return OnCore(core, [=](TargetControl& control) { return control.FreezeAfter(core, records); });
}

host::Result<host::Features> LiveActs::ReadFeatures() {
  auto switches = scope_.reader().ReadSwitches();
  if (!switches.ok()) return ToHost(switches.status());
  const uint32_t built = scope_.reader().layout().features;
  return host::Features{built, *switches & built};
}

host::Status LiveActs::SetFeatures(uint32_t on) {
  const uint32_t built = scope_.reader().layout().features;
  if ((on & ~built) != 0)
    return {host::Code::kUsage, fmt::format("features {:#x} are not built into {}", on & ~built,
                                            scope_.view().scope().target().name())};
  if (Status status = scope_.CheckChangeable(); !status.ok()) return ToHost(status);
  return ToHost(TargetControl(scope_.reader()).SetSwitches(on));
}

host::Result<host::Events> LiveActs::ReadEvents(Clock& clock) {
  ScopeView& view = scope_.view();
  view.StartOver();
  if (Status status = view.SampleOnce(clock); !status.ok()) return ToHost(status);
  host::Events found;
  for (const EventOrLoss& item : view.Take()) {
    if (const auto* loss = std::get_if<EventLoss>(&item))
      found.lost += loss->end - loss->begin;
    else
      found.events.push_back(EventOf(std::get<ScopeEvent>(item), scope_));
  }
  view.StartOver();
  return found;
}

host::Status LiveActs::TakeSnapshot(FileSystem& files, const std::string& folder) {
  auto image = scope_.view().scope().ReadImage();
  if (!image.ok()) return ToHost(image.status());
  if (Status status = files.MakeFolder(folder, FileSystem::Mode::kNew); !status.ok())
    return ToHost(status);
  const std::string& catalog = scope_.view().catalog_bytes();
  Status status = WriteWholeFile(files, folder + "/" + kScopeImageName, *image);
  if (status.ok() && !catalog.empty())
    status = WriteWholeFile(files, folder + "/" + kScopeCatalogName, catalog);
  if (!status.ok()) (void)files.RemoveFolder(folder).ok();
  return ToHost(status);
}

}  // namespace hangscope
