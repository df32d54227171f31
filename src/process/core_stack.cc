#include "process/core_stack.h"

#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string_view>

#include "base/file_system.h"
#include "base/side_process.h"
#include "code/source_frames.h"
#include "code/symbol_name.h"

namespace hangscope {
namespace {

constexpr size_t kMostCrashFrames = 24;

// Where the kernel writes it; nothing: to a program, or a name that is made of more than the
// process's number.
std::optional<std::string> CorePath(std::string_view pattern, int pid) {
  if (pattern.empty() || pattern.starts_with('|')) return std::nullopt;
  std::string path;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '%') {
      path += pattern[i];
    } else if (++i < pattern.size() && (pattern[i] == 'p' || pattern[i] == '%')) {
      path += pattern[i] == 'p' ? std::to_string(pid) : "%";
    } else {
      return std::nullopt;
    }
  }
  return path;
}

bool IsSince(int fd, TimeNs start) {
  struct stat about;
  if (fstat(fd, &about) != 0 || !S_ISREG(about.st_mode)) return false;
  // The kernel stamps files with the latest tick, which is a little earlier.
  constexpr TimeNs kTick = 20 * kMillisecond;
  return about.st_mtim.tv_sec * kSecond + about.st_mtim.tv_nsec >= start - kTick;
}

struct CrashWalk {
  Dwfl* dwfl = nullptr;
  int thread = 0;
  std::vector<std::string> frames;
  std::map<Dwfl_Module*, SourceFrames> sources;
};

// "function  file.c:12", of what was compiled into one another the innermost first; of a library of
// the system, which takes long to read, without a line.
void AddFrames(Dwarf_Addr pc, CrashWalk* walk) {
  Dwfl_Module* const module = dwfl_addrmodule(walk->dwfl, pc);
  if (module == nullptr) {
    walk->frames.push_back(fmt::format("{:#x}", pc));
    return;
  }
  const char* const symbol = dwfl_module_addrname(module, pc);
  const std::string function = symbol != nullptr ? ReadableName(symbol) : fmt::format("{:#x}", pc);
  const char* const name =
      dwfl_module_info(module, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr);
  const std::string path = name != nullptr ? name : "";
  const bool of_system = path.starts_with("/lib") || path.starts_with("/usr/lib");
  std::vector<SourceFrame> sources;
  if (!of_system) sources = walk->sources.try_emplace(module, module).first->second.At(pc);
  if (sources.empty()) sources.emplace_back();
  for (const SourceFrame& source : sources) {
    const std::string& own = source.is_inlined ? source.function : function;
    const std::string place =
        source.line != 0 ? fmt::format("{}:{}", NameOf(source.path), source.line) : NameOf(path);
    walk->frames.push_back(place.empty() ? own : own + "  " + place);
  }
}

int NoteFrame(Dwfl_Frame* frame, void* of) {
  CrashWalk& walk = *static_cast<CrashWalk*>(of);
  Dwarf_Addr pc = 0;
  bool is_activation = false;
  if (!dwfl_frame_pc(frame, &pc, &is_activation)) return DWARF_CB_ABORT;
  AddFrames(is_activation || pc == 0 ? pc : pc - 1, &walk);
  return walk.frames.size() < kMostCrashFrames ? DWARF_CB_OK : DWARF_CB_ABORT;
}

// The kernel writes the one that got the signal first.
int NoteFirstThread(Dwfl_Thread* thread, void* of) {
  CrashWalk& walk = *static_cast<CrashWalk*>(of);
  walk.thread = dwfl_thread_tid(thread);
  (void)dwfl_thread_getframes(thread, NoteFrame, of);
  return DWARF_CB_ABORT;
}

// In a process of its own: the thread's number, then a line a frame; empty: it is none of `pid`.
std::string WalkCore(int fd, int pid) {
  unsetenv("DEBUGINFOD_URLS");  // nothing is fetched
  char* no_path = nullptr;
  const Dwfl_Callbacks callbacks = {.find_elf = dwfl_build_id_find_elf,
                                    .find_debuginfo = dwfl_standard_find_debuginfo,
                                    .section_address = nullptr,
                                    .debuginfo_path = &no_path};
  elf_version(EV_CURRENT);
  Elf* const core = elf_begin(fd, ELF_C_READ_MMAP, nullptr);
  CrashWalk walk;
  walk.dwfl = dwfl_begin(&callbacks);
  if (core == nullptr || walk.dwfl == nullptr) return {};
  dwfl_report_begin(walk.dwfl);
  const int modules = dwfl_core_file_report(walk.dwfl, core, nullptr);
  if (modules <= 0 || dwfl_report_end(walk.dwfl, nullptr, nullptr) != 0) return {};
  if (dwfl_core_file_attach(walk.dwfl, core) != pid) return {};
  (void)dwfl_getthreads(walk.dwfl, NoteFirstThread, &walk);
  std::string answer = std::to_string(walk.thread);
  for (std::string& frame : walk.frames) {
    for (char& c : frame) c = c == '\n' ? ' ' : c;
    answer += "\n" + frame;
  }
  return answer;
}

Status NoCore(const std::string& pattern) {
  if (pattern.starts_with('|'))
    return Status::NotFound("no stack of the crash: the kernel hands core dumps to a program");
  rlimit limit{};
  if (getrlimit(RLIMIT_CORE, &limit) == 0 && limit.rlim_cur == 0)
    return Status::NotFound("no stack of the crash: core dumps are off here (ulimit -c unlimited)");
  return Status::NotFound("no stack of the crash: no core dump of it was found here");
}

}  // namespace

bool WritesCore(int signal) {
  switch (signal) {
    case SIGQUIT:
    case SIGILL:
    case SIGTRAP:
    case SIGABRT:
    case SIGBUS:
    case SIGFPE:
    case SIGSEGV:
    case SIGXCPU:
    case SIGXFSZ:
    case SIGSYS:
      return true;
    default:
      return false;
  }
}

std::string CorePattern() {
  std::ifstream file("/proc/sys/kernel/core_pattern");
  std::string pattern;
  std::getline(file, pattern);
  return pattern;
}

Result<CrashStack> ReadCrashStack(const std::string& pattern, int pid, TimeNs start,
                                  const std::string& folder) {
  auto base = CorePath(pattern, pid);
  if (!base) return NoCore(pattern);
  if (!folder.empty() && !base->starts_with('/')) *base = folder + "/" + *base;
  // With core_uses_pid the kernel appends the number.
  for (const std::string& path : {*base, fmt::format("{}.{}", *base, pid)}) {
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    if (fd < 0) continue;
    Result<std::string> answer = std::string();
    if (IsSince(fd, start))
      answer = AskSideProcess("core-reader", {fd}, [fd, pid] { return WalkCore(fd, pid); });
    close(fd);
    if (!answer.ok()) return answer.status();
    if (answer->empty()) continue;
    CrashStack stack{path, 0, {}};
    std::istringstream lines(*answer);
    lines >> stack.thread;
    std::string line;
    std::getline(lines, line);
    while (std::getline(lines, line)) stack.frames.push_back(line);
    return stack;
  }
  return NoCore(pattern);
}

}  // namespace hangscope
