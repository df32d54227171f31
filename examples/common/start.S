/* Reset entry of all harts. Hart 0 clears .bss and looks at the machine while the others wait;
   then every hart calls hart_main(hart) on its own stack and parks if that returns. */
#include "layout.h"

  .section .text.start, "ax"
  .globl _start
  .type _start, @function
_start:
  /* With mie = 0 nothing interrupts a hart, or wakes it from wfi, unless it asks for it. */
  csrw mie, zero
  la t0, fault_entry
  csrw mtvec, t0

  csrr a0, mhartid
  li t0, MAX_HARTS
  bltu a0, t0, 1f
  tail park
1:
  .option push
  .option norelax
  la gp, __global_pointer$
  .option pop

  la sp, hart_stacks
  addi t0, a0, 1
  slli t0, t0, STACK_SHIFT
  add sp, sp, t0
  bnez a0, boot_wait

  la t0, bss_start
  la t1, bss_end
2:
  bgeu t0, t1, 3f
  sw zero, 0(t0)
  addi t0, t0, 4
  j 2b
3:
  call platform_init
  /* Releases the cleared .bss to boot_wait below, which loads the word and then fences. */
  fence rw, w
  la t0, boot_ready
  li t1, 1
  sw t1, 0(t0)
  li a0, 0
  j boot_done
  .size _start, . - _start

  .type boot_wait, @function
boot_wait:
  la t0, boot_ready
1:
  lw t1, 0(t0)
  beqz t1, 1b
  fence r, rw
boot_done:
  call hart_main
  tail park
  .size boot_wait, . - boot_wait

  /* mtvec wants four-byte alignment. No firmware expects an exception, so one ends the run. */
  .balign 4
  .type fault_entry, @function
fault_entry:
  csrr a0, mcause
  andi a0, a0, 0xff
  tail platform_fail
  .size fault_entry, . - fault_entry

  /* Not in .bss: the other harts read it while hart 0 clears that. */
  .section .data
  .balign 4
boot_ready:
  .word 0

  .section .stacks, "aw", @nobits
  .balign 16
  .globl hart_stacks
hart_stacks:
  .space MAX_HARTS << STACK_SHIFT
