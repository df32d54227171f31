/* Words of the program's own that a watcher shows beside what cores say, and dumps: counters of
 * circular buffers, semaphores, the status of a bus, a mode that the host wrote. They cost the
 * target nothing, no instruction either: an entry of the catalog says where they are, and the host
 * reads them.
 *
 *   static struct buffer buffers[CORES];
 *   HANGSCOPE_SHOW(core, buffers[0].received, sizeof buffers[0], u32, "cb0 received");
 *   HANGSCOPE_DUMP(all, lost_packets, 0, u32, "lost packets");        on a dump only
 *   HANGSCOPE_DUMP_AT(all, 0xffb20200, 0, x32, "bus status");          a register
 *
 * Inside a function that the program keeps, whether it is ever called or not. `per`: all for one
 * word, core or node for one of each, `stride` bytes apart. `type`: u8 u16 u32 i8 i16 i32 bool
 * char4, x8 x16 x32 in hexadecimal, or an enumeration (target/events.h). Address and stride are
 * constants; the name is as the catalog's texts (target/catalog.h).
 *
 * What is shown a host reads while the program runs, with each finding. What reading changes, as a
 * register that clears itself, belongs to a dump, if anywhere. */
#ifndef HANGSCOPE_TARGET_SHOW_H
#define HANGSCOPE_TARGET_SHOW_H

#include "hangscope/target/catalog.h"

#define HANGSCOPE_SHOW(per, first, stride, type, name) \
  HANGSCOPE_WORD_ENTRY(&(first), #per, stride, #type, "shown", name)
#define HANGSCOPE_DUMP(per, first, stride, type, name) \
  HANGSCOPE_WORD_ENTRY(&(first), #per, stride, #type, "dumped", name)
#define HANGSCOPE_SHOW_AT(per, address, stride, type, name) \
  HANGSCOPE_WORD_ENTRY(address, #per, stride, #type, "shown", name)
#define HANGSCOPE_DUMP_AT(per, address, stride, type, name) \
  HANGSCOPE_WORD_ENTRY(address, #per, stride, #type, "dumped", name)

#if HANGSCOPE_LINK_ORDER
#define HANGSCOPE_WORD_SECTION ",\"o\",%%progbits,.Lhangscope_word%="
#else
#define HANGSCOPE_WORD_SECTION ",\"\",%%progbits"
#endif

/* A constant as the assembler takes it: GCC's RISC-V has %c for numbers only, and needs it for
 * none.
 */
#ifdef __riscv
#define HANGSCOPE_WORD_OPERANDS "%0, %1"
#else
#define HANGSCOPE_WORD_OPERANDS "%c0, %c1"
#endif

#if HANGSCOPE_ENABLE
#define HANGSCOPE_WORD_ENTRY(address, per, stride, type, when, name) \
  __asm__ volatile(".Lhangscope_word%=:\n"                                                        \
                   ".pushsection " HANGSCOPE_PLACES_SECTION HANGSCOPE_WORD_SECTION                \
                   "\n"                                                                           \
                   ".balign 4\n"                                                                  \
                   "2: .4byte " HANGSCOPE_TEXT(HANGSCOPE_CATALOG_MAGIC) ", " HANGSCOPE_TEXT(      \
                       HANGSCOPE_CATALOG_VERSION) ", 3f - 2b\n"                                   \
                   ".4byte " HANGSCOPE_TEXT(HANGSCOPE_CATALOG_WORD) ", " HANGSCOPE_WORD_OPERANDS "\n" \
                   ".asciz \"" name "\", \"\", \"" type " " per " " when "\"\n"                   \
                   ".balign 4\n"                                                                  \
                   "3:\n"                                                                         \
                   ".popsection" ::"i"(address),                                                  \
                   "i"(stride))
#else
#define HANGSCOPE_WORD_ENTRY(address, per, stride, type, when, name) ((void)0)
#endif

#endif
