"""Programs of Python that give back inside of a block what it began with, each by its name: python3 unlocking.py released."""
import asyncio
import sys
import threading
import time

lock = threading.Lock()


class Unlocked:
    def __init__(self, inner):
        self.inner = inner

    def __enter__(self):
        self.inner.release()

    def __exit__(self, *_):
        self.inner.acquire()


def release_and_take():
    with lock:
        lock.release()
        try:
            time.sleep(0.3)
        finally:
            lock.acquire()


def unlock_and_lock():
    with lock:
        with Unlocked(lock):
            time.sleep(0.3)


def take_by_hand():
    lock.acquire()
    print("ready", flush=True)
    time.sleep(600)
    lock.release()


def beside(function):
    threading.Thread(target=function).start()
    time.sleep(0.1)
    take_by_hand()


async def wait_for(tasks, which):
    await asyncio.sleep(0.1)
    await tasks[which]


async def group_with_a_timeout():
    """Two tasks that wait for each other until the time of their group is up."""
    tasks = []
    async with asyncio.timeout(600):
        async with asyncio.TaskGroup() as group:
            tasks += [group.create_task(wait_for(tasks, 1)), group.create_task(wait_for(tasks, 0))]
            await asyncio.sleep(0.3)
            print("ready", flush=True)


async def gather_with_a_timeout():
    tasks = []
    tasks += [asyncio.create_task(wait_for(tasks, 1)), asyncio.create_task(wait_for(tasks, 0))]
    await asyncio.sleep(0.3)
    print("ready", flush=True)
    await asyncio.wait_for(asyncio.gather(*tasks), 600)


if __name__ == "__main__":
    {"released": lambda: beside(release_and_take), "unlocked": lambda: beside(unlock_and_lock),
     "group": lambda: asyncio.run(group_with_a_timeout()), "gather": lambda: asyncio.run(gather_with_a_timeout())}[sys.argv[1]]()
