#include "scope/live_scope.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "code/elf_reader.h"
#include "hangscope/abi/record.h"
#include "hangscope/abi/scope.h"
#include "scope/scope_elf.h"
#include "target/file_users.h"
#include "target/process_target.h"
#include "target/target_spec.h"

namespace hangscope {
namespace {

constexpr TimeNs kShortestInterval = kMillisecond;
constexpr TimeNs kLongestInterval = 100 * kMillisecond;
constexpr int kLooksAfterwards = 3;

// The process that a target is, or by its header's word whose file it is.
int ProcessOf(const TargetSpec& spec, const ScopeLayout& layout) {
  if (spec.kind == TargetSpec::Kind::kProcess) return spec.pid;
  const bool of_a_process = (layout.features & HANGSCOPE_FEATURE_THREADS) != 0;
  return of_a_process ? static_cast<int>(layout.pid) : 0;
}

bool IsFile(FileSystem& files, const TargetSpec& spec) {
  return spec.kind == TargetSpec::Kind::kFile && !files.IsFolder(spec.where);
}

// Who has the file mapped, if it is one; 0: nobody that is known.
int OwnerOf(FileSystem& files, const TargetSpec& spec) {
  if (!IsFile(files, spec)) return 0;
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

// What the header's check covers, and the check: another run has another pid, count of boots or
// clock.
Result<std::string> ReadIdentity(ScopeView& view) {
  std::string bytes(sizeof(hangscope_header), '\0');
  if (Status status = view.scope().target().Read(view.layout().address, bytes); !status.ok())
    return status;
  return bytes.substr(0, HANGSCOPE_CHECKED_BYTES) +
         bytes.substr(offsetof(hangscope_header, check), 4);
}

// Counters of harts only grow: where they do not, the target began anew without a trace in its
// header. A thread's mailbox goes to another thread, and begins anew without that.
bool WentBack(const ScopeLayout& layout, const ScopeSample& before, const ScopeSample& after) {
  if ((layout.features & HANGSCOPE_FEATURE_THREADS) != 0) return false;
  const auto fell = [](uint32_t old, uint32_t now) {
    return now < old && old - now < UINT32_MAX / 2;
  };
  for (size_t i = 0; i < std::min(before.cores.size(), after.cores.size()); ++i) {
    const CoreSample& was = before.cores[i];
    const CoreSample& is = after.cores[i];
    if (!was.corrupt && !is.corrupt && fell(was.wait_sequence, is.wait_sequence)) return true;
  }
  return false;
}

// A live process's clock goes on as CLOCK_MONOTONIC does.
std::optional<uint64_t> TargetTime(const ScopeLayout& layout, int pid, TimeNs now) {
  const uint64_t rate = ClockRate(layout);
  const auto last_ns = static_cast<TimeNs>(layout.last_ns);
  if (rate == 0 || pid == 0 || layout.last_ns == 0 || layout.last_ns > INT64_MAX || now < last_ns)
    return std::nullopt;
  return layout.last_time + static_cast<uint64_t>(static_cast<unsigned __int128>(now - last_ns) *
                                                  rate / 1'000'000'000u);
}

// The latest of which there is a trace.
std::optional<uint64_t> LastTime(const ScopeLayout& layout, uint64_t newest_event,
                                 const ScopeSample& sample) {
  if (!layout.shared_clock()) return std::nullopt;
  uint64_t last = std::max(layout.last_time, newest_event);
  for (const CoreSample& core : sample.cores) {
    if (core.wait) last = std::max(last, core.wait->since);
  }
  return last == 0 ? std::nullopt : std::optional(last);
}

}  // namespace

Result<std::unique_ptr<LiveScope>> LiveScope::Open(FileSystem& files, const ScopeSource& source,
                                                   const WatcherOptions& options) {
  std::unique_ptr<LiveScope> watch(new LiveScope);
  const TargetSpec spec = ParseTargetSpec(files, source.target);
  watch->name_ = spec.name;
  watch->is_folder_ = !source.open && files.IsFolder(source.target);
  auto view = ScopeView::Open(files, source);
  if (!view.ok()) return view.status();
  watch->view_ = std::move(*view);
  watch->warnings_ = watch->view_->warnings();
  auto reader = WatchReader::Open(watch->view_->scope());
  if (!reader.ok()) return reader.status();
  watch->reader_ = std::move(*reader);
  watch->pid_ = ProcessOf(spec, watch->layout());
  // Its number may be another's by now, or one of another container.
  if (watch->pid_ != 0 && IsFile(files, spec) &&
      !MapsFile(watch->pid_, spec.where).value_or(true)) {
    watch->pid_ = OwnerOf(files, spec);
    watch->owner_is_gone_ = watch->pid_ == 0;
  }
  watch->owner_ = watch->pid_ != 0 ? watch->pid_ : OwnerOf(files, spec);
  auto identity = ReadIdentity(*watch->view_);
  if (!identity.ok()) return identity.status();
  watch->identity_ = std::move(*identity);
  watch->FindCode(source);
  WatcherOptions watcher = options;
  watcher.shared_clock = watch->layout().shared_clock();
  watcher.clock_hz = ClockRate(watch->layout());
  watch->watcher_.emplace(watcher);
  watch->events_.emplace(*watch->view_, watch->Catalog(), *watch->watcher_);
  if (Status status = watch->RefreshNames(); !status.ok()) return status;
  return watch;
}

uint64_t LiveScope::clock_hz() const { return ClockRate(layout()); }

// The program that the user names; else the one that runs there, if it is the one that made the
// scope.
void LiveScope::FindCode(const ScopeSource& source) {
  std::string path = source.elf_copy.empty() ? source.elf : source.elf_copy;
  if (path.empty() && !is_folder_ && pid_ > 0 && LifeOfProcess(pid_) == Life::kLive) {
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
    if (auto code = ElfReader::Open(path); code.ok()) code_ = std::move(*code);
  }
  names_.emplace(Catalog(), code_.get(), reader_->layout().program_at);
}

Status LiveScope::RefreshNames() {
  std::vector<Corruption> corruptions;
  auto nodes = reader_->ReadNodes(&corruptions);
  if (!nodes.ok()) return nodes.status();
  nodes_ = std::move(*nodes);
  view_->StartOver();
  if (Status status = view_->Poll(true); !status.ok()) return status;
  for (uint32_t core = 0; core < layout().core_count; ++core) {
    const EventList items = view_->DrainCore(core);
    for (size_t i = 0; i < items.size(); ++i) {
      if (items.is_event(i) && items.age(i) == 0 && !items.ambiguous(i))
        newest_time_ = std::max(newest_time_, items.time(i));
    }
  }
  names_->SetCores(view_->Cores(), nodes_);
  return {};
}

int LiveScope::ThreadOf(const SubjectId& core) const {
  if (core.kind != SubjectId::Kind::kCore || (layout().features & HANGSCOPE_FEATURE_THREADS) == 0)
    return 0;
  for (const ScopeCore& each : view_->Cores()) {
    if (each.index == core.index && each.in_use) return static_cast<int>(each.owner);
  }
  return 0;
}

Result<bool> LiveScope::IsSame() {
  auto now = ReadIdentity(*view_);
  if (!now.ok()) return now.status();
  return *now == identity_ && !went_back_;
}

Status LiveScope::Poll(TimeNs now) {
  events_->Forget();
  std::swap(before_, sample_);
  if (Status status = reader_->Poll(&sample_); !status.ok()) return status;
  if (WentBack(layout(), before_, sample_)) {
    went_back_ = true;
    return {};
  }
  sample_.target_time = TargetTime(layout(), pid_, now);
  watcher_->See(sample_, now, *this);
  return {};
}

Status LiveScope::PollDead(TimeNs now) {
  is_dead_ = true;
  events_->Forget();
  if (Status status = reader_->Poll(&sample_); !status.ok()) return status;
  sample_.target_time = LastTime(layout(), newest_time_, sample_);
  sample_.ended_by_itself = EndedByItself();
  watcher_->SeeDead(sample_, now, *this);
  return {};
}

bool LiveScope::IsDead() const {
  return is_folder_ || owner_is_gone_ || view_->scope().target().life() == Life::kDead ||
         (pid_ > 0 && LifeOfProcess(pid_) == Life::kDead);
}

Status LiveScope::PollLiveOrDead(TimeNs now) { return IsDead() ? PollDead(now) : Poll(now); }

Status LiveScope::PollFor(Clock& clock, TimeNs stall, ScopeSample* first) {
  const TimeNs interval = std::clamp(stall / 10, kShortestInterval, kLongestInterval);
  const TimeNs end = clock.Monotonic() + stall + kLooksAfterwards * interval;
  for (;;) {
    if (Status status = PollLiveOrDead(clock.Monotonic()); !status.ok()) return status;
    if (first != nullptr) *std::exchange(first, nullptr) = sample_;
    if (IsDead() || clock.Monotonic() >= end) return {};
    clock.Sleep(interval);
  }
}

WatchScene LiveScope::Scene(TimeNs now) const {
  return {name_, false, &watcher_->subjects(), &*names_, &nodes_, now, is_dead_};
}

Result<CoreDetail> LiveScope::Detail(uint32_t core) {
  std::vector<Corruption> corruptions;
  return reader_->ReadDetail(core, &corruptions);
}

Result<uint64_t> LiveScope::Emitted(uint32_t core) {
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

const ScopeCatalog& LiveScope::Catalog() const {
  return view_->catalog_bytes().empty() ? own_catalog_ : view_->catalog();
}

FindingHistory LiveScope::History(const SubjectId& subject) {
  return {events_->LastTexts(subject), DebugRing(subject)};
}

FindingHistory LiveScope::History(const ScopeFinding& finding) {
  if (finding.first) return History(*finding.first);
  return finding.subjects.size() == 1 ? History(finding.subjects[0]) : FindingHistory();
}

std::vector<DebugValue> LiveScope::DebugRing(const SubjectId& core) {
  if (core.kind != SubjectId::Kind::kCore || core.index >= sample_.cores.size()) return {};
  auto values = reader_->ReadDebugRing(sample_.cores[core.index].node, sample_);
  return values.ok() ? std::move(*values) : std::vector<DebugValue>();
}

}  // namespace hangscope
