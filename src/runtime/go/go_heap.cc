#include "runtime/go/go_heap.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "runtime/go/go_layout.h"

namespace hangscope {
namespace {

constexpr uint64_t kBytesOfBlock = 16 << 10;
constexpr size_t kMostSpans = 1 << 18;
constexpr size_t kMostSpecials = 1 << 16;  // of all objects together
using go_layout::kBytesOfPointer;

template <typename T>
T SpanField(const char* span, uint64_t offset) {
  T value;
  std::memcpy(&value, span + offset, sizeof value);
  return value;
}

}  // namespace

bool GoMemory::Read(uint64_t address, void* into, size_t bytes) {
  auto* to = static_cast<char*>(into);
  while (bytes > 0) {
    const uint64_t begin = address / kBytesOfBlock * kBytesOfBlock;
    const uint64_t offset = address - begin;
    const size_t part = std::min<uint64_t>(bytes, kBytesOfBlock - offset);
    auto block = blocks_.find(begin);
    if (block == blocks_.end()) {
      if (kept_bytes_ + kBytesOfBlock > most_bytes_) {
        full_ = true;
        return false;
      }
      block = blocks_.emplace(begin, std::string(kBytesOfBlock, '\0')).first;
      kept_bytes_ += kBytesOfBlock;
      if (!read_(begin, block->second.data(), kBytesOfBlock)) block->second.clear();
    }
    if (!block->second.empty())
      std::memcpy(to, block->second.data() + offset, part);
    else if (!read_(address, to, part))
      return false;
    address += part, to += part, bytes -= part;
  }
  return true;
}

Result<GoHeap> GoHeap::Read(uint64_t heap_at, std::shared_ptr<GoMemory> memory) {
  const auto all = memory->Get<go_layout::Slice>(heap_at + go_layout::kAllSpans);
  const auto arenas = memory->Get<uint64_t>(heap_at + go_layout::kArenas);
  if (!all || !arenas || all->count > kMostSpans)
    return Status::Io("the table of its heap cannot be read");
  GoHeap heap(memory, *arenas);
  for (uint64_t i = 0; i < all->count; ++i) {
    const auto at = memory->Get<uint64_t>(all->begin + i * kBytesOfPointer);
    std::array<char, go_layout::kBytesOfSpan> span;
    if (!at || !memory->Read(*at, span.data(), span.size()))
      return Status::Io("a part of its heap cannot be read");
    Span read;
    read.begin = SpanField<uint64_t>(span.data(), go_layout::kSpanBegin);
    const auto pages = SpanField<uint64_t>(span.data(), go_layout::kSpanPages);
    const auto state = SpanField<uint8_t>(span.data(), go_layout::kSpanState);
    read.object_bytes = SpanField<uint64_t>(span.data(), go_layout::kSpanObjectBytes);
    read.has_pointers = SpanField<uint8_t>(span.data(), go_layout::kSpanClass) % 2 == 0;
    if (state > go_layout::kSpanLast) return Status::Io("its heap is not that of Go 1.19");
    if (state != go_layout::kSpanInUse) continue;
    read.end = read.begin + pages * go_layout::kBytesOfPage;
    if (read.begin % go_layout::kBytesOfPage != 0 || read.end <= read.begin ||
        pages > go_layout::kBytesOfArena * 1024 / go_layout::kBytesOfPage ||
        read.object_bytes < kBytesOfPointer || read.object_bytes > read.end - read.begin)
      return Status::Io("its heap is not that of Go 1.19");
    heap.spans_.push_back(read);
    heap.AddFinalized(read, SpanField<uint64_t>(span.data(), go_layout::kSpanSpecials));
  }
  std::sort(heap.spans_.begin(), heap.spans_.end(),
            [](const Span& a, const Span& b) { return a.begin < b.begin; });
  return heap;
}

void GoHeap::AddFinalized(const Span& span, uint64_t special) {
  std::array<char, go_layout::kBytesOfSpecial> bytes;
  while (special != 0 && finalized_.size() < kMostSpecials &&
         memory_->Read(special, bytes.data(), bytes.size())) {
    if (SpanField<uint8_t>(bytes.data(), go_layout::kSpecialKind) == go_layout::kFinalizer) {
      finalized_.push_back(span.begin +
                           SpanField<uint16_t>(bytes.data(), go_layout::kSpecialOffset));
      finalized_.push_back(SpanField<uint64_t>(bytes.data(), go_layout::kFinalizerFunction));
    }
    const auto next = SpanField<uint64_t>(bytes.data(), go_layout::kSpecialNext);
    if (next == special) break;
    special = next;
  }
}

std::optional<GoHeap::Object> GoHeap::ObjectAt(uint64_t address) const {
  auto span =
      std::upper_bound(spans_.begin(), spans_.end(), address,
                       [](uint64_t wanted, const Span& each) { return wanted < each.begin; });
  if (span == spans_.begin()) return std::nullopt;
  --span;
  if (address >= span->end) return std::nullopt;
  Object object;
  object.begin = span->begin + (address - span->begin) / span->object_bytes * span->object_bytes;
  object.bytes = std::min(span->object_bytes, span->end - object.begin);
  object.has_pointers = span->has_pointers;
  return object;
}

bool GoHeap::PointersIn(const Object& object, std::vector<uint64_t>* pointers) const {
  if (!object.has_pointers) return true;
  constexpr uint64_t kWordsAtOnce = 512;
  constexpr uint64_t kWordsOfArena = go_layout::kBytesOfArena / kBytesOfPointer;
  std::array<uint64_t, kWordsAtOnce> words;
  std::array<uint8_t, kWordsAtOnce / go_layout::kWordsOfBitByte + 1> bits;
  for (uint64_t at = object.begin; at + kBytesOfPointer <= object.begin + object.bytes;) {
    const uint64_t word = at / kBytesOfPointer;
    const uint64_t left = (object.begin + object.bytes - at) / kBytesOfPointer;
    const uint64_t count = std::min({left, kWordsAtOnce, kWordsOfArena - word % kWordsOfArena});
    const uint64_t arena = (at - go_layout::kLowestArena) / go_layout::kBytesOfArena;
    if (arena >= go_layout::kArenasOfAll) return false;
    const auto bits_begin = memory_->Get<uint64_t>(arenas_ + arena * kBytesOfPointer);
    const uint64_t first = word % kWordsOfArena;
    const uint64_t bytes =
        (first % go_layout::kWordsOfBitByte + count + go_layout::kWordsOfBitByte - 1) /
        go_layout::kWordsOfBitByte;
    if (!bits_begin || *bits_begin == 0 ||
        !memory_->Read(*bits_begin + first / go_layout::kWordsOfBitByte, bits.data(), bytes) ||
        !memory_->Read(at, words.data(), count * kBytesOfPointer))
      return false;
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t bit = first % go_layout::kWordsOfBitByte + i;
      const uint8_t byte = bits[bit / go_layout::kWordsOfBitByte];
      const auto shift = static_cast<unsigned>(bit % go_layout::kWordsOfBitByte);
      if ((byte >> (shift + go_layout::kWordsOfBitByte)) % 2 == 0) return true;  // no more of them
      if ((byte >> shift) % 2 != 0 && words[i] != 0) pointers->push_back(words[i]);
    }
    at += count * kBytesOfPointer;
  }
  return true;
}

}  // namespace hangscope
