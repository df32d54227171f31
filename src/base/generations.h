// A bounded map that forgets what was not put in for long: a full generation becomes the old one,
// and the old one goes. One thread.
#ifndef HANGSCOPE_BASE_GENERATIONS_H
#define HANGSCOPE_BASE_GENERATIONS_H

#include <cstddef>
#include <unordered_map>
#include <utility>

namespace hangscope {

// Holds twice `kMost` at most.
template <typename Key, typename Value, size_t kMost>
class Generations {
 public:
  // Of a key that is there the value stays.
  template <typename From>
  void Put(const Key& key, From&& value) {
    if (young_.find(key) != young_.end()) return;
    if (young_.size() >= kMost) old_ = std::exchange(young_, {});
    young_.emplace(key, std::forward<From>(value));
  }
  // The value of `key`, an empty one where there is none or it was forgotten; it is among the
  // newest then. Valid until the next call that may add one.
  Value& At(const Key& key) {
    if (const auto at = young_.find(key); at != young_.end()) return at->second;
    Value value{};
    if (const auto at = old_.find(key); at != old_.end()) value = std::move(at->second);
    Put(key, std::move(value));
    return young_.find(key)->second;
  }
  // Null: not there, or forgotten. Valid until the next call that may add one.
  const Value* Find(const Key& key) const {
    for (const auto* generation : {&young_, &old_}) {
      if (const auto at = generation->find(key); at != generation->end()) return &at->second;
    }
    return nullptr;
  }
  size_t size() const { return young_.size() + old_.size(); }

 private:
  std::unordered_map<Key, Value> young_;
  std::unordered_map<Key, Value> old_;
};

}  // namespace hangscope

#endif
