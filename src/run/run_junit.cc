#include "run/run_junit.h"

#include <fmt/format.h>

#include "base/file_system.h"
#include "base/signal_text.h"
#include "ring/history.h"
#include "verdict/junit.h"
#include "verdict/text.h"

namespace hangscope {
namespace {

constexpr size_t kLinesInJunit = 100;  // of each stream
constexpr uint64_t kMostBytesInJunit = 64u << 10;

// Of a hang, and to whom.
std::string WhatWasDone(const RunOptions& options, const RunEnd& end) {
  const std::string whom =
      fmt::format("process {} {}", end.pid, NameOf(options.observer.command[0]));
  const std::string how = end.exit.signal != 0 ? SignalText(end.exit.signal)
                                               : fmt::format("status {}", end.exit.status);
  if (!end.by_hang && !end.by_timeout)
    return fmt::format("  not ended by hangscope: {} ended with {}\n", whom, how);
  return fmt::format("  ended by hangscope ({}): {}, which ended with {}\n",
                     end.by_hang ? "--on-hang kill" : "--timeout", whom, how);
}

// Of a stream that carries a trace only what was printed between.
std::string EndOfStream(FileSystem& files, const Recording& recording, const Verdict& verdict,
                        const std::string& name) {
  for (const LastOutput& output : verdict.last_output) {
    if (output.stream == name && output.of_trace)
      return fmt::format("{}\n", fmt::join(output.lines, "\n"));
  }
  for (const RecordedStream& stream : recording.streams()) {
    if (stream.ring->stream_name() == name)
      return LastLines(files, stream.ring->prefix(), kLinesInJunit, kMostBytesInJunit);
  }
  return {};
}

}  // namespace

Status WriteRunJunit(FileSystem& files, const RunOptions& options, const RunEnd& end,
                     const Observer& observer, const Recording& recording) {
  JunitCase result;
  result.name = options.junit_name.empty()
                    ? fmt::to_string(fmt::join(options.observer.command, " "))
                    : options.junit_name;
  result.elapsed = end.verdict.time - observer.start();
  result.report = VerdictText(end.verdict, observer.start(), observer.last_snapshot()) +
                  StacksText(end.verdict);
  const Verdict* const hang = end.by_timeout ? &observer.at_timeout() : observer.last_hang();
  if (hang != nullptr && (end.by_hang || end.by_timeout || observer.hang_now())) {
    result.failure =
        (end.by_timeout && !hang->IsHang() ? "timed out: " : "hang: ") + HeadlineWithSubject(*hang);
    result.report = VerdictText(*hang, observer.start(), observer.last_snapshot()) +
                    WhatWasDone(options, end) + StacksText(*hang);
  } else if (end.status != 0) {
    result.error = end.verdict.summary;
  }
  if (!result.failure.empty() || !result.error.empty()) {
    const Verdict& told = result.failure.empty() ? end.verdict : *hang;
    result.out = EndOfStream(files, recording, told, "stdout");
    result.err = EndOfStream(files, recording, told, "stderr");
  }
  return WriteWholeFile(files, options.junit_path, JunitXml(result));
}

}  // namespace hangscope
