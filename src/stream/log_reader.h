// The steps of a log that is no instruction trace. The place of a step is what a
// rule takes from a line; without a rule, the line without its numbers.
#ifndef HANGSCOPE_STREAM_LOG_READER_H
#define HANGSCOPE_STREAM_LOG_READER_H

#include <string>

#include "stream/place_rule.h"
#include "stream/place_texts.h"
#include "stream/step_reader.h"

namespace hangscope {

class LogReader final : public StepSource {
 public:
  // `rule` may be null. `texts`, which may be null, gets the texts of the places.
  // Steps of no core in particular are those of a core called `nobody`. All
  // pointers outlive this.
  LogReader(CoreNames* cores, const PlaceRule* rule, PlaceTexts* texts, std::string nobody,
            Sink sink);

  void Flush() override { DropPartial(); }
  const Code& code() const override { return code_; }

 private:
  void HandleLine(std::string_view line, uint64_t offset) override;
  void HandleOverlongLine(uint64_t offset) override;
  void HandleMatch(std::string_view line, uint64_t offset);
  void HandleNormalized(std::string_view line, uint64_t offset);
  uint32_t CoreOf(std::string_view name);

  CoreNames* const cores_;
  const PlaceRule* const rule_;
  PlaceTexts* const texts_;
  const std::string nobody_;
  const Sink sink_;
  std::string text_;
  const Code code_;  // a log says nothing about it
};

}  // namespace hangscope

#endif
