// The names, fields and formats of events (abi/catalog.h), and how a record reads by them.
//
// A catalog is part of a target: its text is never a format of ours, and nothing in it is
// trusted to have the length that it says.
#ifndef HANGSCOPE_DECODE_SCOPE_CATALOG_H
#define HANGSCOPE_DECODE_SCOPE_CATALOG_H

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
  uint32_t id = 0;       // an address of the ELF, its low half; or the number
  uint32_t classes = 0;
  std::string name;
  std::string text;      // a long name, a message, a path
  std::string where;     // "file:line"
};

// A field of one record. `known` is false where the record has too few parameters.
struct FieldValue {
  std::string name;
  EventField::Type type = EventField::Type::kUnsigned;
  uint64_t bits = 0;  // the value; sign-extended where it has one
  bool known = false;
};

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
