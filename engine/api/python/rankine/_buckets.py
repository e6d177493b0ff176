"""Many small tensors, reduced as few large vectors."""

from __future__ import annotations

from ctypes import byref, c_size_t, c_void_p
from types import TracebackType
from typing import Any, Callable, Sequence

from rankine import _operations
from rankine._buffers import NUMBERS, Buffer
from rankine._library import Code, Error, NotCopied, check, library, refuse, whole
from rankine._member import Member


class Buckets(NotCopied):
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

    def __init__(self, member: Member, bucket_bytes: int = 25_000_000) -> None:
        self._member = member
        self._buffers: list[Buffer] = []
        made = c_void_p()
        bucket_bytes = whole("bucket_bytes", bucket_bytes, 1, 2**63 - 1)
        check(library.rkBucketsCreate(byref(made), bucket_bytes, member._handle))
        self._buckets: int | None = made.value

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

    def __del__(self) -> None:
        if getattr(self, "_buckets", None) is not None:
            self.close()

    def add(self, x: Any, op: str = "sum", *, dtype: str | None = None) -> None:
        """Replaces x by the reduction of all ranks' x, by the end of wait(); until then, x must not
        be resized or used."""
        self._add(library.rkBucketsAdd, x, op, dtype)

    def add_unused(self, x: Any, op: str = "sum", *, dtype: str | None = None) -> None:
        """As add(), for a tensor without data on this rank: the rank contributes zeros. "sum" and
        "avg" only."""
        self._add(library.rkBucketsAddUnused, x, op, dtype)

    def flush(self) -> None:
        """Starts the bucket that is not full."""
        check(library.rkBucketsFlush(self._handle))

    def wait(self) -> None:
        """Flushes, and waits until every tensor added is reduced. Raises the first error."""
        code = library.rkBucketsWait(self._handle)
        if code not in (Code.invalid_usage, Code.forked):
            self._release()
        check(code)

    def all_reduce(self, tensors: Sequence[Any], op: str = "sum", *, dtype: str | None = None) -> None:
        """Adds tensors of one type and waits for all of them."""
        handle, number = self._handle, _number_of(op)
        buffers: list[Buffer] = []
        try:
            for i, x in enumerate(tensors):
                buffers.append(Buffer(f"tensors[{i}]", x, True))
            types = {buffer.type_name(dtype) for buffer in buffers}
            if len(types) > 1:
                refuse(f"tensors have elements of {', '.join(sorted(types))}; allowed is one type")
            n = len(buffers)
            data = (c_void_p * n)(*(buffer.address for buffer in buffers))
            counts = (c_size_t * n)(*(buffer.bytes // buffer.item_bytes for buffer in buffers))
            check(library.rkBucketsAllReduce(handle, n, data, counts, NUMBERS[types.pop()] if types else 0, number))
        finally:
            for buffer in buffers:
                buffer.release()

    @property
    def calls(self) -> int:
        """The number of all-reduces so far."""
        calls = c_size_t()
        check(library.rkBucketsGetCalls(self._handle, byref(calls)))
        return calls.value

    def close(self) -> None:
        """Frees the buckets. Pending tensors end the communicator. A second call has no effect."""
        buckets, self._buckets = self._buckets, None
        if buckets is None:
            return
        if library.rkBucketsDestroy(buckets) == Code.invalid_usage:
            if self._member._comm is not None:
                library.rkCommFail(self._member._comm, b"buckets were closed before their tensors had been waited for")
            library.rkBucketsWait(buckets)
            library.rkBucketsDestroy(buckets)
        self._release()

    @property
    def _handle(self) -> int:
        if self._buckets is None:
            raise Error(Code.invalid_usage, "the buckets have been closed")
        return self._buckets

    def _add(self, function: Callable[..., int], x: Any, op: str, dtype: str | None) -> None:
        handle, number = self._handle, _number_of(op)
        buffer = Buffer("x", x, True)
        try:
            count = buffer.bytes // buffer.item_bytes
            check(function(handle, buffer.address, count, NUMBERS[buffer.type_name(dtype)], number))
        except BaseException:
            buffer.release()
            raise
        self._buffers.append(buffer)

    def _release(self) -> None:
        for buffer in self._buffers:
            buffer.release()
        self._buffers.clear()


def _number_of(op: str) -> int:
    if not isinstance(op, str) or op not in _operations.NUMBERS:
        refuse(f"op is {op!r}; allowed are {', '.join(_operations.NAMES)}")
    return _operations.NUMBERS[op]
