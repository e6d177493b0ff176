"""RANKINE_NETWORK: the calls of a group take the time of a modelled network, on a wall clock, and all ranks know the same time."""

from __future__ import annotations

import os
import pathlib
import re
import tempfile

os.environ["RANKINE_NETWORK"] = "scale_out,clock=wall"  # read at the creation of a group

import torch
import torch.distributed as dist

from processes import check, main, play


def one_time(ranks: int) -> None:
    """Each rank prints its time when the group ends."""
    with tempfile.TemporaryDirectory() as folder:

        def on_each(rank: int, n: int) -> None:
            os.dup2(os.open(f"{folder}/{rank}", os.O_WRONLY | os.O_CREAT), 2)
            for count in (2, 20_000):
                x = torch.full((count,), float(rank))
                dist.all_reduce(x)
                check(bool((x == n * (n - 1) / 2).all()), f"a sum is {x}")

        play(ranks, on_each)
        said = [pathlib.Path(folder, str(rank)).read_text() for rank in range(ranks)]
    times = {match[1] for text in said if (match := re.search(r"scale_out on a wall clock, .*: (.*) of the model took", text))}
    check(len(times) == 1 and times != {"0 s"}, f"the ranks' times are {times}: {said}")


if __name__ == "__main__":
    main([one_time])
