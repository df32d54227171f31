#include "tools/diagnose.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <link.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <sstream>
#include <string_view>

#include "base/capabilities.h"
#include "cpu/cpu_recorder.h"
#include "proc/child_process.h"

namespace hangscope {
namespace {

constexpr uint64_t kEventsOfACpu = 16;  // descriptors, at most; and some for all else
constexpr uint64_t kOtherDescriptors = 64;

std::optional<int64_t> Number(Machine& machine, const std::string& path) {
  const auto text = machine.Read(path);
  if (!text) return std::nullopt;
  int64_t number = 0;
  const auto [stop, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  return error == std::errc() ? std::optional(number) : std::nullopt;
}

// The line "NAME: VALUE" of a file of /proc.
std::string LineOf(Machine& machine, const std::string& path, const std::string& name) {
  std::istringstream text(machine.Read(path).value_or(""));
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with(name)) return line.substr(name.size());
  }
  return {};
}

class Doctor {
 public:
  explicit Doctor(Machine& machine) : machine_(machine) {
    capabilities_ = Capabilities(machine.Read("/proc/self/status").value_or(""));
    int real = -1;
    int effective = -1;
    std::istringstream(LineOf(machine, "/proc/self/status", "Uid:")) >> real >> effective;
    is_root_ = effective == 0;
    paranoid_ = Number(machine, "/proc/sys/kernel/perf_event_paranoid");
    tracefs_ = FindTracefs();
  }

  DoctorReport Run() {
    CheckOwnProcesses();
    CheckKernelEvents();
    CheckRingMemory();
    CheckStacks();
    CheckWholeMachine();
    CheckUserProbes();
    CheckKernelSymbols();
    CheckDescriptors();
    CheckHardware();
    CheckLibcSymbols();
    CheckPerf();
    return report_;
  }

 private:
  bool Has(Capability capability) const { return capabilities_.Has(capability); }
  bool MayTraceAll() const { return capabilities_.MayTraceAll(); }

  void Add(DoctorCheck check) {
    constexpr std::string_view kSudo = "sudo ";
    for (std::string& command : check.commands) {
      if (is_root_ && command.starts_with(kSudo)) command.erase(0, kSudo.size());
    }
    report_.checks.push_back(std::move(check));
  }

  // Mounted in one of the two places that there are; empty: it is not.
  std::string FindTracefs() {
    for (const std::string folder : {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"}) {
      if (machine_.Exists(folder + "/events")) return folder;
    }
    // The folder may be closed to this user, and what is mounted is still known.
    const std::string mounts = machine_.Read("/proc/mounts").value_or("");
    for (const std::string folder : {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"}) {
      if (mounts.find(" " + folder + " tracefs ") != std::string::npos) return folder;
    }
    return {};
  }

  static perf_event_attr OwnEvent() {
    perf_event_attr attr{};
    attr.size = sizeof attr;
    attr.type = PERF_TYPE_SOFTWARE;
    attr.config = PERF_COUNT_SW_DUMMY;
    attr.exclude_kernel = 1;
    attr.context_switch = 1;
    attr.disabled = 1;
    return attr;
  }
  static perf_event_attr Tracepoint(int64_t id) {
    perf_event_attr attr{};
    attr.size = sizeof attr;
    attr.type = PERF_TYPE_TRACEPOINT;
    attr.config = static_cast<uint64_t>(id);
    attr.sample_period = 1;
    attr.sample_type = PERF_SAMPLE_RAW | PERF_SAMPLE_TIME;
    attr.disabled = 1;
    return attr;
  }

  std::string ParanoidText() const {
    return paranoid_ ? fmt::format("kernel.perf_event_paranoid is {}", *paranoid_)
                     : "this kernel has no perf events";
  }
  static std::string Lower(int level) {
    return fmt::format("sudo sysctl kernel.perf_event_paranoid={}", level);
  }
  static std::string Grant(const std::string& capabilities) {
    return fmt::format("sudo setcap {}+ep \"$(readlink -f \"$(command -v hangscope)\")\"",
                       capabilities);
  }

  // Why the kernel said `error`, and what grants what needs perf_event_paranoid to be `level` at
  // most.
  void Explain(int error, int level, DoctorCheck* check) const {
    if (!paranoid_ || error == ENOSYS) {
      check->why = "this kernel has no perf events (CONFIG_PERF_EVENTS), or a sandbox hides them";
    } else if (*paranoid_ > level && !MayTraceAll()) {
      check->why = fmt::format("{}: this wants {} at most, or CAP_PERFMON", ParanoidText(), level);
      check->commands = {Lower(level), Grant("cap_perfmon")};
    } else if (error == EPERM || error == EACCES) {
      check->why = fmt::format(
          "{}, and yet it is refused ({}): by a container's seccomp filter or a security module",
          ParanoidText(), strerrorname_np(error));
      check->commands = {"docker run --cap-add PERFMON --security-opt seccomp=unconfined ..."};
    } else {
      check->why = fmt::format("the kernel refuses it: {}", strerror(error));
    }
  }

  void CheckOwnProcesses() {
    DoctorCheck check{"own-processes", "run --cpu: which thread ran where and when, faults"};
    if (const int error = machine_.TryEvent(OwnEvent(), 0, -1); error != 0) {
      check.state = CheckState::kMissing;
      Explain(error, 2, &check);
    } else {
      check.why = ParanoidText();
    }
    Add(std::move(check));
  }

  void CheckKernelEvents() {
    DoctorCheck check{"kernel-events", "run --cpu: switches, wake-ups, system calls, signals"};
    const auto id = tracefs_.empty() ? std::nullopt
                                     : Number(machine_, tracefs_ + "/events/sched/sched_switch/id");
    if (!id) {
      check.state = CheckState::kMissing;
      ExplainTracefs(&check);
    } else if (const int error = machine_.TryEvent(Tracepoint(*id), 0, -1); error != 0) {
      check.state = CheckState::kMissing;
      Explain(error, -1, &check);
    } else {
      check.why = "tracefs at " + tracefs_;
    }
    Add(std::move(check));
  }

  void ExplainTracefs(DoctorCheck* check) {
    if (tracefs_.empty()) {
      check->why = "tracefs, which has the events' numbers and formats, is not mounted";
      check->commands = {"sudo mount -t tracefs nodev /sys/kernel/tracing"};
      return;
    }
    check->why = fmt::format(
        "this user may not read '{}', which has the events' numbers and formats", tracefs_);
    check->commands = {fmt::format("sudo mount -o remount,mode=750,gid=$(id -g) {}", tracefs_)};
    if (!MayTraceAll() && paranoid_.value_or(2) > -1) {
      check->why += fmt::format("; {}, and tracepoints want -1, or CAP_PERFMON", ParanoidText());
      check->commands = {check->commands[0] + " && " + Lower(-1),
                         Grant("cap_perfmon,cap_dac_read_search")};
    }
  }

  void CheckRingMemory() {
    DoctorCheck check{"ring-memory", "run --cpu: memory of the rings"};
    const uint64_t wanted = CpuRecorderOptions().ring_bytes;
    const uint64_t locked = LockedBytesOfCpu(wanted);
    const uint64_t per_cpu =
        static_cast<uint64_t>(
            Number(machine_, "/proc/sys/kernel/perf_event_mlock_kb").value_or(516))
        << 10;
    const uint64_t limit = LockedMemoryLimit();
    // What does not fit into the user's share of each CPU counts against the process's limit.
    const auto cpus = static_cast<uint64_t>(std::max(1, machine_.cpus()));
    const uint64_t fits = limit == UINT64_MAX ? UINT64_MAX : per_cpu + limit / cpus;
    if (Has(Capability::kIpcLock) || paranoid_.value_or(2) <= -1 || fits >= locked) {
      check.why = fmt::format("{} MiB a CPU", wanted >> 20);
    } else {
      check.state = CheckState::kMissing;
      check.why = fmt::format(
          "the default of {} MiB a CPU, with what is beside it {} KiB, is more than this user may "
          "lock: kernel.perf_event_mlock_kb is {}, ulimit -l {}; --cpu-size {}K fits",
          wanted >> 20, locked >> 10, per_cpu >> 10, limit >> 10, LargestRing(fits) >> 10);
      check.commands = {fmt::format("sudo sysctl kernel.perf_event_mlock_kb={}", locked >> 10),
                        Grant("cap_perfmon,cap_ipc_lock")};
    }
    Add(std::move(check));
  }
  static uint64_t LargestRing(uint64_t fits) {
    uint64_t ring = 16u << 10;
    while (LockedBytesOfCpu(ring * 2) <= fits) ring *= 2;
    return ring;
  }
  uint64_t Limit(const std::string& name) {
    const std::string line = LineOf(machine_, "/proc/self/limits", name);
    std::istringstream fields(line);
    std::string soft;
    fields >> soft;
    if (soft == "unlimited" || soft.empty()) return UINT64_MAX;
    return strtoull(soft.c_str(), nullptr, 10);
  }
  uint64_t LockedMemoryLimit() { return Limit("Max locked memory"); }

  void CheckStacks() {
    DoctorCheck check{"stacks", "why pid:N: stacks and locks of running programs"};
    const int64_t scope = Number(machine_, "/proc/sys/kernel/yama/ptrace_scope").value_or(0);
    if (Has(Capability::kSysPtrace)) {
      check.why = "any process: this user has CAP_SYS_PTRACE";
    } else if (scope == 0) {
      check.why = "one's own processes";
    } else {
      check.state = CheckState::kMissing;
      check.why =
          scope == 3
              ? "kernel.yama.ptrace_scope is 3: nobody may look into a process until the next boot"
              : fmt::format("kernel.yama.ptrace_scope is {}: {}", scope,
                            scope == 1 ? "only a program's parent may look into it"
                                       : "only who has CAP_SYS_PTRACE may look into a process");
      if (scope == 1)
        check.commands = {"sudo sysctl kernel.yama.ptrace_scope=0", Grant("cap_sys_ptrace")};
      if (scope == 2) check.commands = {Grant("cap_sys_ptrace")};
    }
    Add(std::move(check));
  }

  void CheckWholeMachine() {
    DoctorCheck check{"whole-machine", "run --cpu --all-cpus: every process"};
    perf_event_attr attr = OwnEvent();
    attr.exclude_kernel = 0;
    if (const int error = machine_.TryEvent(attr, -1, 0); error != 0) {
      check.state = CheckState::kOptional;
      Explain(error, 0, &check);
    }
    Add(std::move(check));
  }

  void CheckUserProbes() {
    DoctorCheck check{"user-probes", "run --cpu -e probe:FUNCTION@BINARY"};
    if (!machine_.Exists("/sys/bus/event_source/devices/uprobe")) {
      check.state = CheckState::kAbsent;
      check.why = "this kernel has no uprobes (CONFIG_UPROBE_EVENTS)";
    } else if (!MayTraceAll()) {
      check.state = CheckState::kOptional;
      check.why = "the kernel lets only who has CAP_PERFMON set them";
      check.commands = {Grant("cap_perfmon")};
    }
    Add(std::move(check));
  }

  void CheckKernelSymbols() {
    DoctorCheck check{"kernel-symbols", "run --cpu --call-stacks: names of kernel functions"};
    const int64_t restrict_level = Number(machine_, "/proc/sys/kernel/kptr_restrict").value_or(0);
    if (restrict_level == 2 || (restrict_level == 1 && !Has(Capability::kSysAdmin))) {
      check.state = CheckState::kOptional;
      check.why =
          fmt::format("kernel.kptr_restrict is {}: their addresses are hidden", restrict_level);
      check.commands = {"sudo sysctl kernel.kptr_restrict=0"};
    } else if (paranoid_.value_or(2) > 1 && !MayTraceAll()) {
      check.state = CheckState::kOptional;
      check.why = ParanoidText() + ": the kernel's side of stacks wants 1 at most, or CAP_PERFMON";
      check.commands = {Lower(1), Grant("cap_perfmon")};
    }
    Add(std::move(check));
  }

  void CheckDescriptors() {
    const uint64_t wanted =
        static_cast<uint64_t>(std::max(1, machine_.cpus())) * kEventsOfACpu + kOtherDescriptors;
    const uint64_t limit = Limit("Max open files");
    if (limit >= wanted) return;  // almost everywhere; nobody needs to read of it
    Add({"descriptors",
         "run --cpu: a file descriptor for each event on each CPU",
         CheckState::kMissing,
         fmt::format("ulimit -n is {}, and {} CPUs may want {}", limit, machine_.cpus(), wanted),
         {fmt::format("ulimit -n {}", wanted)}});
  }

  // What -e would do now: the tracer's event is opened on this process and closed again.
  void CheckHardware() {
    DoctorCheck check{"hardware-trace",
                      "run --cpu -e cs_etm//, intel_pt//, arm_spe_0//: every branch"};
    check.state = CheckState::kAbsent;
    check.why = "this machine has no tracer that Linux knows";
    for (const char* name : {"cs_etm", "intel_pt", "arm_spe_0"}) {
      const std::string folder = fmt::format("/sys/bus/event_source/devices/{}", name);
      if (!machine_.Exists(folder)) continue;
      CheckTracer(name, static_cast<uint32_t>(Number(machine_, folder + "/type").value_or(0)),
                  &check);
      break;
    }
    Add(std::move(check));
  }

  void CheckTracer(const std::string& name, uint32_t type, DoctorCheck* check) {
    perf_event_attr attr = OwnEvent();
    attr.type = type;
    attr.config = 0;
    attr.sample_period = 1;
    int error = ENODEV;
    // not all may have it
    for (int cpu = 0; error != 0 && cpu < machine_.cpus(); ++cpu)
      error = machine_.TryEvent(attr, 0, cpu);
    check->state = error == 0 ? CheckState::kWorks : CheckState::kOptional;
    check->why = fmt::format("{}: the program's side with -e {}//u", name, name);
    if (error == 0) return;
    Explain(error, 2, check);
    check->why = name + ": " + check->why;
  }

  void CheckLibcSymbols() {
    DoctorCheck check{"libc-symbols", "why pid:N: functions inside the C library"};
    const std::string id = machine_.LibcBuildId();
    const bool there =
        id.size() > 2 && machine_.Exists(fmt::format("/usr/lib/debug/.build-id/{}/{}.debug",
                                                     id.substr(0, 2), id.substr(2)));
    if (!there) {
      check.state = CheckState::kOptional;
      check.why =
          "no debug symbols for libc: its exported functions have names, the others have not";
      check.commands = {"sudo apt install libc6-dbg"};
    }
    Add(std::move(check));
  }

  void CheckPerf() {
    DoctorCheck check{"perf", "perf script -i cpu.perf.data, and perf's other views"};
    if (!machine_.HasProgram("perf")) {
      check.state = CheckState::kOptional;
      check.why = "perf is not installed; hangscope why cpu.perf.data needs none";
      check.commands = {"sudo apt install linux-perf"};
    }
    Add(std::move(check));
  }

  Machine& machine_;
  Capabilities capabilities_;
  bool is_root_ = false;
  std::optional<int64_t> paranoid_;
  std::string tracefs_;
  DoctorReport report_;
};

class PosixMachine final : public Machine {
 public:
  std::optional<std::string> Read(const std::string& path) override {
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return std::nullopt;
    std::string text(64 << 10, '\0');
    const ssize_t got = read(fd, text.data(), text.size());
    close(fd);
    if (got < 0) return std::nullopt;
    text.resize(static_cast<size_t>(got));
    return text;
  }
  bool Exists(const std::string& path) override { return access(path.c_str(), F_OK) == 0; }
  int TryEvent(const perf_event_attr& attr, pid_t pid, int cpu) override {
    const long fd = syscall(SYS_perf_event_open, &attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
    if (fd < 0) return errno;
    close(static_cast<int>(fd));
    return 0;
  }
  bool HasProgram(const std::string& name) override { return CheckProgram(name).ok(); }
  std::string LibcBuildId() override {
    std::string id;
    dl_iterate_phdr(FindLibc, &id);
    return id;
  }
  int cpus() override { return static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)); }

 private:
  static int FindLibc(dl_phdr_info* info, size_t, void* id) {
    if (strstr(info->dlpi_name, "/libc.so.6") == nullptr) return 0;
    for (int i = 0; i < info->dlpi_phnum; ++i) {
      if (info->dlpi_phdr[i].p_type != PT_NOTE) continue;
      ReadNotes(reinterpret_cast<const char*>(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr),
                info->dlpi_phdr[i].p_memsz, static_cast<std::string*>(id));
    }
    return 1;
  }
  static void ReadNotes(const char* at, size_t bytes, std::string* id) {
    ElfW(Nhdr) note{};
    while (bytes >= sizeof note) {
      std::memcpy(&note, at, sizeof note);
      const size_t name = (note.n_namesz + 3u) & ~size_t{3};
      const size_t whole = sizeof note + name + ((note.n_descsz + 3u) & ~size_t{3});
      if (whole > bytes) return;
      if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4) {
        for (size_t i = 0; i < note.n_descsz; ++i)
          *id += fmt::format("{:02x}", static_cast<unsigned char>(at[sizeof note + name + i]));
        return;
      }
      at += whole;
      bytes -= whole;
    }
  }
};

}  // namespace

Machine& RealMachine() {
  static PosixMachine machine;
  return machine;
}

DoctorReport Diagnose(Machine& machine) { return Doctor(machine).Run(); }

}  // namespace hangscope
