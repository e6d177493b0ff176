"""Measures all-reduces from Python, by operators and by dist.all_reduce, of Rankine, of gloo and of DeepSpeed.

    perf.py RANKS

Blocking calls of f32, in place, in batches: medians over the turns of the slowest rank's median batch. Each turn starts new processes for
each way: in one process, gloo's threads would wake beside Rankine's calls. `rankine perf all_reduce --processes` measures the engine.
"""

from __future__ import annotations

import os
import pathlib
import statistics
import sys
import time
from functools import partial

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests/engine/api/torch"))

import torch
import torch.distributed as dist

from processes import check, play

SIZES = [8, 64, 512, 4 << 10, 32 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20]
BATCHES, TURNS = 15, 5
WAYS = {"operator": "rankine", "rankine": "rankine", "gloo": "gloo", "deepspeed": "gloo"}  # with the backend of the group
SHARED = pathlib.Path("/dev/shm")


def measure(rank: int, ranks: int, way: str) -> list[float]:
    rows, name, all_reduce = [], dist.group.WORLD.group_name, dist.all_reduce
    if way == "operator":
        all_reduce = lambda x: torch.ops.rankine.all_reduce_(x, "sum", name)
    elif way == "deepspeed":
        os.environ |= {"LOCAL_SIZE": str(ranks), "MASTER_ADDR": "rankine", "MASTER_PORT": str(os.getppid())}  # it names its memory so
        ShareMemCommBuilder().load().initialize(ranks, rank)
        dist.barrier()
        all_reduce = torch.ops.deepspeed.inference_all_reduce_
    for size in SIZES:
        all_reduce(tensor := torch.full((size // 4,), float(rank)))
        check(bool((tensor == sum(range(ranks))).all()), f"{way}: a sum of {size} B is wrong")
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


def turn(ranks: int, way: str) -> list[float]:
    ended = play(ranks, partial(measure, way=way), backend=WAYS[way])
    for left in SHARED.glob(f"deepspeed_allreduce_buffer_*_rankine_{os.getpid()}_*"):
        left.unlink()
    return [max(times) for times in zip(*ended)]


if __name__ == "__main__":
    ranks = int(sys.argv[1])
    try:
        from deepspeed.ops.op_builder.cpu import ShareMemCommBuilder

        if ranks > len(os.sched_getaffinity(0)):
            raise ImportError("there are more ranks than cores, and its waits never yield")
        ShareMemCommBuilder().load()  # compiles it at the first time
    except ImportError as error:
        print(f"# deepspeed: missing: {error}")
        del WAYS["deepspeed"]
    turns = [[turn(ranks, way) for way in WAYS] for _ in range(TURNS)]
    print(f"all_reduce among {ranks} processes, f32, in place, from Python with PyTorch {torch.__version__}: median us of the slowest rank")
    print(f"{'bytes':>8}", *(f"{way:>10}" for way in WAYS))
    for size, *columns in zip(SIZES, *([statistics.median(times) for times in zip(*one)] for one in zip(*turns))):
        print(f"{size:>8}", *(f"{us:>10.2f}" for us in columns))
