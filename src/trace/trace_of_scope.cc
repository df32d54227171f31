#include "trace/trace_of_scope.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/json_text.h"
#include "base/merge_heap.h"
#include "device/live_device.h"
#include "hangscope/abi/catalog.h"
#include "hangscope/abi/scope.h"
#include "hangscope/version.h"
#include "scope/live_scope.h"
#include "scope/scope_text.h"
#include "snapshot/scope_items.h"
#include "snapshot/scope_times.h"
#include "trace/scope_kinds.h"
#include "trace/scope_standings.h"

namespace hangscope {
namespace {

constexpr int64_t kTasksOfMemory = int64_t{1} << 33;  // a number of a task is below

// One core's, in the order of its ring.
struct Lane {
  EventList items;  // their times in nanoseconds, never smaller than those before
  size_t next = 0;

  TimeNs TimeOf(size_t place) const { return static_cast<TimeNs>(items.time(place)); }
};

// A memory of a device, which all of them keep open.
struct OfDevice {
  std::shared_ptr<LiveDevice> device;
  LiveScope* scope = nullptr;
  uint32_t first_core = 0;  // of the device's
  bool is_first = false;    // has what is known of all memories together
};

// A lane's next item.
struct Cursor {
  TimeNs time = 0;
  size_t track = 0;

  bool operator>(const Cursor& other) const {
    return time != other.time ? time > other.time : track > other.track;
  }
};

class ScopeTrace final : public TraceSource {
 public:
  ScopeTrace(Clock& clock, const ScopeTraceOptions& options) : clock_(clock), options_(options) {}

  Status Open(FileSystem& files, const ScopeSource& source);
  Status Open(OfDevice memory);
  bool of_threads() { return (layout().features & HANGSCOPE_FEATURE_THREADS) != 0; }
  const TraceHead& head() const override { return head_; }
  const TraceEnd& end() const override { return end_; }
  Result<bool> Next(TraceItem* item) override;
  double progress() const override {
    return items_ == 0 ? 1 : static_cast<double>(taken_) / static_cast<double>(items_);
  }

 private:
  ScopeView& view() { return watch_ != nullptr ? watch_->view() : *view_; }
  const ScopeLayout& layout() { return view().layout(); }
  Status ReadAll(const ScopeSource& source);
  Status SampleMailboxes();
  void DescribeTarget(const ScopeSource& source);
  void SortItems();
  void AddTrack(const ScopeCore& core, Lane lane);
  void GiveTimes(uint32_t core, Lane* lane);
  void AddTroubles();
  void MakeEnd();
  void LastUntil(TimeNs now);
  void LastUntilWaits();
  bool IsUsed(const ScopeCore& core) const;
  std::string NameOf(const ScopeCore& core) const;
  ScopeKinds* KindsOf(const ScopeCore& core);
  void EmitEvent(size_t track, TraceItem* item);
  TraceLoss LossOf(size_t track) const;

  Clock& clock_;
  const ScopeTraceOptions options_;
  std::unique_ptr<ScopeView> view_;  // where there are no mailboxes
  std::unique_ptr<LiveScope> own_;   // else; null: the device's
  LiveScope* watch_ = nullptr;       // it; null: there are no mailboxes
  OfDevice memory_;                  // of none: a target of its own
  std::optional<ScopeTimes> times_;
  std::optional<WatchNames> own_names_;
  std::map<const ScopeCatalog*, ScopeKinds> kinds_;
  std::vector<ScopeKinds*> kinds_of_;  // by track
  TraceHead head_;
  TraceEnd end_;
  std::vector<uint32_t> owners_;  // by track
  std::vector<Lane> lanes_;       // by track
  MergeHeap<Cursor> order_;
  uint64_t earlier_ = 0;  // events of starts before the newest
  size_t items_ = 0;
  size_t taken_ = 0;
};

Status ScopeTrace::Open(FileSystem& files, const ScopeSource& source) {
  if (auto watch = LiveScope::Open(files, source, WatcherOptions()); watch.ok()) {
    own_ = std::move(*watch);
    watch_ = own_.get();
  } else {
    auto view = ScopeView::Open(files, source);
    if (!view.ok()) return view.status();
    view_ = std::move(*view);
  }
  return ReadAll(source);
}

Status ScopeTrace::Open(OfDevice memory) {
  memory_ = std::move(memory);
  watch_ = memory_.scope;
  ScopeSource source;
  source.target = memory_.device->name();
  return ReadAll(source);
}

Status ScopeTrace::ReadAll(const ScopeSource& source) {
  view().StartOver();
  if (Status status = view().SampleOnce(clock_); !status.ok()) return status;
  if (Status status = SampleMailboxes(); !status.ok()) head_.warnings.push_back(status.message());
  times_.emplace(layout(), options_.clocks);
  own_names_.emplace(view().catalog(), nullptr, 0);
  DescribeTarget(source);
  SortItems();
  AddTroubles();
  MakeEnd();
  return {};
}

// One look, after that at the events: how it stands at their end.
Status ScopeTrace::SampleMailboxes() {
  if (watch_ == nullptr || memory_.device != nullptr) return {};  // the device was sampled
  return watch_->PollLiveOrDead(clock_.Monotonic());
}

void ScopeTrace::DescribeTarget(const ScopeSource& source) {
  head_.name = source.target;
  head_.program = source.elf;
  head_.build_id = HexText(layout().build_id);
  head_.recorded_by = "hangscope " HANGSCOPE_VERSION;
  head_.counts_clock = times_->counts();
  for (const std::string& warning : watch_ != nullptr ? watch_->warnings() : view_->warnings())
    head_.warnings.push_back(warning);
  if (of_threads()) return;
  for (const auto& [task, name] : view().catalog().NamesOfKind(HANGSCOPE_CATALOG_TASK))
    head_.tasks[task] = name;
}

void ScopeTrace::SortItems() {
  for (const ScopeCore& core : view().Cores()) {
    Lane lane{view().DrainCore(core.index)};
    // Their clock began anew since: they have no place among the others.
    earlier_ += lane.items.RemoveEarlier();
    if (IsUsed(core) || !lane.items.empty()) AddTrack(core, std::move(lane));
  }
  bool any = false;
  for (size_t track = 0; track < lanes_.size(); ++track) {
    const Lane& lane = lanes_[track];
    if (lane.items.empty()) continue;
    const TimeSpan held{lane.TimeOf(0), lane.TimeOf(lane.items.size() - 1)};
    order_.Add({held.from, track});
    head_.time.from = any ? std::min(head_.time.from, held.from) : held.from;
    head_.time.to = any ? std::max(head_.time.to, held.to) : held.to;
    any = true;
  }
}

// A firmware may make rings for more cores than there are: those never said anything in their
// mailboxes, either.
bool ScopeTrace::IsUsed(const ScopeCore& core) const {
  if (!core.in_use || watch_ == nullptr || core.index >= watch_->watcher().subjects().size() ||
      !core.name.empty())
    return core.in_use;
  return core.counts.emitted > 0 ||
         watch_->watcher().subjects()[core.index].activity != Activity::kUnused;
}

std::string ScopeTrace::NameOf(const ScopeCore& core) const {
  if (memory_.device != nullptr)
    return SubjectName({SubjectId::Kind::kCore, memory_.first_core + core.index},
                       memory_.device->Scene(0));
  const bool sampled = watch_ != nullptr && core.index < watch_->sample().cores.size();
  if (sampled && core.name.empty())
    return watch_->names().Core(core.index, watch_->sample().cores[core.index]);
  return fmt::format("core {}{}{}", core.index, core.name.empty() ? "" : " ", core.name);
}

void ScopeTrace::AddTrack(const ScopeCore& core, Lane lane) {
  // Handlers that interrupt one another are told by time; that is seldom.
  lane.items.SortByRecord();
  GiveTimes(core.index, &lane);
  items_ += lane.items.size();
  if (!times_->knows(core.index))
    head_.warnings.push_back(fmt::format(
        "how core {}'s clock goes beside the others' is not known: its times are its own",
        core.index));
  head_.tracks.push_back(
      {{RingKind::kCore, memory_.first_core + core.index, "scope"}, NameOf(core), core.name});
  kinds_of_.push_back(KindsOf(core));
  const bool is_thread = options_.threads_are_tasks && of_threads() && core.owner != 0;
  owners_.push_back(is_thread ? core.owner : 0);
  if (is_thread && !core.name.empty()) head_.tasks[core.owner] = core.name;
  lanes_.push_back(std::move(lane));
}

// Those of what the core runs: each ELF of a device has a catalog of its own.
ScopeKinds* ScopeTrace::KindsOf(const ScopeCore& core) {
  const SubjectId subject{SubjectId::Kind::kCore, memory_.first_core + core.index};
  const ScopeCatalog& catalog =
      memory_.device != nullptr ? memory_.device->CatalogOf(subject) : view().catalog();
  const WatchNames* const names = watch_ != nullptr ? &watch_->names() : &*own_names_;
  return &kinds_.try_emplace(&catalog, catalog, names, layout().word_bytes, layout().parameters())
              .first->second;
}

// Handlers that interrupt one another record out of order, by little. A loss stands where the event
// behind it does.
void ScopeTrace::GiveTimes(uint32_t core, Lane* lane) {
  EventList& items = lane->items;
  std::optional<TimeNs> before;
  for (size_t i = 0; i < items.size(); ++i) {
    if (!items.is_event(i)) continue;
    const TimeNs time = times_->Of(core, items.time(i));
    before = std::max(before.value_or(time), time);
    items.SetTime(i, static_cast<uint64_t>(*before));
  }
  std::optional<TimeNs> after;
  for (size_t i = items.size(); i-- > 0;) {
    if (items.is_event(i))
      after = lane->TimeOf(i);
    else
      items.SetTime(i, static_cast<uint64_t>(
                           after.value_or(before.value_or(times_->Of(core, items.time(i))))));
  }
}

void ScopeTrace::AddTroubles() {
  if (earlier_ > 0) {
    head_.warnings.push_back(
        fmt::format("{} events of earlier starts of the target are left out: its clock began anew "
                    "since; hangscope show prints them",
                    earlier_));
  }
  if (lanes_.size() > 1 && !layout().shared_clock() && options_.clocks.empty()) {
    head_.warnings.push_back(
        "each core has a clock of its own, and how they went together is not known: times of "
        "different cores cannot be compared");
  }
  std::vector<Corruption> corruptions = view().Corruptions();
  if (watch_ != nullptr)
    corruptions.insert(corruptions.end(), watch_->sample().corruptions.begin(),
                       watch_->sample().corruptions.end());
  for (const Corruption& corruption : corruptions)
    head_.warnings.push_back(
        fmt::format("corrupt: {}: {}", CorruptPart(corruption), CorruptField(corruption)));
}

void ScopeTrace::MakeEnd() {
  if (memory_.device != nullptr && memory_.is_first)
    end_.standings = StandingsOf(*memory_.device, kTasksOfMemory);
  if (watch_ != nullptr) {
    if (memory_.device == nullptr) end_.standings = StandingsOf(*watch_, *times_);
    const auto now = watch_->sample().target_time;
    if (now && times_->knows(0)) LastUntil(times_->Of(0, *now));
  } else if (auto tasks = view().Tasks(); tasks.ok()) {
    end_.standings = StandingsOf(*tasks, *own_names_, *times_);
  } else {
    head_.warnings.push_back(tasks.status().message());
  }
  LastUntilWaits();
  end_.time = head_.time.to;
  end_.tasks = head_.tasks;
}

// Without events it begins there: from its clock's zero on nothing is known of it.
void ScopeTrace::LastUntil(TimeNs now) {
  if (items_ == 0) head_.time = {now, now};
  head_.time.to = std::max(head_.time.to, now);
}

// Who waits records nothing any more: its wait began a little behind the last event. What says that
// it began long after that is wrong by turns of the clock.
void ScopeTrace::LastUntilWaits() {
  constexpr TimeNs kLongest = 3600 * kSecond;
  const bool no_events = items_ == 0;
  const TimeNs last_event = head_.time.to;
  for (TraceStanding& standing : end_.standings) {
    if (!standing.since) continue;
    if (no_events && head_.time == TimeSpan()) head_.time = {*standing.since, *standing.since};
    if (no_events) head_.time.from = std::min(head_.time.from, *standing.since);
    const bool soon = *standing.since <= last_event ||
                      static_cast<uint64_t>(*standing.since) - static_cast<uint64_t>(last_event) <
                          static_cast<uint64_t>(kLongest);
    if (no_events || soon) head_.time.to = std::max(head_.time.to, *standing.since);
  }
  for (TraceStanding& standing : end_.standings) {
    if (standing.since) standing.since = std::min(*standing.since, head_.time.to);
  }
}

void ScopeTrace::EmitEvent(size_t track, TraceItem* item) {
  const Lane& lane = lanes_[track];
  const ScopeEvent event = lane.items.event(lane.next);
  TraceEvent& filled = BeginEvent(item);
  filled.track = track;
  filled.time = lane.TimeOf(lane.next);
  filled.ambiguous = event.ambiguous;
  filled.sequence = event.sequence;
  if (owners_[track] != 0) filled.task = owners_[track];
  kinds_of_[track]->Fill(event, &head_.kinds, &filled);
}

// Between what is left on either side.
TraceLoss ScopeTrace::LossOf(size_t track) const {
  const Lane& lane = lanes_[track];
  const EventLoss loss = lane.items.loss(lane.next);
  const TimeNs to = lane.TimeOf(lane.next);
  const TimeNs from = lane.next > 0 ? lane.TimeOf(lane.next - 1) : to;
  return {track, {from, to}, GapReasonOf(loss.reason), loss.end - loss.begin, AmountUnit::kRecords};
}

Result<bool> ScopeTrace::Next(TraceItem* item) {
  if (order_.empty()) return false;
  const size_t track = order_.least().track;
  Lane& lane = lanes_[track];
  if (lane.items.is_event(lane.next)) {
    EmitEvent(track, item);
    ++end_.events;
  } else {
    *item = LossOf(track);
    ++end_.losses;
  }
  ++lane.next;
  ++taken_;
  if (lane.next < lane.items.size())
    order_.ReplaceLeast({lane.TimeOf(lane.next), track});
  else
    order_.RemoveLeast();
  return true;
}

}  // namespace

Result<ScopeTracePart> OpenScopeTrace(FileSystem& files, Clock& clock, const ScopeSource& source,
                                      const ScopeTraceOptions& options) {
  auto trace = std::make_unique<ScopeTrace>(clock, options);
  if (Status status = trace->Open(files, source); !status.ok()) return status;
  ScopeTracePart part;
  part.of_threads = trace->of_threads();
  part.source = std::move(trace);
  return part;
}

Result<std::vector<ScopeTracePart>> OpenDeviceTrace(FileSystem& files, Clock& clock,
                                                    const DeviceSpec& spec) {
  const TimeNs now = clock.Monotonic();
  auto opened = LiveDevice::Open(files, spec, WatcherOptions(), now);
  if (!opened.ok()) return opened.status();
  const std::shared_ptr<LiveDevice> device = std::move(*opened);
  device->Poll(now);
  std::vector<ScopeTracePart> parts;
  const std::vector<LiveDevice::Memory> memories = device->Memories();
  for (size_t i = 0; i < memories.size(); ++i) {
    if (!memories[i].why_unread.empty() || memories[i].scope == nullptr) continue;
    auto trace = std::make_unique<ScopeTrace>(clock, ScopeTraceOptions());
    const Status status =
        trace->Open({device, memories[i].scope, memories[i].first_core, parts.empty()});
    if (!status.ok()) return status;
    parts.push_back({std::move(trace), kTasksOfMemory * static_cast<int64_t>(i), false});
  }
  return parts;
}

}  // namespace hangscope
