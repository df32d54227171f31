// Verdicts, heartbeats and notes as JSON; the schema is in docs/json.md.
// Every top-level object has "version"; fields are only ever added to a version.
#ifndef HANGSCOPE_VERDICT_JSON_H
#define HANGSCOPE_VERDICT_JSON_H

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "model/heartbeat.h"
#include "model/verdict.h"

namespace hangscope {

constexpr int kJsonVersion = 1;

// One line each, no newline. `start` is the run's start (monotonic).
std::string HeartbeatJson(const Heartbeat& beat, TimeNs start);
std::string VerdictJson(const Verdict& verdict, TimeNs start, TimeNs wall);
std::string LossJson(const std::string& stream, uint64_t bytes, const std::string& why,
                     TimeNs wall);
std::string NoteJson(const std::string& text, TimeNs wall);

// The parts that a snapshot's manifest shares with them.
double RoundedSeconds(TimeNs ns);  // to a millisecond
nlohmann::ordered_json VerdictObject(const Verdict& verdict, TimeNs start);

}  // namespace hangscope

#endif
