/* Machine interrupts through a vector table: entry n serves cause n, and the timer is 7. */

#if __riscv_xlen == 64
#define SAVE sd
#define LOAD ld
#define REG_BYTES 8
#else
#define SAVE sw
#define LOAD lw
#define REG_BYTES 4
#endif

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
  csrr a0, mhartid
  call timer_interrupt
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
  .size timer_entry, . - timer_entry
