/* The scope of a Linux process: a file that is mapped, so that what was recorded survives the
 * process, SIGKILL included.
 *
 *   $HANGSCOPE_SCOPE                                   if set: the file's path
 *   $XDG_RUNTIME_DIR/hangscope/NAME.PID.scope          otherwise
 *   /tmp/hangscope-UID/NAME.PID.scope                  if there is no such folder
 *
 * It is made before main, in a folder that only its user can enter, with all its room allocated: a
 * full disk is found out here and not by a store. Without a file nothing is recorded and
 * hangscope_scope_path says so. The file stays when the process ends; the next start of a program
 * of that name removes those of dead processes but the newest HANGSCOPE_KEPT_SCOPES.
 *
 * Each thread gets a ring with its first event, in a signal handler too. When all are taken, those
 * of threads that ended are used again, the longest unused first; a thread that finds none is
 * counted (lost_threads), and looks again now and then.
 *
 * $HANGSCOPE_FEATURES says what of abi/watch.h is switched on from the start: "asserts,stacks"
 * these only,
 * "-asserts,-bus" all but these, "all", "0" none. The names: waypoints waits asserts pauses debug
 * delays bus stacks guards. Words that mean nothing change nothing and are counted
 * (unknown_settings).
 *
 * fork gives the child a scope of its own. A child made by another way, clone or vfork, must not
 * record before it execs. The file that defines HANGSCOPE_DEFINE needs _GNU_SOURCE, or
 * the compiler's GNU dialect. */
#ifndef HANGSCOPE_TARGET_LINUX_H
#define HANGSCOPE_TARGET_LINUX_H

#include "hangscope/target/init.h"
#include "hangscope/target/stack.h"

#ifdef __cplusplus
extern "C" {
#endif

#if HANGSCOPE_ENABLE

/* Of this process's scope; null if there is none. */
const char* hangscope_scope_path(void);

#if HANGSCOPE_STACKS
/* hangscope_stack_paint for the calling thread, of whose stack the C library knows where it is.
 * Paint makes the kernel find memory for all of it: it is for threads whose stacks are not larger
 * than they must be. Returns 0 and does nothing for one above HANGSCOPE_LARGEST_STACK, or that is
 * not known. */
int hangscope_stack_paint_thread(void);
#endif

#ifdef HANGSCOPE_DEFINE

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef HANGSCOPE_KEPT_SCOPES
#define HANGSCOPE_KEPT_SCOPES 4
#endif
#ifndef HANGSCOPE_LARGEST_STACK /* bytes */
#define HANGSCOPE_LARGEST_STACK (16u << 20)
#endif
/* Events after which a thread without a ring looks for one again. */
#define HANGSCOPE_LOOK_AGAIN 1024u

struct hangscope_scope* hangscope_mapped_scope;
struct hangscope_core hangscope_no_core;
__thread struct hangscope_core* hangscope_thread_core __attribute__((tls_model("initial-exec"))) =
    &hangscope_no_core;
#if HANGSCOPE_HAS_MAILBOXES
struct hangscope_mailbox hangscope_no_mailbox;
__thread struct hangscope_mailbox* hangscope_thread_mailbox
    __attribute__((tls_model("initial-exec"))) = &hangscope_no_mailbox;
static pthread_key_t hangscope_thread_end;
static int hangscope_thread_end_is_told; /* hangscope_thread_end is a key */
#endif

static struct {
  char path[512];
  char folder[400];
  char name[24];
  uint32_t next_ring; /* where the search for a ring begins */
} hangscope_process;

/* Of each thread its own: several may fork at once. */
static __thread sigset_t hangscope_mask_before_fork __attribute__((tls_model("initial-exec")));

/* Of a thread without a ring, modulo HANGSCOPE_LOOK_AGAIN; 0: it has not looked for one, or has
 * one. */
static __thread uint32_t hangscope_lost_events __attribute__((tls_model("initial-exec")));

const char* hangscope_scope_path(void) {
  return hangscope_mapped_scope == 0 ? 0 : hangscope_process.path;
}

/* Both clocks, for the host to tell how fast the one is. Whoever finds another one at it lets it
 * be. */
static void hangscope_look_at_clocks(struct hangscope_header* header) {
  const uint32_t sequence = hangscope_port_load(&header->last_sequence);
  struct timespec now;
  if ((sequence & 1) != 0 ||
      !hangscope_port_swap_if(&header->last_sequence, sequence, sequence + 1))
    return;
  hangscope_port_stores_in_order();
  clock_gettime(CLOCK_MONOTONIC, &now);
  __atomic_store_n(&header->last_time, hangscope_port_clock64(), __ATOMIC_RELAXED);
  __atomic_store_n(&header->last_ns, (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec,
                   __ATOMIC_RELAXED);
  hangscope_port_publish(&header->last_sequence, sequence + 2);
}

/* A program with more rights than its caller does not do as the caller says. */
static const char* hangscope_environment(const char* name) {
  return getauxval(AT_SECURE) != 0 ? 0 : getenv(name);
}

static int hangscope_make_folder(const char* folder) {
  struct stat info;
  if (mkdir(folder, 0700) != 0 && errno != EEXIST) return 0;
  return lstat(folder, &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == geteuid() &&
         (info.st_mode & 077) == 0;
}

static int hangscope_choose_folder(void) {
  const char* const runtime = hangscope_environment("XDG_RUNTIME_DIR");
  struct stat info;
  char* const folder = hangscope_process.folder;
  const size_t size = sizeof hangscope_process.folder;
  if (runtime != 0 && runtime[0] == '/' && strlen(runtime) < size - 16 &&
      stat(runtime, &info) == 0 && S_ISDIR(info.st_mode)) {
    snprintf(folder, size, "%s/hangscope", runtime);
  } else {
    snprintf(folder, size, "/tmp/hangscope-%u", (unsigned)geteuid());
  }
  return hangscope_make_folder(folder);
}

/* The process of a scope file of a program of this name; 0 for any other file. */
static long hangscope_process_of(const char* file) {
  const size_t length = strlen(hangscope_process.name);
  char* end;
  if (strncmp(file, hangscope_process.name, length) != 0 || file[length] != '.') return 0;
  const long pid = strtol(file + length + 1, &end, 10);
  if (*end == '.' && end[1] >= '0' && end[1] <= '9') (void)strtol(end + 1, &end, 10);
  return strcmp(end, ".scope") == 0 && pid > 0 ? pid : 0;
}

/* Removes the oldest file of a dead process of this name if there are too many; returns whether. */
static int hangscope_remove_oldest(void) {
  DIR* const folder = opendir(hangscope_process.folder);
  if (folder == 0) return 0;
  char oldest[256] = "";
  struct timespec oldest_time = {0, 0};
  int dead = 0;
  struct dirent* entry;
  while ((entry = readdir(folder)) != 0) {
    struct stat info;
    const long pid = hangscope_process_of(entry->d_name);
    if (pid == 0 || kill((pid_t)pid, 0) == 0 || errno != ESRCH) continue;
    if (fstatat(dirfd(folder), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0) continue;
    const int older =
        info.st_mtim.tv_sec < oldest_time.tv_sec ||
        (info.st_mtim.tv_sec == oldest_time.tv_sec && info.st_mtim.tv_nsec < oldest_time.tv_nsec);
    if (dead++ == 0 || older) {
      snprintf(oldest, sizeof oldest, "%s", entry->d_name);
      oldest_time = info.st_mtim;
    }
  }
  const int removed = dead > HANGSCOPE_KEPT_SCOPES && unlinkat(dirfd(folder), oldest, 0) == 0;
  closedir(folder);
  return removed;
}

/* How many this process has mapped already. */
static unsigned hangscope_scopes_of_this_process(void) {
  FILE* const maps = fopen("/proc/self/maps", "re");
  unsigned scopes = 0;
  char line[1024];
  while (maps != 0 && fgets(line, sizeof line, maps) != 0) {
    const size_t length = strlen(line);
    scopes += length > 7 && memcmp(line + length - 7, ".scope\n", 7) == 0;
  }
  if (maps != 0) fclose(maps);
  return scopes;
}

static int hangscope_open_file(void) {
  const char* const asked = hangscope_environment("HANGSCOPE_SCOPE");
  char* const path = hangscope_process.path;
  if (asked != 0 && asked[0] != '\0') {
    snprintf(path, sizeof hangscope_process.path, "%s", asked);
    /* A child's goes beside it. */
    const int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd >= 0 || errno != EEXIST) return fd;
    snprintf(path, sizeof hangscope_process.path, "%.480s.%d.scope", asked, (int)getpid());
    unlink(path);
    return open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  }
  if (!hangscope_choose_folder()) return -1;
  for (int i = 0; i < 64 && hangscope_remove_oldest(); i++) {
  }
  /* A shared library with a scope of its own comes after the program's; what an earlier process of
   * this number left is nobody's. */
  const unsigned scopes = hangscope_scopes_of_this_process();
  if (scopes == 0) {
    snprintf(path, sizeof hangscope_process.path, "%s/%s.%d.scope", hangscope_process.folder,
             hangscope_process.name, (int)getpid());
  } else {
    snprintf(path, sizeof hangscope_process.path, "%s/%s.%d.%u.scope", hangscope_process.folder,
             hangscope_process.name, (int)getpid(), scopes + 1);
  }
  unlink(path);
  return open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
}

/* Of the program or library that this is in: its ELF header lies where the linker says. */
extern const char __ehdr_start[] __attribute__((weak, visibility("hidden")));
static void hangscope_find_build_id(struct hangscope_header* header) {
  const ElfW(Ehdr)* const elf = (const ElfW(Ehdr)*)(const void*)__ehdr_start;
  if (elf == 0) return;
  const ElfW(Phdr)* const segments = (const ElfW(Phdr)*)(const void*)(__ehdr_start + elf->e_phoff);
  for (unsigned i = 0; i < elf->e_phnum; i++) {
    if (segments[i].p_type != PT_NOTE) continue;
    /* A linker puts the notes it makes behind the headers, in the segment that begins with them. */
    const char* note = __ehdr_start + segments[i].p_offset;
    const char* const end = note + segments[i].p_filesz;
    while (note + sizeof(ElfW(Nhdr)) <= end) {
      const ElfW(Nhdr)* const head = (const ElfW(Nhdr)*)(const void*)note;
      const char* const name = note + sizeof *head;
      const char* const id = name + ((head->n_namesz + 3) & ~3u);
      if (id + head->n_descsz > end) break;
      if (head->n_type == NT_GNU_BUILD_ID && head->n_namesz == 4 && memcmp(name, "GNU", 4) == 0) {
        memcpy(header->build_id, id,
               head->n_descsz < sizeof header->build_id ? head->n_descsz : sizeof header->build_id);
        return;
      }
      note = id + ((head->n_descsz + 3) & ~3u);
    }
  }
}

/* Where the ELF's address 0 lies: what moves is linked from 0 on. */
static uint64_t hangscope_program_at(void) {
  const ElfW(Ehdr)* const elf = (const ElfW(Ehdr)*)(const void*)__ehdr_start;
  return elf != 0 && elf->e_type == ET_DYN ? (uint64_t)(uintptr_t)elf : 0;
}

#if HANGSCOPE_HAS_MAILBOXES

/* The features of one word of $HANGSCOPE_FEATURES, "-" left out; 0: it is no such word. */
static uint32_t hangscope_features_of(const char* word, size_t length) {
  static const struct {
    char name[12];
    uint32_t features;
  } known[] = {
      {"all", HANGSCOPE_WATCH_FEATURES},  {"waypoints", HANGSCOPE_WATCH_WAYPOINTS},
      {"waits", HANGSCOPE_WATCH_WAITS},   {"asserts", HANGSCOPE_WATCH_ASSERTS},
      {"pauses", HANGSCOPE_WATCH_PAUSES}, {"debug", HANGSCOPE_WATCH_DEBUG},
      {"delays", HANGSCOPE_WATCH_DELAYS}, {"bus", HANGSCOPE_WATCH_BUS},
      {"stacks", HANGSCOPE_WATCH_STACKS}, {"guards", HANGSCOPE_WATCH_GUARDS},
  };
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
    if (strlen(known[i].name) == length && memcmp(known[i].name, word, length) == 0)
      return known[i].features;
  }
  return 0;
}

/* Switches on what the environment asks for, of what is built in. */
static void hangscope_obey_environment(struct hangscope_scope* scope) {
  static const char separators[] = ", ";
  const char* word = hangscope_environment("HANGSCOPE_FEATURES");
  if (word == 0) return;
  word += strspn(word, separators);
  if (*word == '\0') return;
  uint32_t on = *word == '-' ? HANGSCOPE_WATCH_FEATURES : 0;
  uint32_t known = 0;
  for (; *word != '\0'; word += strspn(word, separators)) {
    const size_t length = strcspn(word, separators);
    const int off = *word == '-';
    const uint32_t features = hangscope_features_of(word + off, length - (size_t)off);
    const int none = length == 1 && *word == '0';
    if (none) on = 0;
    on = off ? on & ~features : on | features;
    known += none || features != 0;
    scope->header.unknown_settings += !none && features == 0;
    word += length;
  }
  if (known != 0) scope->watch.switches = on & HANGSCOPE_WATCH_BUILT_IN;
}

#endif

static void hangscope_open(void) {
  if (prctl(PR_GET_NAME, hangscope_process.name, 0, 0, 0) != 0) return;
  for (char* c = hangscope_process.name; *c != '\0'; c++) {
    if (*c == '/') *c = '_';
  }
  const int fd = hangscope_open_file();
  if (fd < 0) return;
  void* memory = MAP_FAILED;
  if (posix_fallocate(fd, 0, sizeof(struct hangscope_scope)) == 0) {
    memory = mmap(0, sizeof(struct hangscope_scope), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  }
  close(fd);
  if (memory == MAP_FAILED) {
    unlink(hangscope_process.path);
    return;
  }
  struct hangscope_scope* const scope = (struct hangscope_scope*)memory;
  struct hangscope_header* const header = &scope->header;
  hangscope_describe(header);
  hangscope_find_build_id(header);
  header->boots = 1;
  header->pid = (uint32_t)getpid();
  hangscope_look_at_clocks(header);
  header->sync_time = header->last_time;
  header->sync_ns = header->last_ns;
  hangscope_watch_anew(scope, hangscope_program_at());
#if HANGSCOPE_HAS_MAILBOXES
  hangscope_obey_environment(scope);
#endif
  for (uint32_t i = 0; i < HANGSCOPE_CORES; i++)
    hangscope_port_store(&scope->cores[i].ring.mask, HANGSCOPE_FIRST_MASK);
  hangscope_port_publish(&header->check, hangscope_header_check(header));
  hangscope_process.next_ring = 0;
  /* Publishes the scope: pairs with hangscope_enter_thread's load. */
  __atomic_store_n(&hangscope_mapped_scope, scope, __ATOMIC_RELEASE);
}

static int hangscope_is_dead(uint32_t thread) {
  return syscall(SYS_tgkill, getpid(), (pid_t)thread, 0) != 0 && errno == ESRCH;
}

/* Takes a ring that is free, or whose thread ended: `of_the_dead`. An owner changes only while the
 * ring is claimed: another thread that saw the same dead owner may have been faster, and owns it
 * now. */
static struct hangscope_core* hangscope_claim(struct hangscope_scope* scope, uint32_t thread,
                                              int of_the_dead) {
  const uint32_t first = hangscope_port_load(&hangscope_process.next_ring);
  for (uint32_t n = 0; n < HANGSCOPE_CORES; n++) {
    const uint32_t i = (first + n) % HANGSCOPE_CORES;
    struct hangscope_ring* const ring = &scope->cores[i].ring;
    const uint32_t owner = hangscope_port_load(&ring->owner);
    if (of_the_dead) {
      if (hangscope_port_load(&ring->state) != HANGSCOPE_RING_LIVE ||
          (owner != thread && !hangscope_is_dead(owner)))
        continue;
    }
    const uint32_t expected = of_the_dead ? HANGSCOPE_RING_LIVE : HANGSCOPE_RING_FREE;
    if (!hangscope_port_swap_if(&ring->state, expected, HANGSCOPE_RING_CLAIMED)) continue;
    if (of_the_dead && hangscope_port_load(&ring->owner) != owner) {
      hangscope_port_publish(&ring->state, HANGSCOPE_RING_LIVE);
      continue;
    }
    hangscope_port_store(&hangscope_process.next_ring, i + 1);
    return &scope->cores[i];
  }
  return 0;
}

/* What an earlier owner left is neither this one's history nor in its way. */
static void hangscope_make_mine(struct hangscope_core* core, uint32_t thread) {
  struct hangscope_ring* const ring = &core->ring;
  for (uint32_t i = 0; i < HANGSCOPE_RING_CAPACITY; i++) {
    uint32_t* const mark = &core->records[i * HANGSCOPE_RECORD_WORDS];
    if (hangscope_is_busy(hangscope_port_load(mark))) hangscope_port_store(mark, 0);
  }
  hangscope_port_store(&ring->refused, 0);
  for (int i = 0; i < 8; i++) hangscope_port_store(&ring->refused_tickets[i], 0);
  const uint64_t begun = hangscope_begun_by(core);
  char name[16] = "";
  uint32_t words[4];
  (void)prctl(PR_GET_NAME, name, 0, 0, 0);
  memcpy(words, name, sizeof words);
  for (int i = 0; i < 4; i++) hangscope_port_store((uint32_t*)(void*)ring->name + i, words[i]);
  hangscope_port_store(&ring->base[0], (uint32_t)begun);
  hangscope_port_store(&ring->base[1], (uint32_t)(begun >> 32));
  hangscope_port_store(&ring->boot[0], (uint32_t)begun);
  hangscope_port_store(&ring->boot[1], (uint32_t)(begun >> 32));
  hangscope_port_store(&ring->generation, hangscope_port_load(&ring->generation) + 1);
  hangscope_port_store(&ring->owner, thread);
  hangscope_port_publish(&ring->state, HANGSCOPE_RING_LIVE); /* pairs with a reader of who it is */
}

/* The calling thread's ring; hangscope_no_core if it gets none. Signals wait meanwhile: a handler
 * would look for a ring, too. */
struct hangscope_core* hangscope_enter_thread(void) {
  struct hangscope_scope* const scope = __atomic_load_n(&hangscope_mapped_scope, __ATOMIC_ACQUIRE);
  if (scope == 0) return &hangscope_no_core;
  /* A thread that found none lets most of its events go: looking for one takes system calls. */
  const uint32_t events = hangscope_lost_events;
  if (events != 0) hangscope_lost_events = events % HANGSCOPE_LOOK_AGAIN + 1;
  if (events % HANGSCOPE_LOOK_AGAIN != 0) return &hangscope_no_core;
  const int error = errno;
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  /* A handler may have been here before they were made to wait. */
  if (hangscope_thread_core == &hangscope_no_core) {
    const uint32_t thread = (uint32_t)syscall(SYS_gettid);
    struct hangscope_core* core = hangscope_claim(scope, thread, 0);
    if (core == 0) core = hangscope_claim(scope, thread, 1);
    if (core != 0) {
      hangscope_watch_core_anew(scope, (uint32_t)(core - scope->cores));
      hangscope_make_mine(core, thread);
      hangscope_thread_core = core;
#if HANGSCOPE_HAS_MAILBOXES
      hangscope_thread_mailbox = &scope->mailboxes[core - scope->cores];
      if (hangscope_thread_end_is_told)
        (void)pthread_setspecific(hangscope_thread_end, hangscope_thread_mailbox);
#endif
      hangscope_look_at_clocks(&scope->header);
    } else if (hangscope_lost_events == 0) {
      hangscope_lost_events = 1;
      (void)hangscope_port_add(&scope->header.lost_threads, 1);
    }
  }
  pthread_sigmask(SIG_SETMASK, &before, 0);
  errno = error;
  return hangscope_thread_core;
}

#if HANGSCOPE_HAS_MAILBOXES
struct hangscope_mailbox* hangscope_enter_mailbox(void) {
  (void)hangscope_enter_thread();
  return hangscope_thread_mailbox;
}
/* Says that a thread is no more; what it holds stays written. In a child of fork it is the child's.
 */
static void hangscope_thread_ends(void* mailbox) {
  if (mailbox == hangscope_thread_mailbox && hangscope_thread_mailbox != &hangscope_no_mailbox) {
    hangscope_port_publish(&hangscope_thread_mailbox->launch, HANGSCOPE_LAUNCH_ENDED);
  }
}
#endif

#if HANGSCOPE_STACKS
int hangscope_stack_paint_thread(void) {
  pthread_attr_t attributes;
  void* lowest = 0;
  size_t bytes = 0;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return 0;
  const int known =
      pthread_attr_getstack(&attributes, &lowest, &bytes) == 0 && bytes <= HANGSCOPE_LARGEST_STACK;
  (void)pthread_attr_destroy(&attributes);
  return known ? hangscope_stack_paint(lowest, (uint32_t)bytes) : 0;
}
#endif

/* No signal handler may record between the fork and the child's new scope: it would write to the
 * parent's. */
static void hangscope_before_fork(void) {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &hangscope_mask_before_fork);
}
static void hangscope_after_fork(void) {
  pthread_sigmask(SIG_SETMASK, &hangscope_mask_before_fork, 0);
}
static void hangscope_in_child(void) {
  struct hangscope_scope* const parents = hangscope_mapped_scope;
  hangscope_thread_core = &hangscope_no_core;
#if HANGSCOPE_HAS_MAILBOXES
  hangscope_thread_mailbox = &hangscope_no_mailbox;
#endif
  hangscope_mapped_scope = 0;
  hangscope_lost_events = 0;
  if (parents != 0) munmap(parents, sizeof *parents);
  hangscope_open();
  hangscope_after_fork();
}

/* Before the program's own constructors. */
__attribute__((constructor(101))) static void hangscope_begin(void) {
  if (hangscope_mapped_scope != 0) return; /* a program and a library that share these variables */
  hangscope_open();
#if HANGSCOPE_HAS_MAILBOXES
  /* A thread's first look may be in a signal handler: the C library keeps the first 32 keys' values
   * in the thread itself, and takes memory for the others, which a handler must not. */
  hangscope_thread_end_is_told =
      pthread_key_create(&hangscope_thread_end, hangscope_thread_ends) == 0 &&
      hangscope_thread_end < 32;
#endif
  (void)pthread_atfork(hangscope_before_fork, hangscope_after_fork, hangscope_in_child);
}

/* Threads that are at work are no hang and no crash then. */
__attribute__((destructor(101))) static void hangscope_end(void) {
  if (hangscope_mapped_scope == 0) return;
  hangscope_look_at_clocks(&hangscope_mapped_scope->header);
  /* pairs with a host's look after the end */
  hangscope_port_publish(&hangscope_mapped_scope->header.exiting, 1);
}

/* It is there already. */
uint32_t hangscope_init(void) { return 0; }

#endif /* HANGSCOPE_DEFINE */

#else

HANGSCOPE_INLINE const char* hangscope_scope_path(void) { return 0; }

#endif

#if !HANGSCOPE_ENABLE || !HANGSCOPE_STACKS

HANGSCOPE_OFF_BEGIN
HANGSCOPE_OFF int hangscope_stack_paint_thread(void) { return 0; }
HANGSCOPE_OFF_END

#endif

#ifdef __cplusplus
}
#endif

#endif
