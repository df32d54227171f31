#include "watch/rotated_log.h"

#include <fmt/format.h>

#include <algorithm>

namespace hangscope {

RotatedLog::RotatedLog(FileSystem& files, RotatedLogOptions options,
                       std::function<std::string()> head, std::function<std::string(uint64_t)> lost)
    : files_(files), options_(std::move(options)), head_(std::move(head)), lost_(std::move(lost)) {}

std::string RotatedLog::NameOfOld(int number) const {
  return fmt::format("{}.{}", options_.path, number);
}

// FILE is what the user named; of the others only the number is ours.
Status RotatedLog::CheckOld() const {
  for (int i = 1; i < options_.keep && !options_.begins.empty(); ++i) {
    const std::string path = NameOfOld(i);
    if (!files_.Exists(path)) continue;
    auto file = files_.Open(path, FileSystem::Mode::kRead);
    if (!file.ok()) return file.status();
    char buffer[64];
    auto got = (*file)->ReadAt(0, buffer);
    if (!got.ok()) return got.status();
    const std::string_view begin(buffer, *got);
    const bool is_ours =
        std::any_of(options_.begins.begin(), options_.begins.end(),
                    [&](const std::string& ours) { return begin.starts_with(ours); });
    if (!is_ours)
      return Status::Usage(fmt::format(
          "'{}' is no log of hangscope watch, so that it is not written over; move it away, or "
          "name another --log",
          path));
  }
  return {};
}

Status RotatedLog::Open() {
  if (Status status = CheckOld(); !status.ok()) return status;
  if (!options_.append) {
    for (int i = 1; i < options_.keep; ++i) {
      if (Status status = files_.Remove(NameOfOld(i)); !status.ok()) return status;
    }
  }
  return Begin(options_.append);
}

Status RotatedLog::Begin(bool keep_what_is_there) {
  auto file = files_.Open(options_.path, FileSystem::Mode::kCreate);
  if (!file.ok()) return file.status();
  file_ = std::move(*file);
  size_ = 0;
  if (!keep_what_is_there) {
    if (Status status = file_->Truncate(0); !status.ok()) return status;
    return Put(head_());
  }
  auto size = file_->Size();
  if (!size.ok()) return size.status();
  size_ = *size;
  const std::string head = head_();
  return size_ + head.size() > options_.size_bytes ? Rotate() : Put(head);
}

Status RotatedLog::Rotate() {
  file_.reset();
  if (options_.keep == 1) return Begin(false);
  for (int i = options_.keep - 1; i > 0; --i) {
    const std::string from = i == 1 ? options_.path : NameOfOld(i - 1);
    if (!files_.Exists(from)) continue;
    if (Status status = files_.Rename(from, NameOfOld(i)); !status.ok()) return status;
  }
  return Begin(false);
}

// What did not arrive whole is taken back: the file ends with a whole line.
Status RotatedLog::Put(std::string_view text) {
  size_t written = 0;
  const Status status = file_->WriteAt(size_, text, &written);
  if (status.ok()) {
    size_ += text.size();
    return {};
  }
  (void)file_->Truncate(size_).ok();
  return status;
}

Status RotatedLog::WriteWhole(std::string_view lines) {
  std::string text = untold_ > 0 ? lost_(untold_) : "";
  text += lines;
  if (file_ == nullptr) {
    if (Status status = Begin(true); !status.ok()) return status;
  }
  if (size_ + text.size() > options_.size_bytes) {
    if (Status status = Rotate(); !status.ok()) return status;
    if (size_ + text.size() > options_.size_bytes)
      return Status::Usage(fmt::format("'{}': lines of {} bytes do not fit into a file of {}",
                                       options_.path, text.size(), options_.size_bytes));
  }
  if (Status status = Put(text); !status.ok()) return status;
  untold_ = 0;
  return {};
}

Status RotatedLog::Write(std::string_view lines) {
  Status status = WriteWhole(lines);
  if (status.ok()) return status;
  const auto count = static_cast<uint64_t>(std::count(lines.begin(), lines.end(), '\n'));
  lost_lines_ += count;
  untold_ += count;
  return status;
}

}  // namespace hangscope
