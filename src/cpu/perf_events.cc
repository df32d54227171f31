#include "cpu/perf_events.h"

#include <fnmatch.h>
#include <linux/hw_breakpoint.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <string_view>

#include "base/near_name.h"
#include "code/elf_functions.h"
#include "cpu/perf_pmu.h"

namespace hangscope {
namespace {

constexpr uint64_t kPlace = PERF_SAMPLE_IP | PERF_SAMPLE_ADDR;
constexpr uint64_t kSamplesPerSecond = 1000;  // of what comes too often for a record each
constexpr size_t kMostPlaces = 16;            // that one function name may stand for

struct CountedName {
  std::string_view name;
  uint32_t type;
  uint64_t config;
  bool each;  // a record each; else samples
};
constexpr CountedName kCounted[] = {
    {"page-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, true},
    {"faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, true},
    {"minor-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MIN, true},
    {"major-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MAJ, true},
    {"context-switches", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES, true},
    {"cs", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES, true},
    {"cpu-migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS, true},
    {"migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS, true},
    {"alignment-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_ALIGNMENT_FAULTS, true},
    {"emulation-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_EMULATION_FAULTS, true},
    {"cpu-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, false},
    {"task-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, false},
    {"cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, false},
    {"cpu-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, false},
    {"instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, false},
    {"cache-references", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES, false},
    {"cache-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES, false},
    {"branches", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS, false},
    {"branch-instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS, false},
    {"branch-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES, false},
    {"bus-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BUS_CYCLES, false},
};

std::optional<PerfEventSpec> Counted(const std::string& name) {
  const auto* counted = std::find_if(std::begin(kCounted), std::end(kCounted),
                                     [&](const CountedName& each) { return each.name == name; });
  if (counted == std::end(kCounted)) return std::nullopt;
  PerfEventSpec spec;
  spec.event.name = name;
  spec.event.attr.type = counted->type;
  spec.event.attr.config = counted->config;
  spec.event.attr.sample_type = counted->each ? kPlace : uint64_t{PERF_SAMPLE_IP};
  spec.event.attr.freq = !counted->each;
  if (counted->each)
    spec.event.attr.sample_period = 1;
  else
    spec.event.attr.sample_freq = kSamplesPerSecond;
  return spec;
}

// "mem:0x1000/8:rw".
std::optional<PerfEventSpec> Breakpoint(const std::string& name) {
  PerfEventSpec spec;
  perf_event_attr& attr = spec.event.attr;
  spec.event.name = name;
  char* end = nullptr;
  errno = 0;
  attr.bp_addr = std::strtoull(name.c_str() + 4, &end, 0);
  if (errno != 0 || end == name.c_str() + 4) return std::nullopt;
  uint64_t length = 4;
  if (*end == '/') length = std::strtoull(end + 1, &end, 0);
  const std::string access = *end == ':' ? end + 1 : "";
  if ((*end != '\0' && *end != ':') || access.find_first_not_of("rwx") != std::string::npos)
    return std::nullopt;
  if (length != 1 && length != 2 && length != 4 && length != 8) return std::nullopt;
  for (const char way : access)
    attr.bp_type |= way == 'r' ? HW_BREAKPOINT_R : way == 'w' ? HW_BREAKPOINT_W : HW_BREAKPOINT_X;
  if (access.empty()) attr.bp_type = HW_BREAKPOINT_RW;
  // the kernel takes no other
  attr.bp_len = (attr.bp_type & HW_BREAKPOINT_X) != 0 ? sizeof(long) : length;
  attr.type = PERF_TYPE_BREAKPOINT;
  attr.sample_period = 1;
  attr.sample_type = kPlace;
  return spec;
}

// What is in the raw bytes of a uprobe that perf_event_open made; tracefs has no file for it.
std::string UprobeFormat(const std::string& name, bool on_return) {
  std::string text = "name: " + name +
                     "\nID: 0\nformat:\n"
                     "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
                     "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
                     "\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
                     "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n";
  if (!on_return)
    return text +
           "\tfield:unsigned long __probe_ip;\toffset:8;\tsize:8;\tsigned:0;\n\nprint fmt: "
           "\"(%lx)\", REC->__probe_ip\n";
  return text +
         "\tfield:unsigned long __probe_func;\toffset:8;\tsize:8;\tsigned:0;\n"
         "\tfield:unsigned long __probe_ret_ip;\toffset:16;\tsize:8;\tsigned:0;\n\n"
         "print fmt: \"(%lx <- %lx)\", REC->__probe_func, REC->__probe_ret_ip\n";
}

struct UprobeName {
  std::string function, binary;
  uint64_t offset = 0;
  bool on_return = false;
};

// "probe:send+0x1c@/usr/bin/server:return".
std::optional<UprobeName> SplitUprobe(std::string name) {
  if (name.starts_with("probe:")) name.erase(0, 6);
  UprobeName uprobe;
  constexpr std::string_view kReturn = ":return";
  if (name.ends_with(kReturn)) {
    uprobe.on_return = true;
    name.resize(name.size() - kReturn.size());
  }
  const size_t at = name.rfind('@');
  if (at == std::string::npos || at == 0 || at + 1 == name.size()) return std::nullopt;
  uprobe.function = name.substr(0, at);
  uprobe.binary = name.substr(at + 1);
  if (const size_t plus = uprobe.function.rfind("+0x"); plus != std::string::npos) {
    char* end = nullptr;
    uprobe.offset = std::strtoull(uprobe.function.c_str() + plus, &end, 16);
    if (*end != '\0') return std::nullopt;
    uprobe.function.resize(plus);
  }
  return uprobe;
}

}  // namespace

PerfEventFinder::PerfEventFinder(FileSystem& files, PerfSources sources)
    : files_(files), sources_(std::move(sources)) {}

PerfEventFinder::Specs PerfEventFinder::Find(const std::string& name) const {
  if (name.starts_with("mem:")) {
    if (auto spec = Breakpoint(name)) return std::vector<PerfEventSpec>{std::move(*spec)};
    return Status::Usage("'" + name +
                         "' is no breakpoint: mem:ADDRESS/LENGTH:ACCESS, a length of 1, 2, 4 or 8 "
                         "and of r, w and x what counts");
  }
  if (IsPmuEvent(name)) return FindPmuEvents(files_, sources_.pmus, name);
  if (name.find('@') != std::string::npos) return Uprobes(name);
  const size_t colon = name.find(':');
  if (auto spec = Counted(name.substr(0, colon))) {
    const std::string modifiers = colon == std::string::npos ? "" : name.substr(colon + 1);
    if (Status status = SetModifiers(name, modifiers, &spec->event.attr); !status.ok())
      return status;
    spec->event.name = name;
    return std::vector<PerfEventSpec>{std::move(*spec)};
  }
  if (colon == std::string::npos || name.find('/') != std::string::npos || name.starts_with("."))
    return NoSuch(name);
  return Tracepoints(name.substr(0, colon), name.substr(colon + 1));
}

Status PerfEventFinder::NoSuch(const std::string& name) const {
  std::vector<std::string> names;
  for (const CountedName& counted : kCounted) names.emplace_back(counted.name);
  if (auto events = EventsFolder(); events.ok()) {
    for (const std::string& system : files_.List(*events)) {
      for (const std::string& event : files_.List(*events + "/" + system))
        names.push_back(system + ":" + event);
    }
  }
  const std::vector<std::string> near = NearNames(name, std::move(names), 3, 1);
  return Status::NotFound("this kernel has no event '" + name + "'" +
                          (near.empty() ? "; 'perf list' names those that it has"
                                        : ", did you mean '" + near[0] + "'?"));
}

Result<std::string> PerfEventFinder::EventsFolder() const {
  for (const std::string& folder : sources_.tracefs) {
    if (files_.IsFolder(folder + "/events/sched")) return folder + "/events";
  }
  return Status::NotFound(
      "no tracepoints: tracefs is not mounted or may not be read; as root, 'mount -t tracefs "
      "nodev " +
      sources_.tracefs.front() + "' mounts it and 'chmod -R a+rX " + sources_.tracefs.front() +
      "' lets others read it");
}

PerfEventFinder::Specs PerfEventFinder::Tracepoints(const std::string& system,
                                                    const std::string& pattern) const {
  auto events = EventsFolder();
  if (!events.ok()) return events.status();
  std::vector<std::string> names = files_.List(*events + "/" + system);
  std::erase_if(names, [&](const std::string& name) {
    return fnmatch(pattern.c_str(), name.c_str(), 0) != 0 ||
           !files_.IsFolder(*events + "/" + system + "/" + name);
  });
  std::sort(names.begin(), names.end());
  if (names.empty()) return NoSuch(system + ":" + pattern);
  std::vector<PerfEventSpec> specs;
  for (const std::string& name : names) {
    auto spec = Tracepoint(*events, system, name);
    if (!spec.ok()) return spec.status();
    specs.push_back(std::move(*spec));
  }
  return specs;
}

Result<PerfEventSpec> PerfEventFinder::Tracepoint(const std::string& folder,
                                                  const std::string& system,
                                                  const std::string& name) const {
  const std::string path = folder + "/" + system + "/" + name;
  auto id = ReadWholeFile(files_, path + "/id");
  if (!id.ok()) return id.status();
  auto format = ReadWholeFile(files_, path + "/format");
  if (!format.ok()) return format.status();
  PerfEventSpec spec;
  spec.event.name = system + ":" + name;
  spec.event.attr.type = PERF_TYPE_TRACEPOINT;
  spec.event.attr.config = std::strtoull(id->c_str(), nullptr, 10);
  spec.event.attr.sample_period = 1;
  spec.event.attr.sample_type = PERF_SAMPLE_RAW;
  spec.event.format = std::move(*format);
  spec.event.system = system;
  return spec;
}

PerfEventFinder::Specs PerfEventFinder::Uprobes(const std::string& name) const {
  const std::optional<UprobeName> uprobe = SplitUprobe(name);
  if (!uprobe)
    return Status::Usage(
        "'" + name +
        "' is no function of a program: FUNCTION@BINARY, with ':return' behind it for its end");
  auto type = ReadWholeFile(files_, sources_.pmus + "/uprobe/type");
  if (!type.ok())
    return Status::NotFound("this kernel has no uprobes: '" + sources_.pmus +
                            "/uprobe' does not exist; CONFIG_UPROBE_EVENTS builds them in");
  auto offsets = FunctionOffsets(uprobe->binary, uprobe->function);
  if (!offsets.ok()) return offsets.status();
  if (offsets->size() > kMostPlaces)
    return Status::Usage("'" + uprobe->function + "' stands for " +
                         std::to_string(offsets->size()) + " functions of '" + uprobe->binary +
                         "'; give one of 'nm' as it is");
  PerfEventSpec spec;
  spec.event.name = name;
  spec.event.attr.type = static_cast<uint32_t>(std::strtoul(type->c_str(), nullptr, 10));
  spec.event.attr.sample_period = 1;
  spec.event.attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_RAW;
  spec.event.format = UprobeFormat(uprobe->function, uprobe->on_return);
  spec.path = uprobe->binary;
  if (uprobe->on_return) {
    auto retprobe = ReadWholeFile(files_, sources_.pmus + "/uprobe/format/retprobe");
    if (!retprobe.ok()) return retprobe.status();
    if (Status status = SetPmuBits(retprobe->substr(0, retprobe->find('\n')), 1, &spec.event.attr);
        !status.ok())
      return status;
  }
  std::vector<PerfEventSpec> specs;
  for (const uint64_t offset : *offsets) {
    spec.event.attr.config2 = offset + uprobe->offset;
    specs.push_back(spec);
  }
  return specs;
}

}  // namespace hangscope
