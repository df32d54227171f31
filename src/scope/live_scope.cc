#include "scope/live_scope.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include "base/jitter.h"
#include "code/call_check.h"
#include "code/elf_reader.h"
#include "hangscope/abi/record.h"
#include "hangscope/abi/scope.h"
#include "scope/scope_elf.h"
#include "target/file_users.h"
#include "target/target_spec.h"

namespace hangscope {
namespace {

constexpr uint32_t kHeadsPerLook = 8;
constexpr TimeNs kShortestInterval = kMillisecond;
constexpr TimeNs kLongestInterval = 100 * kMillisecond;
constexpr int kLooksAfterwards = 3;
constexpr int kHeldUpPerStall = 16;  // samples of it
constexpr int kMostHeldUp = 4;       // times as long it goes on where it is held up
constexpr size_t kMostStackBytes = 16u << 10;
constexpr size_t kStackPiece = 1u << 10;

// The simulator of a guest; who has the file mapped, if it is one; 0: nobody that is known.
int OwnerOf(FileSystem& files, const TargetSpec& spec) {
  if (spec.kind == TargetSpec::Kind::kProcess) return spec.pid;
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

Result<std::string> ReadHeaderOf(ScopeView& view) {
  std::string bytes(sizeof(hangscope_header), '\0');
  if (Status status = view.scope().target().Read(view.layout().address, bytes); !status.ok())
    return status;
  return bytes;
}

// By what the header's check covers, and the check: another run has another pid, count of boots or
// clock.
bool IsSameHeader(const std::string& a, const std::string& b) {
  constexpr size_t kCheck = offsetof(hangscope_header, check);
  return a.compare(0, HANGSCOPE_CHECKED_BYTES, b, 0, HANGSCOPE_CHECKED_BYTES) == 0 &&
         a.compare(kCheck, 4, b, kCheck, 4) == 0;
}

// As much of a stack from `address` on as can be read.
std::string ReadUpTo(Target& target, uint64_t address) {
  std::string bytes;
  while (bytes.size() < kMostStackBytes) {
    std::string piece(kStackPiece - (address + bytes.size()) % kStackPiece, '\0');
    if (!target.Read(address + bytes.size(), piece).ok()) break;
    bytes += piece;
  }
  return bytes;
}

bool IsRegularFile(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error);
}

// What the target's cores and tasks write themselves.
bool IsSameLook(const ScopeSample& a, const ScopeSample& b) {
  const auto same_core = [](const CoreSample& x, const CoreSample& y) {
    return x.waypoint == y.waypoint && x.heartbeat == y.heartbeat &&
           x.wait_sequence == y.wait_sequence && x.fault == y.fault && x.paused == y.paused &&
           x.corrupt == y.corrupt;
  };
  const auto same_task = [](const TaskSample& x, const TaskSample& y) {
    return x.record.sequence == y.record.sequence;
  };
  return std::equal(a.cores.begin(), a.cores.end(), b.cores.begin(), b.cores.end(), same_core) &&
         std::equal(a.tasks.begin(), a.tasks.end(), b.tasks.begin(), b.tasks.end(), same_task) &&
         a.rings == b.rings;
}

// Counters of harts only grow: where they do not, the target began anew without a trace in its
// header. A thread's mailbox goes to another thread, and begins anew without that.
bool WentBack(const ScopeLayout& layout, const ScopeSample& before, const ScopeSample& after) {
  if ((layout.features & HANGSCOPE_FEATURE_THREADS) != 0) return false;
  const auto fell = [](uint32_t old, uint32_t now) {
    return now < old && old - now < UINT32_MAX / 2;
  };
  for (size_t i = 0; i < std::min(before.rings.size(), after.rings.size()); ++i) {
    if (after.rings[i].emitted < before.rings[i].emitted) return true;
  }
  for (size_t i = 0; i < std::min(before.cores.size(), after.cores.size()); ++i) {
    const CoreSample& was = before.cores[i];
    const CoreSample& is = after.cores[i];
    if (was.corrupt || is.corrupt) continue;
    if (fell(was.wait_sequence, is.wait_sequence) || fell(was.heartbeat, is.heartbeat)) return true;
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

// That a task is ready, or a core runs, is no progress: only what moved is. Idling is none for a
// core; a task that sleeps and wakes makes some.
bool IsProgress(const SubjectState& moved) {
  switch (moved.activity) {
    case Activity::kRunning:
    case Activity::kWaiting:
    case Activity::kUnused:  // its mailbox is; its ring is not
      return true;
    case Activity::kIdle:
      return moved.subject.kind == SubjectId::Kind::kTask;
    default:
      return false;
  }
}

template <typename Do>
void ForEachMoving(const WatchScene& scene, TimeNs time, Do do_it) {
  for (const SubjectState& subject : *scene.subjects) {
    if (subject.moved && scene.now - *subject.moved < time && IsProgress(subject))
      do_it(subject.subject);
  }
}

}  // namespace

std::vector<std::string> MovingIn(const WatchScene& scene, TimeNs time) {
  std::vector<std::string> names;
  ForEachMoving(scene, time,
                [&](const SubjectId& who) { names.push_back(SubjectName(who, scene)); });
  return names;
}

std::vector<std::string> IdleIn(const WatchScene& scene) {
  std::vector<std::string> clauses;
  for (const SubjectState& subject : *scene.subjects) {
    if (subject.activity == Activity::kIdle)
      clauses.push_back(
          fmt::format("{} {}", SubjectName(subject.subject, scene), SubjectDoing(subject, scene)));
  }
  return clauses;
}

void AddStacks(const ScopeFinding& finding,
               const std::function<std::vector<Place>(const SubjectId&)>& stack_of,
               StacksOfSubjects* stacks) {
  constexpr size_t kMostStacks = 32;
  for (const auto* list : {&finding.subjects, &finding.partners}) {
    for (const SubjectId& subject : *list) {
      if (stacks->size() < kMostStacks && !stacks->contains(subject))
        (*stacks)[subject] = stack_of(subject);
    }
  }
}

Result<std::unique_ptr<LiveScope>> LiveScope::Open(FileSystem& files, const ScopeSource& source,
                                                   const WatcherOptions& options) {
  std::unique_ptr<LiveScope> watch(new LiveScope);
  const TargetSpec spec = ParseTargetSpec(files, source.target);
  watch->name_ = spec.name;
  auto view = ScopeView::Open(files, source);
  if (!view.ok()) return view.status();
  watch->view_ = std::move(*view);
  watch->warnings_ = watch->view_->warnings();
  auto reader = WatchReader::Open(watch->view_->scope());
  if (!reader.ok()) return reader.status();
  watch->reader_ = std::move(*reader);
  watch->owner_ = watch->pid() != 0 || watch->IsDead() ? watch->pid() : OwnerOf(files, spec);
  auto header = ReadHeaderOf(*watch->view_);
  if (!header.ok()) return header.status();
  watch->header_ = std::move(*header);
  watch->is_device_ = !source.open && spec.kind == TargetSpec::Kind::kFile &&
                      !files.IsFolder(spec.where) && !IsRegularFile(spec.where);
  watch->stall_ = options.stall;
  if (watch->owner_ > 0) watch->held_up_.emplace(ProcFolder("/proc"), watch->owner_);
  watch->FindCode(source);
  WatcherOptions watcher = options;
  watcher.shared_clock = watch->layout().shared_clock();
  watcher.clock_hz = ClockRate(watch->layout());
  watcher.is_held = watch->is_held();
  watcher.call = [live = watch.get()](const SubjectId& subject) {
    return SubjectName(subject, live->Scene(0));
  };
  watch->watcher_.emplace(watcher);
  watch->events_.emplace(*watch->view_, watch->Catalog(), *watch->watcher_);
  if (Status status = watch->RefreshNames(); !status.ok()) return status;
  return watch;
}

uint64_t LiveScope::clock_hz() const { return ClockRate(layout()); }

// The program that the user names; else the one that runs there, if it is the one that made the
// scope.
void LiveScope::FindCode(const ScopeSource& source) {
  std::string path = source.elf_to_read();
  if (path.empty() && pid() > 0 && view_->IsLive()) {
    const std::string own = fmt::format("/proc/{}/exe", pid());
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
  own_catalog_.SetGiven(view_->given_names().names);
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

std::optional<uint32_t> LiveScope::HartOf(const SubjectId& core) const {
  if (core.kind != SubjectId::Kind::kCore || (layout().features & HANGSCOPE_FEATURE_THREADS) != 0)
    return std::nullopt;
  const std::vector<ScopeCore> cores = view_->Cores();
  const auto mine = std::find_if(cores.begin(), cores.end(), [&](const ScopeCore& each) {
    return each.index == core.index && each.in_use;
  });
  if (mine == cores.end()) return std::nullopt;
  const auto of_hart = std::count_if(cores.begin(), cores.end(), [&](const ScopeCore& each) {
    return each.in_use && each.owner == mine->owner;
  });
  return of_hart == 1 ? std::optional(mine->owner) : std::nullopt;
}

Result<bool> LiveScope::IsSame() {
  auto now = ReadHeaderOf(*view_);
  if (!now.ok()) return now.status();
  why_another_ = "its counters began anew";
  if (went_back_) return false;
  if (IsSameHeader(*now, header_)) {
    wrong_header_.reset();
    return true;
  }
  const ByteOrder order = layout().order;
  why_another_ = "another header is in its place";
  if (HeaderChecks(now->data(), order)) return false;  // it is sound
  why_another_ = "neither its header nor its mailboxes are there";
  auto there = reader_->IsThere();
  if (!there.ok()) return there.status();
  if (!*there) return false;
  if (!wrong_header_) {
    wrong_header_ = WrongHeaderWord(header_.data(), now->data(), order);
    wrong_header_since_ = 0;
  }
  return true;
}

bool LiveScope::MayBeDump() const {
  return !is_device_ && owner_ == 0 && !moved_ && view_->scope().target().life() == Life::kUnknown;
}

Status LiveScope::Poll(TimeNs now) {
  events_->Forget();
  stacks_.clear();
  std::swap(before_, sample_);
  if (Status status = reader_->Poll(&sample_); !status.ok()) return status;
  if (WentBack(layout(), before_, sample_) || RingsWentBack()) {
    went_back_ = true;
    return {};
  }
  moved_ = moved_ || (looked_ && !IsSameLook(before_, sample_));
  looked_ = true;
  if (wrong_header_ && wrong_header_since_ == 0) wrong_header_since_ = now;
  // A start takes a moment in which the header is not sound.
  if (wrong_header_ && now - wrong_header_since_ >= stall_)
    sample_.corruptions.push_back(*wrong_header_);
  sample_.target_time = TargetTime(layout(), pid(), now);
  if (held_up_ &&
      (held_up_->sampled() == 0 || now - held_up_->sampled() >= stall_ / kHeldUpPerStall))
    held_up_->Sample(now);
  watcher_->See(sample_, now, *this);
  return {};
}

// A few rings in each look, in turn: what neither beats nor waits shows a start there alone. With
// tasks WentBack knows all of them.
bool LiveScope::RingsWentBack() {
  const ScopeLayout& scope = layout();
  if ((scope.features & HANGSCOPE_FEATURE_THREADS) != 0 || scope.task_count != 0) return false;
  heads_.resize(scope.core_count);
  for (uint32_t i = 0; i < std::min(scope.core_count, kHeadsPerLook); ++i) {
    const uint32_t core = next_head_;
    next_head_ = (next_head_ + 1) % scope.core_count;
    auto begun = Emitted(core);
    if (!begun.ok()) return false;
    // Once more: the two words of a head were perhaps read while it changed.
    if (*begun < heads_[core]) begun = Emitted(core);
    if (!begun.ok()) return false;
    if (*begun < heads_[core]) return true;
    heads_[core] = *begun;
  }
  return false;
}

Status LiveScope::CheckChangeable() const {
  if (!view_->is_image()) return {};
  return Status::Usage(fmt::format("{} is a snapshot, which stays as it was taken", name_));
}

Status LiveScope::PollDead(TimeNs now) {
  is_dead_ = true;
  events_->Forget();
  stacks_.clear();
  if (Status status = reader_->Poll(&sample_); !status.ok()) return status;
  sample_.target_time = LastTime(layout(), newest_time_, sample_);
  sample_.ended_by_itself = EndedByItself();
  watcher_->SeeDead(sample_, now, *this);
  return {};
}

Status LiveScope::PollLiveOrDead(TimeNs now) { return IsDead() ? PollDead(now) : Poll(now); }

Status LiveScope::PollFor(Clock& clock, TimeNs stall, ScopeSample* first) {
  const TimeNs interval = std::clamp(stall / 10, kShortestInterval, kLongestInterval);
  const TimeNs begin = clock.Monotonic();
  const TimeNs time = stall + kLooksAfterwards * interval;
  Jitter jitter;
  for (;;) {
    if (Status status = PollLiveOrDead(clock.Monotonic()); !status.ok()) return status;
    if (first != nullptr) *std::exchange(first, nullptr) = sample_;
    const TimeNs now = clock.Monotonic();
    const auto given = Given(begin);
    const bool is_held_up =
        given && given->time < stall + interval && now - begin < kMostHeldUp * time;
    if (IsDead() || (now - begin >= time && !is_held_up)) return {};
    clock.Sleep(jitter.Next(interval));
  }
}

WatchScene LiveScope::Scene(TimeNs now) const {
  WatchScene scene{name_, false, &watcher_->subjects(), &*names_, &nodes_, now, is_dead_};
  scene.stacks = &stacks_;
  return scene;
}

// Of a core whose target stands still and gives its registers; else of one that waits, or of a
// task, by the registers that it left.
std::vector<Place> LiveScope::StackOf(const SubjectId& subject, const Program& program) {
  Target& target = view_->scope().target();
  const auto hart = HartOf(subject);
  auto registers = hart ? target.RegistersOf(*hart, program.code.xlen()) : std::nullopt;
  if (!registers) return program.names.Places(UnwindWait(subject, program));
  registers->program_at = reader_->layout().program_at;
  const std::string stack = ReadUpTo(target, registers->x[CoreRegisters::kStackPointer]);
  return program.names.Places(program.code.Unwind(*registers, stack));
}

std::vector<Place> LiveScope::StackOf(const SubjectId& subject) {
  return code_ == nullptr ? std::vector<Place>()
                          : StackOf(subject, Program{*code_, *names_, std::nullopt});
}

// The wait that the latest look saw has lasted until now, and what was read since is of it. A look
// that failed saw less than all.
bool LiveScope::IsStillInWait(const SubjectId& subject) {
  const bool is_core = subject.kind == SubjectId::Kind::kCore;
  if (subject.index >= (is_core ? sample_.cores.size() : sample_.tasks.size())) return false;
  if (is_core) {
    const auto& wait = sample_.cores[subject.index].wait;
    return wait && reader_->IsSameWait(subject.index, wait->sequence);
  }
  const TaskWait& wait = sample_.tasks[subject.index].record;
  const auto now = view_->scope().ReadTask(subject.index);
  return wait.state == TaskState::kWaiting && now.ok() && now->wait &&
         now->wait->state == TaskState::kWaiting && now->wait->sequence == wait.sequence;
}

std::vector<uint64_t> LiveScope::UnwindWait(const SubjectId& subject, const Program& program) {
  const bool is_core = subject.kind == SubjectId::Kind::kCore;
  const auto frame =
      reader_->ReadFrame(is_core ? subject.index : layout().core_count + subject.index);
  if (!frame.ok() || frame->pc == 0) return {};
  std::string stack;
  const uint64_t program_at = reader_->layout().program_at;
  if (const auto at = view_->AddressOf(frame->sp - program_at, program.symbol))
    stack = ReadUpTo(view_->scope().target(), *at);
  if (!IsStillInWait(subject)) return {};
  CoreRegisters registers;
  registers.pc = frame->pc;
  registers.program_at = program_at;
  registers.x.assign(CoreRegisters::kCount, 0);
  registers.known = 0;
  const auto set = [&](size_t number, uint64_t value) {
    registers.x[number] = value;
    registers.known |= 1u << number;
  };
  set(CoreRegisters::kReturnAddress, frame->ra);
  set(CoreRegisters::kStackPointer, frame->sp);
  set(CoreRegisters::kFramePointer, frame->fp);
  std::vector<uint64_t> places = program.code.Unwind(registers, stack);
  // The function at pc may have returned: then its stack is another's.
  places.resize(CountCalled(program.code, places));
  return places;
}

Result<CoreDetail> LiveScope::Detail(uint32_t core) {
  std::vector<Corruption> corruptions;
  return reader_->ReadDetail(core, &corruptions);
}

std::vector<std::optional<uint32_t>> LiveScope::FirstFaults() {
  std::vector<Corruption> told_elsewhere;
  const auto nodes = reader_->ReadNodes(&told_elsewhere);
  if (!nodes.ok()) return {};
  std::vector<std::optional<uint32_t>> first;
  for (const CoreSample& core : sample_.cores)
    first.push_back(core.node < nodes->size() ? nodes.value()[core.node].first_fault
                                              : std::nullopt);
  return first;
}

Result<uint64_t> LiveScope::Emitted(uint32_t core) {
  if (core >= layout().core_count) return Status::Usage(fmt::format("there is no core {}", core));
  return reader_->ReadBegun(core);
}

Result<TaskNews> LiveScope::News() {
  if (!task_rings_) task_rings_.emplace(view_->scope());
  return task_rings_->Poll();
}

const ScopeCatalog& LiveScope::Catalog() const {
  return view_->catalog_bytes().empty() ? own_catalog_ : view_->catalog();
}

FindingHistory LiveScope::History(const SubjectId& subject) {
  return {events_->LastTexts(subject), DebugRing(subject)};
}

FindingHistory LiveScope::History(const ScopeFinding& finding) {
  FindingHistory history;
  if (finding.first)
    history = History(*finding.first);
  else if (finding.subjects.size() == 1)
    history = History(finding.subjects[0]);
  history.words = ShownWords(finding);
  return history;
}

// Those of all, and of the cores that it is about and their nodes.
std::vector<ShownWord> LiveScope::ShownWords(const ScopeFinding& finding) const {
  std::set<uint32_t> cores;
  std::set<uint32_t> nodes;
  for (const auto* list : {&finding.subjects, &finding.partners}) {
    for (const SubjectId& subject : *list) {
      if (subject.kind != SubjectId::Kind::kCore || subject.index >= sample_.cores.size()) continue;
      cores.insert(subject.index);
      nodes.insert(sample_.cores[subject.index].node);
    }
  }
  return ReadOwnWords(false, [&](TargetWord::Per per, uint32_t index) {
    return per == TargetWord::Per::kAll ||
           (per == TargetWord::Per::kCore ? cores : nodes).count(index) != 0;
  });
}

std::vector<ShownWord> LiveScope::Words(bool dumped) const {
  return ReadOwnWords(dumped, [](TargetWord::Per, uint32_t) { return true; });
}

std::vector<ShownWord> LiveScope::ReadOwnWords(
    bool dumped, const std::function<bool(TargetWord::Per, uint32_t)>& is_wanted) const {
  const auto owner = [&](TargetWord::Per per, uint32_t index) -> std::string {
    const bool is_core = per == TargetWord::Per::kCore;
    if (!is_wanted(per, index)) return "";
    if (is_core && (index >= sample_.cores.size() || !sample_.cores[index].in_use)) return "";
    if (per == TargetWord::Per::kAll) return "all";
    if (is_core) return SubjectName({SubjectId::Kind::kCore, index}, Scene(0));
    const std::string place = names_->Node(index);
    return place.empty() ? fmt::format("node {}", index) : "node " + place;
  };
  return ReadWords(*view_, Catalog(), std::nullopt,
                   {dumped, layout().core_count, reader_->layout().node_count, owner, code_.get()});
}

std::vector<int> LiveScope::MovingThreads(TimeNs now, TimeNs time) const {
  std::vector<int> threads;
  ForEachMoving(Scene(now), time, [&](const SubjectId& who) {
    if (const int thread = ThreadOf(who); thread != 0) threads.push_back(thread);
  });
  return threads;
}

std::vector<Wait> LiveScope::Waits(TimeNs now) const {
  std::vector<Wait> waits;
  const WatchScene scene = Scene(now);
  std::map<SubjectId, FindingSubject> told;
  const auto tell = [&](uint32_t subject) {
    const SubjectId id = watcher_->subjects()[subject].subject;
    const auto [at, is_new] = told.emplace(id, FindingSubject());
    if (is_new) {
      at->second = ToldSubject(id, scene);
      at->second.thread = ThreadOf(id);
    }
    return at->second;
  };
  for (const LastingWait& lasting : watcher_->LastingWaits()) {
    Wait& wait = waits.emplace_back();
    const SubjectState& who = watcher_->subjects()[lasting.who];
    std::vector<SubjectId> from;
    wait.who = tell(lasting.who);
    for (const uint32_t whom : lasting.whom) {
      wait.whom.push_back(tell(whom));
      from.push_back(watcher_->subjects()[whom].subject);
    }
    if (lasting.may_be_others)
      wait.doubt = "rows of claims ran over: somebody else may hold or provide it";
    wait.line = WaitLine(who.subject, from, scene);
    wait.since = who.since;
  }
  return waits;
}

Finding LiveScope::Tell(const ScopeFinding& finding, TimeNs now) {
  AddStacks(
      finding, [this](const SubjectId& subject) { return StackOf(subject); }, &stacks_);
  Finding told = ToldFinding(finding, Scene(now), History(finding));
  for (auto* list : {&told.subjects, &told.partners, &told.victims}) {
    for (FindingSubject& subject : *list) {
      if (!subject.core) continue;
      subject.thread = ThreadOf({SubjectId::Kind::kCore, *subject.core});
      subject.hart = HartOf({SubjectId::Kind::kCore, *subject.core});
    }
  }
  return told;
}

std::vector<DebugValue> LiveScope::DebugRing(const SubjectId& core) {
  if (core.kind != SubjectId::Kind::kCore || core.index >= sample_.cores.size()) return {};
  auto values = reader_->ReadDebugRing(sample_.cores[core.index].node, sample_);
  return values.ok() ? std::move(*values) : std::vector<DebugValue>();
}

}  // namespace hangscope
