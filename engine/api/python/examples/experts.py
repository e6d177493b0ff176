"""Trains the transformer of train.py with a mixture of experts in each layer (Fedus et al., Switch
Transformers, 2022): a token goes to one expert, on any rank, and comes back. No token is dropped.

    python3 experts.py                            all ways, beside one rank
    python3 experts.py --ep 4 --experts 8 --json

Along ep a rank has some experts of each layer and a part of the batch. All-to-alls with counts carry
tokens to the experts, and results back. An expert multiplies the tokens of each piece apart, so its
products have equal shapes in every way, and the losses have equal bits.
"""

import sys

import numpy
from transformer import Unit, feed, feed_back, softmax
from train import PIECES, Trainer, Way, main

WAYS = [Way(experts=4, **axes) for axes in ({"dp": 2}, {"ep": 2}, {"ep": 4}, {"ep": 2, "dp": 2, "zero": 1})]
WAYS += [Way(experts=4, ep=2, tp=2, pp=2, zero=3)]


class Experts:
    """The part of a layer with a router and experts."""

    def __init__(self, along, way, seed, width):
        self.numbers = way.numbers
        self.ep, self.pieces, count = along["ep"], PIECES // (way.dp * way.ep), way.experts // way.ep
        self.here = range(self.ep.rank * count, (self.ep.rank + 1) * count)
        shapes = {"up": (width, 4 * width), "down": (4 * width, width)}
        self.experts = [Unit(along["dp"], way, [*seed, e], **shapes) for e in self.here]
        self.router = Unit(along["data"], way, [*seed, way.experts], router=(width, way.experts))
        self.units = [*self.experts, self.router]

    def travel(self, rows, pairs):
        """pairs[i][j]: rows from rank i to rank j."""
        rows = self.numbers.packed(self.numbers.rounded(rows))
        arrived = numpy.empty((pairs[:, self.ep.rank].sum(), rows.shape[1]), rows.dtype)
        self.ep.all_to_all(rows, arrived, counts=pairs * rows.shape[1], dtype=self.numbers.dtype)
        return self.numbers.unpacked(arrived)

    def visit(self, rows, route, work):
        """Sends each token's row to its expert and its result back. work(i, rows) gets group i: the rows from rank
        i // (experts here) for the expert i % (experts here)."""
        order, pairs, ends = route
        groups = numpy.split(self.travel(rows[order], pairs), ends[:-1])
        results = numpy.empty_like(rows)
        results[order] = self.travel(numpy.concatenate([work(i, group) for i, group in enumerate(groups)]), pairs.T)
        return results

    def forward(self, x):
        p = softmax(x @ self.router.matrices()["router"])
        chosen = p.argmax(-1)
        counts = numpy.empty((self.ep.ranks, p.shape[1]), numpy.int64)  # by rank and expert
        self.ep.all_gather(numpy.bincount(chosen, minlength=p.shape[1]), counts)
        pairs = counts.reshape(self.ep.ranks, self.ep.ranks, -1).sum(2)
        route = chosen.argsort(kind="stable"), pairs, counts[:, self.here].ravel().cumsum()
        weights, kept = [unit.matrices() for unit in self.experts], []

        def work(i, rows):
            results, saved = feed(rows, weights[i % len(weights)])
            kept.append(saved)
            return results

        results = self.visit(x, route, work)
        gate = p[numpy.arange(len(x)), chosen, None]
        return results * gate, (x, p, chosen, route, kept, results, gate)

    def backward(self, by, saved, piece):
        x, p, chosen, route, kept, results, gate = saved
        weights = [unit.matrices() for unit in self.experts]

        def work(i, by_rows):
            rank, e = divmod(i, len(weights))
            by_input, gradients = feed_back(by_rows, kept[i], weights[e])
            self.experts[e].add(rank * self.pieces + piece, gradients)
            return by_input

        by_x = self.visit(by * gate, route, work)
        by_gate = (by * results).sum(-1, keepdims=True) * gate
        by_logits = -by_gate * p
        by_logits[numpy.arange(len(x)), chosen] += by_gate[:, 0]
        self.router.add(piece, {"router": x.T @ by_logits})
        return by_x + by_logits @ self.router.matrices()["router"].T


class ExpertTrainer(Trainer):
    def layer(self, along, way, seed, width):
        attention, _ = super().layer(along, way, seed, width)
        return [attention, Experts(along, way, [*seed, 1], width)]


if __name__ == "__main__":
    sys.exit(main(WAYS, ExpertTrainer, ep=1, experts=4))
