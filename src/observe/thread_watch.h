// Watches the threads of all processes of a program that `hangscope run` observes, beside its
// streams and its scope.
//
// Two kinds of looks: every thread's motion, often and for next to nothing; and what all of them
// wait for, which costs more, so only where it may have changed: on a suspicion, and when the set
// of those that have stood still for the stall time is another one.
#ifndef HANGSCOPE_OBSERVE_THREAD_WATCH_H
#define HANGSCOPE_OBSERVE_THREAD_WATCH_H

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "model/picture.h"
#include "proc/process_inspector.h"
#include "proc/thread_motion.h"
#include "why/why_process.h"

namespace hangscope {

// One thread.
class ThreadWatch {
 public:
  // `beside`: looks in a process of its own (FindProcessHangsBeside).
  ThreadWatch(Clock& clock, ProcessInspector& inspector, bool beside, TimeNs stall)
      : clock_(clock), inspector_(inspector), beside_(beside), stall_(stall) {}

  // To be called a few times a second. `pid`: the program; `processes`: all of it that lives.
  // `suspected_since`: the streams look like a hang since then, 0: they do not. `silent`: they say
  // nothing at all, and what runs may be stopped for an instant, to be seen going in circles.
  void Follow(int pid, const std::vector<int>& processes, TimeNs suspected_since, bool silent);
  // A hang is reported. While it is on, a program that attaches to the threads ends none of their
  // waits that they enter again at once.
  void SetHang(bool is_on) { motion_.KeepWaits(is_on); }
  // Another program, such as the command of --on-hang, may attach to the threads now.
  void NoteAttach() { may_attach_ = true; }
  // Before somebody acts: takes back what is said of threads that have moved by now.
  void Confirm();

  // As of now.
  const Sightings& sightings() const { return sightings_; }
  // All that was seen at the latest look, for a snapshot; empty: nothing was.
  const std::string& details() const { return details_; }
  // Why the threads could not be looked at; once each.
  std::optional<std::string> DrainWarning();

 private:
  void SampleMotion(TimeNs now);
  bool Runs(int thread) const;
  bool SomebodyRuns() const;
  bool DecidesWhoGoesOn(TimeNs now) const;
  bool IsDue(TimeNs now, TimeNs suspected_since) const;
  bool HasBeenAway(TimeNs now);
  void Look(int pid, bool silent);
  void CollectFindings(const std::vector<Finding>& found, TimeNs now);
  bool HasMoved(const Finding& finding) const;
  bool HasEnded(const Finding& finding);
  std::vector<int> StillOf(const std::vector<int>& threads, TimeNs now) const;
  bool HasLasted(TimeNs spinning_since, TimeNs now) const;
  std::vector<int> MovedLately(TimeNs now) const;
  void Sum(TimeNs now);

  Clock& clock_;
  ProcessInspector& inspector_;
  const bool beside_;
  const TimeNs stall_;
  const ProcFolder proc_{"/proc"};
  const std::string blind_ = proc_.WhyBlind();  // else nobody is looked at
  ThreadMotion motion_{proc_};
  std::vector<int> processes_;
  TimeNs next_motion_ = 0;
  bool may_attach_ = false;  // since the latest sample of the motion that was due
  TimeNs looked_ = 0;        // when the latest look began
  TimeNs looked_until_ = 0;
  TimeNs patient_after_ = 0;   // a look may take longer from then on
  TimeNs began_ = 0;           // the first call
  TimeNs spent_ = 0;           // of a processor, on all looks
  std::set<int> stood_still_;  // at the latest look
  std::vector<Finding> found_;
  std::set<int> followed_;  // of those whom findings are about: who was seen alive
  std::map<int, TimeNs> spinning_since_;
  bool looks_again_ = false;  // who moved at the latest look may be one who only wakes from a timer
  std::set<int> tickers_;     // of all looks
  ProcessStanding standing_;
  std::vector<Wait> waits_;  // of the latest look
  std::vector<int> slept_;   // likewise: threads
  Sightings sightings_;
  std::string details_;
  std::string warning_;
  std::string warned_;
};

}  // namespace hangscope

#endif
