"""Debian's servers and tools, idle for ten stall times under `hangscope run --on-hang kill`: each is left alone, and still
does what it is asked for afterwards. What is not installed is skipped, and named.
"""
import concurrent.futures
import contextlib
import dataclasses
import json
import os
import pathlib
import pty
import pwd
import re
import shutil
import socket
import subprocess
import sys
import time
import typing

from hang_cases import FILES
from said import read_messages, said_by_run, said_by_why
from support import BUILD, HANGSCOPE, Case, main

IDLE_S, STALL_S = 30, 3
READY_S, REPLY_S = 30, 90  # cron does its work once a minute
NOBODY = pwd.getpwnam("nobody")


class Idle:
    """What a server is started with, and talked to."""

    def __init__(self, folder):
        self.folder, self.out = folder, folder / "out"
        self.screen = None  # of its terminal
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]

    def said(self):
        return self.out.read_text(errors="replace")

    def over(self, family, address, request, reply):
        """Whether a connection answers; an empty `reply`: it is closed; None: it is there."""
        with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_STREAM) as connection:
            connection.settimeout(REPLY_S)
            connection.connect(address)
            if request:
                connection.sendall(request)
            if reply is None:
                return True
            said = connection.recv(65536)
            return reply in said if reply else said == b""
        return False

    def tcp(self, request, reply):
        return self.over(socket.AF_INET, ("127.0.0.1", self.port), request, reply)

    def unix(self, name, request, reply):
        return self.over(socket.AF_UNIX, str(self.folder / name), request, reply)

    def http(self):
        return self.tcp(b"GET / HTTP/1.0\r\n\r\n", b"200")

    def typed(self, line, reply):
        os.write(self.screen, line)
        return reply in self.said()

    def written(self, name, reply):
        with open(self.folder / name, "a") as file:
            file.write(reply + "\n")
        time.sleep(0.2)
        return reply in self.said()


def as_nobody(folder, command):
    if os.getuid() != 0:
        return command
    os.chown(folder, NOBODY.pw_uid, NOBODY.pw_gid)
    return ["setpriv", f"--reuid={NOBODY.pw_uid}", f"--regid={NOBODY.pw_gid}", "--clear-groups", *command]


def postgres(idle):
    data = idle.folder / "data"
    subprocess.run(as_nobody(idle.folder, ["initdb", "-D", data, "-A", "trust", "-U", "zoo", "--no-sync"]), check=True, stdout=subprocess.DEVNULL,
                   cwd=idle.folder)
    return as_nobody(idle.folder, ["postgres", "-D", data, "-k", idle.folder, "-h", ""])


def query(idle):
    asked = subprocess.run(["psql", "-h", idle.folder, "-U", "zoo", "-d", "postgres", "-Atc", "select 6 * 7"], capture_output=True, text=True)
    return asked.stdout == "42\n"


def dropbear(idle):
    subprocess.run(["dropbearkey", "-t", "ed25519", "-f", idle.folder / "key"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return ["dropbear", "-F", "-E", "-p", f"127.0.0.1:{idle.port}", "-r", idle.folder / "key", "-P", idle.folder / "pid"]


def sshd(idle):
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", idle.folder / "key"], check=True)
    return [shutil.which("sshd"), "-D", "-e", "-f", "/dev/null", "-h", idle.folder / "key", "-o", f"ListenAddress=127.0.0.1:{idle.port}", "-o", "PidFile=none"]


def cron(idle):
    """With tables of its own: the machine's are covered."""
    (idle.folder / "empty").write_text("")
    script = (f"mount --make-rprivate / && mount -t tmpfs none /etc/cron.d && mount -t tmpfs none /var/spool/cron && mount -t tmpfs none /run && "
              f"{{ [ ! -e /etc/crontab ] || mount --bind {idle.folder}/empty /etc/crontab; }} && "
              f"echo '* * * * * root touch {idle.folder}/ticked' >/etc/cron.d/zoo && echo ready && exec cron -f")
    return ["unshare", "-m", "sh", "-c", script]


def at_terminal(command):
    return lambda idle: ["@terminal", *command]


def tail(idle):
    (idle.folder / "file").write_text("ready\n")
    return ["tail", "-f", idle.folder / "file"]


# Name, the commands it needs, how it is started, how it shows that it is ready, what it is asked for afterwards.
SERVERS = [
    ("nginx", "nginx", lambda idle: ["nginx", "-p", idle.folder, "-e", "stderr", "-c", "nginx.conf"], lambda idle: (idle.folder / "nginx.socket").exists(),
     lambda idle: idle.unix("nginx.socket", b"GET / HTTP/1.0\r\n\r\n", b"HTTP/1.1 ")),
    ("redis-server", "redis-server", lambda idle: ["redis-server", "--port", "0", "--unixsocket", idle.folder / "socket", "--save", "", "--dir", idle.folder],
     lambda idle: (idle.folder / "socket").exists(), lambda idle: idle.unix("socket", b"PING\r\n", b"PONG")),
    ("postgres", "postgres initdb psql setpriv", postgres, query, query),
    ("dropbear", "dropbear dropbearkey", dropbear, lambda idle: idle.tcp(b"", b"SSH-2.0"), lambda idle: idle.tcp(b"", b"SSH-2.0")),
    ("sshd", "sshd ssh-keygen", sshd, lambda idle: idle.tcp(b"", b"SSH-2.0"), lambda idle: idle.tcp(b"", b"SSH-2.0")),
    ("python, http.server", "python3", lambda idle: [sys.executable, "-m", "http.server", idle.port, "--bind", "127.0.0.1"], Idle.http, Idle.http),
    ("python, asyncio", "python3", lambda idle: [sys.executable, "asyncio_server.py", idle.port], lambda idle: "ready" in idle.said(), lambda idle: idle.tcp(b"", b"")),
    ("node, http", "node", lambda idle: ["node", "-e", f"require('http').createServer((q, s) => s.end('x')).listen({idle.port}, '127.0.0.1')"], Idle.http, Idle.http),
    ("cron", "cron unshare", cron, lambda idle: "ready" in idle.said(), lambda idle: (idle.folder / "ticked").exists()),
    ("inotifywait", "inotifywait", lambda idle: ["inotifywait", "-m", "-e", "modify", idle.folder / "home"], lambda idle: "established" in idle.said(),
     lambda idle: idle.written("home/touched", "touched")),
    ("tail -f", "tail", tail, lambda idle: "ready" in idle.said(), lambda idle: idle.written("file", "another")),
    ("sh at a terminal", "sh", at_terminal(["sh", "-i"]), lambda idle: True, lambda idle: idle.typed(b"echo $((6 * 7))\n", "42")),
    ("bash at a terminal", "bash", at_terminal(["bash", "--norc", "-i"]), lambda idle: True, lambda idle: idle.typed(b"echo $((6 * 7))\n", "42")),
    ("python at a terminal", "python3", at_terminal([sys.executable, "-q"]), lambda idle: True, lambda idle: idle.typed(b"6 * 7\n", "42")),
    ("a thread pool", "", lambda idle: [BUILD + "/tests/hang_zoo", "pool", "line"], lambda idle: "begun" in idle.said(),
     lambda idle: idle.unix("zoo.socket", b"", b"")),
    ("socat", "socat", lambda idle: ["socat", f"TCP-LISTEN:{idle.port},bind=127.0.0.1,fork", "EXEC:cat"], lambda idle: idle.tcp(b"x", b"x"),
     lambda idle: idle.tcp(b"x", b"x")),
    ("nc -lk", "nc", lambda idle: ["nc", "-lk", "127.0.0.1", idle.port], lambda idle: idle.port != 0, lambda idle: idle.tcp(b"hello\n", None) and "hello" in idle.said()),
    ("dbus-daemon", "dbus-daemon", lambda idle: ["dbus-daemon", "--session", "--nofork", f"--address=unix:path={idle.folder}/bus"],
     lambda idle: (idle.folder / "bus").exists(), lambda idle: idle.unix("bus", b"\0AUTH\r\n", b"REJECTED")),
]


@dataclasses.dataclass
class Run:
    name: str
    skipped: str = ""
    wrong: typing.List[str] = dataclasses.field(default_factory=list)

    def line(self):
        return f"{self.name:<24} {f'skipped: {self.skipped}' if self.skipped else '; '.join(self.wrong) or 'left alone, and serves'}"


def until(condition, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.3)
    return False


def perform(name, needs, start, is_ready, serves, folder):
    run = Run(name)
    lacks = [command for command in needs.split() if shutil.which(command) is None]
    if lacks:
        run.skipped = f"no {' '.join(lacks)} here"
        return run
    folder.mkdir()
    (folder / "home").mkdir()
    for file in ("nginx.conf", "asyncio_server.py"):
        (folder / file).write_text(FILES[file])
    with contextlib.ExitStack() as cleanup:
        try:
            idle = Idle(folder)
            watch(run, idle, [str(word) for word in start(idle)], is_ready, serves, cleanup)
        except Exception as error:  # the others go on
            run.wrong.append(f"{type(error).__name__}: {error}")
    return run


def watch(run, idle, command, is_ready, serves, cleanup):
    stdin = subprocess.DEVNULL
    if command[0] == "@terminal":
        command = command[1:]
        idle.screen, stdin = pty.openpty()
        cleanup.callback(os.close, idle.screen)
        cleanup.callback(os.close, stdin)
    log = idle.folder / "log.jsonl"
    environment = {name: value for name, value in os.environ.items() if name != "CI"}
    out = cleanup.enter_context(open(idle.out, "wb"))
    recorder = subprocess.Popen([HANGSCOPE, "run", "--on-hang", "kill", "--stall", str(STALL_S), "--json", "--log", log, "--prefix", idle.folder / "ring",
                                 "--size", "1M", "--", *command], stdin=stdin, stdout=out, stderr=out, cwd=idle.folder, env=environment)
    cleanup.callback(Case.end, recorder)
    if not until(lambda: recorder.poll() is not None or is_ready(idle), READY_S):
        run.wrong.append(f"not ready in {READY_S} s: {idle.said()[-300:]}")
        return
    time.sleep(IDLE_S)
    said = said_by_run(read_messages(log))
    if said.hang:
        run.wrong.append(f"run: {said.brief()}: {said.text}")
    if recorder.poll() is not None:
        run.wrong.append(f"ended with {recorder.returncode}: {idle.said()[-300:]}")
        return
    for child in children_of(recorder.pid):
        asked = subprocess.run([HANGSCOPE, "why", f"pid:{child}", "--json"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
        said = said_by_why([json.loads(line) for line in asked.stdout.splitlines()])
        if said.hang:
            run.wrong.append(f"why: {said.brief()}: {said.text}")
    if not until(lambda: serves(idle), REPLY_S):
        run.wrong.append(f"does not serve any more: {idle.said()[-300:]}")


def children_of(pid):
    """Of hangscope run, but for its own helpers."""
    found = re.findall(r"\d+", pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text())
    return [child for child in found if not os.path.samefile(f"/proc/{child}/exe", HANGSCOPE)]


class IdleServersLong(Case):
    def test_they_are_left_alone_and_serve(self):
        self.folder.chmod(0o755)  # for those who run as nobody
        with concurrent.futures.ThreadPoolExecutor(len(SERVERS)) as pool:
            runs = list(pool.map(lambda item: perform(*item[1], self.folder / str(item[0])), enumerate(SERVERS)))
        table = "\n".join(run.line() for run in runs) + "\n"
        print("\n" + table)
        (pathlib.Path(BUILD) / "matrix-servers.txt").write_text(table)
        wrong = [run.line() for run in runs if run.wrong]
        if wrong:
            self.fail("\n" + "\n".join(wrong))
        self.account(f"an idle server of Debian under hangscope run --on-hang kill for {IDLE_S} s", len([run for run in runs if not run.skipped]),
                     "none ended, each still serves")


if __name__ == "__main__":
    main()
