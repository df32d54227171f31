#include "observe/report_writer.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <utility>

#include "report/read_report.h"
#include "snapshot/snapshots.h"

namespace hangscope {
namespace {

constexpr int kNice = 10;  // whoever records goes first
// Beside the folder, not in it: who makes the snapshot durable lists what is in it. Under this name
// the next recorder removes what a killed one left.
std::string FreshPageOf(const std::string& folder) {
  return fmt::format("{}.report.{}.partial", folder, getpid());
}

}  // namespace

ReportWriter::ReportWriter(FileSystem& files)
    : files_(files),
      queue_([this](const std::string& folder) { WriteOrTell(folder); },
             // of that thread alone; without it, no matter
             [] { (void)setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kNice); }) {}

std::vector<std::string> ReportWriter::DrainWarnings() {
  const std::lock_guard lock(mutex_);
  return std::exchange(warnings_, {});
}

void ReportWriter::WriteOrTell(const std::string& folder) {
  const Status status = WriteOne(folder);
  if (status.ok() || !files_.IsFolder(folder)) return;
  const std::lock_guard lock(mutex_);
  warnings_.push_back(fmt::format("cannot write '{}/{}': {}; hangscope report {} draws it", folder,
                                  kReportPageName, status.message(), folder));
}

// With fewer events each time, until it fits.
Status ReportWriter::WriteOne(const std::string& folder) {
  ReportOptions options;
  options.source.target = folder;
  options.most_time = kMostTime;
  Status status;
  for (options.most_events = kMostEvents; options.most_events > 0; options.most_events /= 8) {
    auto report = ReadReport(files_, clock_, options);
    if (!report.ok()) return report.status();
    status = WriteReportPage(files_, *report, folder + "/" + kReportPageName, FreshPageOf(folder),
                             FileSystem::Mode::kRecordedNew, kMostBytes);
    if (status.code() != Status::Code::kUsage) return status;
  }
  return status;
}

}  // namespace hangscope
