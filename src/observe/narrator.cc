#include "observe/narrator.h"

#include <fmt/format.h>

#include <utility>

#include "base/units.h"
#include "snapshot/manifest_writer.h"
#include "verdict/json.h"
#include "verdict/text.h"

namespace hangscope {
namespace {

// Lines that are too long go on below themselves, further in; at a space where there is one.
std::string WrapLines(std::string_view text, size_t columns) {
  std::string wrapped;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    const size_t indent =
        std::min(std::min(line.find_first_not_of(' '), line.size()) + 4, columns / 2);
    for (size_t room = columns; line.size() > room; room = columns - indent) {
      const size_t at = line.rfind(' ', room);
      if (at == std::string_view::npos || at < room / 2) break;  // the terminal breaks a long word
      wrapped.append(line.substr(0, at)).append("\n").append(indent, ' ');
      line.remove_prefix(std::min(line.find_first_not_of(' ', at), line.size()));
    }
    wrapped += line;
    text.remove_prefix(end);
    if (text.empty()) break;
    wrapped += '\n';
    text.remove_prefix(1);
  }
  return wrapped;
}

// The line that matters, in colour.
std::string PaintHead(const std::string& text) {
  constexpr std::pair<std::string_view, std::string_view> kHeads[] = {
      {"hangscope: HANG", "\033[1;31m"},
      {"hangscope: DEAD", "\033[1;31m"},
      {"hangscope: LOST", "\033[1;31m"},
      {"hangscope: warning", "\033[33m"},
      {"hangscope: not progressing", "\033[33m"}};
  for (const auto& [head, colour] : kHeads) {
    if (!text.starts_with(head)) continue;
    const size_t end = std::min(text.find('\n'), text.size());
    return fmt::format("{}{}\033[0m{}", colour, text.substr(0, end), text.substr(end));
  }
  return text;
}

}  // namespace

void Narrator::Say(const std::string& text, const std::string& json) {
  if (options_.json) {
    options_.write(json + "\n");
    return;
  }
  if (text.empty()) return;
  const std::string message(
      options_.live_line->exchange(false, std::memory_order_relaxed) ? kClearLine : "");
  const std::string shown = options_.live ? WrapLines(text, Columns()) : text;
  options_.write(message + (options_.colour ? PaintHead(shown) : shown) + "\n");
}

size_t Narrator::Columns() const {
  return static_cast<size_t>(std::max(20, options_.columns ? options_.columns() : 80));
}

void Narrator::Beat(const Heartbeat& beat) {
  if (options_.quiet) return;
  if (options_.json) return Say("", HeartbeatJson(beat, start_));
  if (!options_.live) return Say("hangscope: " + HeartbeatText(beat), "");
  WriteLiveLine("hangscope: " + LiveHeartbeatText(beat));
}

void Narrator::WriteLiveLine(std::string text) {
  const size_t columns = Columns();
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

void Narrator::ShowWork(const std::string& text) {
  if (options_.show_work) return options_.show_work(text);
  if (options_.live && !options_.quiet) WriteLiveLine("hangscope: " + text + " ...");
}

void Narrator::Announce(const Verdict& verdict, TimeNs wall, const std::string& snapshot,
                        const std::string& contents) {
  const bool is_well = verdict.state == State::kFinished || verdict.state == State::kProgressing;
  if (options_.terse && !options_.json && is_well && snapshot.empty()) return;
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

void Narrator::Remark(const std::string& text, TimeNs wall) {
  if (!options_.terse || options_.json) Note(text, wall);
}

void Narrator::Note(const std::string& text, TimeNs wall) {
  Say("hangscope: " + text, NoteJson(text, wall));
}

void Narrator::Close() {
  if (options_.live_line->exchange(false, std::memory_order_relaxed)) options_.write(kClearLine);
}

}  // namespace hangscope
