#include "engine/read/round_view.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <set>
#include <utility>

namespace rankine {
namespace {

using Contributions = std::vector<Rank>;      // ascending
using Holdings = std::vector<Contributions>;  // of one rank, by place

bool in_range(const std::vector<int>& indices, int n) {
  return std::all_of(indices.begin(), indices.end(), [n](int i) { return i >= 0 && i < n; });
}

bool is_complete(const Contributions& held, const Run& heard) {
  Rank next = heard.first;
  return static_cast<int>(held.size()) == heard.count &&
         std::all_of(held.begin(), held.end(), [&next](Rank r) { return r == next++; });
}

class Player {
 public:
  Player(const Schedule& schedule, const Goal& goal)
      : schedule_(schedule), goal_(goal), held_(static_cast<std::size_t>(schedule.ranks)) {
    for (Rank r = 0; r < schedule.ranks; ++r) {
      held_[static_cast<std::size_t>(r)].resize(static_cast<std::size_t>(schedule.places()));
      for (Block b = 0; b < schedule.blocks; ++b) {
        if (goal.starts(r, b)) at(r, 0, b) = {r};
      }
    }
  }

  RoundView start() const {
    RoundView view;
    view.ranks = holdings({});
    return view;
  }

  RoundView play(int k) {
    RoundView view;
    view.round = k;
    view.phase = phase_of(k);
    for_each_transfer(schedule_, k, [&](const Transfer& t) {
      view.transfers.push_back({t.from.to_vector(), t.to.to_vector(), t.what.list.to_vector(),
                                t.where.list.to_vector(), t.what.plane, t.where.plane, t.act});
    });
    const std::vector<Holdings> before = held_;
    std::set<std::pair<Rank, int>> written;
    for (const TransferView& t : view.transfers) {
      if (!is_playable(schedule_, t)) continue;
      for (const Rank from : t.from) {
        for (std::size_t i = 0; i < t.what.size(); ++i) {
          const Contributions& sent =
              before[static_cast<std::size_t>(from)]
                    [static_cast<std::size_t>(place_of(schedule_, t.what[i], t.what_plane))];
          if (sent.empty()) continue;
          for (const Rank to : t.to) {
            deliver(sent, t.act, at(to, t.where_plane, t.where[i]));
            written.insert({to, place_of(schedule_, t.where[i], t.where_plane)});
          }
        }
      }
    }
    view.ranks = holdings(written);
    return view;
  }

 private:
  Contributions& at(Rank r, int plane, Block b) {
    return held_[static_cast<std::size_t>(r)]
                [static_cast<std::size_t>(place_of(schedule_, b, plane))];
  }

  void deliver(const Contributions& sent, Act act, Contributions& place) const {
    if (act == Act::copy) {
      place = sent;
      return;
    }
    Contributions sum;
    if (is_idempotent(goal_.collective)) {
      std::set_union(place.begin(), place.end(), sent.begin(), sent.end(), std::back_inserter(sum));
    } else {
      std::merge(place.begin(), place.end(), sent.begin(), sent.end(), std::back_inserter(sum));
    }
    place = std::move(sum);
  }

  std::string phase_of(int k) const {
    for (const Phase& phase : schedule_.phases) {
      if (k < phase.rounds) return phase.name;
      k -= phase.rounds;
    }
    return "";
  }

  std::vector<std::vector<HoldingView>> holdings(
      const std::set<std::pair<Rank, int>>& written) const {
    std::vector<std::vector<HoldingView>> out(held_.size());
    for (Rank r = 0; r < schedule_.ranks; ++r) {
      for (int place = 0; place < schedule_.places(); ++place) {
        const Contributions& held =
            held_[static_cast<std::size_t>(r)][static_cast<std::size_t>(place)];
        if (held.empty()) continue;
        const Block b = place % schedule_.blocks;
        const int plane = place / schedule_.blocks;
        out[static_cast<std::size_t>(r)].push_back(
            {b, plane, held, is_complete(held, goal_.heard_by(r, b)),
             plane == 0 && goal_.needs(r, b), written.contains({r, place})});
      }
    }
    return out;
  }

  const Schedule& schedule_;
  const Goal& goal_;
  std::vector<Holdings> held_;
};

}  // namespace

bool is_playable(const Schedule& schedule, const TransferView& t) {
  return in_range(t.from, schedule.ranks) && in_range(t.to, schedule.ranks) &&
         in_range(t.what, schedule.blocks) && in_range(t.where, schedule.blocks) &&
         t.what.size() == t.where.size() && t.what_plane >= 0 && t.where_plane >= 0 &&
         t.what_plane < schedule.planes && t.where_plane < schedule.planes;
}

std::vector<RoundView> view_rounds(const Schedule& schedule, const Goal& goal) {
  Player player(schedule, goal);
  std::vector<RoundView> views{player.start()};
  for (int k = 0; k < schedule.rounds; ++k) views.push_back(player.play(k));
  return views;
}

}  // namespace rankine
