// What the source of the program calls the objects that threads wait for: ProcessLook's part.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "process/process_look.h"

namespace hangscope {
namespace {

constexpr size_t kMostNamed = 256;  // objects of a process

// The symbols say which variable it is a part of, or nothing.
bool WantsName(const ThreadWait& wait) {
  const bool says_little = wait.variable.empty() || wait.variable.find('+') != std::string::npos ||
                           wait.variable.starts_with("on the stack ");
  return wait.address != 0 && wait.files.empty() && says_little && wait.object_type.empty() &&
         wait.shared_name.empty();
}

}  // namespace

std::vector<std::string> ProcessLook::SourceNamesOf(uint64_t address,
                                                    const std::vector<StackPlace>& places) {
  const auto owner = ThreadWithStackAt(address);
  for (const Work& work : work_) {
    if (!owner || work.raw.tid != *owner) continue;
    auto names = walker_->SourceNames(work.places, address, true);
    if (!names.empty()) return names;
  }
  return walker_->SourceNames(places, address, false);
}

// One that no other object has, if there is such a name: several threads in the same function call
// what each of them waits for the same.
void ProcessLook::NameObjects() {
  if (walker_ == nullptr || is_java_ || go_) return;
  std::map<uint64_t, std::vector<std::string>> names;
  const auto object_of = [this](size_t i) {
    const bool is_of_call = i < work_.size() && !work_[i].meaning.futexes.empty();
    return is_of_call && WantsName(facts_.threads[i].wait) ? &facts_.threads[i].wait : nullptr;
  };
  for (size_t i = 0; i < work_.size() && names.size() < kMostNamed && !context_.IsLate(); ++i) {
    const ThreadWait* const wait = object_of(i);
    if (wait == nullptr || names.count(wait->address) != 0) continue;
    std::vector<std::string>& all = names[wait->address];
    all = SourceNamesOf(wait->address, work_[i].places);
    for (const Work& work : work_) {
      if (wait->owner != work.raw.tid || work.raw.tid == work_[i].raw.tid) continue;
      for (std::string& name : SourceNamesOf(wait->address, work.places))
        all.push_back(std::move(name));
    }
  }
  std::map<std::string, size_t> objects;
  for (const auto& [address, its_names] : names) {
    for (const std::string& name : std::set(its_names.begin(), its_names.end())) ++objects[name];
  }
  for (size_t i = 0; i < work_.size(); ++i) {
    if (object_of(i) == nullptr) continue;
    ThreadWait& wait = facts_.threads[i].wait;
    const std::vector<std::string>& all = names[wait.address];
    if (all.empty()) continue;
    const auto own = std::find_if(all.begin(), all.end(),
                                  [&](const std::string& name) { return objects[name] == 1; });
    wait.variable = own != all.end() ? *own : fmt::format("{} at {:#x}", all[0], wait.address);
  }
}

}  // namespace hangscope
