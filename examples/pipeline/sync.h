// What threads wait for each other with. Each says for what it waits, and what it holds.
#ifndef EXAMPLES_PIPELINE_SYNC_H
#define EXAMPLES_PIPELINE_SYNC_H

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>

struct Block {
  uint64_t number = 0;  // from 1
  uint64_t value = 0;
};

// `data` and `room` are the resources that its two ends wait for.
class Channel {
 public:
  Channel(uint32_t data, uint32_t room) : data_(data), room_(room) {}

  void Push(const Block& block, bool notify = true);
  Block Pop(bool notify = true);

 private:
  static constexpr size_t kCapacity = 4;

  const uint32_t data_;
  const uint32_t room_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Block> blocks_;
};

class Semaphore {
 public:
  Semaphore(uint32_t resource, uint32_t count) : resource_(resource), count_(count) {}

  void Wait();
  void Post();

 private:
  const uint32_t resource_;
  std::mutex mutex_;
  std::condition_variable changed_;
  uint32_t count_;
};

class Lock {
 public:
  explicit Lock(uint32_t resource) : resource_(resource) {}

  void Acquire();
  void Release();

 private:
  const uint32_t resource_;
  std::mutex mutex_;
};

// Where threads wait until certain others have come.
class Meeting {
 public:
  // `who` and `others` are sets of bits.
  void Come(uint32_t who, uint32_t others);

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  uint32_t here_ = 0;
};

#endif
