// What perf records here, now, in each form that it has, is read as perf itself reads it: each
// sample with its process, thread, CPU, time, event and fields. Needs perf and the right to record.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "perf/perf_file.h"

namespace hangscope {
namespace {

constexpr char kTracepoints[] = "-e sched:sched_switch,raw_syscalls:sys_enter";
constexpr char kProgram[] =
    "-- sh -c 'dd if=/dev/zero of=/dev/null bs=1 count=100 2>/dev/null; sleep 0.02; sleep 0.02'";

std::string OutputOf(const std::string& command, int* status) {
  std::string output;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return output;
  char piece[65536];
  for (size_t got; (got = fread(piece, 1, sizeof piece, pipe)) > 0;) output.append(piece, got);
  *status = pclose(pipe);
  return output;
}

// "1/2 3 4.000000005 sched:sched_switch ..." of a line of perf script.
std::string LineOfPerf(const std::string& line) {
  int pid, tid, cpu;
  long long seconds, nanoseconds;
  char event[100];
  int at = 0;
  if (sscanf(line.c_str(), " %d/%d [%d] %lld.%lld: %99[^ ] %n", &pid, &tid, &cpu, &seconds,
             &nanoseconds, event, &at) != 6)
    return "not understood: " + line;
  const std::string fields = line.substr(static_cast<size_t>(at));
  std::string what;
  unsigned long long a[6];
  long long id;
  if (sscanf(fields.c_str(), "NR %lld (%llx, %llx, %llx, %llx, %llx, %llx)", &id, a, a + 1, a + 2,
             a + 3, a + 4, a + 5) == 7) {
    what = fmt::format("{} {:x} {:x} {:x} {:x} {:x} {:x}", id, a[0], a[1], a[2], a[3], a[4], a[5]);
  } else {
    const auto number = [&](const char* field) {
      return std::atoi(fields.c_str() + fields.find(field) + std::string(field).size());
    };
    what = fmt::format("{} {}", number("prev_pid="), number("next_pid="));
  }
  return fmt::format("{}/{} {} {} {} {}", pid, tid, cpu, seconds * kSecond + nanoseconds, event,
                     what);
}

std::vector<std::string> LinesOfPerf(const std::string& path) {
  int status = -1;
  std::istringstream output(OutputOf(
      "perf script --ns -F pid,tid,cpu,time,event,trace -i '" + path + "' 2>/dev/null | grep .",
      &status));
  std::vector<std::string> lines;
  // Call stacks stand below their lines.
  for (std::string line; std::getline(output, line);) {
    if (line.front() != '\t') lines.push_back(LineOfPerf(line));
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

std::string LineOf(const PerfRecord& record, const PerfEvent& event,
                   const TracepointFormat& format) {
  const auto number = [&](const char* field) {
    return format.Number(record.raw, field).value_or(-1);
  };
  std::string what;
  if (format.name() == "sys_enter") {
    what = fmt::format("{}", number("id"));
    for (int i = 0; i < 6; ++i)
      what +=
          fmt::format(" {:x}", static_cast<uint64_t>(number(fmt::format("args[{}]", i).c_str())));
  } else {
    what = fmt::format("{} {}", number("prev_pid"), number("next_pid"));
  }
  return fmt::format("{}/{} {} {} {}: {}", record.pid, record.tid, record.cpu, record.time,
                     event.name, what);
}

class PerfCompareTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/hangscope-perf-XXXXXX";
    folder_ = mkdtemp(name);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // Skips the test where recording is refused.
  std::string Record(const std::string& options, const std::string& output) {
    const std::string path = folder_ + "/perf.data";
    int status = -1;
    const std::string said = OutputOf(fmt::format("exec 2>&1; perf record -q -N {} {}", options,
                                                  fmt::format(fmt::runtime(output), path)),
                                      &status);
    for (const char* refusal : {"ermission", "not permitted", "not found", "tracefs",
                                "unknown tracepoint", "not supported"}) {
      if (status != 0 && said.find(refusal) != std::string::npos) refused_ = said.substr(0, 300);
    }
    EXPECT_TRUE(status == 0 || !refused_.empty()) << said;
    return path;
  }
  void Compare(const std::string& path) {
    if (!refused_.empty()) GTEST_SKIP() << "perf cannot record tracepoints here: " << refused_;
    const std::vector<std::string> of_perf = LinesOfPerf(path);
    ASSERT_GT(of_perf.size(), 20u);
    auto file = PerfFile::Open(PosixFileSystem(), path);
    ASSERT_TRUE(file.ok()) << file.status().message();
    std::vector<std::optional<TracepointFormat>> formats;
    for (const PerfEvent& event : (*file)->events())
      formats.push_back(TracepointFormat::Parse(event.format));
    std::vector<std::string> ours;
    ASSERT_TRUE((*file)
                    ->ForEach([&](const PerfRecord& record) {
                      if (record.type == PERF_RECORD_SAMPLE && formats[record.event])
                        ours.push_back(LineOf(record, (*file)->events()[record.event],
                                              *formats[record.event]));
                      stack_words_ += record.call_chain.size() / 8;
                      return true;
                    })
                    .ok());
    EXPECT_TRUE((*file)->facts().warnings.empty()) << (*file)->facts().warnings[0];
    std::sort(ours.begin(), ours.end());
    EXPECT_EQ(ours.size(), of_perf.size());
    const auto [mine, theirs] =
        std::mismatch(ours.begin(), ours.end(), of_perf.begin(), of_perf.end());
    if (mine != ours.end() && theirs != of_perf.end())
      ADD_FAILURE() << "perf: " << *theirs << "\nhere: " << *mine;
  }

  std::string refused_;
  std::string folder_;
  uint64_t stack_words_ = 0;
};

TEST_F(PerfCompareTest, ReadsAFileWithCallStacksAsPerfDoes) {
  const std::string path =
      Record(std::string(kTracepoints) + " -g", "-o {} " + std::string(kProgram));
  Compare(path);
  if (IsSkipped()) return;
  int status = -1;
  std::istringstream dump(OutputOf(
      "perf report -D -i '" + path + "' 2>/dev/null | grep -o 'chain: nr:[0-9]*'", &status));
  uint64_t words = 0;
  for (std::string line; std::getline(dump, line);)
    words += std::strtoull(line.c_str() + line.rfind(':') + 1, nullptr, 10);
  EXPECT_GT(words, 0u);
  EXPECT_EQ(stack_words_, words);
}

TEST_F(PerfCompareTest, ReadsACompressedFileAsPerfDoes) {
  Compare(Record(std::string(kTracepoints) + " -z", "-o {} " + std::string(kProgram)));
}

TEST_F(PerfCompareTest, ReadsACompressedPipeAsPerfDoes) {
  Compare(Record(std::string(kTracepoints) + " -z", "-o - " + std::string(kProgram) + " > {}"));
}

TEST_F(PerfCompareTest, ReadsOverwriteRingsAsPerfDoes) {
  Compare(Record(std::string(kTracepoints) + " --overwrite", "-o {} " + std::string(kProgram)));
}

TEST_F(PerfCompareTest, ReadsAPipeOfTheWholeMachineAsPerfDoes) {
  Compare(Record("-a -e sched:sched_switch", "-o - " + std::string(kProgram) + " > {}"));
}

}  // namespace
}  // namespace hangscope
