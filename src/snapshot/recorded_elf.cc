#include "snapshot/recorded_elf.h"

#include <fmt/format.h>

#include "base/utf8.h"
#include "scope/scope_elf.h"

namespace hangscope {

RecordedElf ElfOfSnapshot(FileSystem& files, const SavedManifest& manifest) {
  if (manifest.elf.empty()) return {};
  const bool is_there = files.Exists(manifest.elf);
  if (is_there && (manifest.elf_id.empty() || ProgramId(files, manifest.elf) == manifest.elf_id))
    return {manifest.elf, {}};
  return {
      {},
      fmt::format("'{}' is {}: functions and lines are left out; --elf names the program that "
                  "was recorded",
                  Printable(manifest.elf),
                  is_there ? "another program than when it was recorded" : "not there any more")};
}

}  // namespace hangscope
