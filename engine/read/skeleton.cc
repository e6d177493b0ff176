#include "engine/read/skeleton.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "algorithms/schedule/everyone.h"
#include "algorithms/torus.h"
#include "engine/network/port_model.h"

namespace rankine {
namespace {

// The coordinate that stands for x, and whether x is a mirror image of it.
std::pair<int, bool> least_of(const Alike::Line& line, int x) {
  const int way = x % line.step, image = line.step - 1 - way;
  return line.mirrored && image < way ? std::pair(image, true) : std::pair(way, false);
}

// All messages of a round, rank by rank; a rank's in order, so that ranks can be compared.
class RoundMessages {
 public:
  RoundMessages(const std::vector<Sent>& messages, int ranks)
      : first_(static_cast<std::size_t>(ranks) + 1), sorted_(messages.size()) {
    for (const Sent& m : messages) ++first_[static_cast<std::size_t>(m.from) + 1];
    std::partial_sum(first_.begin(), first_.end(), first_.begin());
    std::vector<std::size_t> next(first_.begin(), first_.end() - 1);
    for (const Sent& m : messages) sorted_[next[static_cast<std::size_t>(m.from)]++] = m;
    for (int r = 0; r < ranks; ++r) std::sort(begin(r), begin(r + 1));
  }

  // Whether turned(Rank) makes the same messages of these.
  template <class Turn>
  bool is_kept_by(const Turn& turned) {
    std::vector<Sent> images;
    for (Rank r = 0; r + 1 < static_cast<Rank>(first_.size()); ++r) {
      images.clear();
      for (auto m = begin(r); m != begin(r + 1); ++m) {
        images.push_back({turned(m->from), turned(m->to), m->blocks});
      }
      std::sort(images.begin(), images.end());
      const Rank image = turned(r);
      if (!std::equal(images.begin(), images.end(), begin(image), begin(image + 1))) return false;
    }
    return true;
  }

 private:
  std::vector<Sent>::iterator begin(Rank r) {
    return sorted_.begin() + static_cast<std::ptrdiff_t>(first_[static_cast<std::size_t>(r)]);
  }
  std::vector<std::size_t> first_;  // of each rank, and the end
  std::vector<Sent> sorted_;
};

// What keeps all rounds, dimension by dimension: turns of one dimension are a group, and those of
// several go together.
std::vector<Alike::Line> lines_of(const SentByRound& all, const Torus& torus) {
  std::vector<RoundMessages> rounds;
  for (const auto& messages : all) rounds.emplace_back(messages, torus.ranks());
  std::vector<Alike::Line> lines;
  for (int d = 0; d < torus.dimensions(); ++d) {
    const int size = torus.size(d), stride = torus.stride(d);
    const auto kept = [&](const auto& coordinate) {
      const auto turned = [&](Rank r) {
        const int x = torus.coordinate(r, d);
        return r + (coordinate(x) - x) * stride;
      };
      return std::all_of(rounds.begin(), rounds.end(),
                         [&turned](RoundMessages& round) { return round.is_kept_by(turned); });
    };
    Alike::Line line;
    while (size % line.step != 0 ||
           (line.step < size && !kept([&](int x) { return (x + line.step) % size; }))) {
      ++line.step;
    }
    line.mirrored = line.step % 2 == 0 && kept([size](int x) { return size - 1 - x; });
    lines.push_back(line);
  }
  return lines;
}

Skeleton skeleton_in(const SentByRound& all, const Goal& goal, const std::vector<int>& dims,
                     std::vector<Alike::Line> lines) {
  Skeleton out{dims, Alike(dims, std::move(lines)), goal, {}};
  for (const auto& messages : all) {
    auto& kept = out.messages.emplace_back();
    std::copy_if(messages.begin(), messages.end(), std::back_inserter(kept),
                 [&out](const Sent& m) { return out.alike.stands_for_others(m.from); });
  }
  return out;
}

}  // namespace

Alike::Alike(const std::vector<int>& dims, std::vector<Line> lines)
    : lines_(std::move(lines)), ways_(2 * static_cast<int>(dims.size())) {
  const Torus torus(dims);
  const auto ranks = static_cast<std::size_t>(torus.ranks());
  class_of_.assign(ranks, -1);
  stands_.assign(ranks, false);
  turned_.reserve(ranks * dims.size());
  classes_ = 0;
  for (Rank r = 0; r < torus.ranks(); ++r) {
    Rank first = 0;
    for (int d = 0; d < torus.dimensions(); ++d) {
      const auto [x, image] = least_of(lines_[static_cast<std::size_t>(d)], torus.coordinate(r, d));
      first += x * torus.stride(d);
      turned_.push_back(image);
    }
    // The least coordinates come first.
    stands_[static_cast<std::size_t>(r)] = first == r;
    class_of_[static_cast<std::size_t>(r)] =
        first == r ? classes_++ : class_of_[static_cast<std::size_t>(first)];
  }
}

Schedule Skeleton::schedule() const {
  Schedule out{.ranks = goal.ranks,
               .blocks = goal.blocks,
               .rounds = static_cast<int>(messages.size()),
               .round = {}};
  out.round = [this](int k, Send send) {
    for (const Sent& m : messages[static_cast<std::size_t>(k)]) {
      send(m.from, m.to, blocks(0, m.blocks), reduce);
    }
  };
  return out;
}

Result<Skeleton> skeleton_of(const Schedule& schedule, const Goal& goal,
                             const std::vector<int>& dims) {
  if (const auto why = dims_refusal(dims, schedule.ranks)) return invalid_argument(*why);
  const Everyone* one = everyone_for(schedule, goal);
  if (one != nullptr && one->rotation().dims() != dims) one = nullptr;
  SentByRound all(static_cast<std::size_t>(schedule.rounds));
  bool wires_only = true;
  for (int k = 0; k < schedule.rounds; ++k) {
    for_each_transfer(one == nullptr ? schedule : one->part(), k, [&](const Transfer& t) {
      if (t.from.empty() || t.to.empty() || is_local(t)) return;
      wires_only = wires_only && is_message(t);
      const Rank from = t.from.front(), to = t.to.front();
      const auto add = [&](Rank a, Rank b) {
        all[static_cast<std::size_t>(k)].push_back({a, b, t.what.list.size()});
      };
      if (one == nullptr) return add(from, to);
      add(0, one->rotation().rotated(to, one->rotation().back(from)));
    });
  }
  if (!wires_only) {
    return invalid_argument(
        "the schedule has a multicast or ALU transfer; lower it to messages first");
  }
  if (one == nullptr) return skeleton_of(all, goal, dims);
  return skeleton_in(all, goal, dims, std::vector<Alike::Line>(dims.size()));
}

Skeleton skeleton_of(const SentByRound& all, const Goal& goal, const std::vector<int>& dims) {
  return skeleton_in(all, goal, dims, lines_of(all, Torus(dims)));
}

}  // namespace rankine
