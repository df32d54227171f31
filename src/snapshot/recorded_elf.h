// The program of a snapshot, as far as it is still where the recorder read it.
#ifndef HANGSCOPE_SNAPSHOT_RECORDED_ELF_H
#define HANGSCOPE_SNAPSHOT_RECORDED_ELF_H

#include <string>

#include "base/file_system.h"
#include "snapshot/manifest_reader.h"

namespace hangscope {

struct RecordedElf {
  std::string path;     // empty: there was none, or it is not there any more
  std::string warning;  // why it is not; a sentence
};

// Of another program the same addresses have other names. A manifest without an id of its ELF, as
// older ones are, is believed.
RecordedElf ElfOfSnapshot(FileSystem& files, const SavedManifest& manifest);

}  // namespace hangscope

#endif
