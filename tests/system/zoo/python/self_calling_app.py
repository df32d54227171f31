"""An application for gunicorn that asks its own server: GET /outer. It begins a client of it for each number in CLIENTS."""
import os
import subprocess
import sys
import threading
import time
import urllib.request

FIRST = threading.Thread(target=int)  # which has the C library handle its signals
FIRST.start()
FIRST.join()
PORT = os.environ.get("SELF_CALL_PORT", "54331")


def fetch_inner():
    return urllib.request.urlopen(f"http://127.0.0.1:{PORT}/inner").read()


def app(environ, start_response):
    path = environ["PATH_INFO"]
    if path == "/outer":
        time.sleep(3)  # until the others have come
        fetch_inner()
    elif path == "/slow":
        time.sleep(600)
    elif path == "/outer-slow":
        urllib.request.urlopen(f"http://127.0.0.1:{PORT}/slow").read()
    start_response("200 OK", [("Content-Length", "0")])
    return [b""]


CLIENT = "import sys, time, urllib.request; print('runs', flush=True); time.sleep(1); urllib.request.urlopen(sys.argv[1]).read()"


def begin(count, path):
    for _ in range(count):
        words = [sys.executable, "-c", CLIENT, f"http://127.0.0.1:{PORT}{path}"]
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout as said:
            said.readline()


def post_fork(server, worker):
    with open("/proc/self/comm", "w") as name:
        name.write("worker")


def when_ready(server):
    begin(int(os.environ.get("SELF_CALL_CLIENTS", "1")), os.environ.get("SELF_CALL_PATH", "/outer"))


def post_worker_init(worker):
    print("ready", flush=True)
