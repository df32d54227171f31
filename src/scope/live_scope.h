// A target as watch, why and set see it: its scope and mailboxes, what all of it is called, and a
// watcher that follows it. One thread.
#ifndef HANGSCOPE_SCOPE_LIVE_SCOPE_H
#define HANGSCOPE_SCOPE_LIVE_SCOPE_H

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "code/code_source.h"
#include "model/picture.h"
#include "scope/recent_events.h"
#include "scope/scope_view.h"
#include "scope/task_rings.h"
#include "scope/watch_names.h"
#include "scope/watch_reader.h"
#include "scope/watch_text.h"
#include "scope/watcher.h"
#include "scope/words/target_words.h"

namespace hangscope {

// Who made progress in the `time` before the scene's now, by name.
std::vector<std::string> MovingIn(const WatchScene& scene, TimeNs time);
// Who waits for what comes from outside, or for time to pass, by its design; in words.
std::vector<std::string> IdleIn(const WatchScene& scene);

using StacksOfSubjects = std::map<SubjectId, std::vector<Place>>;  // empty: not known
// Adds those of whom the finding is about and of its partners that are not there yet, as `stack_of`
// tells them; few in one look, as each takes a while.
void AddStacks(const ScopeFinding& finding,
               const std::function<std::vector<Place>(const SubjectId&)>& stack_of,
               StacksOfSubjects* stacks);

class LiveScope final : public WatchSource {
 public:
  // Fails where the target has no scope, or the scope no mailboxes.
  static Result<std::unique_ptr<LiveScope>> Open(FileSystem& files, const ScopeSource& source,
                                                 const WatcherOptions& options);

  ScopeView& view() { return *view_; }
  WatchReader& reader() { return *reader_; }
  const WatchNames& names() const { return *names_; }
  Watcher& watcher() { return *watcher_; }
  // What one of its cores runs, where that is another program than the scope's own.
  struct Program {
    CodeSource& code;
    const WatchNames& names;
    std::optional<uint64_t> symbol;  // where it says that the scope is
  };
  // Where a core or task of the latest look stands, and who called, the innermost first; by the
  // program that it runs. Empty: not known.
  std::vector<Place> StackOf(const SubjectId& subject, const Program& program);
  // Likewise, by the scope's own program.
  std::vector<Place> StackOf(const SubjectId& subject);
  // Its program; null: not known.
  CodeSource* code() { return code_.get(); }
  // The newest events, read from the rings when they are asked for.
  RecentEvents& events() { return *events_; }
  const ScopeSample& sample() const { return sample_; }
  const ScopeCatalog& catalog() const { return Catalog(); }
  const ScopeLayout& layout() const { return view_->layout(); }
  // Of the target's clock; 0: not known.
  uint64_t clock_hz() const;
  // Names by its program, which others may tell of other nodes. This outlives them.
  WatchNames MakeNames() const { return {Catalog(), code_.get(), reader_->layout().program_at}; }
  const std::vector<NodeSample>& nodes() const { return nodes_; }
  // How people call it.
  const std::string& name() const { return name_; }
  // The process whose memory or scope file it is; 0: none.
  int pid() const { return view_->pid(); }
  // The process without which nothing in it changes any more: that one, or who has the file mapped;
  // 0: not known.
  int owner() const { return owner_; }
  // What people should know, a sentence each.
  const std::vector<std::string>& warnings() const { return warnings_; }

  // One look, which the watcher sees: at `now`, monotonic.
  Status Poll(TimeNs now);
  // The only look at what does not change any more.
  Status PollDead(TimeNs now);
  // Nobody writes to it any more.
  bool IsDead() const { return view_->life() == Life::kDead; }
  // Whether something in it may be changed: a snapshot stays as it was taken.
  Status CheckChangeable() const;
  bool is_held() const { return view_->is_held(); }
  // One look, of the kind that fits.
  Status PollLiveOrDead(TimeNs now);
  // Looks for `stall` and a little longer, since a finding takes a second look; less long where it
  // dies, longer where it is held up meanwhile. `first`: what the first look saw; may be null.
  Status PollFor(Clock& clock, TimeNs stall, ScopeSample* first);
  // Of a process that is no more: by exit, or a return from main, as it said itself.
  bool EndedByItself() const { return view_->scope().ReadExiting(); }
  // Whether the target is still what it was when it was opened: another start of it, or something
  // else in its place, is not. One whose header was written over while its mailboxes are where they
  // were is: polls go on by the header as it was, and once it has stayed so for the stall time,
  // find it corrupt. Fails where it cannot be read.
  Result<bool> IsSame();
  // Of one that is not: why.
  const std::string& why_another() const { return why_another_; }
  // It may be a file that nobody writes to any more: nobody who may be looked into has it mapped,
  // and no look so far found anything changed.
  bool MayBeDump() const;
  // Reads again what cores and nodes are called; threads come and go.
  Status RefreshNames();

  // The thread that a core of the scope is; 0: none, or not known.
  int ThreadOf(const SubjectId& core) const;
  // Likewise the hart, where no other core says that it is this one.
  std::optional<uint32_t> HartOf(const SubjectId& core) const;

  std::vector<std::string> Moving(TimeNs now, TimeNs time) const {
    return MovingIn(Scene(now), time);
  }
  // Their Linux threads, as far as they are known.
  std::vector<int> MovingThreads(TimeNs now, TimeNs time) const;
  // The waits that last, with the Linux threads of all in them.
  std::vector<Wait> Waits(TimeNs now) const;
  std::vector<std::string> Idle(TimeNs now) const { return IdleIn(Scene(now)); }

  // What texts about it are made from, at `now`.
  WatchScene Scene(TimeNs now) const;
  // What the debug ring of a core's node holds, the newest first.
  std::vector<DebugValue> DebugRing(const SubjectId& core);
  // What the core or task did last, oldest first, as text; and what its node's debug ring holds.
  FindingHistory History(const SubjectId& subject);
  // Of whom the finding is about, where that is one; else of who stopped first, where that is
  // known.
  FindingHistory History(const ScopeFinding& finding);
  // What the program has registered to be shown, and `dumped`: to be dumped, too, as it is now.
  // Reads the target.
  std::vector<ShownWord> Words(bool dumped) const;
  // What travels of it, with its history and the Linux threads of its subjects.
  Finding Tell(const ScopeFinding& finding, TimeNs now);

  Result<std::vector<ClaimRow>> Claims() override { return reader_->ReadClaims(); }
  Result<CoreDetail> Detail(uint32_t core) override;
  std::vector<std::optional<uint32_t>> FirstFaults() override;
  Result<uint64_t> Emitted(uint32_t core) override;
  Result<TaskNews> News() override;
  std::optional<HeldUpTime::Given> Given(TimeNs since) override {
    return held_up_ ? held_up_->Since(since) : std::nullopt;
  }

 private:
  LiveScope() = default;
  void FindCode(const ScopeSource& source);
  std::vector<uint64_t> UnwindWait(const SubjectId& subject, const Program& program);
  bool IsStillInWait(const SubjectId& subject);
  bool RingsWentBack();
  const ScopeCatalog& Catalog() const;
  std::vector<ShownWord> ShownWords(const ScopeFinding& finding) const;
  std::vector<ShownWord> ReadOwnWords(
      bool dumped, const std::function<bool(TargetWord::Per, uint32_t)>& is_wanted) const;

  std::string name_;
  int owner_ = 0;
  std::unique_ptr<ScopeView> view_;
  std::optional<WatchReader> reader_;
  std::unique_ptr<CodeSource> code_;
  ScopeCatalog own_catalog_;  // where the view has none, and the process's program does
  std::optional<WatchNames> names_;
  std::optional<Watcher> watcher_;
  ScopeSample sample_;
  ScopeSample before_;
  bool went_back_ = false;
  std::string why_another_;
  std::vector<uint64_t> heads_;  // by core: records begun, as of the latest look at its ring
  uint32_t next_head_ = 0;
  bool is_dead_ = false;
  uint64_t newest_time_ = 0;  // of an event
  std::optional<RecentEvents> events_;
  std::optional<TaskRings> task_rings_;  // once they are asked for
  std::vector<NodeSample> nodes_;
  StacksOfSubjects stacks_;                 // of the latest look
  std::string header_;                      // as it was when it was opened
  std::optional<Corruption> wrong_header_;  // as it is
  TimeNs wrong_header_since_ = 0;           // 0: since the next look
  bool is_device_ = false;                  // a file that is no regular one
  bool looked_ = false;
  bool moved_ = false;  // any look found something changed
  TimeNs stall_ = 0;
  std::optional<HeldUpTime> held_up_;  // the owner
  std::vector<std::string> warnings_;
};

}  // namespace hangscope

#endif
