/* Chooses the port: HANGSCOPE_PORT names a header of the user's own, or the compiler's target does. */
#ifndef HANGSCOPE_PORT_PORT_H
#define HANGSCOPE_PORT_PORT_H

#if defined(HANGSCOPE_PORT)
#include HANGSCOPE_PORT
#elif defined(__linux__)
#include "hangscope/port/linux.h"
#elif defined(__riscv)
#include "hangscope/port/riscv.h"
#else
#error "hangscope has no port for this target: write one after hangscope/port/example.h, and name it in HANGSCOPE_PORT"
#endif

#endif
