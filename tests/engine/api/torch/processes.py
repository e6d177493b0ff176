"""Processes that play the ranks of a group, forked from the test so that PyTorch is loaded once."""

from __future__ import annotations

import datetime
import multiprocessing
import os
import pathlib
import pickle
import sys
import tempfile
import traceback
from typing import Any, Callable

import torch
import torch.distributed as dist

import rankine

if not hasattr(dist.Backend, "_ensure_backend_registered"):  # PyTorch without entry points of backends
    import rankine.torch

_FORK = multiprocessing.get_context("fork")


def _be_rank(function: Callable[..., Any], meeting: str, backend: str, rank: int, ranks: int, timeout: float, pipe: Any) -> None:
    torch.set_num_threads(1)
    try:
        dist.init_process_group(
            backend,
            init_method=f"file://{meeting}",
            rank=rank,
            world_size=ranks,
            timeout=datetime.timedelta(seconds=timeout),
        )
        answer = (True, function(rank, ranks))
        dist.destroy_process_group()
    except BaseException:
        answer = (False, traceback.format_exc())
    pipe.send_bytes(pickle.dumps(answer))  # tensors by value
    pipe.close()
    sys.stdout.flush()
    os._exit(0)


def play(ranks: int, function: Callable[..., Any], *, backend: str = "rankine", timeout: float = 30, dies: int | None = None, missing: int | None = None) -> list[Any]:
    """Runs function(rank, ranks) on each rank and returns the results by rank. Rank `dies` may die without a result; rank `missing` is not
    started."""
    with tempfile.TemporaryDirectory() as folder:
        meeting = str(pathlib.Path(folder) / "store")
        ends, processes = [], []
        for rank in range(ranks):
            if rank == missing:
                continue
            ours, theirs = _FORK.Pipe(duplex=False)
            process = _FORK.Process(target=_be_rank, args=(function, meeting, backend, rank, ranks, timeout, theirs))
            process.start()
            theirs.close()
            ends.append(ours)
            processes.append(process)
        answers: list[Any] = []
        failed = ""
        for rank, end in enumerate(ends):
            try:
                if not end.poll(150):
                    raise EOFError("no answer within 150 s")
                worked, answer = pickle.loads(end.recv_bytes())
            except EOFError as error:
                worked, answer = rank == dies, None if rank == dies else f"it has ended without an answer ({error})"
            answers.append(answer)
            if not worked:
                failed += f"rank {rank} of {ranks}: {answer}\n"
        for process in processes:
            process.kill() if failed else process.join(30)
    if failed:
        raise AssertionError(failed)
    return answers


def check(condition: bool, what: str) -> None:
    if not condition:
        raise AssertionError(what)


def refused(says: str | tuple[str, ...], call: Callable[[], Any]) -> None:
    """The call must fail with one of these texts in its error's code and text."""
    texts = (says,) if isinstance(says, str) else says
    try:
        call()
    except RuntimeError as error:
        said = f"{error.code.name}: {error}" if isinstance(error, rankine.Error) else str(error)
        check(any(text in said for text in texts), f"'{said}' does not say any of {texts}")
    else:
        raise AssertionError(f"nothing was wrong; expected any of {texts}")


def backend(group: Any = None) -> Any:
    """The group's rankine.torch.ProcessGroup. Its calls return the Work itself; PyTorch's calls return another Work around it, which
    forwards wait() and get_future() only."""
    group = group or dist.group.WORLD
    return group._get_backend(torch.device("cpu"))


def leftovers() -> list[str]:
    return sorted(name for name in os.listdir("/dev/shm") if name.startswith("rankine.torch."))


def main(plays: list[Callable[[int], None]]) -> None:
    """Runs each play with the number of ranks from the command line."""
    ranks = int(sys.argv[1])
    before = leftovers()
    for one in plays:
        one(ranks)
        print(f"ok {one.__name__}, {ranks} processes", flush=True)
    check(leftovers() == before, f"left behind in /dev/shm: {leftovers()}")
