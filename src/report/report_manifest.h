// What a snapshot's manifest tells a report. Nothing in it is trusted: it may be newer, damaged, or
// no JSON.
#ifndef HANGSCOPE_REPORT_REPORT_MANIFEST_H
#define HANGSCOPE_REPORT_REPORT_MANIFEST_H

#include <string>

#include "base/file_system.h"
#include "model/report.h"
#include "snapshot/manifest_reader.h"

namespace hangscope {

// Fails where there is none that can be read; then nothing was added. What is missing or
// contradicts itself in it is a trouble of the report. `manifest`: for the other parts; of its
// streams those stay whose names can be part of a path.
Status AddManifest(FileSystem& files, const std::string& folder, Report* report,
                   SavedManifest* manifest);

}  // namespace hangscope

#endif
