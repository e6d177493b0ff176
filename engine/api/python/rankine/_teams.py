"""All ranks of a communicator: for threads of the caller's, on Python threads of a Team's, or one for
each of several processes."""

from __future__ import annotations

import concurrent.futures
import ctypes
import os
import threading
from ctypes import byref, c_void_p
from typing import Any, Callable, Sequence, TypeVar

from rankine._library import (
    Code,
    Config,
    Error,
    UniqueId,
    check,
    ints,
    library,
    listen_to_signals,
    milliseconds,
    refuse,
    text,
    whole,
)
from rankine._member import Member

T = TypeVar("T")

_MOST_RANKS = 4096  # on a modelled network; what else ranks can be has fewer, and the library says so


class Communicator:
    """Ranks that wait for threads to play them: ``me = comm.join(rank)`` on each.

    ``timeout``: seconds that a call may wait for its peers before it ends the communicator; None is
    30, inf is for ever. ``wait``: "spin", "yield", "park", or None: as the cores allow. ``network``:
    a modelled network for all calls, as RANKINE_NETWORK has it. ``nodes``: the memory node of each
    rank, -1 for any. ``levels``: sizes of groups of neighbouring ranks, innermost first. ``tuned``:
    this machine's tuning table chooses algorithms, where there is one. ``record_times``: flight
    records have times. ``plan_bytes``: memory that the planning of a call may take; 0 is 1 GiB.
    ``order``: what is promised of the last bits of sums: "coherent", "repeatable", "by_rank",
    "size_invariant" or "group_invariant". ``progress_core``: the CPU of a thread that moves on what
    ranks have started (rankine.start) while they do other things, and sleeps else.

    ``rank`` and ``name``: ranks are processes of one user on one machine, this one plays that rank,
    and they find each other by the name, of letters, digits, ".", "-" and "_". Each makes a
    communicator so, which waits for all of them, no longer than the timeout, and joins it as its rank.
    ``more_ranks``: further ranks that this process plays, each on a thread of its own.
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
        record_times: bool = False,
        plan_bytes: int = 0,
        order: str | None = None,
        progress_core: int | None = None,
        rank: int | None = None,
        name: str | None = None,
        more_ranks: Sequence[int] = (),
    ) -> None:
        listen_to_signals()
        ranks = whole("ranks", ranks, 1, _MOST_RANKS)
        config = Config(
            ctypes.sizeof(Config), milliseconds("timeout", timeout), text("wait", wait), text("network", network)
        )
        config.nodes, given = ints("nodes", nodes)
        if given not in (0, ranks):
            refuse(f"nodes has {given} numbers; there are {ranks} ranks")
        config.levels, config.levelCount = ints("levels", levels)
        config.tuned, config.recordTimes = int(tuned), int(record_times)
        config.planBytes = whole("plan_bytes", plan_bytes, 0, 2**63 - 1)
        config.order = text("order", order)
        config.progressCore = -1 if progress_core is None else whole("progress_core", progress_core, 0)
        self._members: list[Member | None]
        here = [*(() if rank is None else (rank,)), *more_ranks]
        for one in here:
            if not isinstance(one, int) or not 0 <= one < ranks:
                which = "rank" if one is rank else "more_ranks"
                refuse(f"{which} is {one!r}; allowed are 0 to {ranks - 1}")
        self._here = here or range(ranks)
        if rank is None and name is None and not here:
            comms = (c_void_p * ranks)()
            check(library.rkCommInitAllConfig(comms, ranks, byref(config)))
            self._members = [Member(comm) for comm in comms if comm is not None]
        else:
            if rank is None or name is None:
                refuse(f"rank is {rank!r}, name is {name!r}; ranks that are processes have both, threads none")
            unique = UniqueId()
            check(library.rkGetUniqueIdByName(byref(unique), text("name", name)))
            comms = [c_void_p() for _ in here]
            if len(here) == 1:
                check(library.rkCommInitRankConfig(byref(comms[0]), ranks, unique, rank, byref(config)))
            else:
                check(library.rkGroupStart())
                for comm, one in zip(comms, here):  # what is refused is said at the group's end
                    library.rkCommInitRankConfig(byref(comm), ranks, unique, one, byref(config))
                check(library.rkGroupEnd())
            self._members = [None] * ranks
            for comm, one in zip(comms, here):
                self._members[one] = Member(comm.value)
        self._lock = threading.Lock()

    @property
    def ranks(self) -> int:
        """How many there are."""
        return len(self._members)

    def join(self, rank: int) -> Member:
        """That rank, for the thread that plays it; each can be had once. It waits for nobody."""
        listen_to_signals()
        rank = whole("rank", rank, 0, len(self._members) - 1)
        if rank not in self._here:
            ours = ", ".join(map(str, self._here))
            refuse(f"rank is {rank}, which another process plays; this one plays rank {ours}")
        with self._lock:
            member, self._members[rank] = self._members[rank], None
        if member is None:
            raise Error(Code.invalid_usage, f"rank {rank} has joined already")
        return member


class Team:
    """Ranks on Python threads of their own: ``Team(4).run(f)`` calls f(member) on each.

    The threads hold the GIL while they run Python and let go of it in calls; they are not pinned.
    Options are those of Communicator.
    """

    def __init__(self, ranks: int, **options: Any) -> None:
        communicator = Communicator(ranks, **options)
        self._members = [communicator.join(rank) for rank in range(ranks)]
        self._threads = concurrent.futures.ThreadPoolExecutor(ranks, "rankine")
        self._process = os.getpid()
        self._running = threading.Lock()
        self._interrupted = False

    def __enter__(self) -> Team:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def ranks(self) -> int:
        """How many there are."""
        return len(self._members)

    def run(self, function: Callable[..., T], *arguments: Any) -> list[T]:
        """function(member, *arguments) on every rank at once; what each returned, by rank.

        A rank that raises ends the calls of the others with Code.remote_error, which names the rank
        and the exception, and run() raises what came first. After that the team can only be closed.
        run() returns when the functions of all ranks have, but for a KeyboardInterrupt: it ends all
        calls, and run() raises it within 0.1 s. A function that is in no call then goes on to its
        next one, which fails."""
        if os.getpid() != self._process:
            raise Error(Code.forked, "this process was forked from the one whose team this is; make one of its own")
        if not self._running.acquire(blocking=False):
            raise Error(Code.invalid_usage, "the team runs something already")
        errors: list[BaseException] = []

        def play(member: Member) -> T:
            try:
                return function(member, *arguments)
            except BaseException as error:
                if hasattr(error, "add_note"):
                    error.add_note(f"(on rank {member.rank} of {member.ranks})")
                errors.append(error)
                member._fail(error)
                member.abort()
                raise

        try:
            if any(member._comm is None for member in self._members):
                raise Error(Code.invalid_usage, "the team has ended; make a new one")
            played: list[concurrent.futures.Future[T]] = []
            try:
                for member in self._members:
                    played.append(self._threads.submit(play, member))
                concurrent.futures.wait(played)
            except BaseException:  # a signal, at any of these lines
                self._interrupted = True
                for member in self._members:
                    member.abort()
                concurrent.futures.wait(played, 0.05)  # most are in a call
                raise
            if errors:
                raise min(errors, key=lambda error: isinstance(error, Error) and error.__cause__ is None)
            return [future.result() for future in played]
        finally:
            self._running.release()

    def close(self) -> None:
        """All ranks leave and the threads end. A second time does nothing. After a KeyboardInterrupt in
        run() it does not wait for the threads."""
        if os.getpid() == self._process:
            self._threads.shutdown(wait=not self._interrupted)
        for member in self._members:
            member.close()
