#ifndef HANGSCOPE_TESTS_FAKES_FAKE_CPU_RECORDER_H
#define HANGSCOPE_TESTS_FAKES_FAKE_CPU_RECORDER_H

#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cpu/cpu_recorder.h"

namespace hangscope {

// Two events as the kernel records them, switches and the begins of system calls, in rings of CPUs
// that a test fills by saying what happened; and names in the side band. Its rings are as large as
// they need to be, until Overwrite.
class FakeCpus {
 public:
  static constexpr uint64_t kSwitchId = 101;
  static constexpr uint64_t kCallId = 102;
  static constexpr uint64_t kSideBandId = 103;  // in rings that do not overwrite themselves
  static constexpr uint64_t kLastSwitchId = 104;
  static constexpr int kPid = 4711;

  FakeCpus() {
    capture_.events.push_back(
        Tracepoint("sched:sched_switch", 314, kSwitchId,
                   "\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n"
                   "\tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n"
                   "\tfield:int prev_prio;\toffset:28;\tsize:4;\tsigned:1;\n"
                   "\tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;\n"
                   "\tfield:char next_comm[16];\toffset:40;\tsize:16;\tsigned:0;\n"
                   "\tfield:pid_t next_pid;\toffset:56;\tsize:4;\tsigned:1;\n"
                   "\tfield:int next_prio;\toffset:60;\tsize:4;\tsigned:1;\n",
                   "\"prev_pid=%d ==> next_pid=%d\", REC->prev_pid, REC->next_pid"));
    capture_.events.push_back(
        Tracepoint("raw_syscalls:sys_enter", 21, kCallId,
                   "\tfield:long id;\toffset:8;\tsize:8;\tsigned:1;\n"
                   "\tfield:unsigned long args[6];\toffset:16;\tsize:48;\tsigned:0;\n",
                   "\"NR %ld (%lx)\", REC->id, REC->args[0]"));
    for (PerfEvent& event : capture_.events) event.attr.write_backward = 1;
    PerfEvent side_band = capture_.events.front();
    side_band.name = "dummy:u";
    side_band.system = side_band.format = "";
    side_band.ids = {kSideBandId};
    side_band.attr.type = PERF_TYPE_SOFTWARE;
    side_band.attr.config = PERF_COUNT_SW_DUMMY;
    side_band.attr.write_backward = 0;
    capture_.events.push_back(side_band);
  }

  FakeCpus& Switch(int cpu, TimeNs time, int from, int to) {
    return Sample(cpu, time, from, kSwitchId, SwitchRaw(from, to));
  }
  FakeCpus& Call(int cpu, TimeNs time, int tid, uint64_t number, uint64_t argument) {
    std::string raw = RawHead(21);
    AddNumbers(&raw, {number, argument, 0, 0, 0, 0, 0});
    return Sample(cpu, time, tid, kCallId, raw);
  }
  // PERF_RECORD_SWITCH: it got the CPU, or had to leave it.
  FakeCpus& Run(int cpu, TimeNs time, int tid, bool out) {
    return Record(cpu, PERF_RECORD_SWITCH, out ? PERF_RECORD_MISC_SWITCH_OUT : 0, "", time, tid);
  }
  FakeCpus& Named(TimeNs time, int tid, const std::string& name) {
    std::string body;
    AddNumbers(&body, {uint64_t(uint32_t(kPid)) | uint64_t(uint32_t(tid)) << 32});
    body += name;
    body.append(8 - name.size() % 8, '\0');
    capture_.side_band += Header(PERF_RECORD_COMM, 0, body.size() + kTrailerBytes) + body +
                          Trailer(0, time, tid, kSideBandId);
    return *this;
  }
  // PERF_RECORD_EXIT: from now on its own events record nothing.
  FakeCpus& Ends(int cpu, TimeNs time, int tid) {
    const uint64_t maker = uint64_t(uint32_t(kPid)) | uint64_t(uint32_t(kPid)) << 32;
    std::string body;
    AddNumbers(&body, {maker, uint64_t(uint32_t(tid)) | uint64_t(uint32_t(kPid)) << 32,
                       static_cast<uint64_t>(time)});
    capture_.side_band += Header(PERF_RECORD_EXIT, 0, body.size() + kTrailerBytes) + body +
                          Trailer(cpu, time, tid, kSideBandId);
    return *this;
  }
  // Its events are inherited, as of a recorder of one program.
  FakeCpus& OfOneProgram() {
    for (PerfEvent& event : capture_.events) event.attr.inherit = 1;
    return *this;
  }
  // Besides, the last switches of tasks are recorded, of everybody's.
  FakeCpus& WithLastSwitches() {
    PerfEvent last = capture_.events[0];
    last.ids = {kLastSwitchId};
    last.attr.inherit = 0;
    last.filter = "prev_state & 48";
    capture_.events.push_back(last);
    return *this;
  }
  // `tid` leaves the CPU for the last time; the sample says that it is `sampled`.
  FakeCpus& SwitchLast(int cpu, TimeNs time, int tid, int sampled) {
    return Sample(cpu, time, sampled, kLastSwitchId, SwitchRaw(tid, 0));
  }
  FakeCpus& Lost(int cpu, uint64_t records) {
    Ring(cpu).lost_records += records;
    return *this;
  }
  // The oldest `records` are gone.
  FakeCpus& Overwrite(int cpu, int records) {
    PerfRing& ring = Ring(cpu);
    for (; records > 0; --records) {
      perf_event_header header{};
      std::memcpy(&header, ring.records.data(), sizeof header);
      ring.records.erase(0, header.size);
    }
    ring.lost_before = true;
    return *this;
  }

  // As of now. Heads go on from one to the next.
  CpuCapture Take(TimeNs time) {
    CpuCapture taken = capture_;
    taken.time = time;
    for (PerfRing& ring : taken.rings) ring.taken = time;
    return taken;
  }
  PerfRing& Ring(int cpu) {
    for (PerfRing& ring : capture_.rings) {
      if (ring.cpu == cpu) return ring;
    }
    PerfRing ring;
    ring.cpu = cpu;
    ring.capacity_bytes = 1 << 16;
    ring.recording_since = 1;
    capture_.rings.push_back(ring);
    return capture_.rings.back();
  }

 private:
  static constexpr size_t kTrailerBytes = 8 + 8 + 8 + 8;  // TID, TIME, CPU, IDENTIFIER

  static PerfEvent Tracepoint(const std::string& name, uint32_t number, uint64_t id,
                              const std::string& fields, const std::string& print) {
    PerfEvent event;
    event.name = name;
    event.system = name.substr(0, name.find(':'));
    event.ids = {id};
    event.attr.type = PERF_TYPE_TRACEPOINT;
    event.attr.size = sizeof event.attr;
    event.attr.config = number;
    event.attr.sample_period = 1;
    event.attr.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
                             PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD | PERF_SAMPLE_RAW;
    event.attr.sample_id_all = 1;
    event.attr.use_clockid = 1;
    event.attr.clockid = 1;  // CLOCK_MONOTONIC
    event.format = "name: " + name.substr(name.find(':') + 1) + "\nID: " + std::to_string(number) +
                   "\nformat:\n"
                   "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
                   "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
                   "\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
                   "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n" +
                   fields + "\nprint fmt: " + print + "\n";
    return event;
  }
  static void AddNumbers(std::string* bytes, std::initializer_list<uint64_t> numbers) {
    for (const uint64_t number : numbers)
      bytes->append(reinterpret_cast<const char*>(&number), sizeof number);
  }
  static void AddName(std::string* bytes, std::string name) {
    name.resize(16, '\0');
    *bytes += name;
  }
  static std::string RawHead(uint64_t number, int tid = kPid) {
    std::string bytes;
    AddNumbers(&bytes, {number | uint64_t(uint32_t(tid)) << 32});
    return bytes;
  }
  static std::string SwitchRaw(int from, int to) {
    std::string raw = RawHead(314, from);
    AddName(&raw, "from");
    AddNumbers(&raw, {uint64_t(uint32_t(from)) | uint64_t{120} << 32, 0});
    AddName(&raw, "to");
    AddNumbers(&raw, {uint64_t(uint32_t(to)) | uint64_t{120} << 32});
    return raw;
  }
  static std::string Header(uint32_t type, uint16_t misc, size_t body_bytes) {
    perf_event_header header{};
    header.type = type;
    header.misc = misc;
    header.size = static_cast<uint16_t>(sizeof header + body_bytes);
    return {reinterpret_cast<const char*>(&header), sizeof header};
  }
  static std::string Trailer(int cpu, TimeNs time, int tid, uint64_t id = kSwitchId) {
    std::string bytes;
    AddNumbers(&bytes, {uint64_t(uint32_t(kPid)) | uint64_t(uint32_t(tid)) << 32,
                        static_cast<uint64_t>(time), uint64_t(uint32_t(cpu)), id});
    return bytes;
  }
  FakeCpus& Record(int cpu, uint32_t type, uint16_t misc, const std::string& body, TimeNs time,
                   int tid) {
    return Append(cpu,
                  Header(type, misc, body.size() + kTrailerBytes) + body + Trailer(cpu, time, tid));
  }
  FakeCpus& Sample(int cpu, TimeNs time, int tid, uint64_t id, std::string raw) {
    raw.append((8 - (raw.size() + 4) % 8) % 8, '\0');  // with its size, a multiple of 8
    std::string body;
    AddNumbers(&body, {id, uint64_t(uint32_t(kPid)) | uint64_t(uint32_t(tid)) << 32,
                       static_cast<uint64_t>(time), uint64_t(uint32_t(cpu)), 1});
    const uint32_t size = static_cast<uint32_t>(raw.size());
    body.append(reinterpret_cast<const char*>(&size), sizeof size);
    body += raw;
    return Append(cpu, Header(PERF_RECORD_SAMPLE, 0, body.size()) + body);
  }
  FakeCpus& Append(int cpu, const std::string& record) {
    PerfRing& ring = Ring(cpu);
    ring.records += record;
    ring.head += record.size();
    return *this;
  }

  CpuCapture capture_;
};

class FakeCpuRecorder final : public CpuRecorder {
 public:
  explicit FakeCpuRecorder(std::function<Result<CpuCapture>()> take) : take_(std::move(take)) {}

  void Tick() override {
    if (on_tick) on_tick();
  }
  Result<CpuCapture> Take() override { return take_(); }
  const std::vector<std::string>& warnings() const override { return told; }

  std::function<void()> on_tick;
  std::vector<std::string> told;

 private:
  const std::function<Result<CpuCapture>()> take_;
};

}  // namespace hangscope

#endif
