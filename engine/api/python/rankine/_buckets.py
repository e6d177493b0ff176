"""Many small tensors, reduced as few large vectors."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Callable, Sequence

from rankine import _engine
from rankine._engine import OPERATIONS, TYPES, Buffer
from rankine._errors import Code, Error, Owner, refuse, sizes, whole
from rankine._member import Member


class Buckets(Owner):
    """Reduces tensors in place, packed into buckets of at most ``bucket_bytes`` in the order in
    which they are added, as in data-parallel training. A larger tensor is reduced at its own place.

        buckets = rankine.Buckets(me)
        for gradient in gradients:           # as they become ready: a full bucket starts at once
            buckets.add(gradient, op="avg")
        buckets.wait()                       # all are averages now

    All ranks add tensors of equal sizes and types in the same order, and flush at the same
    positions. The thread of the rank uses the buckets, and they must be closed before the member:
    by close(), at the end of a ``with`` block, or by garbage collection. ``op`` is the name of an
    operation.
    """

    _closed = "the buckets have been closed"
    _destroy = _engine.rkBucketsDestroy

    def __init__(self, member: Member, bucket_bytes: int = 25_000_000) -> None:
        self._member = member
        self._buffers: list[Buffer] = []
        bucket_bytes = whole("bucket_bytes", bucket_bytes, 1, 2**63 - 1)
        self._owned = _engine.rkBucketsCreate(bucket_bytes, member._handle)

    def __enter__(self) -> Buckets:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                self.wait()
        finally:
            self.close()

    def add(self, x: Any, op: str = "sum", *, dtype: str | None = None) -> None:
        """Replaces x by the reduction of all ranks' x, by the end of wait(); until then, x must not
        be resized or used."""
        self._add(_engine.rkBucketsAdd, x, op, dtype)

    def add_unused(self, x: Any, op: str = "sum", *, dtype: str | None = None) -> None:
        """As add(), for a tensor without data on this rank: the rank contributes zeros. "sum" and
        "avg" only."""
        self._add(_engine.rkBucketsAddUnused, x, op, dtype)

    def flush(self) -> None:
        """Starts the bucket that is not full."""
        _engine.rkBucketsFlush(self._handle)

    def wait(self, tensors: int | None = None) -> None:
        """Flushes, and waits until every tensor added is reduced. Raises the first error. With
        ``tensors`` waits only for so many, the first ones added since the last complete wait(), and
        flushes if one of them is in a bucket that is not full. With ``bucket_bytes=1`` each tensor is
        a call, such as a block of rows that is multiplied, summed and used while others follow."""
        handle = self._handle
        if tensors is not None:
            return _engine.rkBucketsWaitFor(handle, whole("tensors", tensors, 0, 2**63 - 1))
        try:
            _engine.rkBucketsWait(handle)
        except Error as error:
            if error.code not in (Code.invalid_usage, Code.forked):
                self._buffers.clear()
            raise
        self._buffers.clear()

    def all_reduce(self, tensors: Sequence[Any], op: str = "sum", *, dtype: str | None = None) -> None:
        """Adds tensors of one type and waits for all of them."""
        handle, number = self._handle, _number_of(op)
        buffers = [Buffer(f"tensors[{i}]", x, True) for i, x in enumerate(tensors)]
        types = {buffer.type(dtype) for buffer in buffers} or {0}
        if len(types) > 1:
            names = sorted(name for name, type_number in TYPES.items() if type_number in types)
            refuse(f"tensors have elements of {', '.join(names)}; allowed is one type")
        data = sizes([buffer.address for buffer in buffers])
        lengths = sizes([buffer.bytes // buffer.item_bytes for buffer in buffers])
        _engine.rkBucketsAllReduce(handle, len(buffers), data, lengths, types.pop(), number)

    @property
    def calls(self) -> int:
        """The number of all-reduces so far."""
        return _engine.rkBucketsGetCalls(self._handle)

    def close(self) -> None:
        """Frees the buckets. Pending tensors end the communicator. A second call has no effect."""
        buckets = self._owned
        if buckets is None:
            return
        try:
            super().close()
        except Error as error:
            if error.code == Code.invalid_usage:
                self._destroy_pending(buckets)
        self._buffers.clear()

    def _destroy_pending(self, buckets: int) -> None:
        if self._member._comm is not None:
            _engine.rkCommFail(self._member._comm, b"buckets were closed before their tensors had been waited for")
        try:
            _engine.rkBucketsWait(buckets)
        except Error:  # the failure above
            pass
        _engine.rkBucketsDestroy(buckets)

    def _add(self, function: Callable[..., None], x: Any, op: str, dtype: str | None) -> None:
        handle, number = self._handle, _number_of(op)
        buffer = Buffer("x", x, True)
        function(handle, buffer.address, buffer.bytes // buffer.item_bytes, buffer.type(dtype), number)
        self._buffers.append(buffer)


def _number_of(op: str) -> int:
    if not isinstance(op, str) or op not in OPERATIONS:
        refuse(f"op is {op!r}; allowed are {', '.join(OPERATIONS)}")
    return OPERATIONS[op]
