"""Data for the report's page that is damaged, hostile, newer, scarce or huge; report_pages.py has what is usual."""
import array

from report_pages import Strings, cpu_starvation, device_deadlock, events, packed, report, spans, tasks, threads


def corrupted_scope():
    """A damaged snapshot of a newer hangscope: what can be shown is shown, the rest named."""
    strings = Strings()
    good = device_deadlock()
    track = good["tracks"][0]
    broken = {
        **good["tracks"][1],
        "spans": {**good["tracks"][1]["spans"], "from": "@@@"},
        "events": {**good["tracks"][1]["events"], "time": good["tracks"][1]["events"]["time"][:-800]},
    }
    unordered = {
        "id": 7,
        "kind": "core",
        "name": "core 7 out of order",
        "state": "corrupt",
        "parent": 7,
        "events": {
            "n": 3,
            "time": packed("d", [-1e5, -3e5, float("nan")]),
            "kind": packed("I", [0, 99, 1]),
            "text": packed("I", [0, 4000000000, 1]),
        },
        "spans": {
            "n": 2,
            "from": packed("d", [float("-inf"), -5e5]),
            "to": packed("d", [-9e5, -6e5]),
            "state": packed("B", [200, 1]),
            "depth": packed("B", [250, 0]),
            "text": packed("I", [9, 9]),
        },
    }
    return {
        **good,
        "version": 7,
        "headline": "corrupt: core 1's mailbox cannot be right",
        "state": "corrupt",
        "confidence": "possible",
        "hang": False,
        "tracks": [track, broken, unordered, "core", None, {"id": 9, "name": 5}],
        "hologram": [1, 2],
        "evidence": "not a list",
        "doubts": ["a", 7, {}],
        "loops": [{"places": "x"}],
        "graph": {"nodes": [{"id": 1}, 3], "edges": [{"from": 1, "to": 77}], "cycle": [1, 99]},
        "kernels": {},
        "words": [7, {"of": ["x"], "name": 3, "text": {}}],
        "numbers": [5, {"title": "Damaged", "columns": 3, "rows": "x"}, {"title": "Torn", "columns": ["a"], "rows": [["b", None], 7]}],
        "faults": [{"who": "core 1", "source": []}],
        "streams": [{"name": "stdout", "lines": [{"text": "whole"}, 5, {"text": None}], "lost": [{"before": "x"}]}],
        "notes": ["3 ends of something whose begin is not in the trace are drawn as events"],
        "troubles": ["scope.bin: core 1's mailbox: 'state' is 0xdeadbeef, which is no state"],
        "strings": strings.list + [1, None, "text"],
    }


def lost_data():
    """Most is gone, and nobody knows the clock's rate."""
    strings = Strings()
    tracks = [
        {
            "id": i,
            "kind": "core",
            "name": f"core {i}",
            "state": "silent",
            "covered": [[-1e4 * (i + 1), 0]],
            "gaps": [{"from": -9e5, "to": -1e4 * (i + 1), "why": "overwritten", "amount": 100000 * i}],
            "stale": [[-1e6, -9e5]],
            "events": events(strings, [(-5e3 + k, 0, f"step {k}") for k in range(20)], 1234567),
        }
        for i in range(5)
    ]
    return report(
        "silent: nothing came of 5 cores",
        tracks,
        strings,
        clock="counts",
        state="silent",
        confidence="possible",
        hang=False,
        kinds=[{"name": "tick", "category": ""}],
        window={
            "from": -1e6,
            "to": 0,
            "policy": "newest",
            "limited_by": "core 0, whose ring is full after 10 000 counts",
        },
        lost=[f"core {i}: 1 234 567 records were overwritten" for i in range(5)]
        + ["stderr: 26 823 bytes could not be written"],
        evidence=[],
    )


def long_names():
    """Names of thousands of characters, and 1024 cores."""
    strings, long = Strings(), "_ZN" + "9namespace" * 100 + "E"
    tracks = [
        {
            "id": i,
            "kind": "core",
            "name": f"/chip/{'cluster/' * 30}pe{i}",
            "state": "waiting",
            "what": long,
            "place": long,
            "since": -1e6 - i,
            "covered": [[-1e6, 0]],
            "spans": spans(strings, [(-1e6, -5e5, "running", 0, long), (-5e5, 0, "waiting", 0, "w" * 2000)]),
            "events": events(strings, [(-9e5 + i, 0, "e" * 1500), (-1e5, 0, "x")]),
        }
        for i in range(1024)
    ]
    nodes = [
        {"id": i, "name": track["name"], "state": "waiting", "waits_for": long, "place": long, "since": -1e6}
        for i, track in enumerate(tracks)
    ]
    edges = [{"from": i, "to": (i + 1) % 9 if i < 9 else i % 9, "label": long, "kind": "waits"} for i in range(1024)]
    return report(
        "deadlock " + long,
        tracks,
        strings,
        title=long,
        kinds=[{"name": long, "category": long}],
        graph={"nodes": nodes, "edges": edges, "cycle": list(range(9))},
        loops=[
            {
                "track": 0,
                "rounds": 5,
                "basis": "places",
                "places": [{"function": long + str(k), "source": "x" * 500 + ".c:1"} for k in range(30)],
            }
        ],
        threads=[{"id": "1", "name": long, "frames": [{"function": long}] * 300}],
        streams=[{"name": long, "bytes": 5, "lines": [{"text": "y" * 100000}]}],
        run=[[long, long]],
    )


def findings_only():
    """A scope that says who stands, and no event since; nothing else."""
    return {
        "version": 1,
        "headline": "deadlock, 2 of 3 threads wait for each other",
        "hang": True,
        "findings": [
            {
                "summary": "deadlock",
                "lines": ["12024 waits 1.1 s for mutex lock_b, held by 12025"],
                "evidence": ["the same in 2 looks"],
            }
        ],
        "last_output": [
            {"stream": "stdout", "lines": ["block 4711 sent", "Go on? \x1b[2J"], "unfinished": True, "age_s": 31.0},
            {"stream": "stderr", "lines": ["a <b>warning</b>"]},
        ],
    }


def standing():
    """One event, and how its core has stood since."""
    strings = Strings()
    tracks = [
        {
            "id": 0,
            "kind": "core",
            "name": "core 1",
            "state": "waiting",
            "what": "waits for table",
            "since": -9e5,
            "covered": [[-5e6, 0]],
            "events": events(strings, [(-9.5e5, 0, "block 0")]),
            "spans": spans(strings, [(-9.5e5, -8e5, "running", 0, "")]),
        }
    ]
    return report(
        "silent",
        tracks,
        strings,
        kinds=[{"name": "copied", "category": ""}],
        window={"from": -1e6, "to": 0, "policy": "newest"},
    )


HOSTILE = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script></script><!--\x1b[31mred\x1b]0;t\x07\u202egnp.exe\u2066\u200b\x00\x9b2J{{7*7}}"


def hostile():
    """Every text is markup, an escape sequence, or turns the direction of reading."""

    def spoil(value):
        if isinstance(value, str):
            return (
                value
                if value
                in (
                    "core",
                    "task",
                    "stderr",
                    "waiting",
                    "running",
                    "silent",
                    "deadlock",
                    "certain",
                    "waits",
                    "wakes",
                    "ns",
                    "newest",
                    "body",
                )
                else HOSTILE + value
            )
        if isinstance(value, list):
            return [spoil(each) for each in value]
        return (
            {
                key: each if key in ("spans", "events", "id", "from", "to", "cycle") else spoil(each)
                for key, each in value.items()
            }
            if isinstance(value, dict)
            else value
        )

    loops = [
        {
            "track": 0,
            "rounds": 7,
            "basis": "body",
            "places": [{"function": "spin", "source": "x.c:1", "pc": "0x80000328"}],
        }
    ]
    streams = [
        {
            "name": "stderr",
            "bytes": 5,
            "lines": [{"time": -k, "core": 1, "text": f"line {k}"} for k in range(50)],
            "lost": [{"before": 3, "text": "x"}],
        }
    ]
    return spoil(
        {
            **device_deadlock(),
            "loops": loops,
            "streams": streams,
            "faults": tasks()["faults"],
            "threads": threads()["threads"][:3],
            "divergence": cpu_starvation()["divergence"],
            HOSTILE: 1,
        }
    )


def million():
    """A million events on 16 cores, and half as many spans."""
    strings, tracks = Strings(), []
    texts = [strings(f"cb={k} pages={k % 7}") for k in range(1000)]
    per = 62500
    steps = array.array("d", (-1e9 + 16e3 * k + k * k % 13000 for k in range(per)))
    ends = packed("d", (time + 9000 for time in steps))
    begins, kinds, states = (
        packed("d", steps),
        packed("I", (k % 5 for k in range(per))),
        packed("B", (k % 3 for k in range(per))),
    )
    depths = packed("B", (k % 2 for k in range(per)))
    for i in range(16):
        text = packed("I", (texts[(k * 7 + i) % 1000] for k in range(per)))
        tracks.append(
            {
                "id": i,
                "kind": "core",
                "name": f"core {i}",
                "state": "waiting",
                "what": "waits",
                "since": -1e6,
                "place": "cb.c:8",
                "covered": [[-1e9, 0]],
                "events": {"n": per, "time": begins, "kind": kinds, "text": text},
            }
        )
        if i < 8:
            tracks[i]["spans"] = {"n": per, "from": begins, "to": ends, "state": states, "depth": depths, "text": text}
    kinds = [
        {"name": name, "category": "cb"}
        for name in ("cb_reserve_back", "cb_push_back", "cb_wait_front", "noc_read", "noc_write")
    ]
    return report(
        "silent: 16 cores wait",
        tracks,
        strings,
        state="silent",
        kinds=kinds,
        window={"from": -1e9, "to": 0, "policy": "newest"},
    )


def patchy():
    """Twenty thousand stale pieces and as many gaps in a row, and eight lanes of spans that each have a name of their own."""
    strings = Strings()
    lanes = [
        (-1e9 + k * 2e6 + d * 10, -1e9 + (k + 1) * 2e6 - d * 10 - 20, "function", d, f"name {k} of {d}")
        for d in range(8)
        for k in range(500)
    ]
    pieces = [(-1e9 + k * 5e4, -1e9 + k * 5e4 + 1e4) for k in range(20000)]
    track = {
        "id": 0,
        "kind": "core",
        "name": "core 0",
        "state": "silent",
        "stale": pieces,
        "gaps": [{"from": to, "to": to + 1e4, "why": "overwritten"} for _, to in pieces],
        "spans": spans(strings, lanes),
    }
    return report("silent: nothing is whole", [track], strings, window={"from": -1e9, "to": 0, "policy": "newest"})


ALL = (corrupted_scope, lost_data, long_names, hostile)
