"""One rank's handle and its calls."""

from __future__ import annotations

import ctypes
import threading
from ctypes import byref, c_char_p, c_double, c_int, c_size_t, c_void_p
from types import TracebackType
from typing import Any, Callable, NamedTuple, Sequence, Union

from rankine import _operations
from rankine._buffers import NUMBERS, OPAQUE, Buffer
from rankine._callbacks import HasRaised, raise_for
from rankine._library import (
    CallOptions,
    Code,
    Error,
    NotCopied,
    check,
    ints,
    last_error,
    library,
    listen_to_signals,
    milliseconds,
    refuse,
    text,
    whole,
)
from rankine._epilogues import Epilogue
from rankine._operations import Operation, PreMulSum

Reduction = Union[str, PreMulSum, Operation]


class _Moves:
    """Used instead of a Reduction for calls that only move data."""


_moves = _Moves()


class _OpenGroups(threading.local):
    depth = 0

    def __init__(self) -> None:
        self.buffers: list[Buffer] = []
        self.callbacks: list[HasRaised] = []

    def take(self) -> tuple[list[Buffer], list[HasRaised]]:
        taken = self.buffers, self.callbacks
        self.buffers, self.callbacks = [], []
        return taken


_open = _OpenGroups()


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
        check(library.rkGroupStart())
        _open.depth += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _open.depth -= 1
        if error is not None:
            library.rkBarrier(None)  # an invalid call: rkGroupEnd() then makes none
        code = library.rkGroupEnd()
        if _open.depth > 0:
            return
        buffers, callbacks = _open.take()
        for buffer in buffers:
            buffer.release()
        if error is None:
            raise_for(code, callbacks)


def group_of_calls(
    end: Callable[[], int], call: Callable[..., object], arguments: Any, options: Any
) -> tuple[list[Buffer], list[HasRaised]]:
    """Runs ``call`` in a group and ends the group by ``end()``. Returns the buffers and callbacks
    of its calls."""
    if _open.depth > 0:
        raise Error(Code.invalid_usage, "a group is open; start calls outside of groups")
    check(library.rkGroupStart())
    _open.depth = 1
    try:
        call(*arguments, **options)
        code = end()
        if code != 0:
            raise last_error(code)
        return _open.take()
    except BaseException:
        library.rkBarrier(None)  # if the group is still open, it makes no calls
        library.rkGroupEnd()
        for buffer in _open.take()[0]:
            buffer.release()
        raise
    finally:
        _open.depth = 0


class PortsInUse(NamedTuple):
    """The largest numbers of messages in flight at once, from a rank and to a rank."""

    most_sent: int
    most_received: int


class Member(NotCopied):
    """A rank of a communicator, made by Communicator.join(), split() or a Team. One thread at a
    time uses it; any thread may use abort(), rank, ranks, cpu and ports_in_use at any time. The
    rank leaves at close(), at the end of a ``with`` block, or by garbage collection: ranks that
    still need it get Code.rank_lost.

    ``dtype`` gives the meaning of unsigned integer words: "bf16", "f16", "f8e4m3", "f8e5m2". ``op``
    is "sum", "prod", "max", "min", "avg", "band", "bor", "bxor", a PreMulSum or an Operation.
    Result buffers must be writable; the program must not use a call's buffers during the call.
    """

    def __init__(self, comm: int) -> None:
        """Takes ownership of a rkComm_t; programs get members from other functions."""
        listen_to_signals()
        self._comm: int | None = comm
        self._operations: dict[Operation, int] = {}
        number = c_int()
        check(library.rkCommUserRank(comm, byref(number)))
        self._rank = number.value
        check(library.rkCommCount(comm, byref(number)))
        self._ranks = number.value

    def __enter__(self) -> Member:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        comm = getattr(self, "_comm", None)
        if comm is not None:
            library.rkCommDestroy(comm)

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
        number = c_int()
        check(library.rkCommCpu(self._handle, byref(number)))
        return number.value if number.value >= 0 else None

    @property
    def ports_in_use(self) -> PortsInUse:
        """The largest numbers of messages in flight at once so far, with ``ports`` or on a modelled
        network; otherwise zeros."""
        sent, received = c_int(), c_int()
        check(library.rkCommPortsInUse(self._handle, byref(sent), byref(received)))
        return PortsInUse(sent.value, received.value)

    def _pin_thread(self) -> None:
        check(library.rkCommPinThread(self._handle))

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
        data, result = self._pair(x, out)
        function = library.rkAllReduce if epilogue is None else library.rkAllReduceThen
        self._collective(function, function, data, result, op, dtype, (1, 1), None, epilogue=epilogue)

    def reduce(
        self, x: Any, out: Any = None, root: int = 0, op: Reduction = "sum", *, dtype: str | None = None
    ) -> None:
        """As all_reduce() at the root, in place there without ``out``; other ranks do not use
        ``out``."""
        root = whole("root", root)
        data, result = self._pair(x, out) if root == self._rank else (Buffer("x", x, False), None)
        self._collective(library.rkReduce, library.rkReduce, data, result, op, dtype, (1, 1), None, root)

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
        data, result = Buffer("x", x, False), Buffer("out", out, True)
        blocks = self._counts(counts, self._ranks)
        sizes = (self._ranks, 1) if blocks is None else (sum(blocks), blocks[self._rank])
        even = library.rkReduceScatter if epilogue is None else library.rkReduceScatterThen
        self._collective(
            even, library.rkReduceScatterCounts, data, result, op, dtype, sizes, blocks, epilogue=epilogue
        )

    def broadcast(self, x: Any, root: int = 0, *, dtype: str | None = None) -> None:
        """x = the root's x."""
        data = Buffer("x", x, True)
        number, count = self._elements(data, dtype)
        self._run(library.rkBcast, (data,), (), data.address, count, number, whole("root", root))

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
        data, result = Buffer("x", x, False), Buffer("out", out, True)
        blocks = self._counts(counts, self._ranks)
        sizes = (1, self._ranks) if blocks is None else (blocks[self._rank], sum(blocks))
        even = library.rkAllGather if epilogue is None else library.rkAllGatherThen
        self._collective(
            even, library.rkAllGatherCounts, data, result, _moves, dtype, sizes, blocks, epilogue=epilogue
        )

    def gather(
        self, x: Any, out: Any = None, root: int = 0, *, counts: Sequence[int] | None = None, dtype: str | None = None
    ) -> None:
        """out at the root = the ranks' x in rank order; other ranks do not use out."""
        root = whole("root", root)
        data = Buffer("x", x, False)
        result = Buffer("out", out, True) if root == self._rank else None
        blocks = self._counts(counts, self._ranks)
        sizes = (1, self._ranks) if blocks is None else (blocks[self._rank], sum(blocks))
        self._collective(library.rkGather, library.rkGatherCounts, data, result, _moves, dtype, sizes, blocks, root)

    def scatter(
        self, x: Any, out: Any, root: int = 0, *, counts: Sequence[int] | None = None, dtype: str | None = None
    ) -> None:
        """out = this rank's block of the root's x; other ranks do not use x and may pass None."""
        root = whole("root", root)
        data = Buffer("x", x, False) if root == self._rank else None
        result = Buffer("out", out, True)
        blocks = self._counts(counts, self._ranks)
        sizes = (self._ranks, 1) if blocks is None else (sum(blocks), blocks[self._rank])
        self._collective(library.rkScatter, library.rkScatterCounts, data, result, _moves, dtype, sizes, blocks, root)

    def scan(self, x: Any, out: Any = None, op: Reduction = "sum", *, dtype: str | None = None) -> None:
        """out at rank r = x of ranks 0 to r, reduced in rank order. In place without ``out``."""
        data, result = self._pair(x, out)
        self._collective(library.rkScan, library.rkScan, data, result, op, dtype, (1, 1), None)

    def exscan(self, x: Any, out: Any = None, op: Reduction = "sum", *, dtype: str | None = None) -> None:
        """As scan() over ranks 0 to r - 1. Rank 0 receives nothing; its ``out`` is unchanged."""
        data, result = self._pair(x, out)
        self._collective(library.rkExscan, library.rkExscan, data, result, op, dtype, (1, 1), None)

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
        n, me = self._ranks, self._rank
        blocks = self._counts(counts, n * n)
        if in_displacements is not None or out_displacements is not None:
            if blocks is None:
                refuse("counts is None; allowed with displacements are counts")
            self._displaced(x, out, blocks, in_displacements, out_displacements, dtype)
            return
        if blocks is not None and out is None:
            refuse("out is None; allowed with counts is a separate buffer")
        data, result = self._pair(x, out)
        sizes = (n, n) if blocks is None else (sum(blocks[me * n : me * n + n]), sum(blocks[me::n]))
        self._collective(library.rkAllToAll, library.rkAllToAllCounts, data, result, _moves, dtype, sizes, blocks)

    def barrier(self) -> None:
        """Returns when all ranks have called it."""
        self._run(library.rkBarrier, (), ())

    # --- Messages from one rank to one rank: the call of these two alone ---

    def send(self, x: Any, to: int, *, dtype: str | None = None) -> None:
        """Sends x to rank ``to``. Messages from one rank to another are received in the order in
        which they were sent; counts and types must agree. When send() returns, a short message is
        in flight, and a long one has arrived.
        """
        data = Buffer("x", x, False)
        number, count = self._elements(data, dtype)
        self._run(library.rkSend, (data,), (), data.address, count, number, whole("to", to))

    def recv(self, out: Any, source: int, *, dtype: str | None = None) -> None:
        """Receives the next message from rank ``source``."""
        data = Buffer("out", out, True)
        number, count = self._elements(data, dtype)
        self._run(library.rkRecv, (data,), (), data.address, count, number, whole("source", source))

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
        if _open.depth > 0:
            raise Error(Code.invalid_usage, "a group is open; split ranks outside of groups")
        part = c_void_p()
        check(library.rkCommSplit(self._handle, number, whole("key", key), byref(part)))
        return None if part.value is None else Member(part.value)

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
        options = CallOptions(ctypes.sizeof(CallOptions), text("algorithm", algorithm), text("transport", transport))
        options.timeoutMs = milliseconds("timeout", timeout)
        options.segments, options.group = whole("segments", segments), whole("group", group)
        options.aggregation, options.radix = whole("aggregation", aggregation), whole("radix", radix)
        options.dims, options.dimCount = ints("dims", dims)
        options.skips, options.skipCount = ints("skips", skips)
        options.levels, options.levelCount = ints("levels", levels)
        options.tag = whole("tag", tag, 0, 2**64 - 1)
        options.order = text("order", order)
        check(library.rkCommSetCallOptions(self._handle, byref(options)))

    @property
    def order(self) -> str | None:
        """The order requested for the Communicator; None if none."""
        name = c_char_p()
        check(library.rkCommGetOrder(self._handle, byref(name)))
        return name.value.decode() if name.value else None

    def progress(self) -> None:
        """Makes calls progress that this thread has started. Does not wait."""
        check(library.rkCommProgress(self._handle))

    def health(self) -> Code:
        """Code.success while the communicator works, otherwise the reason of its end."""
        code = c_int()
        check(library.rkCommGetAsyncError(self._handle, byref(code)))
        return Code(code.value)

    def flight_record(self) -> str:
        """The last actions of every rank, as JSON."""
        size, needed = 4096, c_size_t()
        while True:
            taken = ctypes.create_string_buffer(size)
            check(library.rkCommFlightRecord(self._handle, taken, size, byref(needed)))
            if needed.value <= size:
                return taken.value.decode()
            size = needed.value  # the text may have grown meanwhile

    def model_time(self) -> float:
        """On a modelled network: the model's time in seconds at which this rank's last call ended;
        otherwise 0."""
        seconds = c_double()
        check(library.rkCommModelTime(self._handle, byref(seconds)))
        return seconds.value

    def compute(self, seconds: float) -> None:
        """On a modelled network: local work of this rank that takes ``seconds`` seconds of the
        model."""
        check(library.rkCommCompute(self._handle, seconds))

    def close(self) -> None:
        """The rank leaves. A second call has no effect. Raises an error while another thread is in
        a call."""
        if self._comm is not None:
            check(library.rkCommDestroy(self._comm))
            self._comm = None
            self._operations.clear()

    def abort(self) -> None:
        """Ends all calls of all ranks with Code.aborted, from any thread, and closes this member."""
        comm, self._comm = self._comm, None
        if comm is not None:
            check(library.rkCommAbort(comm))

    def _fail(self, error: BaseException) -> None:
        """Ends all calls of all ranks with an error that names this rank and the exception."""
        comm = self._comm
        if comm is not None:
            why = f"{type(error).__name__}: {error}".replace("\0", " ")
            library.rkCommFail(comm, why.encode(errors="replace"))

    # --- How calls are made ---

    @staticmethod
    def _pair(x: Any, out: Any) -> tuple[Buffer, Buffer]:
        if out is None:
            data = Buffer("x", x, True)
            return data, data
        return Buffer("x", x, False), Buffer("out", out, True)

    def _counts(self, counts: Sequence[Any] | None, blocks: int) -> list[int] | None:
        if counts is None:
            return None
        rows = [row if hasattr(row, "__len__") else (row,) for row in counts]
        flat = [whole("counts", count, 0, 2**48 - 1) for row in rows for count in row]
        if len(flat) != blocks:
            refuse(f"counts is {counts!r}; allowed are {blocks} counts, 0 and more")
        return flat

    @staticmethod
    def _elements(data: Buffer, dtype: str | None) -> tuple[int, int]:
        """Returns type and count."""
        return NUMBERS[data.type_name(dtype)], data.bytes // data.item_bytes

    @staticmethod
    def _sizes(
        data: Buffer | None, result: Buffer | None, element_bytes: int, sizes: tuple[int, int], counts: list[int] | None
    ) -> int:
        """Returns the count argument of the call: ``sizes`` are the numbers of blocks of in and
        out, or with ``counts`` their numbers of elements. Refuses inconsistent sizes."""
        has = []
        for buffer in (data, result):
            if buffer is not None and buffer.bytes % element_bytes != 0:
                refuse(f"{buffer.name} has {buffer.bytes} bytes; allowed are multiples of {element_bytes}, an element")
            has.append(None if buffer is None else buffer.bytes // element_bytes)
        needs = sizes
        unit = 1
        if counts is None:
            # The buffer that is a single block, if present, determines the block size.
            leads = 0 if has[0] is not None and (sizes[0] == 1 or has[1] is None) else 1
            unit = (has[leads] or 0) // sizes[leads]
            needs = (unit * sizes[0], unit * sizes[1])
        for buffer, count, need in zip((data, result), has, needs):
            if buffer is not None and count != need:
                refuse(f"{buffer.name} has {count} elements; allowed are {need}, by the other buffer and the ranks")
        return unit

    def _collective(
        self,
        even: Callable[..., int],
        uneven: Callable[..., int],
        data: Buffer | None,
        result: Buffer | None,
        op: Reduction | _Moves,
        dtype: str | None,
        sizes: tuple[int, int],
        counts: list[int] | None,
        *root: int,
        epilogue: Epilogue | None = None,
    ) -> None:
        """Makes a collective call."""
        last: tuple[int, ...] = root
        callbacks: tuple[HasRaised, ...] = ()
        if epilogue is not None:
            if counts is not None:
                refuse("counts are given; allowed with an epilogue are blocks of one size, without counts")
            if not isinstance(epilogue, Epilogue):
                raise TypeError(f"epilogue is a {type(epilogue).__name__}; allowed is a rankine.Epilogue")
            assert result is not None
            epilogue.check_rows(result.bytes)
            last = (epilogue._handle,)
            callbacks = (epilogue,)
            epilogue._take_raised()
        buffers = tuple(buffer for buffer in (data, None if result is data else result) if buffer is not None)
        created: int | None = None
        if isinstance(op, Operation):
            number, element_bytes = OPAQUE, op.element_bytes
            op_number = self._operations.get(op) or self._create(op)
            callbacks += (op,)
            op._take_raised()
        else:
            one, other = buffers[0], buffers[-1]
            name = one.type_name(dtype)
            if other is not one and other.type_name(dtype) != name:
                refuse(f"{other.name} has elements of {other.type_name(dtype)}; allowed is {name}, as in {one.name}")
            number, element_bytes = NUMBERS[name], one.item_bytes
            if op is _moves:
                op_number = 0
            elif isinstance(op, PreMulSum):
                made = c_int()
                packed = op.packed(name)
                check(library.rkRedOpCreatePreMulSum(byref(made), packed, number, self._handle))
                op_number = created = made.value
            elif isinstance(op, str) and op in _operations.NUMBERS:
                op_number = _operations.NUMBERS[op]
            else:
                refuse(f"op is {op!r}; allowed are {', '.join(_operations.NAMES)}, a PreMulSum or an Operation")
        unit: Any
        plain = counts is None and sizes == (1, 1) and number != OPAQUE  # the most frequent case
        if plain and data and result and data.bytes == result.bytes:
            unit = data.bytes // element_bytes
        else:
            unit = self._sizes(data, result, element_bytes, sizes, counts)
        function = even
        if counts is not None:
            function, unit = uneven, (c_size_t * len(counts))(*counts)
        reduction = () if op is _moves else (op_number,)
        addresses = (None if data is None else data.address, None if result is None else result.address)
        try:
            self._run(function, buffers, callbacks, *addresses, unit, number, *reduction, *last)
        finally:
            if created is not None and self._comm is not None:
                library.rkRedOpDestroy(created, self._comm)

    def _displaced(
        self,
        x: Any,
        out: Any,
        blocks: list[int],
        in_displacements: Sequence[int] | None,
        out_displacements: Sequence[int] | None,
        dtype: str | None,
    ) -> None:
        n, me = self._ranks, self._rank
        data, result = self._pair(x, out)
        if data.type_name(dtype) != result.type_name(dtype):
            refuse(f"out has elements of {result.type_name(dtype)}; allowed is {data.type_name(dtype)}, as in x")
        lists: list[Any] = []
        for buffer, name, given, mine in (
            (data, "in_displacements", in_displacements, blocks[me * n : me * n + n]),
            (result, "out_displacements", out_displacements, blocks[me::n]),
        ):
            sizes = [count * buffer.item_bytes for count in mine]
            places = [sum(sizes[:i]) for i in range(n)]
            if given is not None:
                places = [whole(name, place, 0, 2**62 - 1) for place in given]
            if len(places) != n:
                refuse(f"{name} is {given!r}; allowed are {n} numbers of bytes, 0 and more")
            for i, (place, size) in enumerate(zip(places, sizes)):
                if size > 0 and place + size > buffer.bytes:
                    refuse(f"{buffer.name} has {buffer.bytes} bytes; the block of rank {i} ends at byte {place + size}")
            lists.append(None if given is None else (c_size_t * n)(*places))
        self._run(
            library.rkAllToAllDisplaced,
            (data, result),
            (),
            data.address,
            lists[0],
            result.address,
            lists[1],
            (c_size_t * len(blocks))(*blocks),
            NUMBERS[data.type_name(dtype)],
        )

    def _create(self, op: Operation) -> int:
        made = c_int()
        check(
            library.rkRedOpCreate(
                byref(made), op.thunk, op.element_bytes, int(op.commutative), None, self._handle
            )
        )
        self._operations[op] = made.value
        return made.value

    def _run(
        self,
        function: Callable[..., int],
        buffers: Sequence[Buffer],
        callbacks: Sequence[HasRaised],
        *arguments: Any,
    ) -> None:
        comm = self._handle
        collected = False
        try:
            code = function(*arguments, comm)
            collected = code == 0 and _open.depth > 0
        except ctypes.ArgumentError as error:
            refuse(f"an argument has the wrong type: {error}")
        finally:
            if collected:
                _open.buffers.extend(buffers)
                _open.callbacks.extend(callbacks)
            else:
                for buffer in buffers:
                    buffer.release()
        if not collected and (code != 0 or callbacks):
            raise_for(code, callbacks)
