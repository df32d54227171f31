// hangscope in a host program of your own: look at a target, ask why it hangs, watch it in the
// background.
//
//   #include <hangscope/host/hangscope.hpp>
//   using namespace hangscope::host;
//
//   auto watcher = Watcher::Start("pid:4711", {}, [](const Finding& finding) {
//     fputs(finding.text.c_str(), stderr);
//   });
//   if (!watcher.ok()) fputs(watcher.status().message().c_str(), stderr);
//
// C++20; CMake: find_package(hangscope COMPONENTS host), target hangscope::host. docs/host-api.md
// has a whole program. What fails says so in a Status of one sentence: nothing throws but the
// standard library where memory runs out. Nothing is printed, no signal handler is installed, no
// target is stopped unless Options::intrusive says that it may be.
#ifndef HANGSCOPE_HOST_HANGSCOPE_HPP
#define HANGSCOPE_HOST_HANGSCOPE_HPP

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hangscope::host {

// Of the library that was linked: "0.1.0".
const char* Version() noexcept;

enum class Code {
  kOk,
  kUsage,     // what was asked for is wrong
  kIo,        // reading or writing failed
  kCorrupt,   // what was read cannot be right
  kNotFound,  // no such target, or nothing of hangscope's in it
  kBusy,
};

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message) : code_(code), message_(std::move(message)) {}

  bool ok() const noexcept { return code_ == Code::kOk; }
  Code code() const noexcept { return code_; }
  // One sentence for people; empty where it is ok.
  const std::string& message() const noexcept { return message_; }

 private:
  Code code_ = Code::kOk;
  std::string message_;
};

// A value, or why there is none: then value() must not be asked for.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}          // implicit by design
  Result(Status status) : status_(std::move(status)) {}  // implicit by design

  bool ok() const noexcept { return value_.has_value(); }
  const Status& status() const noexcept { return status_; }
  T& value() noexcept { return *value_; }
  T& operator*() noexcept { return *value_; }
  T* operator->() noexcept { return &*value_; }

 private:
  std::optional<T> value_;
  Status status_;
};

enum class Life {
  kLive,     // may write while it is read
  kDead,     // nobody writes any more
  kUnknown,  // cannot be told; it is treated as live
};

struct Range {
  uint64_t begin = 0;
  uint64_t size_bytes = 0;
};

// How to reach a target's memory, where no specification of docs/probes.md does: derive from it.
// All calls come from one thread at a time: that of the Target's caller, or the Watcher's own. They
// may not throw, and should return within a moment: looking at the target waits for them.
class Probe {
 public:
  virtual ~Probe();
  // For messages: "board 3".
  virtual std::string Name() const { return "the user's probe"; }
  // `count` bytes from `address` on: all of them or a failure. Only what is in Ranges() is asked
  // for.
  virtual Status Read(uint64_t address, void* bytes, size_t count) = 0;
  // The same; for pausing, resuming. A probe that cannot may leave it as it is.
  virtual Status Write(uint64_t address, const void* bytes, size_t count);
  // What there is to read, in ascending order without overlaps; asked for once. The scope is
  // searched in it, unless ScopeAddress() or Options::elf tells where it is.
  virtual std::vector<Range> Ranges() const = 0;
  virtual std::optional<uint64_t> ScopeAddress() const { return std::nullopt; }
  virtual Life Alive() { return Life::kUnknown; }
};

struct Options {
  // The program on the target: names, lines, and where the scope is. Empty: a Linux process's is
  // found.
  std::string elf;
  // Debug servers stop the target while they are asked: only where this says that they may.
  bool intrusive = false;
  // A wait or a silence of this length is looked into: 1 ms to 1 hour.
  std::chrono::nanoseconds stall = std::chrono::seconds(5);
  // Between two looks of a Watcher: 1 ms to 1 hour.
  std::chrono::nanoseconds interval = std::chrono::milliseconds(100);
};

enum class Activity {
  kUnused,
  kRunning,
  kIdle,
  kWaiting,
  kPaused,
  kHalted,
  kSilent,
  kEnded,
  kCorrupt
};
// "waiting"
const char* ActivityName(Activity activity) noexcept;

// A core, or a task of an OS, at the latest look.
struct Subject {
  std::string name;  // "core 3 writer (1,2)", "task 7"
  bool is_task = false;
  uint32_t index = 0;  // of the core, or of the task's record
  Activity activity = Activity::kUnused;
  std::chrono::nanoseconds for_at_least{};  // it does this for so long, as far as was seen
  std::string waypoint;                     // "CRBW"; of cores
  std::string place;                        // "cb.c:88 in cb_reserve_back", as far as it is known
  std::string waits_for;                    // "cb3 of (1,2)"; empty: for nothing
  uint32_t heartbeat = 0;                   // of cores
};

enum class FindingKind { kDeadlock, kStarved, kSilent, kFault, kStackLow, kCorrupt, kDead };
// "deadlock"
const char* FindingKindName(FindingKind kind) noexcept;

enum class Confidence { kPossible, kLikely, kCertain };

// Something that is wrong. Each is found once; one that ended and came back is a new one.
struct Finding {
  FindingKind kind = FindingKind::kDead;
  Confidence confidence = Confidence::kPossible;
  bool is_bad = false;  // a hang or a fault, and not merely possible
  std::string summary;  // one line without an end: "deadlock, 2 of 5 cores wait for each other"
  std::string text;     // with all that is known of it, in lines
  std::vector<std::string> subjects;  // deadlock: each waits for the next, the last for the first
  std::vector<std::string> partners;  // starved: who holds what it waits for, or would provide it
  std::vector<std::string> victims;   // who else waits for these
};

// A record of a core's ring.
struct Event {
  uint32_t core = 0;
  uint64_t sequence = 0;         // of the core's records, from 0
  uint32_t earlier_start = 0;    // 0: of the newest start of the target, 1: of the one before ...
  std::optional<uint32_t> task;  // that ran, as far as the switches tell
  uint64_t ticks = 0;            // of the target's clock
  bool is_ambiguous = false;     // the time may be wrong by whole turns of a 32-bit clock
  // Where the frequency of the clock is known.
  std::optional<std::chrono::nanoseconds> time;
  std::string name;  // "task_switch"
  std::string text;  // its parameters, by its format: "task 3 runs"
};

struct Events {
  std::vector<Event> events;  // the oldest first, where the cores have one clock; else by core
  uint64_t lost = 0;          // records of the same cores that are not to be had any more
};

// Before an access of the bus: rounds of a loop, below 2^31; `random`: from 0 to so many.
struct Delay {
  uint32_t rounds = 0;  // 0: none
  bool random = false;
};
// What is not given stays as it is.
struct Delays {
  std::optional<Delay> read;
  std::optional<Delay> write;
  std::optional<Delay> atomic;
  std::optional<uint32_t> seed;  // of random ones
};

// Classes of events, the bits of a mask; 4 to 30 are the program's own.
constexpr uint32_t kClassTask = 1u << 0;
constexpr uint32_t kClassSync = 1u << 1;
constexpr uint32_t kClassIsr = 1u << 2;
constexpr uint32_t kClassMeta = 1u << 3;
constexpr uint32_t kClassUser = 1u << 4;
constexpr uint32_t kClassHistory = 1u << 31;
constexpr uint32_t kAllClasses = 0xffffffffu;

constexpr uint32_t kFeatureWaypoints = 1u << 0;  // and heartbeats, kernels, launch states
constexpr uint32_t kFeatureWaits = 1u << 1;
constexpr uint32_t kFeatureAsserts = 1u << 2;
constexpr uint32_t kFeaturePauses = 1u << 3;
constexpr uint32_t kFeatureDebug = 1u << 4;
constexpr uint32_t kFeatureDelays = 1u << 5;
constexpr uint32_t kFeatureBus = 1u << 6;
constexpr uint32_t kFeatureStacks = 1u << 7;
constexpr uint32_t kFeatureGuards = 1u << 8;

// Bits of kFeature...
struct Features {
  uint32_t built = 0;  // that the program has
  uint32_t on = 0;     // of these
};

// A target that its owner looks at. Not thread-safe; may be moved, and used by another thread then.
class Target {
 public:
  // `specification`: file:PATH[@OFFSET], pid:N, core:FILE, gdb:HOST:PORT, exec:COMMAND, or a path.
  static Result<Target> Open(const std::string& specification, const Options& options = {});
  static Result<Target> Open(std::unique_ptr<Probe> probe, const Options& options = {});
  Target(Target&&) noexcept;
  Target& operator=(Target&&) noexcept;
  ~Target();

  // What people should know of it, a sentence each.
  const std::vector<std::string>& warnings() const;
  // Looks once; Subjects() has what it found.
  Status Look();
  // Cores, then tasks; those that never said anything, too. Empty before the first look.
  std::vector<Subject> Subjects() const;
  // What is wrong with it. Takes Options::stall and a few looks more where the target may go on,
  // and no time where it is dead. Empty: nothing that could be found.
  Result<std::vector<Finding>> Why();

  // At its next pause point; on. A core of it by its number.
  Status Pause(uint32_t core);
  Status Resume(uint32_t core);
  // What the rings hold now. Takes a few milliseconds more where records are in the making.
  Result<Events> ReadEvents();
  // All of these write a few words into the target, which is not stopped for it, and fail where it
  // was built without the feature.
  Status SetDelays(uint32_t core, const Delays& delays);
  // Which events it records; 0: none.
  Status SetMask(uint32_t core, uint32_t classes);
  // It records so many more of those, below 2^31, and stops.
  Status FreezeAfter(uint32_t core, uint32_t records);
  Result<Features> ReadFeatures();
  // Of those that are built in; the rest of `on` must be 0.
  Status SetFeatures(uint32_t on);
  // Into a folder that this makes: the scope as it is now, and its catalog. hangscope why, show,
  // export and report take the folder. Fails where anything has the name.
  Status TakeSnapshot(const std::string& folder);

 private:
  struct Inner;
  explicit Target(std::unique_ptr<Inner> inner);
  std::unique_ptr<Inner> inner_;
};

// Called on the watcher's own thread, one call at a time. It may take its time: the next look
// waits. It may do anything but destroy the Watcher; RequestStop() is allowed. It may not throw:
// the program would end.
using OnFinding = std::function<void(const Finding& finding)>;

// Watches a target on a thread of its own until it is stopped, or the target is gone. The thread
// blocks all signals, so that the program's handlers run on the program's threads.
class Watcher {
 public:
  // Opens the target before it returns: what is wrong with the specification is told here.
  static Result<Watcher> Start(const std::string& specification, const Options& options,
                               OnFinding on_finding);
  static Result<Watcher> Start(std::unique_ptr<Probe> probe, const Options& options,
                               OnFinding on_finding);
  Watcher(Watcher&&) noexcept;
  Watcher& operator=(Watcher&&) noexcept;
  // Stops.
  ~Watcher();

  // The rest any thread may call, the callback included.

  // It looks no more; no callback begins after the one that may be running. Returns at once.
  void RequestStop() noexcept;
  // The same, and waits for the thread to end: then no callback runs. Any number of times. From the
  // callback it does not wait.
  void Stop();
  // Waits until the target is gone, or somebody stops; at most so long. False: it goes on.
  bool Wait(std::chrono::nanoseconds at_most);
  // As of its latest look.
  std::vector<Subject> Subjects() const;
  // How many looks there were.
  uint64_t looks() const noexcept;
  // These are as Target's. Each takes effect between two looks, and waits for the one that runs.
  Status Pause(uint32_t core);
  Status Resume(uint32_t core);
  Result<Events> ReadEvents();
  Status SetDelays(uint32_t core, const Delays& delays);
  Status SetMask(uint32_t core, uint32_t classes);
  Status FreezeAfter(uint32_t core, uint32_t records);
  Result<Features> ReadFeatures();
  Status SetFeatures(uint32_t on);
  Status TakeSnapshot(const std::string& folder);

 private:
  struct Inner;
  explicit Watcher(std::unique_ptr<Inner> inner);
  std::unique_ptr<Inner> inner_;
};

}  // namespace hangscope::host

#endif
