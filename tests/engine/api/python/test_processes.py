"""Ranks that are processes meet by a name, make the same calls as threads, and get an error if one dies."""

import concurrent.futures
import multiprocessing
import os
import signal
import uuid

import numpy
import pytest
import rankine
from rankine import Code

f32 = numpy.float32


def play(what, name, rank, ranks, told, options):
    try:
        comm = rankine.Communicator(ranks, rank=rank, name=name, timeout=60, **options)
        told.put((rank, what(comm.join(rank))))
    except rankine.Error as error:
        told.put((rank, (error.code, str(error))))


@pytest.fixture
def processes():
    """processes(ranks, what): what(member) runs on each rank; returns the results by rank, an Error as its code and text."""
    started = []

    def run(ranks, what, answers=None, **options):
        context = multiprocessing.get_context("spawn")
        told, name = context.Queue(), f"python.{uuid.uuid4()}"
        for rank in range(ranks):
            started.append(context.Process(target=play, args=(what, name, rank, ranks, told, options)))
            started[-1].start()
        return dict(told.get(timeout=120) for _ in range(ranks if answers is None else answers))

    yield run
    for process in started:
        process.join(60)
        process.kill()


def add_up(me):
    x = numpy.full(1000, me.rank + 1.0, f32)
    me.all_reduce(x)
    return float(x[-1])


def send_on(me):
    mine, got = numpy.full(100_000, me.rank, f32), numpy.empty(100_000, f32)
    with rankine.group():
        me.send(mine, (me.rank + 1) % me.ranks)
        me.recv(got, (me.rank - 1) % me.ranks)
    return int(got[0])


def divide(me):
    part = me.split(me.rank % 2)
    x = numpy.ones(1, f32)
    part.all_reduce(x)
    part.close()
    me.barrier()
    return int(x[0])


def add(lower, inout):
    inout[:] += lower


def reduce_by_a_function(me):
    x = numpy.full(5, me.rank + 1, numpy.int64)
    me.all_reduce(x, op=rankine.Operation(add, x.dtype))
    return int(x[4])


def through_experts(me):
    draw = numpy.random.default_rng(me.rank)
    x, weights = draw.standard_normal((30, 8), f32), draw.random((30, 2), f32)
    indices = draw.integers(-1, 6, (30, 2), numpy.int32)
    rows, out, want = numpy.empty((180, 8), f32), numpy.empty_like(x), numpy.zeros_like(x)
    with rankine.Experts(me, 6, 8, "f32", choices=2, capacity=12) as layer:
        for _ in range(2):
            counts, first = layer.dispatch(x, indices, rows), 0
            for i, count in enumerate(counts):
                rows[first : first + count] *= me.rank * len(counts) + i + 1
                first += count
            layer.combine(rows[:first], out, weights)
        kept = indices >= 0
        kept.flat[layer.dropped] = False
    for c in range(2):
        want += numpy.where(kept[:, c], weights[:, c], f32(0))[:, None] * (x * (indices[:, c, None] + 1).astype(f32))
    total = numpy.array([kept.sum(), sum(counts)])
    me.all_reduce(total)
    return bool((out == want).all()), max(counts), int(total[0] - total[1])


def die(me):
    me.barrier()
    if me.rank == me.ranks - 1:
        os.kill(os.getpid(), signal.SIGKILL)
    while True:
        add_up(me)


def test_calls_messages_and_groups(processes):
    assert processes(3, add_up) == {0: 6, 1: 6, 2: 6}
    assert processes(3, send_on) == {0: 2, 1: 0, 2: 1}
    assert processes(3, divide) == {0: 2, 1: 1, 2: 2}
    assert processes(3, reduce_by_a_function) == {0: 6, 1: 6, 2: 6}


def test_tokens_go_to_experts_and_return(processes, team):
    for told in (processes(3, through_experts), dict(enumerate(team(2).run(through_experts)))):
        assert [same and most <= 12 and lost == 0 for same, most, lost in told.values()] == [True] * len(told)


def test_wrong_tokens_are_named_on_all_ranks(team):
    def f(me):
        layer = rankine.Experts(me, 4, 2, "f32")
        x, rows, one = numpy.ones((1, 2), f32), numpy.empty((4, 2), f32), numpy.int32([3])
        with pytest.raises(ValueError, match="combine: no rows are out"):
            layer.combine(rows, x)
        with pytest.raises(ValueError, match="is 4; allowed are 0 to 3" if me.rank == 1 else "rank 1 has refused"):
            layer.dispatch(x, one + me.rank, rows)
        with pytest.raises(ValueError, match="rows of rank 1 has room for 1; 2 rows arrive: give more room"):
            layer.dispatch(x, one, rows[:1])
        with pytest.raises(ValueError, match="indices has elements of another type; allowed is i32"):
            layer.dispatch(x, one.astype(numpy.int64), rows)
        assert layer.dispatch(x, one, rows) == ([0, 2] if me.rank == 1 else [0, 0])
        with pytest.raises(ValueError, match="weights has 8 bytes; allowed are 1 x 1 elements of f32"):
            layer.combine(rows[: 2 * me.rank], x, numpy.ones(2, f32))
        layer.combine(rows[: 2 * me.rank], x)
        layer.close()
        with pytest.raises(rankine.Error, match="the experts have been closed"):
            layer.dispatch(x, one, rows)
        with rankine.Experts(me, 4, 2, "f16", result_dtype="f32") as mixed:
            halves = numpy.empty((4, 2), numpy.float16)
            mixed.dispatch(2 * x.astype(numpy.float16), one, halves)
            mixed.combine(3 * halves[: 2 * me.rank].astype(f32), x)
            assert (x == 6).all()
        with pytest.raises(ValueError, match="result_dtype is 'tiny'; allowed are"):
            rankine.Experts(me, 4, 2, "f16", result_dtype="tiny")

    team(2).run(f)
    with pytest.raises(ValueError, match="experts is 3; allowed are multiples of 2"):
        rankine.Team(2).run(lambda me: rankine.Experts(me, 3, 2, "f32"))


def where(me):
    me.barrier()
    return me.cpu, sorted(os.sched_getaffinity(0)), me.ports_in_use


def test_processes_are_pinned_where_they_ask_for_it(processes):
    every = sorted(os.sched_getaffinity(0))
    told = processes(2, where, placement="compact", ports=1)
    for cpu, cpus, ports in told.values():
        assert cpus == [cpu] and ports == (1, 1)
    assert len(every) == 1 or told[0][0] != told[1][0]
    for _, cpus, ports in processes(2, where).values():
        assert cpus == every and ports == (0, 0)


def test_one_that_is_killed_is_told_to_the_others(processes):
    told = processes(3, die, answers=2)
    assert sorted(told) == [0, 1]
    for code, text in told.values():
        assert code == Code.rank_lost and "rank 2's process" in text


def test_wrong_arguments_are_named():
    with pytest.raises(rankine.InvalidArgument, match="rank is None, name is 'job'"):
        rankine.Communicator(2, name="job")
    with pytest.raises(rankine.InvalidArgument, match="rank is 0, name is None"):
        rankine.Communicator(2, rank=0)
    with pytest.raises(rankine.InvalidArgument, match="rank is 2; allowed are 0 to 1"):
        rankine.Communicator(2, rank=2, name="job")
    with pytest.raises(rankine.InvalidArgument, match="name is 'a/b'"):
        rankine.Communicator(2, rank=0, name="a/b")


def test_a_communicator_is_of_one_rank():
    communicator = rankine.Communicator(1, rank=0, name=f"python.{uuid.uuid4()}")
    with pytest.raises(rankine.InvalidArgument, match="rank is 1; allowed are 0 to 0"):
        communicator.join(1)
    with communicator.join(0) as me:
        assert add_up(me) == 1
    with pytest.raises(rankine.Error, match="has joined already"):
        communicator.join(0)


def play_two(name, ranks, told):
    mine = rankine.Communicator(4, rank=ranks[0], more_ranks=ranks[1:], name=name, timeout=60)
    with concurrent.futures.ThreadPoolExecutor(2) as threads:
        for rank, sums in zip(ranks, threads.map(lambda rank: twice(mine.join(rank)), ranks)):
            told.put((rank, sums))


def twice(me):
    return add_up(me), send_on(me)


def test_a_process_may_play_several_ranks():
    context = multiprocessing.get_context("spawn")
    told, name = context.Queue(), f"python.{uuid.uuid4()}"
    both = [context.Process(target=play_two, args=(name, ranks, told)) for ranks in ([0, 2], [3, 1])]
    for process in both:
        process.start()
    assert dict(told.get(timeout=120) for _ in range(4)) == {rank: (10, (rank - 1) % 4) for rank in range(4)}
    for process in both:
        process.join(60)
    with pytest.raises(rankine.InvalidArgument, match="more_ranks is 4; allowed are 0 to 3"):
        rankine.Communicator(4, rank=0, more_ranks=[4], name=name)
    with pytest.raises(rankine.InvalidArgument, match="more_ranks has 0 a second time"):
        rankine.Communicator(4, rank=0, more_ranks=[0], name=name)


def grow(me, name):
    with pytest.raises(rankine.InvalidArgument, match="ranks is 4; allowed are 5 and more"):
        me.grow(4, name)
    with pytest.raises(rankine.InvalidArgument, match="plan_bytes"):
        me.grow(5, name, plan_bytes=-1)
    with me.grow(5, name, timeout=60) as larger:
        return add_up(larger), add_up(me)


def play_growing(name, here, told):
    if here == [4]:
        with rankine.Communicator(5, rank=4, name=f"{name}.larger", timeout=60).join(4) as me:
            told.put((4, (add_up(me), 10)))
        return
    mine = rankine.Communicator(4, rank=here[0], more_ranks=here[1:], name=name, timeout=60)
    with concurrent.futures.ThreadPoolExecutor(3) as threads:
        for rank, sums in zip(here, threads.map(lambda rank: grow(mine.join(rank), f"{name}.larger"), here)):
            told.put((rank, sums))


def test_a_communicator_grows_by_a_new_process():
    context = multiprocessing.get_context("spawn")
    told, name = context.Queue(), f"python.{uuid.uuid4()}"
    all_of_them = [context.Process(target=play_growing, args=(name, ranks, told)) for ranks in ([0, 2, 3], [1], [4])]
    for process in all_of_them:
        process.start()
    assert dict(told.get(timeout=120) for _ in range(5)) == {rank: (15, 10) for rank in range(5)}
    for process in all_of_them:
        process.join(60)


def test_who_does_not_come_is_named():
    with pytest.raises(rankine.Error, match="ranks 1 of 'python.*' have not joined") as error:
        rankine.Communicator(2, rank=0, name=f"python.{uuid.uuid4()}", timeout=0.1)
    assert error.value.code == Code.timeout
