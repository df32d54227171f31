// One target under watch over all its lives: it may start again, be replaced, end or vanish, and
// none of this ends the watching of others. One thread.
#ifndef HANGSCOPE_SCOPE_WATCHED_TARGET_H
#define HANGSCOPE_SCOPE_WATCHED_TARGET_H

#include <memory>
#include <string>
#include <vector>

#include "base/file_system.h"
#include "proc/process_end.h"
#include "scope/live_scope.h"

namespace hangscope {

class WatchedTarget {
 public:
  struct Note {
    std::string event;  // for programs: "restarted", "ended", "away"
    std::string text;   // for people
  };

  // Fails where there is nothing to watch yet.
  static Result<std::unique_ptr<WatchedTarget>> Open(FileSystem& files, const ScopeSource& source,
                                                     const WatcherOptions& options, TimeNs now);

  // One look. Does not wait.
  void Poll(TimeNs now);

  // New since the last call.
  std::vector<ScopeFinding> DrainFindings();
  std::vector<Note> DrainNotes();

  // There is nothing more to look at.
  bool is_over() const { return state_ == State::kOver; }
  bool is_watched() const { return state_ == State::kWatched; }
  // The latest there was: never null.
  LiveScope& view() { return *view_; }
  const std::string& name() const { return view_->name(); }
  // Bytes read from it, over all its lives.
  uint64_t bytes_read() const { return bytes_before_ + view_->reader().bytes_read(); }
  // How often it was opened: what was known of its subjects before the latest opening means nothing
  // any more.
  int life() const { return life_; }

 private:
  enum class State { kWatched, kAway, kOver };

  WatchedTarget(FileSystem& files, ScopeSource source, WatcherOptions options)
      : files_(files), source_(std::move(source)), options_(options) {}
  Status OpenView();
  void SampleLive(TimeNs now);
  void GoAway(const std::string& why, TimeNs now);
  void TryAgain(TimeNs now);
  void End(TimeNs now);
  void FindDead(const std::string& what, Confidence confidence, TimeNs now);

  FileSystem& files_;
  const ScopeSource source_;
  const WatcherOptions options_;
  State state_ = State::kWatched;
  std::unique_ptr<LiveScope> view_;
  std::unique_ptr<ProcessEnd> process_;  // null: it is none, or nobody knows which
  uint64_t bytes_before_ = 0;
  int life_ = 0;
  TimeNs away_since_ = 0;
  std::string away_why_;
  TimeNs next_try_ = 0;
  std::vector<ScopeFinding> findings_;
  std::vector<Note> notes_;
};

}  // namespace hangscope

#endif
