#include "observe/snapshot_taker.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

#include "perf/traces/last_branches.h"
#include "scope/scope_elf.h"
#include "scope/scope_view.h"
#include "snapshot/device_capture.h"
#include "verdict/text.h"

namespace hangscope {
namespace {

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

SnapshotTaker::SnapshotTaker(FileSystem& files, Clock& clock, const ObserverOptions& options,
                             const Recording& recording, Narrator& narrator, TimeNs start,
                             TimeNs start_wall)
    : files_(files),
      clock_(clock),
      options_(options),
      recording_(recording),
      narrator_(narrator),
      start_(start),
      start_wall_(start_wall),
      absolute_folder_(Absolute(FolderOf(options.prefix))),
      snapshots_(files, options.prefix, options.max_snapshots - (WritesPlain(options) ? 1 : 0),
                 options.max_snapshots == 1),
      reports_(files),
      windows_(files, options.window),
      scope_clock_(clock) {
  ForgetScope();
}

void SnapshotTaker::ForgetScope() {
  if (options_.scope.none()) return;
  scope_ =
      std::make_unique<ScopeCapture>(files_, [this](int pid) { return options_.ScopeOf(pid); });
  scope_clock_.ForgetTarget();
}

void SnapshotTaker::RecordCpus(std::unique_ptr<CpuRecorder> recorder) {
  cpus_ = std::make_unique<CpuRecording>(files_, std::move(recorder), options_.command);
  for (const std::string& warning : cpus_->warnings())
    narrator_.Note("warning: --cpu: " + warning, clock_.Wall());
}

std::optional<ThreadHistory> SnapshotTaker::ReadHistory() {
  if (cpus_ == nullptr) return std::nullopt;
  auto history = cpus_->ReadHistory();
  return history.ok() ? std::optional(std::move(*history)) : std::nullopt;
}

void SnapshotTaker::RecordScope(const ScopeSource& place) {
  scope_.reset();
  scope_clock_.ForgetTarget();
  if (!place.target.empty())
    scope_ = std::make_unique<ScopeCapture>(files_, [place](int) { return place; });
}

void SnapshotTaker::Tick(int pid) {
  pid_ = pid;
  if (cpus_ != nullptr) cpus_->Tick();
  if (scope_ == nullptr) return;
  scope_clock_.ReadMachine();  // from the start on: the longer, the better its rate is known
  scope_->Find(pid);
  if (scope_->found()) scope_->SampleClock(clock_, &scope_clock_);
}

// Of the program as it was at the start, which is what places were named by.
const std::string& SnapshotTaker::ElfId() {
  const std::string& path = options_.elf_copy.empty() ? options_.elf_path : options_.elf_copy;
  if (!elf_id_) elf_id_ = path.empty() ? std::string() : ProgramId(files_, path);
  return *elf_id_;
}

Manifest SnapshotTaker::NewManifest(const DueSnapshot& due, const Verdict& verdict) {
  Manifest manifest;
  manifest.run_id = recording_.run_id();
  manifest.trigger = due.trigger;
  manifest.post = due.post;
  manifest.since_last = due.since_last;
  manifest.command = options_.command;
  manifest.pid = pid_;
  manifest.elf = options_.elf_path;
  manifest.elf_id = ElfId();
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

// The files of the scope. That there are none is reported; the snapshot is taken all the same.
SnapshotTaker::Parts SnapshotTaker::CaptureScope(Manifest* manifest) {
  Parts parts;
  if (device_ == nullptr && scope_ == nullptr) return parts;
  ShowWork("reading the target's memory");
  if (device_ != nullptr) return CaptureDevice(files_, *device_, &manifest->device);
  scope_clock_.ReadMachine();
  scope_read_at_ = clock_.Monotonic();
  auto scope = scope_->Take(pid_);
  if (!scope.ok()) {
    const char* const option = options_.scope.none() ? "" : "--scope: ";
    narrator_.Note(fmt::format("warning: {}{}", option, scope.status().message()), clock_.Wall());
    return parts;
  }
  manifest->scope.image = kScopeImageName;
  manifest->scope.cores = scope->cores;
  parts.emplace_back(kScopeImageName, std::move(scope->image));
  if (scope->catalog.empty()) return parts;
  manifest->scope.catalog = kScopeCatalogName;
  parts.emplace_back(kScopeCatalogName, std::move(scope->catalog));
  return parts;
}

void SnapshotTaker::ShowWork(const char* what) {
  narrator_.ShowWork(fmt::format("taking a snapshot: {}", what));
}

// That there is nothing of the CPUs is reported; the snapshot is taken all the same.
bool SnapshotTaker::CaptureCpus() {
  if (cpus_ == nullptr) return false;
  ShowWork("reading the CPUs' rings");
  const Status status = cpus_->Capture();
  if (!status.ok()) narrator_.Note("warning: --cpu: " + status.message(), clock_.Wall());
  return status.ok();
}

// The newest bytes are the ones that are wanted.
std::vector<RingStore*> SnapshotTaker::CatchUpStreams() {
  std::vector<RingStore*> rings;
  for (const RecordedStream& stream : recording_.streams()) {
    stream.drain->CatchUp(kLongestCatchUp);
    rings.push_back(stream.ring.get());
  }
  return rings;
}

// Read from the image in the snapshot, so that the window is that of the image: what the program
// recorded while it was read is another snapshot's.
ScopeRings SnapshotTaker::ScopeRingsIn(const std::string& folder, const Manifest& manifest) const {
  ScopeRings none;
  if (manifest.scope.image.empty()) return none;
  auto view = ScopeView::Open(files_, {folder, "", false});
  auto found = view.ok() ? ReadScopeRings(**view, scope_clock_, scope_read_at_) : view.status();
  if (found.ok()) return std::move(*found);
  none.left_out = found.status().message();
  return none;
}

// That they cannot be read is reported; the snapshot is taken all the same.
void SnapshotTaker::TellLastBranches(const std::string& folder, Verdict* verdict) {
  const Status status =
      AddLastBranches(files_, clock_, folder + "/" + kCpuFileName, {}, &verdict->findings);
  if (!status.ok())
    narrator_.Note("warning: --cpu: the last branches are not known: " + status.message(),
                   clock_.Wall());
}

// The window over what has been put into `folder`, and the CPUs' rings.
Status SnapshotTaker::AddWindow(const std::string& folder, bool has_cpus, bool since_last,
                                Manifest* manifest) {
  ScopeRings scope = ScopeRingsIn(folder, *manifest);
  manifest->scope.clocks = scope.clocks;
  manifest->scope.not_in_window = scope.left_out;
  if (has_cpus) {
    const Status status = cpus_->Write(folder, since_last, std::move(scope.rings),
                                       scope.clock_error, &windows_, manifest);
    if (!status.ok()) narrator_.Note("warning: --cpu: " + status.message(), clock_.Wall());
    if (status.ok()) TellLastBranches(folder, &manifest->verdict);
    return {};
  }
  if (scope.rings.empty()) return {};  // of streams alone, each says what it has
  WindowInput input;
  input.clock_error = scope.clock_error;
  windows_.AddStreams(folder, *manifest, manifest->time, &input);
  for (RingHistory& ring : scope.rings) input.rings.push_back(std::move(ring));
  manifest->window = windows_.Find(input, manifest->time, since_last);
  windows_.Remember(MarksOf(input), manifest->time);
  return {};
}

Result<std::string> SnapshotTaker::Take(const DueSnapshot& due, const Verdict& verdict,
                                        const std::string& threads, bool with_text) {
  Manifest manifest = NewManifest(due, verdict);
  // First, since the streams may take a second to catch up: meanwhile the CPUs' rings would
  // overwrite what is wanted.
  const bool has_cpus = CaptureCpus();
  const bool since_last =
      due.since_last || (has_cpus && options_.window.policy == WindowPolicy::kSinceLast);
  if (!recording_.streams().empty()) ShowWork("waiting for the streams");
  const std::vector<RingStore*> rings = CatchUpStreams();
  manifest.verdict.last_output = recording_.ReadLastOutput();
  Parts parts = CaptureScope(&manifest);
  if (!threads.empty()) parts.emplace_back(kThreadsName, threads);
  ShowWork("writing it");
  const auto add_window = [&](const std::string& partial) {
    ShowWork("finding its window");
    return AddWindow(partial, has_cpus, since_last, &manifest);
  };
  auto folder = snapshots_.Take(rings, &manifest, since_last, parts, add_window);
  if (!folder.ok()) {
    narrator_.Note("cannot take a snapshot: " + folder.status().message(), clock_.Wall());
    return folder;
  }
  ++count_;
  if (WritesPlain(options_)) WritePlainSnapshot(*folder, manifest);
  reports_.Write(*folder);
  last_ = *folder;
  contents_ = ContentsText(manifest);
  manifest_ = manifest;
  narrator_.AnnounceSnapshot(manifest, *folder, with_text);
  return folder;
}

bool SnapshotTaker::AmendLast(const Verdict& verdict, const std::string& threads) {
  if (last_.empty() || !IsSnapshot(files_, last_)) return false;
  manifest_.verdict = verdict;
  if (!manifest_.cpu.file.empty()) TellLastBranches(last_, &manifest_.verdict);
  const Status status = AmendSnapshot(files_, last_, manifest_, threads);
  if (!status.ok())
    narrator_.Note(fmt::format("the snapshot '{}' still says what was known first: {}", last_,
                               status.message()),
                   clock_.Wall());
  reports_.Write(last_);
  return true;
}

void SnapshotTaker::WritePlainSnapshot(const std::string& folder, const Manifest& manifest) {
  if (plain_snapshot_ == nullptr) {
    plain_snapshot_ = std::make_unique<PlainSnapshot>(files_, options_.prefix + ".snapshot",
                                                      options_.bound_bytes);
  }
  plain_snapshot_->Write(folder + "/" + manifest.streams[0].name);
}

void SnapshotTaker::FinishPlainSnapshot() {
  if (plain_snapshot_ == nullptr) return;
  plain_snapshot_->Finish();
  const Status status = plain_snapshot_->status();
  if (!status.ok())
    narrator_.Note(fmt::format("cannot write '{}.snapshot': {}", options_.prefix, status.message()),
                   clock_.Wall());
}

void SnapshotTaker::ReportUnwrittenReports() {
  for (const std::string& warning : reports_.DrainWarnings())
    narrator_.Note(warning, clock_.Wall());
}

void SnapshotTaker::FinishReports() {
  if (count_ > 0) narrator_.ShowWork("drawing the page of the snapshot");
  reports_.Finish();
  ReportUnwrittenReports();
}

std::string SnapshotTaker::AbsolutePath(const std::string& path) const {
  return absolute_folder_ + "/" + NameOf(path);
}

}  // namespace hangscope
