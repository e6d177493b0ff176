#include "algorithms/straggler.h"

#include <algorithm>
#include <bitset>
#include <memory>
#include <vector>

#include "algorithms/ring.h"

namespace rankine {
namespace {

// A finished block's way in one round.
struct BlockCopy {
  Rank from, to;
  Block block;
};
using CopyRound = std::vector<BlockCopy>;

// The rounds among the ranks that do not talk to the late one, for a power of two. A block that was
// finished d rounds ago is young for d < q, and 2^(d - 1) ranks have it; each rank but the last has
// one block of d = 1 ... q. In every round a rank with a young block exchanges it for the old one,
// d = q, so that the old block is everywhere after the round, and every young one at twice as many
// ranks.
//
// Roles: rank t + i (modulo p - 1) has role i in round t, so the same roles have block t - d in
// every round. Role 0, which talks to the late rank, has the old block already. The roles with the
// old block are 0, then -q, then from there one by one in steps of q - 1 (once), q - 2 (twice), q -
// 3 (four times) ... 1: together once round. A role that a step of q - d leaves receives the block
// of age d; a round later it is one role further back, and the steps are such that it stays within
// the step, until the block is old where the step ends. So the roles with young blocks fill the
// steps, and no role has two.
struct Roles {
  explicit Roles(int p) : q(floor_log2(p)), young(static_cast<std::size_t>(q)) {
    int role = -q;
    for (int d = 1; d < q; ++d) {
      for (int i = 0; i < 1 << (d - 1); ++i) {
        at(young, d).push_back({0, role});
        role -= q - d;
      }
    }
    // Block of age d: the role -d of the rank that finished it, and those that received it before.
    for (int d = 1; d < q; ++d) {
      std::vector<int> have = {-d};
      for (int e = 1; e < d; ++e) {
        for (const Pair& pair : at(young, e)) have.push_back(pair.receiver - (d - e));
      }
      for (std::size_t i = 0; i < have.size(); ++i) at(young, d)[i].sender = have[i];
    }
  }
  struct Pair {
    int sender, receiver;  // of the young block; the old one goes the other way
  };
  int q;
  std::vector<std::vector<Pair>> young;  // by age
};

// The rounds after the late rank's last exchange: it has the youngest block, too, and helps. By
// age: the ranks with that block; the old block's ranks exchange with all others.
std::vector<CopyRound> last_rounds(int p, const Roles& roles) {
  const int n = p - 1, q = roles.q;
  std::vector<std::vector<Rank>> have(static_cast<std::size_t>(q) + 1);  // by age, in round n
  at(have, q) = {0};
  for (int d = 1; d < q; ++d) {
    for (const Roles::Pair& pair : at(roles.young, d)) {
      at(have, d).push_back(wrapped(pair.sender, n));
      at(have, q).push_back(wrapped(pair.receiver, n));
    }
  }
  at(have, 1).push_back(n);
  std::vector<CopyRound> out;
  for (int t = n; at(have, q).size() < static_cast<std::size_t>(p); ++t) {
    CopyRound& round = out.emplace_back();
    std::vector<std::vector<Rank>> next(have.size());
    std::size_t i = 0;
    for (int d = 1; d < q; ++d) {
      if (at(have, d).empty()) continue;
      at(next, d + 1) = at(have, d);
      for (const Rank young : at(have, d)) {
        const Rank old = at(have, q)[i++];
        if (old != n) round.push_back({young, old, t - d});  // the late rank has all blocks
        if (young != n) round.push_back({old, young, t - q});
        at(next, d + 1).push_back(old);
      }
    }
    have = std::move(next);
  }
  return out;
}

Schedule for_power_of_two(int p) {
  const int n = p - 1;
  const auto roles = std::make_shared<const Roles>(p);
  const auto last = std::make_shared<const std::vector<CopyRound>>(last_rounds(p, *roles));
  return {p, n, n + static_cast<int>(last->size()), [n, roles, last](int t, Send send) {
            if (t >= n) {
              for (const BlockCopy& m : at(*last, t - n)) send(m.from, m.to, block(m.block), copy);
              return;
            }
            send(n, t, block(t), reduce);
            send(t, n, block(t), reduce);
            const auto rank = [t, n](int role) { return wrapped(t + role, n); };
            for (int d = 1; d < roles->q && d <= t; ++d) {
              for (const auto& [sender, receiver] : at(roles->young, d)) {
                send(rank(sender), rank(receiver), block(t - d), copy);
                if (t < roles->q) continue;
                send(rank(receiver), rank(sender), block(t - roles->q), copy);
              }
            }
          }};
}

// Any p, round by round: as many ranks as possible receive a block, each the youngest that its
// sender can give, so that no block stays rare (a maximum matching by augmenting paths).
class Greedy {
 public:
  explicit Greedy(int p) : p_(p), has_(static_cast<std::size_t>(p)) {}

  std::vector<CopyRound> rounds() {
    std::vector<CopyRound> out;
    for (t_ = 0; std::any_of(
             has_.begin(), has_.end(),
             [this](const Blocks& has) { return has.count() < static_cast<std::size_t>(p_ - 1); });
         ++t_) {
      receiver_.assign(static_cast<std::size_t>(p_), -1);
      for (int i = 0; i < p_; ++i) {
        // The rank that talks to the late one next chooses first.
        tried_.assign(static_cast<std::size_t>(p_), false);
        find_sender(i == p_ - 1 ? i : (t_ + i) % (p_ - 1));
      }
      CopyRound round;
      for (Rank from = 0; from < p_; ++from) {
        const Rank to = at(receiver_, from);
        if (to >= 0) round.push_back({from, to, youngest(from, to)});
      }
      for (const BlockCopy& m : round) at(has_, m.to).set(static_cast<std::size_t>(m.block));
      if (t_ < p_ - 1) {
        at(has_, t_).set(static_cast<std::size_t>(t_));
        at(has_, p_ - 1).set(static_cast<std::size_t>(t_));
      }
      out.push_back(std::move(round));
    }
    return out;
  }

 private:
  using Blocks = std::bitset<kMostGreedyRanks>;

  bool talks_to_late(Rank r) const { return t_ < p_ - 1 && (r == t_ || r == p_ - 1); }
  Block youngest(Rank from, Rank to) const {
    const Blocks gives = at(has_, from) & ~at(has_, to);
    Block b = std::min(t_, p_ - 1) - 1;
    while (b >= 0 && !gives[static_cast<std::size_t>(b)]) --b;
    return b;
  }
  bool find_sender(Rank to) {
    if (talks_to_late(to)) return false;
    for (const bool free : {true, false}) {  // an idle sender, or one whose receiver finds another
      for (int i = 1; i < p_; ++i) {
        const Rank from = (to + i) % p_;
        const bool idle = at(receiver_, from) < 0;
        if (idle != free || at(tried_, from) || talks_to_late(from)) continue;
        if ((at(has_, from) & ~at(has_, to)).none()) continue;
        tried_[static_cast<std::size_t>(from)] = true;
        if (!idle && !find_sender(at(receiver_, from))) continue;
        at(receiver_, from) = to;
        return true;
      }
    }
    return false;
  }

  int p_, t_ = 0;
  std::vector<Blocks> has_;
  std::vector<Rank> receiver_;  // by sender; -1: none
  std::vector<bool> tried_;
};

Schedule for_any(int p) {
  const int n = p - 1;
  auto rounds = std::make_shared<const std::vector<CopyRound>>(Greedy(p).rounds());
  return {p, n, static_cast<int>(rounds->size()), [n, rounds](int t, Send send) {
            if (t < n) {
              send(n, t, block(t), reduce);
              send(t, n, block(t), reduce);
            }
            for (const BlockCopy& m : at(*rounds, t)) send(m.from, m.to, block(m.block), copy);
          }};
}

// One segment of OptCC, two periods: stages 1 and 2, then 3 and 4. Rank 0 is the slow one, rank 1 +
// j member j of the ring and owner of block j.
Schedule optcc_segment(int p) {
  const int n = p - 1, period = 2 * n - 1;
  return {p, n, 2 * period, [n, period](int t, Send send) {
            const auto member = [n](int j) { return 1 + wrapped(j, n); };
            const int half = t / period, round = t % period;
            const TransferKind kind = half == 0 ? reduce : copy;
            for (int j = 0; j < n; ++j) {
              const int k = round - (round > 2 * j ? 1 : 0);  // message k of the ring's edge j
              if (round != 2 * j && k % 2 == half) {
                send(member(j), member(j + 1), block(j - k / 2 - 1 + half), kind);
              } else if (round == 2 * j && half == 0) {
                send(0, member(j + 1), block(j + 1), reduce);
              } else if (round == 2 * j) {
                send(member(j), 0, block(j), copy);
              }
            }
          }};
}

}  // namespace

Schedule stragglar_all_reduce(int p) {
  if (p == 1) return nothing(1, 1);
  const Schedule early = on({p, p - 1, [](Rank r) { return r; }}, ring_reduce_scatter(p - 1));
  const Schedule late = is_power_of_two(p) ? for_power_of_two(p) : for_any(p);
  return then(named("reduce-scatter", early), named("with the late rank", late));
}

Schedule optcc_all_reduce(int p, Rank slow, int s) {
  if (p == 1) return nothing(1, 1);
  return rooted_at(slow, pipelined(optcc_segment(p), s, 2 * p - 3));
}

}  // namespace rankine
