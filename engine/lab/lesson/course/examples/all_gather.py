"""An all-gather along a ring:  rankine check examples/all_gather.py"""
collective = "all_gather"


def schedule(n):
    """Rounds, each a list of (from, to, block)."""
    for k in range(n - 1):
        yield [(r, (r + 1) % n, (r - k) % n) for r in range(n)]
