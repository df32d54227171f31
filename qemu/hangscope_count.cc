// A plugin of QEMU that counts what each hart executes of some pieces of code: instructions, loads,
// stores, and how often the piece was entered. `hangscope cost` loads it, but it needs nothing of
// hangscope:
//
//   qemu-system-riscv32 ...
//       -plugin hangscope_count.so,fd=5,range=0:0x80000100:0x8000013c,begin=1:...
//
// fd=N             an open descriptor, to which go JSON Lines: one when the plugin is loaded, and
//                  when QEMU ends (by itself, SIGTERM or SIGINT) one for each piece and hart, then
//                  {"type":"end"}
// range=P:A:B      what lies at the addresses from A to before B is of the piece P, 0 to 63;
//                  entered by executing A. What it calls lies elsewhere and does not count
// begin=P:A        whatever a hart executes from A on is of the piece P, wherever it lies, until
// end=P:A          it comes to this address. Both may be given for several addresses
//
// Numbers are those of C. An instruction that is begun and ends in a trap counts. An AMO counts as
// one store and no load, and so does a store-conditional, whether it stores or not.
//
// Exact under multi-threaded TCG: each hart has counters of its own, on cache lines of its own, and
// only its own thread writes them.
#include <pthread.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "plugin_api.h"

namespace {

constexpr unsigned kMostPieces = 64;  // bits of a Set
constexpr unsigned kMostPlaces = 1024;
constexpr unsigned kMostSites = 4096;

using Set = uint64_t;  // of pieces

struct Counters {
  uint64_t entered;
  uint64_t instructions;
  uint64_t loads;
  uint64_t stores;
};

struct alignas(64) Hart {
  Set inside;  // between which marks it is
  Counters pieces[kMostPieces];
};

// An argument: a range, or a mark, whose second address is not used.
struct Place {
  enum Kind { kRange, kBegin, kEnd } kind;
  uint64_t piece;
  uint64_t first;
  uint64_t behind;
};

// What an instruction is to the pieces.
struct Site {
  Set covering;  // ranges it lies in
  Set firsts;    // ranges it is the first of
  Set begins;
  Set ends;
  bool writes_atomically;

  bool operator==(const Site& other) const {
    return covering == other.covering && firsts == other.firsts && begins == other.begins &&
           ends == other.ends && writes_atomically == other.writes_atomically;
  }
};

Place places[kMostPlaces];
unsigned place_count;
unsigned piece_count;
bool has_marks;
Hart* harts;
unsigned hart_count;
int out_fd = -1;
bool is_riscv;

// Several threads translate. A site is shared by the instructions that are alike, and stays.
pthread_mutex_t sites_mutex = PTHREAD_MUTEX_INITIALIZER;
Site sites[kMostSites];
unsigned site_count;

// The exit callback reads while other harts may run on.
void Increment(uint64_t& counter) {
  __atomic_store_n(&counter, __atomic_load_n(&counter, __ATOMIC_RELAXED) + 1, __ATOMIC_RELAXED);
}
uint64_t Read(const uint64_t& counter) { return __atomic_load_n(&counter, __ATOMIC_RELAXED); }

void IncrementEach(Hart& hart, Set pieces, uint64_t Counters::*counter) {
  for (; pieces != 0; pieces &= pieces - 1)
    Increment(hart.pieces[__builtin_ctzll(pieces)].*counter);
}

// Before the instruction is executed.
void OnInstruction(unsigned number, void* data) {
  const Site& site = *static_cast<const Site*>(data);
  Hart& hart = harts[number];
  // where a copy of the code ends, the next may begin
  hart.inside = (hart.inside & ~site.ends) | site.begins;
  const Set pieces = site.covering | hart.inside;
  if (pieces == 0) return;
  IncrementEach(hart, pieces, &Counters::instructions);
  IncrementEach(hart, site.firsts | site.begins, &Counters::entered);
  if (site.writes_atomically) IncrementEach(hart, pieces, &Counters::stores);
}

// Of an AMO, QEMU 7.2 reports one access or several, depending on how many threads run the harts.
void OnAccess(unsigned number, qemu_plugin_meminfo_t info, uint64_t, void* data) {
  if (static_cast<const Site*>(data)->writes_atomically) return;
  Hart& hart = harts[number];
  IncrementEach(hart, static_cast<const Site*>(data)->covering | hart.inside,
                qemu_plugin_mem_is_store(info) ? &Counters::stores : &Counters::loads);
}

const unsigned char* BytesOf(const qemu_plugin_insn* instruction) {
  return static_cast<const unsigned char*>(qemu_plugin_insn_data(instruction));
}

// An AMO or a store-conditional; a load-reserved is a load.
bool WritesAtomically(const qemu_plugin_insn* instruction) {
  return is_riscv && (BytesOf(instruction)[0] & 0x7f) == 0x2f && BytesOf(instruction)[3] >> 3 != 2;
}

// AMOs, and vectors, which share their opcodes with floating point.
bool MayAccessByHelper(const qemu_plugin_insn* instruction) {
  if (!is_riscv) return true;
  const unsigned opcode = BytesOf(instruction)[0] & 0x7f;
  return opcode == 0x2f || opcode == 0x07 || opcode == 0x27;
}

Site SiteOf(const qemu_plugin_insn* instruction) {
  const uint64_t address = qemu_plugin_insn_vaddr(instruction);
  Site site = {};
  site.writes_atomically = WritesAtomically(instruction);
  for (unsigned i = 0; i < place_count; ++i) {
    const Place& place = places[i];
    const Set piece = Set{1} << place.piece;
    switch (place.kind) {
      case Place::kRange:
        if (address >= place.first && address < place.behind) site.covering |= piece;
        if (address == place.first) site.firsts |= piece;
        break;
      case Place::kBegin:
        if (address == place.first) site.begins |= piece;
        break;
      case Place::kEnd:
        if (address == place.first) site.ends |= piece;
        break;
    }
  }
  return site;
}

// The one like it that stays; null if there are too many.
Site* Keep(const Site& site) {
  pthread_mutex_lock(&sites_mutex);
  unsigned at = 0;
  while (at < site_count && !(sites[at] == site)) ++at;
  Site* kept = nullptr;
  if (at < kMostSites) {
    kept = &sites[at];
    if (at == site_count) {
      *kept = site;
      ++site_count;
    }
  }
  pthread_mutex_unlock(&sites_mutex);
  return kept;
}

void Watch(qemu_plugin_insn* instruction) {
  const Site site = SiteOf(instruction);
  // Between marks anything may be executed. And where QEMU calls a helper for an access of an
  // instruction without callbacks, 7.2 calls those of the latest instruction that had some.
  if (site.covering == 0 && !has_marks && !MayAccessByHelper(instruction)) return;
  Site* const kept = Keep(site);
  if (kept == nullptr) abort();  // there are not as many combinations of 64 pieces in one program
  qemu_plugin_register_vcpu_insn_exec_cb(instruction, OnInstruction, QEMU_PLUGIN_CB_NO_REGS, kept);
  // RW, for the filter of QEMU 7.2 is wrong: W lets loads through, R lets through stores alone.
  qemu_plugin_register_vcpu_mem_cb(instruction, OnAccess, QEMU_PLUGIN_CB_NO_REGS,
                                   QEMU_PLUGIN_MEM_RW, kept);
}

void OnTranslation(qemu_plugin_id_t, qemu_plugin_tb* block) {
  const size_t count = qemu_plugin_tb_n_insns(block);
  for (size_t i = 0; i < count; ++i) Watch(qemu_plugin_tb_get_insn(block, i));
}

void OnExit(qemu_plugin_id_t, void*) {
  for (unsigned piece = 0; piece < piece_count; ++piece) {
    for (unsigned number = 0; number < hart_count; ++number) {
      const Counters& own = harts[number].pieces[piece];
      dprintf(out_fd,
              "{\"type\":\"count\",\"piece\":%u,\"hart\":%u,\"entered\":%llu,\"instructions\":%llu,"
              "\"loads\":%llu,"
              "\"stores\":%llu}\n",
              piece, number, static_cast<unsigned long long>(Read(own.entered)),
              static_cast<unsigned long long>(Read(own.instructions)),
              static_cast<unsigned long long>(Read(own.loads)),
              static_cast<unsigned long long>(Read(own.stores)));
    }
  }
  dprintf(out_fd, "{\"type\":\"end\"}\n");
}

// Of C's forms; nothing may follow but `end`.
bool ParseNumber(const char** text, char end, uint64_t* number) {
  char* after = nullptr;
  *number = strtoull(*text, &after, 0);
  if (after == *text || *after != end) return false;
  *text = after + 1;
  return true;
}

bool ParsePlace(const char* text, Place::Kind kind) {
  if (place_count == kMostPlaces) return false;
  Place& place = places[place_count];
  place.kind = kind;
  const bool is_range = kind == Place::kRange;
  if (!ParseNumber(&text, ':', &place.piece) ||
      !ParseNumber(&text, is_range ? ':' : '\0', &place.first))
    return false;
  if (is_range && !(ParseNumber(&text, '\0', &place.behind) && place.first < place.behind))
    return false;
  if (place.piece >= kMostPieces) return false;
  if (place.piece >= piece_count) piece_count = static_cast<unsigned>(place.piece) + 1;
  has_marks |= !is_range;
  ++place_count;
  return true;
}

bool ParseArgument(const char* argument) {
  if (strncmp(argument, "range=", 6) == 0) return ParsePlace(argument + 6, Place::kRange);
  if (strncmp(argument, "begin=", 6) == 0) return ParsePlace(argument + 6, Place::kBegin);
  if (strncmp(argument, "end=", 4) == 0) return ParsePlace(argument + 4, Place::kEnd);
  uint64_t number = 0;
  if (strncmp(argument, "fd=", 3) != 0) return false;
  argument += 3;
  if (!ParseNumber(&argument, '\0', &number)) return false;
  out_fd = static_cast<int>(number);
  return true;
}

int Refuse(const char* why) {
  fprintf(stderr, "hangscope_count: %s\n", why);
  return -1;
}

}  // namespace

int qemu_plugin_version = 1;

int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t* info, int argc, char** argv) {
  if (!info->system_emulation) return Refuse("this is no emulator of a system");
  for (int i = 0; i < argc; ++i) {
    if (!ParseArgument(argv[i]))
      return Refuse("the arguments are fd=N, range=PIECE:FROM:TO, begin=PIECE:AT, end=PIECE:AT");
  }
  if (out_fd < 0 || place_count == 0)
    return Refuse("fd=N and one piece of code are needed at least");
  is_riscv = strncmp(info->target_name, "riscv", 5) == 0;
  hart_count = static_cast<unsigned>(info->system.max_vcpus);
  harts = static_cast<Hart*>(aligned_alloc(alignof(Hart), sizeof(Hart) * hart_count));
  if (harts == nullptr) return Refuse("no memory");
  memset(static_cast<void*>(harts), 0, sizeof(Hart) * hart_count);
  dprintf(out_fd, "{\"type\":\"loaded\",\"target\":\"%s\",\"harts\":%u,\"api\":[%d,%d]}\n",
          info->target_name, hart_count, info->version.min, info->version.cur);
  qemu_plugin_register_vcpu_tb_trans_cb(id, OnTranslation);
  qemu_plugin_register_atexit_cb(id, OnExit, nullptr);
  return 0;
}
