"""Servers that ask themselves, and wait for the answer: python3 self_calls.py NAME. A client of another process begins it.

GET /outer makes a handler ask for /inner of the same server; hangs when nobody is left to answer that."""
import asyncio
import http.server
import os
import select
import signal
import socket
import socketserver
import subprocess
import sys
import threading
import time
import urllib.request
import xmlrpc.client
import xmlrpc.server
from concurrent.futures import ThreadPoolExecutor

PORT = 0
LONG = 600


def ready():
    """With the handlers of signals that the C library has once there are threads."""
    thread = threading.Thread(target=int)
    thread.start()
    thread.join()
    print("ready", flush=True)


def begin_client(port, count=1, path="outer"):
    for _ in range(count):
        begin([sys.executable, os.path.abspath(__file__), "client", str(port), path])


def begin(words):
    """A client, up to where it says that it runs."""
    with subprocess.Popen(words, stdout=subprocess.PIPE).stdout as said:
        said.readline()


def run_client(port, path):
    with open("/proc/self/comm", "w") as name:
        name.write("client")
    os.write(1, b"runs\n")
    time.sleep(0.3)
    with socket.create_connection(("127.0.0.1", int(port))) as connection:
        connection.sendall(f"GET /{path} HTTP/1.0\r\n\r\n".encode())
        connection.recv(100)


def listener():
    global PORT
    server = socket.create_server(("127.0.0.1", 0))
    PORT = server.getsockname()[1]
    return server


# --- A server of one's own, a line of HTTP.

def fetch(path):
    with socket.create_connection(("127.0.0.1", PORT)) as connection:
        connection.sendall(f"GET /{path} HTTP/1.0\r\n\r\n".encode())
        return connection.recv(100)


def answer(connection):
    with connection:
        path = connection.recv(1000).split()[1].decode()
        if path == "/outer":
            fetch("inner")
        elif path == "/later":
            time.sleep(4)
            fetch("inner")
        elif path == "/sleep":
            time.sleep(LONG)
        elif path == "/outer-sleep":
            fetch("sleep")
        elif path == "/read":
            os.read(0, 1)
        elif path == "/outer-read":
            fetch("read")
        connection.sendall(b"HTTP/1.0 200 OK\r\n\r\n")


def serve_pool(workers, clients, path="outer"):
    server = listener()
    pool = ThreadPoolExecutor(workers)
    begin_client(PORT, clients, path)
    ready()
    while True:
        connection, _ = server.accept()
        pool.submit(answer, connection)


def pool_of_one():
    serve_pool(1, 1)


def pool_of_two():
    serve_pool(2, 4, "later")


def pool_selects():
    """As gunicorn's workers with threads."""
    server = listener()
    pool = ThreadPoolExecutor(2)
    begin_client(PORT, 4, "later")
    ready()
    waiting = {}
    while True:
        readable, _, _ = select.select([server, *waiting], [], [], 1.0)
        for each in readable:
            if each is server:
                connection, _ = server.accept()
                waiting[connection] = True
            else:
                del waiting[each]
                pool.submit(answer, each)


def threads_by_hand():
    """Two workers that take connections from a list."""
    server = listener()
    came, jobs = threading.Condition(), []

    def work():
        while True:
            with came:
                while not jobs:
                    came.wait()
                connection = jobs.pop(0)
            answer(connection)
    for _ in range(2):
        threading.Thread(target=work, daemon=True).start()
    begin_client(PORT, 4, "later")
    ready()
    while True:
        connection, _ = server.accept()
        with came:
            jobs.append(connection)
            came.notify()


def serve_one(server):
    while True:
        connection, _ = server.accept()
        answer(connection)


def one_by_one():
    server = listener()
    begin_client(PORT)
    ready()
    serve_one(server)


def prefork(workers, stay, clients, path="outer"):
    server = listener()
    for _ in range(workers):
        if os.fork() == 0:
            with open("/proc/self/comm", "w") as name:
                name.write("worker")
            serve_one(server)
    begin_client(PORT, clients, path)
    ready()
    stay()


def nap_on_pipe():
    reads, _ = os.pipe()
    while True:
        select.select([reads], [], [], 1.0)


def reap():
    while True:
        os.wait()


def await_signal():
    signal.signal(signal.SIGHUP, lambda *_: None)
    while True:
        signal.pause()


def prefork_naps():
    prefork(1, nap_on_pipe, 1)


def prefork_waits():
    prefork(2, reap, 2, "later")


def prefork_pauses():
    prefork(1, await_signal, 1)


# --- Servers of the standard library.

def http_server(make, ask):
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            if self.path == "/outer":
                ask(f"http://127.0.0.1:{self.server.server_port}/inner")
            elif self.path == "/inner" and SLOW:
                print("ready", flush=True)
                time.sleep(LONG)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass
    server = make(("127.0.0.1", 0), Handler)
    begin_client(server.server_port)
    ready()
    server.serve_forever()


SLOW = False


def ask_by_urllib(url):
    return urllib.request.urlopen(url).read()


def ask_by_curl(url):
    return subprocess.run(["curl", "-s", url], stdout=subprocess.PIPE).stdout


def ask_by_shell(url):
    return os.system(f"curl -s {url} > answer.txt; true")


def ask_by_curl_for_a_time(url):
    return subprocess.run(["curl", "-s", "--max-time", "600", url], stdout=subprocess.PIPE).stdout


def http_urllib():
    http_server(http.server.HTTPServer, ask_by_urllib)


def http_curl():
    http_server(http.server.HTTPServer, ask_by_curl)


def http_shell():
    http_server(http.server.HTTPServer, ask_by_shell)


def xmlrpc_itself():
    server = xmlrpc.server.SimpleXMLRPCServer(("127.0.0.1", 0), logRequests=False)
    url = f"http://127.0.0.1:{server.server_address[1]}/"

    def outer():
        return xmlrpc.client.ServerProxy(url).inner()
    server.register_function(outer)
    server.register_function(lambda: 1, "inner")
    begin([sys.executable, "-c", f"import time, xmlrpc.client; print('runs', flush=True); time.sleep(0.3); xmlrpc.client.ServerProxy('{url}').outer()"])
    ready()
    server.serve_forever()


def unix_itself():
    class Handler(socketserver.StreamRequestHandler):
        def handle(self):
            if self.rfile.readline() == b"outer\n":
                with socket.socket(socket.AF_UNIX) as connection:
                    connection.connect("server.sock")
                    connection.sendall(b"inner\n")
                    connection.recv(10)
            self.wfile.write(b"done\n")
    server = socketserver.UnixStreamServer("server.sock", Handler)
    client = "import socket, time; print('runs', flush=True); time.sleep(0.3); c = socket.socket(socket.AF_UNIX); c.connect('server.sock'); c.sendall(b'outer\\n'); c.recv(10)"
    begin([sys.executable, "-c", client])
    ready()
    server.serve_forever()


# --- What only looks so.

def pool_inner_sleeps():
    serve_pool(2, 1, "outer-sleep")


def pool_inner_reads():
    serve_pool(2, 1, "outer-read")


def pool_behind_sleeper():
    """The only worker sleeps; a thread of the program has asked, and will be answered after that."""
    server = listener()
    pool = ThreadPoolExecutor(1)
    begin_client(PORT, 1, "sleep")
    threading.Timer(1, fetch, ["inner"]).start()
    ready()
    while True:
        connection, _ = server.accept()
        pool.submit(answer, connection)


def pool_behind_reader():
    server = listener()
    pool = ThreadPoolExecutor(1)
    begin_client(PORT, 1, "read")
    threading.Timer(1, fetch, ["inner"]).start()
    ready()
    while True:
        connection, _ = server.accept()
        pool.submit(answer, connection)


def pool_behind_child():
    """The worker reads what a command prints."""
    global answer
    usual = answer

    def run_command(connection):
        with connection:
            if connection.recv(1000).split()[1] == b"/command":
                subprocess.run(["sh", "-c", "sleep 600; echo done"], stdout=subprocess.PIPE)
            connection.sendall(b"done")
    answer = run_command
    del usual
    server = listener()
    pool = ThreadPoolExecutor(1)
    begin_client(PORT, 1, "command")
    threading.Timer(1, fetch, ["inner"]).start()
    ready()
    while True:
        connection, _ = server.accept()
        pool.submit(answer, connection)


def slots_of_a_loop():
    """A thread takes connections, and reads each when an event loop beside it is done with another: that waits for its input."""
    server = listener()
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    reader = asyncio.StreamReader(loop=loop)

    async def handle_other():
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader, loop=loop), os.fdopen(0, "rb"))
        return await reader.read(1)

    def accept():
        while True:
            connection, _ = server.accept()
            asyncio.run_coroutine_threadsafe(handle_other(), loop).result()
            answer(connection)
    threading.Thread(target=accept, daemon=True).start()
    ready()
    fetch("inner")


def subscriber():
    """A thread that reads what its own server will send some day."""
    server = listener()
    subscribers = []

    def accept():
        while True:
            connection, _ = server.accept()
            connection.recv(1000)
            subscribers.append(connection)
    threading.Thread(target=accept, daemon=True).start()
    ready()
    fetch("events")


def prefork_busy():
    """One of two workers has asked, the other one sleeps."""
    prefork(2, nap_on_pipe, 1, "outer-sleep")


def prefork_behind_sleeper():
    """One of two workers sleeps, and the other one has asked."""
    def stay():
        time.sleep(1)
        begin_client(PORT)
        ready()
        reap()
    prefork(2, stay, 1, "sleep")


def prefork_parent_accepts():
    """The parent takes connections itself, now and then."""
    server = listener()
    if os.fork() == 0:
        fetch("inner")
        signal.pause()
    ready()
    server.setblocking(False)
    while True:
        time.sleep(2)
        try:
            connection, _ = server.accept()
        except BlockingIOError:
            continue
        connection.setblocking(True)
        answer(connection)


def parent_accepts_after_input():
    server = listener()
    if os.fork() == 0:
        fetch("inner")
        signal.pause()
    ready()
    os.read(0, 1)
    serve_one(server)


def threads_of_their_own():
    global SLOW
    SLOW = True
    http_server(http.server.ThreadingHTTPServer, ask_by_urllib)


def threads_and_curl():
    global SLOW
    SLOW = True
    http_server(http.server.ThreadingHTTPServer, ask_by_curl)


def curl_with_a_limit():
    http_server(http.server.HTTPServer, ask_by_curl_for_a_time)


def urllib_with_a_limit():
    http_server(http.server.HTTPServer, lambda url: urllib.request.urlopen(url, timeout=600).read())


def curl_of_another():
    """A command that asks a server of another process, which sleeps over the answer."""
    global SLOW
    SLOW = True
    server = listener()
    if os.fork() == 0:
        with server:
            connection, _ = server.accept()
            connection.recv(1000)
            time.sleep(LONG)
    server.close()
    ready()
    ask_by_curl(f"http://127.0.0.1:{PORT}/")


def asks_itself_again_and_again():
    """Answered at once, each time."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
    server.RequestHandlerClass.log_message = lambda *_: None
    threading.Thread(target=server.serve_forever, daemon=True).start()
    ready()
    while True:
        urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/").read()
        time.sleep(0.05)


if __name__ == "__main__":
    if sys.argv[1] == "client":
        run_client(*sys.argv[2:])
    else:
        globals()[sys.argv[1].replace("-", "_")]()
