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

// What one PERF_RECORD_AUX tells; or, where a snapshot has no such record, one AUXTRACE.
struct PerfAuxSpan {
  uint64_t begin_offset = 0;  // of the ring's history, with restarts undone
  uint64_t end_offset = 0;
  TimeSpan time;
  bool begin_known = false;  // else it began at some time before, and nothing says when
  uint64_t flags = 0;        // PERF_AUX_FLAG_*
  int pid = -1;
  int tid = -1;
  uint64_t held_bytes = 0;  // in the file
};

// Bytes of a ring that the file has: an AUXTRACE.
struct PerfAuxPiece {
  size_t trace = 0;           // of PerfFile::aux()
  uint64_t begin_offset = 0;  // with restarts undone
  uint64_t end_offset = 0;
  TimeNs seen = -1;  // the newest time before it in the file; -1: none
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
};

// Takes a file's records in their order.
class TraceRingsReader {
 public:
  // `tracer`: "cs_etm", names the rings. `file` must outlive it.
  TraceRingsReader(const PerfFile& file, std::string tracer);
  void Add(const PerfRecord& record);
  // To be called once, after all records. `until`: to when it was recorded, where that is known to
  // be later than the newest record.
  void Finish(TimeNs until);

  const std::vector<PerfAuxRing>& rings() const { return rings_; }
  // Threads that a tracer followed.
  const std::set<int>& traced() const { return traced_; }
  // Only after Finish. `whole_machine`: everybody was traced.
  std::vector<RingHistory> Histories(bool whole_machine) const;

 private:
  struct Reported {
    PerfAux aux;
    TimeNs time = 0;
    int pid = -1;
    int tid = -1;
  };
  struct Start {
    TimeNs time = 0;
    int tid = -1;
    bool operator<(const Start& other) const { return time < other.time; }
  };

  int64_t KeyOf(int cpu, int tid) const { return per_thread_ ? tid : cpu; }
  void MakeRing(int64_t key);
  void MakeSpans(const std::vector<Reported>& told, const std::vector<Start>& starts,
                 PerfAuxRing* ring) const;
  void MakeSpansOfPieces(PerfAuxRing* ring) const;
  void CountHeld(PerfAuxRing* ring) const;
  RingHistory HistoryOf(const PerfAuxRing& ring, bool whole_machine) const;

  const PerfFile& file_;
  const std::string tracer_;
  bool per_thread_ = false;
  size_t next_trace_ = 0;
  TimeNs newest_ = -1;
  std::map<int64_t, std::vector<Reported>> told_;
  std::map<int64_t, std::vector<Start>> starts_;
  std::map<int64_t, std::vector<PerfAuxPiece>> pieces_;
  std::set<int> traced_;
  std::vector<PerfAuxRing> rings_;
};

}  // namespace hangscope

#endif
