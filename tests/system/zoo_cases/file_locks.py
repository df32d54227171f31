"""Locks of files that are polled or inherited, and mutexes in files (zoo/file_locks.cc)."""
from zoo_cases import DEADLOCK, OWNER_DIED, RETRY

DEFAULTS = {"restless": True, "age": 0.5}
POLLS = f"{DEADLOCK}|{RETRY}"

HANGS = [
    ("flock polled crosswise", "zoo_file_locks flock-crossed", POLLS, "flock first second PollFlock lock"),
    ("fcntl locks polled crosswise", "zoo_file_locks ranges-crossed", POLLS, "fcntl first second TryRange|PollRange"),
    ("flock of its own, polled", "zoo_file_locks flock-twice", POLLS, "flock PollFlock"),
    ("flock of who reads its own pipe, polled", "zoo_file_locks flock-of-stuck", f"{POLLS}|no writer|held", "first", {"ask": "second"}),
    ("flock that a daemon inherited", "zoo_file_locks flock-inherited", DEADLOCK, "a.lock daemon FlockInherited"),
    ("flock polled in a circle", "zoo_file_locks flock-circle", POLLS, "flock first second third PollFlock lock"),
    ("flock polled and waited for crosswise", "zoo_file_locks flock-half-polled", POLLS, "first second PollFlock lock"),
    ("flock polled crosswise without a nap", "zoo_file_locks flock-spun-crossed", POLLS, "flock first second SpinForFlock", {"cpu": True}),
    ("mutex of a file whose owner ended", "zoo_file_locks owner-ended", OWNER_DIED, "counts.shm OwnerEnded", {"restless": False}),
]

CONTROLS = [
    ("flock of who sleeps, polled", "zoo_file_locks polled-sleeper", {"ask": "second"}),
    ("flock of who serves, polled", "zoo_file_locks polled-server", {"ask": "second"}),
    ("flock of who computes, polled", "zoo_file_locks polled-computer", {"ask": "second", "cpu": True}),
    ("fcntl lock of who sleeps, polled", "zoo_file_locks polled-range", {"ask": "second"}),
    ("flock polled by turns", "zoo_file_locks polled-turns"),
    ("flock of an heir that sleeps, polled", "zoo_file_locks polled-heir"),
    ("flock polled by threads", "zoo_file_locks polled-thread"),
    ("robust mutex of a file", "zoo_file_locks robust-owner-ended"),
    ("mutex of a file of who sleeps", "zoo_file_locks mutex-of-sleeper"),
    ("flock polled crosswise, given up after a while", "zoo_file_locks crossed-gives-up"),
    ("flock polled crosswise until a time", "zoo_file_locks crossed-until"),
    ("flock polled crosswise beside who gives it back", "zoo_file_locks crossed-beside-thread"),
    ("flock polled crosswise until a timer's signal", "zoo_file_locks crossed-with-timer"),
    ("flock of a third, polled by two", "zoo_file_locks both-poll-third"),
    ("flock shared with who sleeps, polled", "zoo_file_locks shared-and-polled"),
]
