"""Collectives among threads or processes, on NumPy arrays and anything else with a buffer.

    team = rankine.Team(4)
    def f(me):
        x = numpy.full(1000, me.rank + 1.0, numpy.float32)
        me.all_reduce(x)                    # in place; every element is 10 now
        return x[0]
    team.run(f)                             # [10.0, 10.0, 10.0, 10.0]

Threads of your own join a communicator instead: ``comm = rankine.Communicator(4)``, then
``me = comm.join(rank)`` on each. Processes each make one of the same name, as the rank that they play:
``me = rankine.Communicator(4, rank=rank, name="job").join(rank)``. All ranks make the same calls in the same order. Calls let go of the
GIL, so ranks that wait or move data keep nobody from running Python. Calls that are not waited for,
once or again and again, are rankine.start() and rankine.prepare().

A buffer is C-contiguous and keeps its size while a call uses it. Counts are elements, times are
seconds. Errors are rankine.Error with a ``code``; wrong arguments are ValueErrors, too, name the
argument, and leave the communicator as it was (but other ranks wait for the call until their
deadline). Every other error ends the communicator on all its ranks.

A call of the main thread that waits runs Python's signal handlers every 50 ms or so. Where one
raises (Control-C: KeyboardInterrupt), the call raises that, and its communicator ends.
"""

from rankine._buckets import Buckets
from rankine._epilogues import Epilogue, FunctionEpilogue, RowEpilogue
from rankine._library import Code, Error, InvalidArgument, version
from rankine._member import Member, PortsInUse, group
from rankine._operations import Operation, PreMulSum
from rankine._requests import Request, prepare, start, wait_all
from rankine._teams import Communicator, Team

__version__ = version()

__all__ = [
    "Buckets",
    "Code",
    "Communicator",
    "Epilogue",
    "Error",
    "FunctionEpilogue",
    "InvalidArgument",
    "Member",
    "Operation",
    "PortsInUse",
    "PreMulSum",
    "Request",
    "RowEpilogue",
    "Team",
    "group",
    "prepare",
    "start",
    "version",
    "wait_all",
]
