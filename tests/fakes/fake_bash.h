// The memory of a bash 5.2, as little of it as the places of its script need, written down as bash
// lays it out. Any byte of it may be changed then.
#ifndef HANGSCOPE_TESTS_FAKES_FAKE_BASH_H
#define HANGSCOPE_TESTS_FAKES_FAKE_BASH_H

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fakes/fake_memory.h"
#include "runtime/bash/bash_reader.h"

namespace hangscope {

class FakeBash : public FakeMemory {
 public:
  static constexpr uint64_t kBegin = 0x100000;

  FakeBash() : FakeMemory(kBegin) {
    symbols_ = Block(7 * kWord);
    SetVersion("5.2");
    Put<int32_t>(At(kExecuting), 1);
    table_ = Block(16);
    Put(table_, Block(kBuckets * kWord));
    Put<uint32_t>(table_ + 8, kBuckets);
    const uint64_t context = Block(40);
    Put(context + 32, table_);
    Put(At(kVariables), context);
  }

  void SetVersion(const std::string& version) { Put(At(kVersion), Text(version)); }
  void SetExecuting(bool executing) { Put<int32_t>(At(kExecuting), executing); }
  void SetLine(int32_t line) { Put(At(kLine), line); }
  void SetScript(const std::string& script) { Put(At(kScript), Text(script)); }
  void SetCommand(const std::string& command) { Put(At(kCommand), Text(command)); }
  void SetArray(const std::string& name, const std::vector<std::string>& values) {
    const uint64_t head = Block(32);
    uint64_t last = head;
    for (const std::string& value : values) {
      const uint64_t element = Block(32);
      Put(element + 8, Text(value));
      Put(last + 16, element);
      last = element;
    }
    Put(last + 16, head);
    const uint64_t array = Block(32);
    Put(array + 16, head);
    const uint64_t variable = Block(48);
    Put(variable + 8, array);
    const uint64_t entry = Block(32);
    const uint64_t bucket = Get<uint64_t>(table_) + next_bucket_++ % kBuckets * kWord;
    Put(entry, Get<uint64_t>(bucket));
    Put(entry + 8, Text(name));
    Put(entry + 16, variable);
    Put(bucket, entry);
  }

  std::optional<uint64_t> Find(std::string_view name) const {
    for (uint64_t i = 0; i < std::size(kNames); ++i) {
      if (name == kNames[i] && name != hidden) return At(i);
    }
    return std::nullopt;
  }
  Result<BashReader> Open() const {
    return BashReader::Open([this](std::string_view name) { return Find(name); },
                            [this](uint64_t address, void* into, size_t bytes) {
                              ++reads;
                              return Read(address, into, bytes);
                            });
  }

  std::string_view hidden;  // a symbol that is not there
  mutable size_t reads = 0;

 private:
  static constexpr uint64_t kWord = 8;
  static constexpr uint32_t kBuckets = 2;
  static constexpr std::string_view kNames[] = {
      "executing",        "line_number", "shell_script_filename", "command_execution_string",
      "global_variables", "dist_version"};
  enum : uint64_t { kExecuting, kLine, kScript, kCommand, kVariables, kVersion };

  uint64_t At(uint64_t symbol) const { return symbols_ + symbol * kWord; }
  uint64_t Text(const std::string& text) {
    const uint64_t at = Block(text.size() + 1);
    PutText(at, text);
    return at;
  }

  uint64_t symbols_ = 0, table_ = 0, next_bucket_ = 0;
};

// It is in a function, which a file that the script has read calls.
struct FakeBashStory {
  FakeBashStory() {
    bash.SetLine(6);
    bash.SetScript("deploy.sh");
    bash.SetArray("FUNCNAME", {"wait_for_lock", "deploy_all", "source", "main"});
    bash.SetArray("BASH_LINENO", {"10", "2", "15", "0"});
    bash.SetArray("BASH_SOURCE", {"deploy.sh", "/srv/lib.sh", "/srv/lib.sh", "deploy.sh"});
  }
  FakeBash bash;
};

}  // namespace hangscope

#endif
