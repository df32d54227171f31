// A trace without what nobody asked for.
#ifndef HANGSCOPE_TRACE_TRACE_FILTER_H
#define HANGSCOPE_TRACE_TRACE_FILTER_H

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "trace/trace_source.h"

namespace hangscope {

// Which cores a user names: "3", "0-7", a whole name, or the end of one behind a blank, as in
// "writer" for "core 3 writer". An empty text names all.
class CoreChoice {
 public:
  explicit CoreChoice(std::string text);
  bool Includes(int64_t number, std::string_view name) const;

 private:
  std::string text_;
  std::optional<std::pair<int64_t, int64_t>> numbers_;  // the first and the last
};

// What `request` asks for of `source`: times, cores, task, event, the newest. Fails with kUsage
// where there can be none of that, in one sentence.
Result<std::unique_ptr<TraceSource>> FilterTrace(std::unique_ptr<TraceSource> source,
                                                 const TraceRequest& request);

}  // namespace hangscope

#endif
