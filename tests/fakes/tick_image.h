// A perf.data of ticks: one event whose samples count up, so that each tells which it is.
#ifndef HANGSCOPE_TESTS_FAKES_TICK_IMAGE_H
#define HANGSCOPE_TESTS_FAKES_TICK_IMAGE_H

#include <string>
#include <vector>

#include "fakes/perf_image.h"
#include "perf/perf_file.h"
#include "perf/tracepoint_format.h"

namespace hangscope {

constexpr char kTickFormat[] =
    "name: tick\nID: 77\nformat:\n\tfield:unsigned short "
    "common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\tfield:int "
    "count;\toffset:8;\tsize:4;\tsigned:1;\n\nprint fmt: \"\"\n";

struct TickImage : PerfImage {
  static PerfEvent TickEvent() {
    PerfEvent tick;
    tick.name = "made:tick";
    tick.attr.type = PERF_TYPE_TRACEPOINT;
    tick.attr.config = 77;
    tick.attr.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
                            PERF_SAMPLE_CPU | PERF_SAMPLE_RAW;
    tick.attr.sample_id_all = 1;
    tick.ids = {10, 11};
    return tick;
  }
  TickImage() {
    events = {TickEvent()};
    features = {{kPerfFeatureEventDescription, EventNames()},
                {kPerfFeatureTracingData, PerfTracingData("made", {kTickFormat})}};
  }
  static std::string Tick(int count) {
    return PerfRecordOf(PERF_RECORD_SAMPLE, PerfWord(11) + PerfIds(1, 2) +
                                                PerfWord(1000 + static_cast<uint64_t>(count)) +
                                                PerfBytes(count % 4, 0) + PerfBytes(12u) +
                                                std::string(8, '\0') + PerfBytes(count));
  }
  // The counts of all that can be read, in the order of the file; -1: its time is another's, so one
  // of both is damaged.
  static std::vector<int> TicksOf(PerfFile& file) {
    std::vector<int> counts;
    const auto format = TracepointFormat::Parse(kTickFormat);
    const Status status = file.ForEach([&](const PerfRecord& record) {
      if (record.type != PERF_RECORD_SAMPLE) return true;
      const auto count = static_cast<int>(format->Number(record.raw, "count").value_or(-1));
      counts.push_back(record.time == 1000 + count ? count : -1);
      return true;
    });
    if (!status.ok()) counts.push_back(-2);
    return counts;
  }
};

}  // namespace hangscope

#endif
