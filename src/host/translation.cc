#include "host/translation.h"

#include <fmt/format.h>

#include "hangscope/version.h"
#include "host/probe_adapter.h"

namespace hangscope {
namespace {

static_assert(static_cast<int>(host::Activity::kCorrupt) == static_cast<int>(Activity::kCorrupt),
              "the same, in the same order");
static_assert(static_cast<int>(host::FindingKind::kDead) == static_cast<int>(FindingKind::kDead),
              "the same, in the same order");
static_assert(static_cast<int>(host::Confidence::kCertain) ==
                  static_cast<int>(Confidence::kCertain),
              "the same, in the same order");

std::vector<std::string> NamesOf(const std::vector<SubjectId>& subjects, const WatchScene& scene) {
  std::vector<std::string> names;
  for (const SubjectId& subject : subjects) names.push_back(SubjectName(subject, scene));
  return names;
}

}  // namespace

host::Status ToHost(const Status& status) {
  switch (status.code()) {
    case Status::Code::kOk:
      return {};
    case Status::Code::kUsage:
      return {host::Code::kUsage, status.message()};
    case Status::Code::kIo:
      return {host::Code::kIo, status.message()};
    case Status::Code::kCorrupt:
      return {host::Code::kCorrupt, status.message()};
    case Status::Code::kNotFound:
      return {host::Code::kNotFound, status.message()};
    case Status::Code::kBusy:
      break;
  }
  return {host::Code::kBusy, status.message()};
}

Status FromHost(const host::Status& status) {
  switch (status.code()) {
    case host::Code::kOk:
      return {};
    case host::Code::kUsage:
      return Status::Usage(status.message());
    case host::Code::kIo:
      break;
    case host::Code::kCorrupt:
      return Status::Corrupt(status.message());
    case host::Code::kNotFound:
      return Status::NotFound(status.message());
    case host::Code::kBusy:
      return Status::Busy(status.message());
  }
  return Status::Io(status.message());
}

ScopeSource SourceOf(const std::string& specification, std::shared_ptr<host::Probe> probe,
                     const host::Options& options) {
  ScopeSource source{specification, options.elf, options.intrusive};
  if (probe == nullptr) return source;
  source.target = probe->Name();
  source.open = [probe] { return OpenProbe(probe); };
  return source;
}

Result<WatcherOptions> WatcherOptionsOf(const host::Options& options) {
  constexpr std::chrono::nanoseconds kShortest = std::chrono::milliseconds(1);
  constexpr std::chrono::nanoseconds kLongest = std::chrono::hours(1);
  const std::pair<const char*, std::chrono::nanoseconds> times[] = {{"stall", options.stall},
                                                                    {"interval", options.interval}};
  for (const auto& [name, time] : times) {
    if (time < kShortest || time > kLongest) {
      return Status::Usage(
          fmt::format("Options::{}: {} ns; 1 ms to 1 hour are possible", name, time.count()));
    }
  }
  WatcherOptions watcher;
  watcher.stall = options.stall.count();
  return watcher;
}

std::vector<host::Subject> SubjectsOf(const LiveScope& view, TimeNs now) {
  const WatchScene scene = view.Scene(now);
  std::vector<host::Subject> subjects;
  for (const SubjectState& from : *scene.subjects) {
    host::Subject& to = subjects.emplace_back();
    to.name = SubjectName(from.subject, scene);
    to.is_task = from.subject.kind == SubjectId::Kind::kTask;
    to.index = from.subject.index;
    to.activity = static_cast<host::Activity>(from.activity);
    to.for_at_least = std::chrono::nanoseconds(std::max<TimeNs>(0, now - from.since));
    if (!to.is_task) {
      to.waypoint = WatchNames::Waypoint(from.sample.waypoint);
      to.heartbeat = from.sample.heartbeat;
    }
    to.place = SubjectPlace(from.subject, scene);
    if (from.wait) to.waits_for = view.names().Resource(from.wait->resource);
  }
  return subjects;
}

host::Finding FindingOf(const ScopeFinding& finding, LiveScope& view, TimeNs now) {
  const WatchScene scene = view.Scene(now);
  const FindingHistory history = view.History(finding);
  host::Finding to;
  to.kind = static_cast<host::FindingKind>(finding.kind);
  to.confidence = static_cast<host::Confidence>(finding.confidence);
  to.is_bad = finding.IsBad();
  to.summary = FindingSummary(finding, scene);
  to.text = FindingText(finding, scene, history);
  to.subjects = NamesOf(finding.subjects, scene);
  to.partners = NamesOf(finding.partners, scene);
  to.victims = NamesOf(finding.victims, scene);
  return to;
}

namespace host {

const char* Version() noexcept { return HANGSCOPE_VERSION; }
const char* ActivityName(Activity activity) noexcept {
  return hangscope::ActivityName(static_cast<hangscope::Activity>(activity)).data();
}
const char* FindingKindName(FindingKind kind) noexcept {
  return hangscope::FindingKindName(static_cast<hangscope::FindingKind>(kind)).data();
}

Probe::~Probe() = default;
Status Probe::Write(uint64_t, const void*, size_t) {
  return {Code::kUsage, Name() + " does not write"};
}

}  // namespace host
}  // namespace hangscope
