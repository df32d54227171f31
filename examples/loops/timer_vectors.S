/* Machine interrupts through a vector table: entry n serves cause n, and the timer is 7. */

#include "trap_frame.h"

#define FRAME_BYTES (16 * REG_BYTES) /* All sixteen caller-saved registers; a multiple of 16. */

  .text
  .balign 256
  .globl timer_vectors
  .type timer_vectors, @function
timer_vectors:
  .option push
  .option norvc /* Each entry must be four bytes. */
  .rept 7
  j unexpected_trap
  .endr
  j timer_entry
  .option pop
  .size timer_vectors, . - timer_vectors

  .type unexpected_trap, @function
unexpected_trap:
  csrr a0, mcause
  andi a0, a0, 0xff
  tail platform_fail
  .size unexpected_trap, . - unexpected_trap

  .type timer_entry, @function
timer_entry:
  addi sp, sp, -FRAME_BYTES
  caller_saved SAVE
  csrr a0, mhartid
  call timer_interrupt
  caller_saved LOAD
  addi sp, sp, FRAME_BYTES
  mret
  .size timer_entry, . - timer_entry
