"""Finds the message sizes at which the faster of two algorithms changes."""

from __future__ import annotations

import math
from typing import Sequence


def crossings(sizes: Sequence[int], first: Sequence[float], second: Sequence[float]) -> list[tuple[float, bool]]:
    """Returns the sizes at which both take equal time, rising, each with True if the first is faster from there on.
    Between two measured sizes it interpolates the logarithms linearly. It ignores sizes with equal times."""
    found = []
    before = 0.0  # log of first over second at the last size where they differ
    at = 0.0
    for size, a, b in zip(sizes, first, second, strict=True):
        now = math.log(a / b)
        if now == 0:
            continue
        if before * now < 0:
            part = before / (before - now)
            found.append((math.exp(math.log(at) + part * (math.log(size) - math.log(at))), now < 0))
        before, at = now, size
    return found
