"""Calls that are started without waiting."""

from __future__ import annotations

import collections
from types import TracebackType
from typing import Any, Callable, Generator, Sequence

from rankine import _engine
from rankine._engine import Buffer
from rankine._errors import Code, Error, HasRaised, NotCopied, milliseconds, refuse, sizes

# Requests that were garbage-collected in flight. They continue, with their buffers, and are freed
# when a later request is made.
_left: collections.deque[tuple[int, Sequence[Buffer], Sequence[HasRaised]]] = collections.deque()


def _free(request: int, buffers: Sequence[Buffer], callbacks: Sequence[HasRaised]) -> None:
    try:
        _engine.rkRequestFree(request)
    except Error:
        _left.append((request, buffers, callbacks))


_REFUSED = (Code.invalid_usage, Code.forked)


class Request(NotCopied):
    """Calls of start() or prepare(): they continue while Python does other work.

    Started calls follow the rules of all calls: all ranks start them in the same order. Buffers
    belong to the calls, and cannot be resized, from start() until done() is true or wait() has
    returned. Calls make progress while a thread that plays their ranks is in a call of this package
    (done() and Member.progress() do not wait), or on the Communicator's progress_core.

    One thread at a time uses a request. ``await request`` is a wait() that lets other tasks run. A
    ``with`` statement waits for the request at the end, if necessary, and closes it.
    """

    def __init__(
        self,
        request: int,
        buffers: Sequence[Buffer],
        callbacks: Sequence[HasRaised],
        is_small: bool,
        is_alone: bool,
        *,
        out: bool,
    ) -> None:
        """Takes ownership of a rkRequest_t; programs get requests from start() and prepare(). The
        start of small calls may keep the GIL, and their wait if no other thread plays a rank."""
        self._request: int | None = request
        self._buffers, self._callbacks, self._out = buffers, callbacks, out
        self._start = _engine.start_small if is_small else _engine.rkRequestStart
        self._wait = _engine.wait_alone if is_alone else _engine.rkRequestWait
        for _ in range(len(_left)):
            try:  # one at a time: the garbage collector and other threads change _left
                one = _left.popleft()
            except IndexError:
                break
            _free(*one)

    def __del__(self) -> None:
        request = getattr(self, "_request", None)
        if request is not None:
            _free(request, self._buffers, self._callbacks)

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
        self._start(self._request)
        self._out = True

    def done(self) -> bool:
        """Returns True if the calls are over, also after an error; wait() then returns at once."""
        if not self._out:
            raise Error(Code.invalid_usage, "the request is not under way; start it first")
        try:
            return _engine.rkRequestTest(self._request) == 1
        except Error as error:
            if error.code in _REFUSED:
                raise
            return True

    def wait(self, timeout: float | None = None) -> bool:
        """Waits until the calls are over, or for ``timeout`` seconds. Returns True if they are
        over; otherwise they continue."""
        most = -1 if timeout is None else milliseconds("timeout", timeout) if timeout != 0 else 0
        try:
            if most < 0:
                self._wait(self._request, self._callbacks)
            elif _engine.rkRequestWaitFor(self._request, most, self._callbacks) == 0:
                return False
        except BaseException as error:
            _have_ended((self,), error)
            raise
        self._out = False
        return True

    def __await__(self) -> Generator[Any, None, None]:
        import asyncio  # here, because it would double the time of `import rankine`

        nap = 0.0
        while not self.done():
            yield from asyncio.sleep(nap).__await__()
            nap = min(max(2 * nap, 1e-5), 1e-3)
        self.wait()

    def orders(self) -> list[str]:
        """The levels of order (set_options) that all its calls keep, including levels that were not
        requested."""
        return _engine.rkRequestGetOrders(self._request).split(", ")

    def close(self) -> None:
        """Frees the request and releases its buffers. Raises an error while calls are in flight; a
        second call has no effect."""
        if self._request is not None:
            _engine.rkRequestFree(self._request)
            self._request = None
            self._buffers = self._callbacks = ()


def _have_ended(requests: Sequence[Request], error: BaseException | None = None) -> None:
    """After a wait for the requests: their calls are over, unless ``error`` has refused the wait."""
    if not isinstance(error, Error) or error.code not in _REFUSED:
        for request in requests:
            request._out = False


def start(call: Callable[..., object], *arguments: Any, **options: Any) -> Request:
    """Starts call(*arguments, **options) without waiting. ``call`` is a method of a Member, or a
    function that makes several calls, as in a group().

        request = rankine.start(me.all_reduce, x, op="max")
        ...                                     # work that does not touch x
        request.wait()
    """
    return Request(*_engine.collect(False, call, arguments, options), out=True)


def prepare(call: Callable[..., object], *arguments: Any, **options: Any) -> Request:
    """As start(), but the calls are only prepared. The request's start() makes them, any number of
    times, with the same buffers and in a fraction of a microsecond."""
    return Request(*_engine.collect(True, call, arguments, options), out=False)


def wait_all(requests: Sequence[Request]) -> None:
    """Waits until all requests are over, of any ranks that this thread plays. Raises the first
    error; also then all requests have been waited for."""
    # Check all requests before waiting, because a later error would be ambiguous.
    for i, request in enumerate(requests):
        if request._request is None:
            refuse(f"requests[{i}] has been closed")
        if request in requests[:i]:
            refuse(f"requests[{i}] is given twice; allowed is once")
    handles = sizes([request._request or 0 for request in requests])
    callbacks = [callback for request in requests for callback in request._callbacks]
    try:
        _engine.rkRequestWaitAll(len(requests), handles, callbacks)
    except BaseException as error:
        _have_ended(requests, error)
        raise
    _have_ended(requests)
