// The memory of a program of Node.js, as little of it as the frames of JavaScript need, with the
// numbers that V8 exports for debuggers. Any byte may be changed then.
#ifndef HANGSCOPE_TESTS_FAKES_FAKE_V8_H
#define HANGSCOPE_TESTS_FAKES_FAKE_V8_H

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fakes/fake_memory.h"
#include "runtime/v8/v8_reader.h"

namespace hangscope {

class FakeV8 : public FakeMemory {
 public:
  static constexpr uint64_t kBegin = 0x200000;
  static constexpr uint64_t kInterpreter = 0x1000;  // a return address in V8's interpreter
  static constexpr uint64_t kCompiled = 0x2000;     // one in code that it has compiled

  FakeV8() : FakeMemory(kBegin) {
    for (const auto& [name, value] : Numbers()) {
      symbols_[name] = Block(4);
      Put(symbols_[name], value);
    }
    meta_map_ = Map(kMapType);
    scope_map_ = Map(kScopeType);
    text_map_ = Map(kText | kOneByte);
    wide_map_ = Map(kText);
    joined_map_ = Map(kJoined | kOneByte);
    part_map_ = Map(kPart | kOneByte);
    same_map_ = Map(kSame | kOneByte);
    script_map_ = Map(kScriptType);
    shared_map_ = Map(kSharedType);
    function_map_ = Map(kFunctionType);
    code_map_ = Map(kCodeType);
    bytes_map_ = Map(kBytesType);
    nothing_ = Object(meta_map_, 8);
  }

  // Of an object; words that are objects are one more than where they are.
  uint64_t Text(const std::string& text) {
    const uint64_t at = Object(text_map_, 16 + text.size());
    Put(Address(at) + 12, static_cast<int32_t>(text.size()));
    PutText(Address(at) + 16, text);
    return at;
  }
  uint64_t WideText(const std::u16string& text) {
    const uint64_t at = Object(wide_map_, 16 + 2 * text.size());
    Put(Address(at) + 12, static_cast<int32_t>(text.size()));
    for (size_t i = 0; i < text.size(); ++i) Put(Address(at) + 16 + 2 * i, text[i]);
    return at;
  }
  uint64_t Joined(uint64_t first, uint64_t second, int32_t length) {
    return OfTwo(joined_map_, first, second, length);
  }
  uint64_t Part(uint64_t of, int from, int32_t length) {
    return OfTwo(part_map_, of, Number(from), length);
  }
  uint64_t Same(uint64_t as) { return OfTwo(same_map_, as, 0, 1); }
  uint64_t Script(uint64_t name, uint64_t source) {
    const uint64_t at = Object(script_map_, 24);
    Put(Address(at) + 8, source);
    Put(Address(at) + 16, name);
    return at;
  }
  // That begins and ends at these places of its script's source. `locals`: of its variables.
  uint64_t Function(const std::string& name, uint64_t script, int begin, int end, int locals = 0) {
    const size_t behind = 4 + 2 * static_cast<size_t>(locals);
    const uint64_t scope = Object(scope_map_, 8 * (behind + 6));
    Put(Address(scope) + 8 * 3, Number(locals));
    Put(Address(scope) + 8 * behind, name.empty() ? nothing_ : Text(name));
    Put(Address(scope) + 8 * (behind + 1), Number(-1));
    Put(Address(scope) + 8 * (behind + 2), nothing_);
    Put(Address(scope) + 8 * (behind + 3), Number(begin));
    Put(Address(scope) + 8 * (behind + 4), Number(end));
    const uint64_t shared = Object(shared_map_, 40);
    Put(Address(shared) + 16, scope);
    Put(Address(shared) + 32, script);
    const uint64_t function = Object(function_map_, 32);
    Put(Address(function) + 24, shared);
    return function;
  }
  // `table`: positions as V8 encodes them.
  uint64_t Bytecode(int length, const std::string& table) {
    const uint64_t positions = Object(bytes_map_, 16 + table.size());
    Put(Address(positions) + 8, Number(static_cast<int>(table.size())));
    PutText(Address(positions) + 16, table);
    const uint64_t code = Object(code_map_, kCodeHeader + static_cast<uint64_t>(length));
    Put(Address(code) + 8, Number(length));
    Put(Address(code) + 32, positions);
    return code;
  }

  struct Stack {
    uint64_t begin = 0, end = 0;
    uint64_t next = 0;  // where the frame that is further out is put
    uint64_t last_fp = 0;
  };
  Stack AddStack(size_t bytes) {
    const uint64_t at = Block(bytes);
    return {at, at + bytes, at, 0};
  }
  // Further out than those before. `back`: where it returns to.
  uint64_t AddFrame(Stack* stack, uint64_t context, uint64_t function, uint64_t back) {
    const uint64_t fp = stack->next + 48;
    if (stack->last_fp != 0) Put(stack->last_fp, fp);
    Put(fp - 8, context);
    Put(fp - 16, function);
    Put(fp + 8, back);
    stack->last_fp = fp;
    stack->next = fp + 16;
    return fp;
  }
  void SetBytecode(uint64_t fp, uint64_t code, int offset) {
    Put(fp - 32, code);
    Put(fp - 40, Number(offset + kCodeHeader - 1));
  }
  uint64_t AddFrameOfV8(Stack* stack, int kind, uint64_t back) {
    return AddFrame(stack, static_cast<uint64_t>(kind) << 1, 0, back);
  }
  uint64_t context() const { return nothing_; }
  static uint64_t Number(int number) {
    return static_cast<uint64_t>(static_cast<int64_t>(number)) << 32;
  }
  // Of one number of a table of positions.
  static std::string Encoded(int number) {
    auto bits = static_cast<uint32_t>(number) << 1;
    if (number < 0) bits = ~bits;
    std::string bytes;
    for (; bits >= 0x80; bits >>= 7) bytes += static_cast<char>((bits & 0x7f) | 0x80);
    return bytes + static_cast<char>(bits);
  }
  void Forget(const std::string& name) { symbols_.erase(name); }
  uint64_t SymbolAt(const std::string& name) const { return symbols_.at(name); }

  Result<std::unique_ptr<V8Reader>> Open() {
    return V8Reader::Open(
        [this](std::string_view name) {
          const auto found = symbols_.find(std::string(name));
          return found == symbols_.end() ? std::nullopt : std::optional(found->second);
        },
        [this](uint64_t address, void* into, size_t bytes) {
          return FakeMemory::Read(address, into, bytes);
        });
  }

  static constexpr int kEntry = 1, kConstructEntry = 2, kExit = 3, kBuiltinExit = 25, kBuiltin = 24;

 private:
  static constexpr uint16_t kText = 0, kJoined = 1, kPart = 3, kSame = 5, kOneByte = 8;
  static constexpr uint16_t kMapType = 250, kScopeType = 261, kScriptType = 167, kSharedType = 256,
                            kFunctionType = 2066, kCodeType = 191, kBytesType = 190;
  static constexpr int kCodeHeader = 54;

  static std::map<std::string, int32_t> Numbers() {
    const std::pair<const char*, int32_t> numbers[] = {
        {"off_fp_context_or_frame_type", -8},
        {"off_fp_function", -16},
        {"off_fp_bytecode_array", -32},
        {"off_fp_bytecode_offset", -40},
        {"class_HeapObject__map__Map", 0},
        {"class_Map__instance_type__uint16_t", 12},
        {"class_JSFunction__shared__SharedFunctionInfo", 24},
        {"class_SharedFunctionInfo__name_or_scope_info__Object", 16},
        {"class_SharedFunctionInfo__script_or_debug_info__HeapObject", 32},
        {"class_Script__name__Object", 16},
        {"class_Script__source__Object", 8},
        {"class_FixedArrayBase__length__SMI", 8},
        {"class_FixedArray__data__uintptr_t", 16},
        {"class_BytecodeArray__data__uintptr_t", kCodeHeader},
        {"class_String__length__int32_t", 12},
        {"class_SeqOneByteString__chars__char", 16},
        {"class_SeqTwoByteString__chars__char", 16},
        {"class_ConsString__first__String", 16},
        {"class_ConsString__second__String", 24},
        {"class_ThinString__actual__String", 16},
        {"class_SlicedString__parent__String", 16},
        {"class_SlicedString__offset__SMI", 24},
        {"scopeinfo_idx_ncontextlocals", 2},
        {"scopeinfo_idx_first_vars", 3},
        {"frametype_EntryFrame", kEntry},
        {"frametype_ConstructEntryFrame", kConstructEntry},
        {"frametype_ExitFrame", kExit},
        {"frametype_BuiltinExitFrame", kBuiltinExit},
        {"FirstNonstringType", 128},
        {"type_SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE", kSharedType},
        {"type_Script__SCRIPT_TYPE", kScriptType},
        {"type_ByteArray__BYTE_ARRAY_TYPE", kBytesType},
        {"type_BytecodeArray__BYTECODE_ARRAY_TYPE", kCodeType},
        {"StringRepresentationMask", 7},
        {"SeqStringTag", kText},
        {"ConsStringTag", kJoined},
        {"ThinStringTag", kSame},
        {"SlicedStringTag", kPart},
        {"StringEncodingMask", 8},
        {"OneByteStringTag", kOneByte},
        {"TaggedSize", 8},
        {"SmiTag", 0},
        {"SmiTagMask", 1},
        {"HeapObjectTagMask", 3},
        {"HeapObjectTag", 1},
        {"SmiValueShift", 1},
        {"SmiShiftSize", 31},
    };
    std::map<std::string, int32_t> named;
    for (const auto& [name, value] : numbers) named[std::string("v8dbg_") + name] = value;
    return named;
  }

  static uint64_t Address(uint64_t object) { return object - 1; }
  uint64_t Map(uint16_t type) {
    const uint64_t at = Block(16);
    Put(at, meta_map_);
    Put(at + 12, type);
    return at + 1;
  }
  uint64_t Object(uint64_t map, size_t bytes) {
    const uint64_t at = Block(bytes);
    Put(at, map);
    return at + 1;
  }
  uint64_t OfTwo(uint64_t map, uint64_t first, uint64_t second, int32_t length) {
    const uint64_t at = Object(map, 32);
    Put(Address(at) + 12, length);
    Put(Address(at) + 16, first);
    Put(Address(at) + 24, second);
    return at;
  }

  std::map<std::string, uint64_t> symbols_;
  uint64_t meta_map_ = 0, scope_map_ = 0, text_map_ = 0, wide_map_ = 0, joined_map_ = 0,
           part_map_ = 0, same_map_ = 0, script_map_ = 0, shared_map_ = 0, function_map_ = 0,
           code_map_ = 0, bytes_map_ = 0, nothing_ = 0;
};

// A function that waits, called by one that the interpreter runs, called by native code.
struct FakeScriptStack {
  FakeScriptStack() {
    source = "let isReady = false;\nfunction wait() {\n  while (!isReady);\n}\n\nwait();\n";
    const uint64_t script = v8.Script(v8.Text("/srv/app.js"), v8.Text(source));
    const uint64_t wait = v8.Function("wait", script, 34, 60, 2);
    const uint64_t whole = v8.Function("", script, 0, 70);
    stack = v8.AddStack(512);
    inner = v8.AddFrame(&stack, v8.context(), wait, FakeV8::kInterpreter);
    outer = v8.AddFrame(&stack, v8.context(), whole, FakeV8::kInterpreter);
    // Before the code the file begins, at byte 5 it calls, which is no statement, at byte 9 it
    // ends.
    v8.SetBytecode(outer, v8.Bytecode(12, Place(0, 0) + Place(-7, 63) + Place(4, 7)), 5);
    v8.AddFrameOfV8(&stack, FakeV8::kBuiltin, FakeV8::kCompiled);
    entry = v8.AddFrameOfV8(&stack, FakeV8::kEntry, 0);
  }
  // Of a table of positions: how much further in code and, by two for each character, in source.
  static std::string Place(int code, int characters) {
    const int first = code == 0 && characters == 0 ? 2 : 0;  // the places begin at one
    return FakeV8::Encoded(code) + FakeV8::Encoded(2 * characters + first);
  }
  ScriptAnchor Anchor() const { return {FakeV8::kCompiled, false, stack.begin, inner}; }
  static bool IsInterpreter(uint64_t pc) { return pc == FakeV8::kInterpreter; }

  FakeV8 v8;
  std::string source;
  FakeV8::Stack stack;
  uint64_t inner = 0, outer = 0, entry = 0;
};

}  // namespace hangscope

#endif
