/* Marks round a piece of code, for `hangscope cost --mark NAME` to count what it executes. They
 * cost the target nothing: no instruction, and an entry in a section that is not loaded.
 *
 *   HANGSCOPE_MARK_BEGIN(push);
 *   queue_push(queue, item);   // may be inlined
 *   HANGSCOPE_MARK_END(push);
 *
 * Whatever the hart executes from the one to the other counts, functions that are called and
 * interrupts included. The compiler may move what is not volatile across a mark, as it may across
 * anything. A name may be used in many places, each copy of inlined code included: they add up. */
#ifndef HANGSCOPE_TARGET_MARK_H
#define HANGSCOPE_TARGET_MARK_H

#include "hangscope/config.h"

/* An entry: kind (4 bytes), address (a word), name with a NUL, up to a multiple of 4. */
#define HANGSCOPE_MARK_BEGIN(name) HANGSCOPE_MARK_(1, name)
#define HANGSCOPE_MARK_END(name) HANGSCOPE_MARK_(2, name)

#if __SIZEOF_POINTER__ == 8
#define HANGSCOPE_MARK_WORD_ ".8byte"
#else
#define HANGSCOPE_MARK_WORD_ ".4byte"
#endif

/* A linker that drops the code drops its marks, and no others (target/catalog.h). */
#if HANGSCOPE_LINK_ORDER
#define HANGSCOPE_MARK_SECTION_ "\"o\",%%progbits,.Lhangscope_mark%="
#else
#define HANGSCOPE_MARK_SECTION_ "\"\",%%progbits"
#endif

#define HANGSCOPE_MARK_(kind, name)                            \
  __asm__ volatile(                                            \
      ".Lhangscope_mark%=: 777:\n"                             \
      ".pushsection .hangscope_marks," HANGSCOPE_MARK_SECTION_ \
      "\n"                                                     \
      ".4byte " #kind "\n" HANGSCOPE_MARK_WORD_                \
      " 777b\n"                                                \
      ".asciz \"" #name                                        \
      "\"\n"                                                   \
      ".balign 4\n"                                            \
      ".popsection" ::)

#endif
