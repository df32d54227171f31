// Frames of JavaScript, of memory that is laid out as V8 says; and of memory that is not.
#include "runtime/v8/v8_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "fakes/fake_v8.h"

namespace hangscope {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr size_t kMostScriptFrames = 32;

std::vector<ScriptFrame> FramesOf(FakeScriptStack& story, const ScriptAnchor& anchor,
                                  size_t most = kMostScriptFrames) {
  auto reader = story.v8.Open();
  EXPECT_TRUE(reader.ok()) << reader.status().message();
  if (!reader.ok()) return {};
  return reader.value()->FramesFrom(anchor, story.stack.end, most, FakeScriptStack::IsInterpreter);
}

std::vector<ScriptFrame> FramesOf(FakeScriptStack& story) {
  return FramesOf(story, story.Anchor());
}

TEST(V8Reader, KnowsFunctionsFilesAndLines) {
  FakeScriptStack story;
  EXPECT_THAT(FramesOf(story), ElementsAre(ScriptFrame{"wait", "/srv/app.js", 0, 2},
                                           ScriptFrame{"", "/srv/app.js", 6, 1}));
}

TEST(V8Reader, KnowsNoLineWhereTheInterpreterIsNotInACall) {
  FakeScriptStack story;
  ScriptAnchor anchor = story.Anchor();
  anchor.frame_pointer = story.outer;
  anchor.pc = FakeV8::kInterpreter;
  EXPECT_THAT(FramesOf(story, anchor), ElementsAre(ScriptFrame{"", "/srv/app.js", 0, 1}));
  anchor.calls = true;
  EXPECT_THAT(FramesOf(story, anchor), ElementsAre(ScriptFrame{"", "/srv/app.js", 6, 1}));
}

TEST(V8Reader, KnowsNoLineOfAPlaceBehindTheBytecode) {
  FakeScriptStack story;
  story.v8.Put(story.outer - 40, FakeV8::Number(4 + 53));  // it does not call yet
  EXPECT_EQ(FramesOf(story)[1].line, 1);
  story.v8.Put(story.outer - 40, FakeV8::Number(1 << 20));
  EXPECT_EQ(FramesOf(story)[1].line, 0);
  story.v8.Put(story.outer - 40, FakeV8::Number(-1));
  EXPECT_EQ(FramesOf(story)[1].line, 0);
  story.v8.Put(story.outer - 40, uint64_t{1});
  EXPECT_EQ(FramesOf(story)[1].line, 0);
}

TEST(V8Reader, FindsTheFrameThatLeftJavaScriptWhereTheFramePointerIsNotKnown) {
  FakeScriptStack story;
  FakeV8::Stack stack = story.v8.AddStack(512);
  story.v8.AddFrameOfV8(&stack, FakeV8::kBuiltinExit, FakeV8::kInterpreter);
  story.v8.Put(stack.last_fp, stack.next + 48);
  stack.last_fp = 0;
  const uint64_t script = story.v8.Script(story.v8.Text("file:///srv/b.mjs"), story.v8.Text("f()"));
  const uint64_t function = story.v8.Function("load", script, 1, 3);
  story.v8.AddFrame(&stack, story.v8.context(), function, FakeV8::kCompiled);
  story.v8.AddFrameOfV8(&stack, FakeV8::kEntry, 0);
  auto reader = story.v8.Open();
  ASSERT_TRUE(reader.ok());
  EXPECT_THAT(reader.value()->FramesFrom({0, true, stack.begin, std::nullopt}, stack.end,
                                         kMostScriptFrames, FakeScriptStack::IsInterpreter),
              ElementsAre(ScriptFrame{"load", "/srv/b.mjs", 0, 1}));
}

TEST(V8Reader, FindsNothingWhereNoFrameLeftJavaScript) {
  FakeScriptStack story;
  ScriptAnchor anchor = story.Anchor();
  anchor.frame_pointer.reset();
  EXPECT_THAT(FramesOf(story, anchor), IsEmpty());
}

TEST(V8Reader, StopsAtNativeCodeAndAtTheMostFrames) {
  FakeScriptStack story;
  story.v8.Put(story.entry, story.inner);  // what native code keeps there is no frame pointer
  EXPECT_THAT(FramesOf(story), SizeIs(2));
  EXPECT_THAT(FramesOf(story, story.Anchor(), 1), SizeIs(1));
  story.v8.Put(story.inner, story.inner);  // a frame that is its own caller
  EXPECT_THAT(FramesOf(story), SizeIs(1));
}

TEST(V8Reader, ReadsTextsOfAllKinds) {
  FakeScriptStack story;
  FakeV8& v8 = story.v8;
  const uint64_t whole = v8.Text("file:///srv/lib/queue.js");
  const uint64_t joined = v8.Joined(v8.Part(whole, 7, 9), v8.Same(v8.Text("stack.js")), 17);
  const uint64_t script = v8.Script(joined, v8.WideText(u"\n\u00e9\nx() "));
  v8.Put(story.inner - 16, v8.Function("pop", script, 3, 6));
  EXPECT_EQ(FramesOf(story)[0], (ScriptFrame{"pop", "/srv/lib/stack.js", 0, 3}));
}

TEST(V8Reader, NamesWhatADeveloperKnows) {
  const StackFrame frame = V8Reader::Name({"wait", "/srv/app.js", 0, 2});
  EXPECT_EQ(frame.function, "wait");
  EXPECT_EQ(frame.source, "app.js:2");
  EXPECT_EQ(frame.module, "/srv/app.js");
  EXPECT_EQ(frame.language, FrameLanguage::kJavaScript);
  EXPECT_FALSE(frame.of_system);
  EXPECT_EQ(V8Reader::Name({"wait", "/srv/app.js", 5, 2}).source, "app.js:5");
  EXPECT_EQ(V8Reader::Name({"", "/srv/app.js", 0, 0}).function, "(anonymous)");
  EXPECT_EQ(V8Reader::Name({"", "/srv/app.js", 0, 0}).source, "app.js");
  EXPECT_EQ(V8Reader::Name({"run", "node:internal/timers", 7, 0}).source, "node:internal/timers:7");
  EXPECT_TRUE(V8Reader::Name({"run", "node:internal/timers", 7, 0}).of_system);
  EXPECT_TRUE(V8Reader::Name({"get", "/srv/node_modules/got/index.js", 7, 0}).of_system);
  EXPECT_TRUE(V8Reader::Name({"map", "", 0, 0}).of_system);
}

TEST(V8Reader, RefusesWhatDoesNotSayEnough) {
  FakeScriptStack silent;
  silent.v8.Forget("v8dbg_off_fp_function");
  EXPECT_THAT(silent.v8.Open().status().message(),
              HasSubstr("this V8 does not say v8dbg_off_fp_function"));
  FakeScriptStack compressed;
  compressed.v8.Put(compressed.v8.SymbolAt("v8dbg_TaggedSize"), int32_t{4});
  EXPECT_THAT(compressed.v8.Open().status().message(),
              HasSubstr("has its words in another way: v8dbg_TaggedSize is 4"));
}

}  // namespace
}  // namespace hangscope
