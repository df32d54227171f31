// Verdicts and heartbeats as people read them.
#ifndef HANGSCOPE_VERDICT_TEXT_H
#define HANGSCOPE_VERDICT_TEXT_H

#include <string>
#include <vector>

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

// The stacks of those whom the verdict is about, each after a blank line; empty: none is known.
std::string StacksText(const Verdict& verdict);

// "main  abba.c:40", "0x80000040"; of a log line its text.
std::string PlaceText(const Place& place);

// Where a core of a scope waits, as its stack (where it stands and its callers, the innermost
// first) tells: in `where` who called the function that has its waypoint. One without a waypoint is
// where it stands. Nothing where the stack has no such function.
void NameCaller(const std::vector<Place>& stack, FindingSubject* core);

// "  <- compute <- main", for the end of a line: functions alone, the nearest first; empty: none.
std::string CallersText(const std::vector<std::string>& callers);

// What a core does, for how long by `now`, and where: one line without an end.
std::string CoreText(const CoreVerdict& core, TimeNs now);

// Where there is no finding, or one of a part: how the rest stands. One line without an end; empty:
// the findings say it all.
std::string StandingText(const Verdict& verdict);

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
