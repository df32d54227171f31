#include "watch/metrics.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.h"

namespace hangscope {
namespace {

bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// In quotes: backslash, quote and newline are escaped; Printable has seen to the rest.
std::string Escaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\n') {
      escaped += "\\n";
      continue;
    }
    if (c == '\\' || c == '"') escaped.push_back('\\');
    escaped.push_back(c);
  }
  return escaped;
}

using Labels = MetricsText::Labels;

Labels LabelsOf(const SubjectState& subject, const WatchScene& scene) {
  const bool core = subject.subject.kind == SubjectId::Kind::kCore;
  return {{"target", scene.target},
          {core ? "core" : "task", std::to_string(scene.NumberOf(subject))},
          {"name", SubjectName(subject.subject, scene)}};
}

constexpr Activity kMetricActivities[] = {
    Activity::kRunning, Activity::kIdle,  Activity::kWaiting, Activity::kPaused, Activity::kHalted,
    Activity::kSilent,  Activity::kEnded, Activity::kCorrupt, Activity::kUnread};

// One of each kind of sample for every subject that is in use.
template <typename Add>
void EachSubject(const std::vector<WatchedMetrics>& targets, Add add) {
  for (const WatchedMetrics& target : targets) {
    for (const SubjectState& subject : *target.scene.subjects) {
      if (subject.activity != Activity::kUnused) add(subject, target.scene);
    }
  }
}

void AddSubjects(const std::vector<WatchedMetrics>& targets, MetricsText* metrics) {
  metrics->Family("hangscope_activity", "gauge",
                  "1 for what a core or task does now, 0 for all else.");
  EachSubject(targets, [&](const SubjectState& subject, const WatchScene& scene) {
    for (const Activity activity : kMetricActivities) {
      Labels labels = LabelsOf(subject, scene);
      labels.emplace_back("activity", ActivityName(activity));
      metrics->Sample(labels, subject.activity == activity ? 1 : 0);
    }
  });
  metrics->Family("hangscope_wait_seconds", "gauge",
                  "How long the wait that goes on has lasted; 0 while there is none.");
  EachSubject(targets, [&](const SubjectState& subject, const WatchScene& scene) {
    metrics->Sample(LabelsOf(subject, scene),
                    subject.wait ? Seconds(std::max<TimeNs>(0, scene.now - subject.since)) : 0);
  });
  const auto cores = [&](auto add) {
    EachSubject(targets, [&](const SubjectState& subject, const WatchScene& scene) {
      if (subject.subject.kind == SubjectId::Kind::kCore &&
          subject.activity != Activity::kCorrupt && subject.activity != Activity::kUnread)
        add(subject, scene);
    });
  };
  metrics->Family("hangscope_heartbeats_total", "counter",
                  "Rounds of a core's main loop, modulo 2^32.");
  cores([&](const SubjectState& subject, const WatchScene& scene) {
    metrics->Sample(LabelsOf(subject, scene), subject.sample.heartbeat);
  });
  metrics->Family("hangscope_waits_total", "counter", "Waits that a core began, modulo 2^31.");
  cores([&](const SubjectState& subject, const WatchScene& scene) {
    metrics->Sample(LabelsOf(subject, scene),
                    subject.sample.wait_sequence / 2 + subject.sample.wait_sequence % 2);
  });
  metrics->Family("hangscope_stack_free_bytes", "gauge",
                  "Bytes of a core's stack that were never used.");
  cores([&](const SubjectState& subject, const WatchScene& scene) {
    if (subject.sample.stack_free)
      metrics->Sample(LabelsOf(subject, scene), *subject.sample.stack_free);
  });
}

void AddCost(const WatchCost& cost, MetricsText* metrics) {
  metrics->Family("hangscope_polls_total", "counter", "Looks at all targets.");
  metrics->Sample({}, static_cast<double>(cost.polls));
  metrics->Family("hangscope_read_bytes_total", "counter", "Bytes that polls read from targets.");
  metrics->Sample({}, static_cast<double>(cost.bytes));
  metrics->Family("hangscope_longest_poll_seconds", "gauge",
                  "The longest look at all targets so far.");
  metrics->Sample({}, Seconds(cost.longest_poll));
  metrics->Family("hangscope_cpu_seconds_total", "counter", "CPU time of the watcher itself.");
  metrics->Sample({}, Seconds(cost.cpu));
}

}  // namespace

bool IsMetricName(std::string_view name) {
  if (name.empty() || !(IsLetter(name[0]) || name[0] == ':')) return false;
  return std::all_of(name.begin(), name.end(),
                     [](char c) { return IsLetter(c) || IsDigit(c) || c == ':'; });
}

bool IsLabelName(std::string_view name) {
  return !name.starts_with("__") && name.find(':') == std::string_view::npos && IsMetricName(name);
}

void MetricsText::Family(std::string_view name, std::string_view type, std::string_view help) {
  family_ = name;
  text_ += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
}

void MetricsText::Sample(const Labels& labels, double value) {
  text_ += family_;
  for (size_t i = 0; i < labels.size(); ++i) {
    text_ += fmt::format("{}{}=\"{}\"", i == 0 ? "{" : ",", labels[i].first,
                         Escaped(Printable(labels[i].second)));
  }
  text_ += fmt::format("{} {}\n", labels.empty() ? "" : "}", value);
}

std::string WatchMetrics(const std::vector<WatchedMetrics>& targets, const WatchCost& cost) {
  MetricsText metrics;
  metrics.Family("hangscope_up", "gauge", "1 while the target can be read.");
  for (const WatchedMetrics& target : targets)
    metrics.Sample({{"target", target.scene.target}}, target.up ? 1 : 0);
  metrics.Family("hangscope_findings_total", "counter", "What was found wrong, by kind.");
  for (const WatchedMetrics& target : targets) {
    for (const auto& [kind, count] : target.findings) {
      metrics.Sample(
          {{"target", target.scene.target}, {"kind", std::string(FindingKindName(kind))}},
          static_cast<double>(count));
    }
  }
  AddSubjects(targets, &metrics);
  AddCost(cost, &metrics);
  return metrics.text();
}

}  // namespace hangscope
