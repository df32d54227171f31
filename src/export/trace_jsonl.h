// A trace as JSON Lines, for programs: docs/json.md has the fields.
#ifndef HANGSCOPE_EXPORT_TRACE_JSONL_H
#define HANGSCOPE_EXPORT_TRACE_JSONL_H

#include "export/trace_output.h"
#include "export/trace_writer.h"

namespace hangscope {

// A line for what is known beforehand, one for each event and loss, one for the end.
class TraceJsonWriter final : public TraceWriter {
 public:
  // `file` outlives it.
  explicit TraceJsonWriter(File& file) : output_(file) {}

  Status Begin(const TraceHead& head) override;
  Status Write(const TraceEvent& event) override;
  Status Write(const TraceLoss& loss) override;
  Status End(const TraceEnd& end) override;

 private:
  TraceOutput output_;
  const TraceHead* head_ = nullptr;
  std::string line_;
};

}  // namespace hangscope

#endif
