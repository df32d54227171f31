// Where the threads of a program of Java stand: their frames, of interpreted and of compiled
// methods, from the one that last left Java.
#ifndef HANGSCOPE_RUNTIME_JVM_JVM_FRAMES_H
#define HANGSCOPE_RUNTIME_JVM_JVM_FRAMES_H

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/jvm/jvm_layout.h"
#include "runtime/jvm/jvm_objects.h"
#include "runtime/runtime_memory.h"

namespace hangscope {

struct JavaMethod {
  bool is_known = false;
  const JavaClass* holder = nullptr;
  std::string name;  // "transfer"
  std::string file;  // "Bank.java"; empty: not known
  bool is_static = false;
  uint64_t constant = 0;  // its part that never changes
};

struct JavaFrame {
  const JavaMethod* method = nullptr;
  int bytecode = -1;         // its index in the method; -1: not known
  uint64_t this_object = 0;  // of an interpreted method of an object; 0: not known
  bool operator==(const JavaFrame&) const = default;
};

// A point on a stack. `pc` 0: the word below `sp`.
struct JavaAnchor {
  uint64_t sp = 0, pc = 0, fp = 0;
};

class JvmFrames {
 public:
  JvmFrames(const JvmLayout& layout, JvmObjects* objects, RuntimeMemory* memory)
      : layout_(layout), objects_(*objects), memory_(*memory) {}

  JavaAnchor AnchorAt(uint64_t address) const;
  // Innermost first; the stack lies in [begin, end).
  std::vector<JavaFrame> Walk(JavaAnchor from, uint64_t begin, uint64_t end, size_t most);
  int LineOf(const JavaFrame& frame);  // 0: not known

 private:
  // What the code cache has at an address: an interpreter, a compiled method, a stub.
  struct Blob {
    enum class Kind { kNone, kInterpreter, kMethod, kStub };
    Kind kind = Kind::kNone;
    uint64_t address = 0;
    uint64_t frame_size = 0;  // in words
  };
  struct CodeHeap {
    uint64_t low = 0, high = 0, segments = 0;
    unsigned shift = 0;
  };
  const std::vector<CodeHeap>& Heaps();
  Blob BlobAt(uint64_t pc);
  const JavaMethod& MethodAt(uint64_t address);
  void AddInterpreted(uint64_t fp, std::vector<JavaFrame>* frames);
  void AddCompiled(const Blob& blob, uint64_t pc, uint64_t sp, std::vector<JavaFrame>* frames);
  uint64_t ScopeAt(const Blob& blob, uint64_t pc);

  const JvmLayout& layout_;
  JvmObjects& objects_;
  RuntimeMemory& memory_;
  std::optional<std::vector<CodeHeap>> heaps_;
  std::map<uint64_t, JavaMethod> methods_;
};

}  // namespace hangscope

#endif
