"""Programs of Python that ask for locks of files again and again: python3 file_locks.py NAME."""
import fcntl
import os
import sys
import time

PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__.replace("_", "-")] = function
    return function


def ready():
    print("ready", flush=True)


class LockFile:
    def __init__(self, path):
        self.file = open(path, "w")

    def try_lock(self):
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            return False

    def lock(self):
        while not self.try_lock():
            time.sleep(0.05)

    def unlock(self):
        fcntl.flock(self.file, fcntl.LOCK_UN)


def as_two(first, second):
    ready()
    for work in first, second:
        if os.fork() == 0:
            work()
            os._exit(0)
    os.wait()


def lock_both(own, other):
    own, other = LockFile(own), LockFile(other)
    own.lock()
    time.sleep(0.3)
    other.lock()


@program
def crossed():
    as_two(lambda: lock_both("a.lock", "b.lock"), lambda: lock_both("b.lock", "a.lock"))


def lock_both_or_none(own, other, tries):
    own, other = LockFile(own), LockFile(other)
    while True:
        own.lock()
        for _ in range(tries):
            if other.try_lock():
                other.unlock()
                break
            time.sleep(0.05)
        own.unlock()
        time.sleep(0.02)


@program
def gives_up():
    as_two(lambda: lock_both_or_none("a.lock", "b.lock", 50), lambda: lock_both_or_none("b.lock", "a.lock", 80))


def lock_both_until(own, other):
    own, other = LockFile(own), LockFile(other)
    while True:
        own.lock()
        until = time.monotonic() + 4
        while not other.try_lock() and time.monotonic() < until:
            time.sleep(0.05)
        other.unlock()
        own.unlock()
        time.sleep(0.02)


@program
def gives_up_in_time():
    as_two(lambda: lock_both_until("a.lock", "b.lock"), lambda: lock_both_until("b.lock", "a.lock"))


def hold_and_sleep(path):
    lock = LockFile(path)
    lock.lock()
    time.sleep(600)


@program
def of_a_sleeper():
    as_two(lambda: hold_and_sleep("b.lock"), lambda: lock_both("a.lock", "b.lock"))


if __name__ == "__main__":
    PROGRAMS[sys.argv[1]]()
