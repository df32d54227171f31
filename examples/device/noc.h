/* The bus between the nodes: who is where on it, and what goes over it. */
#ifndef EXAMPLES_DEVICE_NOC_H
#define EXAMPLES_DEVICE_NOC_H

#include "device.h"

#include "hangscope/target/bus.h"

struct noc_node {
  uint32_t x;
  uint32_t y;
};

/* What a node has, as the bus sees it: its memory, and a doorbell for each of its cores, which wakes it. */
#define NODE_MEMORY_AT 0x10000u
#define DOORBELLS_AT 0x40000u
/* The memory outside is the machine's. The scope lies in it. */
#define OUTSIDE_AT 0x80000000u
#define OUTSIDE_BYTES 0x4000000u
#define OUTSIDE_BLOCKS 64u

struct noc_node node_of(uint32_t node);
struct noc_node outside_node(void);
uint32_t input_slot(uint32_t number);
uint32_t input_address(uint32_t number);
uint32_t output_address(uint32_t number);
/* The bus's address of something in the memory of `node`; it is the same on all nodes, from inside, too. */
uint32_t address_in_node(const volatile void* pointer, uint32_t node);

/* Fills the memory outside. Once. */
void noc_init(void);

/* A transaction with nothing special about it. */
void noc_describe(struct hangscope_transaction* transaction, enum hangscope_bus_kind kind, struct noc_node to, uint64_t address,
                  uint64_t local, uint32_t bytes);

/* Between local memory and a node's, for the calling core, which is of `node`. Each returns when it is done. */
void noc_read(uint32_t node, void* local, struct noc_node from, uint32_t address, uint32_t bytes);
void noc_write(uint32_t node, const void* local, struct noc_node to, uint32_t address, uint32_t bytes);
void noc_add(uint32_t to_node, uint32_t address, uint32_t value);
void noc_ring(uint32_t to_node, uint32_t role);
/* To all nodes, at the same address. */
void noc_tell_all(uint32_t node, const uint32_t* local, uint32_t bytes);

#endif
