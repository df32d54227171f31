// What a snapshot says of itself: manifest.json.
#ifndef HANGSCOPE_MODEL_MANIFEST_H
#define HANGSCOPE_MODEL_MANIFEST_H

#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"
#include "model/verdict.h"
#include "model/window.h"

namespace hangscope {

constexpr int kManifestVersion = 1;

struct Manifest {
  uint64_t run_id = 0;
  std::string trigger;               // "hang", "SIGUSR1", ...
  std::vector<std::string> command;  // empty for tee
  int pid = 0;                       // of the child; 0: none
  std::string elf;                   // path given; empty: none
  std::string host;
  TimeNs start_wall = 0;
  TimeNs start = 0;                  // monotonic, as all other times
  TimeNs time = 0;                   // the trigger
  TimeNs wall = 0;                   // the same instant
  std::vector<StreamWindow> streams;
  Verdict verdict;
};

}  // namespace hangscope

#endif
