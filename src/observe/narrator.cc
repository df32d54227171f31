#include "observe/narrator.h"

#include <fmt/format.h>

#include "base/units.h"
#include "snapshot/manifest_writer.h"
#include "verdict/json.h"
#include "verdict/text.h"

namespace hangscope {

void Narrator::Say(const std::string& text, const std::string& json) {
  if (options_.json) {
    options_.write(json + "\n");
    return;
  }
  if (text.empty()) return;
  const std::string message(
      options_.live_line->exchange(false, std::memory_order_relaxed) ? kClearLine : "");
  options_.write(message + text + "\n");
}

void Narrator::Beat(const Heartbeat& beat) {
  if (options_.quiet) return;
  if (options_.json) return Say("", HeartbeatJson(beat, start_));
  if (!options_.live) return Say("hangscope: " + HeartbeatText(beat), "");
  std::string text = "hangscope: " + LiveHeartbeatText(beat);
  const auto columns =
      static_cast<size_t>(std::max(20, options_.columns ? options_.columns() : 80));
  if (text.size() >= columns) {
    text.resize(columns - 1);
    // Not in the middle of a character.
    while (!text.empty() && (static_cast<unsigned char>(text.back()) & 0xc0) == 0x80)
      text.pop_back();
    if (!text.empty() && static_cast<unsigned char>(text.back()) >= 0xc0) text.pop_back();
  }
  options_.write(std::string(kClearLine) + text);
  options_.live_line->store(true, std::memory_order_release);
}

void Narrator::Announce(const Verdict& verdict, TimeNs wall, const std::string& snapshot,
                        const std::string& contents) {
  std::string text =
      VerdictText(verdict, start_, snapshot.empty() ? "" : snapshot + "/   " + contents);
  text.pop_back();
  Say(text, VerdictJson(verdict, "", start_, wall));
}

void Narrator::AnnounceSnapshot(const Manifest& manifest, const std::string& path, bool with_text) {
  const std::string text = fmt::format("hangscope: snapshot: {}/   {}, {}", path,
                                       ContentsText(manifest), TriggerText(manifest.trigger));
  if (with_text || options_.json) Say(text, SnapshotJson(manifest, path));
}

void Narrator::AnnounceLoss(const std::string& stream, uint64_t bytes, const std::string& why,
                            TimeNs wall) {
  Say(fmt::format("hangscope: LOST {} of {}: {}", FormatSize(bytes), stream, why),
      LossJson(stream, bytes, why, wall));
}

void Narrator::Note(const std::string& text, TimeNs wall) {
  Say("hangscope: " + text, NoteJson(text, wall));
}

void Narrator::Close() {
  if (options_.live_line->exchange(false, std::memory_order_relaxed)) options_.write(kClearLine);
}

}  // namespace hangscope
