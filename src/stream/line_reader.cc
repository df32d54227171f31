#include "stream/line_reader.h"

#include <cstring>

namespace hangscope {

void LineReader::Feed(std::string_view bytes, uint64_t offset) {
  if (offset != next_offset_) {  // a gap: the line it cuts is nobody's
    partial_.clear();
    skip_to_newline_ = offset != 0;
  }
  next_offset_ = offset + bytes.size();
  while (!bytes.empty()) {
    const auto* newline = static_cast<const char*>(memchr(bytes.data(), '\n', bytes.size()));
    const size_t length =
        newline != nullptr ? static_cast<size_t>(newline - bytes.data()) : bytes.size();
    const std::string_view piece = bytes.substr(0, length);
    if (skip_to_newline_) {
      if (newline != nullptr) skip_to_newline_ = false;
    } else if (newline == nullptr) {
      if (partial_.empty()) partial_offset_ = offset;
      partial_.append(piece);
      if (partial_.size() > kLongestLine) {
        partial_.clear();
        skip_to_newline_ = true;
        HandleOverlongLine(partial_offset_);
      }
    } else if (!partial_.empty()) {
      partial_.append(piece);
      Take(partial_, partial_offset_);
      partial_.clear();
    } else {
      Take(piece, offset);
    }
    const size_t used = newline != nullptr ? length + 1 : length;
    bytes.remove_prefix(used);
    offset += used;
  }
}

void LineReader::Take(std::string_view line, uint64_t offset) {
  if (line.size() > kLongestLine) {
    HandleOverlongLine(offset);
  } else {
    HandleLine(line, offset);
  }
}

}  // namespace hangscope
