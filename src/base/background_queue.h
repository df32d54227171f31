// Jobs for a thread of their own, one after the other: what takes so long that whoever asks does
// not wait.
#ifndef HANGSCOPE_BASE_BACKGROUND_QUEUE_H
#define HANGSCOPE_BASE_BACKGROUND_QUEUE_H

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

namespace hangscope {

// One thread calls Add and Finish.
template <typename Job>
class BackgroundQueue {
 public:
  // `work` is called in the queue's thread; `begin` there, too, once for each such thread; may be
  // empty.
  explicit BackgroundQueue(std::function<void(Job)> work, std::function<void()> begin = {})
      : work_(std::move(work)), begin_(std::move(begin)) {}
  ~BackgroundQueue() { Finish(); }  // finishes what was asked for
  BackgroundQueue(const BackgroundQueue&) = delete;
  BackgroundQueue& operator=(const BackgroundQueue&) = delete;

  void Add(Job job) {
    {
      const std::lock_guard lock(mutex_);
      wanted_.push_back(std::move(job));
      finishing_ = false;
    }
    if (!thread_.joinable()) thread_ = std::thread([this] { Run(); });
    wake_.notify_all();
  }

  // Waits for all that was asked for.
  void Finish() {
    {
      const std::lock_guard lock(mutex_);
      finishing_ = true;
    }
    wake_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

 private:
  void Run() {
    if (begin_) begin_();
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [this] { return finishing_ || !wanted_.empty(); });
      if (wanted_.empty()) return;
      Job job = std::move(wanted_.front());
      wanted_.pop_front();
      lock.unlock();
      work_(std::move(job));
      lock.lock();
    }
  }

  const std::function<void(Job)> work_;
  const std::function<void()> begin_;
  std::thread thread_;  // from the first Add on
  std::mutex mutex_;    // guards the two below
  std::condition_variable wake_;
  std::deque<Job> wanted_;
  bool finishing_ = false;
};

}  // namespace hangscope

#endif
