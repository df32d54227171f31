#include "perf/perf_sorter.h"

#include <algorithm>
#include <cerrno>
#include <numeric>

#include "model/perf_format.h"

namespace hangscope {
namespace {

// Only what has a time is wanted; and what is no event of the kernel's is perf's own.
bool IsWanted(const PerfRecord& record) {
  return record.time >= 0 && record.type < PERF_RECORD_MAX;
}

}  // namespace

PerfSorter::PerfSorter(PerfFile& file, PerfSorterOptions options)
    : file_(file), options_(options), parser_(file.events()) {}

PerfSorter::~PerfSorter() {
  if (spill_ != nullptr) std::fclose(spill_);
}

Status PerfSorter::Spill(std::string_view bytes, uint64_t* at) {
  if (spill_ == nullptr) spill_ = std::tmpfile();
  if (spill_ == nullptr || std::fwrite(bytes.data(), 1, bytes.size(), spill_) != bytes.size()) {
    return Status::FromErrno(errno, "write what is inflated to", "a temporary file");
  }
  *at = spilled_;
  spilled_ += bytes.size();
  return {};
}

Status PerfSorter::Add(const PerfRecord& record, const PerfRecordPlace& place,
                       std::string_view bytes) {
  // What follows a record without being one (bytes of a hardware trace) must not lie in a block.
  if (!place.compressed) {
    broken_ = broken_ || place.offset != file_end_;
    file_end_ = place.offset + place.bytes;
  }
  if (!IsWanted(record)) return {};
  uint64_t at = place.offset;
  if (place.compressed) {
    if (Status status = Spill(bytes, &at); !status.ok()) return status;
  }
  Block* block = blocks_.empty() ? nullptr : &blocks_.back();
  const bool goes_on = block != nullptr && block->spilled == place.compressed &&
                       (place.compressed || !broken_) &&
                       at + bytes.size() - block->begin <= options_.block_bytes;
  if (!place.compressed) broken_ = false;
  if (!goes_on) {
    blocks_.push_back({at, at, record.time, record.time, place.compressed});
    block = &blocks_.back();
  }
  block->end = at + bytes.size();
  block->first = std::min(block->first, record.time);
  block->last = std::max(block->last, record.time);
  ++added_;
  return {};
}

Result<std::string> PerfSorter::BytesOf(const Block& block) {
  if (!block.spilled) return file_.ReadAt(block.begin, block.end - block.begin);
  std::string bytes(block.end - block.begin, '\0');
  const bool read = std::fseek(spill_, static_cast<long>(block.begin), SEEK_SET) == 0 &&
                    std::fread(bytes.data(), 1, bytes.size(), spill_) == bytes.size();
  if (!read) return Status::FromErrno(errno, "read what was inflated from", "a temporary file");
  return bytes;
}

Status PerfSorter::OpenOne(size_t number) {
  auto bytes = BytesOf(blocks_[number]);
  if (!bytes.ok()) return bytes.status();
  OpenBlock opened;
  opened.bytes = std::move(*bytes);
  const std::string_view all = opened.bytes;
  PerfRecord record;
  for (size_t at = 0; at < all.size();) {
    const size_t size = PerfRecordBytes(all.substr(at));
    if (size == 0 || size > all.size() - at) break;  // the file has changed since
    if (parser_.Parse(all.substr(at, size), &record) && IsWanted(record))
      opened.entries.push_back(
          {record.time, static_cast<uint32_t>(at), static_cast<uint32_t>(size)});
    at += size;
  }
  const auto by_time = [](const Entry& a, const Entry& b) { return a.time < b.time; };
  if (!std::is_sorted(opened.entries.begin(), opened.entries.end(), by_time))
    std::stable_sort(opened.entries.begin(), opened.entries.end(), by_time);
  if (opened.entries.empty()) return {};
  open_bytes_ += opened.bytes.size();
  heads_.Add({opened.entries.front().time, number});
  open_[number] = std::move(opened);
  return {};
}

// All blocks that have something up to then, as far as there is room.
Status PerfSorter::OpenUntil(TimeNs time) {
  while (next_block_ < order_.size()) {
    const size_t number = order_[next_block_];
    if (!heads_.empty() && (blocks_[number].first > time || open_bytes_ >= options_.most_bytes))
      return {};
    if (heads_.empty()) time = blocks_[number].first;
    ++next_block_;
    if (Status status = OpenOne(number); !status.ok()) return status;
  }
  return {};
}

std::string_view PerfSorter::Take(size_t number) {
  OpenBlock& block = *open_[number];
  const Entry& entry = block.entries[block.next++];
  late_ += entry.time < newest_;
  newest_ = std::max(newest_, entry.time);
  if (block.next < block.entries.size()) {
    heads_.ReplaceLeast({block.entries[block.next].time, number});
  } else {
    heads_.RemoveLeast();
    open_bytes_ -= block.bytes.size();
    used_up_ = number;
  }
  return std::string_view(block.bytes).substr(entry.at, entry.bytes);
}

void PerfSorter::Begin() {
  sorted_ = true;
  order_.resize(blocks_.size());
  open_.resize(blocks_.size());
  std::iota(order_.begin(), order_.end(), size_t{0});
  std::stable_sort(order_.begin(), order_.end(),
                   [this](size_t a, size_t b) { return blocks_[a].first < blocks_[b].first; });
}

Result<bool> PerfSorter::Next(PerfRecord* record) {
  if (!sorted_) Begin();
  if (used_up_) open_[*used_up_].reset();
  used_up_.reset();
  const bool later = !heads_.empty() && (next_block_ == order_.size() ||
                                         blocks_[order_[next_block_]].first > heads_.least().time);
  if (!later) {
    if (Status status = OpenUntil(heads_.empty() ? 0 : heads_.least().time); !status.ok())
      return status;
  }
  if (heads_.empty()) return false;
  ++returned_;
  return parser_.Parse(Take(heads_.least().block), record);
}

}  // namespace hangscope
