"""Data for the report's page with counters and flows; report_pages.py has the rest that is usual."""
from report_pages import Strings, events, packed, report, spans


def counter(name, rows):
    """Of (time, value)."""
    return {"name": name, "n": len(rows), "time": packed("d", [row[0] for row in rows]), "value": packed("d", [row[1] for row in rows])}


def flows(strings, rows):
    """Of (from track, from time, to track, to time, text)."""
    rows = sorted(rows, key=lambda row: row[3])
    return {
        "n": len(rows),
        "to_time": packed("d", [row[3] for row in rows]),
        "to_track": packed("I", [row[2] for row in rows]),
        "from_time": packed("d", [row[1] for row in rows]),
        "from_track": packed("I", [row[0] for row in rows]),
        "text": packed("I", [strings(row[4]) for row in rows]),
    }


def filling():
    """A buffer fills, its writer waits for the reader, who waits for another: counters and flows."""
    strings = Strings()
    tracks = [
        {
            "id": 0,
            "kind": "core",
            "name": "core 0 writer",
            "spans": spans(strings, [(-2e6, -1e6, "running", 0, ""), (-1e6, 0, "waiting", 0, "cb1")]),
            "events": events(strings, [(-2e6 + k * 1e5, 0, f"page {k}") for k in range(10)]),
            "counters": [
                counter("cb1 fill", [(-2e6, 0), (-1.5e6, 4), (-1e6, 8)]),
                counter("pages", [(-2e6 + k * 1e5, k) for k in range(10)]),
                counter("busy", [(-1.2e6 + k * 10, 7 * (k % 64 == 32)) for k in range(19999)] + [(-1000005, 3)]),
            ],
        },
        {
            "id": 1,
            "kind": "core",
            "name": "core 1 reader",
            "spans": spans(strings, [(-2e6, -1.5e6, "waiting", 0, "cb1"), (-1.5e6, -1e6, "running", 0, ""), (-1e6, 0, "waiting", 0, "cb2")]),
        },
        {"id": 2, "kind": "core", "name": "core 2 idle"},
    ]
    return report(
        "starved: core 0 writer waits for core 1 reader",
        tracks,
        strings,
        kinds=[{"name": "page", "category": ""}],
        flows=flows(strings, [(0, -1.5e6, 1, -1.5e6, "wakes core 1 reader"), (1, 0, 0, 0, "waited for: cb1"), (2, 0, 1, 0, "waited for: cb2")]),
    )
