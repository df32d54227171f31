// Standby: processes that stand by with everything a recording needs, so that it
// survives its recorder.
//
// A program whose output nobody reads any more is killed by SIGPIPE or blocks. So two
// guards hold the streams, the stages and a baton: a file in memory that is locked by
// whoever records. When that process dies, however it dies, the kernel lets go of the
// lock, and exactly one guard gets it: it goes on where the dead one was, to the byte,
// and puts a new guard in its own place. A recorder that ends by itself says so in the
// baton first, and the guards go. They record and pass on; they do not judge.
#ifndef HANGSCOPE_OBSERVE_STANDBY_H
#define HANGSCOPE_OBSERVE_STANDBY_H

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/file_system.h"
#include "base/status.h"

namespace hangscope {

struct StandbyStream {
  int input_fd = -1;
  int stage_fd = -1;
  int out_fd = -1;  // passthrough; -1: none
  bool hide_traces = false;
  bool lossless = false;
  std::string prefix;  // of its ring
};

// The recorder's side. One thread.
class Standby {
 public:
  // Takes the baton and posts two guards, so that one is left when the recorder and
  // another are killed at once. What they are to hold must be open from now to Dismiss.
  // `program`: this hangscope, which has the subcommand `guard`.
  static Result<std::unique_ptr<Standby>> Post(const std::string& program,
                                               const std::vector<StandbyStream>& streams);
  // Goes on with the baton that a guard inherited.
  static std::unique_ptr<Standby> Inherit(const std::string& program, int baton_fd);
  ~Standby();
  Standby(const Standby&) = delete;
  Standby& operator=(const Standby&) = delete;

  // Starts `count` guards.
  Status Start(const std::vector<StandbyStream>& streams, int count);
  // Replaces those that died. Cheap; call it now and then.
  void Check();
  // The recording ended by itself: sends them home and waits for them.
  void Dismiss();
  bool Has(pid_t pid) const;

 private:
  Standby(std::string program, int baton_fd) : program_(std::move(program)), baton_(baton_fd) {}
  Result<pid_t> Spawn() const;

  const std::string program_;
  const int baton_;
  std::vector<StandbyStream> streams_;
  std::vector<pid_t> pids_;
};

// A guard's side. `streams` and `baton_fd` as inherited; `recorder` is whom it
// guards. Returns when it is not needed any more; `tell` gets a sentence if it was.
// Any signal that would end it must be blocked or ignored.
void StandGuard(FileSystem& files, Clock& clock, const std::string& program, int baton_fd,
                pid_t recorder, const std::vector<StandbyStream>& streams,
                void (*tell)(const std::string&));

// A stream as a word of the command line of `guard`, and back.
std::string ToWord(const StandbyStream& stream);
Result<StandbyStream> ParseGuardedStream(const std::string& word);

}  // namespace hangscope

#endif
