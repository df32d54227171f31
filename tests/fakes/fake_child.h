#ifndef HANGSCOPE_TESTS_FAKES_FAKE_CHILD_H
#define HANGSCOPE_TESTS_FAKES_FAKE_CHILD_H

#include <unistd.h>

#include <functional>
#include <string_view>
#include <vector>

#include "proc/child_process.h"

namespace hangscope {

// A program that does what a test says: prints through real pipes, ends or dies
// when asked to, and remembers the signals it got.
class FakeChild final : public ChildProcess {
 public:
  FakeChild() {
    if (pipe(out_) != 0 || pipe(err_) != 0) abort();
    stream_fds_ = {out_[0], err_[0]};  // the drains close them
  }
  ~FakeChild() override { CloseOutput(); }

  void Print(std::string_view text) { (void)!write(out_[1], text.data(), text.size()); }
  void End(ChildExit exit) {
    exit_ = exit;
    CloseOutput();
  }

  pid_t pid() const override { return 4711; }
  std::optional<ChildExit> Poll() override {
    if (on_poll) on_poll();
    return exit_;
  }
  void Signal(int signal_number, SignalSource) override {
    signals.push_back(signal_number);
    if (on_signal) on_signal();
    if (signal_number == dies_of) End({0, signal_number});
  }
  void SignalDescendants(int) override {}
  ChildActivity Activity() override { return activity; }
  bool WaitsForInput(const std::vector<int>&) override {
    if (on_question_for_input) on_question_for_input();
    return waits_for_input;
  }
  const std::vector<int>& stream_fds() const override { return stream_fds_; }
  void FollowTerminalSize() override { ++terminal_sizes_seen; }

  ChildActivity activity;
  bool waits_for_input = false;
  std::vector<int> signals;
  int dies_of = 0;
  int terminal_sizes_seen = 0;
  std::function<void()> on_poll;  // each time hangscope looks
  std::function<void()> on_signal;
  std::function<void()> on_question_for_input;

 private:
  void CloseOutput() {
    for (int* end : {&out_[1], &err_[1]}) {
      if (*end >= 0) close(*end);
      *end = -1;
    }
  }

  int out_[2];
  int err_[2];
  std::vector<int> stream_fds_;
  std::optional<ChildExit> exit_;
};

}  // namespace hangscope

#endif
