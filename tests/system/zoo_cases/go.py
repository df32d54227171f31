"""Programs of Go 1.19, with goroutines that wait for each other (zoo/go/). A long run asks them; each is built when it is needed."""
from zoo_cases import DEADLOCK

DEFAULTS = {"build": ("go/zoo.go", "go", "build"), "restless": True, "age": 1}
HANGS = [
    ("accounts crosswise", "hang accounts server", DEADLOCK + ", 2 ", "transfer zoo.go"),
    ("accounts crosswise beside a heartbeat", "hang accounts server heartbeat", DEADLOCK + ", 2 ", "transfer zoo.go"),
    ("global mutexes crosswise", "hang globals server", DEADLOCK + ", 2 ", "indexLock tableLock rebuildIndex vacuumTable"),
    ("global mutexes crosswise beside a heartbeat", "hang globals heartbeat", DEADLOCK + ", 2 ", "indexLock tableLock rebuildIndex vacuumTable"),
    ("circle of three", "hang circle server", DEADLOCK + ", 3 ", "indexLock tableLock journalLock lockBoth"),
    ("mutex twice", "hang twice server", DEADLOCK, "tableLock evictAgain itself"),
    ("writer and mutex", "hang write-and-mutex server", DEADLOCK + ", 2 ", "cache journalLock refreshCache writeJournal"),
    ("reader and mutex", "hang read-and-mutex server", DEADLOCK + ", 2 ", "cache journalLock readCache replaceCache"),
    ("methods of an interface", "hang interface server heartbeat", DEADLOCK + ", 2 ", "indexLock tableLock takeOther"),
    ("locks that closures have", "hang closures server", DEADLOCK + ", 2 ", "hang.func"),
    ("channel and lock", "hang channel-and-lock server", DEADLOCK + ", 2 ", "tableLock channel askWithLock answerWithLock"),
    ("main is one of them", "hang main server", DEADLOCK + ", 2 ", "indexLock tableLock vacuumTable"),
    ("accounts crosswise, not optimised", "hang accounts server", DEADLOCK + ", 2 ", "transfer zoo.go",
     {"build": ("go/zoo.go", "go", "build", "-gcflags=all=-N -l")}),
    ("global mutexes crosswise, without DWARF", "hang globals server", DEADLOCK + ", 2 ", "indexLock tableLock rebuildIndex vacuumTable",
     {"build": ("go/zoo.go", "go", "build", "-ldflags=-w")}),
    ("global mutexes crosswise, stripped", "hang globals server", DEADLOCK + ", 2 ", "rebuildIndex vacuumTable",
     {"build": ("go/zoo.go", "go", "build", "-ldflags=-s -w")}),
    ("global mutexes crosswise, position-independent", "hang globals server", DEADLOCK + ", 2 ", "indexLock tableLock rebuildIndex vacuumTable",
     {"build": ("go/zoo.go", "go", "build", "-buildmode=pie")}),
]
CONTROLS = [
    ("both in one order", "control in-order server", {"cpu": True}),
    ("both in one order, slowly", "control in-order-slow server"),
    ("both in one order beside a heartbeat", "control in-order-slow heartbeat"),
    ("held for an hour", "control long-hold server"),
    ("held for an hour beside a heartbeat", "control long-hold heartbeat"),
    ("held while it reads", "control hold-and-read server"),
    ("accounts in one order", "control accounts server", {"cpu": True}),
    ("readers and a writer", "control readers server"),
    ("tries, and gives back", "control try server"),
    ("pool without work", "control pool server"),
    ("pool without work beside a heartbeat", "control pool heartbeat"),
    ("pipeline", "control pipeline server", {"cpu": True}),
    ("pipeline beside a heartbeat", "control pipeline heartbeat", {"cpu": True}),
    ("handed on", "control handed-on server"),
    ("both in one order, not optimised", "control in-order server", {"cpu": True, "build": ("go/zoo.go", "go", "build", "-gcflags=all=-N -l")}),
    ("accounts in one order, stripped", "control accounts server", {"cpu": True, "build": ("go/zoo.go", "go", "build", "-ldflags=-s -w")}),
]
