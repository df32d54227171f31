"""The ranks of mpi.py (zoo/mpi.cc), over MPICH."""
from zoo_cases import mpi

DEFAULTS = {**mpi.DEFAULTS, "needs": "mpirun.mpich", "ask": "zoo_mpich"}


def over_mpich(command):
    words = command.replace(mpi.RUN, "mpirun.mpich -n ").replace("zoo_mpi ", "zoo_mpich ")
    return words.replace("--mca btl tcp,self ", "-genv UCX_TLS tcp,self ")


HANGS = [(name, over_mpich(command), *rest) for name, command, *rest in mpi.HANGS]

CONTROLS = [(name, over_mpich(command), *rest) for name, command, *rest in mpi.CONTROLS]
