"""Who waits for the lock of a database of SQLite (zoo/sqlite.cc, zoo/python/databases.py, and Debian's own sqlite3)."""
from zoo_cases import DEADLOCK

PYTHON = "/usr/bin/python3.11 {programs}/python/databases.py "
# Its busy handler naps and tries again.
NAPS = {"restless": True, "age": 0.5}
SHELL = {"needs": "sqlite3", "restless": True}
CPU = {"cpu": True, "restless": True}
SQLITE = "sqlite3 -batch -cmd '.timeout 600000' "

HANGS = [
    ("two databases crosswise", "zoo_sqlite crossed", DEADLOCK + ", 2 ", "a.db b.db first second WriteOther", NAPS),
    ("two databases with logs crosswise", "zoo_sqlite logs-crossed", DEADLOCK + ", 2 ", "a.db b.db first second WriteOther", NAPS),
    ("crosswise, a handler that never gives up", "zoo_sqlite handler-crossed", DEADLOCK + ", 2 ", "a.db b.db first second WriteOther", NAPS),
    ("attached databases crosswise", "zoo_sqlite attached-crossed", DEADLOCK + ", 2 ", "a.db b.db first second AttachedCrossed", NAPS),
    ("threads crosswise", "zoo_sqlite threads-crossed", DEADLOCK, "a.db b.db WriteOther", NAPS),
    ("two connections of one thread", "zoo_sqlite wants-its-own", DEADLOCK, "app.db WriteOther", NAPS),
    ("commit and a reader that awaits it", "zoo_sqlite reader-awaits-commit", DEADLOCK + ", 2 ", "app.db pipe reader CommitWhileRead ReadByte|ReaderAwaitsCommit", NAPS),
    ("waits for a child that writes", "zoo_sqlite waits-for-writer", DEADLOCK + ", 2 ", "app.db child ReapWriter WriteOther", NAPS),
    ("holder stopped", "zoo_sqlite stopped-holder", "held", "app.db holder WriteOther", NAPS),
    ("mutex and database", "zoo_sqlite mutex-and-database", DEADLOCK, "app.db cache_mutex WriteOther LockCache", NAPS),
    ("python, two databases crosswise", PYTHON + "crossed", DEADLOCK + ", 2 ", "jobs.db results.db take_job", NAPS),
    ("python, waits for a child", PYTHON + "waits-for-child", DEADLOCK + ", 2 ", "jobs.db take_job", NAPS),
    ("python, two connections of one thread", PYTHON + "twice", DEADLOCK, "jobs.db take_job", NAPS),
    ("shell, its command writes to its database", SQLITE + "-cmd 'BEGIN IMMEDIATE' -cmd '.shell echo ready' -cmd \".shell sqlite3 -cmd '.timeout 600000' jobs.db 'BEGIN IMMEDIATE'\" jobs.db",
     DEADLOCK + ", ", "jobs.db sqlite3", {**SHELL, "age": 0.5}),
]

CONTROLS = [
    ("crosswise, gives up and begins anew", "zoo_sqlite crossed-gives-up", NAPS),
    ("holder naps and commits", "zoo_sqlite holder-naps", NAPS),
    ("holder sleeps long", "zoo_sqlite holder-sleeps-long", NAPS),
    ("holder reads its input", "zoo_sqlite holder-reads-input", {"stdin": "pipe", **NAPS}),
    ("holder reads its terminal", "zoo_sqlite holder-reads-input", {"stdin": "tty", **NAPS}),
    ("holder computes", "zoo_sqlite holder-computes", CPU),
    ("contended by two", "zoo_sqlite contended 2", CPU),
    ("contended by six", "zoo_sqlite contended 6", CPU),
    ("log contended by three", "zoo_sqlite log-contended 3", CPU),
    ("threads contend", "zoo_sqlite threads-contended 3", CPU),
    ("thread that holds it naps", "zoo_sqlite thread-holder-naps", NAPS),
    ("checkpoint awaits a reader", "zoo_sqlite checkpoint-awaits-reader", NAPS),
    ("function that sleeps", "zoo_sqlite function-sleeps", NAPS),
    ("sleeps by the library", "zoo_sqlite sleeps-by-library", NAPS),
    ("turns over pipes", "zoo_sqlite turns-over-pipes", NAPS),
    ("python, threads contend", PYTHON + "contended", CPU),
    ("python, the usual time limit", PYTHON + "usual-timeout", NAPS),
    ("shell at its terminal", "sqlite3 -cmd '.shell echo ready' jobs.db", {**SHELL, "stdin": "tty"}),
    ("shell in a transaction, at a pipe", SQLITE + "-cmd 'BEGIN IMMEDIATE' -cmd '.shell echo ready' jobs.db", {**SHELL, "stdin": "pipe"}),
]
