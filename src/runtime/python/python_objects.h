// Objects of CPython 3.11 in a process's memory: their types, attributes and contents. Whatever the
// memory holds, nothing is read without a bound, and what is no such object reads as none.
#ifndef HANGSCOPE_RUNTIME_PYTHON_PYTHON_OBJECTS_H
#define HANGSCOPE_RUNTIME_PYTHON_PYTHON_OBJECTS_H

#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "proc/process_memory.h"

namespace hangscope {

// A structure of so many bytes as it lies in the process's memory.
template <size_t kBytes>
class PythonStructure {
 public:
  bool Read(const ReadMemory& read, uint64_t address) {
    return read(address, bytes_.data(), kBytes);
  }
  template <typename Number>
  Number At(size_t offset) const {
    Number number;
    std::memcpy(&number, bytes_.data() + offset, sizeof number);
    return number;
  }
  uint64_t Pointer(size_t offset) const { return At<uint64_t>(offset); }

 private:
  std::array<char, kBytes> bytes_;
};

class PythonObjects {
 public:
  struct Type {
    std::string name;  // "_thread.lock", "Account"
    uint64_t flags = 0;
    uint64_t cached_keys = 0;  // of its objects' attributes, where they have these in common
    uint64_t members = 0;      // its slots
    uint64_t member_count = 0;
    uint64_t base = 0;  // the type it is derived from
    int64_t dict_offset = 0;
    bool IsHeap() const;
    bool IsText() const;
    bool IsDict() const;
    bool IsSequence() const;  // a list or a tuple
    // "lock" of "_thread.lock".
    std::string_view ShortName() const;
  };
  // An object and the name by which another one has it, which is read by NameOf alone.
  struct Entry {
    uint64_t name = 0;
    uint64_t object = 0;
    bool is_c_name = false;  // as C's, not an object
  };

  // `text_type`: the type of str.
  PythonObjects(uint64_t text_type, ReadMemory read)
      : text_type_(text_type), read_(std::move(read)) {}

  // Fails with what is wrong with "the name at ...". Cut behind some thousand characters.
  Result<std::string> Text(uint64_t address) const;

  // None of these fails: what cannot be read is left out. Together they read a limited amount;
  // `HasRefused`: there was more.
  bool HasRefused() const { return has_refused_; }
  bool Read(uint64_t address, void* into, size_t bytes);
  uint64_t Pointer(uint64_t address);  // 0: it cannot be read
  const Type* TypeOf(uint64_t object);
  bool IsBuiltin(uint64_t object,
                 std::string_view type);  // of exactly this type of the interpreter
  std::string TypeName(uint64_t object);
  std::vector<Entry> Attributes(uint64_t object);              // its dictionary and its slots
  uint64_t Attribute(uint64_t object, std::string_view name);  // 0: none
  // Where in an object its slot of this name is; nothing: its type has none.
  std::optional<uint64_t> SlotOffset(uint64_t object, std::string_view name);
  std::vector<Entry> Items(uint64_t dict);
  std::string NameOf(const Entry& entry);             // empty: it has none
  std::vector<uint64_t> Elements(uint64_t sequence);  // of a list or a tuple
  std::vector<uint64_t> Members(uint64_t set);
  std::optional<int64_t> Integer(uint64_t object);
  std::string ShortText(uint64_t object);  // of str; empty: none
  std::string CString(uint64_t address);   // likewise, as C's
  // What a bound method is of, if it is called so; 0: it is none.
  uint64_t SelfOf(uint64_t method, std::string_view name);
  // What a weak reference leads to; 0: it is none, or leads nowhere.
  uint64_t Referent(uint64_t weak_reference);

 private:
  void AddItems(uint64_t keys, uint64_t values, std::vector<Entry>* into);
  void AddSlots(uint64_t object, std::vector<Entry>* into);
  void AddDict(uint64_t dict, std::vector<Entry>* into);
  const Type* TypeAt(uint64_t address);

  uint64_t text_type_;
  ReadMemory read_;
  size_t bytes_left_ = size_t{64} << 20;
  size_t reads_left_ = 40000;
  bool has_refused_ = false;
  std::map<uint64_t, Type> types_;
};

}  // namespace hangscope

#endif
