// A window over many rings as people read it: one screen, however many rings, gaps and threads
// there are.
#ifndef HANGSCOPE_WINDOW_WINDOW_TEXT_H
#define HANGSCOPE_WINDOW_WINDOW_TEXT_H

#include <string>

#include "model/window.h"

namespace hangscope {

struct WindowTextOptions {
  TimeNs wall_minus_monotonic = 0;  // 0: not known, and times are told before the trigger
  size_t columns = 48;              // of the picture, at least 1
  size_t most_rings = 16;
  size_t most_gaps = 8;
  size_t most_tasks = 8;
};

// "window 1.98 s: 10:00:01.200 .. trigger, begins where CPU 1 was overwritten"; no newline.
std::string WindowLine(const Window& window, const WindowTextOptions& options);

// That line, a picture of each ring, the gaps, the threads that break; lines with newlines.
std::string WindowText(const Window& window, const WindowTextOptions& options);

}  // namespace hangscope

#endif
