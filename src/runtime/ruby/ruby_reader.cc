#include "runtime/ruby/ruby_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "base/bytes.h"
#include "base/file_system.h"
#include "runtime/ruby/ruby_layout.h"

namespace hangscope {
namespace {

using namespace ruby_layout;

constexpr uint64_t kWord = 8;
constexpr size_t kMostRactors = 64;
constexpr size_t kMostMutexes = 1024;  // that one thread has
constexpr size_t kMostChildWaits = 1024;
constexpr size_t kMostSites = 4096;  // of the innermost frames
constexpr uint64_t kMostStackWords = 1 << 24;
constexpr size_t kLongestText = 1024;
constexpr size_t kLongestTypeName = 32;
constexpr uint64_t kMostCode = 1 << 24;  // of one function, in words

bool IsObject(uint64_t value) { return value > kNil && (value & kNoObjectMask) == 0; }

// What an object of a class is called, by the name that C gives its data; empty: another one.
std::string_view ClassOf(std::string_view type) {
  constexpr std::pair<std::string_view, std::string_view> kClasses[] = {
      {"mutex", "Mutex"},
      {"monitor", "Monitor"},
      {"queue", "Queue"},
      {"sized_queue", "SizedQueue"},
      {"condvar", "ConditionVariable"},
      {"VM/thread", "Thread"},
  };
  for (const auto& [name, ruby] : kClasses) {
    if (name == type) return ruby;
  }
  return {};
}

// "block in <main>" of "block (2 levels) in <main>": elsewhere names end where their arguments
// begin.
std::string WithoutLevels(std::string function) {
  constexpr std::string_view kEnd = " levels)";
  const size_t begin = function.find(" (");
  const size_t end = function.find(kEnd, begin);
  if (begin != std::string::npos && end != std::string::npos)
    function.erase(begin, end + kEnd.size() - begin);
  return function;
}

}  // namespace

Result<std::unique_ptr<RubyReader>> RubyReader::Open(const FindRubySymbol& find, ReadMemory read) {
  const auto version = find("ruby_api_version");
  const auto vm = find("ruby_current_vm_ptr");
  if (!version || !vm)
    return Status::NotFound("where Ruby keeps its threads is not among its symbols");
  int32_t parts[2] = {};
  if (!read(*version, parts, sizeof parts))
    return Status::NotFound("which version of Ruby it is cannot be read");
  if (parts[0] != kMajor || parts[1] != kMinor)
    return Status::NotFound(
        fmt::format("Ruby {}.{} keeps its threads in another way than {}.{}, "
                    "which is understood",
                    parts[0], parts[1], kMajor, kMinor));
  uint64_t address = 0;
  if (!read(*vm, &address, sizeof address) || !IsObject(address))
    return Status::NotFound("Ruby has not begun yet");
  return std::unique_ptr<RubyReader>(new RubyReader(address, std::move(read)));
}

// Of a list. Whether that comes back to its head.
bool RubyReader::Members(uint64_t head, size_t most, std::vector<uint64_t>* members) const {
  for (uint64_t at = Word(head); at != head; at = Word(at)) {
    if (at % kWord != 0 || at == 0 || members->size() == most) return false;
    members->push_back(at);
  }
  return true;
}

bool RubyReader::HasType(uint64_t value, uint64_t type) const {
  return IsObject(value) && (Word(value) & kTypeMask) == type;
}

// Empty: it is no object of C's, or not one with a type.
std::string RubyReader::TypeOfData(uint64_t value) {
  if (!HasType(value, kData) || Word(value + kDataIsTyped) != 1) return {};
  return memory_.KeptText(memory_.Kept<uint64_t>(Word(value + kDataType)), kLongestTypeName);
}

// What is not ASCII is '?'.
std::string RubyReader::Text(uint64_t string) {
  if (!HasType(string, kString)) return {};
  const uint64_t flags = Word(string);
  const bool is_elsewhere = (flags & kElsewhere) != 0;
  const uint64_t length =
      is_elsewhere ? Word(string + kBody) : (flags >> kShortLengthShift) & kShortLengthMask;
  std::string text(std::min<uint64_t>(length, kLongestText), '\0');
  if (!memory_.ReadInto(is_elsewhere ? Word(string + kStringBytes) : string + kBody, text.data(),
                        text.size()))
    return {};
  std::replace_if(
      text.begin(), text.end(), [](char c) { return static_cast<uint8_t>(c) >= 0x80; }, '?');
  return text;
}

std::vector<RubyThread> RubyReader::Threads(size_t most, std::string* warning) {
  std::vector<uint64_t> ractors;
  std::vector<uint64_t> addresses;
  bool all = Members(vm_ + kVmRactors, kMostRactors, &ractors);
  for (const uint64_t link : ractors) {
    const uint64_t ractor = link - kRactorLink;
    all = Members(ractor + kRactorThreads, most, &addresses) && all;
    std::vector<uint64_t> waiters;
    Members(ractor + kRactorLockWaiters, most, &waiters);
    for (const uint64_t waiter : waiters)
      interpreter_waits_.emplace(waiter - kThreadLockLink, Word(ractor + kRactorLockOwner));
  }
  std::vector<uint64_t> child_waits;
  Members(vm_ + kVmChildWaits, kMostChildWaits, &child_waits);
  for (const uint64_t wait : child_waits)
    child_waits_.emplace(Word(wait + kChildWaitEc), memory_.Now<int32_t>(wait + kChildWaitFor));
  for (const uint64_t thread : addresses) {
    uint64_t mutex = Word(thread + kThreadHasMutexes);
    for (size_t i = 0; mutex != 0 && i < kMostMutexes; ++i) {
      owners_.emplace(mutex, thread);
      mutex = Word(mutex + kMutexNext);
    }
  }
  std::vector<RubyThread> threads;
  for (const uint64_t thread : addresses) threads.push_back(ReadThread(thread));
  if (!all)
    *warning = fmt::format("not all of Ruby's threads could be read; {} are known", threads.size());
  return threads;
}

RubyThread RubyReader::ReadThread(uint64_t address) {
  RubyThread thread;
  thread.address = address;
  thread.tid = memory_.Now<int32_t>(address + kThreadId);
  thread.is_main = address == Word(vm_ + kVmMainThread);
  thread.name = Text(Word(address + kThreadName));
  thread.wait = WaitOf(address);
  return thread;
}

RubyWait RubyReader::WaitOf(uint64_t thread) {
  const auto status = static_cast<ThreadStatus>(memory_.Now<uint8_t>(thread + kThreadStatus) & 3);
  const auto lock = interpreter_waits_.find(thread);
  if (lock != interpreter_waits_.end())
    return {RubyWaitKind::kInterpreter, 0, "GVL", lock->second, 0};
  const auto child = child_waits_.find(Word(thread + kThreadEc));
  if (child != child_waits_.end()) return {RubyWaitKind::kChildEnd, 0, "", 0, child->second};
  if (Word(thread + kThreadRegion) != 0) return {};
  if (status == ThreadStatus::kSleeps) return {RubyWaitKind::kSleep, 0, "", 0, 0};
  if (status != ThreadStatus::kSleepsForever) return {};
  const std::vector<RubySite> sites = SitesOf(thread);
  const uint64_t mutex = Word(thread + kThreadWantsMutex);
  return mutex != 0 ? MutexWait(mutex, sites) : ObjectWait(sites);
}

// A Monitor has a Mutex of its own, which nobody else sees.
RubyWait RubyReader::MutexWait(uint64_t mutex, const std::vector<RubySite>& sites) {
  RubyWait wait;
  if (ClassOf(TypeOfData(mutex)) != "Mutex") return wait;
  wait.kind = RubyWaitKind::kMutex;
  wait.object = mutex;
  wait.type = "Mutex";
  const auto owner = owners_.find(Word(mutex + kDataObject));
  if (owner != owners_.end()) wait.thread = owner->second;
  for (const RubySite& site : sites) {
    if (site.iseq != 0) break;
    if (ClassOf(TypeOfData(site.self)) != "Monitor" ||
        Word(Word(site.self + kDataObject) + kMonitorMutex) != mutex)
      continue;
    wait.object = site.self;
    wait.type = "Monitor";
  }
  return wait;
}

// By the object whose function of C it is in. A ConditionVariable has its Mutex sleep.
RubyWait RubyReader::ObjectWait(const std::vector<RubySite>& sites) {
  RubyWait wait;
  wait.kind = RubyWaitKind::kWakeup;
  for (const RubySite& site : sites) {
    if (site.iseq != 0) break;
    const std::string_view type = ClassOf(TypeOfData(site.self));
    if (type.empty() || type == "Mutex" || type == "Monitor") continue;
    wait.object = site.self;
    wait.type = type;
    wait.kind = RubyWaitKind::kObject;
    if (type != "Thread") break;
    wait.kind = RubyWaitKind::kJoin;
    wait.thread = Word(site.self + kDataObject);
    break;
  }
  return wait;
}

std::vector<RubySite> RubyReader::SitesOf(uint64_t thread) const {
  std::vector<RubySite> sites;
  const uint64_t ec = Word(thread + kThreadEc);
  const uint64_t begin = Word(ec + kEcStack);
  const uint64_t words = Word(ec + kEcStackWords);
  const uint64_t innermost = Word(ec + kEcFrame);
  if (words > kMostStackWords || begin % kWord != 0) return sites;
  const uint64_t end = begin + words * kWord;
  if (innermost < begin || innermost >= end || (end - innermost) % kFrameBytes != 0) return sites;
  std::string bytes(std::min<uint64_t>(end - innermost, kMostSites * kFrameBytes), '\0');
  if (!memory_.ReadInto(innermost, bytes.data(), bytes.size())) return sites;
  for (size_t at = 0; at < bytes.size(); at += kFrameBytes)
    sites.push_back(
        {NumberAt<uint64_t>(bytes, at + kFramePc), NumberAt<uint64_t>(bytes, at + kFrameIseq),
         NumberAt<uint64_t>(bytes, at + kFrameSelf), NumberAt<uint64_t>(bytes, at + kFrameEnv)});
  return sites;
}

std::vector<RubyFrame> RubyReader::FramesOf(const std::vector<RubySite>& sites, size_t most) {
  std::vector<RubyFrame> frames;
  for (const RubySite& site : sites) {
    if (frames.size() == most) break;
    if (auto frame = FrameAt(site)) frames.push_back(std::move(*frame));
  }
  return frames;
}

std::optional<RubyFrame> RubyReader::FrameAt(const RubySite& site) {
  if (!HasType(site.iseq, kInternal) ||
      ((Word(site.iseq) >> kInternalShift) & kInternalMask) != kInternalIseq ||
      (Word(site.env) & kFrameKindMask) == kFrameOfNothing)
    return std::nullopt;
  const uint64_t body = Word(site.iseq + kIseqBody);
  RubyFrame frame;
  frame.function = Text(memory_.Kept<uint64_t>(body + kBodyLabel));
  if (frame.function.empty()) return std::nullopt;
  frame.file = PathOf(body);
  frame.line = LineAt(body, site.pc);
  const auto first = static_cast<int64_t>(memory_.Kept<uint64_t>(body + kBodyFirstLine)) >> 1;
  if (first > 0 && first <= INT32_MAX) frame.first_line = static_cast<int>(first);
  return frame;
}

std::string RubyReader::PathOf(uint64_t body) {
  const auto path = memory_.Kept<uint64_t>(body + kBodyPath);
  if (!HasType(path, kArray)) return Text(path);
  const bool is_inside = (Word(path) & kElsewhere) != 0;
  const uint64_t items = is_inside ? path + kBody : Word(path + kArrayItems);
  const std::string real = Text(Word(items + kWord));
  return real.empty() ? Text(Word(items)) : real;
}

// The program counter is behind the instruction that runs; 0: not known.
int RubyReader::LineAt(uint64_t body, uint64_t pc) {
  const auto code = memory_.Kept<uint64_t>(body + kBodyCode);
  const auto size = memory_.Kept<uint32_t>(body + kBodySize);
  const auto table = memory_.Kept<uint64_t>(body + kBodyLineIndex);
  const auto count = memory_.Kept<uint32_t>(body + kBodyLineCount);
  if (pc < code || (pc - code) % kWord != 0 || size > kMostCode || table == 0) return 0;
  const uint64_t behind = (pc - code) / kWord;
  if (behind > size) return 0;
  const uint64_t entry = EntryAt(table, behind == 0 ? 0 : behind - 1);
  if (entry == 0 || entry > count) return 0;
  const auto entries = memory_.Kept<uint64_t>(body + kBodyLines);
  return std::max(0, memory_.Kept<int32_t>(entries + (entry - 1) * kLineEntryBytes));
}

// The number of the entry that a position is of, from 1 on.
uint64_t RubyReader::EntryAt(uint64_t table, uint64_t position) {
  if (position < kDirectPositions) {
    const auto word = memory_.Kept<uint64_t>(table + position / kDirectPerWord * kWord);
    return (word >> (position % kDirectPerWord * kDirectBits)) & ((1u << kDirectBits) - 1);
  }
  position -= kDirectPositions;
  const uint64_t block = table + kDirectBytes + position / kIndexBlockPositions * kIndexBlockBytes;
  const uint64_t part = position % kIndexBlockPositions / 64;
  const uint64_t bit = position % 64;
  uint64_t entry = memory_.Kept<uint32_t>(block);
  if (part > 0)
    entry += (memory_.Kept<uint64_t>(block + kIndexBlockRanks) >> ((part - 1) * kRankBits)) &
             ((1u << kRankBits) - 1);
  const auto bits = memory_.Kept<uint64_t>(block + kIndexBlockBits + part * kWord);
  return entry + static_cast<uint64_t>(std::popcount(bits << (63 - bit)));
}

bool RubyReader::HasTimeLimit(const std::vector<RubySite>& sites) {
  std::set<uint64_t> seen;
  return std::any_of(sites.begin(), sites.end(), [&](const RubySite& site) {
    if (site.iseq == 0 || !seen.insert(site.iseq).second) return false;
    const auto frame = FrameAt(site);
    return frame && frame->function == "block in timeout" && frame->file.ends_with("/timeout.rb");
  });
}

uint64_t RubyReader::HandledSignals() const {
  uint64_t signals = 0;
  for (int signal = 1; signal < kSignals; ++signal) {
    if (IsObject(Word(vm_ + kVmTraps + static_cast<uint64_t>(signal) * kWord)))
      signals |= uint64_t{1} << (signal - 1);
  }
  return signals;
}

StackFrame RubyReader::Name(const RubyFrame& frame) {
  StackFrame named;
  named.language = FrameLanguage::kRuby;
  named.function = WithoutLevels(frame.function);
  named.module = frame.file;
  const bool is_internal = frame.file.starts_with('<');
  const int line = frame.line != 0 ? frame.line : frame.first_line;
  const std::string name = is_internal ? frame.file : std::string(NameOf(frame.file));
  if (!name.empty()) named.source = line == 0 ? name : fmt::format("{}:{}", name, line);
  const auto is_in = [&](std::string_view folder) {
    return frame.file.find(folder) != std::string::npos;
  };
  named.of_system = frame.file.empty() || is_internal || frame.file.starts_with("/usr/lib/ruby/") ||
                    frame.file.starts_with("/usr/share/rubygems-integration/") || is_in("/gems/") ||
                    is_in("/lib/ruby/3.");
  return named;
}

}  // namespace hangscope
