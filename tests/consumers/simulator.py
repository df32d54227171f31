#!/usr/bin/env python3
"""usage: simulator.py --status STATUS [WORD...]

Stands for a simulator: says on stdout what it was given, and writes that to the file REPORT as JSON.
STATUS is the exit status, "hang" to wait for ever, or "interrupt" to wait for Ctrl-C.
"""
import json
import os
import signal
import sys
import threading

report = {"words": sys.argv[1:], "folder": os.getcwd(), "terminal": os.isatty(0)}


def write_report():
    with open(os.environ["REPORT"], "w", encoding="utf-8") as file:
        json.dump(report, file)


def interrupted(*_):
    report["interrupted"] = True
    write_report()
    os._exit(9)


if sys.argv[2] == "interrupt":  # a handler could end a wait, which would be no certain hang then
    signal.signal(signal.SIGINT, interrupted)
write_report()
print(sys.argv[1:], flush=True)
print("trace", file=sys.stderr, flush=True)
status = sys.argv[2]
if status == "hang":
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()
elif status == "interrupt":
    signal.pause()
else:
    sys.exit(int(status))
