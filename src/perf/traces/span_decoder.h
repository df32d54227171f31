// Decodes the spans of a perf.data's hardware traces. Where the tracer goes on across them, those
// whose offsets touch are decoded as one stream, and each gets what its own bytes hold.
#ifndef HANGSCOPE_PERF_SPAN_DECODER_H
#define HANGSCOPE_PERF_SPAN_DECODER_H

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hwtrace/instruction_trace.h"
#include "perf/perf_file.h"
#include "perf/traces/trace_rings.h"

namespace hangscope {

// "cs_etm" of an event "cs_etm/@sink/u"; "trace" where none is named so.
std::string NameOfTracer(const PerfFile& file);

// Between which times something happened; nothing: no earliest, no latest is known.
struct TimeBounds {
  std::optional<TimeNs> from;
  std::optional<TimeNs> to;
};
// The same as numbers: what is not known is far away.
TimeSpan WithinOf(const TimeBounds& bounds);
TimeBounds BoundsOf(const TimeSpan& within);
// Of what stands at `offset` of a span, in the trace of `cpu`.
TimeBounds BoundsOfPlace(const PerfAuxSpan& span, const TraceSummary& summary, uint64_t offset,
                         int cpu);
TimeBounds BoundsOfBranch(const PerfAuxSpan& span, const TraceSummary& summary,
                          const TraceBranch& branch);

struct SpanDecodeRequest {
  // AUXTRACE_INFO with the trace ids that hold for the ring; empty: those that the file has there.
  std::string auxtrace_info;
  size_t first_span = 0;               // those before it are not decoded
  size_t last_branches = 64;           // of the ring, whichever spans they are in
  size_t most_discontinuities = 1000;  // of a span
  // the code of who ran on `cpu` when the span was written; -1: of whose span it is. Empty: without
  std::function<ReadCode(const PerfAuxSpan& span, int cpu)> code;
};

class SpanDecoder {
 public:
  // In memory at once. A stream that is longer is cut where it synchronises; of a span that is
  // complete in itself the newest are decoded.
  static constexpr uint64_t kMostBytes = 64u << 20;
  // Before the first span that is asked for: up to its stream's last synchronisation before.
  static constexpr uint64_t kLeadBytes = 256u << 10;

  // `file` outlives it.
  explicit SpanDecoder(PerfFile& file, uint64_t most_bytes = kMostBytes)
      : file_(file), most_bytes_(most_bytes) {}

  // Takes a file's records, before anything is decoded.
  void Add(const PerfRecord& record);

  // Offsets are of the span. Nothing for a span that was not asked for, or of which the file has no
  // bytes. Fails with a sentence where such traces cannot be decoded.
  Result<std::vector<std::optional<TraceSummary>>> Decode(const PerfAuxRing& ring,
                                                          const SpanDecodeRequest& request);
  // Some bytes of a span that the file has were not decoded: they lie apart, or are too many.
  bool left_out() const { return left_out_; }
  // A sentence: why time stamps of CoreSight have no times. Empty: they have, or there are none.
  std::string why_no_times() const;

 private:
  PerfFile& file_;
  const uint64_t most_bytes_;
  bool left_out_ = false;
  bool unconverted_times_ = false;
  std::optional<CounterConversion> counter_;
};

}  // namespace hangscope

#endif
