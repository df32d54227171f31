// `hangscope tee`: record and watch what comes on standard input.
#ifndef HANGSCOPE_RUN_TEE_SESSION_H
#define HANGSCOPE_RUN_TEE_SESSION_H

#include <string>

#include "observe/drain.h"
#include "observe/observer_options.h"
#include "observe/recording.h"
#include "ring/ring_format.h"

namespace hangscope {

struct TeeOptions {
  ObserverOptions observer;
  std::string ring_prefix;
  std::string place;        // as of a run
  bool keep_rings = false;  // as of a run
  RingGeometry geometry;
  StagingOptions stages;
  int input_fd = 0;
  PassthroughOptions out;
};

enum class TeeExit { kClean = 0, kHang = 1, kFailed = 3, kInterrupted = 130 };

struct TeeOutcome {
  TeeExit exit = TeeExit::kFailed;
  Status status;            // why it could not record, if so
  bool keep_rings = false;  // as of a run
};

// Until the input ends or SIGINT, SIGTERM or SIGHUP comes; what is in the pipe
// by then is taken, too.
TeeOutcome RunTee(const Environment& environment, const TeeOptions& options);

}  // namespace hangscope

#endif
