"""Measures an all-reduce from Python, beside gloo's and the engine's own, in one run.

    perf.py RANKINE RANKS     RANKINE is the program //engine/cli:rankine

Blocking calls of f32, in place, in batches, of rank 0: medians over the turns of the batches' medians. Each
turn starts new processes for each backend and `rankine perf` for the engine alone: with both backends in one
process, gloo's threads would wake beside Rankine's calls and cost either of them ten microseconds. If there are enough
cores, the calling thread of each process is pinned to its own core; the threads of backends are not pinned.
"""

from __future__ import annotations

import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests/engine/api/torch"))

import torch
import torch.distributed as dist

from processes import play

SIZES = [8, 64, 512, 4 << 10, 32 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20]
BATCHES, TURNS = 15, 5


def calls_of(size: int) -> int:
    return 5 if size >= 1 << 20 else 20 if size >= 1 << 16 else 50


def pin(rank: int, ranks: int) -> None:
    """Pins the calling thread only."""
    cores = sorted(os.sched_getaffinity(0))
    if ranks <= len(cores):
        os.sched_setaffinity(0, {cores[rank]})


def measure(rank: int, ranks: int) -> list[float]:
    pin(rank, ranks)
    rows = []
    for size in SIZES:
        tensor = torch.zeros(size // 4)
        times = []
        for batch in range(BATCHES + 1):
            dist.barrier()
            began = time.perf_counter()
            for _ in range(calls_of(size)):
                dist.all_reduce(tensor)
            took = time.perf_counter() - began
            if batch > 0:
                times.append(took / calls_of(size) * 1e6)
        rows.append(statistics.median(times))
    return rows


def engine(program: str, ranks: int) -> list[float]:
    """`rankine perf` with the batches of measure()."""
    rows = []
    for size in SIZES:
        asked = f"perf all_reduce --processes -t {ranks} -b {size} -e {size} -a 0 -c 0 -n 41 -m {calls_of(size)} --json -"
        said = subprocess.run([program, *asked.split()], capture_output=True, check=True, timeout=200)
        rows.append(json.loads(said.stdout)["results"][0]["in_place"]["time"])
    return rows


def text(size: int) -> str:
    return f"{size}" if size < 1 << 10 else f"{size >> 10}K" if size < 1 << 20 else f"{size >> 20}M"


if __name__ == "__main__":
    ranks = int(sys.argv[2])
    turns = [
        (play(ranks, measure)[0], play(ranks, measure, backend="gloo")[0], engine(sys.argv[1], ranks)) for _ in range(TURNS)
    ]
    rows = [[statistics.median(times) for times in zip(*contender)] for contender in zip(*turns)]
    print(f"all_reduce among {ranks} processes, f32, in place, from Python with PyTorch {torch.__version__}: median us of rank 0")
    print(f"{'bytes':>6} {'rankine':>10} {'gloo':>10} {'gloo / rankine':>15} {'the engine':>11} {'over it':>9}")
    for size, ours, theirs, least in zip(SIZES, *rows):
        print(f"{text(size):>6} {ours:>10.2f} {theirs:>10.1f} {theirs / ours:>15.1f} {least:>11.2f} {ours - least:>9.2f}")
