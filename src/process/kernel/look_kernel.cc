// ProcessLook's threads that sleep in the kernel for what it tells by where they sleep: opens of
// named pipes, transfers between pipes, pages; and the requests of rings.
#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>

#include "code/call_depth.h"
#include "process/process_look.h"

namespace hangscope {
namespace {

// What its paths lead to, the same paths below /proc lead this process to.
bool SeesSameFiles(const ProcFolder& proc, int pid) {
  for (const char* what : {"root", "ns/mnt"}) {
    const auto its = proc.Link(fmt::format("{}/{}", pid, what));
    if (!its || its != proc.Link(fmt::format("self/{}", what))) return false;
  }
  return true;
}

// What such a path leads to depends on who asks: /proc/self/fd/3, /dev/fd/3, /dev/stdin.
bool IsOfWhoAsks(const std::string& name) {
  return name.starts_with("/proc/") || name.starts_with("/dev/");
}

// There is no such name any more. *unsure: a named pipe beside it may be the same under a new one.
bool IsGone(const std::string& path, bool* unsure) {
  constexpr int kMost = 4096;  // names in the folder
  struct stat about = {};
  if (lstat(path.c_str(), &about) == 0 || errno != ENOENT) return false;
  DIR* const folder = opendir(path.substr(0, path.rfind('/') + 1).c_str());
  *unsure = folder == nullptr;
  int names = 0;
  for (dirent* entry; folder != nullptr && (entry = readdir(folder)) != nullptr;)
    *unsure = *unsure || entry->d_type == DT_FIFO || entry->d_type == DT_UNKNOWN || ++names > kMost;
  if (folder != nullptr) closedir(folder);
  return true;
}

bool IsOfTheCLibrary(const std::string& path) {
  const std::string file = path.substr(path.rfind('/') + 1);
  return file.starts_with("libc.so") || file.starts_with("ld-") || file.starts_with("libpthread");
}

// An address that code puts into a register, and where the next instruction is.
struct LoadedAddress {
  uint64_t address = 0;
  uint64_t next = 0;
};

// Those of texts, in code of x86-64: lea DISTANCE(%rip), REGISTER and mov $ADDRESS, REGISTER.
std::vector<LoadedAddress> AddressesIn(const std::string& code, uint64_t begin) {
  constexpr size_t kLeaBytes = 7;
  constexpr size_t kMoveBytes = 5;
  std::vector<LoadedAddress> addresses;
  const auto byte = [&](size_t at) { return static_cast<uint8_t>(code[at]); };
  for (size_t i = 0; i < code.size(); ++i) {
    int32_t value = 0;
    if (i + kLeaBytes <= code.size() && (byte(i) & 0xfb) == 0x48 && byte(i + 1) == 0x8d &&
        (byte(i + 2) & 0xc7) == 0x05) {
      std::memcpy(&value, code.data() + i + 3, sizeof value);
      const uint64_t next = begin + i + kLeaBytes;
      addresses.push_back({next + static_cast<uint64_t>(int64_t{value}), next});
    }
    if (i + kMoveBytes <= code.size() && (byte(i) & 0xf8) == 0xb8) {
      std::memcpy(&value, code.data() + i + 1, sizeof value);
      if (value > 0) addresses.push_back({static_cast<uint64_t>(value), begin + i + kMoveBytes});
    }
  }
  return addresses;
}

}  // namespace

// To open a named pipe waits until somebody has its other end open.
void ProcessLook::ExplainOpen(int tid, const TaskSystemCall& call, ThreadWait* wait) {
  size_t at = 1;  // of the path, among the arguments; the flags are next to it
#if defined(__x86_64__)
  if (call.number == SYS_open) at = 0;
  if (call.number != SYS_open && call.number != SYS_openat) return;
#else
  if (call.number != SYS_openat) return;
#endif
  const std::string bytes = memory_.ReadUpTo(call.arguments[at], PATH_MAX);
  const std::string name = bytes.substr(0, bytes.find('\0'));
  if (name.empty() || name.size() == bytes.size()) return;
  // Who serves another file may be what hangs, and would keep whoever asks for its kind as well.
  const std::string where = KernelFunctionOf(tid);
  const bool may =
      where.empty() || where.starts_with("wait_for_partner") || where.starts_with("fifo_open");
  if (!may) return;
  const int folder = static_cast<int>(call.arguments[0]);
  const std::string from = name[0] == '/'                  ? "root"
                           : at == 0 || folder == AT_FDCWD ? "cwd"
                                                           : fmt::format("fd/{}", folder);
  const std::string path = fmt::format("{}/{}/{}", living_, from, name);
  const auto identity = context_.proc.Identify(path);
  WaitFile file;
  file.kind = FileKind::kPipe;
  file.name = name;
  file.wants_read = (call.arguments[at + 1] & O_ACCMODE) != O_WRONLY;
  if (identity && identity->is_fifo) {
    file.others_unknown = true;  // whoever knows the name
  } else if (!identity && !where.empty() && !IsOfWhoAsks(name) &&
             SeesSameFiles(context_.proc, living_) &&
             IsGone(context_.proc.Path(path), &file.others_unsure)) {
    file.name += " (deleted)";
    // Who has it open without reading or writing it (O_PATH) can open it once more.
    const std::string folder_name =
        context_.proc.Link(fmt::format("{}/{}", living_, from)).value_or("");
    const std::string whole = name[0] == '/' ? file.name : folder_name + "/" + file.name;
    file.others_unsure = file.others_unsure || context_.files.IsOpen(whole);
  } else {
    return;
  }
  wait->kind = WaitKind::kOpen;
  wait->files = {file};
}

// Who opens a named pipe that `other` will open, too, waits for that one, if for anybody.
void ProcessLook::FindOpeners(ProcessLook& other) {
  for (ThreadFacts& thread : facts_.threads) {
    if (thread.wait.kind != WaitKind::kOpen || !IsNamedPipe(thread.wait.files[0])) continue;
    WaitFile& file = thread.wait.files[0];
    const auto cwd = context_.proc.Link(fmt::format("{}/cwd", pid_));
    if (!SeesSameFiles(context_.proc, pid_) || !SeesSameFiles(context_.proc, other.pid_)) return;
    const bool is_one_name = file.name.starts_with('/') ||
                             (cwd && cwd == context_.proc.Link(fmt::format("{}/cwd", other.pid_)));
    if (!is_one_name || !other.OpensLater(file)) continue;
    file.others.emplace_back(other.pid_, -1);
    file.is_public = true;
  }
}

// The first call of the code at `begin` is one of a function that opens something, by its name.
bool ProcessLook::CallsAnOpen(uint64_t begin) {
  constexpr uint64_t kMostBytes = 48;
  constexpr uint64_t kShortestCall = 2;
  for (uint64_t back = begin + kShortestCall; back < begin + kMostBytes; ++back) {
    const uint64_t target = TargetOfCall(back, read_memory_).address;
    const auto function = target != 0 ? walker_->FunctionAt(target) : std::nullopt;
    if (!function || function->begin != target) continue;
    return function->name.find("open") != std::string::npos ||
           function->name.find("Open") != std::string::npos;
  }
  return false;
}

// One of its threads is in a function whose code opens a file of this name further on, or its
// script does.
bool ProcessLook::OpensLater(const WaitFile& wanted) {
  constexpr size_t kMostPlaces = 12;
  constexpr size_t kMostCode = 16 << 10;
  constexpr size_t kMostLooked = 64;  // threads
  if (walker_ == nullptr) return false;
  if (ScriptOpensLater(wanted)) return true;
  const std::string& text = wanted.name;
  for (size_t each = 0; each < std::min(work_.size(), kMostLooked); ++each) {
    const Work& work = work_[each];
    for (size_t i = 0; i < std::min(work.places.size(), kMostPlaces); ++i) {
      const uint64_t from = work.places[i].pc + 1;
      const MemoryMapping* const mapping = FindMapping(mappings_, from);
      const auto function = walker_->FunctionAt(work.places[i].pc);
      if (mapping == nullptr || !function || IsOfTheCLibrary(mapping->path)) continue;
      const uint64_t end = function->begin + function->bytes;
      if (end <= from || end - from > kMostCode) continue;
      const std::string code = memory_.ReadUpTo(from, static_cast<size_t>(end - from));
      for (const LoadedAddress& loaded : AddressesIn(code, from)) {
        const std::string there = memory_.ReadUpTo(loaded.address, text.size() + 1);
        if (there.size() == text.size() + 1 && there.starts_with(text) && there.back() == '\0' &&
            CallsAnOpen(loaded.next))
          return true;
      }
    }
  }
  return false;
}

// Data on its way from a pipe to a pipe, or to or from memory: which end is waited for the kernel
// tells by where it sleeps.
void ProcessLook::ExplainTransfer(const Work& work, ThreadWait* wait) {
  const std::string where = KernelFunctionOf(work.raw.tid);
  CallMeaning meaning = work.meaning;
  if (where.starts_with("pipe_wait_readable") && meaning.moves->from >= 0)
    meaning.kind = WaitKind::kRead, meaning.files = {{meaning.moves->from, true}};
  else if (where.starts_with("pipe_wait_writable") && meaning.moves->to >= 0)
    meaning.kind = WaitKind::kWrite, meaning.files = {{meaning.moves->to, false}};
  else
    return;
  const std::string target = fmt::format("{}/fd/{}", living_, meaning.files[0].fd);
  const auto identity = context_.proc.Identify(target);
  if (!identity || !identity->is_fifo) return;
  wait->kind = meaning.kind;
  ExplainFiles(meaning, wait);
}

// It is in no system call: it touched a page.
void ProcessLook::ExplainFault(const Work& work, ThreadWait* wait) {
  if (!work.raw.IsBlocked() || work.raw.call->number >= 0 ||
      !KernelFunctionOf(work.raw.tid).starts_with("handle_userfault"))
    return;
  wait->kind = WaitKind::kRead;
  wait->files = {context_.files.DescribeFault(living_)};
  for (const auto& [process, fd] : wait->files[0].others) leads_to_.insert(process);
}

// Of a ring that has been given requests: their files, where they can be known.
void ProcessLook::ExplainRing(int ring, ThreadWait* wait) {
  const auto requests = context_.files.RequestsOf(living_, ring, mappings_);
  if (!requests || requests->empty()) return;
  std::vector<WaitFile> files;
  for (const RingRequest& request : *requests)
    files.push_back(context_.files.Describe(living_, request.fd, request.reads));
  wait->kind = files.size() > 1          ? WaitKind::kPoll
               : files[0].listening      ? WaitKind::kAccept
               : requests->front().reads ? WaitKind::kRead
                                         : WaitKind::kWrite;
  wait->files = std::move(files);
}

}  // namespace hangscope
