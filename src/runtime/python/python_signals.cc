#include "runtime/python/python_signals.h"

#include <signal.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

namespace hangscope {
namespace {

constexpr size_t kSignalsOfPython = 65;  // with that of number 0, which is none
constexpr uint64_t kEntryBytes = 16;     // whether it was tripped, and the function
constexpr uint64_t kHandlersBytes = kSignalsOfPython * kEntryBytes;
constexpr uint64_t kMostData = 16 << 20;

// What is the same in the objects of all these versions.
constexpr uint64_t kTypeAt = 8;
constexpr uint64_t kTypeNameAt = 24;
constexpr uint64_t kFirstField =
    16;  // of a builtin what it is, of a method and a partial the function
constexpr uint64_t kNameOfFunction = 32;  // since 3.10

using Entry = std::array<uint64_t, 2>;
using Handlers = std::array<Entry, kSignalsOfPython>;

uint64_t WordAt(const ReadMemory& read, uint64_t address) {
  uint64_t word = 0;
  return address % 8 == 0 && read(address, &word, sizeof word) ? word : 0;
}

bool HasText(const ReadMemory& read, uint64_t address, std::string_view text) {
  std::string there(text.size() + 1, ' ');
  return address != 0 && read(address, there.data(), there.size()) &&
         std::string_view(there).substr(0, text.size()) == text && there.back() == '\0';
}

bool IsOfType(const ReadMemory& read, uint64_t object, std::string_view name) {
  return HasText(read, WordAt(read, WordAt(read, object + kTypeAt) + kTypeNameAt), name);
}

// Nobody can handle SIGKILL and SIGSTOP, and the C library lets nobody handle 32 and 33: the first
// two stay as they were, which is the number 0, and the others are None.
bool AreHandlers(const Handlers& handlers, uint64_t none) {
  constexpr uint32_t kMostTripped = 1;
  const uint64_t as_ever = handlers[SIGKILL][1];
  if (handlers[0][1] != 0 || as_ever == 0 || as_ever == none || handlers[SIGSTOP][1] != as_ever ||
      handlers[32][1] != none || handlers[33][1] != none)
    return false;
  return std::all_of(handlers.begin() + 1, handlers.end(), [](const Entry& entry) {
    return static_cast<uint32_t>(entry[0]) <= kMostTripped && entry[1] != 0 && entry[1] % 8 == 0;
  });
}

std::optional<Handlers> FindHandlers(const ReadMemory& read, const MemoryRange& data,
                                     uint64_t none) {
  constexpr size_t kPiece = 64 << 10;
  std::vector<uint64_t> words(kPiece / 8);
  const uint64_t end = data.second;
  for (uint64_t at = data.first; at < end && end - at >= kHandlersBytes;
       at += kPiece - kHandlersBytes) {
    const size_t count = static_cast<size_t>(std::min<uint64_t>(kPiece, end - at) / 8);
    if (!read(at, words.data(), count * 8)) continue;
    for (size_t i = 0; i + kSignalsOfPython * 2 <= count; ++i) {
      if (words[i + 32 * 2 + 1] != none || words[i + 33 * 2 + 1] != none) continue;
      Handlers handlers;
      std::memcpy(handlers.data(), words.data() + i, sizeof handlers);
      if (AreHandlers(handlers, none)) return handlers;
    }
  }
  return std::nullopt;
}

// A text has its bytes behind a head that was longer up to 3.11.
bool IsCalled(const ReadMemory& read, uint64_t function, std::string_view name) {
  const uint64_t text = WordAt(read, function + kNameOfFunction);
  return text != 0 && (HasText(read, text + 48, name) || HasText(read, text + 40, name));
}

// functools.partial(runner._on_sigint, main_task=...).
bool IsOfRunner(const ReadMemory& read, uint64_t handler) {
  if (!IsOfType(read, handler, "functools.partial")) return false;
  const uint64_t method = WordAt(read, handler + kFirstField);
  return IsOfType(read, method, "method") &&
         IsOfType(read, WordAt(read, method + kFirstField + 8), "Runner") &&
         IsCalled(read, WordAt(read, method + kFirstField), "_on_sigint");
}

bool IsDefault(const ReadMemory& read, uint64_t handler) {
  return IsOfType(read, handler, "builtin_function_or_method") &&
         HasText(read, WordAt(read, WordAt(read, handler + kFirstField)), "default_int_handler");
}

}  // namespace

bool OnlyInterrupts(const FindSymbol& find, const ReadMemory& read,
                    const std::vector<MemoryRange>& data) {
  const auto none = find("_Py_NoneStruct");
  if (!none) return false;
  uint64_t left = kMostData;
  for (const MemoryRange& range : data) {
    const uint64_t begin = (range.first + 7) / 8 * 8;
    if (range.second <= begin) continue;
    const uint64_t bytes = std::min(range.second - begin, left);
    left -= bytes;
    if (const auto handlers = FindHandlers(read, {begin, begin + bytes}, *none)) {
      const uint64_t handler = (*handlers)[SIGINT][1];
      return IsDefault(read, handler) || IsOfRunner(read, handler);
    }
  }
  return false;
}

}  // namespace hangscope
