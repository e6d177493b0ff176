"""Calls that are started without waiting."""

from __future__ import annotations

import asyncio
import collections
from ctypes import byref, c_char_p, c_int, c_void_p
from types import TracebackType
from typing import Any, Callable, Generator, Sequence

from rankine._buffers import Buffer
from rankine._callbacks import HasRaised, raise_for
from rankine._library import Code, Error, NotCopied, check, library, milliseconds, refuse
from rankine._member import group_of_calls

_start = library.rkRequestStart
_wait = library.rkRequestWait

# Requests that were garbage-collected in flight. They continue, with their buffers, and are freed
# when a later request is made.
_left: collections.deque[tuple[int, Sequence[Buffer], Sequence[HasRaised]]] = collections.deque()


class Request(NotCopied):
    """Calls of start() or prepare(): they continue while Python does other work.

    Started calls follow the rules of all calls: all ranks start them in the same order. Buffers
    belong to the calls, and cannot be resized, from start() until done() is true or wait() has
    returned. Calls make progress while a thread that plays their ranks is in a call of this package
    (done() and Member.progress() do not wait), or on the Communicator's progress_core.

    One thread at a time uses a request. ``await request`` is a wait() that lets other tasks run. A
    ``with`` statement waits for the request at the end, if necessary, and closes it.
    """

    def __init__(self, request: int, buffers: Sequence[Buffer], callbacks: Sequence[HasRaised], out: bool) -> None:
        """Takes ownership of a rkRequest_t; programs get requests from start() and prepare()."""
        self._request: int | None = request
        self._buffers, self._callbacks, self._out = buffers, callbacks, out
        self._over = c_int()
        for _ in range(len(_left)):
            try:  # one at a time: the garbage collector and other threads change _left
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

    def start(self) -> None:
        """Starts the calls again, of a request that was prepared or has been waited for: with the
        same buffers, and without further checks."""
        check(_start(self._request))
        self._out = True

    def done(self) -> bool:
        """Returns True if the calls are over, also after an error; wait() then returns at once."""
        if not self._out:
            raise Error(Code.invalid_usage, "the request is not under way; start it first")
        code = library.rkRequestTest(self._request, byref(self._over))
        if code in (Code.invalid_usage, Code.forked):
            check(code)
        return code != 0 or self._over.value == 1

    def wait(self, timeout: float | None = None) -> bool:
        """Waits until the calls are over, or for ``timeout`` seconds. Returns True if they are
        over; otherwise they continue."""
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
        """The levels of order (set_options) that all its calls keep, including levels that were not
        requested."""
        levels = c_char_p()
        check(library.rkRequestGetOrders(self._request, byref(levels)))
        return (levels.value or b"").decode().split(", ")

    def close(self) -> None:
        """Frees the request and releases its buffers. Raises an error while calls are in flight; a
        second call has no effect."""
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
    """Starts call(*arguments, **options) without waiting. ``call`` is a method of a Member, or a
    function that makes several calls, as in a group().

        request = rankine.start(me.all_reduce, x, op="max")
        ...                                     # work that does not touch x
        request.wait()
    """
    return _collected(library.rkGroupEndAsync, True, call, arguments, options)


def prepare(call: Callable[..., object], *arguments: Any, **options: Any) -> Request:
    """As start(), but the calls are only prepared. The request's start() makes them, any number of
    times, with the same buffers and in a few microseconds."""
    return _collected(library.rkGroupEndPrepare, False, call, arguments, options)


def wait_all(requests: Sequence[Request]) -> None:
    """Waits until all requests are over, of any ranks that this thread plays. Raises the first
    error; also then all requests have been waited for."""
    # Check all requests before waiting, because a later error would be ambiguous.
    for i, request in enumerate(requests):
        if request._request is None:
            refuse(f"requests[{i}] has been closed")
        if request in requests[:i]:
            refuse(f"requests[{i}] is given twice; allowed is once")
    handles = (c_void_p * len(requests))(*(request._request for request in requests))
    code = library.rkRequestWaitAll(len(requests), handles)
    if code not in (Code.invalid_usage, Code.forked):
        for request in requests:
            request._out = False
    raise_for(code, [callback for request in requests for callback in request._callbacks])
