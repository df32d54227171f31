// `hangscope watch`: polls targets without stopping them, and says what is wrong with them.
#ifndef HANGSCOPE_WATCH_WATCH_SESSION_H
#define HANGSCOPE_WATCH_WATCH_SESSION_H

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/file_system.h"
#include "device/device_file.h"
#include "scope/scope_view.h"
#include "watch/live_screen.h"
#include "watch/rotated_log.h"
#include "watch/target_acts.h"

namespace hangscope {

struct WatchOptions {
  std::vector<ScopeSource> sources;
  std::vector<DeviceSpec> devices;
  TimeNs interval = 100 * kMillisecond;
  TimeNs stall = 5 * kSecond;
  TimeNs length = 0;                        // 0: until the targets end
  uint64_t budget_bytes_per_s = 64u << 20;  // that polls may read
  bool exit_on_hang = false;
  bool json = false;
  RotatedLogOptions log;  // without a path: none
  bool dump_all = false;  // words that a program wants dumped are in the dumps of the log
  TimeNs dump_every = 0;  // into the log, of all there is; 0: at the beginning, findings, the end
  std::string metrics;    // HOST:PORT or a path; empty: none
  WatchActOptions acts;
  std::string junit_path;  // empty: none
};

struct WatchEnvironment {
  FileSystem* files = nullptr;
  Clock* clock = nullptr;
  // whole lines, for whoever called; false: nobody listens, and the watch ends
  std::function<bool(std::string_view)> say;
  // What is going on now and may take a while, until the next call of it or of `say`, empty:
  // nothing any more. Not called while the screen is open; empty: nobody wants to know.
  std::function<void(const std::string&)> show_work = {};
  std::function<bool()> terminal_may_be_read;  // by a process in the background it may not
  int terminal_fd = -1;                        // where ENTER resumes paused cores; -1: none
  // The live view's, which then has the terminal until the end: what there is to say is said behind
  // it, and terminal_fd is not read. Null: none.
  LiveScreen* screen = nullptr;
  // SIGWINCH, SIGTSTP, SIGCONT are for the screen; SIGINT, SIGTERM, SIGHUP, SIGQUIT end it;
  // SIGUSR1 prints the table, SIGUSR2 takes a snapshot; -1: none
  int signal_fd = -1;
  std::string control_folder;  // for the control socket; empty: none
  // The prefix of snapshots: called once, when there is something to keep, or may be. May make a
  // folder.
  std::function<Result<std::string>()> make_prefix;
};

enum class WatchExit { kClean = 0, kHang = 1, kUsage = 2, kFailed = 3, kInterrupted = 130 };

struct WatchOutcome {
  WatchExit exit = WatchExit::kFailed;
  Status status;  // why it failed, if so
};

// Until all targets have ended, the time is over, a signal comes, or, if that is wanted, something
// bad is found.
WatchOutcome RunWatch(const WatchEnvironment& environment, const WatchOptions& options);

}  // namespace hangscope

#endif
