"""Programs without symbols that wait until somebody ends them, or comes to them, and such as wait for nobody (zoo/daemons.cc)."""
from zoo_cases import DEADLOCK, LOST, SPIN

DEFAULTS = {"restless": True, "age": 1}
SPINS = {"cpu": True}

HANGS = [
    ("mutexes crosswise beside a handler", "zoo_daemons crosswise", DEADLOCK + ", 2 ", "left right mutex"),
    ("spins for nobody", "zoo_daemons spins-for-nobody", SPIN, "zoo_daemons word", SPINS),
    ("semaphore that nobody else has", "zoo_daemons semaphore-of-nobody", LOST, "semaphore memfd:frame"),
]

CONTROLS = [
    ("naps until it is ended", "zoo_daemons naps"),
    ("naps shortly until Ctrl-C", "zoo_daemons naps-shortly"),
    ("naps until a hangup", "zoo_daemons naps-until-hangup"),
    ("pool beside a nap until it is ended", "zoo_daemons pool"),
    ("spins until Ctrl-C", "zoo_daemons spins-until-interrupt", SPINS),
    ("spins until it is ended", "zoo_daemons spins-until-end", SPINS),
    ("spins for a time of the processor", "zoo_daemons spins-for-time", SPINS),
    ("spins to the limit of its processor", "zoo_daemons spins-to-limit", SPINS),
    ("semaphore that another maps later", "zoo_daemons semaphore-mapped-later"),
    ("condition that another maps later", "zoo_daemons condition-mapped-later"),
    ("terminal that others open by its name", "zoo_daemons terminal"),
]
