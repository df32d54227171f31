#include "target/process_target.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>

#include "proc/process_end.h"
#include "target/process_maps.h"
#include "target/target_spec.h"

namespace hangscope {
namespace {

// What the kernel appends to the path of a file that was removed meanwhile.
constexpr std::string_view kDeleted = " (deleted)";

bool IsScopeFile(std::string_view path) {
  if (path.ends_with(kDeleted)) path.remove_suffix(kDeleted.size());
  return path.ends_with(".scope");
}

// Through the mapping, which is right whatever has become of the name; that takes rights the path
// may do without.
Result<std::unique_ptr<File>> OpenMapped(FileSystem& files, int pid, const MemoryMapping& mapping) {
  const std::string link =
      fmt::format("/proc/{}/map_files/{:x}-{:x}", pid, mapping.begin, mapping.end);
  for (const FileSystem::Mode mode : {FileSystem::Mode::kReadWrite, FileSystem::Mode::kRead}) {
    if (auto file = files.Open(link, mode); file.ok()) return file;
  }
  if (auto file = files.Open(mapping.path, FileSystem::Mode::kReadWrite); file.ok()) return file;
  return files.Open(mapping.path, FileSystem::Mode::kRead);
}

std::string RealPath(const std::string& path) {
  char* const real = realpath(path.c_str(), nullptr);
  std::string text = real != nullptr ? real : path;
  free(real);
  return text;
}

Status NotThere(int pid, const Status& why) {
  return Status::NotFound(
      fmt::format("there is no process {} that may be looked into: {}", pid, why.message()));
}

// Neighbours are one range: a scope may lie across them.
std::vector<MemoryRange> ReadableRanges(const std::vector<MemoryMapping>& mappings) {
  std::vector<MemoryRange> ranges;
  for (const MemoryMapping& mapping : mappings) {
    if (!mapping.readable) continue;
    const bool goes_on =
        !ranges.empty() && ranges.back().begin + ranges.back().size_bytes == mapping.begin;
    if (goes_on)
      ranges.back().size_bytes += mapping.size_bytes();
    else
      ranges.push_back({mapping.begin, mapping.size_bytes()});
  }
  return ranges;
}

}  // namespace

Result<std::unique_ptr<Target>> ProcessTarget::Open(FileSystem& files, int pid,
                                                    const TargetOptions& options) {
  std::unique_ptr<ProcessTarget> target(new ProcessTarget(pid, fmt::format("process {}", pid)));
  auto mappings = ReadMappings(files, pid);
  if (!mappings.ok()) return NotThere(pid, mappings.status());
  for (const MemoryMapping& mapping : *mappings) {
    if (!IsScopeFile(mapping.path)) continue;
    auto file = OpenMapped(files, pid, mapping);
    if (!file.ok()) return file.status();
    auto size = (*file)->Size();
    if (!size.ok()) return size.status();
    target->file_ = std::move(*file);
    target->ranges_ = {{0, *size}};
    return std::unique_ptr<Target>(std::move(target));
  }
  if (!options.symbol) {
    return Status::NotFound(fmt::format(
        "process {} has no file mapped whose name ends in .scope{}", pid,
        options.elf_path.empty()
            ? ", and without --elf its memory cannot be searched for one"
            : fmt::format(", and '{}' has no symbol hangscope_scope", options.elf_path)));
  }
  const std::string program = RealPath(options.elf_path);
  const auto first = std::find_if(mappings->begin(), mappings->end(),
                                  [&](const MemoryMapping& m) { return m.path == program; });
  // A simulator may have its file mapped, too, to load it.
  const bool runs_it = std::any_of(
      mappings->begin(), mappings->end(),
      [&](const MemoryMapping& mapping) { return mapping.path == program && mapping.executable; });
  target->may_simulate_ = !runs_it && !options.elf_moves;
  if (options.elf_moves) {
    if (first == mappings->end())
      return Status::NotFound(fmt::format("process {} does not run '{}'", pid, options.elf_path));
    constexpr uint64_t kPage = 4096;
    target->moved_by_ = first->begin - options.elf_first_address / kPage * kPage;
  }
  target->ranges_ = ReadableRanges(*mappings);
  return std::unique_ptr<Target>(std::move(target));
}

Result<std::unique_ptr<Target>> ProcessTarget::OpenAt(FileSystem& files, int pid,
                                                      uint64_t address) {
  auto mappings = ReadMappings(files, pid);
  if (!mappings.ok()) return NotThere(pid, mappings.status());
  std::unique_ptr<ProcessTarget> target(new ProcessTarget(pid, fmt::format("process {}", pid)));
  target->guest_scope_ = address;
  target->ranges_ = ReadableRanges(*mappings);
  return std::unique_ptr<Target>(std::move(target));
}

std::string ProcessTarget::guest_spec() const {
  return guest_scope_ ? GuestSpec(pid_, *guest_scope_) : std::string();
}

std::optional<uint64_t> ProcessTarget::scope_address() const {
  if (file_ != nullptr) return 0;
  return guest_scope_;
}

std::optional<uint64_t> ProcessTarget::AddressOf(uint64_t elf_address) const {
  if (file_ != nullptr || guest_scope_) return std::nullopt;
  return elf_address + moved_by_;
}

// What a guest runs, its simulator does not tell.
std::string ProcessTarget::elf_path() const {
  return guest_scope_ ? std::string() : fmt::format("/proc/{}/exe", pid_);
}

// A zombie has a number, and is dead. One whose first thread alone has ended looks like a zombie,
// and lives.
Life LifeOfProcess(int pid) {
  if (const auto end = ProcessEnd::Watch(pid)) return end->HasEnded() ? Life::kDead : Life::kLive;
  return kill(pid, 0) == 0 || errno == EPERM ? Life::kLive : Life::kDead;
}

Life ProcessTarget::life() { return LifeOfProcess(pid_); }

Status ProcessTarget::Read(uint64_t address, std::span<char> bytes) {
  if (Status status = CheckRange(address, bytes.size()); !status.ok()) return status;
  if (file_ != nullptr) {
    auto got = file_->ReadAt(address, bytes);
    if (!got.ok()) return got.status();
    return *got == bytes.size() ? Status() : Status::Io(name_ + "'s scope file has become shorter");
  }
  for (size_t done = 0; done < bytes.size();) {
    const iovec local = {bytes.data() + done, bytes.size() - done};
    const iovec remote = {reinterpret_cast<void*>(address + done), bytes.size() - done};
    const ssize_t got = process_vm_readv(pid_, &local, 1, &remote, 1, 0);
    if (got <= 0) return Status::FromErrno(got < 0 ? errno : EFAULT, "read the memory of", name_);
    done += static_cast<size_t>(got);
  }
  return {};
}

Status ProcessTarget::Write(uint64_t address, std::string_view bytes) {
  if (Status status = CheckRange(address, bytes.size()); !status.ok()) return status;
  if (file_ != nullptr) {
    size_t written = 0;
    return file_->WriteAt(address, bytes, &written);
  }
  const iovec local = {const_cast<char*>(bytes.data()), bytes.size()};
  const iovec remote = {reinterpret_cast<void*>(address), bytes.size()};
  if (process_vm_writev(pid_, &local, 1, &remote, 1, 0) == static_cast<ssize_t>(bytes.size()))
    return {};
  return Status::FromErrno(errno, "write the memory of", name_);
}

}  // namespace hangscope
