#include "scope/scope_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "hangscope/abi/scope.h"
#include "scope/scope_elf.h"
#include "scope/watch_reader.h"
#include "target/file_users.h"
#include "target/guest_ram.h"
#include "target/process_target.h"
#include "target/target_spec.h"

namespace hangscope {
namespace {

constexpr int kLooksAtUnfinished = 5;
constexpr TimeNs kBetweenLooks = 2 * kMillisecond;

// Older runs first, then by time; a loss stands where its time says.
std::tuple<uint32_t, uint64_t> PlaceInTime(const EventOrLoss& item) {
  if (const auto* event = std::get_if<ScopeEvent>(&item)) return {~event->age, event->time};
  const EventLoss& loss = std::get<EventLoss>(item);
  return {~loss.age, loss.time};
}

// Not known of both: they do.
bool BuildsFit(const ScopeElf& elf, const ScopeLayout& layout) {
  const std::string& built = layout.build_id;
  return built.empty() || elf.build_id.empty() ||
         elf.build_id.starts_with(built.substr(0, elf.build_id.size()));
}

// A copy of a header, or one whose rest lies elsewhere, is no scope: the mailboxes behind it are
// sound where it is one.
bool IsSound(const ScopeReader& scope) {
  auto mailboxes = WatchReader::Open(scope);
  if (!mailboxes.ok()) return mailboxes.status().code() == Status::Code::kNotFound;  // has none
  ScopeSample sample;
  return mailboxes->Poll(&sample).ok() && sample.corruptions.empty();
}

// The simulator `pid`, and where in it the scope of the guest that runs `elf` is.
Result<std::unique_ptr<Target>> OpenGuest(FileSystem& files, int pid, const ScopeElf& elf,
                                          GuestScopes how) {
  const GuestSearch search = {*elf.symbol, elf.first_address, how == GuestScopes::kEverywhere};
  const auto has_scope = [&](Target& target) {
    auto scope = ScopeReader::Open(target, std::nullopt);
    return scope.ok() && BuildsFit(elf, scope->layout()) && IsSound(*scope);
  };
  auto found = FindInGuestRam(files, pid, search, [&](uint64_t address) {
    auto target = OpenTarget(GuestSpec(pid, address), {});
    return target.ok() && has_scope(**target);
  });
  if (!found.ok()) return found.status();
  auto pages = *found ? Result<std::optional<PagedRam>>(std::nullopt)
                      : FindPagedGuestRam(files, pid, search, [&](const PagedRam& ram) {
                          PagedGuest guest(pid, ram, search.symbol);
                          return has_scope(guest);
                        });
  if (pages.ok() && *pages)
    return std::unique_ptr<Target>(std::make_unique<PagedGuest>(pid, **pages, search.symbol));
  if (!*found)
    return Status::NotFound(fmt::format(
        "process {} does not run that program, and no guest in its memory has the scope of one yet",
        pid));
  return OpenTarget(GuestSpec(pid, **found), {});
}

}  // namespace

Result<std::unique_ptr<ScopeView>> ScopeView::Open(FileSystem& files, const ScopeSource& source) {
  std::unique_ptr<ScopeView> view(new ScopeView);
  TargetOptions options;
  options.intrusive = source.intrusive;
  std::optional<ScopeElf> elf;
  if (!source.elf.empty()) {
    auto read = ScopeElf::Read(source.elf_to_read());
    if (!read.ok()) return read.status();
    elf = std::move(*read);
    options.symbol = elf->symbol;
    options.elf_path = source.elf;
    options.elf_first_address = elf->first_address;
    options.elf_moves = elf->moves;
  }
  std::string spec = source.target;
  std::string catalog = elf ? elf->catalog : "";
  const bool is_folder = !source.open && files.IsFolder(spec);
  view->is_over_ = view->is_image_ = is_folder || !source.catalog.empty();
  if (!source.catalog.empty()) {
    if (auto kept = ReadWholeFile(files, source.catalog, kMostCatalogBytes); kept.ok())
      catalog = *kept;
  }
  if (is_folder) {
    const std::string folder = spec.substr(0, spec.find_last_not_of('/') + 1);
    const std::string image = fmt::format("{}/{}", folder, kScopeImageName);
    spec = FileSpec(image);
    if (!files.Exists(image)) {
      return Status::NotFound(fmt::format(
          "'{}' has no scope: there is no '{}' in it; if it is a snapshot, hangscope why "
          "and hangscope cat read what it has",
          folder, kScopeImageName));
    }
    if (auto kept = ReadWholeFile(files, folder + "/" + kScopeCatalogName, kMostCatalogBytes);
        kept.ok() && catalog.empty())
      catalog = *kept;
  }
  auto target = source.open ? source.open() : OpenTarget(spec, options);
  if (!target.ok()) return target.status();
  view->target_ = std::move(*target);
  if (const std::string warning = view->target_->warning(); !warning.empty())
    view->warnings_.push_back(warning);
  if (!elf && catalog.empty() && !view->target_->elf_path().empty()) {
    if (auto own = ScopeElf::Read(view->target_->elf_path()); own.ok()) catalog = own->catalog;
  }
  std::optional<uint64_t> address;
  if (elf) view->symbol_ = elf->symbol;
  if (elf && elf->symbol) address = view->target_->AddressOf(*elf->symbol);
  auto scope = ScopeReader::Open(*view->target_, address);
  if (!scope.ok() && view->target_->may_simulate() && source.guests != GuestScopes::kNot) {
    const int simulator = ParseTargetSpec(files, spec).pid;
    auto guest = OpenGuest(files, simulator, *elf, source.guests);
    if (!guest.ok()) return guest.status();
    view->target_ = std::move(*guest);
    scope = ScopeReader::Open(*view->target_, std::nullopt);
  }
  if (!scope.ok()) return scope.status();
  view->scope_ = std::move(*scope);
  view->catalog_bytes_ = catalog;
  if (Status status = view->catalog_.Add(catalog); !status.ok())
    view->warnings_.push_back(status.message());
  view->RefreshNames();
  for (const std::string& lost : view->Losses()) view->warnings_.push_back(lost);
  if (elf && !source.elf_is_one_of_several && !BuildsFit(*elf, view->layout())) {
    view->warnings_.push_back(fmt::format(
        "'{}' is not what runs there: the build ids differ, so names may be wrong", source.elf));
  }
  const TargetSpec parsed = ParseTargetSpec(files, spec);
  const bool is_file = !source.open && parsed.kind == TargetSpec::Kind::kFile;
  view->is_one_memory_ = is_file && !parsed.offset;
  view->FindProcess(parsed, is_file);
  view->StartOver();
  return view;
}

// The number in the header may be another's by now, or that of another container; and who has the
// file mapped tells nothing of a copy, which nobody has.
void ScopeView::FindProcess(const TargetSpec& spec, bool is_file) {
  const bool of_threads = (layout().features & HANGSCOPE_FEATURE_THREADS) != 0;
  if (is_guest()) return;
  if (spec.kind == TargetSpec::Kind::kProcess)
    pid_ = spec.pid;
  else if (of_threads)
    pid_ = static_cast<int>(layout().pid);
  if (pid_ == 0 || is_over_) return;
  const bool lives = LifeOfProcess(pid_) == Life::kLive;
  if (is_file && !(lives && MapsFile(pid_, spec.where).value_or(true))) {
    const std::vector<int> users = ProcessesThatMap(spec.where);
    is_over_ = users.empty();
    if (!users.empty())
      pid_ = users[0];
    else if (lives)
      pid_ = 0;
  }
  if (!is_over_) process_ = ProcessEnd::Watch(pid_);
}

std::optional<uint64_t> ScopeView::AddressOf(uint64_t address,
                                             std::optional<uint64_t> symbol) const {
  if (const auto known = target_->AddressOf(address)) return known;
  if (!symbol) symbol = symbol_;
  if (!symbol) return std::nullopt;
  const uint64_t at = layout().address + (address - *symbol);
  const auto& ranges = target_->ranges();
  const bool is_beside = std::any_of(ranges.begin(), ranges.end(), [&](const MemoryRange& range) {
    return range.Contains(layout().address, layout().scope_bytes) && range.Contains(at, 1);
  });
  return is_beside ? std::optional(at) : std::nullopt;
}

Life ScopeView::life() const {
  if (is_over_) return Life::kDead;
  if (target_->life() != Life::kUnknown || pid_ == 0) return target_->life();
  if (process_ == nullptr) return LifeOfProcess(pid_);
  return process_->HasEnded() ? Life::kDead : Life::kLive;
}

void ScopeView::RefreshNames() {
  auto given = scope_->ReadNames();
  if (!given.ok()) return;
  given_ = std::move(*given);
  catalog_.SetGiven(given_.names);
}

// Of what the target had no room for.
std::vector<std::string> ScopeView::Losses() const {
  std::vector<std::string> losses;
  if (const uint32_t lost = layout().lost_tasks; lost != 0) {
    losses.push_back(fmt::format(
        "{} task{} found no record of what {} for, of {}: a hang among them is not seen; build "
        "the program with a larger HANGSCOPE_TASKS",
        lost, lost == 1 ? "" : "s", lost == 1 ? "it waits" : "they wait", layout().task_count));
  }
  if (const uint32_t lost = given_.lost; lost != 0) {
    losses.push_back(fmt::format(
        "{} name{} found no place, of {}; build the program with a larger HANGSCOPE_NAME_SLOTS",
        lost, lost == 1 ? "" : "s", layout().name_count));
  }
  return losses;
}

Status ScopeView::Poll(bool last) {
  RefreshNames();
  for (EventReader& reader : readers_) {
    if (Status status = reader.Poll(last); !status.ok()) return status;
  }
  return {};
}

void ScopeView::StartOver() {
  readers_.clear();
  for (uint32_t core = 0; core < layout().core_count; ++core) readers_.emplace_back(*scope_, core);
}

// Each look begins anew, so that all that is taken is of one and in order.
Status ScopeView::SampleOnce(Clock& clock) {
  const auto unfinished = [&] {
    return std::any_of(readers_.begin(), readers_.end(),
                       [](const EventReader& r) { return r.has_pending(); });
  };
  for (int look = 0;; ++look) {
    const Life life = target_->life();
    const bool last = life == Life::kDead || (life == Life::kUnknown && look == kLooksAtUnfinished);
    if (Status status = Poll(last); !status.ok()) return status;
    if (!unfinished() || look == kLooksAtUnfinished) break;
    clock.Sleep(kBetweenLooks);
    StartOver();
  }
  if (target_->life() == Life::kLive) return {};
  for (EventReader& reader : readers_) reader.CheckCounts();
  return {};
}

std::vector<EventOrLoss> ScopeView::Take() {
  std::vector<EventOrLoss> all;
  for (EventReader& reader : readers_) {
    while (auto item = reader.Next()) all.push_back(std::move(*item));
  }
  if (layout().shared_clock()) {
    std::stable_sort(all.begin(), all.end(), [](const EventOrLoss& a, const EventOrLoss& b) {
      return PlaceInTime(a) < PlaceInTime(b);
    });
  }
  return all;
}

std::vector<ScopeCore> ScopeView::Cores() const {
  std::vector<ScopeCore> cores;
  for (const EventReader& reader : readers_) cores.push_back(reader.core());
  return cores;
}

Result<std::vector<TaskWait>> ScopeView::Tasks() {
  task_corruptions_.clear();
  return scope_->ReadTasks(&task_corruptions_);
}

std::vector<Corruption> ScopeView::Corruptions() const {
  std::vector<Corruption> all = scope_->corruptions();
  for (const EventReader& reader : readers_)
    all.insert(all.end(), reader.corruptions().begin(), reader.corruptions().end());
  all.insert(all.end(), task_corruptions_.begin(), task_corruptions_.end());
  return all;
}

}  // namespace hangscope
