#include "watch/live_details.h"

#include <fmt/format.h>

#include <algorithm>

#include "scope/delay_text.h"

namespace hangscope {
namespace {

using Kind = SubjectId::Kind;

constexpr size_t kMostEvents = 200;
constexpr size_t kMostSuppliers = 8;
constexpr size_t kMostDebugValues = 32;

// By the claims, which a target may have overflowed; a task's record may name who holds it.
void FindSuppliers(WatchSource& source, const SubjectState& subject, const WatchScene& scene,
                   LiveDetails* details) {
  if (!subject.wait) return;
  const WaitState& wait = *subject.wait;
  if (wait.kind != ResourceKind::kExclusive && wait.kind != ResourceKind::kChannel) return;
  auto claims = source.Claims();
  if (!claims.ok())
    return details->problems.push_back("who holds it cannot be read: " + claims.status().message());
  uint32_t lost = 0;
  for (size_t row = 0; row < std::min(claims->size(), scene.subjects->size()); ++row) {
    const ClaimRow& claim = (*claims)[row];
    lost += claim.lost;
    const auto& names = wait.kind == ResourceKind::kExclusive ? claim.holds : claim.provides;
    if (std::find(names.begin(), names.end(), wait.resource) == names.end()) continue;
    details->suppliers.push_back(SubjectName((*scene.subjects)[row].subject, scene));
  }
  if (lost > 0 && details->suppliers.empty())
    details->problems.push_back(
        fmt::format("who holds or provides it may be among {} claims that had no room", lost));
}

void FindHolder(LiveScope& view, const SubjectId& subject, LiveDetails* details) {
  const auto& tasks = view.sample().tasks;
  if (subject.kind != Kind::kTask || subject.index >= tasks.size() ||
      !tasks[subject.index].record.holder)
    return;
  const std::string holder = view.names().Task(*tasks[subject.index].record.holder);
  if (std::find(details->suppliers.begin(), details->suppliers.end(), holder) ==
      details->suppliers.end())
    details->suppliers.push_back(holder);
}

std::string SupplierText(const LiveDetails& details) {
  if (details.suppliers.empty()) return "nobody that is known";
  std::vector<std::string> names = details.suppliers;
  names.resize(std::min(names.size(), kMostSuppliers));
  std::string text = fmt::format("{}", fmt::join(names, ", "));
  if (names.size() < details.suppliers.size())
    text += fmt::format(" and {} more", details.suppliers.size() - names.size());
  return text;
}

void AddFindings(const SubjectId& subject, const LiveTarget& target, std::vector<LiveLine>* lines) {
  if (target.findings == nullptr) return;
  for (const ScopeFinding& finding : *target.findings) {
    const auto among = [&](const std::vector<SubjectId>& all) {
      return std::find(all.begin(), all.end(), subject) != all.end();
    };
    if (among(finding.subjects))
      lines->push_back({FindingHeadline(finding, target.scene),
                        finding.IsBad() ? LiveStyle::kBad : LiveStyle::kTitle});
    else if (among(finding.victims))
      lines->push_back(
          {"waits because of: " + FindingHeadline(finding, target.scene), LiveStyle::kTitle});
  }
}

void AddWait(const SubjectState& subject, const LiveDetails& details,
             std::vector<LiveLine>* lines) {
  if (!subject.wait) return;
  switch (subject.wait->kind) {
    case ResourceKind::kExclusive:
      lines->push_back({"held by    " + SupplierText(details)});
      break;
    case ResourceKind::kChannel:
      lines->push_back({"provided   by " + SupplierText(details)});
      break;
    case ResourceKind::kSuspended:
      if (!details.suppliers.empty()) lines->push_back({"by         " + SupplierText(details)});
      break;
    default:
      break;
  }
}

void AddStack(const SubjectState& subject, const LiveDetails& details,
              std::vector<LiveLine>* lines) {
  if (!subject.sample.stack_free) return;
  std::string text = fmt::format("stack      {} bytes were never used", *subject.sample.stack_free);
  if (details.core && details.core->stack_bytes > 0)
    text += fmt::format(", of {}", details.core->stack_bytes);
  lines->push_back({text});
}

void AddCore(const SubjectState& subject, const WatchScene& scene, const LiveDetails& details,
             std::vector<LiveLine>* lines) {
  const CoreSample& sample = subject.sample;
  if (sample.fault != FaultType::kNone) {
    const std::string fault =
        details.core && details.core->fault.type != FaultType::kNone
            ? scene.NamesOf(subject.subject, details.core->fault).Fault(details.core->fault)
            : std::string(FaultTypeName(sample.fault));
    lines->push_back({"fault      " + fault, LiveStyle::kBad});
  }
  if (sample.paused != PausedState::kNot || sample.pause_asked) {
    const char* const how = sample.paused == PausedState::kByCode   ? "by itself"
                            : sample.paused == PausedState::kByHost ? "from outside"
                                                                    : "asked for, it gets there";
    lines->push_back(
        {fmt::format("paused     {}; r lets all paused cores go on", how), LiveStyle::kPaused});
  }
  if (sample.kernel != 0) {
    const std::string_view launch = LaunchName(sample.launch);
    lines->push_back(
        {fmt::format("kernel     {}{}{}", scene.NamesOf(subject.subject).Kernel(sample.kernel),
                     launch.empty() ? "" : ", ", launch)});
  }
  AddStack(subject, details, lines);
  lines->push_back({fmt::format("heartbeat  {}, waits so far {}", sample.heartbeat,
                                (sample.wait_sequence + 1) / 2)});
  const std::string delays = details.core ? DelaysText(*details.core) : "";
  if (!delays.empty()) lines->push_back({"delays     " + delays});
}

void AddRing(const ScopeCore& ring, std::vector<LiveLine>* lines) {
  const EventCounts& counts = ring.counts;
  std::string text =
      fmt::format("ring       {} emitted: {} there, {} overwritten, {} torn, {} refused",
                  counts.emitted, counts.returned, counts.overwritten, counts.torn, counts.refused);
  if (counts.pending > 0) text += fmt::format(", {} being written", counts.pending);
  if (counts.unread > 0) text += fmt::format(", {} unread", counts.unread);
  if (ring.frozen) text += "; frozen";
  if (ring.records_until_frozen)
    text += fmt::format("; freezes after {} more", *ring.records_until_frozen);
  lines->push_back({text});
}

void AddEvents(const LiveDetails& details, std::vector<LiveLine>* lines) {
  lines->push_back(
      {details.ring.events.empty() ? "no events recorded" : "events, the newest first:",
       LiveStyle::kTitle});
  size_t width = 0;
  for (const auto& event : details.ring.events) width = std::max(width, event.time.size());
  for (size_t i = details.ring.events.size(); i-- > 0;)
    lines->push_back({fmt::format("  {:>{}}  {}", details.ring.events[i].time, width,
                                  details.ring.events[i].text)});
}

void AddDebugRing(const LiveDetails& details, std::vector<LiveLine>* lines) {
  if (details.debug.empty()) return;
  lines->push_back({"debug ring of its node, the newest first:", LiveStyle::kTitle});
  const size_t shown = std::min(details.debug.size(), kMostDebugValues);
  for (const std::string& row : DebugRingRows(
           {details.debug.begin(), details.debug.begin() + static_cast<ptrdiff_t>(shown)}))
    lines->push_back({"    " + row});
  if (shown < details.debug.size())
    lines->push_back({fmt::format("    and {} older ones", details.debug.size() - shown)});
}

}  // namespace

LiveDetails ReadDetails(Watchable& target, const SubjectId& whom, TimeNs now) {
  LiveDetails details;
  const WatchScene scene = target.Scene(now);
  if (const SubjectState* const found = scene.Find(whom))
    FindSuppliers(target.source(), *found, scene, &details);
  const auto [scope, subject] = target.HomeOf(whom);
  if (scope == nullptr) {
    details.problems.push_back("its memory cannot be read");
    return details;
  }
  LiveScope& view = *scope;
  FindHolder(view, subject, &details);
  details.ring = view.events().Read(subject, kMostEvents);
  if (subject.kind != Kind::kCore) return details;
  if (!details.ring.ring) details.problems.push_back("its ring cannot be read");
  auto core = view.Detail(subject.index);
  if (core.ok()) details.core = *core;
  details.debug = view.DebugRing(subject);
  return details;
}

std::vector<LiveLine> DetailLines(const SubjectState& subject, const LiveTarget& target,
                                  const LiveDetails& details) {
  const WatchScene& scene = target.scene;
  std::vector<LiveLine> lines;
  AddFindings(subject.subject, target, &lines);
  lines.push_back({fmt::format("{}{}", SubjectDoing(subject, scene),
                               subject.since_at_least ? " (so from the first look)" : "")});
  if (const std::string place = SubjectPlace(subject.subject, scene); !place.empty())
    lines.push_back({"at         " + place});
  AddWait(subject, details, &lines);
  if (subject.subject.kind == Kind::kCore) AddCore(subject, scene, details, &lines);
  for (const std::string& problem : details.problems) lines.push_back({problem, LiveStyle::kBad});
  if (details.ring.ring) AddRing(*details.ring.ring, &lines);
  AddDebugRing(details, &lines);
  AddEvents(details, &lines);
  return lines;
}

}  // namespace hangscope
