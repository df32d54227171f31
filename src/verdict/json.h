// Verdicts, heartbeats and manifests as JSON; the schema is in docs/json.md.
// Every top-level object has "version"; fields are only ever added to a version.
#ifndef HANGSCOPE_VERDICT_JSON_H
#define HANGSCOPE_VERDICT_JSON_H

#include <string>

#include "model/heartbeat.h"
#include "model/manifest.h"
#include "model/verdict.h"

namespace hangscope {

constexpr int kJsonVersion = 1;

// One line each, no newline. `start` is the run's start (monotonic).
std::string HeartbeatJson(const Heartbeat& beat, TimeNs start);
std::string VerdictJson(const Verdict& verdict, TimeNs start, TimeNs wall);
std::string SnapshotJson(const Manifest& manifest, const std::string& path);
std::string LossJson(const std::string& stream, uint64_t bytes, const std::string& why,
                     TimeNs wall);
std::string NoteJson(const std::string& text, TimeNs wall);

// manifest.json, indented.
std::string ManifestJson(const Manifest& manifest);

}  // namespace hangscope

#endif
