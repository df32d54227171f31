// A program for the ELF fuzzer's first input: fuzz/README.md.
volatile int flag;
static int wait_for_flag(void) {
  while (flag == 0) {
  }
  return flag;
}
void _start(void) {
  for (;;) flag = wait_for_flag();
}
