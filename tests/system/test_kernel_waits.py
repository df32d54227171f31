"""hangscope why pid:N of waits in the kernel for what other processes have: queues, semaphores, locks, and who stopped whom."""
import contextlib
import os
import pathlib
import pwd
import re
import shutil
import signal
import subprocess
import time

import support
from test_why_process import HUNG, WhyCase, family, states

C_PROGRAM = """
#define _GNU_SOURCE
#include <fcntl.h>
#include <mqueue.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <unistd.h>
static void ready(void) { puts("ready"), fflush(stdout); }
static int child(void) {
  const int pid = fork();
  if (pid == 0) prctl(PR_SET_PDEATHSIG, SIGKILL);
  return pid == 0;
}
"""

SEMAPHORES = C_PROGRAM + """
static int set;
static void change(int number, int by) { struct sembuf operation = {number, by, 0}; semop(set, &operation, 1); }
int main(int count, char** words) {
  set = semget(IPC_PRIVATE, 2, 0600);
  const int locks = strcmp(words[1], "locks") == 0;
  printf("%d\\n", set), fflush(stdout);
  if (locks) {
    semctl(set, 0, SETVAL, 1), semctl(set, 1, SETVAL, 1);
    if (child()) { change(0, -1), usleep(200000), change(1, -1); return 0; }
    change(1, -1), usleep(200000), change(0, -1);
    return 0;
  }
  // Two workers that take jobs, and a parent that made the set and waits for them.
  semctl(set, 0, SETVAL, 2), semctl(set, 1, SETVAL, 0);
  for (int i = 0; i < 2; ++i)
    if (child()) for (;;) change(0, -1);
  change(1, -1);
  return 0;
}
"""

MESSAGES = C_PROGRAM + """
static struct { long type; char text[8]; } message = {1, ""};
int main(int count, char** words) {
  const key_t key = count > 2 ? (key_t)getpid() : IPC_PRIVATE;
  const int asked = msgget(key, 0600 | IPC_CREAT), answered = msgget(IPC_PRIVATE, 0600);
  printf("%d %d\\n", asked, answered), fflush(stdout);
  if (strcmp(words[1], "server") == 0) { msgrcv(asked, &message, 8, 0, 0); return 0; }
  if (child()) {
    for (;;) { msgrcv(asked, &message, 8, 0, 0); if (message.text[0] == 0) msgsnd(answered, &message, 8, 0); }
  }
  msgsnd(asked, &message, 8, 0), msgrcv(answered, &message, 8, 0, 0);
  message.text[0] = 'x';  // a question that is never answered
  msgsnd(asked, &message, 8, 0), msgrcv(answered, &message, 8, 0, 0);
  return 0;
}
"""

QUEUES = C_PROGRAM + """
int main(int count, char** words) {
  struct mq_attr sizes = {0, 4, 8};
  char a[64], b[64], text[8];
  snprintf(a, sizeof a, "/hangscope%d.a", getpid()), snprintf(b, sizeof b, "/hangscope%d.b", getpid());
  mqd_t first = mq_open(a, O_RDWR | O_CREAT, 0600, &sizes), other = mq_open(b, O_RDWR | O_CREAT, 0600, &sizes);
  if (strcmp(words[1], "server") == 0) {  // it and its worker wait for those who will come
    if (strcmp(words[2], "unlinked") == 0) exit(2);
    child();
    ready();
    mq_receive(first, text, 8, 0);
    return 0;
  }
  if (strcmp(words[2], "roles") == 0) {
    const int reader = strcmp(words[1], "x");
    if (child()) { mq_close(first), mq_close(other), first = mq_open(a, O_RDONLY), other = mq_open(b, O_WRONLY); mq_receive(first, text, 8, 0); return reader; }
    mq_close(first), mq_close(other), first = mq_open(a, O_WRONLY), other = mq_open(b, O_RDONLY);
    usleep(100000);
  } else {
    if (child()) { mq_receive(first, text, 8, 0); return 0; }
  }
  if (strcmp(words[2], "unlinked") == 0) mq_unlink(a), mq_unlink(b);
  ready();
  mq_receive(other, text, 8, 0);
  return 0;
}
"""

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


class SystemV(KernelCase):
    def launch(self, source, *words):
        program = self.build(source)
        process = subprocess.Popen([program, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        self.addCleanup(self.finish, process)
        numbers = process.stdout.readline().split()
        kind = "-q" if len(numbers) == 2 else "-s"
        for number in numbers:
            self.addCleanup(subprocess.run, ["ipcrm", kind, number.decode()], stderr=subprocess.DEVNULL)
        return process, [int(number) for number in numbers]

    def test_two_semaphores_that_are_locks(self):
        process, (number,) = self.launch(SEMAPHORES, "locks")
        self.settle(process, 2)
        child, = self.children(process.pid)
        status, kind, confidence, found = self.hang_of(process.pid)
        self.assertEqual((1, "deadlock", "likely"), (status, kind, confidence), found)
        self.assertEqual([process.pid, child], [subject["process"] for subject in found["subjects"]])
        self.assertIn(f"for System V semaphore 0 of set {number}, last taken by {child} waiter", found["subjects"][0]["does"])
        self.assertIn(f"for System V semaphore 1 of set {number}, last taken by {process.pid} waiter", found["subjects"][1]["does"])

    def test_workers_that_wait_for_jobs(self):
        process, _ = self.launch(SEMAPHORES, "workers")
        self.settle(process, 3)
        self.assert_no_hang(process.pid)
        for child in self.children(process.pid):
            self.assert_no_hang(child)

    def test_a_question_that_is_never_answered(self):
        process, (asked, answered) = self.launch(MESSAGES, "ask")
        self.settle(process, 2)
        child, = self.children(process.pid)
        status, kind, confidence, found = self.hang_of(process.pid)
        self.assertEqual((1, "deadlock", "likely"), (status, kind, confidence), found)
        self.assertIn(f"for a message from System V message queue {answered}, last sent by {child} waiter", found["subjects"][0]["does"])

    def test_of_a_queue_with_a_key_it_is_only_possible(self):
        process, _ = self.launch(MESSAGES, "ask", "key")
        self.settle(process, 2)
        status, kind, confidence, found = self.hang_of(process.pid)
        self.assertEqual((0, "deadlock", "possible"), (status, kind, confidence), found)

    def test_a_server_that_waits_for_messages(self):
        process, (asked, _) = self.launch(MESSAGES, "server", "key")
        self.settle(process, 1)
        lines = self.assert_no_hang(process.pid)
        self.assertRegex(self.waits(lines, process.pid), rf"^a message from System V message queue {asked} \(key 0x[0-9a-f]+\)$")


class MessageQueues(KernelCase):
    def launch(self, *words):
        process = self.start(self.build(QUEUES), *words)
        for end in "ab":
            self.addCleanup(self.unlink, f"/hangscope{process.pid}.{end}")
        return process

    @staticmethod
    def unlink(name):
        import ctypes
        ctypes.CDLL("librt.so.1").mq_unlink(name.encode())

    def test_two_that_wait_for_each_others_messages(self):
        for how, confidence in (("roles", "likely"), ("unlinked", "certain")):
            with self.subTest(how):
                process = self.launch("cross", how)
                self.settle(process, 2)
                child, = self.children(process.pid)
                status, kind, sure, found = self.hang_of(process.pid)
                self.assertEqual((1, "deadlock", confidence), (status, kind, sure), found)
                self.assertRegex(found["subjects"][0]["does"], rf"for a message from queue /hangscope{process.pid}\.b.* sent by .*{child} waiter")

    def test_of_queues_that_both_may_read_it_is_only_possible(self):
        process = self.launch("cross", "named")
        self.settle(process, 2)
        status, kind, confidence, found = self.hang_of(process.pid)
        self.assertEqual((0, "deadlock", "possible"), (status, kind, confidence), found)

    def test_a_server_with_a_worker(self):
        process = self.launch("server", "named")
        self.settle(process, 2)
        lines = self.assert_no_hang(process.pid)
        self.assertIn(f"a message from queue /hangscope{process.pid}.a", self.waits(lines, process.pid))


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
                places = [" ".join([each["where"], *each.get("callers", [])]) for each in found["subjects"]]
                self.assertRegex(" | ".join(sorted(places, key=lambda place: "b_to_a" in place)), r"a_to_b .*\|.*b_to_a " if "-static" not in options else "lll_lock_wait|a_to_b")

    def test_a_32_bit_program_that_waits_for_its_input(self):
        read, write = os.pipe()
        self.addCleanup(lambda: [os.close(end) for end in (read, write)])
        process = self.start(self.build(TWO_LOCKS, "-m32"), "reads", stdin=read)
        self.settle(process, 1)
        lines = self.assert_no_hang(process.pid)
        self.assertIn("data from a pipe (fd 0)", self.waits(lines, process.pid))


class Chains(KernelCase):
    """Whoever has what is waited for lives, and does something else."""
    HOLDS = ("import fcntl, socket, sys\nheld = open(sys.argv[1], 'w')\nfcntl.flock(held, fcntl.LOCK_EX)\n"
             "server = socket.create_server(('127.0.0.1', 0))\nprint('ready', flush=True)\nserver.accept()")
    WANTS = "import fcntl, sys\nprint('ready', flush=True)\nfcntl.flock(open(sys.argv[1], 'w'), fcntl.LOCK_EX)"

    def test_the_holder_of_a_lock_waits_for_a_connection(self):
        lock = pathlib.Path(self.folder, "lock")
        holder = self.start(*support.python(self.HOLDS, lock))
        waiter = self.start(*support.python(self.WANTS, lock))
        self.settled(waiter.pid)
        outcome = self.hangscope("why", f"pid:{waiter.pid}")
        text = re.sub(r"\s+", " ", outcome.out.decode())
        self.assertRegex(text, rf"^no hang found: idle, {waiter.pid} python3 waits for the lock of {re.escape(str(lock))} \(fd \d+\), held by "
                               rf"{holder.pid} python3, and {holder.pid} python3 waits for a connection to tcp 127\.0\.0\.1:\d+")
        self.assertEqual(0, outcome.status)

    def test_a_daemon_keeps_the_pipe_of_a_command_substitution_open(self):
        serves = "import os, socket; server = socket.create_server(('127.0.0.1', 0)); server.accept()"
        script = pathlib.Path(self.folder, "serves.py")
        script.write_text(serves)
        shell = self.start("sh", "-c", f"echo ready; x=$(python3 {script} & echo started); echo $x")
        self.until(lambda: any(pathlib.Path(f"/proc/{pid}/syscall").read_text().split()[0] in ("288", "242") for pid in self.daemons(shell, script)),
                   what="it waits for connections")
        self.settled(shell.pid)
        daemon, = self.daemons(shell, script)
        outcome = self.hangscope("why", f"pid:{shell.pid}")
        text = re.sub(r"\s+", " ", outcome.out.decode())
        self.assertRegex(text, rf"^no hang found: idle, {shell.pid} sh waits for data from a pipe \(fd \d+\) written by {daemon} python3, "
                               rf"and {daemon} python3 waits for a connection to tcp")
        self.assertEqual(0, outcome.status)

    def daemons(self, shell, script):
        found = []
        for folder in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if str(script) in (folder / "cmdline").read_text().split("\0")[:-1]:
                    found.append(int(folder.name))
            except OSError:
                continue
        for pid in found:
            self.addCleanup(self.end_daemon, pid, script)
        return found

    @staticmethod
    def end_daemon(pid, script):
        try:
            if str(script) in pathlib.Path(f"/proc/{pid}/cmdline").read_text():
                os.kill(pid, signal.SIGKILL)
        except OSError:
            pass


class Stopped(KernelCase):
    def end(self, process):
        for pid in reversed(sorted(family(process.pid) or ())):
            with contextlib.suppress(ProcessLookupError):  # the end of its child may have ended it
                os.kill(pid, signal.SIGKILL)
        process.wait()

    def test_by_its_terminal(self):
        screen, terminal = self.open_terminal()
        self.addCleanup(os.close, screen)
        launch = ("import fcntl, os, signal, subprocess, sys, termios\nos.setsid()\nfcntl.ioctl(0, termios.TIOCSCTTY, 0)\n"
                  "subprocess.run(['timeout', '1000', 'cat'])")
        process = subprocess.Popen(support.python(launch), stdin=terminal, stdout=terminal, stderr=terminal)
        os.close(terminal)
        self.addCleanup(self.end, process)
        self.until(lambda: any(state == "T" for state, _ in (family(process.pid) or {}).values()), what="cat is stopped")
        launched, = self.children(process.pid)
        cat, = self.children(launched)
        self.settled(process.pid)
        by_terminal = "is stopped by its terminal: it is in the background and reads it"
        status, kind, confidence, found = self.hang_of(launched)
        self.assertEqual((1, "stopped-child", "likely"), (status, kind, confidence), found)
        self.assertTrue(found["summary"].endswith(f"waits for process {cat} (cat), which {by_terminal}"), found)
        status, kind, confidence, found = self.hang_of(cat)
        self.assertEqual((1, "stopped", f"stopped, process {cat} (cat) {by_terminal}"), (status, kind, found["summary"]))

    def test_by_a_signal(self):
        process = self.start("sh", "-c", "echo ready; sleep 1000; :")
        sleep, = self.until(lambda: self.children(process.pid), what="a child")
        self.addCleanup(os.kill, sleep, signal.SIGKILL)
        self.until(lambda: pathlib.Path(f"/proc/{sleep}/comm").read_text() == "sleep\n", what="it sleeps")
        os.kill(sleep, signal.SIGSTOP)
        self.until(lambda: states(sleep)[sleep][0] == "T", what="it is stopped")
        self.settled(process.pid)
        _, kind, _, found = self.hang_of(process.pid)
        self.assertEqual("stopped-child", kind)
        self.assertTrue(found["summary"].endswith(f"process {sleep} (sleep), which is stopped by SIGSTOP"), found)

    def freeze(self, folder, file, frozen, thawed, groups):
        if os.getuid() != 0 or not pathlib.Path(folder).is_dir():
            self.skipTest(f"only root, with {folder}, makes control groups")
        group = pathlib.Path(folder, f"hangscope{os.getpid()}")
        try:
            group.mkdir()
        except OSError as error:
            self.skipTest(f"no control groups here ({error})")
        self.addCleanup(group.rmdir)
        if not (group / file).exists():
            self.skipTest(f"{group} has no {file}")
        process = self.start("sh", "-c", "echo ready; exec cat", stdin=subprocess.PIPE)
        self.addCleanup(lambda: process.wait())
        (group / "cgroup.procs").write_text(str(process.pid))
        self.settled(process.pid)
        (group / file).write_text(frozen)
        self.addCleanup(process.kill)
        self.addCleanup((group / file).write_text, thawed)
        self.until(lambda: groups(group), what="it is frozen")
        status, kind, _, found = self.hang_of(process.pid)
        self.assertEqual((1, "stopped", f"stopped, process {process.pid} (cat) is frozen by its control group: {group / file}"),
                         (status, kind, found["summary"]))

    def test_by_a_control_group(self):
        mounts = pathlib.Path("/proc/mounts").read_text()
        folder = next((line.split()[1] for line in mounts.splitlines() if line.split()[2] == "cgroup2"), "/none")
        self.freeze(folder, "cgroup.freeze", "1", "0", lambda group: "frozen 1" in (group / "cgroup.events").read_text())

    def test_by_a_control_group_of_the_first_version(self):
        self.freeze("/sys/fs/cgroup/freezer", "freezer.state", "FROZEN", "THAWED", lambda group: "FROZEN" in (group / "freezer.state").read_text())

    def test_by_a_debugger(self):
        if not shutil.which("gdb"):
            self.skipTest("no gdb here")
        process = self.start("sh", "-c", "echo ready; exec cat", stdin=subprocess.PIPE)
        debugger = subprocess.Popen(["gdb", "-q", "-nx", "-p", str(process.pid)], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(debugger.communicate, b"kill\nquit\n")
        self.until(lambda: states(process.pid)[process.pid][0] == "t", what="gdb holds it")
        _, kind, _, found = self.hang_of(process.pid)
        self.assertEqual(("stopped", f"stopped, process {process.pid} (cat) is held by {debugger.pid} gdb, which traces it"), (kind, found["summary"]))


class Mounts(KernelCase):
    """A file system that a process serves: it takes its first request, and answers no other."""
    SERVES = ("import ctypes, os, struct, sys\nserver = os.open('/dev/fuse', os.O_RDWR)\n"
              "libc = ctypes.CDLL(None, use_errno=True)\n"
              "options = f'fd={server},rootmode=40000,user_id=0,group_id=0'.encode()\n"
              "if libc.mount(b'hangs', sys.argv[1].encode(), b'fuse.hangs', 6, options) != 0:\n    print('no', os.strerror(ctypes.get_errno()), flush=True)\n    sys.exit()\n"
              "number = struct.unpack('IIQ', os.read(server, 1 << 17)[:16])[2]\n"
              "os.write(server, struct.pack('IiQIIIIHHI', 80, 0, number, 7, 31, 4096, 0, 0, 0, 4096).ljust(80, b'\\0'))\n"
              "print('ready', flush=True)\nif sys.argv[2] == 'itself':\n    os.stat(sys.argv[1] + '/file')\n"
              "while True:\n    os.read(server, 1 << 17)\n")

    def serve(self, what):
        if os.getuid() != 0 or not os.access("/dev/fuse", os.R_OK | os.W_OK):
            self.skipTest("only root, with /dev/fuse, mounts file systems of processes")
        folder = pathlib.Path(self.folder, "mount")
        folder.mkdir(exist_ok=True)
        server = subprocess.Popen(support.python(self.SERVES, folder, what), stdout=subprocess.PIPE)
        self.addCleanup(self.finish, server)
        self.addCleanup(subprocess.run, ["umount", "-l", folder], stderr=subprocess.DEVNULL)
        self.addCleanup(server.kill)
        if (line := server.stdout.readline()) != b"ready\n":
            self.skipTest(f"nothing may be mounted here: {line.decode().strip()}")
        self.settled(server.pid)
        return server, folder

    def test_whoever_reads_it_waits_for_its_server(self):
        server, folder = self.serve("others")
        reader = subprocess.Popen(["cat", folder / "file"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(lambda: [reader.kill(), server.kill(), reader.wait()])  # it ends with the server only
        self.until(lambda: pathlib.Path(f"/proc/{reader.pid}/wchan").read_text() == "request_wait_answer", what="it waits")
        self.settled(reader.pid)
        outcome = self.hangscope("why", f"pid:{reader.pid}", timeout=20)
        text = re.sub(r"\s+", " ", outcome.out.decode())
        self.assertIn(f"{reader.pid} cat waits for an answer of the file system {folder}", text)
        if "fuse_connection" not in pathlib.Path(f"/proc/{server.pid}/fdinfo/3").read_text():
            self.skipTest("this kernel does not say which connection of /dev/fuse serves what")
        self.assertIn(f"no hang found: idle, {reader.pid} cat waits for an answer of the file system {folder}, served by {server.pid} python3, "
                      f"and {server.pid} python3 waits for data from /dev/fuse (fd 3)", text)

    def test_a_server_that_waits_for_its_own_answer(self):
        server, folder = self.serve("itself")
        if "fuse_connection" not in pathlib.Path(f"/proc/{server.pid}/fdinfo/3").read_text():
            self.skipTest("this kernel does not say which connection of /dev/fuse serves what")
        status, kind, confidence, found = self.hang_of(server.pid)
        self.assertEqual((1, "deadlock", "certain"), (status, kind, confidence), found)
        self.assertIn(f"an answer of the file system {folder}, served by itself", found["summary"])


class KernelStack(KernelCase):
    def test_of_a_thread_that_no_signal_wakes_the_stack_in_the_kernel_is_shown(self):
        try:
            own = pathlib.Path("/proc/self/stack").read_text()
        except OSError:
            own = ""
        if "proc_pid_stack" not in own:
            self.skipTest("this kernel shows nobody here where in it a thread is")
        # Until the child ends or becomes another program, its parent stands in vfork.
        program = pathlib.Path(self.folder, "parent.c")
        program.write_text("#include <stdio.h>\n#include <unistd.h>\nint main(void) {\n  puts(\"ready\");\n  fflush(stdout);\n"
                           "  if (vfork() == 0) {\n    pause();\n    _exit(0);\n  }\n  return 0;\n}\n")
        subprocess.run(["cc", "-o", program.with_suffix(""), program], check=True)
        parent = subprocess.Popen([program.with_suffix("")], stdout=subprocess.PIPE, start_new_session=True)
        self.addCleanup(lambda: [os.killpg(parent.pid, signal.SIGKILL), parent.communicate()])
        self.assertEqual(parent.stdout.readline(), b"ready\n")
        self.until(lambda: states(parent.pid)[parent.pid][0] == "D", what="it waits for its child")
        text = re.sub(r"\s+", " ", self.hangscope("why", f"pid:{parent.pid}", timeout=20).out.decode())
        self.assertRegex(text, f"stack of {parent.pid} parent in the kernel: \\w+ < [^#]*vfork")


class Hidden(KernelCase):
    def test_who_is_older_than_a_pipe_cannot_have_inherited_it(self):
        nobody = pwd.getpwnam("nobody").pw_uid
        if os.getuid() != 0 or shutil.which("nsenter") is None or subprocess.run(["test", "-x", support.HANGSCOPE], user=nobody).returncode != 0:
            self.skipTest("only root can be another user in a namespace, with nsenter, and nobody has to be able to run hangscope")
        unshare = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
        if subprocess.run([*unshare, "true"], capture_output=True).returncode != 0:
            self.skipTest("no pid namespace may be made here (unshare -p)")
        become = f"setpriv --reuid {nobody} --clear-groups "
        program = HUNG / "silent_pipe"
        # The first process, root's, is hidden; then the shell that is older than the pipe.
        outer = self.start(*unshare, "sh", "-c", f"sleep 0.1; {become} sh -c 'exec 2>/dev/null; {program}; :' & wait")
        inner = self.until(lambda: [pid for pid in family(outer.pid) or () if "silent_pipe" in pathlib.Path(f"/proc/{pid}/comm").read_text()])[0]
        self.settled(inner)
        number = re.search(r"NSpid:.*\t(\d+)", pathlib.Path(f"/proc/{inner}/status").read_text())[1]

        def ask():
            words = ["nsenter", "-t", str(inner), "-p", "-m", *become.split(), support.HANGSCOPE, "why", f"pid:{number}"]
            done = subprocess.run(words, capture_output=True, timeout=60)
            return done.returncode, re.sub(r"\s+", " ", done.stdout.decode())
        status, text = ask()
        self.assertEqual(1, status, text)
        self.assertRegex(text, r"^HANG: no writer, .*\(likely\).*too old to have inherited it")
        younger = subprocess.Popen(["nsenter", "-t", str(inner), "-p", "-m", "sleep", "1000"])  # of root
        self.addCleanup(younger.wait)
        self.addCleanup(younger.kill)
        time.sleep(0.2)
        status, text = ask()
        self.assertEqual(0, status, text)
        self.assertRegex(text, r"^perhaps no writer")


if __name__ == "__main__":
    support.main()
