// How sure a verdict or a finding is; docs/verdicts.md has the rules.
#ifndef HANGSCOPE_MODEL_CONFIDENCE_H
#define HANGSCOPE_MODEL_CONFIDENCE_H

#include <string_view>

namespace hangscope {

enum class Confidence { kPossible, kLikely, kCertain };

constexpr std::string_view ConfidenceName(Confidence confidence) {
  switch (confidence) {
    case Confidence::kPossible:
      return "possible";
    case Confidence::kLikely:
      return "likely";
    case Confidence::kCertain:
      return "certain";
  }
  return "possible";
}

}  // namespace hangscope

#endif
