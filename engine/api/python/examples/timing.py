"""What a call takes from Python: an all-reduce of 4 KiB among 2 ranks, measured on rank 0.

    python3 timing.py
    %timeit me.all_reduce(x)           in IPython, with rank 1 calling as often on a thread of its own

The loop of calls is the other rank's to follow, so it is told how many there will be.
"""

import timeit

import numpy
import rankine

CALLS = 10_000


def play(me: rankine.Member) -> float:
    x = numpy.zeros(1024, numpy.float32)
    me.all_reduce(x)  # plans
    return timeit.timeit(lambda: me.all_reduce(x), number=CALLS) / CALLS


with rankine.Team(2) as team:
    print(f"{max(team.run(play)) * 1e6:.1f} us per call")
