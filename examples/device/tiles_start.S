/* Reset entry of all harts: each goes to the image of its node and role, which clears nothing, since memory
   is zero, and has one hart. */
#include "layout.h"
#include "tiles.h"

  .section .text.start, "ax"
  .globl _start
_start:
  csrw mie, zero
  csrr a0, mhartid
  li t0, 5 /* roles */
  divu t1, a0, t0
  remu t2, a0, t0
  li t3, TILE_BYTES
  mul t1, t1, t3
  li t3, TILE_IMAGE_BYTES
  mul t2, t2, t3
  add t1, t1, t2
  li t3, 0x80000000
  add t1, t1, t3
  la t2, _start
  beq t1, t2, 1f
  jr t1
1:
  .option push
  .option norelax
  la gp, __global_pointer$
  .option pop
  la sp, hart_stacks
  li t0, 1 << STACK_SHIFT
  add sp, sp, t0
  bnez a0, 2f
  call platform_init
  li a0, 0
2:
  call hart_main
  tail park

  .section .stacks, "aw", @nobits
  .balign 16
  .globl hart_stacks
hart_stacks:
  .space 1 << STACK_SHIFT
