// Verdicts, heartbeats and notes as JSON; the schema is in docs/json.md.
// Every top-level object has "version"; fields are only ever added to a version.
#ifndef HANGSCOPE_VERDICT_JSON_H
#define HANGSCOPE_VERDICT_JSON_H

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "model/heartbeat.h"
#include "model/verdict.h"

namespace hangscope {

constexpr int kJsonVersion = 2;

// One line each, no newline. `start` is the run's start (monotonic).
std::string HeartbeatJson(const Heartbeat& beat, TimeNs start);
// `target`: as people call it; empty: the program that is run.
std::string VerdictJson(const Verdict& verdict, const std::string& target, TimeNs start,
                        TimeNs wall);
std::string LossJson(const std::string& stream, uint64_t bytes, const std::string& why,
                     TimeNs wall);
std::string NoteJson(const std::string& text, TimeNs wall);

// What somebody found, whoever it is; one line with its newline. `target`: as people call it;
// empty: there is one only.
std::string FindingJson(const Finding& finding, const std::string& target, TimeNs wall);

// The parts that these share with a snapshot's manifest and with what else is told of a target.
nlohmann::ordered_json TypedObject(const char* type, const std::string& target, TimeNs wall);
nlohmann::ordered_json SubjectObject(const FindingSubject& subject);
nlohmann::ordered_json FindingObject(const Finding& finding);
nlohmann::ordered_json WordObject(const ShownWord& word);
double RoundedSeconds(TimeNs ns);  // to a millisecond
nlohmann::ordered_json VerdictObject(const Verdict& verdict, TimeNs start);

}  // namespace hangscope

#endif
