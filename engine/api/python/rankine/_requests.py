"""Calls that are not waited for."""

from __future__ import annotations

import asyncio
import collections
from ctypes import byref, c_char_p, c_int, c_void_p
from types import TracebackType
from typing import Any, Callable, Generator, Sequence

from rankine._buffers import Buffer
from rankine._callbacks import HasRaised, raise_for
from rankine._library import Code, Error, check, library, milliseconds, refuse
from rankine._member import group_of_calls

_start = library.rkRequestStart
_wait = library.rkRequestWait

# Requests that nobody refers to while they are under way go on, with their buffers, until the next
# one is made.
_left: collections.deque[tuple[int, Sequence[Buffer], Sequence[HasRaised]]] = collections.deque()


class Request:
    """Calls of start() or prepare(): they go on while Python does other things.

    They are calls like any other: all ranks make them in the same order, counted by when they are
    started. Buffers are theirs, and cannot be resized, from start() until done() is true or wait()
    has returned. They move on while a thread that plays their ranks is in a call of this package
    (done() and Member.progress() wait for nobody), or on the Communicator's progress_core.

    One thread at a time uses it. ``await request`` is wait() that lets other tasks run. In a ``with``
    statement it is waited for at the end, where it has not been, and closed.
    """

    def __init__(self, request: int, buffers: Sequence[Buffer], callbacks: Sequence[HasRaised], out: bool) -> None:
        """Takes over a rkRequest_t; programs get requests from start() and prepare()."""
        self._request: int | None = request
        self._buffers, self._callbacks, self._out = buffers, callbacks, out
        self._over = c_int()
        for _ in range(len(_left)):
            try:  # one at a time: the collector may add more at any moment, and other threads take some
                one = _left.popleft()
            except IndexError:
                break
            if library.rkRequestFree(one[0]) != 0:
                _left.append(one)

    def __del__(self) -> None:
        request = getattr(self, "_request", None)
        if request is not None and library.rkRequestFree(request) != 0:
            _left.append((request, self._buffers, self._callbacks))

    def __enter__(self) -> Request:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self._out:
                self.wait()
        except Error:
            if error is None:
                raise
        finally:
            self.close()

    def __reduce__(self) -> Any:
        raise TypeError("a rankine.Request cannot be copied or pickled: it is of this process's ranks")

    def start(self) -> None:
        """Makes the calls once more, of a request that was prepared or has been waited for: with the
        same buffers, and without a look at them."""
        check(_start(self._request))
        self._out = True

    def done(self) -> bool:
        """Whether the calls are over, well or not; wait() then returns at once."""
        if not self._out:
            raise Error(Code.invalid_usage, "the request is not under way: start it first")
        code = library.rkRequestTest(self._request, byref(self._over))
        if code in (Code.invalid_usage, Code.forked):
            check(code)
        return code != 0 or self._over.value == 1

    def wait(self, timeout: float | None = None) -> bool:
        """Until the calls are over, or for so many seconds: whether they are. Where not, they go on."""
        if timeout is None or timeout == float("inf"):
            code = _wait(self._request)
        else:
            code = library.rkRequestWaitFor(
                self._request, milliseconds("timeout", timeout) if timeout != 0 else 0, byref(self._over)
            )
            if code == 0 and self._over.value == 0:
                return False
        if code not in (Code.invalid_usage, Code.forked):
            self._out = False
        if code != 0 or self._callbacks:
            raise_for(code, self._callbacks)
        return True

    def __await__(self) -> Generator[Any, None, None]:
        nap = 0.0
        while not self.done():
            yield from asyncio.sleep(nap).__await__()
            nap = min(max(2 * nap, 1e-5), 1e-3)
        self.wait()

    def orders(self) -> list[str]:
        """The levels of order (set_options) that all its calls keep, beyond what was asked for."""
        levels = c_char_p()
        check(library.rkRequestGetOrders(self._request, byref(levels)))
        return (levels.value or b"").decode().split(", ")

    def close(self) -> None:
        """Its buffers are their owners' again. An error while it is under way; a second time does
        nothing."""
        if self._request is not None:
            check(library.rkRequestFree(self._request))
            self._request = None
            for buffer in self._buffers:
                buffer.release()
            self._buffers = self._callbacks = ()


def _collected(
    end: Callable[..., int], out: bool, call: Callable[..., object], arguments: Any, options: Any
) -> Request:
    made = c_void_p()
    buffers, callbacks = group_of_calls(lambda: end(byref(made)), call, arguments, options)
    assert made.value is not None
    return Request(made.value, buffers, callbacks, out)


def start(call: Callable[..., object], *arguments: Any, **options: Any) -> Request:
    """call(*arguments, **options), started and not waited for: a method of a Member, or a function
    that makes several calls, as in a group().

        request = rankine.start(me.all_reduce, x, op="max")
        ...                                     # work that does not touch x
        request.wait()
    """
    return _collected(library.rkGroupEndAsync, True, call, arguments, options)


def prepare(call: Callable[..., object], *arguments: Any, **options: Any) -> Request:
    """The same, but only made ready, which is no call: its start() makes it, as often as wanted, with
    the same buffers and in a few microseconds."""
    return _collected(library.rkGroupEndPrepare, False, call, arguments, options)


def wait_all(requests: Sequence[Request]) -> None:
    """Until all are over, of whichever ranks this thread plays. The first error is raised: all have
    been waited for then."""
    # Refused before any is waited for: of an error afterwards nobody could tell.
    for i, request in enumerate(requests):
        if request._request is None:
            refuse(f"requests[{i}] has been closed")
        if request in requests[:i]:
            refuse(f"requests[{i}] is there twice")
    handles = (c_void_p * len(requests))(*(request._request for request in requests))
    code = library.rkRequestWaitAll(len(requests), handles)
    if code not in (Code.invalid_usage, Code.forked):
        for request in requests:
            request._out = False
    raise_for(code, [callback for request in requests for callback in request._callbacks])
