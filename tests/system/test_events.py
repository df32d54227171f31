"""Programs that include hangscope's headers, compiled here, and what `hangscope show` reads of them."""
import json
import os
import pathlib
import shutil
import signal
import subprocess

from support import HANGSCOPE, ROOT, Case, main

PROGRAM = """
#define _GNU_SOURCE
#define HANGSCOPE_DEFINE
#include <hangscope/hangscope.h>
#include <stdio.h>
#include <unistd.h>
#include <pthread.h>
#define HANGSCOPE_CLASS_NET HANGSCOPE_CLASS(5)
#define NET_EVENTS(EVENT) \\
  EVENT(net_sent, NET, "port %u, %d of %s", u16, port, i32, bytes) \\
  EVENT(net_down, NET, "")
#define WIDE_EVENTS(EVENT) EVENT(wide, NET, "%u at %p", u64, number, ptr, place)
HANGSCOPE_EVENTS(net, HANGSCOPE_FIRST_USER_ID, NET_EVENTS);
#if HANGSCOPE_PARAMETERS >= 4
HANGSCOPE_EVENTS(wide, 80, WIDE_EVENTS);
#endif
static void* sender(void* name) {
  pthread_setname_np(pthread_self(), name);
  for (uint32_t i = 0; i < 3000; i++) hangscope_net_sent(80, -(int32_t)i);
  return 0;
}
int main(void) {
  (void)hangscope_init();
#if HANGSCOPE_PARAMETERS >= 4
  hangscope_wide(0x123456789abcdefu, (const void*)0x1234);
#endif
#ifdef ONE
  sender("x");
#else
  pthread_t thread;
  pthread_create(&thread, 0, sender, "sender");
  pthread_join(thread, 0);
#endif
  hangscope_net_down();
  puts("done");
  fflush(stdout);
  pause();
}
"""
# While a thread asks whose ring is free, a signal arrives whose handler records, too.
INTERRUPTED = """
#define HANGSCOPE_CORES 3
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>
static __thread int armed;
static long ask(long process, long thread, long signal) {
  if (armed) { armed = 0; raise(SIGUSR1); }
  return (syscall)(SYS_tgkill, process, thread, signal);
}
#define CHOOSE(a, b, c, d, name, ...) name
#define PLAIN(number) (syscall)(number)
#define ASKS(number, process, thread, signal) ask(process, (long)(thread), signal)
#define syscall(...) CHOOSE(__VA_ARGS__, ASKS, none, none, PLAIN, none)(__VA_ARGS__)
#define HANGSCOPE_DEFINE
#include <hangscope/hangscope.h>
static struct hangscope_core* cores[2];
static sem_t ready, done;
static void on_signal(int number) { (void)number; hangscope_task_resume(1); }
static long ended;
static void* once(void* unused) { hangscope_task_yield(); ended = (syscall)(SYS_gettid); return unused; }
static void* stay(void* which) {
  armed = which == 0;
  hangscope_task_yield();
  cores[which != 0] = hangscope_thread_core;
  sem_post(&ready);
  sem_wait(&done);
  return 0;
}
int main(void) {
  pthread_t threads[2], dead[2];
  signal(SIGUSR1, on_signal);
  sem_init(&ready, 0, 0);
  sem_init(&done, 0, 0);
  hangscope_task_yield();
  for (int i = 0; i < 2; i++) {
    pthread_create(&dead[i], 0, once, 0);
    pthread_join(dead[i], 0);
    while ((syscall)(SYS_tgkill, getpid(), ended, 0) == 0) usleep(100);  // the kernel lets it go a moment later
  }
  for (long i = 0; i < 2; i++) { pthread_create(&threads[i], 0, stay, (void*)i); sem_wait(&ready); }
  for (int i = 0; i < 2; i++) sem_post(&done);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
  return armed || cores[0] == cores[1] || cores[0] == &hangscope_no_core || cores[1] == &hangscope_no_core;
}
"""
# A port for one core of a process, with the scope in its memory.
PORT = """
#include "hangscope/config.h"
#include "hangscope/port/generic.h"
#include <time.h>
#define HANGSCOPE_PORT_CORE() 0u
#define HANGSCOPE_CLOCK_KIND HANGSCOPE_CLOCK_SHARED
#define HANGSCOPE_PORT_WIDE_CLOCK 1
static inline uint64_t hangscope_port_clock64(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
static inline uint32_t hangscope_port_now(uint32_t* epoch) {
  const uint64_t now = hangscope_port_clock64();
  *epoch = (uint32_t)(now >> 30);
  return (uint32_t)now;
}
"""


class Programs(Case):
    def setUp(self):
        super().setUp()
        self.compiler = os.environ.get("CC") or shutil.which("gcc") or shutil.which("cc")
        if self.compiler is None:
            self.skipTest("there is no C compiler here (package gcc)")

    def start(self, *flags, before=()):
        """The program, compiled and run until it is done and waits; a line of its own is asked for."""
        source, self.program = self.folder / "net.c", self.folder / "net"
        source.write_text(PROGRAM.replace(" of %s", " bytes"))
        (self.folder / "port.h").write_text(PORT)
        subprocess.run([self.compiler, "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'include'}",
                        f"-I{self.folder}", *flags, str(source), "-o", str(self.program), "-pthread"], check=True)
        process = subprocess.Popen([*before, str(self.program)], stdout=subprocess.PIPE)
        self.addCleanup(self.end, process)
        self.assertEqual(process.stdout.readline(), b"done\n")
        return process

    def show(self, *words):
        done = self.hangscope("show", "--json", *words)
        self.assertEqual(done.status, 0, done.err)
        self.found = [json.loads(line) for line in done.out.splitlines()]
        return [m for m in self.found if m["type"] == "event" and m["name"] != "anchor"]

    def scope_file(self, process):
        return self.runtime / "hangscope" / f"net.{process.pid}.scope"

    def check_events(self, events, held):
        sent = [m for m in events if m["name"] == "net_sent"]
        count = len(sent)
        wanted = [[80, (1 << 32) - i] for i in range(3000 - count, 3000)]
        self.assertTrue([m["parameters"][:2] for m in sent] == wanted, sent[-1])
        self.assertEqual(sent[-1]["text"], "port 80, -2999 bytes")
        self.assertGreater(count, held - 8)
        self.assertEqual(events[-1]["name"], "net_down")

    def test_a_killed_program_is_read_from_its_file(self):
        process = self.start()
        process.send_signal(signal.SIGKILL)
        process.wait()
        self.check_events(self.show("--elf", self.program, self.scope_file(process)), 1024)
        core, = [m for m in self.found if m["type"] == "core" and m["name"] == "sender"]
        self.assertEqual(core["emitted"], core["returned"] + core["overwritten"])
        self.assertEqual((core["torn"], core["refused"], core["returned"]), (0, 0, 1024))

    def test_a_program_that_was_built_again_is_noticed(self):
        process = self.start("-Wl,--build-id=sha1")
        self.show("--elf", self.program, self.scope_file(process))
        self.assertEqual(self.hangscope("show", "--elf", self.program, self.scope_file(process)).err, b"")
        other = self.folder / "other"
        subprocess.run([self.compiler, "-std=gnu11", "-O1", "-DOTHER", f"-I{ROOT / 'include'}", "-Wl,--build-id=sha1",
                        str(self.folder / "net.c"), "-o", str(other), "-pthread"], check=True)
        self.assertIn(b"is not what runs there: the build ids differ",
                      self.hangscope("show", "--elf", other, self.scope_file(process)).err)

    def test_following_the_file_of_a_dead_program_ends(self):
        process = self.start()
        process.send_signal(signal.SIGKILL)
        process.wait()
        done = self.hangscope("show", "--follow", self.scope_file(process), timeout=20)
        self.assertEqual(done.status, 0, done.err)

    def test_the_file_of_a_program_in_another_container_is_followed_until_it_ends(self):
        unshare = ["unshare", *([] if os.geteuid() == 0 else ["-Ur"]), "-p", "-f", "--kill-child"]
        if subprocess.run([*unshare, "true"], capture_output=True).returncode != 0:
            self.skipTest("no pid namespace may be made here (unshare -p)")
        process = self.start(before=[*unshare, "sh", "-c", "\"$0\"; wait"])
        scope, = (self.runtime / "hangscope").glob("net.*.scope")  # by its number there
        show = subprocess.Popen([HANGSCOPE, "show", "--follow", scope], stdout=subprocess.DEVNULL)
        self.addCleanup(self.end, show)
        with self.assertRaises(subprocess.TimeoutExpired):
            show.wait(0.5)
        process.kill()
        self.assertEqual(show.wait(20), 0)

    def test_output_that_cannot_be_written_is_said(self):
        process = self.start()
        with open("/dev/full", "wb") as full:
            done = subprocess.run([HANGSCOPE, "show", f"pid:{process.pid}"], stdout=full, stderr=subprocess.PIPE, timeout=20)
        self.assertEqual(done.returncode, 3)
        self.assertIn(b"error: cannot write 'standard output': No space left", done.stderr)

    def test_no_two_threads_share_a_ring_when_a_handler_looks_for_one_meanwhile(self):
        source, program = self.folder / "interrupted.c", self.folder / "interrupted"
        source.write_text(INTERRUPTED)
        subprocess.run([self.compiler, "-std=gnu11", "-O2", f"-I{ROOT / 'include'}", str(source), "-o", str(program),
                        "-pthread"], check=True)
        self.assertEqual(subprocess.run([str(program)], timeout=20).returncode, 0)

    def test_a_library_with_a_scope_of_its_own_comes_beside_the_programs(self):
        library, program = self.folder / "own.so", self.folder / "both"
        source = self.folder / "own.c"
        source.write_text("#define HANGSCOPE_DEFINE\n#include <hangscope/hangscope.h>\n"
                          "void record(void) { hangscope_task_resume(7); }\n")
        main_source = self.folder / "both.c"
        main_source.write_text("#define HANGSCOPE_DEFINE\n#include <hangscope/hangscope.h>\n#include <dlfcn.h>\n#include <stdio.h>\n"
                               "int main(int n, char** w) { void (*f)(void); void* l; hangscope_task_suspend(5);\n"
                               "  l = dlopen(w[n - 1], RTLD_NOW); *(void**)&f = dlsym(l, \"record\"); f(); hangscope_task_suspend(6); return 0; }\n")
        for out, flags in ((library, ["-shared", "-fPIC", str(source)]), (program, [str(main_source)])):
            subprocess.run([self.compiler, "-std=gnu11", "-O2", f"-I{ROOT / 'include'}", *flags, "-o", str(out)], check=True)
        done = subprocess.run([str(program), str(library)], timeout=20)
        self.assertEqual(done.returncode, 0)
        files = sorted((self.runtime / "hangscope").iterdir())
        self.assertEqual(len(files), 2, files)
        found = [[(e["name"], e["parameters"][0]) for e in self.show(file)] for file in files]
        self.assertEqual(sorted(found), [[("task_resume", 7)], [("task_suspend", 5), ("task_suspend", 6)]])

    def test_a_live_program_names_its_file_and_its_events(self):
        process = self.start()
        self.check_events(self.show(f"pid:{process.pid}"), 1024)

    def test_a_scope_in_the_memory_of_a_process(self):
        process = self.start('-DHANGSCOPE_PORT="port.h"', "-DHANGSCOPE_RING_CAPACITY=64", "-DONE")
        self.check_events(self.show(f"pid:{process.pid}", "--elf", self.program), 64)
        core, = [m for m in self.found if m["type"] == "core"]
        self.assertEqual(core["emitted"], core["returned"] + core["overwritten"])

    def test_wide_fields(self):
        process = self.start("-DHANGSCOPE_PARAMETERS=4")
        events = self.show(f"pid:{process.pid}")
        self.check_events(events, 1024)
        wide, = [m for m in events if m["name"] == "wide"]
        self.assertEqual(wide["text"], f"{0x123456789abcdef} at 0x1234")

    def test_anchors_are_shown_to_who_asks(self):
        process = self.start()
        said = self.hangscope("show", f"pid:{process.pid}").out
        self.assertEqual(said.count(b" anchor "), 0)
        self.assertGreater(self.hangscope("show", f"pid:{process.pid}", "--event", "anchor").out.count(b" anchor "), 0)

    def test_recording_off_leaves_nothing(self):
        process = self.start("-DHANGSCOPE_ENABLE=0")
        self.assertFalse(self.scope_file(process).exists())
        done = self.hangscope("show", f"pid:{process.pid}")
        self.assertEqual(done.status, 3)
        self.assertRegex(done.err.decode(), "error: process .* has no file mapped")

    def test_without_a_folder_nothing_is_recorded_and_nothing_is_broken(self):
        (self.runtime / "hangscope").write_text("in the way")
        process = self.start()
        self.assertEqual(self.hangscope("show", f"pid:{process.pid}").status, 3)


if __name__ == "__main__":
    main()
