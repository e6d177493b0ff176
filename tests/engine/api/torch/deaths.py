"""A process dies: the other ranks soon get an error with its rank and process number, and can go on without it."""

from __future__ import annotations

import os
import signal
import time

import torch
import torch.distributed as dist

from processes import backend, check, main, play


def _until_told(rank: int, ranks: int, tmp: str, how) -> tuple[str, float, int]:
    pids = [None] * ranks
    dist.all_gather_object(pids, os.getpid())
    last = ranks - 1
    said = os.path.join(tmp, "died")
    for _ in range(20):
        dist.all_reduce(torch.ones(1000))
    if rank == last:
        with open(said + ".new", "w") as file:
            file.write(str(time.monotonic()))
        os.rename(said + ".new", said)
        how()
        time.sleep(100)
    try:
        while True:
            dist.all_reduce(torch.ones(1000))
    except RuntimeError as error:
        with open(said) as file:
            took = time.monotonic() - float(file.read())
        text = str(error)
    check(f"rank {last}" in text and str(pids[last]) in text, f"'{text}' names not rank {last} and its process {pids[last]}")
    return text, took, pids[last]


def _play(ranks: int, how) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as tmp:

        def on_each(rank: int, n: int) -> float:
            text, took, _ = _until_told(rank, n, tmp, how)
            # Later calls return an equal error; the remaining ranks can make a new group.
            try:
                dist.barrier()
            except RuntimeError as error:
                check(str(error).partition(": ")[2] == text.partition(": ")[2], f"'{error}' is not '{text}'")
            else:
                raise AssertionError("a barrier among the dead")
            dist.destroy_process_group()
            dist.init_process_group("rankine", init_method=f"file://{tmp}/again", rank=rank, world_size=n - 1)
            x = torch.ones(10)
            dist.all_reduce(x)
            check(float(x[0]) == n - 1, "the sum of those who are left")
            return took

        answers = play(ranks, on_each, dies=ranks - 1)
        for took in answers[:-1]:
            check(took < 1, f"told after {took} s")


def killed(ranks: int) -> None:
    _play(ranks, lambda: os.kill(os.getpid(), signal.SIGKILL))


def exits(ranks: int) -> None:
    _play(ranks, lambda: os._exit(3))


def while_asynchronous(ranks: int) -> None:
    """The Future reports the error, too."""

    def on_each(rank: int, n: int) -> None:
        dist.barrier()
        if rank == n - 1:
            os.kill(os.getpid(), signal.SIGKILL)
        work = backend().allreduce([torch.ones(1000)])
        try:
            work.get_future().wait()
        except RuntimeError as error:
            check(f"rank {n - 1}" in str(error), str(error))
        else:
            raise AssertionError("a sum with the dead")
        check(work.is_completed() and not work.is_success(), "it has failed")

    play(ranks, on_each, dies=ranks - 1)


def never_comes(ranks: int) -> None:
    """A rank never comes: the other ranks time out."""
    try:
        play(ranks + 1, lambda rank, n: check(False, "they have met"), timeout=3, missing=ranks)
    except AssertionError as error:
        check("they have met" not in str(error), str(error))
        check(all(f"rank {rank} of" in str(error) for rank in range(ranks)), str(error))
    else:
        raise AssertionError("a group without its last rank")


def forked_child(ranks: int) -> None:
    """A forked child gets an error for the group, drops it and ends; the rank goes on."""

    def on_each(rank: int, n: int) -> None:
        dist.barrier()
        left = dist.irecv(torch.empty(10), (rank - 1) % n)  # under way until the other rank's child has ended
        child = os.fork()
        if child == 0:
            signal.alarm(30)
            for call in (left.wait, dist.barrier):
                try:
                    call()
                    os._exit(1)
                except RuntimeError as error:
                    if "this process was forked from the group's process" not in str(error):
                        os._exit(2)
            del left, call
            dist.destroy_process_group()
            os._exit(0)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        check(status == 0, f"the child has ended with {status}")
        x = torch.ones(10)
        sent = dist.isend(x, (rank + 1) % n)
        left.wait()
        sent.wait()
        dist.all_reduce(x)
        check(float(x[0]) == n, "the sum of the parents")

    play(ranks, on_each)


if __name__ == "__main__":
    main([killed, exits, while_asynchronous, never_comes, forked_child])
