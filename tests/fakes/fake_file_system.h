// A disk in memory that can be full, and that watches how much it holds. Any
// thread may use it.
#ifndef HANGSCOPE_TESTS_FAKES_FAKE_FILE_SYSTEM_H
#define HANGSCOPE_TESTS_FAKES_FAKE_FILE_SYSTEM_H

#include <cerrno>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/file_system.h"

namespace hangscope {

class FakeFileSystem final : public FileSystem {
 public:
  struct Content {
    std::string bytes;
    int links = 0;
    bool locked = false;
    bool foreign = false;  // another user's
  };

  // Writes beyond `capacity` bytes in all fail with ENOSPC after what still fits.
  uint64_t capacity = std::numeric_limits<uint64_t>::max();
  bool has_hard_links = true;
  int write_error = 0;  // an errno with which every write fails
  // The most that names beginning with `watched` ever took together.
  std::string watched = "\xff";
  uint64_t peak = 0;
  std::vector<std::string> synced;  // in order

  // Called after every write that took place.
  std::function<void()> after_write;

  // All names go; who has a file open keeps it.
  void Clear() {
    for (auto& [name, content] : files_) --content->links;
    files_.clear();
    folders_.clear();
    peak = 0;
  }

  // A death: from the `bytes`-th byte on nothing that is done changes the disk. A
  // change of names counts as a byte, and up to `atomic_bytes` are written or not.
  uint64_t atomic_bytes = 64;
  void CrashAfter(uint64_t bytes) {
    budget_ = bytes;
    written_since_ = 0;
  }
  uint64_t written_since() const { return written_since_; }

  using Files = std::map<std::string, std::string>;
  Files Save() const {
    Files saved;
    for (const auto& [name, content] : files_) saved[name] = content->bytes;
    return saved;
  }
  void Restore(const Files& saved) {
    files_.clear();
    for (const auto& [name, bytes] : saved) {
      auto content = std::make_shared<Content>();
      content->bytes = bytes;
      content->links = 1;
      files_[name] = content;
    }
  }
  void GiveAway(const std::string& path) { files_.at(path)->foreign = true; }
  std::string& BytesOf(const std::string& path) { return files_.at(path)->bytes; }
  uint64_t Used() const {
    std::set<const Content*> distinct;
    for (const auto& [name, content] : files_) distinct.insert(content.get());
    uint64_t used = 0;
    for (const Content* content : distinct) used += content->bytes.size();
    return used;
  }

  Result<std::unique_ptr<File>> Open(const std::string& path, Mode mode) override {
    const std::lock_guard lock(mutex_);
    auto at = files_.find(path);
    const bool makes = mode == Mode::kNew || mode == Mode::kRecordedNew;
    if (makes && (at != files_.end() || folders_.count(path) != 0))
      return Status::FromErrno(EEXIST, "open", path);
    if (at == files_.end()) {
      if (!makes && mode != Mode::kCreate) return Status::FromErrno(ENOENT, "open", path);
      if (!Spend(1))
        return std::unique_ptr<File>(std::make_unique<FakeFile>(this, std::make_shared<Content>()));
      at = files_.emplace(path, std::make_shared<Content>()).first;
      at->second->links = 1;
    }
    return std::unique_ptr<File>(std::make_unique<FakeFile>(this, at->second));
  }
  Status Link(const std::string& from, const std::string& to) override {
    const std::lock_guard lock(mutex_);
    if (!Spend(1)) return {};
    if (!has_hard_links) return Status::FromErrno(EPERM, "link", to);
    const auto at = files_.find(from);
    if (at == files_.end()) return Status::FromErrno(ENOENT, "link", from);
    ++at->second->links;
    files_[to] = at->second;
    return {};
  }
  Status Rename(const std::string& from, const std::string& to) override {
    const std::lock_guard lock(mutex_);
    if (!Spend(1)) return {};
    std::map<std::string, std::shared_ptr<Content>> moved;
    for (auto at = files_.begin(); at != files_.end();) {
      if (at->first == from || at->first.starts_with(from + "/")) {
        moved[to + at->first.substr(from.size())] = at->second;
        at = files_.erase(at);
      } else {
        ++at;
      }
    }
    for (const auto& [name, content] : moved) {  // what had the name is replaced
      if (const auto old = files_.find(name); old != files_.end()) --old->second->links;
      files_[name] = content;
    }
    if (folders_.erase(from) != 0) folders_.insert(to);
    return {};
  }
  Status Remove(const std::string& path) override {
    const std::lock_guard lock(mutex_);
    const auto at = files_.find(path);
    if (at == files_.end() || !Spend(1)) return {};
    --at->second->links;
    files_.erase(at);
    return {};
  }
  Status RemoveFolder(const std::string& path) override {
    const std::lock_guard lock(mutex_);
    for (const std::string& name : List(path)) {
      if (folders_.count(path + "/" + name) != 0 || !Below(path + "/" + name).empty())
        return Status::FromErrno(ENOTEMPTY, "remove", path);
    }
    for (const std::string& name : Below(path)) (void)Remove(name).ok();
    folders_.erase(path);
    return {};
  }
  Status MakeFolders(const std::string& path) override {
    const std::lock_guard lock(mutex_);
    folders_.insert(path);
    return {};
  }
  Status MakeFolder(const std::string& path, Mode) override {
    const std::lock_guard lock(mutex_);
    if (Exists(path)) return Status::FromErrno(EEXIST, "create the folder", path);
    folders_.insert(path);
    return {};
  }
  Status PointLink(const std::string& path, const std::string& target) override {
    const std::lock_guard lock(mutex_);
    if (!Spend(1)) return {};
    auto link = std::make_shared<Content>();
    link->bytes = target;
    link->links = 1;
    files_[path + "~"] = link;  // the old and the new one exist together for an instant
    Watch();
    files_.erase(path + "~");
    files_[path] = link;
    return {};
  }
  std::vector<std::string> List(const std::string& folder) override {
    const std::lock_guard lock(mutex_);
    std::set<std::string> names;
    const std::string start = folder == "." ? "" : folder + "/";
    for (const auto& [name, content] : files_) AddName(name, start, &names);
    for (const std::string& name : folders_) AddName(name, start, &names);
    return {names.begin(), names.end()};
  }
  bool IsFolder(const std::string& path) override {
    const std::lock_guard lock(mutex_);
    return folders_.count(path) != 0;
  }
  bool Exists(const std::string& path) override {
    const std::lock_guard lock(mutex_);
    return files_.count(path) != 0 || folders_.count(path) != 0;
  }
  Status Sync(const std::string& path) override {
    const std::lock_guard lock(mutex_);
    synced.push_back(path);
    return {};
  }

 private:
  class FakeFile final : public File {
   public:
    FakeFile(FakeFileSystem* disk, std::shared_ptr<Content> content)
        : disk_(disk), content_(std::move(content)) {}
    ~FakeFile() override {
      if (holds_lock_) content_->locked = false;
    }
    Status WriteAt(uint64_t offset, std::string_view bytes, size_t* written) override {
      const std::lock_guard lock(disk_->mutex_);
      std::string& all = content_->bytes;
      *written = 0;
      if (disk_->write_error != 0) return Status::FromErrno(disk_->write_error, "write", "fake");
      constexpr uint64_t kUnlimited = std::numeric_limits<uint64_t>::max();
      const uint64_t room = disk_->capacity == kUnlimited
                                ? kUnlimited / 2
                                : disk_->capacity - std::min(disk_->capacity, disk_->Used());
      const uint64_t allowed =
          std::max<uint64_t>(all.size(), offset) + (offset > all.size() ? 0 : room);
      *written = std::min<uint64_t>(bytes.size(), allowed > offset ? allowed - offset : 0);
      const uint64_t arrive = disk_->Spend(*written) ? *written : disk_->Rest(*written);
      if (arrive > 0 && all.size() < offset + arrive) all.resize(offset + arrive);
      if (arrive > 0) std::memcpy(all.data() + offset, bytes.data(), arrive);
      disk_->Watch();
      if (arrive > 0 && disk_->after_write) disk_->after_write();
      return *written == bytes.size() ? Status() : Status::FromErrno(ENOSPC, "write", "fake");
    }
    Result<size_t> ReadAt(uint64_t offset, std::span<char> buffer) override {
      const std::lock_guard lock(disk_->mutex_);
      const std::string& all = content_->bytes;
      if (offset >= all.size()) return size_t{0};
      return all.copy(buffer.data(), buffer.size(), offset);
    }
    Status Truncate(uint64_t size_bytes) override {
      const std::lock_guard lock(disk_->mutex_);
      if (!disk_->Spend(1)) return {};
      const uint64_t more = size_bytes - std::min<uint64_t>(size_bytes, content_->bytes.size());
      if (more > 0 && disk_->Used() + more > disk_->capacity)
        return Status::FromErrno(ENOSPC, "resize", "fake");
      content_->bytes.resize(size_bytes);
      disk_->Watch();
      return {};
    }
    Result<uint64_t> Size() override {
      const std::lock_guard lock(disk_->mutex_);
      return uint64_t{content_->bytes.size()};
    }
    Result<uint64_t> LinkCount() override {
      const std::lock_guard lock(disk_->mutex_);
      return static_cast<uint64_t>(content_->links);
    }
    Status Lock() override {
      if (content_->locked) return Status::Busy("locked");
      content_->locked = holds_lock_ = true;
      return {};
    }

    bool IsLocked() override { return content_->locked; }
    bool IsOursAlone() override { return content_->links == 1 && !content_->foreign; }

   private:
    FakeFileSystem* disk_;
    std::shared_ptr<Content> content_;
    bool holds_lock_ = false;
  };

  static void AddName(const std::string& name, const std::string& start,
                      std::set<std::string>* names) {
    if (!name.starts_with(start) || name.size() == start.size()) return;
    names->insert(name.substr(start.size(), name.find('/', start.size()) - start.size()));
  }
  // Whether `bytes` more can still be done before the death.
  bool Spend(uint64_t bytes) {
    written_since_ += bytes;
    rest_ = bytes <= atomic_bytes ? 0 : budget_;
    if (budget_ == std::numeric_limits<uint64_t>::max()) return true;
    const bool alive = budget_ >= bytes;
    budget_ -= std::min(budget_, bytes);
    return alive;
  }
  // How many of the bytes that were too many still arrive.
  uint64_t Rest(uint64_t bytes) const { return std::min(rest_, bytes); }

  std::vector<std::string> Below(const std::string& path) const {
    std::vector<std::string> names;
    for (const auto& [name, content] : files_) {
      if (name.starts_with(path + "/")) names.push_back(name);
    }
    return names;
  }
  void Watch() {
    uint64_t now = 0;
    for (const auto& [name, content] : files_) {
      if (name.starts_with(watched) && name.find('/', watched.size()) == std::string::npos)
        now += content->bytes.size();
    }
    peak = std::max(peak, now);
  }

  uint64_t budget_ = std::numeric_limits<uint64_t>::max();
  uint64_t rest_ = 0;
  uint64_t written_since_ = 0;
  std::recursive_mutex mutex_;  // RemoveFolder removes, too
  std::map<std::string, std::shared_ptr<Content>> files_;
  std::set<std::string> folders_;
};

}  // namespace hangscope

#endif
