// The memory of a program of Java 17, as little of it as its threads need, with the tables that
// libjvm.so exports. Where things lie in it is the fake's own choice. Any byte may be changed then.
#ifndef HANGSCOPE_TESTS_FAKES_FAKE_JVM_H
#define HANGSCOPE_TESTS_FAKES_FAKE_JVM_H

#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fakes/fake_memory.h"
#include "runtime/jvm/jvm_reader.h"

namespace hangscope {

class FakeJvm : public FakeMemory {
 public:
  static constexpr uint64_t kBegin = 0x100000;
  static constexpr int kBlocked = 10;

  struct Thread {
    uint64_t address = 0;
    uint64_t object = 0;
    uint64_t stack = 0;  // its lowest address
    uint64_t top = 0;    // where the next frame is put
  };
  struct Class {
    uint64_t address = 0;
    uint64_t pool = 0;
    uint64_t mirror = 0;
    std::map<std::string, uint32_t> offsets;
  };

  FakeJvm() : FakeMemory(kBegin) {
    WriteTables();
    PutAt("JDK_Version._current", uint8_t{17});
    PutAt("CompressedOops._narrow_oop._shift", uint32_t{3});
    PutAt("CompressedKlassPointers._narrow_klass._shift", uint32_t{3});
    PutAt("java_lang_Class._klass_offset", uint32_t{16});
    WriteFlags();
    object_ = AddClass("java/lang/Object", 0, {});
    bytes_ = AddClass("[B", 0, {});
    string_ = AddClass("java/lang/String", object_.address, {{"value", "[B"}, {"coder", "B"}});
    thread_ = AddClass("java/lang/Thread", object_.address,
                       {{"name", "Ljava/lang/String;"},
                        {"eetop", "J"},
                        {"daemon", "Z"},
                        {"threadStatus", "I"},
                        {"parkBlocker", "Ljava/lang/Object;"}});
    WriteInterpreter();
  }

  // Into the variable of the machine with that name.
  template <typename Number>
  void PutAt(const std::string& name, Number number) {
    Put(variables_.at(name), number);
  }
  uint64_t OffsetOf(const std::string& field) const { return offsets_.at(field); }

  // Static fields come behind a "static ".
  Class AddClass(const std::string& name, uint64_t super,
                 const std::vector<std::pair<std::string, std::string>>& fields) {
    Class made;
    made.address = Block(160);
    made.pool = Block(72 + 8 * kTexts);
    Put(made.pool + OffsetOf("ConstantPool._pool_holder"), made.address);
    Put(made.address + OffsetOf("Klass._name"), Symbol(name));
    Put(made.address + OffsetOf("Klass._super"), super);
    Put(made.address + OffsetOf("InstanceKlass._constants"), made.pool);
    Put(made.address + OffsetOf("InstanceKlass._java_fields_count"),
        static_cast<uint16_t>(fields.size()));
    const uint64_t list = Block(8 + 12 * fields.size());
    Put(made.address + OffsetOf("InstanceKlass._fields"), list);
    Put(list, static_cast<uint32_t>(6 * fields.size()));
    uint32_t offset = 24;
    for (size_t i = 0; i < fields.size(); ++i, offset += 8) {
      const bool is_static = fields[i].first.starts_with("static ");
      const std::string field = is_static ? fields[i].first.substr(7) : fields[i].first;
      const uint64_t at = list + 4 + 12 * i;
      Put(at, static_cast<uint16_t>(is_static ? 8 : 0));
      Put(at + 2, PoolText(made.pool, field));
      Put(at + 4, PoolText(made.pool, fields[i].second));
      Put(at + 8, static_cast<uint16_t>(offset << 2 | 1));
      made.offsets[field] = offset;
    }
    made.mirror = Block(24 + 8 * fields.size());
    Put(made.mirror, uint64_t{1});
    Put(made.mirror + 16, made.address);
    Put(made.address + OffsetOf("Klass._java_mirror"), Handle(made.mirror));
    return made;
  }
  // It is found by its name then.
  void Load(const Class& loaded) {
    const uint64_t loader = Block(16);
    Put(loader + OffsetOf("ClassLoaderData._klasses"), loaded.address);
    PutAt("ClassLoaderDataGraph._head", loader);
  }
  uint64_t AddObject(const Class& of, size_t bytes = 128) {
    const uint64_t object = Block(bytes);
    Put(object, uint64_t{1});  // nobody has moved or locked it
    Put(object + 8, static_cast<uint32_t>(of.address >> 3));
    return object;
  }
  void Refer(uint64_t from, uint32_t offset, uint64_t to) {
    Put(from + offset, static_cast<uint32_t>(to >> 3));
  }
  uint64_t String(const std::string& text) {
    const uint64_t bytes = AddObject(bytes_, 16 + text.size());
    Put(bytes + 12, static_cast<uint32_t>(text.size()));
    PutText(bytes + 16, text);
    const uint64_t string = AddObject(string_);
    Refer(string, string_.offsets.at("value"), bytes);
    return string;
  }

  Thread AddThread(const std::string& name, int tid, bool is_daemon = false) {
    Thread made;
    made.address = Block(kBytesOfThread);
    made.stack = Block(kStack);
    made.top = made.stack + 64;
    const uint64_t os_thread = Block(64);
    Put(os_thread + OffsetOf("OSThread._thread_id"), tid);
    Put(made.address + OffsetOf("JavaThread._osthread"), os_thread);
    Put(made.address + OffsetOf("JavaThread._stack_base"), made.stack + kStack);
    Put(made.address + OffsetOf("JavaThread._stack_size"), uint64_t{kStack});
    Put(made.address + OffsetOf("JavaThread._thread_state"), kBlocked);
    made.object = AddObject(thread_);
    Refer(made.object, thread_.offsets.at("name"), String(name));
    Put(made.object + thread_.offsets.at("eetop"), made.address);
    Put(made.object + thread_.offsets.at("daemon"), static_cast<uint8_t>(is_daemon));
    Put(made.address + OffsetOf("JavaThread._threadObj"), Handle(made.object));
    all_.push_back(made.address);
    const uint64_t list = Block(32);
    const uint64_t threads = Block(8 * all_.size());
    for (size_t i = 0; i < all_.size(); ++i) Put(threads + 8 * i, all_[i]);
    Put(list + OffsetOf("ThreadsList._length"), static_cast<uint32_t>(all_.size()));
    Put(list + OffsetOf("ThreadsList._threads"), threads);
    PutAt("ThreadsSMRSupport._java_thread_list", list);
    return made;
  }
  uint64_t AddMonitor(uint64_t object, uint64_t owner) {
    const uint64_t monitor = Block(64);
    Put(monitor + OffsetOf("ObjectMonitor._object"), Handle(object));
    Put(monitor + OffsetOf("ObjectMonitor._owner"), owner);
    return monitor;
  }
  void Pend(const Thread& thread, uint64_t monitor) {
    Put(thread.address + OffsetOf("JavaThread._current_pending_monitor"), monitor);
  }
  void WaitOn(const Thread& thread, uint64_t monitor) {
    Put(thread.address + OffsetOf("JavaThread._current_waiting_monitor"), monitor);
  }
  void Park(const Thread& thread, uint64_t blocker) {
    Refer(thread.object, thread_.offsets.at("parkBlocker"), blocker);
  }

  // Its bytecodes 0 to 7 are of `line`, the rest of the next one.
  uint64_t AddMethod(Class* of, const std::string& name, const std::string& file, int line) {
    const uint64_t method = Block(64);
    const uint64_t constant = Block(48 + kCode + 16);
    Put(method + OffsetOf("Method._constMethod"), constant);
    Put(constant + OffsetOf("ConstMethod._constants"), of->pool);
    Put(constant + OffsetOf("ConstMethod._flags"), uint16_t{1});
    Put(constant + OffsetOf("ConstMethod._code_size"), uint16_t{kCode});
    Put(constant + OffsetOf("ConstMethod._name_index"), PoolText(of->pool, name));
    Put(of->pool + OffsetOf("ConstantPool._source_file_name_index"), PoolText(of->pool, file));
    const uint64_t lines = constant + 48 + kCode;
    Put(lines, uint8_t{0xff});  // no step on, and a signed number of lines
    Put(lines + 1, uint8_t{0});
    Put(lines + 2, static_cast<uint8_t>(2 * line));
    Put(lines + 3, static_cast<uint8_t>(8 << 3 | 1));
    return method;
  }
  // Outside of those that were added before.
  void AddFrame(Thread* thread, uint64_t method, int bytecode, uint64_t this_object = 0) {
    const uint64_t fp = thread->top + 96;
    const auto constant = Get<uint64_t>(method + OffsetOf("Method._constMethod"));
    Put(fp - 24, method);
    Put(fp - 56, fp - 80);
    Put(fp - 80, this_object);
    Put(fp - 64, constant + 48 + static_cast<uint64_t>(bytecode));
    const uint64_t next = fp + 16;
    Put(fp - 8, next);
    const uint64_t anchor = thread->address + OffsetOf("JavaThread._anchor");
    if (thread->top == thread->stack + 64) {
      Put(anchor, thread->top);
      Put(anchor + 8, interpreter_);
      Put(anchor + 16, fp);
    } else {
      Put(thread->top - 16, fp);
      Put(thread->top - 8, interpreter_);
    }
    thread->top = next;
  }

  Class& object_class() { return object_; }

  Result<std::unique_ptr<JvmReader>> Open() {
    return JvmReader::Open(
        [this](std::string_view name) {
          const auto at = symbols_.find(std::string(name));
          return at == symbols_.end() ? std::nullopt : std::optional(at->second);
        },
        [this](uint64_t address, void* into, size_t bytes) {
          ++reads;
          const uint64_t end = kBegin + (image_.size() + 4095) / 4096 * 4096;
          if (address < kBegin || address > end || bytes > end - address) return false;
          std::memset(into, 0, bytes);
          const uint64_t at = address - kBegin;
          if (at < image_.size())
            std::memcpy(into, image_.data() + at, std::min<uint64_t>(bytes, image_.size() - at));
          return true;
        });
  }
  void Forget(const std::string& symbol) { symbols_.erase(symbol); }
  void PutVersion(uint8_t version) { PutAt("JDK_Version._current", version); }
  size_t reads = 0;

 private:
  static constexpr size_t kTexts = 40;
  static constexpr size_t kBytesOfThread = 128;
  static constexpr uint64_t kStack = 1024;
  static constexpr uint16_t kCode = 32;

  struct NamedNumber {
    const char* type;
    const char* field;
    uint64_t number;
  };

  uint64_t CText(const std::string& text) {
    const uint64_t at = Block(text.size() + 1);
    PutText(at, text);
    return at;
  }
  uint64_t Symbol(const std::string& text) {
    const uint64_t at = Block(8 + text.size());
    Put(at + 4, static_cast<uint16_t>(text.size()));
    PutText(at + 6, text);
    return at;
  }
  uint64_t Handle(uint64_t object) {
    const uint64_t slot = Block(8);
    Put(slot, object);
    return slot;
  }
  uint16_t PoolText(uint64_t pool, const std::string& text) {
    const auto length = Get<uint32_t>(pool + OffsetOf("ConstantPool._length"));
    const uint32_t index = length == 0 ? 1 : length;
    Put(pool + 72 + 8 * index, Symbol(text));
    Put(pool + OffsetOf("ConstantPool._length"), index + 1);
    return static_cast<uint16_t>(index);
  }
  void Export(const std::string& name, uint64_t value) {
    symbols_[name] = Block(8);
    Put(symbols_[name], value);
  }
  void WriteTables();
  void WriteFlags();
  void WriteInterpreter();

  std::map<std::string, uint64_t> symbols_;
  std::map<std::string, uint64_t> variables_;
  std::map<std::string, uint64_t> offsets_;
  std::vector<uint64_t> all_;
  Class object_, bytes_, string_, thread_;
  uint64_t interpreter_ = 0;  // a place in it
};

inline void FakeJvm::WriteTables() {
  constexpr NamedNumber kFields[] = {
      {"ThreadsList", "_length", 4},
      {"ThreadsList", "_threads", 16},
      {"JavaThread", "_threadObj", 0},
      {"JavaThread", "_anchor", 8},
      {"JavaThread", "_thread_state", 32},
      {"JavaThread", "_osthread", 40},
      {"JavaThread", "_stack_base", 48},
      {"JavaThread", "_stack_size", 56},
      {"JavaThread", "_current_pending_monitor", 64},
      {"JavaThread", "_current_waiting_monitor", 72},
      {"OSThread", "_thread_id", 8},
      {"JavaFrameAnchor", "_last_Java_sp", 0},
      {"JavaFrameAnchor", "_last_Java_pc", 8},
      {"JavaFrameAnchor", "_last_Java_fp", 16},
      {"ObjectMonitor", "_object", 8},
      {"ObjectMonitor", "_owner", 16},
      {"JavaCallWrapper", "_anchor", 32},
      {"oopDesc", "_mark", 0},
      {"oopDesc", "_metadata._klass", 8},
      {"Klass", "_name", 24},
      {"Klass", "_super", 32},
      {"Klass", "_java_mirror", 40},
      {"Klass", "_next_link", 48},
      {"InstanceKlass", "_fields", 56},
      {"InstanceKlass", "_java_fields_count", 64},
      {"InstanceKlass", "_constants", 72},
      {"InstanceKlass", "_init_state", 80},
      {"InstanceKlass", "_init_thread", 88},
      {"Symbol", "_length", 4},
      {"Symbol", "_body[0]", 6},
      {"ConstantPool", "_length", 60},
      {"ConstantPool", "_pool_holder", 24},
      {"ConstantPool", "_source_file_name_index", 54},
      {"Array<int>", "_length", 0},
      {"Array<u2>", "_data", 4},
      {"ClassLoaderData", "_next", 0},
      {"ClassLoaderData", "_klasses", 8},
      {"Method", "_constMethod", 8},
      {"Method", "_access_flags", 40},
      {"ConstMethod", "_constants", 8},
      {"ConstMethod", "_flags", 28},
      {"ConstMethod", "_code_size", 32},
      {"ConstMethod", "_name_index", 34},
      {"GrowableArrayBase", "_len", 0},
      {"GrowableArray<int>", "_data", 8},
      {"CodeHeap", "_memory", 0},
      {"CodeHeap", "_segmap", 16},
      {"CodeHeap", "_log2_segment_size", 32},
      {"VirtualSpace", "_low", 0},
      {"VirtualSpace", "_high", 8},
      {"HeapBlock::Header", "_used", 8},
      {"CodeBlob", "_name", 0},
      {"CodeBlob", "_size", 8},
      {"CodeBlob", "_frame_size", 12},
      {"CodeBlob", "_code_begin", 16},
      {"CompiledMethod", "_method", 24},
      {"CompiledMethod", "_scopes_data_begin", 32},
      {"CompiledMethod", "_deopt_handler_begin", 40},
      {"nmethod", "_orig_pc_offset", 48},
      {"nmethod", "_metadata_offset", 52},
      {"nmethod", "_scopes_pcs_offset", 56},
      {"nmethod", "_dependencies_offset", 60},
      {"PcDesc", "_pc_offset", 0},
      {"PcDesc", "_scope_decode_offset", 4},
      {"JVMFlag", "_name", 8},
      {"JVMFlag", "_addr", 0},
  };
  constexpr NamedNumber kVariables[] = {
      {"ThreadsSMRSupport", "_java_thread_list", 0},
      {"CompressedOops", "_narrow_oop._base", 0},
      {"CompressedOops", "_narrow_oop._shift", 0},
      {"CompressedKlassPointers", "_narrow_klass._base", 0},
      {"CompressedKlassPointers", "_narrow_klass._shift", 0},
      {"java_lang_Class", "_klass_offset", 0},
      {"ClassLoaderDataGraph", "_head", 0},
      {"CodeCache", "_heaps", 0},
      {"StubRoutines", "_call_stub_return_address", 0},
      {"JVMFlag", "flags", 0},
      {"JVMFlag", "numFlags", 0},
      {"JDK_Version", "_current", 0},
  };
  constexpr NamedNumber kSizes[] = {{"ConstantPool", "", 72},
                                    {"ConstMethod", "", 48},
                                    {"HeapBlock", "", 16},
                                    {"PcDesc", "", 16},
                                    {"JVMFlag", "", 24}};
  constexpr NamedNumber kConstants[] = {
      {"ConstMethod::_has_linenumber_table", "", 1},
      {"InstanceKlass::being_initialized", "", 3},
      {"_thread_blocked", "", kBlocked},
      {"FieldInfo::access_flags_offset", "", 0},
      {"FieldInfo::name_index_offset", "", 1},
      {"FieldInfo::signature_index_offset", "", 2},
      {"FieldInfo::low_packed_offset", "", 4},
      {"FieldInfo::high_packed_offset", "", 5},
      {"FieldInfo::field_slots", "", 6},
      {"FIELDINFO_TAG_SIZE", "", 2},
      {"frame::entry_frame_call_wrapper_offset", "", static_cast<uint64_t>(-6)},
      {"frame::interpreter_frame_sender_sp_offset", "", static_cast<uint64_t>(-1)},
  };
  constexpr uint64_t kFieldEntry = 48;
  constexpr uint64_t kOtherEntry = 16;
  const uint64_t fields = Block(kFieldEntry * (std::size(kFields) + std::size(kVariables) + 1));
  uint64_t entry = fields;
  const auto add = [&](const NamedNumber& each, bool is_static) {
    const std::string name = std::string(each.type) + "." + each.field;
    Put(entry, CText(each.type));
    Put(entry + 8, CText(each.field));
    Put(entry + 24, static_cast<int32_t>(is_static));
    Put(entry + 32, each.number);
    if (is_static) Put(entry + 40, variables_[name] = Block(8));
    if (!is_static) offsets_[name] = each.number;
    entry += kFieldEntry;
  };
  for (const NamedNumber& each : kFields) add(each, false);
  for (const NamedNumber& each : kVariables) add(each, true);
  const auto write = [&](const auto& numbers) {
    const uint64_t begin = Block(kOtherEntry * (std::size(numbers) + 1));
    uint64_t at = begin;
    for (const NamedNumber& each : numbers) {
      Put(at, CText(each.type));
      Put(at + 8, each.number);
      at += kOtherEntry;
    }
    return begin;
  };
  Export("gHotSpotVMStructs", fields);
  Export("gHotSpotVMStructEntryArrayStride", kFieldEntry);
  Export("gHotSpotVMStructEntryTypeNameOffset", 0);
  Export("gHotSpotVMStructEntryFieldNameOffset", 8);
  Export("gHotSpotVMStructEntryIsStaticOffset", 24);
  Export("gHotSpotVMStructEntryOffsetOffset", 32);
  Export("gHotSpotVMStructEntryAddressOffset", 40);
  Export("gHotSpotVMTypes", write(kSizes));
  Export("gHotSpotVMTypeEntryArrayStride", kOtherEntry);
  Export("gHotSpotVMTypeEntryTypeNameOffset", 0);
  Export("gHotSpotVMTypeEntrySizeOffset", 8);
  Export("gHotSpotVMIntConstants", write(kConstants));
  Export("gHotSpotVMIntConstantEntryArrayStride", kOtherEntry);
  Export("gHotSpotVMIntConstantEntryNameOffset", 0);
  Export("gHotSpotVMIntConstantEntryValueOffset", 8);
}

inline void FakeJvm::WriteFlags() {
  const uint64_t flags = Block(2 * 24);
  const uint64_t yes = Block(1);
  Put(yes, uint8_t{1});
  Put(flags, yes);
  Put(flags + 8, CText("UseCompressedOops"));
  Put(flags + 24, yes);
  Put(flags + 32, CText("UseCompressedClassPointers"));
  PutAt("JVMFlag.flags", flags);
  PutAt("JVMFlag.numFlags", uint64_t{2});
}

// One heap of code with one block in it.
inline void FakeJvm::WriteInterpreter() {
  constexpr uint64_t kBytes = 256;
  const uint64_t low = Block(kBytes);
  Put(low + 8, uint8_t{1});
  Put(low + 16, CText("Interpreter"));
  interpreter_ = low + 200;
  const uint64_t segments = Block(2);
  Put(segments + 1, uint8_t{1});
  const uint64_t heap = Block(48);
  Put(heap, low);
  Put(heap + 8, low + kBytes);
  Put(heap + 16, segments);
  Put(heap + 32, uint32_t{7});
  const uint64_t list = Block(16);
  const uint64_t data = Block(8);
  Put(list, uint32_t{1});
  Put(list + 8, data);
  Put(data, heap);
  PutAt("CodeCache._heaps", list);
}

}  // namespace hangscope

#endif
