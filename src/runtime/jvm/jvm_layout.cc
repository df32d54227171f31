#include "runtime/jvm/jvm_layout.h"

#include <fmt/format.h>

#include <string>
#include <unordered_map>

namespace hangscope {
namespace {

constexpr size_t kMostEntries = 8192;
constexpr size_t kMostFlags = 8192;
constexpr size_t kMostEntryName = 128;
constexpr unsigned kMajorVersion = 17;

struct TableEntry {
  bool is_static = false;
  uint64_t number = 0;  // offset, size or constant
  uint64_t address = 0;
};
using Table = std::unordered_map<std::string, TableEntry>;  // "ThreadsList._length"

// A table that libjvm.so exports: where it begins, how far apart its entries are, and where in them
// the parts stand, have symbols of their own.
class TableReader {
 public:
  TableReader(const FindJvmSymbol& find, RuntimeMemory* memory) : find_(find), memory_(*memory) {}

  // False: it has no such table.
  bool ReadFields(Table* into) {
    const uint64_t at = Variable("gHotSpotVMStructs");
    const uint64_t stride = Variable("gHotSpotVMStructEntryArrayStride");
    const uint64_t type = Variable("gHotSpotVMStructEntryTypeNameOffset");
    const uint64_t field = Variable("gHotSpotVMStructEntryFieldNameOffset");
    const uint64_t is_static = Variable("gHotSpotVMStructEntryIsStaticOffset");
    const uint64_t offset = Variable("gHotSpotVMStructEntryOffsetOffset");
    const uint64_t address = Variable("gHotSpotVMStructEntryAddressOffset");
    return Read(at, stride, type, [&](uint64_t entry, const std::string& name) {
      (*into)[name + "." + TextAt(entry + field)] = {memory_.Kept<int32_t>(entry + is_static) != 0,
                                                     memory_.Kept<uint64_t>(entry + offset),
                                                     memory_.Kept<uint64_t>(entry + address)};
    });
  }
  bool ReadSizes(Table* into) {
    const uint64_t size = Variable("gHotSpotVMTypeEntrySizeOffset");
    return Read(Variable("gHotSpotVMTypes"), Variable("gHotSpotVMTypeEntryArrayStride"),
                Variable("gHotSpotVMTypeEntryTypeNameOffset"),
                [&](uint64_t entry, const std::string& name) {
                  (*into)[name] = {false, memory_.Kept<uint64_t>(entry + size), 0};
                });
  }
  bool ReadConstants(Table* into) {
    const uint64_t value = Variable("gHotSpotVMIntConstantEntryValueOffset");
    return Read(Variable("gHotSpotVMIntConstants"),
                Variable("gHotSpotVMIntConstantEntryArrayStride"),
                Variable("gHotSpotVMIntConstantEntryNameOffset"),
                [&](uint64_t entry, const std::string& name) {
                  const auto number = static_cast<int64_t>(memory_.Kept<int32_t>(entry + value));
                  (*into)[name] = {false, static_cast<uint64_t>(number), 0};
                });
  }

 private:
  // 0 where there is none.
  uint64_t Variable(std::string_view name) {
    const auto at = find_(name);
    return at ? memory_.Kept<uint64_t>(*at) : 0;
  }
  std::string TextAt(uint64_t pointer) {
    return memory_.KeptText(memory_.Kept<uint64_t>(pointer), kMostEntryName);
  }
  template <typename Store>
  bool Read(uint64_t at, uint64_t stride, uint64_t name, const Store& store) {
    if (at == 0 || stride == 0) return false;
    for (size_t i = 0; i < kMostEntries && memory_.Kept<uint64_t>(at + name) != 0; ++i) {
      store(at, TextAt(at + name));
      at += stride;
    }
    return true;
  }

  const FindJvmSymbol& find_;
  RuntimeMemory& memory_;
};

struct WantedNumber {
  const char* name;
  uint64_t JvmLayout::*into;
};

constexpr WantedNumber kVariables[] = {
    {"ThreadsSMRSupport._java_thread_list", &JvmLayout::thread_list_at},
    {"CompressedOops._narrow_oop._base", &JvmLayout::narrow_oop_base_at},
    {"CompressedOops._narrow_oop._shift", &JvmLayout::narrow_oop_shift_at},
    {"CompressedKlassPointers._narrow_klass._base", &JvmLayout::narrow_klass_base_at},
    {"CompressedKlassPointers._narrow_klass._shift", &JvmLayout::narrow_klass_shift_at},
    {"java_lang_Class._klass_offset", &JvmLayout::mirror_klass_at},
    {"ClassLoaderDataGraph._head", &JvmLayout::class_loaders_at},
    {"CodeCache._heaps", &JvmLayout::code_heaps_at},
    {"StubRoutines._call_stub_return_address", &JvmLayout::call_stub_return_at},
};

constexpr WantedNumber kOffsets[] = {
    {"ThreadsList._length", &JvmLayout::list_length},
    {"ThreadsList._threads", &JvmLayout::list_threads},
    {"JavaThread._threadObj", &JvmLayout::thread_object},
    {"JavaThread._anchor", &JvmLayout::thread_anchor},
    {"JavaThread._thread_state", &JvmLayout::thread_state},
    {"JavaThread._osthread", &JvmLayout::thread_os_thread},
    {"JavaThread._stack_base", &JvmLayout::thread_stack_base},
    {"JavaThread._stack_size", &JvmLayout::thread_stack_size},
    {"JavaThread._current_pending_monitor", &JvmLayout::pending_monitor},
    {"JavaThread._current_waiting_monitor", &JvmLayout::waiting_monitor},
    {"OSThread._thread_id", &JvmLayout::os_thread_id},
    {"JavaFrameAnchor._last_Java_sp", &JvmLayout::anchor_sp},
    {"JavaFrameAnchor._last_Java_pc", &JvmLayout::anchor_pc},
    {"JavaFrameAnchor._last_Java_fp", &JvmLayout::anchor_fp},
    {"ObjectMonitor._object", &JvmLayout::monitor_object},
    {"ObjectMonitor._owner", &JvmLayout::monitor_owner},
    {"JavaCallWrapper._anchor", &JvmLayout::wrapper_anchor},
    {"oopDesc._mark", &JvmLayout::object_mark},
    {"oopDesc._metadata._klass", &JvmLayout::object_klass},
    {"Klass._name", &JvmLayout::klass_name},
    {"Klass._super", &JvmLayout::klass_super},
    {"Klass._java_mirror", &JvmLayout::klass_mirror},
    {"Klass._next_link", &JvmLayout::klass_next},
    {"InstanceKlass._fields", &JvmLayout::fields},
    {"InstanceKlass._java_fields_count", &JvmLayout::field_count},
    {"InstanceKlass._constants", &JvmLayout::constants},
    {"InstanceKlass._init_state", &JvmLayout::init_state},
    {"InstanceKlass._init_thread", &JvmLayout::init_thread},
    {"Symbol._length", &JvmLayout::symbol_length},
    {"Symbol._body[0]", &JvmLayout::symbol_body},
    {"ConstantPool._length", &JvmLayout::pool_length},
    {"ConstantPool._pool_holder", &JvmLayout::pool_holder},
    {"ConstantPool._source_file_name_index", &JvmLayout::pool_source_file},
    {"Array<int>._length", &JvmLayout::array_length},
    {"Array<u2>._data", &JvmLayout::array_of_u2},
    {"ClassLoaderData._next", &JvmLayout::loader_next},
    {"ClassLoaderData._klasses", &JvmLayout::loader_klasses},
    {"Method._constMethod", &JvmLayout::method_const},
    {"Method._access_flags", &JvmLayout::method_access},
    {"ConstMethod._constants", &JvmLayout::const_constants},
    {"ConstMethod._flags", &JvmLayout::const_flags},
    {"ConstMethod._code_size", &JvmLayout::const_code_size},
    {"ConstMethod._name_index", &JvmLayout::const_name},
    {"GrowableArrayBase._len", &JvmLayout::growable_length},
    {"GrowableArray<int>._data", &JvmLayout::growable_data},
    {"CodeHeap._memory", &JvmLayout::heap_memory},
    {"CodeHeap._segmap", &JvmLayout::heap_segments},
    {"CodeHeap._log2_segment_size", &JvmLayout::heap_shift},
    {"VirtualSpace._low", &JvmLayout::space_low},
    {"VirtualSpace._high", &JvmLayout::space_high},
    {"HeapBlock::Header._used", &JvmLayout::block_used},
    {"CodeBlob._name", &JvmLayout::blob_name},
    {"CodeBlob._size", &JvmLayout::blob_size},
    {"CodeBlob._frame_size", &JvmLayout::blob_frame_size},
    {"CodeBlob._code_begin", &JvmLayout::blob_code_begin},
    {"CompiledMethod._method", &JvmLayout::compiled_method},
    {"CompiledMethod._scopes_data_begin", &JvmLayout::compiled_scopes},
    {"CompiledMethod._deopt_handler_begin", &JvmLayout::compiled_deopt},
    {"nmethod._orig_pc_offset", &JvmLayout::native_orig_pc},
    {"nmethod._metadata_offset", &JvmLayout::native_metadata},
    {"nmethod._scopes_pcs_offset", &JvmLayout::native_scope_pcs},
    {"nmethod._dependencies_offset", &JvmLayout::native_dependencies},
    {"PcDesc._pc_offset", &JvmLayout::pc_offset},
    {"PcDesc._scope_decode_offset", &JvmLayout::pc_scope},
};

constexpr WantedNumber kSizes[] = {
    {"ConstantPool", &JvmLayout::pool_size},
    {"ConstMethod", &JvmLayout::const_size},
    {"HeapBlock", &JvmLayout::block_size},
    {"PcDesc", &JvmLayout::pc_size},
};

constexpr WantedNumber kConstants[] = {
    {"ConstMethod::_has_linenumber_table", &JvmLayout::has_lines},
    {"InstanceKlass::being_initialized", &JvmLayout::being_initialized},
    {"_thread_blocked", &JvmLayout::state_blocked},
    {"FieldInfo::access_flags_offset", &JvmLayout::field_flags},
    {"FieldInfo::name_index_offset", &JvmLayout::field_name},
    {"FieldInfo::signature_index_offset", &JvmLayout::field_signature},
    {"FieldInfo::low_packed_offset", &JvmLayout::field_low},
    {"FieldInfo::high_packed_offset", &JvmLayout::field_high},
    {"FieldInfo::field_slots", &JvmLayout::field_slots},
    {"FIELDINFO_TAG_SIZE", &JvmLayout::field_tag_bits},
};

Status Lacks(const std::string& name) {
  return Status::NotFound(fmt::format("its virtual machine does not tell where {} is", name));
}

// The options that it runs with, which decide how wide its pointers are.
Status ReadFlags(const Table& fields, const Table& sizes, RuntimeMemory* memory,
                 JvmLayout* layout) {
  for (const char* name : {"JVMFlag.flags", "JVMFlag.numFlags", "JVMFlag._name", "JVMFlag._addr"}) {
    if (fields.count(name) == 0) return Lacks(name);
  }
  if (sizes.count("JVMFlag") == 0) return Lacks("JVMFlag");
  const uint64_t begin = memory->Kept<uint64_t>(fields.at("JVMFlag.flags").address);
  const uint64_t count = memory->Kept<uint64_t>(fields.at("JVMFlag.numFlags").address);
  size_t found = 0;
  for (size_t i = 0; i < std::min<uint64_t>(count, kMostFlags) && found < 2; ++i) {
    const uint64_t flag = begin + i * sizes.at("JVMFlag").number;
    const std::string name =
        memory->KeptText(memory->Kept<uint64_t>(flag + fields.at("JVMFlag._name").number), 32);
    bool* const into = name == "UseCompressedOops"            ? &layout->narrow_oops
                       : name == "UseCompressedClassPointers" ? &layout->narrow_klasses
                                                              : nullptr;
    if (into == nullptr) continue;
    ++found;
    *into = memory->Kept<uint8_t>(
                memory->Kept<uint64_t>(flag + fields.at("JVMFlag._addr").number)) != 0;
  }
  return found == 2 ? Status() : Lacks("UseCompressedOops");
}

}  // namespace

Result<JvmLayout> ReadJvmLayout(const FindJvmSymbol& find, RuntimeMemory* memory) {
  Table fields, sizes, constants;
  TableReader tables(find, memory);
  if (!tables.ReadFields(&fields) || !tables.ReadSizes(&sizes) || !tables.ReadConstants(&constants))
    return Status::NotFound("its virtual machine has no tables for debuggers");
  const auto version = fields.find("JDK_Version._current");
  if (version == fields.end()) return Lacks("JDK_Version._current");
  const unsigned major = memory->Kept<uint8_t>(version->second.address);
  if (major != kMajorVersion)
    return Status::NotFound(
        fmt::format("Java {} is another version than {}", major, kMajorVersion));
  JvmLayout layout;
  const auto fill = [&](const auto& wanted, const Table& table, bool of_address) -> Status {
    for (const WantedNumber& each : wanted) {
      const auto entry = table.find(each.name);
      if (entry == table.end() || entry->second.is_static != of_address) return Lacks(each.name);
      layout.*each.into = of_address ? entry->second.address : entry->second.number;
    }
    return {};
  };
  for (const Status& status :
       {fill(kVariables, fields, true), fill(kOffsets, fields, false), fill(kSizes, sizes, false),
        fill(kConstants, constants, false), ReadFlags(fields, sizes, memory, &layout)}) {
    if (!status.ok()) return status;
  }
  for (const auto& [name, into] :
       {std::pair("frame::entry_frame_call_wrapper_offset", &layout.call_wrapper),
        std::pair("frame::interpreter_frame_sender_sp_offset", &layout.sender_sp)}) {
    const auto constant = constants.find(name);
    if (constant == constants.end()) return Lacks(name);
    *into = static_cast<int64_t>(constant->second.number);
  }
  layout.oop_base = memory->Kept<uint64_t>(layout.narrow_oop_base_at);
  layout.oop_shift = memory->Kept<uint32_t>(layout.narrow_oop_shift_at) & 31;
  layout.klass_base = memory->Kept<uint64_t>(layout.narrow_klass_base_at);
  layout.klass_shift = memory->Kept<uint32_t>(layout.narrow_klass_shift_at) & 31;
  layout.mirror_klass = memory->Kept<uint32_t>(layout.mirror_klass_at);
  layout.call_stub_return = memory->Kept<uint64_t>(layout.call_stub_return_at);
  return layout;
}

}  // namespace hangscope
