#include "scope/watch_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "base/utf8.h"
#include "hangscope/abi/record.h"
#include "hangscope/abi/scope.h"
#include "scope/event_reader.h"
#include "scope/scope_elf.h"
#include "target/file_users.h"
#include "target/process_target.h"
#include "target/target_spec.h"

namespace hangscope {
namespace {

constexpr size_t kLastEvents = 6;

// The process that a target is, or whose file it is.
int ProcessOf(const TargetSpec& spec, const ScopeLayout& layout) {
  if (spec.kind == TargetSpec::Kind::kProcess) return spec.pid;
  const bool of_a_process = (layout.features & HANGSCOPE_FEATURE_THREADS) != 0;
  return of_a_process ? static_cast<int>(layout.pid) : 0;
}

// Who has the file mapped, if it is one; 0: nobody that is known.
int OwnerOf(FileSystem& files, const TargetSpec& spec) {
  if (spec.kind != TargetSpec::Kind::kFile || files.IsFolder(spec.where)) return 0;
  const std::vector<int> users = ProcessesThatMap(spec.where);
  return users.empty() ? 0 : users[0];
}

// Of the target's clock, in Hz; 0: not known. Two looks at both clocks tell it as far as they are
// apart.
uint64_t ClockRate(const ScopeLayout& layout) {
  if (layout.clock_hz != 0) return layout.clock_hz;
  constexpr uint64_t kShortest = 100'000;  // ns; each look is exact to some hundred
  constexpr uint64_t kLongest = 1ull << 62;
  if (layout.last_time <= layout.sync_time || layout.last_ns <= layout.sync_ns) return 0;
  const uint64_t span = layout.last_ns - layout.sync_ns;
  if (span < kShortest || span > kLongest) return 0;
  return static_cast<uint64_t>(static_cast<unsigned __int128>(layout.last_time - layout.sync_time) *
                               1'000'000'000u / span);
}

// The newest are kept.
void Keep(const ScopeEvent& event, size_t most, std::deque<ScopeEvent>* events) {
  events->push_back(event);
  if (events->size() > most) events->pop_front();
}

}  // namespace

Result<std::unique_ptr<WatchView>> WatchView::Open(FileSystem& files, const ScopeSource& source,
                                                   const WatcherOptions& options) {
  std::unique_ptr<WatchView> watch(new WatchView);
  const TargetSpec spec = ParseTargetSpec(files, source.target);
  watch->name_ = spec.name;
  auto view = ScopeView::Open(files, source);
  if (!view.ok()) return view.status();
  watch->view_ = std::move(*view);
  watch->warnings_ = watch->view_->warnings();
  auto reader = WatchReader::Open(watch->view_->scope());
  if (!reader.ok()) return reader.status();
  watch->reader_ = std::move(*reader);
  watch->pid_ = ProcessOf(spec, watch->layout());
  watch->owner_ = watch->pid_ != 0 ? watch->pid_ : OwnerOf(files, spec);
  auto identity = watch->ReadIdentity();
  if (!identity.ok()) return identity.status();
  watch->identity_ = std::move(*identity);
  watch->FindCode(files, source);
  WatcherOptions watcher = options;
  watcher.shared_clock = watch->layout().shared_clock();
  watcher.clock_hz = ClockRate(watch->layout());
  watch->watcher_.emplace(watcher);
  if (Status status = watch->RefreshNames(); !status.ok()) return status;
  return watch;
}

uint64_t WatchView::clock_hz() const { return ClockRate(layout()); }

// The program that the user names; else the one that runs there, if it is the one that made the
// scope.
void WatchView::FindCode(FileSystem& files, const ScopeSource& source) {
  std::string path = source.elf;
  if (path.empty() && !files.IsFolder(source.target) && pid_ > 0 &&
      LifeOfProcess(pid_) == Life::kLive) {
    const std::string own = fmt::format("/proc/{}/exe", pid_);
    const std::string& built = layout().build_id;
    auto elf = ScopeElf::Read(own);
    const bool fits =
        elf.ok() && (built.empty() || elf->build_id.empty() ||
                     elf->build_id.starts_with(built.substr(0, elf->build_id.size())));
    if (fits) {
      path = own;
      if (view_->catalog_bytes().empty()) (void)own_catalog_.Add(elf->catalog).ok();
    }
  }
  if (!path.empty()) {
    if (auto code = ElfImage::Open(path); code.ok()) code_ = std::move(*code);
  }
  names_.emplace(Catalog(), code_.get(), reader_->layout().program_at);
}

Status WatchView::RefreshNames() {
  std::vector<Corruption> corruptions;
  auto nodes = reader_->ReadNodes(&corruptions);
  if (!nodes.ok()) return nodes.status();
  nodes_ = std::move(*nodes);
  view_->StartOver();
  if (Status status = view_->Look(true); !status.ok()) return status;
  for (uint32_t core = 0; core < layout().core_count; ++core) {
    const EventList items = view_->TakeCore(core);
    for (size_t i = 0; i < items.size(); ++i) {
      if (items.is_event(i) && items.age(i) == 0 && !items.ambiguous(i))
        newest_time_ = std::max(newest_time_, items.time(i));
    }
  }
  names_->SetCores(view_->Cores(), nodes_);
  return {};
}

int WatchView::ThreadOf(const WatchSubject& core) const {
  if (core.kind != WatchSubject::Kind::kCore ||
      (layout().features & HANGSCOPE_FEATURE_THREADS) == 0)
    return 0;
  for (const ScopeCore& each : view_->Cores()) {
    if (each.index == core.index && each.in_use) return static_cast<int>(each.owner);
  }
  return 0;
}

// What the header's check covers, and the check: another run has another pid, count of boots or
// clock.
Result<std::string> WatchView::ReadIdentity() const {
  std::string bytes(sizeof(hangscope_header), '\0');
  if (Status status = view_->scope().target().Read(layout().address, bytes); !status.ok())
    return status;
  return bytes.substr(0, HANGSCOPE_CHECKED_BYTES) +
         bytes.substr(offsetof(hangscope_header, check), 4);
}

Result<bool> WatchView::IsSame() {
  auto now = ReadIdentity();
  if (!now.ok()) return now.status();
  return *now == identity_ && !went_back_;
}

// Counters of harts only grow: where they do not, the target began anew without a trace in its
// header. A thread's mailbox goes to another thread, and begins anew without that.
bool WatchView::WentBack(const WatchSample& before) const {
  if ((layout().features & HANGSCOPE_FEATURE_THREADS) != 0) return false;
  const auto fell = [](uint32_t old, uint32_t now) {
    return now < old && old - now < UINT32_MAX / 2;
  };
  for (size_t i = 0; i < std::min(before.cores.size(), sample_.cores.size()); ++i) {
    const CoreSample& was = before.cores[i];
    const CoreSample& is = sample_.cores[i];
    if (!was.corrupt && !is.corrupt && fell(was.wait_sequence, is.wait_sequence)) return true;
  }
  return false;
}

// A live process's clock goes on as CLOCK_MONOTONIC does.
std::optional<uint64_t> WatchView::TargetTime(TimeNs now) const {
  const uint64_t rate = ClockRate(layout());
  const auto last_ns = static_cast<TimeNs>(layout().last_ns);
  if (rate == 0 || pid_ == 0 || layout().last_ns == 0 || layout().last_ns > INT64_MAX ||
      now < last_ns)
    return std::nullopt;
  return layout().last_time + static_cast<uint64_t>(static_cast<unsigned __int128>(now - last_ns) *
                                                    rate / 1'000'000'000u);
}

// The latest of which there is a trace.
std::optional<uint64_t> WatchView::LastTime() const {
  if (!layout().shared_clock()) return std::nullopt;
  uint64_t last = std::max(layout().last_time, newest_time_);
  for (const CoreSample& core : sample_.cores) {
    if (core.wait) last = std::max(last, core.wait->since);
  }
  return last == 0 ? std::nullopt : std::optional(last);
}

Status WatchView::Poll(TimeNs now) {
  events_of_tasks_.reset();
  std::swap(before_, sample_);
  if (Status status = reader_->Poll(&sample_); !status.ok()) return status;
  if (WentBack(before_)) {
    went_back_ = true;
    return {};
  }
  sample_.target_time = TargetTime(now);
  watcher_->See(sample_, now, *this);
  return {};
}

Status WatchView::PollDead(TimeNs now) {
  is_dead_ = true;
  events_of_tasks_.reset();
  if (Status status = reader_->Poll(&sample_); !status.ok()) return status;
  sample_.target_time = LastTime();
  sample_.ended_by_itself = EndedByItself();
  watcher_->SeeDead(sample_, now, *this);
  return {};
}

WatchScene WatchView::Scene(TimeNs now) const {
  return {name_, false, &watcher_->subjects(), &*names_, &nodes_, now, is_dead_};
}

Result<CoreDetail> WatchView::Detail(uint32_t core) {
  std::vector<Corruption> corruptions;
  return reader_->ReadDetail(core, &corruptions);
}

Result<uint64_t> WatchView::Emitted(uint32_t core) {
  if (core >= layout().core_count) return Status::Usage(fmt::format("there is no core {}", core));
  char head[8];
  if (Status status = view_->scope().target().Read(
          layout().RingAddress(core) + offsetof(hangscope_ring, head), head);
      !status.ok())
    return status;
  if (layout().word_bytes == 8) return Load64(head, layout().order) >> HANGSCOPE_TICKET_SHIFT;
  return hangscope_begun(Load32(head, layout().order), Load32(head + 4, layout().order),
                         layout().ring_capacity);
}

const ScopeCatalog& WatchView::Catalog() const {
  return view_->catalog_bytes().empty() ? own_catalog_ : view_->catalog();
}

std::vector<RingLook::Event> WatchView::Describe(const std::deque<ScopeEvent>& events) const {
  std::vector<RingLook::Event> described;
  for (const ScopeEvent& event : events) {
    const auto ns = layout().Nanoseconds(event.time);
    const std::string parameters = Catalog().Format(event, layout().word_bytes);
    described.push_back(
        {fmt::format("{}{}", event.ambiguous ? "~" : "",
                     ns ? fmt::format("{:.6f}", static_cast<double>(*ns) / 1e9)
                        : std::to_string(event.time)),
         Printable(Catalog().Name(event.id)) + (parameters.empty() ? "" : " " + parameters)});
  }
  return described;
}

RingLook WatchView::LookAtRing(const WatchSubject& subject, size_t most) {
  const bool of_a_core = subject.kind == WatchSubject::Kind::kCore;
  const size_t at = layout().core_count + subject.index;
  const auto& subjects = watcher_->subjects();
  RingLook look;
  if (!of_a_core && at >= subjects.size()) return look;
  std::deque<ScopeEvent> events;
  const uint32_t first = of_a_core ? subject.index : 0;
  const uint32_t end = of_a_core ? subject.index + 1 : layout().core_count;
  for (uint32_t core = first; core < std::min(end, layout().core_count); ++core) {
    const auto ring = ForEachEvent(core, [&](const ScopeEvent& event) {
      if (of_a_core || event.task == subjects[at].task) Keep(event, most, &events);
    });
    if (of_a_core) look.ring = ring;
  }
  look.events = Describe(events);
  return look;
}

// Those that the target's newest start recorded; what the ring says of itself, unless it cannot be
// read.
std::optional<ScopeCore> WatchView::ForEachEvent(
    uint32_t core, const std::function<void(const ScopeEvent&)>& take) {
  EventReader reader(view_->scope(), core);
  if (!reader.Look(!view_->IsLive()).ok()) return std::nullopt;
  const ScopeCore ring = reader.core();
  while (auto item = reader.Next()) {
    const auto* event = std::get_if<ScopeEvent>(&*item);
    if (event != nullptr && event->id != HANGSCOPE_ID_ANCHOR && event->age == 0) take(*event);
  }
  return ring;
}

const std::deque<ScopeEvent>& WatchView::LastEventsOfTask(uint32_t task) {
  if (!events_of_tasks_) {
    events_of_tasks_.emplace();
    for (const SubjectWatch& subject : watcher_->subjects()) {
      if (subject.subject.kind == WatchSubject::Kind::kTask)
        events_of_tasks_->try_emplace(subject.task);
    }
    for (uint32_t core = 0; core < layout().core_count; ++core) {
      ForEachEvent(core, [this](const ScopeEvent& event) {
        const auto known =
            event.task ? events_of_tasks_->find(*event.task) : events_of_tasks_->end();
        if (known != events_of_tasks_->end()) Keep(event, kLastEvents, &known->second);
      });
    }
  }
  return (*events_of_tasks_)[task];
}

std::vector<std::string> WatchView::LastEvents(const WatchSubject& subject) {
  const size_t at = layout().core_count + subject.index;
  const bool of_a_task =
      subject.kind == WatchSubject::Kind::kTask && at < watcher_->subjects().size();
  std::vector<std::string> lines;
  std::vector<RingLook::Event> events =
      of_a_task ? Describe(LastEventsOfTask(watcher_->subjects()[at].task))
                : LookAtRing(subject, kLastEvents).events;
  for (RingLook::Event& event : events) lines.push_back(std::move(event.text));
  return lines;
}

FindingHistory WatchView::History(const Finding& finding) {
  if (finding.first) return History(*finding.first);
  return finding.subjects.size() == 1 ? History(finding.subjects[0]) : FindingHistory();
}

std::vector<DebugValue> WatchView::DebugRing(const WatchSubject& core) {
  if (core.kind != WatchSubject::Kind::kCore || core.index >= sample_.cores.size()) return {};
  auto values = reader_->ReadDebugRing(sample_.cores[core.index].node, sample_);
  return values.ok() ? std::move(*values) : std::vector<DebugValue>();
}

FindingHistory WatchView::History(const WatchSubject& subject) {
  return {LastEvents(subject), DebugRing(subject)};
}

}  // namespace hangscope
