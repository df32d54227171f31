#include "session/report_writer.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <utility>

#include "session/report.h"

namespace hangscope {
namespace {

constexpr int kNice = 10;  // whoever records goes first
// Beside the folder, not in it: who makes the snapshot durable lists what is in it. Under this name the next recorder
// removes what a killed one left.
constexpr const char* kFresh = ".report.partial";

}  // namespace

ReportWriter::~ReportWriter() { Finish(); }

void ReportWriter::Write(const std::string& folder) {
  {
    const std::lock_guard lock(mutex_);
    wanted_.push_back(folder);
    finishing_ = false;
  }
  if (!thread_.joinable()) thread_ = std::thread([this] { Run(); });
  wake_.notify_all();
}

std::vector<std::string> ReportWriter::TakeTroubles() {
  const std::lock_guard lock(mutex_);
  return std::exchange(troubles_, {});
}

void ReportWriter::Finish() {
  {
    const std::lock_guard lock(mutex_);
    finishing_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void ReportWriter::Run() {
  (void)setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kNice);  // of this thread alone; without it, no matter
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return finishing_ || !wanted_.empty(); });
    if (wanted_.empty()) return;
    const std::string folder = std::move(wanted_.front());
    wanted_.pop_front();
    lock.unlock();
    const Status status = WriteOne(folder);
    lock.lock();
    if (!status.ok() && files_.IsFolder(folder)) {
      troubles_.push_back(fmt::format("cannot write '{}/{}': {}; hangscope report {} draws it", folder, kReportPageName, status.message(), folder));
    }
  }
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
    status = WriteReportPage(files_, *report, folder + "/" + kReportPageName, folder + kFresh, kMostBytes);
    if (status.code() != Status::Code::kUsage) return status;
  }
  return status;
}

}  // namespace hangscope
