#include <utility>

#include "base/file_system.h"
#include "hangscope/host/hangscope.hpp"
#include "host/live_acts.h"
#include "host/translation.h"
#include "scope/live_scope.h"

namespace hangscope::host {

struct Target::Inner {
  std::unique_ptr<LiveScope> view;
  TimeNs stall = 0;
  TimeNs looked = 0;
  SystemClock clock;

  hangscope::Status Look() {
    looked = clock.Monotonic();
    return view->PollLiveOrDead(looked);
  }
  hangscope::Status SampleForLong() {
    hangscope::Status status = view->PollFor(clock, stall, nullptr);
    looked = clock.Monotonic();
    return status;
  }
};

namespace {

Result<std::unique_ptr<LiveScope>> OpenView(const std::string& specification,
                                            std::shared_ptr<Probe> probe, const Options& options) {
  auto watcher = WatcherOptionsOf(options);
  if (!watcher.ok()) return ToHost(watcher.status());
  auto view = LiveScope::Open(PosixFileSystem(), SourceOf(specification, std::move(probe), options),
                              *watcher);
  if (!view.ok()) return ToHost(view.status());
  return std::move(*view);
}

}  // namespace

Target::Target(std::unique_ptr<Inner> inner) : inner_(std::move(inner)) {}
Target::Target(Target&&) noexcept = default;
Target& Target::operator=(Target&&) noexcept = default;
Target::~Target() = default;

Result<Target> Target::Open(const std::string& specification, const Options& options) {
  auto view = OpenView(specification, nullptr, options);
  if (!view.ok()) return view.status();
  auto inner = std::make_unique<Inner>();
  inner->view = std::move(*view);
  inner->stall = options.stall.count();
  return Target(std::move(inner));
}

Result<Target> Target::Open(std::unique_ptr<Probe> probe, const Options& options) {
  if (probe == nullptr) return Status(Code::kUsage, "there is no probe: a null pointer was given");
  auto view = OpenView("", std::move(probe), options);
  if (!view.ok()) return view.status();
  auto inner = std::make_unique<Inner>();
  inner->view = std::move(*view);
  inner->stall = options.stall.count();
  return Target(std::move(inner));
}

const std::vector<std::string>& Target::warnings() const { return inner_->view->warnings(); }

Status Target::Look() { return ToHost(inner_->Look()); }

std::vector<Subject> Target::Subjects() const { return SubjectsOf(*inner_->view, inner_->looked); }

Result<std::vector<Finding>> Target::Why() {
  if (hangscope::Status status = inner_->SampleForLong(); !status.ok()) return ToHost(status);
  (void)inner_->view->watcher().DrainFindings();  // those that still hold are all there is to say
  std::vector<Finding> findings;
  for (const hangscope::ScopeFinding& finding : inner_->view->watcher().standing()) {
    findings.push_back(FindingOf(finding, *inner_->view, inner_->looked));
  }
  return findings;
}

Status Target::Pause(uint32_t core) { return LiveActs(*inner_->view).Pause(core); }
Status Target::Resume(uint32_t core) { return LiveActs(*inner_->view).Resume(core); }
Result<Events> Target::ReadEvents() { return LiveActs(*inner_->view).ReadEvents(inner_->clock); }
Status Target::SetDelays(uint32_t core, const Delays& delays) {
  return LiveActs(*inner_->view).SetDelays(core, delays);
}
Status Target::SetMask(uint32_t core, uint32_t classes) {
  return LiveActs(*inner_->view).SetMask(core, classes);
}
Status Target::FreezeAfter(uint32_t core, uint32_t records) {
  return LiveActs(*inner_->view).FreezeAfter(core, records);
}
Result<Features> Target::ReadFeatures() { return LiveActs(*inner_->view).ReadFeatures(); }
Status Target::SetFeatures(uint32_t on) { return LiveActs(*inner_->view).SetFeatures(on); }
Status Target::TakeSnapshot(const std::string& folder) {
  return LiveActs(*inner_->view).TakeSnapshot(PosixFileSystem(), folder);
}

}  // namespace hangscope::host
