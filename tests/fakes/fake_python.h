// The memory of a process that runs CPython 3.11, as little of it as its frames need, written down
// as CPython lays it out. Any byte of it may be changed then.
#ifndef HANGSCOPE_TESTS_FAKES_FAKE_PYTHON_H
#define HANGSCOPE_TESTS_FAKES_FAKE_PYTHON_H

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fakes/fake_memory.h"
#include "runtime/python/python_reader.h"

namespace hangscope {

// One entry of a table of lines: `units` code units on the line `change` further.
inline std::string LineEntry(int units, int change) {
  std::string entry(1, static_cast<char>(0x80 | 13 << 3 | (units - 1)));
  auto value = static_cast<uint32_t>(change < 0 ? -change * 2 + 1 : change * 2);
  for (; value > 0x3f; value >>= 6) entry += static_cast<char>(0x40 | (value & 0x3f));
  return entry + static_cast<char>(value);
}

class FakePython : public FakeMemory {
 public:
  static constexpr uint64_t kImageBegin = 0x10000;
  static constexpr uint64_t kPyStackBegin = 0x7f0000;
  static constexpr uint64_t kPyStackEnd = 0x7f8000;
  static constexpr int kPyThread = 4711;
  static constexpr uint64_t kHeapType = 1u << 9;  // of flags: the type was made by a program

  FakePython() : FakeMemory(kImageBegin) {
    version_ = Block(8);
    Put<uint64_t>(version_, 0x030b02f0);
    runtime_ = Block(64);
    code_type_ = Block(8);
    text_type_ = Block(8);
    bytes_type_ = Block(8);
  }

  uint64_t Interpreter() {
    const uint64_t at = Block(32);
    Put(at, last_interpreter_);
    Put(runtime_ + 40, at);
    return last_interpreter_ = at;
  }
  // A thread of it whose innermost frame is `frame`.
  uint64_t Thread(uint64_t interpreter, uint64_t tid, uint64_t frame) {
    const uint64_t at = Block(168);
    const uint64_t c_frame = Block(24);
    const auto first = Get<uint64_t>(interpreter + 16);
    Put(at + 8, first);
    Put(interpreter + 16, at);
    Put(at + 16, interpreter);
    Put(at + 56, c_frame);
    Put(at + 160, tid);
    Put(c_frame + 8, frame);
    return at;
  }
  // From now on the innermost frame of a thread.
  void PutInnermost(uint64_t thread, uint64_t frame) {
    const auto c_frame = Get<uint64_t>(thread + 56);
    Put(c_frame + 8, frame);
  }
  uint64_t Bytes(const std::string& bytes) {
    const uint64_t at = Block(32 + bytes.size());
    Put(at + 8, bytes_type_);
    Put<uint64_t>(at + 16, bytes.size());
    PutText(at + 32, bytes);
    return at;
  }
  uint64_t Ascii(const std::string& text) { return Text(text, text.size(), 1, true); }
  uint64_t Wide(const std::u32string& text, uint32_t width) {
    std::string raw;
    for (const char32_t c : text) {
      const auto number = static_cast<uint32_t>(c);
      raw.append(reinterpret_cast<const char*>(&number), width);
    }
    return Text(raw, text.size(), width, false);
  }
  uint64_t Code(uint64_t function, uint64_t path, int first_line, const std::string& lines) {
    const uint64_t at = Block(184 + 64);
    Put(at + 8, code_type_);
    Put<int32_t>(at + 72, first_line);
    Put(at + 112, path);
    Put(at + 128, function);
    Put(at + 136, Bytes(lines));
    return at;
  }
  uint64_t Type(const std::string& name) {
    const uint64_t text = Block(name.size() + 1);
    PutText(text, name);
    const uint64_t at = Block(32);
    Put(at + 24, text);
    return at;
  }
  // As much of a type as its objects need to be understood. `flags`: tp_flags.
  uint64_t WholeType(const std::string& name, uint64_t flags = 0) {
    const uint64_t text = Block(name.size() + 1);
    PutText(text, name);
    const uint64_t at = Block(880);
    Put(at + 24, text);
    Put(at + 168, flags);
    return at;
  }
  // The types of str, bytes, tuple and dict are whole from now on.
  void MakeTypesWhole() {
    text_type_ = WholeType("str", 1u << 28);
    bytes_type_ = WholeType("bytes", 1u << 27);
    tuple_type_ = WholeType("tuple", 1u << 26);
    dict_type_ = WholeType("dict", 1u << 29);
  }
  uint64_t Object(uint64_t type, const std::vector<uint64_t>& words) {
    const uint64_t at = Block(16 + words.size() * 8);
    Put(at + 8, type);
    for (size_t i = 0; i < words.size(); ++i) Put(at + 16 + i * 8, words[i]);
    return at;
  }
  uint64_t Tuple(const std::vector<uint64_t>& elements) {
    std::vector<uint64_t> words = {elements.size()};
    words.insert(words.end(), elements.begin(), elements.end());
    return Object(tuple_type_, words);
  }
  uint64_t Dict(const std::vector<std::pair<std::string, uint64_t>>& items) {
    const uint64_t keys = Block(32 + 8 + items.size() * 16);
    Put<uint8_t>(keys + 9, 3);   // eight bytes of indices
    Put<uint8_t>(keys + 10, 1);  // all keys are text
    Put<uint64_t>(keys + 24, items.size());
    for (size_t i = 0; i < items.size(); ++i) {
      Put(keys + 40 + i * 16, Ascii(items[i].first));
      Put(keys + 48 + i * 16, items[i].second);
    }
    return Object(dict_type_, {items.size(), 0, keys, 0});
  }
  // A frame with variables and values it computes with, at its `unit`-th code unit. `handlers`: its
  // code's table of handlers.
  uint64_t WholeFrame(const std::string& function, const std::string& path, int64_t unit,
                      uint64_t caller,
                      const std::vector<std::pair<std::string, uint64_t>>& variables,
                      const std::vector<uint64_t>& values = {}, const std::string& handlers = "",
                      uint64_t globals = 0) {
    std::vector<uint64_t> names;
    for (const auto& [name, value] : variables) names.push_back(Ascii(name));
    const uint64_t code = Code(Ascii(function), Ascii(path), 10, LineEntry(8, 0));
    Put(code + 40, Bytes(handlers));
    Put<uint32_t>(code + 76, static_cast<uint32_t>(variables.size()));
    Put(code + 96, Tuple(names));
    const uint64_t at = Block(72 + (variables.size() + values.size()) * 8);
    FillFrame(at, code, unit, caller, globals);
    uint64_t slot = at + 72;
    for (const auto& [name, value] : variables) Put(slot, value), slot += 8;
    for (const uint64_t value : values) Put(slot, value), slot += 8;
    return at;
  }
  // The names of globals and attributes that the function of such a frame uses.
  void UseNames(uint64_t frame, const std::vector<std::string>& names) {
    std::vector<uint64_t> texts;
    for (const std::string& name : names) texts.push_back(Ascii(name));
    const auto code = Get<uint64_t>(frame + 32);
    Put(code + 32, Tuple(texts));
  }
  void FillFrame(uint64_t at, uint64_t code, int64_t unit, uint64_t caller, uint64_t globals) {
    Put(at + 8, globals);
    Put(at + 32, code);
    Put(at + 48, caller);
    Put<uint64_t>(at + 56, code + 184 + static_cast<uint64_t>(unit * 2));
  }
  uint64_t Lock(uint64_t type, uint64_t semaphore, uint64_t owner, uint64_t count) {
    const uint64_t at = Block(48);
    Put(at + 8, type);
    Put(at + 16, semaphore);
    Put(at + 24, owner);
    Put(at + 32, count);
    return at;
  }
  // At its `unit`-th code unit.
  uint64_t Frame(uint64_t code, int64_t unit, uint64_t caller, bool is_entry = false) {
    const uint64_t at = Block(80);
    Put(at + 32, code);
    Put(at + 48, caller);
    Put<uint64_t>(at + 56, code + 184 + static_cast<uint64_t>(unit * 2));
    Put<uint8_t>(at + 68, is_entry ? 1 : 0);
    return at;
  }
  // In "/srv/bank.py", from line 10 on, two code units a line.
  uint64_t Function(const std::string& name) {
    return Code(Ascii(name), Ascii("/srv/bank.py"), 10, LineEntry(2, 0) + LineEntry(2, 1));
  }

  Result<PythonReader> Open(const std::string& file = "python3.11") {
    const auto find = [this](std::string_view name) -> std::optional<uint64_t> {
      if (name == hidden_) return std::nullopt;
      if (name == "Py_Version") return version_;
      if (name == "_PyRuntime") return runtime_;
      if (name == "PyCode_Type") return code_type_;
      if (name == "PyUnicode_Type") return text_type_;
      if (name == "PyBytes_Type") return bytes_type_;
      return std::nullopt;
    };
    return PythonReader::Open(file, find, [this](uint64_t address, void* into, size_t bytes) {
      ++reads;
      return FakeMemory::Read(address, into, bytes);
    });
  }
  // "take bank.py:11", of thread 4711.
  std::vector<std::string> Told(size_t most = 64, int tid = kPyThread) {
    frames = 0;
    warning.clear();
    auto reader = Open();
    if (!reader.ok()) {
      warning = reader.status().message();
      return {};
    }
    const PythonFrames python = reader->FramesOf(tid, kPyStackBegin, kPyStackEnd, most);
    frames = python.frames.size();
    warning = python.warning;
    named = reader->Name(python.frames, &warning);
    std::vector<std::string> told;
    for (const StackFrame& frame : named) told.push_back(frame.function + " " + frame.source);
    return told;
  }

  void Hide(const char* symbol) { hidden_ = symbol; }
  void SetVersion(uint64_t version) { Put(version_, version); }

  size_t reads = 0;
  size_t frames = 0;  // whether they have names or not
  std::string warning;
  std::vector<StackFrame> named;

 private:
  uint64_t Text(const std::string& raw, size_t length, uint32_t width, bool is_ascii) {
    const uint64_t data = is_ascii ? 48 : 72;
    const uint64_t at = Block(data + raw.size() + 4);
    Put(at + 8, text_type_);
    Put<uint64_t>(at + 16, length);
    Put<uint32_t>(at + 32, width << 2 | 1u << 5 | (is_ascii ? 1u << 6 : 0));
    PutText(at + data, raw);
    return at;
  }

  std::string hidden_;
  uint64_t version_, runtime_, code_type_, text_type_, bytes_type_;
  uint64_t tuple_type_ = 0, dict_type_ = 0;
  uint64_t last_interpreter_ = 0;
};

}  // namespace hangscope

#endif
