#include "proc/proc_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace hangscope {
namespace {

constexpr uint64_t kKernelThreadFlag = 0x200000;  // PF_KTHREAD, since Linux 2.6.17
constexpr size_t kMostLines = 1 << 20;

// Cuts `text` into its parts between `separator`, empty ones left out.
std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty() && parts.size() < kMostLines) {
    const size_t end = std::min(text.find(separator), text.size());
    if (end > 0) parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

std::vector<std::string_view> Words(std::string_view line) {
  std::vector<std::string_view> words;
  for (std::string_view part : Split(line, ' ')) {
    while (!part.empty() && (part.front() == '\t' || part.front() == '\n')) part.remove_prefix(1);
    while (!part.empty() && (part.back() == '\t' || part.back() == '\n')) part.remove_suffix(1);
    if (!part.empty()) words.push_back(part);
  }
  return words;
}

// All of `text` is the number.
template <typename Number>
std::optional<Number> ParseNumber(std::string_view text, int base = 10) {
  if (base == 16 && text.starts_with("0x")) text.remove_prefix(2);
  Number number = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (result.ec != std::errc() || result.ptr != text.data() + text.size()) return std::nullopt;
  return number;
}

ThreadState StateOfLetter(char letter) {
  switch (letter) {
    case 'R':
      return ThreadState::kRunning;
    case 'S':
      return ThreadState::kSleeping;
    case 'I':
      return ThreadState::kSleeping;  // an idle thread of the kernel
    case 'D':
      return ThreadState::kDiskSleep;
    case 'T':
      return ThreadState::kStopped;
    case 't':
      return ThreadState::kTraced;
    case 'Z':
      return ThreadState::kZombie;
    case 'X':
      return ThreadState::kDead;
    default:
      return ThreadState::kUnknown;
  }
}

// What follows "KEY:" on a line of its own.
std::string_view LineOf(std::string_view text, std::string_view key) {
  for (size_t at = 0; (at = text.find(key, at)) != std::string_view::npos; at += key.size()) {
    if (at != 0 && text[at - 1] != '\n') continue;
    const std::string_view line =
        text.substr(at + key.size(), std::min(text.find('\n', at), text.size()) -
                                         std::min(at + key.size(), text.size()));
    const size_t colon = line.find_first_not_of(" \t");
    if (colon != std::string_view::npos && line[colon] == ':') return line.substr(colon + 1);
  }
  return {};
}

std::string_view ValueOf(std::string_view text, std::string_view key) {
  const auto words = Words(LineOf(text, key));
  return words.empty() ? std::string_view() : words.front();
}

std::vector<int> NumbersOf(std::string_view text, std::string_view key) {
  std::string line(LineOf(text, key));
  std::replace(line.begin(), line.end(), '\t', ' ');
  std::vector<int> numbers;
  for (const std::string_view word : Words(line))
    numbers.push_back(ParseNumber<int>(word).value_or(0));
  return numbers;
}

template <typename Number>
Number NumberOf(std::string_view text, std::string_view key, int base, Number otherwise) {
  return ParseNumber<Number>(ValueOf(text, key), base).value_or(otherwise);
}

// Since Linux 5.10; what waits for a file, where the kernel could look at that (5.2).
std::optional<RingCounts> ParseRingCounts(std::string_view text) {
  if (ValueOf(text, "CachedSqHead").empty()) return std::nullopt;
  RingCounts ring;
  ring.inode = NumberOf<uint64_t>(text, "ino", 10, 0);
  ring.entries = NumberOf<uint64_t>(text, "SqMask", 16, 0) + 1;
  ring.taken = NumberOf<uint64_t>(text, "CachedSqHead", 10, 0);
  ring.offered = NumberOf<uint64_t>(text, "SqTail", 10, 0);
  ring.completed = NumberOf<uint64_t>(text, "CachedCqTail", 10, 0);
  ring.has_kernel_thread = ParseNumber<int>(ValueOf(text, "SqThread")).value_or(-1) >= 0;
  constexpr std::string_view kOperation = "  op=";
  for (const std::string_view line : Split(text, '\n')) {
    if (line.starts_with("PollList:")) ring.is_whole = true;
    if (!ring.is_whole || !line.starts_with(kOperation)) continue;
    const std::string_view number = line.substr(kOperation.size());
    ring.polled.push_back(ParseNumber<int>(number.substr(0, number.find(','))).value_or(-1));
  }
  return ring;
}

}  // namespace

std::optional<TaskStat> ParseTaskStat(std::string_view text) {
  // "42 (a name) may contain (anything)) S 1 ...": the last ')' ends it.
  const size_t open = text.find('(');
  const size_t close = text.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open)
    return std::nullopt;
  const auto before = Words(text.substr(0, open));
  const auto after = Words(text.substr(close + 1));
  constexpr size_t kTicks = 11;  // utime, stime, cutime, cstime
  constexpr size_t kStackBegin = 25;
  constexpr size_t kStart = 19;
  constexpr size_t kCpu = 36;
  constexpr size_t kWaitStatus = 49;
  if (before.size() != 1 || after.size() < 7 || after[0].size() != 1) return std::nullopt;
  const auto id = ParseNumber<int>(before[0]);
  const auto parent = ParseNumber<int>(after[1]);
  const auto group = ParseNumber<int>(after[2]);
  if (!id || !parent || !group) return std::nullopt;
  TaskStat stat;
  stat.id = *id;
  stat.name = text.substr(open + 1, close - open - 1);
  stat.state = StateOfLetter(after[0][0]);
  stat.parent = *parent;
  stat.group = *group;
  stat.terminal = ParseNumber<int>(after[4]).value_or(0);
  stat.foreground = ParseNumber<int>(after[5]).value_or(0);
  stat.kernel_thread = (ParseNumber<uint64_t>(after[6]).value_or(0) & kKernelThreadFlag) != 0;
  for (size_t i = kTicks; i < kTicks + 4 && i < after.size(); ++i)
    stat.cpu_ticks += ParseNumber<uint64_t>(after[i]).value_or(0);
  if (after.size() > kStackBegin)
    stat.stack_begin = ParseNumber<uint64_t>(after[kStackBegin]).value_or(0);
  if (after.size() > kStart) stat.start_ticks = ParseNumber<uint64_t>(after[kStart]).value_or(0);
  if (after.size() > kCpu) stat.cpu = ParseNumber<int>(after[kCpu]).value_or(-1);
  if (after.size() > kWaitStatus)
    stat.wait_status = ParseNumber<int>(after[kWaitStatus]).value_or(0);
  return stat;
}

std::optional<TaskStatus> ParseTaskStatus(std::string_view text) {
  const auto voluntary = ParseNumber<uint64_t>(ValueOf(text, "voluntary_ctxt_switches"));
  if (!voluntary) return std::nullopt;
  TaskStatus status;
  status.voluntary_switches = *voluntary;
  status.involuntary_switches = NumberOf<uint64_t>(text, "nonvoluntary_ctxt_switches", 10, 0);
  status.process = NumberOf<int>(text, "Tgid", 10, 0);
  status.tracer = NumberOf<int>(text, "TracerPid", 10, 0);
  constexpr int kFilter = 2;  // SECCOMP_MODE_FILTER
  status.has_call_filter = NumberOf<int>(text, "Seccomp", 10, 0) == kFilter;
  status.blocked_signals = NumberOf<uint64_t>(text, "SigBlk", 16, 0);
  status.ignored_signals = NumberOf<uint64_t>(text, "SigIgn", 16, 0);
  status.caught_signals = NumberOf<uint64_t>(text, "SigCgt", 16, 0);
  const std::vector<int> users = NumbersOf(text, "Uid");
  if (users.size() > 1) status.user = users[1];
  // From the outermost namespace to the innermost.
  const std::vector<int> ids = NumbersOf(text, "NSpid");
  if (!ids.empty()) status.inner_id = ids.back();
  return status;
}

bool operator==(const TaskSystemCall& a, const TaskSystemCall& b) {
  return a.running == b.running && a.number == b.number && a.arguments == b.arguments &&
         a.stack_pointer == b.stack_pointer && a.pc == b.pc;
}

std::optional<TaskSystemCall> ParseTaskSystemCall(std::string_view text) {
  const auto words = Words(text);
  TaskSystemCall call;
  if (words.size() == 1 && words[0] == "running") {
    call.running = true;
    return call;
  }
  if (words.size() != 3 && words.size() != 9) return std::nullopt;
  const auto number = ParseNumber<int>(words[0]);
  const auto stack_pointer = ParseNumber<uint64_t>(words[words.size() - 2], 16);
  const auto pc = ParseNumber<uint64_t>(words.back(), 16);
  if (!number || !stack_pointer || !pc) return std::nullopt;
  call.number = *number;
  call.stack_pointer = *stack_pointer;
  call.pc = *pc;
  for (size_t i = 0; words.size() == 9 && i < call.arguments.size(); ++i) {
    const auto argument = ParseNumber<uint64_t>(words[i + 1], 16);
    if (!argument) return std::nullopt;
    call.arguments[i] = *argument;
  }
  return call;
}

std::optional<TimeNs> ParseLastRan(std::string_view text) {
  // Milliseconds with six digits behind the point, in which a double would lose the last ones after
  // months.
  const std::string_view value = ValueOf(text, "se.exec_start");
  const size_t point = value.find('.');
  if (point == std::string_view::npos || value.size() - point != 7) return std::nullopt;
  const auto whole = ParseNumber<TimeNs>(value.substr(0, point));
  const auto rest = ParseNumber<TimeNs>(value.substr(point + 1));
  constexpr TimeNs kMost = INT64_MAX / kMillisecond - 1;
  if (!whole || !rest || *whole < 0 || *whole > kMost) return std::nullopt;
  // Linux 6.12 and later has 0 for some that went to another processor while they slept.
  if (*whole == 0 && *rest == 0) return std::nullopt;
  return *whole * kMillisecond + *rest;
}

std::optional<TaskRunTime> ParseTaskRunTime(std::string_view text) {
  const auto words = Words(text);
  if (words.size() < 2) return std::nullopt;
  const auto ran = ParseNumber<TimeNs>(words[0]);
  const auto wanted = ParseNumber<TimeNs>(words[1]);
  if (!ran || !wanted) return std::nullopt;
  return TaskRunTime{*ran, *wanted};
}

namespace {

std::optional<MemoryMapping> ParseMapping(std::string_view line) {
  // "55d0-55e0 r-xp 00000000 08:01 42    /usr/bin/x y"
  const auto words = Words(line);
  if (words.size() < 5 || words[1].size() != 4) return std::nullopt;
  const size_t dash = words[0].find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const auto begin = ParseNumber<uint64_t>(words[0].substr(0, dash), 16);
  const auto end = ParseNumber<uint64_t>(words[0].substr(dash + 1), 16);
  const auto offset = ParseNumber<uint64_t>(words[2], 16);
  const auto inode = ParseNumber<uint64_t>(words[4]);
  if (!begin || !end || !offset || !inode || *end <= *begin) return std::nullopt;
  MemoryMapping mapping;
  mapping.begin = *begin;
  mapping.end = *end;
  mapping.readable = words[1][0] == 'r';
  mapping.writable = words[1][1] == 'w';
  mapping.executable = words[1][2] == 'x';
  mapping.shared = words[1][3] == 's';
  mapping.file_offset = *offset;
  mapping.device = words[3];
  mapping.inode = *inode;
  if (words.size() > 5)
    mapping.path = line.substr(static_cast<size_t>(words[5].data() - line.data()));
  return mapping;
}

}  // namespace

std::vector<MemoryMapping> ParseMemoryMappings(std::string_view text) {
  std::vector<MemoryMapping> mappings;
  for (const std::string_view line : Split(text, '\n')) {
    auto mapping = ParseMapping(line);
    // Ascending is what FindMapping relies on.
    if (mapping && (mappings.empty() || mapping->begin >= mappings.back().end))
      mappings.push_back(std::move(*mapping));
  }
  return mappings;
}

const MemoryMapping* FindMapping(const std::vector<MemoryMapping>& mappings, uint64_t address) {
  const auto behind = std::upper_bound(
      mappings.begin(), mappings.end(), address,
      [](uint64_t at, const MemoryMapping& mapping) { return at < mapping.begin; });
  if (behind == mappings.begin()) return nullptr;
  const MemoryMapping& mapping = *std::prev(behind);
  return address < mapping.end ? &mapping : nullptr;
}

DescriptorInfo ParseDescriptorInfo(std::string_view text) {
  DescriptorInfo info;
  info.is_read = !LineOf(text, "flags").empty();
  info.flags = NumberOf<uint64_t>(text, "flags", 8, 0);
  info.process = ParseNumber<int>(ValueOf(text, "Pid"));
  info.event = ParseNumber<uint64_t>(ValueOf(text, "eventfd-id"));
  info.is_unarmed = LineOf(text, "it_value") == " (0, 0)" && ValueOf(text, "ticks") == "0";
  info.signals = NumberOf<uint64_t>(text, "sigmask", 16, 0);
  info.fuse = ParseNumber<uint64_t>(ValueOf(text, "fuse_connection"));
  info.descriptors_to_take = NumberOf<uint64_t>(text, "scm_fds", 10, 0);
  info.terminal = ParseNumber<int>(ValueOf(text, "tty-index"));
  info.ring = ParseRingCounts(text);
  for (const std::string_view line : Split(text, '\n')) {
    constexpr std::string_view kLock = "lock:";
    if (line.starts_with(kLock)) {
      auto locks = ParseFileLocks(line.substr(kLock.size()));
      info.locks.insert(info.locks.end(), locks.begin(), locks.end());
    }
    info.notifies = info.notifies || line.starts_with("inotify ");
    if (!line.starts_with("tfd:")) continue;
    const auto words = Words(line.substr(4));
    if (words.empty()) continue;
    const auto fd = ParseNumber<int>(words[0]);
    if (!fd) continue;
    info.epoll_files.push_back({*fd, 0, 0});
    constexpr std::string_view kInode = "ino:";
    const auto data = std::find(words.begin(), words.end(), "data:");
    if (data != words.end() && data + 1 != words.end())
      info.epoll_files.back().data = ParseNumber<uint64_t>(*(data + 1), 16).value_or(0);
    for (const std::string_view word : words) {
      if (word.starts_with(kInode))
        info.epoll_files.back().inode =
            ParseNumber<uint64_t>(word.substr(kInode.size()), 16).value_or(0);
    }
  }
  return info;
}

std::vector<FileLockLine> ParseFileLocks(std::string_view text) {
  std::vector<FileLockLine> locks;
  for (const std::string_view line : Split(text, '\n')) {
    // "1: -> POSIX  ADVISORY  WRITE 4711 fe:00:42 0 EOF"
    auto words = Words(line);
    if (words.size() < 2) continue;
    if (!words[0].ends_with(':')) continue;
    FileLockLine lock;
    lock.number = ParseNumber<uint64_t>(words[0].substr(0, words[0].size() - 1)).value_or(0);
    words.erase(words.begin());
    lock.waits = words[0] == "->";
    if (lock.waits) words.erase(words.begin());
    if (words.size() < 5) continue;
    words.resize(std::max<size_t>(words.size(), 6));
    const size_t colon = words[4].rfind(':');
    const auto pid = ParseNumber<int>(words[3]);
    if (colon == std::string_view::npos || !pid) continue;
    const auto inode = ParseNumber<uint64_t>(words[4].substr(colon + 1));
    if (!inode) continue;
    lock.flock = words[0] == "FLOCK";
    lock.of_description = lock.flock || words[0] == "OFDLCK";
    lock.write = words[2] == "WRITE";
    lock.pid = *pid;
    lock.device = words[4].substr(0, colon);
    lock.inode = *inode;
    lock.first = ParseNumber<uint64_t>(words[5]).value_or(0);
    if (words.size() > 6) lock.last = ParseNumber<uint64_t>(words[6]).value_or(UINT64_MAX);
    locks.push_back(std::move(lock));
  }
  return locks;
}

std::vector<MountLine> ParseMounts(std::string_view text) {
  std::vector<MountLine> mounts;
  for (const std::string_view line : Split(text, '\n')) {
    // "43 27 0:39 / /mnt/far rw,nosuid shared:1 - fuse.sshfs host:/ rw"
    const auto words = Words(line);
    const auto dash = std::find(words.begin(), words.end(), "-");
    if (words.size() < 6 || words.end() - dash < 2) continue;
    const size_t colon = words[2].find(':');
    if (colon == std::string_view::npos) continue;
    const auto major = ParseNumber<unsigned>(words[2].substr(0, colon));
    const auto minor = ParseNumber<unsigned>(words[2].substr(colon + 1));
    if (!major || !minor) continue;
    mounts.push_back({fmt::format("{:02x}:{:02x}", *major, *minor), *minor, std::string(words[4]),
                      std::string(dash[1])});
  }
  return mounts;
}

std::vector<std::string> ParseKernelStack(std::string_view text) {
  constexpr size_t kMost = 64;  // the kernel writes as many
  std::vector<std::string> functions;
  for (const std::string_view line : Split(text, '\n')) {
    // "[<0>] request_wait_answer+0x155/0x220 [fuse]"
    const auto words = Words(line);
    if (words.size() < 2 || functions.size() == kMost) continue;
    const std::string_view name = words[1].substr(0, words[1].find('+'));
    if (name.starts_with("do_syscall") || name.starts_with("entry_SYSCALL") ||
        name.starts_with("el0") || name.starts_with("invoke_syscall"))
      break;
    functions.emplace_back(name);
    if (words.size() > 2) functions.back() += fmt::format(" {}", words[2]);
  }
  return functions;
}

std::vector<TcpLine> ParseTcpTable(std::string_view text) {
  constexpr std::string_view kListen = "0A";
  constexpr std::string_view kEstablished = "01";
  constexpr std::string_view kCloseWait = "08";
  std::vector<TcpLine> lines;
  for (const std::string_view line : Split(text, '\n')) {
    // "0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 4711 ..."; the
    // first line has titles.
    const auto words = Words(line);
    if (words.size() < 10 || words[0] == "sl") continue;
    const auto inode = ParseNumber<uint64_t>(words[9]);
    if (!inode) continue;
    const size_t colon = std::min(words[4].find(':'), words[4].size() - 1);
    const auto received = ParseNumber<uint32_t>(words[4].substr(colon + 1), 16);
    lines.push_back({std::string(words[1]), std::string(words[2]), words[3] == kListen,
                     words[3] == kEstablished || words[3] == kCloseWait, *inode,
                     received.value_or(0)});
  }
  return lines;
}

namespace {

// The address's bytes in the order of the network. The kernel writes words of 32 bits as the
// machine has them, and all machines this runs on are little-endian.
std::optional<std::string> AddressBytes(std::string_view hex) {
  if (hex.size() != 8 && hex.size() != 32) return std::nullopt;
  std::string bytes;
  for (; !hex.empty(); hex.remove_prefix(8)) {
    const auto word = ParseNumber<uint32_t>(hex.substr(0, 8), 16);
    if (!word) return std::nullopt;
    for (unsigned i = 0; i < 4; ++i) bytes += static_cast<char>(*word >> 8 * i);
  }
  return bytes;
}

bool IsMappedV4(std::string_view bytes) {
  return bytes.size() == 16 &&
         bytes.substr(0, 12) == std::string_view("\0\0\0\0\0\0\0\0\0\0\xff\xff", 12);
}

std::string V4Name(std::string_view bytes) {
  return fmt::format("{}.{}.{}.{}", uint8_t(bytes[0]), uint8_t(bytes[1]), uint8_t(bytes[2]),
                     uint8_t(bytes[3]));
}

std::string V6Name(std::string_view bytes) {
  if (IsMappedV4(bytes)) return V4Name(bytes.substr(12));
  if (bytes == std::string_view("\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1", 16)) return "::1";
  if (bytes == std::string_view("\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16)) return "::";
  std::string name;
  for (size_t i = 0; i < 16; i += 2)
    name +=
        fmt::format("{}{:x}", i == 0 ? "" : ":", uint8_t(bytes[i]) << 8 | uint8_t(bytes[i + 1]));
  return name;
}

}  // namespace

std::string TcpAddressName(std::string_view address) {
  const size_t colon = address.find(':');
  if (colon == std::string_view::npos) return std::string(address);
  const auto bytes = AddressBytes(address.substr(0, colon));
  const auto port = ParseNumber<uint16_t>(address.substr(colon + 1), 16);
  if (!bytes || !port) return std::string(address);
  return bytes->size() == 4 ? fmt::format("{}:{}", V4Name(*bytes), *port)
                            : fmt::format("[{}]:{}", V6Name(*bytes), *port);
}

bool IsLoopback(std::string_view address) {
  const auto bytes = AddressBytes(address.substr(0, std::min(address.find(':'), address.size())));
  if (!bytes) return false;
  if (bytes->size() == 4) return (*bytes)[0] == 127;
  return V6Name(*bytes) == "::1" || (IsMappedV4(*bytes) && (*bytes)[12] == 127);
}

}  // namespace hangscope
