// Mailboxes, claims, details and debug rings as they lie in memory: of either byte order and word
// size, while the target writes, and with every word damaged in turn.
#include "scope/watch_reader.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <sstream>

#include "fakes/watch_image.h"
#include "scope/scope_text.h"

namespace hangscope {
namespace {

#define MAILBOX(field) offsetof(hangscope_mailbox, field)

class WatchReaderTest : public ::testing::Test {
 protected:
  void Make(const WatchImageOptions& options = {}) { image_.emplace(options); }
  void Open() {
    auto scope = ScopeReader::Open(image_->target, 0);
    ASSERT_TRUE(scope.ok()) << scope.status().message();
    scope_.emplace(std::move(*scope));
    auto reader = WatchReader::Open(*scope_);
    ASSERT_TRUE(reader.ok()) << reader.status().message();
    reader_.emplace(std::move(*reader));
  }
  const ScopeSample& Poll() {
    const Status status = reader_->Poll(&sample_);
    EXPECT_TRUE(status.ok()) << status.message();
    return sample_;
  }
  Status WhyNot() {
    auto scope = ScopeReader::Open(image_->target, 0);
    if (!scope.ok()) return scope.status();
    return WatchReader::Open(*scope).status();
  }

  std::optional<WatchImage> image_;
  std::optional<ScopeReader> scope_;
  std::optional<WatchReader> reader_;
  ScopeSample sample_;
};

TEST_F(WatchReaderTest, ReadsEachWordOfAMailboxInEitherByteOrderAndWordSize) {
  for (const ByteOrder order : {ByteOrder::kLittle, ByteOrder::kBig}) {
    for (const uint32_t word_bytes : {4u, 8u}) {
      WatchImageOptions options;
      options.order = order;
      options.word_bytes = word_bytes;
      options.nodes = 3;
      Make(options);
      image_->Put(1, MAILBOX(waypoint), 0x57425243);  // "CRBW"
      image_->Put(1, MAILBOX(heartbeat), 77);
      image_->Wait(1, 0x80001234, HANGSCOPE_RESOURCE_CHANNEL, 0x1'8000'0005);
      image_->Put(1, MAILBOX(kernel), 9);
      image_->Put(1, MAILBOX(launch), HANGSCOPE_LAUNCH_RUNNING);
      image_->Put(1, MAILBOX(pause), 1);
      image_->Put(1, MAILBOX(paused), HANGSCOPE_PAUSED_BY_CODE);
      image_->Put(1, MAILBOX(fault), HANGSCOPE_FAULT_BUS);
      image_->Put(1, MAILBOX(node), order == ByteOrder::kLittle ? 0x0004'0002u : 0x0002'0004u);
      Open();
      const CoreSample& core = Poll().cores[1];
      EXPECT_TRUE(core.in_use);
      EXPECT_FALSE(core.corrupt) << (sample_.corruptions.empty()
                                         ? ""
                                         : CorruptField(sample_.corruptions[0]));
      EXPECT_EQ(core.waypoint, 0x57425243u);
      EXPECT_EQ(core.heartbeat, 77u);
      ASSERT_TRUE(core.wait);
      EXPECT_EQ(core.wait->resource, 0x80001234u);
      EXPECT_EQ(core.wait->kind, ResourceKind::kChannel);
      EXPECT_EQ(core.wait->sequence, 1u);
      EXPECT_EQ(core.wait->since, 0x1'8000'0005u);
      EXPECT_EQ(core.kernel, 9u);
      EXPECT_EQ(core.launch, LaunchState::kRunning);
      EXPECT_TRUE(core.pause_asked);
      EXPECT_EQ(core.paused, PausedState::kByCode);
      EXPECT_EQ(core.fault, FaultType::kBus);
      EXPECT_FALSE(core.stack_free);
      EXPECT_EQ(core.node, 2);
      EXPECT_EQ(core.role, 4);
      EXPECT_FALSE(sample_.cores[0].in_use);
      EXPECT_TRUE(sample_.corruptions.empty());
    }
  }
}

TEST_F(WatchReaderTest, ReadsAllMailboxesAtOnceAndAllTaskRecordsAtOnce) {
  WatchImageOptions options;
  options.cores = 1024;
  Make(options);
  Open();
  const uint64_t reads = reader_->reads();
  const uint64_t bytes = reader_->bytes_read();
  Poll();
  EXPECT_EQ(reader_->reads() - reads, 1u);
  EXPECT_EQ(reader_->bytes_read() - bytes, 1024u * 64);
}

struct Damage {
  const char* field;
  size_t at;
  uint32_t value;
  bool is_wrong;
};

TEST_F(WatchReaderTest, ReportsEachWordThatCannotBeRightByCoreFieldAndValue) {
  const Damage damages[] = {
      {"waypoint", MAILBOX(waypoint), 0x07000001, true},
      {"waypoint", MAILBOX(waypoint), 0x41004141, true},  // a zero in the middle
      {"waypoint", MAILBOX(waypoint), 0x0000417f, true},  // DEL
      {"waypoint", MAILBOX(waypoint), 0x80414141, true},
      {"waypoint", MAILBOX(waypoint), 0x7e7e207e, false},
      {"waypoint", MAILBOX(waypoint), 0x00000041, false},
      {"heartbeat", MAILBOX(heartbeat), 0xdeadbeef, false},
      {"wait_sequence", MAILBOX(wait_sequence), 0xdeadbeee, false},
      {"wait_resource", MAILBOX(wait_resource), 0xdeadbeef, false},  // it does not wait
      {"wait_kind", MAILBOX(wait_kind), 6, true},
      {"wait_kind", MAILBOX(wait_kind), 5, false},
      {"wait_since", MAILBOX(wait_since), 0xdeadbeef, false},
      {"kernel", MAILBOX(kernel), 0xdeadbeef, false},
      {"launch", MAILBOX(launch), 5, true},
      {"launch", MAILBOX(launch), 4, false},
      {"pause", MAILBOX(pause), 2, true},
      {"resumes", MAILBOX(resumes), 0xdeadbeef, false},
      {"paused", MAILBOX(paused), 3, true},
      {"paused", MAILBOX(paused), 2, false},
      {"fault", MAILBOX(fault), 8, true},
      {"fault", MAILBOX(fault), 7, false},
      {"stack_free", MAILBOX(stack_free), 4097, true},
      {"stack_free", MAILBOX(stack_free), 4096, false},
      {"node", MAILBOX(node), 0x00010001, true},
      {"guard", MAILBOX(guard), 0, true},
      {"guard", MAILBOX(guard), HANGSCOPE_MAILBOX_GUARD ^ 3, true},  // another core's
  };
  for (const Damage& damage : damages) {
    Make();
    for (uint32_t core = 0; core < 4; ++core) {
      image_->Put(core, MAILBOX(heartbeat), 5);
      image_->PutDetail(core, offsetof(hangscope_detail, stack_bytes), 4096);
    }
    image_->Put(2, damage.at, damage.value);
    Open();
    const ScopeSample& sample = Poll();
    EXPECT_EQ(sample.cores[2].corrupt, damage.is_wrong) << damage.field << " " << damage.value;
    ASSERT_EQ(sample.corruptions.size(), damage.is_wrong ? 1u : 0u)
        << damage.field << " " << damage.value;
    for (const uint32_t other : {0u, 1u, 3u})
      EXPECT_TRUE(sample.cores[other].in_use && !sample.cores[other].corrupt) << other;
    if (!damage.is_wrong) continue;
    EXPECT_EQ(CorruptPart(sample.corruptions[0]), "core 2");
    EXPECT_TRUE(CorruptField(sample.corruptions[0]).starts_with(damage.field))
        << CorruptField(sample.corruptions[0]);
  }
}

TEST_F(WatchReaderTest, SaysInOneSentenceWhatIsWrong) {
  Make();
  image_->Put(3, MAILBOX(waypoint), 0x07000001);
  Open();
  ASSERT_EQ(Poll().corruptions.size(), 1u);
  EXPECT_EQ(CorruptPart(sample_.corruptions[0]), "core 3");
  EXPECT_EQ(CorruptField(sample_.corruptions[0]),
            "waypoint 0x07000001: four printable characters are possible");
}

TEST_F(WatchReaderTest, FindsAWaitDamagedOnlyWhileTheCoreWaits) {
  Make();
  image_->Wait(0, 0x1000, 0, 5'000'000'000);
  Open();
  EXPECT_FALSE(Poll().cores[0].corrupt);
  image_->Put(0, MAILBOX(wait_epoch), 77);
  EXPECT_TRUE(Poll().cores[0].corrupt);
  ASSERT_EQ(sample_.corruptions.size(), 1u);
  EXPECT_TRUE(CorruptField(sample_.corruptions[0]).starts_with("wait_epoch 0x0000004d"))
      << CorruptField(sample_.corruptions[0]);
  image_->WaitDone(0);
  EXPECT_FALSE(Poll().cores[0].corrupt);
  image_->Wait(0, 0, 0, 1);
  EXPECT_TRUE(Poll().cores[0].corrupt) << "it waits for nothing";
}

TEST_F(WatchReaderTest, TakesAMailboxThatIsBeingMadeForUnused) {
  Make();
  for (size_t at = 0; at < sizeof(hangscope_mailbox); at += 4) image_->Put(1, at, 0);
  Open();
  EXPECT_FALSE(Poll().cores[1].in_use);
  EXPECT_TRUE(sample_.corruptions.empty());
  image_->Put(1, MAILBOX(stack_free), HANGSCOPE_NOT_KNOWN);
  EXPECT_FALSE(Poll().cores[1].corrupt);
  image_->Put(1, MAILBOX(heartbeat), 1);  // which nobody says who has no mailbox
  EXPECT_TRUE(Poll().cores[1].corrupt);
}

// The read found half of a new mailbox; a moment later it is whole.
TEST_F(WatchReaderTest, LooksAgainBeforeItCallsAnythingCorrupt) {
  Make();
  image_->Put(1, MAILBOX(heartbeat), 3);
  image_->Put(1, MAILBOX(guard), 0);
  Open();
  int reads = 0;
  image_->target.before_read = [&](uint64_t) {
    if (++reads == 3) image_->Put(1, MAILBOX(guard), HANGSCOPE_MAILBOX_GUARD ^ 1);
  };
  EXPECT_FALSE(Poll().cores[1].corrupt);
  EXPECT_TRUE(Poll().cores[1].in_use);
  EXPECT_TRUE(sample_.corruptions.empty());
}

TEST_F(WatchReaderTest, LooksAgainAtACorruptMailboxOnlyOnce) {
  Make();
  image_->Put(1, MAILBOX(launch), 99);
  Open();
  Poll();
  const uint64_t reads = reader_->reads();
  Poll();
  EXPECT_EQ(reader_->reads() - reads, 1u);
  EXPECT_EQ(sample_.corruptions.size(), 1u);
}

// The poll finds a task record in the middle of a change, whose words are half of one and half of
// another.
TEST_F(WatchReaderTest, ATaskThatChangesItsRecordIsNotCorrupt) {
  WatchImageOptions options;
  options.tasks = 2;
  Make(options);
  image_->TaskWaits(0, 7, HANGSCOPE_RESOURCE_CHANNEL, 5, HANGSCOPE_NO_TASK);
  image_->TaskWaits(1, 8, 77, 5, HANGSCOPE_NO_TASK);  // no kind
  image_->PutRunning(2, 7);
  Open();
  Poll();
  EXPECT_EQ(sample_.running_tasks, (std::vector<uint32_t>{0, 0, 7, 0}));
  EXPECT_EQ(sample_.tasks[0].record.resource, 5u);
  EXPECT_TRUE(sample_.tasks[1].corrupt);
  ASSERT_EQ(sample_.corruptions.size(), 1u);
  EXPECT_EQ(CorruptPart(sample_.corruptions[0]), "task record 1");
  image_->PutTask(1, offsetof(hangscope_task, sequence), 3);
  Poll();
  EXPECT_TRUE(sample_.tasks[1].in_use);
  EXPECT_FALSE(sample_.tasks[1].corrupt);
  EXPECT_EQ(sample_.tasks[1].record.sequence, 3u);
  // It was even when the poll read it; now somebody changes it without an end.
  image_->PutTask(1, offsetof(hangscope_task, sequence), 4);
  uint32_t sequence = 4;
  image_->target.before_read = [&](uint64_t) {
    image_->PutTask(1, offsetof(hangscope_task, sequence), sequence += 2);
  };
  Poll();
  EXPECT_FALSE(sample_.tasks[1].corrupt) << CorruptField(sample_.corruptions[0]);
  EXPECT_EQ(sample_.tasks[1].record.sequence & 1, 1u);
}

TEST_F(WatchReaderTest, ADebugValueThatIsBeingWrittenIsLeftOut) {
  Make();
  image_->PutNode(0, offsetof(hangscope_node, debug_order), 3);
  image_->PutDebug(0, 0, 1, 10);
  image_->PutDebug(0, 1, 3, 30);
  image_->PutDebug(2, 0, 2, 20);
  Open();
  Poll();
  auto values = reader_->ReadDebugRing(0, sample_);
  ASSERT_TRUE(values.ok());
  ASSERT_EQ(values->size(), 3u);
  EXPECT_EQ((*values)[0].value, 30u);
  EXPECT_EQ((*values)[1].core, 2u);
  EXPECT_EQ((*values)[2].order, 1u);
  // Between the two reads of core 0 its first slot is given to a new value.
  int reads = 0;
  image_->target.before_read = [&](uint64_t) {
    if (++reads == 2) image_->PutDebug(0, 0, 0, 40);
  };
  EXPECT_EQ(reader_->ReadDebugRing(0, sample_)->size(), 2u);
}

TEST_F(WatchReaderTest, DebugValuesAreInOrderAcrossItsWrapAndOfOneOrderByCore) {
  Make();
  image_->PutDebug(0, 0, UINT32_MAX, 10);
  image_->PutDebug(3, 0, 1, 31);
  image_->PutDebug(1, 0, 1, 30);
  image_->PutDebug(2, 0, 2, 40);
  Open();
  Poll();
  const auto values = reader_->ReadDebugRing(0, sample_);
  ASSERT_TRUE(values.ok());
  std::vector<uint32_t> told;
  for (const DebugValue& value : values.value()) told.push_back(value.value);
  EXPECT_EQ(told, (std::vector<uint32_t>{40, 30, 31, 10}));
}

TEST_F(WatchReaderTest, FirstFaultOfANodeWithoutAtomicInstructionsIsTheEarliest) {
  WatchImageOptions options;
  options.nodes = 2;
  Make(options);
  const auto fault = [&](uint32_t core, uint32_t time) {
    const size_t at = offsetof(hangscope_detail, fault);
    image_->Put(core, MAILBOX(fault), HANGSCOPE_FAULT_ASSERT);
    image_->PutDetail(core, at + offsetof(hangscope_fault, type), HANGSCOPE_FAULT_ASSERT);
    image_->PutDetail(core, at + offsetof(hangscope_fault, time), time);
  };
  fault(1, 500);
  fault(2, 300);
  fault(3, 400);
  image_->PutNode(0, offsetof(hangscope_node, first_fault), 2);  // core 1 wrote it last
  const auto first = [&] {
    std::vector<Corruption> corruptions;
    return reader_->ReadNodes(&corruptions)->at(0).first_fault;
  };
  Open();
  Poll();
  EXPECT_EQ(first(), 1u);
  image_->PutHeaderWord(offsetof(hangscope_header, features), HANGSCOPE_FEATURE_NO_ATOMICS);
  image_->SignHeader();
  Open();
  Poll();
  EXPECT_EQ(first(), 2u);
  image_->PutHeaderWord(offsetof(hangscope_header, clock_kind), HANGSCOPE_CLOCK_CYCLES);
  image_->SignHeader();
  Open();
  Poll();
  EXPECT_EQ(first(), std::nullopt) << "their clocks are their own";
}

TEST_F(WatchReaderTest, ReadsTheFrameOfAWaitInEitherByteOrder) {
  for (const ByteOrder order : {ByteOrder::kLittle, ByteOrder::kBig}) {
    WatchImageOptions options;
    options.order = order;
    options.tasks = 2;
    options.frames = true;
    Make(options);
    image_->PutFrame(5, offsetof(hangscope_frame, pc), 0x1'8000'0010);
    image_->PutFrame(5, offsetof(hangscope_frame, ra), 0x8000'0020);
    image_->PutFrame(5, offsetof(hangscope_frame, sp), 0x8000'0030);
    image_->PutFrame(5, offsetof(hangscope_frame, fp), 0x8000'0040);
    Open();
    const auto frame = reader_->ReadFrame(5);  // of the second task
    ASSERT_TRUE(frame.ok()) << frame.status().message();
    EXPECT_EQ(frame->pc, 0x1'8000'0010u);
    EXPECT_EQ(frame->ra, 0x8000'0020u);
    EXPECT_EQ(frame->sp, 0x8000'0030u);
    EXPECT_EQ(frame->fp, 0x8000'0040u);
    EXPECT_EQ(reader_->ReadFrame(6).status().code(), Status::Code::kNotFound);
  }
}

TEST_F(WatchReaderTest, AFrameIsOfAWaitOnlyWhileItsSequenceStays) {
  Make();
  image_->Wait(1, 5, HANGSCOPE_RESOURCE_CHANNEL, 100);
  Open();
  const uint32_t sequence = Poll().cores[1].wait->sequence;
  EXPECT_TRUE(reader_->IsSameWait(1, sequence));
  image_->WaitDone(1);
  EXPECT_FALSE(reader_->IsSameWait(1, sequence));
  EXPECT_FALSE(reader_->IsSameWait(1, sequence + 1)) << "it does not wait";
  image_->Wait(1, 5, HANGSCOPE_RESOURCE_CHANNEL, 200);
  EXPECT_FALSE(reader_->IsSameWait(1, sequence)) << "another wait for the same";
}

TEST_F(WatchReaderTest, AWatchOfBeforeThereWereFramesHasNone) {
  WatchImageOptions options;
  options.watch_bytes = HANGSCOPE_WATCH_LEAST_BYTES;
  Make(options);
  // What stands behind it is a node's and no frames_at.
  image_->PutNode(0, 0, 0x40);
  image_->PutNode(0, 4, 2);
  Open();
  EXPECT_EQ(reader_->layout().frames_at, 0u);
  EXPECT_EQ(reader_->ReadFrame(0).status().code(), Status::Code::kNotFound);
}

TEST_F(WatchReaderTest, RefusesABlockThatContradictsItselfInOneSentence) {
  const struct {
    size_t at;
    uint32_t value;
    const char* says;
  } cases[] = {
      {offsetof(hangscope_watch, watch_bytes), 60, "a watch of 60 bytes"},
      {offsetof(hangscope_watch, nodes_at), 0x7fffffff,
       "1 nodes of 32 bytes from offset 2147483647"},
      {offsetof(hangscope_watch, nodes_at), 4, "nodes"},  // in the header
      {offsetof(hangscope_watch, node_count), 0, "0 nodes"},
      {offsetof(hangscope_watch, node_count), 0xffffffff, "nodes"},
      {offsetof(hangscope_watch, node_stride), 31, "nodes"},
      {offsetof(hangscope_watch, claims_at), 0xfffffffc, "rows of claims"},
      {offsetof(hangscope_watch, claim_stride), 32, "rows of claims"},
      {offsetof(hangscope_watch, hold_slots), 0xffffffff, "rows of claims"},
      {offsetof(hangscope_watch, frames_at), 0x7ffffffc, "4 frames of 32 bytes"},
      {offsetof(hangscope_watch, frames_at), 4, "frames"},  // in the header
      {offsetof(hangscope_watch, frame_stride), 24, "frames of 24 bytes"},
      {offsetof(hangscope_watch, frame_stride), 0xfffffff0, "frames"},
      {offsetof(hangscope_watch, details_at), 2, "details"},
      {offsetof(hangscope_watch, details_at), 0, "debug rings"},
      {offsetof(hangscope_watch, detail_stride), 0xfffffff0, "details"},
      {offsetof(hangscope_watch, debug_slots), 7, "debug rings of 7"},
      {offsetof(hangscope_watch, debug_slots), 0x80000000, "debug rings"},
  };
  WatchImageOptions options;
  options.frames = true;
  for (const auto& c : cases) {
    Make(options);
    image_->PutWatchWord(c.at, c.value);
    image_->SignWatch();
    const Status status = WhyNot();
    EXPECT_EQ(status.code(), Status::Code::kCorrupt) << c.says;
    EXPECT_NE(status.message().find(c.says), std::string::npos) << status.message();
  }
}

TEST_F(WatchReaderTest, RefusesABlockWhoseCheckIsWrongAndAHeaderThatPointsAstray) {
  Make();
  image_->PutWatchWord(offsetof(hangscope_watch, features), 1);
  EXPECT_NE(WhyNot().message().find("its check is"), std::string::npos);
  for (const uint32_t at : {2u, image_->scope_bytes() - 60, 0xfffffffcu}) {
    Make();
    image_->PutHeaderWord(offsetof(hangscope_header, watch_at), at);
    EXPECT_NE(WhyNot().message().find("watch_at"), std::string::npos) << at;
  }
  Make();
  image_->PutHeaderWord(offsetof(hangscope_header, mailbox_stride), 60);
  image_->SignHeader();
  EXPECT_NE(WhyNot().message().find("4 mailboxes of 60 bytes"), std::string::npos);
  Make();
  image_->PutHeaderWord(offsetof(hangscope_header, watch_at), 0);
  EXPECT_EQ(WhyNot().code(), Status::Code::kNotFound);
}

// Each word of a mailbox set to each of some values: either it is reported, or what comes of it is
// a state that exists; never does it reach another core.
TEST_F(WatchReaderTest, NoWordOfAMailboxReachesAnother) {
  const uint32_t values[] = {0,          1,          2,          7,          0x7f,      0xff,
                             0x41414141, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff};
  for (size_t at = 0; at < sizeof(hangscope_mailbox); at += 4) {
    for (const uint32_t value : values) {
      Make();
      for (uint32_t core = 0; core < 4; ++core)
        image_->Wait(core, 5, HANGSCOPE_RESOURCE_CHANNEL, 77);
      image_->Put(1, at, value);
      Open();
      Poll();
      for (const uint32_t other : {0u, 2u, 3u})
        EXPECT_TRUE(sample_.cores[other].wait) << at << " " << value;
      EXPECT_EQ(sample_.cores[1].corrupt, !sample_.corruptions.empty()) << at << " " << value;
      EXPECT_LE(sample_.cores[1].launch, LaunchState::kEnded);
      EXPECT_LE(sample_.cores[1].fault, FaultType::kGuard);
      EXPECT_LE(sample_.cores[1].paused, PausedState::kByHost);
      EXPECT_EQ(sample_.cores[1].node, 0);
    }
  }
}

// What the second reader, tests/system/scope_reader.py, says of an image of tests/data/scope.
class GoldenWatch : public ::testing::TestWithParam<std::string> {
 protected:
  static std::string ReadAll(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static std::string Text(const std::vector<uint32_t>& words) {
    std::string text;
    for (const uint32_t word : words) text += fmt::format("{}{:x}", text.empty() ? "" : ",", word);
    return text;
  }
  static std::string Text(const CoreSample& core) {
    if (core.corrupt) return "corrupt";
    if (!core.in_use) return "unused";
    std::string text = fmt::format(
        "waypoint={:x} heartbeat={:x} sequence={:x} kernel={:x} launch={} asked={} paused={} "
        "fault={} node={} role={}",
        core.waypoint, core.heartbeat, core.wait_sequence, core.kernel,
        static_cast<int>(core.launch), static_cast<int>(core.pause_asked),
        static_cast<int>(core.paused), static_cast<int>(core.fault), core.node, core.role);
    if (core.stack_free) text += fmt::format(" stack={:x}", *core.stack_free);
    if (core.wait)
      text += fmt::format(" wait={:x}:{}:{:x}", core.wait->resource,
                          static_cast<int>(core.wait->kind), core.wait->since);
    return text;
  }
  static std::string Text(const CoreDetail& d) {
    const CoreFault& f = d.fault;
    const std::string lowest = d.stack_lowest ? fmt::format("{:x}", *d.stack_lowest) : "none";
    return fmt::format(
        "fault={:x}:{:x}:{:x}:{:x}:{:x}:{:x}:{:x}:{:x}:{:x}:{:x}:{:x}:{:x} delays={:x},{:x},{:x} "
        "seed={:x} done={:x},{:x},{:x} stack={:x}:{}:{:x}",
        static_cast<int>(f.type), f.reason, f.line, f.kind, f.pc, f.address, f.local, f.length,
        f.where, f.value, f.time, f.faults, d.delays[0], d.delays[1], d.delays[2], d.delay_seed,
        d.delays_done[0], d.delays_done[1], d.delays_done[2], d.stack_bytes, lowest,
        d.stack_kernel);
  }
};

TEST_P(GoldenWatch, BothReadersFindTheSame) {
  const std::string stem = std::string(TEST_DATA) + "/scope/" + GetParam();
  FakeTarget target(ReadAll(stem + ".bin"));
  auto scope = ScopeReader::Open(target, std::nullopt);
  ASSERT_TRUE(scope.ok()) << scope.status().message();
  auto reader = WatchReader::Open(*scope);
  ASSERT_TRUE(reader.ok()) << reader.status().message();
  ScopeSample sample;
  ASSERT_TRUE(reader->Poll(&sample).ok());
  // of tasks: show has them
  std::erase_if(sample.corruptions,
                [](const Corruption& c) { return c.part != Corruption::Part::kCore; });
  std::vector<std::string> lines;
  for (size_t i = 0; i < sample.cores.size(); ++i)
    lines.push_back(fmt::format("core {} {}", i, Text(sample.cores[i])));
  const auto claims = reader->ReadClaims();
  for (size_t i = 0; i < claims.value().size(); ++i) {
    const ClaimRow& row = claims.value()[i];
    lines.push_back(fmt::format("claims {} holds={} provides={} lost={}", i, Text(row.holds),
                                Text(row.provides), row.lost));
  }
  const auto nodes = reader->ReadNodes(&sample.corruptions);
  for (size_t i = 0; i < nodes.value().size(); ++i) {
    const NodeSample& node = nodes.value()[i];
    lines.push_back(fmt::format("node {} {},{} first={} values={:x}", i, node.x, node.y,
                                node.first_fault ? std::to_string(*node.first_fault) : "none",
                                node.debug_values));
  }
  for (uint32_t i = 0; i < sample.cores.size(); ++i) {
    const auto detail = reader->ReadDetail(i, &sample.corruptions);
    lines.push_back(fmt::format("detail {} {}", i, Text(detail.value())));
  }
  for (uint32_t i = 0; i < nodes.value().size(); ++i) {
    std::string line = fmt::format("debug {}", i);
    const auto values = reader->ReadDebugRing(i, sample);
    for (const DebugValue& value : values.value())
      line += fmt::format(" {:x}:{}:{:x}", value.order, value.core, value.value);
    lines.push_back(line);
  }
  for (const Corruption& corruption : sample.corruptions) {
    lines.push_back(fmt::format("corrupt {} {}", CorruptPart(corruption), corruption.field));
  }
  std::istringstream expected(ReadAll(stem + ".txt"));
  std::string line;
  size_t at = 0;
  for (; std::getline(expected, line); ++at) {
    ASSERT_LT(at, lines.size()) << line;
    EXPECT_EQ(lines[at], line);
  }
  EXPECT_EQ(at, lines.size());
  EXPECT_GT(at, 20u);
}

INSTANTIATE_TEST_SUITE_P(Images, GoldenWatch,
                         ::testing::Values("watched-little32", "watched-little64", "watched-big32",
                                           "watched-big64", "damaged-little32", "damaged-little64",
                                           "damaged-big32", "damaged-big64"),
                         [](const auto& instance) {
                           std::string name = instance.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace hangscope
