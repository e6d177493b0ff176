#include "algorithms/exchange.h"

#include "algorithms/schedule/stating_order.h"

namespace rankine {
namespace {

// A round for each of those dimensions between core members c and surplus ranks r: tell(d, c, r,
// send).
template <class Tell>
Schedule with_surplus(const TorusFold& fold, const std::vector<int>& dimensions, int n,
                      const Tell& tell) {
  const int rounds = static_cast<int>(dimensions.size());
  return {fold.ranks(), n, rounds, [fold, dimensions, tell](int k, Send send) {
            const int d = at(dimensions, k);
            fold.for_each_surplus_in(d, [&](Rank c, Rank r) { tell(d, c, r, send); });
          }};
}

std::function<Rank(Rank)> place_in(const TorusFold& fold) {
  return [fold, core = Torus(fold.core_dims())](Rank c) { return fold.rank(core, c); };
}

// For each of these ranks, `count` of its `parts` blocks, from `first` on.
IndexList parts_of(const IndexList& ranks, int parts, int first, int count) {
  IndexList out;
  ranks.for_each([&](Rank r) { out.append(Run{r * parts + first, count, 1}); });
  return out;
}

}  // namespace

Schedule folded_torus_all_reduce(const std::vector<int>& dims, CoreSize size, const OnTorus& core) {
  const TorusFold fold(dims, size);
  const Schedule inner = core(fold.core_dims());
  if (fold.folded().empty()) return inner;
  const auto add = [n = inner.blocks](int, Rank c, Rank r, Send send) {
    send(r, c, blocks(0, n), reduce);
  };
  const Schedule in = with_surplus(fold, fold.folded(), inner.blocks, add);
  return then(then(in, on({fold.ranks(), inner.blocks, place_in(fold)}, inner)), dual(in));
}

Schedule folded_torus_all_gather(const std::vector<int>& dims, CoreSize size, const OnTorus& core) {
  const TorusFold fold(dims, size);
  const Schedule inner = core(fold.core_dims());
  if (fold.folded().empty()) return inner;
  const int parts = inner.blocks / inner.ranks, all = fold.ranks() * parts;
  // For each rank, the owners of the parts that it holds when all dimensions before one are folded;
  // and when all are.
  std::vector<std::vector<IndexList>> held;
  for (int d = 0; d <= static_cast<int>(dims.size()); ++d) held.push_back(fold.held(d));
  const auto bring = [held, parts](int d, Rank c, Rank r, Send send) {
    send(r, c, BlockSet{parts_of(at(at(held, d), r), parts, 0, parts)}, copy);
  };
  const auto rest = [held, parts, all](int d, Rank c, Rank r, Send send) {
    BlockSet missing;
    Rank next = 0;
    at(at(held, d), r).for_each([&](Rank one) {
      missing.list.append(Run{next, one * parts - next, 1});
      next = (one + 1) * parts;
    });
    missing.list.append(Run{next, all - next, 1});
    send(c, r, missing, copy);
  };
  const auto of_member = [held, parts, place = place_in(fold)](Block b) {
    return parts_of(at(held.back(), place(b / parts)), parts, b % parts, 1);
  };
  const Schedule in = with_surplus(fold, fold.folded(), all, bring);
  const std::vector<int> back(fold.folded().rbegin(), fold.folded().rend());
  // Members bring the blocks of other ranks along, so messages have lengths that the core does not
  // know.
  const Schedule within = in_time(on({fold.ranks(), all, place_in(fold), of_member}, inner));
  return then(then(in, within), with_surplus(fold, back, all, rest));
}

}  // namespace rankine
