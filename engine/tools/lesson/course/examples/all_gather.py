"""An all-gather along a ring, as rankine check reads it:  python3 examples/all_gather.py 8 | rankine check -

schedule() is yours to change; the rest prints what it says.
"""
import sys


def schedule(ranks):
    """The rounds, each a list of (from, to, block)."""
    return [[(r, (r + 1) % ranks, (r - k) % ranks) for r in range(ranks)] for k in range(ranks - 1)]


ranks = int(sys.argv[1])
print("all_gather", ranks)
for transfers in schedule(ranks):
    print("round")
    for sender, receiver, block in transfers:
        print(f"{sender} -> {receiver}: {block}")
