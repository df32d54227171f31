// CoreSight sinks that several CPUs share (N:1). Linux's drivers empty one only when the last of
// its tracers stops, and all of it into that CPU's AUX area. How a byte travels from there:
//
//   file     AUXTRACE: a piece of the area of the CPU that stopped last, the carrier   PerfAuxPiece
//   span     PERF_RECORD_AUX: what one drain of the sink put there                      PerfAuxSpan
//   frames   16 bytes that say whose each byte is, by a trace id         hwtrace/coresight_frames.h
//   share    the bytes of one id in a span; its CPU by perf/traces/trace_ids.h              PerfTraceShare
//   ring     of the CPU: its shares of all drains, whoever carried them       window/sink_drains.h
//   window   over these rings                                                 window/find_window.h
//
// An overwritten sink begins with a barrier packet, or is told as truncated: what is older is lost,
// whoever wrote it.
#ifndef HANGSCOPE_PERF_SHARED_SINKS_H
#define HANGSCOPE_PERF_SHARED_SINKS_H

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "perf/traces/trace_ids.h"
#include "perf/traces/trace_rings.h"
#include "window/sink_drains.h"

namespace hangscope {

class SharedSinks {
 public:
  // Bytes of a trace (PerfAuxPiece::trace), from its own begin on; fewer where they are not there.
  using ReadBytes = std::function<std::string(size_t trace, uint64_t begin, uint64_t bytes)>;

  // `tracer` names the rings.
  SharedSinks(ReadBytes read, std::string tracer)
      : read_(std::move(read)), tracer_(std::move(tracer)) {}

  // Reads the frames of all spans, and sets their `shares` where others than the ring's CPU have
  // bytes in it. `came`: CPUs where somebody came that was traced.
  // `one_sink`: that of all.
  void Read(const TraceIds& ids, const std::set<int>& came, bool one_sink,
            std::vector<PerfAuxRing>* rings);
  bool any() const { return !sinks_.empty(); }
  // Whether this CPU's trace goes through one of them: its ring is among those that they add.
  bool Has(int cpu) const;
  // Adds their rings, and says of the shares who ran meanwhile. `input` has its runs already.
  void AddTo(bool whole_machine, TimeNs recorded_until, std::vector<PerfAuxRing>* rings,
             WindowInput* input) const;

 private:
  struct Place {  // of a span
    size_t ring = 0;
    size_t span = 0;
  };
  struct Sink {
    std::set<int> cpus;
    std::vector<Place> drains;  // by time
  };

  void ReadRing(const TraceIds& ids, PerfAuxRing* ring) const;
  void FindSinks(const TraceIds& ids, const std::set<int>& came, bool one_sink,
                 const std::vector<PerfAuxRing>& rings);
  DrainedSink Drained(const Sink& sink, const std::vector<PerfAuxRing>& rings) const;

  const ReadBytes read_;
  const std::string tracer_;
  std::vector<Sink> sinks_;
};

}  // namespace hangscope

#endif
