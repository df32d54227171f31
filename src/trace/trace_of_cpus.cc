#include "trace/trace_of_cpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <unordered_set>

#include "base/utf8.h"
#include "perf/perf_side_band.h"
#include "perf/perf_sorter.h"
#include "trace/perf_kinds.h"

namespace hangscope {
namespace {

constexpr uint64_t kRecordsBetweenQuestions = 65'536;
constexpr size_t kMostTaskNames = 200'000;
constexpr size_t kMostCpus = 16'384;  // Linux allows 8192

// Sleeps that are meant to take as long as they take: the world's doing, or time's.
bool IsByDesign(const std::string& call) {
  constexpr std::array<std::string_view, 14> kCalls = {
      "nanosleep",     "clock_nanosleep", "poll",        "ppoll",        "select",
      "pselect6",      "epoll_wait",      "epoll_pwait", "epoll_pwait2", "pause",
      "rt_sigsuspend", "rt_sigtimedwait", "accept",      "accept4"};
  return call.empty() || std::find(kCalls.begin(), kCalls.end(), call) != kCalls.end();
}

class CpuTrace final : public TraceSource {
 public:
  CpuTrace(std::string path, std::unique_ptr<PerfFile> file)
      : path_(std::move(path)), file_(std::move(file)), sorter_(*file_), kinds_(*file_) {}

  Status Open(const std::function<bool(double)>& go_on);
  bool came_late() const { return file_->came_late(); }
  bool has_hardware_traces() const { return !file_->aux().empty(); }
  const TraceHead& head() const override { return head_; }
  const TraceEnd& end() const override { return end_; }
  Result<bool> Next(TraceItem* item) override;
  double progress() const override {
    return sorter_.added() == 0
               ? 1
               : static_cast<double>(sorter_.returned()) / static_cast<double>(sorter_.added());
  }

 private:
  // What goes on from one record of a CPU to the next.
  struct Cpu {
    size_t track = 0;
    TimeNs first = 0;
    TimeNs last = 0;  // of what was told
    bool any = false;
    uint64_t sequence = 0;
    int64_t runs = -1;  // whom the last switch brought
  };

  void ReadRecord(const PerfRecord& record);
  void CollectNames(const PerfRecord& record);
  void NoteRecorded(const PerfRecord& record);
  Cpu* FindCpu(int number);
  void NameThread(int tid, std::string_view name, bool own_word);
  void AddTracks();
  bool ConvertItem(const PerfRecord& record, TraceItem* item);
  bool ConvertSwitch(const PerfRecord& record, Cpu* cpu, TraceItem* item);
  TraceEvent& EventOn(const PerfRecord& record, Cpu* cpu, TraceItem* item);
  TraceLoss LossOn(const PerfRecord& record, uint64_t records, Cpu* cpu);
  void Finish();

  const std::string path_;
  std::unique_ptr<PerfFile> file_;
  PerfSorter sorter_;
  PerfKinds kinds_;
  TraceHead head_;
  TraceEnd end_;
  std::map<int, Cpu> cpus_;
  std::array<Cpu*, 256> few_cpus_{};  // of cpus_, by number: the others are looked for
  // tasks that have a name, each at its number's rest; 0: none
  std::array<int64_t, 1024> named_{};
  // Who has records of its own. The idle thread has some only where whole CPUs are recorded, and
  // everybody with them.
  std::unordered_set<int> recorded_;
  bool records_all_ = false;
  uint64_t timeless_ = 0;  // samples without a time
  uint64_t odd_ = 0;       // records of CPUs that cannot be
  bool any_ = false;
  bool finished_ = false;
};

void CpuTrace::NameThread(int tid, std::string_view name, bool own_word) {
  if (tid <= 0 || name.empty()) return;
  const auto known = head_.tasks.find(tid);
  if (known == head_.tasks.end() && head_.tasks.size() < kMostTaskNames)
    head_.tasks.emplace(tid, name);
  else if (known != head_.tasks.end() && own_word)
    known->second = name;
}

// Most records name whom others named before.
void CpuTrace::CollectNames(const PerfRecord& record) {
  for (const PerfKinds::NameField& field : kinds_.NameFields(record)) {
    const auto tid = field.tid.Number(record.raw);
    if (!tid) continue;
    int64_t& named = named_[static_cast<uint64_t>(*tid) % named_.size()];
    if (named == *tid) continue;
    if (head_.tasks.count(*tid) == 0)
      NameThread(static_cast<int>(*tid), field.name.Text(record.raw).value_or(""), false);
    if (head_.tasks.count(*tid) != 0) named = *tid;
  }
}

// Null: it has nothing to tell.
CpuTrace::Cpu* CpuTrace::FindCpu(int number) {
  const bool is_small = number >= 0 && static_cast<size_t>(number) < few_cpus_.size();
  if (is_small && few_cpus_[static_cast<size_t>(number)] != nullptr)
    return few_cpus_[static_cast<size_t>(number)];
  const auto known = cpus_.find(number);
  if (known == cpus_.end()) return nullptr;
  if (is_small) few_cpus_[static_cast<size_t>(number)] = &known->second;
  return &known->second;
}

void CpuTrace::ReadRecord(const PerfRecord& record) {
  if (record.type >= PERF_RECORD_MAX) return;
  if (const auto comm = ParsePerfComm(record)) NameThread(comm->tid, comm->name, true);
  if (record.type == PERF_RECORD_SAMPLE) CollectNames(record);
  const bool told = record.type == PERF_RECORD_SAMPLE || record.type == PERF_RECORD_SWITCH ||
                    record.type == PERF_RECORD_SWITCH_CPU_WIDE || ParsePerfLost(record);
  if (!told) return;
  if (record.time < 0) {
    ++timeless_;
    return;
  }
  NoteRecorded(record);
  Cpu* known = FindCpu(record.cpu);
  if (known == nullptr && cpus_.size() == kMostCpus) {
    ++odd_;
    return;
  }
  Cpu& cpu = known != nullptr ? *known : cpus_[record.cpu];
  cpu.first = cpu.any ? std::min(cpu.first, record.time) : record.time;
  cpu.any = true;
  head_.time.from = any_ ? std::min(head_.time.from, record.time) : record.time;
  head_.time.to = any_ ? std::max(head_.time.to, record.time) : record.time;
  any_ = true;
}

void CpuTrace::NoteRecorded(const PerfRecord& record) {
  if (records_all_ || ParsePerfLost(record)) return;
  records_all_ = record.tid <= 0 || recorded_.size() == kMostTaskNames;
  recorded_.insert(record.tid);
}

void CpuTrace::AddTracks() {
  for (auto& [number, cpu] : cpus_) {
    cpu.track = head_.tracks.size();
    cpu.last = cpu.first;
    if (number >= 0)
      head_.tracks.push_back({{RingKind::kCpu, number, "events"}, fmt::format("CPU {}", number)});
    else
      head_.tracks.push_back({{RingKind::kThread, number, "events"}, "CPUs that are not told"});
  }
}

Status CpuTrace::Open(const std::function<bool(double)>& go_on) {
  const PerfFileFacts& facts = file_->facts();
  head_.name = path_;
  head_.host = facts.host;
  head_.release = facts.release;
  head_.architecture = facts.architecture;
  head_.recorded_by = facts.version.empty() ? "perf" : "perf " + facts.version;
  if (!facts.command.empty()) head_.command = {facts.command};
  head_.kinds = kinds_.kinds();
  Status added;
  uint64_t looked_at = 0;
  bool stopped = false;
  const Status status = file_->ForEachPlaced(
      [&](const PerfRecord& record, const PerfRecordPlace& place, std::string_view bytes) {
        ReadRecord(record);
        added = sorter_.Add(record, place, bytes);
        const bool ask = go_on && ++looked_at % kRecordsBetweenQuestions == 0;
        if (ask && !go_on(static_cast<double>(place.offset) /
                          static_cast<double>(std::max(file_->bytes(), place.offset + 1))))
          stopped = true;
        return added.ok() && !stopped;
      });
  if (!status.ok()) return status;
  if (stopped) return Status::Io("interrupted");
  if (!added.ok())
    head_.warnings.push_back(added.message() + ": what was compressed behind that is left out");
  AddTracks();
  for (const std::string& warning : facts.warnings) head_.warnings.push_back(warning);
  if (timeless_ > 0)
    head_.warnings.push_back(fmt::format(
        "{} records have no time, and are left out: record with perf record --timestamp",
        timeless_));
  if (odd_ > 0)
    head_.warnings.push_back(
        fmt::format("{} records are of more CPUs than there can be, and are left out", odd_));
  end_.time = head_.time.to;
  return {};
}

TraceEvent& CpuTrace::EventOn(const PerfRecord& record, Cpu* cpu, TraceItem* item) {
  TraceEvent& event = BeginEvent(item);
  event.track = cpu->track;
  event.time = cpu->last = std::max(cpu->last, record.time);
  event.sequence = cpu->sequence++;
  return event;
}

// The kernel tells it with the next record that found room.
TraceLoss CpuTrace::LossOn(const PerfRecord& record, uint64_t records, Cpu* cpu) {
  const TimeNs to = std::max(cpu->last, record.time);
  const TraceLoss loss{
      cpu->track, {cpu->last, to}, GapReason::kNoRoom, records, AmountUnit::kRecords};
  cpu->last = to;
  cpu->sequence += records;
  return loss;
}

// Where it tells who comes when somebody leaves, the record of who came says the same again.
bool CpuTrace::ConvertSwitch(const PerfRecord& record, Cpu* cpu, TraceItem* item) {
  const auto change = ParsePerfSwitch(record);
  if (!change || kinds_.has_sched_switch()) return false;
  if (!change->out && cpu->runs == record.tid) return false;
  TraceEvent& event = EventOn(record, cpu, item);
  event.values.clear();
  event.kind = kinds_.switch_kind();
  const int from = change->out ? record.tid : change->other_tid;
  const int to = change->out ? change->other_tid : record.tid;
  if (from > 0) event.from = from;
  if (to > 0) event.to = to;
  event.from_waits = change->out && from > 0 && !change->preempted;
  cpu->runs = std::max(to, 0);
  kinds_.Recorded(record.tid);
  if (from > 0) kinds_.Switched(from, record.time, event.from_waits);
  if (to > 0) kinds_.Switched(to, record.time, false);
  return true;
}

// False: the record tells nothing that is exported.
bool CpuTrace::ConvertItem(const PerfRecord& record, TraceItem* item) {
  if (record.type == PERF_RECORD_EXIT) {
    if (const auto task = ParsePerfTask(record)) kinds_.Ended(task->tid, record.time);
  }
  Cpu* const cpu = FindCpu(record.cpu);
  if (cpu == nullptr) return false;
  if (const auto lost = ParsePerfLost(record)) {
    *item = LossOn(record, *lost, cpu);
    ++end_.losses;
    return true;
  }
  bool taken = false;
  if (record.type == PERF_RECORD_SWITCH || record.type == PERF_RECORD_SWITCH_CPU_WIDE)
    taken = ConvertSwitch(record, cpu, item);
  else if (record.type == PERF_RECORD_SAMPLE)
    taken = kinds_.Fill(record, &EventOn(record, cpu, item));
  if (taken) {
    auto& event = std::get<TraceEvent>(*item);
    event.to_recorded =
        !event.to || records_all_ || recorded_.count(static_cast<int>(*event.to)) != 0;
  }
  end_.events += taken;
  return taken;
}

Result<bool> CpuTrace::Next(TraceItem* item) {
  PerfRecord record;
  for (;;) {
    auto next = sorter_.Next(&record);
    if (!next.ok()) return next.status();
    if (!*next) break;
    if (ConvertItem(record, item)) return true;
  }
  Finish();
  return false;
}

void CpuTrace::Finish() {
  if (finished_) return;
  finished_ = true;
  end_.tasks = head_.tasks;
  if (sorter_.late() > 0)
    end_.warnings.push_back(
        fmt::format("{} records come later than their times say: the file has them in too little "
                    "order for the memory that is taken",
                    sorter_.late()));
  for (const auto& [tid, thread] : kinds_.threads()) {
    if (!thread.recorded) continue;
    TraceStanding standing;
    standing.who = {true, tid};
    standing.since = thread.since;
    standing.activity = thread.ended              ? Activity::kEnded
                        : !thread.waits           ? Activity::kRunning
                        : IsByDesign(thread.call) ? Activity::kIdle
                                                  : Activity::kWaiting;
    if (standing.activity == Activity::kRunning) standing.since.reset();
    if (thread.waits && !thread.ended) standing.waits_for = thread.call;
    end_.standings.push_back(std::move(standing));
  }
  std::sort(end_.standings.begin(), end_.standings.end(),
            [](const TraceStanding& a, const TraceStanding& b) { return a.who < b.who; });
}

}  // namespace

Result<std::unique_ptr<TraceSource>> OpenCpuTrace(FileSystem& files, const std::string& path,
                                                  const std::function<bool(double)>& go_on,
                                                  bool* has_hardware_traces) {
  std::unique_ptr<CpuTrace> trace;
  for (const PerfOpen how : {PerfOpen::kDefinitions, PerfOpen::kAll}) {
    if (trace != nullptr && !trace->came_late()) break;
    auto file = PerfFile::Open(files, path, how);
    if (!file.ok()) return file.status();
    trace = std::make_unique<CpuTrace>(path, std::move(*file));
    if (Status status = trace->Open(go_on); !status.ok()) return status;
  }
  if (has_hardware_traces != nullptr) *has_hardware_traces = trace->has_hardware_traces();
  return std::unique_ptr<TraceSource>(std::move(trace));
}

}  // namespace hangscope
