/* For assembly: how wide a register is, and those that a called C function may change. */
#ifndef HANGSCOPE_EXAMPLES_TRAP_FRAME_H
#define HANGSCOPE_EXAMPLES_TRAP_FRAME_H

#if __riscv_xlen == 64
#define SAVE sd
#define LOAD ld
#define REG_BYTES 8
#else
#define SAVE sw
#define LOAD lw
#define REG_BYTES 4
#endif

/* The sixteen in words 0 to 15 of the stack: `caller_saved SAVE`, `caller_saved LOAD`. */
.macro caller_saved OPERATION
  .set .Lword, 0
  .irp register, ra, t0, t1, t2, t3, t4, t5, t6, a0, a1, a2, a3, a4, a5, a6, a7
  \OPERATION \register, .Lword * REG_BYTES(sp)
  .set .Lword, .Lword + 1
  .endr
.endm

#endif
