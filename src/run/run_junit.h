// How a run ended as one case of JUnit XML: --junit.
#ifndef HANGSCOPE_RUN_RUN_JUNIT_H
#define HANGSCOPE_RUN_RUN_JUNIT_H

#include "observe/observer.h"
#include "observe/recording.h"
#include "run/run_session.h"

namespace hangscope {

struct RunEnd {
  int pid = 0;  // the program's
  ChildExit exit;
  bool by_hang = false;     // hangscope ended it: --on-hang kill
  bool by_timeout = false;  // or --timeout
  int status = 0;           // of hangscope itself
  Verdict verdict;          // once the streams had ended
};

// Writes options.junit_path.
Status WriteRunJunit(FileSystem& files, const RunOptions& options, const RunEnd& end,
                     const Observer& observer, const Recording& recording);

}  // namespace hangscope

#endif
