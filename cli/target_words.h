// What people write for a target, and what to tell them where it is none.
#ifndef HANGSCOPE_CLI_TARGET_WORDS_H
#define HANGSCOPE_CLI_TARGET_WORDS_H

#include <string>

#include "base/file_system.h"
#include "base/status.h"

namespace hangscope::cli {

// Of a word that names no file: "4711" becomes "pid:4711", and the name of one process likewise.
// kUsage, with their numbers, where several have that name; kNotFound, with what to give instead,
// of a folder that no command reads.
Status ResolveTarget(FileSystem& files, std::string* word);

// The process that `word` is the number or the name of, whatever files are called so; 0: there is
// none. kUsage as above.
Result<int> FindProcess(const std::string& word);

// `status`, why `target` cannot be read, with what to do instead where that is known.
Status WithAdvice(FileSystem& files, const Status& status, const std::string& target);

}  // namespace hangscope::cli

#endif
