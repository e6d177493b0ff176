#include "algorithms/schedule/combine.h"

#include <algorithm>
#include <optional>
#include <stdexcept>

#include "algorithms/schedule/rotation_symmetric.h"

namespace rankine {
namespace {

void require_same_shape(const Schedule& a, const Schedule& b, const char* combinator) {
  if (a.ranks != b.ranks || a.blocks != b.blocks) {
    throw std::logic_error(std::string(combinator) + ": parts of " + std::to_string(a.ranks) + "x" +
                           std::to_string(a.blocks) + " and " + std::to_string(b.ranks) + "x" +
                           std::to_string(b.blocks) + " ranks x blocks cannot be combined");
  }
}

// Phases without a round (for example among one rank) are left out.
void append_phases(const Schedule& a, std::vector<Phase>& phases) {
  if (a.phases.empty() && a.rounds > 0) phases.push_back({"", a.rounds});
  for (const Phase& phase : a.phases) {
    if (phase.rounds > 0) phases.push_back(phase);
  }
}

// For schedules in which each of p ranks has s neighbouring blocks: renames ranks and their blocks
// by `name`.
Schedule with_blocks(const char* combinator, Schedule a, const std::function<Rank(Rank)>& name) {
  const int p = a.ranks, n = a.blocks, s = n / p;
  if (n % p != 0) {
    throw std::logic_error(std::string(combinator) + ": " + std::to_string(n) +
                           " blocks cannot belong to " + std::to_string(p) + " ranks");
  }
  return on({p, n, name, [name, s](Block b) { return IndexList(name(b / s) * s + b % s); }},
            std::move(a));
}

// Applies a combinator to a schedule `a`: if every rank does the same work in `a`, `out` gets the
// rounds of part(rank 0's part), rotated; otherwise `out` is returned unchanged.
template <class Part>
Schedule combine_symmetric(const Schedule& a, Schedule out, const Part& part) {
  const RotationSymmetric* all = symmetry_of(a);
  if (all == nullptr) return out;
  Rotation rotation(all->rotation().dims(), out.blocks, all->rotation().moves());
  out.round = RotationSymmetric(part(all->part()), std::move(rotation));
  return out;
}

// True if ranks do equal work in both, with equal rotations.
bool rotate_alike(const Schedule& a, const Schedule& b) {
  const RotationSymmetric* of_a = symmetry_of(a);
  const RotationSymmetric* of_b = symmetry_of(b);
  return of_a != nullptr && of_b != nullptr && of_a->rotation() == of_b->rotation();
}

template <class Name>
IndexList renamed(const IndexList& list, const Name& name) {
  IndexList out;
  list.for_each([&](int index) { out.append(Run{name(index), 1, 1}); });
  return out;
}

BlockSet renamed(BlockSet&& set, const std::function<IndexList(Block)>& name) {
  if (!name) return std::move(set);
  BlockSet out{{}, set.plane};
  set.list.for_each([&](Block b) { out.list.append(name(b)); });
  return out;
}

// Block b becomes n * b + i.
IndexList spread(int i, int n, const IndexList& list) {
  IndexList out;
  for (int j = 0; j < list.runs(); ++j) {
    out.append(Run{list.run(j).first * n + i, list.run(j).count, list.run(j).stride * n});
  }
  return out;
}

Transfer spread(int i, int n, Transfer&& t) {
  t.what.list = spread(i, n, t.what.list);
  t.where.list = spread(i, n, t.where.list);
  return std::move(t);
}

Schedule spread(int i, int n, const Schedule& a) {
  Schedule out = a;
  out.blocks = n * a.blocks;
  out.round = [a, i, n](int k, Send send) {
    take_each_transfer(a, k, [&](Transfer&& t) { send.exactly(spread(i, n, std::move(t))); });
  };
  return combine_symmetric(a, std::move(out),
                           [=](const Schedule& part) { return spread(i, n, part); });
}

}  // namespace

Schedule then(Schedule a, Schedule b) {
  require_same_shape(a, b, "then");
  Schedule out{a.ranks, a.blocks, a.rounds + b.rounds, {}, {}, std::max(a.planes, b.planes)};
  append_phases(a, out.phases);
  append_phases(b, out.phases);
  if (rotate_alike(a, b)) {
    return combine_symmetric(a, std::move(out), [&b](const Schedule& part) {
      return then(part, symmetry_of(b)->part());
    });
  }
  out.round = [first = a.rounds, a = std::move(a.round), b = std::move(b.round)](int k, Send send) {
    k < first ? a(k, send) : b(k - first, send);
  };
  return out;
}

Schedule together(std::vector<Schedule> parts) {
  if (parts.empty()) throw std::logic_error("together: nothing to combine");
  Schedule out = nothing(parts[0].ranks, parts[0].blocks);
  for (const Schedule& part : parts) {
    require_same_shape(parts[0], part, "together");
    out.planes = std::max(out.planes, part.planes);
    if (part.rounds > out.rounds) {
      out.rounds = part.rounds;
      out.phases = part.phases;
    }
  }
  const bool alike = std::all_of(parts.begin(), parts.end(), [&parts](const Schedule& part) {
    return rotate_alike(parts[0], part);
  });
  if (alike) {
    return combine_symmetric(parts[0], std::move(out), [&parts](const Schedule&) {
      std::vector<Schedule> of_one;
      for (const Schedule& part : parts) of_one.push_back(symmetry_of(part)->part());
      return together(std::move(of_one));
    });
  }
  out.round = [parts = std::move(parts)](int k, Send send) {
    for (const Schedule& part : parts) {
      if (k < part.rounds) part.round(k, send);
    }
  };
  return out;
}

Schedule together(Schedule a, Schedule b) {
  std::vector<Schedule> parts;
  parts.push_back(std::move(a));
  parts.push_back(std::move(b));
  return together(std::move(parts));
}

Schedule dual(Schedule a) {
  Schedule out = a;
  std::reverse(out.phases.begin(), out.phases.end());
  if (symmetry_of(a) != nullptr) return combine_symmetric(a, std::move(out), dual);
  out.round = [a = std::move(a)](int k, Send send) {
    take_each_transfer(a, a.rounds - 1 - k, [&](Transfer&& t) {
      const TransferKind kind = t.kind == copy ? reduce : copy;
      send.exactly(
          {std::move(t.to), std::move(t.from), std::move(t.where), std::move(t.what), kind});
    });
  };
  return out;
}

Schedule reduce_scatter_then(Schedule all_gather) {
  return then(named("reduce-scatter", dual(all_gather)), named("all-gather", all_gather));
}

Schedule side_by_side(std::vector<Schedule> parts) {
  const int n = static_cast<int>(parts.size());
  for (int i = 0; i < n; ++i) at(parts, i) = spread(i, n, at(parts, i));
  return together(std::move(parts));
}

Schedule halves(Schedule a, Schedule b) {
  std::vector<Schedule> parts;
  parts.push_back(std::move(a));
  parts.push_back(std::move(b));
  return side_by_side(std::move(parts));
}

Schedule on(Group group, Schedule a) {
  Schedule out{group.ranks, group.blocks, a.rounds, {}, a.phases, a.planes};
  out.round = [group = std::move(group), a = std::move(a)](int k, Send send) {
    take_each_transfer(a, k, [&](Transfer&& t) {
      send.exactly({renamed(t.from, group.rank), renamed(t.to, group.rank),
                    renamed(std::move(t.what), group.block),
                    renamed(std::move(t.where), group.block), t.kind});
    });
  };
  return out;
}

Schedule on_blocks(int blocks, Block first, Schedule a) {
  const int ranks = a.ranks;
  return on(
      {ranks, blocks, [](Rank r) { return r; }, [first](Block b) { return IndexList(first + b); }},
      std::move(a));
}

Schedule rooted_at(Rank root, Schedule a) {
  if (root == 0) return a;
  const int p = a.ranks, blocks = a.blocks;
  return on({p, blocks, [root, p](Rank r) { return (r + root) % p; }}, std::move(a));
}

Schedule turned(int by, Schedule a) {
  const int p = a.ranks;
  if (by == 0) return a;
  return with_blocks("turned", std::move(a), [by, p](Rank r) { return (r + by) % p; });
}

Schedule mirrored(Schedule a) {
  const int p = a.ranks;
  Schedule out = with_blocks("mirrored", a, [p](Rank r) { return (p - r) % p; });
  const bool moves_with_ranks =
      symmetry_of(a) != nullptr && symmetry_of(a)->rotation().moves() == Moves::with_rank;
  return moves_with_ranks ? combine_symmetric(a, std::move(out), mirrored) : out;
}

Schedule refined(int parts, Schedule a) {
  if (parts == 1) return a;
  const auto neighbours = [parts](Block b) { return IndexList(Run{b * parts, parts, 1}); };
  Schedule out = on({a.ranks, a.blocks * parts, [](Rank r) { return r; }, neighbours}, a);
  return combine_symmetric(a, std::move(out),
                           [parts](const Schedule& part) { return refined(parts, part); });
}

Schedule pipelined(Schedule a, int segments, int interval, Segments stated) {
  Schedule out{a.ranks, a.blocks * segments, a.rounds + (segments - 1) * interval, {}, {},
               a.planes};
  if (a.rounds == 0) out.rounds = 0;
  if (symmetry_of(a) != nullptr) {
    return combine_symmetric(a, std::move(out), [=](const Schedule& part) {
      return pipelined(part, segments, interval, stated);
    });
  }
  out.round = [a = std::move(a), segments, interval, stated](int k, Send send) {
    // The segments in flight: 0 <= k - s * interval < a.rounds.
    const int first = k < a.rounds ? 0 : (k - a.rounds) / interval + 1;
    const int last = std::min(segments - 1, k / interval);
    for (int i = 0; i <= last - first; ++i) {
      const int s = stated == Segments::oldest_first ? first + i : last - i;
      take_each_transfer(a, k - s * interval,
                         [&](Transfer&& t) { send.exactly(spread(s, segments, std::move(t))); });
    }
  };
  return out;
}

namespace {

// `of_one`: `a` is one rank's part; all its transfers arrive at that rank, wherever they begin.
Schedule pushed(Schedule a, bool of_one) {
  const auto arrives = [](const Transfer& t) { return t.kind == reduce && !(t.from == t.to); };
  // Calls visit(transfer, plane) for each arrival to be added in round k: the n-th arrival at a
  // rank lies on the n-th plane beyond the planes of `a`.
  const auto arrivals = [arrives, of_one, p = a.ranks, planes = a.planes](const Schedule& of, int k,
                                                                          const auto& visit) {
    std::vector<int> next(of_one ? 1 : static_cast<std::size_t>(p), planes);
    for_each_transfer(of, k, [&](const Transfer& t) {
      if (!arrives(t)) return;
      if (t.from.size() != 1 || t.to.size() != 1) {
        throw std::logic_error("pushed: a switch's transfer has no one owner");
      }
      visit(t, next[of_one ? 0 : static_cast<std::size_t>(t.to.front())]++);
    });
  };
  Schedule out = a;
  out.rounds = 2 * a.rounds;
  for (Phase& phase : out.phases) phase.rounds *= 2;
  for (int k = 0; k < a.rounds; ++k) {
    arrivals(a, k,
             [&out](const Transfer&, int plane) { out.planes = std::max(out.planes, plane + 1); });
  }
  out.round = [a = std::move(a), arrives, arrivals](int k, Send send) {
    if (k % 2 == 0) {
      for_each_transfer(a, k / 2, [&](const Transfer& t) {
        if (!arrives(t)) send.exactly(t);
      });
    }
    arrivals(a, k / 2, [&](const Transfer& t, int plane) {
      const BlockSet beside{t.where.list, plane};
      if (k % 2 == 0) {
        send.exactly({t.from, t.to, t.what, beside, copy});
      } else {
        send.exactly({t.to, t.to, beside, t.where, reduce});
      }
    });
  };
  return out;
}

}  // namespace

Schedule pushed(Schedule a) {
  const RotationSymmetric* all = symmetry_of(a);
  if (all == nullptr) return pushed(std::move(a), false);
  Schedule part = pushed(all->part(), true);
  part.phases = a.phases;
  for (Phase& phase : part.phases) phase.rounds *= 2;
  return rotation_symmetric(std::move(part), all->rotation());
}

Schedule packed(Schedule a) {
  if (const RotationSymmetric* all = symmetry_of(a))
    return rotation_symmetric(packed(all->part()), all->rotation());
  std::vector<int> busy;
  for (int k = 0; k < a.rounds; ++k) {
    bool any = false;
    for_each_transfer(a, k, [&any](const Transfer&) { any = true; });
    if (any) busy.push_back(k);
  }
  Schedule out = a;
  out.rounds = static_cast<int>(busy.size());
  out.phases.clear();
  out.round = [busy = std::move(busy), a = std::move(a.round)](int k, Send send) {
    a(busy[static_cast<std::size_t>(k)], send);
  };
  return out;
}

Schedule named(std::string name, Schedule a) {
  a.phases = {{std::move(name), a.rounds}};
  return a;
}

Schedule nothing(int ranks, int blocks) {
  return {ranks, blocks, 0, [](int, Send) {}};
}

Schedule lower(Schedule schedule, Abilities abilities) {
  if (abilities.multicast && abilities.alu) return schedule;
  if (symmetry_of(schedule) != nullptr) return schedule;  // from one rank to one
  Schedule out = schedule;
  out.round = [schedule = std::move(schedule), abilities](int k, Send send) {
    take_each_transfer(schedule, k, [&](Transfer&& t) {
      const bool many_to = t.to.size() > 1 && !abilities.multicast;
      const bool many_from = t.from.size() > 1 && !abilities.alu;
      if (!many_to && !many_from) {
        send.exactly(std::move(t));
        return;
      }
      // A side that the network can do stays whole.
      const std::vector<int> from = t.from.to_vector(), to = t.to.to_vector();
      if (!many_from) {
        for (const Rank r : to) send.exactly({t.from, r, t.what, t.where, t.kind});
      } else if (!many_to) {
        for (const Rank r : from) send.exactly({r, t.to, t.what, t.where, t.kind});
      } else {
        for (const Rank r : to) {
          for (const Rank s : from) send.exactly({s, r, t.what, t.where, t.kind});
        }
      }
    });
  };
  return out;
}

}  // namespace rankine
