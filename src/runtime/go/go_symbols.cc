#include "runtime/go/go_symbols.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <set>
#include <utility>

#include "runtime/go/go_heap.h"
#include "runtime/go/go_layout.h"

namespace hangscope {
namespace {

using go_layout::Slice;

constexpr size_t kMostKept = 64 << 20;         // of its tables, one by one
constexpr uint64_t kMostSearched = 256 << 20;  // that is looked through
constexpr uint64_t kMostTable = 256 << 20;     // of its functions' heads, and of their names
constexpr uint64_t kMostOfOne = 1 << 20;       // code of a function
constexpr size_t kLongestName = 4096;
constexpr size_t kMostNames = 64 << 20;  // bytes of them: several functions may share one
constexpr size_t kBytesOfPlace = 8;      // of the structure functab

template <typename T>
T ValueAt(std::string_view bytes, uint64_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

std::optional<std::string> ReadTable(const Slice& table, uint64_t bytes_of_one,
                                     const ReadMemory& read) {
  if (table.count > kMostTable / bytes_of_one) return std::nullopt;
  std::string bytes(table.count * bytes_of_one, '\0');
  if (!read(table.begin, bytes.data(), bytes.size())) return std::nullopt;
  return bytes;
}

// The head of the tables, the structure pcHeader, is what the first field of a module leads to; the
// second one leads to its names, as the head says as well.
bool IsModule(uint64_t head, uint64_t names, const ReadMemory& read) {
  std::array<char, go_layout::kBytesOfHead> bytes;
  if (!read(head, bytes.data(), bytes.size())) return false;
  const std::string_view text(bytes.data(), bytes.size());
  return ValueAt<uint32_t>(text, 0) == go_layout::kHeadMagic &&
         bytes[go_layout::kHeadPointerBytes] == go_layout::kBytesOfPointer &&
         head + ValueAt<uint64_t>(text, go_layout::kHeadNames) == names;
}

std::optional<uint64_t> FindModule(const std::vector<GoSymbols::Range>& data,
                                   const ReadMemory& read) {
  constexpr uint64_t kAtOnce = 1 << 20;
  constexpr uint64_t kLongestHead = 1024;
  const auto is_in = [&](uint64_t address) {
    return std::any_of(data.begin(), data.end(), [&](const GoSymbols::Range& range) {
      return address >= range.begin && address < range.end;
    });
  };
  std::string bytes;
  uint64_t left = kMostSearched;
  for (const GoSymbols::Range& range : data) {
    for (uint64_t at = range.begin; at < range.end && left != 0; at += kAtOnce) {
      // The two fields may lie in two of these pieces.
      bytes.resize(std::min(kAtOnce + go_layout::kBytesOfPointer, range.end - at));
      if (!read(at, bytes.data(), bytes.size())) continue;
      left -= std::min<uint64_t>(left, bytes.size());
      for (uint64_t i = 0; i + 2 * go_layout::kBytesOfPointer <= bytes.size();
           i += go_layout::kBytesOfPointer) {
        const auto head = ValueAt<uint64_t>(bytes, i);
        const auto names = ValueAt<uint64_t>(bytes, i + go_layout::kBytesOfPointer);
        if (names > head && names - head < kLongestHead && is_in(head) &&
            IsModule(head, names, read))
          return at + i;
      }
    }
  }
  return std::nullopt;
}

// The places in [begin, end) that the instructions of a function may lead to, counted from their
// ends: these are behind the distance and a number of so many bytes. `only_addresses`: of lea
// alone.
std::set<uint64_t> PlacesUsedBy(const GoSymbols::Symbol& function, uint64_t begin, uint64_t end,
                                bool only_addresses, const ReadMemory& read) {
  std::set<uint64_t> places;
  std::string code(std::min(function.bytes, kMostOfOne), '\0');
  if (!read(function.address, code.data(), code.size())) return places;
  constexpr uint64_t kDistance = 4;
  constexpr uint64_t kBefore = 3;  // a prefix, the operation, the register
  for (uint64_t i = kBefore; i + kDistance <= code.size(); ++i) {
    const auto byte = [&](uint64_t before) { return static_cast<uint8_t>(code[i - before]); };
    const bool is_lea = (byte(3) & 0xf8) == 0x48 && byte(2) == 0x8d && (byte(1) & 0xc7) == 0x05;
    if (only_addresses && !is_lea) continue;
    for (const uint64_t number : {0, 1, 4}) {
      const uint64_t to = function.address + i + kDistance + number +
                          static_cast<uint64_t>(int64_t{ValueAt<int32_t>(code, i)});
      if (to >= begin && to < end && to % go_layout::kBytesOfPointer == 0) places.insert(to);
      if (only_addresses) break;
    }
  }
  return places;
}

// A slice of all goroutines.
bool IsListOfAll(uint64_t address, const ReadMemory& read) {
  constexpr uint64_t kMostListed = 1 << 24;
  constexpr size_t kLooked = 16;
  std::array<uint64_t, 3> slice;  // with how many there is room for
  if (!read(address, slice.data(), sizeof slice) || slice[1] == 0 || slice[1] > slice[2] ||
      slice[2] > kMostListed)
    return false;
  for (uint64_t i = 0; i < std::min<uint64_t>(slice[1], kLooked); ++i) {
    uint64_t g = 0;
    std::array<char, go_layout::kBytesOfG> bytes;
    if (!read(slice[0] + i * go_layout::kBytesOfPointer, &g, sizeof g) ||
        !read(g, bytes.data(), bytes.size()))
      return false;
    const std::string_view text(bytes.data(), bytes.size());
    const auto status = ValueAt<uint32_t>(text, go_layout::kStatus) & ~go_layout::kScanBit;
    if (status > static_cast<uint32_t>(go_layout::Status::kPreempted) ||
        ValueAt<uint64_t>(text, go_layout::kStackBegin) >
            ValueAt<uint64_t>(text, go_layout::kStackEnd))
      return false;
  }
  return true;
}

// Each line has those whose address leads there.
bool IsTableOfSemaphores(uint64_t address, const ReadMemory& read) {
  std::string table(go_layout::kSemaphoreLines * go_layout::kBytesOfLine, '\0');
  if (!read(address, table.data(), table.size())) return false;
  for (size_t line = 0; line < go_layout::kSemaphoreLines; ++line) {
    const auto sudog = ValueAt<uint64_t>(table, line * go_layout::kBytesOfLine + go_layout::kTree);
    uint64_t semaphore = 0;
    if (sudog == 0) continue;
    if (!read(sudog + go_layout::kSudogElement, &semaphore, sizeof semaphore) ||
        (semaphore >> 3) % go_layout::kSemaphoreLines != line)
      return false;
  }
  return true;
}

bool IsHeap(uint64_t address, const ReadMemory& read) {
  std::array<uint64_t, 3> spans;
  uint64_t first = 0, begin = 0;
  return read(address + go_layout::kAllSpans, spans.data(), sizeof spans) && spans[1] != 0 &&
         spans[1] <= spans[2] && read(spans[0], &first, sizeof first) &&
         read(first + go_layout::kSpanBegin, &begin, sizeof begin) && begin != 0 &&
         begin % go_layout::kBytesOfPage == 0;
}

}  // namespace

std::optional<std::string> GoVersionIn(std::string_view bytes, const ReadMemory& read) {
  constexpr std::string_view kMagic = "\xff Go buildinf:";
  constexpr uint64_t kAlignment = 16, kFlags = 15, kPointer = 16, kText = 32;
  constexpr size_t kLongest = 64;
  size_t at = bytes.find(kMagic);
  while (at != std::string_view::npos && at % kAlignment != 0) at = bytes.find(kMagic, at + 1);
  if (at == std::string_view::npos || bytes.size() - at <= kText) return std::nullopt;
  const std::string_view info = bytes.substr(at);
  std::string version;
  if ((info[kFlags] & 2) != 0) {  // from 1.18 on: with its length before it
    const auto length = static_cast<uint8_t>(info[kText]);
    if (info.size() - kText <= length) return std::nullopt;
    version = info.substr(kText + 1, length);
  } else {
    Slice text;
    if (!read(ValueAt<uint64_t>(info, kPointer), &text, sizeof text) || text.count > kLongest)
      return std::nullopt;
    version.resize(text.count);
    if (!read(text.begin, version.data(), version.size())) return std::nullopt;
  }
  const bool is_version = version.starts_with("go") || version.starts_with("devel");
  return is_version && version.size() <= kLongest ? std::optional(version) : std::nullopt;
}

Result<GoSymbols> GoSymbols::Read(const std::vector<Range>& data, const ReadMemory& read) {
  const auto module = FindModule(data, read);
  if (!module) return Status::Io("the tables of its functions are not found");
  auto code = GoCode::Read(*module, std::make_shared<GoMemory>(read, kMostKept));
  if (!code.ok()) return code.status();
  GoSymbols symbols(std::move(*code));
  const GoCode::Tables& tables = symbols.code_.tables();
  const auto places = ReadTable(tables.places, kBytesOfPlace, read);
  const auto heads = ReadTable(tables.functions, 1, read);
  const auto names = ReadTable(tables.names, 1, read);
  if (!places || !heads || !names) return Status::Io("the tables of its functions cannot be read");
  const uint64_t text = symbols.code_.extent().text_begin;
  size_t names_bytes = 0;
  for (uint64_t i = 0; i + 1 < tables.places.count; ++i) {
    const auto begin = ValueAt<uint32_t>(*places, i * kBytesOfPlace);
    const auto head = ValueAt<uint32_t>(*places, i * kBytesOfPlace + sizeof begin);
    const auto next = ValueAt<uint32_t>(*places, (i + 1) * kBytesOfPlace);
    if (next <= begin || head > heads->size() || heads->size() - head < go_layout::kBytesOfFunction)
      continue;
    const auto name = ValueAt<uint32_t>(*heads, head + go_layout::kNameOfCode);
    if (name >= names->size()) continue;
    const size_t length =
        strnlen(names->data() + name, std::min(names->size() - name, kLongestName));
    names_bytes += length;
    if (names_bytes > kMostNames) return Status::Io("the names of its functions are too long");
    symbols.functions_.push_back(
        {text + begin, next - begin, std::string(names->data() + name, length)});
  }
  symbols.FindVariables(*module, read);
  return symbols;
}

void GoSymbols::FindVariables(uint64_t module, const ReadMemory& read) {
  const GoCode::Extent& extent = code_.extent();
  const auto used_by = [&](std::string_view name, bool only_addresses) {
    const auto function = std::find_if(functions_.begin(), functions_.end(),
                                       [&](const Symbol& each) { return each.name == name; });
    return function == functions_.end()
               ? std::set<uint64_t>()
               : PlacesUsedBy(*function, extent.data_begin, extent.end, only_addresses, read);
  };
  // Only what is the one place that may be it is taken.
  const auto add = [&](const char* name, const std::vector<uint64_t>& places, uint64_t bytes) {
    if (places.size() == 1) variables_.push_back({places[0], bytes, name});
  };
  variables_.push_back({module, go_layout::kBytesOfModule, "runtime.firstmoduledata"});
  // It appends to the slice.
  const std::set<uint64_t> appended = used_by("runtime.allgadd", false);
  std::vector<uint64_t> lists;
  for (const uint64_t place : appended) {
    const bool is_slice = appended.count(place + go_layout::kBytesOfPointer) != 0 &&
                          appended.count(place + 2 * go_layout::kBytesOfPointer) != 0;
    if (is_slice && IsListOfAll(place, read)) lists.push_back(place);
  }
  add("runtime.allgs", lists, 3 * go_layout::kBytesOfPointer);
  std::vector<uint64_t> tables;
  const std::set<uint64_t> taken_from = used_by("runtime.semacquire1", true);
  constexpr uint64_t kBytesOfTable = go_layout::kSemaphoreLines * go_layout::kBytesOfLine;
  for (const uint64_t place : used_by("runtime.semrelease1", true)) {
    if (place >= extent.variables_begin && taken_from.count(place) != 0 &&
        extent.end - place >= kBytesOfTable && IsTableOfSemaphores(place, read))
      tables.push_back(place);
  }
  add("runtime.semtable", tables, kBytesOfTable);
  std::vector<uint64_t> heaps;
  for (const uint64_t place : used_by("runtime.mallocinit", true)) {
    if (place >= extent.variables_begin && IsHeap(place, read)) heaps.push_back(place);
  }
  add("runtime.mheap_", heaps, go_layout::kArenas);
}

std::vector<SourceFrame> GoSymbols::At(uint64_t pc) const {
  std::vector<SourceFrame> frames;
  for (GoCode::Place& place : code_.PlacesAt(pc)) {
    SourceFrame& frame = frames.emplace_back();
    frame.function = std::move(place.function);
    frame.path = std::move(place.path);
    frame.line = place.line;
    frame.is_inlined = true;
  }
  if (!frames.empty()) frames.back().is_inlined = false;
  return frames;
}

}  // namespace hangscope
