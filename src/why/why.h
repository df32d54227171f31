// `hangscope why`: one verdict on a target that hangs, or is dead, or is neither.
#ifndef HANGSCOPE_WHY_WHY_H
#define HANGSCOPE_WHY_WHY_H

#include <cstddef>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/file_system.h"
#include "device/device_file.h"
#include "model/picture.h"
#include "model/report.h"
#include "model/watch.h"
#include "scope/scope_view.h"

namespace hangscope {

// Of a terminal: what a text for people keeps to.
constexpr size_t kScreenLines = 23;

struct WhyOptions {
  ScopeSource source;
  TimeNs stall = kSecond;  // how long what may be alive is looked at
  bool json = false;
  // What was found while it was alive, where `source` is a snapshot: what its image says by itself
  // is no surer than that, and no less sure.
  std::vector<ReportFinding> recorded = {};
};

// What one source of evidence says of a target.
struct WhyPart {
  std::string target;    // as people call it
  TimeNs begin = 0;      // monotonic, of the look
  Sightings sightings;   // for the judge
  std::string found;     // the findings as people read them; of JSON nothing
  std::string evidence;  // what they rest on: tables for people, or JSON Lines
};

struct WhyReport {
  std::string text;     // or JSON Lines: the verdict, then the evidence
  bool is_bad = false;  // a hang or a fault
};

// What the judge of all sources says of one look (verdict/judge_picture.h).
Verdict JudgeLook(Clock& clock, Picture picture, TimeNs begin);
bool IsBad(const Verdict& verdict);
// The verdict as why --json begins; one line with its newline.
std::string WhyVerdictLine(Clock& clock, const Verdict& verdict, const WhyPart& part);

// What a watcher found, each as it stands now where it still stands: who waits for a core that was
// found faulty at first sight comes later, and what ended and began anew was found twice.
std::vector<ScopeFinding> AsTheyStand(std::vector<ScopeFinding> found,
                                      const std::vector<ScopeFinding>& standing);

// Takes `stall` and a little more where the target may be alive; no time where it is not. Fails
// where it cannot be read.
Result<WhyPart> LookAtScope(FileSystem& files, Clock& clock, const WhyOptions& options);
// The same of several memories as one target; options.source is not used.
Result<WhyPart> LookAtDevice(FileSystem& files, Clock& clock, const DeviceSpec& device,
                             const WhyOptions& options);
Result<WhyReport> AskWhy(FileSystem& files, Clock& clock, const WhyOptions& options);
Result<WhyReport> AskWhyDevice(FileSystem& files, Clock& clock, const DeviceSpec& device,
                               const WhyOptions& options);

}  // namespace hangscope

#endif
