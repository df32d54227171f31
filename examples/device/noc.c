#include "noc.h"

struct node_memory node_memories[NODES];
static struct block outside_input[OUTSIDE_BLOCKS];
static struct block outside_output[OUTSIDE_BLOCKS];

struct noc_node node_of(uint32_t node) {
  const struct noc_node place = {node % NODE_COLUMNS, node / NODE_COLUMNS};
  return place;
}
struct noc_node outside_node(void) {
  const struct noc_node place = {NODE_COLUMNS, 0};
  return place;
}

uint32_t input_slot(uint32_t number) { return (number - 1) % OUTSIDE_BLOCKS; }
uint32_t input_address(uint32_t number) { return INPUT_AT + input_slot(number) * sizeof(struct block); }
uint32_t output_address(uint32_t number) { return OUTPUT_AT + input_slot(number) * sizeof(struct block); }

uint32_t address_in_node(const void* pointer, uint32_t node) {
  return NODE_MEMORY_AT + (uint32_t)((const char*)pointer - (const char*)&node_memories[node]);
}

void noc_init(void) {
  for (uint32_t i = 0; i < OUTSIDE_BLOCKS; i++) {
    make_block(&outside_input[i], i + 1);
  }
}

/* What answers at an address of a node. */
static void* behind(struct noc_node node, uint32_t address) {
  if (node.x < NODE_COLUMNS) {
    return (char*)&node_memories[node.y * NODE_COLUMNS + node.x] + (address - NODE_MEMORY_AT);
  }
  return address < OUTPUT_AT ? (char*)outside_input + (address - INPUT_AT) : (char*)outside_output + (address - OUTPUT_AT);
}

static void copy(volatile uint32_t* to, const volatile uint32_t* from, uint32_t bytes) {
  for (uint32_t i = 0; i < bytes / 4; i++) {
    to[i] = from[i];
  }
}

void noc_read(void* local, struct noc_node from, uint32_t address, uint32_t bytes) {
  copy(local, behind(from, address), bytes);
}
void noc_write(const void* local, struct noc_node to, uint32_t address, uint32_t bytes) {
  copy(behind(to, address), local, bytes);
}
void noc_add(struct noc_node to, uint32_t address, uint32_t value) {
  (void)__atomic_fetch_add((uint32_t*)behind(to, address), value, __ATOMIC_RELEASE);
}
