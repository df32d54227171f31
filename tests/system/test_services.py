"""examples/systemd, and what a service manager asks of the programs that it starts."""
import os
import pathlib
import re
import shutil
import socket
import struct
import subprocess
import sys
import time

import debian_root
from support import HANGSCOPE, ROOT, Case, main, python, until

EXAMPLES = ROOT / "examples/systemd"
ECHO = 'echo "$WATCHDOG_PID $LISTEN_PID $WATCHDOG_USEC $$"'


class UnderAManager(Case):
    def start_as(self, *settings, options=()):
        """What a program sees that hangscope starts; `$$` in the settings is the number of hangscope's process."""
        command = ["sh", "-c", f'export {" ".join(settings)}; echo $$; exec "$@"', "sh", HANGSCOPE, "run", "--prefix", self.prefix, *options,
                   "--", "sh", "-c", ECHO]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
        hangscope, said = done.stdout.splitlines()
        return hangscope, said.split(" ")

    def test_what_is_meant_for_the_service_is_meant_for_the_program(self):
        for options in ((), ("--line-buffered",), ("--pty",)):
            with self.subTest(options=options):
                hangscope, (watchdog, listen, period, program) = self.start_as("WATCHDOG_PID=$$", "WATCHDOG_USEC=5000000", "LISTEN_PID=$$", options=options)
                self.assertNotEqual(program, hangscope)
                self.assertEqual((watchdog, listen, period), (program, program, "5000000"))

    def test_what_is_meant_for_another_process_stays(self):
        hangscope, (watchdog, listen, _, program) = self.start_as("WATCHDOG_PID=1", "WATCHDOG_USEC=1", "LISTEN_PID=$$0")
        self.assertEqual((watchdog, listen), ("1", hangscope + "0"))
        self.assertEqual(self.start_as("WATCHDOG_USEC=1")[1][:3], ["", "", "1"])

    def test_messages_of_the_program_arrive_as_its_own(self):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
            manager.bind(str(self.folder / "notify"))
            manager.settimeout(20)
            os.environ["NOTIFY_SOCKET"] = str(self.folder / "notify")
            outcome = self.run_program(python(
                "import os, socket; print(os.getpid()); "
                "socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b'READY=1', os.environ['NOTIFY_SOCKET'])"))
            text, ancillary, _, _ = manager.recvmsg(100, socket.CMSG_SPACE(12))
            sender, _, _ = struct.unpack("3i", ancillary[0][2])
        self.assertEqual((text, sender), (b"READY=1", int(outcome.out)))

    def test_sockets_that_it_was_given_are_the_programs(self):
        with socket.socket() as listening:
            listening.bind(("127.0.0.1", 0))
            listening.listen()
            os.set_inheritable(listening.fileno(), True)
            done = subprocess.run([HANGSCOPE, "run", "--prefix", self.prefix, "--",
                                   *python(f"import socket; print(socket.socket(fileno={listening.fileno()}).getsockname()[1])")],
                                  pass_fds=[listening.fileno()], capture_output=True, text=True, check=True, timeout=60)
            self.assertEqual(int(done.stdout), listening.getsockname()[1])


class Units(Case):
    """systemd takes the examples without a word."""

    def setUp(self):
        super().setUp()
        if shutil.which("systemd-analyze") is None:
            self.skipTest("systemd-analyze is not installed (package systemd)")
        self.units = self.folder / "units"
        shutil.copytree(EXAMPLES, self.units)
        # The programs are those that there are here.
        for path in self.units.rglob("*"):
            if path.is_file():
                path.write_text(path.read_text().replace("/usr/bin/hangscope ", HANGSCOPE + " "))
        (self.units / "redis-server.service").write_text("[Service]\nType=notify\nExecStart=/bin/true\n")

    def verify(self, unit):
        done = subprocess.run(["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", self.units / unit], capture_output=True, text=True,
                              env={**os.environ, "SYSTEMD_UNIT_PATH": f"{self.units}:"}, timeout=60, check=False)
        return done.returncode, done.stdout + done.stderr

    def test_examples_are_right(self):
        for unit in ("guarded.service", "redis-server.service", "hangscope-watch@redis-server.service"):
            with self.subTest(unit):
                if "@" in unit:
                    (self.units / unit).symlink_to("hangscope-watch@.service")
                self.assertEqual(self.verify(unit), (0, ""))

    def test_drop_ins_are_read_at_all(self):
        for name in ("redis-server.service.d/hangscope.conf", "watchdog.conf"):
            with self.subTest(name):
                target = self.units / "redis-server.service.d" / pathlib.Path(name).name
                before = (self.units / name).read_text()
                target.write_text(before)
                self.assertEqual(self.verify("redis-server.service"), (0, ""))
                target.write_text(before + "NoSuchSetting=1\n")
                self.assertIn("NoSuchSetting", self.verify("redis-server.service")[1])
                target.write_text(before)

    def test_options_of_the_examples_exist(self):
        for path in EXAMPLES.rglob("*.*"):
            for command, options in re.findall(r"hangscope (run|watch) (.*?)(?: -- | pid:)", path.read_text() if path.is_file() else ""):
                with self.subTest(path=path.name):
                    known = self.hangscope(command, "--help").out.decode()
                    for option in re.findall(r"--[\w-]+", options):
                        self.assertRegex(known, rf"(?m)^ +{option}\b")


HANGS = """import os, signal, socket, threading, time
def notify(text):
    address = os.environ["NOTIFY_SOCKET"]
    socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(text, "\\0" + address[1:] if address[0] == "@" else address)
assert os.environ.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
notify(b"READY=1")
for n in range(int(os.environ["SECONDS"]) * 4):
    notify(b"WATCHDOG=1")
    time.sleep(0.25)
if os.environ["THEN"] == "deadlock":
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()
while True: time.sleep(1)  # sends no WATCHDOG=1 any more
"""


class BootedLong(Case):
    """A systemd of its own, in a root of Debian, with process numbers, mounts and control groups of its own."""
    PACKAGES = "systemd python3 redis-server procps libfmt9 libdw1 libelf1 libre2-9 libzstd1 libcapstone4 libopencsd1 libipt2 libncursesw6".split()
    BOOT = """set -e; root=$1; cd /; ip link set lo up
        mount --bind "$root" "$root"
        mount -t proc proc "$root/proc"; mount -t sysfs sysfs "$root/sys"; mount --rbind /dev "$root/dev"
        for place in run tmp sys/fs/cgroup; do mount -t tmpfs tmp "$root/$place"; done
        mkdir "$root/sys/fs/cgroup/systemd"
        if grep -q name=systemd /proc/self/cgroup; then
          mount -t cgroup -o none,name=systemd cgroup "$root/sys/fs/cgroup/systemd"
        else
          umount "$root/sys/fs/cgroup"; mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
        fi
        exec env -i container=test PATH=/usr/bin:/usr/sbin chroot "$root" /lib/systemd/systemd --system --unit=basic.target"""

    def setUp(self):
        super().setUp()
        self.root = self.folder / "root"
        try:
            debian_root.must_be_possible(("ip", "iproute2"))
            debian_root.make(self.root, self.folder / "made", self.PACKAGES)
        except debian_root.Cannot as why:
            self.skipTest(str(why))
        shutil.copy(HANGSCOPE, self.root / "usr/bin/hangscope")
        units = self.root / "etc/systemd/system"
        shutil.copy(EXAMPLES / "guarded.service", units)
        shutil.copy(EXAMPLES / "hangscope-watch@.service", units)
        (self.root / "root/hangs.py").write_text(HANGS)
        self.boot = subprocess.Popen(["unshare", "--pid", "--fork", "--mount", "--uts", "--ipc", "--net", "--kill-child", "--propagation", "private",
                                      "sh", "-c", self.BOOT, "sh", self.root], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        self.addCleanup(self.boot.wait)
        self.addCleanup(self.boot.kill)
        if not until(lambda: self.inside("systemctl", "is-system-running") in ("running", "degraded"), 60):
            self.skipTest("systemd does not boot here in namespaces of its own")

    def inside(self, *words, timeout=120):
        children = pathlib.Path(f"/proc/{self.boot.pid}/task/{self.boot.pid}/children").read_text().split()
        if not children:
            return ""
        done = subprocess.run(["nsenter", "-t", children[0], "-p", "-m", "-n", "-r", "-w", "env", f"PATH={debian_root.PATH}", *words],
                              capture_output=True, text=True, timeout=timeout, check=False)
        return (done.stdout + done.stderr).strip()

    def show(self, unit, name):
        return self.inside("systemctl", "show", "--value", "--property", name, unit)

    def journal(self, unit):
        return self.inside("journalctl", "--no-pager", "-o", "cat", "-u", unit)

    def unit(self, name, text):
        path = self.root / "etc/systemd/system" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        self.inside("systemctl", "daemon-reload")

    def snapshots(self, service):
        return sorted(path.name for path in (self.root / "var/lib/hangscope" / service).glob("*.snapshot-[0-9]*"))

    def guarded_by_stall(self, name, stall, **environment):
        """guarded.service with another program, a shorter stall time and a user that there is."""
        text = (EXAMPLES / "guarded.service").read_text().replace("Type=exec", "Type=notify\nNotifyAccess=all").replace("DynamicUser=yes\n", "")
        text = re.sub("-- .*", "-- /usr/bin/python3 /root/hangs.py", text).replace("--stall 60", f"--stall {stall}")
        text = text.replace("[Install]", "".join(f"Environment={key}={value}\n" for key, value in environment.items()) + "\n[Install]")
        return name + ".service", text

    def test_services(self):
        """One root for all: making it takes a minute."""
        with self.subTest("an idle server is left alone, and stops when it is told to, without a snapshot"):
            self.unit("guarded.service", (EXAMPLES / "guarded.service").read_text().replace("--stall 60", "--stall 2"))
            self.inside("systemctl", "start", "guarded")
            program = self.show("guarded", "MainPID")
            time.sleep(12)
            self.assertEqual((self.show("guarded", "MainPID"), self.show("guarded", "NRestarts")), (program, "0"))
            self.inside("systemctl", "stop", "guarded")
            self.assertEqual((self.show("guarded", "Result"), self.show("guarded", "ActiveState")), ("success", "inactive"))
            self.assertNotIn("HANG", self.journal("guarded"))
            self.assertEqual(self.snapshots("guarded"), [])
        with self.subTest("a server that hangs gets a snapshot, and is started again"):
            self.unit(*self.guarded_by_stall("deadlocked", 2, SECONDS=1, THEN="deadlock"))
            self.inside("systemctl", "start", "deadlocked")
            self.until(lambda: int(self.show("deadlocked", "NRestarts")) >= 1, 60, "the restart")
            self.assertRegex(self.journal("deadlocked"), r"HANG after .*\n(.*\n)*hangscope: ended it after .*; status 124")
            self.inside("systemctl", "stop", "deadlocked")
            self.assertIn("run.snapshot-0001", self.snapshots("deadlocked"))
        with self.subTest("one that sends no WATCHDOG=1 gets a snapshot, and is started again"):
            self.unit("watched.service.d/watchdog.conf", (EXAMPLES / "watchdog.conf").read_text() + "WatchdogSec=2\n")
            self.unit(*self.guarded_by_stall("watched", 600, SECONDS=4, THEN="sleep"))
            self.inside("systemctl", "start", "watched")
            self.until(lambda: int(self.show("watched", "NRestarts")) >= 1, 60, "the restart")
            said = self.journal("watched")
            self.assertRegex(said, r"Watchdog timeout \(limit 2s\)")
            self.assertRegex(said, r"snapshot: .*run.snapshot-0001/ .*SIGUSR1")
            self.inside("systemctl", "stop", "watched")
        # Where namespaces of users are not permitted to those inside of other namespaces, as here.
        self.unit("redis-server.service.d/sandbox.conf", "[Service]\nPrivateUsers=no\n")
        with self.subTest("a service of Debian's is watched as it is, and followed when it is started anew"):
            self.inside("systemctl", "start", "redis-server")
            self.assertEqual(self.show("redis-server", "ActiveState"), "active", self.journal("redis-server"))
            self.inside("systemctl", "enable", "--now", "hangscope-watch@redis-server")
            self.inside("systemctl", "restart", "redis-server")
            target = self.show("redis-server", "MainPID")
            self.until(lambda: f"watching process {target}" in self.journal("hangscope-watch@redis-server"), 30, "the watcher")
            self.assertEqual(self.show("hangscope-watch@redis-server", "ActiveState"), "active")
            self.inside("systemctl", "stop", "redis-server")
            self.until(lambda: self.show("hangscope-watch@redis-server", "ActiveState") == "inactive", 30, "its end")
            self.inside("systemctl", "disable", "hangscope-watch@redis-server")
        with self.subTest("a service of Debian's, hardened, runs under hangscope"):
            self.unit("redis-server.service.d/hangscope.conf",
                      (EXAMPLES / "redis-server.service.d/hangscope.conf").read_text().replace("--stall 60", "--stall 2"))
            self.inside("systemctl", "start", "redis-server")
            self.assertEqual(self.show("redis-server", "ActiveState"), "active", self.journal("redis-server"))
            time.sleep(12)
            self.assertEqual(self.inside("redis-cli", "ping"), "PONG", self.journal("redis-server"))
            self.assertEqual(self.show("redis-server", "NRestarts"), "0")
            said = self.journal("redis-server")
            self.assertNotRegex(said, "warning|killed|HANG")
            # What it has of the threads, in spite of the service's sandbox.
            self.inside("systemctl", "kill", "--signal", "USR1", "--kill-who", "main", "redis-server")
            self.until(lambda: self.snapshots("redis-server"), 30, "the snapshot")
            report = self.root / "var/lib/hangscope/redis-server/run.snapshot-0001/report.txt"
            self.assertRegex(self.until(lambda: report.exists() and report.read_text(), 30, "its report"), r"idle, \d+ redis-server waits for")
            self.inside("systemctl", "stop", "redis-server")
            self.assertEqual(self.show("redis-server", "Result"), "success")


if __name__ == "__main__":
    main()
