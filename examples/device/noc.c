#include "noc.h"

#include "sync.h"

enum node_type { TYPE_NONE = 0, TYPE_NODE = 1, TYPE_OUTSIDE = 2 };
#define OF_NODES (1u << TYPE_NODE)
#define OF_OUTSIDE (1u << TYPE_OUTSIDE)
#define MAP_WIDTH (NODE_COLUMNS + 1)
#define MAP_HEIGHT NODE_ROWS
#define OUTSIDE_AT_NODE HANGSCOPE_BUS_AT(NODE_COLUMNS, 0)
#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

#ifndef DEVICE_TILES
struct node_memory node_memories[NODES];
#endif
static struct block outside_input[OUTSIDE_BLOCKS];
static struct block outside_output[OUTSIDE_BLOCKS];

/* What the bus leads to. */

#define RIGHTS_OF_MEMORY \
  (HANGSCOPE_BUS_MAY_READ | HANGSCOPE_BUS_MAY_WRITE | HANGSCOPE_BUS_MAY_ATOMIC | HANGSCOPE_BUS_MAY_MULTICAST)
#define RIGHTS_OF_DOORBELLS (HANGSCOPE_BUS_MAY_READ | HANGSCOPE_BUS_MAY_INLINE)
#define AT_MEMBER(member) NODE_MEMORY_AT + __builtin_offsetof(struct node_memory, member)
#define SPAN_OF_MEMBER(member) \
  HANGSCOPE_BUS_RANGE(AT_MEMBER(member), sizeof(((struct node_memory*)0)->member))

static const uint8_t types[MAP_HEIGHT * MAP_WIDTH] = {TYPE_NODE, TYPE_NODE, TYPE_OUTSIDE, TYPE_NODE, TYPE_NODE, TYPE_NONE};
/* As software numbers the nodes: from the last row up. */
static const uint8_t virtual_columns[NODE_COLUMNS] = {0, 1};
static const uint8_t virtual_rows[NODE_ROWS] = {1, 0};

static const struct hangscope_bus_region regions[] = {
    {SPAN_OF_MEMBER(own), HANGSCOPE_BUS_MEMORY, RIGHTS_OF_MEMORY, 4, 4, 16, HANGSCOPE_BUS_ITSELF, OF_NODES},
    {SPAN_OF_MEMBER(shared), HANGSCOPE_BUS_MEMORY, RIGHTS_OF_MEMORY, 4, 4, 16, HANGSCOPE_BUS_ANYWHERE, OF_NODES},
    {HANGSCOPE_BUS_RANGE(DOORBELLS_AT, 4 * ROLES), HANGSCOPE_BUS_REGISTERS, RIGHTS_OF_DOORBELLS, 4, 4, 4,
     HANGSCOPE_BUS_ANYWHERE, OF_NODES},
    {HANGSCOPE_BUS_RANGE(OUTSIDE_AT, OUTSIDE_BYTES), HANGSCOPE_BUS_MEMORY, RIGHTS_OF_MEMORY, 4, 4, 16,
     HANGSCOPE_BUS_ANYWHERE, OF_OUTSIDE},
};
static const struct hangscope_bus_place local_memory[] = {
    {HANGSCOPE_BUS_RANGE(NODE_MEMORY_AT, sizeof(struct node_memory)), HANGSCOPE_BUS_ANYWHERE, 4},
};
static const struct hangscope_bus_place buffers[] = {
    {SPAN_OF_MEMBER(own.cbs[0].blocks), HANGSCOPE_BUS_ANYWHERE, 0},
    {SPAN_OF_MEMBER(own.cbs[1].blocks), HANGSCOPE_BUS_ANYWHERE, 0},
    {SPAN_OF_MEMBER(own.cbs[2].blocks), HANGSCOPE_BUS_ANYWHERE, 0},
    {SPAN_OF_MEMBER(own.cbs[3].blocks), HANGSCOPE_BUS_ANYWHERE, 0},
    {SPAN_OF_MEMBER(shared.link), HANGSCOPE_BUS_ANYWHERE, 0},
};

const struct hangscope_bus_map hangscope_bus_map = {
    .width = MAP_WIDTH,
    .height = MAP_HEIGHT,
    .types = types,
    .multicast_types = OF_NODES,
    .inline_bytes = 4,
    .virtual_width = NODE_COLUMNS,
    .virtual_height = NODE_ROWS,
    .virtual_columns = virtual_columns,
    .virtual_rows = virtual_rows,
    .regions = regions,
    .region_count = COUNT_OF(regions),
    .local = local_memory,
    .local_count = COUNT_OF(local_memory),
    .buffers = buffers,
    .buffer_count = COUNT_OF(buffers),
    .scope_node = OUTSIDE_AT_NODE,
};

struct noc_node node_of(uint32_t node) {
  const struct noc_node place = {node % NODE_COLUMNS, node / NODE_COLUMNS};
  return place;
}
struct noc_node outside_node(void) {
  const struct noc_node place = {NODE_COLUMNS, 0};
  return place;
}

uint32_t input_slot(uint32_t number) { return (number - 1) % OUTSIDE_BLOCKS; }
uint32_t input_address(uint32_t number) { return (uint32_t)(uintptr_t)&outside_input[input_slot(number)]; }
uint32_t output_address(uint32_t number) { return (uint32_t)(uintptr_t)&outside_output[input_slot(number)]; }

uint32_t address_in_node(const volatile void* pointer, uint32_t node) {
  return NODE_MEMORY_AT + (uint32_t)((const volatile char*)pointer - (const volatile char*)&node_memories[node]);
}

void noc_init(void) {
  for (uint32_t i = 0; i < OUTSIDE_BLOCKS; i++) {
    make_block(&outside_input[i], i + 1);
  }
}

/* What does it: here processors copy, and there is nothing that could go wrong after the checks. */

static void* behind(uint32_t x, uint32_t y, uint64_t address) {
  if (x >= NODE_COLUMNS) {
    return (void*)(uintptr_t)address;
  }
  return (char*)&node_memories[y * NODE_COLUMNS + x] + (address - NODE_MEMORY_AT);
}

static uint32_t node_here(void) { return this_hart() / ROLES; }

static void copy(volatile uint32_t* to, const volatile uint32_t* from, uint32_t bytes) {
  for (uint32_t i = 0; i < bytes / 4; i++) {
    to[i] = from[i];
  }
}

static void multicast(const struct hangscope_transaction* transaction, const uint32_t* local) {
  for (uint32_t y = transaction->y; y <= transaction->y2; y++) {
    for (uint32_t x = transaction->x; x <= transaction->x2; x++) {
      copy(behind(x, y, transaction->address), local, transaction->bytes);
    }
  }
}

void hangscope_bus_issue(const struct hangscope_transaction* transaction) {
  const int is_virtual = (transaction->flags & HANGSCOPE_BUS_FLAG_NEAR_VIRTUAL) != 0;
  const uint32_t x = is_virtual ? virtual_columns[transaction->x] : transaction->x;
  const uint32_t y = is_virtual ? virtual_rows[transaction->y] : transaction->y;
  uint32_t* const local = (uint32_t*)behind(0, 0, transaction->local) + node_here() * (sizeof(struct node_memory) / 4);
  switch (transaction->kind) {
    case HANGSCOPE_BUS_READ:
      copy(local, behind(x, y, transaction->address), transaction->bytes);
      break;
    case HANGSCOPE_BUS_WRITE:
      copy(behind(x, y, transaction->address), local, transaction->bytes);
      break;
    case HANGSCOPE_BUS_MULTICAST:
      multicast(transaction, local);
      break;
    case HANGSCOPE_BUS_ATOMIC: /* releases what was written before: pairs with the load in semaphore_wait */
      (void)__atomic_fetch_add((uint32_t*)behind(x, y, transaction->address), (uint32_t)transaction->value, __ATOMIC_RELEASE);
      break;
    default:
      wake(core_at(y * NODE_COLUMNS + x, (uint32_t)(transaction->address - DOORBELLS_AT) / 4));
  }
}

/* What the data movers ask for. */

/* One by one: there is no memset to call. */
void noc_describe(struct hangscope_transaction* transaction, enum hangscope_bus_kind kind, struct noc_node to, uint64_t address,
                  uint64_t local, uint32_t bytes) {
  transaction->kind = kind;
  transaction->flags = 0;
  transaction->x = (uint16_t)to.x;
  transaction->y = (uint16_t)to.y;
  transaction->x2 = (uint16_t)to.x;
  transaction->y2 = (uint16_t)to.y;
  transaction->address = address;
  transaction->local = local;
  transaction->bytes = bytes;
  transaction->tag = 0;
  transaction->value = 0;
}

void noc_read(uint32_t node, void* local, struct noc_node from, uint32_t address, uint32_t bytes) {
  (void)hangscope_bus_read(from.x, from.y, address, address_in_node(local, node), bytes);
}
void noc_write(uint32_t node, const void* local, struct noc_node to, uint32_t address, uint32_t bytes) {
  (void)hangscope_bus_write(to.x, to.y, address, address_in_node(local, node), bytes);
}
/* In virtual coordinates, as some programs give them. */
void noc_add(uint32_t to_node, uint32_t address, uint32_t value) {
  const struct noc_node to = {to_node % NODE_COLUMNS, NODE_ROWS - 1 - to_node / NODE_COLUMNS};
  struct hangscope_transaction atomic;
  noc_describe(&atomic, HANGSCOPE_BUS_ATOMIC, to, address, 0, 4);
  atomic.flags = HANGSCOPE_BUS_FLAG_NEAR_VIRTUAL | HANGSCOPE_BUS_FLAG_OWN_VIRTUAL;
  atomic.value = value;
  (void)hangscope_bus_do(&atomic);
}
void noc_ring(uint32_t to_node, uint32_t role) {
  const struct noc_node to = node_of(to_node);
  (void)hangscope_bus_inline_write(to.x, to.y, DOORBELLS_AT + 4 * role, 4, 1);
}
void noc_tell_all(uint32_t node, const uint32_t* local, uint32_t bytes) {
  const uint32_t address = address_in_node(local, node);
  (void)hangscope_bus_multicast(0, 0, NODE_COLUMNS - 1, NODE_ROWS - 1, address, address, bytes);
}
