// The memory of a process that runs Python, damaged in any way: bounded reads and lists, and a
// sentence where frames are missing.
#include <string>
#include <vector>

#include "fakes/fake_python.h"
#include "fuzz.h"
#include "runtime/python/python_naps.h"
#include "runtime/python/python_tasks.h"

namespace hangscope::fuzz {
namespace {

constexpr size_t kMostPythonFrames = 64;
constexpr size_t kMostReadsOfObjects = 200000;

}  // namespace

void FuzzPython(std::string_view input) {
  FakePython python;
  python.image() = std::string(input);
  auto reader = python.Open();
  FUZZ_REQUIRE(reader.ok() || !reader.status().message().empty());
  if (!reader.ok()) return;
  const size_t most_reads = 1000 + input.size();  // each record of a list is another
  PythonFrames frames = reader->FramesOf(FakePython::kPyThread, FakePython::kPyStackBegin,
                                         FakePython::kPyStackEnd, kMostPythonFrames);
  FUZZ_REQUIRE(frames.frames.size() <= kMostPythonFrames);
  const auto named = reader->Name(frames.frames, &frames.warning);
  FUZZ_REQUIRE(named.size() == frames.frames.size() ||
               (named.size() < frames.frames.size() && !frames.warning.empty()));
  FUZZ_REQUIRE(MergeStacks({}, frames.frames, named, "python3.11").size() == named.size());
  reader->RLockOwner(0x5000, input.substr(0, 4096));
  FUZZ_REQUIRE(python.reads < most_reads);
  PythonWaits waits(*reader);
  const PythonWait wait = waits.Explain(0x5000, input.substr(0, 4096), frames.frames);
  FUZZ_REQUIRE(wait.object != 0 || wait.name.empty());
  bool may_be_cancelled = false;
  const std::vector<TaskFacts> tasks =
      PythonTasks(*reader, waits).TasksOf(frames.frames, &may_be_cancelled);
  FUZZ_REQUIRE(!may_be_cancelled || !tasks.empty());
  for (const TaskFacts& task : tasks) {
    for (const size_t other : task.tasks) FUZZ_REQUIRE(other < tasks.size());
  }
  const PythonEffect effect = PythonNaps(*reader).EffectOf(frames.frames);
  FUZZ_REQUIRE(effect.wakes_nobody || (!effect.prints && !effect.uses_files));
  FUZZ_REQUIRE(python.reads < most_reads + kMostReadsOfObjects);
}

}  // namespace hangscope::fuzz
