"""Requests: started once, started repeatedly, awaited, and of several ranks; and their errors."""

import asyncio
import gc
import os
import sys

import numpy
import pytest
import rankine
from rankine import Code

f32 = numpy.float32
RANKS = 4


@pytest.fixture(params=[False, True], ids=["ranks make progress", "a thread makes progress"])
def options(request):
    return {"progress_core": min(os.sched_getaffinity(0))} if request.param else {}


def test_every_kind_of_call_can_be_started(team, options):
    def f(me):
        right, left = (me.rank + 1) % RANKS, (me.rank - 1) % RANKS
        x, y, z = (numpy.full(5000, me.rank, f32) for _ in range(3))
        everything = numpy.zeros(RANKS, f32)

        def several():
            me.all_reduce(y, op="max")
            me.all_gather(z[:1], everything)
            me.all_reduce(z, op=rankine.PreMulSum(2))
            me.barrier()

        got = numpy.zeros(100_000)
        requests = [
            rankine.start(me.all_reduce, x),
            rankine.start(several),
            rankine.start(me.exchange, numpy.full(100_000, float(me.rank)), right, got, left),
        ]
        me.progress()
        rankine.wait_all(requests)
        for request in requests:
            request.close()
            request.close()
        return x[0], y[0], z[0], list(everything), got[-1] == left

    assert team(RANKS, **options).run(f) == [(6, 3, 12, [0, 1, 2, 3], True)] * RANKS


def test_prepared_calls_are_made_as_often_as_wanted(team, options):
    def f(me):
        x = numpy.ones(1000, f32)
        with rankine.prepare(me.all_reduce, x) as request:
            assert x[0] == 1
            for _ in range(3):
                request.start()
                while not request.done():
                    pass
                assert request.wait()
            request.start()
        return x[0]  # the wait is at the end

    assert team(RANKS, **options).run(f) == [4.0**4] * RANKS


def test_requests_can_be_awaited(options):
    communicator = rankine.Communicator(RANKS, **options)
    members = [communicator.join(rank) for rank in range(RANKS)]
    x = [numpy.full(100, rank + 1.0) for rank in range(RANKS)]

    async def play(me):
        with rankine.start(me.all_reduce, x[me.rank]) as request:
            await request

    async def play_all():
        await asyncio.gather(*(play(me) for me in members))

    asyncio.run(play_all())
    assert all((one == 10).all() for one in x)


def test_waiting_for_a_while(options):
    communicator = rankine.Communicator(2, **options)
    a, b = communicator.join(0), communicator.join(1)
    x, y = numpy.ones(3), numpy.ones(3)
    one = rankine.start(a.all_reduce, x)
    assert not one.wait(0.001) and not one.wait(0) and not one.done()
    other = rankine.start(b.all_reduce, y)
    assert one.wait(20) and other.wait(float("inf"))
    assert list(x) == list(y) == [2] * 3


def test_a_buffer_is_the_calls_while_it_is_under_way():
    communicator = rankine.Communicator(2)
    a, b = communicator.join(0), communicator.join(1)
    x, y = bytearray(8), bytearray(8)
    one = rankine.start(a.all_reduce, x)
    with pytest.raises(BufferError):
        x.append(1)
    rankine.start(b.all_reduce, y).wait()
    one.wait()
    one.close()
    x.append(1)


def test_a_request_that_nobody_refers_to_goes_on():
    communicator = rankine.Communicator(2)
    a, b = communicator.join(0), communicator.join(1)
    y = numpy.ones(1000)
    rankine.start(a.all_reduce, numpy.ones(1000))
    gc.collect()
    other = rankine.start(b.all_reduce, y)
    while not other.done():
        a.progress()
    other.wait()
    assert (y == 2).all()


@pytest.fixture
def under_way():
    communicator = rankine.Communicator(2)
    a, b = communicator.join(0), communicator.join(1)
    x = numpy.ones(4, f32)
    return a, b, rankine.start(a.all_reduce, x)


def test_what_cannot_be_is_told(under_way):
    a, b, request = under_way
    for text, wrong in {
        "under way; wait for it before it is freed": request.close,
        "has been started; wait for it": request.start,
    }.items():
        with pytest.raises(rankine.Error, match=text) as caught:
            wrong()
        assert caught.value.code is Code.invalid_usage
    with pytest.raises(ValueError, match="timeout is -1"):
        request.wait(-1)
    with rankine.group(), pytest.raises(rankine.Error, match="a group is open"):
        rankine.start(b.barrier)
    with rankine.group(), pytest.raises(rankine.Error, match="a group is open; split ranks"):
        b.split(0)
    with pytest.raises(ValueError, match=r"requests\[1\] is given twice"):
        rankine.wait_all([request, request])
    assert not request.done()  # it is still in flight
    closed = rankine.prepare(b.barrier)
    closed.close()
    with pytest.raises(ValueError, match=r"requests\[1\] has been closed"):
        rankine.wait_all([request, closed])
    assert not request.done()
    with pytest.raises(TypeError, match="cannot be copied"):
        request.__reduce__()
    # start() and prepare() raise the error of the call, and leave no group open.
    with pytest.raises(ValueError, match="x has elements of format 'h'"):
        rankine.start(b.all_reduce, numpy.zeros(4, numpy.int16))
    with pytest.raises(ValueError, match="rkReduce of rank 1: root is 7"):
        rankine.prepare(b.reduce, numpy.zeros(4, f32), root=7)
    with pytest.raises(ZeroDivisionError):
        rankine.start(lambda: (b.all_reduce(numpy.ones(4, f32)), 1 / 0))
    rankine.start(b.all_reduce, numpy.ones(4, f32)).wait()
    request.wait()
    for wrong in (request.wait, request.done):
        with pytest.raises(rankine.Error, match="not under way"):
            wrong()
    request.close()
    with pytest.raises(ValueError, match="request is NULL"):
        request.start()


def test_a_request_whose_communicator_ends_says_why(under_way):
    a, b, request = under_way
    b.abort()
    while not request.done():
        pass
    with pytest.raises(rankine.Error, match="rkAllReduce of rank 0") as caught:
        request.wait()
    assert caught.value.code is Code.aborted
    request.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_child_is_told(under_way):
    a, b, request = under_way
    child = os.fork()
    if child == 0:
        try:
            request.wait()
        except rankine.Error as error:
            request.close()
            os._exit(0 if error.code is Code.forked else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    rankine.start(b.all_reduce, numpy.ones(4, f32)).wait()
    request.wait()


def test_what_an_operation_raises_ends_the_call(team):
    def fails(lower, inout):
        raise LookupError("nothing")

    op = rankine.Operation(fails, "f8")

    def f(me):
        request = rankine.start(me.all_reduce, numpy.ones(100), op=op)
        with pytest.raises(rankine.Error) as caught:
            request.wait()
        return caught.value.code, type(caught.value.__cause__)

    ends = team(2).run(f)
    assert {code for code, _ in ends} == {Code.remote_error} and LookupError in [cause for _, cause in ends]


def test_orders_are_asked_for_and_read_back(team):
    def f(me):
        x = numpy.ones(10, f32)
        with rankine.prepare(me.all_reduce, x) as request:
            before = request.orders()
        me.set_options(order="group_invariant")
        with rankine.prepare(me.all_reduce, x) as request:
            return me.order, "size_invariant" in before, "group_invariant" in request.orders()

    assert team(2, order="size_invariant").run(f) == [("size_invariant", True, True)] * 2
    with pytest.raises(ValueError, match="order is 'tidy'; allowed are coherent"):
        rankine.Communicator(2, order="tidy")
    assert rankine.Communicator(1).join(0).order is None


def test_a_core_for_progress_must_be_there():
    with pytest.raises(ValueError, match="progress_core is -1"):
        rankine.Communicator(2, progress_core=-1)
    with pytest.raises(ValueError, match="progress_core is 1000000"):
        rankine.Communicator(2, progress_core=1000000)


def test_buffers_are_let_go(under_way):
    a, b, request = under_way
    x = numpy.ones(4, f32)
    before = sys.getrefcount(x)
    other = rankine.start(b.all_reduce, x)
    assert sys.getrefcount(x) > before
    request.wait()
    other.wait()
    other.close()
    assert sys.getrefcount(x) == before


def test_operations_run_wherever_progress_is_made(team, options):
    def larger(lower, inout):
        numpy.maximum(lower, inout, out=inout)

    op = rankine.Operation(larger, "f8")

    def f(me):
        x = numpy.full(3000, me.rank + 1.0)
        for _ in range(20):
            with rankine.start(me.all_reduce, x, op=op) as request:
                while not request.done():
                    sum(range(100))
        return x[0], x[-1]

    assert team(3, **options).run(f) == [(3, 3)] * 3
