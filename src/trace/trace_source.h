// A recording as one trace: a snapshot, a scope wherever it lies, a perf.data file, a stream with a
// simulator's instruction trace.
#ifndef HANGSCOPE_TRACE_TRACE_SOURCE_H
#define HANGSCOPE_TRACE_TRACE_SOURCE_H

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/file_system.h"
#include "model/trace.h"
#include "perf/code/code_places.h"
#include "scope/scope_view.h"

namespace hangscope {

struct TraceRequest {
  // the target: as for hangscope show; or a snapshot, a perf.data file, a ring, a log
  ScopeSource source;
  // what lies outside is left out; below 0: so long before the end of what is held
  std::optional<TimeNs> from, to;
  std::string cores;          // "3", "0-7", a name; of tracks; empty: all
  std::string task;           // a number or a name; empty: all
  std::string event;          // a kind's name; empty: all
  bool streams = true;        // instruction traces as functions
  bool threads = true;        // of a snapshot: how they stood
  size_t branches = 10'000;   // of each hardware trace only the newest; 0: none
  CodePlaces code = {};       // that hardware traces are followed through
  uint64_t stream_bytes = 0;  // of an instruction trace only the newest; a trouble says so. 0: all
  size_t most_events = 0;     // only the newest; 0: all
  // Asked now and then while it is looked through beforehand, with how far that is (0 to 1); false:
  // opening fails. Empty: always.
  std::function<bool(double)> go_on = {};
};

// One thread.
class TraceSource {
 public:
  virtual ~TraceSource() = default;
  virtual const TraceHead& head() const = 0;
  // The next over all tracks, in the order of time; false: that was all, and *item means nothing.
  // Fails only where nothing more can be read; what is damaged is a loss, or a trouble of head or
  // end. *item is the caller's, who best gives the same again: its memory, for values and texts, is
  // used for the next one.
  virtual Result<bool> Next(TraceItem* item) = 0;
  // Behind the last.
  virtual const TraceEnd& end() const = 0;
  // How far it is, 0 to 1.
  virtual double progress() const = 0;
};

// The event that *item becomes, as a new one but for its values: those of the one before, whose
// memory is used again.
TraceEvent& BeginEvent(TraceItem* item);

// Parts that cannot be read are troubles of the head; fails where none can. `files` and `clock`
// outlive it.
Result<std::unique_ptr<TraceSource>> OpenTraceSource(FileSystem& files, Clock& clock,
                                                     const TraceRequest& request);

}  // namespace hangscope

#endif
