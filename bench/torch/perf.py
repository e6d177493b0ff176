"""Measures an all-reduce from Python, by dist.all_reduce and by the operator, beside gloo's.

    perf.py RANKS

Blocking calls of f32, in place, in batches, of rank 0: medians over the turns of the batches' medians. Each turn starts new processes for
each backend: in one process, gloo's threads would wake beside Rankine's calls. `rankine perf all_reduce --processes` measures the engine.
"""

from __future__ import annotations

import pathlib
import statistics
import sys
import time
from functools import partial

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests/engine/api/torch"))

import torch
import torch.distributed as dist

from processes import play

SIZES = [8, 64, 512, 4 << 10, 32 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20]
BATCHES, TURNS = 15, 5


def measure(rank: int, ranks: int, operator: bool = False) -> list[float]:
    rows, name = [], dist.group.WORLD.group_name
    all_reduce = (lambda x: torch.ops.rankine.all_reduce_(x, "sum", name)) if operator else dist.all_reduce
    for size in SIZES:
        tensor, times = torch.zeros(size // 4), []
        calls = 5 if size >= 1 << 20 else 20 if size >= 1 << 16 else 50
        for _ in range(BATCHES + 1):
            dist.barrier()
            began = time.perf_counter()
            for _ in range(calls):
                all_reduce(tensor)
            times.append((time.perf_counter() - began) / calls * 1e6)
        rows.append(statistics.median(times[1:]))
    return rows


if __name__ == "__main__":
    ranks = int(sys.argv[1])
    turns = [
        (play(ranks, partial(measure, operator=True))[0], play(ranks, measure)[0], play(ranks, measure, backend="gloo")[0])
        for _ in range(TURNS)
    ]
    print(f"all_reduce among {ranks} processes, f32, in place, from Python with PyTorch {torch.__version__}: median us of rank 0")
    print(f"{'bytes':>8} {'operator':>10} {'rankine':>10} {'gloo':>10} {'gloo / rankine':>15}")
    for size, operator, ours, theirs in zip(SIZES, *([statistics.median(times) for times in zip(*one)] for one in zip(*turns))):
        print(f"{size:>8} {operator:>10.2f} {ours:>10.2f} {theirs:>10.1f} {theirs / ours:>15.1f}")
