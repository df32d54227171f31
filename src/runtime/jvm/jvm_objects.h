// Objects and classes of a program of Java: their names and fields, as they lie in memory.
//
// All that is read may be anything: every list is bounded, and what makes no sense is nothing.
#ifndef HANGSCOPE_RUNTIME_JVM_JVM_OBJECTS_H
#define HANGSCOPE_RUNTIME_JVM_JVM_OBJECTS_H

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/jvm/jvm_layout.h"
#include "runtime/runtime_memory.h"

namespace hangscope {

struct JavaField {
  std::string name;
  std::string signature;  // "I", "[B", "Ljava/lang/Thread;"
  bool is_static = false;
  uint32_t offset = 0;  // in the object; of a static one in the mirror of its class
  bool IsReference() const { return signature.starts_with('L') || signature.starts_with('['); }
};

struct JavaClass {
  uint64_t address = 0;
  std::string name;       // "java/lang/Thread"
  uint64_t super = 0;     // address; 0: none
  bool is_known = false;  // there is such a class
};

class JvmObjects {
 public:
  JvmObjects(const JvmLayout& layout, RuntimeMemory* memory) : layout_(layout), memory_(*memory) {}

  // Empty: there is none, or it is no name.
  std::string SymbolAt(uint64_t symbol);
  // Of a constant pool, the text with this number.
  std::string TextOfPool(uint64_t pool, uint32_t index);
  const JavaClass& ClassAt(uint64_t address);
  const std::vector<JavaField>& FieldsOf(const JavaClass& of);  // its own
  uint64_t MirrorOf(const JavaClass& of);                       // 0: none

  // Where the object that a pointer leads to is, while a collector moves it, too; 0: there is none.
  uint64_t Resolve(uint64_t object) const;
  uint64_t ReferenceAt(uint64_t address) const;  // the object that the field there leads to
  uint64_t HandleAt(uint64_t address) const;     // that the handle there leads to
  const JavaClass& ClassOf(uint64_t object);
  bool IsA(uint64_t object, std::string_view class_name);

  // By the name of a field that its class or one above has; 0 where it has none.
  uint64_t Reference(uint64_t object, std::string_view field);
  uint64_t StaticReference(const JavaClass& of, std::string_view field);
  template <typename Number>
  Number Value(uint64_t object, std::string_view field) {
    const JavaField* const found = FindField(ClassOf(object), field);
    return found == nullptr || found->is_static ? Number{}
                                                : memory_.Now<Number>(object + found->offset);
  }
  std::string StringAt(uint64_t object, size_t most);  // in UTF-8
  // Of an array of references, at most `most` of it; 0 where one leads nowhere.
  std::vector<uint64_t> ElementsOf(uint64_t array, size_t most);
  // All that are loaded, until it says yes.
  void VisitClasses(const std::function<bool(const JavaClass&)>& visit);
  const JavaClass& FindClass(std::string_view name);  // not known: none is called so

 private:
  uint64_t ArrayLengthAt() const;  // in an array
  const JavaField* FindField(const JavaClass& of, std::string_view name);

  const JvmLayout& layout_;
  RuntimeMemory& memory_;
  std::map<uint64_t, JavaClass> classes_;
  std::map<uint64_t, std::vector<JavaField>> fields_;
};

// "bank.Account" of "bank/Account"; "Account" of that without its package.
std::string DottedName(std::string_view class_name);
std::string SimpleName(std::string_view class_name);
// Of the library that each Java has.
bool IsOfJavaLibrary(std::string_view class_name);

}  // namespace hangscope

#endif
