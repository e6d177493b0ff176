"""Collectives among threads or processes, on NumPy arrays and other objects with a buffer.

    team = rankine.Team(4)
    def f(me):
        x = numpy.full(1000, me.rank + 1.0, numpy.float32)
        me.all_reduce(x)                    # in place; every element is 10 now
        return x[0]
    team.run(f)                             # [10.0, 10.0, 10.0, 10.0]

The program's own threads join a communicator instead: ``comm = rankine.Communicator(4)``, then
``me = comm.join(rank)`` on each. Processes make a communicator with a common name, each with its
rank: ``me = rankine.Communicator(4, rank=rank, name="job").join(rank)``. All ranks make the same
calls in the same order. Calls that wait or move much data release the GIL, so other threads run
Python meanwhile. rankine.start() and rankine.prepare() start calls without waiting, once or repeatedly.

A buffer has the buffer protocol, ``__dlpack__`` or ``__array_interface__``; it is C-contiguous and
keeps its size while a call uses it. Counts are elements, times are
seconds. Errors are rankine.Error with a ``code``. Invalid arguments are also ValueErrors, name the
argument, and leave the communicator usable (but other ranks wait for the call until their
deadline). Every other error ends the communicator on all its ranks.

A waiting call of the main thread runs Python's signal handlers about every 50 ms. If a handler
raises (Control-C: KeyboardInterrupt), the call raises the exception, and its communicator ends.
"""

from rankine._active import ActiveRanks
from rankine._buckets import Buckets
from rankine._epilogues import Epilogue, FunctionEpilogue, RowEpilogue
from rankine._errors import Code, Error, InvalidArgument
from rankine._experts import Experts
from rankine._member import Member, PortsInUse, group
from rankine._operations import Operation, PreMulSum
from rankine._requests import Request, prepare, start, wait_all
from rankine._teams import Communicator, Team
from rankine._engine import rkGetVersion as _version


def version() -> str:
    """The version of the library: "0.1.0"."""
    code: int = _version()
    return f"{code // 10000}.{code // 100 % 100}.{code % 100}"


__version__ = version()

__all__ = [
    "ActiveRanks",
    "Buckets",
    "Code",
    "Communicator",
    "Epilogue",
    "Error",
    "Experts",
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
