#include "base/merge_heap.h"

#include <gmock/gmock.h>

#include <random>
#include <vector>

namespace hangscope {
namespace {

struct Head {
  int value = 0;
  size_t sequence = 0;

  bool operator>(const Head& other) const {
    return value != other.value ? value > other.value : sequence > other.sequence;
  }
};

// What comes of sequences that are merged: their values, and of equal ones the first sequence's
// first.
std::vector<int> Merged(const std::vector<std::vector<int>>& sequences) {
  MergeHeap<Head> heap;
  std::vector<size_t> next(sequences.size(), 0);
  for (size_t i = 0; i < sequences.size(); ++i) {
    if (!sequences[i].empty()) heap.Add({sequences[i][0], i});
  }
  std::vector<int> merged;
  while (!heap.empty()) {
    const Head least = heap.least();
    merged.push_back(least.value);
    const std::vector<int>& from = sequences[least.sequence];
    if (++next[least.sequence] < from.size())
      heap.ReplaceLeast({from[next[least.sequence]], least.sequence});
    else
      heap.RemoveLeast();
  }
  return merged;
}

TEST(MergeHeap, MergesWhateverNumberOfSequencesOfWhateverLength) {
  std::mt19937 random(1);
  for (size_t count = 0; count < 40; ++count) {
    std::vector<std::vector<int>> sequences(count);
    std::vector<int> all;
    for (auto& sequence : sequences) {
      sequence.resize(random() % 50);
      for (int& value : sequence) value = static_cast<int>(random() % 100);
      std::sort(sequence.begin(), sequence.end());
      all.insert(all.end(), sequence.begin(), sequence.end());
    }
    std::sort(all.begin(), all.end());
    ASSERT_TRUE(Merged(sequences) == all) << count;
  }
}

TEST(MergeHeap, WhatIsEqualStaysInTheOrderOfItsSequences) {
  MergeHeap<Head> heap;
  for (const size_t sequence : {2, 0, 3, 1}) heap.Add({5, sequence});
  std::vector<size_t> order;
  for (; !heap.empty(); heap.RemoveLeast()) order.push_back(heap.least().sequence);
  EXPECT_THAT(order, testing::ElementsAre(0, 1, 2, 3));
}

}  // namespace
}  // namespace hangscope
