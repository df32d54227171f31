// Whose the handler of SIGINT is in a process of CPython, from an image of its memory.
#include "runtime/python/python_signals.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <string>
#include <vector>

#include "fakes/fake_python.h"

namespace hangscope {
namespace {

using ::std::string;

// An interpreter with its handlers, as it begins.
class Interpreter {
 public:
  Interpreter() {
    python.MakeTypesWhole();
    none_ = python.Object(python.WholeType("NoneType"), {});
    const uint64_t number = python.WholeType("int", 1u << 24);
    const uint64_t by_default = python.Object(number, {0, 0});
    const uint64_t ignored = python.Object(number, {1, 1});
    python.Block(40);
    handlers_ = python.Block(kSignals * 16);
    end_ = python.Block(64) + 64;
    for (int i = 1; i < kSignals; ++i) Handle(i, by_default);
    Handle(SIGPIPE, ignored);
    Handle(SIGXFSZ, ignored);
    Handle(32, none_);
    Handle(33, none_);
    Handle(SIGINT, Builtin("default_int_handler"));
  }

  void Handle(int number, uint64_t function) {
    python.Put(handlers_ + static_cast<uint64_t>(number) * 16 + 8, function);
  }
  uint64_t Builtin(const string& name) {
    const uint64_t text = python.Block(32);
    python.PutText(text, name);
    const uint64_t method = python.Block(16);
    python.Put(method, text);
    return python.Object(python.WholeType("builtin_function_or_method"), {method, 0});
  }
  uint64_t Function(const string& name) {
    return python.Object(python.WholeType("function"), {0, 0, python.Ascii(name)});
  }
  uint64_t PartialOf(const string& type, const string& function) {
    const uint64_t self = python.Object(python.WholeType(type, FakePython::kHeapType), {});
    const uint64_t method = python.Object(python.WholeType("method"), {Function(function), self});
    return python.Object(python.WholeType("functools.partial"), {method});
  }
  bool OnlyInterrupts(uint64_t begin = FakePython::kImageBegin) {
    const auto find = [this](std::string_view name) -> std::optional<uint64_t> {
      return name == "_Py_NoneStruct" ? std::optional(none_) : std::nullopt;
    };
    const auto read = [this](uint64_t address, void* into, size_t bytes) {
      ++python.reads;
      return python.Read(address, into, bytes);
    };
    return hangscope::OnlyInterrupts(find, read, {{begin, end_}});
  }
  uint64_t handlers() const { return handlers_; }
  uint64_t none() const { return none_; }

  static constexpr int kSignals = 65;
  FakePython python;

 private:
  uint64_t none_ = 0, handlers_ = 0, end_ = 0;
};

TEST(PythonSignals, TheHandlerThatPythonBeginsWithOnlyInterrupts) {
  Interpreter interpreter;
  EXPECT_TRUE(interpreter.OnlyInterrupts());
  interpreter.Handle(SIGTERM, interpreter.Function("stop"));
  EXPECT_TRUE(interpreter.OnlyInterrupts());
  EXPECT_FALSE(interpreter.OnlyInterrupts(interpreter.handlers() + 8));  // it is elsewhere
}

TEST(PythonSignals, AnyOtherIsTheProgramsOwn) {
  Interpreter interpreter;
  interpreter.Handle(SIGINT, interpreter.Function("default_int_handler"));
  EXPECT_FALSE(interpreter.OnlyInterrupts());
  interpreter.Handle(SIGINT, interpreter.Builtin("set"));
  EXPECT_FALSE(interpreter.OnlyInterrupts());
  interpreter.Handle(SIGINT, interpreter.none());  // of C code
  EXPECT_FALSE(interpreter.OnlyInterrupts());
}

TEST(PythonSignals, ThatOfARunningLoopCancelsWhatItRuns) {
  Interpreter interpreter;
  interpreter.Handle(SIGINT, interpreter.PartialOf("Runner", "_on_sigint"));
  EXPECT_TRUE(interpreter.OnlyInterrupts());
  interpreter.Handle(SIGINT, interpreter.PartialOf("Server", "_on_sigint"));
  EXPECT_FALSE(interpreter.OnlyInterrupts());
  interpreter.Handle(SIGINT, interpreter.PartialOf("Runner", "stop"));
  EXPECT_FALSE(interpreter.OnlyInterrupts());
}

TEST(PythonSignals, WhatHasAnotherFormIsNotTheirArray) {
  const auto with = [](int number, uint64_t function) {
    Interpreter interpreter;
    interpreter.Handle(number, function);
    return interpreter.OnlyInterrupts();
  };
  EXPECT_FALSE(with(32, 0x10008));
  EXPECT_FALSE(with(SIGKILL, 0x10008));
  EXPECT_FALSE(with(SIGUSR1, 0));
  EXPECT_FALSE(with(SIGUSR1, 0x10001));
  Interpreter tripped;
  tripped.python.Put<uint32_t>(tripped.handlers() + SIGUSR1 * 16, 1);
  EXPECT_TRUE(tripped.OnlyInterrupts());
  tripped.python.Put<uint32_t>(tripped.handlers() + SIGUSR1 * 16, 2);
  EXPECT_FALSE(tripped.OnlyInterrupts());
}

TEST(PythonSignals, NoByteThatChangesLeadsAstray) {
  Interpreter interpreter;
  string& image = interpreter.python.image();
  size_t changed = 0;
  for (size_t i = 0; i < image.size(); ++i) {
    const char before = image[i];
    image[i] = static_cast<char>(before ^ 0x80);
    interpreter.python.reads = 0;
    if (!interpreter.OnlyInterrupts()) ++changed;
    EXPECT_LT(interpreter.python.reads, 100u);
    image[i] = before;
  }
  EXPECT_GT(changed, 60u);
}

}  // namespace
}  // namespace hangscope
