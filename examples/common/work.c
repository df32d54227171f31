#include "work.h"

#include "platform.h"

#define SIEVE_LIMIT 1024
#define WORDS 64

/* One per hart, so that no work waits for another hart's. */
struct work_area {
  uint32_t random;
  uint32_t portions;
  uint32_t crc;
  uint32_t primes;
  uint32_t source[WORDS];
  uint32_t sorted[WORDS];
  uint8_t composite[SIEVE_LIMIT];
};

static struct work_area areas[MAX_HARTS];

uint32_t crc32_update(uint32_t crc, const void *data, uint32_t size_bytes) {
  const uint8_t *bytes = data;
  crc = ~crc;
  for (uint32_t i = 0; i < size_bytes; i++) {
    crc ^= bytes[i];
    for (int bit = 0; bit < 8; bit++) {
      crc = (crc >> 1) ^ (0xedb88320u & -(crc & 1));
    }
  }
  return ~crc;
}

uint32_t sieve_count_primes(uint8_t *composite, uint32_t limit) {
  uint32_t primes = 0;
  for (uint32_t i = 0; i < limit; i++) {
    composite[i] = i < 2;
  }
  for (uint32_t i = 2; i < limit; i++) {
    if (composite[i]) {
      continue;
    }
    primes++;
    for (uint32_t multiple = i * i; multiple < limit; multiple += i) {
      composite[multiple] = 1;
    }
  }
  return primes;
}

void copy_words(uint32_t *to, const uint32_t *from, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    to[i] = from[i];
  }
}

void sort_words(uint32_t *words, uint32_t count) {
  for (uint32_t i = 1; i < count; i++) {
    uint32_t word = words[i];
    uint32_t hole = i;
    while (hole > 0 && words[hole - 1] > word) {
      words[hole] = words[hole - 1];
      hole--;
    }
    words[hole] = word;
  }
}

uint32_t next_random(uint32_t *state) {
  uint32_t x = *state;
  x ^= x << 13;
  x ^= x >> 17;
  x ^= x << 5;
  *state = x;
  return x;
}

void work_once(unsigned hart) {
  struct work_area *area = &areas[hart];
  if (area->random == 0) {
    area->random = 0x9e3779b9u + hart;
  }
  for (uint32_t i = 0; i < WORDS; i++) {
    area->source[i] = next_random(&area->random);
  }
  copy_words(area->sorted, area->source, WORDS);
  sort_words(area->sorted, WORDS);
  area->crc = crc32_update(area->crc, area->sorted, sizeof(area->sorted));
  /* A different limit each time, so that no two portions look alike in a trace. */
  uint32_t limit = SIEVE_LIMIT / 2 + area->crc % (SIEVE_LIMIT / 2);
  area->primes = sieve_count_primes(area->composite, limit);
  area->portions++;
}

void work_warm_up(unsigned hart, unsigned portions) {
  if (crc32_update(0, "123456789", 9) != 0xcbf43926u ||
      sieve_count_primes(areas[hart].composite, 1000) != 168) {
    platform_fail(1);
  }
  for (unsigned i = 0; i < portions; i++) {
    work_once(hart);
  }
}

_Noreturn void work_for_ever(unsigned hart) {
  for (;;) {
    work_once(hart);
  }
}
