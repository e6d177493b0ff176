"""schedule_to_check.py runs the function that `rankine check` requires in a Python file, besides the name of a collective:

    collective = "all_gather"

    def schedule(n):  # along a ring
        for k in range(n - 1):
            yield [(r, (r + 1) % n, (r - k) % n) for r in range(n)]

`rankine check ring.py` judges the schedules for several n. schedule() yields or returns rounds, each a list of transfers (from, to, block);
(from, to, block, "+") adds. Several blocks of one message are a list, and a transfer may be a dict with JSON's members, such as
{"from": 0, "to": 1, "what": [0], "what_plane": 1, "act": "reduce"}. The file may define root, peer, blocks,
planes and other_bits in place of the defaults, each as a value or as a function of n.

This file prints one schedule: python3 schedule_to_check.py ring.py 8 | rankine check -
"""
import contextlib
import json
import operator
import runpy
import sys
import traceback


class NoSchedule(Exception):
    """The file's result is not a schedule; the text gives the reason."""


def numbers(value):
    if hasattr(value, "__iter__"):
        return [operator.index(each) for each in value]
    return operator.index(value)


def transfer_of(written):
    if isinstance(written, dict):
        return dict(written)
    try:
        sender, receiver, what, *act = written
        if act not in ([], ["+"]):
            raise ValueError
        return {"from": numbers(sender), "to": numbers(receiver), "what": numbers(what), "act": "reduce" if act else "copy"}
    except (TypeError, ValueError):
        raise NoSchedule(
            f'{written!r} is no transfer; allowed are (from, to, block) and (from, to, block, "+"), all whole numbers'
        ) from None


def rounds_of(made):
    """Rounds, each with the line that yields it, if the rounds come from a generator."""
    frame = getattr(made, "gi_frame", None)
    for written in made:
        line = frame.f_lineno if frame else 0
        try:
            transfers = [transfer_of(one) for one in written]
        except NoSchedule as wrong:
            raise NoSchedule(f"line {line}: {wrong}" if line else str(wrong)) from None
        yield [{**one, "line": line} for one in transfers] if line else transfers


def asked(path, ranks):
    module = runpy.run_path(path)
    if not isinstance(module.get("collective"), str) or not callable(module.get("schedule")):
        raise NoSchedule('a name and a function are needed: collective = "all_gather", and def schedule(n)')
    out = {"collective": module["collective"], "ranks": ranks}
    for name in ("root", "peer", "blocks", "planes", "other_bits"):
        if name in module:
            out[name] = module[name](ranks) if callable(module[name]) else module[name]
    made = module["schedule"](ranks)
    if not hasattr(made, "__iter__"):
        raise NoSchedule(f"schedule({ranks}) is {made!r}; rounds are to be yielded or returned")
    out["transfers"] = list(rounds_of(made))
    return out


def main(path, ranks):
    try:
        # The file's own output goes to stderr, apart from the JSON.
        with contextlib.redirect_stdout(sys.stderr):
            text = json.dumps(asked(path, int(ranks)))
    except NoSchedule as wrong:
        sys.exit(str(wrong))
    except SyntaxError as wrong:
        sys.exit(f"line {wrong.lineno}: {wrong.msg}")
    except Exception as wrong:
        lines = [frame.lineno for frame in traceback.extract_tb(wrong.__traceback__) if frame.filename == path]
        sys.exit((f"line {lines[-1]}: " if lines else "") + f"{type(wrong).__name__}: {wrong}")
    print(text)


main(*sys.argv[1:])
