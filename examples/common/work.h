/* Real computing: what a firmware does before it hangs, or instead of hanging. */
#ifndef EXAMPLES_COMMON_WORK_H
#define EXAMPLES_COMMON_WORK_H

#include <stdint.h>

/* Not inlined, so that a trace names them. */
#define WORK __attribute__((noinline))

/* CRC-32 as in Ethernet and zip, bit by bit. Start with 0; results chain. */
WORK uint32_t crc32_update(uint32_t crc, const void *data, uint32_t size_bytes);

/* Primes below limit; composite[] holds limit bytes. */
WORK uint32_t sieve_count_primes(uint8_t *composite, uint32_t limit);

WORK void copy_words(uint32_t *to, const uint32_t *from, uint32_t count);
WORK void sort_words(uint32_t *words, uint32_t count);

/* xorshift32; *state must not be 0. */
WORK uint32_t next_random(uint32_t *state);

/* One mixed portion on data that differs every time: some 7000 translation blocks. */
WORK void work_once(unsigned hart);

/* Known answers first (a wrong one ends QEMU with exit status 1), then `portions` of the above. */
void work_warm_up(unsigned hart, unsigned portions);

_Noreturn void work_for_ever(unsigned hart);

#endif
