/* Chooses the port: HANGSCOPE_PORT names a header of the user's own, or the compiler's target does.
 * (Not named port.h: that is what a user may call his, and #include would find this one first.) */
#ifndef HANGSCOPE_PORT_CHOOSE_H
#define HANGSCOPE_PORT_CHOOSE_H

#if defined(HANGSCOPE_PORT)
#include HANGSCOPE_PORT
#elif defined(__linux__)
#include "hangscope/port/linux.h"
#elif defined(__riscv)
#include "hangscope/port/riscv.h"
#elif defined(__ARM_ARCH_PROFILE) && __ARM_ARCH_PROFILE == 'M'
#include "hangscope/port/cortex_m.h"
#else
#error \
    "hangscope has no port for this target: write one after hangscope/port/example.h, and name it in HANGSCOPE_PORT"
#endif

#endif
