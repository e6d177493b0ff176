"""One rank's handle and its calls."""

from __future__ import annotations

import array
import os
import sys
from types import CodeType, TracebackType
from typing import Any, Callable, NamedTuple, Sequence, Union

from rankine import _engine
from rankine._engine import OPERATIONS, TYPES, Buffer
from rankine._epilogues import Epilogue
from rankine._errors import Code, Error, NotCopied, counts, ints, milliseconds, refuse, sizes, text, whole
from rankine._operations import Operation, PreMulSum

Reduction = Union[str, PreMulSum, Operation]


def make_ranks(
    smaller: int | None,
    ranks: int,
    name: str | None,
    here: Sequence[int],
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
) -> list[int]:
    """The handles of a new communicator with Communicator's options, or the one into which the
    communicator of the handle ``smaller`` grows."""
    if record_times not in (False, True, "lines"):
        refuse(f"record_times is {record_times!r}; allowed are False, True and 'lines'")
    nodes_in_c = ints("nodes", nodes)
    if len(nodes_in_c) not in (0, 4 * ranks):
        refuse(f"nodes has {len(nodes_in_c) // 4} numbers; allowed are {ranks}, one per rank")
    return _engine.make_ranks(
        smaller,
        ranks,
        text("name", name),
        ints("rank", here),
        milliseconds("timeout", timeout),
        text("wait", wait),
        text("network", network),
        nodes_in_c,
        ints("levels", levels),
        int(tuned),
        int(bool(record_times)),
        whole("plan_bytes", plan_bytes, 0, 2**63 - 1),
        text("order", order),
        -1 if progress_core is None else whole("progress_core", progress_core, 0),
        text("placement", "none" if placement is None else placement),
        whole("ports", ports, 0),
    )


class group:
    """Collects the calls of this thread inside the block, and starts them together at its end,
    which returns when all are over: so no order of messages can deadlock, and one thread can play
    several ranks.

        with rankine.group():
            me.send(x, right)
            me.recv(y, left)

    If one call is refused, none is made. An exception inside the block also drops the calls (other
    ranks wait for them until their deadline). Inner groups are part of the outer one.
    """

    def __enter__(self) -> None:
        _engine.group_start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _engine.group_end(error is not None)


class PortsInUse(NamedTuple):
    """The largest numbers of messages in flight at once, from a rank and to a rank."""

    most_sent: int
    most_received: int


class _Site:
    """The block of a Member.site()."""

    def __init__(self, member: Member, name: str) -> None:
        self._member, self._name, self._before = member, name, ""

    def __enter__(self) -> None:
        self._before = self._member._name_site(self._name)

    def __exit__(self, *_: object) -> None:
        if self._member._comm is not None:
            self._member._name_site(self._before)


class Member(NotCopied, _engine.Rank):
    """A rank of a communicator, made by Communicator.join(), split() or a Team. One thread at a
    time uses it; any thread may use abort(), rank, ranks, cpu and ports_in_use at any time. The
    rank leaves at close(), at the end of a ``with`` block, or by garbage collection: ranks that
    still need it get Code.rank_lost.

    ``dtype`` gives the meaning of unsigned integer words: "bf16", "f16", "f8e4m3", "f8e5m2". ``op``
    is "sum", "prod", "max", "min", "avg", "band", "bor", "bxor", a PreMulSum or an Operation.
    Result buffers must be writable; the program must not use a call's buffers during the call.
    """

    def __init__(self, comm: int, is_alone: bool) -> None:
        """Takes ownership of a rkComm_t; programs get members from other functions. ``is_alone``: no
        other thread of this process plays a rank of the communicator."""
        self._comm = comm
        self._rank, self._ranks = _engine.rkCommUserRank(comm), _engine.rkCommCount(comm)
        self._is_alone = is_alone
        self._operations: dict[Operation, int] = {}
        self._site = ""

    def __enter__(self) -> Member:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if self._comm is not None:
            _engine.rkCommDestroy(self._comm)

    def __repr__(self) -> str:
        state = "" if self._comm is not None else ", closed"
        return f"<rankine.Member: rank {self._rank} of {self._ranks}{state}>"

    @property
    def rank(self) -> int:
        """This member's rank, from 0 to ranks - 1."""
        return self._rank

    @property
    def ranks(self) -> int:
        """The number of ranks."""
        return self._ranks

    @property
    def cpu(self) -> int | None:
        """The CPU that this rank's thread is pinned to, in the operating system's numbering. None:
        the thread may run on several CPUs, or is not known yet."""
        number = _engine.rkCommCpu(self._handle)
        return number if number >= 0 else None

    @property
    def ports_in_use(self) -> PortsInUse:
        """The largest numbers of messages in flight at once so far, with ``ports`` or on a modelled
        network; otherwise zeros."""
        return PortsInUse(*_engine.rkCommPortsInUse(self._handle))

    @property
    def _handle(self) -> int:
        comm = self._comm
        if comm is None:
            raise Error(Code.invalid_usage, f"rank {self._rank}'s member has been closed")
        return comm

    # --- Collectives: every rank makes the same calls in the same order ---

    def all_reduce(
        self,
        x: Any,
        out: Any = None,
        op: Reduction = "sum",
        *,
        dtype: str | None = None,
        epilogue: Epilogue | None = None,
    ) -> None:
        """out = x of all ranks, reduced, with the same bits on every rank. In place without
        ``out``.

        A NaN result is a NaN on each rank, with any sign and payload. Sums, products and averages
        of 16- and 8-bit floats are computed in float32 and rounded once.
        """
        self._all_reduce(x, out, op, dtype, 0, None, epilogue)

    def all_reduce_quantised(
        self, x: Any, out: Any = None, *, dtype: str | None = None, sent: str = "i8", block: int = 128
    ) -> None:
        """out = the sum of all ranks' x (f32, f16 or bf16), in place without ``out``, with 8 bits
        per element on the way: ``sent`` is "i8" or "f8e4m3", with one float for each ``block``
        elements. Less accurate than all_reduce(); quantised_error() bounds the error. The same bits
        on every rank. Not in a group."""
        source = Buffer("x", x, out is None)
        result = source if out is None else Buffer("out", out, True)
        number, count = source.type(dtype), source.bytes // source.item_bytes
        if (result.type(dtype), result.bytes) != (number, source.bytes):
            refuse(f"out has {result.bytes} bytes; allowed are {source.bytes}, of x's type")
        if sent not in TYPES:
            refuse(f"sent is {sent!r}; allowed are 'i8' and 'f8e4m3'")
        blocks = whole("block", block, 1, 65536)
        _engine.rkAllReduceQuantised(source.address, result.address, count, number, TYPES[sent], blocks, self._handle)

    @staticmethod
    def quantised_error(peaks: Sequence[float], dtype: str = "f32", sent: str = "i8") -> float:
        """The largest error of an element of a result of all_reduce_quantised(). ``peaks``: for each
        rank, the largest magnitude in the element's block."""
        for name, value in (("dtype", dtype), ("sent", sent)):
            if value not in TYPES:
                refuse(f"{name} is {value!r}; allowed are {', '.join(TYPES)}")
        numbers = array.array("d", peaks)
        bound: float = _engine.rkQuantisedError(TYPES[dtype], TYPES[sent], numbers.tobytes(), len(numbers))
        return bound

    def reduce(
        self, x: Any, out: Any = None, root: int = 0, op: Reduction = "sum", *, dtype: str | None = None
    ) -> None:
        """As all_reduce() at the root, in place there without ``out``; other ranks do not use
        ``out``."""
        self._reduce(x, out, op, dtype, root, None, None)

    def reduce_scatter(
        self,
        x: Any,
        out: Any,
        op: Reduction = "sum",
        *,
        counts: Sequence[int] | None = None,
        dtype: str | None = None,
        epilogue: Epilogue | None = None,
    ) -> None:
        """out = this rank's block of the reduced inputs; x has one block per rank. ``counts``: the
        elements of each rank's block, equal on all ranks; not with an epilogue."""
        self._reduce_scatter(x, out, op, dtype, 0, counts, epilogue)

    def broadcast(self, x: Any, root: int = 0, *, dtype: str | None = None) -> None:
        """x = the root's x."""
        self._broadcast(x, root, dtype)

    def all_gather(
        self,
        x: Any,
        out: Any,
        *,
        counts: Sequence[int] | None = None,
        dtype: str | None = None,
        epilogue: Epilogue | None = None,
    ) -> None:
        """out = the ranks' x in rank order. ``counts``: the elements of each rank's x; not with an
        epilogue."""
        self._all_gather(x, out, None, dtype, 0, counts, epilogue)

    def gather(
        self, x: Any, out: Any = None, root: int = 0, *, counts: Sequence[int] | None = None, dtype: str | None = None
    ) -> None:
        """out at the root = the ranks' x in rank order; other ranks do not use out."""
        self._gather(x, out, None, dtype, root, counts, None)

    def scatter(
        self, x: Any, out: Any, root: int = 0, *, counts: Sequence[int] | None = None, dtype: str | None = None
    ) -> None:
        """out = this rank's block of the root's x; other ranks do not use x and may pass None."""
        self._scatter(x, out, None, dtype, root, counts, None)

    def scan(self, x: Any, out: Any = None, op: Reduction = "sum", *, dtype: str | None = None) -> None:
        """out at rank r = x of ranks 0 to r, reduced in rank order. In place without ``out``."""
        self._scan(x, out, op, dtype, 0, None, None)

    def exscan(self, x: Any, out: Any = None, op: Reduction = "sum", *, dtype: str | None = None) -> None:
        """As scan() over ranks 0 to r - 1. Rank 0 receives nothing; its ``out`` is unchanged."""
        self._exscan(x, out, op, dtype, 0, None, None)

    def all_to_all(
        self,
        x: Any,
        out: Any = None,
        *,
        counts: Sequence[Any] | None = None,
        in_displacements: Sequence[int] | None = None,
        out_displacements: Sequence[int] | None = None,
        dtype: str | None = None,
    ) -> None:
        """Block d of x goes to rank d, which stores it at the sender's block of out; in place
        without ``out``. ``counts``: elements per pair, counts[sender][receiver], equal on all
        ranks. With counts, blocks may lie anywhere in this rank's x and out: displacements are
        bytes from the beginning, one per peer rank.
        """
        if in_displacements is None and out_displacements is None:
            self._all_to_all(x, out, None, dtype, 0, counts, None)
        elif counts is None:
            refuse("counts is None; allowed with displacements are counts")
        else:
            self._displaced(x, out, counts, in_displacements, out_displacements, dtype)

    def barrier(self) -> None:
        """Returns when all ranks have called it."""
        self._barrier()

    # --- Messages from one rank to one rank: the call of these two alone ---

    def send(self, x: Any, to: int, *, dtype: str | None = None) -> None:
        """Sends x to rank ``to``. Messages from one rank to another are received in the order in
        which they were sent; counts and types must agree. When send() returns, a short message is
        in flight, and a long one has arrived.
        """
        self._send(x, to, dtype)

    def recv(self, out: Any, source: int, *, dtype: str | None = None) -> None:
        """Receives the next message from rank ``source``."""
        self._recv(out, source, dtype)

    def has_message(self, source: int) -> bool:
        """True if rank ``source`` has begun a message to this rank. To receive from any rank, ask
        for each rank; does not wait. Raises an Error with Code.rank_lost if the rank has left."""
        return bool(_engine.rkHasMessage(source, self._handle))

    def exchange(self, x: Any, to: int, out: Any, source: int, *, dtype: str | None = None) -> None:
        """Sends and receives at once, so ranks that send to each other do not deadlock."""
        with group():
            self.send(x, to, dtype=dtype)
            self.recv(out, source, dtype=dtype)

    # --- The communicator ---

    def split(self, color: int | None, key: int = 0) -> Member | None:
        """Collective, not in a group: ranks with equal colors form a new communicator, ordered by
        key, and by rank for equal keys. With color None returns None. Calls started on the part make
        progress in calls of the part and in waits for its requests, not in calls of this member."""
        number = -1 if color is None else whole("color", color, 0)
        if _engine.is_in_group():
            raise Error(Code.invalid_usage, "a group is open; split ranks outside of groups")
        part = _engine.rkCommSplit(self._handle, number, whole("key", key))
        return None if part is None else type(self)(part, self._is_alone)

    def shrink(self) -> Member:
        """Returns this rank's member of a new communicator of the surviving ranks, in their order,
        also after the end of this one. All survivors call it, not in a group; it waits for each rank
        that is neither lost nor closed, at most for the communicator's timeout. Raises an Error with
        Code.rank_lost if the others have gone on without this rank: let its process end."""
        return type(self)(_engine.rkCommShrink(self._handle), self._is_alone)

    def grow(self, ranks: int, name: str, **options: Any) -> Member:
        """Returns this rank's member of a new communicator of ``ranks`` ranks, for processes: the
        ranks of this one keep their numbers, and new processes follow. All ranks call it with equal
        arguments, not in a group; each new process makes ``Communicator(ranks, rank=..., name=name)``
        with equal options and a free rank, before or after. They wait for each other at most for the
        ``timeout`` of the options. A failure is the same for all ranks of this communicator, which
        works after it, unless a rank of it is lost (health()): call shrink(), then grow() again."""
        ranks = whole("ranks", ranks, 1)
        is_alone = self._is_alone and options.get("progress_core") is None
        kind = LineMember if options.get("record_times") == "lines" else Member
        return kind(make_ranks(self._handle, ranks, name, [self._rank], **options)[0], is_alone)

    def agree(self, value: int) -> int:
        """Returns the bitwise AND of the surviving ranks' values (0 to 2**32 - 1), the same on all
        of them; waits and raises as shrink()."""
        return _engine.rkCommAgree(self._handle, whole("value", value, 0, 2**32 - 1))

    def revoke(self) -> None:
        """Ends all calls of all ranks with Code.aborted, from any thread; shrink() still works."""
        _engine.rkCommRevoke(self._handle)

    def set_options(
        self,
        *,
        algorithm: str | None = None,
        transport: str | None = None,
        timeout: float | None = None,
        segments: int = 0,
        group: int = 0,
        aggregation: int = 0,
        radix: int = 0,
        dims: Sequence[int] | None = None,
        skips: Sequence[int] | None = None,
        levels: Sequence[int] | None = None,
        tag: int = 0,
        order: str | None = None,
    ) -> None:
        """Sets options of this rank's later calls, for choices that the engine must not make
        itself; all ranks set equal options. ``algorithm``: a name from `rankine list`. ``timeout``:
        seconds, inf for no limit. ``order``: the guarantee for the last bits of sums, as in
        Communicator.
        """
        _engine.set_options(
            self._handle,
            text("algorithm", algorithm),
            text("transport", transport),
            milliseconds("timeout", timeout),
            whole("segments", segments),
            whole("group", group),
            whole("aggregation", aggregation),
            whole("radix", radix),
            ints("dims", dims),
            ints("skips", skips),
            ints("levels", levels),
            whole("tag", tag, 0, 2**64 - 1),
            text("order", order),
        )

    def site(self, name: str) -> _Site:
        """Names the call site of this rank's calls in a block, for reports of errors and, with
        ``record_times``, for `rankine top`. At most 63 bytes count; a part from split() has separate
        sites.

            with me.site("attention"):
                me.all_reduce(x)
        """
        return _Site(self, name)

    def _name_site(self, name: str) -> str:
        """Returns the name before it."""
        _engine.rkCommSetCallSite(self._handle, text("name", name))
        before, self._site = self._site, name
        return before

    @property
    def order(self) -> str | None:
        """The order requested for the Communicator; None if none."""
        return _engine.rkCommGetOrder(self._handle) or None

    def progress(self) -> None:
        """Makes calls progress that this thread has started. Does not wait."""
        _engine.rkCommProgress(self._handle)

    def health(self) -> Code:
        """Code.success while the communicator works, otherwise the reason of its end."""
        return Code(_engine.rkCommGetAsyncError(self._handle))

    def flight_record(self) -> str:
        """The last actions of every rank, as JSON."""
        return _engine.flight_record(self._handle)

    def model_time(self) -> float:
        """On a modelled network: the model's time in seconds at which this rank's last call ended;
        otherwise 0."""
        return _engine.rkCommModelTime(self._handle)

    def compute(self, seconds: float) -> None:
        """On a modelled network: local work of this rank that takes ``seconds`` seconds of the
        model."""
        _engine.rkCommCompute(self._handle, seconds)

    def close(self) -> None:
        """The rank leaves. A second call has no effect. Raises an error while another thread is in
        a call."""
        if self._comm is not None:
            _engine.rkCommDestroy(self._comm)
            self._comm = None
            self._operations.clear()

    def abort(self) -> None:
        """Ends all calls of all ranks with Code.aborted, from any thread, and closes this member."""
        comm, self._comm = self._comm, None
        if comm is not None:
            _engine.rkCommAbort(comm)

    def _fail(self, error: BaseException) -> None:
        """Ends all calls of all ranks with an error that names this rank and the exception."""
        comm = self._comm
        if comm is not None:
            why = f"{type(error).__name__}: {error}".replace("\0", " ")
            _engine.rkCommFail(comm, why.encode(errors="replace"))

    # --- For rankine._engine ---

    def _handle_of(self, epilogue: Epilogue, result_bytes: int) -> int:
        if not isinstance(epilogue, Epilogue):
            raise TypeError(f"epilogue is a {type(epilogue).__name__}; allowed is a rankine.Epilogue")
        epilogue.check_rows(result_bytes)
        return epilogue._handle

    def _created(self, op: Operation) -> int:
        """Returns the number of an operation, also of calls that are in flight when ``op`` is garbage."""
        if op not in self._operations:
            self._operations[op] = _engine.create_operation(
                self._handle, op._call, op._number, op.element_bytes, op.commutative
            )
        return self._operations[op]

    def _multiplied(self, op: object, number: int) -> int:
        """Returns the number of a new operation for one call on elements of this type."""
        if not isinstance(op, PreMulSum):
            refuse(f"op is {op!r}; allowed are {', '.join(OPERATIONS)}, a PreMulSum or an Operation")
        return _engine.rkRedOpCreatePreMulSum(op.packed(list(TYPES)[number]), number, self._handle)

    def _displaced(
        self,
        x: Any,
        out: Any,
        pairs: Sequence[Any],
        in_displacements: Sequence[int] | None,
        out_displacements: Sequence[int] | None,
        dtype: str | None,
    ) -> None:
        n, me = self._ranks, self._rank
        table = counts(pairs, n * n)
        blocks = memoryview(table).cast("Q")
        data = Buffer("x", x, out is None)
        result = data if out is None else Buffer("out", out, True)
        number = data.type(dtype)
        if result.type(dtype) != number:
            names = list(TYPES)
            refuse(f"out has elements of {names[result.type(dtype)]}; allowed is {names[number]}, as in x")
        lists: list[bytes | None] = []
        for buffer, of, name, given, mine in (
            (data, "x", "in_displacements", in_displacements, blocks[me * n : me * n + n]),
            (result, "out", "out_displacements", out_displacements, blocks[me::n]),
        ):
            lengths = [count * buffer.item_bytes for count in mine]
            places = [sum(lengths[:i]) for i in range(n)]
            if given is not None:
                places = [whole(name, place, 0, 2**62 - 1) for place in given]
            if len(places) != n:
                refuse(f"{name} is {given!r}; allowed are {n} numbers of bytes, 0 and more")
            for i, (place, length) in enumerate(zip(places, lengths)):
                if length > 0 and place + length > buffer.bytes:
                    refuse(f"{of} has {buffer.bytes} bytes; the block of rank {i} ends at byte {place + length}")
            lists.append(None if given is None else sizes(places))
        _engine.rkAllToAllDisplaced(data.address, lists[0], result.address, lists[1], table, number, self._handle)
        _engine.keep((data, result))


_HERE = os.path.dirname(__file__) + os.sep
_lines: dict[int, tuple[CodeType, dict[int, bytes]]] = {}  # by the code's id


def _line_of_caller() -> bytes:
    """The file and line that makes a call of this package."""
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_HERE):
        frame = frame.f_back
    code, line = frame.f_code, frame.f_lineno
    lines = (_lines.get(id(code)) or _lines.setdefault(id(code), (code, {})))[1]
    if line not in lines:
        lines[line] = f"{os.path.basename(code.co_filename)}:{line}".encode(errors="replace")
    return lines[line]


def _at_line(call: Callable[..., Any]) -> Callable[..., Any]:
    def at_line(self: Member, *arguments: Any) -> Any:
        if not self._site:
            _engine.rkCommSetCallSite(self._handle, _line_of_caller())
        return call(self, *arguments)

    return at_line


class LineMember(Member):
    """A Member whose calls have their lines as call sites, unless site() names one."""


for _call in ("all_reduce", "reduce", "reduce_scatter", "all_gather", "gather", "scatter", "scan", "exscan",
              "all_to_all", "broadcast", "barrier"):  # fmt: skip
    setattr(LineMember, f"_{_call}", _at_line(getattr(_engine.Rank, f"_{_call}")))
