/* The bus between the nodes: who is where on it, and what goes over it. */
#ifndef EXAMPLES_DEVICE_NOC_H
#define EXAMPLES_DEVICE_NOC_H

#include "device.h"

struct noc_node {
  uint32_t x;
  uint32_t y;
};

/* Where a node's memory lies, as the bus sees it. */
#define NODE_MEMORY_AT 0x10000u
/* The memory outside: blocks that go in, and what came out. */
#define INPUT_AT 0x100000u
#define OUTPUT_AT 0x200000u
#define OUTSIDE_BLOCKS 64u

struct noc_node node_of(uint32_t node);
struct noc_node outside_node(void);
uint32_t input_slot(uint32_t number);
uint32_t input_address(uint32_t number);
uint32_t output_address(uint32_t number);
/* The bus's address of something in the memory of `node`; it is the same on all nodes. */
uint32_t address_in_node(const void* pointer, uint32_t node);

/* Fills the memory outside, and says what the bus leads to. Once. */
void noc_init(void);

/* Local memory to and from a node's. All three return when it is done. */
void noc_read(void* local, struct noc_node from, uint32_t address, uint32_t bytes);
void noc_write(const void* local, struct noc_node to, uint32_t address, uint32_t bytes);
void noc_add(struct noc_node to, uint32_t address, uint32_t value);

#endif
