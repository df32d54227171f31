#include "runtime/jvm/jvm_frames.h"

#include <algorithm>

namespace hangscope {
namespace {

constexpr size_t kMostHeaps = 8;
constexpr size_t kMostSteps = 4096;      // back in a map of segments
constexpr size_t kMostInlined = 64;      // in one compiled frame
constexpr size_t kMostPlaces = 1 << 16;  // of a compiled method
constexpr size_t kMostMethods = 32768;
constexpr size_t kMostLineBytes = 1 << 16;
constexpr size_t kMostCodeName = 64;
constexpr uint8_t kFree = 0xff;  // of a map of segments
constexpr uint32_t kStaticMethod = 8;
constexpr uint8_t kMonitorEnter = 0xc2;

// Numbers as the machine packs them: of up to five bytes, those from 192 on have a successor.
class PackedReader {
 public:
  PackedReader(uint64_t at, RuntimeMemory* memory) : at_(at), memory_(*memory) {}

  uint8_t Byte() { return memory_.Kept<uint8_t>(at_++); }
  uint32_t Number() {
    constexpr uint32_t kLow = 192;
    constexpr int kBits = 6;
    constexpr int kLast = 4;
    uint32_t sum = 0;
    for (int i = 0; i <= kLast; ++i) {
      const uint32_t byte = Byte();
      sum += byte << (kBits * i);
      if (byte < kLow) break;
    }
    return sum;
  }
  int32_t Signed() {
    const uint32_t number = Number();
    return static_cast<int32_t>(number >> 1) ^ -static_cast<int32_t>(number & 1);
  }

 private:
  uint64_t at_;
  RuntimeMemory& memory_;
};

uint64_t Words(uint64_t from, int64_t words) {
  return from + static_cast<uint64_t>(words * static_cast<int64_t>(kBytesOfWord));
}

}  // namespace

JavaAnchor JvmFrames::AnchorAt(uint64_t address) const {
  return {memory_.Now<uint64_t>(address + layout_.anchor_sp),
          memory_.Now<uint64_t>(address + layout_.anchor_pc),
          memory_.Now<uint64_t>(address + layout_.anchor_fp)};
}

const std::vector<JvmFrames::CodeHeap>& JvmFrames::Heaps() {
  if (heaps_) return *heaps_;
  heaps_.emplace();
  const uint64_t list = memory_.Kept<uint64_t>(layout_.code_heaps_at);
  const uint64_t data = memory_.Kept<uint64_t>(list + layout_.growable_data);
  const size_t count = memory_.Kept<uint32_t>(list + layout_.growable_length);
  for (size_t i = 0; i < std::min(count, kMostHeaps); ++i) {
    const uint64_t at = memory_.Kept<uint64_t>(data + i * kBytesOfWord);
    CodeHeap heap;
    heap.low = memory_.Kept<uint64_t>(at + layout_.heap_memory + layout_.space_low);
    heap.high = memory_.Kept<uint64_t>(at + layout_.heap_memory + layout_.space_high);
    heap.segments = memory_.Kept<uint64_t>(at + layout_.heap_segments + layout_.space_low);
    heap.shift = memory_.Kept<uint32_t>(at + layout_.heap_shift) & 31;
    heaps_->push_back(heap);
  }
  return *heaps_;
}

JvmFrames::Blob JvmFrames::BlobAt(uint64_t pc) {
  const auto heap = std::find_if(Heaps().begin(), Heaps().end(), [pc](const CodeHeap& each) {
    return pc >= each.low && pc < each.high;
  });
  if (heap == Heaps().end()) return {};
  // Each byte of the map tells how far back the block began, in steps.
  uint64_t segment = (pc - heap->low) >> heap->shift;
  for (size_t i = 0; i < kMostSteps; ++i) {
    const auto back = memory_.Kept<uint8_t>(heap->segments + segment);
    if (back == kFree || back > segment) return {};
    if (back == 0) break;
    segment -= back;
  }
  const uint64_t block = heap->low + (segment << heap->shift);
  if (memory_.Kept<uint8_t>(block + layout_.block_used) == 0) return {};
  Blob blob;
  blob.address = block + layout_.block_size;
  const auto words = memory_.Kept<int32_t>(blob.address + layout_.blob_frame_size);
  blob.frame_size = words > 0 ? static_cast<uint64_t>(words) : 0;
  const std::string name =
      memory_.KeptText(memory_.Kept<uint64_t>(blob.address + layout_.blob_name), kMostCodeName);
  blob.kind = name == "Interpreter"                           ? Blob::Kind::kInterpreter
              : name == "nmethod" || name == "native nmethod" ? Blob::Kind::kMethod
                                                              : Blob::Kind::kStub;
  return blob;
}

const JavaMethod& JvmFrames::MethodAt(uint64_t address) {
  static const JavaMethod kNoMethod;
  if (address == 0 || address % kBytesOfWord != 0) return kNoMethod;
  const auto known = methods_.find(address);
  if (known != methods_.end()) return known->second;
  if (methods_.size() == kMostMethods) return kNoMethod;
  JavaMethod& method = methods_[address];
  method.constant = memory_.Kept<uint64_t>(address + layout_.method_const);
  const uint64_t pool = memory_.Kept<uint64_t>(method.constant + layout_.const_constants);
  method.holder = &objects_.ClassAt(memory_.Kept<uint64_t>(pool + layout_.pool_holder));
  method.name =
      objects_.TextOfPool(pool, memory_.Kept<uint16_t>(method.constant + layout_.const_name));
  method.file = objects_.TextOfPool(pool, memory_.Kept<uint16_t>(pool + layout_.pool_source_file));
  method.is_static = (memory_.Kept<uint32_t>(address + layout_.method_access) & kStaticMethod) != 0;
  method.is_known = method.holder->is_known && !method.name.empty();
  return method;
}

void JvmFrames::AddInterpreted(uint64_t fp, std::vector<JavaFrame>* frames) {
  const JavaMethod& method = MethodAt(memory_.Now<uint64_t>(Words(fp, kInterpretedMethod)));
  if (!method.is_known) return;
  JavaFrame frame{&method, -1, 0};
  const auto bytecode = memory_.Now<uint64_t>(Words(fp, kInterpretedBytecode));
  const uint64_t begin = method.constant + layout_.const_size;
  const uint64_t size = memory_.Kept<uint16_t>(method.constant + layout_.const_code_size);
  if (bytecode >= begin && bytecode - begin < size)
    frame.bytecode = static_cast<int>(bytecode - begin);
  // Before it waits for a monitor, the interpreter goes on to the next one.
  if (frames->empty() && frame.bytecode > 0 && memory_.Kept<uint8_t>(bytecode - 1) == kMonitorEnter)
    --frame.bytecode;
  if (!method.is_static)
    frame.this_object = objects_.Resolve(
        memory_.Now<uint64_t>(memory_.Now<uint64_t>(Words(fp, kInterpretedLocals))));
  frames->push_back(frame);
}

// Where the machine has written down which methods are inlined at a place; 0: it has not.
uint64_t JvmFrames::ScopeAt(const Blob& blob, uint64_t pc) {
  const uint64_t begin =
      blob.address + memory_.Kept<uint32_t>(blob.address + layout_.native_scope_pcs);
  const uint64_t end =
      blob.address + memory_.Kept<uint32_t>(blob.address + layout_.native_dependencies);
  const uint64_t code = memory_.Kept<uint64_t>(blob.address + layout_.blob_code_begin);
  if (layout_.pc_size == 0 || end < begin || pc < code) return 0;
  const size_t count = std::min<uint64_t>((end - begin) / layout_.pc_size, kMostPlaces);
  for (size_t i = 0; i < count; ++i) {
    const uint64_t place = begin + i * layout_.pc_size;
    if (memory_.Kept<uint32_t>(place + layout_.pc_offset) != pc - code) continue;
    const uint64_t scope = memory_.Kept<uint32_t>(place + layout_.pc_scope);
    return scope == 0 ? 0 : memory_.Kept<uint64_t>(blob.address + layout_.compiled_scopes) + scope;
  }
  return 0;
}

void JvmFrames::AddCompiled(const Blob& blob, uint64_t pc, uint64_t sp,
                            std::vector<JavaFrame>* frames) {
  // A frame that is to be interpreted when it is returned to keeps where it stood.
  if (pc == memory_.Kept<uint64_t>(blob.address + layout_.compiled_deopt))
    pc = memory_.Now<uint64_t>(sp + memory_.Kept<uint32_t>(blob.address + layout_.native_orig_pc));
  const uint64_t scopes = memory_.Kept<uint64_t>(blob.address + layout_.compiled_scopes);
  const uint64_t metadata =
      blob.address + memory_.Kept<uint32_t>(blob.address + layout_.native_metadata);
  uint64_t scope = ScopeAt(blob, pc);
  const size_t before = frames->size();
  for (size_t i = 0; i < kMostInlined && scope != 0; ++i) {
    PackedReader reader(scope, &memory_);
    const uint32_t caller = reader.Number();
    const uint32_t index = reader.Number();
    const auto bytecode = static_cast<int>(reader.Number()) - 1;
    if (index == 0) break;
    const JavaMethod& method =
        MethodAt(memory_.Kept<uint64_t>(metadata + (index - uint64_t{1}) * kBytesOfWord));
    if (!method.is_known) break;
    frames->push_back({&method, bytecode, 0});
    scope = caller == 0 ? 0 : scopes + caller;
  }
  if (frames->size() != before) return;
  const JavaMethod& method =
      MethodAt(memory_.Kept<uint64_t>(blob.address + layout_.compiled_method));
  if (method.is_known) frames->push_back({&method, -1, 0});
}

std::vector<JavaFrame> JvmFrames::Walk(JavaAnchor at, uint64_t begin, uint64_t end, size_t most) {
  std::vector<JavaFrame> frames;
  uint64_t lowest = begin;  // the way leads up the stack only
  const auto is_on_stack = [&](uint64_t address) {
    return address >= begin && address < end && address % kBytesOfWord == 0;
  };
  for (size_t steps = 0; steps < most && frames.size() < most; ++steps) {
    if (at.sp < lowest || !is_on_stack(at.sp)) break;
    lowest = at.sp;
    if (at.pc == 0) at.pc = memory_.Now<uint64_t>(at.sp - kBytesOfWord);
    if (at.pc == layout_.call_stub_return) {
      // The machine called Java here; it keeps where it had left that before.
      if (!is_on_stack(at.fp)) break;
      const auto wrapper = memory_.Now<uint64_t>(Words(at.fp, layout_.call_wrapper));
      if (!is_on_stack(wrapper)) break;
      const JavaAnchor outer = AnchorAt(wrapper + layout_.wrapper_anchor);
      if (outer.sp <= at.sp) break;
      at = outer;
      continue;
    }
    const Blob blob = BlobAt(at.pc);
    if (blob.kind == Blob::Kind::kInterpreter) {
      if (!is_on_stack(at.fp)) break;
      AddInterpreted(at.fp, &frames);
      const uint64_t fp = at.fp;
      at = {memory_.Now<uint64_t>(Words(fp, layout_.sender_sp)),
            memory_.Now<uint64_t>(Words(fp, 1)), memory_.Now<uint64_t>(fp)};
      if (at.sp <= fp) break;
      continue;
    }
    if (blob.kind == Blob::Kind::kNone || blob.frame_size == 0) break;
    if (blob.kind == Blob::Kind::kMethod) AddCompiled(blob, at.pc, at.sp, &frames);
    const uint64_t sender = at.sp + blob.frame_size * kBytesOfWord;
    if (!is_on_stack(sender)) break;
    at = {sender, memory_.Now<uint64_t>(Words(sender, -1)),
          memory_.Now<uint64_t>(Words(sender, -2))};
    if (at.pc == 0) break;
  }
  if (frames.size() > most) frames.resize(most);
  return frames;
}

// The last place of the table that is not behind the bytecode.
int JvmFrames::LineOf(const JavaFrame& frame) {
  if (frame.method == nullptr || frame.bytecode < 0) return 0;
  const uint64_t constant = frame.method->constant;
  if ((memory_.Kept<uint16_t>(constant + layout_.const_flags) & layout_.has_lines) == 0) return 0;
  PackedReader reader(
      constant + layout_.const_size + memory_.Kept<uint16_t>(constant + layout_.const_code_size),
      &memory_);
  constexpr uint8_t kEscape = 0xff;
  int64_t bytecode = 0, line = 0, best = -1, best_line = 0;
  for (size_t i = 0; i < kMostLineBytes; ++i) {
    const uint8_t next = reader.Byte();
    if (next == 0) break;
    if (next == kEscape) {
      bytecode += reader.Signed();
      line += reader.Signed();
    } else {
      bytecode += next >> 3;
      line += next & 7;
    }
    if (bytecode <= frame.bytecode && bytecode > best) {
      best = bytecode;
      best_line = line;
    }
  }
  return best_line > 0 && best_line < (1 << 20) ? static_cast<int>(best_line) : 0;
}

}  // namespace hangscope
