/* The way into the kernel and out of it: all that a task's code may use is saved on its stack, in the
   order of struct frame (kernel.c). gp and tp never change. */

#include "trap_frame.h"

#define FRAME_BYTES (32 * REG_BYTES) /* 28 registers, two CSRs, two unused: a multiple of 16. */

.macro x5_to_x31 OPERATION
  .irp number, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31
  \OPERATION x\number, (\number - 4) * REG_BYTES(sp)
  .endr
.endm

  .text
  .balign 4
  .globl kernel_trap_entry
  .type kernel_trap_entry, @function
kernel_trap_entry:
  addi sp, sp, -FRAME_BYTES
  SAVE ra, 0(sp)
  x5_to_x31 SAVE
  csrr t0, mepc
  csrr t1, mstatus
  SAVE t0, 28 * REG_BYTES(sp)
  SAVE t1, 29 * REG_BYTES(sp)
  mv a0, sp
  csrr a1, mcause
  call kernel_trap
  .size kernel_trap_entry, . - kernel_trap_entry

  /* a0: the frame of the task that runs now. */
  .globl kernel_resume
  .type kernel_resume, @function
kernel_resume:
  mv sp, a0
  LOAD t0, 28 * REG_BYTES(sp)
  LOAD t1, 29 * REG_BYTES(sp)
  csrw mepc, t0
  csrw mstatus, t1
  LOAD ra, 0(sp)
  x5_to_x31 LOAD
  addi sp, sp, FRAME_BYTES
  mret
  .size kernel_resume, . - kernel_resume
