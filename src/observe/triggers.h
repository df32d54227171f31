// When snapshots are due: what fires, the quiet period after it, and how much is
// to be recorded past it.
//
// Pure: times and byte counts come in, due snapshots go out. One thread.
#ifndef HANGSCOPE_OBSERVE_TRIGGERS_H
#define HANGSCOPE_OBSERVE_TRIGGERS_H

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "model/trigger.h"

namespace hangscope {

struct TriggerOptions {
  std::vector<std::string> patterns;  // RE2, each matched line by line
  double rate_share = 0;              // of the run's own median; 0: not watched
  TimeNs rate_window = 5 * kSecond;
  TimeNs silence = 0;      // 0: not watched
  TimeNs quiet = kSecond;  // after a trigger, before the same one counts again
  Post post;
};

// "10%" or "10%/2s": a share and the window over which the rate is taken.
Status ParseTriggerRate(std::string_view option, std::string_view text, TriggerOptions* options);

// One stream, as of now.
struct StreamProgress {
  std::string name;
  uint64_t total_bytes = 0;
  TimeNs last_byte = 0;  // 0: none
  bool blocked = false;  // nobody takes what is passed on: its silence is not its own
};

// Bytes a second over the last `window`.
class RateMeter {
 public:
  explicit RateMeter(TimeNs window) : window_(window) {}
  void Add(TimeNs now, uint64_t total_bytes);
  void Forget() { samples_.clear(); }
  bool covers_window() const;
  double bytes_per_second() const;

 private:
  const TimeNs window_;
  std::deque<std::pair<TimeNs, uint64_t>> samples_;
};

// The median of any number of values in bounded memory: once there are many, it
// goes on with every second of them.
class RunningMedian {
 public:
  void Add(double value);
  size_t count() const { return values_.size(); }
  double Median() const;

 private:
  std::vector<double> values_;
  uint64_t stride_ = 1;
  uint64_t skipped_ = 0;
};

// Fires when the rate falls below a share of the median of the windows so far,
// and again only after it has recovered.
class RateWatch {
 public:
  RateWatch(double share, TimeNs window) : share_(share), window_(window), meter_(window) {}
  // What is to be told, once for each drop.
  std::optional<std::string> Sample(TimeNs now, uint64_t total_bytes);
  // Nobody looked for a while: what came meanwhile is no rate.
  void Interrupted();

 private:
  const double share_;
  const TimeNs window_;
  RateMeter meter_;
  RunningMedian median_;
  TimeNs next_window_ = 0;
  bool low_ = false;
};

struct DueSnapshot {
  Trigger trigger;
  Post post;
  bool since_last = false;
  int ticket = 0;               // who waits for it; 0: nobody
  uint64_t fired_at_bytes = 0;  // for a post in bytes
};

class Triggers {
 public:
  Triggers(const TriggerOptions& options, TimeNs start);

  // A line matched, a program ended: subject to the quiet period of triggers of
  // that name. `more` is how often it fired besides. False: suppressed.
  bool Fire(const Trigger& trigger, uint64_t more = 0);
  // Somebody asked: never suppressed. `at_once`: without a post.
  void Request(const Trigger& trigger, bool at_once, bool since_last, int ticket);

  // To be called a few times a second; rate and silence are watched here.
  void Sample(TimeNs now, const std::vector<StreamProgress>& streams);
  // Those whose post is over, as of the last Look; in the order they fired.
  std::vector<DueSnapshot> DrainDue();
  // The streams ended: all that wait.
  std::vector<DueSnapshot> DrainAll();

  // Those that fired since the last call and are not due yet.
  std::vector<DueSnapshot> DrainPutOff();
  // By name: fired since the last snapshot of that trigger, and got none.
  std::map<std::string, uint64_t> Suppressed() const;

 private:
  struct History {
    TimeNs last = 0;
    bool fired = false;
    uint64_t suppressed = 0;
  };

  bool IsDue(const DueSnapshot& snapshot) const;
  uint64_t BytesOf(const std::string& stream) const;  // of all where there is no such
  TimeNs LastByteOf(const std::string& stream) const;
  void WatchSilence();
  void WatchRate();
  void Enqueue(const Trigger& trigger, const Post& post, bool since_last, int ticket);

  const TriggerOptions options_;
  std::deque<DueSnapshot> waiting_;
  std::vector<DueSnapshot> put_off_;
  std::map<std::string, History> histories_;
  std::optional<RateWatch> rate_;
  TimeNs now_;
  std::vector<StreamProgress> streams_;
  TimeNs silent_since_;
  bool silence_told_ = false;
};

}  // namespace hangscope

#endif
