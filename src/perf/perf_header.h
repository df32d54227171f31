// The parts of a perf.data that are no records: its header, attributes and feature sections; and
// the same as records, in the form that goes through a pipe. Nothing in them is trusted: what does
// not fit is left out, and the function says so. model/perf_format.h describes the header. `turn`:
// numbers are of the other byte order.
#ifndef HANGSCOPE_PERF_PERF_HEADER_H
#define HANGSCOPE_PERF_PERF_HEADER_H

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/perf_format.h"

namespace hangscope {

enum class PerfMagic { kNone, kThis, kOtherByteOrder, kOld };
PerfMagic FindPerfMagic(std::string_view bytes);

// Nothing where `bytes` are too few for what the header says it is.
std::optional<PerfHeader> ParsePerfHeader(std::string_view bytes);
std::optional<PerfSection> ParsePerfSection(std::string_view bytes, bool turn = false);
// As many as there are in it.
std::vector<uint64_t> ReadPerfWords(std::string_view words, bool turn = false);
// As many bytes of an attribute as it says itself that it has; fewer than the first version had are
// none.
std::optional<perf_event_attr> ParsePerfAttribute(std::string_view bytes);

// A feature's text, list of texts (joined by blanks), or nothing.
std::optional<std::string> ParsePerfText(std::string_view section, bool turn = false);
std::optional<std::string> ParsePerfTexts(std::string_view section, bool turn = false);

struct PerfEventName {
  std::vector<uint64_t> ids;
  std::string name;
};
// False: the section ends before what it should hold.
bool ParsePerfEventNames(std::string_view section, std::vector<PerfEventName>* names,
                         bool turn = false);
// The names of the kinds of events that this machine has: number, "cs_etm".
bool ParsePerfTracers(std::string_view section,
                      std::vector<std::pair<uint32_t, std::string>>* tracers, bool turn = false);
bool ParsePerfBuildIds(std::string_view section,
                       std::vector<std::pair<std::string, std::string>>* build_ids,
                       bool turn = false);
// The body of one record.
std::optional<std::pair<std::string, std::string>> ParsePerfBuildId(std::string_view body,
                                                                    uint16_t misc);

struct PerfTracepoint {
  std::string system;
  std::string format;
};
// These say themselves in which byte order they are.
bool ParsePerfTracingData(std::string_view section, std::vector<PerfTracepoint>* tracepoints);

}  // namespace hangscope

#endif
