// Several memories judged as one target: the tiles of a device, a host and its accelerator. Their
// scopes name resources of each other's nodes (docs/format.md, "Devices of several memories"), and
// one watcher sees all their cores and tasks, so that waits lead from one memory into another.
//
// A memory that cannot be read, now or never, leaves the others watched; what its cores may have to
// do with lowers what is concluded. One thread.
#ifndef HANGSCOPE_DEVICE_LIVE_DEVICE_H
#define HANGSCOPE_DEVICE_LIVE_DEVICE_H

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/file_system.h"
#include "device/device_file.h"
#include "device/device_nodes.h"
#include "scope/scope_elf.h"
#include "scope/watched_target.h"

namespace hangscope {

class LiveDevice final : public Watchable, private WatchSource {
 public:
  // Fails where an ELF cannot be read, where the file says another node than a scope, and where no
  // memory can be read.
  static Result<std::unique_ptr<LiveDevice>> Open(FileSystem& files, DeviceSpec spec,
                                                  const WatcherOptions& options, TimeNs now);

  void Poll(TimeNs now) override;
  std::vector<ScopeFinding> DrainFindings() override;
  std::vector<Note> DrainNotes() override { return std::exchange(notes_, {}); }
  bool is_over() const override { return is_over_; }
  bool is_watched() const override { return !is_over_; }
  const std::string& name() const override { return spec_.name; }
  uint64_t bytes_read() const override;
  int life() const override { return life_; }
  int owner() const override;
  std::vector<int> MovingThreads(TimeNs now, TimeNs time) const override;
  const ScopeSample& sample() const override { return sample_; }
  std::vector<std::string> warnings() const override { return warnings_; }
  const Watcher& watcher() const override { return *watcher_; }
  WatchSource& source() override { return *this; }
  WatchScene Scene(TimeNs now) override;
  Status RefreshNames() override;
  FindingHistory History(const ScopeFinding& finding) override;
  Finding Tell(const ScopeFinding& finding, TimeNs now) override;
  std::vector<ShownWord> Words(bool dumped) override;
  std::vector<LiveScope*> Scopes() override;
  std::pair<LiveScope*, SubjectId> HomeOf(const SubjectId& subject) override;

  // It was judged as one that does not change any more.
  bool is_dead() const { return is_dead_; }
  size_t memories() const { return members_.size(); }
  // Those that cannot be read now, a clause each: "(1,1): cannot open 'x': No such file".
  std::vector<std::string> Unread() const;
  const DeviceSpec& spec() const { return spec_; }
  // One of its memories as it is now.
  struct Memory {
    const DeviceMemory& spec;
    LiveScope* scope;        // null: it could not be opened yet
    std::string why_unread;  // empty: it can be read
    bool has_ended;          // its process has, and not the whole device
    std::string place;       // "(1,0)", "(host)"
    uint32_t first_core;     // of its cores among the device's
  };
  std::vector<Memory> Memories();
  // By what a memory's scope was opened; null: it is none of them.
  const ScopeSource* SourceOf(const LiveScope& scope) const;
  // An ELF as names need it; of however many memories.
  struct Program {
    std::string catalog_bytes;
    ScopeCatalog catalog;
    std::unique_ptr<CodeSource> code;
    std::optional<uint64_t> symbol;  // where it says that the scope is
  };
  const std::map<std::string, Program>& programs() const { return programs_; }  // by path
  // What the events of a core are called by: its own ELF's.
  const ScopeCatalog& CatalogOf(const SubjectId& core);

 private:
  // One memory.
  struct Member {
    DeviceMemory spec;
    std::unique_ptr<WatchedTarget> target = {};  // null: it could not be opened yet
    std::string why_unread = {};                 // empty: it can be read
    TimeNs next_try = 0;
    int life = 0;         // of the target, as names and nodes are
    bool is_new = false;  // it began a life in this look
    // Its cores and tasks among the device's.
    uint32_t first_core = 0;
    uint32_t first_task = 0;
    uint32_t cores = 0;
    uint32_t tasks = 0;
    uint32_t cores_in_use = 0;          // when its nodes were read
    NodesOfMemory said = {};            // of nodes
    std::vector<uint32_t> nodes = {};   // the device's, by its own
    std::vector<ClaimRow> claims = {};  // as they were read last, its own numbers
    bool claims_known = false;
    std::string place = {};                                         // "(1,0)", "(host)"
    std::map<std::string, std::unique_ptr<WatchNames>> names = {};  // by ELF; "": its scope's

    bool is_read() const { return target != nullptr && why_unread.empty(); }
  };

  LiveDevice(FileSystem& files, DeviceSpec spec, const WatcherOptions& options)
      : files_(files), spec_(std::move(spec)), options_(options) {}
  Status OpenMember(Member& member, TimeNs now);
  Status ReadPrograms(const DeviceMemory& memory);
  void PollMember(Member& member, TimeNs now);
  void TakeNews(Member& member);
  void SetUnread(Member& member, std::string why);
  bool HasNewNodes(const Member& member) const;
  Status MapNodes();
  Status NumberNodes();
  void MakeNames(Member& member);
  void StartOver();
  void Combine();
  Result<ScopeElf> KeptElf(const DeviceProgram& kept) const;
  bool HasEndedAlone(const Member& member) const;
  const Program* ProgramOf(const Member& member, const SubjectId& core);
  const Program* ProgramWith(const Member& member, const WatchNames* its) const;
  void CombineCores(const Member& member, bool has_ended);
  void CombineTasks(const Member& member, bool has_ended);
  FindingHistory EventsOf(const ScopeFinding& finding);
  void AddWords(const Member& member, const std::set<uint32_t>& cores, bool dumped,
                std::vector<ShownWord>* words);
  std::vector<Place> StackOf(const SubjectId& subject);
  std::optional<uint64_t> TimeOf(const Member& member) const;
  uint64_t SinceOf(const Member& member, uint64_t since) const;
  bool OneRate() const;
  uint32_t ResourceOf(const Member& member, uint32_t resource);
  uint32_t TaskOf(const Member& member, uint32_t task);
  const WatchNames* NamesOf(const Member& member, uint32_t core, const CoreSample& sample) const;
  void UpdateHomes();
  Member* MemberOf(const SubjectId& subject, SubjectId* local);

  Result<std::vector<ClaimRow>> Claims() override;
  Result<CoreDetail> Detail(uint32_t core) override;
  std::vector<std::optional<uint32_t>> FirstFaults() override;
  Result<uint64_t> Emitted(uint32_t core) override;
  Result<TaskNews> News() override { return TaskNews{}; }
  std::vector<SupplierDoubt> Doubts(uint32_t resource, bool holder_known) override;

  FileSystem& files_;
  const DeviceSpec spec_;
  const WatcherOptions options_;
  std::vector<Member> members_;
  std::map<std::string, Program> programs_;  // by path
  std::optional<Watcher> watcher_;
  std::vector<ScopeFinding> findings_;  // of members: those that are gone
  // What was told of while it was not known to be dead.
  std::set<std::pair<FindingKind, std::vector<SubjectId>>> told_;
  std::string contradiction_;  // of file and scopes, that was told of
  std::vector<Note> notes_;
  std::vector<std::string> warnings_;
  ScopeSample sample_;
  DeviceNodes nodes_;
  bool one_clock_ = false;
  bool is_over_ = false;
  bool is_dead_ = false;
  int life_ = 0;
  uint32_t cores_ = 0;
  // Resources that one memory knows, and ids of tasks, by memory and number.
  std::unordered_map<uint64_t, uint32_t> local_resources_;
  std::map<uint32_t, ResourceHome> resources_;
  std::unordered_map<uint64_t, uint32_t> task_ids_;
  std::vector<SubjectHome> homes_;
  StacksOfSubjects stacks_;  // of the latest look
  bool homes_are_new_ = false;
};

}  // namespace hangscope

#endif
