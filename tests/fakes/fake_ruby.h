// The memory of a program of Ruby 3.1, as little of it as threads, frames and waits need, written
// down as Ruby lays it out. Any byte of it may be changed then.
#ifndef HANGSCOPE_TESTS_FAKES_FAKE_RUBY_H
#define HANGSCOPE_TESTS_FAKES_FAKE_RUBY_H

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fakes/fake_memory.h"
#include "runtime/ruby/ruby_layout.h"
#include "runtime/ruby/ruby_reader.h"

namespace hangscope {

class FakeRuby : public FakeMemory {
 public:
  static constexpr uint64_t kBegin = 0x100000;
  static constexpr uint64_t kFiber = 0xf1be0;  // of whoever has a mutex: nobody reads it

  FakeRuby() : FakeMemory(kBegin) {
    using namespace ruby_layout;
    version_ = Block(12);
    SetVersion(kMajor, kMinor);
    pointer_ = Block(8);
    vm_ = Block(kVmTraps + kSignals * 8);
    Put(pointer_, vm_);
    Close(vm_ + kVmRactors);
    Close(vm_ + kVmChildWaits);
    ractor_ = Block(kRactorLink + 16);
    Close(ractor_ + kRactorThreads);
    Close(ractor_ + kRactorLockWaiters);
    Append(vm_ + kVmRactors, ractor_ + kRactorLink);
  }

  void SetVersion(int32_t major, int32_t minor) {
    Put(version_, major);
    Put(version_ + 4, minor);
  }
  // The first one is the main thread.
  uint64_t AddThread(int32_t tid,
                     ruby_layout::ThreadStatus status = ruby_layout::ThreadStatus::kRuns) {
    using namespace ruby_layout;
    const uint64_t thread = Block(kThreadName + 8);
    const uint64_t ec = Block(24);
    const uint64_t stack = Block(kStackWords * 8);
    Put(ec + kEcStack, stack);
    Put(ec + kEcStackWords, kStackWords);
    Put(ec + kEcFrame, stack + kStackWords * 8);
    Put(thread + kThreadEc, ec);
    Put(thread + kThreadId, tid);
    Put<uint8_t>(thread + kThreadStatus, static_cast<uint8_t>(0x10 | static_cast<int>(status)));
    Put(thread + kThreadName, kNil);
    Append(ractor_ + kRactorThreads, thread);
    if (Get<uint64_t>(vm_ + kVmMainThread) == 0) Put(vm_ + kVmMainThread, thread);
    PushFrame(thread, 0, 0, kNil, kFrameOfNothing);  // each stack begins so
    return thread;
  }
  void NameThread(uint64_t thread, const std::string& name) {
    Put(thread + ruby_layout::kThreadName, String(name));
  }
  // A call from the thread's innermost frame.
  void PushFrame(uint64_t thread, uint64_t iseq, uint64_t pc, uint64_t self, uint64_t kind) {
    using namespace ruby_layout;
    const uint64_t ec = Get<uint64_t>(thread + kThreadEc);
    const uint64_t frame = Get<uint64_t>(ec + kEcFrame) - kFrameBytes;
    const uint64_t env = Block(8);
    Put(env, kind | 3);
    Put(frame + kFramePc, pc);
    Put(frame + kFrameIseq, iseq);
    Put(frame + kFrameSelf, self);
    Put(frame + kFrameEnv, env);
    Put(ec + kEcFrame, frame);
  }
  // Of a function of C, as a method of `self`.
  void CallC(uint64_t thread, uint64_t self) { PushFrame(thread, 0, 0, self, 0x55550000); }
  // Of a method of Ruby, which is at its instruction `at`.
  void Call(uint64_t thread, uint64_t iseq, uint64_t at) {
    const uint64_t code = Get<uint64_t>(BodyOf(iseq) + ruby_layout::kBodyCode);
    PushFrame(thread, iseq, code + (at + 1) * 8, ruby_layout::kNil, 0x11110000);
  }
  // Each word of its code has a line.
  uint64_t Method(const std::string& label, uint64_t path, int first_line,
                  const std::vector<int>& lines) {
    using namespace ruby_layout;
    const uint64_t iseq = Block(24);
    const uint64_t body = Block(kBodyLineIndex + 8);
    Put(iseq, kInternal | kInternalIseq << kInternalShift);
    Put(iseq + kIseqBody, body);
    Put(body + kBodySize, static_cast<uint32_t>(lines.size()));
    Put(body + kBodyCode, Block(lines.size() * 8));
    Put(body + kBodyPath, path);
    Put(body + kBodyLabel, String(label));
    Put(body + kBodyFirstLine, static_cast<uint64_t>(first_line) << 1 | 1);
    PutLines(body, lines);
    return iseq;
  }
  uint64_t BodyOf(uint64_t iseq) const { return Get<uint64_t>(iseq + ruby_layout::kIseqBody); }
  uint64_t String(const std::string& text) {
    using namespace ruby_layout;
    const uint64_t string = Block(40);
    if (text.size() <= 23) {
      Put(string, kString | text.size() << kShortLengthShift);
      PutText(string + kBody, text);
      return string;
    }
    const uint64_t characters = Block(text.size());
    PutText(characters, text);
    Put(string, kString | kElsewhere);
    Put(string + kBody, static_cast<uint64_t>(text.size()));
    Put(string + kStringBytes, characters);
    return string;
  }
  // A path, and the real one.
  uint64_t Paths(const std::string& path, const std::string& real) {
    using namespace ruby_layout;
    const uint64_t array = Block(40);
    Put(array, kArray | kElsewhere);
    Put(array + kBody, String(path));
    Put(array + kBody + 8, String(real));
    return array;
  }
  // An object whose data C calls so, with `object` behind it.
  uint64_t Data(const std::string& type, uint64_t object) {
    using namespace ruby_layout;
    const uint64_t name = Block(type.size() + 1);
    PutText(name, type);
    const uint64_t described = Block(8);
    Put(described, name);
    const uint64_t data = Block(40);
    Put(data, kData);
    Put(data + kDataType, described);
    Put<uint64_t>(data + kDataIsTyped, 1);
    Put(data + kDataObject, object);
    return data;
  }
  // 0: nobody has it.
  uint64_t Mutex(uint64_t owner) {
    using namespace ruby_layout;
    const uint64_t mutex = Block(32);
    if (owner != 0) {
      Put(mutex, kFiber);
      Put(mutex + kMutexNext, Get<uint64_t>(owner + kThreadHasMutexes));
      Put(owner + kThreadHasMutexes, mutex);
    }
    return Data("mutex", mutex);
  }
  uint64_t Monitor(uint64_t mutex) {
    const uint64_t monitor = Block(24);
    Put(monitor + ruby_layout::kMonitorMutex, mutex);
    return Data("monitor", monitor);
  }
  void WantMutex(uint64_t thread, uint64_t mutex) {
    Put(thread + ruby_layout::kThreadWantsMutex, mutex);
  }
  // waitpid(2) of `child`.
  void WaitForChild(uint64_t thread, int32_t child) {
    using namespace ruby_layout;
    const uint64_t wait = Block(48);
    Put(wait + kChildWaitEc, Get<uint64_t>(thread + kThreadEc));
    Put(wait + kChildWaitFor, child);
    Append(vm_ + kVmChildWaits, wait);
  }
  // Until `owner` lets others run.
  void WaitToRun(uint64_t thread, uint64_t owner) {
    using namespace ruby_layout;
    Put(ractor_ + kRactorLockOwner, owner);
    Append(ractor_ + kRactorLockWaiters, thread + kThreadLockLink);
  }
  void Trap(int signal, uint64_t value) {
    Put(vm_ + ruby_layout::kVmTraps + static_cast<uint64_t>(signal) * 8, value);
  }
  // The list of threads comes to this one again and again.
  void Tangle(uint64_t thread) { Put(thread, thread); }

  Result<std::unique_ptr<RubyReader>> Open() const {
    const FindRubySymbol find = [this](std::string_view name) -> std::optional<uint64_t> {
      if (name == "ruby_api_version") return version_;
      if (name == "ruby_current_vm_ptr") return pointer_;
      return std::nullopt;
    };
    return RubyReader::Open(find, [this](uint64_t address, void* into, size_t bytes) {
      ++reads;
      return FakeMemory::Read(address, into, bytes);
    });
  }
  mutable size_t reads = 0;

 private:
  static constexpr uint64_t kStackWords = 256;

  void PutLines(uint64_t body, const std::vector<int>& lines) {
    using namespace ruby_layout;
    const uint64_t entries = Block(lines.size() * kLineEntryBytes);
    const uint64_t table =
        Block(kDirectBytes + (lines.size() / kIndexBlockPositions + 1) * kIndexBlockBytes);
    uint32_t count = 0;
    uint32_t before_part = 0;
    uint32_t before_block = 0;
    for (uint64_t i = 0; i < lines.size(); ++i) {
      const bool begins = i == 0 || lines[i] != lines[i - 1];
      if (begins) Put<int32_t>(entries + count++ * kLineEntryBytes, lines[i]);
      if (i < kDirectPositions) {
        Add(table + i / kDirectPerWord * 8, uint64_t{count} << (i % kDirectPerWord * kDirectBits));
        continue;
      }
      const uint64_t at = i - kDirectPositions;
      const uint64_t block = table + kDirectBytes + at / kIndexBlockPositions * kIndexBlockBytes;
      const uint64_t part = at % kIndexBlockPositions / 64;
      if (at % 64 == 0) before_part = count - (begins ? 1 : 0);
      if (at % kIndexBlockPositions == 0) Put<uint32_t>(block, before_block = before_part);
      if (at % 64 == 0 && part > 0)
        Add(block + kIndexBlockRanks,
            uint64_t{before_part - before_block} << ((part - 1) * kRankBits));
      if (begins) Add(block + kIndexBlockBits + part * 8, uint64_t{1} << (at % 64));
    }
    Put(body + kBodyLines, entries);
    Put(body + kBodyLineCount, count);
    Put(body + kBodyLineIndex, table);
  }
  void Add(uint64_t at, uint64_t bits) { Put(at, Get<uint64_t>(at) | bits); }
  // A list without members.
  void Close(uint64_t head) { Put(head, head), Put(head + 8, head); }
  void Append(uint64_t head, uint64_t link) {
    const uint64_t last = Get<uint64_t>(head + 8);
    Put(link, head), Put(link + 8, last), Put(last, link), Put(head + 8, link);
  }

  uint64_t version_ = 0;
  uint64_t pointer_ = 0;
  uint64_t vm_ = 0;
  uint64_t ractor_ = 0;
};

// Two threads that want each other's Mutex, in methods of one file, and what else may be waited
// for.
struct FakeRubyStory {
  FakeRuby ruby;
  uint64_t first = 0, second = 0;

  FakeRubyStory() {
    using ruby_layout::ThreadStatus;
    first = ruby.AddThread(100, ThreadStatus::kSleepsForever);
    second = ruby.AddThread(101, ThreadStatus::kSleepsForever);
    const uint64_t path = ruby.Paths("bank.rb", "/srv/shop/bank.rb");
    const uint64_t transfer = ruby.Method("transfer", path, 30, {31, 31, 32, 33});
    const uint64_t of_first = ruby.Mutex(first);
    const uint64_t of_second = ruby.Mutex(second);
    for (const auto& [thread, wanted] :
         {std::pair(first, of_second), std::pair(second, of_first)}) {
      ruby.Call(thread, transfer, 2);
      ruby.CallC(thread, wanted);
      ruby.WantMutex(thread, wanted);
    }
  }
};

}  // namespace hangscope

#endif
