"""An all-reduce in which whole vectors go round:  python3 examples/alternate_ring.py 4 | rankine check -

Each rank hands its own vector on, then whatever came, on plane 1, and adds up what comes by on plane 0.
Ranks add in other orders, so the first line says other_bits.
"""
import sys

ranks = int(sys.argv[1])
print("all_reduce", ranks, "planes 2 other_bits")
for k in range(ranks - 1):
    print("round  # on to the next")
    for r in range(ranks):
        print(f"{r} -> {(r + 1) % ranks}: 0 {'on 1' if k else 'to 1'}")
    print("round  # local: add what came")
    for r in range(ranks):
        print(f"{r} -> {r}: 0 on 1 to 0 +")
