// What kind of recording lies at a path: the one place that decides it.
#ifndef HANGSCOPE_SNAPSHOT_RECORDING_KIND_H
#define HANGSCOPE_SNAPSHOT_RECORDING_KIND_H

#include <string>

#include "base/file_system.h"
#include "base/status.h"

namespace hangscope {

enum class RecordingKind {
  kSnapshot,  // a folder with a manifest
  kDebugger,  // a folder that a debugger took of a target: traces, settings, memory
  kFolder,    // another folder: perhaps what is left of a snapshot
  kCore,      // a core dump
  kPerfData,  // a file that perf or hangscope wrote, or a folder of perf record --threads
  kRing,      // the prefix of rings, or a file of one
  kText,      // a file that begins with text: a log, or a trace in one
  kOther,     // a file of bytes, or no file at all: perhaps the name of a target
};

constexpr bool IsFolder(RecordingKind kind) {
  return kind == RecordingKind::kSnapshot || kind == RecordingKind::kFolder;
}

// The first of these that fits. Reads the beginning of a file and lists its folder.
RecordingKind KindOf(FileSystem& files, const std::string& path);
// kNotFound, with what to give instead, for a folder that is no snapshot nor what is left of one.
// Ok for all else.
Status CheckForSnapshot(FileSystem& files, const std::string& path);

}  // namespace hangscope

#endif
