// A perf.data by hand, in either form.
#ifndef HANGSCOPE_TESTS_FAKES_PERF_IMAGE_H
#define HANGSCOPE_TESTS_FAKES_PERF_IMAGE_H

#include <zstd.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "fakes/perf_bytes.h"
#include "model/perf_event.h"
#include "model/perf_format.h"

namespace hangscope {

inline std::string PerfSizedText(std::string_view text) {
  const std::string padded = PerfText(text);
  return PerfBytes(static_cast<uint32_t>(padded.size())) + padded;
}

// What trace-cmd's format has before and around the formats of one system.
inline std::string PerfTracingData(const std::string& system,
                                   const std::vector<std::string>& formats) {
  const auto text = [](std::string_view bytes) { return std::string(bytes) + '\0'; };
  const auto sized = [](const std::string& bytes) { return PerfWord(bytes.size()) + bytes; };
  std::string bytes =
      "\x17\x08\x44tracing" + text("0.6") +
      PerfBytes(static_cast<uint8_t>(PerfBytesTurned()), uint8_t{8}, uint32_t{4096});
  bytes += text("header_page") + sized("page") + text("header_event") + sized("event");
  bytes += PerfBytes(uint32_t{1}) + sized("name: ftrace's own");
  bytes += PerfBytes(uint32_t{1}) + text(system) + PerfBytes(static_cast<uint32_t>(formats.size()));
  for (const std::string& format : formats) bytes += sized(format);
  return bytes + PerfBytes(uint32_t{0}, uint32_t{0}) + PerfWord(0);
}

class PerfImage {
 public:
  std::vector<PerfEvent> events;
  std::vector<std::string> records;  // whole ones, with what follows them
  std::map<uint32_t, std::string> features;

  static std::string Magic() { return PerfBytesTurned() ? "2ELIFREP" : "PERFILE2"; }
  static std::string Attribute(const PerfEvent& event) {
    const perf_event_attr& attr = event.attr;
    constexpr size_t kFlagsAt = 40;
    std::string flags(reinterpret_cast<const char*>(&attr) + kFlagsAt, 8);
    for (char& byte : flags) {
      // The other order counts bits from the other end.
      int turned = 0;
      for (int bit = 0; bit < 8; ++bit) turned |= (byte >> bit & 1) << (7 - bit);
      if (PerfBytesTurned()) byte = static_cast<char>(turned);
    }
    std::string bytes =
        PerfBytes(attr.type, static_cast<uint32_t>(sizeof attr)) +
        PerfBytes(uint64_t{attr.config}, uint64_t{attr.sample_period}, uint64_t{attr.sample_type},
                  uint64_t{attr.read_format}) +
        flags + PerfBytes(uint32_t{attr.wakeup_events}, uint32_t{attr.bp_type}) +
        PerfBytes(uint64_t{attr.config1}, uint64_t{attr.config2}, uint64_t{attr.branch_sample_type},
                  uint64_t{attr.sample_regs_user}, uint32_t{attr.sample_stack_user},
                  int32_t{attr.clockid}, uint64_t{attr.sample_regs_intr},
                  uint32_t{attr.aux_watermark}, uint16_t{attr.sample_max_stack}, uint16_t{0},
                  uint32_t{attr.aux_sample_size}, uint32_t{0});
    while (bytes.size() < sizeof attr) bytes += PerfWord(0);
    return bytes;
  }
  static std::string Ids(const PerfEvent& event) {
    std::string bytes;
    for (const uint64_t id : event.ids) bytes += PerfWord(id);
    return bytes;
  }
  std::string EventNames() const {
    std::string bytes = PerfBytes(static_cast<uint32_t>(events.size()),
                                  static_cast<uint32_t>(sizeof(perf_event_attr)));
    for (const PerfEvent& event : events)
      bytes += Attribute(event) + PerfBytes(static_cast<uint32_t>(event.ids.size())) +
               PerfSizedText(event.name) + Ids(event);
    return bytes;
  }
  // Sets `*records_at` to where the records begin.
  std::string File(uint64_t* records_at = nullptr) const {
    std::string ids, attributes, all, table, parts;
    for (const PerfEvent& event : events) {
      attributes += Attribute(event) + PerfWord(kPerfHeaderBytes + ids.size()) +
                    PerfWord(8 * event.ids.size());
      ids += Ids(event);
    }
    for (const std::string& record : records) all += record;
    const uint64_t attributes_at = kPerfHeaderBytes + ids.size();
    const uint64_t at = attributes_at + attributes.size();
    std::array<uint64_t, 4> bits{};
    for (const auto& [feature, bytes] : features) {
      bits[feature / 64] |= uint64_t{1} << feature % 64;
      table +=
          PerfWord(at + all.size() + 16 * features.size() + parts.size()) + PerfWord(bytes.size());
      parts += bytes;
    }
    if (records_at != nullptr) *records_at = at;
    return Magic() + PerfWord(kPerfHeaderBytes) + PerfWord(sizeof(perf_event_attr) + 16) +
           PerfWord(attributes_at) + PerfWord(attributes.size()) + PerfWord(at) +
           PerfWord(all.size()) + PerfWord(0) + PerfWord(0) + PerfWord(bits[0]) +
           PerfWord(bits[1]) + PerfWord(bits[2]) + PerfWord(bits[3]) + ids + attributes + all +
           table + parts;
  }
  std::string Pipe() const {
    std::string bytes = Magic() + PerfWord(kPerfPipeHeaderBytes);
    for (const PerfEvent& event : events)
      bytes += PerfRecordOf(kPerfHeaderAttr, Attribute(event) + Ids(event));
    for (const auto& [feature, text] : features) {
      if (feature != kPerfFeatureTracingData)
        bytes += PerfRecordOf(kPerfHeaderFeature, PerfWord(feature) + text);
      else
        bytes += PerfRecordOf(kPerfHeaderTracingData,
                              PerfBytes(static_cast<uint32_t>(text.size()), 0u)) +
                 text + std::string((8 - text.size() % 8) % 8, '\0');
    }
    for (const std::string& record : records) bytes += record;
    return bytes;
  }
};

// One stream, in records that each hold what was compressed of `piece` bytes: they end within the
// records inside.
inline std::vector<std::string> PerfCompressed(const std::vector<std::string>& records,
                                               size_t piece) {
  std::string all;
  for (const std::string& record : records) all += record;
  ZSTD_CCtx* stream = ZSTD_createCCtx();
  std::vector<std::string> compressed;
  for (size_t at = 0; at < all.size(); at += piece) {
    std::string bytes(ZSTD_compressBound(piece) + 100, '\0');
    ZSTD_inBuffer in{all.data() + at, std::min(piece, all.size() - at), 0};
    ZSTD_outBuffer out{bytes.data(), bytes.size(), 0};
    ZSTD_compressStream2(stream, &out, &in, ZSTD_e_flush);
    compressed.push_back(PerfRecordOf(kPerfCompressed, bytes.substr(0, out.pos)));
  }
  ZSTD_freeCCtx(stream);
  return compressed;
}

}  // namespace hangscope

#endif
