#include "process/host_look.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/json_fields.h"
#include "base/numbers.h"

namespace hangscope {
namespace {

using SavedJson = nlohmann::json;
using HolderList = std::vector<std::pair<int, int>>;

constexpr size_t kMostThreadsOfLook = 100'000;  // of one look
constexpr size_t kMostFramesOfLook = 256;
constexpr size_t kMostIds = 4096;  // of one list

std::optional<int> Id(const SavedJson& object, const char* name) {
  const auto number = IntegerField(object, name);
  if (!number || *number <= 0 || *number >= kIdsOfHost) return std::nullopt;
  return static_cast<int>(*number);
}

std::vector<int> Ids(const SavedJson& object, const char* name) {
  std::vector<int> ids;
  for (const SavedJson& each : ListField(object, name)) {
    if (each.is_number_integer() && each > 0 && each < kIdsOfHost && ids.size() < kMostIds)
      ids.push_back(each.get<int>());
  }
  return ids;
}

HolderList ReadHolders(const SavedJson& object, const char* name) {
  HolderList holders;
  for (const SavedJson& each : ListField(object, name)) {
    const auto pid = Id(each, "pid");
    const auto fd = IntegerField(each, "fd");
    if (pid && holders.size() < kMostIds)
      holders.emplace_back(*pid, fd && *fd >= 0 && *fd < kIdsOfHost ? static_cast<int>(*fd) : -1);
  }
  return holders;
}

// "0x7ffe1234"
uint64_t ReadAddress(const SavedJson& object, const char* name) {
  const std::string text = TextField(object, name);
  return text.starts_with("0x") ? ParseHex<uint64_t>(text).value_or(0) : 0;
}

WaitFile ReadFile(const SavedJson& json) {
  WaitFile file;
  const auto fd = IntegerField(json, "fd");
  file.fd = fd && *fd >= 0 && *fd < kIdsOfHost ? static_cast<int>(*fd) : -1;
  file.kind = ByName(TextField(json, "kind"), FileKind::kDevice, FileKindName, FileKind::kUnknown);
  file.name = TextField(json, "name");
  file.listening = TrueField(json, "listens");
  file.backlog = TrueField(json, "backlog");
  file.queued = static_cast<uint32_t>(CountField(json, "queued").value_or(0));
  file.outside = TrueField(json, "outside");
  file.is_idle = TrueField(json, "idle");
  file.unaccepted = TrueField(json, "unaccepted");
  file.unread = TrueField(json, "unread");
  file.wants_read = TrueField(json, "reads");
  file.signals = CountField(json, "signals").value_or(0);
  file.others = ReadHolders(json, "others");
  file.others_unknown = TrueField(json, "others_unknown");
  file.others_hidden = TrueField(json, "others_hidden");
  file.others_unsent = TrueField(json, "others_unsent");
  file.is_public = TrueField(json, "public");
  file.others_unsure = TrueField(json, "others_unsure");
  file.others_queue = TrueField(json, "others_queue");
  return file;
}

ThreadWait ReadWait(const SavedJson& json) {
  ThreadWait wait;
  wait.kind = ByName(TextField(json, "kind"), WaitKind::kOther, WaitKindName, WaitKind::kOther);
  wait.address = ReadAddress(json, "address");
  wait.variable = TextField(json, "variable");
  wait.shared = TrueField(json, "shared");
  wait.shared_name = TextField(json, "shared_name");
  wait.owner = Id(json, "owner");
  wait.owner_died = TrueField(json, "owner_died");
  wait.owner_copied = TrueField(json, "owner_copied");
  wait.owner_by_code = TrueField(json, "owner_by_code");
  wait.sharers = Ids(json, "sharers");
  wait.is_public = TrueField(json, "public");
  wait.thread = Id(json, "thread");
  wait.children = Ids(json, "children");
  wait.signals = CountField(json, "signals").value_or(0);
  wait.no_signal_comes = TrueField(json, "no_signal_comes");
  for (const SavedJson& each : ListField(json, "files")) {
    if (wait.files.size() < kMostIds) wait.files.push_back(ReadFile(each));
  }
  wait.has_timeout = TrueField(json, "has_timeout");
  wait.of_own_call = TrueField(json, "own_call");
  wait.rechecks = TrueField(json, "rechecks");
  const SavedJson& given_up = ObjectField(json, "given_up");
  wait.given_up_after = SecondsField(given_up, "after_s");
  wait.given_up_by = TextField(given_up, "by");
  wait.circle_ends_after = SecondsField(json, "circle_ends_after_s");
  return wait;
}

ThreadFacts::Spin ReadSpin(const SavedJson& json) {
  ThreadFacts::Spin spin;
  spin.steps = CountField(json, "steps").value_or(0);
  spin.period = CountField(json, "period").value_or(0);
  spin.writes_memory = TrueField(json, "writes_memory");
  spin.calls_kernel = TrueField(json, "calls_kernel");
  spin.reads_clock = TrueField(json, "reads_clock");
  spin.polled_variable = TextField(json, "variable");
  spin.polls_shared = TrueField(json, "polls_shared");
  spin.in_part = TrueField(json, "in_part");
  spin.naps = TrueField(json, "naps");
  spin.flickers_cut = TrueField(json, "changes_and_restores");
  spin.held_with_others = TrueField(json, "held_with_others");
  for (const SavedJson& each : ListField(json, "calls")) {
    if (spin.calls.size() == kMostIds) break;
    // Of whom it asks there is not told here.
    ThreadFacts::Spin::Call& call = spin.calls.emplace_back();
    call.name = TextField(each, "name");
    call.wait.kind = TrueField(each, "asks") ? WaitKind::kOther : WaitKind::kNone;
  }
  for (const SavedJson& each : ListField(json, "polls")) {
    if (each.is_string() && spin.polls.size() < kMostIds)
      spin.polls.push_back(ReadAddress({{"at", each}}, "at"));
  }
  return spin;
}

// Its process's number and its own are known.
ThreadFacts ReadThread(const SavedJson& json, int pid, int tid) {
  ThreadFacts thread;
  thread.pid = pid;
  thread.tid = tid;
  thread.name = TextField(json, "name");
  thread.state = ByName(TextField(json, "state"), ThreadState::kUnknown, ThreadStateName,
                        ThreadState::kUnknown);
  if (const auto lasted = SecondsField(json, "for_s")) thread.since = -*lasted;
  const SavedJson& call = ObjectField(json, "system_call");
  const auto number = IntegerField(call, "number");
  thread.system_call =
      number && *number >= 0 && *number < kIdsOfHost ? static_cast<int>(*number) : -1;
  thread.system_call_name = TextField(call, "name");
  thread.kernel_function = TextField(json, "kernel_function");
  thread.of_runtime = TrueField(json, "of_runtime");
  thread.stands_by = TrueField(json, "stands_by");
  for (const SavedJson& each : ListField(json, "kernel_stack")) {
    if (each.is_string() && thread.kernel_stack.size() < kMostFramesOfLook)
      thread.kernel_stack.push_back(each.get<std::string>());
  }
  thread.cpu_time = SecondsField(json, "cpu_s").value_or(0);
  if (FindField(json, "waits_for") != nullptr)
    thread.wait = ReadWait(ObjectField(json, "waits_for"));
  if (FindField(json, "spin") != nullptr) thread.spin = ReadSpin(ObjectField(json, "spin"));
  for (const SavedJson& frame : ListField(json, "stack")) {
    if (thread.stack.size() == kMostFramesOfLook) break;
    thread.stack.push_back({ReadAddress(frame, "pc"), TextField(frame, "function"),
                            TextField(frame, "source"), TextField(frame, "module"),
                            ByName(TextField(frame, "language"), FrameLanguage::kShell,
                                   FrameLanguageName, FrameLanguage::kNative),
                            TrueField(frame, "of_system")});
  }
  thread.stack_warning = TextField(json, "stack_trouble");
  return thread;
}

class LookReader {
 public:
  explicit LookReader(const std::string& path) : path_(path) {}

  Result<HostLook> Read(std::string_view text) {
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = std::min(text.find('\n', begin), text.size());
      ++line_;
      if (Status status = ReadLine(text.substr(begin, end - begin)); !status.ok()) return status;
      begin = end + 1;
    }
    if (found_.look.processes.empty() || found_.wall == 0)
      return Status::Corrupt(fmt::format(
          "'{}' has no look at processes in it; hangscope why pid:N --json writes one", path_));
    return std::move(found_);
  }

 private:
  Status Wrong(const char* what) const {
    return Status::Corrupt(fmt::format("'{}', line {}: {}", path_, line_, what));
  }

  Status ReadLine(std::string_view line) {
    if (line.empty()) return {};
    const SavedJson json = SavedJson::parse(line, nullptr, false);
    if (!json.is_object()) return Wrong("this is no object of JSON");
    const std::string type = TextField(json, "type");
    // What that look knew of further hosts, these say themselves.
    if ((type == "process" || type == "thread") && !TextField(json, "host").empty()) return {};
    if (type == "note" && TextField(json, "event") == "looked") ReadNote(json);
    if (type == "process") return AddProcess(json);
    if (type == "thread") return AddThread(json);
    if (type == "connection") {
      found_.look.remote_ends.push_back({TextField(json, "local"), TextField(json, "remote"),
                                         ReadHolders(json, "holders"),
                                         TrueField(json, "others_unknown")});
    }
    return {};
  }

  void ReadNote(const SavedJson& json) {
    found_.wall = TimeField(json, "wall_ns").value_or(0);
    found_.look.host = TextField(json, "host");
    found_.look.boot = TextField(json, "boot_id");
    found_.look.asked = Ids(json, "asked");
    found_.look.asked_are_all = TrueField(json, "asked_are_all");
  }

  Status AddProcess(const SavedJson& json) {
    ProcessFacts process;
    const auto pid = Id(json, "pid");
    if (!pid) return Wrong("a process without a number");
    if (!known_.insert(*pid).second) return Wrong("a process that was there already");
    process.pid = *pid;
    process.parent = Id(json, "parent").value_or(0);
    process.name = TextField(json, "name");
    process.command = TextField(json, "command");
    process.state = ByName(TextField(json, "state"), ThreadState::kUnknown, ThreadStateName,
                           ThreadState::kUnknown);
    process.caught_signals = CountField(json, "caught_signals").value_or(0);
    process.runtime_signals = CountField(json, "runtime_signals").value_or(0);
    process.shares_memory_with = Ids(json, "shares_memory_with");
    process.is_hidden = TrueField(json, "hidden");
    process.stop_signal = static_cast<int>(CountField(json, "stop_signal").value_or(0) % 65);
    process.stopped_in_background = TrueField(json, "in_background");
    process.tracer = Id(json, "tracer").value_or(0);
    process.tracer_name = TextField(json, "tracer_name");
    process.frozen_by = TextField(json, "frozen_by");
    found_.look.processes.push_back(std::move(process));
    return {};
  }

  Status AddThread(const SavedJson& json) {
    auto& processes = found_.look.processes;
    const auto pid = Id(json, "pid");
    const auto tid = Id(json, "tid");
    if (!pid || !tid || processes.empty() || processes.back().pid != *pid)
      return Wrong("a thread that does not follow its process");
    if (++threads_ > kMostThreadsOfLook)
      return Wrong("there are more threads than one look can have");
    processes.back().threads.push_back(ReadThread(json, *pid, *tid));
    const std::string stand = TextField(json, "stand");
    if (stand.empty() || stand == "moves") found_.moving.insert(*tid);
    return {};
  }

  const std::string& path_;
  HostLook found_;
  size_t line_ = 0;
  size_t threads_ = 0;
  std::set<int> known_;
};

// Adds `by` to all numbers of a look.
void Renumber(SystemSample* look, int by) {
  const auto shift = [by](int* id) { *id += by; };
  const auto shift_holders = [&](HolderList* holders) {
    for (auto& [pid, fd] : *holders) shift(&pid);
  };
  for (ProcessFacts& process : look->processes) {
    shift(&process.pid);
    if (process.parent != 0) shift(&process.parent);
    if (process.tracer != 0) shift(&process.tracer);
    for (int& sharer : process.shares_memory_with) shift(&sharer);
    for (ThreadFacts& thread : process.threads) {
      shift(&thread.pid);
      shift(&thread.tid);
      if (thread.wait.owner) shift(&*thread.wait.owner);
      if (thread.wait.thread) shift(&*thread.wait.thread);
      for (int& child : thread.wait.children) shift(&child);
      for (int& sharer : thread.wait.sharers) shift(&sharer);
      for (WaitFile& file : thread.wait.files) shift_holders(&file.others);
    }
  }
  for (RemoteEnd& end : look->remote_ends) shift_holders(&end.holders);
}

// Which ends of connections are known: by their own address and the other's.
using Ends = std::map<std::pair<std::string, std::string>, std::vector<const RemoteEnd*>>;

// "tcp 10.0.0.1:80 - 10.0.0.2:4242": whose end is it, and whose is the other?
std::optional<std::pair<std::string, std::string>> EndsOf(const WaitFile& file) {
  if (file.kind != FileKind::kSocket || !file.outside || file.listening) return std::nullopt;
  const size_t space = file.name.find(' ');
  const size_t dash = file.name.find(" - ");
  if (space == std::string::npos || dash == std::string::npos || dash < space) return std::nullopt;
  return std::pair(file.name.substr(space + 1, dash - space - 1), file.name.substr(dash + 3));
}

// Addresses may be those of private networks, which are the same in many places: where two have the
// other end, nobody knows which it is.
void Connect(const Ends& ends, WaitFile* file) {
  const auto own = EndsOf(*file);
  if (!own) return;
  const auto other = ends.find({own->second, own->first});
  const bool stays_there = own->first.starts_with("127.") || own->first.starts_with("[::1]") ||
                           own->first.starts_with("[::ffff:127.");
  if (stays_there || other == ends.end() || other->second.size() != 1 ||
      other->second[0]->holders.empty())
    return;
  file->outside = false;
  file->others = other->second[0]->holders;
  file->others_unknown = other->second[0]->others_unknown;
}

void ConnectAll(SystemSample* look) {
  Ends ends;
  for (const RemoteEnd& end : look->remote_ends) ends[{end.local, end.remote}].push_back(&end);
  for (ProcessFacts& process : look->processes) {
    for (ThreadFacts& thread : process.threads) {
      for (WaitFile& file : thread.wait.files) Connect(ends, &file);
    }
  }
}

bool Has(const SystemSample& look, int pid) {
  return std::any_of(look.processes.begin(), look.processes.end(),
                     [pid](const ProcessFacts& each) { return each.pid == pid; });
}

}  // namespace

Result<HostLook> ReadHostLook(std::string_view text, const std::string& path) {
  return LookReader(path).Read(text);
}

Result<std::vector<SystemSample>> JoinLooks(std::vector<SystemSample> own, TimeNs wall,
                                            const std::vector<HostLook>& others) {
  SystemSample& last = own.back();
  std::vector<ProcessFacts> before;  // as they were in the look before
  std::map<std::string, int> hosts;  // by boot: how many there were before it
  for (const HostLook& other : others) {
    SystemSample look = other.look;
    const bool is_here = !look.boot.empty() && look.boot == last.boot;
    // Of two that do not say, nobody knows whether they are the same.
    const std::string key = look.boot.empty() ? fmt::format("{}", hosts.size()) : look.boot;
    const int host =
        is_here ? 0 : hosts.emplace(key, static_cast<int>(hosts.size()) + 1).first->second;
    if (host > kMostHosts)
      return Status::Usage(fmt::format("these are looks at more than {} hosts", kMostHosts));
    Renumber(&look, host * kIdsOfHost);
    const TimeNs seen = last.end - (wall - other.wall);
    for (ProcessFacts& process : look.processes) {
      if (Has(last, process.pid)) continue;  // the look here is newer; so is the first of two
      process.host = is_here ? "" : look.host;
      for (ThreadFacts& thread : process.threads) {
        thread.host = process.host;
        thread.seen_until = seen;
        if (thread.since) *thread.since += seen;
      }
      ProcessFacts earlier = process;
      for (ThreadFacts& thread : earlier.threads)
        thread.voluntary_switches = other.moving.count(IdOnHost(thread.tid));
      before.push_back(std::move(earlier));
      last.processes.push_back(std::move(process));
    }
    for (const RemoteEnd& end : look.remote_ends) {
      if (std::find(last.remote_ends.begin(), last.remote_ends.end(), end) ==
          last.remote_ends.end())
        last.remote_ends.push_back(end);
    }
  }
  ConnectAll(&last);
  for (size_t i = 0; i + 1 < own.size(); ++i)
    own[i].processes.insert(own[i].processes.end(), before.begin(), before.end());
  return own;
}

}  // namespace hangscope
