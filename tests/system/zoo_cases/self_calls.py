"""Servers that ask themselves and wait for the answer (zoo/python/self_calls.py and the like): nobody is left who could give it."""
from zoo_cases import DEADLOCK

DEFAULTS = {"needs": "/usr/bin/python3.11 curl", "restless": True, "age": 5}
PYTHON = "/usr/bin/python3.11 {programs}/python/self_calls.py "
NODE = "node {programs}/node/self_calls.js "
GUNICORN = "gunicorn --chdir {programs}/python --log-level critical -c {programs}/python/self_calling_app.py --timeout 0 "
J = {"build": ("java/SelfCalls.java", "javac")}
NODE_HERE = {"needs": "node curl"}
ITSELF = DEADLOCK + "|no writer"
INPUT = {"stdin": "pipe"}


def gunicorn(port, options, clients=1, path="/outer"):
    return f"env SELF_CALL_PORT={port} SELF_CALL_CLIENTS={clients} SELF_CALL_PATH={path} {GUNICORN} -b 127.0.0.1:{port} {options} self_calling_app:app"


WORKER = {"needs": "gunicorn"}

HANGS = [
    ("one by one", PYTHON + "one-by-one", ITSELF, "fetch itself"),
    ("standard library, urllib", PYTHON + "http-urllib", ITSELF, "ask_by_urllib itself"),
    ("standard library, curl", PYTHON + "http-curl", DEADLOCK + ", 2 ", "ask_by_curl curl"),
    ("standard library, a shell's curl", PYTHON + "http-shell", DEADLOCK + ", 3 ", "ask_by_shell curl"),
    ("XML-RPC", PYTHON + "xmlrpc-itself", ITSELF, "outer itself"),
    ("unix socket", PYTHON + "unix-itself", ITSELF, "handle itself"),
    ("asked of the client", PYTHON + "one-by-one", ITSELF, "fetch", {"ask": "client"}),
    ("worker of a parent that naps", PYTHON + "prefork-naps", ITSELF, "fetch", {"ask": "worker"}),
    ("two workers of a parent that waits", PYTHON + "prefork-waits", ITSELF, "fetch", {"ask": "worker", "age": 10}),
    ("worker of a parent that pauses", PYTHON + "prefork-pauses", ITSELF, "fetch", {"ask": "worker"}),
    ("pool of one", PYTHON + "pool-of-one", ITSELF, "fetch request"),
    ("pool of two", PYTHON + "pool-of-two", ITSELF + ".* 2 of 3", "fetch request", {"age": 10}),
    ("pool of two, connections watched", PYTHON + "pool-selects", ITSELF + ".* 2 of 3", "fetch request", {"age": 10}),
    ("workers by hand", PYTHON + "threads-by-hand", ITSELF, "fetch request", {"age": 10}),
    ("gunicorn, one worker", gunicorn(54331, "-w 1"), ITSELF, "fetch_inner", {**WORKER, "ask": "worker", "age": 9}),
    ("gunicorn, two threads", gunicorn(54332, "-w 1 --threads 2", 4), ITSELF, "fetch_inner", {**WORKER, "ask": "worker", "age": 9}),
    ("node, a shell's curl", NODE + "exec", DEADLOCK, "ask|exec curl", NODE_HERE),
    ("node, curl", NODE + "spawn", DEADLOCK, "askBySpawn|spawn curl", NODE_HERE),
    ("java, its dispatcher", "dispatcher", ITSELF, "fetch SelfCalls.java HTTP-Dispatcher", J),
    ("java, pool of two", "pool-of-two", ITSELF, "fetch SelfCalls.java pool-1-thread-1 request", J),
    ("java, pool of two over sockets", "sockets", ITSELF, "fetch SelfCalls.java pool-1-thread-1 request", J),
]

CONTROLS = [
    ("pool whose other worker sleeps", PYTHON + "pool-inner-sleeps"),
    ("pool whose other worker reads", PYTHON + "pool-inner-reads", INPUT),
    ("behind a worker that sleeps", PYTHON + "pool-behind-sleeper"),
    ("behind a worker that reads", PYTHON + "pool-behind-reader", INPUT),
    ("behind a worker whose command sleeps", PYTHON + "pool-behind-child"),
    ("slots that an event loop frees", PYTHON + "slots-of-a-loop", INPUT),
    ("subscriber of its own server", PYTHON + "subscriber"),
    ("another worker sleeps", PYTHON + "prefork-busy", {"ask": "worker"}),
    ("behind another worker that sleeps", PYTHON + "prefork-behind-sleeper", {"lines": 2}),
    ("the parent takes connections now and then", PYTHON + "prefork-parent-accepts"),
    ("the parent takes connections after its input", PYTHON + "parent-accepts-after-input", INPUT),
    ("a thread for each", PYTHON + "threads-of-their-own", {"lines": 2}),
    ("a thread for each, curl", PYTHON + "threads-and-curl", {"lines": 2}),
    ("curl with a time limit", PYTHON + "curl-with-a-limit"),
    ("urllib with a time limit", PYTHON + "urllib-with-a-limit"),
    ("curl asks another process", PYTHON + "curl-of-another"),
    ("asks itself again and again", PYTHON + "asks-itself-again-and-again"),
    ("gunicorn, idle", gunicorn(54333, "-w 2", 0), {**WORKER, "lines": 2}),
    ("gunicorn, another worker sleeps", gunicorn(54334, "-w 2", 1, "/outer-slow"), {**WORKER, "lines": 2}),
    ("gunicorn, another thread sleeps", gunicorn(54335, "-w 1 --threads 2", 1, "/outer-slow"), {**WORKER}),
    ("node, asynchronous", NODE + "async", NODE_HERE),
    ("node, another process", NODE + "other", NODE_HERE),
    ("java, the other worker sleeps", "inner-sleeps", J),
    ("java, behind a worker that sleeps", "behind-sleeper", J),
    ("java, idle pool", "idle", J),
]
