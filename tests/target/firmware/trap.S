/* Machine traps that may nest: registers and the two CSRs that a nested trap overwrites go on the
   stack of whoever was interrupted, then trap_handler(mcause) runs with interrupts off. It may
   switch them on. */

#if __riscv_xlen == 64
#define SAVE sd
#define LOAD ld
#define REG_BYTES 8
#else
#define SAVE sw
#define LOAD lw
#define REG_BYTES 4
#endif

#define FRAME_BYTES (20 * REG_BYTES) /* 16 caller-saved registers and two CSRs; a multiple of 16. */

  .text
  .balign 4
  .globl trap_entry
  .type trap_entry, @function
trap_entry:
  addi sp, sp, -FRAME_BYTES
  SAVE ra, 0 * REG_BYTES(sp)
  SAVE t0, 1 * REG_BYTES(sp)
  SAVE t1, 2 * REG_BYTES(sp)
  SAVE t2, 3 * REG_BYTES(sp)
  SAVE t3, 4 * REG_BYTES(sp)
  SAVE t4, 5 * REG_BYTES(sp)
  SAVE t5, 6 * REG_BYTES(sp)
  SAVE t6, 7 * REG_BYTES(sp)
  SAVE a0, 8 * REG_BYTES(sp)
  SAVE a1, 9 * REG_BYTES(sp)
  SAVE a2, 10 * REG_BYTES(sp)
  SAVE a3, 11 * REG_BYTES(sp)
  SAVE a4, 12 * REG_BYTES(sp)
  SAVE a5, 13 * REG_BYTES(sp)
  SAVE a6, 14 * REG_BYTES(sp)
  SAVE a7, 15 * REG_BYTES(sp)
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
  LOAD ra, 0 * REG_BYTES(sp)
  LOAD t0, 1 * REG_BYTES(sp)
  LOAD t1, 2 * REG_BYTES(sp)
  LOAD t2, 3 * REG_BYTES(sp)
  LOAD t3, 4 * REG_BYTES(sp)
  LOAD t4, 5 * REG_BYTES(sp)
  LOAD t5, 6 * REG_BYTES(sp)
  LOAD t6, 7 * REG_BYTES(sp)
  LOAD a0, 8 * REG_BYTES(sp)
  LOAD a1, 9 * REG_BYTES(sp)
  LOAD a2, 10 * REG_BYTES(sp)
  LOAD a3, 11 * REG_BYTES(sp)
  LOAD a4, 12 * REG_BYTES(sp)
  LOAD a5, 13 * REG_BYTES(sp)
  LOAD a6, 14 * REG_BYTES(sp)
  LOAD a7, 15 * REG_BYTES(sp)
  addi sp, sp, FRAME_BYTES
  mret
  .size trap_entry, . - trap_entry
