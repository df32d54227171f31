// One target under watch over all its lives: it may start again, be replaced, end or vanish, and
// none of this ends the watching of others. One thread.
#ifndef HANGSCOPE_SCOPE_WATCHED_TARGET_H
#define HANGSCOPE_SCOPE_WATCHED_TARGET_H

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/file_system.h"
#include "proc/process_end.h"
#include "scope/live_scope.h"

namespace hangscope {

// What is watched and told of as one: a target, or a device of several (device/live_device.h).
class Watchable {
 public:
  struct Note {
    std::string event;  // for programs: "restarted", "ended", "away"
    std::string text;   // for people
  };

  virtual ~Watchable() = default;

  // One look. Does not wait.
  virtual void Poll(TimeNs now) = 0;
  // New since the last call.
  virtual std::vector<ScopeFinding> DrainFindings() = 0;
  virtual std::vector<Note> DrainNotes() = 0;

  // There is nothing more to look at.
  virtual bool is_over() const = 0;
  virtual bool is_watched() const = 0;
  virtual const std::string& name() const = 0;
  // Bytes read from it, over all its lives.
  virtual uint64_t bytes_read() const = 0;
  // How often it was opened: what was known of its subjects before the latest opening means nothing
  // any more.
  virtual int life() const = 0;
  // What people should know, a sentence each.
  virtual std::vector<std::string> warnings() const = 0;
  // The process without which nothing in it changes any more; 0: not known, or more than one.
  virtual int owner() const = 0;
  // As the latest look saw it.
  virtual const ScopeSample& sample() const = 0;
  // Linux threads that made progress in the `time` before `now`, as far as they are known.
  virtual std::vector<int> MovingThreads(TimeNs now, TimeNs time) const = 0;
  // What a judge of threads, too, can join with theirs.
  virtual std::vector<Wait> Waits(TimeNs) const { return {}; }

  virtual const Watcher& watcher() const = 0;
  // Who holds and provides what, by the watcher's subjects.
  virtual WatchSource& source() = 0;
  // What texts about it are made from, at `now`; good until the next Poll.
  virtual WatchScene Scene(TimeNs now) = 0;
  // Reads again what cores and nodes are called.
  virtual Status RefreshNames() = 0;
  virtual FindingHistory History(const ScopeFinding& finding) = 0;
  virtual Finding Tell(const ScopeFinding& finding, TimeNs now) = 0;
  // What its programs have registered to be shown, and `dumped`: to be dumped, too. Reads it.
  virtual std::vector<ShownWord> Words(bool dumped) = 0;
  // The scopes that can be read now.
  virtual std::vector<LiveScope*> Scopes() = 0;
  // The scope of one of its subjects, and who it is there; null: it cannot be read.
  virtual std::pair<LiveScope*, SubjectId> HomeOf(const SubjectId& subject) = 0;
};

class WatchedTarget final : public Watchable {
 public:
  // Fails where there is nothing to watch yet.
  static Result<std::unique_ptr<WatchedTarget>> Open(FileSystem& files, const ScopeSource& source,
                                                     const WatcherOptions& options, TimeNs now);

  void Poll(TimeNs now) override;
  std::vector<ScopeFinding> DrainFindings() override;
  std::vector<Note> DrainNotes() override;
  bool is_over() const override { return state_ == State::kOver; }
  bool is_watched() const override { return state_ == State::kWatched; }
  // It is over, and nobody says that a process ended: a copy of memory.
  bool is_dump() const { return is_dump_; }
  // It was judged as one that is dead.
  bool was_found_dead() const { return was_found_dead_; }
  // Why it cannot be read, while it can not.
  const std::string& away_why() const { return away_why_; }
  // The latest there was: never null.
  LiveScope& view() { return *view_; }
  const std::string& name() const override { return view_->name(); }
  uint64_t bytes_read() const override { return bytes_before_ + view_->reader().bytes_read(); }
  int life() const override { return life_; }
  std::vector<std::string> warnings() const override { return view_->warnings(); }
  int owner() const override { return view_->owner(); }
  const ScopeSample& sample() const override { return view_->sample(); }
  std::vector<int> MovingThreads(TimeNs now, TimeNs time) const override {
    return view_->MovingThreads(now, time);
  }
  std::vector<Wait> Waits(TimeNs now) const override { return view_->Waits(now); }
  const Watcher& watcher() const override { return view_->watcher(); }
  WatchSource& source() override { return *view_; }
  WatchScene Scene(TimeNs now) override { return view_->Scene(now); }
  Status RefreshNames() override { return view_->RefreshNames(); }
  FindingHistory History(const ScopeFinding& finding) override { return view_->History(finding); }
  Finding Tell(const ScopeFinding& finding, TimeNs now) override {
    return view_->Tell(finding, now);
  }
  std::vector<ShownWord> Words(bool dumped) override {
    return is_watched() ? view_->Words(dumped) : std::vector<ShownWord>();
  }
  std::vector<LiveScope*> Scopes() override {
    return is_watched() ? std::vector<LiveScope*>{view_.get()} : std::vector<LiveScope*>();
  }
  std::pair<LiveScope*, SubjectId> HomeOf(const SubjectId& subject) override {
    return {view_.get(), subject};
  }

 private:
  enum class State { kWatched, kAway, kOver };

  WatchedTarget(FileSystem& files, ScopeSource source, WatcherOptions options)
      : files_(files), source_(std::move(source)), options_(options) {}
  Status OpenView();
  void SampleLive(TimeNs now);
  void GoAway(const std::string& why, TimeNs now);
  void TryAgain(TimeNs now);
  void End(TimeNs now);
  void FindDead(const std::string& what, Confidence confidence, std::string doubt, TimeNs now);
  void TakeFindings();
  bool TakesItForDump(TimeNs now);
  void NoteRestart(TimeNs now);

  FileSystem& files_;
  const ScopeSource source_;
  const WatcherOptions options_;
  State state_ = State::kWatched;
  std::unique_ptr<LiveScope> view_;
  std::unique_ptr<ProcessEnd> process_;  // null: it is none, or nobody knows which
  uint64_t bytes_before_ = 0;
  int life_ = 0;
  bool is_dump_ = false;
  bool was_found_dead_ = false;
  TimeNs away_since_ = 0;
  std::string away_why_;
  TimeNs next_try_ = 0;
  std::optional<TimeNs> first_look_;  // of this life
  // Starts, each soon after the one before.
  int restarts_ = 0;
  TimeNs first_restart_ = 0;
  TimeNs last_restart_ = 0;
  std::vector<std::pair<FindingKind, std::vector<SubjectId>>> found_;  // in this life, so far
  std::vector<ScopeFinding> findings_;
  std::vector<Note> notes_;
};

}  // namespace hangscope

#endif
