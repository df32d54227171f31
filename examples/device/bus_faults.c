/* One transaction for each thing that can be wrong with one: a block from the core's own staging room to
 * another node's link, but for what is spoiled in it. */
#include "faults.h"
#include "noc.h"

#define BLOCK_BYTES sizeof(struct block)
#define AT(member) (NODE_MEMORY_AT + (uint32_t)__builtin_offsetof(struct node_memory, member))

static void spoil(struct hangscope_transaction* t, enum hangscope_bus_reason reason) {
  switch (reason) {
    case HANGSCOPE_BUS_ZERO_LENGTH:
      t->bytes = 0;
      break;
    case HANGSCOPE_BUS_UNDERFLOW:
      t->address = NODE_MEMORY_AT - BLOCK_BYTES;
      break;
    case HANGSCOPE_BUS_OVERFLOW: /* its last bytes are behind the memory */
      t->address = NODE_MEMORY_AT + sizeof(struct node_memory) - 16;
      break;
    case HANGSCOPE_BUS_NO_REGION:
      t->address = DOORBELLS_AT - BLOCK_BYTES;
      break;
    case HANGSCOPE_BUS_BAD_COORDINATES:
      t->x = NODE_COLUMNS;
      t->y = 1;
      break;
    case HANGSCOPE_BUS_MULTICAST_RANGE:
      t->kind = HANGSCOPE_BUS_MULTICAST;
      t->x = 0;
      t->x2 = NODE_COLUMNS + 1;
      break;
    case HANGSCOPE_BUS_MULTICAST_TARGET:
      t->kind = HANGSCOPE_BUS_MULTICAST;
      t->x = NODE_COLUMNS;
      t->y = 0;
      t->x2 = NODE_COLUMNS;
      t->y2 = 0;
      break;
    case HANGSCOPE_BUS_MISALIGNED:
      t->address += 2;
      t->local += 2;
      break;
    case HANGSCOPE_BUS_ALIGNMENT_MISMATCH:
      t->address += 4;
      break;
    case HANGSCOPE_BUS_MIXED_COORDINATES:
      t->flags = HANGSCOPE_BUS_FLAG_NEAR_VIRTUAL;
      break;
    case HANGSCOPE_BUS_INLINE_UNSUPPORTED:
      t->kind = HANGSCOPE_BUS_INLINE_WRITE;
      t->bytes = 4;
      break;
    case HANGSCOPE_BUS_PROTECTED: {
      const struct noc_node outside = outside_node();
      t->x = (uint16_t)outside.x;
      t->y = (uint16_t)outside.y;
      t->address = ((uintptr_t)hangscope_scope.mailboxes + 15) & ~(uintptr_t)15;
      break;
    }
    case HANGSCOPE_BUS_LOCAL_OVERFLOW:
      t->local = NODE_MEMORY_AT + sizeof(struct node_memory) - 16;
      break;
    case HANGSCOPE_BUS_BUFFER_BOUNDS:
      t->local = AT(own.cbs[2].blocks[CB_BLOCKS]) - 16;
      break;
    case HANGSCOPE_BUS_RIGHTS:
      t->address = DOORBELLS_AT;
      t->bytes = 4;
      break;
    case HANGSCOPE_BUS_OWNER:
      t->address = AT(own.cbs[1].blocks[0]);
      break;
    default:
      break;
  }
}

/* A link that stays open, and then something else. */
static void open_link(const struct hangscope_transaction* other) {
  struct hangscope_transaction linked = *other;
  linked.kind = HANGSCOPE_BUS_MULTICAST;
  linked.flags = HANGSCOPE_BUS_FLAG_LINKED;
  (void)hangscope_bus_do(&linked);
}

void spoil_bus(struct place place) {
  const enum hangscope_bus_reason reason = (enum hangscope_bus_reason)the_plan()->value;
  struct hangscope_transaction transaction;
  /* Where nothing is disturbed, if a check lets it through. */
  noc_describe(&transaction, HANGSCOPE_BUS_WRITE, node_of(NODES - 1 - place.node), AT(shared.link[0]), AT(own.staging), BLOCK_BYTES);
  if (reason == HANGSCOPE_BUS_LINKED) {
    open_link(&transaction);
  }
  spoil(&transaction, reason);
  (void)hangscope_bus_do(&transaction);
}
