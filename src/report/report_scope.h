// What a scope's mailboxes tell a report: who waits for whom, findings, faults, kernels, stacks,
// debug rings.
#ifndef HANGSCOPE_REPORT_REPORT_SCOPE_H
#define HANGSCOPE_REPORT_REPORT_SCOPE_H

#include <optional>

#include "base/clock.h"
#include "base/file_system.h"
#include "device/device_file.h"
#include "model/manifest.h"
#include "model/report.h"
#include "scope/live_scope.h"

namespace hangscope {

// How the report's times follow from the target's.
struct ReportScopeTimes {
  ReportTime end;  // monotonic: of the report
  // where the target's clock and the monotonic one meet; nothing: not known, and the target's
  // latest time is taken for the report's end
  std::optional<ScopeClockFit> clock;
};

// `source`: of what does not change any more. A part that cannot be read is a trouble of the
// report; fails where nothing can. Findings that the report has already, by their summary, get what
// is known here besides.
Status AddScopeWatch(FileSystem& files, Clock& clock, const ScopeSource& source,
                     const ReportScopeTimes& times, Report* report);

// The numbers of a scope's events, whether it has mailboxes or not.
Status AddEventNumbers(FileSystem& files, Clock& clock, const ScopeSource& source, Report* report);

// What AddScopeWatch adds, and numbers, of the memories of a device; what one core waits for may be
// in another memory.
Status AddDeviceWatch(FileSystem& files, Clock& clock, const DeviceSpec& spec, Report* report);

}  // namespace hangscope

#endif
