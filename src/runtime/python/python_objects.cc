#include "runtime/python/python_objects.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.h"
#include "runtime/python/python_layout.h"

namespace hangscope {
namespace {

namespace layout = python_layout;

constexpr size_t kMostCharacters = 4096;  // of a text
constexpr size_t kMostName = 64;          // of a type or an attribute
constexpr uint64_t kMostEntries = 16384;  // of a dictionary, list or set
constexpr size_t kMostBases = 8;

// The error handler by which Python stores bytes of file names that are no UTF-8: byte 0x80 as
// U+DC80.
void AppendCharacter(uint32_t character, std::string* text) {
  constexpr uint32_t kReplacement = 0xfffd;
  if (character >= 0xdc80 && character <= 0xdcff) {
    text->push_back(static_cast<char>(character - 0xdc00));
    return;
  }
  const bool is_none = character > 0x10ffff || (character >= 0xd800 && character <= 0xdfff);
  AppendUtf8(is_none ? kReplacement : character, text);
}

}  // namespace

bool PythonObjects::Type::IsHeap() const { return (flags & layout::kHeapType) != 0; }
bool PythonObjects::Type::IsText() const { return (flags & layout::kIsText) != 0; }
bool PythonObjects::Type::IsDict() const { return (flags & layout::kIsDict) != 0; }
bool PythonObjects::Type::IsSequence() const {
  return (flags & (layout::kIsList | layout::kIsTuple)) != 0;
}
std::string_view PythonObjects::Type::ShortName() const {
  return std::string_view(name).substr(name.rfind('.') + 1);
}

bool PythonObjects::Read(uint64_t address, void* into, size_t bytes) {
  has_refused_ = has_refused_ || reads_left_ == 0 || bytes > bytes_left_;
  if (reads_left_ == 0 || bytes > bytes_left_) return false;
  --reads_left_;
  bytes_left_ -= bytes;
  return read_(address, into, bytes);
}

uint64_t PythonObjects::Pointer(uint64_t address) {
  uint64_t pointer = 0;
  return Read(address, &pointer, sizeof pointer) ? pointer : 0;
}

Result<std::string> PythonObjects::Text(uint64_t address) const {
  PythonStructure<layout::kTextHead> head;
  const auto wrong = [&](const char* why) {
    return Status::Corrupt(fmt::format("the name at {:#x} {}", address, why));
  };
  if (!head.Read(read_, address)) return wrong("cannot be read");
  const auto state = head.At<uint32_t>(layout::kTextState);
  const uint32_t width = state >> 2 & 7;
  const bool is_compact = (state >> 5 & 1) != 0;
  const bool is_ascii = (state >> 6 & 1) != 0;
  const bool is_known = is_compact && (width == 1 || (!is_ascii && (width == 2 || width == 4)));
  if (head.Pointer(layout::kObjectType) != text_type_ || !is_known) return wrong("is no text");
  const uint64_t length = head.At<uint64_t>(layout::kTextLength);
  const size_t count = static_cast<size_t>(std::min<uint64_t>(length, kMostCharacters));
  std::string raw(count * width, '\0');
  if (!read_(address + (is_ascii ? layout::kAsciiText : layout::kOtherText), raw.data(),
             raw.size()))
    return wrong("cannot be read");
  std::string text;
  for (size_t i = 0; i < count; ++i) {
    uint32_t character = 0;
    std::memcpy(&character, raw.data() + i * width, width);
    AppendCharacter(character, &text);
  }
  return length > count ? text + "..." : text;
}

std::string PythonObjects::ShortText(uint64_t object) {
  if (object == 0 || Pointer(object + layout::kObjectType) != text_type_) return {};
  auto text = Text(object);
  if (!text.ok() || text->size() > kMostName) return {};
  return std::move(*text);
}

// Read in small pieces: it may lie at the end of what can be read.
std::string PythonObjects::CString(uint64_t address) {
  constexpr size_t kPiece = 8;
  std::string text;
  while (text.size() < kMostName) {
    std::array<char, kPiece> piece = {};
    const size_t aligned = kPiece - (address + text.size()) % kPiece;
    if (!Read(address + text.size(), piece.data(), aligned)) return {};
    const std::string_view part(piece.data(), aligned);
    const size_t end = part.find('\0');
    text += part.substr(0, end);
    if (end != std::string_view::npos) return text;
  }
  return {};
}

const PythonObjects::Type* PythonObjects::TypeAt(uint64_t address) {
  constexpr size_t kMostTypes = 4096;
  if (const auto known = types_.find(address); known != types_.end())
    return known->second.name.empty() ? nullptr : &known->second;
  if (address == 0 || address % 8 != 0 || types_.size() == kMostTypes) return nullptr;
  Type& type = types_[address];
  std::array<char, layout::kTypeBytes> bytes;
  if (!Read(address, bytes.data(), bytes.size())) return nullptr;
  const auto at = [&](size_t offset) {
    uint64_t number = 0;
    std::memcpy(&number, bytes.data() + offset, sizeof number);
    return number;
  };
  type.flags = at(layout::kTypeFlags);
  type.members = at(layout::kTypeMembers);
  type.base = at(layout::kTypeBase);
  type.dict_offset = static_cast<int64_t>(at(layout::kTypeDictOffset));
  if (type.IsHeap()) {
    type.member_count = at(layout::kSize);
    type.cached_keys = Pointer(address + layout::kTypeCachedKeys);
  }
  type.name = CString(at(layout::kTypeName));
  return type.name.empty() ? nullptr : &type;
}

const PythonObjects::Type* PythonObjects::TypeOf(uint64_t object) {
  if (object == 0 || object % 8 != 0) return nullptr;
  return TypeAt(Pointer(object + layout::kObjectType));
}

bool PythonObjects::IsBuiltin(uint64_t object, std::string_view name) {
  const Type* const type = TypeOf(object);
  return type != nullptr && !type->IsHeap() && type->name == name;
}

std::string PythonObjects::TypeName(uint64_t object) {
  const Type* const type = TypeOf(object);
  return type == nullptr ? std::string() : type->name;
}

// `values`: of a dictionary that has its keys in common with others; else 0.
void PythonObjects::AddItems(uint64_t keys, uint64_t values, std::vector<Entry>* into) {
  std::array<char, layout::kKeysHead> head;
  if (keys == 0 || !Read(keys, head.data(), head.size())) return;
  const auto index_log = static_cast<uint8_t>(head[layout::kKeysLogBytes]);
  constexpr uint8_t kMostLog = 24;
  if (index_log > kMostLog) return;
  uint64_t all = 0;
  std::memcpy(&all, head.data() + layout::kKeysCount, sizeof all);
  const size_t count = static_cast<size_t>(std::min(all, kMostEntries));
  const bool is_general = head[layout::kKeysKind] == layout::kGeneralKeys;
  const size_t words = is_general ? 3 : 2;  // general ones begin with a hash
  std::vector<uint64_t> entries(count * words);
  if (!Read(keys + layout::kKeysHead + (uint64_t{1} << index_log), entries.data(),
            entries.size() * 8))
    return;
  std::vector<uint64_t> own(values == 0 ? 0 : count);
  if (values != 0 && !Read(values, own.data(), own.size() * 8)) return;
  for (size_t i = 0; i < count; ++i) {
    const uint64_t key = entries[i * words + words - 2];
    const uint64_t value = values == 0 ? entries[i * words + words - 1] : own[i];
    if (key != 0 && value != 0) into->push_back({key, value, false});
  }
}

void PythonObjects::AddDict(uint64_t dict, std::vector<Entry>* into) {
  const Type* const type = TypeOf(dict);
  if (type == nullptr || !type->IsDict()) return;
  AddItems(Pointer(dict + layout::kDictKeys), Pointer(dict + layout::kDictValues), into);
}

// Those of its type and of the types that this is derived from.
void PythonObjects::AddSlots(uint64_t object, std::vector<Entry>* into) {
  constexpr uint64_t kMostSlots = 256;
  constexpr uint64_t kMostOffset = 1 << 16;
  const Type* type = TypeOf(object);
  for (size_t depth = 0; type != nullptr && type->IsHeap() && depth < kMostBases; ++depth) {
    for (uint64_t i = 0; i < std::min(type->member_count, kMostSlots); ++i) {
      std::array<uint64_t, 3> member = {};
      if (!Read(type->members + i * layout::kMemberBytes, member.data(), sizeof member)) break;
      const bool is_object =
          static_cast<int32_t>(member[layout::kMemberType / 8]) == layout::kObjectMember;
      const uint64_t offset = member[layout::kMemberOffset / 8];
      if (!is_object || offset > kMostOffset) continue;
      if (const uint64_t value = Pointer(object + offset); value != 0)
        into->push_back({member[0], value, true});
    }
    type = TypeAt(type->base);
  }
}

std::optional<uint64_t> PythonObjects::SlotOffset(uint64_t object, std::string_view name) {
  constexpr uint64_t kMostSlots = 256;
  const Type* type = TypeOf(object);
  for (size_t depth = 0; type != nullptr && type->IsHeap() && depth < kMostBases; ++depth) {
    for (uint64_t i = 0; i < std::min(type->member_count, kMostSlots); ++i) {
      std::array<uint64_t, 3> member = {};
      if (!Read(type->members + i * layout::kMemberBytes, member.data(), sizeof member)) break;
      if (static_cast<int32_t>(member[layout::kMemberType / 8]) == layout::kObjectMember &&
          CString(member[0]) == name)
        return member[layout::kMemberOffset / 8];
    }
    type = TypeAt(type->base);
  }
  return std::nullopt;
}

std::vector<PythonObjects::Entry> PythonObjects::Attributes(uint64_t object) {
  std::vector<Entry> entries;
  const Type* const type = TypeOf(object);
  if (type == nullptr) return entries;
  if ((type->flags & layout::kManagedDict) != 0) {
    if (const uint64_t values = Pointer(object - layout::kValuesBefore); values != 0)
      AddItems(type->cached_keys, values, &entries);
    else
      AddDict(Pointer(object - layout::kDictBefore), &entries);
  } else if (type->dict_offset > 0) {
    AddDict(Pointer(object + static_cast<uint64_t>(type->dict_offset)), &entries);
  }
  AddSlots(object, &entries);
  return entries;
}

std::string PythonObjects::NameOf(const Entry& entry) {
  return entry.is_c_name ? CString(entry.name) : ShortText(entry.name);
}

uint64_t PythonObjects::Attribute(uint64_t object, std::string_view name) {
  for (const Entry& entry : Attributes(object)) {
    if (NameOf(entry) == name) return entry.object;
  }
  return 0;
}

std::vector<PythonObjects::Entry> PythonObjects::Items(uint64_t dict) {
  std::vector<Entry> entries;
  AddDict(dict, &entries);
  return entries;
}

std::vector<uint64_t> PythonObjects::Elements(uint64_t sequence) {
  const Type* const type = TypeOf(sequence);
  if (type == nullptr || !type->IsSequence()) return {};
  const bool is_list = (type->flags & layout::kIsList) != 0;
  const uint64_t begin =
      is_list ? Pointer(sequence + layout::kListItems) : sequence + layout::kTupleItems;
  std::vector<uint64_t> elements(
      static_cast<size_t>(std::min(Pointer(sequence + layout::kSize), kMostEntries)));
  if (!Read(begin, elements.data(), elements.size() * 8)) return {};
  return elements;
}

std::vector<uint64_t> PythonObjects::Members(uint64_t set) {
  if (!IsBuiltin(set, "set") && !IsBuiltin(set, "frozenset")) return {};
  const uint64_t mask = Pointer(set + layout::kSetMask);
  if (mask >= kMostEntries) return {};
  std::vector<uint64_t> table(static_cast<size_t>(mask + 1) * 2);
  if (!Read(Pointer(set + layout::kSetTable), table.data(), table.size() * 8)) return {};
  std::vector<uint64_t> members;
  for (size_t i = 0; i < table.size(); i += 2) {
    if (table[i] != 0) members.push_back(table[i]);
  }
  return members;
}

std::optional<int64_t> PythonObjects::Integer(uint64_t object) {
  constexpr int kDigitBits = 30;
  const Type* const type = TypeOf(object);
  if (type == nullptr || (type->flags & layout::kIsLong) == 0) return std::nullopt;
  const auto size = static_cast<int64_t>(Pointer(object + layout::kSize));
  if (size < 0 || size > 3) return std::nullopt;  // of no identifier
  std::array<uint32_t, 3> digits = {};
  if (!Read(object + layout::kLongDigits, digits.data(), static_cast<size_t>(size) * 4))
    return std::nullopt;
  uint64_t value = 0;
  for (size_t i = 0; i < digits.size(); ++i)
    value |= static_cast<uint64_t>(digits[i]) << (kDigitBits * i);
  return static_cast<int64_t>(value);
}

uint64_t PythonObjects::SelfOf(uint64_t method, std::string_view name) {
  const bool is_of_c = IsBuiltin(method, "builtin_function_or_method");
  if (!is_of_c && !IsBuiltin(method, "method")) return 0;
  const uint64_t function = Pointer(method + layout::kMethodFunction);
  const std::string its_name = is_of_c ? CString(Pointer(function))
                               : IsBuiltin(function, "function")
                                   ? ShortText(Pointer(function + layout::kFunctionName))
                                   : std::string();
  return its_name == name ? Pointer(method + layout::kMethodSelf) : 0;
}

uint64_t PythonObjects::Referent(uint64_t weak_reference) {
  for (const char* name : {"weakref.ReferenceType", "weakref", "KeyedRef"}) {
    if (TypeName(weak_reference) == name) return Pointer(weak_reference + layout::kReferent);
  }
  return 0;
}

}  // namespace hangscope
