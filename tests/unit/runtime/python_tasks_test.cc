// The tasks of an event loop of asyncio, from an image of the process's memory that is built here
// as CPython 3.11 lays it out.
#include "runtime/python/python_tasks.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "fakes/fake_python.h"

namespace hangscope {
namespace {

using ::std::string;

// A thread that runs a loop, and its tasks.
class Loop {
 public:
  Loop() {
    python.MakeTypesWhole();
    task_type_ = python.WholeType("_asyncio.Task");
    coroutine_type_ = python.WholeType("coroutine");
    reference_type_ = python.WholeType("weakref.ReferenceType");
    const uint64_t type = python.WholeType("Loop", FakePython::kHeapType);
    python.Put<int64_t>(type + 288, 16);  // where its objects have their dictionary
    loop_ = python.Object(type, {0});
    timer_type_ = python.WholeType("TimerHandle", FakePython::kHeapType);
    const std::vector<string> slots = {"_callback", "_args", "_cancelled"};
    const uint64_t members = python.Block(slots.size() * 40);
    for (size_t i = 0; i < slots.size(); ++i) {
      const uint64_t name = python.Block(16);
      python.PutText(name, slots[i]);
      python.Put(members + i * 40, name);
      python.Put<int32_t>(members + i * 40 + 8, 16);
      python.Put<uint64_t>(members + i * 40 + 16, 16 + i * 8);
    }
    python.Put<uint64_t>(timer_type_ + 16, slots.size());
    python.Put(timer_type_ + 240, members);
  }

  // A task that awaits `future` in "ask", of `state`.
  uint64_t Task(const string& name, uint64_t future, int32_t state = 0) {
    const uint64_t coroutine = python.Block(80 + 72 + 8);
    python.Put(coroutine + 8, coroutine_type_);
    python.Put<int8_t>(coroutine + 75, -1);
    const uint64_t code = python.Function("ask");
    python.FillFrame(coroutine + 80, code, 0, 0, 0);
    python.Put<int32_t>(coroutine + 80 + 64, 1);
    const uint64_t task = python.Block(176);
    python.Put(task + 8, task_type_);
    python.Put(task + 16, loop_);
    python.Put(task + 88, state);
    python.Put(task + 128, future);
    python.Put(task + 136, coroutine);
    python.Put(task + 144, python.Ascii(name));
    references_.push_back(python.Object(reference_type_, {task}));
    return task;
  }
  void Await(uint64_t task, uint64_t future) { python.Put(task + 128, future); }
  // The task's coroutine has a variable now, which its code may use.
  void Give(uint64_t task, uint64_t value) {
    const auto coroutine = python.Get<uint64_t>(task + 136);
    const uint64_t frame = python.WholeFrame("watch", "/srv/bank.py", 0, 0, {{"what", value}}, {0});
    const uint64_t grown = python.Block(80 + 72 + 16);
    python.Put(grown + 8, python.Get<uint64_t>(coroutine + 8));
    python.Put<int8_t>(grown + 75, -1);
    for (uint64_t at = 0; at < 72 + 16; at += 8)
      python.Put(grown + 80 + at, python.Get<uint64_t>(frame + at));
    python.Put<int32_t>(grown + 80 + 64, 2);
    python.Put(task + 136, grown);
  }
  uint64_t Bound(const string& name, uint64_t self) {
    const uint64_t text = python.Block(16);
    python.PutText(text, name);
    const uint64_t method = python.Block(16);
    python.Put(method, text);
    return python.Object(python.WholeType("builtin_function_or_method"), {method, self});
  }
  void Schedule(uint64_t callback, const std::vector<uint64_t>& arguments) {
    const uint64_t timer =
        python.Object(timer_type_, {callback, python.Tuple(arguments), python.Ascii("no")});
    python.Put(loop_ + 16, python.Dict({{"_scheduled", python.Tuple({timer})}}));
  }

  // Once all tasks are there.
  void Run() {
    const uint64_t table = python.Block(8 * 16);
    for (size_t i = 0; i < references_.size(); ++i) python.Put(table + i * 16, references_[i]);
    const uint64_t set =
        python.Object(python.WholeType("set"), {references_.size(), references_.size(), 7, table});
    const uint64_t weak_type = python.WholeType("WeakSet", FakePython::kHeapType);
    python.Put<int64_t>(weak_type + 288, 16);  // where its objects have their dictionary
    const uint64_t all = python.Object(weak_type, {python.Dict({{"data", set}})});
    const uint64_t module =
        python.Object(python.WholeType("module"), {python.Dict({{"_all_tasks", all}})});
    python.Thread(
        python.Interpreter(), FakePython::kPyThread,
        python.WholeFrame("BaseEventLoop.run_forever", "/usr/lib/python3.11/asyncio/base_events.py",
                          0, 0, {{"self", loop_}}, {}, "", python.Dict({{"tasks", module}})));
  }
  std::vector<TaskFacts> Tasks() {
    auto reader = python.Open();
    if (!reader.ok()) return {};
    PythonWaits waits(*reader);
    may_be_cancelled = false;
    return PythonTasks(*reader, waits)
        .TasksOf(reader->FramesOf(FakePython::kPyThread, 0, 0, 64).frames, &may_be_cancelled);
  }

  FakePython python;
  bool may_be_cancelled = false;

 private:
  uint64_t task_type_, coroutine_type_, reference_type_, loop_, timer_type_;
  std::vector<uint64_t> references_;
};

TEST(PythonTasks, EachHasANameAPlaceAndWhatItAwaits) {
  Loop loop;
  const uint64_t first = loop.Task("Task-1", 0);
  const uint64_t second = loop.Task("Task-2", first);
  loop.Task("ended", second, 2);
  const uint64_t future = loop.python.Object(loop.python.WholeType("_asyncio.Future"), {});
  loop.Task("Task-3", future);
  loop.Run();
  const std::vector<TaskFacts> tasks = loop.Tasks();
  ASSERT_EQ(tasks.size(), 3u);
  EXPECT_EQ(tasks[0].name, "Task-1");
  EXPECT_EQ(tasks[0].waits_for, "");
  EXPECT_EQ(tasks[1].waits_for, "the end of task Task-1");
  EXPECT_EQ(tasks[1].tasks, std::vector<size_t>{0});
  EXPECT_EQ(tasks[2].waits_for, "a future");
  ASSERT_EQ(tasks[2].stack.size(), 1u);
  EXPECT_EQ(tasks[2].stack[0].function + " " + tasks[2].stack[0].source, "ask bank.py:10");
}

// Two tasks that wait for each other, and a third one.
struct Crossed : Loop {
  Crossed() {
    first = Task("first", 0);
    second = Task("second", first);
    Await(first, second);
    third = Task("third", python.Object(python.WholeType("_asyncio.Future"), {}));
    Run();
  }
  uint64_t first = 0, second = 0, third = 0;
};

TEST(PythonTasks, ATimerThatCancelsATaskIsItsTimeLimit) {
  Crossed loop;
  loop.Schedule(loop.Bound("cancel", loop.third), {});
  EXPECT_FALSE(loop.Tasks()[0].has_timeout);
  loop.Schedule(loop.Bound("cancel", loop.second), {});
  const std::vector<TaskFacts> tasks = loop.Tasks();
  EXPECT_TRUE(tasks[1].has_timeout);
  EXPECT_TRUE(tasks[0].has_timeout);  // which that one waits for
  EXPECT_FALSE(tasks[2].has_timeout);
}

TEST(PythonTasks, ATimerThatHasATaskMayCancelIt) {
  Crossed loop;
  loop.Schedule(loop.Bound("set", loop.third), {loop.third});
  loop.Tasks();
  EXPECT_FALSE(loop.may_be_cancelled);
  loop.Schedule(loop.Bound("set", 0), {loop.python.Tuple({loop.first})});
  EXPECT_FALSE(loop.Tasks()[0].has_timeout);
  EXPECT_TRUE(loop.may_be_cancelled);
  loop.Schedule(loop.Bound("expel", loop.second), {});
  loop.Tasks();
  EXPECT_TRUE(loop.may_be_cancelled);
}

TEST(PythonTasks, AnotherOneThatHasATaskMayCancelIt) {
  Crossed loop;
  loop.Give(loop.third, loop.third);
  loop.Tasks();
  EXPECT_FALSE(loop.may_be_cancelled);
  loop.Give(loop.third, loop.python.Tuple({0, loop.second}));
  EXPECT_FALSE(loop.Tasks()[1].has_timeout);
  EXPECT_TRUE(loop.may_be_cancelled);
}

TEST(PythonTasks, WhoWaitsForOneOfThemCancelsNone) {
  Crossed loop;
  loop.Give(loop.third, loop.second);
  loop.Await(loop.third, loop.first);
  loop.Tasks();
  EXPECT_FALSE(loop.may_be_cancelled);
}

TEST(PythonTasks, NoByteThatChangesLeadsAstray) {
  Loop loop;
  const uint64_t first = loop.Task("Task-1", 0);
  loop.Await(first, loop.Task("Task-2", first));
  loop.Run();
  ASSERT_EQ(loop.Tasks().size(), 2u);
  size_t changed = 0;
  string& image = loop.python.image();
  for (size_t i = 0; i < image.size(); ++i) {
    const char before = image[i];
    for (const int flip : {0x01, 0x80, 0xff}) {
      image[i] = static_cast<char>(before ^ flip);
      loop.python.reads = 0;
      const std::vector<TaskFacts> tasks = loop.Tasks();
      EXPECT_LT(loop.python.reads, 50000u);
      for (const TaskFacts& task : tasks) {
        for (const size_t other : task.tasks) EXPECT_LT(other, tasks.size());
      }
      if (tasks.size() != 2 || tasks[0].tasks != std::vector<size_t>{1}) ++changed;
    }
    image[i] = before;
  }
  EXPECT_GT(changed, 200u);
}

}  // namespace
}  // namespace hangscope
