// The names, fields and formats of events (abi/catalog.h), and how a record reads by them.
//
// A catalog is part of a target: its text is never a format of ours, and nothing in it is
// trusted to have the length that it says.
#ifndef HANGSCOPE_SCOPE_SCOPE_CATALOG_H
#define HANGSCOPE_SCOPE_SCOPE_CATALOG_H

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "model/scope.h"
#include "scope/scope_reader.h"

namespace hangscope {

struct EventField {
  enum class Type { kUnsigned, kSigned, kBool, kText, kPointer };

  std::string name;
  Type type = Type::kUnsigned;
  int bits = 32;                 // of a pointer: as many as the target's have
  uint32_t names = 0;            // the kind of the catalog's entries that name its values; 0: none
  std::string enumeration = {};  // of those of that kind, which
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
  std::string label = {};  // what the value is called: "3 motor"; empty: it has no name
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

  // A field of the type, without a name; nothing: there is no such type.
  static std::optional<EventField> ParseType(std::string_view text);

  // Replaces what the target gave a name while it ran.
  void SetGiven(const std::vector<GivenName>& names);

  // Null: not known.
  const EventKind* Find(uint32_t id) const;
  const EventKind* FindName(std::string_view name, uint32_t* id) const;
  size_t size() const { return kinds_.size(); }
  // Of a kind that is not an event; null: not known. Of several with one id, the one that the
  // target gave while it ran, else the first.
  const CatalogEntry* FindEntry(uint32_t kind, uint32_t id) const;
  // All of a kind, by id.
  std::vector<const CatalogEntry*> Entries(uint32_t kind) const;

  // Of a kind that is not an event, by id.
  std::map<uint32_t, std::string> NamesOfKind(uint32_t kind) const;
  // What the values of a field are called, as far as they have names, ascending.
  std::vector<std::pair<uint64_t, std::string>> NamesOf(const EventField& field) const;

  // "event 77" where it is not known.
  std::string Name(uint32_t id) const;
  std::vector<FieldValue> Fields(const ScopeEvent& event, uint32_t word_bytes) const;
  // The parameters as text, by the format; "(1, 2)" where there is none.
  std::string Format(const ScopeEvent& event, uint32_t word_bytes) const;

 private:
  Status AddList(std::string_view list, bool big);
  void AddEntry(CatalogEntry entry);
  std::string LabelOf(const EventField& field, uint64_t bits) const;

  std::map<uint32_t, EventKind> kinds_;
  std::multimap<std::pair<uint32_t, uint32_t>, CatalogEntry> entries_;  // by kind and id
  std::map<std::pair<uint32_t, uint32_t>, CatalogEntry> given_;         // likewise
  std::map<std::string, std::map<uint32_t, std::string>, std::less<>> enumerations_;
};

}  // namespace hangscope

#endif
