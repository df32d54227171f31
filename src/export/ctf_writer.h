// A trace in the Common Trace Format, version 1.8 (diamon.org/ctf/v1.8.3): what babeltrace2 and
// Trace Compass open.
//
//   FOLDER/metadata    what the others hold, written last
//   FOLDER/stream_N    the packets of track N
//
// Losses are in the packets' counts of discarded events, where they happened, and told by events
// hangscope:lost. Gaps and stale spans of the window are events hangscope:gap and hangscope:stale.
// What is known of the whole is in the environment.
#ifndef HANGSCOPE_EXPORT_CTF_WRITER_H
#define HANGSCOPE_EXPORT_CTF_WRITER_H

#include <memory>
#include <string>

#include "base/file_system.h"
#include "export/trace_writer.h"

namespace hangscope {

class CtfWriter final : public TraceWriter {
 public:
  // `folder` is made; where it is already, it must be empty: Begin fails else. `files` outlives
  // this.
  CtfWriter(FileSystem& files, std::string folder);
  ~CtfWriter() override;
  Status Begin(const TraceHead& head) override;
  // An event whose time is before that of its track's event before, or out of the range of CTF's
  // times, is moved to the nearest possible; the environment's times_moved counts them, and its
  // values_cut counts values that their field is too narrow for.
  Status Write(const TraceEvent& event) override;
  Status Write(const TraceLoss& loss) override;
  Status End(const TraceEnd& end) override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hangscope

#endif
