#include "tools/count_cost.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/near_name.h"
#include "base/signal_text.h"
#include "base/units.h"
#include "code/cost_marks.h"
#include "proc/child_process.h"

namespace hangscope {
namespace {

using ParsedJson = nlohmann::json;

constexpr char kPluginFile[] = "hangscope_count.so";
constexpr size_t kMostSubjects = 64;  // of the plugin
constexpr size_t kMostPlaces = 1024;
constexpr uint64_t kMostHarts = 4096;
constexpr size_t kKeptStderr = 4096;
constexpr TimeNs kPatience = 10 * kSecond;  // from SIGTERM to SIGKILL

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

std::string Suggestion(const std::vector<std::string>& near) {
  return near.empty() ? "" : fmt::format(", did you mean '{}'?", fmt::join(near, "' or '"));
}

Result<CostSubject> FindSymbol(const std::vector<ElfSymbol>& symbols, const std::string& elf,
                               const std::string& name) {
  CostSubject subject;
  subject.name = name;
  std::vector<std::string> names;
  const ElfSymbol* unfit = nullptr;
  for (const ElfSymbol& symbol : symbols) {
    if (!symbol.is_data) names.push_back(symbol.name);
    if (symbol.name != name) continue;
    if (symbol.is_data || symbol.bytes == 0) {
      unfit = &symbol;
      continue;
    }
    const AddressRange range = {symbol.address, symbol.address + symbol.bytes};
    const bool known = std::any_of(subject.ranges.begin(), subject.ranges.end(),
                                   [&](const AddressRange& r) { return r.begin == range.begin; });
    if (!known) subject.ranges.push_back(range);
  }
  if (!subject.ranges.empty()) return subject;
  if (unfit == nullptr)
    return Status::NotFound(fmt::format("'{}' has no symbol '{}'{}", elf, name,
                                        Suggestion(NearNames(name, names, 3, 3))));
  if (unfit->is_data)
    return Status::Usage(
        fmt::format("the symbol '{}' of '{}' is data, and only code can be counted", name, elf));
  return Status::Usage(
      fmt::format("the symbol '{}' of '{}' has no size, so where it ends is not known; in assembly "
                  "'.size {}, . - {}' gives it one",
                  name, elf, name, name));
}

Result<CostSubject> FindMark(const std::map<std::string, MarkedCode>& marks, const std::string& elf,
                             const std::string& name) {
  if (const auto found = marks.find(name); found != marks.end()) {
    if (found->second.begins.empty() || found->second.ends.empty()) {
      return Status::Usage(
          fmt::format("'{}' has no code between a begin and an end mark '{}'", elf, name));
    }
    return CostSubject{name, true, {}, found->second, {}};
  }
  std::vector<std::string> names;
  for (const auto& mark : marks) names.push_back(mark.first);
  if (names.empty())
    return Status::NotFound(
        fmt::format("'{}' has no marks; hangscope/target/mark.h sets them", elf));
  return Status::NotFound(
      fmt::format("'{}' has no mark '{}'{}", elf, name, Suggestion(NearNames(name, names, 3, 3))));
}

// QEMU takes a comma in a value when it is doubled.
std::string Escape(const std::string& value) {
  std::string escaped;
  for (const char c : value) escaped += c == ',' ? ",," : std::string(1, c);
  return escaped;
}

std::string NameOfProgram(const std::string& word) { return word.substr(word.rfind('/') + 1); }

// The line of QEMU's complaint in what it wrote, or nothing.
std::string LineWith(const std::string& text, const std::string& what) {
  const size_t at = text.find(what);
  if (at == std::string::npos) return {};
  const size_t line_break = text.rfind('\n', at);
  const size_t begin = line_break == std::string::npos ? 0 : line_break + 1;
  return text.substr(begin, text.find('\n', at) - begin);
}

// QEMU from its start to its end.
class QemuRun {
 public:
  QemuRun(const CostEnvironment& environment, const CostOptions& options)
      : environment_(environment), options_(options) {}

  Status Start(const std::vector<std::string>& command) {
    ChildOptions options;
    options.command = command;
    options.streams = {{"stderr", STDERR_FILENO, false}};
    options.signals = options_.signals;
    auto child = StartChild(options);
    if (!child.ok()) return child.status();
    child_ = std::move(*child);
    began_ = environment_.clock->Monotonic();
    fcntl(child_->stream_fds()[0], F_SETFL, O_NONBLOCK);
    return {};
  }

  ChildExit Wait() {
    std::optional<ChildExit> exit;
    while (!(exit = child_->Poll())) {
      pollfd events[] = {
          {child_->stream_fds()[0], static_cast<short>(stderr_open_ ? POLLIN : 0), 0},
          {environment_.signal_fd, POLLIN, 0}};
      if (!stderr_open_) events[0].fd = -1;
      poll(events, 2, 100);
      ReadStderr();
      PassSignals();
      MindTheTime();
    }
    ReadStderr();
    close(child_->stream_fds()[0]);
    return *exit;
  }

  const std::string& said() const { return said_; }
  bool cut_short() const {
    return ended_at_.has_value() || said_.find("terminating on signal") != std::string::npos;
  }
  bool killed() const { return killed_; }

 private:
  void ReadStderr() {
    char buffer[4096];
    ssize_t got = 0;
    while (stderr_open_ && (got = read(child_->stream_fds()[0], buffer, sizeof buffer)) > 0) {
      const std::string_view text(buffer, static_cast<size_t>(got));
      environment_.pass_stderr(text);
      said_ += text;
      if (said_.size() > kKeptStderr) said_.erase(0, said_.size() - kKeptStderr);
    }
    if (got == 0) stderr_open_ = false;
  }

  void PassSignals() {
    signalfd_siginfo info;
    while (read(environment_.signal_fd, &info, sizeof info) == sizeof info) {
      if (info.ssi_signo == SIGCHLD) continue;
      if (info.ssi_signo == SIGUSR1 || info.ssi_signo == SIGUSR2) continue;  // they would kill it
      End();
    }
  }

  void MindTheTime() {
    const TimeNs now = environment_.clock->Monotonic();
    if (!ended_at_ && options_.time_limit > 0 && now - began_ >= options_.time_limit) End();
    if (ended_at_ && !killed_ && now - *ended_at_ >= kPatience) {
      killed_ = true;
      child_->Signal(SIGKILL);
    }
  }

  void End() {
    if (!ended_at_) ended_at_ = environment_.clock->Monotonic();
    child_->Signal(SIGTERM);
  }

  const CostEnvironment& environment_;
  const CostOptions& options_;
  std::unique_ptr<ChildProcess> child_;
  TimeNs began_ = 0;
  bool stderr_open_ = true;
  std::string said_;  // the end of its stderr
  std::optional<TimeNs> ended_at_;
  bool killed_ = false;
};

std::string HowItEnded(const ChildExit& exit) {
  return exit.signal != 0 ? "was killed by " + SignalText(exit.signal)
                          : fmt::format("ended with status {}", exit.status);
}

// Why there are no counts.
Status NoCounts(const QemuRun& run, const ChildExit& exit, bool was_loaded) {
  if (const std::string line = LineWith(run.said(), "API version"); !line.empty()) {
    return Status::Io(fmt::format(
        "this QEMU refuses the plugin, which is made for version 1 of its plugin interface: {}",
        line));
  }
  if (run.killed())
    return Status::Io(fmt::format("QEMU did not end in {} after SIGTERM, and left no counts",
                                  FormatElapsed(kPatience)));
  if (was_loaded)
    return Status::Io(fmt::format("QEMU {} without leaving its counts", HowItEnded(exit)));
  return Status::Io(fmt::format(
      "QEMU {} before it loaded the plugin; it says why, or it was built without plugins",
      HowItEnded(exit)));
}

std::string TypeOf(const ParsedJson& json) {
  const auto type = json.is_object() ? json.find("type") : json.end();
  return type != json.end() && type->is_string() ? type->get<std::string>() : std::string();
}

uint64_t NumberOf(const ParsedJson& json, const char* key, uint64_t otherwise) {
  const auto number = json.find(key);
  return number != json.end() && number->is_number_unsigned() ? number->get<uint64_t>() : otherwise;
}

std::string ReadAll(int fd) {
  std::string text;
  char buffer[4096];
  ssize_t got = 0;
  while ((got = pread(fd, buffer, sizeof buffer, static_cast<off_t>(text.size()))) > 0)
    text.append(buffer, static_cast<size_t>(got));
  return text;
}

}  // namespace

Result<std::string> FindCountPlugin(const std::string& executable) {
  const std::string folder = FolderOf(executable);
  std::vector<std::string> places;
  for (const char* place : {"/", "/qemu/", "/../libexec/hangscope/"})
    places.push_back(folder + place + kPluginFile);
  for (const std::string& place : places) {
    if (access(place.c_str(), R_OK) == 0) return place;
  }
  return Status::NotFound(fmt::format("the plugin for QEMU is missing: there is no '{}'",
                                      fmt::join(places, "', no '")));
}

Result<std::vector<CostSubject>> FindSubjects(const ElfImage& elf, const CostOptions& options) {
  std::vector<CostSubject> subjects;
  const std::vector<ElfSymbol> symbols = elf.Symbols();
  for (const std::string& name : options.symbols) {
    auto found = FindSymbol(symbols, elf.path(), name);
    if (!found.ok()) return found.status();
    subjects.push_back(std::move(*found));
  }
  if (!options.marks.empty()) {
    auto marks = ReadCostMarks(elf.Section(kMarkSection), elf.xlen(), elf.big_endian());
    if (!marks.ok()) return marks.status();
    for (const std::string& name : options.marks) {
      auto found = FindMark(*marks, elf.path(), name);
      if (!found.ok()) return found.status();
      subjects.push_back(std::move(*found));
    }
  }
  size_t places = 0;
  for (const CostSubject& subject : subjects) {
    places += subject.ranges.size() + subject.marked.begins.size() + subject.marked.ends.size();
  }
  if (subjects.size() > kMostSubjects || places > kMostPlaces) {
    return Status::Usage(fmt::format(
        "{} symbols and marks in {} places are too many to count at once; up to {} in {} will do",
        subjects.size(), places, kMostSubjects, kMostPlaces));
  }
  return subjects;
}

Result<std::vector<std::string>> AddPlugin(const std::vector<std::string>& command,
                                           const std::string& plugin_path, int fd,
                                           const std::vector<CostSubject>& subjects) {
  const auto qemu = std::find_if(command.begin(), command.end(), [](const std::string& word) {
    return NameOfProgram(word).starts_with("qemu-system-");
  });
  if (qemu == command.end()) {
    return Status::Usage(
        fmt::format("'{}' is no QEMU; for example hangscope cost --elf fw.elf --symbol emit -- "
                    "qemu-system-riscv32 -machine virt -bios none -kernel fw.elf",
                    fmt::join(command, " ")));
  }
  std::string plugin = fmt::format("{},fd={}", Escape(plugin_path), fd);
  for (size_t piece = 0; piece < subjects.size(); ++piece) {
    for (const AddressRange& range : subjects[piece].ranges)
      plugin += fmt::format(",range={}:{:#x}:{:#x}", piece, range.begin, range.end);
    for (const uint64_t address : subjects[piece].marked.begins)
      plugin += fmt::format(",begin={}:{:#x}", piece, address);
    for (const uint64_t address : subjects[piece].marked.ends)
      plugin += fmt::format(",end={}:{:#x}", piece, address);
  }
  std::vector<std::string> words(command.begin(), qemu + 1);
  words.insert(words.end(), {"-plugin", plugin});
  words.insert(words.end(), qemu + 1, command.end());
  return words;
}

Status ReadCounts(std::string_view text, CostReport* report) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const ParsedJson json = ParsedJson::parse(line, nullptr, false);
    const std::string type = TypeOf(json);
    if (type == "end") return {};
    if (type == "loaded") {
      report->target = json.value("target", "");
      for (CostSubject& subject : report->subjects)
        subject.harts.resize(std::min(NumberOf(json, "harts", 0), kMostHarts));
      continue;
    }
    if (type != "count") break;
    const uint64_t piece = NumberOf(json, "piece", report->subjects.size());
    const uint64_t hart = NumberOf(json, "hart", kMostHarts);
    if (piece >= report->subjects.size() || hart >= report->subjects[piece].harts.size()) break;
    report->subjects[piece].harts[hart] = {NumberOf(json, "entered", 0),
                                           NumberOf(json, "instructions", 0),
                                           NumberOf(json, "loads", 0), NumberOf(json, "stores", 0)};
  }
  return Status::Corrupt("what the plugin wrote is cut or damaged");
}

Result<CostReport> MeasureCost(const CostEnvironment& environment, const ElfImage& elf,
                               const CostOptions& options) {
  auto subjects = FindSubjects(elf, options);
  if (!subjects.ok()) return subjects.status();
  CostReport report;
  report.subjects = std::move(*subjects);
  report.events_per_entry = options.events_per_entry;
  const int counts = memfd_create("hangscope-cost", 0);  // QEMU inherits it
  if (counts < 0) return Status::FromErrno(errno, "create", "memory for the counts");
  auto command = AddPlugin(options.command, options.plugin_path, counts, report.subjects);
  QemuRun run(environment, options);
  Status status = command.ok() ? run.Start(*command) : command.status();
  if (status.ok()) {
    const ChildExit exit = run.Wait();
    const std::string text = ReadAll(counts);
    report.complete = !run.cut_short();
    if (!text.ends_with("{\"type\":\"end\"}\n"))
      status = NoCounts(run, exit, !text.empty());
    else
      status = ReadCounts(text, &report);
  }
  close(counts);
  if (!status.ok()) return status;
  return report;
}

}  // namespace hangscope
