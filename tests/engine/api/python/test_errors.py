"""Errors name their cause, and no rank is left waiting."""

import contextlib
import os
import signal
import sys
import threading
import time

import numpy
import pytest
import rankine
from rankine import Code

f32 = numpy.float32


@pytest.fixture
def me():
    with rankine.Communicator(1).join(0) as member:
        yield member


def read_only(n):
    x = numpy.zeros(n, f32)
    x.flags.writeable = False
    return x


REFUSED = {
    "x is read-only": lambda me: me.all_reduce(read_only(4)),
    "out is read-only": lambda me: me.all_reduce(numpy.zeros(4, f32), read_only(4)),
    "out is read-only; allowed": lambda me: me.recv(b"123", 0),
    "x cannot be used: .*contiguous": lambda me: me.all_reduce(numpy.zeros((4, 4), f32)[:, 1]),
    "out cannot be used: .*contiguous": lambda me: me.all_reduce(numpy.zeros(4, f32), numpy.zeros(8, f32)[::2]),
    "x has elements of format 'h'": lambda me: me.all_reduce(numpy.zeros(4, numpy.int16)),
    "x has elements of format '>f'": lambda me: me.all_reduce(numpy.zeros(4, ">f4")),
    "out has elements of i32; allowed is f32": lambda me: me.all_reduce(
        numpy.zeros(4, f32), numpy.zeros(4, numpy.int32)
    ),
    "out has 3 elements; allowed are 4": lambda me: me.all_reduce(numpy.zeros(4, f32), numpy.zeros(3, f32)),
    "dtype is 'float'; allowed are i8": lambda me: me.all_reduce(numpy.zeros(4, f32), dtype="float"),
    "x has elements of format 'f'; dtype bf16": lambda me: me.all_reduce(numpy.zeros(4, f32), dtype="bf16"),
    "op is 'mean'; allowed are sum": lambda me: me.all_reduce(numpy.zeros(4, f32), op="mean"),
    "op is a PreMulSum of 1.5": lambda me: me.all_reduce(numpy.zeros(4, "i4"), op=rankine.PreMulSum(1.5)),
    "op is a PreMulSum on elements of b8": lambda me: me.all_reduce(numpy.zeros(4, bool), op=rankine.PreMulSum(1)),
    "operation is band on type f32": lambda me: me.all_reduce(numpy.zeros(4, f32), op="band"),
    "x has 10 bytes; allowed are multiples of 3": lambda me: me.all_reduce(bytearray(10), op=rankine.Operation(print, 3)),
    "x has 0 elements; allowed are 1": lambda me: me.all_gather(numpy.zeros(0, f32), numpy.zeros(0, f32), counts=[1]),
    "counts is": lambda me: me.all_gather(numpy.zeros(4, f32), numpy.zeros(4, f32), counts=[1, 2]),
    "root is 1": lambda me: me.broadcast(numpy.zeros(4, f32), root=1),
    "peer is 3": lambda me: me.send(numpy.zeros(4, f32), 3),
    "color is -3; allowed are 0 to": lambda me: me.split(-3),
    # C would truncate these values.
    "root is 4294967296; allowed are numbers of 32 bits": lambda me: me.broadcast(numpy.zeros(4, f32), root=2**32),
    "root is 4294967297; allowed": lambda me: me.reduce(numpy.zeros(4, f32), root=2**32 + 1),
    "root is -4294967296; allowed": lambda me: me.gather(numpy.zeros(4, f32), root=-(2**32)),
    "root is 0.0; allowed are whole numbers": lambda me: me.scatter(None, numpy.zeros(4, f32), root=0.0),
    "to is 4294967296; allowed": lambda me: me.send(numpy.zeros(4, f32), 2**32),
    "source is None; allowed": lambda me: me.recv(numpy.zeros(4, f32), None),
    "color is 4294967296; allowed": lambda me: me.split(2**32),
    "key is 4294967296; allowed": lambda me: me.split(0, 2**32),
    "segments is 4294967296; allowed": lambda me: me.set_options(segments=2**32),
    "tag is 18446744073709551616; allowed are 0 to": lambda me: me.set_options(tag=2**64),
    "plan_bytes is -1; allowed are 0 to": lambda me: rankine.Communicator(1, plan_bytes=-1),
    "counts is 1.5; allowed are whole numbers": lambda me: me.all_gather(
        numpy.zeros(1, f32), numpy.zeros(1, f32), counts=[1.5]
    ),
    "dims is .1.5.; allowed are lists of whole numbers": lambda me: me.set_options(dims=[1.5]),
    "algorithm is 'ring.x00'; allowed are str without a NUL": lambda me: me.set_options(algorithm="ring\0"),
    "order is 5; allowed are str": lambda me: me.set_options(order=5),
    "timeout is 'a' s; allowed": lambda me: me.set_options(timeout="a"),
    "op is None; allowed are sum": lambda me: me.all_reduce(numpy.zeros(4, f32), op=None),
    "op is .'sum'.; allowed are sum": lambda me: me.scan(numpy.zeros(4, f32), op=["sum"]),
    "timeout is 0 s": lambda me: me.set_options(timeout=0),
    "dims is 'ab'": lambda me: me.set_options(dims="ab"),
    "element has 5000 bytes": lambda me: rankine.Operation(print, 5000),
    "which has Python objects": lambda me: rankine.Operation(print, object),
    "ranks is 0": lambda me: rankine.Communicator(0),
    "ranks is 'x'": lambda me: rankine.Communicator("x"),
    "ranks is 1099511627776; allowed are 1 to": lambda me: rankine.Communicator(2**40),
    "rank is '0'; allowed are whole numbers": lambda me: rankine.Communicator(2).join("0"),
    "nodes has 1 numbers": lambda me: rankine.Communicator(2, nodes=[0]),
    "rank is 2; allowed": lambda me: rankine.Communicator(2).join(2),
    "wait is 'sleep'": lambda me: rankine.Communicator(2, wait="sleep"),
}


@pytest.mark.parametrize("text", REFUSED)
def test_wrong_arguments_are_named_and_leave_the_member_as_it_was(me, text):
    with pytest.raises(ValueError, match=text) as caught:
        REFUSED[text](me)
    assert isinstance(caught.value, rankine.Error) and caught.value.code == Code.invalid_argument
    x = numpy.ones(4, f32)
    me.all_reduce(x)
    assert x[0] == 1


def test_what_is_no_buffer_is_a_type_error(me):
    with pytest.raises(TypeError, match="x is a list"):
        me.all_reduce([1, 2, 3])


def test_a_refused_call_keeps_no_buffer(me):
    x = bytearray(8)
    with pytest.raises(ValueError):
        me.all_reduce(x, read_only(4))
    with pytest.raises(ValueError):
        me.all_reduce(x, op="mean")
    me.all_reduce(x)
    x.extend(b"more")  # a BufferError while it is in use


def test_buffers_stay_in_use_until_their_group_ends(me):
    x = bytearray(8)
    with rankine.group():
        me.all_reduce(x)
        with pytest.raises(BufferError):
            x.extend(b"more")
    x.extend(b"more")


def test_an_exception_in_a_group_drops_its_calls(me):
    x = bytearray(8)
    with pytest.raises(ZeroDivisionError):
        with rankine.group():
            me.all_reduce(x)
            1 / 0
    x.extend(b"more")
    me.barrier()


def test_a_refused_call_in_a_group_refuses_the_group(me):
    with pytest.raises(ValueError, match="root is 5"):
        with rankine.group():
            me.all_reduce(numpy.ones(3))
            me.broadcast(numpy.ones(3), 5)
    me.barrier()


def test_closed_members(me):
    me.close()
    me.close()
    with pytest.raises(rankine.Error, match="has been closed") as caught:
        me.all_reduce(numpy.ones(3))
    assert caught.value.code == Code.invalid_usage
    for call in (me.barrier, me.health, me.flight_record, lambda: me.split(0)):
        with pytest.raises(rankine.Error, match="has been closed"):
            call()
    assert "closed" in repr(me)


def test_a_rank_joins_once():
    communicator = rankine.Communicator(2)
    first = communicator.join(0)
    with pytest.raises(rankine.Error, match="joined already"):
        communicator.join(0)
    assert first.rank == 0


def test_an_exception_on_one_rank_ends_the_call_of_the_others(team):
    ended = []

    def f(me):
        if me.rank == 1:
            raise KeyError("mine")
        try:
            me.barrier()
        except rankine.Error as error:
            ended.append((error.code, str(error)))
            raise

    four = team(4, timeout=float("inf"))
    with pytest.raises(KeyError, match="mine"):
        four.run(f)
    assert ended == [(Code.remote_error, "rkBarrier: rank 1 failed: KeyError: 'mine'")] * 3
    with pytest.raises(rankine.Error, match="the team has ended"):
        four.run(f)


def test_an_exception_without_a_text_ends_the_call_of_the_others(team):
    """If str(error) raises, the rank's thread must report that error and must not die."""

    class Silent(Exception):
        def __str__(self):
            raise LookupError("no text")

    others = []

    def one_fails(me):
        if me.rank == 1:
            raise Silent
        try:
            me.barrier()
        except rankine.Error as error:
            others.append(error.code)
            raise

    three = team(3)
    with pytest.raises(LookupError) as failed:
        three.run(one_fails)
    assert isinstance(failed.value.__context__, Silent)
    assert others == [Code.remote_error] * 2
    assert all(thread.is_alive() for thread in three._threads)


def test_a_thread_that_ends_is_missed():
    communicator = rankine.Communicator(2, timeout=float("inf"))
    me = communicator.join(0)
    thread = threading.Thread(target=lambda: communicator.join(1).rank)  # joins, but makes no call
    thread.start()
    thread.join()
    with pytest.raises(rankine.Error) as caught:
        me.all_reduce(numpy.ones(10))
    assert caught.value.code == Code.rank_lost


def test_a_deadline(team):
    def f(me):
        if me.rank == 0:
            with pytest.raises(rankine.Error) as caught:
                me.barrier()
            return caught.value.code
        while me.health() == Code.success:
            time.sleep(0.01)

    assert team(2, timeout=0.05).run(f)[0] == Code.timeout


def until_rank_0_waits(other):
    """Waits until rank 0 waits. Ask another rank: a query on a member while the member's thread begins a call may return its error to that
    thread."""
    while "rank 0 waits for" not in other.flight_record():
        time.sleep(0.001)


def test_a_second_thread_in_a_call_is_told():
    communicator = rankine.Communicator(2, timeout=float("inf"))
    me, other = communicator.join(0), communicator.join(1)
    codes = []

    def wait():
        try:
            me.barrier()
        except rankine.Error as error:
            codes.append(error.code)

    thread = threading.Thread(target=wait)
    thread.start()
    until_rank_0_waits(other)
    with pytest.raises(rankine.Error) as caught:
        me.set_options()
    assert caught.value.code == Code.invalid_usage
    with pytest.raises(rankine.Error):
        me.close()
    other.abort()
    thread.join()
    assert codes == [Code.aborted]


def test_an_operation_that_raises(team):
    def f(me):
        with pytest.raises(rankine.Error) as caught:
            me.all_reduce(numpy.ones(1000), op=op)
        cause = caught.value.__cause__
        return caught.value.code, None if cause is None else type(cause)

    def fail(_lower, _inout):
        raise LookupError("no sum")

    op = rankine.Operation(fail, "f8")
    results = team(3).run(f)
    assert {code for code, _ in results} == {Code.remote_error}
    assert {cause for _, cause in results} <= {None, LookupError} and LookupError in {c for _, c in results}


def test_ranks_with_different_operations(team):
    def f(me):
        with pytest.raises(rankine.Error) as caught:
            me.all_reduce(numpy.ones(4), op=ops[me.rank])
        return caught.value.code

    ops = [rankine.Operation(lambda a, b: None, "f8") for _ in range(2)]
    assert team(2).run(f) == [Code.mismatch] * 2


@pytest.fixture
def control_c():
    """Python does not handle Control-C if it was started with SIGINT ignored, as shells start background jobs."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("control_c")
def test_an_interrupt_ends_a_run(team):
    """Control-C while all ranks wait for a missing rank."""
    two = team(2, timeout=float("inf"))
    codes, told = [], threading.Event()

    def f(me):
        if me.rank == 0:
            try:
                me.barrier()
            except rankine.Error as error:
                codes.append(error.code)
                told.set()
        else:
            until_rank_0_waits(me)
            os.kill(os.getpid(), signal.SIGINT)
            while me._comm is not None:
                time.sleep(0.001)

    with pytest.raises(KeyboardInterrupt):
        two.run(f)
    assert told.wait() and codes == [Code.aborted]


@pytest.mark.usefixtures("control_c")
def test_an_interrupt_does_not_wait_for_functions_that_are_in_no_call(team):
    two = team(2, timeout=float("inf"))
    goes_on, ended = threading.Event(), []

    def f(me):
        if me.rank == 0:
            os.kill(os.getpid(), signal.SIGINT)
        assert goes_on.wait()  # set after run() has returned
        with pytest.raises(rankine.Error):
            me.barrier()
        ended.append(me.rank)

    with pytest.raises(KeyboardInterrupt):
        two.run(f)
    with pytest.raises(rankine.Error, match="the team has ended"):
        two.run(f)
    two.close()
    assert ended == []
    goes_on.set()


def test_a_thread_that_ends_between_calls_is_missed():
    """The member still exists, so another thread could play the rank, but each rank has one thread here."""
    communicator = rankine.Communicator(3, timeout=float("inf"))
    members = [None] * 3
    texts = []

    def play(rank):
        me = members[rank] = communicator.join(rank)
        me.barrier()
        if rank == 2:
            return
        with pytest.raises(rankine.Error) as caught:
            me.barrier()
        assert caught.value.code == Code.rank_lost
        texts.append(str(caught.value))

    threads = [threading.Thread(target=play, args=(rank,)) for rank in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(texts) == 2
    assert all("rank 2" in text and "the thread that made the last one has ended" in text for text in texts)


WAITS = {
    "call": lambda me: me.all_reduce(numpy.ones(10)),
    "large call": lambda me: me.all_reduce(numpy.ones(1 << 20)),
    "recv": lambda me: me.recv(numpy.ones(10), 1),
    "split": lambda me: me.split(0),
    "group": lambda me: in_a_group(me),
    "request": lambda me: rankine.start(me.all_reduce, numpy.ones(10)).wait(),
    "request for a time": lambda me: rankine.start(me.all_reduce, numpy.ones(10)).wait(1e6),
    "requests": lambda me: rankine.wait_all([rankine.start(me.barrier), rankine.start(me.barrier)]),
    "buckets": lambda me: wait_for_buckets(me),
}


def in_a_group(me):
    with rankine.group():
        me.barrier()
        me.all_reduce(numpy.ones(10))


def wait_for_buckets(me):
    with rankine.Buckets(me) as buckets:
        buckets.add(numpy.ones(10))


# On a network a started call is played on another thread than that which waits.
@pytest.mark.usefixtures("control_c")
@pytest.mark.parametrize("wait", WAITS)
@pytest.mark.parametrize("options", [{}, {"network": "scale_out"}], ids=["memory", "network"])
def test_an_interrupt_ends_every_wait_of_the_main_thread(wait, options):
    communicator = rankine.Communicator(2, timeout=float("inf"), **options)
    me, other = communicator.join(0), communicator.join(1)
    with pytest.raises(KeyboardInterrupt) as caught:
        threading.Timer(0.02, os.kill, (os.getpid(), signal.SIGINT)).start()
        WAITS[wait](me)
        time.sleep(1000)  # not reached
    assert caught.value.__cause__ is None or caught.value.__cause__.code == Code.aborted
    # The other rank gets the error.
    if caught.value.__cause__ is not None:
        with pytest.raises(rankine.Error, match="was interrupted") as told:
            other.barrier()
        assert told.value.code == Code.aborted


@pytest.mark.usefixtures("control_c")
def test_an_interrupt_ends_a_meeting_of_processes():
    name = f"interrupted.{os.getpid()}"
    with pytest.raises(KeyboardInterrupt):
        threading.Timer(0.02, os.kill, (os.getpid(), signal.SIGINT)).start()
        rankine.Communicator(2, timeout=float("inf"), rank=0, name=name)
        time.sleep(1000)  # not reached


def test_a_signal_handler_that_raises_nothing_ends_nothing():
    communicator = rankine.Communicator(2, timeout=float("inf"))
    me, other = communicator.join(0), communicator.join(1)
    handled = threading.Event()
    before = signal.signal(signal.SIGUSR1, lambda *_: handled.set())
    x, y = numpy.full(10, 1.0), numpy.full(10, 2.0)

    def play():
        until_rank_0_waits(other)
        os.kill(os.getpid(), signal.SIGUSR1)
        assert handled.wait()  # while rank 0 is in its call
        other.all_reduce(y)

    thread = threading.Thread(target=play)
    thread.start()
    me.all_reduce(x)
    thread.join()
    signal.signal(signal.SIGUSR1, before)
    assert handled.is_set() and (x == 3).all()


def test_a_forked_child_hears_of_signals_too():
    child = os.fork()
    if child == 0:
        code = 1
        try:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            communicator = rankine.Communicator(2, timeout=float("inf"))
            me = communicator.join(0)
            threading.Timer(0.02, os.kill, (os.getpid(), signal.SIGINT)).start()
            me.barrier()
            time.sleep(1000)
        except KeyboardInterrupt:
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0


def test_a_fork(team):
    two = team(2)
    communicator = rankine.Communicator(1)
    me = communicator.join(0)
    two.run(lambda member: member.barrier())
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        codes = []
        for call in (me.barrier, lambda: two.run(lambda member: None), me.health):
            try:
                call()
            except rankine.Error as error:
                codes.append(error.code)
        me.close()
        own = rankine.Communicator(1).join(0)
        own.barrier()
        os.write(write, bytes(codes))
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert os.read(read, 100) == bytes([Code.forked] * 3)
    os.close(read)
    os.close(write)
    me.barrier()
    two.run(lambda member: member.barrier())


def test_members_are_not_copied(me):
    import copy
    import pickle

    for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="cannot be copied"):
            attempt(me)


def test_errors_travel():
    import pickle

    error = pickle.loads(pickle.dumps(rankine.InvalidArgument(Code.invalid_argument, "x is 5")))
    assert (error.code, str(error)) == (Code.invalid_argument, "x is 5")


def test_a_call_that_does_not_wait_keeps_the_gil(me):
    """Finds a call that gives other threads a turn, which costs milliseconds if they use it."""
    may_run, interval, before = threading.Event(), sys.getswitchinterval(), []
    called = 0
    thread = threading.Thread(target=lambda: (may_run.wait(), before.append(called)))
    thread.start()
    x = numpy.ones(4, f32)
    with rankine.prepare(me.all_reduce, x) as request:
        me.all_reduce(x)  # plans
        sys.setswitchinterval(1000)
        try:
            may_run.set()
            for _ in range(1000):
                me.all_reduce(x)
                request.start()
                request.wait()
                called += 1
        finally:
            sys.setswitchinterval(interval)
    thread.join()
    assert before == [1000]


def test_calls_let_go_of_the_gil():
    """A rank that waits in a call does not block other threads."""
    communicator = rankine.Communicator(2, timeout=float("inf"))
    me, other = communicator.join(0), communicator.join(1)
    thread = threading.Thread(target=me.barrier)
    thread.start()
    other.barrier()  # not reached if the first call kept the GIL
    thread.join()


@pytest.mark.parametrize("times", [False, True, "lines"])
def test_errors_name_the_call_site(team, times):
    def text_of(late, sites=None):
        """The error of rank 0, which calls late(me) while rank 1 stays away; sites: names, by rank."""
        left, ended = threading.Event(), threading.Event()

        def f(me):
            with contextlib.nullcontext() if sites is None else me.site(sites[me.rank]):
                me.barrier()
                if me.rank == 1:
                    left.set()
                    ended.wait(60)
                    return ""
                left.wait(60)
                me.set_options(timeout=0.05)
                with pytest.raises(rankine.Error) as raised:
                    late(me)
            ended.set()
            return str(raised.value)

        return team(2, record_times=times).run(f)[0]

    text = text_of(lambda me: me.barrier(), ["attention", "mlp"])
    assert "call 2, at call site attention" in text and "rank 1 is in no collective, at call site mlp" in text

    def start(me):
        rankine.start(me.all_reduce, numpy.zeros(4)).wait()

    text = text_of(start)
    line = start.__code__.co_firstlineno + 1
    assert (f"at call site test_errors.py:{line}" in text) == (times == "lines"), text


def test_record_times_takes_three_values():
    with pytest.raises(ValueError, match="record_times is 'line'; allowed are False, True and 'lines'"):
        rankine.Communicator(2, record_times="line")
