/* Machine traps that may nest: registers and the two CSRs that a nested trap overwrites go on the
   stack of whoever was interrupted, then trap_handler(mcause) runs with interrupts off. It may
   switch them on. */

#include "trap_frame.h"

#define FRAME_BYTES (20 * REG_BYTES) /* 16 caller-saved registers and two CSRs; a multiple of 16. */

  .text
  .balign 4
  .globl trap_entry
  .type trap_entry, @function
trap_entry:
  addi sp, sp, -FRAME_BYTES
  caller_saved SAVE
  csrr t0, mepc
  csrr t1, mstatus
  SAVE t0, 16 * REG_BYTES(sp)
  SAVE t1, 17 * REG_BYTES(sp)
  csrr a0, mcause
  call trap_handler
  csrci mstatus, 8 /* Nothing may come between here and mret. */
  LOAD t0, 16 * REG_BYTES(sp)
  LOAD t1, 17 * REG_BYTES(sp)
  csrw mepc, t0
  csrw mstatus, t1
  caller_saved LOAD
  addi sp, sp, FRAME_BYTES
  mret
  .size trap_entry, . - trap_entry
