"""Programs that include hangscope's headers, compiled here, and what `hangscope show` reads of them."""
import json
import os
import pathlib
import shutil
import signal
import subprocess

from support import ROOT, Case, main

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
# A port for one core of a process, with the scope in its memory.
PORT = """
#include "hangscope/target/config.h"
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

    def start(self, *flags):
        """The program, compiled and run until it is done and waits; a line of its own is asked for."""
        source, self.program = self.folder / "net.c", self.folder / "net"
        source.write_text(PROGRAM.replace(" of %s", " bytes"))
        (self.folder / "port.h").write_text(PORT)
        subprocess.run([self.compiler, "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'include'}",
                        f"-I{self.folder}", *flags, str(source), "-o", str(self.program), "-pthread"], check=True)
        process = subprocess.Popen([str(self.program)], stdout=subprocess.PIPE)
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
