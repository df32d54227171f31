#define HANGSCOPE_DEFINE
#include "faults.h"
#include "noc.h"
#include "sync.h"

HANGSCOPE_NAMED(device_roles, HANGSCOPE_CATALOG_ROLE, DATAFLOW_ROLES);
HANGSCOPE_NAMED(device_kernels, HANGSCOPE_CATALOG_KERNEL, DEVICE_KERNELS);
HANGSCOPE_NAMED(device_guards, HANGSCOPE_CATALOG_GUARD, DATAFLOW_GUARDS);
HANGSCOPE_NAMED(device_resources, HANGSCOPE_CATALOG_NODE_RESOURCE, DATAFLOW_RESOURCES);

#define ROUNDS_PER_LOOK 16u

void device_trap(void);

#ifndef DEVICE_TILES
struct machine the_machine;
#endif

void console_take(void) {
  while (__atomic_exchange_n(&the_machine.console_holder, 1u, __ATOMIC_ACQUIRE) != 0) {
  }
}
void console_give(void) { STORE_RELEASE(&the_machine.console_holder, 0u); }

static void prepare_machine(void) {
  const uint32_t nodes = platform_hart_count() / ROLES;
  the_machine.nodes = nodes < NODES ? nodes : NODES;
  for (uint32_t node = 0; node < NODES; node++) {
    node_memories[node].own.credits = CREDITS;
    node_memories[node].own.guarded = GUARD_WORD;
  }
  noc_init();
  STORE_RELEASE(&the_machine.is_ready, 1u); /* pairs with the load in hart_main */
}

#ifdef DEVICE_TILES
uint32_t tile; /* the node that this program runs in */
#else
#define DISPATCH_MODES(VALUE) VALUE(0, development) VALUE(1, host)
HANGSCOPE_ENUMERATION(dispatch_mode, DISPATCH_MODES);
volatile uint32_t host_mode; /* a host writes it, whenever it likes */
#endif

/* What a watcher shows beside what the cores say: what the host wants, and of each node how far its
 * first buffer is; on a dump also what is not in memory. */
static void register_words(void) {
#ifdef DEVICE_TILES
  HANGSCOPE_SHOW(all, tile, 0, u32, "tile");
#else
  HANGSCOPE_SHOW(all, host_mode, 0, dispatch_mode, "dispatch mode");
  HANGSCOPE_SHOW_AT(all, PLAN_AT, 0, u32, "planted");
  HANGSCOPE_DUMP_AT(core, CLINT_MTIMECMP, 8, x32, "mtimecmp");
#endif
  HANGSCOPE_SHOW(node, node_memories[0].own.cbs[0].pushed, sizeof(struct node_memory), u32, "cb0 pushed");
  HANGSCOPE_SHOW(node, node_memories[0].own.cbs[0].popped, sizeof(struct node_memory), u32, "cb0 popped");
  HANGSCOPE_DUMP(node, node_memories[0].own.credits, sizeof(struct node_memory), u32, "credits");
  HANGSCOPE_DUMP(node, node_memories[0].own.guarded, sizeof(struct node_memory), x32, "guarded");
  HANGSCOPE_DUMP(all, the_machine.cores_done, 0, u32, "cores done");
}

/* It knows the places of all nodes: its cores wait for what others have. */
static void prepare_scope(uint32_t first_node) {
  (void)hangscope_init();
  register_words();
  for (uint32_t core = 0; core < SCOPE_NODES * ROLES && first_node + core / ROLES < device_nodes(); core++) {
    hangscope_core_is(core, first_node + core / ROLES, core % ROLES);
  }
  for (uint32_t node = 0; node < NODES; node++) {
    const struct noc_node at = node_of(node);
    hangscope_node_is(node, at.x, at.y);
  }
#ifdef DEVICE_TILES
  make_tile_tables(first_node);
#endif
  STORE_RELEASE(&the_machine.scope_is_ready[first_node], 1u); /* pairs with the load in hart_main */
}

/* One core of those that share an image looks whether words of its nodes are as they were. */
static int looks_at_guards(struct place place) { return place.core == core_at(place.node - place.node % SCOPE_NODES, WRITER); }

static void guard_words(struct place place) {
  if (!looks_at_guards(place)) {
    return;
  }
  for (uint32_t node = place.node; node < NODES && node - place.node < SCOPE_NODES; node++) {
    hangscope_guard(node, &node_memories[node].own.guarded, GUARD_WORD);
  }
#ifdef DEVICE_TILES /* elsewhere nothing is at address 0 */
  hangscope_guard_null();
#endif
}

/* What the core fills and empties, for whoever asks why another waits. */
static void say_what_it_provides(struct place place) {
  if (place.role != WRITER) {
    HANGSCOPE_PROVIDES(HANGSCOPE_NODE_RESOURCE(place.node, RESOURCE_CB + place.role));
  } else {
    HANGSCOPE_PROVIDES(HANGSCOPE_NODE_RESOURCE(place.node, RESOURCE_CREDIT));
    if (place.node + 1 < device_nodes()) {
      HANGSCOPE_PROVIDES(HANGSCOPE_NODE_RESOURCE(place.node + 1, RESOURCE_LINK));
    }
  }
  if (place.role != READER) {
    HANGSCOPE_PROVIDES(HANGSCOPE_NODE_RESOURCE(place.node, RESOURCE_CB_ROOM + place.role - 1));
  } else if (place.node > 0) {
    HANGSCOPE_PROVIDES(HANGSCOPE_NODE_RESOURCE(place.node, RESOURCE_LINK_ROOM));
  }
}

static void count_block(struct place place) {
  lock_acquire(place, place.role);
  memory_of(place)->own.blocks_done[place.role]++;
  lock_release(place, place.role);
}

/* Rarely, since it takes longer than a block: what the stack has left, and the guarded words. */
static void look_after(struct place place, uint32_t number) {
  if (number % ROUNDS_PER_LOOK != 0) {
    return;
  }
  hangscope_stack_look();
  if (looks_at_guards(place)) {
    hangscope_guards_look();
  }
}

static void run_rounds(struct place place) {
  const struct plan* const plan = the_plan();
  for (uint32_t number = 1; plan->blocks == 0 || number <= plan->blocks; number++) {
    hangscope_heartbeat();
    switch (place.role) {
      case READER:
        read_block(place, number);
        break;
      case WRITER:
        write_block(place, number);
        break;
      default:
        compute_block(place, number);
    }
    count_block(place);
    look_after(place, number);
  }
}

static uintptr_t instructions_retired(void) {
  uintptr_t count;
  __asm__ volatile("csrr %0, minstret" : "=r"(count));
  return count;
}

/* The last one says what came of it; with QEMU's -icount, how many instructions all of them took. */
static void finish(struct place place) {
  const uint32_t cores = the_plan()->fault == FAULT_HANDOVER ? 2 : device_nodes() * ROLES;
  hangscope_stack_look();
  maybe_fail_at_end(place);
  hangscope_kernel_ends(0);
  if (__atomic_add_fetch(&the_machine.cores_done, 1, __ATOMIC_ACQ_REL) < cores) {
    return;
  }
  console_take();
  print_text("device: ");
  print_number(memory_of(place)->own.blocks_done[place.role]);
  print_text(" blocks, all right, ");
  print_number((uint32_t)instructions_retired());
  print_text(" instructions\n");
  console_give();
  if ((the_plan()->flags & PLAN_POWER_OFF) != 0) {
    platform_power_off();
  }
}

static void run(struct place place) {
  const struct plan* const plan = the_plan();
  if (plan->fault != FAULT_HANDOVER) {
    run_rounds(place);
  } else if (place.core == plan->core || place.core == core_at(place_of(plan->core).node, plan->other)) {
    run_handover(place);
  } else {
    hangscope_launch_is(HANGSCOPE_LAUNCH_IDLE);
    park();
  }
}

void hart_main(unsigned hart) {
  const struct place place = {hart, hart / ROLES, (enum role)ROLE_OF(hart)};
  const uint32_t first_node = place.node - place.node % SCOPE_NODES;
  if (hart == 0) {
    prepare_machine();
  }
  while (LOAD_ACQUIRE(&the_machine.is_ready) == 0) {
  }
  if (place.node >= device_nodes()) {
    park();
  }
  if (hart == core_at(first_node, READER)) {
    prepare_scope(first_node);
  }
  while (LOAD_ACQUIRE(&the_machine.scope_is_ready[first_node]) == 0) {
  }
  __asm__ volatile("csrw mtvec, %0" ::"r"((uintptr_t)device_trap));
#ifdef DEVICE_TILES
  use_tile_tables(place.node);
#endif
#ifdef DEVICE_TILES
  tile = place.node;
#endif
  guard_words(place);
  sync_init();
  (void)hangscope_stack_paint(&hart_stacks[STACK_OF(hart) << STACK_SHIFT], 1u << STACK_SHIFT);
  say_what_it_provides(place);
  hangscope_kernel_is(place.role == READER || place.role == WRITER ? KERNEL_DATAFLOW : KERNEL_COMPUTE);
  hangscope_launch_is(HANGSCOPE_LAUNCH_RUNNING);
  run(place);
  finish(place);
  park();
}
