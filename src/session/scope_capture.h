// The scope of a program that `hangscope run` watches: found while the program lives, and read
// for each snapshot, after its end, too.
#ifndef HANGSCOPE_SESSION_SCOPE_CAPTURE_H
#define HANGSCOPE_SESSION_SCOPE_CAPTURE_H

#include <memory>
#include <string>
#include <vector>

#include "session/scope_view.h"

namespace hangscope {

// What a snapshot gets.
struct ScopeParts {
  std::string image;
  std::string catalog;  // empty: there is none
  std::vector<ScopeCore> cores;
};

class ScopeCapture {
 public:
  // `spec`: as for hangscope show; "pid:" is the program itself.
  ScopeCapture(FileSystem& files, std::string spec, std::string elf) : files_(files), spec_(std::move(spec)), elf_(std::move(elf)) {}

  // A few times a second: a program needs a moment before it has a scope, and its mapping is
  // gone with it. Once found, it is kept open.
  void Find(int pid);
  bool found() const { return view_ != nullptr; }
  // One read of the whole block, and what is in it.
  Result<ScopeParts> Take(int pid);

 private:
  FileSystem& files_;
  const std::string spec_;
  const std::string elf_;
  std::unique_ptr<ScopeView> view_;
  Status why_not_ = Status::NotFound("the program has no scope yet");
};

}  // namespace hangscope

#endif
