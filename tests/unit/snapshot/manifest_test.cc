// What a snapshot's manifest says, written and read back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "fakes/fake_file_system.h"
#include "snapshot/manifest_reader.h"
#include "snapshot/manifest_writer.h"
#include "snapshot/snapshots.h"

namespace hangscope {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;
using Json = nlohmann::json;

Verdict FullVerdict() {
  Verdict verdict;
  verdict.state = State::kDeadlock;
  verdict.confidence = Confidence::kCertain;
  verdict.time = 41 * kSecond;
  verdict.summary = "deadlock, 2 of 5 cores";
  verdict.evidence = {"sampled twice"};
  verdict.doubts = {"its clock is not known"};
  CoreVerdict core;
  core.name = "hart 0";
  core.state = State::kLooping;
  core.since = 39 * kSecond;
  core.since_cycle = 284'564;
  core.loop = Loop{{{0x80, "poll", "cb.c:9"}}, LoopBasis::kBody, 12, true, 3, false, {}, false};
  verdict.cores = {core};
  verdict.streams = {{"stdout", State::kSilent, "qemu", 0, 90}, {"stderr", State::kSilent, {}}};
  Finding finding;
  finding.source = Source::kScope;
  finding.kind = FindingKind::kDeadlock;
  finding.confidence = Confidence::kLikely;
  finding.summary = "cores 1 and 2 wait";
  finding.lines = {"core 1 waits", "core 2 waits"};
  FindingSubject subject{"core 1 writer (2,0)"};
  subject.memory = "tile 2";
  subject.node = {2, 0};
  finding.subjects = {subject};
  verdict.findings = {finding};
  return verdict;
}

Manifest FullManifest() {
  Manifest manifest;
  manifest.run_id = 0xabc;
  manifest.trigger = {TriggerKind::kRegex, "regex: x", "x = 3", 41 * kSecond, "stdout", 4, 9, 0};
  manifest.time = 41 * kSecond;
  manifest.wall = 1'700'000'041 * kSecond;
  manifest.start = 1 * kSecond;
  manifest.start_wall = 1'700'000'001 * kSecond;
  manifest.host = "machine";
  manifest.command = {"fw", "-x"};
  manifest.elf = "fw.elf";
  manifest.elf_id = "0a1f";
  manifest.pid = 77;
  manifest.streams = {{"stdout", 10, 90, 2 * kSecond, 0, {{20, 30, LossReason::kNotWritten}}}};
  manifest.verdict = FullVerdict();
  manifest.scope.image = "scope.bin";
  ScopeCore core;
  core.index = 3;
  core.in_use = true;
  core.name = "writer";
  core.counts.emitted = 9;
  core.counts.overwritten = 5;
  core.counts.torn = 2;
  core.counts.refused = 1;
  manifest.scope.cores = {core};
  manifest.scope.clocks = {{3, 123456789012345, 40 * kSecond, 0.5, 1000}};
  manifest.scope.not_in_window = "no event came";
  manifest.cpu.file = "cpu.perf.data";
  manifest.cpu.discarded_bytes = 512;
  manifest.cpu.side_band_lost = 3;
  manifest.cpu.threads_at_start = 1100;
  manifest.cpu.threads_not_recorded = 103;
  Window window;
  window.policy = WindowPolicy::kLastTime;
  window.time = {31 * kSecond, 41 * kSecond};
  window.clock_error = 1000;
  window.limited_by = 1;
  window.rings.resize(2);
  window.rings[0].ring = {RingKind::kCpu, 0, "events"};
  window.rings[0].held = TimeSpan{30 * kSecond, 41 * kSecond};
  window.rings[0].bytes_discarded = 4096;
  window.rings[0].covered = {{31 * kSecond, 35 * kSecond}, {36 * kSecond, 41 * kSecond}};
  window.rings[1].ring = {RingKind::kCore, 3, "scope"};
  window.rings[1].stale = {{{1 * kSecond, 2 * kSecond}, 29 * kSecond, 64}};
  window.gaps = {
      {0, 42, {35 * kSecond, 36 * kSecond}, GapReason::kNoRoom, 7, AmountUnit::kRecords},
      {1, {}, {32 * kSecond, 33 * kSecond}, GapReason::kTorn, 16, AmountUnit::kBytes},
      {0, 42, {32 * kSecond, 32 * kSecond}, GapReason::kLastEvents, 2, AmountUnit::kRecords}};
  window.lost_before = {
      {0, 42, {28 * kSecond, 29 * kSecond}, GapReason::kSharedSink, 0, AmountUnit::kUnknown}};
  window.tasks = {{42, "decoder", true, {{31 * kSecond, 32 * kSecond}}, {}, true}};
  manifest.window = window;
  return manifest;
}

Result<SavedManifest> Saved(const std::string& bytes) {
  FakeFileSystem files;
  EXPECT_TRUE(WriteWholeFile(files, "snap/manifest.json", bytes).ok());
  return ReadManifest(files, "snap");
}

TEST(AmendSnapshot, SaysTheBetterVerdictInAllItsFiles) {
  FakeFileSystem files;
  Manifest manifest = FullManifest();
  ASSERT_TRUE(WriteWholeFile(files, "snap/manifest.json", ManifestJson(manifest)).ok());
  ASSERT_TRUE(WriteWholeFile(files, "snap/report.txt", "old").ok());
  manifest.verdict.summary = "starved, core 1 waits for cb3";
  ASSERT_TRUE(AmendSnapshot(files, "snap", manifest, "{}\n").ok());
  const auto saved = ReadManifest(files, "snap");
  ASSERT_TRUE(saved.ok() && saved->verdict);
  EXPECT_EQ(saved->verdict->summary, "starved, core 1 waits for cb3");
  EXPECT_THAT(files.BytesOf("snap/report.txt"), HasSubstr("starved, core 1 waits for cb3"));
  EXPECT_EQ(files.BytesOf("snap/threads.jsonl"), "{}\n");
  EXPECT_EQ(files.List("snap").size(), 3u) << "nothing is left over";
  // Threads that nobody looked at again stay as they were.
  ASSERT_TRUE(AmendSnapshot(files, "snap", manifest, "").ok());
  EXPECT_EQ(files.BytesOf("snap/threads.jsonl"), "{}\n");
}

TEST(AmendSnapshot, LeavesNothingInTheFolderWhereverItsProcessIsKilled) {
  const std::string folder = "kept/run.snapshot-0001";
  const Manifest manifest;
  FakeFileSystem files;
  for (const char* part : {kManifestName, kReportName, kThreadsName})
    ASSERT_TRUE(WriteWholeFile(files, folder + "/" + part, ManifestJson(manifest)).ok());
  const FakeFileSystem::Files before = files.Save();
  files.CrashAfter(UINT64_MAX);
  ASSERT_TRUE(AmendSnapshot(files, folder, manifest, "{}\n").ok());
  const uint64_t whole = files.written_since();
  ASSERT_GT(whole, 500u);
  for (uint64_t cut = 0; cut <= whole; ++cut) {
    SCOPED_TRACE("killed after " + std::to_string(cut) + " of " + std::to_string(whole) + " bytes");
    files.Restore(before);
    files.CrashAfter(cut);
    (void)AmendSnapshot(files, folder, manifest, "{}\n").ok();
    files.CrashAfter(UINT64_MAX);
    ASSERT_EQ(files.List(folder).size(), 3u) << "each file is the old or the new one";
    const Status removed = RemoveSnapshot(files, folder);
    ASSERT_TRUE(removed.ok()) << removed.message();
    RemoveLeftDrafts(files, "kept/run");
    ASSERT_THAT(files.List("kept"), IsEmpty());
  }
}

TEST(RemoveSnapshot, KeepsAFileThatAUserNamedLikeAPart) {
  for (const char* name : {"manifest.json.new", "report.txt.new", "notes.new"}) {
    FakeFileSystem files;
    ASSERT_TRUE(WriteWholeFile(files, "snap/manifest.json", ManifestJson(FullManifest())).ok());
    const std::string theirs = std::string("snap/") + name;
    ASSERT_TRUE(WriteWholeFile(files, theirs, "mine").ok());
    EXPECT_THAT(RemoveSnapshot(files, "snap").message(), HasSubstr(name));
    EXPECT_TRUE(AmendSnapshot(files, "snap", FullManifest(), "").ok()) << "it is in nobody's way";
    EXPECT_EQ(files.BytesOf(theirs), "mine");
  }
}

TEST(SavedManifest, HasTheRunThatWasWritten) {
  const Manifest written = FullManifest();
  const auto saved = Saved(ManifestJson(written));
  ASSERT_TRUE(saved.ok()) << saved.status().message();
  EXPECT_TRUE(saved->is_object);
  EXPECT_EQ(saved->warning, "");
  EXPECT_EQ(saved->path, "snap/manifest.json");
  EXPECT_EQ(saved->format, kManifestFormat);
  EXPECT_EQ(saved->version, kManifestVersion);
  EXPECT_EQ(saved->run_id, "0xabc");
  EXPECT_EQ(saved->host, "machine");
  EXPECT_THAT(saved->command, ElementsAre("fw", "-x"));
  EXPECT_EQ(saved->elf, "fw.elf");
  EXPECT_EQ(saved->elf_id, "0a1f");
  EXPECT_EQ(saved->pid, 77u);
  EXPECT_EQ(saved->start, "2023-11-14T22:13:21.000Z");
  EXPECT_EQ(saved->taken, "2023-11-14T22:14:01.000Z");
  EXPECT_EQ(saved->elapsed, 40 * kSecond);
  EXPECT_EQ(saved->trigger, "regex: x");
  EXPECT_EQ(saved->trigger_kind, "regex");
  EXPECT_EQ(saved->trigger_detail, "x = 3");
  EXPECT_EQ(saved->trigger_stream, "stdout");
  EXPECT_EQ(saved->trigger_time, saved->taken);
  EXPECT_EQ(saved->trigger_after, 40 * kSecond);
  ASSERT_THAT(saved->streams, SizeIs(1));
  EXPECT_EQ(saved->streams[0].name, "stdout");
  EXPECT_EQ(saved->streams[0].begin_offset, 10u);
  ASSERT_THAT(saved->streams[0].losses, SizeIs(1));
  EXPECT_EQ(saved->streams[0].losses[0].begin, 20u);
  EXPECT_EQ(saved->streams[0].losses[0].end, 30u);
  EXPECT_EQ(saved->streams[0].losses[0].reason, "not written");
}

TEST(SavedManifest, HasTheMemoriesOfADevice) {
  Manifest manifest = FullManifest();
  EXPECT_FALSE(Saved(ManifestJson(manifest))->is_device);
  manifest.device.file = "device.json";
  manifest.device.memories = {{"(0,0)", "(0,0)", "memory-0.bin", 64, "memory-0.catalog", {}, ""},
                              {"(1,0)", "(1,0)", "", 0, "", {}, "it is off"}};
  const auto saved = Saved(ManifestJson(manifest));
  ASSERT_TRUE(saved.ok() && saved->is_device);
  ASSERT_THAT(saved->memories, SizeIs(2));
  EXPECT_EQ(saved->memories[0].name, "(0,0)");
  EXPECT_EQ(saved->memories[0].unread, "");
  EXPECT_EQ(saved->memories[1].unread, "it is off");
}

TEST(SavedManifest, HasTheVerdictThatWasWritten) {
  const auto saved = Saved(ManifestJson(FullManifest()));
  ASSERT_TRUE(saved.ok() && saved->verdict);
  const SavedVerdict& verdict = *saved->verdict;
  EXPECT_EQ(verdict.state, "deadlock");
  EXPECT_EQ(verdict.confidence, "certain");
  EXPECT_EQ(verdict.summary, "deadlock, 2 of 5 cores");
  EXPECT_TRUE(verdict.hang);
  EXPECT_THAT(verdict.evidence, ElementsAre("sampled twice"));
  EXPECT_THAT(verdict.doubts, ElementsAre("its clock is not known"));
  EXPECT_THAT(verdict.trace_streams, ElementsAre("stdout"));
  ASSERT_THAT(verdict.findings, SizeIs(1));
  EXPECT_EQ(verdict.findings[0].kind, "deadlock");
  EXPECT_EQ(verdict.findings[0].confidence, Confidence::kLikely);
  EXPECT_EQ(verdict.findings[0].summary, "cores 1 and 2 wait");
  EXPECT_THAT(verdict.findings[0].lines, ElementsAre("core 1 waits", "core 2 waits"));
  ASSERT_THAT(verdict.findings[0].subjects, SizeIs(1));
  EXPECT_EQ(verdict.findings[0].subjects[0].memory, "tile 2");
  EXPECT_EQ(verdict.findings[0].subjects[0].node, (std::pair<uint32_t, uint32_t>{2, 0}));
  ASSERT_THAT(verdict.loops, SizeIs(1));
  EXPECT_EQ(verdict.loops[0].name, "hart 0");
  EXPECT_EQ(verdict.loops[0].rounds, 12u);
  EXPECT_TRUE(verdict.loops[0].at_least);
  EXPECT_EQ(verdict.loops[0].basis, "body");
  EXPECT_EQ(verdict.loops[0].interrupts, 3u);
  EXPECT_EQ(verdict.loops[0].for_s, 2.0);
  EXPECT_EQ(verdict.loops[0].since_cycle, 284'564u);
  ASSERT_THAT(verdict.since_cycles, SizeIs(1));
  EXPECT_EQ(verdict.since_cycles[0].core, "hart 0");
  EXPECT_EQ(verdict.since_cycles[0].state, "looping");
  EXPECT_EQ(verdict.since_cycles[0].cycle, 284'564u);
  ASSERT_THAT(verdict.loops[0].places, SizeIs(1));
  EXPECT_EQ(verdict.loops[0].places[0].pc, "0x80");
  EXPECT_EQ(verdict.loops[0].places[0].function, "poll");
  EXPECT_EQ(verdict.loops[0].places[0].source, "cb.c:9");
}

TEST(SavedManifest, HasTheScopeAndTheCpusThatWereWritten) {
  const auto saved = Saved(ManifestJson(FullManifest()));
  ASSERT_TRUE(saved.ok());
  ASSERT_THAT(saved->scope.cores, SizeIs(1));
  EXPECT_EQ(saved->scope.cores[0].index, 3u);
  EXPECT_EQ(saved->scope.cores[0].name, "writer");
  EXPECT_EQ(saved->scope.cores[0].counts.emitted, 9u);
  EXPECT_EQ(saved->scope.cores[0].counts.overwritten, 5u);
  EXPECT_EQ(saved->scope.cores[0].counts.torn, 2u);
  EXPECT_EQ(saved->scope.cores[0].counts.refused, 1u);
  EXPECT_EQ(saved->scope.not_in_window, "no event came");
  ASSERT_THAT(saved->scope.clocks, SizeIs(1));
  EXPECT_EQ(saved->scope.clocks[0].core, 3u);
  EXPECT_EQ(saved->scope.clocks[0].count, 123456789012345u);
  EXPECT_EQ(saved->scope.clocks[0].at, 40 * kSecond);
  EXPECT_EQ(saved->scope.clocks[0].ns_per_count, 0.5);
  EXPECT_EQ(saved->scope.clocks[0].error, 1000);
  EXPECT_EQ(saved->cpu.discarded_bytes, 512u);
  EXPECT_EQ(saved->cpu.side_band_lost, 3u);
  EXPECT_EQ(saved->cpu.threads_at_start, 1100u);
  EXPECT_EQ(saved->cpu.threads_not_recorded, 103u);
}

TEST(SavedManifest, HasTheWindowThatWasWritten) {
  const Manifest written = FullManifest();
  const auto saved = Saved(ManifestJson(written));
  ASSERT_TRUE(saved.ok() && saved->window);
  EXPECT_TRUE(saved->window->has_times());
  EXPECT_EQ(saved->window->policy, "last time");
  EXPECT_EQ(saved->window->limited_by, "core 3 scope");
  EXPECT_THAT(saved->window->gaps, ElementsAre(Pair("CPU 0 events: dropped for want of room", 1),
                                               Pair("CPU 0 events: last events not recorded", 1),
                                               Pair("core 3 scope: torn", 1)));
  const Window& window = saved->window->window;
  EXPECT_EQ(window.policy, WindowPolicy::kLastTime);
  EXPECT_EQ(window.time, written.window->time);
  EXPECT_EQ(window.clock_error, 1000);
  EXPECT_EQ(window.limited_by, 1u);
  EXPECT_EQ(window.rings[0].ring, written.window->rings[0].ring);
  EXPECT_EQ(window.rings[0].covered, written.window->rings[0].covered);
  EXPECT_EQ(window.rings[0].held, written.window->rings[0].held);
  EXPECT_EQ(window.rings[0].bytes_discarded, 4096u);
  EXPECT_EQ(window.rings[1].stale[0].age, 29 * kSecond);
  ASSERT_EQ(window.gaps.size(), 3u);
  EXPECT_EQ(window.gaps[0].task, 42);
  EXPECT_EQ(window.gaps[0].reason, GapReason::kNoRoom);
  EXPECT_EQ(window.gaps[0].unit, AmountUnit::kRecords);
  EXPECT_EQ(window.gaps[1].ring, 1u);
  EXPECT_EQ(window.gaps[1].unit, AmountUnit::kBytes);
  EXPECT_EQ(window.gaps[2].reason, GapReason::kLastEvents);
  ASSERT_EQ(window.lost_before.size(), 1u);
  EXPECT_EQ(window.lost_before[0].task, 42);
  EXPECT_EQ(window.lost_before[0].time.to, 29 * kSecond);
  EXPECT_EQ(window.lost_before[0].reason, GapReason::kSharedSink);
  EXPECT_EQ(window.tasks[0].name, "decoder");
  EXPECT_EQ(window.tasks[0].ran, written.window->tasks[0].ran);
  EXPECT_TRUE(window.tasks[0].ended);
}

TEST(SavedManifest, ANewerManifestIsReadAsFarAsItIsKnown) {
  Json json = Json::parse(ManifestJson(FullManifest()));
  json["version"] = kManifestVersion + 1;
  json["news"] = {1, 2};
  json["window"]["limited_by"]["kind"] = "GPU";
  const auto saved = Saved(json.dump());
  ASSERT_TRUE(saved.ok());
  EXPECT_EQ(saved->host, "machine");
  EXPECT_EQ(saved->window->limited_by, "GPU 3 scope");
  EXPECT_THAT(saved->warning, HasSubstr("version 2"));
}

TEST(SavedManifest, AManifestThatIsNoneIsToldInOneSentence) {
  for (const char* bytes : {"", "{", "[1]", "{\"format\":\"other\"}", "\xff\xfe"})
    EXPECT_THAT(Saved(bytes)->warning, HasSubstr("snap/manifest.json")) << bytes;
  FakeFileSystem files;
  EXPECT_THAT(ReadManifest(files, "snap").status().message(), HasSubstr("snap/manifest.json"));
}

// Each member by another type: nothing of it is believed, and nothing breaks.
TEST(SavedManifest, MembersOfOtherTypesAreLeftOut) {
  const Json whole = Json::parse(ManifestJson(FullManifest()));
  for (const auto& [name, value] : whole.items()) {
    for (const Json& other : {Json(), Json(-7), Json("x"), Json::array({1, "x", nullptr}),
                              Json{{"a", 1}}, Json(1e300)}) {
      Json json = whole;
      json[name] = other;
      const auto saved = Saved(json.dump());
      ASSERT_TRUE(saved.ok()) << name << " " << other;
      EXPECT_EQ(saved->format == kManifestFormat, name != "format") << name << " " << other;
    }
  }
  Json json = whole;
  json["window"]["gaps"][0]["ring"]["number"] = 99;
  EXPECT_EQ(Saved(json.dump())->window->window.gaps.size(), 2u);  // of no ring that there is
  json["scope"]["cores"][0]["clock"]["ns_per_count"] = 0;
  EXPECT_THAT(Saved(json.dump())->scope.clocks, IsEmpty());
}

TEST(SavedManifest, AFileThatIsTooLargeIsNotRead) {
  FakeFileSystem files;
  const std::string bytes = ManifestJson(FullManifest());
  ASSERT_TRUE(WriteWholeFile(files, "snap/manifest.json", bytes).ok());
  EXPECT_TRUE(ReadManifest(files, "snap").ok());
  ASSERT_TRUE(WriteWholeFile(files, "snap/manifest.json", bytes + std::string(16 << 20, ' ')).ok());
  EXPECT_THAT(ReadManifest(files, "snap").status().message(), HasSubstr("more than it can have"));
}

TEST(SavedManifest, HasVerdictMembersThatThisHangscopeDoesNotKnow) {
  FakeFileSystem files;
  ASSERT_TRUE(
      WriteWholeFile(files, "snap/manifest.json", R"({"verdict": {"news": 1, "hang": true}})")
          .ok());
  EXPECT_EQ(ReadVerdictMembers(files, "snap").dump(), R"({"news":1,"hang":true})");
  EXPECT_EQ(ReadVerdictMembers(files, "none").dump(), "{}");
}

}  // namespace
}  // namespace hangscope
