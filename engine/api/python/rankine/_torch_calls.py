"""The calls of one process group of rankine.torch, in the order in which they were submitted."""

from __future__ import annotations

import collections
import contextlib
import datetime
import os
import queue
import sys
import threading
import time
from typing import Any, Callable, Sequence

import torch
from torch._C._distributed_c10d import Work

from rankine import _engine
from rankine._errors import Code, Error
from rankine._member import Member

ANY = -1  # the peer of a reception from any rank, until a message has come
_waited = threading.local()  # its sender is that of the last message that the thread has waited for
_SLICE = 1  # milliseconds: the longest wait for messages before another thread may use the member
_PATIENCE = 2.0  # seconds: after close(), the longest wait for messages that no thread waits for


class Call(Work):
    """A submitted call. ``tensors`` are in use until it is over; the first of them are its
    ``results``. A message has a ``peer``, to which it calls ``run``."""

    def __init__(
        self,
        calls: Calls,
        run: Callable[..., object],
        tensors: Sequence[torch.Tensor],
        results: int,
        timeout: float | None = None,
        tag: int = 0,
        peer: int | None = None,
        receives: bool = False,
    ) -> None:
        super().__init__()
        self._calls, self._run, self._tensors, self._results = calls, run, tensors, results
        self._timeout, self._tag, self._peer, self._receives = timeout, tag, peer, receives
        self._request: int | None = None  # of a message in flight
        self._deadline = float("inf")  # until a reception from any rank must have a message
        self._done = False
        self._error: BaseException | None = None
        self._future: Any = None

    def wait(self, timeout: datetime.timedelta = datetime.timedelta()) -> bool:
        """Waits until the call is over, and raises its error. With a timeout: the call continues
        after the timeout has passed, which is an error."""
        if not self._done:
            self._calls.finish(self, timeout.total_seconds())
        if self._error is not None:
            raise self._error
        if self._receives:
            _waited.sender = self._peer
        return True

    def synchronize(self) -> None:
        self.wait()

    def is_completed(self) -> bool:
        return self._done

    def is_success(self) -> bool:
        return self._done and self._error is None

    def exception(self) -> BaseException | None:
        return self._error

    def result(self) -> list[torch.Tensor]:
        if not self._done:
            raise Error(Code.invalid_usage, "the call is not over; wait for it before result()")
        return self._outcome()

    def source_rank(self) -> int:
        return self._peer if self._receives and self._peer is not None else -1

    _source_rank = source_rank

    def get_future(self) -> Any:
        """A Future of the results."""
        with self._calls.telling:
            is_new = self._future is None
            if is_new:
                self._end = torch.futures.Future()
                # A continuation that raises, because Future.set_exception() is not visible to C++.
                self._future = self._end.then(lambda _: self._outcome())
            is_late = is_new and self._done
        if is_late:
            self._end.set_result(None)
        return self._future

    def _outcome(self) -> list[torch.Tensor]:
        if self._error is not None:
            raise self._error
        return list(self._tensors[: self._results])

    def _tell(self) -> None:
        with self._calls.telling:
            self._done = True
            has_future = self._future is not None
        if has_future:
            self._end.set_result(None)


_source_rank = Work._source_rank


def _sender(work: Work) -> int:
    """The Work that PyTorch wraps around a Call does not ask the Call for its source_rank()."""
    try:
        return _source_rank(work)
    except RuntimeError:
        if not hasattr(_waited, "sender"):
            raise
        return _waited.sender


Work._source_rank = _sender


class Calls:
    """Executes calls in order, on the thread that waits for them; a helper thread executes calls
    that no thread waits for.

    A member is used by one thread at a time, which holds the turn; operators of the group ``name``
    take it without this class if no call is queued and the options are the default's. Messages are started in order, and
    are then in flight beside each other and beside collectives; a reception from any rank, and
    those after it, start when a message has come. A forked child can only drop it.
    """

    def __init__(self, member: Member, name: str) -> None:
        self.telling = threading.Lock()  # guards the futures of the calls
        self.turn = _engine.Turn(name, member._handle, member.ranks)
        self._member = member
        self._process = os.getpid()
        self._queue: collections.deque[Call] = collections.deque()
        self._under_way: list[Call] = []  # messages; used by the thread that has the turn
        self._latest = 0  # the rank of the latest message for a reception from any rank
        self._nap = 0.0
        self._waiters: list[None] = []  # one element per waiting thread
        self._wakes: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._helper: threading.Thread | None = None
        self._closing: float | None = None  # the time of close()
        self._options: tuple[float | None, int] = (None, 0)

    def run(self, run: Callable[[], object], timeout: float | None) -> None:
        """Executes all queued calls, then ``run``, on this thread."""
        self._check()
        turn = self.turn
        if self._queue or not turn.take(0):
            self._waiters.append(None)
            try:
                while self._queue:
                    self._step(None)
                self._take_turn()
            finally:
                self._waiters.pop()
        try:
            if self._options != (timeout, 0):
                self._set_options(timeout, 0)
            run()
        finally:
            turn.release()

    def _take_turn(self) -> None:
        while not self.turn.take(20_000):  # Python runs signal handlers between the waits
            pass

    def submit(self, call: Call) -> Call:
        """Queues a call. The helper executes it unless a thread waits for it sooner."""
        self._check()
        self.turn.queue(1)
        self._queue.append(call)
        if self._helper is None:
            self._start_helper()
        self._wakes.put(None)
        return call

    def finish(self, call: Call, seconds: float) -> None:
        """Waits for a call; with ``seconds`` above 0, at most so long."""
        if os.getpid() != self._process:
            self._check()
        if seconds > 0:
            deadline = time.monotonic() + seconds
            while not call._done:
                if time.monotonic() > deadline:
                    raise Error(Code.timeout, f"timeout: the call was not over within {seconds:g} s; it goes on")
                time.sleep(0.0005)
        self._waiters.append(None)
        try:
            while not call._done:
                self._step(call)
        finally:
            self._waiters.pop()

    def close(self) -> None:
        """Waits until all calls are over, then leaves the communicator. Receptions that no thread
        waits for get two more seconds, because their senders may be waiting for this rank."""
        if os.getpid() != self._process or self._closing is not None or sys.is_finalizing():
            return
        self._closing = time.monotonic()
        self.turn.queue(1)  # operators find the group closed
        if self._helper is None:
            while self._queue or self._under_way:
                self._step(None)
            self._member.close()
            return
        self._wakes.put(None)
        if self._helper is not threading.current_thread():
            self._helper.join()

    def abort(self) -> None:
        """Ends the calls of all ranks."""
        if os.getpid() == self._process:
            self._member.abort()

    def _check(self) -> None:
        if os.getpid() != self._process:
            raise Error(Code.forked, "this process was forked from the group's process; create a group in this process")
        if self._closing is not None:
            raise Error(Code.invalid_usage, "the group was destroyed; create a new one")

    def _start_helper(self) -> None:
        helper = threading.Thread(target=self._serve, name="rankine-group", daemon=True)
        self._helper = helper
        helper.start()

    def _serve(self) -> None:
        while self._closing is None or self._queue or self._under_way:
            if not self._queue and not self._under_way:
                self._wakes.get()
            elif self._waiters:
                time.sleep(0.001)  # the waiting threads make the calls
            else:
                self._step(None)
        self._take_turn()
        self._member.close()
        self.turn.release()

    def _step(self, wanted: Call | None) -> None:
        """Takes the turn, and executes the next call or waits a short time for messages."""
        while not self.turn.take(2_000):
            if wanted is not None and wanted._done:
                return
        ended: list[Call] = []
        has_waited = True
        try:
            if wanted is not None and wanted._done:
                return
            if self._queue:
                self.turn.queue(-1)
                self._make(self._queue.popleft(), ended)
            else:
                has_waited = self._look_at_messages(wanted, ended)
        finally:
            self.turn.release()
            for call in ended:  # may call functions of the user
                call._tell()
        self._nap = 0.0 if has_waited or ended else min(2 * self._nap + 1e-5, 1e-3)
        if self._nap > 0:
            time.sleep(self._nap)

    def _make(self, call: Call, ended: list[Call]) -> None:
        try:
            if call._peer is not None:
                if call._peer == ANY and call._timeout is not None:
                    call._deadline = time.monotonic() + call._timeout
                self._start(call, self._under_way)
                self._under_way.append(call)
                return
            self._use_options(call)
            call._run()
        except Exception as error:
            call._error = error
        except BaseException as error:  # of a signal handler: this thread raises it, too
            call._error = error
            ended.append(call)
            raise
        ended.append(call)

    def _start(self, call: Call, earlier: Sequence[Call]) -> bool:
        """Starts a message. False: a reception that must wait, because it or an earlier one is from
        any rank, and no message has come."""
        if call._receives:
            if any(one._request is None for one in earlier):
                return False
            if call._peer == ANY:
                call._peer = self._sender()
                if call._peer == ANY:
                    return False
        self._use_options(call)
        call._request = _engine.collect(False, call._run, (call._peer,), {})[0]
        return True

    def _sender(self) -> int:
        """Returns a rank that has sent a message. Raises an error if all ranks have left."""
        ranks, errors = self._member.ranks, []
        for other in range(1, ranks + 1):
            rank = (self._latest + other) % ranks
            try:
                if rank != self._member.rank and self._member.has_message(rank):
                    self._latest = rank
                    return rank
            except Error as error:
                errors.append(error)
        if errors and len(errors) == ranks - 1:
            raise errors[0]
        return ANY

    def _look_at_messages(self, wanted: Call | None, ended: list[Call]) -> bool:
        """False: the thread has not waited."""
        if not self._under_way:
            return True
        first = wanted if wanted in self._under_way else self._under_way[0]
        has_waited = False
        gives_up = self._is_time_to_give_up()
        for call in list(self._under_way):
            try:
                if call._request is None and not self._start(call, self._under_way[: self._under_way.index(call)]):
                    is_over = False
                    if time.monotonic() > call._deadline:
                        text = f"no message from any rank came to rank {self._member.rank} within {call._timeout:g} s"
                        self._fail(call, Code.timeout, text)
                elif call is first:
                    has_waited = True
                    is_over = _engine.rkRequestWaitFor(call._request, _SLICE)
                else:
                    is_over = _engine.rkRequestTest(call._request)
                if not is_over and gives_up and call._error is None:
                    peer = "any rank" if call._peer == ANY else f"rank {call._peer}"
                    self._fail(call, Code.aborted, f"the group was destroyed before a message from {peer} came")
                if not is_over and call._error is None:
                    continue
            except Error as error:
                call._error = error
            self._under_way.remove(call)
            ended.append(call)
            try:
                if call._request is not None:
                    _engine.rkRequestFree(call._request)
            except Error as error:
                call._error = call._error or error
        return has_waited

    def _fail(self, call: Call, code: Code, text: str) -> None:
        """Ends the communicator, and the message."""
        call._error = Error(code, text)
        _engine.rkCommFail(self._member._handle, text.encode())
        if call._request is not None:
            with contextlib.suppress(Error):
                _engine.rkRequestWaitFor(call._request, 1000)

    def _is_time_to_give_up(self) -> bool:
        if self._closing is None or self._queue or self._waiters:
            return False
        is_late = time.monotonic() - self._closing >= _PATIENCE
        return is_late and all(call._receives for call in self._under_way)

    def _use_options(self, call: Call) -> None:
        if self._options != (call._timeout, call._tag):
            self._set_options(call._timeout, call._tag)

    def _set_options(self, timeout: float | None, tag: int) -> None:
        self._member.set_options(timeout=timeout, tag=tag)
        self._options = (timeout, tag)
        self.turn.is_plain = self._options == (None, 0)
