"""Who waits for locks of a PostgreSQL server (zoo/python/postgres.py, which begins a server of its own)."""
from zoo_cases import DEADLOCK

CLIENT = "/usr/bin/python3.11 {programs}/python/postgres.py "
DEFAULTS = {"needs": "psql setpriv /usr/bin/python3.11"}
SERVER = {"ask": "postgres"}
MOVES = {"restless": True}
ROW = "transaction idle.in.transaction "

HANGS = [
    ("a row, two connections of one thread", CLIENT + "itself", DEADLOCK + ", 3 ", ROW + "deposit account.SET"),
    ("a row, asked of the server", CLIENT + "itself", DEADLOCK + ", 3 ", ROW + "python3", SERVER),
    ("a table, two connections of one thread", CLIENT + "table", DEADLOCK + ", 3 ", "relation AccessExclusive idle.in.transaction count_accounts"),
    ("an advisory lock of an idle session", CLIENT + "advisory", DEADLOCK + ", 3 ", "advisory.lock.4711 take_advisory"),
    ("waits for a child in a transaction", CLIENT + "waits-for-child", DEADLOCK + ", 4 ", ROW + "depositor reap"),
    ("a row and a lock of the program", CLIENT + "two-threads", DEADLOCK + ", 4 ", ROW + "RLock|lock deposit"),
    ("behind somebody in the queue", CLIENT + "queue", DEADLOCK + ", 4 ", "relation AccessExclusive idle.in.transaction count_accounts"),
    ("holder's client stopped", CLIENT + "stopped-client", "held", ROW + "holder deposit"),
    ("holder's process of the server stopped", CLIENT + "stopped-server", "held", "transaction deposit stopped"),
    ("a row and a pipe", CLIENT + "pipe", DEADLOCK + ", 4 ", ROW + "answerer pipe read_answer"),
    ("an event loop with two connections", CLIENT + "loop", DEADLOCK + ", 3 ", ROW + "await_any"),
    ("psql and its shell", CLIENT + "shell", DEADLOCK + ", ", ROW + "psql"),
    ("copies into a table", CLIENT + "copy", DEADLOCK + ", 3 ", "relation COPY copy"),
    ("two sessions that the server looks at late", CLIENT + "crossed-undetected", DEADLOCK + ", ", "transaction deadlock_timeout"),
    ("gives up after an hour", CLIENT + "long-limit", DEADLOCK + ", 3 ", ROW + "lock_timeout deposit"),
]

CONTROLS = [
    ("idle server", CLIENT + "idle-server", {**SERVER, **MOVES}),
    ("idle connections", CLIENT + "idle-pool", {"stdin": "pipe"}),
    ("idle connections, asked of the server", CLIENT + "idle-pool", {"stdin": "pipe", **SERVER}),
    ("holder at its terminal", CLIENT + "psql-at-terminal", {"stdin": "tty"}),
    ("holder at its terminal, asked of who waits", CLIENT + "psql-at-terminal", {"stdin": "tty", "ask": "waiter"}),
    ("holder's client sleeps", CLIENT + "holder-sleeps"),
    ("holder's client sleeps, asked of who waits", CLIENT + "holder-sleeps", {"ask": "waiter"}),
    ("holder runs a long query", CLIENT + "holder-runs-query", {"ask": "waiter"}),
    ("holder computes", CLIENT + "holder-computes", {"ask": "waiter", "cpu": True, **MOVES}),
    ("holder reads its input", CLIENT + "holder-reads-input", {"stdin": "pipe", "ask": "waiter"}),
    ("gives up after two seconds, again and again", CLIENT + "lock-timeout", MOVES),
    ("statement with a time limit", CLIENT + "statement-timeout", MOVES),
    ("transaction with a time limit", CLIENT + "transaction-timeout", MOVES),
    ("circles that the server breaks", CLIENT + "crossed-detected", MOVES),
    ("one row for six", CLIENT + "contended", MOVES),
    ("awaits a notification", CLIENT + "listens"),
    ("a prepared transaction", CLIENT + "prepared"),
    ("another thread commits", CLIENT + "thread-commits", MOVES),
    ("sleeps in the server", CLIENT + "sleeps-in-server"),
]
