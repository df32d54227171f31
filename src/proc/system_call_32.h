// The system calls of 32-bit x86 programs, which have numbers and layouts of their own.
#ifndef HANGSCOPE_PROC_SYSTEM_CALL_32_H
#define HANGSCOPE_PROC_SYSTEM_CALL_32_H

#include "proc/proc_text.h"
#include "proc/process_memory.h"

namespace hangscope {

struct NativeCall {
  TaskSystemCall call;  // as a 64-bit program would make it; number -1: it is not known here
  // Times and lists of operations that its arguments point to are laid out as 32-bit ones: only
  // whether there are such can be told.
  bool has_short_times = false;
};

// `call`: of a 32-bit program, with the i386 number. Only on x86-64; elsewhere none is known.
NativeCall NativeCallOf32(const TaskSystemCall& call, const ReadMemory& read);

}  // namespace hangscope

#endif
