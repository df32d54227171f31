#include "cpu/perf_pmu.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "base/numbers.h"

namespace hangscope {
namespace {

constexpr std::string_view kSpaces = " \t\r\n";

std::string Trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(kSpaces);
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(kSpaces) - begin + 1);
}

// As C writes numbers: 31, 037, 0x1f.
std::optional<uint64_t> ParseTermValue(const std::string& text) {
  if (text.empty() || text[0] == '-') return std::nullopt;
  char* end = nullptr;
  errno = 0;
  const uint64_t number = std::strtoull(text.c_str(), &end, 0);
  if (errno != 0 || *end != '\0') return std::nullopt;
  return number;
}

std::vector<std::string> Split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    if (end > begin) parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::string Joined(std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text.empty() ? "none" : text;
}

// What its driver needs to be told for traces that can be decoded, where the user names nothing
// else.
struct TracerDefaults {
  std::string_view pmu;
  std::vector<std::string> terms;  // those that the PMU has
};
const std::vector<TracerDefaults>& Tracers() {
  static const std::vector<TracerDefaults> tracers = {
      {"intel_pt", {"pt", "branch", "tsc"}},
      {"cs_etm", {"timestamp", "contextid"}},
      {"arm_spe", {"ts_enable"}},
      {"intel_bts", {}},
  };
  return tracers;
}

class Pmu {
 public:
  Pmu(FileSystem& files, const std::string& pmus, const std::string& name)
      : files_(files), folder_(pmus + "/" + name), name_(name) {}

  Result<PerfEventSpec> Event(const std::string& terms) {
    PerfEventSpec spec;
    auto type = Read("type");
    const std::optional<uint64_t> number = ParseWhole<uint64_t>(type.value_or(""));
    if (!number) return Status::NotFound("cannot read '" + folder_ + "/type'");
    spec.event.attr.type = static_cast<uint32_t>(*number);
    spec.event.attr.sample_period = 1;
    spec.event.attr.sample_type = PERF_SAMPLE_IP;
    for (const TracerDefaults& tracer : Tracers()) {
      if (!name_.starts_with(tracer.pmu)) continue;
      spec.tracer = true;
      for (const std::string& term : tracer.terms) {
        if (Read("format/" + term).ok()) (void)SetTerm(term, "1", 0, &spec.event.attr);
      }
      if (auto interval = ParseWhole<uint64_t>(Read("caps/min_interval").value_or("")))
        spec.event.attr.sample_period = *interval;
    }
    for (const std::string& term : Split(terms, ',')) {
      const size_t equals = term.find('=');
      const std::string value = equals == std::string::npos ? "1" : term.substr(equals + 1);
      const Status status = term[0] == '@'
                                ? SetSink(term.substr(1), &spec.event.attr)
                                : SetTerm(term.substr(0, equals), value, 0, &spec.event.attr);
      if (!status.ok()) return status;
    }
    return spec;
  }

 private:
  Result<std::string> Read(const std::string& file) {
    auto text = ReadWholeFile(files_, folder_ + "/" + file);
    if (!text.ok()) return text.status();
    return Trimmed(*text);
  }

  Status SetTerm(const std::string& term, const std::string& value, int depth,
                 perf_event_attr* attr) {
    if (term.starts_with("aux-")) return NoPauses(term);
    const std::optional<uint64_t> number = ParseTermValue(value);
    if (!number)
      return Status::Usage("'" + name_ + "/" + term + "=" + value + "/': the value is no number");
    if (term == "config")
      attr->config = *number;
    else if (term == "config1")
      attr->config1 = *number;
    else if (term == "config2")
      attr->config2 = *number;
    else if (term == "period")
      attr->sample_period = *number;
    else
      return SetNamedTerm(term, *number, depth, attr);
    return {};
  }

  Status SetNamedTerm(const std::string& term, uint64_t value, int depth, perf_event_attr* attr) {
    if (term.find('/') != std::string::npos || term.starts_with(".")) return Unknown(term);
    if (auto format = Read("format/" + term); format.ok()) return SetPmuBits(*format, value, attr);
    // An event stands for terms, and those never for events.
    auto alias = Read("events/" + term);
    if (!alias.ok() || depth > 0) return Unknown(term);
    for (const std::string& part : Split(*alias, ',')) {
      const size_t equals = part.find('=');
      const Status status =
          SetTerm(part.substr(0, equals),
                  equals == std::string::npos ? "1" : part.substr(equals + 1), depth + 1, attr);
      if (!status.ok()) return status;
    }
    return {};
  }

  // Of perf's own, for any event: to pause a trace, or begin with it paused, or take samples of it.
  // The PMU knows none of them.
  Status NoPauses(const std::string& term) const {
    return Status::Usage("'" + name_ + "/" + term +
                         "/': hangscope traces all the time, and neither pauses a trace at another "
                         "event nor samples it; perf record does");
  }

  Status Unknown(const std::string& term) {
    return Status::Usage("'" + name_ + "' knows no '" + term + "': its terms are " +
                         Joined(files_.List(folder_ + "/format")));
  }

  // CoreSight: which buffer at the end of the trace bus. The driver knows it by a number.
  Status SetSink(const std::string& sink, perf_event_attr* attr) {
    const std::vector<std::string> sinks = files_.List(folder_ + "/sinks");
    if (std::find(sinks.begin(), sinks.end(), sink) == sinks.end())
      return Status::Usage("'" + name_ + "' has no sink '" + sink + "': its sinks are " +
                           Joined(sinks));
    auto text = Read("sinks/" + sink);
    const std::optional<uint64_t> id = ParseHex<uint64_t>(text.value_or(""));
    auto format = Read("format/sinkid");
    if (!id || !format.ok())
      return Status::NotFound("the kernel does not say how '" + name_ +
                              "' is told its sink: Linux 5.2 or newer does");
    return SetPmuBits(*format, *id, attr);
  }

  FileSystem& files_;
  const std::string folder_;
  const std::string name_;
};

struct PmuEventName {
  std::string pmu, terms, modifiers;
};

std::optional<PmuEventName> SplitPmuEvent(const std::string& name) {
  const size_t first = name.find('/');
  const size_t last = name.rfind('/');
  if (first == std::string::npos || first == 0 || last == first || name.find('@') < first ||
      name.find(':') < first)
    return std::nullopt;
  return PmuEventName{name.substr(0, first), name.substr(first + 1, last - first - 1),
                      name.substr(last + 1)};
}

}  // namespace

bool IsPmuEvent(const std::string& name) { return SplitPmuEvent(name).has_value(); }

Result<std::vector<PerfEventSpec>> FindPmuEvents(FileSystem& files, const std::string& pmus,
                                                 const std::string& name) {
  const std::optional<PmuEventName> parts = SplitPmuEvent(name);
  if (!parts) return Status::Usage("'" + name + "' is no event of a PMU: NAME/TERMS/");
  const std::vector<std::string> all = files.List(pmus);
  std::vector<std::string> named;
  for (const std::string& pmu : all) {
    const bool numbered =
        pmu.starts_with(parts->pmu + "_") &&
        pmu.find_first_not_of("0123456789", parts->pmu.size() + 1) == std::string::npos;
    if (pmu == parts->pmu || numbered) named.push_back(pmu);
  }
  if (named.empty())
    return Status::NotFound("this machine has no '" + parts->pmu + "': '" + pmus + "' has " +
                            Joined(all));
  std::sort(named.begin(), named.end());
  std::vector<PerfEventSpec> specs;
  for (const std::string& pmu : named) {
    auto spec = Pmu(files, pmus, pmu).Event(parts->terms);
    if (!spec.ok()) return spec.status();
    if (Status status = SetModifiers(name, parts->modifiers, &spec->event.attr); !status.ok())
      return status;
    spec->event.name = pmu + "/" + parts->terms + "/" + parts->modifiers;
    specs.push_back(std::move(*spec));
  }
  return specs;
}

Status SetPmuBits(const std::string& format, uint64_t value, perf_event_attr* attr) {
  const Status wrong = Status::Corrupt("the format '" + format + "' is not understood");
  const size_t colon = format.find(':');
  if (colon == std::string::npos) return wrong;
  const std::string field = format.substr(0, colon);
  uint64_t config1 = attr->config1, config2 = attr->config2, config = attr->config;
  uint64_t* bits = field == "config"    ? &config
                   : field == "config1" ? &config1
                   : field == "config2" ? &config2
                                        : nullptr;
  if (bits == nullptr) return wrong;
  uint64_t rest = value;
  for (const std::string& part : Split(format.substr(colon + 1), ',')) {
    const auto range = ParseRange<uint64_t>(part);
    if (!range || range->first > range->second || range->second > 63) return wrong;
    const auto [first, last] = *range;
    const uint64_t width = last - first + 1;
    const uint64_t mask = width == 64 ? ~uint64_t{0} : (uint64_t{1} << width) - 1;
    *bits = (*bits & ~(mask << first)) | (rest & mask) << first;
    rest = width == 64 ? 0 : rest >> width;
  }
  if (rest != 0)
    return Status::Usage(std::to_string(value) + " is too large for the bits '" + format + "'");
  attr->config = config;
  attr->config1 = config1;
  attr->config2 = config2;
  return {};
}

Status SetModifiers(const std::string& event, const std::string& modifiers, perf_event_attr* attr) {
  if (modifiers.find_first_not_of("ukHGpP") != std::string::npos) {
    return Status::Usage("'" + event + "': '" + modifiers +
                         "' is not understood; u and k choose the side, program or kernel");
  }
  const bool user = modifiers.find('u') != std::string::npos;
  const bool kernel = modifiers.find('k') != std::string::npos;
  if (user || kernel) {
    attr->exclude_user = !user;
    attr->exclude_kernel = !kernel;
    attr->exclude_hv = 1;
  }
  return {};
}

}  // namespace hangscope
