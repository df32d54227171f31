"""Programs that call themselves over a bus of D-Bus, or another that answers late (zoo/bus.cc)."""
from zoo_cases import DEADLOCK

DEFAULTS = {"ask": "zoo_bus", "needs": "dbus-run-session"}


def session(name):
    """With a bus of its own, which warns where it may not raise its limits."""
    return f"sh -c 'exec dbus-run-session {{zoo}}/zoo_bus {name} 2> /dev/null'"


HANGS = [
    ("GLib, calls itself", session("glib-itself"), DEADLOCK, "itself D-Bus CallByGlib AskOwnClock"),
    ("GLib, calls itself by its number", session("glib-itself-by-number"), DEADLOCK, "itself D-Bus CallByGlib AskOwnUniqueName"),
    ("libdbus, calls itself", session("plain-itself"), DEADLOCK, "itself D-Bus AskPlainly"),
]

CONTROLS = [
    ("GLib, calls itself for a time", session("glib-itself-for-a-time")),
    ("GLib, another thread answers late", session("glib-other-thread")),
    ("GLib, another process answers late", session("glib-other-process")),
    ("GLib, after a call to itself", session("glib-other-process-then")),
    ("GLib, beside a call to itself", session("glib-other-process-beside")),
    ("libdbus, calls itself for a time", session("plain-itself-for-a-time")),
    ("libdbus, another process answers late", session("plain-other-process")),
    ("libdbus, beside a call to itself", session("plain-other-process-beside")),
]
