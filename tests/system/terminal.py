"""A person at a terminal: a pseudo terminal with a command, mostly a shell, as the leader of its session."""
import fcntl
import os
import pathlib
import pty
import select
import signal
import struct
import termios
import threading
import time

from support import Case


def set_size(terminal, rows, columns):
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def state(pid):
    """The letter of a process's state, None if there is no such process."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return None


class TerminalCase(Case):
    def start(self, *command, rows=24, columns=80):
        """Runs a command on a new terminal, as its session's leader."""
        self.open_terminal()  # skips where there is none
        self.seen = b""
        has_size, tell = os.pipe()
        pid, self.terminal = pty.fork()
        if pid == 0:
            os.environ["PS1"] = "shell> "
            for keys in (signal.SIGINT, signal.SIGQUIT):  # what runs in a shell's background ignores them
                signal.signal(keys, signal.SIG_DFL)
            os.close(tell)
            os.read(has_size, 1)
            os.execvp(command[0], command)
        set_size(self.terminal, rows, columns)
        os.close(has_size)
        os.close(tell)
        self.modes = termios.tcgetattr(self.terminal)
        self.pid = pid
        self.addCleanup(self.end_session, pid, self.terminal)

    @staticmethod
    def end_session(pid, terminal):
        try:
            os.close(terminal)
        except OSError:
            pass  # the test closed it
        try:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        except (ProcessLookupError, ChildProcessError):
            pass  # it ended

    def press(self, keys):
        os.write(self.terminal, keys)

    def expect(self, text, times=1):
        """Reads on until the terminal has shown the text so many times, since the start."""
        end = time.monotonic() + 30
        while self.seen.count(text) < times:
            if time.monotonic() > end:
                self.fail(f"{text} was not shown {times} times; shown was {self.seen}")
            ready, _, _ = select.select([self.terminal], [], [], 0.1)
            try:
                self.seen += os.read(self.terminal, 65536) if ready else b""
            except OSError:
                self.fail(f"{text} was not shown before the end; shown was {self.seen}")

    def wait_for_end(self):
        def drain():
            try:
                while data := os.read(self.terminal, 65536):
                    self.seen += data
            except OSError:
                pass
        reader = threading.Thread(target=drain)
        reader.start()
        limit = threading.Timer(30, os.kill, (self.pid, signal.SIGKILL))
        limit.start()
        _, status = os.waitpid(self.pid, 0)
        limit.cancel()
        reader.join(30)
        return os.waitstatus_to_exitcode(status)
