// perf's records built by hand: each field at its place, whatever else a sample holds; sizes that
// contradict.
#include "perf/perf_record.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include "fakes/perf_bytes.h"
#include "model/perf_format.h"
#include "perf/perf_side_band.h"

namespace hangscope {
namespace {

constexpr uint64_t kEverything = (1u << 25) - 1;  // every PERF_SAMPLE_ bit that there is

PerfEvent Event(uint64_t sample_type, std::vector<uint64_t> ids = {}) {
  PerfEvent event;
  event.attr.sample_type = sample_type;
  event.attr.sample_id_all = 1;
  event.ids = std::move(ids);
  return event;
}

TEST(PerfRecord, TellsTheFieldsOfASampleAsTracepointsAreRecorded) {
  const std::vector<PerfEvent> events = {
      Event(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
                PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW,
            {7})};
  const PerfRecordParser parser(events);
  const std::string body = PerfWord(7) + PerfWord(0xffff8000) + PerfIds(100, 101) +
                           PerfWord(123456789) + PerfBytes(3u, 0u) + PerfWord(9) + PerfWord(2) +
                           PerfWord(0x11) + PerfWord(0x22) + PerfBytes(12u) + "tracepoint!!";
  const std::string bytes = PerfRecordOf(PERF_RECORD_SAMPLE, body, PERF_RECORD_MISC_USER);
  const std::string ring = bytes + "and what follows";
  const auto record = parser.Parse(ring);
  ASSERT_TRUE(record);
  EXPECT_EQ(record->type, uint32_t{PERF_RECORD_SAMPLE});
  EXPECT_EQ(record->misc, PERF_RECORD_MISC_USER);
  EXPECT_EQ(record->ip, 0xffff8000u);
  EXPECT_EQ(record->pid, 100);
  EXPECT_EQ(record->tid, 101);
  EXPECT_EQ(record->time, 123456789);
  EXPECT_EQ(record->cpu, 3);
  EXPECT_EQ(record->period, 9u);
  EXPECT_EQ(record->call_chain, PerfWord(0x11) + PerfWord(0x22));
  EXPECT_EQ(record->raw, "tracepoint!!");
  EXPECT_EQ(record->body, body);
}

// A sample with all that perf can put into it.
std::string SampleWithEverything(uint64_t id, const perf_event_attr& attr) {
  std::string counters = PerfWord(1);
  if (attr.read_format != 0)
    counters = PerfWord(2) + PerfWord(50) + PerfWord(51) + PerfWord(1) + PerfWord(id) +
               PerfWord(0) + PerfWord(2) + PerfWord(id) + PerfWord(0);
  const std::string registers = PerfWord(PERF_SAMPLE_REGS_ABI_64) + PerfWord(1) + PerfWord(2);
  return PerfWord(id) + PerfWord(0x1000) + PerfIds(5, 6) + PerfWord(777) + PerfWord(0x2000) +
         PerfWord(id) + PerfWord(id) + PerfBytes(2u, 0u) + PerfWord(4) + counters + PerfWord(1) +
         PerfWord(0x33) + PerfBytes(4u) + "raw!" + PerfWord(1) + PerfWord(0) + PerfWord(1) +
         PerfWord(2) + PerfWord(3) + registers + PerfWord(16) + std::string(16, 's') + PerfWord(8) +
         PerfWord(1) + PerfWord(2) + PerfWord(3) + registers + PerfWord(1) + PerfWord(2) +
         PerfWord(3) + PerfWord(4) + PerfWord(8) + "aux-data";
}

PerfEvent EventWithEverything(uint64_t read_format) {
  PerfEvent event = Event(kEverything & ~uint64_t{PERF_SAMPLE_WEIGHT_STRUCT}, {40});
  event.attr.read_format = read_format;
  event.attr.branch_sample_type = PERF_SAMPLE_BRANCH_ANY | PERF_SAMPLE_BRANCH_HW_INDEX;
  event.attr.sample_regs_user = 0b1001;
  event.attr.sample_regs_intr = 0b11;
  return event;
}

TEST(PerfRecord, FindsItsFieldsAmongAllThatASampleCanHold) {
  for (const uint64_t format :
       {0ull, 0ull + PERF_FORMAT_GROUP + PERF_FORMAT_ID + PERF_FORMAT_LOST +
                  PERF_FORMAT_TOTAL_TIME_ENABLED + PERF_FORMAT_TOTAL_TIME_RUNNING}) {
    const std::vector<PerfEvent> events = {EventWithEverything(format)};
    const PerfRecordParser parser(events);
    const std::string body = SampleWithEverything(40, events[0].attr);
    const std::string bytes = PerfRecordOf(PERF_RECORD_SAMPLE, body);
    const auto record = parser.Parse(bytes);
    ASSERT_TRUE(record) << format;
    EXPECT_EQ(record->address, 0x2000u);
    EXPECT_EQ(record->period, 4u);
    EXPECT_EQ(record->cpu, 2);
    EXPECT_EQ(record->call_chain.size(), 8u);
    EXPECT_EQ(record->raw, "raw!");
  }
}

TEST(PerfRecord, TakesNoSampleThatIsShorterThanWhatItHolds) {
  const std::vector<PerfEvent> events = {EventWithEverything(0)};
  const PerfRecordParser parser(events);
  const std::string body = SampleWithEverything(40, events[0].attr);
  for (size_t size = 0; size < body.size(); size += 8) {
    EXPECT_FALSE(parser.Parse(PerfRecordOf(PERF_RECORD_SAMPLE, body.substr(0, size)))) << size;
  }
}

TEST(PerfRecord, TakesNoTimeThatNoClockReaches) {
  for (const uint64_t chain : {uint64_t{0}, uint64_t{PERF_SAMPLE_CALLCHAIN}}) {
    const std::vector<PerfEvent> events = {Event(PERF_SAMPLE_TIME | chain)};
    const PerfRecordParser parser(events);
    const std::string rest = chain != 0 ? PerfWord(0) : "";
    for (const uint64_t time : {uint64_t{1} << 62, (uint64_t{1} << 62) + 1, uint64_t{1} << 63}) {
      const std::string bytes = PerfRecordOf(PERF_RECORD_SAMPLE, PerfWord(time) + rest);
      EXPECT_EQ(parser.Parse(bytes).has_value(), time == uint64_t{1} << 62) << time;
    }
  }
}

// With a call chain, whose length it tells itself, and without one, where all has its place
// beforehand.
TEST(PerfRecord, FindsEachFieldWhicheverOthersASampleHas) {
  constexpr uint64_t kInOrder[] = {PERF_SAMPLE_IDENTIFIER, PERF_SAMPLE_IP,   PERF_SAMPLE_TID,
                                   PERF_SAMPLE_TIME,       PERF_SAMPLE_ADDR, PERF_SAMPLE_ID,
                                   PERF_SAMPLE_STREAM_ID,  PERF_SAMPLE_CPU,  PERF_SAMPLE_PERIOD};
  for (uint64_t chosen = 0; chosen < uint64_t{1} << std::size(kInOrder); ++chosen) {
    for (const bool chain : {false, true}) {
      uint64_t type = PERF_SAMPLE_RAW | (chain ? uint64_t{PERF_SAMPLE_CALLCHAIN} : 0);
      std::string body;
      for (size_t i = 0; i < std::size(kInOrder); ++i) {
        if ((chosen >> i & 1) == 0) continue;
        type |= kInOrder[i];
        body += PerfIds(static_cast<int>(i) + 100, static_cast<int>(i) + 200);
      }
      body += (chain ? PerfWord(1) + PerfWord(0x33) : "") + PerfBytes(4u) + "raw!";
      const auto word = [&](size_t i) {
        return (chosen >> i & 1) == 0 ? 0 : (uint64_t{i} + 200) << 32 | (uint64_t{i} + 100);
      };
      const std::vector<PerfEvent> events = {Event(type)};
      const PerfRecordParser parser(events);
      const std::string bytes = PerfRecordOf(PERF_RECORD_SAMPLE, body);
      const auto record = parser.Parse(bytes);
      ASSERT_TRUE(record) << chosen;
      ASSERT_EQ(record->ip, word(1)) << chosen;
      ASSERT_EQ(record->pid, word(2) != 0 ? 102 : -1) << chosen;
      ASSERT_EQ(record->tid, word(2) != 0 ? 202 : -1) << chosen;
      ASSERT_EQ(record->time, word(3) != 0 ? static_cast<TimeNs>(word(3)) : -1) << chosen;
      ASSERT_EQ(record->address, word(4)) << chosen;
      ASSERT_EQ(record->cpu, word(7) != 0 ? 107 : -1) << chosen;
      ASSERT_EQ(record->period, word(8)) << chosen;
      ASSERT_EQ(record->raw, "raw!") << chosen;
      for (size_t size = 0; size < body.size(); size += 8)
        ASSERT_FALSE(parser.Parse(PerfRecordOf(PERF_RECORD_SAMPLE, body.substr(0, size))))
            << chosen << ": " << size;
    }
  }
}

TEST(PerfRecord, TakesNoRawDataThatReachesBehindItsRecord) {
  const std::vector<PerfEvent> events = {Event(PERF_SAMPLE_TIME | PERF_SAMPLE_RAW)};
  const PerfRecordParser parser(events);
  for (const uint32_t bytes : {5u, 0x7fffffffu, ~0u})
    EXPECT_FALSE(
        parser.Parse(PerfRecordOf(PERF_RECORD_SAMPLE, PerfWord(1) + PerfBytes(bytes) + "four")))
        << bytes;
}

TEST(PerfRecord, FindsEachOfManyEventsByAnyOfItsIds) {
  for (const size_t count : {2u, 3u, 7u, 64u}) {
    std::vector<PerfEvent> events;
    for (uint64_t i = 0; i < count; ++i)
      events.push_back(Event(PERF_SAMPLE_IDENTIFIER, {1000 - i, 3000 + 2 * i}));
    const PerfRecordParser parser(events);
    const auto event_of = [&](uint64_t id) {
      return parser.Parse(PerfRecordOf(PERF_RECORD_SAMPLE, PerfWord(id)))
          .value_or(PerfRecord())
          .event;
    };
    for (uint64_t i = 0; i < count; ++i) {
      ASSERT_EQ(event_of(1000 - i), i);
      ASSERT_EQ(event_of(3000 + 2 * i), i);
      ASSERT_EQ(event_of(3001 + 2 * i), 0u);  // nobody's: the first is taken
    }
    ASSERT_EQ(event_of(0) + event_of(~uint64_t{0}), 0u);
  }
}

TEST(PerfRecord, TakesNoSampleWhoseCountsReachBehindIt) {
  const std::vector<PerfEvent> events = {Event(PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW)};
  const PerfRecordParser parser(events);
  for (const uint64_t count : {uint64_t{2}, uint64_t{1} << 61, ~uint64_t{0}}) {
    EXPECT_FALSE(parser.Parse(PerfRecordOf(PERF_RECORD_SAMPLE, PerfWord(count) + PerfWord(1))))
        << count;
  }
  EXPECT_FALSE(
      parser.Parse(PerfRecordOf(PERF_RECORD_SAMPLE, PerfWord(0) + PerfBytes(5u) + "four")));
  EXPECT_TRUE(parser.Parse(PerfRecordOf(PERF_RECORD_SAMPLE, PerfWord(0) + PerfBytes(4u) + "four")));
  const std::vector<PerfEvent> branches = {Event(PERF_SAMPLE_BRANCH_STACK)};
  EXPECT_FALSE(PerfRecordParser(branches).Parse(
      PerfRecordOf(PERF_RECORD_SAMPLE, PerfWord(0xaaaaaaaaaaaaaaab) + PerfWord(0))));
}

TEST(PerfRecord, FindsTheEventByItsIdInTheOldPlaceAndTheNew) {
  const uint64_t common = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU;
  for (const uint64_t id_kind : {PERF_SAMPLE_IDENTIFIER, PERF_SAMPLE_ID}) {
    const std::vector<PerfEvent> events = {Event(common | id_kind, {10, 11}),
                                           Event(common | id_kind | PERF_SAMPLE_PERIOD, {20})};
    const PerfRecordParser parser(events);
    const std::string before = id_kind == PERF_SAMPLE_IDENTIFIER ? PerfWord(20) : "";
    const std::string within = id_kind == PERF_SAMPLE_ID ? PerfWord(20) : "";
    const auto sample = parser.Parse(PerfRecordOf(
        PERF_RECORD_SAMPLE,
        before + PerfIds(1, 2) + PerfWord(30) + within + PerfBytes(1u, 0u) + PerfWord(99)));
    ASSERT_TRUE(sample);
    EXPECT_EQ(sample->event, 1u);
    EXPECT_EQ(sample->period, 99u);
    const std::string trailer = PerfIds(1, 2) + PerfWord(30) + within + PerfBytes(1u, 0u) + before;
    const auto comm =
        parser.Parse(PerfRecordOf(PERF_RECORD_COMM, PerfIds(7, 8) + PerfText("name") + trailer));
    ASSERT_TRUE(comm);
    EXPECT_EQ(comm->event, 1u);
    EXPECT_EQ(comm->pid, 1);
    EXPECT_EQ(comm->tid, 2);
    EXPECT_EQ(comm->time, 30);
    EXPECT_EQ(comm->cpu, 1);
  }
}

TEST(PerfRecord, BelievesNoTrailerWithoutATime) {
  const std::vector<PerfEvent> events = {
      Event(PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER)};
  const PerfRecordParser parser(events);
  for (const uint64_t id : {0, 78}) {  // perf's zeros, and simpleperf's
    const auto record = parser.Parse(PerfRecordOf(
        PERF_RECORD_COMM, PerfIds(7, 8) + PerfText("old") + std::string(24, '\0') + PerfWord(id)));
    ASSERT_TRUE(record);
    EXPECT_EQ(record->time, -1);
    EXPECT_EQ(record->pid, -1);
    EXPECT_EQ(record->cpu, -1);
  }
  EXPECT_FALSE(parser.Parse(PerfRecordOf(PERF_RECORD_COMM, std::string(16, 'x'))))
      << "shorter than its trailer";
}

TEST(PerfRecord, RefusesSizesThatCannotBe) {
  const std::vector<PerfEvent> events = {Event(0)};
  const PerfRecordParser parser(events);
  const std::string good = PerfRecordOf(PERF_RECORD_LOST, PerfWord(1) + PerfWord(2));
  ASSERT_TRUE(parser.Parse(good));
  for (size_t size = 0; size < good.size(); ++size)
    EXPECT_FALSE(parser.Parse(good.substr(0, size))) << size;
  EXPECT_EQ(PerfRecordBytes(good), good.size());
  EXPECT_EQ(PerfRecordBytes(PerfBytes(2u, uint16_t{0}, uint16_t{7})), 0u);
  EXPECT_FALSE(parser.Parse(PerfBytes(2u, uint16_t{0}, uint16_t{7}) + "rest"));
  EXPECT_FALSE(parser.Parse(PerfRecordOf(PERF_RECORD_LOST, "no whole words")));
  const std::vector<PerfEvent> none;
  EXPECT_FALSE(PerfRecordParser(none).Parse(PerfRecordOf(PERF_RECORD_SAMPLE, PerfWord(1))));
}

class PerfSideBandTest : public ::testing::Test {
 protected:
  PerfRecord Record(uint32_t type, const std::string& body, uint16_t misc = 0) {
    bytes_ = PerfRecordOf(type, body + PerfIds(1, 2) + PerfWord(3), misc);
    const auto record = PerfRecordParser(events_).Parse(bytes_);
    EXPECT_TRUE(record);
    return record.value_or(PerfRecord());
  }

  std::vector<PerfEvent> events_ = {Event(PERF_SAMPLE_TID | PERF_SAMPLE_TIME)};
  std::string bytes_;
};

TEST_F(PerfSideBandTest, TellsNamesAndTasks) {
  const auto comm = ParsePerfComm(
      Record(PERF_RECORD_COMM, PerfIds(7, 8) + PerfText("worker"), PERF_RECORD_MISC_COMM_EXEC));
  ASSERT_TRUE(comm);
  EXPECT_EQ(comm->tid, 8);
  EXPECT_EQ(comm->name, "worker");
  EXPECT_TRUE(comm->by_exec);
  const auto task =
      ParsePerfTask(Record(PERF_RECORD_FORK, PerfIds(7, 1) + PerfIds(9, 2) + PerfWord(1234)));
  ASSERT_TRUE(task);
  EXPECT_EQ(task->pid, 7);
  EXPECT_EQ(task->parent_pid, 1);
  EXPECT_EQ(task->tid, 9);
  EXPECT_EQ(task->parent_tid, 2);
  EXPECT_EQ(task->time, 1234);
}

TEST_F(PerfSideBandTest, TellsMappingsOfEitherKind) {
  const std::string head = PerfIds(7, 8) + PerfWord(0x400000) + PerfWord(0x2000) + PerfWord(0x1000);
  const auto old = ParsePerfMap(Record(PERF_RECORD_MMAP, head + PerfText("/bin/true")));
  ASSERT_TRUE(old);
  EXPECT_EQ(old->path, "/bin/true");
  EXPECT_TRUE(old->executable);
  const std::string id = PerfBytes(uint8_t{20}, uint8_t{0}, uint16_t{0}) + "01234567890123456789";
  const auto map = ParsePerfMap(
      Record(PERF_RECORD_MMAP2,
             head + id + PerfBytes(uint32_t{PROT_READ | PROT_EXEC}, 2u) + PerfText("/lib/x.so"),
             PERF_RECORD_MISC_MMAP_BUILD_ID));
  ASSERT_TRUE(map);
  EXPECT_EQ(map->begin, 0x400000u);
  EXPECT_EQ(map->bytes, 0x2000u);
  EXPECT_EQ(map->file_offset, 0x1000u);
  EXPECT_EQ(map->build_id, "01234567890123456789");
  EXPECT_EQ(map->path, "/lib/x.so");
  EXPECT_TRUE(map->executable);
  const auto data = ParsePerfMap(Record(
      PERF_RECORD_MMAP2, head + id + PerfBytes(uint32_t{PROT_READ}, 2u) + PerfText("/lib/x.so")));
  ASSERT_TRUE(data);
  EXPECT_FALSE(data->executable);
  EXPECT_EQ(data->build_id, "") << "device and inode are no build id";
}

TEST_F(PerfSideBandTest, TellsSwitchesTracesAndLosses) {
  const auto out = ParsePerfSwitch(Record(
      PERF_RECORD_SWITCH, "", PERF_RECORD_MISC_SWITCH_OUT | PERF_RECORD_MISC_SWITCH_OUT_PREEMPT));
  ASSERT_TRUE(out);
  EXPECT_TRUE(out->out && out->preempted);
  EXPECT_EQ(out->other_tid, -1);
  const auto in = ParsePerfSwitch(Record(PERF_RECORD_SWITCH_CPU_WIDE, PerfIds(3, 4)));
  ASSERT_TRUE(in);
  EXPECT_FALSE(in->out);
  EXPECT_EQ(in->other_pid, 3);
  EXPECT_EQ(in->other_tid, 4);
  const auto aux = ParsePerfAux(Record(
      PERF_RECORD_AUX, PerfWord(0x1000) + PerfWord(0x200) + PerfWord(PERF_AUX_FLAG_TRUNCATED)));
  ASSERT_TRUE(aux);
  EXPECT_EQ(aux->offset, 0x1000u);
  EXPECT_EQ(aux->bytes, 0x200u);
  EXPECT_EQ(aux->flags, uint64_t{PERF_AUX_FLAG_TRUNCATED});
  const auto overwritten = ParsePerfAux(Record(
      PERF_RECORD_AUX, PerfWord(0x1000) + PerfWord(0x200) + PerfWord(PERF_AUX_FLAG_OVERWRITE)));
  ASSERT_TRUE(overwritten);
  EXPECT_EQ(overwritten->offset, 0xe00u) << "the kernel tells the end";
  EXPECT_EQ(overwritten->bytes, 0x200u);
  const auto whole_area = ParsePerfAux(Record(
      PERF_RECORD_AUX, PerfWord(0x100) + PerfWord(0x200) + PerfWord(PERF_AUX_FLAG_OVERWRITE)));
  ASSERT_TRUE(whole_area);
  EXPECT_EQ(whole_area->offset, 0u);
  EXPECT_EQ(whole_area->bytes, 0x100u);
  const auto start = ParsePerfTraceStart(Record(PERF_RECORD_ITRACE_START, PerfIds(5, 6)));
  ASSERT_TRUE(start);
  EXPECT_EQ(start->tid, 6);
  EXPECT_EQ(ParsePerfLost(Record(PERF_RECORD_LOST, PerfWord(1) + PerfWord(17))), 17u);
  PerfRecord total = Record(PERF_RECORD_LOST_SAMPLES, PerfWord(18));
  total.time = -1;
  EXPECT_EQ(ParsePerfLostInAll(total), 18u) << "perf's own, of no time";
  EXPECT_FALSE(ParsePerfLost(total));
  PerfRecord at_a_time = total;
  at_a_time.time = 7;
  EXPECT_EQ(ParsePerfLost(at_a_time), 18u) << "the kernel's";
  EXPECT_FALSE(ParsePerfLostInAll(at_a_time));
  PerfRecord filtered = total;
  filtered.misc = 1 << 15;
  EXPECT_FALSE(ParsePerfLostInAll(filtered)) << "left out by a filter";
}

// The trailer makes a body longer than it should be, so it is left away here.
TEST_F(PerfSideBandTest, TakesNoBodyThatIsTooShortOrOfAnotherType) {
  const std::vector<PerfEvent> no_trailer = {PerfEvent()};
  const PerfRecordParser parser(no_trailer);
  for (uint32_t type = 0; type < 22; ++type) {
    for (const size_t size : {0, 8, 16, 24, 32, 64}) {
      if (type == PERF_RECORD_SAMPLE) continue;
      const std::string bytes = PerfRecordOf(type, std::string(size, '\1'));
      const auto record = parser.Parse(bytes);
      ASSERT_TRUE(record);
      const std::string where = fmt::format("type {}, {} bytes", type, size);
      EXPECT_EQ(ParsePerfComm(*record).has_value(), type == PERF_RECORD_COMM && size > 8) << where;
      EXPECT_EQ(ParsePerfTask(*record).has_value(),
                (type == PERF_RECORD_FORK || type == PERF_RECORD_EXIT) && size >= 24)
          << where;
      EXPECT_EQ(ParsePerfMap(*record).has_value(), type == PERF_RECORD_MMAP && size > 32) << where;
      EXPECT_EQ(ParsePerfSwitch(*record).has_value(),
                type == PERF_RECORD_SWITCH || (type == PERF_RECORD_SWITCH_CPU_WIDE && size >= 8))
          << where;
      EXPECT_EQ(ParsePerfAux(*record).has_value(), type == PERF_RECORD_AUX && size >= 24) << where;
      EXPECT_EQ(ParsePerfTraceStart(*record).has_value(),
                type == PERF_RECORD_ITRACE_START && size >= 8)
          << where;
      EXPECT_EQ(ParsePerfLost(*record).has_value(), type == PERF_RECORD_LOST && size >= 16)
          << where;
      EXPECT_EQ(ParsePerfLostInAll(*record).has_value(),
                type == PERF_RECORD_LOST_SAMPLES && size >= 8)
          << where;
    }
  }
}

constexpr char kTracepointFormat[] =
    "name: made_up\n"
    "ID: 372\n"
    "format:\n"
    "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
    "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n"
    "\n"
    "\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n"
    "\tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;\n"
    "\tfield:__data_loc char[] path;\toffset:28;\tsize:4;\tsigned:0;\n"
    "\tfield:unsigned long args[2];\toffset:32;\tsize:16;\tsigned:0;\n"
    "\tfield:const char * device;\toffset:48;\tsize:8;\tsigned:0;\n"
    "\tfield:__rel_loc char[] tail;\toffset:56;\tsize:4;\tsigned:0;\n"
    "\n"
    "print fmt: \"comm=%s\", REC->comm\n"
    "\tfield:int no_field;\toffset:8;\tsize:4;\tsigned:1;\n";

std::string RawOfFormat() {
  return PerfBytes(uint16_t{372}, uint16_t{0}, 4711) + std::string("a comm\0garbage!!", 16) +
         PerfBytes(-5, uint32_t{5u << 16 | 60u}) + PerfWord(7) + PerfWord(0xffff0000ffff0000) +
         PerfWord(0x10) + PerfBytes(uint32_t{3u << 16 | 5u}) + "/bin" + std::string(1, '\0') +
         "x\ny";
}

TEST(TracepointFormat, TellsNumbersAndTexts) {
  const auto format = TracepointFormat::Parse(kTracepointFormat);
  ASSERT_TRUE(format);
  EXPECT_EQ(format->name(), "made_up");
  EXPECT_EQ(format->id(), 372u);
  const std::string raw = RawOfFormat();
  EXPECT_EQ(format->Number(raw, "common_pid"), 4711);
  EXPECT_EQ(format->Number(raw, "pid"), -5);
  EXPECT_EQ(format->Number(raw, "args"), 7);
  EXPECT_EQ(static_cast<uint64_t>(format->Number(raw, "args[1]").value_or(0)), 0xffff0000ffff0000u);
  EXPECT_EQ(format->Text(raw, "comm"), "a comm");
  EXPECT_EQ(format->Text(raw, "path"), "/bin");
  EXPECT_EQ(format->Text(raw, "tail"), "x\ny");
  for (const char* none : {"args[2]", "args[", "args[-1]", "no_field", "comm", "device[1]", ""})
    EXPECT_FALSE(format->Number(raw, none)) << none;
  for (const char* none : {"pid", "device", "args", "no_field"})
    EXPECT_FALSE(format->Text(raw, none)) << none;
  EXPECT_EQ(format->Describe(raw),
            "comm=a comm pid=-5 path=/bin args=0x7,0xffff0000ffff0000 device=0x10 tail=x\\ny");
}

TEST(TracepointFormat, ReadsNothingBehindTheRecord) {
  const auto format = TracepointFormat::Parse(kTracepointFormat);
  ASSERT_TRUE(format);
  const std::string raw = RawOfFormat();
  for (size_t size = 0; size <= raw.size(); ++size) {
    const std::string cut = raw.substr(0, size);
    EXPECT_EQ(format->Number(cut, "pid").has_value(), size >= 28) << size;
    EXPECT_EQ(format->Number(cut, "args[1]").has_value(), size >= 48) << size;
    EXPECT_EQ(format->Text(cut, "comm").has_value(), size >= 24) << size;
    EXPECT_EQ(format->Text(cut, "path").has_value(), size >= 65) << size;
    EXPECT_EQ(format->Text(cut, "tail").has_value(), size >= 68) << size;
    EXPECT_FALSE(format->Describe(cut).empty());
  }
}

TEST(TracepointFormat, TakesNoFormatThatSaysTooLittle) {
  const std::string text = kTracepointFormat;
  EXPECT_FALSE(TracepointFormat::Parse(text.substr(text.find("ID:"))));
  EXPECT_FALSE(TracepointFormat::Parse(
      "name: x\nID: many\nformat:\n\tfield:int a;\toffset:0;\tsize:4;\tsigned:1;\n"));
  EXPECT_FALSE(TracepointFormat::Parse("name: x\nID: 1\nformat:\n\tfield:int a;\toffset:0;\n"));
  EXPECT_FALSE(TracepointFormat::Parse(""));
  const auto odd = TracepointFormat::Parse(
      "name: x\nID: 1\n\tfield:int a[0];\toffset:4294967295;\tsize:4294967295;\tsigned:1;\n");
  ASSERT_TRUE(odd);
  EXPECT_FALSE(odd->Number("some bytes", "a"));
}

}  // namespace
}  // namespace hangscope
