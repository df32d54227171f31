/* A bus whose transactions are checked before they are issued: a read of nothing, a write into the
 * next buffer or to a node that is not there stops the core where it asked for it, with the reason,
 * instead of a bus that hangs later.
 *
 * hangscope.h does not include this. A program that uses it includes it where it asks for
 * transactions, and behind hangscope.h in the file that defines HANGSCOPE_DEFINE; it defines
 *
 *   const struct hangscope_bus_map hangscope_bus_map = {...};            what there is, and who may
 *                                                                        do what
 *   void hangscope_bus_issue(const struct hangscope_transaction*);      does it
 *
 * and asks for transactions by hangscope_bus_read and so on. Each checks, delays (target/delay.h),
 * issues. A violation is recorded as the core's fault and halts the core; with HANGSCOPE_HALT=0 it
 * is recorded, not issued, and returned. With HANGSCOPE_BUS=0 they delay and issue; while the
 * feature is switched off, too.
 *
 * The addresses of a node mean the same from inside the node (the local end of a transaction) and
 * from outside. They have 64 bits on every target, and no sum of them wraps. */
#ifndef HANGSCOPE_TARGET_BUS_H
#define HANGSCOPE_TARGET_BUS_H

#include "hangscope/target/delay.h"
#include "hangscope/target/fault.h"
#include "hangscope/target/history.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What is asked for. */
struct hangscope_transaction {
  uint32_t kind;    /* enum hangscope_bus_kind */
  uint32_t flags;   /* enum hangscope_bus_flags */
  uint16_t x, y;    /* destination; of a read, where it reads */
  uint16_t x2, y2;  /* multicast: the far corner; x and y are the near one; both belong to it */
  uint64_t address; /* there */
  /* here: what is written, where it is read to; not of inline writes and plain atomics */
  uint64_t local;
  uint32_t bytes;
  uint32_t tag;   /* for hangscope_bus_issue only: a channel, for example */
  uint64_t value; /* for hangscope_bus_issue only: of inline writes and atomics */
};

enum hangscope_bus_flags {
  /* Opens a link, or goes on with it: up to the one without this flag that closes it, the core asks
   * for transactions of the same kind to the same destination, and for nothing else. */
  HANGSCOPE_BUS_FLAG_LINKED = 1u << 0,
  /* Atomics: what was there is written to `local`. */
  HANGSCOPE_BUS_FLAG_RETURNS = 1u << 1,
  /* Which coordinates are virtual ones: x and y; x2 and y2; the core's own, where the answer goes.
   */
  HANGSCOPE_BUS_FLAG_NEAR_VIRTUAL = 1u << 2,
  HANGSCOPE_BUS_FLAG_FAR_VIRTUAL = 1u << 3,
  HANGSCOPE_BUS_FLAG_OWN_VIRTUAL = 1u << 4,
  HANGSCOPE_BUS_FLAG_VIRTUAL = 7u << 2, /* all */
};

/* Where something lies: the physical coordinates of a node, as in hangscope_fault.where. */
#define HANGSCOPE_BUS_AT(x, y) ((uint32_t)(x) | (uint32_t)(y) << 8)
#define HANGSCOPE_BUS_ANYWHERE 0xffffffffu
/* As an owner: the node in which it lies. */
#define HANGSCOPE_BUS_ITSELF 0xfffffffeu

/* Addresses: of an object, where there is one, as constants that a 32-bit compiler accepts. */
struct hangscope_bus_span {
  const volatile void* object; /* its address is added to the others; null: nothing is */
  uint64_t first;              /* first byte */
  uint64_t last;               /* last byte; belongs to it */
};
/* All of an array or another object; of a range of addresses. */
#define HANGSCOPE_BUS_OBJECT(named) \
  { &(named), 0, sizeof(named) - 1 }
#define HANGSCOPE_BUS_RANGE(first, bytes) \
  { 0, (first), (first) + ((bytes)-1) }

enum hangscope_bus_region_kind {
  HANGSCOPE_BUS_MEMORY = 1,
  HANGSCOPE_BUS_REGISTERS = 2, /* lengths are multiples of the alignment, too */
};
enum hangscope_bus_rights {
  HANGSCOPE_BUS_MAY_READ = 1u << 0,
  HANGSCOPE_BUS_MAY_WRITE = 1u << 1,
  HANGSCOPE_BUS_MAY_ATOMIC = 1u << 2,
  HANGSCOPE_BUS_MAY_MULTICAST = 1u << 3,
  HANGSCOPE_BUS_MAY_INLINE = 1u << 4,
  HANGSCOPE_BUS_MAY_ALL = (1u << 5) - 1,
};

/* What can be the destination. The regions of a node do not overlap; a transaction stays in one.
 * Alignments are powers of two; 0 and 1: any. */
struct hangscope_bus_region {
  struct hangscope_bus_span span;
  uint32_t kind;           /* enum hangscope_bus_region_kind */
  uint32_t rights;         /* enum hangscope_bus_rights */
  uint32_t alignment;      /* of the address: reads, writes, multicasts */
  uint32_t word_alignment; /* of the address: atomics, inline writes */
  /* reads, writes, multicasts: the addresses at both ends are the same modulo this */
  uint32_t mutual;
  uint32_t owner; /* whose cores may: HANGSCOPE_BUS_AT, _ANYWHERE or _ITSELF */
  uint32_t types; /* which nodes have it: bit t for nodes of type t */
};

/* Local memory, a circular buffer in it, a protected range. */
struct hangscope_bus_place {
  struct hangscope_bus_span span;
  /* HANGSCOPE_BUS_AT, or HANGSCOPE_BUS_ANYWHERE: at this address of each node */
  uint32_t node;
  uint32_t alignment; /* local memory: of local addresses */
};

struct hangscope_bus_map {
  uint32_t width, height;   /* of the grid; at most 128 each, as of virtual coordinates */
  const uint8_t* types;     /* of the nodes, 1 to 31, row by row from y = 0; 0: no node there */
  uint32_t multicast_types; /* which can be the destinations of multicasts: bit t for type t */
  uint32_t inline_bytes;    /* the longest inline write */

  /* Virtual coordinates: which physical column, which row each is. Others than the grid's: none.
   * Null: there are no virtual coordinates. */
  uint32_t virtual_width, virtual_height;
  const uint8_t* virtual_columns;
  const uint8_t* virtual_rows;

  const struct hangscope_bus_region* regions;
  uint32_t region_count;
  uint32_t local_count;
  const struct hangscope_bus_place* local;   /* none: no local end is refused for where it is */
  const struct hangscope_bus_place* buffers; /* circular: a local end in one stays in it */
  /* from writes. The scope is, without being here */
  const struct hangscope_bus_place* protected_places;
  uint32_t buffer_count;
  uint32_t protected_count;
  uint32_t scope_node; /* where the scope lies, as hangscope_bus_place.node */
};

/* The program's. */
extern const struct hangscope_bus_map hangscope_bus_map;
void hangscope_bus_issue(const struct hangscope_transaction* transaction);

#if HANGSCOPE_ENABLE && HANGSCOPE_BUS

/* Who asks. */
struct hangscope_bus_initiator {
  uint32_t node;        /* HANGSCOPE_BUS_AT */
  uint32_t link;        /* as in hangscope_detail */
  uint32_t scope_bytes; /* 0: there is none */
  uint64_t scope;
};

/* What is wrong with it; the first reason found, where there are several. Pure: any map, any
 * initiator. */
enum hangscope_bus_reason hangscope_bus_check_of(const struct hangscope_bus_map* map,
                                                 const struct hangscope_bus_initiator* initiator,
                                                 const struct hangscope_transaction* transaction);

/* The same of the calling core and hangscope_bus_map, whether the feature is switched on or not.
 * Records nothing. Any context. */
enum hangscope_bus_reason hangscope_bus_check(const struct hangscope_transaction* transaction);

/* Checks, as the calling core, and remembers links. A violation becomes the core's fault, with `pc`
 * or, where that is null, the place of the call; the core is halted. Any context. */
enum hangscope_bus_reason hangscope_bus_admit(const struct hangscope_transaction* transaction,
                                              const void* pc);

#else

HANGSCOPE_OFF_BEGIN
HANGSCOPE_OFF enum hangscope_bus_reason hangscope_bus_check(
    const struct hangscope_transaction* transaction) {
  (void)transaction;
  return HANGSCOPE_BUS_FINE;
}
HANGSCOPE_OFF enum hangscope_bus_reason hangscope_bus_admit(
    const struct hangscope_transaction* transaction, const void* pc) {
  (void)transaction, (void)pc;
  return HANGSCOPE_BUS_FINE;
}
HANGSCOPE_OFF_END

#endif

/* The calls. All return HANGSCOPE_BUS_FINE, or why nothing was issued. Any context in which
 * hangscope_bus_issue may be called. Coordinates are physical; hangscope_bus_do has all there is.
 */
#if HANGSCOPE_ENABLE && HANGSCOPE_BUS && HANGSCOPE_OUT_OF_LINE
#define HANGSCOPE_BUS_CALL HANGSCOPE_CALLED
#define HANGSCOPE_BUS_PC __builtin_return_address(0)
#else
#define HANGSCOPE_BUS_CALL HANGSCOPE_INLINE
#define HANGSCOPE_BUS_PC ((const void*)0)
#endif

HANGSCOPE_BUS_CALL enum hangscope_bus_reason hangscope_bus_do(
    const struct hangscope_transaction* transaction);
/* From (x, y)'s `address` to `local`. */
HANGSCOPE_BUS_CALL enum hangscope_bus_reason hangscope_bus_read(uint32_t x, uint32_t y,
                                                                uint64_t address, uint64_t local,
                                                                uint32_t bytes);
/* From `local` to (x, y)'s `address`. */
HANGSCOPE_BUS_CALL enum hangscope_bus_reason hangscope_bus_write(uint32_t x, uint32_t y,
                                                                 uint64_t address, uint64_t local,
                                                                 uint32_t bytes);
/* The platform's one atomic operation, an addition for example, on (x, y)'s `address`. Others: by
 * tags. */
HANGSCOPE_BUS_CALL enum hangscope_bus_reason hangscope_bus_atomic(uint32_t x, uint32_t y,
                                                                  uint64_t address, uint32_t bytes,
                                                                  uint64_t value);
/* To `address` of all nodes from (x, y) to (x2, y2). */
HANGSCOPE_BUS_CALL enum hangscope_bus_reason hangscope_bus_multicast(uint32_t x, uint32_t y,
                                                                     uint32_t x2, uint32_t y2,
                                                                     uint64_t address,
                                                                     uint64_t local,
                                                                     uint32_t bytes);
/* The low `bytes` of `value`, which the transaction itself carries. */
HANGSCOPE_BUS_CALL enum hangscope_bus_reason hangscope_bus_inline_write(uint32_t x, uint32_t y,
                                                                        uint64_t address,
                                                                        uint32_t bytes,
                                                                        uint64_t value);

#if !(HANGSCOPE_ENABLE && HANGSCOPE_BUS && HANGSCOPE_OUT_OF_LINE) || defined(HANGSCOPE_DEFINE)

HANGSCOPE_INLINE enum hangscope_bus_reason hangscope_bus_go(
    const struct hangscope_transaction* transaction, const void* pc) {
  const enum hangscope_bus_reason reason = hangscope_bus_admit(transaction, pc);
  if (HANGSCOPE_UNLIKELY(reason != HANGSCOPE_BUS_FINE)) return reason;
  hangscope_delay(transaction->kind == HANGSCOPE_BUS_READ     ? HANGSCOPE_DELAY_READ
                  : transaction->kind == HANGSCOPE_BUS_ATOMIC ? HANGSCOPE_DELAY_ATOMIC
                                                              : HANGSCOPE_DELAY_WRITE);
#if HANGSCOPE_ENABLE && HANGSCOPE_HISTORY
  hangscope_bus_begins(transaction->kind, transaction->address, transaction->bytes);
#endif
  hangscope_bus_issue(transaction);
#if HANGSCOPE_ENABLE && HANGSCOPE_HISTORY
  hangscope_bus_ends(transaction->address, transaction->bytes);
#endif
  return HANGSCOPE_BUS_FINE;
}

/* No number becomes the coordinate of a node that it is not. */
HANGSCOPE_INLINE uint16_t hangscope_bus_coordinate(uint32_t number) {
  return number > 0xffffu ? 0xffffu : (uint16_t)number;
}

/* One by one: an initialiser may become a call of memset. */
HANGSCOPE_INLINE void hangscope_bus_fill(struct hangscope_transaction* to,
                                         enum hangscope_bus_kind kind, uint32_t x, uint32_t y,
                                         uint64_t address, uint64_t local, uint32_t bytes,
                                         uint64_t value) {
  to->kind = kind;
  to->flags = 0;
  to->x = hangscope_bus_coordinate(x);
  to->y = hangscope_bus_coordinate(y);
  to->x2 = 0;
  to->y2 = 0;
  to->address = address;
  to->local = local;
  to->bytes = bytes;
  to->tag = 0;
  to->value = value;
}

HANGSCOPE_BUS_CALL enum hangscope_bus_reason hangscope_bus_do(
    const struct hangscope_transaction* transaction) {
  return hangscope_bus_go(transaction, HANGSCOPE_BUS_PC);
}
HANGSCOPE_BUS_CALL enum hangscope_bus_reason hangscope_bus_read(uint32_t x, uint32_t y,
                                                                uint64_t address, uint64_t local,
                                                                uint32_t bytes) {
  struct hangscope_transaction read;
  hangscope_bus_fill(&read, HANGSCOPE_BUS_READ, x, y, address, local, bytes, 0);
  return hangscope_bus_go(&read, HANGSCOPE_BUS_PC);
}
HANGSCOPE_BUS_CALL enum hangscope_bus_reason hangscope_bus_write(uint32_t x, uint32_t y,
                                                                 uint64_t address, uint64_t local,
                                                                 uint32_t bytes) {
  struct hangscope_transaction write;
  hangscope_bus_fill(&write, HANGSCOPE_BUS_WRITE, x, y, address, local, bytes, 0);
  return hangscope_bus_go(&write, HANGSCOPE_BUS_PC);
}
HANGSCOPE_BUS_CALL enum hangscope_bus_reason hangscope_bus_atomic(uint32_t x, uint32_t y,
                                                                  uint64_t address, uint32_t bytes,
                                                                  uint64_t value) {
  struct hangscope_transaction atomic;
  hangscope_bus_fill(&atomic, HANGSCOPE_BUS_ATOMIC, x, y, address, 0, bytes, value);
  return hangscope_bus_go(&atomic, HANGSCOPE_BUS_PC);
}
HANGSCOPE_BUS_CALL enum hangscope_bus_reason hangscope_bus_multicast(uint32_t x, uint32_t y,
                                                                     uint32_t x2, uint32_t y2,
                                                                     uint64_t address,
                                                                     uint64_t local,
                                                                     uint32_t bytes) {
  struct hangscope_transaction multicast;
  hangscope_bus_fill(&multicast, HANGSCOPE_BUS_MULTICAST, x, y, address, local, bytes, 0);
  multicast.x2 = hangscope_bus_coordinate(x2);
  multicast.y2 = hangscope_bus_coordinate(y2);
  return hangscope_bus_go(&multicast, HANGSCOPE_BUS_PC);
}
HANGSCOPE_BUS_CALL enum hangscope_bus_reason hangscope_bus_inline_write(uint32_t x, uint32_t y,
                                                                        uint64_t address,
                                                                        uint32_t bytes,
                                                                        uint64_t value) {
  struct hangscope_transaction write;
  hangscope_bus_fill(&write, HANGSCOPE_BUS_INLINE_WRITE, x, y, address, 0, bytes, value);
  return hangscope_bus_go(&write, HANGSCOPE_BUS_PC);
}

#endif

#if HANGSCOPE_ENABLE && HANGSCOPE_BUS && defined(HANGSCOPE_DEFINE)
#define HANGSCOPE_BUS_PART static __attribute__((unused))

HANGSCOPE_BUS_PART uint64_t hangscope_bus_first(const struct hangscope_bus_span* span) {
  return (uintptr_t)span->object + span->first;
}
HANGSCOPE_BUS_PART uint64_t hangscope_bus_last(const struct hangscope_bus_span* span) {
  return (uintptr_t)span->object + span->last;
}
/* `bytes` from `address` on, at least one, are all in the span; without a sum that could wrap. */
HANGSCOPE_BUS_PART int hangscope_bus_is_in(const struct hangscope_bus_span* span, uint64_t address,
                                           uint32_t bytes) {
  const uint64_t last = hangscope_bus_last(span);
  return address >= hangscope_bus_first(span) && address <= last && bytes - 1 <= last - address;
}
/* One of them is. */
HANGSCOPE_BUS_PART int hangscope_bus_meet(uint64_t first, uint64_t last, uint64_t address,
                                          uint32_t bytes) {
  return address <= last && (address >= first || bytes - 1 >= first - address);
}
HANGSCOPE_BUS_PART int hangscope_bus_touches(const struct hangscope_bus_place* place, uint32_t node,
                                             uint64_t address, uint32_t bytes) {
  return (place->node == HANGSCOPE_BUS_ANYWHERE || place->node == node) &&
         hangscope_bus_meet(hangscope_bus_first(&place->span), hangscope_bus_last(&place->span),
                            address, bytes);
}
HANGSCOPE_BUS_PART int hangscope_bus_is_aligned(uint64_t number, uint32_t alignment) {
  return alignment <= 1 || ((uint32_t)number & (alignment - 1)) == 0;
}
HANGSCOPE_BUS_PART int hangscope_bus_moves_blocks(const struct hangscope_transaction* transaction) {
  return transaction->kind != HANGSCOPE_BUS_ATOMIC &&
         transaction->kind != HANGSCOPE_BUS_INLINE_WRITE;
}

/* Writes must not go there: to `node`'s `address`. */
HANGSCOPE_BUS_PART int hangscope_bus_is_protected(const struct hangscope_bus_map* map,
                                                  const struct hangscope_bus_initiator* initiator,
                                                  uint32_t node, uint64_t address, uint32_t bytes) {
  const int scope_is_here = map->scope_node == HANGSCOPE_BUS_ANYWHERE || map->scope_node == node;
  if (scope_is_here && initiator->scope_bytes != 0 &&
      hangscope_bus_meet(initiator->scope, initiator->scope + (initiator->scope_bytes - 1), address,
                         bytes)) {
    return 1;
  }
  for (uint32_t i = 0; i < map->protected_count; i++) {
    if (hangscope_bus_touches(&map->protected_places[i], node, address, bytes)) return 1;
  }
  return 0;
}

/* The node's region in which an address lies; null, and why, if there is none. */
HANGSCOPE_BUS_PART const struct hangscope_bus_region* hangscope_bus_region_of(
    const struct hangscope_bus_map* map, uint32_t type, uint64_t address,
    enum hangscope_bus_reason* reason) {
  int is_above_one = 0;
  int is_below_one = 0;
  for (uint32_t i = 0; i < map->region_count; i++) {
    const struct hangscope_bus_region* const region = &map->regions[i];
    if ((region->types >> type & 1) == 0) continue;
    if (hangscope_bus_is_in(&region->span, address, 1)) return region;
    if (address < hangscope_bus_first(&region->span)) is_below_one = 1;
    if (address > hangscope_bus_last(&region->span)) is_above_one = 1;
  }
  *reason = is_below_one == is_above_one ? HANGSCOPE_BUS_NO_REGION
            : is_below_one               ? HANGSCOPE_BUS_UNDERFLOW
                                         : HANGSCOPE_BUS_OVERFLOW;
  return 0;
}

/* Whether a region may be accessed so, by whom it belongs to. */
HANGSCOPE_BUS_PART enum hangscope_bus_reason hangscope_bus_check_rights(
    const struct hangscope_bus_region* region, uint32_t inline_bytes, uint32_t initiator,
    uint32_t node, const struct hangscope_transaction* transaction) {
  const uint32_t owner = region->owner == HANGSCOPE_BUS_ITSELF ? node : region->owner;
  if (owner != HANGSCOPE_BUS_ANYWHERE && owner != initiator) return HANGSCOPE_BUS_OWNER;
  /* the rights are in the kinds' order */
  const int may = (region->rights >> (transaction->kind - 1) & 1) != 0;
  if (transaction->kind != HANGSCOPE_BUS_INLINE_WRITE)
    return may ? HANGSCOPE_BUS_FINE : HANGSCOPE_BUS_RIGHTS;
  if (!may && (region->rights & HANGSCOPE_BUS_MAY_WRITE) == 0) return HANGSCOPE_BUS_RIGHTS;
  return may && transaction->bytes <= inline_bytes ? HANGSCOPE_BUS_FINE
                                                   : HANGSCOPE_BUS_INLINE_UNSUPPORTED;
}

HANGSCOPE_BUS_PART enum hangscope_bus_reason hangscope_bus_check_alignment(
    const struct hangscope_bus_region* region, const struct hangscope_transaction* transaction) {
  const int block = hangscope_bus_moves_blocks(transaction);
  const uint32_t alignment = block ? region->alignment : region->word_alignment;
  if (!hangscope_bus_is_aligned(transaction->address, alignment)) return HANGSCOPE_BUS_MISALIGNED;
  if (region->kind == HANGSCOPE_BUS_REGISTERS &&
      !hangscope_bus_is_aligned(transaction->bytes, alignment)) {
    return HANGSCOPE_BUS_MISALIGNED;
  }
  if (block &&
      !hangscope_bus_is_aligned(transaction->address ^ transaction->local, region->mutual)) {
    return HANGSCOPE_BUS_ALIGNMENT_MISMATCH;
  }
  return HANGSCOPE_BUS_FINE;
}

/* The far end, at one node. */
HANGSCOPE_BUS_PART enum hangscope_bus_reason hangscope_bus_check_node(
    const struct hangscope_bus_map* map, const struct hangscope_bus_initiator* initiator,
    const struct hangscope_transaction* transaction, uint32_t type, uint32_t node) {
  enum hangscope_bus_reason reason = HANGSCOPE_BUS_FINE;
  const struct hangscope_bus_region* const region =
      hangscope_bus_region_of(map, type, transaction->address, &reason);
  if (region == 0) return reason;
  if (!hangscope_bus_is_in(&region->span, transaction->address, transaction->bytes))
    return HANGSCOPE_BUS_OVERFLOW;
  reason =
      hangscope_bus_check_rights(region, map->inline_bytes, initiator->node, node, transaction);
  if (reason != HANGSCOPE_BUS_FINE) return reason;
  if (transaction->kind != HANGSCOPE_BUS_READ &&
      hangscope_bus_is_protected(map, initiator, node, transaction->address, transaction->bytes)) {
    return HANGSCOPE_BUS_PROTECTED;
  }
  return hangscope_bus_check_alignment(region, transaction);
}

HANGSCOPE_BUS_PART int hangscope_bus_is_virtual(const struct hangscope_transaction* transaction) {
  return (transaction->flags & HANGSCOPE_BUS_FLAG_NEAR_VIRTUAL) != 0;
}
/* Physical, of coordinates that are in the map; 256: there is no such column, or row. */
HANGSCOPE_BUS_PART uint32_t hangscope_bus_column(const struct hangscope_bus_map* map,
                                                 const struct hangscope_transaction* transaction,
                                                 uint32_t x) {
  if (!hangscope_bus_is_virtual(transaction)) return x < map->width ? x : 256;
  return map->virtual_columns != 0 && x < map->virtual_width ? map->virtual_columns[x] : 256;
}
HANGSCOPE_BUS_PART uint32_t hangscope_bus_row(const struct hangscope_bus_map* map,
                                              const struct hangscope_transaction* transaction,
                                              uint32_t y) {
  if (!hangscope_bus_is_virtual(transaction)) return y < map->height ? y : 256;
  return map->virtual_rows != 0 && y < map->virtual_height ? map->virtual_rows[y] : 256;
}
/* 0: there is no node. */
HANGSCOPE_BUS_PART uint32_t hangscope_bus_type(const struct hangscope_bus_map* map, uint32_t column,
                                               uint32_t row) {
  const uint32_t type =
      column < map->width && row < map->height ? map->types[row * map->width + column] : 0;
  return type < 32 ? type : 0;
}

/* The far end of all but a multicast. */
HANGSCOPE_BUS_PART enum hangscope_bus_reason hangscope_bus_check_destination(
    const struct hangscope_bus_map* map, const struct hangscope_bus_initiator* initiator,
    const struct hangscope_transaction* transaction) {
  const uint32_t column = hangscope_bus_column(map, transaction, transaction->x);
  const uint32_t row = hangscope_bus_row(map, transaction, transaction->y);
  const uint32_t type = hangscope_bus_type(map, column, row);
  if (type == 0) return HANGSCOPE_BUS_BAD_COORDINATES;
  return hangscope_bus_check_node(map, initiator, transaction, type, HANGSCOPE_BUS_AT(column, row));
}

/* Of a multicast: its rectangle is one of the coordinates it is given in, whatever they are
 * physically. */
HANGSCOPE_BUS_PART enum hangscope_bus_reason hangscope_bus_check_rectangle(
    const struct hangscope_bus_map* map, const struct hangscope_bus_initiator* initiator,
    const struct hangscope_transaction* transaction) {
  const uint32_t x2 = transaction->x2;
  const uint32_t y2 = transaction->y2;
  if (transaction->x > x2 || transaction->y > y2 ||
      hangscope_bus_column(map, transaction, x2) > 255 ||
      hangscope_bus_row(map, transaction, y2) > 255) {
    return HANGSCOPE_BUS_MULTICAST_RANGE;
  }
  for (uint32_t y = transaction->y; y <= y2; y++) {
    for (uint32_t x = transaction->x; x <= x2; x++) {
      const uint32_t column = hangscope_bus_column(map, transaction, x);
      const uint32_t row = hangscope_bus_row(map, transaction, y);
      const uint32_t type = hangscope_bus_type(map, column, row);
      if (type == 0 || (map->multicast_types >> type & 1) == 0)
        return HANGSCOPE_BUS_MULTICAST_TARGET;
      const enum hangscope_bus_reason reason = hangscope_bus_check_node(
          map, initiator, transaction, type, HANGSCOPE_BUS_AT(column, row));
      if (reason != HANGSCOPE_BUS_FINE) return reason;
    }
  }
  return HANGSCOPE_BUS_FINE;
}

HANGSCOPE_BUS_PART const struct hangscope_bus_place* hangscope_bus_local_of(
    const struct hangscope_bus_map* map, uint32_t node, uint64_t address, uint32_t bytes) {
  for (uint32_t i = 0; i < map->local_count; i++) {
    const struct hangscope_bus_place* const place = &map->local[i];
    if (hangscope_bus_touches(place, node, address, 1) &&
        hangscope_bus_is_in(&place->span, address, bytes))
      return place;
  }
  return 0;
}

/* The near end. */
HANGSCOPE_BUS_PART enum hangscope_bus_reason hangscope_bus_check_local(
    const struct hangscope_bus_map* map, const struct hangscope_bus_initiator* initiator,
    const struct hangscope_transaction* transaction) {
  const uint64_t local = transaction->local;
  const uint32_t bytes = transaction->bytes;
  const int returns = transaction->kind == HANGSCOPE_BUS_ATOMIC &&
                      (transaction->flags & HANGSCOPE_BUS_FLAG_RETURNS) != 0;
  if (!hangscope_bus_moves_blocks(transaction) && !returns) return HANGSCOPE_BUS_FINE;
  if (bytes - 1 > ~local) return HANGSCOPE_BUS_LOCAL_OVERFLOW;
  if (map->local_count != 0) {
    const struct hangscope_bus_place* const place =
        hangscope_bus_local_of(map, initiator->node, local, bytes);
    if (place == 0) return HANGSCOPE_BUS_LOCAL_OVERFLOW;
    if (!hangscope_bus_is_aligned(local, place->alignment)) return HANGSCOPE_BUS_MISALIGNED;
  }
  for (uint32_t i = 0; i < map->buffer_count; i++) {
    const struct hangscope_bus_place* const buffer = &map->buffers[i];
    if (hangscope_bus_touches(buffer, initiator->node, local, bytes) &&
        !hangscope_bus_is_in(&buffer->span, local, bytes)) {
      return HANGSCOPE_BUS_BUFFER_BOUNDS;
    }
  }
  if ((transaction->kind == HANGSCOPE_BUS_READ || returns) &&
      hangscope_bus_is_protected(map, initiator, initiator->node, local, bytes)) {
    return HANGSCOPE_BUS_PROTECTED;
  }
  return HANGSCOPE_BUS_FINE;
}

/* All ends in one kind of coordinates. */
HANGSCOPE_BUS_PART int hangscope_bus_mixes(const struct hangscope_transaction* transaction) {
  const uint32_t ends =
      transaction->kind == HANGSCOPE_BUS_MULTICAST
          ? (uint32_t)HANGSCOPE_BUS_FLAG_VIRTUAL
          : (uint32_t)(HANGSCOPE_BUS_FLAG_NEAR_VIRTUAL | HANGSCOPE_BUS_FLAG_OWN_VIRTUAL);
  return (transaction->flags & ends) != 0 && (transaction->flags & ends) != ends;
}

/* One coordinate as it is recorded: physical where it can be; 255 is that or more. */
HANGSCOPE_BUS_PART uint32_t hangscope_bus_recorded(uint32_t physical, uint32_t said) {
  return physical < 256 ? physical : said < 255 ? said : 255;
}
/* As hangscope_fault.where. */
HANGSCOPE_BUS_PART uint32_t hangscope_bus_where(const struct hangscope_bus_map* map,
                                                const struct hangscope_transaction* transaction) {
  const uint32_t x = hangscope_bus_recorded(hangscope_bus_column(map, transaction, transaction->x),
                                            transaction->x);
  const uint32_t y =
      hangscope_bus_recorded(hangscope_bus_row(map, transaction, transaction->y), transaction->y);
  if (transaction->kind != HANGSCOPE_BUS_MULTICAST) return x | y << 8;
  const uint32_t x2 = hangscope_bus_recorded(
      hangscope_bus_column(map, transaction, transaction->x2), transaction->x2);
  const uint32_t y2 =
      hangscope_bus_recorded(hangscope_bus_row(map, transaction, transaction->y2), transaction->y2);
  return x | y << 8 | x2 << 16 | y2 << 24;
}

/* As hangscope_detail.link, of coordinates that are in the map. */
HANGSCOPE_BUS_PART uint32_t hangscope_bus_link(const struct hangscope_bus_map* map,
                                               const struct hangscope_transaction* transaction) {
  const uint32_t where = hangscope_bus_where(map, transaction);
  return (where & 0x7f) | (where >> 8 & 0x7f) << 7 | (where >> 16 & 0x7f) << 14 |
         (where >> 24 & 0x7f) << 21 | transaction->kind << 28;
}

enum hangscope_bus_reason hangscope_bus_check_of(const struct hangscope_bus_map* map,
                                                 const struct hangscope_bus_initiator* initiator,
                                                 const struct hangscope_transaction* transaction) {
  if (transaction->bytes == 0) return HANGSCOPE_BUS_ZERO_LENGTH;
  /* no such kind */
  if (transaction->kind - 1 >= HANGSCOPE_BUS_INLINE_WRITE) return HANGSCOPE_BUS_RIGHTS;
  if (hangscope_bus_mixes(transaction)) return HANGSCOPE_BUS_MIXED_COORDINATES;
  enum hangscope_bus_reason reason =
      transaction->kind == HANGSCOPE_BUS_MULTICAST
          ? hangscope_bus_check_rectangle(map, initiator, transaction)
          : hangscope_bus_check_destination(map, initiator, transaction);
  if (reason != HANGSCOPE_BUS_FINE) return reason;
  reason = hangscope_bus_check_local(map, initiator, transaction);
  if (reason != HANGSCOPE_BUS_FINE) return reason;
  const int fits = initiator->link == 0 || initiator->link == hangscope_bus_link(map, transaction);
  return fits ? HANGSCOPE_BUS_FINE : HANGSCOPE_BUS_LINKED;
}

/* The calling core, which has details. */
HANGSCOPE_BUS_PART void hangscope_bus_myself(const struct hangscope_detail* detail,
                                             struct hangscope_bus_initiator* to) {
  const struct hangscope_scope* const scope = hangscope_the_scope();
  const uint32_t number = hangscope_this_mailbox()->node;
  const struct hangscope_node* const node = &scope->nodes[number < HANGSCOPE_NODES ? number : 0];
  to->node = HANGSCOPE_BUS_AT(node->x, node->y);
  to->link = hangscope_port_load(&detail->link);
  to->scope = (uintptr_t)scope;
  to->scope_bytes = sizeof *scope;
}

enum hangscope_bus_reason hangscope_bus_check(const struct hangscope_transaction* transaction) {
  const struct hangscope_detail* const detail = hangscope_this_detail();
  if (detail == 0) return HANGSCOPE_BUS_FINE; /* a thread that nobody watches */
  struct hangscope_bus_initiator initiator;
  hangscope_bus_myself(detail, &initiator);
  return hangscope_bus_check_of(&hangscope_bus_map, &initiator, transaction);
}

HANGSCOPE_COLD static void hangscope_bus_violation(enum hangscope_bus_reason reason,
                                                   const struct hangscope_transaction* transaction,
                                                   uint64_t pc) {
  struct hangscope_fault found;
  hangscope_no_fault(&found);
  found.reason = reason;
  found.kind = transaction->kind;
  found.pc[0] = (uint32_t)pc;
  found.pc[1] = (uint32_t)(pc >> 32);
  found.address[0] = (uint32_t)transaction->address;
  found.address[1] = (uint32_t)(transaction->address >> 32);
  found.local[0] = (uint32_t)transaction->local;
  found.local[1] = (uint32_t)(transaction->local >> 32);
  found.length = transaction->bytes;
  found.where = hangscope_bus_where(&hangscope_bus_map, transaction);
  hangscope_fault_is(HANGSCOPE_FAULT_BUS, &found);
#if HANGSCOPE_HALT
  hangscope_halt();
#endif
}

__attribute__((noinline)) enum hangscope_bus_reason hangscope_bus_admit(
    const struct hangscope_transaction* transaction, const void* pc) {
  struct hangscope_detail* const detail = hangscope_this_detail();
  if (detail == 0) return HANGSCOPE_BUS_FINE;
  uint32_t link = 0; /* while nobody checks, nobody knows what is open */
  if (hangscope_is_on(HANGSCOPE_WATCH_BUS)) {
    const enum hangscope_bus_reason reason = hangscope_bus_check(transaction);
    if (reason != HANGSCOPE_BUS_FINE) {
      hangscope_bus_violation(reason, transaction,
                              (uintptr_t)(pc != 0 ? pc : __builtin_return_address(0)));
      return reason;
    }
    if ((transaction->flags & HANGSCOPE_BUS_FLAG_LINKED) != 0)
      link = hangscope_bus_link(&hangscope_bus_map, transaction);
  }
  hangscope_port_store(&detail->link, link);
  return HANGSCOPE_BUS_FINE;
}

#endif

#ifdef __cplusplus
}
#endif

#endif
