// What is missing on machines of all kinds, and the command that grants it.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "tools/diagnose.h"
#include "tools/doctor_text.h"

namespace hangscope {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

// A machine on which an ordinary user may do everything, until a test takes something away.
class FakeMachine final : public Machine {
 public:
  std::map<std::string, std::string> files = {
      {"/proc/sys/kernel/perf_event_paranoid", "-1\n"},
      {"/proc/sys/kernel/perf_event_mlock_kb", "516\n"},
      {"/proc/sys/kernel/kptr_restrict", "0\n"},
      {"/proc/sys/kernel/yama/ptrace_scope", "0\n"},
      {"/sys/kernel/tracing/events/sched/sched_switch/id", "314\n"},
      {"/proc/self/status", "Name:\thangscope\nCapEff:\t0000000000000000\n"},
      {"/proc/self/limits",
       "Max locked memory         16777216             16777216             bytes\n"
       "Max open files            1024                 1048576              files\n"},
      {"/proc/mounts", "tracefs /sys/kernel/tracing tracefs rw 0 0\n"},
  };
  std::set<std::string> there = {"/sys/kernel/tracing/events",
                                 "/sys/bus/event_source/devices/uprobe",
                                 "/usr/lib/debug/.build-id/ab/cdef.debug"};
  std::string build_id = "abcdef";
  bool perf = true;
  int processors = 2;
  int own_error = 0;
  int tracepoint_error = 0;
  int machine_error = 0;
  int tracer_error = 0;

  std::optional<std::string> Read(const std::string& path) override {
    const auto found = files.find(path);
    return found == files.end() ? std::nullopt : std::optional(found->second);
  }
  bool Exists(const std::string& path) override { return there.count(path) != 0; }
  int TryEvent(const perf_event_attr& attr, pid_t pid, int) override {
    if (pid == -1) return machine_error;
    if (attr.type == 8) return tracer_error;
    if (attr.type != PERF_TYPE_TRACEPOINT) return own_error;
    return attr.config == 314 ? tracepoint_error : ENOENT;
  }
  bool HasProgram(const std::string& name) override { return name == "perf" && perf; }
  std::string LibcBuildId() override { return build_id; }
  int cpus() override { return processors; }

  void Paranoid(const std::string& level) { files["/proc/sys/kernel/perf_event_paranoid"] = level; }
  void MayLock(uint64_t bytes) {
    files["/proc/self/limits"] =
        fmt::format("Max locked memory         {0:<20} {0:<20} bytes\n", bytes);
  }
  void Capable(const std::string& mask) { files["/proc/self/status"] = "CapEff:\t" + mask + "\n"; }
};

class DoctorTest : public ::testing::Test {
 protected:
  DoctorCheck Check(const std::string& name) {
    report_ = Diagnose(machine_);
    for (const DoctorCheck& check : report_.checks) {
      if (check.name == name) return check;
    }
    return {name, "no such check", CheckState::kWorks, "", {}};
  }
  // That it is in `state`, says `why`, and offers `command`, unless that is empty.
  void Expect(const std::string& name, CheckState state, const std::string& why,
              const std::string& command) {
    const DoctorCheck check = Check(name);
    EXPECT_EQ(CheckStateName(check.state), CheckStateName(state)) << name << ": " << check.why;
    EXPECT_THAT(check.why, HasSubstr(why)) << name;
    if (!command.empty()) {
      EXPECT_THAT(check.commands, Contains(HasSubstr(command))) << name << ": " << check.why;
    }
    EXPECT_EQ(report_.all_work(), state != CheckState::kMissing) << name;
  }

  FakeMachine machine_;
  DoctorReport report_;
};

TEST_F(DoctorTest, FindsNothingWhereNothingIsMissing) {
  const DoctorReport report = Diagnose(machine_);
  EXPECT_TRUE(report.all_work());
  for (const DoctorCheck& check : report.checks) {
    if (check.name == "hardware-trace") continue;
    const bool wants_a_capability = check.name == "user-probes";  // whatever the level is
    EXPECT_EQ(CheckStateName(check.state),
              CheckStateName(wants_a_capability ? CheckState::kOptional : CheckState::kWorks))
        << check.name << ": " << check.why;
  }
  EXPECT_EQ(DoctorText(report).find("hangscope doctor: all that is needed works here"), 0u)
      << DoctorText(report);
}

TEST_F(DoctorTest, ParanoidLevelThatForbidsOnesOwnProcesses) {
  machine_.Paranoid("3\n");
  machine_.own_error = EACCES;
  Expect("own-processes", CheckState::kMissing,
         "kernel.perf_event_paranoid is 3: this wants 2 at most",
         "sysctl kernel.perf_event_paranoid=2");
}

TEST_F(DoctorTest, ParanoidLevelThatForbidsTracepoints) {
  machine_.Paranoid("2\n");
  machine_.tracepoint_error = EACCES;
  Expect("kernel-events", CheckState::kMissing,
         "kernel.perf_event_paranoid is 2: this wants -1 at most, or CAP_PERFMON",
         "sysctl kernel.perf_event_paranoid=-1");
  Expect("kernel-events", CheckState::kMissing, "", "setcap cap_perfmon+ep");
}

TEST_F(DoctorTest, TracefsThatIsNotMounted) {
  machine_.there.erase("/sys/kernel/tracing/events");
  machine_.files["/proc/mounts"] = "proc /proc proc rw 0 0\n";
  Expect("kernel-events", CheckState::kMissing, "is not mounted",
         "mount -t tracefs nodev /sys/kernel/tracing");
}

TEST_F(DoctorTest, RootIsOfferedNoSudo) {
  machine_.there.erase("/sys/kernel/tracing/events");
  machine_.files["/proc/mounts"] = "proc /proc proc rw 0 0\n";
  machine_.files["/proc/self/status"] =
      "Name:\thangscope\nUid:\t0\t0\t0\t0\nCapEff:\t0000000000000000\n";
  EXPECT_THAT(Check("kernel-events").commands,
              Contains("mount -t tracefs nodev /sys/kernel/tracing"));
  machine_.files["/proc/self/status"] =
      "Name:\thangscope\nUid:\t1000\t1000\t1000\t1000\nCapEff:\t0000000000000000\n";
  EXPECT_THAT(Check("kernel-events").commands,
              Contains("sudo mount -t tracefs nodev /sys/kernel/tracing"));
}

TEST_F(DoctorTest, TracefsInItsOldPlaceIsFound) {
  machine_.there.erase("/sys/kernel/tracing/events");
  machine_.there.insert("/sys/kernel/debug/tracing/events");
  machine_.files["/sys/kernel/debug/tracing/events/sched/sched_switch/id"] = "314\n";
  Expect("kernel-events", CheckState::kWorks, "/sys/kernel/debug/tracing", "");
}

TEST_F(DoctorTest, TracefsThatThisUserMayNotRead) {
  machine_.files.erase("/sys/kernel/tracing/events/sched/sched_switch/id");
  machine_.there.erase("/sys/kernel/tracing/events");
  Expect("kernel-events", CheckState::kMissing, "this user may not read '/sys/kernel/tracing'",
         "mount -o remount,mode=750,gid=$(id -g) /sys/kernel/tracing");
  EXPECT_THAT(Check("kernel-events").why, ::testing::Not(HasSubstr("paranoid")));
  machine_.Paranoid("2\n");
  Expect("kernel-events", CheckState::kMissing, "kernel.perf_event_paranoid is 2",
         "perf_event_paranoid=-1");
}

TEST_F(DoctorTest, ContainerThatForbidsWhatTheLevelAllows) {
  machine_.own_error = EPERM;
  Expect("own-processes", CheckState::kMissing, "seccomp", "--cap-add PERFMON");
}

TEST_F(DoctorTest, KernelWithoutPerfEvents) {
  machine_.files.erase("/proc/sys/kernel/perf_event_paranoid");
  machine_.own_error = ENOSYS;
  Expect("own-processes", CheckState::kMissing, "CONFIG_PERF_EVENTS", "");
}

TEST_F(DoctorTest, RingsThatThisUserMayNotLock) {
  machine_.Paranoid("1\n");
  machine_.MayLock(65536);
  Expect("ring-memory", CheckState::kMissing,
         "4 MiB a CPU, with what is beside it 4616 KiB, is more than this user may lock: "
         "kernel.perf_event_mlock_kb is 516, ulimit -l 64; --cpu-size 256K fits",
         "sysctl kernel.perf_event_mlock_kb=4616");
  machine_.MayLock(0);
  // two pages and the ring of names and mappings count, too
  machine_.files["/proc/sys/kernel/perf_event_mlock_kb"] = "584\n";
  Expect("ring-memory", CheckState::kMissing, "--cpu-size 512K fits", "");
  machine_.files["/proc/sys/kernel/perf_event_mlock_kb"] = "580\n";
  Expect("ring-memory", CheckState::kMissing, "--cpu-size 256K fits", "");
}

TEST_F(DoctorTest, RingsThatFitOnlyWithoutWhatIsBesideThem) {
  machine_.Paranoid("1\n");
  machine_.MayLock(0);
  machine_.files["/proc/sys/kernel/perf_event_mlock_kb"] = "4615\n";
  Expect("ring-memory", CheckState::kMissing, "--cpu-size 2048K fits", "");
  machine_.files["/proc/sys/kernel/perf_event_mlock_kb"] = "4616\n";
  Expect("ring-memory", CheckState::kWorks, "4 MiB a CPU", "");
}

TEST_F(DoctorTest, MemoryIsLockedBeyondTheLimitByWhoMayLockAndNotByWhoMayTrace) {
  machine_.Paranoid("1\n");
  machine_.MayLock(65536);
  machine_.Capable("0000004000000000");  // CAP_PERFMON
  Expect("ring-memory", CheckState::kMissing, "is more than this user may lock", "cap_ipc_lock");
  machine_.Capable("0000000000004000");  // CAP_IPC_LOCK
  Expect("ring-memory", CheckState::kWorks, "4 MiB a CPU", "");
}

TEST_F(DoctorTest, YamaThatForbidsToLookIntoProcesses) {
  machine_.files["/proc/sys/kernel/yama/ptrace_scope"] = "1\n";
  Expect("stacks", CheckState::kMissing, "kernel.yama.ptrace_scope is 1",
         "sysctl kernel.yama.ptrace_scope=0");
  machine_.files["/proc/sys/kernel/yama/ptrace_scope"] = "2\n";
  Expect("stacks", CheckState::kMissing, "kernel.yama.ptrace_scope is 2",
         "setcap cap_sys_ptrace+ep");
  machine_.files["/proc/sys/kernel/yama/ptrace_scope"] = "3\n";
  Expect("stacks", CheckState::kMissing, "until the next boot", "");
  EXPECT_TRUE(Check("stacks").commands.empty());
  machine_.files["/proc/sys/kernel/yama/ptrace_scope"] = "1\n";
  machine_.Capable("0000000000080000");  // CAP_SYS_PTRACE
  Expect("stacks", CheckState::kWorks, "CAP_SYS_PTRACE", "");
}

TEST_F(DoctorTest, WholeMachineIsOptional) {
  machine_.Paranoid("1\n");
  machine_.machine_error = EACCES;
  Expect("whole-machine", CheckState::kOptional, "perf_event_paranoid is 1: this wants 0 at most",
         "perf_event_paranoid=0");
}

TEST_F(DoctorTest, UserProbesWantACapabilityAndAKernelWithThem) {
  Expect("user-probes", CheckState::kOptional, "CAP_PERFMON", "setcap cap_perfmon+ep");
  machine_.Capable("0000000000200000");  // CAP_SYS_ADMIN
  Expect("user-probes", CheckState::kWorks, "", "");
  machine_.there.erase("/sys/bus/event_source/devices/uprobe");
  Expect("user-probes", CheckState::kAbsent, "no uprobes", "");
}

TEST_F(DoctorTest, KernelSymbolsThatAreHidden) {
  machine_.files["/proc/sys/kernel/kptr_restrict"] = "1\n";
  Expect("kernel-symbols", CheckState::kOptional, "kernel.kptr_restrict is 1",
         "sysctl kernel.kptr_restrict=0");
}

TEST_F(DoctorTest, TooFewDescriptorsForTheCpus) {
  machine_.processors = 128;
  Expect("descriptors", CheckState::kMissing, "ulimit -n is 1024, and 128 CPUs may want 2112",
         "ulimit -n 2112");
}

TEST_F(DoctorTest, HardwareTracersAreTried) {
  Expect("hardware-trace", CheckState::kAbsent, "no tracer", "");
  machine_.there.insert("/sys/bus/event_source/devices/cs_etm");
  machine_.files["/sys/bus/event_source/devices/cs_etm/type"] = "8\n";
  Expect("hardware-trace", CheckState::kWorks, "cs_etm: the program's side with -e cs_etm//u", "");
  machine_.tracer_error = EBUSY;
  Expect("hardware-trace", CheckState::kOptional,
         "cs_etm: the kernel refuses it: Device or resource busy", "");
  machine_.tracer_error = EACCES;
  machine_.Paranoid("3\n");
  EXPECT_EQ(Check("hardware-trace").why,
            "cs_etm: kernel.perf_event_paranoid is 3: this wants 2 at most, or CAP_PERFMON");
}

TEST_F(DoctorTest, PackagesThatAreMissing) {
  machine_.perf = false;
  Expect("perf", CheckState::kOptional, "not installed", "apt install linux-perf");
  machine_.build_id = "abcd00";
  Expect("libc-symbols", CheckState::kOptional, "no debug symbols for libc",
         "apt install libc6-dbg");
}

TEST_F(DoctorTest, TextSaysFirstWhatWorksAndThenWhatIsMissing) {
  machine_.Paranoid("2\n");
  machine_.tracepoint_error = EACCES;
  const DoctorReport report = Diagnose(machine_);
  const std::string text = DoctorText(report);
  EXPECT_EQ(text.find("hangscope doctor: "), 0u);
  EXPECT_THAT(text.substr(0, text.find('\n')), HasSubstr("1 that is needed does not"));
  EXPECT_LT(text.find("MISSING     run --cpu: switches"), text.find("works       ")) << text;
  EXPECT_THAT(text, HasSubstr("               $ sudo sysctl kernel.perf_event_paranoid=-1\n"))
      << text;
}

TEST_F(DoctorTest, JsonHasAllOfIt) {
  machine_.Paranoid("2\n");
  machine_.tracepoint_error = EACCES;
  const auto json = nlohmann::json::parse(DoctorJson(Diagnose(machine_)));
  EXPECT_EQ(json["type"], "doctor");
  EXPECT_EQ(json["all_work"], false);
  EXPECT_EQ(json["checks"][1]["name"], "kernel-events");
  EXPECT_EQ(json["checks"][1]["state"], "missing");
  EXPECT_EQ(json["checks"][1]["commands"][0], "sudo sysctl kernel.perf_event_paranoid=-1");
}

// Whatever this machine allows, each check says something of use.
TEST(DoctorLiveTest, RealMachineIsLookedAt) {
  const DoctorReport report = Diagnose(RealMachine());
  EXPECT_GE(report.checks.size(), 10u);
  EXPECT_EQ(RealMachine().LibcBuildId().size(), 40u);
  for (const DoctorCheck& check : report.checks) {
    EXPECT_TRUE(check.state == CheckState::kWorks || !check.why.empty()) << check.name;
  }
}

}  // namespace
}  // namespace hangscope
