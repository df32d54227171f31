// The texts of places that are no addresses, by id. Bounded: of places that were
// not seen for long the text is forgotten.
#ifndef HANGSCOPE_STREAM_PLACE_TEXTS_H
#define HANGSCOPE_STREAM_PLACE_TEXTS_H

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace hangscope {

class PlaceTexts {
 public:
  // A full generation becomes the old one, and the old one goes.
  static constexpr size_t kMostInGeneration = 4096;

  void Note(uint64_t id, std::string_view text) {
    if (young_.find(id) != young_.end()) return;
    if (young_.size() >= kMostInGeneration) old_ = std::exchange(young_, {});
    young_.emplace(id, text);
  }
  // Empty: forgotten.
  std::string Find(uint64_t id) const {
    for (const auto* generation : {&young_, &old_}) {
      if (const auto at = generation->find(id); at != generation->end()) return at->second;
    }
    return {};
  }
  size_t size() const { return young_.size() + old_.size(); }

 private:
  std::unordered_map<uint64_t, std::string> young_;
  std::unordered_map<uint64_t, std::string> old_;
};

}  // namespace hangscope

#endif
