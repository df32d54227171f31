// Verdicts and heartbeats as people read them.
#ifndef HANGSCOPE_VERDICT_TEXT_H
#define HANGSCOPE_VERDICT_TEXT_H

#include <string>

#include "model/heartbeat.h"
#include "model/manifest.h"
#include "model/verdict.h"

namespace hangscope {

// One line, no newline, without the program's name.
std::string HeartbeatText(const Heartbeat& beat);
// The same with the state first, for a line that will be cut.
std::string LiveHeartbeatText(const Heartbeat& beat);

// The report: headline, a line per core, streams, doubts. `start` is the run's
// (monotonic); `snapshot` names the folder and its contents, or is empty.
std::string VerdictText(const Verdict& verdict, TimeNs start, const std::string& snapshot);

// report.txt of a snapshot: the verdict as above, a blank line, what the snapshot is of.
std::string ReportText(const Manifest& manifest);
// The verdict in such a text. Only there is all of it: manifest.json has rounded times, and neither
// when a stream's last byte came nor whether the beginning of a loop is known.
std::string VerdictInReport(const std::string& report);

// "regex: panic (stdout: kernel panic at cb.c:8)", one line.
std::string TriggerText(const Trigger& trigger);

// "(1.43 GiB of stdout, 12.0 KiB of stderr, 3.20 MiB of 4 CPUs, report.html)".
std::string ContentsText(const Manifest& manifest);

}  // namespace hangscope

#endif
