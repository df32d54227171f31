/* The two data movers of a node. */
#include "faults.h"
#include "noc.h"
#include "sync.h"

#define TICKS_PER_US 10u
#define BLOCKS_PER_TELL 32u

static void copy_block(struct block* to, const struct block* from) {
  to->number = from->number;
  for (uint32_t i = 0; i < BLOCK_WORDS - 1; i++) {
    to->words[i] = from->words[i];
  }
}

static uint64_t next_begin;

/* The first reader sets the pace. */
static void keep_pace(struct place place) {
  wait_until(place.core, next_begin);
  next_begin = platform_mtime() + (uint64_t)the_plan()->pace_us * TICKS_PER_US;
}

static void tell_progress(struct place place, uint32_t number) {
  struct node_memory* const memory = memory_of(place);
  if (number % BLOCKS_PER_TELL == 1) {
    memory->shared.progress = number;
    noc_tell_all(place.node, &memory->shared.progress, sizeof number);
  }
}

/* To the reader's own staging room. */
static void fetch(struct place place, uint32_t number) {
  struct node_memory* const memory = memory_of(place);
  if (place.node == 0) {
    noc_read(place.node, &memory->own.staging, outside_node(), input_address(number), sizeof(struct block));
    memory->own.staging.number = number;
    tell_progress(place, number);
    return;
  }
  semaphore_wait(place, HANGSCOPE_NODE_RESOURCE(place.node, RESOURCE_LINK), &memory->shared.link_arrived, number - 1);
  copy_block(&memory->own.staging, &memory->shared.link[(number - 1) % LINK_BLOCKS]);
  noc_add(place.node - 1, address_in_node(&memory->shared.link_taken, place.node), 1);
  noc_ring(place.node - 1, WRITER);
}

void read_block(struct place place, uint32_t number) {
  struct node_memory* const memory = memory_of(place);
  if (place.node == 0) {
    keep_pace(place);
  }
  semaphore_wait(place, HANGSCOPE_NODE_RESOURCE(place.node, RESOURCE_CREDIT), &memory->own.credits, number - 1);
  fetch(place, number);
  struct block* const block = cb_reserve_back(place, 0);
  HANGSCOPE_WAYPOINT_NAMED("RDR", "reader");
  maybe_fail(place, number);
  copy_block(block, &memory->own.staging);
  push_block(place, 0, number);
}

static void hand_to_next_node(struct place place, const struct block* block, uint32_t number) {
  struct node_memory* const memory = memory_of(place);
  const uint32_t next = place.node + 1;
  semaphore_wait(place, HANGSCOPE_NODE_RESOURCE(next, RESOURCE_LINK_ROOM), &memory->shared.link_taken, number - 1 - LINK_BLOCKS);
  noc_write(place.node, block, node_of(next), address_in_node(&memory->shared.link[(number - 1) % LINK_BLOCKS], place.node), sizeof *block);
  if (is_planned(FAULT_MISSING_PUSH, place, number)) {
    tell_planted(place, number);
    return;
  }
  noc_add(next, address_in_node(&memory->shared.link_arrived, place.node), 1);
  if (!is_planned_from(FAULT_LOST_WAKEUP, place, number)) {
    noc_ring(next, READER);
  }
}

static void bring_out(uint32_t node, const struct block* block, uint32_t number) {
  if (!is_result(block, device_nodes())) {
    platform_fail(2);
  }
  noc_write(node, block, outside_node(), output_address(number), sizeof *block);
}

static void give_credit(struct place place, uint32_t number) {
  if (is_planned_from(FAULT_DEADLOCK5, place, number)) {
    return;
  }
  STORE_RELEASE(&memory_of(place)->own.credits, memory_of(place)->own.credits + 1); /* pairs with semaphore_wait */
  wake(core_at(place.node, READER));
}

void write_block(struct place place, uint32_t number) {
  const struct block* const block = cb_wait_front(place, 3);
  HANGSCOPE_WAYPOINT_NAMED("WRTR", "writer");
  maybe_fail(place, number);
  if (place.node + 1 < device_nodes()) {
    hand_to_next_node(place, block, number);
  } else {
    bring_out(place.node, block, number);
  }
  cb_pop_front(place, 3);
  give_credit(place, number);
}
