"""Programs of Python that hang, each by its name: python3 hangs.py locks-crossed [beside heartbeat|server]."""
import asyncio
import concurrent.futures
import ctypes
import logging
import multiprocessing
import os
import queue
import select
import signal
import socket
import subprocess
import sys
import threading
import time

HANGS = {}


def hang(function):
    HANGS[function.__name__.replace("_", "-")] = function
    return function


def ready():
    print("ready", flush=True)


def start(function, *words, name=None):
    thread = threading.Thread(target=function, args=words, name=name)
    thread.start()
    return thread


def ready_soon():
    """When those who were started stand."""
    time.sleep(0.3)
    ready()


# --- Locks.

account_a, account_b = threading.Lock(), threading.Lock()
both = threading.Barrier(2)


def transfer(first, second):
    with first:
        both.wait()
        with second:
            print("never")


@hang
def locks_crossed():
    threads = [start(transfer, account_a, account_b), start(transfer, account_b, account_a)]
    ready_soon()
    for thread in threads:
        thread.join()


def take_by_hand(first, second):
    first.acquire()
    try:
        both.wait()
        second.acquire()
        second.release()
    finally:
        first.release()


@hang
def locks_acquired():
    threads = [start(take_by_hand, account_a, account_b), start(take_by_hand, account_b, account_a)]
    ready_soon()
    for thread in threads:
        thread.join()


class Account:
    def __init__(self):
        self.balance_lock = threading.Lock()

    def send(self, other):
        with self.balance_lock:
            both.wait()
            other.receive()

    def receive(self):
        with self.balance_lock:
            print("never")


@hang
def attributes_crossed():
    one, other = Account(), Account()
    start(one.send, other)
    start(other.send, one)
    ready_soon()


class Slotted:
    __slots__ = ("slot_lock",)

    def __init__(self):
        self.slot_lock = threading.Lock()

    def exchange(self, other):
        with self.slot_lock:
            both.wait()
            with other.slot_lock:
                print("never")


@hang
def slots_crossed():
    one, other = Slotted(), Slotted()
    start(one.exchange, other)
    start(other.exchange, one)
    ready_soon()


fork_locks = [threading.Lock() for _ in range(5)]
seated = threading.Barrier(5)


def dine(place):
    with fork_locks[place]:
        seated.wait()
        with fork_locks[(place + 1) % 5]:
            print("never")


@hang
def philosophers():
    for place in range(5):
        start(dine, place)
    ready_soon()


registry, journal = threading.RLock(), threading.RLock()


def register(first, second):
    with first, first:
        both.wait()
        with second:
            print("never")


@hang
def rlocks_crossed():
    threads = [start(register, registry, journal), start(register, journal, registry)]
    ready_soon()
    for thread in threads:
        thread.join()


@hang
def rlock_and_lock():
    start(transfer, registry, account_a)
    start(transfer, account_a, registry)
    ready_soon()


cache_lock = threading.Lock()


def put(key):
    with cache_lock:
        evict(key)


def evict(key):
    with cache_lock:
        print("never", key)


@hang
def lock_twice():
    ready()
    put("key")


@hang
def lock_twice_in_thread():
    start(put, "key")
    ready_soon()


def take_and_end():
    cache_lock.acquire()


def refresh():
    with cache_lock:
        print("never")


@hang
def holder_ended():
    start(take_and_end).join()
    start(refresh)
    ready_soon()


def join_other(threads, which):
    both.wait()
    threads[which].join()


@hang
def joins_crossed():
    threads = []
    threads += [threading.Thread(target=join_other, args=(threads, 1)), threading.Thread(target=join_other, args=(threads, 0))]
    for thread in threads:
        thread.start()
    ready_soon()


def compute_totals():
    with cache_lock:
        print("never")


@hang
def join_with_lock():
    """Joins a thread that wants the lock it holds."""
    with cache_lock:
        worker = start(compute_totals)
        ready_soon()
        worker.join()


def on_alarm(*_):
    with cache_lock:
        print("never")


def update_cache():
    with cache_lock:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        while True:
            time.sleep(10)


@hang
def lock_in_handler():
    signal.signal(signal.SIGALRM, on_alarm)
    ready()
    update_cache()


@hang
def lock_after_fork():
    def hold():
        with cache_lock:
            time.sleep(1000)
    threading.Thread(target=hold, daemon=True).start()
    time.sleep(0.1)
    if os.fork() == 0:
        with open("/proc/self/comm", "w") as comm:
            comm.write("copy")
        ready()
        child_work()
    os.wait()


def child_work():
    with cache_lock:
        print("never")


@hang
def logging_and_pipe():
    """Who reads the log's pipe logs, too."""
    reading, writing = os.pipe()
    log = logging.getLogger("pipe")
    log.addHandler(logging.StreamHandler(os.fdopen(writing, "w")))
    log.setLevel(logging.INFO)

    def log_much():
        for _ in range(10000):
            log.info("x" * 100)

    def read_log():
        time.sleep(0.2)
        while True:
            log.info("reads %d", len(os.read(reading, 100)))
    start(log_much)
    start(read_log)
    time.sleep(0.3)
    ready_soon()


@hang
def import_lock():
    """A module waits for a thread that imports it."""
    with open("plugin.py", "w") as file:
        file.write("import threading\n\ndef load():\n    import plugin\n    print(plugin)\n\n"
                   "thread = threading.Thread(target=load)\nthread.start()\nprint('ready', flush=True)\nthread.join()\n")
    sys.path.insert(0, os.getcwd())
    import plugin
    print(plugin)


@hang
def gil_and_mutex():
    """One holds a mutex of C and wants the interpreter; the other one has that and wants the mutex."""
    mutex = ctypes.create_string_buffer(64)
    lock_alone = ctypes.CDLL(None).pthread_mutex_lock
    lock_with_gil = ctypes.PyDLL(None).pthread_mutex_lock

    def use_device():
        lock_alone(mutex)
        time.sleep(0.5)
        print("never")

    def poll_device():
        time.sleep(0.2)
        ready()
        lock_with_gil(mutex)
    start(use_device)
    start(poll_device)


# --- What others should give.

jobs = queue.Queue(maxsize=2)


def consume_jobs():
    return jobs.get()


@hang
def queue_get():
    ready()
    consume_jobs()


@hang
def queue_get_in_threads():
    workers = [start(consume_jobs) for _ in range(3)]
    ready_soon()
    for worker in workers:
        worker.join()


def produce_jobs():
    while True:
        jobs.put("job")


@hang
def queue_put():
    ready()
    produce_jobs()


def drain():
    jobs.put("job")
    start(jobs.get)
    jobs.join()


@hang
def queue_join():
    ready()
    drain()


@hang
def simple_queue_get():
    simple = queue.SimpleQueue()
    ready()
    consume_simple(simple)


def consume_simple(simple):
    return simple.get()


@hang
def queues_crossed():
    """Two actors, each of which waits for the other's answer."""
    first, second = queue.Queue(), queue.Queue()

    def ask(inbox, outbox):
        answer = inbox.get()
        outbox.put(answer)
    start(ask, first, second)
    start(ask, second, first)
    ready_soon()


work_came = threading.Condition()


def await_work():
    with work_came:
        work_came.wait()


@hang
def condition_wait():
    with work_came:
        work_came.notify()  # before anybody waits
    start(await_work)
    ready_soon()


stop_event = threading.Event()


def await_stop():
    stop_event.wait()


@hang
def event_wait():
    ready()
    await_stop()


phase_barrier = threading.Barrier(3)


def end_phase():
    phase_barrier.wait()


@hang
def barrier_of_three():
    start(end_phase)
    ready_soon()
    end_phase()


slots = threading.Semaphore(1)


def take_slot():
    slots.acquire()


@hang
def semaphore_twice():
    take_slot()
    ready()
    take_slot()


def outer_task(pool):
    return pool.submit(time.time).result()


@hang
def pool_into_itself():
    pool = concurrent.futures.ThreadPoolExecutor(1)
    future = pool.submit(outer_task, pool)
    ready_soon()
    future.result()


def await_result(future):
    return future.result()


@hang
def future_never():
    ready()
    await_result(concurrent.futures.Future())


@hang
def futures_crossed():
    first, second = concurrent.futures.Future(), concurrent.futures.Future()
    pool = concurrent.futures.ThreadPoolExecutor(2)
    pool.submit(lambda: second.set_result(await_result(first)))
    pool.submit(lambda: first.set_result(await_result(second)))
    ready_soon()


# --- Processes.

def read_answers(answers):
    return answers.get()


@hang
def process_queue():
    """Its producer has ended."""
    answers = multiprocessing.Queue()
    producer = multiprocessing.Process(target=time.time)
    producer.start()
    producer.join()
    ready()
    read_answers(answers)


def answer(pipe):
    pipe.send(pipe.recv())


@hang
def process_pipe():
    ours, its = multiprocessing.Pipe()
    other = multiprocessing.Process(target=answer, args=(its,))
    other.start()
    ready_soon()
    answer(ours)


def lock_twice_shared(lock):
    with lock:
        with lock:
            print("never")


@hang
def process_lock():
    lock = multiprocessing.Lock()
    ready()
    lock_twice_shared(lock)


def end_at_once(_):
    os.kill(os.getpid(), signal.SIGKILL)


def map_all(pool):
    return pool.map(end_at_once, range(1))


@hang
def pool_map_killed():
    with multiprocessing.Pool(2) as pool:
        start(ready_soon)
        map_all(pool)


def wait_for_talker(child):
    return child.wait()


@hang
def output_not_read():
    child = subprocess.Popen([sys.executable, "-c", "print('x' * 1000000)"], stdout=subprocess.PIPE)
    ready_soon()
    wait_for_talker(child)


def feed(child):
    child.stdin.write(b"x\n" * 1000000)
    return child.stdout.read()


@hang
def feeds_and_does_not_read():
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        ready()
        feed(child)


# --- asyncio.

async def ready_later():
    await asyncio.sleep(0.3)
    ready()


async def ask_reply(reply):
    return await reply


@hang
def asyncio_future():
    async def main():
        asyncio.create_task(ready_later())
        await ask_reply(asyncio.get_running_loop().create_future())
    asyncio.run(main())


async def take_both(first, second):
    async with first:
        await asyncio.sleep(0.1)
        async with second:
            print("never")


async def serve_nobody():
    server = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0)
    await server.serve_forever()


@hang
def asyncio_locks_crossed():
    async def main():
        table_lock, index_lock = asyncio.Lock(), asyncio.Lock()
        await asyncio.gather(take_both(table_lock, index_lock), take_both(index_lock, table_lock), ready_later())
    asyncio.run(main())


@hang
def asyncio_locks_crossed_in_server():
    async def main():
        table_lock, index_lock = asyncio.Lock(), asyncio.Lock()
        await asyncio.gather(take_both(table_lock, index_lock), take_both(index_lock, table_lock), ready_later(), serve_nobody())
    asyncio.run(main())


async def await_task(tasks, which):
    await asyncio.sleep(0.1)
    await tasks[which]


@hang
def asyncio_tasks_crossed():
    async def main():
        tasks = []
        tasks += [asyncio.create_task(await_task(tasks, 1)), asyncio.create_task(await_task(tasks, 0))]
        await ready_later()
        await asyncio.wait(tasks)
    asyncio.run(main())


@hang
def asyncio_tasks_crossed_in_server():
    async def main():
        tasks = []
        tasks += [asyncio.create_task(await_task(tasks, 1)), asyncio.create_task(await_task(tasks, 0))]
        await asyncio.gather(ready_later(), serve_nobody())
    asyncio.run(main())


async def lock_table_twice(lock):
    async with lock:
        async with lock:
            print("never")


@hang
def asyncio_lock_twice():
    async def main():
        await asyncio.gather(lock_table_twice(asyncio.Lock()), ready_later(), serve_nobody())
    asyncio.run(main())


async def fetch_item(items):
    return await items.get()


@hang
def asyncio_queue():
    async def main():
        await asyncio.gather(fetch_item(asyncio.Queue()), ready_later())
    asyncio.run(main())


@hang
def asyncio_event():
    async def main():
        stopped = asyncio.Event()
        asyncio.create_task(ready_later())
        await await_event(stopped)
    asyncio.run(main())


async def await_event(event):
    await event.wait()


async def handle_request():
    return consume_jobs()


@hang
def asyncio_blocked():
    async def main():
        await ready_later()
        await handle_request()
    asyncio.run(main())


async def call_in_thread():
    await asyncio.get_running_loop().run_in_executor(None, await_stop)


@hang
def asyncio_executor():
    async def main():
        await asyncio.gather(call_in_thread(), ready_later())
    asyncio.run(main())


# --- Spins.

finished = False


def wait_for_flag():
    while not finished:
        pass


@hang
def spin_flag():
    ready()
    wait_for_flag()


def wait_for_end(state):
    while state["running"]:
        pass


@hang
def spin_dict():
    ready()
    wait_for_end({"running": True})


# --- Beside which others go on.

def heartbeat():
    while True:
        time.sleep(0.02)


def serve():
    with socket.create_server(("127.0.0.1", 0)) as server:
        while True:
            server.accept()


def watch_input():
    select.select([socket.create_server(("127.0.0.1", 0))], [], [])


BESIDE = {"heartbeat": heartbeat, "server": serve, "selector": watch_input}

if __name__ == "__main__":
    for beside in sys.argv[3:]:
        threading.Thread(target=BESIDE[beside], daemon=True).start()
    HANGS[sys.argv[1]]()
