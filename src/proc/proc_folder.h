// Reads the /proc folder, or one that a test or a core dump has made up. Every read may fail at any
// time, because processes end when they like; errors are errno values, for the caller to put into a
// sentence.
#ifndef HANGSCOPE_PROC_PROC_FOLDER_H
#define HANGSCOPE_PROC_PROC_FOLDER_H

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "proc/proc_text.h"

namespace hangscope {

// What a descriptor is: its link, "pipe:[4711]", and the device and inode behind it.
struct DescriptorLink {
  int fd = -1;
  std::string target;
};

class ProcFolder {
 public:
  explicit ProcFolder(std::string root) : root_(std::move(root)) {}
  // Of files alone, by their paths; it has no links.
  explicit ProcFolder(std::map<std::string, std::string> texts)
      : texts_(std::make_shared<const std::map<std::string, std::string>>(std::move(texts))) {}

  // Process ids, ascending.
  std::vector<int> Processes() const;
  // Thread ids of a process, ascending; empty where there is no such process any more.
  std::vector<int> Threads(int pid) const;

  // `path` is below the root: "42/maps". Nothing on failure, and *error says why.
  std::optional<std::string> Read(const std::string& path, int* error = nullptr) const;
  // The same of a file of a thread that the kernel gives in one piece (stat, status, syscall,
  // sched, schedstat): it is not asked again whether that was all.
  std::optional<std::string> ReadRecord(const std::string& path, int* error = nullptr) const;
  std::optional<std::string> Link(const std::string& path) const;
  // Device ("fe:00", as in maps) and inode that a link leads to.
  struct FileIdentity {
    std::string device;
    uint64_t inode = 0;
    bool is_fifo = false;
    bool is_character_device = false;
    bool is_regular = false;
  };
  std::optional<FileIdentity> Identify(const std::string& path) const;

  // All descriptors of a process; *error is EACCES and the like where they may not be seen.
  std::vector<DescriptorLink> Descriptors(int pid, int* error) const;

  std::optional<TaskStat> Stat(int pid) const;
  // The words of its command line with spaces between, or their begin; may be empty.
  std::string CommandLine(int pid) const;
  // Whether this process has the numbers of the machine's first namespace; nothing: not known.
  std::optional<bool> IsInFirstPidNamespace() const;
  // Why what the folder shows says nothing of this process and its children; empty: it does.
  std::string WhyBlind() const;
  std::string Path(const std::string& path) const { return root_ + "/" + path; }

 private:
  std::optional<std::string> ReadFile(const std::string& path, bool in_one, int* error) const;
  std::vector<int> Numbers(const std::string& folder, int* error) const;

  std::string root_;
  std::shared_ptr<const std::map<std::string, std::string>> texts_;  // null: a folder
};

}  // namespace hangscope

#endif
