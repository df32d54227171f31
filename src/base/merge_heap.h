// Which of several sequences, each in order, has what comes next: the heads of them, the least of
// which is replaced by the one behind it in its sequence.
#ifndef HANGSCOPE_BASE_MERGE_HEAP_H
#define HANGSCOPE_BASE_MERGE_HEAP_H

#include <algorithm>
#include <cstddef>
#include <functional>
#include <vector>

namespace hangscope {

// Of Heads that are compared by >. What stands at `i` is not greater than what stands at 2i + 1 and
// 2i + 2.
template <typename Head>
class MergeHeap {
 public:
  bool empty() const { return heads_.empty(); }
  const Head& least() const { return heads_.front(); }
  void Add(const Head& head) {
    heads_.push_back(head);
    std::push_heap(heads_.begin(), heads_.end(), std::greater<>());
  }
  // Of a heap that is not empty.
  void RemoveLeast() {
    std::pop_heap(heads_.begin(), heads_.end(), std::greater<>());
    heads_.pop_back();
  }
  // The same as removing the least and adding `head`; quick where that is the next least.
  void ReplaceLeast(const Head& head) {
    const size_t size = heads_.size();
    size_t at = 0;
    for (;;) {
      size_t child = 2 * at + 1;
      if (child >= size) break;
      if (child + 1 < size && heads_[child] > heads_[child + 1]) ++child;
      if (!(head > heads_[child])) break;
      heads_[at] = heads_[child];
      at = child;
    }
    heads_[at] = head;
  }

 private:
  std::vector<Head> heads_;
};

}  // namespace hangscope

#endif
