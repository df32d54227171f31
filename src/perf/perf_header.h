// The parts of a perf.data that are no records: its header, attributes and feature sections; and
// the same as records, in the form that goes through a pipe. Nothing in them is trusted: what does
// not fit is left out, and the function says so.
//
//   offset  bytes   of the file's header
//        0      8   "PERFILE2"
//        8      8   its size: 104; 16 in the form for pipes, where records follow at once
//       16      8   size of an attribute with the place of its ids
//       24     16   attributes: offset, size
//       40     16   records: offset, size
//       56     16   unused
//       72     32   which features there are: a bit each; the table of their places is behind the
//                   records
#ifndef HANGSCOPE_PERF_PERF_HEADER_H
#define HANGSCOPE_PERF_PERF_HEADER_H

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/perf_event.h"

namespace hangscope {

constexpr size_t kPerfPipeHeaderBytes = 16;
constexpr size_t kPerfHeaderBytes = 104;
constexpr size_t kPerfSectionBytes = 16;

// perf's own records: PERF_RECORD_HEADER_ATTR and so on, of tools/lib/perf/include/perf/event.h of
// Linux.
enum PerfToolRecord : uint32_t {
  kPerfHeaderAttr = 64,
  kPerfHeaderTracingData = 66,
  kPerfHeaderBuildId = 67,
  kPerfFinishedRound = 68,
  kPerfAuxtraceInfo = 70,
  kPerfAuxtrace = 71,
  kPerfAuxtraceError = 72,
  kPerfEventUpdate = 78,
  kPerfHeaderFeature = 80,
  kPerfCompressed = 81,
  kPerfFinishedInit = 82,
  kPerfCompressed2 = 83,
  kPerfToolRecordsEnd = 84,
};

// HEADER_* of tools/perf/util/header.h of Linux.
enum PerfFeature : uint32_t {
  kPerfFeatureTracingData = 1,
  kPerfFeatureBuildId = 2,
  kPerfFeatureHost = 3,
  kPerfFeatureRelease = 4,
  kPerfFeatureVersion = 5,
  kPerfFeatureArchitecture = 6,
  kPerfFeatureCommand = 11,
  kPerfFeatureEventDescription = 12,
  kPerfFeatureTracers = 16,  // PMU_MAPPINGS
  kPerfFeatureDirectory = 24,
  kPerfFeatureCompressed = 27,
  kPerfFeatures = 256,
};

struct PerfSection {
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

struct PerfHeader {
  bool pipe = false;
  uint64_t attribute_bytes = 0;
  PerfSection attributes;
  PerfSection records;
  std::array<uint64_t, 4> features{};

  bool Has(uint32_t feature) const { return (features[feature / 64] >> (feature % 64) & 1) != 0; }
};

enum class PerfMagic { kNone, kThis, kOtherByteOrder, kOld };
PerfMagic FindPerfMagic(std::string_view bytes);

// Nothing where `bytes` are too few for what the header says it is.
std::optional<PerfHeader> ParsePerfHeader(std::string_view bytes);
std::optional<PerfSection> ParsePerfSection(std::string_view bytes);
// As many bytes of an attribute as it says itself that it has; fewer than the first version had are
// none.
std::optional<perf_event_attr> ParsePerfAttribute(std::string_view bytes);

// A feature's text, list of texts (joined by blanks), or nothing.
std::optional<std::string> ParsePerfText(std::string_view section);
std::optional<std::string> ParsePerfTexts(std::string_view section);

struct PerfEventName {
  std::vector<uint64_t> ids;
  std::string name;
};
// False: the section ends before what it should hold.
bool ParsePerfEventNames(std::string_view section, std::vector<PerfEventName>* names);
// The names of the kinds of events that this machine has: number, "cs_etm".
bool ParsePerfTracers(std::string_view section,
                      std::vector<std::pair<uint32_t, std::string>>* tracers);
bool ParsePerfBuildIds(std::string_view section,
                       std::vector<std::pair<std::string, std::string>>* build_ids);
// The body of one record.
std::optional<std::pair<std::string, std::string>> ParsePerfBuildId(std::string_view body,
                                                                    uint16_t misc);

struct PerfTracepoint {
  std::string system;
  std::string format;
};
bool ParsePerfTracingData(std::string_view section, std::vector<PerfTracepoint>* tracepoints);

}  // namespace hangscope

#endif
