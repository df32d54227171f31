// How far long work is.
#ifndef HANGSCOPE_CLI_PROGRESS_BAR_H
#define HANGSCOPE_CLI_PROGRESS_BAR_H

#include <string>

#include "base/clock.h"

namespace hangscope::cli {

// A bar on stderr, where that is a terminal, for what takes longer than a second.
class ProgressBar {
 public:
  // `beside_output`: what is written goes to standard output; a bar amid it on one terminal would
  // spoil both. `quiet`: the user asked for none.
  ProgressBar(Clock& clock, bool beside_output, bool quiet);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // Another part of the work. What is shown of the one before goes, so that lines may be printed.
  void Begin(const char* work);
  // `part`: 0 to 1.
  void Show(double part);

 private:
  Clock& clock_;
  const TimeNs start_;
  const bool wanted_;
  const char* work_ = "";
  TimeNs shown_ = 0;
};

// The same of work of which nobody knows how far it is: a line that says what goes on.
class WorkLine {
 public:
  explicit WorkLine(bool wanted);
  ~WorkLine() { Show(""); }
  WorkLine(const WorkLine&) = delete;
  WorkLine& operator=(const WorkLine&) = delete;

  // Empty: nothing any more; so that lines may be printed.
  void Show(const std::string& text);

 private:
  const bool wanted_;
  bool is_shown_ = false;
};

}  // namespace hangscope::cli

#endif
