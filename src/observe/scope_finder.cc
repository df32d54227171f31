#include "observe/scope_finder.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "scope/scope_elf.h"
#include "target/guest_ram.h"
#include "target/target_spec.h"

namespace hangscope {
namespace {

constexpr int kSearchNice = 10;  // whoever is searched goes first
constexpr int kMostSearches = 10;
constexpr TimeNs kFirstPause = 200 * kMillisecond;  // each is twice the one before
constexpr size_t kMostProcesses = 64;               // in one try
// What tries may take of a processor: 1 %, and a second once.
constexpr TimeNs kSearchShare = 100;
constexpr TimeNs kSearchBurst = kSecond;

}  // namespace

ScopeFinder::ScopeFinder(FileSystem& files, ScopeSource elf)
    : files_(files),
      elf_(std::move(elf)),
      queue_([this](const std::vector<int>& processes) { SearchAll(processes); },
             [] { (void)setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kSearchNice); }) {}

void ScopeFinder::Search(TimeNs now, const std::vector<int>& processes, TimeNs suspected_since) {
  if (process_ != nullptr || processes.empty()) return;
  if (began_ == 0) began_ = now;
  const bool is_news = suspected_since != 0 && suspected_since != asked_;
  if (!is_news && (tries_ == kMostSearches || now < next_try_)) return;
  {
    const std::lock_guard lock(mutex_);
    if (busy_ || spent_ > kSearchBurst + (now - began_) / kSearchShare) return;
    busy_ = true;
  }
  asked_ = suspected_since;
  if (tries_ < kMostSearches) ++tries_;
  next_try_ = now + (kFirstPause << (tries_ - 1));
  queue_.Add({processes.begin(), processes.begin() + static_cast<ptrdiff_t>(std::min(
                                                         processes.size(), kMostProcesses))});
}

void ScopeFinder::SearchAll(const std::vector<int>& processes) {
  const TimeNs begin = ThreadCpuTime();
  bool elf_has_scope = false;
  if (!elf_.elf.empty()) {
    const auto elf = ScopeElf::Read(elf_.elf_to_read());
    elf_has_scope = elf.ok() && elf.value().symbol.has_value();
  }
  for (const int pid : processes) {
    SearchOne(pid, elf_has_scope);
    const std::lock_guard lock(mutex_);
    if (found_) break;
  }
  const std::lock_guard lock(mutex_);
  elf_has_scope_ = elf_has_scope;
  spent_ += ThreadCpuTime() - begin;
  busy_ = false;
}

void ScopeFinder::SearchOne(int pid, bool elf_has_scope) {
  ScopeSource source = elf_;
  source.target = ProcessSpec(pid);
  // Not at each word, which the copy of a guest's memory in a tool's would be found by, too.
  source.guests = GuestScopes::kByPages;
  if (!elf_has_scope) source.elf = source.elf_copy = "";
  auto view = ScopeView::Open(files_, source);
  const Status may = view.ok() || !elf_has_scope ? Status() : CheckMayRead(pid);
  const std::lock_guard lock(mutex_);
  if (!may.ok()) warning_ = may.message();
  if (!view.ok()) return;
  source = elf_;
  source.target = (*view)->is_guest() ? (*view)->guest_spec() : ProcessSpec(pid);
  source.guests = GuestScopes::kNot;
  found_ = Found{std::move(source), pid, (*view)->layout().core_count};
}

std::optional<ScopeFinder::Found> ScopeFinder::DrainFound() {
  const std::lock_guard lock(mutex_);
  auto found = std::exchange(found_, std::nullopt);
  if (!found) return std::nullopt;
  process_ = ProcessEnd::Watch(found->pid);
  return process_ != nullptr ? found : std::nullopt;
}

bool ScopeFinder::HasEnded() {
  if (process_ == nullptr || !process_->HasEnded()) return false;
  process_.reset();
  tries_ = 0;
  next_try_ = 0;
  return true;
}

bool ScopeFinder::IsExpected() {
  const std::lock_guard lock(mutex_);
  return elf_has_scope_ && (busy_ || process_ != nullptr || tries_ < kMostSearches);
}

std::optional<std::string> ScopeFinder::DrainWarning() {
  const std::lock_guard lock(mutex_);
  if (busy_ || found_ || warning_.empty() || warned_) return std::nullopt;
  warned_ = true;
  return warning_;
}

}  // namespace hangscope
