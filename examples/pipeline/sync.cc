#include "sync.h"

#include "hangscope/hangscope.h"

void Channel::Push(const Block& block, bool notify) {
  std::unique_lock<std::mutex> lock(mutex_);
  HANGSCOPE_WAYPOINT_NAMED("CRBW", "channel, reserve at the back");
  if (blocks_.size() == kCapacity) {
    HANGSCOPE_WAIT_FOR(HANGSCOPE_RESOURCE_CHANNEL, room_);
    changed_.wait(lock, [this] { return blocks_.size() < kCapacity; });
    HANGSCOPE_WAIT_DONE();
  }
  HANGSCOPE_WAYPOINT("CRBD");
  blocks_.push_back(block);
  HANGSCOPE_COUNT(data_, static_cast<uint32_t>(blocks_.size()));
  if (notify) changed_.notify_all();
}

Block Channel::Pop(bool notify) {
  std::unique_lock<std::mutex> lock(mutex_);
  HANGSCOPE_WAYPOINT_NAMED("CWFW", "channel, wait at the front");
  if (blocks_.empty()) {
    HANGSCOPE_WAIT_FOR(HANGSCOPE_RESOURCE_CHANNEL, data_);
    changed_.wait(lock, [this] { return !blocks_.empty(); });
    HANGSCOPE_WAIT_DONE();
  }
  HANGSCOPE_WAYPOINT("CWFD");
  const Block block = blocks_.front();
  blocks_.pop_front();
  HANGSCOPE_COUNT(data_, static_cast<uint32_t>(blocks_.size()));
  if (notify) changed_.notify_all();
  return block;
}

void Semaphore::Wait() {
  std::unique_lock<std::mutex> lock(mutex_);
  HANGSCOPE_WAYPOINT_NAMED("NSW", "semaphore wait");
  if (count_ == 0) {
    HANGSCOPE_WAIT_FOR(HANGSCOPE_RESOURCE_CHANNEL, resource_);
    changed_.wait(lock, [this] { return count_ > 0; });
    HANGSCOPE_WAIT_DONE();
  }
  HANGSCOPE_WAYPOINT("NSD");
  count_--;
}

void Semaphore::Post() {
  const std::lock_guard<std::mutex> lock(mutex_);
  count_++;
  changed_.notify_all();
}

void Lock::Acquire() {
  HANGSCOPE_WAYPOINT_NAMED("LCKW", "lock, acquire");
  if (!mutex_.try_lock()) {
    HANGSCOPE_WAIT_FOR(HANGSCOPE_RESOURCE_EXCLUSIVE, resource_);
    mutex_.lock();
    HANGSCOPE_WAIT_DONE();
  }
  HANGSCOPE_HOLD(resource_);
  HANGSCOPE_WAYPOINT("LCKD");
}

void Lock::Release() {
  HANGSCOPE_RELEASE(resource_);
  mutex_.unlock();
}

void Meeting::Come(uint32_t who, uint32_t others) {
  std::unique_lock<std::mutex> lock(mutex_);
  here_ |= who;
  changed_.notify_all();
  changed_.wait(lock, [this, others] { return (here_ & others) == others; });
}
