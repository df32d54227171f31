#include "snapshot/scope_capture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "hangscope/abi/scope.h"

namespace hangscope {
namespace {

// The error of times is about that.
constexpr TimeNs kBetweenLooks = 200 * kMillisecond;

}  // namespace

void ScopeCapture::Find(int pid) {
  if (view_ != nullptr) return;
  auto view = ScopeView::Open(files_, place_(pid));
  if (view.ok())
    view_ = std::move(*view);
  else
    why_not_ = view.status();
}

void ScopeCapture::SampleClock(Clock& clock, ScopeClock* scope_clock) {
  if (view_ == nullptr || CountsAsMachine(view_->layout())) return;
  const TimeNs begun = clock.Monotonic();
  if (looked_ != 0 && begun - looked_ < kBetweenLooks) return;
  if (BeganAnew()) {
    scope_clock->ForgetTarget();
    newest_.clear();
    looked_ = 0;
    view_->StartOver();
  }
  if (!view_->Poll(false).ok()) return;
  SeeNewest(looked_, clock.Monotonic(), scope_clock);
  looked_ = begun;
}

// What the first look finds may be of any age.
void ScopeCapture::SeeNewest(TimeNs before, TimeNs after, ScopeClock* scope_clock) {
  std::map<uint32_t, uint64_t> fresh;
  for (const EventOrLoss& item : view_->Take()) {
    const auto* event = std::get_if<ScopeEvent>(&item);
    if (event == nullptr || event->age > 0 || event->ambiguous) continue;
    uint64_t& newest = fresh[view_->layout().shared_clock() ? 0 : event->core];
    newest = std::max(newest, event->time);
  }
  for (const auto& [core, newest] : fresh) {
    const auto known = newest_.find(core);
    const bool is_new = known != newest_.end() ? newest > known->second : before != 0;
    if (is_new && before != 0) scope_clock->SawNewest(core, newest, before, after);
    newest_[core] = known == newest_.end() ? newest : std::max(known->second, newest);
  }
}

// A target that starts again counts it in its header; its clock then begins anew, too.
bool ScopeCapture::BeganAnew() {
  const ScopeLayout& layout = view_->layout();
  char bytes[4];
  if (!view_->scope().target().Read(layout.address + offsetof(hangscope_header, boots), bytes).ok())
    return false;
  const uint32_t boots = Load32(bytes, layout.order);
  return std::exchange(boots_, boots) != boots;
}

Result<ScopeParts> ScopeCapture::Take(int pid) {
  Find(pid);
  if (view_ == nullptr) return why_not_;
  auto image = view_->scope().ReadImage();
  if (!image.ok()) return image.status();
  ScopeParts parts{std::move(*image), view_->catalog_bytes(), {}};
  SystemClock clock;
  view_->StartOver();
  if (Status status = view_->SampleOnce(clock); !status.ok()) return status;
  (void)view_->Take();
  parts.cores = view_->Cores();
  return parts;
}

}  // namespace hangscope
