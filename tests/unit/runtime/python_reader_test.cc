// The frames of a Python process, from an image of its memory that is built here as CPython 3.11
// lays it out.
#include "runtime/python/python_reader.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "runtime/python/python_lines.h"

namespace hangscope {
namespace {

using ::std::string;

constexpr uint64_t kImageBegin = 0x10000;
constexpr uint64_t kPyStackBegin = 0x7f0000;
constexpr uint64_t kPyStackEnd = 0x7f8000;
constexpr int kPyThread = 4711;

// One entry of a table of lines: `units` code units on the line `change` further.
string LineEntry(int units, int change) {
  string entry(1, static_cast<char>(0x80 | 13 << 3 | (units - 1)));
  auto value = static_cast<uint32_t>(change < 0 ? -change * 2 + 1 : change * 2);
  for (; value > 0x3f; value >>= 6) entry += static_cast<char>(0x40 | (value & 0x3f));
  return entry + static_cast<char>(value);
}

class FakePython {
 public:
  FakePython() {
    version_ = Block(8);
    Put<uint64_t>(version_, 0x030b02f0);
    runtime_ = Block(64);
    code_type_ = Block(8);
    text_type_ = Block(8);
    bytes_type_ = Block(8);
  }

  uint64_t Block(size_t bytes) {
    const uint64_t at = kImageBegin + image_.size();
    image_.resize(image_.size() + (bytes + 15) / 16 * 16);
    return at;
  }
  template <typename Number>
  void Put(uint64_t at, Number number) {
    std::memcpy(image_.data() + (at - kImageBegin), &number, sizeof number);
  }
  void PutText(uint64_t at, const string& text) {
    image_.replace(at - kImageBegin, text.size(), text);
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
    uint64_t first = 0;
    std::memcpy(&first, image_.data() + (interpreter + 16 - kImageBegin), 8);
    Put(at + 8, first);
    Put(interpreter + 16, at);
    Put(at + 16, interpreter);
    Put(at + 56, c_frame);
    Put(at + 160, tid);
    Put(c_frame + 8, frame);
    return at;
  }
  uint64_t Bytes(const string& bytes) {
    const uint64_t at = Block(32 + bytes.size());
    Put(at + 8, bytes_type_);
    Put<uint64_t>(at + 16, bytes.size());
    PutText(at + 32, bytes);
    return at;
  }
  uint64_t Ascii(const string& text) { return Text(text, text.size(), 1, true); }
  uint64_t Wide(const std::u32string& text, uint32_t width) {
    string raw;
    for (const char32_t c : text) {
      const auto number = static_cast<uint32_t>(c);
      raw.append(reinterpret_cast<const char*>(&number), width);
    }
    return Text(raw, text.size(), width, false);
  }
  uint64_t Code(uint64_t function, uint64_t path, int first_line, const string& lines) {
    const uint64_t at = Block(184 + 64);
    Put(at + 8, code_type_);
    Put<int32_t>(at + 72, first_line);
    Put(at + 112, path);
    Put(at + 128, function);
    Put(at + 136, Bytes(lines));
    return at;
  }
  uint64_t Type(const string& name) {
    const uint64_t text = Block(name.size() + 1);
    PutText(text, name);
    const uint64_t at = Block(32);
    Put(at + 24, text);
    return at;
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
  uint64_t Function(const string& name) {
    return Code(Ascii(name), Ascii("/srv/bank.py"), 10, LineEntry(2, 0) + LineEntry(2, 1));
  }

  Result<PythonReader> Open(const string& file = "python3.11") {
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
      const uint64_t at = address - kImageBegin;
      if (at > image_.size() || bytes > image_.size() - at) return false;
      std::memcpy(into, image_.data() + at, bytes);
      return true;
    });
  }
  // "take bank.py:11", of thread 4711.
  std::vector<string> Told(size_t most = 64, int tid = kPyThread) {
    warning.clear();
    auto reader = Open();
    if (!reader.ok()) {
      warning = reader.status().message();
      return {};
    }
    const PythonFrames python = reader->FramesOf(tid, kPyStackBegin, kPyStackEnd, most);
    warning = python.warning;
    named = reader->Name(python.frames, &warning);
    std::vector<string> told;
    for (const StackFrame& frame : named) told.push_back(frame.function + " " + frame.source);
    return told;
  }

  string& image() { return image_; }
  void Hide(const char* symbol) { hidden_ = symbol; }
  void SetVersion(uint64_t version) { Put(version_, version); }

  size_t reads = 0;
  string warning;
  std::vector<StackFrame> named;

 private:
  uint64_t Text(const string& raw, size_t length, uint32_t width, bool is_ascii) {
    const uint64_t data = is_ascii ? 48 : 72;
    const uint64_t at = Block(data + raw.size() + 4);
    Put(at + 8, text_type_);
    Put<uint64_t>(at + 16, length);
    Put<uint32_t>(at + 32, width << 2 | 1u << 5 | (is_ascii ? 1u << 6 : 0));
    PutText(at + data, raw);
    return at;
  }

  string image_;
  string hidden_;
  uint64_t version_, runtime_, code_type_, text_type_, bytes_type_;
  uint64_t last_interpreter_ = 0;
};

using Strings = std::vector<string>;

TEST(PythonReader, FramesHaveFunctionFileAndLineInnermostFirst) {
  FakePython python;
  const uint64_t outer = python.Frame(python.Function("main"), 3, 0, true);
  const uint64_t inner = python.Frame(python.Function("Pool.take"), 0, outer);
  python.Thread(python.Interpreter(), kPyThread, inner);
  EXPECT_EQ(python.Told(), (Strings{"Pool.take bank.py:10", "main bank.py:11"}));
  EXPECT_EQ(python.warning, "");
  ASSERT_EQ(python.named.size(), 2u);
  EXPECT_EQ(python.named[0].module, "/srv/bank.py");
  EXPECT_EQ(python.named[0].language, FrameLanguage::kPython);
}

TEST(PythonReader, ThreadsOfEveryInterpreterAreFoundAndOthersHaveNoFrames) {
  FakePython python;
  const uint64_t frame = python.Frame(python.Function("main"), 0, 0, true);
  const uint64_t first = python.Interpreter();
  python.Thread(first, 12, 0);
  python.Thread(first, kPyThread, frame);
  python.Thread(first, 13, 0);
  python.Thread(python.Interpreter(), 14, frame);
  EXPECT_EQ(python.Told().size(), 1u);
  EXPECT_EQ(python.Told(64, 14).size(), 1u);
  EXPECT_EQ(python.Told(64, 13), Strings());
  EXPECT_EQ(python.Told(64, 99), Strings());
  EXPECT_EQ(python.warning, "");
}

// After fork its record may have its parent's number.
TEST(PythonReader, AThreadIsKnownByItsStackWhereItsNumberIsOld) {
  FakePython python;
  const uint64_t interpreter = python.Interpreter();
  const uint64_t thread = python.Thread(interpreter, 12, 0);
  python.Put<uint64_t>(thread + 56, kPyStackBegin + 64);
  python.Told();
  EXPECT_EQ(python.warning, "the innermost frame cannot be found");  // it looked there
  python.Put<uint64_t>(thread + 56, kPyStackEnd);
  EXPECT_EQ(python.Told(), Strings());
  EXPECT_EQ(python.warning, "");
}

TEST(PythonReader, NamesMayBeInAnyAlphabet) {
  FakePython python;
  const string lines = LineEntry(2, 0);
  const auto frame = [&](uint64_t function, uint64_t path, uint64_t caller) {
    return python.Frame(python.Code(function, path, 1, lines), 0, caller);
  };
  uint64_t at = frame(python.Wide(U"gr\u00f6\u00dfe", 1), python.Wide(U"/x/\u00e4.py", 1), 0);
  at = frame(python.Wide(U"\u0431\u0430\u043d\u043a", 2), python.Wide(U"\u9280\u884c.py", 2), at);
  at = frame(python.Ascii("f"), python.Wide(U"\U0001f40d.py", 4), at);
  std::u32string odd = U"a\uffff.py";
  odd[1] = 0xdcff;  // byte ff, which is no UTF-8
  at = frame(python.Ascii("f"), python.Wide(odd, 2), at);
  odd[1] = 0xd800;
  at = frame(python.Ascii("f"), python.Wide(odd, 2), at);
  at = frame(python.Ascii(string(5000, 'n')), python.Ascii("a.py"), at);
  python.Thread(python.Interpreter(), kPyThread, at);
  EXPECT_EQ(python.Told(),
            (Strings{string(4096, 'n') + "... a.py:1", "f a\xef\xbf\xbd.py:1", "f a\xff.py:1",
                     "f \U0001f40d.py:1", "банк 銀行.py:1", "größe ä.py:1"}));
}

TEST(PythonReader, OtherVersionsAreRefusedByName) {
  FakePython python;
  python.SetVersion(0x030d00f0);
  EXPECT_EQ(python.Open().status().message(), "Python 3.13 is not read yet");
  python.Hide("Py_Version");
  EXPECT_EQ(python.Open("libpython3.10.so.1.0").status().message(), "Python 3.10 is not read yet");
  EXPECT_EQ(python.Open("python").status().message(),
            "Python of an unknown version is not read yet");
  python.SetVersion(0x030b07f0);
  python.Hide("PyCode_Type");
  EXPECT_EQ(python.Open().status().message(), "python3.11 has no symbols of the interpreter");
}

TEST(PythonReader, ListsWithoutAnEndAreLeft) {
  FakePython python;
  const uint64_t code = python.Function("f");
  const uint64_t outer = python.Frame(code, 0, 0);
  const uint64_t inner = python.Frame(code, 0, outer);
  const uint64_t interpreter = python.Interpreter();
  const uint64_t thread = python.Thread(interpreter, kPyThread, inner);
  EXPECT_EQ(python.Told(1).size(), 1u);
  EXPECT_EQ(python.warning, "there are more than 1");
  python.Put(outer + 48, inner);
  EXPECT_EQ(python.Told().size(), 2u);
  EXPECT_EQ(python.warning, "a frame is its own caller");
  python.Put(outer + 48, uint64_t{8});
  EXPECT_EQ(python.Told().size(), 2u);
  EXPECT_EQ(python.warning, "the frame at 0x8 cannot be read");
  python.Put(thread + 8, thread);
  python.Told(64, 99);
  EXPECT_EQ(python.warning, "its list of threads has no end");
  python.Put(thread + 16, uint64_t{8});
  python.Told(64, 99);
  EXPECT_EQ(python.warning, "its list of threads changed or is damaged");
  python.Put(interpreter + 16, uint64_t{0});
  python.Put(interpreter, interpreter);
  python.Told();
  EXPECT_EQ(python.warning, "its list of interpreters has no end");
}

TEST(PythonReader, AnRLockKnowsWhoHasItAndOtherLocksDoNot) {
  constexpr uint64_t kSemaphore = 0x5000;
  constexpr uint64_t kIdent = 0x7fff1234;
  FakePython python;
  const uint64_t interpreter = python.Interpreter();
  python.Put(python.Thread(interpreter, 4712, 0) + 152, kIdent);
  const uint64_t type = python.Type("_thread.RLock");
  const auto owner = [&](uint64_t object, uint64_t semaphore = 0x5000) {
    string stack(64, '\x10');
    std::memcpy(stack.data() + 24, &object, sizeof object);
    return python.Open()->RLockOwner(semaphore, stack);
  };
  EXPECT_EQ(owner(python.Lock(type, kSemaphore, kIdent, 1)), 4712);
  EXPECT_EQ(owner(python.Lock(type, kSemaphore, kIdent, 1), kSemaphore + 8), std::nullopt);
  EXPECT_EQ(owner(python.Lock(type, kSemaphore, kIdent, 0)), std::nullopt);
  EXPECT_EQ(owner(python.Lock(type, kSemaphore, kIdent + 8, 1)), std::nullopt);
  EXPECT_EQ(owner(python.Lock(python.Type("_thread.lock"), kSemaphore, kIdent, 1)), std::nullopt);
  EXPECT_EQ(owner(0x10), std::nullopt);
}

// Whatever a byte is, nothing is read for long, and frames that are missing have a reason.
TEST(PythonReader, NoByteThatChangesLeadsAstray) {
  FakePython python;
  const uint64_t outer = python.Frame(python.Function("main"), 3, 0, true);
  const uint64_t middle =
      python.Frame(python.Code(python.Wide(U"\u0431\u0430", 2), python.Ascii("<string>"), 5,
                               LineEntry(1, 100) + LineEntry(8, -3)),
                   2, outer);
  const uint64_t inner = python.Frame(python.Function("Pool.take"), 0, middle);
  const uint64_t interpreter = python.Interpreter();
  python.Thread(interpreter, kPyThread, inner);
  python.Thread(interpreter, 12, outer);
  const Strings whole = python.Told();
  ASSERT_EQ(whole, (Strings{"Pool.take bank.py:10", "ба <string>:102", "main bank.py:11"}));
  size_t changed = 0;
  for (char& byte : python.image()) {
    const char before = byte;
    for (const int flip : {0x01, 0x04, 0x40, 0x80, 0xff}) {
      byte = static_cast<char>(before ^ flip);
      python.reads = 0;
      const Strings told = python.Told();
      EXPECT_LT(python.reads, 100u);
      if (told != whole) ++changed;
      // A changed end of a list is no damage that anybody could see; a thread that is not there has
      // no frames, and needs none.
      if (!told.empty() && told.size() < whole.size() && python.warning.empty()) {
        EXPECT_TRUE(told[0] == whole[0] || told[0] == whole[2]) << told[0];
      }
    }
    byte = before;
  }
  EXPECT_GT(changed, 500u);
  EXPECT_EQ(python.Told(), whole);
}

TEST(PythonLines, EveryKindOfEntryMovesAsItShould) {
  const auto head = [](int kind, int units) {
    return string(1, static_cast<char>(0x80 | kind << 3 | (units - 1)));
  };
  const string table = head(0, 1) + "\x11" + head(10, 2) + "\x01\x02" + head(11, 1) + "\x01\x02" +
                       head(12, 8) + "\x01\x02" + head(15, 1) + LineEntry(1, 1000) +
                       LineEntry(1, -40) + head(14, 1) + "\x04\x01\x02\x03";
  const std::vector<std::optional<int>> lines = {100, 100, 100, 101, 103,  103,  103,  103, 103,
                                                 103, 103, 103, 0,   1103, 1063, 1065, {}};
  for (size_t unit = 0; unit < lines.size(); ++unit)
    EXPECT_EQ(LineOfUnit(table, 100, unit), lines[unit]) << unit;
}

TEST(PythonLines, DamageIsSeen) {
  EXPECT_EQ(LineOfUnit("", 1, 0), std::nullopt);
  EXPECT_EQ(LineOfUnit("\x01", 1, 0), std::nullopt);
  EXPECT_EQ(LineOfUnit("\xe8", 1, 0), std::nullopt);          // cut inside
  EXPECT_EQ(LineOfUnit("\xe8\x41\xe8", 1, 0), std::nullopt);  // the next began
  EXPECT_EQ(LineOfUnit("\xe8\x7f\x7f\x7f\x7f\x7f\x7f\x7f\x01", 1, 0), std::nullopt);
  EXPECT_EQ(LineOfUnit(LineEntry(1, -5), 1, 0), std::nullopt);  // line -4
}

Strings Names(const std::vector<StackFrame>& frames) {
  Strings names;
  for (const StackFrame& frame : frames) names.push_back(frame.function);
  return names;
}

StackFrame Native(const char* function, const char* module) { return {1, function, "", module}; }
StackFrame InPython(const char* function) {
  return {0, function, "a.py:1", "/srv/a.py", FrameLanguage::kPython};
}

TEST(MergedStack, PythonStandsWhereItIsEvaluated) {
  const std::vector<StackFrame> native = {Native("__new_sem_wait", "libc.so.6"),
                                          Native("PyThread_acquire_lock_timed", "python3.11"),
                                          Native("", "python3.11"),
                                          Native("_PyEval_EvalFrameDefault", "python3.11"),
                                          Native("PyObject_Call", "python3.11"),
                                          Native("callback", "libfast.so"),
                                          Native("PyEval_Else", "python3.11"),
                                          Native("_PyEval_EvalFrameDefault.cold", "python3.11"),
                                          Native("main", "python3.11"),
                                          Native("__libc_start_main", "libc.so.6"),
                                          Native("_start", "python3.11")};
  const std::vector<PythonFrame> python = {{1, 1, false}, {2, 2, true}, {3, 3, true}};
  const std::vector<StackFrame> named = {InPython("take"), InPython("key"), InPython("<module>")};
  EXPECT_EQ(Names(MergeStacks(native, python, named, "python3.11")),
            (Strings{"__new_sem_wait", "PyThread_acquire_lock_timed", "take", "key", "callback",
                     "<module>", "__libc_start_main"}));
}

TEST(MergedStack, NothingOfPythonIsLostWhereTheNativeStackIsCut) {
  const std::vector<PythonFrame> python = {{1, 1, true}, {2, 2, true}};
  const std::vector<StackFrame> named = {InPython("take"), InPython("<module>")};
  const std::vector<StackFrame> cut = {Native("clock_nanosleep", "libc.so.6"),
                                       Native("", "python3.11")};
  EXPECT_EQ(Names(MergeStacks(cut, python, named, "python3.11")),
            (Strings{"clock_nanosleep", "take", "<module>"}));
  EXPECT_EQ(Names(MergeStacks({}, python, named, "python3.11")), (Strings{"take", "<module>"}));
  EXPECT_EQ(Names(MergeStacks(cut, {}, {}, "python3.11")), (Strings{"clock_nanosleep", ""}));
}

}  // namespace
}  // namespace hangscope
