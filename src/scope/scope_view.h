// A scope as a command sees it: the target, its catalog, and the events of all cores.
#ifndef HANGSCOPE_SCOPE_SCOPE_VIEW_H
#define HANGSCOPE_SCOPE_SCOPE_VIEW_H

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/file_system.h"
#include "scope/event_reader.h"
#include "scope/scope_catalog.h"
#include "scope/scope_elf.h"
#include "scope/scope_reader.h"
#include "target/target.h"

namespace hangscope {

struct ScopeSource {
  std::string target;  // as OpenTarget takes it, or the folder of a snapshot
  std::string elf;     // empty: none
  bool intrusive = false;
  // how, where not by `target`, which is its name then
  std::function<Result<std::unique_ptr<Target>>()> open = {};
  // of `elf`, where it was read before; and a path of the same file as it was then
  std::shared_ptr<const ScopeElf> read_elf = {};
  std::string elf_copy = {};
};

// The names of a snapshot's parts.
constexpr char kScopeImageName[] = "scope.bin";
constexpr char kScopeCatalogName[] = "scope.catalog";

class ScopeView {
 public:
  static Result<std::unique_ptr<ScopeView>> Open(FileSystem& files, const ScopeSource& source);

  const ScopeReader& scope() const { return *scope_; }
  const ScopeLayout& layout() const { return scope_->layout(); }
  const ScopeCatalog& catalog() const { return catalog_; }
  const std::string& catalog_bytes() const { return catalog_bytes_; }
  // What people should know of the source, a sentence each.
  const std::vector<std::string>& warnings() const { return warnings_; }

  // Whether the target may go on writing.
  bool IsLive() const;
  // Forgets what was read: the next look begins with the oldest record again.
  void StartOver();
  // One look at every core. `last`: what is not finished counts as torn.
  Status Poll(bool last);
  // The whole window of what may be a live target: looks again for a moment at what is not
  // finished.
  Status SampleOnce(Clock& clock);
  // What looks found since, oldest first: over all cores where their clocks can be compared, else
  // one core after the other.
  std::vector<EventOrLoss> Take();
  // Those of one core, in little memory.
  EventList DrainCore(uint32_t core) { return readers_[core].DrainAll(); }
  // As the latest look left them; of all, also those that nobody uses.
  std::vector<ScopeCore> Cores() const;
  Result<std::vector<TaskWait>> Tasks();
  // Of header, cores and, once they were asked for, tasks.
  std::vector<Corruption> Corruptions() const;

 private:
  ScopeView() = default;

  std::string path_;  // of the file that the target is; empty: it is none
  std::unique_ptr<Target> target_;
  std::optional<ScopeReader> scope_;
  ScopeCatalog catalog_;
  std::string catalog_bytes_;
  std::vector<EventReader> readers_;
  std::vector<Corruption> task_corruptions_;
  std::vector<std::string> warnings_;
};

}  // namespace hangscope

#endif
