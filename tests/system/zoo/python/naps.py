"""Programs of Python that hang beside a thread that naps and does something harmless, or look so beside one that ends the
wait in the end, each by its name: python3 naps.py pipes beside prints."""
import logging
import logging.handlers
import os
import queue
import subprocess
import sys
import threading
import time

WAYS = {}
NAPS = {}
jobs = queue.Queue()
done = threading.Event()
both = threading.Barrier(2)
count = 0
log = logging.getLogger("metrics")
filter_program = None


def way(function):
    WAYS[function.__name__.replace("_", "-")] = function
    return function


def nap(function):
    NAPS[function.__name__.replace("_", "-")] = function
    return function


# --- What hangs.

# It sends all before it reads.
@way
def pipes():
    global filter_program
    filter_program = subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    beside()
    for _ in range(20000):
        filter_program.stdin.write(b"x" * 200)


@way
def queue_get():
    beside()
    jobs.get()


@way
def barrier():
    beside()
    both.wait()


# --- What naps beside it: harmless.

@nap
def sleeps():
    while True:
        time.sleep(0.7)


@nap
def prints():
    while True:
        time.sleep(0.5)
        print("alive", os.getpid(), flush=True)


@nap
def logs():
    global count
    while not done.wait(0.6):
        count += 1
        log.warning("alive %d, %d jobs", count, jobs.qsize())


class Beat:
    def __init__(self):
        self.stopped = threading.Event()
        self.beats = 0

    def say(self):
        self.beats += 1
        log.warning("beat %d", self.beats)

    def run(self):
        while not self.stopped.wait(0.5):
            self.say()


@nap
def beats():
    Beat().run()


@nap
def waits(stop=done):
    while True:
        if stop.wait(0.5):
            break


def report(text):
    sys.stderr.write(f"{time.strftime('%H:%M')} {text}\n")
    sys.stderr.flush()


@nap
def reports():
    while True:
        report(f"{len(threading.enumerate())} threads")
        time.sleep(0.5)


# --- And what ends the wait after a while.

@nap
def puts():
    time.sleep(60)
    jobs.put(1)


@nap
def puts_by_a_name():
    put = jobs.put
    while True:
        time.sleep(60)
        put(1)


def give():
    jobs.put(1)


@nap
def puts_in_a_function():
    while True:
        time.sleep(60)
        give()


@nap
def puts_by_a_function_that_is_given():
    while True:
        time.sleep(60)
        max([1, 2], key=lambda _: give())


@nap
def puts_by_what_is_evaluated():
    while True:
        time.sleep(60)
        eval("jobs.put(1)")


class Server:
    def beat(self):
        jobs.put(1)

    def run(self):
        while True:
            time.sleep(60)
            self.beat()


@nap
def puts_in_a_method():
    Server().run()


class Log:
    def info(self, text):
        jobs.put(text)


@nap
def puts_by_a_log_of_its_own(log=Log()):
    while True:
        time.sleep(60)
        log.info("alive")


@nap
def puts_by_a_handler_of_a_log():
    log.addHandler(logging.handlers.QueueHandler(jobs))
    while True:
        time.sleep(60)
        log.warning("alive")


def wrapped(_):
    return Log()


@nap
def puts_by_what_a_call_gives():
    while True:
        time.sleep(60)
        wrapped(log).info("alive")


@nap
def reads():
    time.sleep(60)
    filter_program.stdout.read()


@nap
def reads_by_number():
    number = filter_program.stdout.fileno()
    while True:
        time.sleep(60)
        os.read(number, 1 << 20)


@nap
def kills():
    while True:
        time.sleep(60)
        filter_program.kill()


@nap
def comes_to_a_barrier():
    time.sleep(60)
    both.wait()


def beside():
    print("ready", flush=True)
    threading.Thread(target=NAPS[sys.argv[3]], name="beside", daemon=True).start()


WAYS[sys.argv[1]]()
