#include "device/live_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>

#include "base/utf8.h"
#include "code/elf_reader.h"
#include "hangscope/abi/catalog.h"
#include "scope/scope_elf.h"
#include "scope/words/target_words.h"

namespace hangscope {
namespace {

constexpr TimeNs kBetweenOpenings = 200 * kMillisecond;
// Of resources that one memory knows; those of nodes are below it.
constexpr uint32_t kLocalResource = 0x80000000u;
constexpr size_t kMostLocal = 1u << 20;  // memory that changes wildly: what was known is forgotten
// Where each memory has a clock of its own, all end together.
constexpr uint64_t kEndOfClocks = 1ull << 62;
constexpr char kOfScope[] = "";     // names by the ELF that says where the scope is
constexpr char kOfNothing[] = "-";  // names of a core whose ELF is not known
constexpr uint64_t kNsPerSecond = 1'000'000'000;

uint64_t InNanoseconds(uint64_t time, uint64_t hz) {
  return static_cast<uint64_t>(static_cast<unsigned __int128>(time) * kNsPerSecond / hz);
}

uint64_t KeyOf(size_t memory, uint32_t number) { return uint64_t{memory} << 32 | number; }

bool NamesWhatItIs(ResourceKind kind) {
  return kind == ResourceKind::kNone || kind == ResourceKind::kExclusive ||
         kind == ResourceKind::kChannel;
}

}  // namespace

Result<std::unique_ptr<LiveDevice>> LiveDevice::Open(FileSystem& files, DeviceSpec spec,
                                                     const WatcherOptions& options, TimeNs now) {
  std::unique_ptr<LiveDevice> device(new LiveDevice(files, std::move(spec), options));
  Status first;
  bool any = false;
  for (const DeviceMemory& memory : device->spec_.memories) {
    if (Status status = device->ReadPrograms(memory); !status.ok()) return status;
    Member& member = device->members_.emplace_back();
    member.spec = memory;
    if (Status status = device->OpenMember(member, now); !status.ok()) {
      if (status.code() == Status::Code::kUsage) return status;
      if (first.ok()) first = status;
      device->warnings_.push_back(
          fmt::format("memory '{}' cannot be read: {}", Printable(memory.name), status.message()));
      continue;
    }
    any = true;
    for (const std::string& warning : member.target->warnings())
      device->warnings_.push_back(fmt::format("memory '{}': {}", Printable(memory.name), warning));
  }
  if (!any) return first;
  for (Member& member : device->members_) device->PollMember(member, now);
  if (Status status = device->MapNodes(); !status.ok()) return status;
  device->StartOver();
  return device;
}

// As a snapshot has it.
Result<ScopeElf> LiveDevice::KeptElf(const DeviceProgram& kept) const {
  auto catalog = ReadWholeFile(files_, kept.catalog, kMostCatalogBytes);
  if (!catalog.ok()) return catalog.status();
  ScopeElf elf;
  elf.catalog = std::move(*catalog);
  return elf;
}

// What its cores run, each file once.
Status LiveDevice::ReadPrograms(const DeviceMemory& memory) {
  std::set<std::string> paths;
  for (const auto& [core, path] : memory.elf_of_core) paths.insert(path);
  for (const auto& [role, path] : memory.elf_of_role) paths.insert(path);
  for (const auto& [kernel, path] : memory.elf_of_kernel) paths.insert(path);
  for (const std::string& path : paths) {
    if (programs_.contains(path)) continue;
    const auto kept = spec_.programs.find(path);
    const bool is_kept = kept != spec_.programs.end();
    auto elf = is_kept ? KeptElf(kept->second) : ScopeElf::Read(path);
    if (!elf.ok()) return elf.status();
    Program& program = programs_[path];
    if (Status status = program.catalog.Add(elf->catalog); !status.ok())
      warnings_.push_back(fmt::format("'{}': {}", path, status.message()));
    program.catalog_bytes = std::move(elf->catalog);
    // Another one by now names other functions.
    if (is_kept && !IsSameProgram(files_, path, kept->second)) continue;
    if (auto code = ElfReader::Open(path); code.ok()) program.code = std::move(*code);
    if (is_kept) elf = ScopeElf::Read(path);
    if (elf.ok()) program.symbol = elf->symbol;
  }
  return {};
}

Status LiveDevice::OpenMember(Member& member, TimeNs now) {
  if (!member.spec.unread.empty()) {
    SetUnread(member, member.spec.unread);
    member.next_try = std::numeric_limits<TimeNs>::max();
    return Status::Io(member.why_unread);
  }
  WatcherOptions options = options_;
  options.only_follows = true;
  auto target = WatchedTarget::Open(files_, member.spec.source, options, now);
  if (!target.ok()) {
    SetUnread(member, target.status().message());
    member.next_try = now + kBetweenOpenings;
    return target.status();
  }
  member.target = std::move(*target);
  member.why_unread.clear();
  return {};
}

void LiveDevice::SetUnread(Member& member, std::string why) {
  member.why_unread = why.empty() ? "it cannot be read" : std::move(why);
}

// The device's numbers of all nodes, anew; with the names that tell them.
Status LiveDevice::MapNodes() {
  for (Member& member : members_) {
    if (member.target == nullptr) continue;
    LiveScope& view = member.target->view();
    std::vector<Corruption> ignored;
    NodesOfMemory& said = member.said;
    auto table = view.reader().ReadNodes(&ignored);
    said = {member.spec.name, member.spec.node, table.ok() ? std::move(*table) : view.nodes()};
    said.is_own.resize(said.table.size(), said.table.size() == 1);
    member.cores_in_use = 0;
    member.life = member.target->life();
    for (const CoreSample& core : view.sample().cores) {
      if (!core.in_use) continue;
      ++member.cores_in_use;
      if (core.node < said.is_own.size()) said.is_own[core.node] = true;
    }
  }
  const Status status = NumberNodes();
  for (Member& member : members_) MakeNames(member);
  return status;
}

// As it was, where memories contradict each other.
Status LiveDevice::NumberNodes() {
  DeviceNodes nodes;
  std::vector<std::vector<uint32_t>> all(members_.size());
  for (size_t i = 0; i < members_.size(); ++i) {
    if (members_[i].target == nullptr) continue;
    auto numbers = nodes.Add(members_[i].said);
    if (!numbers.ok()) return numbers.status();
    all[i] = std::move(*numbers);
  }
  for (size_t i = 0; i < members_.size(); ++i) {
    Member& member = members_[i];
    member.nodes = std::move(all[i]);
    const auto& is_own = member.said.is_own;
    const auto own = std::find(is_own.begin(), is_own.end(), true);
    const NodeSample* const node =
        own == is_own.end() ? nullptr
                            : &nodes.all()[member.nodes[static_cast<size_t>(own - is_own.begin())]];
    const bool has_place = node != nullptr && node->name.empty();
    member.place = has_place ? fmt::format("({},{})", node->x, node->y)
                             : fmt::format("({})", Printable(member.spec.name));
  }
  nodes_ = std::move(nodes);
  return {};
}

// Cores that begin to say something say in which node they are.
bool LiveDevice::HasNewNodes(const Member& member) const {
  if (!member.is_read()) return false;
  if (member.life != member.target->life()) return true;
  const auto& cores = member.target->view().sample().cores;
  const auto in_use =
      std::count_if(cores.begin(), cores.end(), [](const CoreSample& core) { return core.in_use; });
  return static_cast<uint32_t>(in_use) > member.cores_in_use;
}

void LiveDevice::MakeNames(Member& member) {
  member.names.clear();
  if (member.target == nullptr) return;
  LiveScope& view = member.target->view();
  const uint64_t program_at = view.reader().layout().program_at;
  static const ScopeCatalog kNoCatalog;
  const auto add = [&](const std::string& key, WatchNames names) {
    names.SetCores(view.view().Cores(), nodes_.all());
    names.SetOfDevice();
    member.names.emplace(key, std::make_unique<WatchNames>(std::move(names)));
  };
  const auto add_program = [&](const std::string& path) {
    const Program& program = programs_.at(path);
    if (!member.names.contains(path))
      add(path, WatchNames(program.catalog, program.code.get(), program_at));
  };
  add(kOfScope, view.MakeNames());
  add(kOfNothing, WatchNames(kNoCatalog, nullptr, program_at));
  for (const auto& [core, path] : member.spec.elf_of_core) add_program(path);
  for (const auto& [role, path] : member.spec.elf_of_role) add_program(path);
  for (const auto& [kernel, path] : member.spec.elf_of_kernel) add_program(path);
  homes_are_new_ = false;
  resources_.clear();
  local_resources_.clear();
}

// Who is who changed: nothing that was known of subjects by number means anything any more.
void LiveDevice::StartOver() {
  cores_ = 0;
  uint32_t tasks = 0;
  for (Member& member : members_) {
    member.first_core = cores_;
    member.first_task = tasks;
    member.cores = member.target == nullptr ? 0 : member.target->view().layout().core_count;
    member.tasks = member.target == nullptr ? 0 : member.target->view().layout().task_count;
    cores_ += member.cores;
    tasks += member.tasks;
  }
  one_clock_ = spec_.one_clock && OneRate();
  WatcherOptions options = options_;
  options.shared_clock = true;
  options.clock_hz = kNsPerSecond;
  options.is_device = true;
  options.one_clock = one_clock_;
  options.call = [this](const SubjectId& subject) { return SubjectName(subject, Scene(0)); };
  watcher_.emplace(options);
  task_ids_.clear();
  homes_are_new_ = false;
  ++life_;
}

// Whether all clocks count as fast, and on for all cores.
bool LiveDevice::OneRate() const {
  std::optional<uint64_t> rate;
  for (const Member& member : members_) {
    if (member.target == nullptr) continue;
    const LiveScope& view = member.target->view();
    if (!view.layout().shared_clock() || rate.value_or(view.clock_hz()) != view.clock_hz())
      return false;
    rate = view.clock_hz();
  }
  return true;
}

void LiveDevice::Poll(TimeNs now) {
  if (is_over_) return;
  stacks_.clear();
  bool start_over = false;
  for (Member& member : members_) {
    PollMember(member, now);
    const ScopeLayout* const layout =
        member.target == nullptr ? nullptr : &member.target->view().layout();
    start_over = start_over || (layout != nullptr && (layout->core_count != member.cores ||
                                                      layout->task_count != member.tasks));
  }
  // What a memory says of nodes is of its life, and so is the catalog that its names are of.
  if (std::any_of(members_.begin(), members_.end(),
                  [this](const Member& member) { return HasNewNodes(member); })) {
    const Status status = MapNodes();
    if (!status.ok() && status.message() != contradiction_)
      notes_.push_back({"warning", "warning: " + status.message()});
    contradiction_ = status.message();
  }
  const auto every_opened = [this](auto is) {
    return std::all_of(members_.begin(), members_.end(), [&](const Member& member) {
      return member.target == nullptr || is(*member.target);
    });
  };
  is_over_ = every_opened([](const WatchedTarget& target) { return target.is_over(); });
  is_dead_ = every_opened([](const WatchedTarget& target) { return target.was_found_dead(); });
  if (start_over || is_dead_) StartOver();
  Combine();
  if (is_dead_)
    watcher_->SeeDead(sample_, now, *this);
  else
    watcher_->See(sample_, now, *this);
}

void LiveDevice::PollMember(Member& member, TimeNs now) {
  const std::string name = Printable(member.spec.name);
  member.is_new = member.target == nullptr;
  if (member.target == nullptr) {
    if (now < member.next_try || !OpenMember(member, now).ok()) return;
    notes_.push_back({"read", fmt::format("memory '{}' can be read now", name)});
  } else if (member.target->is_over()) {
    return TakeNews(member);
  }
  const bool was_read = member.is_read();
  const int life = member.target->life();
  member.target->Poll(now);
  member.is_new = member.is_new || member.target->life() != life;
  TakeNews(member);
  const bool is_away = !member.target->is_over() && !member.target->is_watched();
  member.why_unread.clear();
  if (is_away) SetUnread(member, member.target->away_why());
  if (is_away == was_read) {
    notes_.push_back(is_away ? Note{"unread", fmt::format("memory '{}' cannot be read: {}", name,
                                                          member.why_unread)}
                             : Note{"read", fmt::format("memory '{}' can be read again", name)});
  }
}

// What is said of a memory's process, and not of its cores: by the device's numbers.
void LiveDevice::TakeNews(Member& member) {
  const bool is_image = !member.spec.source.catalog.empty();  // of which all know that it ended
  for (Note& note : member.target->DrainNotes()) {
    if (is_image) continue;
    notes_.push_back(
        {note.event, fmt::format("memory '{}': {}", Printable(member.spec.name), note.text)});
  }
  for (ScopeFinding& finding : member.target->DrainFindings()) {
    for (SubjectId& subject : finding.subjects)
      subject.index +=
          subject.kind == SubjectId::Kind::kCore ? member.first_core : member.first_task;
    finding.summary = fmt::format("memory '{}': {}", Printable(member.spec.name), finding.summary);
    findings_.push_back(std::move(finding));
  }
}

std::vector<ScopeFinding> LiveDevice::DrainFindings() {
  for (ScopeFinding& finding : watcher_->DrainFindings()) {
    const std::pair key{finding.kind, finding.subjects};
    if (is_dead_ && told_.contains(key)) continue;
    told_.insert(key);
    findings_.push_back(std::move(finding));
  }
  return std::exchange(findings_, {});
}

uint64_t LiveDevice::bytes_read() const {
  uint64_t bytes = 0;
  for (const Member& member : members_)
    bytes += member.target == nullptr ? 0 : member.target->bytes_read();
  return bytes;
}

std::vector<std::string> LiveDevice::Unread() const {
  std::vector<std::string> unread;
  for (const Member& member : members_) {
    if (!member.why_unread.empty())
      unread.push_back(fmt::format("{}: {}", Printable(member.spec.name), member.why_unread));
  }
  return unread;
}

// All memories' cores, then all their tasks.
void LiveDevice::Combine() {
  sample_.cores.clear();
  sample_.tasks.clear();
  sample_.corruptions.clear();
  sample_.running_tasks.clear();
  sample_.target_time.reset();
  sample_.ended_by_itself = false;
  homes_are_new_ = false;
  if (local_resources_.size() > kMostLocal) {
    local_resources_.clear();
    resources_.clear();
  }
  if (!one_clock_) sample_.target_time = kEndOfClocks;
  for (Member& member : members_) {
    if (member.target == nullptr) continue;
    LiveScope& view = member.target->view();
    const bool is_over = member.target->is_over();
    // A dump beside what lives is of another time.
    if (is_over && member.target->is_dump() && !is_dead_)
      SetUnread(member, "it is a dump, and others are alive");
    else if (is_over)
      member.why_unread.clear();
    const bool has_ended = is_over && !member.target->is_dump();
    CombineCores(member, HasEndedAlone(member));
    CombineTasks(member, HasEndedAlone(member));
    if (is_dead_) sample_.ended_by_itself = sample_.ended_by_itself || view.EndedByItself();
    if (!member.is_read() || has_ended) continue;
    for (Corruption corruption : view.sample().corruptions) {
      corruption.memory = member.place;
      corruption.first = corruption.part == Corruption::Part::kTaskRecord ? member.first_task
                         : corruption.part == Corruption::Part::kCore     ? member.first_core
                                                                          : 0;
      corruption.index += corruption.first;
      sample_.corruptions.push_back(std::move(corruption));
    }
    const auto time = one_clock_ ? TimeOf(member) : std::nullopt;
    if (time) sample_.target_time = std::max(sample_.target_time.value_or(0), *time);
  }
}

// Its process has, or had when a snapshot was taken of it, while others live.
bool LiveDevice::HasEndedAlone(const Member& member) const {
  if (member.spec.has_ended) return true;
  return member.target != nullptr && member.target->is_over() && !member.target->is_dump() &&
         !is_dead_;
}

void LiveDevice::CombineCores(const Member& member, bool has_ended) {
  const ScopeSample& sample = member.target->view().sample();
  for (uint32_t i = 0; i < member.cores; ++i) {
    CoreSample& core = sample_.cores.emplace_back();
    if (i < sample.cores.size()) core = sample.cores[i];
    core.unread = !member.is_read() || (member.is_new && !is_dead_);
    core.node = core.node < member.nodes.size() ? static_cast<uint16_t>(member.nodes[core.node])
                                                : UINT16_MAX;
    sample_.running_tasks.push_back(
        i < sample.running_tasks.size() ? TaskOf(member, sample.running_tasks[i]) : 0);
    if (has_ended && core.in_use) {
      core.launch = LaunchState::kEnded;
      core.paused = PausedState::kNot;
      core.wait.reset();
    }
    if (!core.wait) continue;
    if (NamesWhatItIs(core.wait->kind))
      core.wait->resource = ResourceOf(member, core.wait->resource);
    core.wait->since = SinceOf(member, core.wait->since);
  }
}

void LiveDevice::CombineTasks(const Member& member, bool has_ended) {
  const ScopeSample& sample = member.target->view().sample();
  for (uint32_t i = 0; i < member.tasks; ++i) {
    TaskSample& task = sample_.tasks.emplace_back();
    if (i < sample.tasks.size()) task = sample.tasks[i];
    task.unread = !member.is_read() || (member.is_new && !is_dead_);
    TaskWait& record = task.record;
    record.task = TaskOf(member, record.task);
    if (record.holder) record.holder = TaskOf(member, *record.holder);
    if (NamesWhatItIs(record.kind)) record.resource = ResourceOf(member, record.resource);
    record.since = SinceOf(member, record.since);
    if (has_ended) task.in_use = false;
  }
}

// Of the one clock, in nanoseconds where its rate is known.
std::optional<uint64_t> LiveDevice::TimeOf(const Member& member) const {
  const LiveScope& view = member.target->view();
  const auto& time = view.sample().target_time;
  if (!time || view.clock_hz() == 0) return std::nullopt;
  return InNanoseconds(*time, view.clock_hz());
}

// A wait's beginning on the axis that the watcher is given: of the one clock; or before the common
// end of all, by the age that the memory's own clock tells; or behind it, where none does.
uint64_t LiveDevice::SinceOf(const Member& member, uint64_t since) const {
  const LiveScope& view = member.target->view();
  const uint64_t hz = view.clock_hz();
  if (one_clock_) return hz == 0 ? since : InNanoseconds(since, hz);
  const auto& time = view.sample().target_time;
  if (!time || hz == 0 || *time < since) return kEndOfClocks + 1;
  return kEndOfClocks - std::min(kEndOfClocks, InNanoseconds(*time - since, hz));
}

// A number whose high half is a node of the scope's table is that node's, and all memories' that
// name it so; any other is known in its memory alone.
uint32_t LiveDevice::ResourceOf(const Member& member, uint32_t resource) {
  if (resource == 0) return 0;
  const uint32_t node = (resource >> 16) - 1;
  if (resource >> 16 != 0 && node < member.nodes.size())
    return (member.nodes[node] + 1) << 16 | (resource & 0xffffu);
  const auto memory = static_cast<size_t>(&member - members_.data());
  const auto next = kLocalResource + static_cast<uint32_t>(local_resources_.size());
  const auto [at, is_new] = local_resources_.emplace(KeyOf(memory, resource), next);
  if (!is_new) return at->second;
  const WatchNames* names = member.names.at(kOfScope).get();
  for (const auto& [elf, others] : member.names) {
    if (!others->LocalResource(resource).starts_with("0x")) names = others.get();
  }
  resources_[next] = {names, resource, member.place};
  return next;
}

uint32_t LiveDevice::TaskOf(const Member& member, uint32_t task) {
  if (task == 0) return 0;
  const auto memory = static_cast<size_t>(&member - members_.data());
  const auto next = static_cast<uint32_t>(task_ids_.size()) + 1;
  return task_ids_.emplace(KeyOf(memory, task), next).first->second;
}

// By the core's number, else by its role, else those of the scope's ELF, if that is all cores'.
const WatchNames* LiveDevice::NamesOf(const Member& member, uint32_t core,
                                      const CoreSample& sample) const {
  const DeviceMemory& spec = member.spec;
  const WatchNames* const scope = member.names.at(kOfScope).get();
  if (const auto at = spec.elf_of_core.find(core); at != spec.elf_of_core.end())
    return member.names.at(at->second).get();
  if (!spec.elf_of_role.empty() && sample.in_use) {
    std::string role;
    for (const auto& [elf, names] : member.names) {
      if (role.empty()) role = names->Role(sample.role);
    }
    if (const auto at = spec.elf_of_role.find(role); at != spec.elf_of_role.end())
      return member.names.at(at->second).get();
  }
  return spec.elf_is_of_others ? scope : member.names.at(kOfNothing).get();
}

void LiveDevice::UpdateHomes() {
  if (homes_are_new_) return;
  homes_are_new_ = true;
  homes_.clear();
  const auto members = [&](auto each) {
    for (const Member& member : members_) {
      if (member.target != nullptr && !member.names.empty()) each(member);
    }
  };
  members([&](const Member& member) {
    for (uint32_t i = 0; i < member.cores; ++i) {
      const size_t at = member.first_core + i;
      const CoreSample sample = at < sample_.cores.size() ? sample_.cores[at] : CoreSample{};
      SubjectHome& home = homes_.emplace_back();
      home = {NamesOf(member, i, sample), nullptr, i, member.place, member.spec.name};
      const auto kernel = member.spec.elf_of_kernel.find(sample.kernel);
      if (kernel != member.spec.elf_of_kernel.end())
        home.kernel = member.names.at(kernel->second).get();
    }
  });
  members([&](const Member& member) {
    const auto& tasks = member.target->view().sample().tasks;
    for (uint32_t i = 0; i < member.tasks; ++i) {
      homes_.push_back({member.names.at(kOfScope).get(), nullptr,
                        i < tasks.size() ? tasks[i].record.task : 0, member.place,
                        member.spec.name});
    }
  });
}

WatchScene LiveDevice::Scene(TimeNs now) {
  UpdateHomes();
  WatchScene scene;
  scene.target = spec_.name;
  scene.subjects = &watcher_->subjects();
  scene.names = homes_.empty() ? nullptr : homes_[0].names;
  scene.nodes = &nodes_.all();
  scene.now = now;
  scene.is_dead = is_dead_;
  scene.homes = &homes_;
  scene.resources = &resources_;
  scene.stacks = &stacks_;
  scene.is_partly_unread = std::any_of(members_.begin(), members_.end(), [](const Member& member) {
    return !member.why_unread.empty();
  });
  return scene;
}

Status LiveDevice::RefreshNames() {
  Status first;
  for (LiveScope* scope : Scopes()) {
    if (Status status = scope->RefreshNames(); !status.ok() && first.ok()) first = status;
  }
  for (Member& member : members_) {
    for (auto& [elf, names] : member.names)
      names->SetCores(member.target->view().view().Cores(), nodes_.all());
  }
  return first;
}

std::vector<LiveScope*> LiveDevice::Scopes() {
  std::vector<LiveScope*> scopes;
  for (Member& member : members_) {
    if (member.is_read()) scopes.push_back(&member.target->view());
  }
  return scopes;
}

LiveDevice::Member* LiveDevice::MemberOf(const SubjectId& subject, SubjectId* local) {
  const bool is_core = subject.kind == SubjectId::Kind::kCore;
  for (Member& member : members_) {
    const uint32_t first = is_core ? member.first_core : member.first_task;
    const uint32_t count = is_core ? member.cores : member.tasks;
    if (subject.index < first || subject.index - first >= count) continue;
    *local = {subject.kind, subject.index - first};
    return &member;
  }
  return nullptr;
}

std::pair<LiveScope*, SubjectId> LiveDevice::HomeOf(const SubjectId& subject) {
  SubjectId local = subject;
  Member* const member = MemberOf(subject, &local);
  if (member == nullptr || !member->is_read()) return {nullptr, subject};
  return {&member->target->view(), local};
}

std::vector<ShownWord> LiveDevice::Words(bool dumped) {
  std::vector<ShownWord> words;
  for (const Member& member : members_) {
    if (!member.is_read()) continue;
    std::set<uint32_t> cores;
    for (uint32_t core = 0; core < member.cores; ++core) cores.insert(core);
    AddWords(member, cores, dumped, &words);
  }
  return words;
}

// Those for all of a memory, and those of `cores`, its own numbers, and of their nodes: by the
// program that each core runs.
void LiveDevice::AddWords(const Member& member, const std::set<uint32_t>& cores, bool dumped,
                          std::vector<ShownWord>* words) {
  LiveScope& scope = member.target->view();
  std::map<const Program*, std::set<uint32_t>> of_program = {{nullptr, {}}};
  for (const uint32_t core : cores)
    of_program[ProgramOf(member, {SubjectId::Kind::kCore, member.first_core + core})].insert(core);
  const WatchScene scene = Scene(0);
  // Two ELFs may have the same, and one of them may know where it is: where in `words`.
  std::map<std::pair<std::string, std::string>, size_t> known;
  for (const auto& of : of_program) {
    const Program* const program = of.first;
    const std::set<uint32_t>& mine = of.second;
    std::set<uint32_t> nodes;
    for (const uint32_t core : mine) {
      if (core < scope.sample().cores.size()) nodes.insert(scope.sample().cores[core].node);
    }
    const auto owner = [&](TargetWord::Per per, uint32_t index) -> std::string {
      if (per == TargetWord::Per::kAll) return "all " + member.place;
      if ((per == TargetWord::Per::kCore ? mine : nodes).count(index) == 0) return "";
      if (per == TargetWord::Per::kCore)
        return SubjectName({SubjectId::Kind::kCore, member.first_core + index}, scene);
      const std::string place =
          index < member.nodes.size() ? scene.names->Node(member.nodes[index]) : "";
      return "node " + (place.empty() ? std::to_string(index) + " " + member.place : place);
    };
    const ScopeCatalog& catalog = program == nullptr ? scope.catalog() : program->catalog;
    const auto symbol = program == nullptr ? std::nullopt : program->symbol;
    CodeSource* const code = program == nullptr ? scope.code() : program->code.get();
    const uint32_t said_nodes = static_cast<uint32_t>(member.nodes.size());
    for (ShownWord& word : ReadWords(scope.view(), catalog, symbol,
                                     {dumped, member.cores, said_nodes, owner, code})) {
      word.memory = member.spec.name;
      const auto [at, is_new] = known.emplace(std::pair(word.of, word.name), words->size());
      if (is_new)
        words->push_back(std::move(word));
      else if (!(*words)[at->second].value)
        (*words)[at->second] = std::move(word);
    }
  }
}

FindingHistory LiveDevice::History(const ScopeFinding& finding) {
  FindingHistory history = EventsOf(finding);
  std::map<const Member*, std::set<uint32_t>> cores;
  for (const auto* list : {&finding.subjects, &finding.partners}) {
    for (const SubjectId& subject : *list) {
      SubjectId local;
      const Member* const member =
          subject.kind == SubjectId::Kind::kCore ? MemberOf(subject, &local) : nullptr;
      if (member != nullptr && member->is_read()) cores[member].insert(local.index);
    }
  }
  for (const auto& [member, mine] : cores) AddWords(*member, mine, false, &history.words);
  return history;
}

FindingHistory LiveDevice::EventsOf(const ScopeFinding& finding) {
  if (!finding.first && finding.subjects.size() != 1) return {};
  const SubjectId subject = finding.first.value_or(finding.subjects.front());
  const auto [scope, local] = HomeOf(subject);
  if (scope == nullptr) return {};
  SubjectId ignored;
  const Member& member = *MemberOf(subject, &ignored);
  if (const Program* const program = ProgramOf(member, subject)) {
    return {RecentEvents(scope->view(), program->catalog, scope->watcher()).LastTexts(local),
            scope->DebugRing(local)};
  }
  return scope->History(local);
}

// Null: it is the one that the scope's ELF is, or nobody knows which.
const LiveDevice::Program* LiveDevice::ProgramOf(const Member& member, const SubjectId& core) {
  if (core.kind != SubjectId::Kind::kCore) return nullptr;
  UpdateHomes();
  return core.index < homes_.size() ? ProgramWith(member, homes_[core.index].names) : nullptr;
}

const LiveDevice::Program* LiveDevice::ProgramWith(const Member& member,
                                                   const WatchNames* its) const {
  for (const auto& [path, program] : programs_) {
    const auto names = member.names.find(path);
    if (names != member.names.end() && names->second.get() == its) return &program;
  }
  return nullptr;
}

const ScopeCatalog& LiveDevice::CatalogOf(const SubjectId& core) {
  static const ScopeCatalog kNone;
  SubjectId local = core;
  const Member* const member = MemberOf(core, &local);
  if (member == nullptr) return kNone;
  const Program* const program = ProgramOf(*member, core);
  return program != nullptr ? program->catalog : member->target->view().view().catalog();
}

const ScopeSource* LiveDevice::SourceOf(const LiveScope& scope) const {
  for (const Member& member : members_) {
    if (member.target != nullptr && &member.target->view() == &scope) return &member.spec.source;
  }
  return nullptr;
}

std::vector<LiveDevice::Memory> LiveDevice::Memories() {
  std::vector<Memory> memories;
  for (Member& member : members_) {
    memories.push_back({member.spec, member.target == nullptr ? nullptr : &member.target->view(),
                        member.why_unread, HasEndedAlone(member), member.place, member.first_core});
  }
  return memories;
}

int LiveDevice::owner() const {
  int owner = 0;
  for (const Member& member : members_) {
    const int mine = member.target == nullptr ? 0 : member.target->owner();
    if (mine != 0 && owner != 0 && mine != owner) return 0;
    if (mine != 0) owner = mine;
  }
  return owner;
}

std::vector<int> LiveDevice::MovingThreads(TimeNs now, TimeNs time) const {
  std::vector<int> threads;
  for (const Member& member : members_) {
    if (!member.is_read()) continue;
    std::ranges::move(member.target->MovingThreads(now, time), std::back_inserter(threads));
  }
  return threads;
}

// By the kernel that was loaded there, where it waits in that; else by the core's own program.
std::vector<Place> LiveDevice::StackOf(const SubjectId& subject) {
  SubjectId local = subject;
  const Member* const member = MemberOf(subject, &local);
  UpdateHomes();
  if (member == nullptr || !member->is_read() || subject.index >= homes_.size()) return {};
  LiveScope& scope = member->target->view();
  if (subject.kind != SubjectId::Kind::kCore) return scope.StackOf(local);
  const SubjectHome& home = homes_[subject.index];
  for (const WatchNames* names : {home.kernel, home.names}) {
    const Program* const program = ProgramWith(*member, names);
    if (program == nullptr || program->code == nullptr) continue;
    std::vector<Place> stack = scope.StackOf(local, {*program->code, *names, program->symbol});
    if (!stack.empty()) return stack;
  }
  return home.names == member->names.at(kOfScope).get() ? scope.StackOf(local)
                                                        : std::vector<Place>();
}

Finding LiveDevice::Tell(const ScopeFinding& finding, TimeNs now) {
  AddStacks(
      finding, [this](const SubjectId& subject) { return StackOf(subject); }, &stacks_);
  Finding told = ToldFinding(finding, Scene(now), History(finding));
  const auto complete = [this](const std::vector<SubjectId>& subjects,
                               std::vector<FindingSubject>* list) {
    for (size_t i = 0; i < std::min(subjects.size(), list->size()); ++i) {
      const auto [scope, local] = HomeOf(subjects[i]);
      if (scope == nullptr || !(*list)[i].core) continue;
      (*list)[i].thread = scope->ThreadOf(local);
    }
  };
  complete(finding.subjects, &told.subjects);
  complete(finding.partners, &told.partners);
  complete(finding.victims, &told.victims);
  return told;
}

// Of what cannot be read, as it was read last.
Result<std::vector<ClaimRow>> LiveDevice::Claims() {
  std::vector<ClaimRow> cores;
  std::vector<ClaimRow> tasks;
  for (Member& member : members_) {
    if (member.target == nullptr) continue;
    auto claims = member.is_read() ? member.target->view().Claims()
                                   : Result<std::vector<ClaimRow>>(Status::Io("unread"));
    if (claims.ok()) member.claims = std::move(*claims);
    member.claims_known = member.claims_known || claims.ok();
    member.claims.resize(member.cores + member.tasks);
    for (size_t i = 0; i < member.claims.size(); ++i) {
      ClaimRow row = member.claims[i];
      for (auto* list : {&row.holds, &row.provides}) {
        for (uint32_t& resource : *list) resource = ResourceOf(member, resource);
      }
      (i < member.cores ? cores : tasks).push_back(std::move(row));
    }
  }
  cores.insert(cores.end(), std::make_move_iterator(tasks.begin()),
               std::make_move_iterator(tasks.end()));
  return cores;
}

Result<CoreDetail> LiveDevice::Detail(uint32_t core) {
  const auto [scope, local] = HomeOf({SubjectId::Kind::kCore, core});
  if (scope == nullptr) return Status::Io("its memory cannot be read");
  return scope->Detail(local.index);
}

std::vector<std::optional<uint32_t>> LiveDevice::FirstFaults() {
  std::vector<std::optional<uint32_t>> all(cores_);
  for (const Member& member : members_) {
    if (!member.is_read()) continue;
    const auto own = member.target->view().FirstFaults();
    for (uint32_t core = 0; core < std::min<size_t>(own.size(), member.cores); ++core) {
      if (own[core]) all[member.first_core + core] = member.first_core + *own[core];
    }
  }
  return all;
}

Result<uint64_t> LiveDevice::Emitted(uint32_t core) {
  const auto [scope, local] = HomeOf({SubjectId::Kind::kCore, core});
  if (scope == nullptr) return Status::Io("its memory cannot be read");
  return scope->Emitted(local.index);
}

// What one memory knows nobody else delivers, and a lock has one holder. Else whoever is in memory
// that cannot be read may deliver; what it said while it could be read makes that less likely.
std::vector<SupplierDoubt> LiveDevice::Doubts(uint32_t resource, bool holder_known) {
  std::vector<SupplierDoubt> doubts;
  if (holder_known || (resource & kLocalResource) != 0) return doubts;
  for (const Member& member : members_) {
    if (member.why_unread.empty()) continue;
    const std::string what = fmt::format("memory '{}' cannot be read ({})",
                                         Printable(member.spec.name), member.why_unread);
    if (member.claims_known)
      doubts.push_back({Confidence::kLikely,
                        what + ": nobody in it held or provided this when it was read last"});
    else
      doubts.push_back({Confidence::kPossible,
                        what + ": somebody in it may hold or provide what is waited for"});
  }
  return doubts;
}

}  // namespace hangscope
