// The rings of hardware traces behind a perf.data: which spans of which ring the file has, and what
// a window takes of them.
#ifndef HANGSCOPE_PERF_TRACE_RINGS_H
#define HANGSCOPE_PERF_TRACE_RINGS_H

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "perf/perf_file.h"
#include "perf/perf_side_band.h"
#include "window/find_window.h"

namespace hangscope {

// What one CPU has in a span of a sink that several write into (perf/traces/shared_sinks.h).
struct PerfTraceShare {
  int cpu = -1;          // -1: no CPU has the id, or no frame said which it was
  uint8_t trace_id = 0;  // 0: not known
  uint64_t bytes = 0;
  std::vector<int> threads;  // that ran there meanwhile, as far as known
  TimeSpan ran;              // from the first one's coming to the last one's leaving
};

// What one PERF_RECORD_AUX tells; or, where a snapshot has no such record, one AUXTRACE; or what
// one sample has.
struct PerfAuxSpan {
  uint64_t begin_offset = 0;  // of the ring's history, with restarts undone
  uint64_t end_offset = 0;
  TimeSpan time;
  bool begin_known = false;  // else it began at some time before, and nothing says when
  bool end_known = true;     // else it may have gone on until some time later
  uint64_t flags = 0;        // PERF_AUX_FLAG_*
  int pid = -1;
  int tid = -1;
  uint64_t held_bytes = 0;             // in the file
  bool newer_held = false;             // the file has its end in a piece that begins later
  std::vector<PerfTraceShare> shares;  // by CPU; empty: all of it is the ring's CPU's
  bool sink_overwritten = false;       // only the newest of what was written into its sink
  bool restarted = false;              // the ring's offsets began anew here
  bool sampled = false;                // what a sample has: the newest bytes at its time
};

// Bytes of a ring that the file has: an AUXTRACE.
struct PerfAuxPiece {
  size_t trace = 0;           // of PerfFile::aux()
  uint64_t begin_offset = 0;  // with restarts undone
  uint64_t end_offset = 0;
  TimeNs seen = -1;  // the newest time before it in the file; -1: none
  bool restarted = false;
};

struct PerfAuxRing {
  RingName name;
  int cpu = -1;                      // of the ring, or of a thread's ring, the last that it was on
  std::vector<PerfAuxSpan> spans;    // by offset
  std::vector<PerfAuxPiece> pieces;  // in the order of the file
  uint64_t bytes_told = 0;           // by AUX records
  uint64_t bytes_held = 0;           // in the file, each once
  uint64_t bytes_twice = 0;          // that snapshots have again
  uint64_t restarts = 0;             // its offsets began anew: they wrapped, or it was another ring
  // Of pieces in samples (perf record --aux-sample): between them is what no sample has, and two
  // may have the same bytes.
  bool sampled = false;
};

// Why the file has not all of a span: a ring that overwrites itself had newer bytes in its place.
GapReason ReasonOfMissing(const PerfAuxSpan& span);

// Takes a file's records in their order.
class TraceRingsReader {
 public:
  // `tracer`: "cs_etm", names the rings. `file` must outlive it.
  TraceRingsReader(const PerfFile& file, std::string tracer);
  // `newest`: of this and those before. A sample tells nothing but the trace in it.
  void Add(const PerfRecord& record, TimeNs newest);
  // To be called once, after all records. `until`: to when it was recorded, where that is known to
  // be later than the newest record.
  void Finish(TimeNs until);

  const std::vector<PerfAuxRing>& rings() const { return rings_; }
  std::vector<PerfAuxRing>& rings() { return rings_; }
  // CPUs where somebody came or was traced from then on.
  std::set<int> CpusWithStarts() const;
  // What came in there counts as traced.
  void TraceAllThatCame();
  TimeNs newest() const { return newest_; }
  // Threads that a tracer followed.
  const std::set<int>& traced() const { return traced_; }
  // Only after Finish. `whole_machine`: everybody was traced.
  RingHistory HistoryOf(const PerfAuxRing& ring, bool whole_machine) const;

 private:
  struct Reported {
    PerfAux aux;
    TimeNs time = 0;
    int pid = -1;
    int tid = -1;
    int cpu = -1;
  };
  struct Start {
    TimeNs time = 0;
    int tid = -1;
    int cpu = -1;
    int by = -1;  // who ran when it was recorded
    bool operator<(const Start& other) const { return time < other.time; }
  };
  struct Told {  // of one ring
    std::vector<Reported> spans;
    std::vector<Start> starts;
    std::vector<PerfAuxPiece> pieces;
  };

  int64_t KeyOf(int cpu, int tid) const { return per_thread_ ? tid : cpu; }
  std::map<int64_t, Told> ByRing() const;
  void MakeRing(int64_t key, Told told);
  void MakeSpans(const std::vector<Reported>& told, const std::vector<Start>& starts,
                 PerfAuxRing* ring) const;
  void MakeSpansOfPieces(PerfAuxRing* ring) const;
  void MakeSpansOfSamples(PerfAuxRing* ring) const;
  static void CountHeld(PerfAuxRing* ring);

  const PerfFile& file_;
  const std::string tracer_;
  bool per_thread_ = false;
  bool sampled_ = false;  // the traces are in samples: no AUX record tells of bytes in the file
  TimeNs newest_ = -1;
  Told told_;  // of all rings: whether these are threads' is known at the end
  std::set<int> traced_;
  std::vector<PerfAuxRing> rings_;
};

}  // namespace hangscope

#endif
