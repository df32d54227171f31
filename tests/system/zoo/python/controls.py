"""Programs of Python that look hung and are not, each by its name: python3 controls.py event-signal."""
import asyncio
import concurrent.futures
import http.server
import multiprocessing
import os
import queue
import re
import sched
import select
import signal
import socket
import socketserver
import subprocess
import sys
import threading
import time

CONTROLS = {}


def control(function):
    CONTROLS[function.__name__.replace("_", "-")] = function
    return function


def ready():
    print("ready", flush=True)


def start(function, *words):
    thread = threading.Thread(target=function, args=words)
    thread.start()
    return thread


# --- Signals, input, the network.

@control
def event_signal():
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    ready()
    stop.wait()


@control
def queue_signal():
    came = queue.SimpleQueue()
    signal.signal(signal.SIGUSR1, lambda *_: came.put(1))
    ready()
    came.get()


@control
def pause():
    ready()
    signal.pause()


@control
def reads_input():
    ready()
    sys.stdin.readline()


@control
def input_beside_pool():
    pool = concurrent.futures.ThreadPoolExecutor(3)
    for future in [pool.submit(time.sleep, 0.01) for _ in range(3)]:
        future.result()
    ready()
    sys.stdin.readline()


@control
def queue_fed_by_input():
    lines = queue.Queue()
    start(lambda: [lines.put(line) for line in sys.stdin])
    ready()
    lines.get()


@control
def http_server():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)
    ready()
    server.serve_forever()


@control
def tcp_server():
    server = socketserver.TCPServer(("127.0.0.1", 0), socketserver.BaseRequestHandler)
    ready()
    server.handle_request()


@control
def queue_fed_by_server():
    connections = queue.Queue()
    server = socket.create_server(("127.0.0.1", 0))
    start(lambda: connections.put(server.accept()))
    ready()
    connections.get()


@control
def lock_held_by_server():
    lock, server = threading.Lock(), socket.create_server(("127.0.0.1", 0))

    def serve():
        with lock:
            server.accept()
    start(serve)
    time.sleep(0.1)
    start(lock.acquire)
    ready()


@control
def locks_held_by_server():
    """Two that wait for locks of a third, who serves."""
    first, second, server = threading.Lock(), threading.RLock(), socket.create_server(("127.0.0.1", 0))
    both = threading.Barrier(3)

    def serve():
        with first, second:
            both.wait()
            server.accept()

    def work(lock):
        both.wait()
        with lock:
            print("later")
    for lock in first, second:
        start(work, lock)
    start(serve)
    time.sleep(0.2)
    ready()


@control
def select_on_socket():
    server = socket.create_server(("127.0.0.1", 0))
    ready()
    select.select([server], [], [])


# --- Time.

@control
def sleeps():
    ready()
    while True:
        time.sleep(0.1)


@control
def scheduler():
    plan = sched.scheduler()
    for i in range(1, 100):
        plan.enter(i * 0.3, 1, time.time)
    ready()
    plan.run()


@control
def timer():
    done = threading.Event()
    threading.Timer(600, done.set).start()
    ready()
    done.wait()


@control
def queue_with_timeout():
    ready()
    while True:
        try:
            queue.Queue().get(timeout=0.05)
        except queue.Empty:
            pass


@control
def condition_with_timeout():
    ready()
    condition = threading.Condition()
    while True:
        with condition:
            condition.wait(0.05)


@control
def queue_with_producer():
    jobs = queue.Queue()

    def produce():
        while True:
            time.sleep(600)
            jobs.put(1)
    start(produce)
    ready()
    jobs.get()


@control
def queue_with_slow_producer():
    jobs = queue.Queue()

    def produce():
        while True:
            time.sleep(0.2)
            jobs.put(1)
    start(produce)
    ready()
    while True:
        jobs.get()


@control
def queue_full_with_slow_consumer():
    jobs = queue.Queue(1)

    def consume():
        while True:
            time.sleep(0.2)
            jobs.get()
    start(consume)
    ready()
    while True:
        jobs.put(1)


@control
def lock_held_by_sleeper():
    lock = threading.Lock()

    def work():
        with lock:
            time.sleep(600)
    start(work)
    time.sleep(0.1)
    start(work)
    ready()


@control
def locks_in_order():
    first, second = threading.Lock(), threading.Lock()

    def work():
        while True:
            with first:
                with second:
                    time.sleep(0.05)
    for _ in range(3):
        start(work)
    ready()


@control
def rlocks_contended():
    first, second = threading.RLock(), threading.RLock()

    def work():
        while True:
            with first, second:
                time.sleep(0.02)
    for _ in range(3):
        start(work)
    ready()


@control
def lock_given_on():
    """A lock that one thread takes and another one gives back."""
    lock = threading.Lock()
    lock.acquire()

    def release():
        while True:
            time.sleep(0.3)
            if lock.locked():
                lock.release()
    start(release)
    ready()
    while True:
        lock.acquire()


@control
def barrier_of_a_slow_one():
    barrier = threading.Barrier(2)

    def work():
        time.sleep(600)
        barrier.wait()
    start(work)
    ready()
    barrier.wait()


@control
def future_of_a_sleeper():
    pool = concurrent.futures.ThreadPoolExecutor(2)
    ready()
    pool.submit(time.sleep, 600).result()


@control
def join_of_a_sleeper():
    thread = start(time.sleep, 600)
    ready()
    thread.join()


# --- Computing.

@control
def computes():
    ready()
    total = 0
    while True:
        total = (total * 31 + 7) % 1000003


@control
def computes_three():
    def compute():
        total = 0
        while True:
            total = (total * 31 + 7) % 1000003
    for _ in range(3):
        start(compute)
    ready()


@control
def regex():
    ready()
    re.match("(a+)+b", "a" * 40)


@control
def lock_held_by_computer():
    lock = threading.Lock()

    def compute():
        with lock:
            total = 0
            while True:
                total = (total * 31 + 7) % 1000003
    start(compute)
    time.sleep(0.1)
    start(lock.acquire)
    ready()


@control
def queue_with_computing_producer():
    jobs = queue.Queue()

    def produce():
        total = 0
        while True:
            total = (total * 31 + 7) % 1000003
            if total == -1:
                jobs.put(total)
    start(produce)
    ready()
    jobs.get()


@control
def flag_that_is_set():
    state = {"running": True}

    def set_later():
        time.sleep(600)
        state["running"] = False
    start(set_later)
    ready()
    while state["running"]:
        pass


# --- Processes.

@control
def process_pool_idle():
    with multiprocessing.Pool(2) as pool:
        pool.map(abs, range(4))
        ready()
        time.sleep(600)


@control
def process_pool_idle_input():
    with multiprocessing.Pool(2) as pool:
        pool.map(abs, range(4))
        ready()
        sys.stdin.readline()


@control
def process_pool_works():
    with multiprocessing.Pool(2) as pool:
        ready()
        pool.map(time.sleep, [600])


@control
def process_executor_works():
    with concurrent.futures.ProcessPoolExecutor(2) as pool:
        future = pool.submit(time.sleep, 600)
        time.sleep(0.2)
        ready()
        future.result()


def produce_late(answers):
    time.sleep(600)
    answers.put(1)


@control
def process_queue():
    answers = multiprocessing.Queue()
    multiprocessing.Process(target=produce_late, args=(answers,)).start()
    ready()
    answers.get()


@control
def child_sleeps():
    ready()
    subprocess.run(["sleep", "600"], check=False)


@control
def reads_child_that_sleeps():
    ready()
    subprocess.run(["sleep", "600"], stdout=subprocess.PIPE, check=False)


@control
def fork_and_wait():
    if os.fork() == 0:
        time.sleep(600)
    ready()
    os.wait()


# --- asyncio.

@control
def asyncio_server():
    async def main():
        server = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0)
        ready()
        await server.serve_forever()
    asyncio.run(main())


@control
def asyncio_sleep():
    async def main():
        ready()
        await asyncio.sleep(600)
    asyncio.run(main())


@control
def asyncio_signal():
    async def main():
        stop = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
        ready()
        await stop.wait()
    asyncio.run(main())


@control
def asyncio_queue_with_producer():
    async def produce(items):
        while True:
            await asyncio.sleep(0.2)
            await items.put(1)

    async def consume(items):
        while True:
            await items.get()

    async def main():
        items = asyncio.Queue()
        ready()
        await asyncio.gather(produce(items), consume(items))
    asyncio.run(main())


@control
def asyncio_queue_of_a_server():
    async def main():
        items = asyncio.Queue()
        server = await asyncio.start_server(lambda reader, writer: items.put_nowait(writer), "127.0.0.1", 0)
        async with server:
            ready()
            await items.get()
    asyncio.run(main())


@control
def asyncio_lock_held_by_a_sleeper():
    async def work(lock):
        async with lock:
            await asyncio.sleep(600)

    async def main():
        lock = asyncio.Lock()
        ready()
        await asyncio.gather(work(lock), work(lock))
    asyncio.run(main())


@control
def asyncio_locks_of_a_client():
    """Two wait for locks that a third holds who waits for a client."""
    async def hold(first, second, listener):
        async with first, second:
            await asyncio.get_running_loop().sock_accept(listener)

    async def work(lock):
        async with lock:
            print("later")

    async def main():
        listener = socket.create_server(("127.0.0.1", 0))
        listener.setblocking(False)
        first, second = asyncio.Lock(), asyncio.Lock()
        holder = asyncio.create_task(hold(first, second, listener))
        await asyncio.sleep(0.1)
        ready()
        await asyncio.gather(holder, work(first), work(second))
    asyncio.run(main())


@control
def asyncio_thread_sleeps():
    async def main():
        ready()
        await asyncio.to_thread(time.sleep, 600)
    asyncio.run(main())


@control
def asyncio_future_of_a_thread():
    async def main():
        loop = asyncio.get_running_loop()
        future = loop.create_future()

        def answer():
            time.sleep(600)
            loop.call_soon_threadsafe(future.set_result, 1)
        start(answer)
        ready()
        await future
    asyncio.run(main())


@control
def asyncio_child():
    async def main():
        child = await asyncio.create_subprocess_exec("sleep", "600")
        ready()
        await child.wait()
    asyncio.run(main())


@control
def asyncio_tasks_in_a_row():
    async def main():
        last = asyncio.create_task(asyncio.sleep(600))
        for _ in range(3):
            last = asyncio.create_task(follow(last))
        ready()
        await last
    asyncio.run(main())


async def follow(task):
    return await task


@control
def asyncio_in_a_thread():
    loop = asyncio.new_event_loop()
    start(loop.run_forever)
    ready()
    asyncio.run_coroutine_threadsafe(asyncio.sleep(600), loop).result()


@control
def asyncio_cancelled_later():
    """Two tasks wait for each other until a timeout cancels them."""
    async def wait_for(tasks, which):
        await asyncio.sleep(0.1)
        await tasks[which]

    async def main():
        tasks = []
        tasks += [asyncio.create_task(wait_for(tasks, 1)), asyncio.create_task(asyncio.wait_for(wait_for(tasks, 0), 600))]
        await asyncio.sleep(0.3)
        ready()
        await asyncio.wait(tasks)
    asyncio.run(main())


if __name__ == "__main__":
    CONTROLS[sys.argv[1]]()
