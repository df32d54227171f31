#include "ring/staging_buffer.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <thread>

namespace hangscope {
namespace {

// of this layout; both processes are the same program
constexpr uint64_t kMagic = 0x4547415453534b31;
constexpr uint64_t kBlockBytes = 256 * 1024;
constexpr uint64_t kTableBytes = 64 * 1024;
constexpr uint64_t kNoConsumer = UINT64_MAX;
// What waits for the ring fits into a processor's cache up to here, and the gap is
// wide enough that reader and writer do not wake each other for every block.
constexpr uint64_t kMuch = 4 * kBlockBytes;
constexpr uint64_t kLittle = 2 * kBlockBytes;
constexpr size_t kDropShare = 4;  // a quarter of the memory at once: few gaps, not many

}  // namespace

struct StageHeader {
  uint64_t magic;
  uint64_t block_count;
  uint64_t head;                  // stream offset of the next byte
  uint64_t cursors[2];            // by Consumer
  std::atomic<uint64_t> filling;  // 1 + the block that is being filled; 0: none
  uint64_t unused[2];
};
static_assert(sizeof(StageHeader) == 64);
static_assert(std::atomic<uint64_t>::is_always_lock_free);

struct StageBlock {
  uint64_t begin;   // stream offset
  uint64_t length;  // 0: free
  TimeNs time;
};
static_assert(sizeof(StageBlock) == 24);

namespace {

constexpr uint64_t kMostBlocks = (kTableBytes - sizeof(StageHeader)) / sizeof(StageBlock);

Result<void*> MapAll(int fd, size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) return Status::FromErrno(errno, "map", "memory for a stream");
  return memory;
}

}  // namespace

Result<std::unique_ptr<StagingBuffer>> StagingBuffer::Create(uint64_t memory_bytes,
                                                             bool passthrough) {
  const uint64_t count =
      std::clamp<uint64_t>(memory_bytes / kBlockBytes, kSmallest / kBlockBytes, kMostBlocks);
  const size_t bytes = kTableBytes + count * kBlockBytes;
  const int fd = memfd_create("hangscope-stage", MFD_CLOEXEC);
  if (fd < 0) return Status::FromErrno(errno, "create", "memory for a stream");
  if (ftruncate(fd, static_cast<off_t>(bytes)) != 0) {
    const int error = errno;
    close(fd);
    return Status::FromErrno(error, "size", "memory for a stream");
  }
  auto memory = MapAll(fd, bytes);
  if (!memory.ok()) {
    close(fd);
    return memory.status();
  }
  std::unique_ptr<StagingBuffer> stage(new StagingBuffer(fd, *memory, bytes));
  stage->header_->magic = kMagic;
  stage->header_->block_count = count;
  stage->header_->cursors[1] = passthrough ? 0 : kNoConsumer;
  return stage;
}

Result<std::unique_ptr<StagingBuffer>> StagingBuffer::Attach(int fd, uint64_t ring_head) {
  StageHeader header{};
  const bool sane = pread(fd, static_cast<void*>(&header), sizeof header, 0) == sizeof header &&
                    header.magic == kMagic && header.block_count <= kMostBlocks;
  if (!sane) {
    close(fd);
    return Status::Corrupt("the memory of a stream is not what a hangscope left behind");
  }
  const size_t bytes = kTableBytes + header.block_count * kBlockBytes;
  auto memory = MapAll(fd, bytes);
  if (!memory.ok()) {
    close(fd);
    return memory.status();
  }
  std::unique_ptr<StagingBuffer> stage(new StagingBuffer(fd, *memory, bytes));
  stage->Recover(ring_head);
  return stage;
}

StagingBuffer::StagingBuffer(int fd, void* memory, size_t bytes)
    : fd_(fd),
      memory_(memory),
      bytes_(bytes),
      header_(static_cast<StageHeader*>(memory)),
      blocks_(reinterpret_cast<StageBlock*>(static_cast<char*>(memory) + sizeof(StageHeader))) {}

StagingBuffer::~StagingBuffer() {
  munmap(memory_, bytes_);
  close(fd_);
}

char* StagingBuffer::Address(uint32_t block) const {
  return static_cast<char*>(memory_) + kTableBytes + block * kBlockBytes;
}

off_t StagingBuffer::PositionOf(uint32_t block, uint64_t at) const {
  return static_cast<off_t>(kTableBytes + block * kBlockBytes + at);
}

uint64_t& StagingBuffer::cursor(Consumer consumer) {
  return header_->cursors[static_cast<int>(consumer)];
}
uint64_t StagingBuffer::cursor(Consumer consumer) const {
  return header_->cursors[static_cast<int>(consumer)];
}

// After the death of the process that used it: the read it was at is finished, and
// what the ring holds already is let go.
void StagingBuffer::Recover(uint64_t ring_head) {
  if (const uint64_t filling = header_->filling.load(std::memory_order_acquire); filling != 0) {
    const auto block = static_cast<uint32_t>(filling - 1);
    const off_t position = lseek(fd_, 0, SEEK_CUR);
    const uint64_t length = std::clamp<int64_t>(position - PositionOf(block, 0), 0, kBlockBytes);
    StageBlock& entry = blocks_[block];
    if (length > entry.length) {
      if (entry.length == 0) entry.begin = header_->head;
      header_->head = entry.begin + length;
      entry.length = length;
    } else if (entry.length != 0) {
      header_->head = std::max(header_->head, entry.begin + entry.length);
    }
    header_->filling.store(0, std::memory_order_release);
  }
  for (uint32_t k = 0; k < header_->block_count; ++k) {
    if (blocks_[k].length != 0) queue_.push_back(k);
  }
  std::sort(queue_.begin(), queue_.end(),
            [this](uint32_t a, uint32_t b) { return blocks_[a].begin < blocks_[b].begin; });
  cursor(Consumer::kRing) = ring_head;
  Release();
}

bool StagingBuffer::Wanted(uint32_t block) const {
  const uint64_t end = blocks_[block].begin + blocks_[block].length;
  return cursor(Consumer::kRing) < end || cursor(Consumer::kPassthrough) < end;
}

// Lets go of what nobody wants any more.
void StagingBuffer::Release() {
  bool any = false;
  std::erase_if(queue_, [&](uint32_t block) {
    if (block == target_ || block == busy_ || Wanted(block)) return false;
    blocks_[block].length = 0;
    return any = true;
  });
  if (any) released_.notify_one();
}

// The newest block while it has room, else the first free one: a stream that is
// emptied as fast as it comes stays in the same, cached memory.
std::optional<uint32_t> StagingBuffer::BlockToFill() {
  if (!queue_.empty() && blocks_[queue_.back()].length < kBlockBytes) {
    const StageBlock& newest = blocks_[queue_.back()];
    if (newest.begin + newest.length == header_->head) return queue_.back();
  }
  for (uint32_t k = 0; k < header_->block_count; ++k) {
    if (blocks_[k].length == 0) return k;
  }
  return std::nullopt;
}

StagingBuffer::Room StagingBuffer::WaitForRoom(TimeNs longest) {
  std::unique_lock lock(mutex_);
  if (BlockToFill()) return Room::kNow;
  released_.wait_for(lock, std::chrono::nanoseconds(longest),
                     [this] { return closed_ || BlockToFill(); });
  if (BlockToFill()) return Room::kNow;
  return closed_ ? Room::kNever : Room::kLater;
}

uint64_t StagingBuffer::waiting_for_ring() const {
  const uint64_t at = cursor(Consumer::kRing);
  return at == kNoConsumer ? 0 : header_->head - std::min(header_->head, at);
}

void StagingBuffer::LetRingCatchUp(TimeNs longest) {
  std::unique_lock lock(mutex_);
  if (waiting_for_ring() <= kMuch) return;
  caught_up_.wait_for(lock, std::chrono::nanoseconds(longest),
                      [this] { return waiting_for_ring() <= kLittle; });
}

void StagingBuffer::DropQueued(size_t at) {
  blocks_[queue_[at]].length = 0;
  queue_.erase(queue_.begin() + static_cast<std::ptrdiff_t>(at));
}

void StagingBuffer::DropOldest() {
  const std::lock_guard lock(mutex_);
  // Recording comes before passing on.
  uint64_t& out = cursor(Consumer::kPassthrough);
  if (out != kNoConsumer) out = std::max(out, cursor(Consumer::kRing));
  Release();
  const size_t wanted = std::max<size_t>(1, header_->block_count / kDropShare);
  size_t free = header_->block_count - queue_.size();
  for (size_t at = 0; at < queue_.size() && free < wanted;) {
    if (queue_[at] == busy_ || queue_[at] == target_) {
      ++at;
      continue;
    }
    DropQueued(at);
    ++free;
  }
}

ssize_t StagingBuffer::Fill(int input_fd, TimeNs now) {
  uint32_t block = 0;
  uint64_t from = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto chosen = BlockToFill();
    if (!chosen) {
      errno = ENOBUFS;
      return -1;
    }
    block = *chosen;
    from = blocks_[block].length;
    target_ = block;
  }
  // (a); nobody else uses the position
  (void)lseek(fd_, PositionOf(block, from), SEEK_SET);
  header_->filling.store(uint64_t{block} + 1, std::memory_order_release);  // (b)
  ssize_t got = -1;
  errno = EINVAL;
  if (!no_splice_) got = splice(input_fd, nullptr, fd_, nullptr, kBlockBytes - from, 0);  // (c)
  if (got < 0 && errno == EINVAL) {
    // No pipe: a file, a terminal, a socket. What a killed recorder had just read is
    // lost then.
    no_splice_ = true;
    got = read(input_fd, Address(block) + from, kBlockBytes - from);
  }
  const int error = errno;
  const std::lock_guard lock(mutex_);
  if (got > 0) Publish(block, static_cast<uint32_t>(got), now);
  header_->filling.store(0, std::memory_order_release);  // (e)
  target_.reset();
  if (got <= 0) Release();
  errno = error;
  return got;
}

// (d)
void StagingBuffer::Publish(uint32_t block, uint32_t count, TimeNs now) {
  StageBlock& entry = blocks_[block];
  if (entry.length == 0) {
    entry.begin = header_->head;
    entry.time = now;
    queue_.push_back(block);
  }
  // In this order for Recover, which may find any part of it done. No other processor
  // is involved: the dead one's stores have all arrived.
  std::atomic_signal_fence(std::memory_order_release);
  entry.length += count;
  std::atomic_signal_fence(std::memory_order_release);
  header_->head += count;
  filled_.notify_all();
}

void StagingBuffer::Close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  filled_.notify_all();
  released_.notify_all();
}

std::optional<StagingBuffer::Piece> StagingBuffer::Peek(Consumer consumer) {
  const uint64_t at = cursor(consumer);
  if (at == kNoConsumer) return std::nullopt;
  for (const uint32_t block : queue_) {
    const StageBlock& entry = blocks_[block];
    if (entry.begin + entry.length <= at) continue;
    const uint64_t skip = at > entry.begin ? at - entry.begin : 0;
    return Piece{Address(block) + skip, entry.length - skip, entry.begin + skip, entry.time};
  }
  return std::nullopt;
}

std::optional<StagingBuffer::Piece> StagingBuffer::Next(Consumer consumer, TimeNs longest) {
  std::unique_lock lock(mutex_);
  filled_.wait_for(lock, std::chrono::nanoseconds(longest),
                   [&] { return closed_ || Peek(consumer); });
  std::optional<Piece> piece = Peek(consumer);
  if (piece && consumer == Consumer::kRing) {
    busy_ = static_cast<uint32_t>(static_cast<uint64_t>(piece->data - Address(0)) / kBlockBytes);
  }
  return piece;
}

std::optional<StagingBuffer::Piece> StagingBuffer::CopyNext(Consumer consumer, TimeNs longest,
                                                            size_t limit, std::string* copy) {
  std::unique_lock lock(mutex_);
  filled_.wait_for(lock, std::chrono::nanoseconds(longest),
                   [&] { return closed_ || Peek(consumer); });
  std::optional<Piece> piece = Peek(consumer);
  if (!piece) return std::nullopt;
  copy->assign(piece->data, std::min(limit, piece->size));
  piece->data = copy->data();
  piece->size = copy->size();
  return piece;
}

void StagingBuffer::Advance(Consumer consumer, uint64_t offset) {
  const std::lock_guard lock(mutex_);
  if (consumer == Consumer::kRing) busy_.reset();
  cursor(consumer) = std::max(cursor(consumer), offset);
  Release();
  if (waiting_for_ring() <= kLittle) caught_up_.notify_one();
}

void StagingBuffer::Leave(Consumer consumer) {
  const std::lock_guard lock(mutex_);
  if (consumer == Consumer::kRing) busy_.reset();
  cursor(consumer) = kNoConsumer;
  Release();
  caught_up_.notify_one();
}

bool StagingBuffer::ended(Consumer consumer) const {
  const std::lock_guard lock(mutex_);
  return cursor(consumer) == kNoConsumer || (closed_ && cursor(consumer) >= header_->head);
}

bool StagingBuffer::WaitForEnd(TimeNs longest) {
  std::unique_lock lock(mutex_);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::nanoseconds(longest);
  if (closed_) {
    lock.unlock();
    std::this_thread::sleep_until(deadline);
    return true;
  }
  return filled_.wait_until(lock, deadline, [this] { return closed_; });
}

uint64_t StagingBuffer::head() const {
  const std::lock_guard lock(mutex_);
  return header_->head;
}

double StagingBuffer::backlog() const {
  const std::lock_guard lock(mutex_);
  return static_cast<double>(waiting_for_ring()) /
         static_cast<double>(header_->block_count * kBlockBytes);
}

}  // namespace hangscope
