#include "algorithms/shapes.h"

namespace rankine {
namespace {

template <class Parent>
std::vector<Rank> parents(int n, const Parent& parent) {
  std::vector<Rank> out;
  for (Rank r : ranks(n)) out.push_back(parent(r));
  return out;
}

template <class Parent, class When>
Tree tree(int n, const Parent& parent, const When& when) {
  Tree out{{kNoParent}, {-1}};
  for (Rank r = 1; r < n; ++r) {
    out.parent.push_back(parent(r));
    out.when.push_back(when(r));
  }
  return out;
}

int lowest_bit(int r) { return r & -r; }

// The place of the lowest digit of r that is not 0, to base k.
int lowest_place(int k, int r) { return r % k != 0 ? 0 : 1 + lowest_place(k, r / k); }

}  // namespace

Tree knomial_near(int n, int k) {
  return tree(
      n, [k](Rank r) { return r % power_of(k, floor_log(k, r)); },
      [k](Rank r) { return floor_log(k, r); });
}

Tree knomial_far(int n, int k) {
  const int last = ceil_log(k, n) - 1;
  return tree(
      n, [k](Rank r) { return r - r % power_of(k, lowest_place(k, r) + 1); },
      [k, last](Rank r) { return last - lowest_place(k, r); });
}

Tree star(int n) {
  return tree(
      n, [](Rank) { return 0; }, [](Rank r) { return r - 1; });
}

Tree heap(int n) {
  return by_levels(parents(n, [](Rank r) { return r == 0 ? kNoParent : (r - 1) / 2; }));
}

Tree in_order(int n) {
  return by_levels(parents(n, [n](Rank r) {
    const int q = r + 1, bit = lowest_bit(q);  // in 1 ... n, what hangs below q is q +- bit / 2
    const int above = (q ^ bit) | (2 * bit);
    return (above <= n ? above : q ^ bit) - 1;  // 0, over the edge, becomes kNoParent
  }));
}

}  // namespace rankine
