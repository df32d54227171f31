// What the threads of a program waited for, as its snapshot has it.
#ifndef HANGSCOPE_REPORT_REPORT_THREADS_H
#define HANGSCOPE_REPORT_REPORT_THREADS_H

#include <string>

#include "base/file_system.h"
#include "model/report.h"

namespace hangscope {

// Adds the threads with their stacks, and who waits for whom, where no scope has said that already.
// `path`: JSON Lines as of hangscope why --json; nothing in them is trusted. Findings that the
// report has already get what is known here besides. Fails where the file cannot be read.
Status AddThreads(FileSystem& files, const std::string& path, Report* report);
// The same of the lines themselves, as a look at a live process has them.
void AddThreadLines(const std::string& lines, Report* report);

}  // namespace hangscope

#endif
