/* A device of nodes on a grid. Each node has five cores, one role each, which share its local memory:
 *
 *   reader --cb0--> unpack --cb1--> math --cb2--> pack --cb3--> writer --link--> reader of the next node
 *
 * Numbered blocks go through. The first node's reader takes them from the memory outside, the last
 * node's writer brings them back there. Cores sleep (wfi) while they wait, and whoever ends the wait
 * wakes them. */
#ifndef EXAMPLES_DEVICE_DEVICE_H
#define EXAMPLES_DEVICE_DEVICE_H

#include <stdint.h>

#include "dataflow_names.h"
#include "tiles.h"

#include "hangscope/hangscope.h"
#include "platform.h"
#include "print.h"

#define ROLES 5u
/* Two columns of nodes; right of them, at (2,0), the memory outside, and nothing at (2,1). */
#define NODE_COLUMNS 2u
#define NODE_ROWS 2u
#define NODES (NODE_COLUMNS * NODE_ROWS)

enum role { READER, UNPACK, MATH, PACK, WRITER };
#define DEVICE_KERNELS(NAME)                         \
  NAME(1, "dataflow", "examples/device/dataflow.c")  \
  NAME(2, "compute", "examples/device/compute.c")    \
  NAME(3, "handover", "examples/device/handover.c")
enum kernel { KERNEL_DATAFLOW = 1, KERNEL_COMPUTE = 2, KERNEL_HANDOVER = 3 };

#define BLOCK_WORDS 16u
#define CB_BLOCKS 4u
#define CREDITS 8u
#define LINK_BLOCKS 4u

struct block {
  _Alignas(16) uint32_t number; /* from 1 */
  uint32_t words[BLOCK_WORDS - 1];
};

/* One fills it, one empties it. The counts only grow. */
struct cb {
  struct block blocks[CB_BLOCKS];
  uint32_t pushed;
  uint32_t popped;
};

/* What only the cores of the node reach. */
struct private_memory {
  struct block staging; /* the reader's */
  struct cb cbs[ROLES - 1];
  uint32_t credits;             /* the writer adds */
  uint32_t locks[ROLES];        /* 0: free; else core + 1 */
  uint32_t locks_wanted[ROLES]; /* a bit for each role that waits for it */
  uint32_t blocks_done[ROLES];  /* each under the role's lock */
  uint32_t at_rendezvous;       /* a bit for each role that has its first lock */
  uint32_t guarded;             /* GUARD_WORD */
};
/* What other nodes reach over the bus, too. */
struct shared_memory {
  struct block link[LINK_BLOCKS]; /* from the node before */
  uint32_t link_arrived;          /* the writer before adds */
  uint32_t link_taken;            /* of the next node: its reader adds */
  _Alignas(16) uint32_t progress; /* blocks that the first reader began, as it tells all nodes now and then */
};
struct node_memory {
  struct private_memory own;
  struct shared_memory shared;
};
/* What all cores share beside it. */
struct machine {
  uint32_t nodes;                  /* that have all their harts */
  uint32_t is_ready;               /* hart 0 has prepared everything but the scopes */
  uint32_t scope_is_ready[NODES];  /* by the scope's first node */
  uint32_t console_holder;
  uint32_t cores_done;
};
#ifdef DEVICE_TILES
#define node_memories ((struct node_memory*)(uintptr_t)TILES_SHARED_AT)
#define the_machine (*(struct machine*)(uintptr_t)TILES_MACHINE_AT)
#else
extern struct node_memory node_memories[NODES];
extern struct machine the_machine;
#endif

/* Where a program runs; the same on all cores but `core`, `node`, `role`. */
struct place {
  uint32_t core;
  uint32_t node;
  enum role role;
};
static inline struct place place_of(uint32_t core) {
  const struct place place = {core, core / ROLES, (enum role)(core % ROLES)};
  return place;
}
static inline uint32_t core_at(uint32_t node, uint32_t role) { return node * ROLES + role; }
static inline struct node_memory* memory_of(struct place place) { return &node_memories[place.node]; }

/* How many nodes have all their harts. */
static inline uint32_t device_nodes(void) { return the_machine.nodes; }

/* What the five roles do with `number`-th block: dataflow.c, compute.c. */
void read_block(struct place place, uint32_t number);
void write_block(struct place place, uint32_t number);
void compute_block(struct place place, uint32_t number);

/* The block that goes in as `number`, and what is to come out after `nodes` nodes. */
void make_block(struct block* block, uint32_t number);
int is_result(const struct block* block, uint32_t nodes);

/* Console, of whoever has taken it. */
void console_take(void);
void console_give(void);

#endif
