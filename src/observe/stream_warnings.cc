#include "observe/stream_warnings.h"

#include <fmt/format.h>

#include <cerrno>
#include <string>

#include "base/status.h"
#include "base/units.h"

namespace hangscope {

void StreamWarnings::Report(bool with_growth) {
  const auto& streams = recording_.streams();
  reported_.resize(streams.size());
  for (size_t i = 0; i < streams.size(); ++i) {
    const RingFill fill = streams[i].ring->fill();
    ReportDisk(streams[i], fill, &reported_[i]);
    ReportNotPassedOn(streams[i], with_growth, &reported_[i]);
    ReportLost(streams[i], fill, with_growth, &reported_[i]);
  }
}

void StreamWarnings::ReportDisk(const RecordedStream& stream, const RingFill& fill,
                                Reported* reported) {
  const std::string& name = stream.ring->stream_name();
  const std::string& ring = stream.ring->prefix();
  if (fill.failing != reported->failing) {
    narrator_.Note(fill.failing
                       ? fmt::format("{}: cannot write '{}': {}; the newest is kept in memory",
                                     name, ring, ErrorText(stream.ring->last_error()))
                       : fmt::format("{}: '{}' can be written again", name, ring),
                   clock_.Wall());
    reported->failing = fill.failing;
  }
  if (fill.gave_up_compression && !reported->plain) {
    narrator_.Note(
        fmt::format(
            "{}: comes faster than it can be compressed; what is too fast is recorded plain", name),
        clock_.Wall());
    reported->plain = true;
  }
}

void StreamWarnings::ReportNotPassedOn(const RecordedStream& stream, bool with_growth,
                                       Reported* reported) {
  const uint64_t bytes = stream.drain->not_passed_on();
  if (bytes == reported->not_passed_on || (reported->not_passed_on != 0 && !with_growth)) return;
  const int error = stream.drain->passthrough_error();
  const std::string why = error != 0 && error != EPIPE ? "it cannot be written: " + ErrorText(error)
                          : recording_.lossless()
                              ? "its reader is gone, or had not taken it when hangscope ended"
                              : "whoever reads it is too slow or gone (--lossless waits)";
  narrator_.Note(fmt::format("{}: {} recorded but not passed on, {}", stream.ring->stream_name(),
                             FormatSize(bytes - reported->not_passed_on), why),
                 clock_.Wall());
  reported->not_passed_on = bytes;
}

void StreamWarnings::ReportLost(const RecordedStream& stream, const RingFill& fill,
                                bool with_growth, Reported* reported) {
  if (fill.lost_bytes == reported->lost || (reported->lost != 0 && !with_growth)) return;
  const std::string& ring = stream.ring->prefix();
  const std::string why =
      fill.lost_errno == 0 ? fmt::format("the disk of '{}' is slower than the stream", ring)
                           : fmt::format("cannot write '{}': {}", ring, ErrorText(fill.lost_errno));
  narrator_.AnnounceLoss(stream.ring->stream_name(), fill.lost_bytes - reported->lost, why,
                         clock_.Wall());
  reported->lost = fill.lost_bytes;
}

void StreamWarnings::ReportUnsearched(uint64_t bytes, bool with_growth) {
  if (bytes == 0 || (unsearched_reported_ && !with_growth)) return;
  narrator_.Note(
      fmt::format("warning: {} passed without being searched for --trigger: {}", FormatSize(bytes),
                  "the ring had overwritten them; a larger --size helps"),
      clock_.Wall());
  unsearched_reported_ = true;
}

}  // namespace hangscope
