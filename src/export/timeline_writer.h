// A format that is the picture of a trace (export/timeline.h): a sink with a begin and an end of
// its own.
#ifndef HANGSCOPE_EXPORT_TIMELINE_WRITER_H
#define HANGSCOPE_EXPORT_TIMELINE_WRITER_H

#include "base/file_system.h"
#include "export/timeline.h"

namespace hangscope {

// `Sink`: a TimelineSink of a File&, with Begin(TraceHead) before anything is drawn and
// End(TraceEnd, troubles) behind all.
template <typename Sink>
class TimelineWriter final : public TraceWriter {
 public:
  // `file` outlives it.
  explicit TimelineWriter(File& file) : sink_(file) {}

  Status Begin(const TraceHead& head) override {
    const Status begun = sink_.Begin(head);
    return begun.ok() ? builder_.Begin(head) : begun;
  }
  Status Write(const TraceEvent& event) override { return builder_.Write(event); }
  Status Write(const TraceLoss& loss) override { return builder_.Write(loss); }
  Status End(const TraceEnd& end) override {
    const Status drawn = builder_.End(end);
    if (!drawn.ok()) return drawn;
    std::vector<std::string> troubles = builder_.notes();
    for (std::string& warning : builder_.warnings()) troubles.push_back(std::move(warning));
    return sink_.End(end, troubles);
  }

 private:
  Sink sink_;
  TimelineBuilder builder_{sink_};
};

}  // namespace hangscope

#endif
