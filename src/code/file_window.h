// A file of any size, seen through a window of bounded memory that moves with what is asked for.
#ifndef HANGSCOPE_CODE_FILE_WINDOW_H
#define HANGSCOPE_CODE_FILE_WINDOW_H

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_system.h"

namespace hangscope {

// One thread.
class FileWindow {
 public:
  // `bytes`: the least that is read at once.
  FileWindow(File& file, size_t bytes) : file_(file), least_(bytes) {}

  // The bytes at `offset`: `size` of them, fewer only at the end of the file. Valid until the next
  // call.
  Result<std::string_view> At(uint64_t offset, size_t size) {
    if (offset < begin_ || offset + size > begin_ + held_) {
      if (Status status = Fill(offset, std::max(size, least_)); !status.ok()) return status;
    }
    return std::string_view(buffer_.data(), held_).substr(offset - begin_, size);
  }
  // What is in memory of the bytes from `offset` on; empty: At() has to read. Valid until its next
  // call.
  std::string_view Held(uint64_t offset) const {
    if (offset < begin_ || offset - begin_ >= held_) return {};
    return {buffer_.data() + (offset - begin_), static_cast<size_t>(held_ - (offset - begin_))};
  }

 private:
  Status Fill(uint64_t offset, size_t size) {
    if (buffer_.size() < size) buffer_.resize(size);
    begin_ = offset;
    held_ = 0;
    auto got = file_.ReadAt(offset, {buffer_.data(), size});
    if (!got.ok()) return got.status();
    held_ = *got;
    return {};
  }

  File& file_;
  size_t least_;
  std::vector<char> buffer_;
  uint64_t begin_ = 0;
  size_t held_ = 0;
};

}  // namespace hangscope

#endif
