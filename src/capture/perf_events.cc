#include "capture/perf_events.h"

#include <fnmatch.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string_view>

namespace hangscope {
namespace {

constexpr uint64_t kPlace = PERF_SAMPLE_IP | PERF_SAMPLE_ADDR;

struct SoftwareName {
  std::string_view name;
  uint64_t config;
};
constexpr SoftwareName kSoftware[] = {
    {"page-faults", PERF_COUNT_SW_PAGE_FAULTS},
    {"faults", PERF_COUNT_SW_PAGE_FAULTS},
    {"minor-faults", PERF_COUNT_SW_PAGE_FAULTS_MIN},
    {"major-faults", PERF_COUNT_SW_PAGE_FAULTS_MAJ},
    {"context-switches", PERF_COUNT_SW_CONTEXT_SWITCHES},
    {"cs", PERF_COUNT_SW_CONTEXT_SWITCHES},
    {"cpu-migrations", PERF_COUNT_SW_CPU_MIGRATIONS},
    {"migrations", PERF_COUNT_SW_CPU_MIGRATIONS},
    {"alignment-faults", PERF_COUNT_SW_ALIGNMENT_FAULTS},
    {"emulation-faults", PERF_COUNT_SW_EMULATION_FAULTS},
};

std::optional<PerfEventSpec> Software(const std::string& name) {
  for (const SoftwareName& software : kSoftware) {
    if (software.name != name) continue;
    PerfEventSpec spec;
    spec.event.name = name;
    spec.event.attr.type = PERF_TYPE_SOFTWARE;
    spec.event.attr.config = software.config;
    spec.event.attr.sample_period = 1;
    spec.event.attr.sample_type = kPlace;
    return spec;
  }
  return std::nullopt;
}

}  // namespace

PerfEventFinder::PerfEventFinder(FileSystem& files, PerfSources sources) : files_(files), sources_(std::move(sources)) {}

Result<std::vector<PerfEventSpec>> PerfEventFinder::Find(const std::string& name) const {
  if (auto spec = Software(name)) return std::vector<PerfEventSpec>{*spec};
  const size_t colon = name.find(':');
  if (colon != std::string::npos) return Tracepoints(name.substr(0, colon), name.substr(colon + 1));
  return Status::NotFound("no event is named '" + name + "'; 'perf list' names those that there are");
}

Result<std::string> PerfEventFinder::EventsFolder() const {
  for (const std::string& folder : sources_.tracefs) {
    if (files_.IsFolder(folder + "/events")) return folder + "/events";
  }
  return Status::NotFound("no tracepoints: tracefs is not mounted, or may not be read; as root, 'mount -t tracefs nodev " +
                          sources_.tracefs.front() + "' mounts it and 'chmod -R a+rX " + sources_.tracefs.front() +
                          "' lets others read it");
}

Result<std::vector<PerfEventSpec>> PerfEventFinder::Tracepoints(const std::string& system, const std::string& pattern) const {
  auto events = EventsFolder();
  if (!events.ok()) return events.status();
  std::vector<std::string> names = files_.List(*events + "/" + system);
  std::erase_if(names, [&](const std::string& name) {
    return fnmatch(pattern.c_str(), name.c_str(), 0) != 0 || !files_.IsFolder(*events + "/" + system + "/" + name);
  });
  std::sort(names.begin(), names.end());
  if (names.empty()) return Status::NotFound("this kernel has no event '" + system + ":" + pattern + "' in '" + *events + "'");
  std::vector<PerfEventSpec> specs;
  for (const std::string& name : names) {
    auto spec = Tracepoint(*events, system, name);
    if (!spec.ok()) return spec.status();
    specs.push_back(std::move(*spec));
  }
  return specs;
}

Result<PerfEventSpec> PerfEventFinder::Tracepoint(const std::string& folder, const std::string& system,
                                                  const std::string& name) const {
  const std::string path = folder + "/" + system + "/" + name;
  auto id = ReadWholeFile(files_, path + "/id");
  if (!id.ok()) return id.status();
  auto format = ReadWholeFile(files_, path + "/format");
  if (!format.ok()) return format.status();
  PerfEventSpec spec;
  spec.event.name = system + ":" + name;
  spec.event.attr.type = PERF_TYPE_TRACEPOINT;
  spec.event.attr.config = std::strtoull(id->c_str(), nullptr, 10);
  spec.event.attr.sample_period = 1;
  spec.event.attr.sample_type = PERF_SAMPLE_RAW;
  spec.event.format = std::move(*format);
  spec.event.system = system;
  return spec;
}

}  // namespace hangscope
