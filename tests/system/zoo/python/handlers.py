"""Programs of Python that a handler of theirs, a timer or another task gets out of their wait, each by its name: python3 handlers.py
interrupt-event. Those that go without one are beside them."""
import asyncio
import concurrent.futures
import multiprocessing
import os
import signal
import subprocess
import sys
import threading

PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__.replace("_", "-")] = function
    return function


def ready():
    print("ready", flush=True)


def default_interrupt():
    """As a terminal starts a program: what a shell starts in the background ignores SIGINT."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


# --- A handler of SIGINT, which Python has one for itself.

@program
def interrupt_event():
    stop = threading.Event()
    signal.signal(signal.SIGINT, lambda *_: stop.set())
    ready()
    stop.wait()


@program
def interrupt_worker():
    """The main thread waits for the end of its worker, and its handler gives that its last job."""
    jobs = []
    came = threading.Condition()

    def work():
        with came:
            while not jobs:
                came.wait()

    def stop(*_):
        with came:
            jobs.append(None)
            came.notify()
    signal.signal(signal.SIGINT, stop)
    worker = threading.Thread(target=work)
    worker.start()
    ready()
    worker.join()


@program
def interrupt_asyncio():
    async def main():
        stop = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, stop.set)
        ready()
        await stop.wait()
    default_interrupt()
    asyncio.run(main())


@program
def interrupt_asyncio_queue():
    async def main():
        loop, jobs = asyncio.get_running_loop(), asyncio.Queue()
        signal.signal(signal.SIGINT, lambda *_: loop.call_soon_threadsafe(jobs.put_nowait, None))
        ready()
        while await jobs.get() is not None:
            pass
    default_interrupt()
    asyncio.run(main())


@program
def event_nobody_sets():
    """A hang: SIGINT only raises an exception here."""
    default_interrupt()
    stop_event = threading.Event()
    ready()

    def await_stop():
        stop_event.wait()
    await_stop()


@program
def asyncio_event_nobody_sets():
    """A hang, in a loop that has a handler of its own for SIGINT, which cancels its main task."""
    async def await_event():
        event = asyncio.Event()
        ready()
        await event.wait()
    default_interrupt()
    asyncio.run(await_event())


# --- A handler of SIGCHLD, and a child that will end.

@program
def child_condition():
    changed, ended = threading.Condition(threading.RLock()), []

    def on_child(*_):
        with changed:
            ended.append(True)
            changed.notify_all()
    signal.signal(signal.SIGCHLD, on_child)
    child = subprocess.Popen(["sleep", "600"])
    ready()
    with changed:
        while not ended:
            changed.wait()
    child.wait()


@program
def child_drains():
    """Waits for a child that waits for room in its pipe, which the end of another child empties."""
    slow = subprocess.Popen(["sleep", "600"])
    talker = subprocess.Popen([sys.executable, "-c", "print('x' * 300000)"], stdout=subprocess.PIPE)

    def on_child(*_):
        while os.read(talker.stdout.fileno(), 65536):
            pass
    signal.signal(signal.SIGCHLD, on_child)
    ready()
    talker.wait()
    slow.wait()


@program
def child_drains_nobody():
    """A hang: the only child is the one that waits for room in the pipe, so the handler never runs."""
    def wait_for_talker():
        talker = subprocess.Popen([sys.executable, "-c", "print('x' * 300000)"], stdout=subprocess.PIPE)
        signal.signal(signal.SIGCHLD, lambda *_: os.read(talker.stdout.fileno(), 65536))
        ready()
        talker.wait()
    wait_for_talker()


# --- Processes that wait for work from one which a handler wakes.

def square(number):
    return number * number


@program
def pool_of_handler():
    stop = threading.Event()
    with multiprocessing.Pool(3) as pool:
        pool.map(square, range(8))
        signal.signal(signal.SIGUSR1, lambda *_: stop.set())
        ready()
        stop.wait()


@program
def executor_of_handler():
    stop = threading.Event()
    with concurrent.futures.ProcessPoolExecutor(2) as executor:
        list(executor.map(square, range(8)))
        signal.signal(signal.SIGUSR1, lambda *_: stop.set())
        ready()
        stop.wait()


def consume(jobs):
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    while jobs.get() is not None:
        pass


def serve_jobs(number):
    jobs = multiprocessing.Queue()
    workers = [multiprocessing.Process(target=consume, args=(jobs,)) for _ in range(2)]
    for worker in workers:
        worker.start()

    def stop(*_):
        for _ in workers:
            jobs.put(None)
    signal.signal(number, stop)
    ready()
    for worker in workers:
        worker.join()


@program
def queue_of_handler():
    serve_jobs(signal.SIGTERM)


@program
def queue_of_interrupt():
    serve_jobs(signal.SIGINT)


# --- Tasks of asyncio that wait for each other, until something cancels one of them.

async def take_both(first, second):
    async with first:
        await asyncio.sleep(0.1)
        async with second:
            pass


async def cross(*more):
    """Two tasks with their locks crosswise, and what each of `more` makes of them."""
    left, right = asyncio.Lock(), asyncio.Lock()
    tasks = [asyncio.create_task(take_both(left, right)), asyncio.create_task(take_both(right, left))]
    others = [asyncio.create_task(each) for each in (make(tasks) for make in more) if asyncio.iscoroutine(each)]
    await asyncio.sleep(0.3)
    ready()
    await asyncio.gather(*tasks, *others, return_exceptions=True)


def cancel_later(tasks):
    asyncio.get_running_loop().call_later(600, tasks[0].cancel)


def cancel_later_by_function(tasks):
    def give_up():
        for task in tasks:
            task.cancel()
    asyncio.get_running_loop().call_later(600, give_up)


def cancel_all_later(_):
    def give_up():
        for task in asyncio.all_tasks():
            task.cancel()
    asyncio.get_running_loop().call_later(600, give_up)


async def watch(task):
    await asyncio.sleep(600)
    task.cancel()


async def watch_all(tasks):
    await asyncio.sleep(600)
    for task in tasks:
        task.cancel()


RUNNING = []


async def watch_module():
    await asyncio.sleep(600)
    for task in RUNNING:
        task.cancel()


def watch_running(tasks):
    RUNNING.extend(tasks)
    return watch_module()


async def heartbeat():
    while True:
        await asyncio.sleep(3)


def tick(loop):
    loop.call_later(3, tick, loop)


@program
def cancelled_by_timer():
    asyncio.run(cross(cancel_later))


@program
def cancelled_by_function():
    asyncio.run(cross(cancel_later_by_function))


@program
def cancelled_by_name():
    asyncio.run(cross(cancel_all_later))


@program
def cancelled_by_task():
    asyncio.run(cross(lambda tasks: watch(tasks[0])))


@program
def cancelled_by_task_of_list():
    asyncio.run(cross(watch_all))


@program
def cancelled_by_task_of_module():
    asyncio.run(cross(watch_running))


@program
def crossed_beside_heartbeat():
    """A hang: neither the task nor the timer beside the two has anything of them."""
    asyncio.run(cross(lambda _: heartbeat(), lambda _: tick(asyncio.get_running_loop())))


@program
def lock_until_told():
    """The main thread has the port for as long as it runs, and another one waits for its turn."""
    stop, port_lock = threading.Event(), threading.Lock()

    def stand_by():
        with port_lock:
            print("mine", flush=True)
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    with port_lock:
        threading.Thread(target=stand_by).start()
        ready()
        stop.wait()


def count_words(number, counts):
    for word in range(2000):
        counts.put((number, word, "x" * 200))


@program
def joined_before_read():
    """A hang: two producers, whose queue is read when they have ended."""
    counts = multiprocessing.Queue()
    producers = [multiprocessing.Process(target=count_words, args=(number, counts)) for number in range(2)]
    for producer in producers:
        producer.start()
    ready()
    for producer in producers:
        producer.join()
    print(counts.get())


if __name__ == "__main__":
    PROGRAMS[sys.argv[1]]()
