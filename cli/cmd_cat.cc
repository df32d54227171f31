// hangscope cat: docs/hangscope-cat.md.
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "base/file_system.h"
#include "base/units.h"
#include "commands.h"
#include "help/all_helps.h"
#include "options.h"
#include "ring/history.h"
#include "run/recording_places.h"
#include "snapshot/recording_kind.h"

namespace hangscope::cli {
namespace {

constexpr int kLooksForHeir = 20;  // a guard takes over from a recorder that was killed
constexpr auto kFollowInterval = std::chrono::milliseconds(50);

void AnnounceLoss(const Loss& loss) {
  PrintNote(fmt::format("{} missing, bytes {}..{} of the stream ({})", FormatSize(loss.bytes()),
                        loss.begin, loss.end, LossReasonName(loss.reason)));
}

void AnnounceDamage(uint32_t segments) {
  if (segments == 0) return;
  PrintNote(segments == 1
                ? "1 segment is damaged, and its bytes are left out"
                : fmt::format("{} segments are damaged, and their bytes are left out", segments));
}

int Print(const std::string& prefix, bool follow) {
  auto reader = BlockReader::Open(PosixFileSystem(), prefix);
  if (!reader.ok()) return Fail(reader.status());
  HistoryPrinter printer(
      &*reader, [](std::string_view text) { return WriteOut(text); }, AnnounceLoss);
  int looks_without_writer = 0;
  while (follow) {
    if (!printer.PrintAvailable()) return kExitClean;
    // Whether it still lives is asked before the last look, so that nothing that
    // it wrote in between is missed.
    looks_without_writer = reader->HasWriter() ? 0 : looks_without_writer + 1;
    const bool ended = reader->finished() || looks_without_writer > kLooksForHeir;
    if (Status status = reader->Refresh(); !status.ok()) break;
    if (ended) break;
    std::this_thread::sleep_for(kFollowInterval);
  }
  if (printer.PrintRest()) AnnounceDamage(reader->damaged_segments());
  return kExitClean;
}

}  // namespace

int CatCommand(const std::vector<std::string>& words) {
  OptionParser parser(CatHelp());
  std::string target;
  std::string stream;
  bool follow = false;
  parser.Positional("target", &target);
  parser.Option("--stream", &stream);
  parser.Flag("--follow", &follow);
  if (const auto exit = parser.Parse(words)) return *exit;
  if (Status status = ChooseNewest("recording", NewestRecording, &target); !status.ok())
    return Fail(status);
  std::vector<HistorySource> sources = FindHistory(PosixFileSystem(), target);
  if (sources.empty()) {
    if (Status status = CheckForSnapshot(PosixFileSystem(), target); !status.ok())
      return Fail(status);
    return Fail(Status::NotFound(fmt::format(
        "'{}' is no recording of output: there is no '{}.index', and no stream in a folder of "
        "that name",
        target, target)));
  }
  if (!stream.empty())
    std::erase_if(sources, [&](const HistorySource& s) { return s.stream != stream; });
  // A stream on which nothing came is no choice.
  if (sources.size() > 1) {
    std::vector<HistorySource> filled;
    for (const HistorySource& source : sources) {
      auto reader = BlockReader::Open(PosixFileSystem(), source.prefix);
      if (reader.ok() && reader->end_offset() > 0) filled.push_back(source);
    }
    if (!filled.empty()) sources = filled;
  }
  // Who prints to both mostly prints to the first.
  if (sources.size() > 1 && sources[0].stream == "stdout") {
    PrintNote(fmt::format("this is stdout; --stream {} prints what came there", sources[1].stream));
    sources.resize(1);
  }
  if (sources.size() != 1) {
    std::string names;
    for (const HistorySource& source : sources)
      names += (names.empty() ? "" : ", ") + source.stream;
    return Fail(Status::Usage(
        sources.empty() ? fmt::format("'{}' has no stream '{}'", target, stream)
                        : fmt::format("'{}' has several streams ({}); choose one with --stream",
                                      target, names)));
  }
  return Print(sources[0].prefix, follow);
}

}  // namespace hangscope::cli
