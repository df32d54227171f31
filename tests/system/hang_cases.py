"""What must be said of process trees: programs that hang, and programs that only look so. Data; test_hang_matrix.py runs them.

A command is split as a shell would, but no shell runs it. {tests} has the programs of tools/, {zoo} is hang_zoo of them,
{python} Debian's interpreter, {folder} where it runs; only FILES are there.

Of a hang: what it is called, words that tell who hangs (each in one of its subjects, and of a deadlock there are no
others), words that tell what they wait for, how sure it is. Of a control: the status with which it ends by itself; None:
it goes on for ever.

Options: stdin (pipe: one that nobody writes; tty: a terminal with a reader; else /dev/null); run: more options of
hangscope run; env: of the program; user: whose, of hangscope as well; needs: commands of the machine; cpu_percent: what
its group gets, {cpu_group}; locks: a file that the test has locked; peer: what it is connected to, the test (unix, or tcp
at {port}); root: it needs to be.
findings: how many there are; began: how many seconds after its last process started it stands still; behind: the process
that the first line must name, with a lock; partial: the others go on, and so does the run; acts: not that one; only_run:
hangscope why is not asked; why: the kind that it may tell although it is no hang.
stops_recorder: for so many seconds, and stops_program at the same time; cpu: one of these at a time; long: only in the
long run.
"""
LEFT_RIGHT = ("deadlock", "left right", "lock_a lock_b", "certain")
QUEUE_LOCK = ("deadlock", "asker server", "queue mutex", "certain")

FILES = {
    "zoo.mk": "all: good bad\ngood:\n\tsleep 0.2\nbad:\n\t{zoo} abba\n",
    "outer.mk": "all:\n\t$(MAKE) -f zoo.mk\n",
    "slow.mk": "all: a b c d\na b c d:\n\tsleep 100\n",
    "outer-slow.mk": "all:\n\t$(MAKE) -f slow.mk\n",
    "three.mk": "all: a b c d\na b c d:\n\tsleep 3; touch $@\n",
    "build.ninja": "rule zoo\n  command = {zoo} abba\nbuild out: zoo\n",
    "slow/build.ninja": "rule nap\n  command = sleep 100\nbuild out: nap\n",
    "CTestTestfile.cmake": 'add_test(good "true")\nadd_test(bad "{zoo}" "abba")\n',
    "slow/CTestTestfile.cmake": 'add_test(slow "sleep" "100")\n',
    "package.json": '{"name": "zoo", "version": "1.0.0", "scripts": {"test": "{zoo} abba", "slow": "sleep 100"}}\n',
    "test_child.py": "import subprocess, unittest\nclass T(unittest.TestCase):\n    def test_it(self):\n        subprocess.run(['{zoo}', 'abba'])\n",
    "test_lock.py": "import threading, unittest\nlock = threading.Lock()\nclass T(unittest.TestCase):\n    def test_it(self):\n"
                    "        with lock:\n            lock.acquire()\n",
    "rlocks.py": "import threading\na, b, both = threading.RLock(), threading.RLock(), threading.Barrier(2)\ndef take(first, second):\n"
                 "    with first:\n        both.wait()\n        with second:\n            pass\n"
                 "threading.Thread(target=take, args=(a, b)).start()\ntake(b, a)\n",
    "alarm.pl": "use IPC::Open2;\nopen2(my $out, my $in, 'cat');\neval { local $SIG{ALRM} = sub { die }; alarm 3; my $line = <$out>; };\nexit 7\n",
    "epoll_number.py": "import os, select, socket\nlistens = socket.create_server(('127.0.0.1', 0))\npoll = select.epoll()\n"
                       "poll.register(listens.fileno(), select.EPOLLIN)\nkept = os.dup(listens.fileno())\nlistens.close()\nos.pipe()\nprint('listens')\npoll.poll()\n",
    "shared_mutex.py": "import ctypes, mmap, os, time\nlibc = ctypes.CDLL(None)\nmemory = mmap.mmap(-1, 4096)\n"
                       "mutex = ctypes.byref(ctypes.c_char.from_buffer(memory))\nattributes = ctypes.create_string_buffer(64)\n"
                       "libc.pthread_mutexattr_init(attributes)\nlibc.pthread_mutexattr_setpshared(attributes, 1)\nlibc.pthread_mutex_init(mutex, attributes)\n"
                       "if os.fork() == 0:\n    libc.pthread_mutex_lock(mutex)\n    time.sleep(4)\n    libc.pthread_mutex_unlock(mutex)\n    os._exit(0)\n"
                       "time.sleep(0.5)\nlibc.pthread_mutex_lock(mutex)\nos._exit(7)\n",
    "helper.py": "import signal, subprocess\nhelper = subprocess.Popen(['cat'], stdin=-1, stdout=-1, bufsize=0)\n"
                 "signal.signal(signal.SIGUSR1, lambda *_: helper.stdin.write(b'job\\n'))\nprint('ready')\nhelper.stdout.read(1)\n",
    "sent_pipe.py": "import os, socket, time\nread, write = os.pipe()\na, b = socket.socketpair()\nif os.fork() == 0:\n    os.close(write)\n    time.sleep(4)\n"
                    "    os.write(socket.recv_fds(b, 1, 1)[1][0], b'x')\n    os._exit(0)\nsocket.send_fds(a, [b'x'], [write])\nos.read(read, 1)\nos._exit(7)\n",
    "empty_queue.py": "import queue\nqueue.Queue().get()\n",
    "asyncio_server.py": "import asyncio, sys\nasync def main():\n    server = await asyncio.start_server(lambda r, w: w.close(), '127.0.0.1', *sys.argv[1:] or [0])\n"
                         "    print('ready', flush=True)\n    await server.serve_forever()\nasyncio.run(main())\n",
    "asyncio_child.py": "import asyncio, sys\nasync def main():\n    child = await asyncio.create_subprocess_exec('sleep', '4')\n    await child.wait()\n"
                        "asyncio.run(main())\nsys.exit(7)\n",
    "asyncio_signal.py": "import asyncio, signal\nasync def main():\n    stop = asyncio.Event()\n"
                         "    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)\n    await stop.wait()\nasyncio.run(main())\n",
    "event.py": "import signal, threading\nstop = threading.Event()\nsignal.signal(signal.SIGTERM, lambda *_: stop.set())\nprint('ready', flush=True)\nstop.wait()\n",
    "pool.py": "import concurrent.futures, sys\npool = concurrent.futures.ThreadPoolExecutor(4)\nlist(pool.map(abs, range(100)))\nsys.stdin.readline()\n",
    "processes.py": "import multiprocessing, sys, time\nwith multiprocessing.Pool(2) as pool:\n    pool.map(time.sleep, [4, 4])\nsys.exit(7)\n",
    "http.mjs": "import http from 'http'\nhttp.createServer((q, s) => s.end('x')).listen(0, '127.0.0.1', () => console.log('ready'))\n",
    "sqlite_wait.py": "import sqlite3, threading, time, sys\na = sqlite3.connect('x.db', isolation_level=None)\na.execute('begin exclusive')\n"
                      "def other():\n    sqlite3.connect('x.db', timeout=60).execute('create table t (x)')\n"
                      "t = threading.Thread(target=other)\nt.start()\ntime.sleep(4)\na.execute('commit')\nt.join()\nsys.exit(7)\n",
    "wait.cmake": "execute_process(COMMAND sleep 3)\n",
    "shell.mk": "late := $(shell sleep 3; echo 7)\nall: ; @exit $(late)\n",
    "hooks/pre-commit": "sleep 3; exit 1\n",
    "futures.py": "import concurrent.futures as f, time, sys\nif __name__ == '__main__':\n    with f.ProcessPoolExecutor(1) as pool:\n"
                  "        pool.submit(time.sleep, 3).result()\n    sys.exit(7)\n",
    "manager.py": "import multiprocessing, time, sys\nif __name__ == '__main__':\n    with multiprocessing.Manager() as m:\n        done = m.Event()\n"
                  "        p = multiprocessing.Process(target=lambda: (time.sleep(3), done.set()))\n        p.start()\n        done.wait()\n        p.join()\n    sys.exit(7)\n",
    "asyncio_queue.py": "import asyncio, sys\nasync def put(q):\n    for i in range(6):\n        await asyncio.sleep(0.5)\n        await q.put(i)\n"
                        "async def main():\n    q = asyncio.Queue()\n    task = asyncio.create_task(put(q))\n    for i in range(6):\n        await q.get()\n    await task\n"
                        "asyncio.run(main())\nsys.exit(7)\n",
    "asyncio_reply.py": "import asyncio, sys\nasync def answer(r, w):\n    await asyncio.sleep(3)\n    w.write(b'x')\n    await w.drain()\n    w.close()\n"
                        "async def main():\n    async with await asyncio.start_unix_server(answer, 'it.socket'):\n"
                        "        r, w = await asyncio.open_unix_connection('it.socket')\n        await r.read()\nasyncio.run(main())\nsys.exit(7)\n",
    "condition.py": "import threading, time, sys\nc, items = threading.Condition(), []\ndef give():\n    time.sleep(3)\n    with c:\n        items.append(1)\n"
                    "        c.notify()\nthreading.Thread(target=give).start()\nwith c:\n    while not items:\n        c.wait(0.4)\nsys.exit(7)\n",
    "holder.py": "import threading, subprocess, sys\nlock, held = threading.RLock(), threading.Event()\ndef hold():\n    with lock:\n        held.set()\n"
                 "        subprocess.run(['sleep', '3'])\nthreading.Thread(target=hold).start()\nheld.wait()\nwith lock:\n    sys.exit(7)\n",
    "slow_http.py": "import http.server, threading, time, urllib.request, sys\nclass H(http.server.BaseHTTPRequestHandler):\n    def do_GET(self):\n"
                    "        time.sleep(3)\n        self.send_response(200)\n        self.end_headers()\n"
                    "s = http.server.ThreadingHTTPServer(('127.0.0.1', 0), H)\nthreading.Thread(target=s.serve_forever, daemon=True).start()\n"
                    "urllib.request.urlopen('http://127.0.0.1:%d' % s.server_port).read()\nsys.exit(7)\n",
    "worker.js": "const w = require('worker_threads')\nif (w.isMainThread) new w.Worker(__filename).on('message', process.exit)\n"
                 "else setTimeout(() => w.parentPort.postMessage(7), 3000)\n",
    "Server.java": "public class Server { public static void main(String[] a) throws Exception { new java.net.ServerSocket(0).accept(); } }\n",
    "nginx.conf": "daemon off; error_log stderr; pid nginx.pid; events {}\nhttp { access_log off; client_body_temp_path body; proxy_temp_path proxy;\n"
                  "fastcgi_temp_path f; uwsgi_temp_path u; scgi_temp_path s; server { listen unix:nginx.socket; } }\n",
}

HANGS = [
    # One process.
    ("two mutexes, never printed", "{zoo} abba", *LEFT_RIGHT),
    ("two mutexes after a line", "{zoo} abba line", *LEFT_RIGHT),
    ("two mutexes, late", "{zoo} abba line late", *LEFT_RIGHT, {"began": 0.3, "long": True}),
    ("beside a ticker, never printed", "{zoo} abba ticker", *LEFT_RIGHT),
    ("beside a ticker", "{zoo} abba line ticker", *LEFT_RIGHT),
    ("beside a sleeping child", "{zoo} abba line sleeper", *LEFT_RIGHT),
    ("beside a thread in accept", "{zoo} abba line server", *LEFT_RIGHT),
    ("beside all three", "{zoo} abba ticker server sleeper", *LEFT_RIGHT),
    ("with handlers of faults", "{zoo} abba line faults", *LEFT_RIGHT),
    ("with a handler of SIGTERM", "{zoo} abba line handler", *LEFT_RIGHT),
    ("two mutexes at a terminal", "{zoo} abba", *LEFT_RIGHT, {"stdin": "tty"}),
    ("two mutexes, stdin a pipe", "{zoo} abba", *LEFT_RIGHT, {"stdin": "pipe"}),
    ("five philosophers", "{zoo} philosophers", "deadlock", "plato zeno thales kant hume", "forks", "certain"),
    ("mutex taken twice", "{zoo} self-lock", "deadlock", "SelfLock", "lock_a", "certain"),
    ("mutex taken twice, ticker", "{zoo} self-lock line ticker", "deadlock", "SelfLock", "lock_a", "certain", {"long": True}),
    ("signal lost", "{zoo} cond-lost", "lost-wakeup", "consumer", "work_came", "likely"),
    ("signal lost, faults handled", "{zoo} cond-lost line faults", "lost-wakeup", "consumer", "work_came", "likely"),
    ("two write locks", "{zoo} rwlock", "deadlock", "left right", "table_a table_b", "certain"),
    ("read lock and mutex", "{zoo} rwlock-mutex", "deadlock", "report refresh", "lock_a table_a", "certain"),
    ("semaphore never posted", "{zoo} semaphore line", "lost-wakeup", "WaitForItems", "items", "likely"),
    ("barrier of four, three came", "{zoo} barrier", "lost-wakeup", "NeverArrives", "phase", "likely"),
    ("ring of joins", "{zoo} join-ring line", "deadlock", "JoinNext two three", "", "certain"),
    ("pipe to itself", "{zoo} own-pipe", "no-writer", "ReadByte", "pipe", "certain"),
    ("eventfd to itself", "{zoo} own-event", "no-writer", "OwnEvent", "eventfd", "likely"),
    ("owner is a thread that ended", "{zoo} dead-thread line", "owner-died", "DeadThread", "lock_a", "certain"),
    ("while (!flag)", "{zoo} spin", "spin", "Spin", "ready_flag", "certain", {"cpu": True}),
    ("while (!flag) after a line", "{zoo} spin line", "spin", "Spin", "ready_flag", "certain", {"cpu": True}),
    ("spin lock", "{zoo} spin-lock", "spin", "SpinLock", "spin_lock", "certain", {"cpu": True, "long": True}),
    ("join of a spinner", "{zoo} join-spinner line", "spin", "poller", "ready_flag", "certain", {"cpu": True}),
    # Several.
    ("fork with a lock held", "{zoo} fork-lock", "copied-lock", "ForkWithLock", "lock_a", "certain"),
    ("child is stopped", "{zoo} stopped-child line", "stopped-child", "StoppedChild", "child", "certain"),
    ("vfork, the parent's lock", "{zoo} vfork-lock", "deadlock", "job hang_zoo", "lock_a", "certain"),
    ("vfork, the parent's pipe", "{zoo} vfork-pipe line", "deadlock", "job hang_zoo", "pipe", "certain"),
    ("child's deadlock", "{zoo} child-abba", *LEFT_RIGHT),
    ("child's deadlock after a line", "{zoo} child-abba line", *LEFT_RIGHT, {"long": True}),
    ("one child of two", "{zoo} one-of-two line", *LEFT_RIGHT, {"began": 0.2}),
    ("two pipes", "{zoo} two-pipes", "deadlock", "hang_zoo server", "pipe", "certain"),
    ("socket pair", "{zoo} socket-pair line", "deadlock", "client server", "unix", "certain"),
    ("epoll of two that wait", "{zoo} ask-two", "deadlock", "asker peer", "unix", "certain"),
    ("child's output is not read", "{zoo} unread-output", "deadlock", "hang_zoo talker", "pipe child", "certain"),
    ("two file locks", "{zoo} file-locks", "deadlock", "first second", "a.lock b.lock", "certain"),
    ("two shared mutexes", "{zoo} shared-abba", "deadlock", "first second", "mutex", "certain"),
    ("child by its descriptor", "{zoo} pidfd-abba line", *LEFT_RIGHT),
    ("owner is a process that ended", "{zoo} dead-process", "owner-died", "LockAfterDeath", "mutex", "certain"),
    # That record, too: each thread is known by its mailbox and by the kernel, and is one.
    ("scope and threads", "{tests}/abba", *LEFT_RIGHT, {"run": "--scope file:{folder}/it.scope --elf {tests}/abba", "env": {"HANGSCOPE_SCOPE": "{folder}/it.scope"}}),
    ("scope of a process", "{tests}/abba", *LEFT_RIGHT, {"run": "--scope pid: --elf {tests}/abba"}),
    # Each source sees a part of the cycle.
    ("from the scope into the kernel", "{tests}/queue_lock hang", *QUEUE_LOCK, {"run": "--scope file:{folder}/it.scope --elf {tests}/queue_lock", "env": {"HANGSCOPE_SCOPE": "{folder}/it.scope"}}),
    ("from a process's scope into it", "{tests}/queue_lock hang", *QUEUE_LOCK, {"run": "--scope pid: --elf {tests}/queue_lock"}),
    # Looked at by somebody without privileges.
    ("two mutexes, as nobody", "{zoo} abba line", *LEFT_RIGHT, {"user": "nobody"}),
    # Others go on.
    ("chatty beside a deadlock", "{zoo} abba chatty", *LEFT_RIGHT, {"partial": True}),
    ("chatty sibling of a deadlock", "{zoo} beside-work", *LEFT_RIGHT, {"partial": True}),
    ("chatty, --act-on partial", "{zoo} abba chatty", *LEFT_RIGHT, {"run": "--act-on likely,partial", "acts": True, "partial": True}),
    # A server that by itself is none: the user has said so.
    ("idle, --expect-output", "{zoo} accept line", "silent", "", "", "likely", {"run": "--expect-output 2s", "only_run": True}),
    # Only what it prints tells.
    ("log that says the same", "sh -c 'echo booting; sleep 0.3; while :; do echo eth0: no link, retry; sleep 0.1; done'", "looping", "", "repeats", "likely", {"only_run": True}),
    # Behind Debian's launchers.
    ("sh -c", "sh -c '{zoo} abba; :'", *LEFT_RIGHT, {"behind": "hang_zoo"}),
    ("sh -c, with &, wait", "sh -c '{zoo} abba & wait'", *LEFT_RIGHT),
    ("sh -c | tee", "sh -c '{zoo} abba line 2>&1 | tee log'", *LEFT_RIGHT, {"behind": "hang_zoo"}),
    ("bash pipeline", "bash -c 'set -o pipefail; {zoo} abba | cat | wc -l'", *LEFT_RIGHT, {"long": True}),
    ("end of a bash pipeline", "bash -c 'sleep 0.2 | {zoo} abba'", *LEFT_RIGHT, {"began": 0.2}),
    ("sh, sleep 100 &", "sh -c 'sleep 100 & {zoo} abba line; :'", *LEFT_RIGHT),
    ("timeout", "timeout 60 {zoo} abba", *LEFT_RIGHT, {"behind": "hang_zoo"}),
    ("timeout, after a line", "timeout 60 {zoo} abba line", *LEFT_RIGHT),
    ("env nice", "env A=b nice {zoo} abba", *LEFT_RIGHT, {"long": True}),
    ("setsid", "setsid -w {zoo} abba line", *LEFT_RIGHT),
    ("nohup stdbuf", "nohup stdbuf -oL {zoo} abba", *LEFT_RIGHT, {"long": True}),
    ("make", "make -f zoo.mk", *LEFT_RIGHT, {"began": 0.1, "long": True}),
    ("make -j2", "make -j2 -f zoo.mk", *LEFT_RIGHT, {"began": 0.2, "behind": "hang_zoo"}),
    ("recursive make", "make -j2 -f outer.mk", *LEFT_RIGHT, {"began": 0.2}),
    ("ninja", "ninja -f build.ninja", *LEFT_RIGHT, {"needs": "ninja"}),
    ("ctest -V", "ctest -V --test-dir .", *LEFT_RIGHT, {"needs": "ctest", "behind": "hang_zoo"}),
    ("ctest -j2", "ctest -j2 --test-dir .", *LEFT_RIGHT, {"needs": "ctest", "long": True}),
    ("npm test", "npm test --prefix .", *LEFT_RIGHT, {"needs": "npm", "behind": "hang_zoo"}),
    ("python -m unittest, a child", "{python} -m unittest test_child.py", *LEFT_RIGHT, {"behind": "hang_zoo"}),
    ("xargs -P2", "sh -c 'echo line late | xargs -P2 -n1 {zoo} abba'", *LEFT_RIGHT, {"began": 0.3, "findings": 2, "behind": "hang_zoo"}),
    ("tini", "tini -s -- {zoo} abba", *LEFT_RIGHT, {"needs": "tini", "behind": "hang_zoo"}),
    ("dumb-init", "dumb-init {zoo} abba line", *LEFT_RIGHT, {"needs": "dumb-init", "long": True}),
    ("script", "script -qec '{zoo} abba line' /dev/null", *LEFT_RIGHT, {"needs": "script"}),
    ("flock", "flock a.lock {zoo} abba", *LEFT_RIGHT, {"long": True}),
    ("sudo", "sudo -n {zoo} abba", *LEFT_RIGHT, {"needs": "sudo"}),
    ("find -exec", "find . -maxdepth 0 -exec {zoo} abba ;", *LEFT_RIGHT, {"long": True}),
    ("in a PID namespace", "unshare -p -f --mount-proc {zoo} abba line", *LEFT_RIGHT, {"root": True}),
    ("orphan of its own session", "sh -c '(setsid {zoo} abba line &); sleep 100'", *LEFT_RIGHT, {"only_run": True}),
    ("perl, system", "perl -e 'system(\"{zoo}\", \"abba\")'", *LEFT_RIGHT, {"long": True}),
    ("node, execFile", "node -e 'require(\"child_process\").execFile(\"{zoo}\", [\"abba\"])'", *LEFT_RIGHT, {"needs": "node"}),
    ("node, execFileSync", "node -e 'require(\"child_process\").execFileSync(\"{zoo}\", [\"abba\"])'", *LEFT_RIGHT, {"needs": "node", "long": True}),
    ("cmake -E env", "cmake -E env A=b {zoo} abba", *LEFT_RIGHT, {"needs": "cmake", "long": True}),
    ("sh | tee, a spin", "sh -c '{zoo} spin line | tee log'", "spin", "Spin", "ready_flag", "certain", {"cpu": True, "long": True}),
    ("make, a lost signal", "make --eval 'all: ; {zoo} cond-lost'", "lost-wakeup", "consumer", "work_came", "likely"),
    ("timeout, a mutex twice", "timeout 60 {zoo} self-lock", "deadlock", "SelfLock", "lock_a", "certain", {"long": True}),
    ("sh -c, two processes", "sh -c '{zoo} socket-pair; :'", "deadlock", "client server", "unix", "certain"),
    ("xargs, a dead owner", "sh -c 'echo line | xargs {zoo} dead-process'", "owner-died", "LockAfterDeath", "mutex", "certain", {"long": True}),
    # Debian's own, hung.
    ("flock against flock", "sh -c 'flock a.lock sh -c \"sleep 0.3; flock b.lock true\" & flock b.lock sh -c \"sleep 0.3; flock a.lock true\"; wait'",
     "deadlock", "", "a.lock b.lock", "certain", {"began": 0.1}),
    ("flock of a script's descriptors", "bash -c '(flock 8; sleep 0.3; flock 9) 8>a.lock 9>b.lock & (flock 9; sleep 0.3; flock 8) 8>a.lock 9>b.lock & wait'",
     "deadlock", "", "a.lock b.lock", "certain", {"began": 0.1}),
    ("perl reads its own pipe", "perl -e 'pipe(R, W); <R>'", "no-writer", "perl", "pipe", "certain"),
    ("perl waits for a stopped child", "perl -e 'if ($p = fork) { waitpid($p, 0) } else { kill STOP, $$ }'", "stopped-child", "perl", "child", "certain"),
    ("perl, open2 with cat", "perl -e 'use IPC::Open2; open2(R, W, \"cat\"); print W \"x\" x 1000000; print <R>'", "deadlock", "perl cat", "pipe", "certain"),
    ("python reads its own pipe", "{python} -c 'import os; os.read(os.pipe()[0], 1)'", "no-writer", "python", "pipe", "certain"),
    ("python, connects to its own full backlog", "{python} -c 'import socket; l = socket.socket(socket.AF_UNIX); l.bind(\"in.socket\"); l.listen(0); "
     "k = [socket.socket(socket.AF_UNIX) for _ in range(9)]; [s.connect(\"in.socket\") for s in k]'", "deadlock", "python", "backlog in.socket itself", "certain"),
    ("python polls its own end", "{python} -c 'import os, select; q = select.poll(); q.register(os.pidfd_open(os.getpid()), 1); q.poll()'",
     "deadlock", "python", "end own process", "certain"),
    ("flock of a file that it has locked", "bash -c 'exec 9>x.lock; flock 9; exec flock x.lock true'", "deadlock", "flock", "x.lock itself", "certain"),
    ("python, wait with PIPE", "{python} -c 'import subprocess; subprocess.Popen([\"head\", \"-c\", \"1000000\", \"/dev/zero\"], stdout=subprocess.PIPE).wait()'",
     "deadlock", "python head", "pipe child", "certain"),
    ("python, Lock twice", "{python} -m unittest test_lock.py", "deadlock", "python", "lock", "likely"),
    ("python, two RLocks", "{python} rlocks.py", "deadlock", "python python", "RLock RLock", "certain"),
    ("python, empty queue", "{python} empty_queue.py", "lost-wakeup", "python", "queue", "likely", {"long": True}),
    ("python, socket pair", "{python} -c 'import socket; a, b = socket.socketpair(); a.recv(1)'", "no-writer", "python", "unix", "certain", {"long": True}),
    ("bash waits for a stopped job", "bash -c 'sh -c \"kill -STOP \\$\\$\" & wait'", "stopped-child", "bash", "child", "certain"),
    ("bash, coproc", "bash -c 'coproc cat; read x <&${COPROC[0]}'", "deadlock", "bash cat", "pipe", "certain"),
    ("socat between two cats", "socat EXEC:cat EXEC:cat", "deadlock", "cat socat", "unix", "likely", {"needs": "socat"}),
    ("node, Atomics.wait", "node -e 'Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)'", "lost-wakeup", "node", "", "likely", {"needs": "node", "long": True}),
]

# Waits for the outside, all of it, and must be called idle.
IDLE = [
    ("accept, never printed", "{zoo} accept", None),
    ("accept after a line", "{zoo} accept line", None),
    ("accept beside a sleeping child", "{zoo} accept line sleeper", None, {"long": True}),
    ("pool behind accept", "{zoo} pool line", None),
    ("pool that handles SIGTERM", "{zoo} pool handler", None, {"long": True}),
    ("epoll", "{zoo} epoll line", None),
    ("poll of two listeners", "{zoo} poll line", None, {"long": True}),
    ("unix listener", "{zoo} unix-server line", None, {"long": True}),
    ("datagrams", "{zoo} datagrams line", None, {"long": True}),
    ("its input, a pipe", "{zoo} input line", None, {"stdin": "pipe"}),
    ("its input, a terminal", "{zoo} input line", None, {"stdin": "tty"}),
    ("sigwait", "{zoo} sigwait line", None),
    ("pipe that a handler writes", "{zoo} own-pipe-handler line", None),
    ("accept behind sh -c | tee", "sh -c '{zoo} accept line | tee log'", None, {"long": True}),
    ("accept behind timeout", "timeout 60 {zoo} accept line", None),
    ("accept behind xargs", "sh -c 'echo line | xargs {zoo} accept'", None, {"long": True}),
    ("accept, as nobody", "{zoo} accept line", None, {"user": "nobody"}),
    ("socat, TCP-LISTEN", "socat TCP-LISTEN:0,bind=127.0.0.1 -", None, {"needs": "socat"}),
    ("socat, UNIX-LISTEN,fork", "socat UNIX-LISTEN:x.socket,fork EXEC:cat", None, {"needs": "socat"}),
    ("tmux -D", "tmux -S {folder}/tmux -f /dev/null -D", None, {"needs": "tmux"}),
    ("gio monitor", "gio monitor .", None, {"needs": "gio"}),
    ("ssh-agent", "ssh-agent -D -a {folder}/agent", None, {"needs": "ssh-agent", "long": True}),
    ("dbus-daemon", "dbus-daemon --session --nofork --address=unix:path={folder}/bus", None, {"needs": "dbus-daemon", "long": True}),
    ("nc -l", "nc -l 127.0.0.1 0", None, {"needs": "nc", "long": True}),
    ("python, asyncio server", "{python} asyncio_server.py", None),
    ("python, asyncio and a signal", "{python} asyncio_signal.py", None),
    ("python, Event set by a handler", "{python} event.py", None),
    ("python, signal.pause", "{python} -c 'import signal; signal.signal(15, lambda *_: None); signal.pause()'", None, {"long": True}),
    ("python, idle pool", "{python} pool.py", None, {"stdin": "pipe"}),
    ("node, http", "node http.mjs", None, {"needs": "node"}),
    ("node, its input", "node -e 'process.stdin.resume()'", None, {"stdin": "tty", "needs": "node", "long": True}),
    ("perl, accept", "perl -MIO::Socket::INET -e 'IO::Socket::INET->new(Listen => 1)->accept'", None),
    ("nginx", "nginx -p . -e stderr -c nginx.conf", None, {"needs": "nginx"}),
    ("a peer outside, unix", "{python} -c 'import socket; s = socket.socket(socket.AF_UNIX); s.connect(\"peer.socket\"); s.recv(1)'", None, {"peer": "unix"}),
    ("a peer outside, TCP", "{python} -c 'import socket; socket.create_connection((\"127.0.0.1\", {port})).recv(1)'", None, {"peer": "tcp"}),
    ("ip monitor", "ip monitor", None, {"needs": "ip", "long": True}),
    ("in a PID namespace, accept", "unshare -p -f --mount-proc {zoo} accept line", None, {"root": True}),
    ("sh at a terminal", "sh -i", None, {"stdin": "tty", "long": True}),
    ("bash at a terminal", "bash --norc -i", None, {"stdin": "tty"}),
    ("bash, read", "bash -c 'read line'", None, {"stdin": "tty"}),
    ("python at a terminal", "{python} -q", None, {"stdin": "tty", "long": True}),
    ("sqlite3 at a terminal", "sqlite3", None, {"stdin": "tty", "needs": "sqlite3", "long": True}),
    ("gdb at a terminal", "gdb -nx -q", None, {"stdin": "tty", "needs": "gdb"}),
    ("cat of a terminal", "cat", None, {"stdin": "tty"}),
    ("cat of a pipe", "cat", None, {"stdin": "pipe", "long": True}),
    ("tail -f", "sh -c 'echo line >file; exec tail -f file'", None),
    ("inotifywait", "inotifywait -m .", None, {"needs": "inotifywait"}),
    ("bash, select", "bash -c 'select x in a b; do break; done'", None, {"stdin": "tty"}),
    ("bash, a FIFO of its own", "bash -c 'mkfifo fifo; exec 3<>fifo; read x <&3'", None),
    ("python -m pdb", "{python} -m pdb event.py", None, {"stdin": "tty"}),
    ("git cat-file --batch", "sh -c 'git init -q . && git cat-file --batch'", None, {"stdin": "pipe", "needs": "git"}),
    ("python, datagrams of unix", "{python} -c 'import socket; s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); s.bind(\"in.socket\"); s.recv(1)'", None),
    ("socat, a PTY", "socat PTY,link=pty -", None, {"stdin": "pipe", "needs": "socat"}),
    ("node, net and fs.watch", "node -e 'require(\"fs\").watch(\".\"); require(\"net\").createServer().listen(\"it.socket\")'", None, {"needs": "node"}),
    ("perl, sigsuspend", "perl -MPOSIX -e '$SIG{USR1} = sub {}; POSIX::sigsuspend(POSIX::SigSet->new)'", None),
    ("sort | uniq of a pipe", "sh -c 'sort | uniq -c'", None, {"stdin": "pipe"}),
    ("flock -w, held outside", "flock -w 100 x.lock true", None, {"locks": "x.lock"}),
]

CONTROLS = [
    ("accept beside a ticker", "{zoo} accept line ticker", None, {"long": True}),
    ("pool, chatty", "{zoo} pool chatty", None),
    # Its children, time.
    ("self-pipe and SIGCHLD", "{zoo} self-pipe line", 7),
    ("signalfd and SIGCHLD", "{zoo} signalfd line", 7),
    ("epoll, one of two will answer", "{zoo} ask-one line", 7),
    ("vfork, a child that sleeps", "{zoo} vfork line", 7),
    ("child by its descriptor, a sleep", "{zoo} pidfd line", 7),
    ("alarm whose handler writes", "{zoo} alarm line", 7),
    ("barrier, the last comes late", "{zoo} late-barrier line", 7),
    ("semaphore, posted by who computes", "{zoo} computer line", 7, {"cpu": True}),
    ("timed wait", "{zoo} timed-wait line", 7),
    ("lock held for 4 s", "{zoo} long-lock line", 7),
    ("sleep", "{zoo} sleep line", None),
    ("timer descriptor", "{zoo} timerfd line", None),
    # Works.
    ("long computation", "{zoo} compute", 7, {"cpu": True, "long": True}),
    ("long computation after a line", "{zoo} compute line", 7, {"cpu": True}),
    ("computes first, then serves", "{zoo} slow-start", None, {"cpu": True}),
    ("sleeps first, then serves", "{zoo} sleepy-start", None),
    ("hands over quickly", "{zoo} hand-over", 7),
    ("hands over slowly", "{zoo} slow-hand-over line", 7),
    ("robust lock of a dead process", "{zoo} robust", 7),
    # Records that it waits, in threads that are to end with its input, and go on until then.
    ("copiers that record", "{tests}/copiers well", None, {"stdin": "pipe", "run": "--scope file:{folder}/it.scope --elf {tests}/copiers",
                                                           "env": {"HANGSCOPE_SCOPE": "{folder}/it.scope"}}),
    # One of two sources alone would see no end of it.
    ("gives up, in scope and kernel", "{tests}/queue_lock gives-up", 7, {"run": "--scope pid: --elf {tests}/queue_lock"}),
    ("lock is given back, scope, kernel", "{tests}/queue_lock lets-go", 7, {"run": "--scope pid: --elf {tests}/queue_lock"}),
    # Who else may have the pipe cannot be known then, so it is only possible that nobody writes.
    ("pipe to itself, as nobody", "{zoo} own-pipe line", None, {"user": "nobody"}),
    # The recorder is stopped meanwhile.
    ("hangscope is stopped for 2 s", "sh -c 'while :; do echo x; sleep 0.3; done'", None, {"stops_recorder": 2}),
    ("both are stopped for 2 s", "{zoo} hand-over line", 7, {"stops_recorder": 2, "stops_program": True}),
    # Held by somebody.
    ("stopped", "{zoo} stopped line", None, {"why": "stopped"}),
    ("held by gdb", "gdb -nx -batch -ex 'break Sleep' -ex 'run sleep' -ex 'shell sleep 100' {zoo}", None, {"needs": "gdb"}),
    ("throttled", "sh -c 'echo $$ > {cpu_group}/cgroup.procs; exec {zoo} compute'", None, {"cpu_percent": 2, "cpu": True}),
    ("throttled, hands over", "sh -c 'echo $$ > {cpu_group}/cgroup.procs; exec {zoo} hand-over line'", 7, {"cpu_percent": 2}),
    # Debian's: servers that look around now and then, event loops.
    ("python, http.server", "{python} -u -m http.server 0 --bind 127.0.0.1", None),
    ("python, asyncio and a child", "{python} asyncio_child.py", 7),
    ("python, pool of processes", "{python} processes.py", 7),
    ("python, http.server under sh", "sh -c '{python} -u -m http.server 0 --bind 127.0.0.1 2>&1 | tee log'", None, {"long": True}),
    ("node, setTimeout", "node -e 'setTimeout(() => process.exit(7), 4000)'", 7, {"needs": "node", "long": True}),
    ("node, a child", "node -e 'require(\"child_process\").spawn(\"sleep\", [\"4\"]).on(\"exit\", () => process.exit(7))'", 7, {"needs": "node"}),
    ("redis-server", "redis-server --port 0 --unixsocket {folder}/redis.socket --save \"\"", None, {"needs": "redis-server"}),
    ("cat of a FIFO", "sh -c 'mkfifo fifo; cat fifo'", None),
    ("cat of a FIFO that its shell keeps open", "bash -c 'mkfifo fifo; exec 3<>fifo; cat <&3 | while read x; do echo $x; done'", None),
    ("tail -f | grep", "sh -c 'echo line >file; tail -f file | grep --line-buffered line'", None),
    # Naps and jobs.
    ("sleep 100", "sleep 100", None, {"long": True}),
    ("sh, sleep", "sh -c 'echo begun; sleep 100; :'", None),
    ("cron-like loop", "sh -c 'while :; do sleep 1; done'", None),
    ("loop with a trap", "bash -c 'trap : USR1 CHLD; while :; do sleep 1 & wait; done'", None),
    ("sh, sleep & wait", "sh -c 'sleep 4 & wait; exit 7'", 7),
    ("sleep | cat", "sh -c 'sleep 4 | cat; exit 7'", 7, {"long": True}),
    ("yes | sleep", "sh -c 'yes | sleep 4; exit 7'", 7),
    ("make -j4", "make -j4 -f slow.mk", None),
    ("make -j4 that ends", "make -j4 -f three.mk", 0, {"long": True}),
    ("recursive make -j4", "make -j4 -f outer-slow.mk", None),
    ("make, a child", "make -f slow.mk", None, {"long": True}),
    ("ninja, a job", "ninja -C slow", None, {"needs": "ninja", "long": True}),
    ("ctest, a slow test", "ctest -V --test-dir slow", None, {"needs": "ctest"}),
    ("npm run", "npm run slow --prefix .", None, {"needs": "npm"}),
    ("timeout, a sleep", "timeout 60 sleep 100", None),
    ("timeout that ends it", "timeout 4 sleep 100", 124, {"long": True}),
    ("xargs -P2, a sleep", "sh -c 'echo 100 101 | xargs -P2 -n1 sleep'", None, {"long": True}),
    ("flock, the other sleeps", "sh -c 'flock x.lock sleep 4 & sleep 0.2; flock x.lock true; exit 7'", 7),
    ("flock, held outside", "flock x.lock true", None, {"locks": "x.lock"}),
    ("flock of a descriptor, the other sleeps", "bash -c '(flock 9; sleep 4) 9>x.lock & sleep 0.2; exec 9>x.lock; flock 9; exit 7'", 7),
    ("orphan that sleeps has its output", "sh -c 'x=$(sleep 4 & echo begun); exit 7'", 7),
    ("full pipe, read slowly", "sh -c 'cat /dev/zero | (sleep 100; cat)'", None),
    ("java, accept", "java Server.java", None, {"needs": "java javac", "long": True}),
    ("sudo, a sleep", "sudo -n sleep 100", None, {"needs": "sudo"}),
    ("su -c", "su -c 'sleep 100'", None, {"needs": "su"}),
    ("setsid, a sleep", "setsid -w sleep 100", None, {"long": True}),
    ("script, a sleep", "script -qec 'sleep 100' /dev/null", None, {"needs": "script", "long": True}),
    ("tini, a sleep", "tini -s -- sleep 100", None, {"needs": "tini"}),
    ("dumb-init, a sleep", "dumb-init sleep 100", None, {"needs": "dumb-init", "long": True}),
    ("strace", "strace -f -o log sleep 100", None, {"needs": "strace", "long": True}),
    ("perl, sleep", "perl -e 'sleep 4; exit 7'", 7, {"long": True}),
    ("python, sleep", "{python} -c 'import time, sys; time.sleep(4); sys.exit(7)'", 7),
    ("python, select loop", "{python} -c 'import select; [select.select([], [], [], 0.5) for _ in range(100)]'", None, {"long": True}),
    ("python computes", "{python} -c 'sum(i * i for i in range(25_000_000)); raise SystemExit(7)'", 7, {"cpu": True, "long": True}),
    ("sqlite's lock, then free", "{python} sqlite_wait.py", 7),
    ("sort waits for its input", "sh -c '(sleep 4; echo b a) | sort; exit 7'", 7, {"long": True}),
    ("cmake -E sleep", "cmake -E sleep 100", None, {"needs": "cmake", "long": True}),
    # Somebody else lets it go on, after 3 s: in one process,
    ("python, asyncio.sleep", "{python} -c 'import asyncio; asyncio.run(asyncio.sleep(3)); raise SystemExit(7)'", 7),
    ("python, asyncio.Queue", "{python} asyncio_queue.py", 7),
    ("python, asyncio.to_thread", "{python} -c 'import asyncio, time; asyncio.run(asyncio.to_thread(time.sleep, 3)); raise SystemExit(7)'", 7, {"long": True}),
    ("python, asyncio asks itself", "{python} asyncio_reply.py", 7),
    ("python, Queue filled by a thread", "{python} -c 'import queue, threading; q = queue.Queue(); threading.Timer(3, q.put, [7]).start(); "
     "raise SystemExit(q.get())'", 7),
    ("python, Queue.join", "{python} -c 'import queue, threading; q = queue.Queue(); q.put(1); threading.Timer(3, q.task_done).start(); q.join(); "
     "raise SystemExit(7)'", 7),
    ("python, Future.result", "{python} -c 'import concurrent.futures as f, time; f.ThreadPoolExecutor(3).submit(time.sleep, 3).result(); raise SystemExit(7)'", 7),
    ("python, futures.wait, timed", "{python} -c 'import concurrent.futures as f; f.wait([f.Future()], 3); raise SystemExit(7)'", 7, {"long": True}),
    ("python, Condition, timed", "{python} condition.py", 7),
    ("python, Event, timed", "{python} -c 'import threading; threading.Event().wait(3); raise SystemExit(7)'", 7),
    ("python, Barrier, timed", "{python} -c 'import threading; threading.Barrier(2).wait(3)'", 1, {"long": True}),
    ("python, Semaphore", "{python} -c 'import threading; s = threading.Semaphore(0); threading.Timer(3, s.release).start(); s.acquire(); raise SystemExit(7)'", 7, {"long": True}),
    ("python, join of a Timer", "{python} -c 'import threading; t = threading.Timer(3, print); t.start(); t.join(); raise SystemExit(7)'", 7, {"long": True}),
    ("python, RLock, its owner's child", "{python} holder.py", 7),
    ("python, sched", "{python} -c 'import sched; s = sched.scheduler(); [s.enter(i, 1, print) for i in range(4)]; s.run(); raise SystemExit(7)'", 7, {"long": True}),
    ("python, selectors, timed", "{python} -c 'import selectors, socket; a, b = socket.socketpair(); s = selectors.DefaultSelector(); "
     "s.register(a, 1); s.select(3); raise SystemExit(7)'", 7),
    ("python, socketserver", "{python} -c 'import socketserver as s; s.UnixStreamServer(\"in.socket\", s.StreamRequestHandler).serve_forever(0.3)'", None),
    ("python, SO_RCVTIMEO", "{python} -c 'import socket, struct; a, b = socket.socketpair(); a.setsockopt(1, 20, struct.pack(\"ll\", 3, 0)); a.recv(1)'", 1),
    ("python, SO_SNDTIMEO", "{python} -c 'import socket, struct; a, b = socket.socketpair(); a.setsockopt(1, 21, struct.pack(\"ll\", 3, 0)); a.sendall(bytes(9**7))'", 1),
    ("python, settimeout", "{python} -c 'import socket; a, b = socket.socketpair(); a.settimeout(3); a.recv(1)'", 1),
    ("python, own pipe, thread writes", "{python} -c 'import os, threading; r, w = os.pipe(); threading.Timer(3, os.write, [w, b\"x\"]).start(); "
     "os.read(r, 1); raise SystemExit(7)'", 7),
    ("python, own pipe, alarm writes", "{python} -c 'import os, signal; r, w = os.pipe(); signal.signal(14, lambda *_: os.write(w, b\"x\")); "
     "signal.alarm(3); os.read(r, 1); raise SystemExit(7)'", 7),
    ("python, eventfd, thread writes", "{python} -c 'import os, threading; e = os.eventfd(0); threading.Timer(3, os.eventfd_write, [e, 1]).start(); "
     "os.eventfd_read(e); raise SystemExit(7)'", 7),
    ("python, sigtimedwait", "{python} -c 'import signal; signal.pthread_sigmask(0, [10]); signal.sigtimedwait([10], 3); raise SystemExit(7)'", 7),
    ("python, setitimer and pause", "{python} -c 'import signal; signal.signal(14, lambda *_: None); signal.setitimer(0, 3); signal.pause(); "
     "raise SystemExit(7)'", 7, {"long": True}),
    ("python, HTTP that answers late", "{python} slow_http.py", 7),
    ("perl, select with a time", "perl -e 'select(undef, undef, undef, 3); exit 7'", 7, {"long": True}),
    ("perl, alarm ends a read", "perl -e 'pipe(R, W); $SIG{ALRM} = sub { exit 7 }; alarm 3; <R>'", 7),
    ("node, Atomics.wait, timed", "node -e 'Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 3000); process.exit(7)'", 7, {"needs": "node"}),
    ("node, a worker", "node worker.js", 7, {"needs": "node"}),
    ("node, setInterval", "node -e 'setInterval(() => {}, 400)'", None, {"needs": "node", "long": True}),
    # a process of its own,
    ("python, ProcessPoolExecutor", "{python} futures.py", 7),
    ("python, Manager", "{python} manager.py", 7),
    ("python, multiprocessing.Queue", "{python} -c 'import multiprocessing as m, time; q = m.Queue(); "
     "m.Process(target=lambda: (time.sleep(3), q.put(7))).start(); raise SystemExit(q.get())'", 7, {"long": True}),
    ("python, multiprocessing.Lock", "{python} -c 'import multiprocessing as m, time; k = m.Lock(); k.acquire(); "
     "m.Process(target=lambda: (time.sleep(3), k.release())).start(); k.acquire(); raise SystemExit(7)'", 7),
    ("python, a full backlog that a child empties late", "{python} -c 'import os, socket, time; l = socket.socket(socket.AF_UNIX); l.bind(\"in.socket\"); "
     "l.listen(0); os.fork() or (time.sleep(3), [l.accept() for _ in range(9)], os._exit(0)); k = [socket.socket(socket.AF_UNIX) for _ in range(9)]; "
     "[s.connect(\"in.socket\") for s in k]; raise SystemExit(7)'", 7),
    ("python, multiprocessing.Pipe", "{python} -c 'import multiprocessing as m, time; a, b = m.Pipe(); "
     "m.Process(target=lambda: (time.sleep(3), b.send(7))).start(); raise SystemExit(a.recv())'", 7),
    ("python, communicate", "{python} -c 'import subprocess as s; "
     "s.Popen([\"sleep\", \"3\"], stdin=s.PIPE, stdout=s.PIPE, stderr=s.PIPE).communicate(b\"x\"); raise SystemExit(7)'", 7, {"long": True}),
    ("python, run with a timeout", "{python} -c 'import subprocess; subprocess.run([\"sleep\", \"100\"], timeout=3)'", 1),
    ("python, lockf of a child", "{python} -c 'import fcntl, os, time; f = open(\"x.lock\", \"w\"); "
     "os.fork() or (fcntl.lockf(f, 2), time.sleep(3), os._exit(0)); time.sleep(0.3); fcntl.lockf(f, 2); raise SystemExit(7)'", 7),
    ("perl, open of a command", "perl -e 'open(F, \"sleep 3; echo 7 |\"); exit <F>'", 7),
    ("perl, a child that it kills", "perl -e 'if (!($p = fork)) { sleep 100 } sleep 3; kill 15, $p; wait; exit 7'", 7, {"long": True}),
    ("node, output of a child", "node -e 'require(\"child_process\").exec(\"sleep 3; echo x\", () => process.exit(7))'", 7, {"needs": "node", "long": True}),
    ("awk, getline of a command", "awk 'BEGIN { \"sleep 3; echo 7\" | getline x; exit x }'", 7),
    ("make, $(shell)", "make -s -f shell.mk", 2),
    ("make -O -j4", "make -O -j4 -f three.mk", 0),
    ("cmake, execute_process", "cmake -P wait.cmake", 0, {"needs": "cmake", "long": True}),
    ("git, a hook", "sh -c 'git init -q . && chmod +x hooks/* && git -c core.hooksPath=hooks -c user.name=x -c "
     "user.email=x commit -q --allow-empty -m x'", 1, {"needs": "git"}),
    ("tar, a slow compressor", "tar c -I \"sh -c 'sleep 3; cat'\" -f x.tar /bin/bash", 0),
    ("gdb runs a sleep", "gdb -nx -batch -ex run --args sleep 3", 0, {"needs": "gdb", "long": True}),
    ("strace -f of two", "strace -f -o log sh -c 'sleep 3 & wait; exit 7'", 7, {"needs": "strace"}),
    # or a job.
    ("bash, coproc that answers late", "bash -c 'coproc { sleep 3; echo 7; }; read x <&${COPROC[0]}; exit $x'", 7),
    ("bash, wait -n", "bash -c 'sleep 100 & p=$!; sleep 3 & wait -n; kill $p; exit 7'", 7),
    ("bash, trap of a job's signal", "bash -c 'trap \"kill %2; exit 7\" USR1; (sleep 3; kill -USR1 $$) & sleep 100 & wait'", 7),
    ("bash, mapfile", "bash -c 'mapfile x < <(sleep 3; echo 7); exit $x'", 7, {"long": True}),
    ("bash, read -t", "bash -c 'mkfifo fifo; exec 3<>fifo; read -t 3 x <&3; exit 7'", 7),
    ("bash, two substitutions", "bash -c 'diff <(sleep 3; echo a) <(sleep 2; echo b)'", 1),
    ("bash, tokens in a FIFO", "bash -c 'mkfifo fifo; exec 3<>fifo; echo >&3; for i in 1 2 3; do read -u 3; (sleep 1; echo >&3) & done; wait; exit 7'", 7),
    ("bash, until a file is there", "bash -c '(sleep 3; touch file) & until [ -e file ]; do sleep 0.2; done; exit 7'", 7),
    ("bash -m, fg", "script -qec 'bash -mc \"sleep 3 & fg; exit 7\"' /dev/null", 7, {"needs": "script"}),
    ("sh reads a FIFO opened late", "sh -c 'mkfifo fifo; (sleep 3; echo 7 >fifo) & read x <fifo; exit $x'", 7),
    ("sh writes a FIFO opened late", "sh -c 'mkfifo fifo; (sleep 3; cat fifo) & echo x >fifo; exit 7'", 7),
    ("dd of a FIFO", "sh -c 'mkfifo fifo; (sleep 3; echo 1234) >fifo & dd if=fifo bs=5 count=1; exit 7'", 7, {"long": True}),
    ("sed -u | tee, lines now and then", "sh -c '(echo a; sleep 1; echo b; sleep 2) | sed -u s/a/x/ | tee log; exit 7'", 7),
    ("xz -T2 | xz -d", "sh -c '(sleep 3; echo a) | xz -T2 | xz -d; exit 7'", 7, {"needs": "xz"}),
    ("tail --pid", "sh -c 'sleep 3 & tail --pid=$! -f zoo.mk; exit 7'", 7),
    ("flock -s, then -x", "sh -c 'flock -s x.lock sleep 3 & flock -s x.lock sleep 2 & sleep 0.3; flock x.lock true; exit 7'", 7),
    ("inotifywait, a job touches", "sh -c '(sleep 3; touch file) & inotifywait -e create .; exit 7'", 7, {"needs": "inotifywait"}),
    ("sh writes a FIFO without a reader", "sh -c 'mkfifo fifo; echo x >fifo'", None),
    ("nc to nc", "sh -c 'nc -lU x.socket & sleep 0.2; sleep 3 | nc -NU x.socket; exit 7'", 7, {"needs": "nc"}),
    ("socat between two sleeps", "socat -t 0 EXEC:\"sleep 3\" EXEC:\"sleep 100\"", 0, {"needs": "socat"}),
    ("redis-cli, BLPOP", "sh -c 'redis-server --port 0 --unixsocket it.socket >log & sleep 0.5; redis-cli -s it.socket blpop k 3; kill $!; wait; "
     "exit 7'", 7, {"needs": "redis-server redis-cli"}),
    ("tmux, a session's client", "tmux -S {folder}/tmux -f /dev/null new 'sleep 3'", 0, {"stdin": "tty", "needs": "tmux", "env": {"TERM": "xterm"}}),
    ("python, shared mutex in a PID namespace", "unshare -p -f --mount-proc {python} {folder}/shared_mutex.py", 7, {"root": True}),
    ("python, epoll of a number that is another's by now", "{python} {folder}/epoll_number.py", None),
    ("perl, alarm around a read from a helper", "perl {folder}/alarm.pl", 7),
    ("python, SIGUSR1 brings a helper its work", "{python} {folder}/helper.py", None),
    ("python, the pipe's end is on its way through a socket", "{python} {folder}/sent_pipe.py", 7),
    ("a child with the parent's memory", "{zoo} sharer line", 7),
    ("a seccomp supervisor that takes its time", "{zoo} supervisor line", 7),
    ("a spin until another thread is done", "{zoo} spin-for-worker line", 7, {"cpu": True}),
    ("flock -w", "bash -c 'exec 9>lock; flock 9; flock -w 3 lock true || exit 7'", 7),
    ("sleep in a PID namespace", "unshare -p -f --mount-proc sleep 100", None, {"root": True}),
]
