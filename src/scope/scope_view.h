// A scope as a command sees it: the target, its catalog, and the events of all cores.
#ifndef HANGSCOPE_SCOPE_SCOPE_VIEW_H
#define HANGSCOPE_SCOPE_SCOPE_VIEW_H

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/file_system.h"
#include "proc/process_end.h"
#include "scope/event_reader.h"
#include "scope/scope_catalog.h"
#include "scope/scope_reader.h"
#include "target/target.h"
#include "target/target_spec.h"

namespace hangscope {

// How far the scope of a guest is searched for, in a simulator's memory (target/guest_ram.h).
enum class GuestScopes {
  kNot,
  kByPages,     // some 10 ms
  kEverywhere,  // up to half a second
};

struct ScopeSource {
  std::string target;  // as OpenTarget takes it, or the folder of a snapshot
  std::string elf;     // empty: none
  bool intrusive = false;
  // how, where not by `target`, which is its name then
  std::function<Result<std::unique_ptr<Target>>()> open = {};
  std::string elf_copy = {};  // a path of `elf` as it was at the start; empty: there is no copy
  // of pid:N that does not run `elf` itself
  GuestScopes guests = GuestScopes::kEverywhere;
  bool elf_is_one_of_several = false;  // another one may have made the scope
  // a file, of an image of a scope, which nobody writes to: the catalog that belongs to it; empty:
  // it is no such image, or the folder of a snapshot
  std::string catalog = {};

  // What is read of the ELF.
  const std::string& elf_to_read() const { return elf_copy.empty() ? elf : elf_copy; }
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

  // Where the target has what lies at an address of the program's; nothing: not known. Of a guest's
  // RAM the scope tells it, for the rest of the memory that it is in. `symbol`: where the program
  // says that the scope is; nothing: the scope's own ELF does.
  std::optional<uint64_t> AddressOf(uint64_t address,
                                    std::optional<uint64_t> symbol = std::nullopt) const;
  // Whether the range that the scope is in is one memory, as the program sees it: a guest's RAM, or
  // a file of which nobody said where in it the scope is. Else there may be several in a row.
  bool is_one_memory() const { return is_one_memory_ || is_guest(); }
  // Where the program says that the scope is; nothing: there is no program.
  std::optional<uint64_t> symbol() const { return symbol_; }
  // Whether it is a guest's, in the memory of its simulator.
  bool is_guest() const { return target_->is_guest(); }
  std::string guest_spec() const { return target_->guest_spec(); }
  // Whether it is a snapshot's: nobody writes to it, whoever made it may live or not.
  bool is_image() const { return is_image_; }
  // The process whose scope it is: the target, or who has the file mapped that the target is; else
  // the one that the header names, if that is no more. 0: none (a guest's), or not known.
  int pid() const { return pid_; }
  // Whether the target may go on writing; of a file, whether its process may, where it is one's.
  Life life() const;
  // It stands still while it is looked at, and only then.
  bool is_held() const { return target_->is_held(); }
  bool IsLive() const { return life() != Life::kDead; }
  // Reads the names again that the target gave while it ran; of what cannot be read the former
  // stay.
  void RefreshNames();
  const GivenNames& given_names() const { return given_; }
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
  std::vector<std::string> Losses() const;
  void FindProcess(const TargetSpec& spec, bool is_file);

  std::unique_ptr<Target> target_;
  bool is_one_memory_ = false;
  std::optional<uint64_t> symbol_;  // the scope's address by the ELF
  std::optional<ScopeReader> scope_;
  ScopeCatalog catalog_;
  GivenNames given_;
  std::string catalog_bytes_;
  std::vector<EventReader> readers_;
  std::vector<Corruption> task_corruptions_;
  std::vector<std::string> warnings_;
  int pid_ = 0;
  std::unique_ptr<ProcessEnd> process_;  // null: there is none, or it cannot be watched
  bool is_image_ = false;
  bool is_over_ = false;  // nobody writes to it any more: since it was opened
};

}  // namespace hangscope

#endif
