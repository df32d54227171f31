"""What `hangscope why` must say of the programs of zoo/, a module for each class. Data; test_zoo.py runs them.

HANGS: (name, command, kind, names, options). Kind is a regular expression that the verdict's first line has behind "HANG: ".
Each of the names is one, too, and stands somewhere in the verdict: a lock, a file, a thread, a function that waits.
CONTROLS: (name, command, options). No alarm, whatever else is said.

What is expected is what somebody who knows the program would say of it. It is not what hangscope says so far: that is in
zoo/so_far.txt, and a case there is to become right, not to be changed.

A command is split as a shell would, but no shell runs it. A first word zoo_CLASS is a program of zoo/; {zoo} is their
folder, {programs} that of their sources. Options, of which a module may have its own DEFAULTS: cpu: keeps a processor busy, one of these at a time;
restless: never comes to rest, so nobody waits for that, and it begins and ends threads, files or children; age: for how
many seconds it stands before hangscope is asked; ask: the name of the process that is asked about, of those it started;
lines: how often it says "ready"; stdin (pipe: one that nobody writes; tty: a terminal; else /dev/null); status: that of
`why`, else 1, None: any; line: a regular expression for the whole first line, instead of kind; needs: commands of the machine; root:
it needs to be; ends: it may end by itself; build: (source, compiler and options), made when it is needed; java: options of the machine of Java that
runs it; freeze: the control group of the process of
that name is frozen; later: a shell command that begins after a second, outside.
"""
import dataclasses
import importlib
import typing

CLASSES = ["locks", "spins", "partial", "idlers", "naps", "file_locks", "kernel_waits", "signals_fork", "processes", "daemons", "reentry", "shell", "bus", "builds", "python", "sqlite", "mpi", "mpich", "go", "channels",
           "java", "node", "ruby", "postgres", "self_calls"]
LONG_ONLY = ["mpi", "mpich", "go", "channels", "java", "node", "ruby", "postgres", "self_calls"]  # these keep several processors busy, or want a compiler or a server of their own
DEADLOCK = "deadlock"
# Where no owner is recorded, both words are right.
UNOWNED = "deadlock|lost wakeup"
LOST = "lost wakeup"
OWNER_DIED = "owner died"
SPIN = "spin|livelock"
RETRY = "spin|livelock|retry|retries"


@dataclasses.dataclass
class ZooCase:
    kind_of: str  # its class
    name: str
    command: str
    kind: str = ""  # of a hang
    names: typing.List[str] = dataclasses.field(default_factory=list)
    options: typing.Dict = dataclasses.field(default_factory=dict)

    @property
    def is_hang(self):
        return bool(self.kind)

    @property
    def path(self):
        return f"{self.kind_of}/{self.name}"


def all_cases():
    """Of every class, in order."""
    for kind_of in CLASSES:
        module = importlib.import_module(f"zoo_cases.{kind_of}")
        defaults = getattr(module, "DEFAULTS", {})
        for name, command, kind, names, *options in module.HANGS:
            yield ZooCase(kind_of, name, command, kind, names.split(), {**defaults, **(options[0] if options else {})})
        for name, command, *options in module.CONTROLS:
            yield ZooCase(kind_of, name, command, options={**defaults, **(options[0] if options else {})})
