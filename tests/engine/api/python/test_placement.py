"""The CPUs that ranks run on, and the number of messages in flight."""

import os
import threading

import numpy
import pytest
import rankine

_ALL = sorted(os.sched_getaffinity(0))
_ANYWHERE = _ALL[0] if len(_ALL) == 1 else None


def where(me):
    me.barrier()
    return me.cpu, sorted(os.sched_getaffinity(0))


def test_ranks_of_a_team_are_pinned_to_cpus_of_their_own(team):
    pinned = team(2)
    for _ in range(3):  # a rank stays on its thread
        found = pinned.run(where)
        assert [cpus for _, cpus in found] == [[cpu] for cpu, _ in found]
        assert len(_ALL) == 1 or found[0][0] != found[1][0]
    assert pinned.run(where) == found
    assert sorted(os.sched_getaffinity(0)) == _ALL


@pytest.mark.parametrize("options", [{"placement": "none"}, {"nodes": [-1, -1]}])
def test_ranks_of_a_team_run_where_they_are_if_asked_so(team, options):
    assert team(2, **options).run(where) == [(_ANYWHERE, _ALL)] * 2


def test_a_placement_may_name_cpus(team):
    named = f"{_ALL[0]},{_ALL[-1]}" if len(_ALL) > 1 else f"{_ALL[0]}"
    found = team(2, placement=named).run(where)
    assert [cpu for cpu, _ in found] == [_ALL[0], _ALL[-1]]
    with pytest.raises(rankine.InvalidArgument, match="placement \"nowhere\" is unknown"):
        rankine.Team(2, placement="nowhere")


@pytest.mark.parametrize("placement", [None, "scatter"])
def test_threads_that_join_are_pinned_where_they_ask_for_it(placement):
    comm = rankine.Communicator(2, placement=placement, timeout=20)
    found = [None, None]

    def play(rank):
        me = comm.join(rank)
        joined = sorted(os.sched_getaffinity(0))
        found[rank] = (joined, *where(me))

    threads = [threading.Thread(target=play, args=(rank,)) for rank in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for joined, cpu, cpus in found:
        assert joined == cpus == (_ALL if placement is None else [cpu])
    if placement is None:
        assert [cpu for _, cpu, _ in found] == [_ANYWHERE] * 2


def test_ports_are_a_budget_and_counted(team):
    def add_up(me):
        x = numpy.full(1000, me.rank, numpy.float32)
        me.all_reduce(x)
        return x[0], me.ports_in_use

    assert team(3, ports=1).run(add_up) == [(3, (1, 1))] * 3
    assert team(3).run(add_up) == [(3, (0, 0))] * 3
    assert team(3, network="scale_out,clock=virtual").run(add_up)[0][1].most_sent >= 1
    with pytest.raises(rankine.InvalidArgument, match="ports is -1"):
        rankine.Team(2, ports=-1)
