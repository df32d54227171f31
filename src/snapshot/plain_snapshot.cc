#include "snapshot/plain_snapshot.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/thread_name.h"
#include "ring/block_reader.h"

namespace hangscope {

PlainSnapshot::PlainSnapshot(FileSystem& files, std::string path, uint64_t limit_bytes)
    : files_(files), path_(std::move(path)), limit_(limit_bytes), thread_([this] { Run(); }) {}

PlainSnapshot::~PlainSnapshot() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void PlainSnapshot::Write(const std::string& ring_prefix) {
  const std::lock_guard lock(mutex_);
  wanted_ = ring_prefix;
  wake_.notify_one();
}

void PlainSnapshot::Finish() {
  std::unique_lock lock(mutex_);
  done_.wait(lock, [this] { return !busy_ && wanted_.empty(); });
}

Status PlainSnapshot::status() const {
  const std::lock_guard lock(mutex_);
  return status_;
}

void PlainSnapshot::Run() {
  NameThread("hs-snapshot");
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stopping_ || !wanted_.empty(); });
    if (wanted_.empty()) return;
    const std::string ring_prefix = std::exchange(wanted_, {});
    busy_ = true;
    lock.unlock();
    Status status = WriteOne(ring_prefix);
    lock.lock();
    status_ = std::move(status);
    busy_ = false;
    done_.notify_all();
  }
}

Status PlainSnapshot::WriteOne(const std::string& ring_prefix) {
  auto reader = BlockReader::Open(files_, ring_prefix);
  if (!reader.ok()) return reader.status();
  if (Status status = files_.Remove(path_); !status.ok()) return status;
  const std::string draft = path_ + "~";
  if (Status status = files_.Remove(draft); !status.ok()) return status;
  auto file = files_.Open(draft, FileSystem::Mode::kRecordedNew);
  if (!file.ok()) return file.status();
  const uint64_t end = reader->end_offset();
  reader->Seek(std::max(reader->begin_offset(), end - std::min(end, limit_)));
  // Half a line at the begin is left out; what has no lines is kept.
  bool cut = reader->MayCutLine();
  uint64_t at = 0;
  bool incomplete = false;
  for (auto event = reader->Next(); event != BlockReader::Event::kEnd; event = reader->Next()) {
    if (event == BlockReader::Event::kLoss) {
      incomplete = true;
      continue;
    }
    std::string_view bytes = reader->block();
    if (std::exchange(cut, false)) bytes.remove_prefix(bytes.find('\n') + 1);
    size_t written = 0;
    Status status = (*file)->WriteAt(at, bytes, &written);
    if (!status.ok()) {
      (void)files_.Remove(draft).ok();
      return status;
    }
    at += written;
  }
  // Snapshots in a row may have pushed this one out while it was read. The newest gets its file.
  if (incomplete && !files_.Exists(IndexPath(ring_prefix))) return files_.Remove(draft);
  if (Status status = files_.Sync(draft); !status.ok()) return status;
  return files_.Rename(draft, path_);
}

}  // namespace hangscope
