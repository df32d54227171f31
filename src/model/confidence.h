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

// As a recording has it; what is none of these names is no more than possible.
constexpr Confidence ConfidenceFromName(std::string_view name) {
  return name == "certain"  ? Confidence::kCertain
         : name == "likely" ? Confidence::kLikely
                            : Confidence::kPossible;
}

}  // namespace hangscope

#endif
