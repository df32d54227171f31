/* No interrupt is taken, so what comes here is a fault of the program: its core stops and says so. */
  .text
  .balign 4
  .globl device_trap
  .type device_trap, @function
device_trap:
  csrr a0, mcause
  csrr a1, mepc
  csrr a2, mtval
  call hangscope_hardware_fault
  li a0, 3 /* faults are switched off */
  tail platform_fail
  .size device_trap, . - device_trap
