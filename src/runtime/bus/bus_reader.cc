#include "runtime/bus/bus_reader.h"

#include <algorithm>
#include <cstring>
#include <set>

namespace hangscope {
namespace {

constexpr size_t kFixedBytes = 16;      // of a header
constexpr size_t kMostOfFields = 2048;  // of those that are understood
constexpr size_t kMostMemory = 32 << 20;
constexpr size_t kScanned = 1 << 20;  // at once
constexpr size_t kMostMessages = 4096;
constexpr size_t kMostNames = 4096;

// Fields of a header.
constexpr uint8_t kPath = 1, kInterface = 2, kMember = 3, kDestination = 6, kSender = 7;

uint32_t Word(std::string_view bytes, size_t at) {
  uint32_t word = 0;
  std::memcpy(&word, bytes.data() + at, sizeof word);
  return word;
}

size_t AlignedTo(size_t at, size_t bytes) { return (at + bytes - 1) / bytes * bytes; }

// The value of a field of one type of those that headers have; `at` is moved behind it.
bool ReadValue(std::string_view bytes, char type, size_t* at, std::string_view* text) {
  const bool is_signature = type == 'g';
  if (!is_signature) *at = AlignedTo(*at, sizeof(uint32_t));
  const size_t size_bytes = is_signature ? 1 : sizeof(uint32_t);
  if (*at + size_bytes > bytes.size()) return false;
  const size_t length = is_signature ? static_cast<uint8_t>(bytes[*at]) : Word(bytes, *at);
  *at += size_bytes;
  if (type == 'u') return true;
  constexpr size_t kMostOfName = 255;
  if ((type != 's' && type != 'o' && !is_signature) || length > kMostOfName ||
      *at + length >= bytes.size() || bytes[*at + length] != '\0')
    return false;
  *text = bytes.substr(*at, length);
  *at += length + 1;
  return true;
}

std::string* FieldOf(BusMessage* message, uint8_t field) {
  switch (field) {
    case kPath:
      return &message->path;
    case kInterface:
      return &message->interface;
    case kMember:
      return &message->member;
    case kDestination:
      return &message->destination;
    case kSender:
      return &message->sender;
    default:
      return nullptr;
  }
}

// Where a heap begins in it: the program's, or one of those that glibc makes for other threads,
// which begin at multiples of their size. Its end: there is none.
uint64_t HeapIn(const MemoryMapping& mapping) {
  constexpr uint64_t kHeapBytes = 64 << 20;
  if (!mapping.readable || !mapping.writable || mapping.shared) return mapping.end;
  if (mapping.path == "[heap]") return mapping.begin;
  const uint64_t rest = mapping.begin % kHeapBytes;
  const uint64_t begin = rest == 0 ? mapping.begin : mapping.begin + (kHeapBytes - rest);
  return mapping.path.empty() ? std::min(begin, mapping.end) : mapping.end;
}

// `see` gets each word of all heaps, with what follows it there: `behind` bytes, or what is left.
template <typename See>
void ForEachWord(const std::vector<MemoryMapping>& mappings, const ReadMemory& read, size_t behind,
                 const See& see) {
  size_t left = kMostMemory;
  std::string bytes;
  for (const MemoryMapping& mapping : mappings) {
    for (uint64_t begin = HeapIn(mapping); begin < mapping.end && left > 0; begin += kScanned) {
      const size_t scanned =
          std::min(left, static_cast<size_t>(std::min<uint64_t>(kScanned, mapping.end - begin)));
      left -= scanned;
      bytes.resize(static_cast<size_t>(std::min<uint64_t>(scanned + behind, mapping.end - begin)));
      if (!read(begin, bytes.data(), bytes.size())) continue;
      for (size_t at = 0; at + sizeof(uint64_t) <= std::min(scanned, bytes.size());
           at += sizeof(uint64_t))
        see(begin + at, std::string_view(bytes).substr(at, behind));
    }
  }
}

std::vector<BusMessage> FindMessages(const std::vector<MemoryMapping>& mappings,
                                     const ReadMemory& read) {
  std::vector<BusMessage> messages;
  ForEachWord(mappings, read, kFixedBytes + kMostOfFields, [&](uint64_t, std::string_view bytes) {
    if (messages.size() == kMostMessages) return;
    if (auto message = ParseBusMessage(bytes)) messages.push_back(std::move(*message));
  });
  return messages;
}

// "0123456789abcdef..." of 32 digits.
bool IsNumberOfBus(uint64_t address, const ReadMemory& read) {
  constexpr size_t kDigits = 32;
  char text[kDigits + 1];
  return address != 0 && read(address, text, sizeof text) && text[kDigits] == '\0' &&
         std::all_of(text, text + kDigits,
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

// A connection that is called so on its bus, and has sent the message of this number last.
bool HasSentLast(const std::string& name, uint32_t serial,
                 const std::vector<MemoryMapping>& mappings, const ReadMemory& read) {
  constexpr size_t kWord = sizeof(uint64_t);
  std::set<uint64_t> texts;
  const std::string text = name + '\0';
  ForEachWord(mappings, read, text.size() + kWord, [&](uint64_t address, std::string_view bytes) {
    if (bytes.starts_with(text) && texts.size() < kMostNames) texts.insert(address);
  });
  bool is_there = false;
  // From the number on: a table, the name, the bus's number.
  ForEachWord(mappings, read, 4 * kWord, [&](uint64_t, std::string_view bytes) {
    if (is_there || bytes.size() < 4 * kWord || Word(bytes, 0) != serial) return;
    uint64_t words[4];
    std::memcpy(words, bytes.data(), sizeof words);
    is_there = texts.count(words[2]) != 0 && IsNumberOfBus(words[3], read);
  });
  return is_there;
}

bool CalledItselfByGlib(const std::vector<MemoryMapping>& mappings, const ReadMemory& read) {
  constexpr size_t kMostAsked = 4;
  size_t asked = 0;
  for (const BusMessage& message : FindMessages(mappings, read)) {
    if (message.type != BusMessage::kCall || !message.wants_answer || message.sender.empty())
      continue;
    if (asked++ == kMostAsked) return false;
    if (HasSentLast(message.sender, message.serial, mappings, read)) return true;
  }
  return false;
}

bool CalledItselfByLibdbus(const std::vector<MemoryMapping>& mappings, const ReadMemory& read) {
  const std::vector<BusMessage> messages = FindMessages(mappings, read);
  const BusMessage* last = nullptr;
  for (const BusMessage& message : messages) {
    if (message.sender.empty() && (last == nullptr || message.serial > last->serial))
      last = &message;
  }
  if (last == nullptr || last->type != BusMessage::kCall || !last->wants_answer) return false;
  return std::any_of(messages.begin(), messages.end(), [&](const BusMessage& message) {
    return !message.sender.empty() && message.type == BusMessage::kCall &&
           message.serial == last->serial && message.path == last->path &&
           message.interface == last->interface && message.member == last->member &&
           message.destination == last->destination;
  });
}

}  // namespace

std::optional<BusMessage> ParseBusMessage(std::string_view bytes) {
  constexpr uint8_t kMostType = 4, kNoAnswer = 1, kVersion = 1;
  if (bytes.size() < kFixedBytes || bytes[0] != 'l' || bytes[1] < BusMessage::kCall ||
      bytes[1] > kMostType || bytes[3] != kVersion)
    return std::nullopt;
  BusMessage message;
  message.type = static_cast<uint8_t>(bytes[1]);
  message.wants_answer = (static_cast<uint8_t>(bytes[2]) & kNoAnswer) == 0;
  message.serial = Word(bytes, 8);
  const size_t fields = Word(bytes, 12);
  if (message.serial == 0 || fields > kMostOfFields || kFixedBytes + fields > bytes.size())
    return std::nullopt;
  bytes = bytes.substr(0, kFixedBytes + fields);
  constexpr size_t kOfStructures = 8;
  for (size_t at = kFixedBytes; at < bytes.size(); at = AlignedTo(at, kOfStructures)) {
    // Its number, and a signature of one type: its length, the type, a zero.
    if (at + 4 > bytes.size() || bytes[at + 1] != 1 || bytes[at + 3] != '\0') return std::nullopt;
    std::string* const field = FieldOf(&message, static_cast<uint8_t>(bytes[at]));
    const char type = bytes[at + 2];
    at += 4;
    std::string_view text;
    if (!ReadValue(bytes, type, &at, &text)) return std::nullopt;
    if (field != nullptr) *field = text;
  }
  return message;
}

bool CalledItself(BusLibrary library, const std::vector<MemoryMapping>& mappings,
                  const ReadMemory& read) {
  return library == BusLibrary::kGlib ? CalledItselfByGlib(mappings, read)
                                      : CalledItselfByLibdbus(mappings, read);
}

}  // namespace hangscope
