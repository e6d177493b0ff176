"""Parameters whose gradients ranks add up, whole or in parts (ZeRO; Rajbhandari et al., 2020), for
train.py."""

import numpy
import rankine
from number_types import tree
from transformer import f32


class Unit:
    """Matrices in one vector, which the ranks of `group` use on different pieces of the batch."""

    def __init__(self, group, way, seed, **shapes):
        self.group, self.zero, self.shapes, self.gradients = group, way.zero, shapes, {}
        self.rounded = way.numbers.rounded
        draw = numpy.random.default_rng(seed)
        parts = [draw.standard_normal(shape, f32) * f32(shape[0] ** -0.5) for shape in shapes.values()]
        self.whole = self.flat(parts)
        self.mine = numpy.split(self.whole, group.ranks)[group.rank].copy() if self.zero else self.whole
        self.moments = numpy.zeros((2, len(self.mine)), f32)

    def flat(self, parts):
        vector = numpy.concatenate([part.ravel() for part in parts])
        return numpy.pad(vector, (0, -len(vector) % self.group.ranks))

    def gathered(self):
        whole = numpy.empty(len(self.mine) * self.group.ranks, f32)
        self.group.all_gather(self.mine, whole)
        return whole

    def matrices(self):
        rest, found = self.rounded(self.gathered() if self.zero == 3 else self.whole), {}
        for name, (rows, cols) in self.shapes.items():
            found[name], rest = rest[: rows * cols].reshape(rows, cols), rest[rows * cols :]
        return found

    def add(self, piece, gradients):
        self.gradients[piece] = self.flat([gradients[name] for name in self.shapes])

    def start_sum(self):
        """Starts the sum of the gradients over all pieces; update() waits for it."""
        total = self.sum = tree([self.gradients[piece] for piece in sorted(self.gradients)])
        if self.zero:
            self.sum = numpy.empty_like(self.mine)
            self.request = rankine.start(self.group.reduce_scatter, total, self.sum)
        else:
            self.request = rankine.start(self.group.all_reduce, total)

    def update(self, step, rate):
        """Adam (Kingma & Ba, 2015)."""
        self.request.wait()
        (first, second), g = self.moments, self.sum
        first += f32(0.1) * (g - first)
        second += f32(0.02) * (g * g - second)
        mean, square = first / f32(1 - 0.9**step), second / f32(1 - 0.98**step)
        self.mine -= f32(rate) * mean / (numpy.sqrt(square) + f32(1e-8))
        if self.zero:
            self.whole = self.gathered() if self.zero == 1 else None
