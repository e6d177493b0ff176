"""Measures the time of a call from Python, and of a prepared one: an all-reduce of 4 KiB among 2
ranks.

    python3 timing.py
    %timeit me.all_reduce(x)           in IPython, while rank 1 makes equally many calls on another thread

Both ranks must make the same number of calls, so the number is fixed in advance.
"""

import timeit

import numpy
import rankine

CALLS = 10_000


def play(me: rankine.Member) -> tuple[float, float]:
    x = numpy.zeros(1024, numpy.float32)
    me.all_reduce(x)  # plans
    called = timeit.timeit(lambda: me.all_reduce(x), number=CALLS)
    with rankine.prepare(me.all_reduce, x) as request:
        started = timeit.timeit(lambda: (request.start(), request.wait()), number=CALLS)
    return called / CALLS * 1e6, started / CALLS * 1e6


with rankine.Team(2) as team:
    called, started = map(max, zip(*team.run(play)))
    print(f"{called:.1f} us per call, {started:.1f} us prepared")
