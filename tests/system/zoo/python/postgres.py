"""Clients of a PostgreSQL server of their own, which wait for each other's locks: python3 postgres.py NAME.

They talk to it through libpq itself. The server is begun in the working folder, as the user postgres where root asks."""
import ctypes
import glob
import os
import select
import signal
import subprocess
import sys
import threading
import time

BIN = "/usr/lib/postgresql/15/bin/"
PORT = "54321"
OPTIONS = ["-c", "listen_addresses=", "-c", "fsync=off", "-c", "shared_buffers=16MB", "-c", "max_connections=20", "-c", "max_prepared_transactions=4"]


def ready():
    print("ready", flush=True)


# --- The server.

def as_postgres(*words):
    """It does not run as root. Whoever is root lets it into the folder all the same."""
    if os.geteuid() != 0:
        return list(words)
    return ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups", "--inh-caps=+dac_override", "--ambient-caps=+dac_override", *words]


def end_with_this():
    """The server's processes write their titles over their environment, and one that computes or is stopped outlives the others. So somebody
    outside, whom nobody waits for, ends what stands in the server's folder when this program and all that it forked have ended."""
    reads, _ = os.pipe()
    script = f'read x; for each in /proc/[0-9]*; do case $(readlink $each/cwd) in "{os.getcwd()}/data"*) kill -9 ${{each#/proc/}};; esac; done'
    subprocess.run(["setsid", "-f", "sh", "-c", script], stdin=reads, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={"PATH": os.environ["PATH"]}, cwd="/")
    os.close(reads)


def serve(*settings):
    if not os.path.exists(BIN + "postgres") or not glob.glob("/usr/lib/*/libpq.so.5"):
        print("skip: PostgreSQL 15 is not here", flush=True)
        sys.exit(0)
    end_with_this()
    quiet = {"stdin": subprocess.DEVNULL, "stdout": open("server.log", "a"), "stderr": subprocess.STDOUT}
    subprocess.run(as_postgres(BIN + "initdb", "-D", "data", "-A", "trust", "-U", "postgres", "-N", "--no-locale", "-E", "UTF8"), check=True, **quiet)
    words = [word for setting in settings for word in ("-c", setting)]
    server = subprocess.Popen(as_postgres(BIN + "postgres", "-D", "data", "-k", os.getcwd(), "-p", PORT, *OPTIONS, *words), **quiet)
    while connect(must=False) is None:
        if server.poll() is not None:
            raise RuntimeError(open("server.log").read())
        time.sleep(0.02)
    run(connect("setup"), "CREATE TABLE account (id int PRIMARY KEY, balance int); INSERT INTO account SELECT i, 100 FROM generate_series(1, 10) i")
    return server


# --- libpq.

def library():
    pq = ctypes.CDLL("libpq.so.5")
    for name in "PQconnectdb", "PQexec", "PQgetResult":
        getattr(pq, name).restype = ctypes.c_void_p
    for name in "PQstatus", "PQsocket", "PQconsumeInput", "PQisBusy", "PQgetResult", "PQerrorMessage":
        getattr(pq, name).argtypes = [ctypes.c_void_p]
    for name in "PQexec", "PQsendQuery":
        getattr(pq, name).argtypes = [ctypes.c_void_p, ctypes.c_char_p]
    pq.PQresultStatus.argtypes = pq.PQclear.argtypes = pq.PQfinish.argtypes = [ctypes.c_void_p]
    pq.PQerrorMessage.restype = ctypes.c_char_p
    return pq


PQ = library() if glob.glob("/usr/lib/*/libpq.so.5") else None
FATAL = 7  # PGRES_FATAL_ERROR


def connect(name="shop", options="", must=True):
    connection = PQ.PQconnectdb(f"host={os.getcwd()} port={PORT} user=postgres dbname=postgres application_name={name} options='{options}'".encode())
    if PQ.PQstatus(connection) == 0:
        return connection
    if must:
        raise RuntimeError(PQ.PQerrorMessage(connection).decode())
    PQ.PQfinish(connection)
    return None


def run(connection, statement, may_fail=False):
    result = PQ.PQexec(connection, statement.encode())
    failed = PQ.PQresultStatus(result) == FATAL
    PQ.PQclear(result)
    if failed and not may_fail:
        raise RuntimeError(f"{statement}: {PQ.PQerrorMessage(connection).decode()}")
    return not failed


def begin_withdrawal(connection, account=1):
    run(connection, "BEGIN")
    run(connection, f"UPDATE account SET balance = balance - 1 WHERE id = {account}")


def deposit(connection, account=1):
    run(connection, f"UPDATE account SET balance = balance + 1 WHERE id = {account}")


def psql(*words, **how):
    return subprocess.Popen(["psql", "-X", "-q", "-h", os.getcwd(), "-p", PORT, "-U", "postgres", "postgres", *words], **how)


def wait_until_blocked(least=1):
    """By locks, in the server."""
    watcher = connect("watcher")
    wanted = f"SELECT 1 / (count(*) >= {least})::int FROM pg_locks WHERE NOT granted"
    while not run(watcher, wanted, may_fail=True):
        time.sleep(0.02)
    PQ.PQfinish(watcher)


def ready_when_blocked(least=1):
    def tell():
        wait_until_blocked(least)
        ready()
    child = os.fork()
    if child == 0:
        tell()
        os._exit(0)
    return child


def rename(name):
    ctypes.CDLL(None).prctl(15, name.encode(), 0, 0, 0)  # PR_SET_NAME


def child_process(name, function):
    child = os.fork()
    if child == 0:
        rename(name)
        function()
        os._exit(0)
    return child


# --- Hangs.

def itself():
    """A row, through two connections of one thread."""
    serve()
    first, second = connect(), connect()
    begin_withdrawal(first)
    ready_when_blocked()
    deposit(second)


def table():
    serve()
    first, second = connect(), connect()
    run(first, "BEGIN")
    run(first, "LOCK TABLE account IN ACCESS EXCLUSIVE MODE")
    ready_when_blocked()
    count_accounts(second)


def count_accounts(connection):
    run(connection, "SELECT count(*) FROM account")


def advisory():
    """Which a session has without a transaction."""
    serve()
    first, second = connect(), connect()
    run(first, "SELECT pg_advisory_lock(4711)")
    ready_when_blocked()
    take_advisory(second)


def take_advisory(connection):
    run(connection, "SELECT pg_advisory_lock(4711)")


def waits_for_child():
    """In the midst of a transaction, for a child that wants the same row."""
    serve()
    first = connect()
    begin_withdrawal(first)
    child = child_process("depositor", lambda: deposit(connect("depositor")))
    ready_when_blocked()
    reap(child)


def reap(child):
    os.waitpid(child, 0)


def two_threads():
    """One has a lock of the program and wants the row, the other has the row and wants the lock."""
    serve()
    first, second = connect(), connect()
    audit = threading.RLock()
    begin_withdrawal(first)
    teller = threading.Thread(target=deposit_audited, args=(second, audit))
    teller.start()
    wait_until_blocked()
    ready_later()
    write_audit(audit)


def ready_later():
    child = os.fork()
    if child == 0:
        time.sleep(0.5)
        ready()
        os._exit(0)


def deposit_audited(connection, audit):
    with audit:
        deposit(connection)


def write_audit(audit):
    with audit:
        pass


def queue():
    """Behind somebody else, who waits for the first connection."""
    serve()
    first, second = connect(), connect()
    run(first, "BEGIN")
    count_accounts(first)
    child_process("migration", lambda: run(connect("migration"), "ALTER TABLE account ADD COLUMN owner text"))
    wait_until_blocked()
    ready_when_blocked(2)
    count_accounts(second)


def stopped_client():
    serve()
    holder = child_process("holder", hold_and_pause)
    while not os.path.exists("held"):
        time.sleep(0.01)
    os.kill(holder, signal.SIGSTOP)
    ready_when_blocked()
    deposit(connect())


def hold_and_pause():
    begin_withdrawal(connect("holder"))
    open("held", "w").close()
    signal.pause()


def stopped_server():
    """Whose process for the session that has the lock is stopped."""
    serve()
    holder = connect("holder")
    begin_withdrawal(holder)
    os.kill(PQ.PQbackendPID(ctypes.c_void_p(holder)), signal.SIGSTOP)
    ready_when_blocked()
    deposit(connect())


def pipe():
    """Reads a pipe, in a transaction, of a process that wants the row."""
    serve()
    first = connect()
    begin_withdrawal(first)
    reads, writes = os.pipe()

    def answer():
        os.close(reads)
        deposit(connect("answerer"))
        os.write(writes, b"x")
    child_process("answerer", answer)
    os.close(writes)
    ready_when_blocked()
    read_answer(reads)


def read_answer(reads):
    os.read(reads, 1)


def loop():
    """Waits for whichever of its connections has an answer, as event loops do."""
    serve()
    first, second = connect(), connect()
    begin_withdrawal(first)
    PQ.PQsendQuery(second, b"UPDATE account SET balance = 0 WHERE id = 1")
    wait_until_blocked()
    ready_later()
    await_any([PQ.PQsocket(first), PQ.PQsocket(second)])


def await_any(sockets):
    poller = select.epoll()
    for each in sockets:
        poller.register(each, select.EPOLLIN)
    poller.poll()


def shell():
    """psql runs a command in its transaction, which wants the row."""
    serve()
    again = f"psql -X -q -h {os.getcwd()} -p {PORT} -U postgres postgres -c 'UPDATE account SET balance = 0 WHERE id = 1'"
    script = f"BEGIN;\nUPDATE account SET balance = 1 WHERE id = 1;\n\\! {again}\nCOMMIT;\n"
    open("script.sql", "w").write(script)
    child = psql("-f", "script.sql")
    wait_until_blocked()
    time.sleep(0.3)
    ready()
    child.wait()


def copy():
    """Of what is copied into the table the program has not sent the end."""
    serve()
    first, second = connect(), connect()
    run(first, "COPY account FROM STDIN", may_fail=True)
    ready_when_blocked()
    run(second, "TRUNCATE account")


def crossed_undetected():
    """The server looks for circles after ten minutes only."""
    serve("deadlock_timeout=10min")

    def side(name, own, other):
        connection = connect(name)
        begin_withdrawal(connection, own)
        open(f"met-{own}", "w").close()
        while not os.path.exists(f"met-{other}"):
            time.sleep(0.01)
        deposit(connection, other)
    for name, own, other in ("left", 1, 2), ("right", 2, 1):
        child_process(name, lambda name=name, own=own, other=other: side(name, own, other))
    wait_until_blocked(2)
    ready()
    reap(-1)


def long_limit():
    """The session gives up after an hour."""
    serve()
    first, second = connect(), connect(options="-c lock_timeout=1h")
    begin_withdrawal(first)
    ready_when_blocked()
    deposit(second)


# --- Controls.

def idle_server():
    server = serve()
    ready()
    server.wait()


def idle_pool():
    serve()
    connections = [connect() for _ in range(5)]
    for each in connections:
        count_accounts(each)
    ready()
    sys.stdin.read(1)


def wait_for_file(name):
    while not os.path.exists(name):
        time.sleep(0.01)
    return True


def psql_at_terminal():
    serve()
    child_process("waiter", lambda: deposit(connect("waiter")) if wait_for_file("held") else None)
    child_process("teller", lambda: (wait_until_blocked(), ready()))
    os.environ["PSQLRC"] = os.path.join(os.getcwd(), "begin.sql")
    open("begin.sql", "w").write("BEGIN;\nUPDATE account SET balance = 0 WHERE id = 1;\n\\! touch held\n")
    os.execvp("psql", ["psql", "-q", "-h", os.getcwd(), "-p", PORT, "-U", "postgres", "postgres"])


def holder_sleeps():
    serve()
    first = connect()
    begin_withdrawal(first)
    child_process("waiter", lambda: deposit(connect("waiter")))
    wait_until_blocked()
    ready()
    time.sleep(3600)


def holder_runs_query():
    """Of an hour."""
    serve()
    first = connect()
    begin_withdrawal(first)
    child_process("waiter", lambda: deposit(connect("waiter")))
    wait_until_blocked()
    ready()
    run(first, "SELECT pg_sleep(3600)")


def holder_computes():
    serve()
    first = connect()
    begin_withdrawal(first)
    child_process("waiter", lambda: deposit(connect("waiter")))
    wait_until_blocked()
    ready()
    run(first, "SELECT count(*) FROM generate_series(1, 2000) a, generate_series(1, 2000) b, generate_series(1, 2000) c")


def lock_timeout():
    """Two connections of one thread, one of which gives up again and again."""
    serve()
    first, second = connect(), connect(options="-c lock_timeout=2s")
    begin_withdrawal(first)
    ready()
    while True:
        run(second, "UPDATE account SET balance = 0 WHERE id = 1", may_fail=True)


def statement_timeout():
    serve()
    first, second = connect(), connect(options="-c statement_timeout=20s")
    begin_withdrawal(first)
    ready_when_blocked()
    run(second, "UPDATE account SET balance = 0 WHERE id = 1", may_fail=True)
    signal.pause()


def transaction_timeout():
    """Of the session that has the lock: the server ends it when it has been idle for so long."""
    serve()
    first, second = connect(options="-c idle_in_transaction_session_timeout=20s"), connect()
    begin_withdrawal(first)
    ready_when_blocked()
    deposit(second)
    signal.pause()


def crossed_detected():
    """Two that wait for each other again and again; the server ends one of them each time."""
    serve("deadlock_timeout=1s")

    def side(name, own, other):
        connection = connect(name)
        while True:
            run(connection, "BEGIN")
            run(connection, f"UPDATE account SET balance = 0 WHERE id = {own}")
            time.sleep(0.1)
            run(connection, f"UPDATE account SET balance = 1 WHERE id = {other}", may_fail=True)
            run(connection, "ROLLBACK")
    for name, own, other in ("left", 1, 2), ("right", 2, 1):
        child_process(name, lambda name=name, own=own, other=other: side(name, own, other))
    ready()
    reap(-1)


def contended():
    """Six that all want one row."""
    serve()

    def work():
        connection = connect("worker")
        while True:
            begin_withdrawal(connection)
            time.sleep(0.02)
            run(connection, "COMMIT")
    for _ in range(6):
        child_process("worker", work)
    ready()
    reap(-1)


def listens():
    serve()
    connection = connect()
    run(connection, "LISTEN orders")
    ready()
    await_any([PQ.PQsocket(connection)])


def prepared():
    """Somebody will commit it, from anywhere."""
    serve()
    first = connect()
    begin_withdrawal(first)
    run(first, "PREPARE TRANSACTION 'transfer-17'")
    ready_when_blocked()
    deposit(connect("waiter"))


def holder_reads_input():
    serve()
    first = connect()
    begin_withdrawal(first)
    child_process("waiter", lambda: deposit(connect("waiter")))
    wait_until_blocked()
    ready()
    sys.stdin.read(1)
    run(first, "COMMIT")


def thread_commits():
    """Another thread of the program has the row for a moment only."""
    serve()
    first, second = connect(), connect()

    def hold():
        while True:
            begin_withdrawal(first)
            time.sleep(1)
            run(first, "COMMIT")
            time.sleep(0.01)
    threading.Thread(target=hold, daemon=True).start()
    ready()
    while True:
        deposit(second)


def sleeps_in_server():
    serve()
    connection = connect()
    ready()
    run(connection, "SELECT pg_sleep(3600)")


if __name__ == "__main__":
    globals()[sys.argv[1].replace("-", "_")]()
