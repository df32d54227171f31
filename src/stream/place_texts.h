// The texts of places that are no addresses, by id; of places that were not seen for long the text
// is forgotten.
#ifndef HANGSCOPE_STREAM_PLACE_TEXTS_H
#define HANGSCOPE_STREAM_PLACE_TEXTS_H

#include <cstdint>
#include <string>
#include <string_view>

#include "base/generations.h"

namespace hangscope {

class PlaceTexts {
 public:
  static constexpr size_t kMostInGeneration = 4096;

  void Note(uint64_t id, std::string_view text) { texts_.Put(id, text); }
  // Empty: forgotten.
  std::string Find(uint64_t id) const {
    const std::string* const text = texts_.Find(id);
    return text == nullptr ? std::string() : *text;
  }
  size_t size() const { return texts_.size(); }

 private:
  Generations<uint64_t, std::string, kMostInGeneration> texts_;
};

}  // namespace hangscope

#endif
