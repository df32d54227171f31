// usage: zoo_outside NAME [NUMBER]
// Threads that look again and again for what the kernel or another process writes into their
// memory, and such as ask again and again for what never comes. The names of globals and of
// functions are what `hangscope why` has to say.
#include <fcntl.h>
#include <linux/rseq.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/rseq.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include <string>

#include "zoo.h"

using namespace zoo;  // NOLINT: programs of one source

namespace {

volatile int foreign_flag = 0;
volatile int* shared_word;
int shared_file = -1;
int gate[2];
std::atomic<int> worker_word{0};
pthread_mutex_t robust_lock;
struct rseq own_area;
char worker_stack[65536];
volatile unsigned long passes = 0;
int limit = 300;

void WaitForForeign() {
  while (foreign_flag == 0) {
  }
}

void WaitForShared() {
  while (*shared_word == 0) {
  }
}

void WaitAtGate() { ReadByte(gate[0]); }

// --- The flag is in memory of the process alone, and another process writes to it.

void WriteTo(pid_t process, volatile int* address) {
  int one = 1;
  const iovec local = {&one, sizeof one};
  const iovec remote = {const_cast<int*>(address), sizeof one};
  process_vm_writev(process, &local, 1, &remote, 1, 0);
}

void WrittenByChild(long) {
  const pid_t own = getpid();
  if (Fork() == 0) {
    Rename("writer");
    NapForLong();
    WriteTo(own, &foreign_flag);
    _exit(0);
  }
  Ready();
  WaitForForeign();
}

void WrittenByParent(long) {
  const pid_t child = Fork();
  if (child == 0) {
    Rename("asked");
    Ready();
    WaitForForeign();
    _exit(0);
  }
  NapForLong();
  WriteTo(child, &foreign_flag);
}

// The writer is another program, which was told where to write.
void WrittenByHelper(long address) {
  if (address != 0) {
    NapForLong();
    WriteTo(getppid(), reinterpret_cast<volatile int*>(address));
    _exit(0);
  }
  if (Fork() == 0) {
    const std::string where = std::to_string(reinterpret_cast<long>(&foreign_flag));
    execl("/proc/self/exe", "helper", "written-by-helper", where.c_str(), nullptr);
    _exit(99);
  }
  Nap(0.2);
  Ready();
  WaitForForeign();
}

void WrittenThroughMemoryFile(long) {
  const std::string path = "/proc/" + std::to_string(getpid()) + "/mem";
  if (Fork() == 0) {
    Rename("writer");
    const int memory = open(path.c_str(), O_RDWR);
    Must(memory >= 0, "open");
    NapForLong();
    const int one = 1;
    Must(pwrite(memory, &one, sizeof one, reinterpret_cast<off_t>(&foreign_flag)) > 0, "pwrite");
    _exit(0);
  }
  Nap(0.2);
  Ready();
  WaitForForeign();
}

void WrittenByTracer(long) {
  const pid_t own = getpid();
  if (Fork() == 0) {
    Rename("writer");
    NapForLong();
    ptrace(PTRACE_ATTACH, own, nullptr, nullptr);
    waitpid(own, nullptr, __WALL);
    ptrace(PTRACE_POKEDATA, own, &foreign_flag, 1L);
    _exit(0);
  }
  Ready();
  WaitForForeign();
}

// The writer waits for a byte that only the spinner could send.
void WriterIsStuck(long) {
  MakePipe(gate);
  const pid_t own = getpid();
  if (Fork() == 0) {
    Rename("writer");
    close(gate[1]);
    WaitAtGate();
    WriteTo(own, &foreign_flag);
    _exit(0);
  }
  Ready();
  WaitForForeign();
  WriteByte(gate[1]);
}

// --- The kernel writes.

int CurrentCpu() { return sched_getcpu(); }

void StayOnThisCpu() {
  cpu_set_t here;
  CPU_ZERO(&here);
  CPU_SET(CurrentCpu(), &here);
  Must(sched_setaffinity(0, sizeof here, &here) == 0, "sched_setaffinity");
}

// Until somebody moves it to another one.
void WaitToBeMoved(long) {
  StayOnThisCpu();
  const int first = CurrentCpu();
  Ready();
  while (CurrentCpu() == first) {
  }
}

// The same with an area of its own, which the C library must not have registered before.
void WaitToBeMovedByOwnArea(long) {
  constexpr unsigned kSignature = 0x53053053;
  if (getenv("GLIBC_TUNABLES") == nullptr) {
    setenv("GLIBC_TUNABLES", "glibc.pthread.rseq=0", 1);
    execl("/proc/self/exe", "zoo_outside", "cpu-of-own-area", nullptr);
    _exit(99);
  }
  if (syscall(SYS_rseq, &own_area, sizeof own_area, 0, kSignature) != 0) {
    Must(write(1, "skip: no rseq\n", 14) == 14, "write");
    _exit(0);
  }
  StayOnThisCpu();
  const volatile __u32* const cpu = &own_area.cpu_id;
  const __u32 first = *cpu;
  Ready();
  while (*cpu == first) {
  }
}

// No thread of the C library, which would clear another word.
int NapAndEnd(void*) {
  timespec left = {600, 0};
  syscall(SYS_nanosleep, &left, nullptr);
  syscall(SYS_exit, 0);
  return 0;
}

int SleepForEver(void*) {
  syscall(SYS_futex, &foreign_flag, 128 /* FUTEX_WAIT | FUTEX_PRIVATE_FLAG */, 0, nullptr);
  syscall(SYS_exit, 0);
  return 0;
}

void CloneWorker(int (*work)(void*)) {
  worker_word = 1;
  constexpr int kFlags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
                         CLONE_SYSVSEM | CLONE_CHILD_CLEARTID;
  Must(clone(work, worker_stack + sizeof worker_stack, kFlags, nullptr, nullptr, nullptr,
             &worker_word) > 0,
       "clone");
}

void WaitForWorkersEnd() {
  while (worker_word.load() != 0) {
  }
}

// The kernel clears the word at the thread's end.
void EndOfNapper(long) {
  CloneWorker(NapAndEnd);
  Ready();
  WaitForWorkersEnd();
}

void EndOfSleeper(long) {
  CloneWorker(SleepForEver);
  Ready();
  WaitForWorkersEnd();
}

void* LockAndNap(void*) {
  pthread_mutex_lock(&robust_lock);
  WriteByte(gate[1]);
  NapForLong();
  return nullptr;
}

void TryUntilOwnerDied() {
  while (pthread_mutex_trylock(&robust_lock) == EBUSY) {
  }
}

// The kernel says in the mutex that its owner has ended.
void RobustOwnerNaps(long) {
  MakePipe(gate);
  pthread_mutexattr_t robust;
  pthread_mutexattr_init(&robust);
  pthread_mutexattr_setrobust(&robust, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(&robust_lock, &robust);
  Start("owner", LockAndNap);
  WaitAtGate();
  Ready();
  TryUntilOwnerDied();
}

// --- The word is in a file without a name, which another process has open and not in its memory.

void MapShared(int file) {
  shared_file = file;
  Must(file >= 0 && ftruncate(file, 4096) == 0, "a file in memory");
  void* const memory = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  Must(memory != MAP_FAILED, "mmap");
  shared_word = static_cast<volatile int*>(memory);
}

int FileOfNoName() {
  const std::string name = "/hangscope-zoo-" + std::to_string(getpid());
  const int file = shm_open(name.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600);
  shm_unlink(name.c_str());
  return file;
}

void WriteShared() {
  const int one = 1;
  Must(pwrite(shared_file, &one, sizeof one, 0) == sizeof one, "pwrite");
}

void WrittenThroughFile(long in_memory) {
  MapShared(in_memory != 0 ? memfd_create("words", 0) : FileOfNoName());
  if (Fork() == 0) {
    Rename("writer");
    munmap(const_cast<int*>(shared_word), 4096);
    NapForLong();
    WriteShared();
    _exit(0);
  }
  Ready();
  WaitForShared();
}

// Who has it open waits for a byte that only the spinner could send.
void WriterOfFileIsStuck(long) {
  MapShared(memfd_create("words", 0));
  MakePipe(gate);
  if (Fork() == 0) {
    Rename("writer");
    close(gate[1]);
    munmap(const_cast<int*>(shared_word), 4096);
    WaitAtGate();
    WriteShared();
    _exit(0);
  }
  Ready();
  WaitForShared();
  WriteByte(gate[1]);
}

// --- Calls that say the same for ever.

// No byte ever comes of /dev/null.
void ReadTenBytes(int file) {
  char bytes[16];
  long count = 0;
  while (count < 10) count += read(file, bytes, 1);
  passes = static_cast<unsigned long>(count);
}

void ReadNothing(long) {
  const int file = open("/dev/null", O_RDONLY);
  Ready();
  ReadTenBytes(file);
}

// Of a file that is shorter than was thought, and that nobody else has.
void ReadBehindEnd(long) {
  FILE* const temporary = tmpfile();
  Must(temporary != nullptr, "tmpfile");
  Ready();
  ReadTenBytes(fileno(temporary));
}

// Another process is about to write the rest.
void ReadWhatIsWrittenLater(long) {
  FILE* const temporary = tmpfile();
  Must(temporary != nullptr, "tmpfile");
  if (Fork() == 0) {
    Rename("writer");
    NapForLong();
    Must(write(fileno(temporary), "0123456789", 10) == 10, "write");
    _exit(0);
  }
  Ready();
  ReadTenBytes(fileno(temporary));
}

// A byte is never as much as that.
void CountInByte() {
  for (uint8_t number = 0; number < limit; ++number) {
  }
}

void CountSmall(long) {
  Ready();
  CountInByte();
}

// The same in a register, and nothing but that.
void CountInRegister(long) {
  Ready();
  asm volatile("xor %%eax, %%eax\n1: inc %%al\ncmp $300, %%eax\njb 1b" ::: "eax", "cc");
}

// The child was collected before.
void AwaitChild(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) != child) {
  }
}

pid_t CollectedChild() {
  const pid_t child = Fork();
  if (child == 0) _exit(0);
  waitpid(child, nullptr, 0);
  return child;
}

void WaitForNoChild(long) {
  const pid_t child = CollectedChild();
  Ready();
  AwaitChild(child);
}

void AwaitAny(pid_t child) {
  siginfo_t about = {};
  while (about.si_pid != child) waitid(P_ALL, 0, &about, WEXITED);
}

void WaitForNoChildById(long) {
  const pid_t child = CollectedChild();
  Ready();
  AwaitAny(child);
}

// It collects many, one after another.
void CollectChildren(long) {
  Ready();
  for (;;) {
    const pid_t child = Fork();
    if (child == 0) _exit(0);
    AwaitChild(child);
    passes = passes + 1;
  }
}

// --- Who naps has what others wait for.

void* TakeLock(void*) {
  pthread_mutex_lock(&robust_lock);
  return nullptr;
}

void KeepLockAndNap() {
  for (;;) usleep(50'000);
}

void NapForEverWithLock(long) {
  pthread_mutex_init(&robust_lock, nullptr);
  pthread_mutex_lock(&robust_lock);
  Start("waiter", TakeLock);
  Ready();
  KeepLockAndNap();
}

void KeepLockFor(int naps) {
  for (int i = 0; i < naps; ++i) usleep(50'000);
  pthread_mutex_unlock(&robust_lock);
}

void NapOftenWithLock(long) {
  pthread_mutex_init(&robust_lock, nullptr);
  pthread_mutex_lock(&robust_lock);
  const pthread_t waiter = Start("waiter", TakeLock);
  Ready();
  KeepLockFor(12'000);
  Join(waiter);
}

void NapUntilWithLock(long) {
  pthread_mutex_init(&robust_lock, nullptr);
  pthread_mutex_lock(&robust_lock);
  const pthread_t waiter = Start("waiter", TakeLock);
  const time_t end = time(nullptr) + 600;
  Ready();
  while (time(nullptr) < end) usleep(50'000);
  pthread_mutex_unlock(&robust_lock);
  Join(waiter);
}

// --- A terminal of which the process has both sides.

void ReadOwnTerminal(int terminal) { ReadByte(terminal); }

int OpenTerminal(int master) {
  char name[64];
  Must(grantpt(master) == 0 && unlockpt(master) == 0 && ptsname_r(master, name, sizeof name) == 0,
       "ptsname");
  const int terminal = open(name, O_RDWR | O_NOCTTY);
  Must(terminal >= 0, "open");
  return terminal;
}

void OwnTerminal(long) {
  const int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  Must(master >= 0, "posix_openpt");
  const int terminal = OpenTerminal(master);
  Ready();
  ReadOwnTerminal(terminal);
}

void* WriteTerminalLater(void* master) {
  NapForLong();
  WriteByte(static_cast<int>(Number(master)));
  return nullptr;
}

void OwnTerminalWritten(long) {
  const int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  Must(master >= 0, "posix_openpt");
  const int terminal = OpenTerminal(master);
  Start("writer", WriteTerminalLater, master);
  Ready();
  ReadOwnTerminal(terminal);
}

// Another process has the master, and reads nothing from it at the moment.
void OthersTerminal(long) {
  const int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  Must(master >= 0, "posix_openpt");
  const int terminal = OpenTerminal(master);
  if (Fork() == 0) {
    Rename("writer");
    close(terminal);
    NapForLong();
    WriteByte(master);
    _exit(0);
  }
  Ready();
  ReadOwnTerminal(terminal);
}

const Program kPrograms[] = {
    {"written-by-child", WrittenByChild},
    {"written-by-parent", WrittenByParent},
    {"written-by-helper", WrittenByHelper},
    {"written-by-memory-file", WrittenThroughMemoryFile},
    {"written-by-tracer", WrittenByTracer},
    {"writer-stuck", WriterIsStuck},
    {"cpu", WaitToBeMoved},
    {"cpu-of-own-area", WaitToBeMovedByOwnArea},
    {"end-of-napper", EndOfNapper},
    {"end-of-sleeper", EndOfSleeper},
    {"robust-owner-naps", RobustOwnerNaps},
    {"written-by-file", WrittenThroughFile},
    {"file-writer-stuck", WriterOfFileIsStuck},
    {"read-nothing", ReadNothing},
    {"read-behind-end", ReadBehindEnd},
    {"read-later", ReadWhatIsWrittenLater},
    {"count-small", CountSmall},
    {"count-in-register", CountInRegister},
    {"wait-no-child", WaitForNoChild},
    {"wait-no-child-by-id", WaitForNoChildById},
    {"collect-children", CollectChildren},
    {"nap-with-lock", NapForEverWithLock},
    {"nap-often-with-lock", NapOftenWithLock},
    {"nap-until-with-lock", NapUntilWithLock},
    {"own-terminal", OwnTerminal},
    {"own-terminal-written", OwnTerminalWritten},
    {"others-terminal", OthersTerminal},
};

}  // namespace

int main(int count, char** arguments) { return RunProgram(kPrograms, count, arguments); }
