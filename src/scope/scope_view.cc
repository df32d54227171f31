#include "scope/scope_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "hangscope/abi/scope.h"
#include "scope/scope_elf.h"
#include "target/file_users.h"
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

}  // namespace

Result<std::unique_ptr<ScopeView>> ScopeView::Open(FileSystem& files, const ScopeSource& source) {
  std::unique_ptr<ScopeView> view(new ScopeView);
  TargetOptions options;
  options.intrusive = source.intrusive;
  std::shared_ptr<const ScopeElf> elf = source.read_elf;
  if (!source.elf.empty()) {
    if (elf == nullptr) {
      auto read = ScopeElf::Read(source.elf);
      if (!read.ok()) return read.status();
      elf = std::make_shared<const ScopeElf>(std::move(*read));
    }
    options.symbol = elf->symbol;
    options.elf_path = elf->path;
    options.elf_first_address = elf->first_address;
    options.elf_moves = elf->moves;
  }
  std::string spec = source.target;
  std::string catalog = elf ? elf->catalog : "";
  if (!source.open && files.IsFolder(spec)) {
    const std::string folder = spec.substr(0, spec.find_last_not_of('/') + 1);
    const std::string image = fmt::format("{}/{}", folder, kScopeImageName);
    spec = FileSpec(image);
    if (!files.Exists(image)) {
      return Status::NotFound(
          fmt::format("'{}' has no scope: there is no '{}' in it", folder, kScopeImageName));
    }
    if (auto kept = ReadWholeFile(files, folder + "/" + kScopeCatalogName, kMostCatalogBytes);
        kept.ok() && catalog.empty())
      catalog = *kept;
  }
  const TargetSpec parsed = ParseTargetSpec(files, spec);
  if (!source.open && parsed.kind == TargetSpec::Kind::kFile) view->path_ = parsed.where;
  auto target = source.open ? source.open() : OpenTarget(spec, options);
  if (!target.ok()) return target.status();
  view->target_ = std::move(*target);
  if (const std::string warning = view->target_->warning(); !warning.empty())
    view->warnings_.push_back(warning);
  if (!elf && catalog.empty() && !view->target_->elf_path().empty()) {
    if (auto own = ScopeElf::Read(view->target_->elf_path()); own.ok()) catalog = own->catalog;
  }
  std::optional<uint64_t> address;
  if (elf && elf->symbol) address = view->target_->AddressOf(*elf->symbol);
  auto scope = ScopeReader::Open(*view->target_, address);
  if (!scope.ok()) return scope.status();
  view->scope_ = std::move(*scope);
  view->catalog_bytes_ = catalog;
  if (Status status = view->catalog_.Add(catalog); !status.ok())
    view->warnings_.push_back(status.message());
  const std::string& built = view->layout().build_id;
  if (elf && !built.empty() && !elf->build_id.empty() &&
      !elf->build_id.starts_with(built.substr(0, elf->build_id.size()))) {
    view->warnings_.push_back(fmt::format(
        "'{}' is not what runs there: the build ids differ, so names may be wrong", source.elf));
  }
  view->StartOver();
  return view;
}

bool ScopeView::IsLive() const {
  if (target_->life() != Life::kUnknown) return target_->life() == Life::kLive;
  // A file: the process whose it is may be gone, and its number another's.
  const bool of_a_process =
      (layout().features & HANGSCOPE_FEATURE_THREADS) != 0 && layout().pid != 0;
  if (!of_a_process) return true;
  const int pid = static_cast<int>(layout().pid);
  return LifeOfProcess(pid) == Life::kLive &&
         (path_.empty() || MapsFile(pid, path_).value_or(true));
}

Status ScopeView::Poll(bool last) {
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
