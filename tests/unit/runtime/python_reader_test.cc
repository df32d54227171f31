// The frames of a Python process, from an image of its memory that is built here as CPython 3.11
// lays it out.
#include "runtime/python/python_reader.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "fakes/fake_python.h"
#include "runtime/python/python_lines.h"

namespace hangscope {
namespace {

using ::std::string;

using Strings = std::vector<string>;

TEST(PythonReader, FramesHaveFunctionFileAndLineInnermostFirst) {
  FakePython python;
  const uint64_t outer = python.Frame(python.Function("main"), 3, 0, true);
  const uint64_t inner = python.Frame(python.Function("Pool.take"), 0, outer);
  python.Thread(python.Interpreter(), FakePython::kPyThread, inner);
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
  python.Thread(first, FakePython::kPyThread, frame);
  python.Thread(first, 13, 0);
  python.Thread(python.Interpreter(), 14, frame);
  EXPECT_EQ(python.Told().size(), 1u);
  EXPECT_EQ(python.Told(64, 14).size(), 1u);
  EXPECT_EQ(python.Told(64, 13), Strings());
  EXPECT_EQ(python.Told(64, 99), Strings());
  EXPECT_EQ(python.warning, "");
}

// After a fork by C code its record has its parent's number.
TEST(PythonReader, AThreadIsKnownByItsStackWhereItsNumberIsOld) {
  FakePython python;
  const uint64_t interpreter = python.Interpreter();
  const uint64_t thread = python.Thread(interpreter, 12, 0);
  python.Put<uint64_t>(thread + 56, FakePython::kPyStackBegin + 64);
  python.Told();
  EXPECT_EQ(python.warning, "the innermost frame cannot be found");  // it looked there
  python.Put<uint64_t>(thread + 56, FakePython::kPyStackEnd);
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
  python.Thread(python.Interpreter(), FakePython::kPyThread, at);
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
  const uint64_t thread = python.Thread(interpreter, FakePython::kPyThread, inner);
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

TEST(PythonReader, ObjectsOfAnotherTypeAreNotWhatTheyShouldBe) {
  FakePython python;
  const uint64_t name = python.Ascii("f");
  const uint64_t code = python.Code(name, name, 1, LineEntry(1, 0));
  const uint64_t frame = python.Frame(code, 0, 0);
  python.Thread(python.Interpreter(), FakePython::kPyThread, frame);
  const auto warning = [&](uint64_t at, uint64_t object) {
    python.Put(at, object);
    EXPECT_EQ(python.Told(), Strings());
    return python.warning;
  };
  EXPECT_EQ(warning(frame + 32, name), fmt::format("there is no code object at {:#x}", name));
  python.Put(frame + 32, code);
  const uint64_t other = python.Ascii("g");
  python.Put(other + 8, other);
  EXPECT_EQ(warning(code + 128, other), fmt::format("the name at {:#x} is no text", other));
  python.Put(code + 128, name);
  EXPECT_EQ(warning(code + 136, name), fmt::format("the table of lines at {:#x} is none", name));
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
  python.Thread(interpreter, FakePython::kPyThread, inner);
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
      EXPECT_TRUE(told.size() == python.frames || !python.warning.empty()) << told.size();
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
  EXPECT_EQ(LineOfUnit("\xe8\x42\xa0", 1, 0), std::nullopt);  // the next began
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
