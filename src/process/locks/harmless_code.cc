#include "process/locks/harmless_code.h"

#include "base/build_features.h"
#if HANGSCOPE_HAS_CAPSTONE && defined(__x86_64__)
#define HANGSCOPE_FOLLOWS_ALL_CODE 1
#include <capstone/capstone.h>
#else
#define HANGSCOPE_FOLLOWS_ALL_CODE 0
#endif

#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>

namespace hangscope {
namespace {

#if HANGSCOPE_FOLLOWS_ALL_CODE

constexpr uint64_t kMostFollowedBytes = 64 << 10;  // of a function
constexpr size_t kMostFollowedSteps = 20'000;      // of all
constexpr size_t kMostFollowedCalls = 200;

class CodeFollower {
 public:
  CodeFollower(const ReadMemory& read, const TargetOfCode& target,
               const std::function<bool(uint64_t)>& is_constant)
      : read_(read), target_(target), is_constant_(is_constant) {
    is_open_ = cs_open(CS_ARCH_X86, CS_MODE_64, &capstone_) == CS_ERR_OK;
    if (is_open_) cs_option(capstone_, CS_OPT_DETAIL, CS_OPT_ON);
  }
  ~CodeFollower() {
    if (is_open_) cs_close(&capstone_);
  }
  CodeFollower(const CodeFollower&) = delete;
  CodeFollower& operator=(const CodeFollower&) = delete;

  CodeEffect Follow(const std::vector<CallPlace>& places, bool gives_file, UsedFiles* files) {
    if (!is_open_ || places.empty()) return CodeEffect::kUnknown;
    result_at_ = gives_file ? places[0].back : 0;
    const bool stays = std::any_of(places.begin(), places.end(), [this](const CallPlace& place) {
      return !is_known_ ||
             !Returns({CalledCode::kFollowed, place.function, place.bytes}, place.back);
    });
    while (is_known_ && !called_.empty()) {
      const CodeTarget next = called_.back();
      called_.pop_back();
      Returns(next, next.begin);
    }
    if (!is_known_ || !stays) return CodeEffect::kUnknown;
    const bool is_entered = std::any_of(jumps_.begin(), jumps_.end(), [this](uint64_t to) {
      const auto call = numbered_.lower_bound(to);
      return closed_.count(to) != 0 || (call != numbered_.end() && call->second < to);
    });
    if (uses_files_ || is_entered) return CodeEffect::kFiles;
    *files = files_;
    return files_.streams || files_.opens || !files_.descriptors.empty() ? CodeEffect::kSomeFiles
                                                                         : CodeEffect::kNone;
  }

 private:
  // Whether a way leads from `from` to the function's end.
  bool Returns(const CodeTarget& function, uint64_t from) {
    if (function.bytes == 0 || function.bytes > kMostFollowedBytes) return is_known_ = false;
    std::string code(function.bytes, '\0');
    if (!read_(function.begin, code.data(), code.size())) return is_known_ = false;
    bool returns = false;
    std::vector<uint64_t> open = {from};
    std::set<uint64_t> seen;
    while (is_known_ && !open.empty()) {
      const uint64_t pc = open.back();
      open.pop_back();
      if (!seen.insert(pc).second) continue;
      if (pc - function.begin >= function.bytes || ++instructions_ > kMostFollowedSteps)
        return is_known_ = false;
      cs_insn* instruction = nullptr;
      const uint64_t at = pc - function.begin;
      if (cs_disasm(capstone_, reinterpret_cast<const uint8_t*>(code.data()) + at, code.size() - at,
                    pc, 1, &instruction) != 1)
        return is_known_ = false;
      NoteNumber(*instruction);
      returns = Step(*instruction, function, &open) || returns;
      NoteResult(*instruction);
      cs_free(instruction, 1);
    }
    return returns;
  }

  // Whether it ends the function.
  bool Step(const cs_insn& instruction, const CodeTarget& function, std::vector<uint64_t>* open) {
    const uint64_t next = instruction.address + instruction.size;
    switch (instruction.id) {
      case X86_INS_SYSCALL:
      case X86_INS_SYSENTER:
      case X86_INS_INT:
      case X86_INS_INT1:
      case X86_INS_INT3:
        is_known_ = false;
        return false;
      case X86_INS_UD2:
      case X86_INS_HLT:
        return false;
      case X86_INS_CALL:
        if (Call(instruction, next)) open->push_back(next);
        return false;
      default:
        break;
    }
    const auto is = [&](unsigned group) { return cs_insn_group(capstone_, &instruction, group); };
    if (is(X86_GRP_RET) || is(X86_GRP_IRET)) return true;
    if (!is(X86_GRP_JUMP)) {
      open->push_back(next);
      return false;
    }
    if (instruction.id != X86_INS_JMP) open->push_back(next);
    const cs_x86_op& to = instruction.detail->x86.operands[0];
    if (to.type != X86_OP_IMM) {  // a table
      is_known_ = false;
      return false;
    }
    const auto target = static_cast<uint64_t>(to.imm);
    if (target - function.begin < function.bytes) {
      jumps_.insert(target);
      open->push_back(target);
      return false;
    }
    return Reach(BehindStubAt(target));  // it returns from there
  }

  // Where a stub of the linker leads. A function that goes on where a variable says looks alike,
  // but for the word, which the loader has made constant, or for what stands behind to find it
  // late.
  uint64_t BehindStubAt(uint64_t at) const {
    uint8_t code[24] = {};
    if (!read_(at, code, sizeof code)) return at;
    constexpr uint8_t kBranchTarget[] = {0xf3, 0x0f, 0x1e, 0xfa};  // endbr64
    size_t begin = std::equal(std::begin(kBranchTarget), std::end(kBranchTarget), code)
                       ? sizeof kBranchTarget
                       : 0;
    if (code[begin] == 0xf2) ++begin;  // bnd
    if (code[begin] != 0xff || code[begin + 1] != 0x25) return at;
    constexpr size_t kJump = 6;
    int32_t distance = 0;
    memcpy(&distance, code + begin + 2, sizeof distance);
    const uint64_t next = at + begin + kJump;
    const uint64_t word = next + static_cast<uint64_t>(int64_t{distance});
    const bool finds_late = code[begin + kJump] == 0x68 && code[begin + kJump + 5] == 0xe9;
    uint64_t target = 0;
    if ((!is_constant_(word) && !finds_late) || !read_(word, &target, sizeof target)) return at;
    return target == next ? at : target;
  }

  // Whether the program goes on behind it.
  bool Call(const cs_insn& instruction, uint64_t next) {
    const cs_x86_op& to = instruction.detail->x86.operands[0];
    const uint64_t call = instruction.address;
    if (to.type == X86_OP_IMM) return Reach(BehindStubAt(static_cast<uint64_t>(to.imm)), call);
    if (to.type == X86_OP_MEM && to.mem.base == X86_REG_RIP) {
      const uint64_t word = next + static_cast<uint64_t>(to.mem.disp);
      uint64_t address = 0;
      if (is_constant_(word) && read_(word, &address, sizeof address)) return Reach(address, call);
    }
    is_known_ = false;
    return false;
  }

  // A call that gives a new file, and the next instruction, which makes that the argument of a
  // call.
  void NoteResult(const cs_insn& instruction) {
    const uint64_t next = instruction.address + instruction.size;
    const cs_x86& detail = instruction.detail->x86;
    const bool passes_result =
        instruction.id == X86_INS_MOV && detail.op_count == 2 &&
        detail.operands[0].type == X86_OP_REG && detail.operands[0].reg == X86_REG_EDI &&
        detail.operands[1].type == X86_OP_REG && detail.operands[1].reg == X86_REG_EAX;
    passed_at_ = passes_result && instruction.address == result_at_ ? next : 0;
    result_at_ = instruction.id == X86_INS_CALL && gives_file_ ? next : 0;
    gives_file_ = false;
    if (instruction.id == X86_INS_CALL) number_.reset();  // the register is the callee's
  }

  // A number in the register of the first argument, and where it got there.
  void NoteNumber(const cs_insn& instruction) {
    const cs_x86& detail = instruction.detail->x86;
    const auto is_argument = [](unsigned reg) {
      return reg == X86_REG_RDI || reg == X86_REG_EDI || reg == X86_REG_DI || reg == X86_REG_DIL;
    };
    if (instruction.address != number_until_) number_.reset();  // it came there by a jump
    number_until_ = instruction.address + instruction.size;
    const bool sets_argument = detail.op_count == 2 && detail.operands[0].type == X86_OP_REG &&
                               is_argument(detail.operands[0].reg);
    const auto set = [&](int number) {
      number_ = number;
      number_at_ = instruction.address;
    };
    if (instruction.id == X86_INS_MOV && sets_argument && detail.operands[1].type == X86_OP_IMM)
      return set(static_cast<int>(detail.operands[1].imm));
    if (instruction.id == X86_INS_XOR && sets_argument && detail.operands[1].type == X86_OP_REG &&
        detail.operands[1].reg == detail.operands[0].reg)
      return set(0);
    cs_regs read, written;
    uint8_t reads = 0, writes = 0;
    if (cs_regs_access(capstone_, &instruction, read, &reads, written, &writes) != 0 ||
        std::any_of(written, written + writes, is_argument))
      number_.reset();
  }

  void UseNumber(uint64_t call) {
    if (call == 0 || !number_) {
      uses_files_ = true;
      return;
    }
    files_.descriptors.insert(*number_);
    numbered_[call] = number_at_;
  }

  // Where it closes the file that the call before it has given, unless a jump leads there.
  void Close(uint64_t call) {
    if (call == 0 || call != passed_at_)
      uses_files_ = true;
    else
      closed_.insert(call);
  }

  bool Reach(uint64_t address, uint64_t call = 0) {
    const CodeTarget target = target_(address);
    switch (target.code) {
      case CalledCode::kHarmless:
        return true;
      case CalledCode::kOfFiles:
        uses_files_ = true;
        return true;
      case CalledCode::kOfStreams:
        files_.streams = true;
        return true;
      case CalledCode::kOpens:
        files_.opens = true;
        return true;
      case CalledCode::kOfNumber:
        UseNumber(call);
        return true;
      case CalledCode::kGivesFile:
        gives_file_ = true;
        return true;
      case CalledCode::kCloses:
        Close(call);
        return true;
      case CalledCode::kNoReturn:
        return false;
      case CalledCode::kFollowed:
        if (seen_.insert(target.begin).second) called_.push_back(target);
        is_known_ = is_known_ && seen_.size() <= kMostFollowedCalls;
        return true;
      case CalledCode::kUnknown:
        break;
    }
    is_known_ = false;
    return false;
  }

  const ReadMemory& read_;
  const TargetOfCode& target_;
  const std::function<bool(uint64_t)>& is_constant_;
  csh capstone_ = 0;
  bool is_open_ = false;
  bool is_known_ = true;
  bool uses_files_ = false;
  bool gives_file_ = false;    // the call that is looked at
  uint64_t result_at_ = 0;     // behind a call that gives a file
  uint64_t passed_at_ = 0;     // behind the instruction that passes that on
  std::set<uint64_t> closed_;  // calls that close such files
  UsedFiles files_;
  std::optional<int> number_;              // in the register of the first argument
  uint64_t number_at_ = 0;                 // where it was put there
  uint64_t number_until_ = 0;              // the instruction behind the one that was looked at
  std::map<uint64_t, uint64_t> numbered_;  // calls with such a number, and where it was put there
  std::set<uint64_t> jumps_;               // where jumps lead
  size_t instructions_ = 0;
  std::set<uint64_t> seen_;         // functions that are called
  std::vector<CodeTarget> called_;  // of these, those whose code is still to be looked at
};

#endif

}  // namespace

CalledCode CalledCodeOf(std::string_view function) {
  constexpr std::string_view kNoReturn[] = {"stack_chk_fail", "std::__throw_system_error(int)",
                                            "std::__throw_bad_alloc()", "std::terminate()",
                                            "std::__throw_length_error(char const*)"};
  constexpr std::string_view kFamilies[] = {"mem", "str", "operator new", "operator delete",
                                            "std::chrono::_V2::"};
  constexpr std::string_view kHarmless[] = {
      // that wait
      "sleep", "usleep", "nanosleep", "clock_nanosleep", "sched_yield", "poll", "ppoll", "select",
      "pselect", "epoll_wait", "pause", "pthread_cond_wait", "pthread_cond_timedwait",
      "pthread_cond_clockwait", "sem_wait", "sem_timedwait", "sem_clockwait", "sem_trywait",
      "pthread_mutex_lock", "pthread_mutex_trylock", "pthread_mutex_unlock",
      "std::this_thread::__sleep_for(std::chrono::duration<long, std::ratio<1l, 1l> >, "
      "std::chrono::duration<long, std::ratio<1l, 1000000000l> >)",
      // that ask
      "time", "clock_gettime", "gettimeofday", "clock", "times", "getrusage", "localtime",
      "localtime_r", "gmtime", "gmtime_r", "mktime", "ctime", "ctime_r", "asctime", "asctime_r",
      "difftime", "getpid", "getppid", "gettid", "pthread_self", "errno_location", "sysconf",
      "sysinfo", "getloadavg", "mallinfo", "mallinfo2", "getenv", "rand", "rand_r", "random",
      "isatty", "sched_getcpu", "pthread_getname_np", "pthread_setname_np", "prctl", "atoi", "atol",
      "isoc99_sscanf", "isoc23_sscanf", "isoc23_strtol", "snprintf", "vsnprintf", "sprintf",
      "vsprintf", "snprintf_chk", "vsnprintf_chk", "sprintf_chk", "vsprintf_chk",
      // memory
      "malloc", "calloc", "realloc", "free", "cfree", "libc_malloc", "libc_calloc", "libc_realloc",
      "libc_free",
      // of files, but nobody waits for what they do; the log has a socket of its own
      "stat", "fstat", "stat64", "fstat64", "lstat", "statvfs", "access", "syslog", "syslog_chk"};
  constexpr std::string_view kOfFiles[] = {"recv", "recvfrom"};
  constexpr std::string_view kOfStreams[] = {
      "isoc99_fscanf", "isoc23_fscanf", "perror",      "fclose",  "fgets",    "fread",
      "fwrite",        "fflush",        "fputs",       "fputc",   "putc",     "putchar",
      "puts",          "printf",        "fprintf",     "vprintf", "vfprintf", "printf_chk",
      "fprintf_chk",   "vprintf_chk",   "vfprintf_chk"};
  constexpr std::string_view kOfNumber[] = {
      "read",   "pread",    "pread64", "lseek",  "lseek64", "fsync",       "write",
      "pwrite", "pwrite64", "send",    "sendto", "dprintf", "dprintf_chk", "fdatasync"};
  constexpr std::string_view kOpens[] = {"open", "open64", "openat", "fopen", "fopen64"};
  constexpr std::string_view kGiveFiles[] = {"accept", "accept4", "socket"};
  const auto is_one_of = [](const auto& names, std::string_view name) {
    return std::find(std::begin(names), std::end(names), name) != std::end(names);
  };
  std::string_view name = function.substr(0, function.find('@'));
  for (const std::string_view part : {"_", "GI_", "IO_"}) {
    while (name.starts_with(part) && !name.starts_with("_Z")) name.remove_prefix(part.size());
  }
  if (is_one_of(kNoReturn, name)) return CalledCode::kNoReturn;
  if (is_one_of(kOfFiles, name)) return CalledCode::kOfFiles;
  if (is_one_of(kOfStreams, name)) return CalledCode::kOfStreams;
  if (is_one_of(kOfNumber, name)) return CalledCode::kOfNumber;
  if (is_one_of(kOpens, name)) return CalledCode::kOpens;
  if (is_one_of(kGiveFiles, name)) return CalledCode::kGivesFile;
  if (name == "close") return CalledCode::kCloses;
  const bool is_of_family =
      std::any_of(std::begin(kFamilies), std::end(kFamilies),
                  [name](std::string_view family) { return name.starts_with(family); });
  return is_of_family || is_one_of(kHarmless, name) ? CalledCode::kHarmless : CalledCode::kUnknown;
}

CodeEffect EffectOfCode(const std::vector<CallPlace>& places, bool gives_file,
                        const ReadMemory& read, const TargetOfCode& target,
                        const std::function<bool(uint64_t)>& is_constant, UsedFiles* files) {
#if HANGSCOPE_FOLLOWS_ALL_CODE
  return CodeFollower(read, target, is_constant).Follow(places, gives_file, files);
#else
  (void)places, (void)gives_file, (void)read, (void)target, (void)is_constant, (void)files;
  return CodeEffect::kUnknown;
#endif
}

}  // namespace hangscope
