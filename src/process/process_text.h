// What why says about processes without instrumentation, as people read it: on one screen, the
// verdict first.
#ifndef HANGSCOPE_PROCESS_PROCESS_TEXT_H
#define HANGSCOPE_PROCESS_PROCESS_TEXT_H

#include <cstddef>
#include <string>

#include "model/process.h"
#include "process/process_verdict.h"

namespace hangscope {

// What a text about processes is made from. All of it outlives this.
struct ProcessScene {
  const SystemSample* look = nullptr;  // the newest; with one process at least, the asked one first
  const ProcessJudgement* judgement = nullptr;
  bool all_threads = false;  // rather than as many as fit
  bool all_stacks = false;
  size_t columns = 80;  // of a line; longer names are cut
  size_t lines = 22;    // of the screen
  // How those stand of whom nothing is found; a line. Empty: the findings say it all.
  std::string standing = {};
  std::string kept = {};  // of one that is no more: "as its core dump has it"
};

// The findings, in lines; empty: none.
std::string ProcessFindingsText(const ProcessScene& scene);
// "abba, process 4711: 3 threads, 3 wait; nobody was stopped"; one line without an end.
std::string ProcessHead(const ProcessScene& scene);
// All of it, in lines.
std::string ProcessText(const ProcessScene& scene);

// `text` in at most `columns` columns, with "..." where something was cut off; by characters, not
// bytes.
std::string CutToColumns(const std::string& text, size_t columns);

}  // namespace hangscope

#endif
