// A trace as Chrome's JSON ("Trace Event Format"): opened by chrome://tracing, ui.perfetto.dev, speedscope and others.
// docs/exports.md says what is drawn as what. Times are microseconds with three decimals, monotonic.
#ifndef HANGSCOPE_EXPORT_CHROME_WRITER_H
#define HANGSCOPE_EXPORT_CHROME_WRITER_H

#include <memory>

#include "base/file_system.h"
#include "export/trace_writer.h"

namespace hangscope {

class ChromeWriter final : public TraceWriter {
 public:
  // `file` outlives it.
  explicit ChromeWriter(File& file);
  ~ChromeWriter() override;
  Status Begin(const TraceHead& head) override;
  Status Write(const TraceEvent& event) override;
  Status Write(const TraceLoss& loss) override;
  Status End(const TraceEnd& end) override;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hangscope

#endif
