"""A row-parallel layer whose sums overlap with its matrix multiply, block of rows by block of rows.

    python3 overlap.py                             on this machine's cores
    python3 overlap.py --network scale_out         on a modelled network
    python3 overlap.py --network scale_out --timeline 4

Ranks divide K, the inner dimension of x @ w, and the all-reduce adds their partial sums. A block of
rows is summed while the rank multiplies the next one, and its consumer, the next layer, begins as soon
as its sum is there. The order "tp_invariant" gives all numbers of blocks the same bits.

On a modelled network each multiply takes the time of --gflops, and messages move by themselves. On this
machine the ranks' cores move them: time is won only where ranks would wait for each other.
"""

import argparse
import os
import statistics
import time

for library in ("OPENBLAS", "OMP", "MKL"):  # one core per rank
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

import numpy
import rankine

TILE = 32  # rows of a product
f32 = numpy.float32


class Clock:
    """The rank's time: this machine's, or the model's, where work takes the time that is given."""

    def __init__(self, me, gflops):
        self.me, self.gflops = me, gflops

    def now(self):
        return self.me.model_time() if self.gflops else time.perf_counter()

    def matmul(self, x, w, out):
        for row in range(0, len(x), TILE):  # BLAS has other bits for other shapes
            numpy.matmul(x[row : row + TILE], w, out=out[row : row + TILE])
        if self.gflops:
            self.me.compute(2 * x.size * w.shape[1] / self.gflops / 1e9)


def layers(me, clock, x, w, v, blocks):
    """Returns (x @ w, summed over the ranks) @ v, and the spans (what, block, begin, end) of the work."""
    y, z = numpy.empty((len(x), w.shape[1]), f32), numpy.empty((len(x), v.shape[1]), f32)
    buckets = rankine.Buckets(me, bucket_bytes=1)  # each block of rows is a call
    tiles = len(x) // TILE
    cut = [slice(b * tiles // blocks * TILE, (b + 1) * tiles // blocks * TILE) for b in range(blocks)]
    spans, added = [], []
    for b, rows in enumerate(cut):
        begin = clock.now()
        clock.matmul(x[rows], w, y[rows])
        added.append(clock.now())
        spans.append(("multiply", b, begin, added[-1]))
        buckets.add(y[rows])
    for b, rows in enumerate(cut):
        buckets.wait(b + 1)
        begin = clock.now()
        spans.append(("sum", b, added[b], begin))
        clock.matmul(y[rows], v, z[rows])
        spans.append(("next layer", b, begin, clock.now()))
    buckets.wait()
    buckets.close()
    return z, spans


def play(me, tokens, width, blocks, gflops, repeats):
    """Returns the median seconds of the slowest rank, the result and the last spans, by number of blocks."""
    clock = Clock(me, gflops)
    me.set_options(order="tp_invariant")
    numbers = numpy.random.default_rng(me.rank)
    x = numbers.standard_normal((tokens, width // me.ranks), f32)
    w = numbers.standard_normal((width // me.ranks, width), f32)
    v = numpy.random.default_rng(99).standard_normal((width, width // me.ranks), f32)
    out = {}
    for _ in range(repeats):
        for count in blocks:  # in turns
            me.barrier()
            begin = clock.now()
            z, spans = layers(me, clock, x, w, v, count)
            took = numpy.array([clock.now() - begin])
            me.all_reduce(took, op="max")
            out.setdefault(count, ([], z, spans))[0].append(float(took[0]))
            out[count] = (out[count][0], z, [(what, b, s - begin, e - begin) for what, b, s, e in spans])
    return {count: (statistics.median(times), z, spans) for count, (times, z, spans) in out.items()}


def timeline(spans, width=72):
    """A line per kind of work; each column has the last digit of its block. A sum's span ends when the block is used."""
    end = max(span[3] for span in spans)
    lines = {what: [" "] * width for what in ("multiply", "sum", "next layer")}
    for what, block, begin, stop in spans:
        first = int(begin / end * (width - 1))
        for i in range(first, max(first + 1, int(stop / end * (width - 1)))):
            lines[what][i] = str(block % 10)
    return [f"{what:10} |{''.join(line)}|" for what, line in lines.items()]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--tokens", type=int, default=512)
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--blocks", type=int, nargs="+", default=[1, 2, 4, 8, 16])
    parser.add_argument("--network", help="a modelled network, such as scale_out")
    parser.add_argument("--gflops", type=float, default=5000, help="of a rank, on a modelled network")
    parser.add_argument("--repeats", type=int)
    parser.add_argument("--timeline", type=int, metavar="BLOCKS", help="draws rank 0's work with so many blocks")
    a = parser.parse_args()
    repeats = a.repeats or (1 if a.network else 21)
    with rankine.Team(a.ranks, network=a.network) as team:
        results = team.run(play, a.tokens, a.width, a.blocks, a.gflops if a.network else 0, repeats)
    times = {count: seconds for count, (seconds, _, _) in results[0].items()}
    first = next(iter(times.values()))
    print("blocks        time  of the first")
    for count, seconds in times.items():
        print(f"{count:6} {seconds * 1e6:8.1f} us {seconds / first:9.2f}")
    same = len({z.tobytes() for of_rank in results for _, z, _ in of_rank.values()}) == 1
    print("same bits" if same else "OTHER BITS")
    for count in (1, a.timeline) if a.timeline else ():
        print(f"\n{count} blocks", *timeline(results[0][count][2]), sep="\n")
