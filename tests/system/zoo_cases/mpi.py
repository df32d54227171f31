"""Ranks of Open MPI that wait for each other (zoo/mpi.cc). They poll for what never comes, so each keeps a processor busy."""
from zoo_cases import DEADLOCK

RUN = "env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun.openmpi --oversubscribe -n "
DEFAULTS = {"needs": "mpirun.openmpi", "cpu": True, "restless": True, "age": 1, "ask": "zoo_mpi"}


def ranks(count, name, options=""):
    return f"{RUN}{count} {options}{{zoo}}/zoo_mpi {name}"


HANGS = [
    ("both receive", ranks(2, "both-receive"), DEADLOCK + ", 2 ", "MPI_Recv rank ReceiveNumber"),
    ("ring of 4 receives", ranks(4, "ring-receives"), DEADLOCK, "MPI_Recv ReceiveNumber"),
    ("both send", ranks(2, "both-send"), DEADLOCK + ", 2 ", "MPI_Send BothSend"),
    ("wrong tag", ranks(2, "wrong-tag"), DEADLOCK + ", 2 ", "MPI_Recv ReceiveNumber"),
    ("barrier of fewer", ranks(3, "barrier-of-fewer"), DEADLOCK, "MPI_Recv|MPI_Barrier ReceiveNumber|BarrierOfFewer"),
    ("collectives in another order", ranks(2, "collectives-in-other-order"), DEADLOCK + ", 2 ", "MPI_Reduce MPI_Bcast CollectivesInOtherOrder"),
    ("requests", ranks(3, "await-requests"), DEADLOCK, "MPI_Waitall AwaitRequests"),
    ("probe", ranks(2, "probe-only"), DEADLOCK + ", 2 ", "MPI_Probe ProbeOnly"),
    ("allreduce of fewer", ranks(3, "allreduce-of-fewer"), DEADLOCK, "MPI_Allreduce|MPI_Recv AllreduceOfFewer|ReceiveNumber"),
    ("finalize too early", ranks(2, "finalize-too-early"), DEADLOCK + ", 2 ", "MPI_Finalize MPI_Recv ReceiveNumber"),
    ("rank in a deadlock of its own", ranks(3, "rank-in-deadlock"), DEADLOCK, "table_mutex LockTwice"),
]

CONTROLS = [
    ("ping pong", ranks(2, "ping-pong")),
    ("ring of 4 passes", ranks(4, "ring-passes")),
    ("ring passes slowly", ranks(3, "ring-passes-slowly")),
    ("one computes", ranks(3, "one-computes")),
    ("compute by turns", ranks(2, "compute-by-turns")),
    ("one sleeps", ranks(3, "one-sleeps")),
    ("one reads its input", ranks(2, "one-reads-input"), {"stdin": "pipe"}),
    ("reductions", ranks(3, "reductions")),
    ("farmer and workers", ranks(3, "farmer-and-workers")),
    ("polls", ranks(2, "polls")),
    ("one takes a file lock", "flock x.lock " + ranks(2, "one-takes-a-file-lock")),
    ("ping pong over TCP", ranks(2, "ping-pong", "--mca btl tcp,self ")),
    ("operation that computes", ranks(2, "operation-is-slow")),
    ("operation that naps", ranks(2, "operation-is-slow 1")),
    ("ring over TCP", ranks(3, "ring-passes-slowly", "--mca btl tcp,self ")),
]
