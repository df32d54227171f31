// Metrics in Prometheus's text format, version 0.0.4. Nothing that comes from a target can break
// the text.
#ifndef HANGSCOPE_WATCH_METRICS_H
#define HANGSCOPE_WATCH_METRICS_H

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scope/watch_json.h"
#include "scope/watch_text.h"

namespace hangscope {

// [a-zA-Z_:][a-zA-Z0-9_:]*, and for labels the same without colons, and not beginning with __.
bool IsMetricName(std::string_view name);
bool IsLabelName(std::string_view name);

class MetricsText {
 public:
  using Labels = std::vector<std::pair<std::string_view, std::string>>;

  // A family: its samples follow, before the next family. `type`: counter, gauge. Names are
  // literals that satisfy the rules above.
  void Family(std::string_view name, std::string_view type, std::string_view help);
  // Label values may be any text.
  void Sample(const Labels& labels, double value);

  const std::string& text() const { return text_; }

 private:
  std::string family_;
  std::string text_;
};

// What of one target is measured.
struct WatchedMetrics {
  WatchScene scene;
  bool up = false;                                       // it can be read
  std::vector<std::pair<FindingKind, size_t>> findings;  // how many of each kind were there
};

// All of a watcher: for GET /metrics.
std::string WatchMetrics(const std::vector<WatchedMetrics>& targets, const WatchCost& cost);

}  // namespace hangscope

#endif
