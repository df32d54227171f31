// Where the code of what was recorded may be found: of programs, and of the kernel.
#ifndef HANGSCOPE_PERF_CODE_CODE_PLACES_H
#define HANGSCOPE_PERF_CODE_CODE_PLACES_H

#include <string>

#include "base/file_system.h"

namespace hangscope {

struct KernelPlaces {
  std::string vmlinux = {};   // named: a vmlinux, a kcore, or a folder that has one; may be empty
  std::string kallsyms = {};  // named; may be empty
  std::string beside = {};    // the folder of the recording; empty: it is not looked into
  std::string cache = {};     // perf's folder of files by build id; empty: it is not looked into
  // of the running kernel
  std::string notes = "/sys/kernel/notes";
  std::string own_kcore = "/proc/kcore";
  std::string own_kallsyms = "/proc/kallsyms";
};

struct CodePlaces {
  // a folder that has the recorded programs by their path or their name; empty: they are where they
  // were
  std::string binaries = {};
  KernelPlaces kernel = {};  // its cache has programs, too
};

// The same for the recording at `path`.
inline CodePlaces PlacesOf(FileSystem& files, const std::string& path, CodePlaces places) {
  places.kernel.beside = files.IsFolder(path) ? path : FolderOf(path);
  return places;
}

}  // namespace hangscope

#endif
