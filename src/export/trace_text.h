// A trace as people read it: a line an event, as hangscope show prints them, over all tracks.
#ifndef HANGSCOPE_EXPORT_TRACE_TEXT_H
#define HANGSCOPE_EXPORT_TRACE_TEXT_H

#include <vector>

#include "export/trace_output.h"
#include "export/trace_writer.h"

namespace hangscope {

// What times count where the head says that they do: "ticks", "bytes of the stream".
const char* CountsWord(const TraceHead& head);

// Losses, gaps and stale spans of the window are lines, too, each where it belongs; how all stood
// comes last. Anchors, which only date other records, are left out.
class TraceTextWriter final : public TraceWriter {
 public:
  // `file` outlives it.
  explicit TraceTextWriter(File& file) : output_(file) {}

  Status Begin(const TraceHead& head) override;
  Status Write(const TraceEvent& event) override;
  Status Write(const TraceLoss& loss) override;
  Status End(const TraceEnd& end) override;

 private:
  // A line that is known beforehand, and stands at its time.
  struct Note {
    TimeNs time = 0;
    std::string line;
  };

  std::string TimeText(TimeNs time, bool ambiguous) const;
  std::string Start(const std::string& time, const std::string& track) const;
  std::string TrackName(size_t track) const;
  std::string RingText(const RingName& ring) const;
  std::string SpanText(const TimeSpan& span) const;
  std::string WhoText(const TraceWho& who, const TraceEnd& end) const;
  void MakeNotes(const Window& window);
  Status AddNotesUntil(TimeNs time);
  std::string StandingText(const TraceStanding& standing, const TraceEnd& end) const;

  TraceOutput output_;
  const TraceHead* head_ = nullptr;
  size_t name_width_ = 0;
  std::vector<Note> notes_;  // by time
  size_t next_note_ = 0;
};

}  // namespace hangscope

#endif
