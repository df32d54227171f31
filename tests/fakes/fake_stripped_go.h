// What is in memory of the file of a stripped program of Go 1.19: its tables of functions, the code
// of those from which the runtime's variables are known, and these.
#ifndef HANGSCOPE_TESTS_FAKES_FAKE_STRIPPED_GO_H
#define HANGSCOPE_TESTS_FAKES_FAKE_STRIPPED_GO_H

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "fakes/fake_memory.h"
#include "runtime/go/go_layout.h"
#include "runtime/go/go_symbols.h"

namespace hangscope {

class FakeStrippedGo : public FakeMemory {
 public:
  static constexpr uint64_t kText = 0x400000, kBytesOfFunction = 0x100;
  static constexpr uint64_t kMain = kText, kAppends = kText + 0x100, kTakes = kText + 0x200,
                            kGives = kText + 0x300, kSetsUp = kText + 0x400,
                            kTextEnd = kText + 0x500;

  FakeStrippedGo() : FakeMemory(kText) {
    Block(kTextEnd - kText);
    PutText(kText, std::string(kTextEnd - kText, '\xcc'));
    data_ = WriteTables();
    all_ = Block(24), table_ = Block(kBytesOfTable), heap_ = Block(kBytesOfHeap);
    WriteGoroutines();
    WriteHeap();
    WriteModule();
    Lead(kAppends, "\x48\x8b\x05", all_);
    Lead(kAppends + 0x10, "\x48\x8b\x0d", all_ + 8);
    Lead(kAppends + 0x20, "\x48\x89\x15", all_ + 16);
    Lead(kTakes, "\x48\x8d\x15", table_);
    Lead(kGives, "\x48\x8d\x15", table_);
    Lead(kSetsUp, "\x48\x8d\x05", heap_);
  }

  Result<GoSymbols> Read() {
    return GoSymbols::Read({{data_, end_}}, [this](uint64_t at, void* into, size_t bytes) {
      ++reads;
      return FakeMemory::Read(at, into, bytes);
    });
  }
  // An instruction that leads there, counted from its end.
  void Lead(uint64_t at, const std::string& code, uint64_t to) {
    PutText(at, code);
    Put(at + code.size(), static_cast<uint32_t>(to - (at + code.size() + 4)));
  }
  // In the line of the table, for a semaphore.
  void AddWaiter(size_t line, uint64_t semaphore) {
    Put(table_ + line * go_layout::kBytesOfLine + go_layout::kTree, sudog_);
    Put(sudog_ + go_layout::kSudogElement, semaphore);
  }
  // So many functions whose names are one, of 4096 bytes.
  void ShareALongName(uint32_t functions) {
    constexpr size_t kLong = 4096;
    const uint64_t name = Block(kLong);
    PutText(name, std::string(kLong, 'f'));
    Put(functions_.begin + go_layout::kNameOfCode, static_cast<uint32_t>(name - names_.begin));
    Put<uint64_t>(module_ + go_layout::kFunctionNames + 8, name + kLong - names_.begin);
    const uint64_t places = Block((functions + 1) * 8);
    for (uint32_t i = 0; i <= functions; ++i) Put(places + 8 * i, i);
    Put(module_ + go_layout::kFunctionTable, places);
    Put(module_ + go_layout::kFunctionTable + 8, uint64_t{functions} + 1);
  }
  uint64_t all() const { return all_; }
  uint64_t table() const { return table_; }
  uint64_t heap() const { return heap_; }
  uint64_t module() const { return module_; }
  uint64_t head() const { return data_; }
  size_t reads = 0;

 private:
  static constexpr uint64_t kBytesOfTable = go_layout::kSemaphoreLines * go_layout::kBytesOfLine;
  static constexpr uint64_t kBytesOfHeap = go_layout::kArenas + 16;

  // Texts one behind the other, as C has them; where each begins.
  std::vector<uint32_t> Texts(const std::vector<std::string>& texts, go_layout::Slice* slice) {
    std::string all;
    std::vector<uint32_t> offsets;
    for (const std::string& text : texts) {
      offsets.push_back(static_cast<uint32_t>(all.size()));
      all += text + '\0';
    }
    *slice = {Block(all.size()), all.size()};
    PutText(slice->begin, all);
    return offsets;
  }
  // One function is inlined into main.main, behind its first 32 bytes.
  uint64_t WriteTables() {
    using namespace go_layout;
    const uint64_t head = Block(kBytesOfHead);
    const auto names = Texts({"main.main", "runtime.allgadd", "runtime.semacquire1",
                              "runtime.semrelease1", "runtime.mallocinit", "main.inlined"},
                             &names_);
    Put(head, kHeadMagic);
    Put<uint8_t>(head + kHeadPointerBytes, 8);
    Put(head + kHeadNames, names_.begin - head);
    const auto files = Texts({"/src/main.go", "/src/other.go"}, &files_);
    units_ = {Block(files.size() * 4), files.size()};
    for (size_t i = 0; i < files.size(); ++i) Put(units_.begin + 4 * i, files[i]);
    // At 1: number 0, to the end. At 5: lines 7 and 20. At 11: none, and then call 0.
    const std::string tables = {'\0',   '\2', '\x80', '\2', '\0', '\x10', ' ',    '\x1a',
                                '\x7f', '\0', '\0',   '\0', ' ',  '\2',   '\x7f', '\0'};
    pc_table_ = {Block(tables.size()), tables.size()};
    PutText(pc_table_.begin, tables);
    calls_ = Block(kBytesOfInlined);
    Put<int32_t>(calls_ + kInlinedFile, 1);
    Put<int32_t>(calls_ + kInlinedLine, 9);
    Put(calls_ + kInlinedName, names[5]);
    Put<uint32_t>(calls_ + kInlinedIn, 8);
    constexpr size_t kCount = 5;
    constexpr uint32_t kHead = 128;
    functions_ = {Block(kCount * kHead), kCount * kHead};
    places_ = {Block((kCount + 1) * 8), kCount + 1};
    for (uint32_t i = 0; i < kCount; ++i) {
      const uint64_t at = functions_.begin + i * kHead;
      Put(places_.begin + 8 * i, static_cast<uint32_t>(i * kBytesOfFunction));
      Put(places_.begin + 8 * i + 4, i * kHead);
      Put(at + kNameOfCode, names[i]);
      Put<uint32_t>(at + kFilesOfPcs, 1);
      Put<uint32_t>(at + kLinesOfPcs, 5);
    }
    Put(places_.begin + 8 * kCount, static_cast<uint32_t>(kCount * kBytesOfFunction));
    const uint64_t main = functions_.begin;
    Put<uint32_t>(main + kPcTables, 3);
    Put<uint8_t>(main + kFunctionTables, 4);
    Put<uint32_t>(main + go_layout::kBytesOfFunction + 4 * kInlinedCallOfPc, 11);
    for (size_t i = 0; i < 4; ++i)
      Put<uint32_t>(main + go_layout::kBytesOfFunction + 4 * (3 + i),
                    i == kInlinedCalls ? 0 : UINT32_MAX);
    return head;
  }
  void WriteGoroutines() {
    const uint64_t g = Block(go_layout::kBytesOfG), list = Block(8);
    Put(list, g);
    for (const auto& [at, value] : {std::pair(0, list), {8, 1}, {16, 1}})
      Put<uint64_t>(all_ + static_cast<uint64_t>(at), value);
    sudog_ = Block(go_layout::kBytesOfSudog);
  }
  void WriteHeap() {
    const uint64_t span = Block(go_layout::kBytesOfSpan), list = Block(8);
    Put(span + go_layout::kSpanBegin, 3 * go_layout::kBytesOfPage);
    Put(list, span);
    const uint64_t spans = heap_ + go_layout::kAllSpans;
    Put(spans, list), Put<uint64_t>(spans + 8, 1), Put<uint64_t>(spans + 16, 1);
  }
  void WriteModule() {
    using namespace go_layout;
    module_ = Block(kBytesOfModule);
    end_ = Block(16);
    const auto put = [this](uint64_t at, const Slice& slice) {
      Put(module_ + at, slice.begin), Put(module_ + at + 8, slice.count);
    };
    Put(module_, data_);
    put(kFunctionNames, names_), put(kUnits, units_), put(kFileNames, files_);
    put(kPcTable, pc_table_), put(kFunctionHeads, functions_), put(kFunctionTable, places_);
    Put(module_ + go_layout::kText, uint64_t{kText});
    Put(module_ + go_layout::kTextEnd, uint64_t{kTextEnd});
    for (const uint64_t at : {kReadOnlyData, kTypesBegin}) Put(module_ + at, data_);
    for (const uint64_t at : {kPlainData, kData}) Put(module_ + at, all_);
    Put(module_ + kModuleEnd, end_);
    Put(module_ + kFunctionData, calls_);
  }

  go_layout::Slice names_, units_, files_, pc_table_, functions_, places_;
  uint64_t data_ = 0, end_ = 0, calls_ = 0, module_ = 0, all_ = 0, table_ = 0, heap_ = 0;
  uint64_t sudog_ = 0;
};

}  // namespace hangscope

#endif
