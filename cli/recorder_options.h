// The options that every recorder has: run, tee and watch.
#ifndef HANGSCOPE_CLI_RECORDER_OPTIONS_H
#define HANGSCOPE_CLI_RECORDER_OPTIONS_H

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "act/hang_action.h"
#include "base/status.h"
#include "code/elf_reader.h"
#include "observe/drain.h"
#include "observe/observer_options.h"
#include "observe/recording.h"
#include "options.h"
#include "ring/ring_format.h"
#include "run/recording_places.h"
#include "stream/place_rule.h"

namespace hangscope::cli {

// As text until Resolve.
struct RecorderWords {
  std::string prefix;
  std::string size = "500M";
  std::string keep = "3";
  std::string stall = "10";
  std::string heartbeat = "5";
  std::string elf;
  std::string log;
  std::string max_snapshots = "2";
  std::string compress;
  std::string memory = "64M";
  bool lossless = false;
  std::string place_regex;
  std::vector<std::string> triggers;
  std::string trigger_rate;
  std::string trigger_silence;
  std::string trigger_quiet = "1";
  std::string post;
  bool json = false;
  bool keep_rings = false;
  bool quiet = false;

  void AddTo(OptionParser* options);
};

// The resolved ones, and what they keep alive.
struct Recorder {
  RingGeometry geometry;
  StagingOptions stages;
  ObserverOptions observer;
  std::unique_ptr<ElfReader> elf;
  std::unique_ptr<PlaceRule> place_rule;
  SystemClock clock;
  Environment environment;
  int log_fd = 2;
};

// Where `words` name no prefix: makes the place of a recording called `name`, and sets the prefix
// there. Nothing where they name one. To be called when all else is resolved, for it leaves a
// folder.
Result<std::optional<RecordingPlace>> MakePlaceUnlessNamed(RecorderWords* words,
                                                           const std::string& name,
                                                           ObserverOptions* observer);

// Where a recorded stream goes on to, if wanted: traces are withheld from a
// terminal, and the live line there makes room.
PassthroughOptions PassTo(int fd, bool wanted, const NarratorOptions& narrator);

Result<HangAction> ParseOnHang(const std::string& text);
Status ParseActOn(const std::string& text, ActOn* act_on);
Result<int> ParseMaxSnapshots(const std::string& text);

// `longest_name` is the longest file name a ring will have.
Status Resolve(const RecorderWords& words, size_t longest_name, Recorder* recorder);

}  // namespace hangscope::cli

#endif
