// The names, fields and formats of events (abi/catalog.h), and how a record reads by them.
//
// A catalog is part of a target: its text is never a format of ours, and nothing in it is
// trusted to have the length that it says.
#ifndef HANGSCOPE_SCOPE_SCOPE_CATALOG_H
#define HANGSCOPE_SCOPE_SCOPE_CATALOG_H

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "model/scope.h"

namespace hangscope {

struct EventField {
  enum class Type { kUnsigned, kSigned, kBool, kText, kPointer };

  std::string name;
  Type type = Type::kUnsigned;
  int bits = 32;  // of a pointer: as many as the target's have
};

struct EventKind {
  std::string name;
  std::string format;
  std::vector<EventField> fields;
};

// What the catalog says of a place in the code or of a number (abi/catalog.h has the kinds).
struct CatalogEntry {
  uint32_t kind = 0;
  uint32_t id = 0;  // an address of the ELF, its low half; or the number
  uint32_t classes = 0;
  std::string name;
  std::string text;   // a long name, a message, a path
  std::string where;  // FILE:LINE
};

// A field of one record. `known` is false where the record has too few parameters.
struct FieldValue {
  std::string name;
  EventField::Type type = EventField::Type::kUnsigned;
  uint64_t bits = 0;  // the value; sign-extended where it has one
  bool known = false;
};

struct FieldBits {
  uint64_t bits = 0;
  bool known = false;
};

// The value of a field whose first word is the parameter *at, which goes on behind it.
// `word_bytes`: of a pointer.
inline FieldBits ExtractField(const EventField& field, const ScopeEvent& event, uint32_t word_bytes,
                              uint32_t* at) {
  const int bits =
      field.type == EventField::Type::kPointer ? static_cast<int>(word_bytes) * 8 : field.bits;
  const uint32_t first = *at;
  *at += bits > 32 ? 2 : 1;
  if (*at > event.parameter_count) return {};
  uint64_t value = event.parameters[first];
  if (bits > 32) value |= uint64_t{event.parameters[first + 1]} << 32;
  if (field.type == EventField::Type::kSigned && bits < 64)
    value = static_cast<uint64_t>(static_cast<int64_t>(value << (64 - bits)) >> (64 - bits));
  else if (bits < 32)
    value &= (uint64_t{1} << bits) - 1;
  return {value, true};
}

class ScopeCatalog {
 public:
  // Knows the kernel's events and hangscope's own, whose ids are fixed for good.
  ScopeCatalog();
  // Adds what the section's bytes list. Takes all that is sound up to the first that is not.
  Status Add(std::string_view section);

  // Null: not known.
  const EventKind* Find(uint32_t id) const;
  const EventKind* FindName(std::string_view name, uint32_t* id) const;
  size_t size() const { return kinds_.size(); }
  // Of a kind that is not an event; null: not known. Of several with one id, the first.
  const CatalogEntry* FindEntry(uint32_t kind, uint32_t id) const;
  // All of a kind, by id.
  std::vector<const CatalogEntry*> Entries(uint32_t kind) const;

  // "event 77" where it is not known.
  std::string Name(uint32_t id) const;
  std::vector<FieldValue> Fields(const ScopeEvent& event, uint32_t word_bytes) const;
  // The parameters as text, by the format; "(1, 2)" where there is none.
  std::string Format(const ScopeEvent& event, uint32_t word_bytes) const;

 private:
  Status AddList(std::string_view list, bool big);
  void AddEntry(CatalogEntry entry);

  std::map<uint32_t, EventKind> kinds_;
  std::multimap<std::pair<uint32_t, uint32_t>, CatalogEntry> entries_;  // by kind and id
};

}  // namespace hangscope

#endif
