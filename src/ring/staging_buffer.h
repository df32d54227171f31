// Memory between a stream and the disk: what was read and is not yet in the ring,
// nor passed on. One reader fills it and waits for nothing but its input; the ring's
// writer and the passthrough empty it, each at its own pace.
//
// It lives in a file in memory that other processes hold too, so that nothing is
// lost when the recorder is killed at any instant:
//
//   offset              bytes
//        0                 64   StageHeader
//       64               24 n   StageBlock, one per block
//    64 KiB        n x 256 KiB  the blocks
//
// How many bytes a read took is known to nobody but the process that read, which may
// be dead by then. So the bytes come by splice(2) at the file's own position, which
// the kernel moves along with them: position (a), `filling` (b), splice (c), block and
// head (d), `filling` = 0 (e). Whoever finds `filling` set reads the position and
// knows what (c) brought, whether (d) came about or not. Only one process at a time
// uses the stage; within it any thread may, but for Fill, which has one.
#ifndef HANGSCOPE_RING_STAGING_BUFFER_H
#define HANGSCOPE_RING_STAGING_BUFFER_H

#include <sys/types.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/status.h"

namespace hangscope {

struct StageHeader;
struct StageBlock;

class StagingBuffer {
 public:
  enum class Consumer { kRing = 0, kPassthrough = 1 };
  enum class Room { kNow, kLater, kNever };

  // Bytes of the stream that are there for a consumer.
  struct Piece {
    const char* data = nullptr;
    size_t size = 0;
    uint64_t offset = 0;  // of the stream; beyond where the consumer was: some were dropped
    TimeNs time = 0;      // when its first byte arrived, or a little before
  };

  static constexpr uint64_t kSmallest = 1u << 20;
  static constexpr uint64_t kLargest = 512u << 20;

  // `memory_bytes`: how much may wait; kSmallest at least, taken only when needed.
  static Result<std::unique_ptr<StagingBuffer>> Create(uint64_t memory_bytes, bool passthrough);
  // Takes over the stage of a recorder that is dead. Owns `fd`. What lies before
  // `ring_head` is in the ring.
  static Result<std::unique_ptr<StagingBuffer>> Attach(int fd, uint64_t ring_head);
  ~StagingBuffer();
  StagingBuffer(const StagingBuffer&) = delete;
  StagingBuffer& operator=(const StagingBuffer&) = delete;

  int fd() const { return fd_; }

  // Whether Fill has room; waits for it up to `longest`.
  Room WaitForRoom(TimeNs longest);
  // Where much waits for the ring, waits up to `longest` until little does.
  void LetRingCatchUp(TimeNs longest);
  // Makes room without waiting: first what only the passthrough still wants, then
  // what is oldest. The consumers find the gaps.
  void DropOldest();
  // One read of `input_fd`; a non-zero result is as read(2) gives it. Needs room.
  ssize_t Fill(int input_fd, TimeNs now);
  // Nothing more will come. Any thread.
  void Close();

  // The next piece for a consumer; waits up to `longest`. Nothing: none came, or
  // none will (`ended`). The ring's piece stays where it is until Advance.
  std::optional<Piece> Next(Consumer consumer, TimeNs longest);
  // A copy of at most `limit` bytes of the next piece.
  std::optional<Piece> CopyNext(Consumer consumer, TimeNs longest, size_t limit, std::string* copy);
  // The consumer is done with everything before `offset`.
  void Advance(Consumer consumer, uint64_t offset);
  // It will take nothing more.
  void Leave(Consumer consumer);
  bool ended(Consumer consumer) const;
  // Waits until the stream was closed, at most `longest`; whether it is.
  bool WaitForEnd(TimeNs longest);
  uint64_t head() const;  // stream offset of the next byte
  // The share of the memory that waits for the ring, 0 ... 1.
  double backlog() const;

 private:
  StagingBuffer(int fd, void* memory, size_t bytes);

  void Recover(uint64_t ring_head);
  uint64_t& cursor(Consumer consumer);
  uint64_t cursor(Consumer consumer) const;
  std::optional<Piece> Peek(Consumer consumer);
  bool Wanted(uint32_t block) const;
  uint64_t waiting_for_ring() const;
  void Release();
  std::optional<uint32_t> BlockToFill();
  char* Address(uint32_t block) const;
  off_t PositionOf(uint32_t block, uint64_t at) const;
  void Publish(uint32_t block, uint32_t count, TimeNs now);
  void DropQueued(size_t at);

  const int fd_;
  void* const memory_;
  const size_t bytes_;
  StageHeader* const header_;
  StageBlock* const blocks_;
  bool no_splice_ = false;  // the input is no pipe

  mutable std::mutex mutex_;  // guards the consumers' side and what follows
  std::condition_variable filled_;
  std::condition_variable released_;
  std::condition_variable caught_up_;
  std::deque<uint32_t> queue_;      // blocks that hold bytes, the oldest first
  std::optional<uint32_t> busy_;    // the block that the ring's writer looks at
  std::optional<uint32_t> target_;  // the block that Fill reads into
  bool closed_ = false;
};

}  // namespace hangscope

#endif
