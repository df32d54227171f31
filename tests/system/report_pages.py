"""Data for the report's page (docs/report-data.md), one function for each kind of hang."""
import array
import base64
import random

STATES = ["running", "waiting", "ready", "halted", "stale", "gap", "function", "system call", "interrupt", "other"]


class Strings:
    """The table that columns refer to."""

    def __init__(self):
        self.list, self.known = [], {}

    def __call__(self, text):
        if text not in self.known:
            self.known[text] = len(self.list)
            self.list.append(text)
        return self.known[text]


def packed(kind, values):
    return base64.b64encode(array.array(kind, values).tobytes()).decode()


def spans(strings, rows):
    """Of (from, to, state, depth, text)."""
    rows = sorted(rows, key=lambda row: (row[0], row[3]))
    return {
        "n": len(rows),
        "from": packed("d", [row[0] for row in rows]),
        "to": packed("d", [row[1] for row in rows]),
        "state": packed("B", [STATES.index(row[2]) for row in rows]),
        "depth": packed("B", [row[3] for row in rows]),
        "text": packed("I", [strings(row[4]) for row in rows]),
    }


def events(strings, rows, omitted=0):
    """Of (time, kind, text)."""
    rows = sorted(rows, key=lambda row: row[0])
    return {
        "n": len(rows),
        "time": packed("d", [row[0] for row in rows]),
        "kind": packed("I", [row[1] for row in rows]),
        "text": packed("I", [strings(row[2]) for row in rows]),
        "omitted": omitted,
    }


def report(headline, tracks, strings, **more):
    return {
        "version": 1,
        "title": "fw.elf",
        "headline": headline,
        "state": "deadlock",
        "confidence": "certain",
        "hang": True,
        "evidence": ["each of these waits is the same in two looks"],
        "doubts": [],
        "lost": [],
        "clock": "ns",
        "window": {"from": -2e6, "to": 0, "policy": "newest"},
        "run": [
            ["command", "qemu-system-riscv32 -machine virt -kernel fw.elf"],
            ["version", "hangscope 0.1.0"],
            ["build id", "5f3a99c1"],
            ["exit status", "124"],
        ],
        "strings": strings.list,
        "tracks": tracks,
        **more,
    }


def long_queue():
    """Two tasks that wait for each other, and eight that wait one behind the other for one of them."""
    names = [f"task {i}" for i in range(10)]
    nodes = [{"id": i, "name": name, "state": "waiting", "waits_for": f"lock {i}", "place": ""} for i, name in enumerate(names)]
    edges = [{"from": i, "to": max(i - 1, 0) if i else 1, "label": f"lock {i}", "kind": "waits"} for i in range(10)]
    return report(
        "deadlock, 2 of 10 tasks wait for each other",
        [],
        Strings(),
        graph={"nodes": nodes, "edges": edges, "cycle": [0, 1]},
    )


PLACES = {"CRBW": "reserve back, cb.c:8", "NSW": "semaphore wait, noc.c:11", "CWFW": "wait front, cb.c:20"}


def device_deadlock():
    """Three cores of a device wait for each other, a fourth waits for one of them."""
    strings, chance = Strings(), random.Random(1)
    names = ["core 0 reader", "core 1 compute", "core 2 writer", "core 3 dispatch"]
    kinds = [
        {"name": name, "category": "cb"}
        for name in ("cb_reserve_back", "cb_push_back", "cb_wait_front", "noc_read", "noc_write")
    ]
    tracks = []
    for i, name in enumerate(names):
        stop = -700e3 + i * 60e3
        time, rows, recorded = -2e6 + i * 9e3, [], []
        while time < stop:
            run, wait = chance.randint(8000, 30000), chance.randint(2000, 9000)
            rows.append((time, time + run, "running", 0, ""))
            rows.append((time + run / 4, time + run / 2, "function", 1, "noc_read"))
            rows.append((time + run, time + run + wait, "waiting", 0, f"cb{i}"))
            recorded.append((time, i % 5, f"cb={i} pages=1"))
            recorded.append((time + run, 2, f"cb={i} pages={chance.randint(1, 4)}"))
            time += run + wait
        rows.append((time, 0, "waiting", 0, f"cb{(i + 1) % 3}"))
        tracks.append(
            {
                "id": i,
                "kind": "core",
                "name": name,
                "state": "waiting",
                "what": f"waits for cb{(i + 1) % 3}",
                "since": time,
                "place": list(PLACES.values())[i % 3],
                "first": i == 0,
                "covered": [[-2e6, 0]],
                "idle": [],
                "gaps": [{"from": -1.5e6, "to": -1.3e6, "why": "overwritten", "amount": "212 records"}]
                if i == 1
                else [],
                "stale": [[-2e6, -1.8e6]] if i == 3 else [],
                "spans": spans(strings, [row for row in rows]),
                "events": events(strings, recorded, 120 * i),
            }
        )
    tracks.append(
        {
            "id": 4,
            "kind": "task",
            "name": "task logger",
            "parent": 3,
            "state": "idle",
            "idle": [[-2e6, -1e6]],
            "covered": [[-2e6, 0]],
        }
    )
    nodes = [
        {
            "id": f"c{i}",
            "name": name,
            "state": "waiting",
            "place": list(PLACES.values())[i % 3],
            "since": tracks[i]["since"],
            "waits_for": f"cb{(i + 1) % 3}",
            "first": i == 0,
        }
        for i, name in enumerate(names)
    ]
    edges = [{"from": f"c{i}", "to": f"c{(i + 1) % 3}", "label": f"cb{(i + 1) % 3}", "kind": "waits"} for i in range(3)]
    edges += [
        {"from": "c3", "to": "c0", "label": "a free slot", "kind": "waits"},
        {"from": "c3", "to": "t4", "label": "", "kind": "wakes"},
    ]
    nodes.append({"id": "t4", "name": "task logger", "state": "idle", "waits_for": "", "place": ""})
    return report(
        "deadlock, 3 of 4 cores wait for each other",
        tracks,
        strings,
        kinds=kinds,
        graph={"nodes": nodes, "edges": edges, "cycle": ["c0", "c1", "c2"]},
        trigger={"time": -1e5, "text": "hang: 3 cores wait"},
        lost=["core 1: 212 records were overwritten before they were read"],
        doubts=["core 3: nobody says who provides the free slot"],
        findings=[
            {
                "kind": "deadlock",
                "confidence": "certain",
                "summary": "deadlock, 3 of 4 cores wait for each other",
                "lines": ["core 0 waits 0.7 s at CRBW for cb1 (core 1)", "core 1 waits for cb2 (core 2)"],
                "evidence": ["two looks"],
                "doubts": [],
            }
        ],
        kernels=[{"who": "core 0 reader", "name": "reader_bmm_tile.cpp", "launch": "12"}],
        words=[
            {"of": "all", "name": "lost packets", "value": 0, "text": "0"},
            {"of": "node (0,0)", "memory": "tile 1", "name": "cb0 pushed", "value": 4711, "text": "0x1267"},
        ],
        words_of="findings",
        numbers=[
            {"title": "Run time of tasks", "note": "Interrupts that came meanwhile are included.",
             "columns": ["Task", "Ran"], "rows": [["task 4", "30 ns"], ["task 5", "1.500 ms"]]},
            {"title": "Interrupts", "memory": "tile 1", "columns": ["Interrupt", "Longest"], "rows": []},
        ],
        stacks=[
            {"who": "core 0 reader", "bytes": 4096, "lowest": 200, "free": 2048},
            {"who": "core 1 compute", "bytes": 4096, "lowest": 3000, "free": 3100},
        ],
        bus=[{"who": "core 2 writer", "text": "write of 64 bytes to (9,9) 0x1f000: no such node", "time": -9.1e5}],
        debug=[
            {"who": "core 0 reader", "values": [{"order": i, "core": 0, "value": f"0x{i * 17:08x}"} for i in range(40)]}
        ],
    )


def stream_loop():
    """Three harts of a simulator spin; their trace is the only sign of life."""
    strings, lines, tracks, loops = Strings(), [], [], []
    for i, (name, place) in enumerate(
        (("cb_reserve_back", "cb.c:8"), ("noc_semaphore_wait", "noc.c:11"), ("cb_wait_front", "cb.c:20"))
    ):
        rows = [
            (-9e9 + 1e8 * i, -6.8e9 + i * 1e8, "function", 0, "kernel_main"),
            (-6.8e9 + i * 1e8, 0, "function", 0, name),
        ]
        tracks.append(
            {
                "id": i,
                "kind": "core",
                "name": f"hart {i}",
                "state": "silent" if i == 2 else "running",
                "what": f"spins in {name}",
                "since": -6.8e9 + i * 1e8,
                "place": f"{name}, {place}",
                "first": i == 0,
                "covered": [[-9e9, 0]],
                "spans": spans(strings, rows),
            }
        )
        loops.append(
            {
                "track": i,
                "name": f"hart {i}",
                "rounds": 1087862 - i * 1000,
                "at_least": i == 1,
                "basis": "body",
                "interrupts": i,
                "for_s": 6.8 - i / 10,
                **({"since_cycle": 284564} if i == 0 else {}),
                "places": [
                    {"function": f, "source": place, "pc": f"0x8000{808 + 16 * k:04x}"}
                    for k, f in enumerate([name, "load_word", "compare", "branch_back"][: i + 1])
                ],
            }
        )
    for k in range(100000):
        lines.append(
            {"time": -6e9 + k * 6e4, "core": k % 3, "text": f"Trace {k % 3}: [{328 + 16 * (k % 3)}] round {k}"}
        )
    return report(
        "looping, 3 of 3 cores spin",
        tracks,
        strings,
        state="looping",
        confidence="likely",
        loops=loops,
        window={"from": -9e9, "to": 0, "policy": "newest"},
        evidence=["read back: stderr has been nothing but these loops since"],
        doubts=["hart 0, hart 1, hart 2: the address that is polled is not known"],
        streams=[
            {
                "name": "stderr",
                "bytes": 331350016,
                "lines": lines,
                "lost": [{"before": 40000, "text": "26 823 bytes were lost: No space left on device"}],
            },
            {"name": "stdout", "bytes": 0, "lines": []},
        ],
    )


def tasks():
    """Two tasks of a kernel hold what the other wants; an interrupt handler halts with a fault."""
    strings, kinds = Strings(), [{"name": name, "category": "kernel"} for name in ("switch", "lock", "unlock")]
    core = [(-5e6 + k * 1e5, -5e6 + (k + 1) * 1e5, "running", 0, ("producer", "consumer")[k % 2]) for k in range(30)]
    core += [(row[0] + 2e4, row[0] + 4e4, "interrupt", 1, "timer_isr") for row in core[::5]]
    tracks = [
        {
            "id": 0,
            "kind": "core",
            "name": "CPU 0",
            "state": "halted",
            "what": "assert",
            "since": -2e6,
            "place": "queue_put, queue.c:42",
            "covered": [[-5e6, 0]],
            "spans": spans(strings, core + [(-2e6, 0, "halted", 0, "assert: queue full")]),
            "events": events(strings, [(row[0], 0, row[4]) for row in core]),
        }
    ]
    for i, name in enumerate(("producer", "consumer")):
        rows = [(row[0], row[1], "running", 0, "") for row in core if row[4] == name] + [
            (-2e6 + i * 1e4, 0, "waiting", 0, f"mutex {'BA'[i]}")
        ]
        tracks.append(
            {
                "id": i + 1,
                "kind": "task",
                "name": name,
                "parent": 0,
                "state": "waiting",
                "what": f"waits for mutex {'BA'[i]}",
                "since": -2e6 + i * 1e4,
                "place": f"{name}, tasks.c:{30 + i}",
                "first": i == 0,
                "spans": spans(strings, rows),
                "events": events(strings, [(row[0], 1, "mutex A") for row in rows]),
            }
        )
    nodes = [
        {
            "id": i,
            "name": name,
            "state": "waiting",
            "place": f"{name}, tasks.c:{30 + i}",
            "since": -2e6,
            "waits_for": f"mutex {'BA'[i]}",
            "first": i == 0,
        }
        for i, name in enumerate(("producer", "consumer"))
    ]
    return report(
        "deadlock, 2 tasks hold what the other wants",
        tracks,
        strings,
        kinds=kinds,
        window={"from": -5e6, "to": 0, "policy": "newest"},
        graph={
            "nodes": nodes,
            "edges": [
                {"from": 0, "to": 1, "label": "mutex B", "kind": "waits"},
                {"from": 1, "to": 0, "label": "mutex A", "kind": "waits"},
            ],
            "cycle": [0, 1],
        },
        faults=[
            {
                "who": "CPU 0",
                "text": "assertion 'used < size' failed",
                "place": "queue_put, queue.c:42",
                "time": -2e6,
                "source": {
                    "file": "src/queue.c",
                    "line": 42,
                    "first": 38,
                    "lines": [
                        "void queue_put(struct queue* q, int value) {",
                        "\tint next = q->end + 1;",
                        "\tif (next == q->size) next = 0;",
                        "\t// Full when the next place is taken.",
                        "\tassert(q->used < q->size);",
                        "\tq->items[q->end] = value;",
                        "}",
                    ],
                },
            }
        ],
    )


def threads():
    """A process whose threads wait for each other's locks; only stacks are known."""
    frames = [
        {"function": "__lll_lock_wait", "module": "libc.so.6", "pc": "0x7f0000012345"},
        {"function": "lock_table", "source": "pipeline.c:15", "module": "pipeline", "pc": "0x401234"},
        {"pc": "0x401999", "module": "pipeline"},
    ]
    list_of = [
        {
            "id": str(4711 + i),
            "name": name,
            "state": "sleeping",
            "wait": f"a mutex that thread {other} holds",
            "since": -3.2e9,
            "frames": frames,
        }
        for i, (name, other) in enumerate((("reader", "writer"), ("writer", "reader")))
    ]
    list_of += [
        {"id": str(4800 + i), "name": f"pool {i}", "state": "sleeping", "wait": "work", "frames": []} for i in range(70)
    ]
    nodes = [
        {
            "id": each["id"],
            "name": each["name"],
            "state": "waiting",
            "waits_for": each["wait"],
            "since": -3.2e9,
            "place": "lock_table, pipeline.c:15",
        }
        for each in list_of[:2]
    ]
    return report(
        "deadlock, 2 of 72 threads wait for each other's locks",
        [],
        Strings(),
        threads=list_of,
        graph={
            "nodes": nodes,
            "edges": [
                {"from": "4711", "to": "4712", "label": "table", "kind": "waits"},
                {"from": "4712", "to": "4711", "label": "queue", "kind": "waits"},
            ],
            "cycle": ["4711", "4712"],
        },
    )


def scope_and_threads():
    """The same with a scope: each node has the name that it gave itself and the one that the system gave it."""
    data = threads()
    nodes = [
        {**node, "name": f"core {i} {each['name']}", "also": f"thread {each['id']} {each['name']}", "waits_for": "table; mutex lock"}
        for i, (node, each) in enumerate(zip(data["graph"]["nodes"], data["threads"]))
    ]
    tracks = [{"id": i, "kind": "core", "name": node["name"], "state": "waiting"} for i, node in enumerate(nodes)]
    return {**data, "tracks": tracks, "graph": {**data["graph"], "nodes": nodes}}


def cpu_starvation():
    """One thread keeps a CPU, another is ready and never comes to run. And what a healthy run did."""
    strings = Strings()
    kinds = [{"name": "sched:sched_switch", "category": "sched"}, {"name": "sched:sched_wakeup", "category": "sched"}]
    cpu = [(-4e9 + k * 1e7, -4e9 + (k + 1) * 1e7, "running", 0, ("worker", "logger")[k % 2]) for k in range(100)] + [
        (-3e9, 0, "running", 0, "spinner")
    ]
    cpu += [(-3.5e9 + k * 3e7, -3.5e9 + k * 3e7 + 4e6, "system call", 1, "write") for k in range(10)]
    tracks = [
        {
            "id": 0,
            "kind": "cpu",
            "name": "CPU 1",
            "state": "running",
            "what": "spinner, for 3.00 s",
            "since": -3e9,
            "covered": [[-4e9, 0]],
            "idle": [],
            "spans": spans(strings, cpu),
            "events": events(strings, [(row[0], 0, f"prev=worker next={row[4]}") for row in cpu]),
        },
        {
            "id": 1,
            "kind": "thread",
            "name": "logger",
            "parent": 0,
            "state": "ready",
            "what": "starved",
            "since": -3e9,
            "spans": spans(strings, [(-3e9, 0, "ready", 0, "")]),
        },
        {
            "id": 2,
            "kind": "thread",
            "name": "spinner",
            "parent": 0,
            "state": "running",
            "spans": spans(strings, [(-3e9, 0, "running", 0, "")]),
        },
    ]
    steps = [{"time": -3.2e9 + k * 1e7, "text": f"switch to worker {k}", "place": "schedule"} for k in range(5)]
    return report(
        "starved: logger has been ready for 3.00 s, spinner does not give CPU 1 up",
        tracks,
        strings,
        state="starved",
        confidence="likely",
        kinds=kinds,
        window={"from": -4e9, "to": 0, "policy": "newest"},
        divergence={
            "healthy": "trace/healthy.snapshot-0001",
            "cores": [
                {
                    "name": "CPU 1",
                    "verdict": "likely: the same 412 events, then another",
                    "matched": 412,
                    "common": steps,
                    "healthy": [{"text": "switch to logger", "place": "schedule"}, {"text": "write(1)"}],
                    "hung": [{"text": "switch to spinner", "place": "schedule"}],
                    "note": "found once in the healthy run",
                },
                {
                    "name": "CPU 2",
                    "verdict": "no common place",
                    "matched": 0,
                    "common": [],
                    "healthy": [{"text": "idle"}],
                    "hung": [],
                },
            ],
        },
    )


ALL = (device_deadlock, stream_loop, tasks, threads, scope_and_threads, cpu_starvation)
