#include "algorithms/folded_torus.h"

#include <algorithm>
#include <utility>

#include "algorithms/schedule/in_time.h"
#include "algorithms/torus.h"

namespace rankine {
namespace {

class FoldedTorus {
 public:
  FoldedTorus(const std::vector<int>& dims, CoreSize size) : torus_(dims) {
    for (int d = 0; d < torus_.dimensions(); ++d) {
      const int a = dims[static_cast<std::size_t>(d)];
      const Fold& fold = folds_.emplace_back(a, size(a));
      core_dims_.push_back(fold.core);
      if (fold.surplus() > 0) folded_.push_back(d);
    }
  }

  int ranks() const { return torus_.ranks(); }
  const std::vector<int>& core_dims() const { return core_dims_; }
  int folded_dimensions() const { return static_cast<int>(folded_.size()); }

  // The rank that plays rank c of the core.
  Rank rank(const Torus& core, Rank c) const {
    Rank r = 0;
    for (int d = 0; d < torus_.dimensions(); ++d) {
      r += fold(d).rank(core.coordinate(c, d)) * torus_.stride(d);
    }
    return r;
  }

  // The ranks whose parts rank r holds when all dimensions before `dimension` are folded,
  // ascending.
  std::vector<Rank> holders_of(Rank r, int dimension) const {
    std::vector<Rank> out = {r};
    for (int d = 0; d < dimension; ++d) {
      const int x = torus_.coordinate(r, d);
      int end = x + 1;
      while (end < torus_.size(d) && !fold(d).has(end)) ++end;
      std::vector<Rank> more;
      for (int at = x; at < end; ++at) {
        for (const Rank one : out) more.push_back(one + (at - x) * torus_.stride(d));
      }
      out = std::move(more);
    }
    std::sort(out.begin(), out.end());
    return out;
  }

  // From core members to surplus ranks, the dimension that was folded last first.
  int unfolded(int round) const {  // which dimension that is
    return folded_[folded_.size() - 1 - static_cast<std::size_t>(round)];
  }
  template <class Visit>
  void unfold(int round, const Visit& visit) const {
    const int d = unfolded(round);
    for_each_surplus(fold(d), [&](int member, int surplus) {
      torus_.for_each_at(d, member, [&](Rank r) {
        if (is_core_before(r, d)) visit(r, r + (surplus - member) * torus_.stride(d));
      });
    });
  }

 private:
  const Fold& fold(int d) const { return folds_[static_cast<std::size_t>(d)]; }
  bool is_core_before(Rank r, int dimension) const {
    for (int d = 0; d < dimension; ++d) {
      if (!fold(d).has(torus_.coordinate(r, d))) return false;
    }
    return true;
  }

  Torus torus_;
  std::vector<Fold> folds_;
  std::vector<int> core_dims_, folded_;
};

}  // namespace

Schedule folded_torus_all_reduce(const std::vector<int>& dims, CoreSize size, const OnTorus& core) {
  const FoldedTorus folded(dims, size);
  const Schedule inner = core(folded.core_dims());
  if (folded.folded_dimensions() == 0) return inner;
  const Schedule out{folded.ranks(), inner.blocks, folded.folded_dimensions(),
                     [folded, n = inner.blocks](int k, Send send) {
                       folded.unfold(k, [&](Rank member, Rank surplus) {
                         send(member, surplus, blocks(0, n), copy);
                       });
                     }};
  const auto place = [folded, of_core = Torus(folded.core_dims())](Rank c) {
    return folded.rank(of_core, c);
  };
  return then(then(dual(out), on({folded.ranks(), inner.blocks, place}, inner)), out);
}

Schedule folded_torus_all_gather(const std::vector<int>& dims, CoreSize size, const OnTorus& core) {
  const FoldedTorus folded(dims, size);
  const Schedule inner = core(folded.core_dims());
  if (folded.folded_dimensions() == 0) return inner;
  const int parts = inner.blocks / inner.ranks, all = folded.ranks() * parts;
  const auto parts_of = [parts](const std::vector<Rank>& holders, int part, int count) {
    IndexList out;
    for (const Rank r : holders) out.append(Run{r * parts + part, count, 1});
    return out;
  };
  const Schedule in{folded.ranks(), all, folded.folded_dimensions(), [=](int k, Send send) {
                      const int back = folded.folded_dimensions() - 1 - k;
                      folded.unfold(back, [&](Rank member, Rank surplus) {
                        const auto held = folded.holders_of(surplus, folded.unfolded(back));
                        send(surplus, member, BlockSet{parts_of(held, 0, parts), 0}, copy);
                      });
                    }};
  const Schedule out{
      folded.ranks(), all, folded.folded_dimensions(), [=](int k, Send send) {
        folded.unfold(k, [&](Rank member, Rank surplus) {
          BlockSet missing;
          Rank next = 0;
          for (const Rank r : folded.holders_of(surplus, folded.unfolded(k))) {
            if (r > next) missing.list.append(Run{next * parts, (r - next) * parts, 1});
            next = r + 1;
          }
          if (next < folded.ranks()) {
            missing.list.append(Run{next * parts, (folded.ranks() - next) * parts, 1});
          }
          send(member, surplus, missing, copy);
        });
      }};
  const auto place = [folded, of_core = Torus(folded.core_dims())](Rank c) {
    return folded.rank(of_core, c);
  };
  const auto of_member = [=, dimensions = static_cast<int>(dims.size())](Block b) {
    return parts_of(folded.holders_of(place(b / parts), dimensions), b % parts, 1);
  };
  // Members bring the blocks of others along, so messages are as long as the core does not know.
  return then(then(in, in_time(on({folded.ranks(), all, place, of_member}, inner))), out);
}

}  // namespace rankine
