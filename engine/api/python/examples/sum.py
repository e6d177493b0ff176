"""Python threads as ranks: each contributes its number plus one, and all get the sum."""

import threading

import numpy
import rankine

RANKS = 4
communicator = rankine.Communicator(RANKS)


def play(rank: int) -> None:
    with communicator.join(rank) as me:
        x = numpy.full(1000, rank + 1, numpy.float32)
        me.all_reduce(x)
        if rank == 0:
            print(f"every element: {x[-1]:g}")


threads = [threading.Thread(target=play, args=(rank,)) for rank in range(RANKS)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
