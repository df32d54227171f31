// What threads and their places are called.
#include "process/process_words.h"

#include <gtest/gtest.h>

#include "unit/process/process_story.h"

namespace hangscope {
namespace {

TEST(ProcessWords, NamesOfTargetsCannotReachTheTerminal) {
  World world;
  ThreadFacts& thread = world.Locks(10, 10, "lock\x1b[2J", 10);
  thread.name = "a\nb";
  EXPECT_EQ(ThreadLabel(thread), "10 a\\nb");
  EXPECT_EQ(WaitedFor(thread, world.look()), "mutex lock\\x1b[2J, which it holds itself");
}

TEST(ProcessWords, WhereAThreadIsIsInItsProgramAndNotInTheLibraryBelow) {
  ThreadFacts thread;
  thread.stack = {{1, "__lll_lock_wait", "", "libc.so.6"},
                  {2, "std::mutex::lock", "std_mutex.h:100", "abba"},
                  {3, "Transfer", "abba.cc:20", "abba"}};
  EXPECT_EQ(FrameText(OwnFrame(thread)), "Transfer  abba.cc:20");
  thread.stack.resize(1);
  EXPECT_EQ(FrameText(OwnFrame(thread)), "__lll_lock_wait  libc.so.6");
  thread.stack.clear();
  EXPECT_EQ(FrameText(OwnFrame(thread)), "");
}

StackFrame OfSystem(const char* function, const char* source, const char* module) {
  return {1, function, source, module, FrameLanguage::kNative, true};
}

TEST(ProcessWords, WhereAThreadIsIsInNoLibraryOfTheSystemAndInNoHeaderOfOne) {
  ThreadFacts thread;
  thread.stack = {OfSystem("syscall", "", "libc.so.6"),
                  OfSystem("g_mutex_lock", "", "libglib-2.0.so.0"),
                  OfSystem("__glibcxx_rwlock_rdlock", "shared_mutex:78", "app"),
                  {4, "transfer", "app.c:12", "app"},
                  {5, "main", "app.c:20", "app"}};
  EXPECT_EQ(FrameText(OwnFrame(thread)), "transfer  app.c:12");
  thread.stack[3].module = "libown.so";
  EXPECT_EQ(FrameText(OwnFrame(thread)), "transfer  app.c:12");
}

TEST(ProcessWords, AProgramThatOnlyCallsALibraryIsInThat) {
  ThreadFacts thread;
  thread.stack = {OfSystem("__read", "", "libc.so.6"),
                  OfSystem("Perl_pp_readline", "", "libperl.so.5.36"),
                  OfSystem("perl_run", "", "libperl.so.5.36"),
                  {4, "main", "", "perl"},
                  OfSystem("__libc_start_main", "", "libc.so.6"),
                  {6, "_start", "", "perl"}};
  EXPECT_EQ(FrameText(OwnFrame(thread)), "Perl_pp_readline  libperl.so.5.36");
  thread.stack[3].source = "app.c:12";
  EXPECT_EQ(FrameText(OwnFrame(thread)), "main  app.c:12");
}

TEST(ProcessWords, ASemaphoreOfSystemVIsNoNameOfASystemCall) {
  World world;
  ThreadFacts& thread = world.Thread(10, 10, WaitKind::kOther);
  thread.system_call_name = "semtimedop";
  EXPECT_EQ(WaitedFor(thread, world.look()), "a semaphore of System V");
  thread.system_call_name = "msgrcv";
  EXPECT_EQ(WaitedFor(thread, world.look()), "msgrcv");
}

TEST(ProcessWords, ALockOfMallocIsCalledOne) {
  World world;
  ThreadFacts& thread = world.Thread(10, 10, WaitKind::kFutex);
  thread.stack.resize(3);
  thread.stack[0].function = "__lll_lock_wait_private", thread.stack[0].module = "libc.so.6";
  thread.stack[1].function = "malloc", thread.stack[1].module = "libc.so.6";
  const auto text = [&](const char* variable) {
    thread.wait.variable = variable;
    return WaitedFor(thread, world.look());
  };
  EXPECT_EQ(text("main_arena"), "malloc's arena lock main_arena");
  EXPECT_EQ(text(""), "malloc's arena lock at 0x1000");
  EXPECT_EQ(text("free_list_lock"), "malloc's lock free_list_lock");
  thread.stack[1].module = "libown.so";
  EXPECT_EQ(text("main_arena"), "futex main_arena");
  thread.stack[1].module = "libc.so.6", thread.stack[1].function = "localtime_r";
  EXPECT_EQ(text("tzset_lock"), "futex tzset_lock");
}

TEST(ProcessWords, RubyWaitsForItsChildOverAFile) {
  World world;
  ThreadFacts& thread = world.Reads(10, 10, {10});
  thread.wait.children = {20};
  EXPECT_EQ(WaitedFor(thread, world.look()), "data from a pipe (fd 3) written by itself");
  thread.stack = {{1, "ppoll", "", "libc.so.6"}, {2, "rb_waitpid", "", "libruby-3.1.so.3.1.7"}};
  EXPECT_EQ(WaitedFor(thread, world.look()),
            "the end of child 20, over data from a pipe (fd 3) written by itself");
}

StackFrame OfPython(const char* function, const char* source, const char* path) {
  return {0, function, source, path, FrameLanguage::kPython};
}

TEST(ProcessWords, WhereAThreadOfPythonIsIsInItsProgramAndNotInWhatIsInstalled) {
  ThreadFacts thread;
  thread.stack = {
      {1, "__new_sem_wait", "", "libc.so.6"},
      {2, "PyThread_acquire_lock_timed", "", "python3.11"},
      {3, "callback", "fast.c:3", "fast.so"},
      OfPython("wait", "threading.py:320", "/usr/lib/python3.11/threading.py"),
      OfPython("run", "case.py:5", "/home/x/venv/lib/python3.11/site-packages/case.py"),
      OfPython("load", "cbor.py:5", "/usr/lib/python3/dist-packages/cbor.py"),
      OfPython("load", "zip.py:5", "/usr/lib/python311.zip/zip.py"),
      OfPython("_run_code", "<frozen runpy>:88", "<frozen runpy>"),
  };
  const auto where = [&] { return FrameText(OwnFrame(thread)); };
  EXPECT_EQ(where(), "wait  threading.py:320");
  const size_t libraries = thread.stack.size();
  for (const char* path : {"/srv/bank.py", "bank.py", "<stdin>", "/lib/python3-tools/bank.py"}) {
    thread.stack.resize(libraries);
    thread.stack.push_back(OfPython("transfer", "bank.py:31", path));
    EXPECT_EQ(where(), "transfer  bank.py:31") << path;
  }
}

}  // namespace
}  // namespace hangscope
