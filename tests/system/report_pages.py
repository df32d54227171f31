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
    return {"n": len(rows), "from": packed("d", [row[0] for row in rows]), "to": packed("d", [row[1] for row in rows]),
            "state": packed("B", [STATES.index(row[2]) for row in rows]), "depth": packed("B", [row[3] for row in rows]),
            "text": packed("I", [strings(row[4]) for row in rows])}


def events(strings, rows, omitted=0):
    """Of (time, kind, text)."""
    rows = sorted(rows, key=lambda row: row[0])
    return {"n": len(rows), "time": packed("d", [row[0] for row in rows]), "kind": packed("I", [row[1] for row in rows]),
            "text": packed("I", [strings(row[2]) for row in rows]), "omitted": omitted}


def report(headline, tracks, strings, **more):
    return {"version": 1, "title": "fw.elf", "headline": headline, "state": "deadlock", "confidence": "certain", "hang": True,
            "evidence": ["each of these waits is the same in two looks"], "doubts": [], "lost": [], "clock": "ns", "window": {"from": -2e6, "to": 0, "policy": "newest"},
            "run": [["command", "qemu-system-riscv32 -machine virt -kernel fw.elf"], ["version", "hangscope 0.1.0"], ["build id", "5f3a99c1"], ["exit status", "124"]],
            "strings": strings.list, "tracks": tracks, **more}


PLACES = {"CRBW": "reserve back, cb.c:8", "NSW": "semaphore wait, noc.c:11", "CWFW": "wait front, cb.c:20"}


def device_deadlock():
    """Three cores of a device wait for each other, a fourth waits for one of them."""
    strings, chance = Strings(), random.Random(1)
    names = ["core 0 reader", "core 1 compute", "core 2 writer", "core 3 dispatch"]
    kinds = [{"name": name, "category": "cb"} for name in ("cb_reserve_back", "cb_push_back", "cb_wait_front", "noc_read", "noc_write")]
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
        tracks.append({"id": i, "kind": "core", "name": name, "state": "waiting", "what": f"waits for cb{(i + 1) % 3}", "since": time, "place": list(PLACES.values())[i % 3],
                       "first": i == 0, "covered": [[-2e6, 0]], "idle": [], "gaps": [{"from": -1.5e6, "to": -1.3e6, "why": "overwritten", "amount": "212 records"}] if i == 1 else [],
                       "stale": [[-2e6, -1.8e6]] if i == 3 else [], "spans": spans(strings, [row for row in rows]), "events": events(strings, recorded, 120 * i)})
    tracks.append({"id": 4, "kind": "task", "name": "task logger", "parent": 3, "state": "idle", "idle": [[-2e6, -1e6]], "covered": [[-2e6, 0]]})
    nodes = [{"id": f"c{i}", "name": name, "state": "waiting", "place": list(PLACES.values())[i % 3], "since": tracks[i]["since"], "waits_for": f"cb{(i + 1) % 3}", "first": i == 0}
             for i, name in enumerate(names)]
    edges = [{"from": f"c{i}", "to": f"c{(i + 1) % 3}", "label": f"cb{(i + 1) % 3}", "kind": "waits"} for i in range(3)]
    edges += [{"from": "c3", "to": "c0", "label": "a free slot", "kind": "waits"}, {"from": "c3", "to": "t4", "label": "", "kind": "wakes"}]
    nodes.append({"id": "t4", "name": "task logger", "state": "idle", "waits_for": "", "place": ""})
    return report("deadlock, 3 of 4 cores wait for each other", tracks, strings, kinds=kinds, graph={"nodes": nodes, "edges": edges, "cycle": ["c0", "c1", "c2"]},
                  trigger={"time": -1e5, "text": "hang: 3 cores wait"}, lost=["core 1: 212 records were overwritten before they were read"],
                  doubts=["core 3: nobody says who provides the free slot"],
                  findings=[{"kind": "deadlock", "confidence": "certain", "summary": "deadlock, 3 of 4 cores wait for each other",
                             "lines": ["core 0 waits 0.7 s at CRBW for cb1 (core 1)", "core 1 waits for cb2 (core 2)"], "evidence": ["two looks"], "doubts": []}],
                  kernels=[{"who": "core 0 reader", "name": "reader_bmm_tile.cpp", "launch": "12"}],
                  stacks=[{"who": "core 0 reader", "bytes": 4096, "lowest": 200, "free": 2048}, {"who": "core 1 compute", "bytes": 4096, "lowest": 3000, "free": 3100}],
                  bus=[{"who": "core 2 writer", "text": "write of 64 bytes to (9,9) 0x1f000: no such node", "time": -9.1e5}],
                  debug=[{"who": "core 0 reader", "values": [{"order": i, "core": 0, "value": f"0x{i * 17:08x}"} for i in range(5)]}])
