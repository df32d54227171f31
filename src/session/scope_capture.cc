#include "session/scope_capture.h"

#include <fmt/format.h>

namespace hangscope {

void ScopeCapture::Find(int pid) {
  if (view_ != nullptr) return;
  const std::string target = spec_ == "pid:" ? fmt::format("pid:{}", pid) : spec_;
  auto view = ScopeView::Open(files_, {target, elf_, false});
  if (view.ok()) view_ = std::move(*view);
  else why_not_ = view.status();
}

Result<ScopeParts> ScopeCapture::Take(int pid) {
  Find(pid);
  if (view_ == nullptr) return why_not_;
  auto image = view_->scope().ReadImage();
  if (!image.ok()) return image.status();
  ScopeParts parts{std::move(*image), view_->catalog_bytes(), {}};
  SystemClock clock;
  view_->StartOver();
  if (Status status = view_->LookOnce(clock); !status.ok()) return status;
  (void)view_->Take();
  parts.cores = view_->Cores();
  return parts;
}

}  // namespace hangscope
