// What subcommands share in reading options and talking to people.
#ifndef HANGSCOPE_CLI_OPTIONS_H
#define HANGSCOPE_CLI_OPTIONS_H

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "decode/elf_image.h"
#include "session/observer.h"

namespace hangscope::cli {

// Prints "hangscope: error: MESSAGE" on stderr.
void PrintError(const std::string& message);

// Parses `words`; -h prints `help` and the result says "exit 0". Errors are one
// sentence with the nearest option there is.
enum class Parsed { kGo, kHelp, kError };
Parsed Parse(CLI::App& app, const std::vector<std::string>& words, const std::string& help);

// The options that every recorder has, as text until Resolve.
struct RecorderWords {
  std::string prefix;
  std::string size = "500M";
  std::string keep = "3";
  std::string stall = "10";
  std::string heartbeat = "5";
  std::string elf;
  std::string log;
  std::string max_snapshots = "2";
  bool json = false;

  void AddTo(CLI::App& app);
};

// The resolved ones, and what they keep alive.
struct Recorder {
  RingGeometry geometry;
  ObserverOptions observer;
  std::unique_ptr<ElfImage> elf;
  SystemClock clock;
  Environment environment;
  int log_fd = 2;
};

// `longest_name` is the longest file name a ring will have.
Status Resolve(const RecorderWords& words, size_t longest_name, Recorder* recorder);

}  // namespace hangscope::cli

#endif
