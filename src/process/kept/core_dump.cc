#include "process/kept/core_dump.h"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/procfs.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <set>
#include <string_view>

#include "base/utf8.h"
#include "proc/proc_text.h"

namespace hangscope {
namespace {

constexpr size_t kMostNotes = 64u << 20;  // bytes
constexpr size_t kMostCoreSegments = 1u << 20;
constexpr size_t kMostCodeFiles = 4096;
constexpr size_t kMostThreads = 65536;
constexpr size_t kMostPath = 4096;
constexpr uint64_t kPageBytes = 4096;

#if defined(__x86_64__)
constexpr uint16_t kMachine = EM_X86_64;
#else
constexpr uint16_t kMachine = EM_AARCH64;
#endif

class File {
 public:
  explicit File(int fd) : fd_(fd) {}
  ~File() {
    if (fd_ >= 0) close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  int fd() const { return fd_; }
  // False where not all of it is there.
  bool ReadAt(uint64_t offset, void* into, size_t bytes) const {
    auto* to = static_cast<char*>(into);
    while (bytes > 0) {
      const ssize_t got = pread(fd_, to, bytes, static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return false;
      to += got;
      offset += static_cast<uint64_t>(got);
      bytes -= static_cast<size_t>(got);
    }
    return true;
  }

 private:
  const int fd_;
};

std::shared_ptr<const File> OpenRegular(const std::string& path) {
  auto file = std::make_shared<const File>(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat about;
  if (file->fd() < 0 || fstat(file->fd(), &about) != 0 || !S_ISREG(about.st_mode)) return nullptr;
  return file;
}

struct Segment {
  uint64_t begin = 0;
  uint64_t end = 0;
  uint32_t flags = 0;
  uint64_t offset = 0;
  uint64_t kept = 0;  // bytes from `begin` on that are in the dump
};

struct MappedFile {
  uint64_t begin = 0;
  uint64_t end = 0;
  uint64_t offset = 0;
  std::string path;
};

struct CoreThread {
  int tid = 0;
  uint64_t blocked_signals = 0;
  std::array<uint64_t, sizeof(elf_gregset_t) / sizeof(uint64_t)> registers = {};
};

struct CoreContents {
  std::shared_ptr<const File> core;
  std::vector<Segment> segments;   // ascending
  std::vector<MappedFile> mapped;  // ascending
  std::vector<CoreThread> threads;
  elf_prpsinfo process = {};
  bool has_process = false;
  int signal = 0;
  // Of the paths in `mapped`: those that this machine has as they were.
  std::map<std::string, std::shared_ptr<const File>> files;

  template <typename Range>
  static const Range* Find(const std::vector<Range>& ranges, uint64_t address) {
    auto at = std::upper_bound(ranges.begin(), ranges.end(), address,
                               [](uint64_t a, const Range& range) { return a < range.begin; });
    if (at == ranges.begin()) return nullptr;
    --at;
    return address < at->end ? &*at : nullptr;
  }

  // As many bytes as lie in one piece in the dump or a file; 0: none.
  size_t ReadPiece(uint64_t address, char* into, size_t bytes) const {
    const Segment* const segment = Find(segments, address);
    if (segment == nullptr) return 0;
    const uint64_t at = address - segment->begin;
    if (at < segment->kept) {
      const size_t piece = std::min<uint64_t>(bytes, segment->kept - at);
      return core->ReadAt(segment->offset + at, into, piece) ? piece : 0;
    }
    const MappedFile* const file = Find(mapped, address);
    if (file == nullptr || (segment->flags & PF_W) != 0) return 0;  // it may have been written
    const auto known = files.find(file->path);
    if (known == files.end()) return 0;
    const size_t piece = std::min<uint64_t>(bytes, file->end - address);
    return known->second->ReadAt(file->offset + (address - file->begin), into, piece) ? piece : 0;
  }

  bool Read(uint64_t address, void* into, size_t bytes) const {
    auto* to = static_cast<char*>(into);
    while (bytes > 0) {
      const size_t piece = ReadPiece(address, to, bytes);
      if (piece == 0) return false;
      to += piece;
      address += piece;
      bytes -= piece;
    }
    return true;
  }
};

// Calls `take` with each note's name, zero included, its type and its description.
template <typename Function>
void ForEachNote(std::string_view bytes, const Function& take) {
  constexpr uint64_t kPadding = 4;
  while (bytes.size() >= sizeof(Elf64_Nhdr)) {
    Elf64_Nhdr note;
    std::memcpy(&note, bytes.data(), sizeof note);
    bytes.remove_prefix(sizeof note);
    const auto padded = [](uint64_t size) { return (size + kPadding - 1) / kPadding * kPadding; };
    const uint64_t name = padded(note.n_namesz);
    if (bytes.size() < name || bytes.size() - name < note.n_descsz) return;
    take(bytes.substr(0, note.n_namesz), note.n_type, bytes.substr(name, note.n_descsz));
    bytes.remove_prefix(std::min<uint64_t>(bytes.size(), name + padded(note.n_descsz)));
  }
}

// --- Build IDs: whether a file of this machine is the one that ran.

// `read` reads the ELF file's bytes: by their places in it, or in memory (`is_memory`), where its
// notes lie as far behind its header as they do in the file's first piece.
std::string BuildIdOf(const ReadMemory& read, uint64_t base, bool is_memory) {
  constexpr size_t kMostHeaders = 64;
  constexpr size_t kMostNote = 4096;
  Elf64_Ehdr header;
  if (!read(base, &header, sizeof header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_phentsize != sizeof(Elf64_Phdr) ||
      header.e_phnum > kMostHeaders)
    return {};
  std::vector<Elf64_Phdr> segments(header.e_phnum);
  if (segments.empty() ||
      !read(base + header.e_phoff, segments.data(), segments.size() * sizeof(Elf64_Phdr)))
    return {};
  const auto first = std::find_if(segments.begin(), segments.end(),
                                  [](const Elf64_Phdr& each) { return each.p_type == PT_LOAD; });
  const uint64_t first_address =
      first == segments.end() ? 0 : first->p_vaddr / kPageBytes * kPageBytes;
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type != PT_NOTE || segment.p_filesz > kMostNote) continue;
    std::string notes(segment.p_filesz, '\0');
    const uint64_t at = base + (is_memory ? segment.p_vaddr - first_address : segment.p_offset);
    if (!read(at, notes.data(), notes.size())) continue;
    std::string build_id;
    ForEachNote(notes, [&](std::string_view name, uint32_t type, std::string_view description) {
      if (build_id.empty() && type == NT_GNU_BUILD_ID && name == std::string_view("GNU", 4))
        build_id = description;
    });
    if (!build_id.empty()) return build_id;
  }
  return {};
}

// What is known of the files, and what is not.
void OpenFiles(CoreContents* contents, std::vector<std::string>* warnings) {
  std::vector<std::string> others, missing;
  std::set<std::string> asked;  // each once; data has no names
  for (const MappedFile& file : contents->mapped) {
    const Segment* const segment = CoreContents::Find(contents->segments, file.begin);
    if (segment == nullptr || (segment->flags & PF_X) != 0) asked.insert(file.path);
    if (asked.size() >= kMostCodeFiles) break;
  }
  for (const MappedFile& file : contents->mapped) {
    if (file.offset != 0 || asked.erase(file.path) == 0) continue;
    const auto here = OpenRegular(file.path);
    const auto is_elf = [](const auto& read, uint64_t at) {
      char magic[SELFMAG];
      return read(at, magic, sizeof magic) && std::memcmp(magic, ELFMAG, SELFMAG) == 0;
    };
    const auto read_core = [contents](uint64_t address, void* into, size_t bytes) {
      return contents->Read(address, into, bytes);
    };
    const auto read_file = [&here](uint64_t offset, void* into, size_t bytes) {
      return here != nullptr && here->ReadAt(offset, into, bytes);
    };
    if (!is_elf(read_core, file.begin)) {
      // Its first page was left out of the dump, as /proc/PID/coredump_filter may ask for.
      if (is_elf(read_file, 0)) others.push_back(file.path);
      continue;
    }
    if (here == nullptr) {
      missing.push_back(file.path);
      continue;
    }
    const std::string ran = BuildIdOf(read_core, file.begin, true);
    if (ran.empty() || ran != BuildIdOf(read_file, 0, false))
      others.push_back(file.path);
    else
      contents->files[file.path] = here;
  }
  const auto say = [&](std::vector<std::string> paths, const char* what) {
    std::sort(paths.begin(), paths.end());
    paths.erase(std::unique(paths.begin(), paths.end()), paths.end());
    if (paths.empty()) return;
    constexpr size_t kFew = 3;
    std::string list;
    for (size_t i = 0; i < std::min(paths.size(), kFew); ++i)
      list += (i > 0 ? ", " : "") + Printable(paths[i]);
    if (paths.size() > kFew) list += fmt::format(" and {} more", paths.size() - kFew);
    warnings->push_back(fmt::format("{}: {}", what, list));
  };
  say(missing, "no names of files that this machine does not have");
  say(others, "no names of files that are not known to be the ones that ran, by their build IDs");
}

// Of the part of an ELF file that lies `offset` bytes into it.
uint32_t FlagsAt(const File& file, uint64_t offset) {
  constexpr size_t kMostHeaders = 64;
  Elf64_Ehdr header;
  if (!file.ReadAt(0, &header, sizeof header)) return PF_R;
  for (size_t i = 0; i < std::min<size_t>(header.e_phnum, kMostHeaders); ++i) {
    Elf64_Phdr segment;
    if (!file.ReadAt(header.e_phoff + i * sizeof segment, &segment, sizeof segment)) break;
    const uint64_t begin = segment.p_offset / kPageBytes * kPageBytes;
    if (segment.p_type == PT_LOAD && offset >= begin &&
        offset < segment.p_offset + segment.p_filesz)
      return segment.p_flags;
  }
  return PF_R;
}

// gdb leaves out what is as it is in the file, mapping and all.
void AddLeftOut(CoreContents* contents) {
  std::vector<Segment> left_out;
  for (const MappedFile& file : contents->mapped) {
    const Segment* const known = CoreContents::Find(contents->segments, file.begin);
    const auto opened = contents->files.find(file.path);
    if (known != nullptr || opened == contents->files.end()) continue;
    const uint32_t flags = FlagsAt(*opened->second, file.offset);
    if ((flags & PF_W) == 0) left_out.push_back({file.begin, file.end, flags, 0, 0});
  }
  for (Segment& each : left_out) {
    const auto at =
        std::lower_bound(contents->segments.begin(), contents->segments.end(), each,
                         [](const Segment& a, const Segment& b) { return a.begin < b.begin; });
    if (at == contents->segments.end() || at->begin >= each.end)
      contents->segments.insert(at, each);
  }
}

// --- Notes.

template <typename T>
bool Take(std::string_view bytes, T* into) {
  if (bytes.size() < sizeof *into) return false;
  std::memcpy(into, bytes.data(), sizeof *into);
  return true;
}

void TakeFiles(std::string_view bytes, std::vector<MappedFile>* mapped) {
  uint64_t count = 0;
  uint64_t page = 0;
  if (!Take(bytes, &count)) return;
  bytes.remove_prefix(sizeof count);
  if (!Take(bytes, &page)) return;
  bytes.remove_prefix(sizeof page);
  struct Entry {
    uint64_t begin, end, pages;
  };
  if (count > bytes.size() / sizeof(Entry)) return;
  std::string_view names = bytes.substr(count * sizeof(Entry));
  for (uint64_t i = 0; i < count; ++i) {
    Entry entry;
    (void)Take(bytes.substr(i * sizeof entry), &entry);
    const size_t end = names.find('\0');
    if (end == std::string_view::npos) return;
    if (end <= kMostPath && entry.begin < entry.end &&
        (mapped->empty() || entry.begin >= mapped->back().end))
      mapped->push_back(
          {entry.begin, entry.end, entry.pages * page, std::string(names.substr(0, end))});
    names.remove_prefix(end + 1);
  }
}

void TakeNote(uint32_t type, std::string_view bytes, CoreContents* contents) {
  if (type == NT_PRSTATUS) {
    elf_prstatus status;
    if (!Take(bytes, &status) || contents->threads.size() >= kMostThreads) return;
    CoreThread thread;
    thread.tid = status.pr_pid;
    thread.blocked_signals = status.pr_sighold;
    std::memcpy(thread.registers.data(), &status.pr_reg, sizeof thread.registers);
    contents->threads.push_back(thread);
  } else if (type == NT_PRPSINFO) {
    contents->has_process = Take(bytes, &contents->process);
  } else if (type == NT_SIGINFO) {
    int signal = 0;
    if (Take(bytes, &signal)) contents->signal = signal;
  } else if (type == NT_FILE) {
    TakeFiles(bytes, &contents->mapped);
  }
}

// --- As /proc would tell it.

struct CoreRegisters {
  ThreadRegisters values;
  // What the thread had asked the kernel for, and goes on waiting for; nothing: it ran.
  std::optional<TaskSystemCall> call;
};

#if defined(__x86_64__)

// sys/user.h's user_regs_struct. The kernel begins a call again that was interrupted by what wrote
// the dump: its result is one of these, or not there yet.
CoreRegisters RegistersOf(const CoreThread& thread) {
  enum {
    kR15,
    kR14,
    kR13,
    kR12,
    kRbp,
    kRbx,
    kR11,
    kR10,
    kR9,
    kR8,
    kRax,
    kRcx,
    kRdx,
    kRsi,
    kRdi,
    kOrigRax,
    kRip,
    kCs,
    kFlags,
    kRsp,
  };  // clang-format off
  static constexpr std::array<int, 16> kByDwarf = {kRax, kRdx, kRcx, kRbx, kRsi, kRdi, kRbp, kRsp,
                                                   kR8,  kR9,  kR10, kR11, kR12, kR13, kR14, kR15};
  // clang-format on
  constexpr int64_t kRestartFirst = -516;  // ERESTART_RESTARTBLOCK
  constexpr int64_t kRestartLast = -512;   // ERESTARTSYS
  const auto& raw = thread.registers;
  CoreRegisters registers;
  for (size_t i = 0; i < kByDwarf.size(); ++i)
    registers.values.values[i] = raw[static_cast<size_t>(kByDwarf[i])];
  registers.values.pc = raw[kRip];
  const auto result = static_cast<int64_t>(raw[kRax]);
  const auto number = static_cast<int64_t>(raw[kOrigRax]);
  const bool waits =
      result == -ENOSYS || result == -EINTR || (result >= kRestartFirst && result <= kRestartLast);
  if (number < 0 || number > INT32_MAX || !waits) return registers;
  TaskSystemCall call;
  call.number = static_cast<int>(number);
  call.arguments = {raw[kRdi], raw[kRsi], raw[kRdx], raw[kR10], raw[kR8], raw[kR9]};
  call.stack_pointer = raw[kRsp];
  call.pc = raw[kRip];
  registers.call = call;
  return registers;
}

#else

// sys/user.h's user_regs_struct: x0..x30, sp, pc, pstate. The number of a call is in x8, the first
// argument is kept nowhere.
CoreRegisters RegistersOf(const CoreThread& thread) {
  CoreRegisters registers;
  for (size_t i = 0; i < 32; ++i) registers.values.values[i] = thread.registers[i];
  registers.values.pc = thread.registers[32];
  return registers;
}

#endif

std::string StatText(int id, const std::string& name, bool waits, int parent) {
  return fmt::format("{} ({}) {} {} {} 0 0 0 0\n", id, name, waits ? 'S' : 'R', parent, id);
}

std::string StatusText(int pid, int tid, const CoreThread& thread) {
  return fmt::format(
      "Tgid:\t{}\nPid:\t{}\nTracerPid:\t0\nSigBlk:\t{:016x}\nvoluntary_ctxt_switches:\t0\n"
      "nonvoluntary_ctxt_switches:\t0\n",
      pid, tid, thread.blocked_signals);
}

std::string SystemCallText(const std::optional<TaskSystemCall>& call) {
  if (!call) return "running\n";
  std::string text = fmt::format("{}", call->number);
  for (const uint64_t argument : call->arguments) text += fmt::format(" {:#x}", argument);
  return text + fmt::format(" {:#x} {:#x}\n", call->stack_pointer, call->pc);
}

// The inodes are none that the files had; but each file has one of its own.
std::string MappingsText(const CoreContents& contents) {
  std::string text;
  std::map<std::string, size_t> inodes;
  for (const Segment& segment : contents.segments) {
    const MappedFile* const file = CoreContents::Find(contents.mapped, segment.begin);
    const auto flag = [&](uint32_t bit, char letter) {
      return (segment.flags & bit) != 0 ? letter : '-';
    };
    std::string path = file != nullptr ? file->path : "";
    std::replace(path.begin(), path.end(), '\n', ' ');
    const size_t inode = path.empty() ? 0 : inodes.emplace(path, inodes.size() + 1).first->second;
    text += fmt::format("{:x}-{:x} {}{}{}p {:08x} 00:00 {} {}\n", segment.begin, segment.end,
                        flag(PF_R, 'r'), flag(PF_W, 'w'), flag(PF_X, 'x'),
                        file != nullptr ? file->offset + (segment.begin - file->begin) : 0, inode,
                        path);
  }
  return text;
}

std::string TextOf(const char* text, size_t most) { return {text, strnlen(text, most)}; }

}  // namespace

Result<CoreDump> OpenCoreDump(const std::string& path) {
  auto contents = std::make_shared<CoreContents>();
  contents->core = OpenRegular(path);
  if (contents->core == nullptr)
    return Status::FromErrno(errno != 0 ? errno : EINVAL, "open", Printable(path));
  Elf64_Ehdr header;
  if (!contents->core->ReadAt(0, &header, sizeof header) ||
      std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_type != ET_CORE)
    return Status::Corrupt(fmt::format("'{}' is no core dump", Printable(path)));
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != kMachine ||
      header.e_phentsize != sizeof(Elf64_Phdr))
    return Status::Corrupt(
        fmt::format("'{}' is the core dump of another machine, or of a 32-bit program: ask on such "
                    "a machine, with its files",
                    Printable(path)));
  uint64_t count = header.e_phnum;
  if (count == PN_XNUM) {  // then the number is in the first section header
    Elf64_Shdr section;
    if (!contents->core->ReadAt(header.e_shoff, &section, sizeof section))
      count = 0;
    else
      count = section.sh_info;
  }
  count = std::min<uint64_t>(count, kMostCoreSegments);
  CoreDump dump;
  std::vector<std::string>& warnings = dump.process.warnings;
  for (uint64_t i = 0; i < count; ++i) {
    Elf64_Phdr segment;
    if (!contents->core->ReadAt(header.e_phoff + i * sizeof segment, &segment, sizeof segment))
      break;
    if (segment.p_type == PT_NOTE && segment.p_filesz <= kMostNotes) {
      std::string notes(segment.p_filesz, '\0');
      if (contents->core->ReadAt(segment.p_offset, notes.data(), notes.size()))
        ForEachNote(notes, [&](std::string_view name, uint32_t type, std::string_view description) {
          if (name.starts_with("CORE")) TakeNote(type, description, contents.get());
        });
    }
    const uint64_t end = segment.p_vaddr + segment.p_memsz;
    if (segment.p_type == PT_LOAD && end > segment.p_vaddr &&
        (contents->segments.empty() || segment.p_vaddr >= contents->segments.back().end))
      contents->segments.push_back({segment.p_vaddr, end, segment.p_flags, segment.p_offset,
                                    std::min(segment.p_filesz, segment.p_memsz)});
  }
  if (contents->threads.empty())
    return Status::Corrupt(
        fmt::format("'{}' is a core dump without threads: it was cut short, or "
                    "is that of a kernel",
                    Printable(path)));
  struct stat about;
  const auto is_cut = [&](const Segment& segment) {
    return segment.kept > 0 && segment.offset + segment.kept > static_cast<uint64_t>(about.st_size);
  };
  if (fstat(contents->core->fd(), &about) == 0 &&
      std::any_of(contents->segments.begin(), contents->segments.end(), is_cut))
    warnings.push_back("the core dump was cut short: memory is missing (ulimit -c, a full disk)");
  OpenFiles(contents.get(), &warnings);
  AddLeftOut(contents.get());
  warnings.push_back(
      "a core dump does not tell what a process's files are, nor which signals it handles");

  KeptProcess& process = dump.process;
  const bool has_process = contents->has_process;
  process.pid = has_process ? contents->process.pr_pid : contents->threads[0].tid;
  const int parent = has_process ? contents->process.pr_ppid : 0;
  const std::string name =
      has_process ? TextOf(contents->process.pr_fname, sizeof contents->process.pr_fname) : "";
  const std::string folder = fmt::format("{}/", process.pid);
  process.texts[folder + "stat"] = StatText(process.pid, name, true, parent);
  process.texts[folder + "status"] = StatusText(process.pid, process.pid, contents->threads[0]);
  process.texts[folder + "maps"] = MappingsText(*contents);
  process.texts[folder + "cmdline"] =
      has_process ? TextOf(contents->process.pr_psargs, sizeof contents->process.pr_psargs) : "";
  for (const CoreThread& thread : contents->threads) {
    const CoreRegisters registers = RegistersOf(thread);
    const std::string task = fmt::format("{}task/{}/", folder, thread.tid);
    process.texts[task + "stat"] = StatText(thread.tid, thread.tid == process.pid ? name : "",
                                            registers.call.has_value(), parent);
    process.texts[task + "status"] = StatusText(process.pid, thread.tid, thread);
    process.texts[task + "syscall"] = SystemCallText(registers.call);
    process.registers[thread.tid] = registers.values;
  }
  process.read = [contents](uint64_t address, void* into, size_t bytes) {
    return contents->Read(address, into, bytes);
  };
  process.open_file = [contents](const std::string& file) {
    const auto known = contents->files.find(file);
    return known == contents->files.end() ? -1 : fcntl(known->second->fd(), F_DUPFD_CLOEXEC, 0);
  };
  const bool is_debuggers = contents->signal == SIGSTOP || contents->signal == SIGTRAP;
  dump.signal = is_debuggers ? 0 : contents->signal;
  dump.signalled = contents->threads[0].tid;
  return dump;
}

}  // namespace hangscope
