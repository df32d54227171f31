// A program of Go 1.19 with a heap and code of its own, as little of them as it takes to follow
// pointers: objects of 64 bytes, and one function in which all goroutines wait.
#ifndef HANGSCOPE_TESTS_FAKES_FAKE_GO_PROGRAM_H
#define HANGSCOPE_TESTS_FAKES_FAKE_GO_PROGRAM_H

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "fakes/fake_go.h"
#include "runtime/go/go_layout.h"

namespace hangscope {

class FakeGoProgram : public FakeGo {
 public:
  static constexpr uint64_t kObjectBytes = 64;
  static constexpr uint64_t kCode = 0x400000;  // where all wait
  static constexpr uint64_t kOutermost = 0x400100;

  FakeGoProgram() {
    using namespace go_layout;
    heap_ = Block(kArenas + 8);
    objects_ = (Block(2 * kBytesOfPage) + kBytesOfPage - 1) / kBytesOfPage * kBytesOfPage;
    span_ = Block(kBytesOfSpan);
    Put(span_ + kSpanBegin, objects_);
    Put<uint64_t>(span_ + kSpanPages, 1);
    Put(span_ + kSpanState, kSpanInUse);
    Put(span_ + kSpanObjectBytes, kObjectBytes);
    const uint64_t list = Block(8);
    Put(list, span_);
    Put(heap_ + kAllSpans, list);
    Put<uint64_t>(heap_ + kAllSpans + 8, 1);
    // All words of all objects are pointers.
    const uint64_t first_bit = objects_ % kBytesOfArena / (8 * kWordsOfBitByte);
    bits_ = Block(kBytesOfPage / (8 * kWordsOfBitByte));
    PutText(bits_, std::string(kBytesOfPage / (8 * kWordsOfBitByte), '\xff'));
    const uint64_t arena = Block(8);
    Put(arena, bits_ - first_bit);
    Put(heap_ + kArenas, arena - (objects_ - kLowestArena) / kBytesOfArena * 8);
    WriteCode();
  }

  uint64_t heap() const { return heap_; }
  uint64_t module() const { return module_; }
  uint64_t span() const { return span_; }
  uint64_t NewObject(const std::vector<uint64_t>& pointers = {}) {
    const uint64_t at = objects_ + kObjectBytes * made_++;
    for (size_t i = 0; i < pointers.size(); ++i) Put(at + 8 * i, pointers[i]);
    return at;
  }
  void Point(uint64_t object, size_t word, uint64_t to) { Put(object + 8 * word, to); }
  void SetVariable(uint64_t value) { Put(variable_, value); }
  // Waits with these on its stack, of which the last two are not used any more.
  uint64_t AddWaiting(uint64_t id, uint8_t reason, const std::vector<uint64_t>& words) {
    return AddOne(id, go_layout::Status::kWaiting, reason, words);
  }
  uint64_t AddRunning(uint64_t id, const std::vector<uint64_t>& words) {
    return AddOne(id, go_layout::Status::kRunning, 0, words);
  }
  // To an object, a finalizer that calls a function.
  void Finalize(uint64_t object, uint64_t function) {
    const uint64_t special = Block(go_layout::kBytesOfSpecial);
    Put(special + go_layout::kSpecialOffset, static_cast<uint16_t>(object - objects_));
    Put(special + go_layout::kSpecialKind, go_layout::kFinalizer);
    Put(special + go_layout::kFinalizerFunction, function);
    Put(span_ + go_layout::kSpanSpecials, special);
  }

 private:
  void WriteCode() {
    using namespace go_layout;
    constexpr uint32_t kLocals = 4, kFrame = 8 * (kLocals + 1);  // and the caller's frame pointer
    const std::string tables = {'\0',   static_cast<char>(2 * (kFrame + 1)),
                                '\x80', '\x02',
                                '\0',  // at 1: the frame
                                '\x02', '\x80',
                                '\x02', '\0'};  // at 5: nothing, map 0
    const uint64_t pc_tables = Block(tables.size());
    PutText(pc_tables, tables);
    const uint64_t maps = Block(16);
    Put<int32_t>(maps, 1);
    Put<int32_t>(maps + 4, kLocals);
    Put<uint8_t>(maps + 8, 0b0011);
    const uint64_t functions = Block(256);
    const auto write = [&](uint64_t at, uint32_t deltas, uint8_t flags) {
      Put(functions + at + kStackDeltas, deltas);
      Put<uint32_t>(functions + at + kPcTables, 2);
      Put(functions + at + kFlags, flags);
      Put<uint8_t>(functions + at + kFunctionTables, 2);
      Put<uint32_t>(functions + at + kBytesOfFunction + 4, 5);
      Put<uint32_t>(functions + at + kBytesOfFunction + 8, UINT32_MAX);
      Put<uint32_t>(functions + at + kBytesOfFunction + 12, 0);
    };
    write(0, 1, 0);
    write(128, 5, go_layout::kOutermost);
    const uint64_t places = Block(24);
    const uint32_t table[] = {0, 0, 0x100, 128, 0x200, 0};
    for (size_t i = 0; i < 6; ++i) Put(places + 4 * i, table[i]);
    variable_ = Block(16);
    const uint64_t bits = Block(8);
    Put<uint8_t>(bits, 1);
    module_ = Block(kBytesOfModule);
    const auto put_slice = [&](uint64_t at, uint64_t begin, uint64_t count) {
      Put(module_ + at, begin);
      Put(module_ + at + 8, count);
    };
    put_slice(kPcTable, pc_tables, tables.size());
    put_slice(kFunctionHeads, functions, 256);
    put_slice(kFunctionTable, places, 3);
    Put(module_ + kText, kCode);
    Put(module_ + kFunctionData, maps);
    Put(module_ + kData, variable_);
    Put(module_ + kBss, variable_ + 8);
    Put<int32_t>(module_ + kDataBits, 1);
    Put(module_ + kDataBits + 8, bits);
    Put<int32_t>(module_ + kBssBits, 0);
    Put(module_ + kBssBits + 8, bits);
  }
  uint64_t AddOne(uint64_t id, go_layout::Status status, uint8_t reason,
                  const std::vector<uint64_t>& words) {
    const uint64_t g = AddGoroutine(id, status, reason);
    const uint64_t stack = Block(64);
    for (size_t i = 0; i < words.size(); ++i) Put(stack + 8 * i, words[i]);
    Put<uint64_t>(stack + 40, kOutermost + 1);
    Put(g + go_layout::kStackBegin, stack);
    Put(g + go_layout::kStackEnd, stack + 64);
    Put(g + go_layout::kSavedStackPointer, stack);
    Put<uint64_t>(g + go_layout::kSavedPc, kCode + 16);
    return g;
  }

  uint64_t heap_ = 0, span_ = 0, objects_ = 0, bits_ = 0, module_ = 0, variable_ = 0;
  size_t made_ = 0;
};

}  // namespace hangscope

#endif
