/* Reset entry of all harts: a stack for each, and hart_main(hart). Memory is zero when QEMU starts. */
  .section .text.start, "ax"
  .globl _start
_start:
  csrw mie, zero
  csrr a0, mhartid
  li t0, HANGSCOPE_CORES
  bgeu a0, t0, 1f
  la sp, stacks
  addi t0, a0, 1
  slli t0, t0, 12
  add sp, sp, t0
  call hart_main
1:
  wfi
  j 1b

  .bss
  .balign 16
stacks:
  .space HANGSCOPE_CORES << 12
