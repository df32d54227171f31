// manifest.json of a snapshot, and the line that announces one; the schema of both is in
// docs/json.md. snapshot/manifest_reader.h reads the manifest back.
#ifndef HANGSCOPE_SNAPSHOT_MANIFEST_WRITER_H
#define HANGSCOPE_SNAPSHOT_MANIFEST_WRITER_H

#include <string>

#include "model/manifest.h"

namespace hangscope {

// The file, indented. Names that are no UTF-8 are repaired.
std::string ManifestJson(const Manifest& manifest);

// One line, no newline: there is a snapshot in `path`.
std::string SnapshotJson(const Manifest& manifest, const std::string& path);

}  // namespace hangscope

#endif
