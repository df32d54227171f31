"""hangscope why pid:N of waits in the kernel that need more than a look at the process itself."""
import os
import pathlib
import re
import subprocess
import time

import support
from test_why_process import WhyCase, family

TWO_LOCKS = """
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static pthread_mutex_t lock_a = PTHREAD_MUTEX_INITIALIZER, lock_b = PTHREAD_MUTEX_INITIALIZER;
static void* a_to_b(void* p) { pthread_mutex_lock(&lock_a); usleep(200000); pthread_mutex_lock(&lock_b); return p; }
static void* b_to_a(void* p) { pthread_mutex_lock(&lock_b); usleep(200000); pthread_mutex_lock(&lock_a); return p; }
int main(int count, char** words) {
  pthread_t first, other;
  puts("ready"), fflush(stdout);
  if (count > 1) { char byte; return (int)read(0, &byte, 1); }
  pthread_create(&first, 0, a_to_b, 0), pthread_create(&other, 0, b_to_a, 0);
  pthread_join(first, 0), pthread_join(other, 0);
  return 0;
}
"""


class KernelCase(WhyCase):
    def build(self, source, *options):
        program = pathlib.Path(self.folder, "waiter")
        (path := program.with_suffix(".c")).write_text(source)
        done = subprocess.run(["cc", "-g", "-pthread", *options, "-o", program, path, "-lrt"], capture_output=True, text=True)
        if done.returncode != 0 and "-m32" in options:
            self.skipTest("no 32-bit programs can be built here (package gcc-multilib)")
        self.assertEqual(0, done.returncode, done.stderr)
        return program

    def settle(self, process, count):
        """Until so many processes stand still."""
        def has_all():
            return len(family(process.pid) or ()) >= count
        self.until(has_all, what=f"{count} threads")
        time.sleep(0.5)
        self.settled(process.pid)

    def hang_of(self, pid):
        status, _, findings, lines = self.why(pid)
        self.assertTrue(findings, lines)
        return status, findings[0]["kind"], findings[0]["confidence"], findings[0]

    def assert_no_hang(self, pid):
        for _ in range(2):
            status, _, findings, lines = self.why(pid)
            self.assertEqual((0, []), (status, findings), lines)
        return lines

    @staticmethod
    def waits(lines, pid):
        return next(line["waits_for"]["text"] for line in lines if line.get("tid") == pid and "waits_for" in line)

    @staticmethod
    def children(pid):
        return sorted(int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split())


class Bits32(KernelCase):
    def test_two_mutexes_of_a_32_bit_program(self):
        for options in (["-m32"], ["-m32", "-static"]):
            with self.subTest(options):
                process = self.start(self.build(TWO_LOCKS, *options))
                self.settle(process, 3)
                status, kind, confidence, found = self.hang_of(process.pid)
                self.assertEqual((1, "deadlock", "certain"), (status, kind, confidence), found)
                self.assertEqual("deadlock, 2 of 3 threads wait for each other", found["summary"])
                self.assertEqual({"lock_a", "lock_b"}, set(re.findall(r"mutex (lock_.)", " ".join(each["does"] for each in found["subjects"]))))
                self.assertEqual({"a_to_b", "b_to_a"}, {each["where"].split()[0] for each in found["subjects"]})

    def test_a_32_bit_program_that_waits_for_its_input(self):
        read, write = os.pipe()
        self.addCleanup(lambda: [os.close(end) for end in (read, write)])
        process = self.start(self.build(TWO_LOCKS, "-m32"), "reads", stdin=read)
        self.settle(process, 1)
        lines = self.assert_no_hang(process.pid)
        self.assertIn("data from a pipe (fd 0)", self.waits(lines, process.pid))


if __name__ == "__main__":
    support.main()
