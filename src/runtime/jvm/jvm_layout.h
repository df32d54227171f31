// Where a virtual machine of Java keeps what is read of it. It says so itself: libjvm.so exports
// tables of its fields, sizes and constants, for debuggers. What they leave out is here, as numbers
// of HotSpot 17 on x86-64.
#ifndef HANGSCOPE_RUNTIME_JVM_JVM_LAYOUT_H
#define HANGSCOPE_RUNTIME_JVM_JVM_LAYOUT_H

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "base/status.h"
#include "runtime/runtime_memory.h"

namespace hangscope {

// Of an interpreted frame, from its frame pointer on, in words.
constexpr int64_t kInterpretedMethod = -3;
constexpr int64_t kInterpretedLocals = -7;
constexpr int64_t kInterpretedBytecode = -8;

constexpr uint64_t kBytesOfWord = 8;

// Those that end in _at are addresses of variables, those in _size sizes; the rest are offsets.
struct JvmLayout {
  uint64_t thread_list_at = 0;
  uint64_t list_length = 0, list_threads = 0;
  uint64_t thread_object = 0, thread_anchor = 0, thread_state = 0, thread_os_thread = 0;
  uint64_t thread_stack_base = 0, thread_stack_size = 0;
  uint64_t pending_monitor = 0, waiting_monitor = 0;
  uint64_t os_thread_id = 0;
  uint64_t anchor_sp = 0, anchor_pc = 0, anchor_fp = 0;
  uint64_t monitor_object = 0, monitor_owner = 0;
  uint64_t wrapper_anchor = 0;

  uint64_t narrow_oop_base_at = 0, narrow_oop_shift_at = 0;
  uint64_t narrow_klass_base_at = 0, narrow_klass_shift_at = 0;
  uint64_t object_mark = 0, object_klass = 0;
  uint64_t klass_name = 0, klass_super = 0, klass_mirror = 0, klass_next = 0;
  uint64_t fields = 0, field_count = 0, constants = 0, init_state = 0, init_thread = 0;
  uint64_t mirror_klass_at = 0;
  uint64_t symbol_length = 0, symbol_body = 0;
  uint64_t pool_size = 0, pool_length = 0, pool_holder = 0, pool_source_file = 0;
  uint64_t array_length = 0, array_of_u2 = 0;
  uint64_t class_loaders_at = 0, loader_next = 0, loader_klasses = 0;

  uint64_t method_const = 0, method_access = 0;
  uint64_t const_size = 0, const_constants = 0, const_flags = 0, const_code_size = 0;
  uint64_t const_name = 0;

  uint64_t code_heaps_at = 0, growable_length = 0, growable_data = 0;
  uint64_t heap_memory = 0, heap_segments = 0, heap_shift = 0;
  uint64_t space_low = 0, space_high = 0;
  uint64_t block_size = 0, block_used = 0;
  uint64_t blob_name = 0, blob_frame_size = 0, blob_code_begin = 0, blob_size = 0;
  uint64_t compiled_method = 0, compiled_scopes = 0, compiled_deopt = 0;
  uint64_t native_orig_pc = 0, native_metadata = 0, native_scope_pcs = 0, native_dependencies = 0;
  uint64_t call_stub_return_at = 0;
  uint64_t pc_offset = 0, pc_scope = 0, pc_size = 0;

  // Constants.
  uint64_t has_lines = 0;          // flag of a constant method
  uint64_t being_initialized = 0;  // state of a class
  uint64_t state_blocked = 0;      // of a thread
  uint64_t field_slots = 0, field_name = 0, field_signature = 0, field_low = 0, field_high = 0;
  uint64_t field_flags = 0, field_tag_bits = 0;
  int64_t call_wrapper = 0;  // in words from the frame pointer
  int64_t sender_sp = 0;

  // Read once.
  bool narrow_oops = false, narrow_klasses = false;
  uint64_t oop_base = 0, klass_base = 0, mirror_klass = 0, call_stub_return = 0;
  uint32_t oop_shift = 0, klass_shift = 0;
};

using FindJvmSymbol = std::function<std::optional<uint64_t>(std::string_view name)>;

// Fails where the version is another, or a table has not what is needed; a sentence.
Result<JvmLayout> ReadJvmLayout(const FindJvmSymbol& find, RuntimeMemory* memory);

}  // namespace hangscope

#endif
