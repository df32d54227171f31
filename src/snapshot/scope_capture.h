// The scope of a program that `hangscope run` watches: found while the program lives, and read
// for each snapshot, after its end, too.
#ifndef HANGSCOPE_SNAPSHOT_SCOPE_CAPTURE_H
#define HANGSCOPE_SNAPSHOT_SCOPE_CAPTURE_H

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "scope/scope_view.h"
#include "snapshot/scope_clock.h"
#include "target/target_spec.h"

namespace hangscope {

// What a snapshot gets.
struct ScopeParts {
  std::string image;
  std::string catalog;  // empty: there is none
  std::vector<ScopeCore> cores;
};

class ScopeCapture {
 public:
  // `place`: where the scope of a process is.
  ScopeCapture(FileSystem& files, std::function<ScopeSource(int pid)> place)
      : files_(files), place_(std::move(place)) {}

  // A few times a second: a program needs a moment before it has a scope, and its mapping is
  // gone with it. Once found, it is kept open.
  void Find(int pid);
  bool found() const { return view_ != nullptr; }
  // To be called a few times a second; looks at the newest events when it is time to, where they
  // are all that tells of the target's clock.
  void SampleClock(Clock& clock, ScopeClock* scope_clock);
  // One read of the whole block, and what is in it.
  Result<ScopeParts> Take(int pid);

 private:
  FileSystem& files_;
  const std::function<ScopeSource(int)> place_;
  std::unique_ptr<ScopeView> view_;
  void SeeNewest(TimeNs before, TimeNs after, ScopeClock* scope_clock);
  bool BeganAnew();

  TimeNs looked_ = 0;                    // when the look before began; 0: there was none
  std::map<uint32_t, uint64_t> newest_;  // by core, of all looks since the target began
  uint32_t boots_ = 0;                   // its count of starts then
  Status why_not_ = Status::NotFound("the program has no scope yet");
};

}  // namespace hangscope

#endif
