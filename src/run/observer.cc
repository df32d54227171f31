#include "run/observer.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/units.h"
#include "verdict/text.h"
#include "why/why_process.h"

namespace hangscope {
namespace {

constexpr TimeNs kLiveInterval = kSecond / 2;
constexpr TimeNs kLongestCatchUp = kSecond;

std::string HostName() {
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  return name;
}

std::string Absolute(const std::string& path) {
  std::error_code error;
  const auto absolute =
      std::filesystem::weakly_canonical(std::filesystem::absolute(path, error), error);
  return error ? path : absolute.string();
}

// The bound has room for M snapshots; a plain one is one of them.
bool WritesPlain(const ObserverOptions& options) {
  return options.plain_snapshot && options.max_snapshots > 1;
}

}  // namespace

Observer::Observer(const Environment& environment, const ObserverOptions& options,
                   const Recording& recording, TimeNs start, TimeNs start_wall)
    : files_(*environment.files),
      clock_(*environment.clock),
      inspector_(environment.inspector),
      options_(options),
      recording_(recording),
      start_(start),
      start_wall_(start_wall),
      narrator_(environment.narrator, start),
      analysis_(files_, clock_, recording, environment.elf, environment.place_rule, options.stall),
      snapshots_(files_, options.prefix, options.max_snapshots - (WritesPlain(options) ? 1 : 0)),
      reports_(files_),
      requests_(files_, clock_, recording, options.triggers, options.patterns, start),
      windows_(files_, options.window),
      scope_clock_(clock_),
      absolute_folder_(Absolute(FolderOf(options.prefix))),
      beat_interval_(environment.narrator.live ? std::min(kLiveInterval, options.heartbeat)
                                               : options.heartbeat),
      next_beat_(start + beat_interval_),
      last_beat_(start) {
  if (!options.scope.empty())
    scope_ = std::make_unique<ScopeCapture>(files_, options.scope, options.elf_path);
  if (environment.control_folder.empty()) return;
  const Status status = requests_.OpenControl(environment.control_folder);
  if (!status.ok())
    narrator_.Note("warning: hangscope ls and snap do not find this recorder: " + status.message(),
                   clock_.Wall());
}

bool Observer::Tick(const ChildView& child, int pid) {
  pid_ = pid;
  if (cpus_ != nullptr) cpus_->Tick();
  LookAtScope(pid);
  analysis_.SetChild(child);
  const Verdict verdict = VerdictNow();
  TellTroubles(false);
  TellUnseen(false);
  requests_.Look([this] { return StatusNow(); });
  TakeDue(requests_.TakeDue(), verdict);
  TellPutOff();
  TellReports();
  if (clock_.Monotonic() >= next_beat_) Beat(child, verdict);
  if (!verdict.IsHang()) {
    if (hang_now_ && verdict.time != 0) {
      narrator_.Note(fmt::format("it goes on again: {} after {}", verdict.summary,
                                 FormatElapsed(verdict.time - start_)),
                     clock_.Wall());
    }
    hang_now_ = false;
    of_threads_.clear();
    threads_seen_.clear();
    return false;
  }
  if (hang_now_) return false;
  hang_now_ = true;
  LookAtThreads(verdict);
  TellHang(CombineThreads(verdict, of_threads_));
  return true;
}

void Observer::RecordCpus(std::unique_ptr<CpuRecorder> recorder) {
  cpus_ = std::make_unique<CpuRecording>(files_, std::move(recorder), options_.command);
  for (const std::string& warning : cpus_->warnings())
    narrator_.Note("warning: --cpu: " + warning, clock_.Wall());
}

void Observer::LookAtScope(int pid) {
  if (scope_ == nullptr) return;
  scope_clock_.ReadMachine();  // from the start on: the longer, the better its rate is known
  scope_->Find(pid);
  if (!scope_->found()) return;  // one search of the program's memory is enough
  scope_->LookAtClock(clock_, &scope_clock_);
  if (scope_watch_ == nullptr) {
    const std::string target =
        options_.scope == "pid:" ? fmt::format("pid:{}", pid) : options_.scope;
    scope_watch_ = std::make_unique<ScopeWatch>(
        files_, ScopeSource{target, options_.elf_path, false}, options_.stall);
  }
  if (scope_watch_ != nullptr) scope_watch_->Look(clock_.Monotonic());
}

// A silence says little; what the threads of the program wait for says more. Where a scope tells of
// the same threads, they are the second witness.
void Observer::LookAtThreads(const Verdict& verdict) {
  const bool scope_tells_of_threads =
      !verdict.findings.empty() && !verdict.findings.front().threads.empty();
  if (inspector_ == nullptr || pid_ <= 0 ||
      (verdict.state != State::kSilent && !scope_tells_of_threads))
    return;
  ProcessHangs found = FindProcessHangs(clock_, *inspector_, pid_);
  of_threads_ = std::move(found.findings);
  threads_seen_ = std::move(found.threads);
}

Verdict Observer::VerdictNow() const {
  Verdict verdict = analysis_.verdict();
  if (scope_watch_ != nullptr) verdict = Combine(std::move(verdict), scope_watch_->opinion());
  return CombineThreads(std::move(verdict), of_threads_);
}

void Observer::Beat(const ChildView& child, const Verdict& verdict) {
  Heartbeat beat;
  beat.now = clock_.Monotonic();
  beat.wall = clock_.Wall();
  beat.elapsed = beat.now - start_;
  const TimeNs interval = beat.now - last_beat_;
  beat.streams = recording_.Pulse(last_totals_, interval);
  if (child.known && interval > 0) {
    beat.child_cpu = static_cast<double>(std::max<TimeNs>(0, child.cpu_time - last_cpu_)) /
                     static_cast<double>(interval);
  }
  beat.verdict = verdict;
  narrator_.Beat(beat);
  last_totals_.clear();
  for (const StreamPulse& pulse : beat.streams) last_totals_.push_back(pulse.total_bytes);
  last_cpu_ = child.cpu_time;
  last_beat_ = beat.now;
  next_beat_ += beat_interval_ * ((beat.now - next_beat_) / beat_interval_ + 1);
}

void Observer::TellTroubles(bool all) {
  const auto& streams = recording_.streams();
  told_.resize(streams.size());
  for (size_t i = 0; i < streams.size(); ++i) TellTroublesOf(streams[i], all, &told_[i]);
}

// Each is told when it begins; what grows then at most once a beat.
void Observer::TellTroublesOf(const RecordedStream& stream, bool all, Troubles* told) {
  const std::string& name = stream.ring->stream_name();
  const std::string& ring = stream.ring->prefix();
  const RingFill fill = stream.ring->fill();
  const TimeNs wall = clock_.Wall();
  const bool beat = all || clock_.Monotonic() >= next_beat_;
  if (fill.failing != told->failing) {
    narrator_.Note(fill.failing
                       ? fmt::format("{}: cannot write '{}': {}; the newest is kept in memory",
                                     name, ring, ErrorText(stream.ring->last_error()))
                       : fmt::format("{}: '{}' can be written again", name, ring),
                   wall);
    told->failing = fill.failing;
  }
  if (fill.gave_up_compression && !told->plain) {
    narrator_.Note(
        fmt::format(
            "{}: comes faster than it can be compressed; what is too fast is recorded plain", name),
        wall);
    told->plain = true;
  }
  const uint64_t not_passed_on = stream.drain->not_passed_on();
  if (not_passed_on != told->not_passed_on && (beat || told->not_passed_on == 0)) {
    narrator_.Note(fmt::format("{}: {} recorded but not passed on, whoever reads it is too slow or "
                               "gone (--lossless waits)",
                               name, FormatSize(not_passed_on - told->not_passed_on)),
                   wall);
    told->not_passed_on = not_passed_on;
  }
  if (fill.lost_bytes != told->lost && (beat || told->lost == 0)) {
    const std::string why =
        fill.lost_errno == 0
            ? fmt::format("the disk of '{}' is slower than the stream", ring)
            : fmt::format("cannot write '{}': {}", ring, ErrorText(fill.lost_errno));
    narrator_.TellLoss(name, fill.lost_bytes - told->lost, why, wall);
    told->lost = fill.lost_bytes;
  }
}

void Observer::TellHang(const Verdict& verdict) {
  last_hang_ = verdict;
  hang_told_ = true;
  std::string snapshot;
  if (options_.snapshot_on_hang) {
    DueSnapshot due;  // without a post: what is wanted lies before a hang
    due.trigger.kind = TriggerKind::kHang;
    due.trigger.name = "hang";
    if (auto folder = TakeSnapshot(due, verdict, false); folder.ok()) snapshot = *folder;
  }
  narrator_.Tell(verdict, clock_.Wall(), snapshot, last_contents_);
}

bool Observer::OnSignal(int number) {
  if (number != SIGUSR1 && number != SIGUSR2) return false;
  requests_.OnSignal(number == SIGUSR1 ? "SIGUSR1" : "SIGUSR2");
  TakeDue(requests_.TakeDue(), VerdictNow());
  return true;
}

// Where a hang is still on, its snapshot has all that an end adds nothing to.
void Observer::OnExit(const ChildExit& exit) {
  if (!options_.snapshot_on_exit || (hang_now_ && options_.snapshot_on_hang)) return;
  if (exit.signal != 0)
    requests_.OnExit(fmt::format("signal {}", exit.signal));
  else if (exit.status != 0)
    requests_.OnExit(fmt::format("status {}", exit.status));
}

void Observer::TakeDue(const std::vector<DueSnapshot>& due, const Verdict& verdict) {
  for (const DueSnapshot& snapshot : due) {
    auto folder = TakeSnapshot(snapshot, verdict, true);
    requests_.Taken(snapshot, folder.ok() ? Result<std::string>(AbsolutePath(*folder)) : folder);
  }
}

Manifest Observer::NewManifest(const DueSnapshot& due, const Verdict& verdict) {
  Manifest manifest;
  manifest.run_id = recording_.run_id();
  manifest.trigger = due.trigger;
  manifest.post = due.post;
  manifest.since_last = due.since_last;
  manifest.command = options_.command;
  manifest.pid = pid_;
  manifest.elf = options_.elf_path;
  manifest.host = HostName();
  manifest.start_wall = start_wall_;
  manifest.start = start_;
  manifest.time = clock_.Monotonic();
  manifest.wall = clock_.Wall();
  if (manifest.trigger.time == 0) manifest.trigger.time = manifest.time;
  manifest.verdict = verdict;
  if (manifest.verdict.time == 0) {
    manifest.verdict.time = manifest.time;
    manifest.verdict.since = start_;
    manifest.verdict.summary = "not judged yet";
  }
  return manifest;
}

// The files for the snapshot; that there are none is told, and no reason to take no snapshot.
std::vector<std::pair<std::string, std::string>> Observer::TakeScope(Manifest* manifest) {
  std::vector<std::pair<std::string, std::string>> files;
  if (scope_ == nullptr) return files;
  scope_clock_.ReadMachine();
  scope_read_at_ = clock_.Monotonic();
  auto parts = scope_->Take(pid_);
  if (!parts.ok()) {
    narrator_.Note("warning: --scope: " + parts.status().message(), clock_.Wall());
    return files;
  }
  manifest->scope.image = kScopeImageName;
  manifest->scope.cores = parts->cores;
  files.emplace_back(kScopeImageName, std::move(parts->image));
  if (parts->catalog.empty()) return files;
  manifest->scope.catalog = kScopeCatalogName;
  files.emplace_back(kScopeCatalogName, std::move(parts->catalog));
  return files;
}

// That there is nothing of the CPUs is told, and no reason to take no snapshot.
bool Observer::CaptureCpus() {
  if (cpus_ == nullptr) return false;
  const Status status = cpus_->Capture();
  if (!status.ok()) narrator_.Note("warning: --cpu: " + status.message(), clock_.Wall());
  return status.ok();
}

// What lies in the snapshot tells what the snapshot has of it: what came while it was read is
// another look's.
ScopeRings Observer::ScopeRingsIn(const std::string& folder, Manifest* manifest) {
  ScopeRings none;
  if (manifest->scope.image.empty()) return none;
  auto view = ScopeView::Open(files_, {folder, "", false});
  auto found = view.ok() ? ReadScopeRings(**view, scope_clock_, scope_read_at_) : view.status();
  if (!found.ok()) {
    none.left_out = found.status().message();
    return none;
  }
  return std::move(*found);
}

Status Observer::AddWindow(const std::string& folder, bool has_cpus, bool since_last,
                           Manifest* manifest) {
  ScopeRings scope = ScopeRingsIn(folder, manifest);
  manifest->scope.clocks = scope.clocks;
  manifest->scope.not_in_window = scope.left_out;
  if (!has_cpus) {
    if (scope.rings.empty()) return {};  // of streams alone, each says what it has
    WindowInput input;
    input.clock_error = scope.clock_error;
    windows_.AddStreams(folder, *manifest, manifest->time, &input);
    for (RingHistory& ring : scope.rings) input.rings.push_back(std::move(ring));
    manifest->window = windows_.Find(input, manifest->time, since_last);
    windows_.Remember(MarksOf(input), manifest->time);
    return {};
  }
  const Status status = cpus_->Write(folder, since_last, std::move(scope.rings), scope.clock_error,
                                     &windows_, manifest);
  if (!status.ok()) narrator_.Note("warning: --cpu: " + status.message(), clock_.Wall());
  return {};
}

Result<std::string> Observer::TakeSnapshot(const DueSnapshot& due, const Verdict& verdict,
                                           bool with_text) {
  Manifest manifest = NewManifest(due, verdict);
  // First: the streams may take a second to catch up, and overwrite nothing meanwhile that is
  // wanted.
  const bool has_cpus = CaptureCpus();
  const bool since_last =
      due.since_last || (has_cpus && options_.window.policy == WindowPolicy::kSinceLast);
  std::vector<RingStore*> rings;
  for (const RecordedStream& stream : recording_.streams()) {
    stream.drain->CatchUp(kLongestCatchUp);  // the newest bytes are the ones that are wanted
    rings.push_back(stream.ring.get());
  }
  auto parts = TakeScope(&manifest);
  if (!threads_seen_.empty()) parts.emplace_back(kThreadsName, threads_seen_);
  const auto add_window = [&](const std::string& partial) {
    return AddWindow(partial, has_cpus, since_last, &manifest);
  };
  auto folder = snapshots_.Take(rings, &manifest, since_last, parts, add_window);
  if (!folder.ok()) {
    narrator_.Note("cannot take a snapshot: " + folder.status().message(), clock_.Wall());
    return folder;
  }
  ++snapshots_taken_;
  if (WritesPlain(options_) && plain_snapshot_ == nullptr) {
    plain_snapshot_ = std::make_unique<PlainSnapshot>(files_, options_.prefix + ".snapshot",
                                                      options_.bound_bytes);
  }
  if (plain_snapshot_ != nullptr) plain_snapshot_->Write(*folder + "/" + manifest.streams[0].name);
  reports_.Write(*folder);
  last_snapshot_ = *folder;
  last_contents_ = ContentsText(manifest);
  narrator_.TellSnapshot(manifest, *folder, with_text);
  return folder;
}

void Observer::FinishPlainSnapshot() {
  if (plain_snapshot_ == nullptr) return;
  plain_snapshot_->Finish();
  const Status status = plain_snapshot_->status();
  if (!status.ok())
    narrator_.Note(fmt::format("cannot write '{}.snapshot': {}", options_.prefix, status.message()),
                   clock_.Wall());
}

void Observer::TellReports() {
  for (const std::string& trouble : reports_.TakeTroubles()) narrator_.Note(trouble, clock_.Wall());
}

void Observer::TellPutOff() {
  for (const DueSnapshot& snapshot : requests_.TakePutOff()) {
    if (snapshot.trigger.kind == TriggerKind::kExit) continue;
    const std::string when = snapshot.post.time != 0
                                 ? "in " + FormatElapsed(snapshot.post.time)
                                 : "after another " + FormatSize(snapshot.post.bytes);
    narrator_.Note(fmt::format("{}; snapshot {}", TriggerText(snapshot.trigger), when),
                   clock_.Wall());
  }
}

// At once when it begins, and at the end how much it was.
void Observer::TellUnseen(bool all) {
  const uint64_t unseen = requests_.unseen_bytes();
  if (unseen == 0 || (unseen_told_ && !all)) return;
  narrator_.Note(
      fmt::format("warning: {} passed without being searched for --trigger: {}", FormatSize(unseen),
                  "the ring had overwritten them; a larger --size helps"),
      clock_.Wall());
  unseen_told_ = true;
}

std::string Observer::AbsolutePath(const std::string& path) const {
  return absolute_folder_ + "/" + NameOf(path);
}

RecorderStatus Observer::StatusNow() {
  const Verdict verdict = VerdictNow();
  RecorderStatus status;
  status.pid = getpid();
  status.child_pid = pid_;
  status.name = NameOf(options_.prefix);
  status.prefix = AbsolutePath(options_.prefix);
  for (const RecordedStream& stream : recording_.streams())
    status.rings.push_back(AbsolutePath(stream.ring->prefix()));
  status.command = options_.command;
  status.age = clock_.Monotonic() - start_;
  status.total_bytes = recording_.total_bytes();
  status.bytes_per_second = requests_.bytes_per_second();
  status.state = StateName(verdict.state);
  status.confidence = ConfidenceName(verdict.confidence);
  status.hang = verdict.IsHang();
  status.summary = verdict.summary;
  status.snapshots = snapshots_taken_;
  if (!last_snapshot_.empty()) status.last_snapshot = AbsolutePath(last_snapshot_);
  return status;
}

Verdict Observer::Conclude(const ChildView& child) {
  FinishPlainSnapshot();
  analysis_.Stop();
  TellTroubles(true);
  Verdict verdict = analysis_.Conclude(child);
  if (scope_watch_ != nullptr) verdict = Combine(std::move(verdict), scope_watch_->opinion());
  std::vector<DueSnapshot> due = requests_.Finish([this] { return StatusNow(); });
  TellUnseen(true);
  const auto exit = std::stable_partition(due.begin(), due.end(), [](const DueSnapshot& d) {
    return d.trigger.kind != TriggerKind::kExit;
  });
  TakeDue({due.begin(), exit}, verdict);
  // The report of the end names its snapshot.
  if (exit != due.end() && TakeSnapshot(*exit, verdict, false).ok()) {
    exit_snapshot_ = last_snapshot_;
    exit_contents_ = last_contents_;
  }
  reports_.Finish();
  TellReports();
  for (const auto& [name, count] : requests_.Suppressed()) {
    narrator_.Note(fmt::format("{}: {} more within the quiet period took no snapshot", name,
                               FormatCount(count)),
                   clock_.Wall());
  }
  requests_.Close();
  return verdict;
}

}  // namespace hangscope
