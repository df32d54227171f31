// A log whose disk use is fixed in advance: FILE, and FILE.1, FILE.2 ... that were FILE before, the
// highest number the oldest. Each file begins with a head, so that it can be read by itself.
//
// A log that cannot be written is no reason to stop watching: lines are counted as lost, and when
// there is room again, one says how many. One thread.
#ifndef HANGSCOPE_WATCH_ROTATED_LOG_H
#define HANGSCOPE_WATCH_ROTATED_LOG_H

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_system.h"

namespace hangscope {

struct RotatedLogOptions {
  std::string path;
  uint64_t size_bytes = 10u << 20;  // of each file at most
  int keep = 3;                     // files, FILE included; at least 1
  bool append = false;              // to what is there; else it is begun anew
  // What a log begins with: a FILE.N that begins with none of these is somebody else's. Empty: any
  std::vector<std::string> begins = {};
};

class RotatedLog {
 public:
  // `head`: what each file begins with, asked for when one is begun; lines. `lost`: the line that
  // says how many lines are missing.
  RotatedLog(FileSystem& files, RotatedLogOptions options, std::function<std::string()> head,
             std::function<std::string(uint64_t)> lost);

  // Fails where the file cannot be made, or one that is to go is no log of this kind; writes the
  // head.
  Status Open();
  // Whole lines; all of them or none. Begins a new file where they do not fit.
  Status Write(std::string_view lines);
  uint64_t lost_lines() const { return lost_lines_; }

 private:
  std::string NameOfOld(int number) const;
  Status CheckOld() const;
  Status Begin(bool keep_what_is_there);
  Status Rotate();
  Status Put(std::string_view text);
  Status WriteWhole(std::string_view lines);

  FileSystem& files_;
  const RotatedLogOptions options_;
  const std::function<std::string()> head_;
  const std::function<std::string(uint64_t)> lost_;
  std::unique_ptr<File> file_;
  uint64_t size_ = 0;
  uint64_t lost_lines_ = 0;  // in all
  uint64_t untold_ = 0;      // of these, that no line says yet
};

}  // namespace hangscope

#endif
