#include "snapshot/window_finder.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "ring/block_reader.h"

namespace hangscope {

Result<WindowChoice> ParseWindowChoice(std::string_view option, std::string_view text) {
  WindowChoice choice;
  if (text == "coherent") return choice;
  if (text == "all") {
    choice.policy = WindowPolicy::kEverything;
    return choice;
  }
  if (text == "since-last") {
    choice.policy = WindowPolicy::kSinceLast;
    return choice;
  }
  auto length = ParseTimeOrSize(option, text);
  if (!length.ok()) {
    return Status::Usage(
        fmt::format("{} '{}': a time, a size, all, since-last or coherent; for example {} 2s",
                    option, text, option));
  }
  choice.policy = length->time != 0 ? WindowPolicy::kLastTime : WindowPolicy::kLastBytes;
  choice.length = length->time;
  choice.bytes = length->bytes;
  return choice;
}

void WindowFinder::AddStreams(const std::string& folder, const Manifest& manifest, TimeNs trigger,
                              WindowInput* input) const {
  for (size_t i = 0; i < manifest.streams.size(); ++i) {
    auto reader = BlockReader::Open(files_, folder + "/" + manifest.streams[i].name);
    if (!reader.ok()) continue;
    input->rings.push_back(StreamHistory(*reader, i, manifest.streams[i]));
    // It was put there after the trigger, whatever the manifest says.
    input->rings.back().recorded_until = std::max(input->rings.back().recorded_until, trigger);
  }
}

Window WindowFinder::Find(const WindowInput& input, TimeNs trigger, bool since_last) const {
  WindowRequest request;
  request.policy = since_last ? WindowPolicy::kSinceLast : choice_.policy;
  request.trigger = trigger;
  request.length = choice_.length;
  request.bytes = choice_.bytes;
  request.last_trigger = last_trigger_;
  for (const RingHistory& ring : input.rings) {
    const RingMark* mark = FindMark(last_marks_, ring.ring);
    request.last_heads.push_back(mark == nullptr ? 0 : mark->head);
  }
  return FindWindow(input, request);
}

void WindowFinder::Remember(std::vector<RingMark> marks, TimeNs trigger) {
  last_marks_ = std::move(marks);
  last_trigger_ = trigger;
}

std::vector<RingMark> MarksOf(const WindowInput& input) {
  std::vector<RingMark> marks;
  for (const RingHistory& ring : input.rings) marks.push_back({ring.ring, ring.head, 0});
  return marks;
}

}  // namespace hangscope
