// An inspector whose looks a test writes down.
#ifndef HANGSCOPE_TESTS_FAKES_FAKE_PROCESS_INSPECTOR_H
#define HANGSCOPE_TESTS_FAKES_FAKE_PROCESS_INSPECTOR_H

#include <deque>
#include <utility>
#include <vector>

#include "proc/process_inspector.h"

namespace hangscope {

class FakeProcessInspector final : public ProcessInspector {
 public:
  // The next look; the last one is what all later looks see, too.
  void Add(SystemSample look) { looks_.push_back(std::move(look)); }

  Result<SystemSample> Inspect(int pid, const InspectOptions& options) override {
    asked.emplace_back(pid, options);
    if (looks_.empty()) return Status::NotFound("there is no such process");
    SystemSample look = looks_.front();
    if (looks_.size() > 1) looks_.pop_front();
    return look;
  }

  std::vector<std::pair<int, InspectOptions>> asked;

 private:
  std::deque<SystemSample> looks_;
};

}  // namespace hangscope

#endif
