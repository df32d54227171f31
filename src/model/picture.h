// What all sources of evidence say at one time, in one form: what the judge is given
// (verdict/judge_picture.h). Plain types.
#ifndef HANGSCOPE_MODEL_PICTURE_H
#define HANGSCOPE_MODEL_PICTURE_H

#include <string>
#include <vector>

#include "base/clock.h"
#include "model/finding.h"
#include "model/verdict.h"

namespace hangscope {

// A wait that was the same in all looks of its source, of somebody who did not move meanwhile.
struct Wait {
  FindingSubject who;
  std::vector<FindingSubject> whom;  // any of them could end it; never empty
  std::string doubt;                 // why others might, too; empty: nobody else can
  std::string line;                  // who waits for what, from whom, where, since when
  TimeNs since = 0;                  // monotonic; 0: not known
};

// What one source saw of those whom it watches. Each clause is for people: "4711 nginx", or "4711
// nginx waits for a connection to tcp 0.0.0.0:80".
struct Sightings {
  bool attached = false;          // there is such a source, and it can be asked
  TimeNs as_of = 0;               // monotonic: when its latest sample began; 0: none yet
  TimeNs before_that = 0;         // likewise the one before it
  bool undecided = false;         // it is about to look again
  std::vector<Finding> findings;  // that still hold
  TimeNs found_at = 0;            // monotonic: when the first of them was found
  bool of_one_instant = false;  // all of it was seen at one, as in a core dump: nothing is between
  // The others, by what they do.
  std::vector<std::string> moving;   // made progress within the stall time
  std::vector<std::string> timed;    // sleep for a set time, or woke from that and sleep so again
  std::vector<std::string> outside;  // wait for what only those can deliver who are not watched
  std::vector<std::string> halted;   // stopped: by a signal, a debugger, a freezer
  std::vector<std::string> unknown;  // stand still, and nobody knows what could end that
  std::string incomplete;            // why not all of them could be looked at; empty: all were
  // For whom it is known who could end their waits; not always all of them.
  std::vector<Wait> waits;
  // Linux threads. Of the threads of a program: those that have stood still, whatever they wait
  // for; nobody else has. Of a scope: those of `moving`, as far as they are known.
  std::vector<int> still_threads;
  std::vector<int> moving_threads;
};

struct Picture {
  TimeNs now = 0;    // monotonic, as all times here
  TimeNs start = 0;  // of the run
  // Since when time counts: before that, nobody could run, or nobody looked. 0: since the start.
  TimeNs counts_from = 0;
  Verdict streams;  // what they say by themselves (stream/judge.h); of none: as it begins
  // Since when the streams alone look like a hang, however unsure; 0: they do not.
  TimeNs suspected_since = 0;
  Sightings scope;
  Sightings threads;  // of all processes of the program
  Sightings cpus;     // what the recorded rings of its CPUs say
};

}  // namespace hangscope

#endif
