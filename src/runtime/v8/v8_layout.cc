#include "runtime/v8/v8_layout.h"

#include <fmt/format.h>

#include <string>

namespace hangscope {
namespace {

constexpr int64_t kFurthest = 1 << 16;  // of an offset, a type or a mask

struct WantedOfV8 {
  const char* name;  // behind "v8dbg_"
  int64_t V8Layout::*into;
};

constexpr WantedOfV8 kWantedOfV8[] = {
    {"off_fp_context_or_frame_type", &V8Layout::frame_context},
    {"off_fp_function", &V8Layout::frame_function},
    {"off_fp_bytecode_array", &V8Layout::frame_bytecode},
    {"off_fp_bytecode_offset", &V8Layout::frame_bytecode_offset},
    {"class_HeapObject__map__Map", &V8Layout::map_of},
    {"class_Map__instance_type__uint16_t", &V8Layout::map_type},
    {"class_JSFunction__shared__SharedFunctionInfo", &V8Layout::function_shared},
    {"class_SharedFunctionInfo__name_or_scope_info__Object", &V8Layout::shared_name},
    {"class_SharedFunctionInfo__script_or_debug_info__HeapObject", &V8Layout::shared_script},
    {"class_Script__name__Object", &V8Layout::script_name},
    {"class_Script__source__Object", &V8Layout::script_source},
    {"class_FixedArrayBase__length__SMI", &V8Layout::array_length},
    {"class_FixedArray__data__uintptr_t", &V8Layout::array_items},
    {"class_BytecodeArray__data__uintptr_t", &V8Layout::bytecode_items},
    {"class_String__length__int32_t", &V8Layout::string_length},
    {"class_SeqOneByteString__chars__char", &V8Layout::one_byte_text},
    {"class_SeqTwoByteString__chars__char", &V8Layout::two_byte_text},
    {"class_ConsString__first__String", &V8Layout::cons_first},
    {"class_ConsString__second__String", &V8Layout::cons_second},
    {"class_ThinString__actual__String", &V8Layout::thin_actual},
    {"class_SlicedString__parent__String", &V8Layout::sliced_parent},
    {"class_SlicedString__offset__SMI", &V8Layout::sliced_offset},
    {"scopeinfo_idx_ncontextlocals", &V8Layout::scope_locals},
    {"scopeinfo_idx_first_vars", &V8Layout::scope_first_local},
    {"frametype_EntryFrame", &V8Layout::entry_frame},
    {"frametype_ConstructEntryFrame", &V8Layout::construct_entry_frame},
    {"frametype_ExitFrame", &V8Layout::exit_frame},
    {"frametype_BuiltinExitFrame", &V8Layout::builtin_exit_frame},
    {"FirstNonstringType", &V8Layout::first_other_type},
    {"type_SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE", &V8Layout::shared_type},
    {"type_Script__SCRIPT_TYPE", &V8Layout::script_type},
    {"type_ByteArray__BYTE_ARRAY_TYPE", &V8Layout::bytes_type},
    {"type_BytecodeArray__BYTECODE_ARRAY_TYPE", &V8Layout::bytecode_type},
    {"StringRepresentationMask", &V8Layout::representation_mask},
    {"SeqStringTag", &V8Layout::sequence_tag},
    {"ConsStringTag", &V8Layout::cons_tag},
    {"ThinStringTag", &V8Layout::thin_tag},
    {"SlicedStringTag", &V8Layout::sliced_tag},
    {"StringEncodingMask", &V8Layout::encoding_mask},
    {"OneByteStringTag", &V8Layout::one_byte_tag},
};

// How words tell objects from small numbers, which every 64-bit V8 does alike but where it
// compresses pointers.
struct FixedOfV8 {
  const char* name;
  int64_t value;
};
constexpr FixedOfV8 kFixedOfV8[] = {
    {"TaggedSize", 8},    {"SmiTag", 0},        {"SmiTagMask", 1},    {"HeapObjectTagMask", 3},
    {"HeapObjectTag", 1}, {"SmiValueShift", 1}, {"SmiShiftSize", 31},
};

}  // namespace

Result<V8Layout> V8Layout::Read(const FindV8Symbol& find, RuntimeMemory* memory) {
  const auto number = [&](const char* name) -> std::optional<int64_t> {
    const auto at = find(std::string("v8dbg_") + name);
    int32_t value = 0;
    if (!at || !memory->KeptInto(*at, &value, sizeof value)) return std::nullopt;
    return value;
  };
  V8Layout layout;
  for (const WantedOfV8& wanted : kWantedOfV8) {
    const auto value = number(wanted.name);
    if (!value || *value > kFurthest || *value < -kFurthest)
      return Status::NotFound(fmt::format("this V8 does not say v8dbg_{}", wanted.name));
    layout.*wanted.into = *value;
  }
  for (const FixedOfV8& fixed : kFixedOfV8) {
    const auto value = number(fixed.name);
    if (!value || *value != fixed.value)
      return Status::NotFound(fmt::format("this V8 has its words in another way: v8dbg_{} is {}",
                                          fixed.name,
                                          value ? std::to_string(*value) : "not there"));
  }
  return layout;
}

}  // namespace hangscope
