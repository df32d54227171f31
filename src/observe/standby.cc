#include "observe/standby.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

#include "base/file_lock.h"
#include "base/numbers.h"
#include "observe/drain.h"
#include "ring/ring_store.h"
#include "ring/staging_buffer.h"

namespace hangscope {
namespace {

constexpr uint32_t kOver = 1;  // the baton's only word, once the recording has ended by itself
constexpr int kCheckMs = 500;
constexpr TimeNs kLongestFarewell = kSecond;

// The lock belongs to the open file, and what is inherited is the same open file:
// every process needs its own.
int OpenAnew(int fd) {
  return open(fmt::format("/proc/self/fd/{}", fd).c_str(), O_RDWR | O_CLOEXEC);
}

void SayOver(int baton) { (void)!pwrite(baton, &kOver, sizeof kOver, 0); }

bool IsOver(int baton) {
  uint32_t word = 0;
  return pread(baton, &word, sizeof word, 0) == sizeof word && word == kOver;
}

// Of a child of ours; also if somebody else has waited for it.
bool HasEnded(pid_t pid) {
  const pid_t ended = waitpid(pid, nullptr, WNOHANG);
  return ended == pid || (ended < 0 && errno == ECHILD);
}

// Nothing can be recorded any more; the program shall not suffer from it.
void OnlyPassOn(const StandbyStream& stream) {
  std::vector<char> buffer(64 * 1024);
  for (;;) {
    const ssize_t got = read(stream.input_fd, buffer.data(), buffer.size());
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got <= 0) return;
    if (stream.out_fd >= 0) (void)!write(stream.out_fd, buffer.data(), static_cast<size_t>(got));
  }
}

// The streams, from where the dead recorder was to their end.
class Successor {
 public:
  Successor(FileSystem& files, Clock& clock)
      : files_(files), clock_(clock), done_event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  ~Successor() {
    for (std::thread& thread : unrecorded_) thread.join();
    drains_.clear();
    close(done_event_);
  }

  Status GoOn(const StandbyStream& stream) {
    auto ring = RingStore::Resume(files_, clock_, stream.prefix);
    if (!ring.ok()) return Refuse(stream, ring.status());
    auto stage = StagingBuffer::Attach(stream.stage_fd, (*ring)->head());
    if (!stage.ok()) return Refuse(stream, stage.status());
    PassthroughOptions out;
    out.fd = stream.out_fd;
    out.hide_traces = stream.hide_traces;
    drains_.push_back(std::make_unique<Drain>(stream.input_fd, true, ring->get(), std::move(*stage),
                                              &clock_, out, stream.lossless, done_event_));
    rings_.push_back(std::move(*ring));
    drains_.back()->Start();
    return {};
  }
  bool ended() const {
    return std::all_of(drains_.begin(), drains_.end(),
                       [](const auto& drain) { return drain->ended(); });
  }
  void Wait() const {
    pollfd event = {done_event_, POLLIN, 0};
    poll(&event, 1, kCheckMs);
    uint64_t count = 0;
    (void)!read(done_event_, &count, sizeof count);
  }

 private:
  Status Refuse(const StandbyStream& stream, const Status& why) {
    unrecorded_.emplace_back([stream] { OnlyPassOn(stream); });
    return why;
  }

  FileSystem& files_;
  Clock& clock_;
  const int done_event_;
  std::vector<std::unique_ptr<RingStore>> rings_;
  std::vector<std::unique_ptr<Drain>> drains_;
  std::vector<std::thread> unrecorded_;
};

bool ScanNumber(std::string_view* text, int* number) {
  const size_t comma = text->find(',');
  if (comma == std::string_view::npos) return false;
  const auto parsed = ParseWhole<int>(text->substr(0, comma));
  *number = parsed.value_or(0);
  text->remove_prefix(comma + 1);
  return parsed.has_value();
}

}  // namespace

std::string ToWord(const StandbyStream& stream) {
  return fmt::format("{},{},{},{},{},{}", stream.input_fd, stream.stage_fd, stream.out_fd,
                     int{stream.hide_traces}, int{stream.lossless}, stream.prefix);
}

Result<StandbyStream> ParseGuardedStream(const std::string& word) {
  StandbyStream stream;
  std::string_view rest = word;
  int hide_traces = 0;
  int lossless = 0;
  for (int* number :
       {&stream.input_fd, &stream.stage_fd, &stream.out_fd, &hide_traces, &lossless}) {
    if (!ScanNumber(&rest, number))
      return Status::Usage(fmt::format("'{}' describes no guarded stream", word));
  }
  stream.hide_traces = hide_traces != 0;
  stream.lossless = lossless != 0;
  stream.prefix = rest;
  return stream;
}

Result<std::unique_ptr<Standby>> Standby::Post(const std::string& program,
                                               const std::vector<StandbyStream>& streams) {
  const int baton = memfd_create("hangscope-baton", MFD_CLOEXEC);
  if (baton < 0) return Status::FromErrno(errno, "create", "a baton for the guards");
  std::unique_ptr<Standby> guards(new Standby(program, baton));
  struct flock lock = WholeFile();
  if (fcntl(baton, F_OFD_SETLK, &lock) != 0)
    return Status::FromErrno(errno, "lock", "the baton for the guards");
  if (Status status = guards->Start(streams, 2); !status.ok()) return status;
  return guards;
}

std::unique_ptr<Standby> Standby::Inherit(const std::string& program, int baton_fd) {
  return std::unique_ptr<Standby>(new Standby(program, baton_fd));
}

Standby::~Standby() {
  Dismiss();
  close(baton_);
}

Status Standby::Start(const std::vector<StandbyStream>& streams, int count) {
  streams_ = streams;
  for (int i = 0; i < count; ++i) {
    auto pid = Spawn();
    if (!pid.ok()) return pid.status();
    pids_.push_back(*pid);
  }
  return {};
}

// In a session of its own: what is meant for the recorder's group, a Ctrl-C or a
// kill of the whole job, is not meant for it.
Result<pid_t> Standby::Spawn() const {
  const int baton = OpenAnew(baton_);
  if (baton < 0) return Status::FromErrno(errno, "open", "the baton for a guard");
  std::vector<std::string> words = {"hangscope", "guard", std::to_string(baton),
                                    std::to_string(getpid())};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, baton, baton);  // onto itself: stays open
  std::vector<StandbyStream> streams = streams_;
  std::vector<int> moved;
  for (StandbyStream& stream : streams) {
    if (stream.input_fd == STDIN_FILENO) {
      stream.input_fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
      moved.push_back(stream.input_fd);
    }
    posix_spawn_file_actions_adddup2(&actions, stream.input_fd, stream.input_fd);
    posix_spawn_file_actions_adddup2(&actions, stream.stage_fd, stream.stage_fd);
    words.push_back(ToWord(stream));
  }
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t pid = 0;
  const int error =
      posix_spawn(&pid, program_.c_str(), &actions, &attributes, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  close(baton);
  for (const int fd : moved) close(fd);
  if (error != 0) return Status::FromErrno(error, "start", "a guard");
  return pid;
}

void Standby::Check() {
  for (pid_t& pid : pids_) {
    if (!HasEnded(pid)) continue;
    if (auto next = Spawn(); next.ok()) pid = *next;
  }
}

void Standby::Dismiss() {
  if (pids_.empty()) return;
  SayOver(baton_);
  struct flock lock = WholeFile(F_UNLCK);
  (void)fcntl(baton_, F_OFD_SETLK, &lock);
  const TimeNs step = 200'000;
  for (TimeNs waited = 0; !pids_.empty() && waited < kLongestFarewell; waited += step) {
    std::erase_if(pids_, HasEnded);
    const timespec moment = {0, step};
    if (!pids_.empty()) nanosleep(&moment, nullptr);
  }
  pids_.clear();
}

bool Standby::Has(pid_t pid) const {
  return std::find(pids_.begin(), pids_.end(), pid) != pids_.end();
}

void StandGuard(FileSystem& files, Clock& clock, const std::string& program, int baton_fd,
                pid_t recorder, const std::vector<StandbyStream>& streams,
                void (*tell)(const std::string&)) {
  // Inherited, they are not closed by exec: a guard of ours must not hold our baton.
  (void)fcntl(baton_fd, F_SETFD, FD_CLOEXEC);
  for (const StandbyStream& stream : streams) {
    (void)fcntl(stream.input_fd, F_SETFD, FD_CLOEXEC);
    (void)fcntl(stream.stage_fd, F_SETFD, FD_CLOEXEC);
  }
  struct flock lock = WholeFile();
  while (fcntl(baton_fd, F_OFD_SETLKW, &lock) != 0) {
    if (errno != EINTR) return;
  }
  if (IsOver(baton_fd)) return;
  const std::unique_ptr<Standby> guards = Standby::Inherit(program, baton_fd);
  Successor successor(files, clock);
  for (const StandbyStream& stream : streams) {
    const Status status = successor.GoOn(stream);
    if (!status.ok())
      tell(fmt::format("'{}' cannot be recorded any more: {}", stream.prefix, status.message()));
  }
  tell(fmt::format(
      "the recorder (process {}) was killed; process {} records on, and nobody watches for hangs",
      recorder, getpid()));
  // Not before this one has all that it needs: where threads or memory are short, one would follow
  // the other without end. The other one of the recorder waits for the baton still.
  (void)guards->Start(streams, 1).ok();
  while (!successor.ended()) {
    successor.Wait();
    guards->Check();
  }
}

}  // namespace hangscope
