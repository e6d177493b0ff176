"""Crossovers worked out by hand. third_party/mpi --test runs it."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench/mpi"))

from cluster import crossings

SIZES = [1, 4, 16, 64]


class Crossings(unittest.TestCase):
    def test_one_in_the_middle_of_the_logarithms(self) -> None:
        # First twice as slow at 4, twice as quick at 16: equal at 8.
        (at, of_first), = crossings(SIZES, [2, 2, 1, 1], [1, 1, 2, 2])
        self.assertAlmostEqual(at, 8)
        self.assertTrue(of_first)

    def test_to_and_fro(self) -> None:
        found = crossings(SIZES, [1, 2, 1, 1], [2, 1, 8, 2])
        self.assertEqual([of_first for _, of_first in found], [False, True])
        self.assertAlmostEqual(found[0][0], 2)
        self.assertAlmostEqual(found[1][0], 4 * 4 ** 0.25)

    def test_none(self) -> None:
        self.assertEqual(crossings(SIZES, [1, 1, 1, 1], [2, 2, 2, 2]), [])

    def test_equal_times_say_nothing(self) -> None:
        self.assertEqual(crossings(SIZES, [1, 1, 1, 1], [2, 1, 1, 2]), [])
        (at, _), = crossings(SIZES, [1, 1, 2, 2], [2, 1, 1, 1])
        self.assertAlmostEqual(at, 4)


if __name__ == "__main__":
    unittest.main()
