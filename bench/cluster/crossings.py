"""Where the quicker of two algorithms changes along the sizes of a message."""

from __future__ import annotations

import math
from typing import Sequence


def crossings(sizes: Sequence[int], first: Sequence[float], second: Sequence[float]) -> list[tuple[float, bool]]:
    """By rising sizes: where the two take equally long, between two sizes by a line of the logarithms, and
    whether the first is the quicker one from there on. A size at which they are equal says nothing."""
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
