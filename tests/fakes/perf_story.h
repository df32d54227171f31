// The records of a kernel's scheduler and system calls, as a story: who comes, calls, sleeps and is
// woken.
#ifndef HANGSCOPE_TESTS_FAKES_PERF_STORY_H
#define HANGSCOPE_TESTS_FAKES_PERF_STORY_H

#include <string>
#include <vector>

#include "fakes/perf_image.h"

namespace hangscope {

class PerfStory {
 public:
  PerfImage image;

  PerfStory() {
    const auto add = [this](const char* system, const char* name, uint32_t id,
                            const std::string& fields) {
      PerfEvent event;
      event.system = system;
      event.name = std::string(system) + ":" + name;
      event.format = "name: " + std::string(name) + "\nID: " + std::to_string(id) + "\nformat:\n" +
                     Field("unsigned short common_type", 0, 2) + "\n" + fields;
      event.attr.type = PERF_TYPE_TRACEPOINT;
      event.attr.config = id;
      event.attr.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
                               PERF_SAMPLE_CPU | PERF_SAMPLE_RAW;
      event.attr.sample_id_all = 1;
      event.ids = {id};
      image.events.push_back(event);
    };
    add("sched", "sched_switch", 1,
        Field("char prev_comm[16]", 8, 16) + Field("int prev_pid", 24, 4) +
            Field("long prev_state", 32, 8) + Field("char next_comm[16]", 40, 16) +
            Field("int next_pid", 56, 4));
    add("sched", "sched_wakeup", 2, Field("char comm[16]", 8, 16) + Field("int pid", 24, 4));
    add("raw_syscalls", "sys_enter", 3,
        Field("long id", 8, 8) + Field("unsigned long args[6]", 16, 48));
    add("raw_syscalls", "sys_exit", 4, Field("long id", 8, 8) + Field("long ret", 16, 8));
    image.features[kPerfFeatureEventDescription] = image.EventNames();
    image.features[kPerfFeatureTracingData] = TracingData();
  }

  // A thread `out` leaves `cpu` in `state`, and `in` comes.
  void Switch(TimeNs time, int cpu, int out, int64_t state, int in) {
    Add(1, time, cpu, out,
        std::string(8, '\0') + Comm(out) + PerfBytes(out, 0, state) + Comm(in) + PerfBytes(in, 0));
  }
  void Wake(TimeNs time, int cpu, int by, int tid) {
    Add(2, time, cpu, by, std::string(8, '\0') + Comm(tid) + PerfBytes(tid));
  }
  void Call(TimeNs time, int cpu, int tid, int64_t number, uint64_t argument = 0) {
    Add(3, time, cpu, tid,
        std::string(8, '\0') + PerfBytes(number) + PerfWord(argument) + std::string(40, '\0'));
  }
  void Return(TimeNs time, int cpu, int tid, int64_t number) {
    Add(4, time, cpu, tid, std::string(8, '\0') + PerfBytes(number) + PerfWord(0));
  }
  void Lost(TimeNs time, int cpu, uint64_t records) {
    image.records.push_back(
        PerfRecordOf(PERF_RECORD_LOST, PerfWord(1) + PerfWord(records) + Trailer(time, cpu, 5)));
  }
  // Without sched_switch's word.
  void Comes(TimeNs time, int cpu, int tid) {
    image.records.push_back(PerfRecordOf(PERF_RECORD_SWITCH, Trailer(time, cpu, tid)));
  }
  void Leaves(TimeNs time, int cpu, int tid) {
    image.records.push_back(
        PerfRecordOf(PERF_RECORD_SWITCH, Trailer(time, cpu, tid), PERF_RECORD_MISC_SWITCH_OUT));
  }
  // What perf tells at the end of an event on one CPU.
  void LostInAll(uint64_t id, uint64_t records, uint16_t misc = 0) {
    image.records.push_back(PerfRecordOf(
        PERF_RECORD_LOST_SAMPLES,
        PerfWord(records) + PerfIds(0, 0) + PerfWord(0) + PerfWord(0) + PerfWord(id), misc));
  }
  void Comm(int tid, const std::string& name) {
    image.records.push_back(
        PerfRecordOf(PERF_RECORD_COMM, PerfIds(tid, tid) + PerfText(name) + std::string(32, '\0')));
  }
  void Exit(TimeNs time, int cpu, int tid) {
    image.records.push_back(PerfRecordOf(
        PERF_RECORD_EXIT,
        PerfIds(tid, 1) + PerfIds(tid, 1) + PerfBytes(time) + Trailer(time, cpu, tid)));
  }
  void Fork(TimeNs time, int cpu, int tid, int parent) {
    image.records.push_back(
        PerfRecordOf(PERF_RECORD_FORK, PerfIds(tid, parent) + PerfIds(tid, parent) +
                                           PerfBytes(time) + Trailer(time, cpu, parent)));
  }
  void WholeMachine() { ThreadMap({-1}); }
  // Whom perf was asked to record.
  void ThreadMap(const std::vector<int64_t>& tids) {
    std::string body = PerfWord(tids.size());
    for (const int64_t tid : tids) body += PerfBytes(tid) + std::string(16, '\0');
    image.records.push_back(PerfRecordOf(kPerfThreadMap, body));
  }
  // A mapping that somebody made up of a time before the recording.
  void Mapped(TimeNs time, int cpu, int tid) {
    image.records.push_back(PerfRecordOf(
        PERF_RECORD_MMAP, PerfIds(tid, tid) + PerfWord(0x1000) + PerfWord(0x1000) + PerfWord(0) +
                              PerfText("/bin/x") + Trailer(time, cpu, tid)));
  }
  void LeaveFormatsOut() {
    for (PerfEvent& event : image.events) event.format.clear();
    image.features.erase(kPerfFeatureTracingData);
  }
  // From now on as a ring of a thread has them.
  void TellNoCpus() {
    for (PerfEvent& event : image.events) event.attr.sample_type &= ~uint64_t{PERF_SAMPLE_CPU};
    tells_cpus_ = false;
    image.features[kPerfFeatureEventDescription] = image.EventNames();
  }
  void Command(const std::vector<std::string>& words) {
    std::string& bytes = image.features[kPerfFeatureCommand];
    bytes = PerfBytes(static_cast<uint32_t>(words.size()));
    for (const std::string& word : words) bytes += PerfSizedText(word);
  }
  void Aux(TimeNs time, int cpu, int tid, uint64_t offset, uint64_t bytes, uint64_t flags = 0) {
    image.records.push_back(PerfRecordOf(
        PERF_RECORD_AUX,
        PerfWord(offset) + PerfWord(bytes) + PerfWord(flags) + Trailer(time, cpu, tid)));
  }
  // `process`: the thread's; 0: it is its own.
  void TraceStart(TimeNs time, int cpu, int tid, int process = 0) {
    image.records.push_back(
        PerfRecordOf(PERF_RECORD_ITRACE_START,
                     PerfIds(process == 0 ? tid : process, tid) + Trailer(time, cpu, tid)));
  }
  void Auxtrace(int cpu, uint64_t offset, uint64_t bytes) {
    Auxtrace(cpu, offset, std::string(bytes, 't'));
  }
  void Auxtrace(int cpu, uint64_t offset, const std::string& bytes) {
    image.records.push_back(
        PerfRecordOf(kPerfAuxtrace, PerfWord(bytes.size()) + PerfWord(offset) + PerfWord(0) +
                                        PerfBytes(static_cast<uint32_t>(cpu), 0, cpu, 0u)) +
        bytes);
  }
  // `body`: of PERF_RECORD_AUXTRACE_INFO.
  void AuxtraceInfo(const std::string& body) {
    image.records.push_back(PerfRecordOf(kPerfAuxtraceInfo, body));
  }
  // The thread's tracer on this CPU got a trace id from the kernel.
  void HardwareId(TimeNs time, int cpu, int tid, uint64_t id) {
    image.records.push_back(
        PerfRecordOf(kPerfAuxOutputHardwareId, PerfWord(id) + Trailer(time, cpu, tid)));
  }

  static std::string NameOf(int tid) { return tid == 0 ? "swapper" : "task" + std::to_string(tid); }

 private:
  static std::string Field(const std::string& declaration, int offset, int size) {
    return "\tfield:" + declaration + ";\toffset:" + std::to_string(offset) +
           ";\tsize:" + std::to_string(size) + ";\tsigned:1;\n";
  }
  static std::string Comm(int tid) {
    std::string name = NameOf(tid);
    name.resize(16);
    return name;
  }
  std::string Trailer(TimeNs time, int cpu, int tid) const {
    return PerfIds(tid, tid) + PerfBytes(time) + CpuWord(cpu) + PerfWord(1);
  }
  std::string CpuWord(int cpu) const { return tells_cpus_ ? PerfBytes(cpu, 0) : ""; }
  std::string TracingData() const {
    std::string sched = PerfTracingData("sched", {image.events[0].format, image.events[1].format});
    // A second system behind the first: the count, and the system before what follows them.
    const std::string end = PerfBytes(uint32_t{0}, uint32_t{0}) + PerfWord(0);
    sched.resize(sched.size() - end.size());
    const size_t count_at = sched.find(std::string("sched\0", 6)) - 4;
    sched.replace(count_at, 4, PerfBytes(uint32_t{2}));
    sched += std::string("raw_syscalls\0", 13) + PerfBytes(uint32_t{2});
    for (const size_t i : {2u, 3u})
      sched += PerfWord(image.events[i].format.size()) + image.events[i].format;
    return sched + end;
  }
  void Add(uint64_t event, TimeNs time, int cpu, int tid, std::string raw) {
    while ((raw.size() + 4) % 8 != 0) raw += '\0';
    image.records.push_back(PerfRecordOf(
        PERF_RECORD_SAMPLE, PerfWord(event) + PerfIds(tid, tid) + PerfBytes(time) + CpuWord(cpu) +
                                PerfBytes(static_cast<uint32_t>(raw.size())) + raw));
  }

  bool tells_cpus_ = true;
};

}  // namespace hangscope

#endif
