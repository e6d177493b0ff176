"""A Communicator's ranks are played by threads of the caller, or by one or several processes. A
Team's ranks are played by Python threads of the Team."""

from __future__ import annotations

import functools
import math
import os
import threading
import time
import weakref
from queue import Empty, SimpleQueue
from typing import Any, Callable, Sequence, TypeVar

from rankine import _engine
from rankine._errors import Code, Error, refuse, whole
from rankine._member import LineMember, Member, make_ranks

T = TypeVar("T")

_MOST_RANKS = 4096  # the limit on a modelled network; other limits are smaller, and the library reports them


class Communicator:
    """Ranks for threads of the caller: ``me = comm.join(rank)`` on each thread.

    Options:

    - ``timeout``: the longest wait of a call for other ranks, in seconds; a longer wait ends the
      communicator. None is 30, inf is no limit.
    - ``wait``: how ranks wait: "spin", "yield", "park", or None: depends on the cores.
    - ``network``: a modelled network for all calls, in the syntax of RANKINE_NETWORK. None:
      RANKINE_NETWORK if set, otherwise none.
    - ``nodes``: the memory node of each rank, -1 for any. None: ``placement`` decides, otherwise
      first touch.
    - ``levels``: sizes of groups of neighbouring ranks, innermost first. None: from ``placement``
      if set, otherwise none.
    - ``tuned``: True: this machine's tuning table, if present, chooses algorithms.
    - ``record_times``: True: flight records contain times, and `rankine top` shows times by call
      site (Member.site). "lines": calls without a site() have their file and line as site.
    - ``plan_bytes``: the most memory for planning a call, in bytes; 0 is 1 GiB.
    - ``order``: the guarantee for the last bits of sums: "coherent", "repeatable", "by_rank",
      "size_invariant", "group_invariant" or "tp_invariant". None: coherent, except for algorithms
      that are requested by name.
    - ``progress_core``: the CPU of a thread that makes started calls (rankine.start) progress while
      the ranks do other work, and otherwise sleeps. None: the ranks' threads make progress.
    - ``placement``: where ranks run: "compact", "scatter", "one_per_node", or CPUs by rank such as
      "0,2,4-7". join() pins its thread to the rank's CPU permanently; threads that it starts later
      inherit the pin. The rank's memory lies on that CPU's node. None or "none": threads are not
      pinned.
    - ``ports``: the most messages of a rank in flight in each direction, as if it had this number
      of network ports. 0: no limit. Must be 0 with a network, which has its own ports.
    - ``rank``, ``name``: for ranks that are processes of one user on one machine. This process
      plays ``rank``; the processes meet under the name, of letters, digits, ".", "-" and "_". Each
      process makes a communicator, which waits for all of them, at most for the timeout, and joins
      it as its rank. With a placement, the thread that makes the communicator is pinned before.
    - ``more_ranks``: further ranks of this process, each for a separate thread.

    Errors: rankine.InvalidArgument names the option, its value and the allowed values.
    """

    def __init__(
        self,
        ranks: int,
        *,
        timeout: float | None = None,
        wait: str | None = None,
        network: str | None = None,
        nodes: Sequence[int] | None = None,
        levels: Sequence[int] | None = None,
        tuned: bool = True,
        record_times: bool | str = False,
        plan_bytes: int = 0,
        order: str | None = None,
        progress_core: int | None = None,
        placement: str | None = None,
        ports: int = 0,
        rank: int | None = None,
        name: str | None = None,
        more_ranks: Sequence[int] = (),
    ) -> None:
        ranks = whole("ranks", ranks, 1, _MOST_RANKS)
        self._is_placed = placement is not None
        here = [*(() if rank is None else (rank,)), *more_ranks]
        for one in here:
            if not isinstance(one, int) or not 0 <= one < ranks:
                which = "rank" if one is rank else "more_ranks"
                refuse(f"{which} is {one!r}; allowed are 0 to {ranks - 1}")
        self._here = here or range(ranks)
        if (rank is None) != (name is None) or (rank is None and here):
            refuse(f"rank is {rank!r}, name is {name!r}; give both for processes, none for threads")
        handles = make_ranks(
            None,
            ranks,
            name,
            here,
            timeout=timeout,
            wait=wait,
            network=network,
            nodes=nodes,
            levels=levels,
            tuned=tuned,
            record_times=record_times,
            plan_bytes=plan_bytes,
            order=order,
            progress_core=progress_core,
            placement=placement,
            ports=ports,
        )
        is_alone = len(handles) == 1 and progress_core is None
        self._members: list[Member | None] = [None] * ranks
        for one, handle in zip(self._here, handles):
            self._members[one] = (LineMember if record_times == "lines" else Member)(handle, is_alone)
        self._lock = threading.Lock()

    @property
    def ranks(self) -> int:
        """The number of ranks."""
        return len(self._members)

    def join(self, rank: int) -> Member:
        """Returns a rank for the calling thread, which plays it, and pins the thread if there is a
        placement. Each rank can be joined once. Does not wait."""
        rank = whole("rank", rank, 0, len(self._members) - 1)
        if rank not in self._here:
            ours = ", ".join(map(str, self._here))
            refuse(f"rank is {rank} of another process; allowed here: rank {ours}")
        with self._lock:
            member, self._members[rank] = self._members[rank], None
        if member is None:
            raise Error(Code.invalid_usage, f"rank {rank} has joined already")
        if self._is_placed:
            _engine.rkCommPinThread(member._handle)
        return member


class _Round:
    """Calls ``work(rank)`` once on each thread of a team. After an error: ``fail(rank, error)``.

    An interrupt may arrive inside any Python function of the caller. A SimpleQueue is one C object,
    so an interrupt leaves no lock behind; inside an executor's submit() it could.
    """

    def __init__(
        self,
        jobs: Sequence[SimpleQueue[Callable[[], None] | None]],
        work: Callable[[int], Any],
        fail: Callable[[int, BaseException], None] = lambda rank, error: None,
    ) -> None:
        self._jobs, self._work, self._fail = jobs, work, fail
        self._ended: SimpleQueue[int] = SimpleQueue()
        self._over: list[int] = []  # ranks whose results and errors are complete
        self.results: dict[int, Any] = {}
        self.errors: dict[int, BaseException] = {}  # the first error first

    def start(self) -> None:
        for rank, jobs in enumerate(self._jobs):
            jobs.put(functools.partial(self._play, rank))

    def wait(self, seconds: float | None = None) -> None:
        """Waits for all threads, at most for ``seconds``."""
        deadline = math.inf if seconds is None else time.monotonic() + seconds
        while len(self._over) < len(self._jobs) and (left := deadline - time.monotonic()) > 0:
            try:  # often: a signal that comes just before get() blocks does not end it
                self._ended.get(timeout=min(left, 0.05))
            except Empty:
                pass

    def _play(self, rank: int) -> None:
        try:
            self.results[rank] = self._work(rank)
        except BaseException as error:
            self.errors[rank] = error
            try:
                self._fail(rank, error)
            except BaseException as raised:  # for instance by str(error); its context is `error`
                self.errors[rank] = raised
        finally:
            self._over.append(rank)
            self._ended.put(rank)


def _serve(jobs: SimpleQueue[Callable[[], None] | None]) -> None:
    """The function of a rank's thread: plays jobs until None."""
    while (job := jobs.get()) is not None:
        job()
        del job  # keeps no function and no result alive between jobs


def _end(queues: Sequence[SimpleQueue[Callable[[], None] | None]]) -> None:
    for jobs in queues:
        jobs.put(None)


class Team:
    """Runs each rank on a separate Python thread: ``Team(4).run(f)`` calls f(member) on each.

    The threads hold the GIL while they run Python and release it in calls. Each is pinned to a CPU,
    with the rank's memory on that CPU's node; Member.cpu returns the CPU.

    Options, as in Communicator:

    - ``placement``: where ranks run: "compact" (neighbouring ranks on neighbouring cores),
      "scatter" (as far apart as possible), "one_per_node", CPUs by rank such as "0,2,4-7", or
      "none": threads are not pinned. None is "compact", or "none" if ``nodes`` are given. Threads
      that a rank's thread starts inherit its CPU, so use "none" with libraries that have thread
      pools.
    - ``timeout``: the longest wait of a call for other ranks, in seconds; None is 30, inf is no
      limit.
    - ``wait``: how ranks wait: "spin", "yield", "park", or None: depends on the cores.
    - ``network``: a modelled network for all calls, in the syntax of RANKINE_NETWORK.
    - ``nodes``: the memory node of each rank, -1 for any. None: the node of its CPU.
    - ``levels``: sizes of groups of neighbouring ranks, innermost first. None: from the placement.
    - ``tuned``: True: this machine's tuning table, if present, chooses algorithms.
    - ``record_times``: True or "lines": records times, as in Communicator.
    - ``plan_bytes``: the most memory for planning a call, in bytes; 0 is 1 GiB.
    - ``order``: the guarantee for the last bits of sums, as in Communicator.
    - ``progress_core``: the CPU of a thread that makes started calls (rankine.start) progress.
    - ``ports``: the most messages of a rank in flight in each direction; 0: no limit.
    """

    def __init__(
        self,
        ranks: int,
        *,
        placement: str | None = None,
        timeout: float | None = None,
        wait: str | None = None,
        network: str | None = None,
        nodes: Sequence[int] | None = None,
        levels: Sequence[int] | None = None,
        tuned: bool = True,
        record_times: bool | str = False,
        plan_bytes: int = 0,
        order: str | None = None,
        progress_core: int | None = None,
        ports: int = 0,
    ) -> None:
        if placement is None:
            placement = "compact" if nodes is None else "none"
        communicator = Communicator(
            ranks,
            timeout=timeout,
            wait=wait,
            network=network,
            nodes=nodes,
            levels=levels,
            tuned=tuned,
            record_times=record_times,
            plan_bytes=plan_bytes,
            order=order,
            progress_core=progress_core,
            placement=placement,
            ports=ports,
        )
        # Each rank has a separate thread, which join() pins.
        self._jobs: list[SimpleQueue[Callable[[], None] | None]] = [SimpleQueue() for _ in range(communicator.ranks)]
        self._end_threads = weakref.finalize(self, _end, self._jobs)
        self._threads = [
            threading.Thread(target=_serve, args=(jobs,), name=f"rankine-{rank}", daemon=True)
            for rank, jobs in enumerate(self._jobs)
        ]
        for thread in self._threads:
            thread.start()
        joined = _Round(self._jobs, communicator.join)
        joined.start()
        joined.wait()
        if joined.errors:
            raise next(iter(joined.errors.values()))
        self._members: list[Member] = [joined.results[rank] for rank in range(communicator.ranks)]
        self._process = os.getpid()
        self._running = threading.Lock()
        self._interrupted = False

    def __enter__(self) -> Team:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def ranks(self) -> int:
        """The number of ranks."""
        return len(self._members)

    def run(self, function: Callable[..., T], *arguments: Any) -> list[T]:
        """Calls function(member, *arguments) on every rank at once. Returns the results, by rank.

        If a rank raises, the calls of the other ranks end with Code.remote_error, which names the
        rank and the exception, and run() raises the first exception. After that the team can only
        be closed. run() returns when the functions of all ranks have returned. Exception: a
        KeyboardInterrupt ends all calls, and run() raises it within 0.1 s. A function that is not
        in a call then continues to its next call, which fails.
        """
        if os.getpid() != self._process:
            raise Error(Code.forked, "this process was forked from the team's process; make a team in this process")
        if not self._running.acquire(blocking=False):
            raise Error(Code.invalid_usage, "the team runs something already")

        def fail(rank: int, error: BaseException) -> None:
            member = self._members[rank]
            try:
                if hasattr(error, "add_note"):
                    error.add_note(f"(on rank {rank} of {member.ranks})")
                member._fail(error)
            except BaseException as raised:
                member._fail(raised)
                raise
            finally:
                member.abort()

        try:
            if any(member._comm is None for member in self._members):
                raise Error(Code.invalid_usage, "the team has ended; make a new one")
            played = _Round(self._jobs, lambda rank: function(self._members[rank], *arguments), fail)
            try:
                played.start()
                played.wait()
            except BaseException:  # a signal may arrive at any of these lines
                self._interrupted = True
                for member in self._members:
                    member.abort()
                played.wait(0.05)  # most functions are in a call
                raise
            if played.errors:
                errors = played.errors.values()
                raise min(errors, key=lambda error: isinstance(error, Error) and error.__cause__ is None)
            return [played.results[rank] for rank in range(len(self._members))]
        finally:
            self._running.release()

    def close(self) -> None:
        """Ends the ranks and the threads. A second call has no effect. After a KeyboardInterrupt in
        run() it does not wait for the threads."""
        if os.getpid() == self._process:
            self._end_threads()
            if not self._interrupted:
                for thread in self._threads:
                    thread.join()
        for member in self._members:
            member.close()
