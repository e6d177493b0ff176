"""Trains a small transformer on ranks that divide the work in several ways. Every way has the losses
of one rank, bit for bit.

    python3 train.py                                 all ways
    python3 train.py --tp 2 --pp 2 --dp 2            one way, beside one rank
    python3 train.py --dp 4 --zero 3 --type bf16 --json
    python3 train.py --dp 4 --network scale_out      with the time of the calls on a modelled network

    dp      a rank has a part of the batch; all-reduces add up the gradients
    zero 1  as dp, but a rank updates a part of the parameters: reduce-scatter, update, all-gather
    zero 3  a rank also keeps only that part: an all-gather before each use
    tp      a rank has some heads of attention and some columns of the feed-forward matrices; an
            all-reduce adds up the results of both
    pp      a rank has some layers; messages carry activations and their gradients

The bits are equal for two reasons. A batch always has PIECES pieces, and a layer SLICES slices; a
rank computes its own ones one after the other, so products have equal shapes in every way. And every
sum over pieces or slices is one tree: a rank adds up its neighbouring parts by halves, and the
order "group_invariant" continues this tree among ranks.
"""

import argparse
import functools
import json
import os
import sys
import time
import typing

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the ranks are threads already
import numpy
import rankine
from transformer import NUMBERS, Unit, attention, attention_back, f32, feed, feed_back, norm, norm_back, softmax, tree

PIECES = 8  # of a batch; also the micro-batches of a pipeline
SLICES = 4  # of a layer; also the heads of attention
SEQUENCES = 2  # of a piece
WORDS = "a rank sends to every ring. the tree waits for one port".split()
LETTERS = sorted(set("".join(WORDS) + " "))


class Way(typing.NamedTuple):
    tp: int = 1
    ep: int = 1  # see experts.py
    dp: int = 1
    pp: int = 1
    zero: int = 0
    experts: int = 0
    type: str = "f32"

    @property
    def numbers(self):
        return NUMBERS[self.type]

    def __str__(self):
        given = [f"{name} {n}" for name, n in self._asdict().items() if n != self._field_defaults[name]]
        return ", ".join(given) or "one rank"


WAYS = [Way(dp=2), Way(dp=8), Way(dp=4, zero=1), Way(dp=4, zero=3), Way(tp=2), Way(tp=4), Way(pp=2)]
WAYS += [Way(tp=2, dp=2, pp=2), Way(tp=2, dp=2, pp=2, zero=3)]


class Sliced:
    """A part of a layer whose slices are divided along tp."""

    def __init__(self, along, way, seed, work, work_back, **shapes):
        self.tp, self.work, self.work_back, self.numbers = along["tp"], work, work_back, way.numbers
        first, count = self.tp.rank * SLICES // way.tp, SLICES // way.tp
        self.units = [Unit(along["data"], way, [*seed, i], **shapes) for i in range(first, first + count)]

    def added_up(self, parts):
        rounded, packed, unpacked, _, dtype = self.numbers
        total = packed(tree([rounded(part) for part in parts], rounded))
        self.tp.all_reduce(total, dtype=dtype)
        return unpacked(total)

    def forward(self, x):
        results, saved = zip(*[self.work(x, unit.matrices()) for unit in self.units])
        return self.added_up(results), saved

    def backward(self, by, saved, piece):
        results, gradients = zip(*[self.work_back(by, s, unit.matrices()) for s, unit in zip(saved, self.units)])
        for unit, of_unit in zip(self.units, gradients):
            unit.add(piece, of_unit)
        return self.added_up(results)


class Trainer:
    """One rank: its layers and its steps."""

    def __init__(self, me, way, options):
        self.options, self.numbers = options, way.numbers
        stride = {"tp": 1, "ep": way.tp, "dp": way.tp * way.ep, "pp": way.tp * way.ep * way.dp}
        place = {axis: me.rank // step % getattr(way, axis) * step for axis, step in stride.items()}
        groups = {"tp": ["tp"], "ep": ["ep"], "dp": ["dp"], "pp": ["pp"], "data": ["ep", "dp"]}
        # The ranks of a group have equal places along all other axes, and so an equal color.
        along = {name: me.split(me.rank - sum(place[axis] for axis in axes)) for name, axes in groups.items()}
        self.data, self.pp = along["data"], along["pp"]
        self.pieces, layers = PIECES // self.data.ranks, options.layers // way.pp
        unit = functools.partial(Unit, self.data, way)
        self.parts, self.embedding, self.head = [], [], []
        if self.pp.rank == 0:
            shapes = {"letters": (len(LETTERS), options.width), "places": (options.length, options.width)}
            self.embedding = [unit([options.seed, 0], **shapes)]
        for layer in range(self.pp.rank * layers, (self.pp.rank + 1) * layers):
            self.parts += self.layer(along, way, [options.seed, 2 + layer], options.width)
        if self.pp.rank == way.pp - 1:
            self.head = [unit([options.seed, 1], logits=(options.width, len(LETTERS)))]

    def layer(self, along, way, seed, width):
        heads = {"qkv": (width, 3 * width // SLICES), "out": (width // SLICES, width)}
        columns = {"up": (width, 4 * width // SLICES), "down": (4 * width // SLICES, width)}
        attend = functools.partial(attention, length=self.options.length)
        return [Sliced(along, way, [*seed, 0], attend, attention_back, **heads),
                Sliced(along, way, [*seed, 1], feed, feed_back, **columns)]  # fmt: skip

    def read(self, step, piece):
        """Returns a row with a single 1 for each letter of a piece, and for the letter that follows it."""
        draw = numpy.random.default_rng([self.options.seed, step, self.data.rank * self.pieces + piece])
        count = SEQUENCES * self.options.length
        text = " ".join(WORDS[i] for i in draw.integers(0, len(WORDS), count + 1))[: count + 1]
        rows = numpy.eye(len(LETTERS), dtype=f32)[[LETTERS.index(letter) for letter in text]]
        return rows[:-1], rows[1:]

    def forward(self, step, piece, x):
        (letters, targets), rounded = self.read(step, piece), self.numbers.rounded
        for unit in self.embedding:
            w = unit.matrices()
            x = rounded(letters @ w["letters"] + numpy.tile(w["places"], (SEQUENCES, 1)))
        saved = []
        for part in self.parts:
            y, scale = norm(x)
            result, kept = part.forward(rounded(y))
            x = rounded(x + result)
            saved.append((y, scale, kept))
        for unit in self.head:
            y, scale = norm(x)
            p = softmax(rounded(y) @ unit.matrices()["logits"])
            self.losses.append(-numpy.log(p[targets == 1].astype(float)).sum() / (PIECES * len(p)))
            saved.append((y, scale, (p - targets) / f32(PIECES * len(p))))
        return x, (letters, saved)

    def backward(self, piece, by, letters, saved):
        rounded = self.numbers.rounded

        def add(unit, gradients=None):
            if gradients:
                unit.add(piece, gradients)
            if piece == self.pieces - 1:
                unit.start_sum()

        for unit in self.head:
            y, scale, by_logits = saved.pop()
            by = rounded(norm_back(by_logits @ unit.matrices()["logits"].T, y, scale))
            add(unit, {"logits": y.T @ by_logits})
        for part, (y, scale, kept) in zip(self.parts[::-1], saved[::-1]):
            by = rounded(by + norm_back(part.backward(by, kept, piece), y, scale))
            for unit in part.units:
                add(unit)
        for unit in self.embedding:
            places = by.reshape(SEQUENCES, self.options.length, -1).sum(0)
            add(unit, {"letters": letters.T @ by, "places": places})
        return by

    def swap(self, stage, sent, receives):
        """Sends to a neighbouring stage and receives from it, both at once; not beyond the ends of the pipeline."""
        if not 0 <= stage < self.pp.ranks:
            return None
        received = numpy.empty((SEQUENCES * self.options.length, self.options.width), self.numbers.element)
        with rankine.group():
            if sent is not None:
                self.pp.send(self.numbers.packed(sent), stage, dtype=self.numbers.dtype)
            if receives:
                self.pp.recv(received, stage, dtype=self.numbers.dtype)
        return self.numbers.unpacked(received)

    def step(self, number):
        """Returns the loss before the update. A stage takes `ahead` pieces forward, then a piece backward and a
        piece forward in turns (1F1B)."""
        self.losses, under_way, stage = [], {}, self.pp.rank
        ahead = min(self.pieces, self.pp.ranks - stage)
        x = self.swap(stage - 1, None, True)
        for i in range(self.pieces + ahead - 1):
            back, out, by = i - ahead + 1, None, None
            if i < self.pieces:
                out, under_way[i] = self.forward(number, i, x)
            by = self.swap(stage + 1, out, back >= 0)
            if back >= 0:
                by = self.backward(back, by, *under_way.pop(back))
            x = self.swap(stage - 1, by if back >= 0 else None, i + 1 < self.pieces)
        for unit in [*self.head, *(unit for part in self.parts for unit in part.units), *self.embedding]:
            unit.update(number, self.options.rate)
        loss = numpy.array([tree(self.losses) if self.head else 0.0])
        self.data.all_reduce(loss)
        self.pp.broadcast(loss, root=self.pp.ranks - 1)
        return float(loss[0])


def train(way, options, trainer=Trainer):
    """Trains by one way on threads; returns what --json prints about it."""

    def play(me):
        mine = trainer(me, way, options)
        return [mine.step(1 + step) for step in range(options.steps)], me.model_time()

    begin = time.perf_counter()
    with rankine.Team(way.tp * way.ep * way.dp * way.pp, order="group_invariant", network=options.network) as team:
        losses, model_seconds = zip(*team.run(play))
    assert all(other == losses[0] for other in losses)
    seconds = time.perf_counter() - begin
    return {"way": str(way), "losses": losses[0], "seconds": seconds, "model_seconds": max(model_seconds)}


def checked(way, options):
    """Returns the way; raises ValueError if its parts cannot be equal."""
    ranks = {"tp": (way.tp, SLICES), "ep * dp": (way.ep * way.dp, PIECES), "pp": (way.pp, options.layers)}
    for name, (parts, whole) in {**ranks, "ep": (way.ep, way.experts or 1)}.items():
        if parts < 1 or whole % parts:
            raise ValueError(f"{name} is {parts}; allowed are divisors of {whole}")
    if way.zero not in (0, 1, 3):
        raise ValueError(f"zero is {way.zero}; allowed are 0, 1 and 3")
    return way


def main(ways=WAYS, trainer=Trainer, **defaults):
    parser = argparse.ArgumentParser(description="Trains a small transformer in several ways, with equal losses.")
    axes = {"tp": 1, "dp": 1, "pp": 1, "zero": 0, **defaults}
    numbers = {**axes, "steps": 10, "layers": 2, "width": 32, "length": 16, "seed": 1}
    for name, value in numbers.items():
        parser.add_argument(f"--{name}", type=int, default=value, metavar="N", help=f"{value} by default")
    parser.add_argument("--rate", type=float, default=0.01, metavar="X", help="of Adam; 0.01 by default")
    parser.add_argument("--type", choices=NUMBERS, default="f32", help="of matrices, activations and messages")
    parser.add_argument("--network", metavar="NET", help="a modelled network (rankine simulate --help)")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    asked = Way(**{name: getattr(options, name) for name in axes}, type=options.type)
    alone = Way(experts=asked.experts, type=options.type)
    ways = [way._replace(type=options.type) for way in ways] if asked == alone else [asked]
    try:
        ways = [checked(way, options) for way in ways]
        results = [train(way, options, trainer) for way in (alone, *ways)]
    except ValueError as error:  # also rankine.InvalidArgument
        parser.error(str(error))
    losses = results[0]["losses"]
    for result in results:
        result["equal"] = result["losses"] == losses
    if options.json:
        print(json.dumps(results))
    else:
        for step in sorted({1, *range(0, options.steps + 1, max(options.steps // 5, 1))} - {0}):
            print(f"step {step:4}   loss {losses[step - 1]:.6f}")
        for result in results:
            bits = "equal bits" if result["equal"] else "OTHER BITS"
            model = f"   {result['model_seconds'] * 1e3:9.3f} ms on {options.network}" if options.network else ""
            print(f"{result['way']:40} {result['seconds']:6.2f} s   {result['losses'][-1]:.17f}   {bits}{model}")
    return 0 if all(result["equal"] for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
