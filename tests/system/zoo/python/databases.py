"""Programs of Python that wait for the lock of a database of SQLite: python3 databases.py NAME."""
import os
import sqlite3
import subprocess
import sys
import threading
import time

TEN_MINUTES = 600


def ready():
    print("ready", flush=True)


def open_database(path, timeout=TEN_MINUTES):
    return sqlite3.connect(path, timeout=timeout, isolation_level=None)


def make(*paths):
    for path in paths:
        database = open_database(path)
        database.execute("CREATE TABLE job (name TEXT)")
        database.execute("INSERT INTO job VALUES ('x')")
        database.close()


def take_job(database):
    database.execute("BEGIN IMMEDIATE")


def hold_and_want(own, other, met):
    held, wanted = open_database(own), open_database(other)
    take_job(held)
    open(met, "w").close()
    while not (os.path.exists("met-1") and os.path.exists("met-2")):
        time.sleep(0.001)
    take_job(wanted)


def crossed():
    """Two processes, two databases."""
    make("jobs.db", "results.db")
    children = [subprocess.Popen([sys.executable, __file__, "side", *words]) for words in (("jobs.db", "results.db", "met-1"), ("results.db", "jobs.db", "met-2"))]
    while not (os.path.exists("met-1") and os.path.exists("met-2")):
        time.sleep(0.01)
    time.sleep(0.3)
    ready()
    for child in children:
        child.wait()


def waits_for_child():
    """In the midst of a transaction."""
    make("jobs.db")
    database = open_database("jobs.db")
    take_job(database)
    child = subprocess.Popen([sys.executable, __file__, "take", "jobs.db"])
    time.sleep(0.4)
    ready()
    child.wait()


def twice():
    """Two connections of one thread."""
    make("jobs.db")
    first, second = open_database("jobs.db"), open_database("jobs.db")
    take_job(first)
    ready()
    take_job(second)


def worker():
    database = open_database("jobs.db")
    while True:
        take_job(database)
        database.execute("UPDATE job SET name = 'y'")
        time.sleep(0.01)
        database.execute("COMMIT")


def contended():
    make("jobs.db")
    threads = [threading.Thread(target=worker) for _ in range(3)]
    for thread in threads:
        thread.start()
    ready()


def usual_timeout():
    """Python's own, of five seconds; then it is told so, and tries again after a while."""
    make("jobs.db")
    holder = subprocess.Popen([sys.executable, __file__, "hold", "jobs.db"], stdout=subprocess.PIPE)
    holder.stdout.readline()
    database = sqlite3.connect("jobs.db", isolation_level=None)
    ready()
    while True:
        try:
            take_job(database)
            database.execute("COMMIT")
        except sqlite3.OperationalError:
            time.sleep(0.1)


def hold(path):
    database = open_database(path)
    take_job(database)
    ready()
    time.sleep(600)


if __name__ == "__main__":
    name, *words = sys.argv[1:]
    if name == "side":
        hold_and_want(*words)
    elif name == "take":
        take_job(open_database(*words))
    elif name == "hold":
        hold(*words)
    else:
        globals()[name.replace("-", "_")]()
