#include "device.h"

#ifdef DEVICE_TILES

#define PAGE_SHIFT 12
#define ENTRIES 1024u
#define ENTRY_TABLE 0x01u /* leads to a table of pages */
#define ENTRY_MEMORY 0xcfu /* valid; may be read, written, executed; accessed and dirty, so that nobody writes it */
#define SATP_SV32 0x80000000u
#define PMP_EVERYTHING 0x1fu
#define MSTATUS_MPP 0x1800u
#define MSTATUS_AS_SUPERVISOR 0x20800u /* MPRV, MPP 1 */

static uint32_t tile_at(uint32_t node) { return 0x80000000u + TILE_BYTES * node; }
static uint32_t entry_of(uint32_t address, uint32_t flags) { return address >> PAGE_SHIFT << 10 | flags; }

/* All of memory is where it was, but for the first page. */
void make_tile_tables(uint32_t node) {
  uint32_t* const root = (uint32_t*)(uintptr_t)(tile_at(node) + TILE_TABLES_AT);
  uint32_t* const first = root + ENTRIES;
  for (uint32_t i = 0; i < ENTRIES; i++) {
    root[i] = entry_of(i << 22, ENTRY_MEMORY);
    first[i] = entry_of(i << PAGE_SHIFT, ENTRY_MEMORY);
  }
  root[0] = entry_of((uint32_t)(uintptr_t)first, ENTRY_TABLE);
  first[0] = entry_of(tile_at(node), ENTRY_MEMORY);
}

/* Loads and stores go through the tables from now on; code is fetched without them. */
void use_tile_tables(uint32_t node) {
  const uintptr_t satp = SATP_SV32 | (tile_at(node) + TILE_TABLES_AT) >> PAGE_SHIFT;
  __asm__ volatile(
      "csrw pmpaddr0, %0\n"
      "csrw pmpcfg0, %1\n"
      "csrw satp, %2\n"
      "sfence.vma\n"
      "csrc mstatus, %3\n"
      "csrs mstatus, %4" ::"r"(~(uintptr_t)0),
      "r"(PMP_EVERYTHING), "r"(satp), "r"(MSTATUS_MPP), "r"(MSTATUS_AS_SUPERVISOR)
      : "memory");
}

#endif
