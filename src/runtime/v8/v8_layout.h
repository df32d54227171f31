// Where V8 keeps what is read of a program's JavaScript. It says so itself: the programs and
// libraries it is built into export its offsets, types and masks as numbers for debuggers, by names
// that begin with "v8dbg_". What these leave out is here, as of the V8 of Node.js 18 and 20 on
// 64-bit machines.
#ifndef HANGSCOPE_RUNTIME_V8_V8_LAYOUT_H
#define HANGSCOPE_RUNTIME_V8_V8_LAYOUT_H

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "base/status.h"
#include "runtime/runtime_memory.h"

namespace hangscope {

// Of a BytecodeArray, from the object's address on: the table that leads from code to source.
constexpr int64_t kSourcePositionTable = 32;

// A variable's address; nothing: there is none of that name.
using FindV8Symbol = std::function<std::optional<uint64_t>(std::string_view name)>;

// A frame, from its frame pointer on; an object, from its address on; types and masks as they are.
struct V8Layout {
  int64_t frame_context = 0, frame_function = 0, frame_bytecode = 0, frame_bytecode_offset = 0;
  int64_t map_type = 0, map_of = 0;
  int64_t function_shared = 0, shared_name = 0, shared_script = 0;
  int64_t script_name = 0, script_source = 0;
  int64_t array_length = 0, array_items = 0, bytecode_items = 0;
  int64_t string_length = 0, one_byte_text = 0, two_byte_text = 0;
  int64_t cons_first = 0, cons_second = 0, thin_actual = 0, sliced_parent = 0, sliced_offset = 0;
  int64_t scope_locals = 0, scope_first_local = 0;  // in words behind the object's map

  int64_t entry_frame = 0, construct_entry_frame = 0, exit_frame = 0, builtin_exit_frame = 0;
  int64_t first_other_type = 0;  // those below are strings
  int64_t shared_type = 0, script_type = 0, bytes_type = 0, bytecode_type = 0;
  int64_t representation_mask = 0, sequence_tag = 0, cons_tag = 0, thin_tag = 0, sliced_tag = 0;
  int64_t encoding_mask = 0, one_byte_tag = 0;

  // Fails where something of it is missing, or is not that of a V8 whose words are 64 bits wide; a
  // sentence.
  static Result<V8Layout> Read(const FindV8Symbol& find, RuntimeMemory* memory);
};

}  // namespace hangscope

#endif
