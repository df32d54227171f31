// The numbers and structures of perf.data files, for all who write and read them. They are little
// endian here, as on the machines that are recorded. The kernel's own are in linux/perf_event.h.
//
//   offset  bytes   of the file's header
//        0      8   "PERFILE2"
//        8      8   its size: 104; 16 in the form for pipes, where records follow at once
//       16      8   size of an attribute with the section of its ids
//       24     16   attributes: offset, size
//       40     16   records: offset, size
//       56     16   unused
//       72     32   which features there are: a bit each; the table of their sections is behind the
//                   records, in the order of the bits
#ifndef HANGSCOPE_MODEL_PERF_FORMAT_H
#define HANGSCOPE_MODEL_PERF_FORMAT_H

#include <linux/perf_event.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace hangscope {

struct PerfSection {
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

struct PerfHeader {
  std::array<char, 8> magic = {'P', 'E', 'R', 'F', 'I', 'L', 'E', '2'};
  uint64_t header_bytes = sizeof(PerfHeader);
  uint64_t attribute_bytes = sizeof(perf_event_attr) + sizeof(PerfSection);
  PerfSection attributes;
  PerfSection records;
  PerfSection event_types;  // of old files
  std::array<uint64_t, 4> features{};

  bool Has(uint32_t feature) const { return (features[feature / 64] >> (feature % 64) & 1) != 0; }
  void Set(uint32_t feature) { features[feature / 64] |= uint64_t{1} << (feature % 64); }
};

constexpr size_t kPerfPipeHeaderBytes = 16;
constexpr size_t kPerfHeaderBytes = sizeof(PerfHeader);
constexpr size_t kPerfSectionBytes = sizeof(PerfSection);
static_assert(kPerfHeaderBytes == 104 && kPerfSectionBytes == 16);

// HEADER_* of tools/perf/util/header.h of Linux.
enum PerfFeature : uint32_t {
  kPerfFeatureTracingData = 1,
  kPerfFeatureBuildId = 2,
  kPerfFeatureHost = 3,
  kPerfFeatureRelease = 4,
  kPerfFeatureVersion = 5,
  kPerfFeatureArchitecture = 6,
  kPerfFeatureCpus = 7,
  kPerfFeatureCommand = 11,
  kPerfFeatureEventDescription = 12,
  kPerfFeatureTracers = 16,  // PMU_MAPPINGS
  kPerfFeatureTraces = 18,   // AUXTRACE
  kPerfFeatureDirectory = 24,
  kPerfFeatureCompressed = 27,
  // Ours: perf/recorded_rings.h. perf passes over those that it does not know; simpleperf's begin
  // with 128.
  kPerfFeatureRecordedRings = 224,
  kPerfFeatures = 256,
};

// The first bytes of kPerfFeatureTracingData, which trace-cmd made up; its version follows.
constexpr std::string_view kPerfTracingMagic = "\x17\x08\x44tracing";

// Records of the kernel that not every linux/perf_event.h names: Linux 5.16, and PERF_RECORD_MAX of
// Linux 6.12.
constexpr uint32_t kPerfAuxOutputHardwareId = 21;
constexpr uint32_t kPerfKernelRecordsEnd = 22;

// perf's own records: PERF_RECORD_HEADER_ATTR and so on, of tools/lib/perf/include/perf/event.h of
// Linux. They have no trailer.
enum PerfToolRecord : uint32_t {
  kPerfToolRecordsBegin = 64,  // PERF_RECORD_USER_TYPE_START
  kPerfHeaderAttr = 64,
  kPerfHeaderTracingData = 66,
  kPerfHeaderBuildId = 67,
  kPerfFinishedRound = 68,
  kPerfAuxtraceInfo = 70,  // hwtrace/auxtrace_info.h
  kPerfAuxtrace = 71,
  kPerfAuxtraceError = 72,
  kPerfThreadMap = 73,
  kPerfStat = 76,  // of perf stat record
  kPerfStatRound = 77,
  kPerfEventUpdate = 78,
  kPerfTimeConversion = 79,  // TIME_CONV
  kPerfHeaderFeature = 80,
  kPerfCompressed = 81,
  kPerfFinishedInit = 82,
  kPerfCompressed2 = 83,
  kPerfToolRecordsEnd = 84,
};

// Those of simpleperf: SIMPLE_PERF_RECORD_TYPE_START of its record.h. The upper half of the type is
// that of the size.
constexpr uint32_t kSimpleperfRecordsBegin = 32'768;
constexpr uint32_t kSimpleperfRecordsEnd = 32'832;  // of those that there are, about 15
constexpr bool IsSimpleperfRecord(uint32_t type) {
  return (type & 0xffff) >= kSimpleperfRecordsBegin && (type & 0xffff) < kSimpleperfRecordsEnd;
}

// The body of a kPerfAuxtrace; the bytes of the trace follow.
struct PerfAuxtraceBody {
  uint64_t bytes = 0;
  uint64_t offset = 0;  // of the ring's history
  uint64_t reference = 0;
  uint32_t index = 0;
  int32_t tid = 0;
  int32_t cpu = 0;
  uint32_t reserved = 0;
};
static_assert(sizeof(PerfAuxtraceBody) == 40);

// The size of the record at the begin of `bytes`: 0 where they are too few or it cannot be one.
inline size_t PerfRecordBytes(std::string_view bytes) {
  perf_event_header header;
  if (bytes.size() < sizeof header) return 0;
  std::memcpy(&header, bytes.data(), sizeof header);
  return header.size < sizeof header ? 0 : header.size;
}

}  // namespace hangscope

#endif
