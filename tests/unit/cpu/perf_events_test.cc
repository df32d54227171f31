// From the names of events to their attributes, by folders like those of sysfs and tracefs.
#include "cpu/perf_events.h"

#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/hw_breakpoint.h>

#include <cstddef>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "code/elf_functions.h"
#include "cpu/perf_permission.h"
#include "cpu/perf_pmu.h"
#include "fakes/fake_file_system.h"

namespace hangscope {

extern "C" __attribute__((noinline)) int perf_events_test_function(int value) { return value * 3; }
namespace perf_events_test {
__attribute__((noinline)) int Twice(int value) { return value * 2; }
__attribute__((noinline)) int Twice(char value) { return value * 4; }
}  // namespace perf_events_test

namespace {

class PerfEventsTest : public ::testing::Test {
 protected:
  PerfEventsTest() {
    Put("/tracefs/events/sched/sched_switch/id", "314\n");
    Put("/tracefs/events/sched/sched_switch/format", "name: sched_switch\nID: 314\n");
    Put("/tracefs/events/raw_syscalls/sys_enter/id", "401\n");
    Put("/tracefs/events/raw_syscalls/sys_enter/format", "name: sys_enter\n");
    Put("/tracefs/events/raw_syscalls/sys_exit/id", "400\n");
    Put("/tracefs/events/raw_syscalls/sys_exit/format", "name: sys_exit\n");
    Put("/tracefs/events/raw_syscalls/enable", "0\n");
    Put("/pmus/uprobe/type", "8\n");
    Put("/pmus/uprobe/format/retprobe", "config:0\n");
    Put("/pmus/cs_etm/type", "11\n");
    Put("/pmus/cs_etm/format/cycacc", "config:12\n");
    Put("/pmus/cs_etm/format/contextid", "config:14\n");
    Put("/pmus/cs_etm/format/timestamp", "config:28\n");
    Put("/pmus/cs_etm/format/sinkid", "config2:0-31\n");
    Put("/pmus/cs_etm/sinks/tmc_etr0", "0x1a2b3c4d\n");
    Put("/pmus/cs_etm/sinks/tmc_etf0", "0x5\n");
    Put("/pmus/intel_pt/type", "12\n");
    Put("/pmus/intel_pt/format/pt", "config:0\n");
    Put("/pmus/intel_pt/format/tsc", "config:10\n");
    Put("/pmus/intel_pt/format/branch", "config:13\n");
    Put("/pmus/intel_pt/format/psb_period", "config:24-27\n");
    for (const char* spe : {"arm_spe_0", "arm_spe_1"}) {
      Put("/pmus/" + std::string(spe) + "/type", spe[8] == '0' ? "13\n" : "14\n");
      Put("/pmus/" + std::string(spe) + "/format/ts_enable", "config:0\n");
      Put("/pmus/" + std::string(spe) + "/caps/min_interval", "256\n");
    }
    Put("/pmus/cpu/type", "4\n");
    Put("/pmus/cpu/format/event", "config:0-7,32-35\n");
    Put("/pmus/cpu/format/umask", "config:8-15\n");
    Put("/pmus/cpu/events/stalls", "event=0x1c2,umask=0x03\n");
    Put("/pmus/cpu/events/loop", "loop\n");
    Put("/pmus/cpu/format/../x", "config:0\n");  // of nobody's business
  }

  void Put(const std::string& path, const std::string& text) {
    for (std::string folder = FolderOf(path); folder.size() > 1; folder = FolderOf(folder))
      (void)files_.MakeFolders(folder);
    EXPECT_TRUE(WriteWholeFile(files_, path, text).ok()) << path;
  }
  Result<std::vector<PerfEventSpec>> Find(const std::string& name) {
    PerfSources sources;
    sources.pmus = "/pmus";
    sources.tracefs = {"/not/mounted", "/tracefs"};
    return PerfEventFinder(files_, sources).Find(name);
  }
  PerfEventSpec FindOne(const std::string& name) {
    auto specs = Find(name);
    EXPECT_TRUE(specs.ok()) << specs.status().message();
    if (!specs.ok()) return {};
    EXPECT_EQ(specs->size(), 1u);
    return specs->front();
  }
  std::string Why(const std::string& name) {
    auto specs = Find(name);
    EXPECT_FALSE(specs.ok()) << name;
    return specs.status().message();
  }

  FakeFileSystem files_;
};

TEST_F(PerfEventsTest, KnowsWhatTheKernelCounts) {
  const PerfEventSpec faults = FindOne("page-faults");
  EXPECT_EQ(faults.event.attr.type, uint32_t{PERF_TYPE_SOFTWARE});
  EXPECT_EQ(faults.event.attr.config, uint64_t{PERF_COUNT_SW_PAGE_FAULTS});
  EXPECT_EQ(faults.event.attr.sample_period, 1u);
  EXPECT_EQ(faults.event.attr.freq, 0u);
  EXPECT_EQ(FindOne("cs").event.attr.config, uint64_t{PERF_COUNT_SW_CONTEXT_SWITCHES});
  EXPECT_EQ(FindOne("migrations").event.attr.config, uint64_t{PERF_COUNT_SW_CPU_MIGRATIONS});
  // What comes all the time is sampled.
  const PerfEventSpec clock = FindOne("cpu-clock");
  EXPECT_EQ(clock.event.attr.freq, 1u);
  EXPECT_EQ(clock.event.attr.sample_freq, 1000u);
  const PerfEventSpec user = FindOne("page-faults:u");
  EXPECT_EQ(user.event.name, "page-faults:u");
  EXPECT_EQ(user.event.attr.exclude_kernel, 1u);
  EXPECT_EQ(user.event.attr.exclude_user, 0u);
  EXPECT_EQ(FindOne("cs:k").event.attr.exclude_user, 1u);
  EXPECT_EQ(FindOne("cs:uk").event.attr.exclude_kernel, 0u);
  EXPECT_EQ(Why("cs:z"),
            "'cs:z': 'z' is not understood; u and k choose the side, program or kernel");
}

TEST_F(PerfEventsTest, FindsTracepointsWhereTheyAreMounted) {
  const PerfEventSpec spec = FindOne("sched:sched_switch");
  EXPECT_EQ(spec.event.name, "sched:sched_switch");
  EXPECT_EQ(spec.event.system, "sched");
  EXPECT_EQ(spec.event.attr.type, uint32_t{PERF_TYPE_TRACEPOINT});
  EXPECT_EQ(spec.event.attr.config, 314u);
  EXPECT_EQ(spec.event.attr.sample_type, uint64_t{PERF_SAMPLE_RAW});
  EXPECT_EQ(spec.event.format, "name: sched_switch\nID: 314\n");

  auto all = Find("raw_syscalls:*");
  ASSERT_TRUE(all.ok());
  ASSERT_EQ(all->size(), 2u) << "'enable' is no event";
  EXPECT_EQ((*all)[0].event.name, "raw_syscalls:sys_enter");
  EXPECT_EQ((*all)[1].event.attr.config, 400u);
}

TEST_F(PerfEventsTest, SaysWhatWasMeantAndWhatToDo) {
  EXPECT_EQ(Why("sched:sched_swich"),
            "this kernel has no event 'sched:sched_swich', did you mean 'sched:sched_switch'?");
  EXPECT_EQ(Why("page-fault"),
            "this kernel has no event 'page-fault', did you mean 'page-faults'?");
  EXPECT_EQ(Why("nothing_like_it"),
            "this kernel has no event 'nothing_like_it'; 'perf list' names those that it has");
  EXPECT_EQ(Why("../secret:x"),
            "this kernel has no event '../secret:x'; 'perf list' names those that it has");
  PerfSources nowhere;
  nowhere.tracefs = {"/not/mounted"};
  auto specs = PerfEventFinder(files_, nowhere).Find("sched:sched_switch");
  ASSERT_FALSE(specs.ok());
  EXPECT_EQ(specs.status().message(),
            "no tracepoints: tracefs is not mounted or may not be read; as root, 'mount -t tracefs "
            "nodev /not/mounted' "
            "mounts it and 'chmod -R a+rX /not/mounted' lets others read it");
}

TEST_F(PerfEventsTest, SetsBreakpoints) {
  const perf_event_attr attr = FindOne("mem:0x7ffe1000/8:w").event.attr;
  EXPECT_EQ(attr.type, uint32_t{PERF_TYPE_BREAKPOINT});
  EXPECT_EQ(attr.bp_addr, 0x7ffe1000u);
  EXPECT_EQ(attr.bp_len, 8u);
  EXPECT_EQ(attr.bp_type, uint32_t{HW_BREAKPOINT_W});
  EXPECT_EQ(FindOne("mem:4096").event.attr.bp_type, uint32_t{HW_BREAKPOINT_RW});
  EXPECT_EQ(FindOne("mem:4096").event.attr.bp_len, 4u);
  EXPECT_EQ(FindOne("mem:0x401000:x").event.attr.bp_len, sizeof(long));
  for (const char* wrong : {"mem:", "mem:x", "mem:0x10/3", "mem:0x10/8:q", "mem:0x10/8rw",
                            "mem:99999999999999999999"}) {
    EXPECT_TRUE(
        Why(wrong).ends_with("is no breakpoint: mem:ADDRESS/LENGTH:ACCESS, a length of 1, 2, 4 or "
                             "8 and of r, w and x what counts"))
        << wrong;
  }
}

TEST_F(PerfEventsTest, FindsFunctionsOfPrograms) {
  EXPECT_EQ(
      perf_events_test_function(2) + perf_events_test::Twice(3) + perf_events_test::Twice('\1'),
      16);
  const std::string self = "/proc/self/exe";
  const PerfEventSpec entry = FindOne("perf_events_test_function@" + self);
  EXPECT_EQ(entry.event.attr.type, 8u);
  EXPECT_EQ(entry.event.attr.config, 0u);
  EXPECT_EQ(entry.path, self);
  EXPECT_NE(entry.event.format.find("__probe_ip"), std::string::npos);
  // The file has the function's first bytes there.
  std::ifstream file(self, std::ios::binary);
  file.seekg(static_cast<std::streamoff>(entry.event.attr.config2));
  char code[8] = {};
  file.read(code, sizeof(code));
  EXPECT_EQ(std::string(code, sizeof(code)),
            std::string(reinterpret_cast<const char*>(&perf_events_test_function), sizeof(code)));

  const PerfEventSpec end = FindOne("probe:perf_events_test_function@" + self + ":return");
  EXPECT_EQ(end.event.attr.config, 1u);
  EXPECT_EQ(end.event.attr.config2, entry.event.attr.config2);
  EXPECT_NE(end.event.format.find("__probe_ret_ip"), std::string::npos);
  EXPECT_EQ(FindOne("perf_events_test_function+0x4@" + self).event.attr.config2,
            entry.event.attr.config2 + 4);

  // As C++ calls them; without parameters, all of that name.
  const uint64_t of_int =
      FindOne("hangscope::perf_events_test::Twice(int)@" + self).event.attr.config2;
  EXPECT_EQ(FindOne("_ZN9hangscope16perf_events_test5TwiceEi@" + self).event.attr.config2, of_int);
  auto both = Find("hangscope::perf_events_test::Twice@" + self);
  ASSERT_TRUE(both.ok());
  EXPECT_EQ(both->size(), 2u);

  EXPECT_EQ(Why("perf_events_test_funktion@" + self),
            "'/proc/self/exe' has no function 'perf_events_test_funktion', did you mean "
            "'perf_events_test_function'?");
  EXPECT_EQ(Why("f@/does/not/exist"), "cannot open '/does/not/exist': No such file or directory");
  EXPECT_EQ(Why("f@/proc/self/status"), "'/proc/self/status' is no ELF file: it has no functions");
  EXPECT_TRUE(Why("f@").starts_with("'f@' is no function of a program"));
}

// A program whose code lies elsewhere in the file than in memory.
TEST_F(PerfEventsTest, CountsFromTheBeginOfTheFile) {
  struct {
    Elf64_Ehdr header{};
    Elf64_Phdr segments[2]{};
    Elf64_Shdr sections[3]{};
    Elf64_Sym symbols[3]{};
    char names[16] = "\0inside\0outside";
  } elf;
  std::memcpy(elf.header.e_ident, ELFMAG, SELFMAG);
  elf.header.e_ident[EI_CLASS] = ELFCLASS64;
  elf.header.e_ident[EI_DATA] = ELFDATA2LSB;
  elf.header.e_ident[EI_VERSION] = EV_CURRENT;
  elf.header.e_type = ET_EXEC;
  elf.header.e_machine = EM_X86_64;
  elf.header.e_version = EV_CURRENT;
  elf.header.e_ehsize = sizeof(Elf64_Ehdr);
  elf.header.e_phoff = offsetof(decltype(elf), segments);
  elf.header.e_phentsize = sizeof(Elf64_Phdr);
  elf.header.e_phnum = 2;
  elf.header.e_shoff = offsetof(decltype(elf), sections);
  elf.header.e_shentsize = sizeof(Elf64_Shdr);
  elf.header.e_shnum = 3;
  elf.segments[0] = {.p_type = PT_NOTE,
                     .p_flags = 0,
                     .p_offset = 0,
                     .p_vaddr = 0x500000,
                     .p_paddr = 0,
                     .p_filesz = 0x1000,
                     .p_memsz = 0x1000,
                     .p_align = 1};
  elf.segments[1] = {.p_type = PT_LOAD,
                     .p_flags = PF_X,
                     .p_offset = 0x100,
                     .p_vaddr = 0x500000,
                     .p_paddr = 0,
                     .p_filesz = 0x80,
                     .p_memsz = 0x80,
                     .p_align = 1};
  elf.sections[1].sh_type = SHT_SYMTAB;
  elf.sections[1].sh_offset = offsetof(decltype(elf), symbols);
  elf.sections[1].sh_size = sizeof(elf.symbols);
  elf.sections[1].sh_entsize = sizeof(Elf64_Sym);
  elf.sections[1].sh_link = 2;
  elf.sections[2].sh_type = SHT_STRTAB;
  elf.sections[2].sh_offset = offsetof(decltype(elf), names);
  elf.sections[2].sh_size = sizeof(elf.names);
  elf.symbols[1] = {.st_name = 1,
                    .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
                    .st_other = 0,
                    .st_shndx = 1,
                    .st_value = 0x500020,
                    .st_size = 4};
  elf.symbols[2] = {.st_name = 8,
                    .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
                    .st_other = 0,
                    .st_shndx = 1,
                    .st_value = 0x500080,
                    .st_size = 4};
  const std::string path = ::testing::TempDir() + "perf_events_test.elf";
  std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(&elf), sizeof(elf));
  auto inside = FunctionOffsets(path, "inside");
  ASSERT_TRUE(inside.ok()) << inside.status().message();
  EXPECT_EQ(*inside, std::vector<uint64_t>{0x120});
  EXPECT_FALSE(FunctionOffsets(path, "outside").ok()) << "no byte of the file holds it";
  // Cut anywhere, it says no more than it can.
  for (size_t bytes = 0; bytes < sizeof(elf); bytes += 7) {
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(&elf), static_cast<std::streamsize>(bytes));
    EXPECT_FALSE(FunctionOffsets(path, "inside").ok()) << bytes;
  }
  std::remove(path.c_str());
}

TEST_F(PerfEventsTest, ChoosesSinksOfCoreSight) {
  const PerfEventSpec spec = FindOne("cs_etm/@tmc_etr0,cycacc/u");
  EXPECT_TRUE(spec.tracer);
  EXPECT_EQ(spec.event.name, "cs_etm/@tmc_etr0,cycacc/u");
  EXPECT_EQ(spec.event.attr.type, 11u);
  EXPECT_EQ(spec.event.attr.config, uint64_t{1} << 28 | 1u << 14 | 1u << 12);
  EXPECT_EQ(spec.event.attr.config2, 0x1a2b3c4du);
  EXPECT_EQ(spec.event.attr.exclude_kernel, 1u);
  EXPECT_EQ(FindOne("cs_etm//").event.attr.config2, 0u) << "the driver chooses";
  EXPECT_EQ(Why("cs_etm/@tmc_etr9/"),
            "'cs_etm' has no sink 'tmc_etr9': its sinks are tmc_etf0, tmc_etr0");
  EXPECT_TRUE(files_.Remove("/pmus/cs_etm/format/sinkid").ok());
  EXPECT_EQ(Why("cs_etm/@tmc_etr0/"),
            "the kernel does not say how 'cs_etm' is told its sink: Linux 5.2 or newer does");
}

TEST_F(PerfEventsTest, SwitchesTracersOnAsTheyAreDecoded) {
  EXPECT_EQ(FindOne("intel_pt//").event.attr.config, 1u << 13 | 1u << 10 | 1u);
  EXPECT_EQ(FindOne("intel_pt/tsc=0,psb_period=3/").event.attr.config, 3u << 24 | 1u << 13 | 1u);
  auto spe = Find("arm_spe//");
  ASSERT_TRUE(spe.ok());
  ASSERT_EQ(spe->size(), 2u);
  EXPECT_EQ((*spe)[0].event.name, "arm_spe_0//");
  EXPECT_EQ((*spe)[1].event.attr.type, 14u);
  EXPECT_EQ((*spe)[0].event.attr.sample_period, 256u);
  EXPECT_EQ((*spe)[0].event.attr.config, 1u);
}

TEST_F(PerfEventsTest, UnderstandsTermsOfPmus) {
  const PerfEventSpec spec = FindOne("cpu/event=0x1c2,umask=0x3,period=1000/k");
  EXPECT_EQ(spec.event.attr.config, uint64_t{1} << 32 | 0x3c2);
  EXPECT_EQ(spec.event.attr.sample_period, 1000u);
  EXPECT_EQ(spec.event.attr.exclude_user, 1u);
  EXPECT_FALSE(spec.tracer);
  EXPECT_EQ(FindOne("cpu/stalls/").event.attr.config, uint64_t{1} << 32 | 0x3c2);
  EXPECT_EQ(FindOne("cpu/config=0x11,config1=0x22/").event.attr.config1, 0x22u);
  EXPECT_EQ(Why("cpu/umask=0x100/"), "256 is too large for the bits 'config:8-15'");
  EXPECT_EQ(Why("cpu/umask=many/"), "'cpu/umask=many/': the value is no number");
  EXPECT_EQ(Why("cpu/whatever/"), "'cpu' knows no 'whatever': its terms are .., event, umask");
  for (const char* term :
       {"aux-action=start-paused", "aux-action=pause", "aux-output", "aux-sample-size=4096"})
    EXPECT_THAT(Why(std::string("cpu/") + term + "/"),
                testing::MatchesRegex("'cpu/aux-.*/': hangscope traces all the time, and neither "
                                      "pauses a trace at another event nor samples it; perf "
                                      "record does"));
  EXPECT_EQ(Why("cpu/loop/"), "'cpu' knows no 'loop': its terms are .., event, umask");
  EXPECT_EQ(Why("cpu/../x=1/"), "'cpu' knows no '../x': its terms are .., event, umask");
  EXPECT_EQ(Why("arm_etm//"),
            "this machine has no 'arm_etm': '/pmus' has arm_spe_0, arm_spe_1, cpu, cs_etm, "
            "intel_pt, uprobe");
}

TEST(PmuBits, AreSetWhereTheFormatSays) {
  perf_event_attr attr{};
  attr.config = ~uint64_t{0};
  EXPECT_TRUE(SetPmuBits("config:4-7,60", 0x10, &attr).ok());
  EXPECT_EQ(attr.config, ~uint64_t{0xf0});
  EXPECT_TRUE(SetPmuBits("config1:0-63", ~uint64_t{0}, &attr).ok());
  EXPECT_EQ(attr.config1, ~uint64_t{0});
  for (const char* wrong :
       {"", "config", "config:", "other:0", "config:7-4", "config:64", "config:x", "config:0-"}) {
    perf_event_attr same{};
    EXPECT_FALSE(SetPmuBits(wrong, 1, &same).ok()) << wrong;
    EXPECT_EQ(same.config, 0u) << wrong;
  }
}

TEST(Refusals, AreSaidOncePerReason) {
  Refusals refusals;
  refusals.Add("a", "one reason");
  refusals.Add("b", "another");
  refusals.Add("c", "one reason");
  EXPECT_EQ(refusals.Sentences("is not recorded", "are not recorded"),
            (std::vector<std::string>{"'b' is not recorded: another",
                                      "'a', 'c' are not recorded: one reason"}));
  PerfPermission nobody;
  EXPECT_FALSE(nobody.kernel());
  EXPECT_EQ(WhyRefused({}, EACCES, nobody),
            "kernel.perf_event_paranoid is 2 and CAP_PERFMON is missing; as root, 'sysctl "
            "kernel.perf_event_paranoid=-1' or "
            "'setcap cap_perfmon,cap_ipc_lock+ep' on the hangscope binary grants it");
  PerfPermission some{1, false, false};
  EXPECT_TRUE(some.kernel());
  EXPECT_FALSE(some.tracepoints());
  PerfPermission contained{3, false, true};
  EXPECT_NE(WhyRefused({}, EPERM, contained).find("CAP_PERFMON is missing, though this is root"),
            std::string::npos);
  EXPECT_EQ(WhyRefused({}, EPERM, contained).find("as root"), std::string::npos);
  PerfPermission root{3, true, true};
  EXPECT_TRUE(root.tracepoints());
  EXPECT_NE(WhyRefused({}, EPERM, root).find("security module"), std::string::npos);
}

}  // namespace
}  // namespace hangscope
