#include "process/stack_walker.h"

#include <dwarf.h>
#include <elfutils/libdwfl.h>
#include <elfutils/version.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <gelf.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <set>
#include <tuple>

#include "base/file_system.h"
#include "code/debug_info.h"
#include "code/program_file.h"
#include "code/rust_names.h"
#include "code/source_frames.h"
#include "code/symbol_name.h"

namespace hangscope {
namespace {

constexpr size_t kMostSymbols = 1 << 20;      // of a module
constexpr size_t kMostGuesses = 24;           // of a frame pointer
constexpr uint64_t kLargestFrame = 1u << 20;  // that a guess may assume
constexpr uint64_t kLargestFunction = 64 << 10;

// Of x86-64, by DWARF's numbers: rbx, r12 and those behind it, beside the frame pointer.
bool IsKeptByCalls(size_t number) { return number == 3 || number >= 12; }

char* debug_info_path = nullptr;  // the usual folders; libdw wants it to outlive the Dwfl

// Where packages of the system put libraries and what belongs to them.
bool IsOfSystem(std::string_view path) {
  for (const char* folder : {"/lib/", "/lib32/", "/lib64/", "/libx32/", "/usr/lib/", "/usr/lib32/",
                             "/usr/lib64/", "/usr/libx32/", "/usr/libexec/", "["}) {
    if (path.starts_with(folder)) return true;
  }
  return false;
}

std::string PathOf(Dwfl_Module* module) {
  const char* const name =
      dwfl_module_info(module, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr);
  return name != nullptr ? name : "";
}

int FindElf(Dwfl_Module* module, void** user, const char* name, Dwarf_Addr base, char** file_name,
            Elf** elf) {
  // "[vdso: 42]" and the like are in no file.
  if (name[0] != '/') return dwfl_linux_proc_find_elf(module, user, name, base, file_name, elf);
  if (*user == nullptr) return -1;
  const int fd = static_cast<StackWalker*>(*user)->OpenModule(name, base);
  if (fd >= 0) *file_name = strdup(name);
  return fd;
}

const Dwfl_Callbacks kCallbacks = {
    .find_elf = FindElf,
    .find_debuginfo = FindDebugInfo,
    .section_address = nullptr,
    .debuginfo_path = &debug_info_path,
};

pid_t NextThread(Dwfl*, void* walker, void** thread) {
  if (*thread != nullptr) return 0;
  *thread = walker;
  return static_cast<StackWalker*>(walker)->image()->tid;
}

bool GetThread(Dwfl*, pid_t, void* walker, void** thread) {
  *thread = walker;
  return true;
}

bool ReadWordOf(Dwfl*, Dwarf_Addr address, Dwarf_Word* word, void* walker) {
  return static_cast<StackWalker*>(walker)->ReadWord(address, word);
}

bool SetRegisters(Dwfl_Thread* thread, void* walker) {
  const ThreadRegisters& registers = static_cast<StackWalker*>(walker)->image()->registers;
  for (size_t i = 0; i < ThreadRegisters::kMost; ++i) {
    const Dwarf_Word value = registers.values[i].value_or(0);
    if (registers.values[i] && !dwfl_thread_state_registers(thread, static_cast<int>(i), 1, &value))
      return false;
  }
  dwfl_thread_state_register_pc(thread, registers.pc);
  return true;
}

const Dwfl_Thread_Callbacks kThreadCallbacks = {
    .next_thread = NextThread,
    .get_thread = GetThread,
    .memory_read = ReadWordOf,
    .set_initial_registers = SetRegisters,
    .detach = nullptr,
    .thread_detach = nullptr,
};

struct PlaceList {
  std::vector<StackPlace> places;
  size_t most = 0;
};

#if _ELFUTILS_PREREQ(0, 188)
std::optional<uint64_t> RegisterOf(Dwfl_Frame* frame, size_t number) {
  Dwarf_Word value = 0;
  const bool is_known = dwfl_frame_reg(frame, static_cast<unsigned>(number), &value) == 0;
  return is_known ? std::optional<uint64_t>(value) : std::nullopt;
}
#else
std::optional<uint64_t> RegisterOf(Dwfl_Frame*, size_t) { return std::nullopt; }
#endif

int CollectFrame(Dwfl_Frame* frame, void* list) {
  PlaceList& places = *static_cast<PlaceList*>(list);
  Dwarf_Addr pc = 0;
  bool is_activation = false;
  if (!dwfl_frame_pc(frame, &pc, &is_activation)) return DWARF_CB_ABORT;
  StackPlace& place = places.places.emplace_back();
  place.calls = !is_activation && pc != 0;
  place.pc = place.calls ? pc - 1 : pc;
  place.stack_pointer = RegisterOf(frame, ThreadRegisters::kStackPointer);
  place.frame_pointer = RegisterOf(frame, ThreadRegisters::kFramePointer);
  for (size_t i = 0; i < place.registers.size(); ++i) place.registers[i] = RegisterOf(frame, i);
  return places.places.size() < places.most ? DWARF_CB_OK : DWARF_CB_ABORT;
}

// What the kernel has a handler of a signal return to, where the C library says nothing of it.
bool ReturnsFromSignal(uint64_t pc, const ReadMemory& read) {
#if defined(__x86_64__)
  constexpr uint8_t kCalls[][9] = {{0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05},  // rt_sigreturn
                                   {0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05, 0, 0}};
  uint8_t code[9] = {};
  if (!read(pc, code, sizeof code)) return false;
  return std::memcmp(code, kCalls[0], 9) == 0 || std::memcmp(code, kCalls[1], 7) == 0;
#else
  (void)pc;
  (void)read;
  return false;
#endif
}

// Nobody calls these, whether unwind tables say so or not.
bool IsFirstFunction(std::string_view name) {
  return name == "_start" || name == "__clone" || name == "clone" || name == "clone3" ||
         name == "__clone3" || name == "__GI___clone3";
}

int GiveWalker(Dwfl_Module*, void** user, const char*, Dwarf_Addr, void* walker) {
  *user = walker;
  return DWARF_CB_OK;
}

// Of Go: from a goroutine's stack to the scheduler's. What lies there behind it was left by those
// who were there first, and nobody goes on there.
bool SwitchesStacks(const std::string& function) { return function == "runtime.mcall"; }

// Of Go, by its package: without debug information nothing else tells.
bool IsOfGoRuntime(const std::string& function) {
  for (const char* package : {"runtime.", "runtime/", "sync.", "sync/", "internal/"}) {
    if (function.starts_with(package)) return true;
  }
  return false;
}

}  // namespace

struct StackWalker::ModuleSymbols {
  struct Symbol {
    uint64_t address;
    uint64_t bytes;
    const char* name;  // the module's, which lives as long as this
    bool is_global;
  };
  std::vector<Symbol> functions;  // by address
  std::vector<Symbol> variables;
  // Not only those that other files use: then one without a size reaches to the next.
  bool has_all = false;

  const Symbol* Function(uint64_t address) const {
    const Symbol* const found = Find(functions, address);
    const bool reaches = found != nullptr && (found->bytes != 0 || has_all);
    return reaches || (found != nullptr && found->address == address) ? found : nullptr;
  }
  // The symbol that `address` is in; those without a size reach to the next.
  static const Symbol* Find(const std::vector<Symbol>& symbols, uint64_t address) {
    auto at = std::upper_bound(symbols.begin(), symbols.end(), address,
                               [](uint64_t a, const Symbol& symbol) { return a < symbol.address; });
    constexpr int kMostOverlaps = 8;
    for (int tries = 0; tries < kMostOverlaps && at != symbols.begin(); ++tries) {
      --at;
      if (address - at->address < std::max<uint64_t>(at->bytes, 1) || at->bytes == 0) return &*at;
    }
    return nullptr;
  }
};

StackWalker::StackWalker(std::string proc_root, int pid, std::vector<MemoryMapping> mappings,
                         ReadMemory read)
    : proc_root_(std::move(proc_root)),
      pid_(pid),
      mappings_(std::move(mappings)),
      read_(std::move(read)),
      code_([this](uint64_t address, void* into, size_t bytes) {
        return ReadCodeAt(address, into, bytes);
      }) {}

Result<std::unique_ptr<StackWalker>> StackWalker::Open(const std::string& proc_root, int pid,
                                                       std::vector<MemoryMapping> mappings,
                                                       ReadMemory read) {
  std::unique_ptr<StackWalker> walker(
      new StackWalker(proc_root, pid, std::move(mappings), std::move(read)));
  walker->dwfl_ = dwfl_begin(&kCallbacks);
  if (walker->dwfl_ == nullptr) return Status::Io("cannot start libdw");
  std::error_code ignored;
  walker->program_ =
      std::filesystem::read_symlink(fmt::format("{}/{}/exe", proc_root, pid), ignored).string();
  dwfl_report_begin(walker->dwfl_);
  if (Status status = walker->Begin(dwfl_linux_proc_report(walker->dwfl_, pid)); !status.ok())
    return status;
  return walker;
}

Result<std::unique_ptr<StackWalker>> StackWalker::OpenKept(const KeptProcess& process,
                                                           std::vector<MemoryMapping> mappings) {
  std::unique_ptr<StackWalker> walker(
      new StackWalker("", process.pid, std::move(mappings), process.read));
  walker->kept_ = &process;
  walker->dwfl_ = dwfl_begin(&kCallbacks);
  if (walker->dwfl_ == nullptr) return Status::Io("cannot start libdw");
  const auto first =
      std::find_if(walker->mappings_.begin(), walker->mappings_.end(),
                   [](const MemoryMapping& mapping) { return mapping.path.starts_with('/'); });
  if (first != walker->mappings_.end()) walker->program_ = first->path;
  const auto maps = process.texts.find(fmt::format("{}/maps", process.pid));
  std::string text = maps != process.texts.end() ? maps->second : "";
  FILE* const file = text.empty() ? nullptr : fmemopen(text.data(), text.size(), "r");
  if (file == nullptr) return Status::Io("no file is known of the process");
  dwfl_report_begin(walker->dwfl_);
  const int error = dwfl_linux_proc_maps_report(walker->dwfl_, file);
  fclose(file);
  if (Status status = walker->Begin(error); !status.ok()) return status;
  return walker;
}

// Once all files were reported, or why not.
Status StackWalker::Begin(int error) {
  if (dwfl_report_end(dwfl_, nullptr, nullptr) != 0 || error != 0) {
    return Status::Io(fmt::format("the files that process {} has mapped cannot be listed: {}", pid_,
                                  error > 0 ? ErrorText(error) : dwfl_errmsg(-1)));
  }
  dwfl_getmodules(dwfl_, GiveWalker, this, 0);
  is_static_ = std::none_of(mappings_.begin(), mappings_.end(), [&](const MemoryMapping& mapping) {
    return mapping.executable && mapping.path.starts_with('/') && mapping.path != program_;
  });
  if (!dwfl_attach_state(dwfl_, nullptr, pid_, &kThreadCallbacks, this)) {
    return Status::Io(
        fmt::format("the stacks of process {} cannot be followed: {}", pid_, dwfl_errmsg(-1)));
  }
  return {};
}

StackWalker::~StackWalker() {
  if (dwfl_ != nullptr) dwfl_end(dwfl_);
}

// By its name as the process sees it. The kernel appends " (deleted)" to that of a file which was
// removed or replaced; such a one is there through the mapping only, for which more rights are
// needed.
int StackWalker::OpenModule(const std::string& path, uint64_t begin) const {
  if (kept_ != nullptr) return kept_->open_file(path);
  const int fd = open(fmt::format("{}/{}/root{}", proc_root_, pid_, path).c_str(),
                      O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat about;
  if (fd >= 0 && fstat(fd, &about) == 0 && S_ISREG(about.st_mode)) return fd;
  if (fd >= 0) close(fd);
  const MemoryMapping* const mapping = FindMapping(mappings_, begin);
  if (mapping == nullptr) return -1;
  return open(
      fmt::format("{}/{}/map_files/{:x}-{:x}", proc_root_, pid_, mapping->begin, mapping->end)
          .c_str(),
      O_RDONLY | O_CLOEXEC);
}

bool StackWalker::ReadWord(uint64_t address, uint64_t* word) const {
  if (image_ != nullptr && image_->is_32_bit) {
    uint32_t half = 0;
    if (!read_(address, &half, sizeof half)) return false;
    *word = half;
    return true;
  }
  if (image_ != nullptr && address >= image_->stack_begin) {
    const uint64_t at = address - image_->stack_begin;
    if (at < image_->stack.size() && image_->stack.size() - at >= sizeof *word) {
      std::memcpy(word, image_->stack.data() + at, sizeof *word);
      return true;
    }
  }
  return read_(address, word, sizeof *word);
}

// libdw follows unwind tables, and guesses where there are none: that a register is a frame
// pointer. What a function's instructions do to the stack is surer, and serves as well where the
// tables ask for a frame pointer that is not known.
StackWalk StackWalker::Walk(const ThreadImage& image, size_t most_frames) {
  StackTrail trail = Follow(image, most_frames);
  if (image.is_32_bit) return Named(trail, most_frames);
  ThreadImage from = image;  // where the part began that is looked at
  size_t begin = 0;
  for (size_t at = 0; at < trail.places.size() && trail.places.size() < most_frames; ++at) {
    const bool is_last = at + 1 == trail.places.size();
    if (HasTable(trail.places[at].pc) && (!is_last || trail.complete)) continue;
    if (!HasTable(trail.places[at].pc) && IsFirst(trail.places[at].pc)) {
      trail.places.resize(at + 1);
      trail.complete = true;
      break;
    }
    ThreadImage caller = image;
    StackPlace& place = trail.places[at];
    const bool by_signal = place.calls && ReturnsFromSignal(place.pc + 1, code_);
    if (by_signal) {
      ++place.pc;
      place.calls = false;
    }
    if (by_signal ? StepOverSignal(place, &caller) : StepByCode(image, place, &caller)) {
      StackTrail rest = Follow(caller, most_frames);
      if (!by_signal && !rest.places.empty()) rest.places[0].calls = true;
      begin = at + 1;
      trail.places.resize(begin);
      trail.places.insert(trail.places.end(), rest.places.begin(), rest.places.end());
      trail.complete = rest.complete;
      trail.trouble = std::move(rest.trouble);
      from = std::move(caller);
      continue;
    }
    if (trail.complete) break;  // frame pointers led to where it began
    if (!from.registers.values[ThreadRegisters::kFramePointer] &&
        GuessFramePointer(from, most_frames, begin, &trail))
      break;
    if (!HasTable(trail.places[at].pc)) {
      trail.places.resize(at + 1);
      trail.trouble = "the code there has no unwind tables";
    }
    break;
  }
  if (trail.places.size() > most_frames) {
    trail.places.resize(most_frames);
    trail.complete = false;
  }
  return Named(trail, most_frames);
}

// From where `image` stands on, as far as libdw can.
StackTrail StackWalker::Follow(const ThreadImage& image, size_t most_frames) {
  StackTrail trail;
  PlaceList list;
  list.most = most_frames;
  image_ = &image;
  const int ended = dwfl_getthread_frames(dwfl_, image.tid, CollectFrame, &list);
  image_ = nullptr;
  trail.places = std::move(list.places);
  if (ended < 0) trail.trouble = dwfl_errmsg(-1);
  trail.complete = ended == 0 && !trail.places.empty() && IsOutermost(trail.places.back().pc);
  return trail;
}

// From `place`, to which a handler returns, to what the signal interrupted.
bool StackWalker::StepOverSignal(const StackPlace& place, ThreadImage* interrupted) const {
  constexpr size_t kRegisters = 40;  // where a ucontext has them, r8 first
  uint64_t saved[17] = {};
  if (!place.stack_pointer || !read_(*place.stack_pointer + kRegisters, saved, sizeof saved))
    return false;
  interrupted->registers = {};
  interrupted->registers.values[ThreadRegisters::kFramePointer] = saved[10];
  interrupted->registers.values[ThreadRegisters::kStackPointer] = saved[15];
  interrupted->registers.pc = saved[16];
  const MemoryMapping* const mapping = FindMapping(mappings_, saved[16]);
  return mapping != nullptr && mapping->executable;
}

// From `place` to its caller, by what its function's instructions do to the stack.
bool StackWalker::StepByCode(const ThreadImage& image, const StackPlace& place,
                             ThreadImage* caller) {
  if (!place.stack_pointer) return false;
  image_ = &image;
  const auto depth = DepthOf(place);
  const uint64_t slot = *place.stack_pointer + (depth ? depth->to_return : 0);
  uint64_t back = 0;
  const bool has_read = depth && ReadWord(slot, &back);
  std::optional<uint64_t> frame_pointer;
  uint64_t saved = 0;
  if (has_read && depth->keeps_frame_pointer)
    frame_pointer = place.frame_pointer;
  else if (has_read && depth->saved_frame_pointer &&
           ReadWord(slot - *depth->saved_frame_pointer, &saved))
    frame_pointer = saved;
  std::array<std::optional<uint64_t>, 16> kept;
  for (size_t i = 0; has_read && i < kept.size(); ++i) {
    if (i == ThreadRegisters::kStackPointer || i == ThreadRegisters::kFramePointer) continue;
    if (depth->saved[i] && ReadWord(slot - *depth->saved[i], &saved))
      kept[i] = saved;
    else if (!depth->saved[i] && !depth->changed[i] && IsKeptByCalls(i))
      kept[i] = place.registers[i];
  }
  image_ = nullptr;
  const MemoryMapping* const mapping = has_read ? FindMapping(mappings_, back) : nullptr;
  if (mapping == nullptr || !mapping->executable) return false;
  caller->registers = {};
  auto& values = caller->registers.values;
  if (!ReturnsFromSignal(back, code_) && !TargetOfCall(back, code_).is_call) return false;
  std::copy(kept.begin(), kept.end(), values.begin());
  values[ThreadRegisters::kStackPointer] = slot + 8;
  values[ThreadRegisters::kFramePointer] = frame_pointer;
  caller->registers.pc = back - 1;
  return true;
}

// Where no symbol says where the function begins, its caller does: by a call to a place from which
// the instructions lead to `place` with the stack as deep as the address to return to lies.
std::optional<CallDepth> StackWalker::DepthOf(const StackPlace& place) {
  constexpr size_t kMostWords = 4096;
  Dwfl_Module* const module = dwfl_addrmodule(dwfl_, place.pc);
  const auto* const symbol = module != nullptr ? SymbolsOf(module).Function(place.pc) : nullptr;
  if (symbol != nullptr && symbol->bytes != 0) return DepthFrom(symbol->address, place.pc);
  for (size_t i = 0; i < kMostWords; ++i) {
    uint64_t back = 0;
    if (!ReadWord(*place.stack_pointer + i * 8, &back)) break;
    const MemoryMapping* const mapping = FindMapping(mappings_, back);
    if (mapping == nullptr || !mapping->executable) continue;
    const uint64_t begin = TargetOfCall(back, code_).address;
    const uint64_t distance = begin > place.pc ? begin - place.pc : place.pc - begin;
    if (begin == 0 || distance > kLargestFunction) continue;
    const auto depth = DepthFrom(begin, place.pc);
    if (depth && depth->to_return == i * 8) return depth;
  }
  return std::nullopt;
}

std::optional<CallDepth> StackWalker::DepthFrom(uint64_t begin, uint64_t pc) {
  const auto [known, is_new] = depths_.try_emplace({begin, pc});
  if (is_new) known->second = DepthAt(begin, pc, code_);
  return known->second;
}

bool StackWalker::ReadCodeAt(uint64_t address, void* into, size_t bytes) {
  constexpr uint64_t kPage = 4096;
  const uint64_t page = address / kPage * kPage;
  const MemoryMapping* const mapping = FindMapping(mappings_, address);
  const bool is_constant = mapping != nullptr && mapping->executable && !mapping->writable;
  if (!is_constant || address + bytes > page + kPage) return read_(address, into, bytes);
  std::string& known = code_pages_[page];
  if (known.empty()) {
    known.resize(kPage);
    if (!read_(page, known.data(), kPage)) known.clear();
  }
  if (known.empty()) return read_(address, into, bytes);
  std::memcpy(into, known.data() + (address - page), bytes);
  return true;
}

StackWalk StackWalker::Named(const StackTrail& trail, size_t most_frames) {
  StackWalk walk;
  walk.complete = trail.complete;
  walk.places = trail.places;
  const auto& places = trail.places;
  for (size_t i = 0; i < places.size(); ++i) {
    if (trail.guess_at == i)
      walk.warning = fmt::format(
          "from frame {} on the stack is a guess: where a frame pointer was "
          "saved is not known",
          walk.frames.size());
    const std::vector<StackFrame>& names = Name(places[i].pc);
    walk.frames.insert(walk.frames.end(), names.begin(), names.end());
    StackFrame& outer = walk.frames.back();
    if (outer.function.empty() && !outer.module.empty() && i + 1 < places.size() &&
        places[i + 1].calls)
      outer.function = NameOfCall(places[i + 1].pc + 1, places[i].pc);
    if (SwitchesStacks(outer.function)) {
      walk.places.resize(i + 1);
      walk.complete = true;
      break;
    }
  }
  if (walk.frames.size() > most_frames) {
    walk.frames.resize(most_frames);
    walk.complete = false;
  }
  // Beside a program's own code, a static program has the C library's, which comes without lines.
  const bool has_lines =
      is_static_ && std::any_of(walk.frames.begin(), walk.frames.end(),
                                [](const StackFrame& frame) { return !frame.source.empty(); });
  for (StackFrame& frame : walk.frames)
    frame.of_system = frame.of_system || (has_lines && frame.source.empty());
  const auto is_place = [](const StackFrame& frame) {
    return !frame.of_system && !(frame.function.empty() && frame.source.empty());
  };
  constexpr size_t kFollowedByCode = 3;
  walk.wants_registers = !walk.complete && walk.frames.size() < most_frames &&
                         (places.size() < kFollowedByCode || HasTable(places.back().pc)) &&
                         std::none_of(walk.frames.begin(), walk.frames.end(), is_place);
  const char* const plural = places.size() == 1 ? "" : "s";
  if (!trail.trouble.empty() && !walk.complete)
    walk.warning = fmt::format("the stack cannot be followed behind {} frame{}: {}", places.size(),
                               plural, trail.trouble);
  if (walk.complete || !walk.warning.empty()) return walk;
  if (places.size() >= most_frames || walk.frames.size() >= most_frames)
    walk.warning = fmt::format("the stack has more than {} frames", most_frames);
  else
    walk.warning =
        fmt::format("the stack cannot be followed behind {} frame{} without the thread's registers",
                    places.size(), plural);
  return walk;
}

// The name under which the caller that returns to `back` called into the file that `pc` is in: of a
// function there that has none itself, but is the end of the one that has.
std::string StackWalker::NameOfCall(uint64_t back, uint64_t pc) {
  const uint64_t called = TargetOfCall(back, code_).address;
  Dwfl_Module* const module = called != 0 ? dwfl_addrmodule(dwfl_, called) : nullptr;
  if (module == nullptr || module != dwfl_addrmodule(dwfl_, pc)) return {};
  const auto* const symbol = SymbolsOf(module).Function(called);
  return symbol != nullptr && symbol->address == called ? ReadableName(symbol->name) : "";
}

bool StackWalker::HasTable(uint64_t pc) {
  const auto [known, is_new] = has_table_.try_emplace(pc);
  if (!is_new) return known->second;
  Dwfl_Module* const module = dwfl_addrmodule(dwfl_, pc);
  bool found = false;
  for (const auto table_of : {dwfl_module_eh_cfi, dwfl_module_dwarf_cfi}) {
    Dwarf_Addr bias = 0;
    Dwarf_CFI* const table = module != nullptr && !found ? table_of(module, &bias) : nullptr;
    Dwarf_Frame* frame = nullptr;
    found = found || (table != nullptr && dwarf_cfi_addrframe(table, pc - bias, &frame) == 0);
    free(frame);
  }
  return known->second = found;
}

// Of a place without unwind table: whether a thread or the program began there.
bool StackWalker::IsFirst(uint64_t pc) {
  Dwfl_Module* const module = dwfl_addrmodule(dwfl_, pc);
  const auto* const symbol = module != nullptr ? SymbolsOf(module).Function(pc) : nullptr;
  if (symbol != nullptr && IsFirstFunction(symbol->name)) return true;
#if defined(__x86_64__)
  constexpr uint8_t kHalt = 0xf4;  // what they have where nobody returns to
  uint8_t next = 0;
  return code_(pc + 1, &next, 1) && next == kHalt && TargetOfCall(pc + 1, code_).is_call;
#else
  return false;
#endif
}

// libdw ends a stack in the same way where it began and where a register is missing. Where it
// began, the unwind table says that nobody is to be returned to.
bool StackWalker::IsOutermost(uint64_t pc) const {
  Dwfl_Module* const module = dwfl_addrmodule(dwfl_, pc);
  Dwarf_Addr bias = 0;
  Dwarf_CFI* const table = module != nullptr ? dwfl_module_eh_cfi(module, &bias) : nullptr;
  Dwarf_Frame* frame = nullptr;
  if (table == nullptr || dwarf_cfi_addrframe(table, pc - bias, &frame) != 0) return false;
  const int back = dwarf_frame_info(frame, nullptr, nullptr, nullptr);
  Dwarf_Op room[3];
  Dwarf_Op* operations = nullptr;
  size_t count = 0;
  // No operations, but a place for them: undefined; no place either: as the frame before has it.
  const bool is_undefined = back >= 0 &&
                            dwarf_frame_register(frame, back, room, &operations, &count) == 0 &&
                            count == 0 && operations != nullptr;
  free(frame);
  return is_undefined;
}

// A thread that was not stopped shows its stack pointer and pc only. Functions that keep a frame
// pointer need that, too: it points to where the one before was saved, next to the address to
// return to. The first place that looks like that and leads to where the thread began is taken.
// `begin`: of the part of the trail that begins at `image`.
bool StackWalker::GuessFramePointer(const ThreadImage& image, size_t most_frames, size_t begin,
                                    StackTrail* best) {
  ThreadImage attempt = image;
  if (best->places.size() <= begin) return false;
  const size_t stuck = best->places.size();
  for (const uint64_t candidate : FramePointerCandidates(image, best->places.back().pc)) {
    attempt.registers.values[ThreadRegisters::kFramePointer] = candidate;
    const StackTrail trail = Follow(attempt, most_frames);
    if (!trail.complete) continue;
    const bool calls = best->places[begin].calls;
    best->places.resize(begin);
    best->places.insert(best->places.end(), trail.places.begin(), trail.places.end());
    best->places[begin].calls = calls;
    best->complete = true;
    best->guess_at = stuck;
    return true;
  }
  return false;
}

std::vector<uint64_t> StackWalker::FramePointerCandidates(const ThreadImage& image,
                                                          uint64_t stuck_pc) {
  std::vector<uint64_t> candidates;
  const uint64_t sp = image.registers.stack_pointer();
  if (sp < image.stack_begin) return candidates;
  for (size_t at = sp - image.stack_begin;
       at + 16 <= image.stack.size() && candidates.size() < kMostGuesses; at += 8) {
    uint64_t saved = 0;
    uint64_t back = 0;
    std::memcpy(&saved, image.stack.data() + at, 8);
    std::memcpy(&back, image.stack.data() + at + 8, 8);
    const uint64_t place = image.stack_begin + at;
    // The outermost function saves whatever was in the register before.
    const bool chained = saved > place && saved - place < kLargestFrame;
    if ((chained || saved <= 1) && MayHaveCalled(back, stuck_pc)) candidates.push_back(place);
  }
  return candidates;
}

// Whether the function that `pc` is in can have been called from before `back`. Below the frame
// that is looked for lie what is left of calls that it made earlier: those lead back into itself.
bool StackWalker::MayHaveCalled(uint64_t back, uint64_t pc) {
  const MemoryMapping* const mapping = FindMapping(mappings_, back);
  if (mapping == nullptr || !mapping->executable) return false;
  Dwfl_Module* const module = dwfl_addrmodule(dwfl_, pc);
  const ModuleSymbols::Symbol* const function =
      module != nullptr ? SymbolsOf(module).Function(pc) : nullptr;
  const bool is_inside = function != nullptr && back - function->address <= function->bytes;
#if defined(__x86_64__)
  const CallTarget called = TargetOfCall(back, code_);
  if (!called.is_call || called.address == 0) return called.is_call && !is_inside;
  if (function == nullptr || called.address == function->address) return true;
  Dwfl_Module* const other = dwfl_addrmodule(dwfl_, called.address);
  // What has no name is a stub that leads on to another file's function.
  return (other == nullptr || SymbolsOf(other).Function(called.address) == nullptr) && !is_inside;
#else
  return !is_inside;
#endif
}

const std::vector<StackFrame>& StackWalker::Name(uint64_t pc) {
  const auto known = names_.find(pc);
  if (known != names_.end()) return known->second;
  return names_.emplace(pc, FindNames(pc)).first->second;
}

StackWalker::ModuleSymbols& StackWalker::SymbolsOf(Dwfl_Module* module) {
  std::unique_ptr<ModuleSymbols>& symbols = symbols_[module];
  if (symbols != nullptr) return *symbols;
  symbols = std::make_unique<ModuleSymbols>();
  const int count = dwfl_module_getsymtab(module);
  for (int i = 1; i < count && static_cast<size_t>(i) < kMostSymbols; ++i) {
    GElf_Sym symbol;
    GElf_Addr address = 0;
    GElf_Word section = 0;
    const char* name =
        dwfl_module_getsym_info(module, i, &symbol, &address, &section, nullptr, nullptr);
    if (name == nullptr || *name == '\0' || section == SHN_UNDEF || section == SHN_ABS) continue;
    const int type = GELF_ST_TYPE(symbol.st_info);
    const ModuleSymbols::Symbol entry = {address, symbol.st_size, name,
                                         GELF_ST_BIND(symbol.st_info) != STB_LOCAL};
    // In assembler, what begins threads and programs has no type.
    const bool is_first = type == STT_NOTYPE && IsFirstFunction(name);
    if (type == STT_FUNC || type == STT_GNU_IFUNC || is_first) {
      symbols->functions.push_back(entry);
      symbols->has_all = symbols->has_all || !entry.is_global;
    }
    if (type == STT_OBJECT) symbols->variables.push_back(entry);
  }
  AddTold(SourceOf(module).told, symbols.get());
  for (auto* list : {&symbols->functions, &symbols->variables}) {
    // Of those at one place, a global one is found first: it comes last.
    std::stable_sort(list->begin(), list->end(), [](const auto& a, const auto& b) {
      return a.address != b.address ? a.address < b.address : a.is_global < b.is_global;
    });
  }
  return *symbols;
}

// What has no symbols of its own.
void StackWalker::AddTold(const CodeNames& told, ModuleSymbols* symbols) {
  if (symbols->has_all) return;
  const auto add = [](const std::vector<Function>& names,
                      std::vector<ModuleSymbols::Symbol>* into) {
    for (const Function& each : names)
      into->push_back({each.begin, each.bytes, each.name.c_str(), false});
  };
  add(told.functions, &symbols->functions);
  add(told.variables, &symbols->variables);
  symbols->has_all = !told.functions.empty();
}

bool StackWalker::KnowsLines(uint64_t in_module) {
  Dwfl_Module* const module = dwfl_addrmodule(dwfl_, in_module);
  if (module == nullptr) return false;
  const ModuleSource& source = SourceOf(module);
  return source.frames != nullptr || source.told.frames_at;
}

void StackWalker::Tell(uint64_t in_module, CodeNames names) {
  Dwfl_Module* const module = dwfl_addrmodule(dwfl_, in_module);
  if (module == nullptr) return;
  SourceOf(module).told = std::move(names);
  symbols_.erase(module);
  names_.clear();
}

std::vector<SourceFrame> StackWalker::ModuleSource::At(uint64_t pc) const {
  if (frames != nullptr) return frames->At(pc);
  return told.frames_at ? told.frames_at(pc) : std::vector<SourceFrame>();
}

StackWalker::ModuleSource& StackWalker::SourceOf(Dwfl_Module* module) {
  const auto [at, is_new] = sources_.try_emplace(module);
  ModuleSource& source = at->second;
  if (!is_new) return source;
  const std::string path = PathOf(module);
  source.of_system = IsOfSystem(path) && path != program_;
  // The lines of a C library take longer to read than all the rest, and do not say more than its
  // functions' names.
  Dwarf_Addr bias = 0;
  if (!source.of_system && dwfl_module_getdwarf(module, &bias) != nullptr) {
    source.frames = std::make_unique<SourceFrames>(module);
    source.variables = std::make_unique<SourceVariables>(*source.frames, read_);
  }
  return source;
}

std::vector<StackFrame> StackWalker::FindNames(uint64_t pc) {
  StackFrame outer;
  outer.pc = pc;
  Dwfl_Module* const module = dwfl_addrmodule(dwfl_, pc);
  // libdw takes the mappings of a file for one module, with all that is of no file between them.
  const MemoryMapping* const mapping = FindMapping(mappings_, pc);
  if (module == nullptr || mapping == nullptr || mapping->path.empty()) return {outer};
  outer.module = NameOf(PathOf(module));
  ModuleSource& source = SourceOf(module);
  outer.of_system = source.of_system;
  const ModuleSymbols::Symbol* const symbol = SymbolsOf(module).Function(pc);
  // Without a size it would reach to the next, or to the module's end.
  const bool is_near = symbol != nullptr &&
                       (symbol->bytes != 0 || FindMapping(mappings_, symbol->address) == mapping);
  if (is_near) outer.function = ReadableName(symbol->name);
  std::vector<StackFrame> frames;
  for (const SourceFrame& each : source.At(pc)) {
    StackFrame& frame = frames.emplace_back(outer);
    // Debug information numbers the closures that the symbol of an older Rust does not.
    if (each.is_inlined || outer.function.empty() || outer.function.ends_with("{{closure}}"))
      frame.function = each.function;
    frame.of_system = outer.of_system || each.of_library ||
                      (source.frames == nullptr && IsOfGoRuntime(frame.function));
    if (each.line != 0) frame.source = fmt::format("{}:{}", NameOf(each.path), each.line);
  }
  if (!frames.empty()) return frames;
  outer.of_system = outer.of_system ||
                    (is_near && (IsOfRustLibraries(symbol->name) || IsOfGoRuntime(outer.function)));
  return {outer};
}

std::optional<StackWalker::Function> StackWalker::FunctionAt(uint64_t address) {
  Dwfl_Module* const module = dwfl_addrmodule(dwfl_, address);
  if (module == nullptr) return std::nullopt;
  const ModuleSymbols::Symbol* const symbol = SymbolsOf(module).Function(address);
  if (symbol == nullptr) return std::nullopt;
  return Function{symbol->address, symbol->bytes, ReadableName(symbol->name)};
}

// Zeroed variables that do not fit behind the others lie in memory of no file, behind the last
// mapping of theirs: libdw's module ends there.
Dwfl_Module* StackWalker::ModuleOfVariable(uint64_t address) const {
  Dwfl_Module* const module = dwfl_addrmodule(dwfl_, address);
  if (module != nullptr) return module;
  const auto before =
      std::find_if(mappings_.rbegin(), mappings_.rend(), [address](const MemoryMapping& mapping) {
        return mapping.begin <= address && !mapping.path.empty();
      });
  return before == mappings_.rend() ? nullptr : dwfl_addrmodule(dwfl_, before->begin);
}

std::optional<VariableSymbol> StackWalker::SymbolOfVariable(uint64_t address) {
  Dwfl_Module* const module = ModuleOfVariable(address);
  if (module == nullptr) return std::nullopt;
  const ModuleSymbols::Symbol* const symbol =
      ModuleSymbols::Find(SymbolsOf(module).variables, address);
  if (symbol == nullptr || (symbol->bytes == 0 && symbol->address != address)) return std::nullopt;
  return VariableSymbol{symbol->address, symbol->name};
}

std::string StackWalker::Variable(uint64_t address) {
  const auto symbol = SymbolOfVariable(address);
  if (!symbol) return {};
  const std::string name = ReadableName(symbol->name);
  return symbol->begin == address ? name : fmt::format("{}+{}", name, address - symbol->begin);
}

std::vector<std::string> StackWalker::SourceNames(const std::vector<StackPlace>& places,
                                                  uint64_t address, bool is_within) {
  constexpr size_t kMostFrames = 32;
  const auto symbol = SymbolOfVariable(address);
  const auto text = [](const SourceVariable& found) {
    return found.function.empty() ? found.path
                                  : fmt::format("{} in {}", found.path, found.function);
  };
  std::vector<std::string> names;
  std::map<SourceVariables*, std::vector<uint64_t>> pcs;
  for (size_t i = 0; i < std::min(places.size(), kMostFrames); ++i) {
    Dwfl_Module* const module = dwfl_addrmodule(dwfl_, places[i].pc);
    SourceVariables* const variables =
        module == nullptr ? nullptr : SourceOf(module).variables.get();
    if (variables == nullptr) continue;
    pcs[variables].push_back(places[i].pc);
    VariableFrame frame{places[i].pc, places[i].registers, {}};
    if (i + 1 < places.size()) frame.frame_address = places[i + 1].stack_pointer;
    const auto found = variables->OfFrame(frame, address);
    if (!found) continue;
    if (found->is_within) return {text(*found)};
    names.push_back(text(*found));
  }
  for (const auto& [variables, its_pcs] : pcs) {
    const auto found = variables->OfUnits(its_pcs, address, symbol);
    if (!found) continue;
    if (found->is_within) return {text(*found)};
    names.push_back(text(*found));
  }
  // A variable that is known, and whose type is not, has its symbol's name.
  if (is_within || symbol) names.clear();
  return names;
}

std::string StackWalker::PointerTo(uint64_t begin, uint64_t address) {
  constexpr uint64_t kPage = 4096;
  std::set<Dwfl_Module*> modules;
  for (const MemoryMapping& mapping : mappings_) {
    Dwfl_Module* const module = dwfl_addrmodule(dwfl_, mapping.begin);
    if (module != nullptr && !IsOfSystemLibrary(mapping.begin)) modules.insert(module);
  }
  const ModuleSymbols::Symbol* best = nullptr;
  uint64_t points_to = 0;
  const auto worth = [&](uint64_t value) {
    return std::tuple(value == address, value == begin, value);
  };
  uint64_t page_begin = 1;  // none
  std::string page(kPage, '\0');
  for (Dwfl_Module* const module : modules) {
    for (const ModuleSymbols::Symbol& symbol : SymbolsOf(module).variables) {
      const uint64_t at = symbol.address % kPage;
      if (symbol.bytes != sizeof points_to || at > kPage - sizeof points_to) continue;
      if (symbol.address - at != page_begin) {
        page_begin = symbol.address - at;
        if (!read_(page_begin, page.data(), kPage)) page.assign(kPage, '\0');
      }
      uint64_t value = 0;
      std::memcpy(&value, page.data() + at, sizeof value);
      const bool points_before = value >= begin && value <= address;
      if (!points_before || (best != nullptr && worth(value) <= worth(points_to))) continue;
      best = &symbol;
      points_to = value;
    }
  }
  if (best == nullptr) return {};
  const std::string name = "*" + ReadableName(best->name);
  return points_to == address ? name : fmt::format("{}+{}", name, address - points_to);
}

bool StackWalker::IsOfSystemLibrary(uint64_t address) const {
  Dwfl_Module* const module = ModuleOfVariable(address);
  if (module == nullptr) return false;
  const std::string path = PathOf(module);
  return IsOfSystem(path) && path != program_;
}

std::optional<uint64_t> StackWalker::AddressOf(uint64_t in_module, std::string_view name) {
  Dwfl_Module* const module = dwfl_addrmodule(dwfl_, in_module);
  if (module == nullptr) return std::nullopt;
  const auto& variables = SymbolsOf(module).variables;
  const auto found = std::find_if(variables.begin(), variables.end(),
                                  [&](const auto& symbol) { return name == symbol.name; });
  return found == variables.end() ? std::nullopt : std::optional(found->address);
}

}  // namespace hangscope
