#include "process/stack_walker.h"

#include <cxxabi.h>
#include <dwarf.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <gelf.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <cstring>

#include "code/debug_info.h"
#include "code/program_file.h"

namespace hangscope {
namespace {

constexpr size_t kMostSymbols = 1 << 20;      // of a module
constexpr size_t kMostGuesses = 24;           // of a frame pointer
constexpr uint64_t kLargestFrame = 1u << 20;  // that a guess may assume
constexpr int kMostInlined = 16;              // functions within one another

char* debug_info_path = nullptr;  // the usual folders; libdw wants it to outlive the Dwfl

std::string BaseName(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

// As in the source; without the version that a library gives it.
std::string Demangle(std::string_view name) {
  const std::string bare(name.substr(0, name.find('@')));
  // The demangler takes "f" for float.
  if (!bare.starts_with("_Z")) return bare;
  int status = 0;
  char* const plain = abi::__cxa_demangle(bare.c_str(), nullptr, nullptr, &status);
  std::string text = status == 0 && plain != nullptr ? plain : bare;
  free(plain);
  return text;
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
  // within the instruction that is being carried out: a call, but for the first
  std::vector<uint64_t> pcs;
  std::vector<StackPlace> places;
  size_t most = 0;
};

StackPlace PlaceOf(Dwfl_Frame* frame, uint64_t pc) {
  StackPlace place;
  place.pc = pc;
  for (size_t i = 0; i < place.registers.size(); ++i) {
    Dwarf_Word value = 0;
    if (dwfl_frame_reg(frame, static_cast<unsigned>(i), &value) == 0) place.registers[i] = value;
  }
  Dwarf_Word stack = 0;
  if (dwfl_frame_reg(frame, ThreadRegisters::kStackPointer, &stack) == 0)
    place.stack_pointer = stack;
  return place;
}

int CollectFrame(Dwfl_Frame* frame, void* list) {
  PlaceList& places = *static_cast<PlaceList*>(list);
  Dwarf_Addr pc = 0;
  bool is_activation = false;
  if (!dwfl_frame_pc(frame, &pc, &is_activation)) return DWARF_CB_ABORT;
  places.pcs.push_back(is_activation || pc == 0 ? pc : pc - 1);
  places.places.push_back(PlaceOf(frame, pc));
  return places.pcs.size() < places.most ? DWARF_CB_OK : DWARF_CB_ABORT;
}

int GiveWalker(Dwfl_Module*, void** user, const char*, Dwarf_Addr, void* walker) {
  *user = walker;
  return DWARF_CB_OK;
}

std::string SourceOfLine(const char* file, int line) {
  if (file == nullptr || line <= 0) return {};
  return fmt::format("{}:{}", BaseName(file), line);
}

std::string NameOfDie(Dwarf_Die* die) {
  Dwarf_Attribute attribute;
  for (const unsigned name : {DW_AT_linkage_name, DW_AT_MIPS_linkage_name}) {
    Dwarf_Attribute* const found = dwarf_attr_integrate(die, name, &attribute);
    if (const char* text = found != nullptr ? dwarf_formstring(found) : nullptr)
      return Demangle(text);
  }
  const char* text = dwarf_diename(die);
  return text != nullptr ? text : "";
}

// Where an inlined function was called from.
std::string SourceOfCall(Dwarf_Die* unit, Dwarf_Die* inlined) {
  Dwarf_Attribute attribute;
  Dwarf_Word file = 0;
  Dwarf_Word line = 0;
  if (dwarf_formudata(dwarf_attr(inlined, DW_AT_call_file, &attribute), &file) != 0) return {};
  if (dwarf_formudata(dwarf_attr(inlined, DW_AT_call_line, &attribute), &line) != 0) return {};
  Dwarf_Files* files = nullptr;
  size_t count = 0;
  if (dwarf_getsrcfiles(unit, &files, &count) != 0 || file >= count || line > INT_MAX) return {};
  return SourceOfLine(dwarf_filesrc(files, file, nullptr, nullptr), static_cast<int>(line));
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
      read_(std::move(read)) {}

Result<std::unique_ptr<StackWalker>> StackWalker::Open(const std::string& proc_root, int pid,
                                                       std::vector<MemoryMapping> mappings,
                                                       ReadMemory read) {
  std::unique_ptr<StackWalker> walker(
      new StackWalker(proc_root, pid, std::move(mappings), std::move(read)));
  walker->dwfl_ = dwfl_begin(&kCallbacks);
  if (walker->dwfl_ == nullptr) return Status::Io("cannot start libdw");
  Dwfl* const dwfl = walker->dwfl_;
  dwfl_report_begin(dwfl);
  const int error = dwfl_linux_proc_report(dwfl, pid);
  if (dwfl_report_end(dwfl, nullptr, nullptr) != 0 || error != 0) {
    return Status::Io(fmt::format("the files that process {} has mapped cannot be listed: {}", pid,
                                  error > 0 ? ErrorText(error) : dwfl_errmsg(-1)));
  }
  dwfl_getmodules(dwfl, GiveWalker, walker.get(), 0);
  if (!dwfl_attach_state(dwfl, nullptr, pid, &kThreadCallbacks, walker.get())) {
    return Status::Io(
        fmt::format("the stacks of process {} cannot be followed: {}", pid, dwfl_errmsg(-1)));
  }
  return walker;
}

StackWalker::~StackWalker() {
  if (dwfl_ != nullptr) dwfl_end(dwfl_);
}

// By its name as the process sees it. The kernel appends " (deleted)" to that of a file which was
// removed or replaced; such a one is there through the mapping only, for which more rights are
// needed.
int StackWalker::OpenModule(const std::string& path, uint64_t begin) const {
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

StackWalk StackWalker::Walk(const ThreadImage& image, size_t most_frames) {
  StackWalk walk = WalkOnce(image, most_frames);
  const bool lacks_frame_pointer =
      !image.is_32_bit && !image.registers.values[ThreadRegisters::kFramePointer];
  if (!walk.complete && walk.frames.size() < most_frames && lacks_frame_pointer)
    GuessFramePointer(image, most_frames, &walk);
  return walk;
}

StackWalk StackWalker::WalkOnce(const ThreadImage& image, size_t most_frames) {
  StackWalk walk;
  PlaceList places;
  places.most = most_frames;
  image_ = &image;
  const int ended = dwfl_getthread_frames(dwfl_, image.tid, CollectFrame, &places);
  image_ = nullptr;
  walk.places = std::move(places.places);
  walk.complete = ended == 0 && !places.pcs.empty() && IsOutermost(places.pcs.back());
  for (const uint64_t pc : places.pcs) {
    const std::vector<StackFrame>& names = Name(pc);
    walk.frames.insert(walk.frames.end(), names.begin(), names.end());
  }
  if (walk.frames.size() > most_frames) {
    walk.frames.resize(most_frames);
    walk.complete = false;
  }
  const char* const plural = places.pcs.size() == 1 ? "" : "s";
  if (ended < 0)
    walk.warning = fmt::format("the stack cannot be followed behind {} frame{}: {}",
                               places.pcs.size(), plural, dwfl_errmsg(-1));
  if (walk.complete || !walk.warning.empty()) return walk;
  if (places.pcs.size() >= most_frames || walk.frames.size() >= most_frames)
    walk.warning = fmt::format("the stack has more than {} frames", most_frames);
  else
    walk.warning =
        fmt::format("the stack cannot be followed behind {} frame{} without the thread's registers",
                    places.pcs.size(), plural);
  return walk;
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
bool StackWalker::GuessFramePointer(const ThreadImage& image, size_t most_frames, StackWalk* best) {
  ThreadImage attempt = image;
  if (best->frames.empty()) return false;
  for (const uint64_t candidate : FramePointerCandidates(image, best->frames.back().pc)) {
    attempt.registers.values[ThreadRegisters::kFramePointer] = candidate;
    StackWalk walk = WalkOnce(attempt, most_frames);
    if (!walk.complete) continue;
    *best = std::move(walk);
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
      module != nullptr ? ModuleSymbols::Find(SymbolsOf(module).functions, pc) : nullptr;
  const bool is_inside = function != nullptr && back - function->address <= function->bytes;
#if defined(__x86_64__)
  uint8_t code[7];
  if (back - mapping->begin < sizeof code || !read_(back - sizeof code, code, sizeof code))
    return false;
  if (code[2] == 0xe8) {  // call to a fixed address
    int32_t distance = 0;
    std::memcpy(&distance, code + 3, sizeof distance);
    const uint64_t called = back + static_cast<uint64_t>(int64_t{distance});
    if (function == nullptr || called == function->address) return true;
    Dwfl_Module* const other = dwfl_addrmodule(dwfl_, called);
    const ModuleSymbols::Symbol* const target =
        other != nullptr ? ModuleSymbols::Find(SymbolsOf(other).functions, called) : nullptr;
    // What has no name is a stub that leads on to another file's function.
    return target == nullptr && !is_inside;
  }
  for (size_t i = 0; i < 6; ++i) {  // call through a register or memory, of 2 to 7 bytes
    if (code[i] == 0xff && (code[i + 1] >> 3 & 7) == 2) return !is_inside;
  }
  return false;
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
    if (type == STT_FUNC || type == STT_GNU_IFUNC) symbols->functions.push_back(entry);
    if (type == STT_OBJECT) symbols->variables.push_back(entry);
  }
  for (auto* list : {&symbols->functions, &symbols->variables}) {
    // Of those at one place, a global one is found first: it comes last.
    std::stable_sort(list->begin(), list->end(), [](const auto& a, const auto& b) {
      return a.address != b.address ? a.address < b.address : a.is_global < b.is_global;
    });
  }
  return *symbols;
}

// Whether the file itself has lines, and is the program's own rather than the system's: those of a
// C library take longer to read than all the rest, and do not say more than its functions' names.
bool StackWalker::HasLines(Dwfl_Module* module) {
  const auto known = has_lines_.find(module);
  if (known != has_lines_.end()) return known->second;
  const char* const name =
      dwfl_module_info(module, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr);
  const std::string_view path = name != nullptr ? name : "";
  const bool of_system =
      path.starts_with("/lib") || path.starts_with("/usr/lib") || path.starts_with("[");
  Dwarf_Addr bias = 0;
  const bool has = !of_system && dwfl_module_getdwarf(module, &bias) != nullptr;
  return has_lines_[module] = has;
}

std::vector<StackFrame> StackWalker::FindNames(uint64_t pc) {
  std::vector<StackFrame> frames;
  StackFrame outer;
  outer.pc = pc;
  Dwfl_Module* const module = dwfl_addrmodule(dwfl_, pc);
  // libdw takes the mappings of a file for one module, with all that is of no file between them.
  const MemoryMapping* const mapping = FindMapping(mappings_, pc);
  if (module == nullptr || mapping == nullptr || mapping->path.empty()) return {outer};
  if (const char* name =
          dwfl_module_info(module, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr))
    outer.module = BaseName(name);
  const ModuleSymbols::Symbol* const symbol = ModuleSymbols::Find(SymbolsOf(module).functions, pc);
  // Without a size it would reach to the next, or to the module's end.
  const bool is_near = symbol != nullptr &&
                       (symbol->bytes != 0 || FindMapping(mappings_, symbol->address) == mapping);
  if (is_near) outer.function = Demangle(symbol->name);
  if (!HasLines(module)) return {outer};

  std::string source;
  if (Dwfl_Line* line = dwfl_module_getsrc(module, pc)) {
    int number = 0;
    const char* const file = dwfl_lineinfo(line, nullptr, &number, nullptr, nullptr, nullptr);
    source = SourceOfLine(file, number);
  }
  Dwarf_Addr bias = 0;
  Dwarf_Die* const unit = dwfl_module_addrdie(module, pc, &bias);
  Dwarf_Die* scopes = nullptr;
  const int count = unit != nullptr ? dwarf_getscopes(unit, pc - bias, &scopes) : 0;
  if (count > 0) {
    // From the innermost scope outwards: dwarf_getscopes leaves out whom an inlined function was
    // inlined into.
    Dwarf_Die* inner = nullptr;
    const int all = dwarf_getscopes_die(&scopes[0], &inner);
    for (int i = 0; i < all && frames.size() < kMostInlined; ++i) {
      const int tag = dwarf_tag(&inner[i]);
      if (tag != DW_TAG_inlined_subroutine && tag != DW_TAG_subprogram) continue;
      StackFrame frame = outer;
      const std::string name = NameOfDie(&inner[i]);
      if (tag == DW_TAG_inlined_subroutine || outer.function.empty()) frame.function = name;
      frame.source = source;
      frames.push_back(std::move(frame));
      if (tag == DW_TAG_subprogram) break;
      source = SourceOfCall(unit, &inner[i]);
    }
    free(inner);
  }
  free(scopes);
  if (frames.empty()) {
    outer.source = source;
    frames.push_back(outer);
  }
  return frames;
}

std::optional<StackWalker::Function> StackWalker::FunctionAt(uint64_t address) {
  Dwfl_Module* const module = dwfl_addrmodule(dwfl_, address);
  if (module == nullptr) return std::nullopt;
  const ModuleSymbols::Symbol* const symbol =
      ModuleSymbols::Find(SymbolsOf(module).functions, address);
  if (symbol == nullptr) return std::nullopt;
  return Function{symbol->address, symbol->bytes, Demangle(symbol->name)};
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

std::string StackWalker::Variable(uint64_t address) {
  Dwfl_Module* const module = ModuleOfVariable(address);
  if (module == nullptr) return {};
  const ModuleSymbols::Symbol* const symbol =
      ModuleSymbols::Find(SymbolsOf(module).variables, address);
  if (symbol == nullptr || (symbol->bytes == 0 && symbol->address != address)) return {};
  const std::string name = Demangle(symbol->name);
  return symbol->address == address ? name : fmt::format("{}+{}", name, address - symbol->address);
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
