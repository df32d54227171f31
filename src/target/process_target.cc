#include "target/process_target.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstdlib>

#include "proc/process_end.h"

namespace hangscope {
namespace {

struct Mapping {
  uint64_t begin = 0;
  uint64_t end = 0;
  bool readable = false;
  std::string path;
  std::string range;  // as in /proc/PID/map_files
};

// "55d0-55e0 r-xp 00000000 08:01 42    /usr/bin/x"
std::optional<Mapping> ParseMapping(std::string_view line) {
  Mapping mapping;
  const char* end = line.data() + line.size();
  auto first = std::from_chars(line.data(), end, mapping.begin, 16);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != '-') return std::nullopt;
  auto second = std::from_chars(first.ptr + 1, end, mapping.end, 16);
  if (second.ec != std::errc() || mapping.end <= mapping.begin) return std::nullopt;
  const size_t range_end = static_cast<size_t>(second.ptr - line.data());
  mapping.range = line.substr(0, range_end);
  mapping.readable = range_end + 1 < line.size() && line[range_end + 1] == 'r';
  if (const size_t slash = line.find('/'); slash != std::string_view::npos)
    mapping.path = line.substr(slash);
  return mapping;
}

Result<std::vector<Mapping>> Mappings(FileSystem& files, int pid) {
  auto text = ReadWholeFile(files, fmt::format("/proc/{}/maps", pid));
  if (!text.ok()) return text.status();
  std::vector<Mapping> mappings;
  for (std::string_view rest = *text; !rest.empty();) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    if (auto mapping = ParseMapping(rest.substr(0, end))) mappings.push_back(std::move(*mapping));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return mappings;
}

// What the kernel appends to the path of a file that was removed meanwhile.
constexpr std::string_view kDeleted = " (deleted)";

bool IsScopeFile(std::string_view path) {
  if (path.ends_with(kDeleted)) path.remove_suffix(kDeleted.size());
  return path.ends_with(".scope");
}

// Through the mapping, which is right whatever has become of the name; that takes rights the path
// may do without.
Result<std::unique_ptr<File>> OpenMapped(FileSystem& files, int pid, const Mapping& mapping) {
  const std::string link = fmt::format("/proc/{}/map_files/{}", pid, mapping.range);
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

}  // namespace

Result<std::unique_ptr<Target>> ProcessTarget::Open(FileSystem& files, int pid,
                                                    const TargetOptions& options) {
  std::unique_ptr<ProcessTarget> target(new ProcessTarget(pid, fmt::format("process {}", pid)));
  auto mappings = Mappings(files, pid);
  if (!mappings.ok()) {
    return Status::NotFound(fmt::format("there is no process {} that may be looked into: {}", pid,
                                        mappings.status().message()));
  }
  for (const Mapping& mapping : *mappings) {
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
                                  [&](const Mapping& m) { return m.path == program; });
  if (options.elf_moves) {
    if (first == mappings->end())
      return Status::NotFound(fmt::format("process {} does not run '{}'", pid, options.elf_path));
    constexpr uint64_t kPage = 4096;
    target->moved_by_ = first->begin - options.elf_first_address / kPage * kPage;
  }
  for (const Mapping& mapping : *mappings) {
    if (!mapping.readable) continue;
    // Neighbours are one range: a scope may lie across them.
    if (!target->ranges_.empty() &&
        target->ranges_.back().begin + target->ranges_.back().size_bytes == mapping.begin) {
      target->ranges_.back().size_bytes += mapping.end - mapping.begin;
    } else {
      target->ranges_.push_back({mapping.begin, mapping.end - mapping.begin});
    }
  }
  return std::unique_ptr<Target>(std::move(target));
}

std::optional<uint64_t> ProcessTarget::scope_address() const {
  if (file_ != nullptr) return 0;
  return std::nullopt;
}

std::optional<uint64_t> ProcessTarget::AddressOf(uint64_t elf_address) const {
  if (file_ != nullptr) return std::nullopt;
  return elf_address + moved_by_;
}

std::string ProcessTarget::elf_path() const { return fmt::format("/proc/{}/exe", pid_); }

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
