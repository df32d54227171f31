/* Events: each is declared once, in a list of the user's, and from its one line come a typed
 * writer, its id and its entry in the catalog.
 *
 *   #define HANGSCOPE_CLASS_NET HANGSCOPE_CLASS(5)
 *   #define NET_EVENTS(EVENT)                                             \
 *     EVENT(net_sent, NET, "port %u, %u bytes", u16, port, u32, bytes)    \
 *     EVENT(net_down, NET, "")
 *   HANGSCOPE_EVENTS(net, HANGSCOPE_FIRST_USER_ID, NET_EVENTS);
 *
 *   hangscope_net_sent(80, 1500);
 *   HANGSCOPE_EMIT(net_sent(80, length_of(packet)));   nothing is evaluated where it is off
 *
 * A line: name, class, format, then type and name of each field, up to eight (abi/catalog.h has the
 * types). A program's lists need ids that do not overlap: the second argument is the first one's.
 * Parameters that a record has and the event does not are recorded as zero. */
#ifndef HANGSCOPE_TARGET_EVENTS_H
#define HANGSCOPE_TARGET_EVENTS_H

#include "hangscope/target/catalog.h"
#include "hangscope/target/record.h"

#define HANGSCOPE_EVENTS(list_name, first_id, LIST)                               \
  enum { hangscope_before_##list_name = (first_id)-1, LIST(HANGSCOPE_EVENT_ID) }; \
  HANGSCOPE_CATALOG_LIST(list_name, first_id, LIST)                               \
  LIST(HANGSCOPE_EVENT_WRITER)                                                    \
  HANGSCOPE_STATIC_ASSERT((first_id) >= 1, "event ids begin at 1")

#define HANGSCOPE_EVENT_ID(name, ...) HANGSCOPE_ID_##name,

/* The types of fields: what each is in C, and how many parameters it takes. */
typedef uint8_t hangscope_u8;
typedef int8_t hangscope_i8;
typedef uint16_t hangscope_u16;
typedef int16_t hangscope_i16;
typedef uint32_t hangscope_u32;
typedef int32_t hangscope_i32;
typedef uint64_t hangscope_u64;
typedef int64_t hangscope_i64;
typedef uint32_t hangscope_char4;
typedef const volatile void* hangscope_ptr;
#ifdef __cplusplus
typedef bool hangscope_bool;
#else
typedef _Bool hangscope_bool;
#endif

#define HANGSCOPE_WORDS_u8 1
#define HANGSCOPE_WORDS_i8 1
#define HANGSCOPE_WORDS_u16 1
#define HANGSCOPE_WORDS_i16 1
#define HANGSCOPE_WORDS_u32 1
#define HANGSCOPE_WORDS_i32 1
#define HANGSCOPE_WORDS_bool 1
#define HANGSCOPE_WORDS_char4 1
#define HANGSCOPE_WORDS_u64 2
#define HANGSCOPE_WORDS_i64 2
#define HANGSCOPE_WORDS_ptr (sizeof(void*) / 4)

/* A negative number is recorded with its sign. */
#define HANGSCOPE_PLACE_u8(value) (uint64_t)(value)
#define HANGSCOPE_PLACE_i8(value) (uint64_t)(int64_t)(value)
#define HANGSCOPE_PLACE_u16(value) (uint64_t)(value)
#define HANGSCOPE_PLACE_i16(value) (uint64_t)(int64_t)(value)
#define HANGSCOPE_PLACE_u32(value) (uint64_t)(value)
#define HANGSCOPE_PLACE_i32(value) (uint64_t)(int64_t)(value)
#define HANGSCOPE_PLACE_bool(value) (uint64_t)(value)
#define HANGSCOPE_PLACE_char4(value) (uint64_t)(value)
#define HANGSCOPE_PLACE_u64(value) (uint64_t)(value)
#define HANGSCOPE_PLACE_i64(value) (uint64_t)(value)
#define HANGSCOPE_PLACE_ptr(value) (uint64_t)(uintptr_t)(value)

/* An event whose arguments are not evaluated in a build that records nothing: the plain call of
 * hangscope_net_sent() looks at what is volatile, and calls what may do something, in any build. */
#if HANGSCOPE_ENABLE
#define HANGSCOPE_EMIT(event) hangscope_##event
#else
#define HANGSCOPE_EMIT(event) HANGSCOPE_NOT_DONE(hangscope_##event)
#endif

/* An enumeration, which fields of events may have as their type. The values are literals.
 *
 *   #define LINK_STATES(VALUE) VALUE(0, down) VALUE(1, training) VALUE(2, up)
 *   HANGSCOPE_ENUMERATION(link_state, LINK_STATES);
 *   ... EVENT(net_link, NET, "port %u is %s", u16, port, link_state, state)
 */
#define HANGSCOPE_ENUMERATION(type, LIST)                                            \
  typedef uint32_t hangscope_##type;                                                 \
  enum { HANGSCOPE_WORDS_##type = 1 };                                               \
  HANGSCOPE_INLINE uint64_t HANGSCOPE_PLACE_##type(uint32_t value) { return value; } \
  HANGSCOPE_ENUMERATION_LIST(type, LIST)                                             \
  HANGSCOPE_STATIC_ASSERT(1, "takes the semicolon")

/* The writers: hangscope_NAME, and hangscope_NAME_raw for code that nothing which records can
 * interrupt, a scheduler with its interrupts off: where a port masks interrupts round a record, it
 * leaves that out. All that is computed here is a constant once it is inlined. */
#define HANGSCOPE_EVENT_WRITER(name, class_name, ...)             \
  HANGSCOPE_EVENT_WRITER_(name, name, 0, class_name, __VA_ARGS__) \
  HANGSCOPE_EVENT_WRITER_(name, name##_raw, 1, class_name, __VA_ARGS__)
#if HANGSCOPE_ENABLE
#define HANGSCOPE_EVENT_WRITER_(name, writer, raw, class_name, ...)                           \
  HANGSCOPE_INLINE void hangscope_##writer(                                                   \
      HANGSCOPE_FIELDS(HANGSCOPE_AS_PARAMETER, __VA_ARGS__)) {                                \
    struct hangscope_parameters hangscope_all;                                                \
    hangscope_no_parameters(&hangscope_all);                                                  \
    HANGSCOPE_STATIC_ASSERT(                                                                  \
        (0 HANGSCOPE_FIELDS(HANGSCOPE_AS_WORDS, __VA_ARGS__)) <= HANGSCOPE_PARAMETERS,        \
        "the fields of " #name " need more HANGSCOPE_PARAMETERS");                            \
    unsigned hangscope_at = 0;                                                                \
    HANGSCOPE_FIELDS(HANGSCOPE_AS_STORE, __VA_ARGS__)                                         \
    (void)hangscope_at;                                                                       \
    hangscope_record(HANGSCOPE_ID_##name, HANGSCOPE_CLASS_##class_name, &hangscope_all, raw); \
  }
#else
#define HANGSCOPE_EVENT_WRITER_(name, writer, raw, class_name, ...)                             \
  HANGSCOPE_OFF_BEGIN                                                                           \
  HANGSCOPE_OFF void hangscope_##writer(HANGSCOPE_FIELDS(HANGSCOPE_AS_PARAMETER, __VA_ARGS__)){ \
      HANGSCOPE_FIELDS(HANGSCOPE_AS_UNUSED, __VA_ARGS__)} HANGSCOPE_OFF_END
#endif

#define HANGSCOPE_AS_STORE_FIRST HANGSCOPE_AS_STORE
#define HANGSCOPE_AS_STORE_NONE
#define HANGSCOPE_AS_STORE(type, field)                                                      \
  if (hangscope_at < HANGSCOPE_PARAMETERS)                                                   \
    hangscope_all.words[hangscope_at] = (uint32_t)HANGSCOPE_PLACE_##type(field);             \
  if (HANGSCOPE_WORDS_##type == 2 && hangscope_at + 1 < HANGSCOPE_PARAMETERS)                \
    hangscope_all.words[hangscope_at + 1] = (uint32_t)(HANGSCOPE_PLACE_##type(field) >> 32); \
  hangscope_at += (unsigned)HANGSCOPE_WORDS_##type;
#define HANGSCOPE_AS_UNUSED_FIRST HANGSCOPE_AS_UNUSED
#define HANGSCOPE_AS_UNUSED_NONE
#define HANGSCOPE_AS_UNUSED(type, field) (void)field;
#define HANGSCOPE_AS_WORDS_FIRST HANGSCOPE_AS_WORDS
#define HANGSCOPE_AS_WORDS_NONE
#define HANGSCOPE_AS_WORDS(type, field) +HANGSCOPE_WORDS_##type
#define HANGSCOPE_AS_PARAMETER_FIRST(type, field) hangscope_##type field
#define HANGSCOPE_AS_PARAMETER_NONE void
#define HANGSCOPE_AS_PARAMETER(type, field) , hangscope_##type field
#define HANGSCOPE_AS_TEXT_FIRST HANGSCOPE_AS_TEXT
#define HANGSCOPE_AS_TEXT_NONE
#define HANGSCOPE_AS_TEXT(type, field) #type " " #field ","

/* The catalog: one piece of assembly for each list, so that nothing reorders it. The assembler
 * counts the ids, as an enumerator's value is not to be had in text. */
#if HANGSCOPE_ENABLE
#define HANGSCOPE_CATALOG_LIST(list_name, first_id, LIST)                                         \
  __asm__(                                                                                        \
      ".pushsection " HANGSCOPE_CATALOG_SECTION ",\"G\",%progbits,hangscope_catalog_" #list_name  \
      ",comdat\n"                                                                                 \
      ".balign 4\n"                                                                               \
      ".Lhangscope_" #list_name                                                                   \
      "_list:\n"                                                                                  \
      ".4byte " HANGSCOPE_TEXT(HANGSCOPE_CATALOG_MAGIC) ", " HANGSCOPE_TEXT(                      \
          HANGSCOPE_CATALOG_VERSION) ", .Lhangscope_" #list_name "_end - .Lhangscope_" #list_name \
                                     "_list\n"                                                    \
                                     ".set .Lhangscope_id, " HANGSCOPE_TEXT(first_id) "\n" LIST(  \
                                         HANGSCOPE_EVENT_ENTRY) ".Lhangscope_" #list_name         \
                                                                "_end:\n"                         \
                                                                ".popsection\n");
#else
#define HANGSCOPE_CATALOG_LIST(list_name, first_id, LIST)
#endif
#if HANGSCOPE_ENABLE
#define HANGSCOPE_ENUMERATION_LIST(type, LIST) \
  __asm__(                                                                                         \
      ".pushsection " HANGSCOPE_CATALOG_SECTION ",\"G\",%progbits,hangscope_catalog_of_" #type     \
      ",comdat\n"                                                                                  \
      ".balign 4\n"                                                                                \
      ".Lhangscope_" #type                                                                         \
      "_values:\n"                                                                                 \
      ".4byte " HANGSCOPE_TEXT(HANGSCOPE_CATALOG_MAGIC) ", " HANGSCOPE_TEXT(                       \
          HANGSCOPE_CATALOG_VERSION) ", .Lhangscope_" #type "_end_of_values - .Lhangscope_" #type  \
                                     "_values\n"                                                   \
                                     ".macro hangscope_value number, name\n"                       \
                                     ".4byte " HANGSCOPE_TEXT(HANGSCOPE_CATALOG_ENUMERATION) ", \\number, 0\n" \
                                     ".asciz \"\\name\"\n"                                         \
                                     ".asciz \"" #type "\", \"\"\n"                               \
                                     ".balign 4\n"                                                 \
                                     ".endm\n" LIST(HANGSCOPE_ENUMERATION_VALUE)                   \
                                     ".purgem hangscope_value\n"                                   \
                                     ".Lhangscope_" #type "_end_of_values:\n"                      \
                                     ".popsection\n");
#else
#define HANGSCOPE_ENUMERATION_LIST(type, LIST)
#endif
#define HANGSCOPE_ENUMERATION_VALUE(number, name) "hangscope_value " #number ", " #name "\n"

#define HANGSCOPE_EVENT_ENTRY(name, class_name, ...) \
  ".4byte " HANGSCOPE_TEXT(HANGSCOPE_CATALOG_EVENT) ", .Lhangscope_id, " HANGSCOPE_TEXT(HANGSCOPE_CLASS_##class_name) "\n" \
  ".asciz \"" #name "\"\n"                                                                         \
  ".asciz " HANGSCOPE_FORMAT_TEXT(__VA_ARGS__, 0) "\n"                                             \
  ".asciz \"" HANGSCOPE_FIELDS(HANGSCOPE_AS_TEXT, __VA_ARGS__) "\"\n"                              \
  ".balign 4\n"                                                                                    \
  ".set .Lhangscope_id, .Lhangscope_id + 1\n"
#define HANGSCOPE_FORMAT_TEXT(format, ...) #format

/* HANGSCOPE_FIELDS(USE, format, type, name, type, name, ...): USE_FIRST(type, name) USE(type, name)
 * ..., or USE_NONE where there is no field. */
#define HANGSCOPE_FIELDS(USE, ...) \
  HANGSCOPE_PASTE(HANGSCOPE_FIELDS_, HANGSCOPE_PAIRS(__VA_ARGS__))(USE, __VA_ARGS__)
#define HANGSCOPE_PASTE(a, b) HANGSCOPE_PASTE_(a, b)
#define HANGSCOPE_PASTE_(a, b) a##b
#define HANGSCOPE_PAIRS(...)                                                                       \
  HANGSCOPE_PAIRS_(__VA_ARGS__, 8, odd, 7, odd, 6, odd, 5, odd, 4, odd, 3, odd, 2, odd, 1, odd, 0, \
                   0)
#define HANGSCOPE_PAIRS_(f, a, b, c, d, e, g, h, i, j, k, l, m, n, o, p, q, pairs, ...) pairs
#define HANGSCOPE_FIELDS_0(USE, format) USE##_NONE
#define HANGSCOPE_FIELDS_1(USE, format, t1, f1) USE##_FIRST(t1, f1)
#define HANGSCOPE_FIELDS_2(USE, format, t1, f1, t2, f2) USE##_FIRST(t1, f1) USE(t2, f2)
#define HANGSCOPE_FIELDS_3(USE, format, t1, f1, t2, f2, t3, f3) \
  USE##_FIRST(t1, f1) USE(t2, f2) USE(t3, f3)
#define HANGSCOPE_FIELDS_4(USE, format, t1, f1, t2, f2, t3, f3, t4, f4) \
  USE##_FIRST(t1, f1) USE(t2, f2) USE(t3, f3) USE(t4, f4)
#define HANGSCOPE_FIELDS_5(USE, format, t1, f1, t2, f2, t3, f3, t4, f4, t5, f5) \
  USE##_FIRST(t1, f1) USE(t2, f2) USE(t3, f3) USE(t4, f4) USE(t5, f5)
#define HANGSCOPE_FIELDS_6(USE, format, t1, f1, t2, f2, t3, f3, t4, f4, t5, f5, t6, f6) \
  USE##_FIRST(t1, f1) USE(t2, f2) USE(t3, f3) USE(t4, f4) USE(t5, f5) USE(t6, f6)
#define HANGSCOPE_FIELDS_7(USE, format, t1, f1, t2, f2, t3, f3, t4, f4, t5, f5, t6, f6, t7, f7) \
  USE##_FIRST(t1, f1) USE(t2, f2) USE(t3, f3) USE(t4, f4) USE(t5, f5) USE(t6, f6) USE(t7, f7)
#define HANGSCOPE_FIELDS_8(USE, format, t1, f1, t2, f2, t3, f3, t4, f4, t5, f5, t6, f6, t7, f7, \
                           t8, f8)                                                              \
  USE##_FIRST(t1, f1) USE(t2, f2) USE(t3, f3) USE(t4, f4) USE(t5, f5) USE(t6, f6) USE(t7, f7)   \
      USE(t8, f8)

#endif
