/* The same device with a scope in each node's own memory, and an ELF for each role (DEVICE_TILES): none of
 * these has more than its own core's code, and all of a node find its one scope at the same distance.
 *
 *   0x80000000 + TILE_BYTES n       node n: five images of TILE_IMAGE_BYTES, by role
 *              + TILE_TABLES_AT     tables of pages, by which address 0 of its cores is its first word
 *              + TILE_SCOPE_AT      its scope
 *   TILES_SHARED_AT                 what nodes reach of each other over the bus
 *   TILES_MACHINE_AT                struct machine
 *
 * Images are linked to node 0 and run in all nodes. Also read by tests/system/watched_targets.py, and by
 * the linker script tiles.ld. */
#ifndef EXAMPLES_DEVICE_TILES_H
#define EXAMPLES_DEVICE_TILES_H

#define TILE_BYTES 0x100000
#define TILE_IMAGE_BYTES 0x20000
#define TILE_TABLES_AT 0xa0000
#define TILE_SCOPE_AT 0xc0000
#define TILES_SHARED_AT 0x83000000
#define TILES_MACHINE_AT 0x83100000

/* Of a scope: nodes, and the core whose number is 0 in it. */
#ifdef DEVICE_TILES
#define SCOPE_NODES 1u
#define ROLE_OF(core) TILE_ROLE
#define STACK_OF(core) 0u
#else
#define SCOPE_NODES NODES
#define ROLE_OF(core) ((core) % ROLES)
#define STACK_OF(core) (core)
#endif

#ifndef __ASSEMBLER__
#include <stdint.h>

static inline uint32_t this_hart(void) {
  uintptr_t hart;
  __asm__("csrr %0, mhartid" : "=r"(hart));
  return (uint32_t)hart;
}
/* How far from where it was linked an image runs. */
static inline uint32_t tile_moved_by(void) { return this_hart() / 5 * TILE_BYTES; }

/* The memory of a tile begins at address 0 for its cores, as that of real ones does, and a store through a
 * null pointer is no trap: tile_memory.c. One core of the node makes the tables, then each uses them. */
void make_tile_tables(uint32_t node);
void use_tile_tables(uint32_t node);
#endif

#endif
