#include "proc/proc_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

#include "base/numbers.h"

namespace hangscope {
namespace {

// of one file; a process with a million mappings has that many
constexpr size_t kMostText = 64u << 20;

}  // namespace

std::vector<int> ProcFolder::Numbers(const std::string& folder, int* error) const {
  std::vector<int> numbers;
  if (texts_ != nullptr) {
    const std::string prefix = folder.empty() ? "" : folder + "/";
    for (auto at = texts_->lower_bound(prefix); at != texts_->end(); ++at) {
      if (!at->first.starts_with(prefix)) break;
      const std::string rest = at->first.substr(prefix.size());
      const auto number = ParseWhole<int>(rest.substr(0, rest.find('/')));
      if (number) numbers.push_back(*number);
    }
    std::sort(numbers.begin(), numbers.end());
    numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
    return numbers;
  }
  DIR* const list = opendir(Path(folder).c_str());
  if (list == nullptr) {
    if (error != nullptr) *error = errno;
    return numbers;
  }
  while (const dirent* entry = readdir(list)) {
    if (const auto number = ParseWhole<int>(entry->d_name)) numbers.push_back(*number);
  }
  closedir(list);
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

std::vector<int> ProcFolder::Processes() const { return Numbers("", nullptr); }

std::vector<int> ProcFolder::Threads(int pid) const {
  return Numbers(fmt::format("{}/task", pid), nullptr);
}

std::optional<std::string> ProcFolder::Read(const std::string& path, int* error) const {
  return ReadFile(path, false, error);
}

std::optional<std::string> ProcFolder::ReadRecord(const std::string& path, int* error) const {
  return ReadFile(path, true, error);
}

std::optional<std::string> ProcFolder::ReadFile(const std::string& path, bool in_one,
                                                int* error) const {
  if (texts_ != nullptr) {
    const auto known = texts_->find(path);
    if (known != texts_->end()) return known->second;
    if (error != nullptr) *error = ENOENT;
    return std::nullopt;
  }
  const int fd = open(Path(path).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    if (error != nullptr) *error = errno;
    return std::nullopt;
  }
  std::string text;
  char buffer[16384];
  ssize_t got = 0;
  while ((got = read(fd, buffer, sizeof buffer)) > 0 && text.size() < kMostText) {
    text.append(buffer, static_cast<size_t>(got));
    if (in_one && static_cast<size_t>(got) < sizeof buffer) break;
  }
  if (got < 0 && error != nullptr) *error = errno;
  close(fd);
  if (got < 0) return std::nullopt;
  return text;
}

std::optional<std::string> ProcFolder::Link(const std::string& path) const {
  if (texts_ != nullptr) return std::nullopt;
  char target[PATH_MAX];
  const ssize_t got = readlink(Path(path).c_str(), target, sizeof target);
  if (got < 0) return std::nullopt;
  return std::string(target, static_cast<size_t>(got));
}

std::optional<ProcFolder::FileIdentity> ProcFolder::Identify(const std::string& path) const {
  if (texts_ != nullptr) return std::nullopt;
  // What the kernel knows of it: who serves its file system may be what hangs.
  struct statx about;
  if (statx(AT_FDCWD, Path(path).c_str(), AT_STATX_DONT_SYNC, STATX_TYPE | STATX_INO, &about) != 0)
    return std::nullopt;
  return FileIdentity{fmt::format("{:02x}:{:02x}", about.stx_dev_major, about.stx_dev_minor),
                      about.stx_ino, S_ISFIFO(about.stx_mode), S_ISCHR(about.stx_mode),
                      S_ISREG(about.stx_mode)};
}

std::vector<DescriptorLink> ProcFolder::Descriptors(int pid, int* error) const {
  const std::string folder = fmt::format("{}/fd", pid);
  std::vector<DescriptorLink> links;
  for (const int fd : Numbers(folder, error)) {
    auto target = Link(fmt::format("{}/{}", folder, fd));
    if (target) links.push_back({fd, std::move(*target)});
  }
  return links;
}

// Where a PID namespace was made without a /proc of its own, its numbers mean other processes.
std::string ProcFolder::WhyBlind() const {
  if (texts_ != nullptr) return {};
  const auto self = Link("self");
  if (self && ParseWhole<int>(*self) == getpid()) return {};
  return self || !Processes().empty()
             ? "/proc shows the processes of another PID namespace: mount one of this"
             : "/proc shows no processes: mount it";
}

std::optional<TaskStat> ProcFolder::Stat(int pid) const {
  const auto text = Read(fmt::format("{}/stat", pid));
  return text ? ParseTaskStat(*text) : std::nullopt;
}

std::optional<bool> ProcFolder::IsInFirstPidNamespace() const {
  constexpr std::string_view kFirst = "pid:[4026531836]";  // PROC_PID_INIT_INO, of every kernel
  const auto own = Link("self/ns/pid");
  return own ? std::optional<bool>(*own == kFirst) : std::nullopt;
}

std::string ProcFolder::CommandLine(int pid) const {
  constexpr size_t kMostCommand = 4096;
  std::string text = Read(fmt::format("{}/cmdline", pid)).value_or("");
  while (!text.empty() && text.back() == '\0') text.pop_back();
  if (text.size() > kMostCommand) text.resize(kMostCommand);
  std::replace(text.begin(), text.end(), '\0', ' ');
  return text;
}

}  // namespace hangscope
