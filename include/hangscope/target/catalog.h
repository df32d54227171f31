/* What goes into the catalog (abi/catalog.h) besides events: places in the code, and names of
 * numbers.
 *
 *   #define DEVICE_ROLES(NAME) NAME(0, "reader") NAME(1, "writer")
 *   HANGSCOPE_NAMED(device_roles, HANGSCOPE_CATALOG_ROLE, DEVICE_ROLES);
 *
 * Texts are literals without a quote, a backslash or a percent sign in them. */
#ifndef HANGSCOPE_TARGET_CATALOG_H
#define HANGSCOPE_TARGET_CATALOG_H

#include "hangscope/abi/catalog.h"
#include "hangscope/config.h"

#define HANGSCOPE_TEXT(tokens) HANGSCOPE_TEXT_(tokens)
#define HANGSCOPE_TEXT_(tokens) #tokens

/* Goes to a piece of the places section that belongs to the code at label 1b, so that
 * --gc-sections drops both or neither. A section's link needs a symbol of its own for each copy
 * that a compiler makes of the code: \@ is a number that the GNU assembler counts up. Clang's
 * assembler counts anew for each statement, so there the piece belongs to nothing, which is as good
 * for LLVM's linker. */
#if HANGSCOPE_LINK_ORDER
#define HANGSCOPE_PUSH_PLACE_SECTION        \
  ".macro hangscope_place\n"                \
  ".Lhangscope_place\\@:\n"                 \
  ".pushsection " HANGSCOPE_PLACES_SECTION  \
  ",\"o\",%progbits,.Lhangscope_place\\@\n" \
  ".endm\n"                                 \
  "hangscope_place\n"                       \
  ".purgem hangscope_place\n"
#else
#define HANGSCOPE_PUSH_PLACE_SECTION ".pushsection " HANGSCOPE_PLACES_SECTION ",\"\",%progbits\n"
#endif

/* An entry of the catalog for the place in the code where this stands: a list of one entry. `id`
 * and `classes` are what the assembler makes of them; 1b is the address of the code. */
#define HANGSCOPE_CATALOG_HERE(kind, id, classes, name, text) \
  __asm__("1:\n"                                                                                   \
          HANGSCOPE_PUSH_PLACE_SECTION                                                             \
          ".balign 4\n"                                                                            \
          "2: .4byte " HANGSCOPE_TEXT(HANGSCOPE_CATALOG_MAGIC) ", " HANGSCOPE_TEXT(HANGSCOPE_CATALOG_VERSION) ", 3f - 2b\n" \
          ".4byte " HANGSCOPE_TEXT(kind) ", " id ", " classes "\n"                                 \
          ".asciz \"" name "\"\n"                                                                  \
          ".asciz \"" text "\"\n"                                                                  \
          ".asciz \"" __FILE__ ":" HANGSCOPE_TEXT(__LINE__) "\"\n"                                 \
          ".balign 4\n"                                                                            \
          "3:\n"                                                                                   \
          ".popsection\n")

/* At file scope: LIST(NAME) has NAME(number, "name") for each; numbers are literals. NAME(number,
 * "name", "path") for kernels. */
#if HANGSCOPE_ENABLE
#define HANGSCOPE_NAMED(list_name, kind, LIST)                                                     \
  __asm__(".pushsection " HANGSCOPE_CATALOG_SECTION                                                \
          ",\"\",%progbits\n"                                                                      \
          ".balign 4\n"                                                                            \
          ".Lhangscope_" #list_name                                                                \
          "_list:\n"                                                                               \
          ".4byte " HANGSCOPE_TEXT(HANGSCOPE_CATALOG_MAGIC) ", " HANGSCOPE_TEXT(                   \
              HANGSCOPE_CATALOG_VERSION) ", .Lhangscope_" #list_name                               \
                                         "_end - .Lhangscope_" #list_name                          \
                                         "_list\n"                                                 \
                                         ".set .Lhangscope_kind, " HANGSCOPE_TEXT(kind) "\n" LIST( \
                                             HANGSCOPE_NAMED_ENTRY) ".Lhangscope_" #list_name      \
                                                                    "_end:\n"                      \
                                                                    ".popsection\n");              \
  HANGSCOPE_STATIC_ASSERT(1, "takes the semicolon")
#else
#define HANGSCOPE_NAMED(list_name, kind, LIST) HANGSCOPE_STATIC_ASSERT(1, "takes the semicolon")
#endif
#define HANGSCOPE_NAMED_ENTRY(number, ...) HANGSCOPE_NAMED_ENTRY_(number, __VA_ARGS__, "", "")
#define HANGSCOPE_NAMED_ENTRY_(number, name, path, ...) \
  ".4byte .Lhangscope_kind, " HANGSCOPE_TEXT(number) ", 0\n"                                       \
  ".asciz \"" name "\"\n"                                                                         \
  ".asciz \"" path "\"\n"                                                                         \
  ".asciz \"\"\n"                                                                                \
  ".balign 4\n"

/* The number of a resource of one node: `number` below 65536 is its own, for the catalog's node
 * resources. */
#define HANGSCOPE_NODE_RESOURCE(node, number) (((uint32_t)(node) + 1) << 16 | (uint32_t)(number))

#endif
