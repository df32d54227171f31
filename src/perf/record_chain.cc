#include "perf/record_chain.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "model/perf_format.h"

namespace hangscope {
namespace {

constexpr size_t kLinkHeaderBytes = sizeof(perf_event_header);
constexpr uint32_t kNewerKernelRecordsEnd = kPerfToolRecordsBegin;
constexpr uint32_t kNewerToolRecordsEnd = 128;
constexpr uint16_t kUnusedMisc = 0x0ff8;  // bits of the header that no record has
constexpr uint16_t kMostPlainSampleBytes = 512;
constexpr int kLinks = 3;       // of a chain
constexpr int kMostLinks = 64;  // that are looked at, with those that prove nothing

perf_event_header HeaderAt(std::string_view bytes) {
  perf_event_header header{};
  std::memcpy(&header, bytes.data(), std::min(bytes.size(), sizeof header));
  return header;
}

// The least that the kernel's records have, with their headers, without texts and trailers; by
// type.
constexpr std::array<uint16_t, kPerfKernelRecordsEnd> kLeastBytes = {
    0,  40, 24, 16, 32, 32, 32, 32, 24, 16, 72,  // MMAP to MMAP2
    32, 16, 16, 8,  16, 24, 24, 24, 16, 24, 16   // AUX to AUX_OUTPUT_HW_ID
};

}  // namespace

bool IsPlausiblePerfHeader(std::string_view bytes) {
  if (bytes.size() < kLinkHeaderBytes) return false;
  const perf_event_header header = HeaderAt(bytes);
  if (header.type == 0) return false;
  if (header.type < kPerfKernelRecordsEnd)
    return header.size % 8 == 0 && header.size >= kLeastBytes[header.type];
  if (header.type < kNewerKernelRecordsEnd)
    return header.size % 8 == 0 && header.size > kLinkHeaderBytes;
  if (header.type < kNewerToolRecordsEnd) return header.size >= kLinkHeaderBytes;
  return IsSimpleperfRecord(header.type) && PerfExtentOf(bytes).bytes >= kLinkHeaderBytes;
}

bool IsPlainPerfHeader(std::string_view bytes) {
  if (bytes.size() < kLinkHeaderBytes) return false;
  const perf_event_header header = HeaderAt(bytes);
  return header.type > 0 && header.type < kPerfKernelRecordsEnd && header.size % 8 == 0 &&
         header.size >= kLeastBytes[header.type] && header.size <= kMostPlainSampleBytes &&
         (header.misc & kUnusedMisc) == 0;
}

bool IsOddPerfRecord(std::string_view record, const std::vector<PerfEvent>& events) {
  constexpr uint16_t kMostBytes = 8192;  // paths have 4096 at most
  constexpr uint64_t kLong = PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_BRANCH_STACK |
                             PERF_SAMPLE_STACK_USER | PERF_SAMPLE_AUX | PERF_SAMPLE_READ;
  const perf_event_header header = HeaderAt(record);
  if (header.type >= kNewerToolRecordsEnd) return false;
  if ((header.misc & kUnusedMisc) != 0) return true;
  if (header.type != PERF_RECORD_SAMPLE)
    return header.type < kPerfToolRecordsBegin && header.size > kMostBytes;
  return header.size > kMostPlainSampleBytes &&
         std::none_of(events.begin(), events.end(),
                      [](const PerfEvent& event) { return (event.attr.sample_type & kLong) != 0; });
}

PerfExtent PerfExtentOf(std::string_view record) {
  const perf_event_header header = HeaderAt(record);
  const std::string_view body = record.substr(std::min(record.size(), kLinkHeaderBytes));
  const auto word = [body](auto number) {
    if (body.size() >= sizeof number) std::memcpy(&number, body.data(), sizeof number);
    return number;
  };
  PerfExtent extent{header.size, 0};
  if (header.type == kPerfAuxtrace) extent.following = word(uint64_t{0});
  if (header.type == kPerfHeaderTracingData) {
    // Behind the record; those of older simpleperf are in it.
    const uint64_t bytes = word(uint32_t{0});
    if (header.size < kLinkHeaderBytes + sizeof(uint32_t) + bytes || bytes == 0)
      extent.following = (bytes + 7) / 8 * 8;
  }
  if (IsSimpleperfRecord(header.type) && header.type > UINT16_MAX) {
    extent.following = (header.type & ~uint32_t{UINT16_MAX}) + header.size - kLinkHeaderBytes;
    extent.bytes = kLinkHeaderBytes;
  }
  return extent;
}

Result<bool> RecordChain::IsPlausibleAt(uint64_t at, uint64_t end) {
  if (at >= end || end - at < kLinkHeaderBytes) return false;
  char header[kLinkHeaderBytes];
  auto got = file_.ReadAt(at, header);
  if (!got.ok()) return got.status();
  return IsPlausible({header, *got});
}

Result<bool> RecordChain::IsChain(uint64_t at, uint64_t end) {
  if (parser_ == nullptr || parsed_events_ != events_.size()) {
    parser_ = std::make_unique<PerfRecordParser>(events_);
    turner_ = std::make_unique<PerfRecordTurner>(events_);
    parsed_events_ = events_.size();
  }
  int links = 0;
  for (int looked_at = 0; looked_at < kMostLinks; ++looked_at) {
    auto header = probe_.At(at, kLinkHeaderBytes);
    if (!header.ok()) return header.status();
    if (!IsPlausible(*header)) return false;
    const std::string turned = turn_ ? TurnRecordHeader(*header) : std::string(*header);
    if ((HeaderAt(turned).misc & kUnusedMisc) != 0) return false;
    // The last of a file that was cut.
    const uint64_t bytes = PerfExtentOf(turned).bytes;
    if (bytes > end - at) return links + 1 >= kLinks;
    auto whole = probe_.At(at, static_cast<size_t>(bytes));
    if (!whole.ok()) return whole.status();
    if (whole->size() < bytes) return false;  // the file became shorter
    const std::string_view record = turn_ ? turner_->Turn(*whole) : *whole;
    const PerfExtent extent = PerfExtentOf(record);
    PerfRecord parsed;
    if (!events_.empty() && HeaderAt(record).type < kPerfToolRecordsBegin &&
        !parser_->Parse(record, &parsed))
      return false;
    // Without a body it proves little.
    links += extent.bytes > kLinkHeaderBytes || extent.following > 0;
    if (extent.following > end - at - extent.bytes) return false;
    at += extent.bytes + extent.following;
    if (links >= kLinks || at == end) return links > 0;
    if (end - at < kLinkHeaderBytes) return links + 1 >= kLinks;
  }
  return false;
}

// Bytes that only look like a record may reach to where a true one begins, and hide others.
Result<uint64_t> RecordChain::Find(uint64_t from, uint64_t end) {
  auto found = FindFirst(from, end, end);
  while (found.ok() && *found < end) {
    auto header = probe_.At(*found, kLinkHeaderBytes);
    if (!header.ok()) return header.status();
    const std::string turned = turn_ ? TurnRecordHeader(*header) : std::string(*header);
    const uint64_t bytes = PerfExtentOf(turned).bytes;
    auto inside = FindInside(*found, bytes, end);
    if (!inside.ok() || *inside >= *found + bytes) break;
    found = inside;
  }
  return found;
}

// `end` where none begins before `limit`.
Result<uint64_t> RecordChain::FindFirst(uint64_t from, uint64_t end, uint64_t limit) {
  for (uint64_t at = from; at < limit && end - at >= kLinkHeaderBytes;) {
    auto piece = scan_.At(at, static_cast<size_t>(std::min<uint64_t>(kWindowBytes, end - at)));
    if (!piece.ok()) return piece.status();
    if (piece->size() < kLinkHeaderBytes) break;  // the file became shorter
    const size_t places =
        static_cast<size_t>(std::min<uint64_t>(piece->size() - kLinkHeaderBytes + 1, limit - at));
    for (size_t i = 0; i < places; ++i) {
      if (!IsPlausible(piece->substr(i, kLinkHeaderBytes))) continue;
      auto is_chain = IsChain(at + i, end);
      if (!is_chain.ok()) return is_chain.status();
      if (*is_chain) return at + i;
    }
    at += places;
  }
  return end;
}

}  // namespace hangscope
