"""An all-reduce in which whole vectors go round:  rankine check examples/alternate_ring.py

Each rank hands its own vector on, then whatever came, on plane 1, and adds up what comes by on plane 0.
Ranks add in other orders, so it says other_bits.
"""
collective = "all_reduce"
planes = 2
other_bits = True


def schedule(n):
    for k in range(n - 1):
        # On to the next.
        yield [{"from": r, "to": (r + 1) % n, "what": 0, "what_plane": 1 if k else 0, "where_plane": 1} for r in range(n)]
        # Local: add what came.
        yield [{"from": r, "to": r, "what": 0, "what_plane": 1, "act": "reduce"} for r in range(n)]
