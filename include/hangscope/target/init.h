/* How a scope begins its life, and goes on after a reset. Only where HANGSCOPE_DEFINE is defined.
 */
#ifndef HANGSCOPE_TARGET_INIT_H
#define HANGSCOPE_TARGET_INIT_H

#include "hangscope/target/control.h"
#include "hangscope/target/kernel_events.h"

#if HANGSCOPE_ENABLE && defined(HANGSCOPE_DEFINE)

#ifdef __cplusplus
extern "C" {
#endif

#ifndef HANGSCOPE_CLOCK_HZ
#define HANGSCOPE_CLOCK_HZ 0
#endif

#define HANGSCOPE_FEATURES                                   \
  (HANGSCOPE_NESTING * (uint32_t)HANGSCOPE_FEATURE_NESTING | \
   HANGSCOPE_MASK * (uint32_t)HANGSCOPE_FEATURE_MASK |       \
   HANGSCOPE_NOINIT * (uint32_t)HANGSCOPE_FEATURE_NOINIT | (uint32_t)HANGSCOPE_FEATURES_OF_PORT)
#ifdef HANGSCOPE_PORT_THREADS
#define HANGSCOPE_FEATURES_OF_PORT HANGSCOPE_FEATURE_THREADS
#elif defined(HANGSCOPE_PORT_MASKS_INTERRUPTS)
#define HANGSCOPE_FEATURES_OF_PORT HANGSCOPE_FEATURE_NO_ATOMICS
#else
#define HANGSCOPE_FEATURES_OF_PORT 0u
#endif

HANGSCOPE_INLINE uint32_t hangscope_check_of(const void* block, uint32_t begin, uint32_t end) {
  uint32_t check = HANGSCOPE_CHECK_SEED;
  const unsigned char* const bytes = (const unsigned char*)block;
  for (uint32_t i = begin; i < end; i++) check = (check ^ bytes[i]) * HANGSCOPE_CHECK_PRIME;
  return check;
}
HANGSCOPE_INLINE uint32_t hangscope_header_check(const struct hangscope_header* header) {
  return hangscope_check_of(header, 0, HANGSCOPE_CHECKED_BYTES);
}

/* There is no memset to call. */
HANGSCOPE_INLINE void hangscope_zero(void* memory, uint32_t bytes) {
  for (uint32_t i = 0; i < bytes / 4; i++) hangscope_port_store((uint32_t*)memory + i, 0);
}

/* Everything but what runs: the clocks, the boots. */
HANGSCOPE_INLINE void hangscope_describe(struct hangscope_header* header) {
  header->magic[0] = HANGSCOPE_MAGIC0;
  header->magic[1] = HANGSCOPE_MAGIC1;
  header->major = HANGSCOPE_ABI_MAJOR;
  header->minor = HANGSCOPE_ABI_MINOR;
  header->header_bytes = sizeof(struct hangscope_header);
  header->word_bytes = sizeof(void*);
  header->record_bytes = HANGSCOPE_RECORD_WORDS * 4;
  header->scope_bytes = sizeof(struct hangscope_scope);
  header->features = HANGSCOPE_FEATURES;
  header->core_count = HANGSCOPE_CORES;
  header->ring_capacity = HANGSCOPE_RING_CAPACITY;
  header->rings_at = __builtin_offsetof(struct hangscope_scope, cores);
  header->ring_stride = sizeof(struct hangscope_core);
#if HANGSCOPE_HAS_MAILBOXES
  header->mailboxes_at = __builtin_offsetof(struct hangscope_scope, mailboxes);
  header->mailbox_stride = sizeof(struct hangscope_mailbox);
#endif
#if HANGSCOPE_TASKS > 0
  header->task_count = HANGSCOPE_TASKS;
  header->tasks_at = __builtin_offsetof(struct hangscope_scope, tasks);
  header->task_stride = sizeof(struct hangscope_task);
#endif
#if HANGSCOPE_NAME_SLOTS > 0
  header->names_at = __builtin_offsetof(struct hangscope_scope, names);
  header->name_count = HANGSCOPE_NAME_SLOTS;
#endif
  header->clock_kind = HANGSCOPE_CLOCK_KIND;
  header->clock_hz = HANGSCOPE_CLOCK_HZ;
}

#if HANGSCOPE_HAS_MAILBOXES

#if HANGSCOPE_START_SETTINGS
/* Written by a loader, and so never a constant. */
struct hangscope_start_settings {
  struct hangscope_start start;
  uint32_t delays[HANGSCOPE_CORES][4];
};
volatile struct hangscope_start_settings hangscope_start
    __attribute__((used, section(".data.hangscope_start"))) = {
        {HANGSCOPE_START_MAGIC, HANGSCOPE_FIRST_FEATURES, HANGSCOPE_CORES, 0}, {{0}}};
#define HANGSCOPE_SWITCHES_AT_START (HANGSCOPE_WATCH_BUILT_IN & hangscope_start.start.switches)
#else
#define HANGSCOPE_SWITCHES_AT_START \
  (HANGSCOPE_WATCH_BUILT_IN & (uint32_t)(HANGSCOPE_FIRST_FEATURES))
#endif

/* A core's mailbox as it is before the core says anything; what it claims and its details, too. Of
 * node 0, role 0. A host may look meanwhile, where a thread gets what was another's: the mailbox
 * stays whole, and no wait of the new one has the number of one of the old one's. */
HANGSCOPE_INLINE void hangscope_watch_core_anew(struct hangscope_scope* scope, uint32_t core) {
  struct hangscope_mailbox* const mailbox = &scope->mailboxes[core];
  const uint32_t waits = (hangscope_port_load(&mailbox->wait_sequence) + 1) & ~1u;
  hangscope_port_store(&mailbox->fault, HANGSCOPE_FAULT_NONE);
  hangscope_port_store(&mailbox->wait_sequence, waits);
#if HANGSCOPE_DEBUG_RING
  for (uint32_t i = 0; i < HANGSCOPE_DEBUG_RING; i++)
    hangscope_port_store(&scope->details[core].debug[i].order, 0);
#endif
  hangscope_port_stores_in_order(); /* a reader that found one of these before looks at it again */
  hangscope_zero(mailbox, __builtin_offsetof(struct hangscope_mailbox, wait_sequence));
  hangscope_zero(&mailbox->wait_resource,
                 __builtin_offsetof(struct hangscope_mailbox, stack_free) -
                     __builtin_offsetof(struct hangscope_mailbox, wait_resource));
  hangscope_port_store(&mailbox->stack_free, HANGSCOPE_NOT_KNOWN);
  mailbox->node = 0;
  mailbox->role = 0;
#if HANGSCOPE_HAS_CLAIMS
  hangscope_zero(&scope->claims[core], sizeof scope->claims[core]);
#endif
#if HANGSCOPE_HAS_DETAILS
  hangscope_zero(&scope->details[core], sizeof scope->details[core]);
  hangscope_port_store(&scope->details[core].detail.stack_lowest, HANGSCOPE_NOT_KNOWN);
#if HANGSCOPE_START_SETTINGS
  for (uint32_t i = 0; i < 3; i++)
    hangscope_port_store(&scope->details[core].detail.delays[i], hangscope_start.delays[core][i]);
  hangscope_port_store(&scope->details[core].detail.delay_seed, hangscope_start.delays[core][3]);
#endif
#endif
  /* pairs with a host's look at it */
  hangscope_port_publish(&mailbox->guard, HANGSCOPE_MAILBOX_GUARD ^ core);
}

/* All that a watcher looks at, and switches all features on. Before the header's check is
 * published. `program_at`: where the ELF's address 0 lies; 0 where its addresses are those in
 * memory. */
HANGSCOPE_INLINE void hangscope_watch_anew(struct hangscope_scope* scope, uint64_t program_at) {
  struct hangscope_watch* const watch = &scope->watch;
  hangscope_zero(watch, sizeof *watch);
  hangscope_zero(scope->nodes, sizeof scope->nodes);
  watch->watch_bytes = sizeof *watch;
  watch->features = HANGSCOPE_WATCH_BUILT_IN;
  watch->node_count = HANGSCOPE_NODES;
  watch->nodes_at = __builtin_offsetof(struct hangscope_scope, nodes);
  watch->node_stride = sizeof(struct hangscope_node);
#if HANGSCOPE_HAS_DETAILS
  watch->details_at = __builtin_offsetof(struct hangscope_scope, details);
  watch->detail_stride = sizeof(struct hangscope_core_detail);
  watch->debug_slots = HANGSCOPE_DEBUG_RING;
#endif
#if HANGSCOPE_HAS_CLAIMS
  watch->claims_at = __builtin_offsetof(struct hangscope_scope, claims);
  watch->claim_stride = sizeof(struct hangscope_claims);
  watch->hold_slots = HANGSCOPE_HOLD_SLOTS;
  watch->provide_slots = HANGSCOPE_PROVIDE_SLOTS;
#if HANGSCOPE_TASKS > 0
  hangscope_zero(&scope->claims[HANGSCOPE_CORES],
                 HANGSCOPE_TASKS * sizeof(struct hangscope_claims));
#endif
#endif
#if HANGSCOPE_HAS_FRAMES
  watch->frames_at = __builtin_offsetof(struct hangscope_scope, frames);
  watch->frame_stride = sizeof(struct hangscope_frame);
  hangscope_zero(scope->frames, sizeof scope->frames);
#endif
  watch->program_at[0] = (uint32_t)program_at;
  watch->program_at[1] = (uint32_t)(program_at >> 32);
  watch->switches = HANGSCOPE_SWITCHES_AT_START;
  watch->check = hangscope_check_of(watch, 4, HANGSCOPE_WATCH_CHECKED_BYTES);
  for (uint32_t i = 0; i < HANGSCOPE_CORES; i++) hangscope_watch_core_anew(scope, i);
  scope->header.watch_at = __builtin_offsetof(struct hangscope_scope, watch);
}

#else

HANGSCOPE_INLINE void hangscope_watch_core_anew(struct hangscope_scope* scope, uint32_t core) {
  (void)scope, (void)core;
}
HANGSCOPE_INLINE void hangscope_watch_anew(struct hangscope_scope* scope, uint64_t program_at) {
  (void)scope, (void)program_at;
}

#endif

#if !defined(HANGSCOPE_PORT_THREADS)

#if HANGSCOPE_NOINIT
__attribute__((section(".noinit")))
#endif
struct hangscope_scope hangscope_scope;

/* Whether what lies in memory is a scope that this very program left behind. */
HANGSCOPE_INLINE int hangscope_is_of_this_program(void) {
  const struct hangscope_header* const header = &hangscope_scope.header;
  struct hangscope_header wanted;
  hangscope_zero(&wanted, sizeof wanted);
  hangscope_describe(&wanted);
  wanted.boots = header->boots;
  return header->check == hangscope_header_check(header) &&
         header->check == hangscope_header_check(&wanted);
}

/* What an interrupted writer holds is given free; records of the earlier start stay. */
HANGSCOPE_INLINE uint32_t hangscope_keep(struct hangscope_core* core) {
  const uint64_t begun = hangscope_begun_by(core);
  for (uint32_t i = 0; i < HANGSCOPE_RING_CAPACITY; i++) {
    uint32_t* const mark = &core->records[i * HANGSCOPE_RECORD_WORDS];
    if (hangscope_is_busy(hangscope_port_load(mark))) hangscope_port_store(mark, 0);
  }
#if __SIZEOF_POINTER__ != 8
  /* A turn that was begun and not counted. */
  const uint32_t ticket = (uint32_t)(begun << HANGSCOPE_TICKET_SHIFT);
  hangscope_port_store(&core->ring.head[0], ticket);
  hangscope_port_store(&core->ring.head[1],
                       (uint32_t)((begun + HANGSCOPE_RING_CAPACITY - 1) / HANGSCOPE_RING_CAPACITY));
#endif
  hangscope_port_store(&core->ring.boot[0], (uint32_t)begun);
  hangscope_port_store(&core->ring.boot[1], (uint32_t)(begun >> 32));
  hangscope_port_store(&core->ring.epoch, 0);
  hangscope_port_store(&core->ring.anchor, 0);
  hangscope_port_store(&core->ring.ticks, 0);
  hangscope_port_store(&core->ring.armed, 0);
  const uint64_t count = begun - hangscope_base_of(core);
  return count < HANGSCOPE_RING_CAPACITY ? (uint32_t)count : HANGSCOPE_RING_CAPACITY;
}

uint32_t hangscope_init(void) {
  struct hangscope_header* const header = &hangscope_scope.header;
  const int again = HANGSCOPE_NOINIT && hangscope_is_of_this_program();
  const uint32_t boots = again ? header->boots + 1 : 1;
  if (!again) hangscope_zero(&hangscope_scope, sizeof hangscope_scope);
  header->check = 0;
  hangscope_describe(header);
  header->boots = boots;
#if HANGSCOPE_NAME_SLOTS > 0
  hangscope_zero(hangscope_scope.names, sizeof hangscope_scope.names);
#endif
  header->lost_tasks = header->lost_names = header->name_changes = 0;
  hangscope_watch_anew(&hangscope_scope, HANGSCOPE_PROGRAM_AT);
  uint32_t kept = 0;
  for (uint32_t i = 0; i < HANGSCOPE_CORES; i++) {
    struct hangscope_core* const core = &hangscope_scope.cores[i];
    const uint32_t records = again ? hangscope_keep(core) : 0;
    hangscope_port_store(&core->ring.owner, i);
    hangscope_port_store(&core->ring.state, HANGSCOPE_RING_LIVE);
    struct hangscope_parameters said;
    hangscope_no_parameters(&said);
    said.words[0] = boots;
    said.words[1] = records;
    if (again)
      (void)hangscope_write_at(core, HANGSCOPE_ID_BOOT, &said, (uint32_t)hangscope_port_clock64(),
                               0);
    const uint32_t epoch = (uint32_t)(hangscope_port_clock64() >> 30);
    if (again || epoch != 0) hangscope_new_epoch(core, epoch);
    hangscope_port_store(&core->ring.mask, HANGSCOPE_FIRST_MASK);
    kept += records;
  }
  /* Publishes the header: pairs with the host, which believes nothing without a valid check. */
  hangscope_port_publish(&header->check, hangscope_header_check(header));
  return kept;
}

#endif

#ifdef __cplusplus
}
#endif
#endif

#endif
