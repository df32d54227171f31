"""Programs of asyncio with tasks that wait for each other beside others that do something all the time, each by its name: python3 heartbeats.py
locks."""
import asyncio
import random
import sys

PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__.replace("_", "-")] = function
    return function


async def heartbeat(seconds):
    while True:
        await asyncio.sleep(seconds)


async def beside_heartbeats(*tasks):
    beats = [asyncio.create_task(heartbeat(seconds)) for seconds in (0.02, 0.05)]
    await asyncio.sleep(0.3)
    print("ready", flush=True)
    await asyncio.gather(*tasks, *beats)


async def take_both(first, second):
    async with first:
        await asyncio.sleep(0.1)
        async with second:
            pass


@program
def locks():
    async def main():
        left, right = asyncio.Lock(), asyncio.Lock()
        await beside_heartbeats(asyncio.create_task(take_both(left, right)), asyncio.create_task(take_both(right, left)))
    asyncio.run(main())


@program
def tasks():
    async def await_other(others, name):
        await asyncio.sleep(0.1)
        await others[name]

    async def main():
        others = {}
        others["left"] = asyncio.create_task(await_other(others, "right"))
        others["right"] = asyncio.create_task(await_other(others, "left"))
        await beside_heartbeats(*others.values())
    asyncio.run(main())


@program
def locks_in_one_order():
    """Both want the same two locks all the time, and each waits for the other for a moment."""
    async def take_in_order(first, second):
        while True:
            async with first:
                await asyncio.sleep(random.uniform(0, 0.05))
                async with second:
                    await asyncio.sleep(random.uniform(0, 0.05))

    async def main():
        left, right = asyncio.Lock(), asyncio.Lock()
        await beside_heartbeats(*(asyncio.create_task(take_in_order(left, right)) for _ in range(4)))
    asyncio.run(main())


@program
def tasks_in_turns():
    """Each waits for the next, and is waited for by the one before; the last naps."""
    async def await_next(rest):
        if rest == 0:
            await asyncio.sleep(random.uniform(0.1, 2))
        else:
            await asyncio.create_task(await_next(rest - 1))

    async def again():
        while True:
            await await_next(3)

    async def main():
        await beside_heartbeats(asyncio.create_task(again()), asyncio.create_task(again()))
    asyncio.run(main())


if __name__ == "__main__":
    PROGRAMS[sys.argv[1]]()
