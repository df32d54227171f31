// Between the types of the public API and those of the libraries behind it.
#ifndef HANGSCOPE_HOST_TRANSLATION_H
#define HANGSCOPE_HOST_TRANSLATION_H

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "hangscope/host/hangscope.hpp"
#include "scope/live_scope.h"

namespace hangscope {

host::Status ToHost(const Status& status);
Status FromHost(const host::Status& status);

// By its specification, or where there is one, by the probe.
ScopeSource SourceOf(const std::string& specification, std::shared_ptr<host::Probe> probe,
                     const host::Options& options);
// Fails where they are out of range.
Result<WatcherOptions> WatcherOptionsOf(const host::Options& options);

// As the view's latest look found them.
std::vector<host::Subject> SubjectsOf(const LiveScope& view, TimeNs now);
host::Finding FindingOf(const ScopeFinding& finding, LiveScope& view, TimeNs now);

}  // namespace hangscope

#endif
