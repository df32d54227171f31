/* Dumps on a console, for when there is no other way out. Both are left out of a program that does
 * not call them, and of one without HANGSCOPE_DEFINE.
 *
 * hangscope_hexdump prints the scope itself, checksummed, for `hangscope show LOG` to decode on the
 * host:
 *
 *   ~hs 000000c0 0010000000000000ffffff7f0000... 1a2b3c4d
 *       offset   up to 32 bytes                  CRC-32 of the offset (4 bytes, little-endian) and
 *                                                the bytes
 *   ~hs end 00000123
 *           lines before
 *
 * Lines of zeros only are left out. The CRC is that of IEEE 802.3 (polynomial 0xedb88320
 * reflected). A host decodes the numbers by the magic in the first line.
 *
 * hangscope_dump prints the records of all cores with names, which costs their text:
 * HANGSCOPE_NAMES=1. */
#ifndef HANGSCOPE_TARGET_DUMP_H
#define HANGSCOPE_TARGET_DUMP_H

#include "hangscope/target/control.h"
#include "hangscope/target/kernel_events.h"

#ifdef __cplusplus
extern "C" {
#endif

#ifndef HANGSCOPE_NAMES
#define HANGSCOPE_NAMES 0
#endif

/* Prints one character. */
typedef void (*hangscope_put)(char character);

/* A name for an id of the user's lists, or null; for hangscope_dump. */
typedef const char* (*hangscope_namer)(uint32_t id);

#if HANGSCOPE_ENABLE

void hangscope_hexdump(hangscope_put put);
void hangscope_dump(hangscope_put put, hangscope_namer name_of);

#ifdef HANGSCOPE_DEFINE

HANGSCOPE_INLINE void hangscope_put_text(hangscope_put put, const char* text) {
  while (*text != '\0') put(*text++);
}

HANGSCOPE_INLINE void hangscope_put_hex(hangscope_put put, uint32_t value, int digits) {
  for (int i = digits; i-- > 0;) put("0123456789abcdef"[(value >> (4 * i)) & 15]);
}

HANGSCOPE_INLINE void hangscope_put_decimal(hangscope_put put, uint32_t value) {
  char digits[10];
  int count = 0;
  do {
    digits[count++] = (char)('0' + value % 10);
    value /= 10;
  } while (value != 0);
  while (count-- > 0) put(digits[count]);
}

HANGSCOPE_INLINE uint32_t hangscope_crc(uint32_t crc, uint32_t byte) {
  crc ^= byte & 0xff;
  for (int i = 0; i < 8; i++) crc = (crc >> 1) ^ (0xedb88320u & (0u - (crc & 1)));
  return crc;
}

void hangscope_hexdump(hangscope_put put) {
  const struct hangscope_scope* const scope = hangscope_the_scope();
  if (scope == 0) return;
  uint32_t lines = 0;
  for (uint32_t at = 0; at < sizeof *scope; at += 32) {
    /* A copy, so that what is printed is what is summed up. */
    uint32_t words[8];
    const uint32_t count = sizeof *scope - at < 32 ? (uint32_t)(sizeof *scope - at) / 4 : 8;
    uint32_t any = 0;
    for (uint32_t i = 0; i < count; i++) {
      words[i] = hangscope_port_load((const uint32_t*)(const void*)((const char*)scope + at) + i);
      any |= words[i];
    }
    if (any == 0) continue;
    hangscope_put_text(put, "~hs ");
    hangscope_put_hex(put, at, 8);
    put(' ');
    uint32_t crc = ~0u;
    for (int i = 0; i < 4; i++) crc = hangscope_crc(crc, at >> (8 * i));
    const unsigned char* const bytes = (const unsigned char*)words;
    for (uint32_t i = 0; i < count * 4; i++) {
      crc = hangscope_crc(crc, bytes[i]);
      hangscope_put_hex(put, bytes[i], 2);
    }
    put(' ');
    hangscope_put_hex(put, ~crc, 8);
    put('\n');
    lines++;
  }
  hangscope_put_text(put, "~hs end ");
  hangscope_put_hex(put, lines, 8);
  put('\n');
}

#if HANGSCOPE_NAMES

#define HANGSCOPE_EVENT_NAME(name, ...) \
  if (id == HANGSCOPE_ID_##name) return #name;
HANGSCOPE_INLINE const char* hangscope_known_name(uint32_t id) {
  HANGSCOPE_OWN_EVENTS(HANGSCOPE_EVENT_NAME)
#if HANGSCOPE_HISTORY
  HANGSCOPE_HISTORY_EVENTS(HANGSCOPE_EVENT_NAME)
#endif
  HANGSCOPE_KERNEL_EVENTS(HANGSCOPE_EVENT_NAME)
  return 0;
}

/* One line each, the oldest first: core, sequence number, time, name, parameters in decimal. */
void hangscope_dump(hangscope_put put, hangscope_namer name_of) {
  struct hangscope_event event;
  for (uint32_t core = 0; core < HANGSCOPE_CORES; core++) {
    const uint32_t count = hangscope_count(core);
    for (uint32_t i = 0; i < count; i++) {
      const enum hangscope_result result = hangscope_get(core, i, &event);
      if (result == HANGSCOPE_OUT_OF_RANGE) break;
      hangscope_put_decimal(put, core);
      put(' ');
      hangscope_put_decimal(put, (uint32_t)event.sequence);
      if (result != HANGSCOPE_OK) {
        hangscope_put_text(put, " lost\n");
        continue;
      }
      put(' ');
      hangscope_put_decimal(put, event.time);
      put(' ');
      const char* name = hangscope_known_name(event.id);
      if (name == 0 && name_of != 0) name = name_of(event.id);
      if (name != 0) {
        hangscope_put_text(put, name);
      } else {
        hangscope_put_text(put, "event ");
        hangscope_put_decimal(put, event.id);
      }
      for (int p = 0; p < HANGSCOPE_PARAMETERS; p++) {
        put(' ');
        hangscope_put_decimal(put, event.parameters[p]);
      }
      put('\n');
    }
  }
}

#endif
#endif

#else

HANGSCOPE_OFF_BEGIN
HANGSCOPE_OFF void hangscope_hexdump(hangscope_put put) { (void)put; }
HANGSCOPE_OFF void hangscope_dump(hangscope_put put, hangscope_namer name_of) {
  (void)put, (void)name_of;
}
HANGSCOPE_OFF_END

#endif

#ifdef __cplusplus
}
#endif

#endif
