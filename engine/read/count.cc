#include "engine/read/count.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>

#include "algorithms/parameters.h"
#include "algorithms/schedule/rotation_symmetric.h"
#include "engine/network/simulate.h"

namespace rankine {
namespace {

bool includes(const RankSet& set, Rank r) {
  bool found = false;
  set.for_each([&](Rank other) { found = found || other == r; });
  return found;
}

// True if the set has a rank other than r.
bool has_others(const RankSet& set, Rank r) { return set.size() > (includes(set, r) ? 1 : 0); }

class Counter {
 public:
  // `one`: the part of the rank that stands for all; nullptr: count all ranks.
  Counter(const Schedule& schedule, const RotationSymmetric* one)
      : schedule_(one != nullptr ? one->part() : schedule),
        one_(one),
        counted_(one != nullptr ? 1 : static_cast<std::size_t>(schedule.ranks)),
        meetings_(schedule.ranks),
        now_(counted_.size()) {}

  Counts run() {
    for (int k = 0; k < schedule_.rounds; ++k) {
      for_each_transfer(schedule_, k, [this](const Transfer& t) { add(t); });
      if (!touched_.empty()) ++counts_.rounds;
      end_round();
    }
    const std::vector<int> partners = meetings_.numbers().partners;
    for (std::size_t r = 0; r < counted_.size(); ++r) counted_[r].partners = partners[r];
    counts_.ranks = std::move(counted_);
    if (one_ != nullptr) counts_.ranks.resize(partners.size(), RankCounts{counts_.ranks.front()});
    for (const RankCounts& rank : counts_.ranks) {
      merge(counts_.busiest, rank, [](auto a, auto b) { return std::max(a, b); });
      merge(counts_.total, rank, [](auto a, auto b) { return a + b; });
    }
    return std::move(counts_);
  }

 private:
  struct Ports {
    int sends = 0, receives = 0;
  };

  std::size_t index_of(Rank r) const { return one_ != nullptr ? 0 : static_cast<std::size_t>(r); }
  RankCounts& of(Rank r) { return counted_[index_of(r)]; }
  Ports& now(Rank r) {
    Ports& ports = now_[index_of(r)];
    if (ports.sends == 0 && ports.receives == 0) touched_.push_back(index_of(r));
    return ports;
  }

  void add(const Transfer& t) {
    const std::int64_t blocks = t.what.list.size();
    if (blocks == 0) return;
    t.from.for_each([&](Rank from) {
      if (!has_others(t.to, from)) return;
      of(from).sent += blocks;
      ++of(from).messages_sent;
      ++now(from).sends;
    });
    t.to.for_each([&](Rank to) {
      if (includes(t.from, to)) of(to).local += blocks;
      if (t.kind == TransferKind::reduce)
        of(to).reduced += blocks;  // also adds data pushed here before
      if (!has_others(t.from, to)) return;
      of(to).received += blocks;
      ++of(to).messages_received;
      ++now(to).receives;
    });
    t.from.for_each([&](Rank from) {
      t.to.for_each([&](Rank to) {
        if (from != to) meetings_.add(from, to, one_);
      });
    });
  }

  void end_round() {
    for (const std::size_t r : touched_) {
      Ports& ports = now_[r];
      counted_[r].send_ports = std::max(counted_[r].send_ports, ports.sends);
      counted_[r].receive_ports = std::max(counted_[r].receive_ports, ports.receives);
      ports = {};
    }
    touched_.clear();
  }

  template <class Operation>
  static void merge(RankCounts& into, const RankCounts& from, Operation operation) {
    into.sent = operation(into.sent, from.sent);
    into.received = operation(into.received, from.received);
    into.reduced = operation(into.reduced, from.reduced);
    into.messages_sent = operation(into.messages_sent, from.messages_sent);
    into.messages_received = operation(into.messages_received, from.messages_received);
    into.partners = operation(into.partners, from.partners);
    into.send_ports = operation(into.send_ports, from.send_ports);
    into.receive_ports = operation(into.receive_ports, from.receive_ports);
    into.local = operation(into.local, from.local);
  }

  const Schedule& schedule_;            // the counted schedule: the whole, or one rank's part
  const RotationSymmetric* const one_;  // set if schedule_ is its part
  std::vector<RankCounts> counted_;
  Counts counts_;
  Meetings meetings_;
  std::vector<Ports> now_;            // by rank, in this round
  std::vector<std::size_t> touched_;  // ranks with messages in this round
};

}  // namespace

Counts count(const Schedule& schedule, bool one_for_all) {
  return Counter(schedule, one_for_all ? symmetry_of(schedule) : nullptr).run();
}

std::optional<std::string> compare_statement(const Algorithm& entry, const Params& params,
                                             const CollectiveSpec& goal, const Counts& counts) {
  const int m = blocks_per_m(goal);
  const struct {
    const char* field;
    std::string_view formula;
    Rational derived;
    const char* unit;
  } fields[] = {
      {"rounds", entry.rounds, counts.rounds, ""},
      {"sent", entry.sent, Rational(counts.busiest.sent, m), " M"},
      {"received", entry.received, Rational(counts.busiest.received, m), " M"},
      {"send_ports", entry.send_ports, counts.busiest.send_ports, ""},
      {"receive_ports", entry.receive_ports, counts.busiest.receive_ports, ""},
  };
  for (const auto& field : fields) {
    if (field.formula == kComputed) continue;
    const Rational stated = evaluate(field.formula, params);
    if (stated == field.derived) continue;
    return fmt::format("{} '{}' states {} = {} = {}{}; the schedule has {}{}",
                       name_of(entry.collective), entry.name, field.field, field.formula,
                       stated.to_string(), field.unit, field.derived.to_string(), field.unit);
  }
  return std::nullopt;
}

namespace {

// NCCL's "Tree" is the double tree, up and down; its rings pipeline messages to or from one root,
// which is a chain; NVLS and CollNet add and copy in switches. The other algorithms consist of
// sends.
constexpr Menu::Line kNccl[] = {
    {Collective::broadcast, "chain"},
    {Collective::reduce, "chain"},
    {Collective::all_reduce, "ring double_tree_nccl switch"},
    {Collective::reduce_scatter, "ring pat switch"},
    {Collective::all_gather, "ring pat switch"},
    {Collective::all_to_all, "direct"},
    {Collective::gather, "linear"},
    {Collective::scatter, "linear"},
    {Collective::send_recv, "direct"},
};

// MPICH's algorithms among the ranks of one communicator, blocking; variants with another radix are
// the lines here with a parameter.
constexpr Menu::Line kMpich[] = {
    {Collective::broadcast, "binomial_far scatter_all_gather binary_tree quaternary_tree chain"},
    {Collective::reduce, "binomial_far reduce_scatter_gather"},
    {Collective::all_reduce,
     "recursive_doubling halving_doubling ring binary_tree halving_doubling_far"},
    {Collective::reduce_scatter, "recursive_halving"},
    {Collective::all_gather, "recursive_doubling recursive_doubling_far bruck ring"},
    {Collective::all_to_all, "bruck pairwise direct"},
    {Collective::gather, "binomial linear"},
    {Collective::scatter, "binomial linear"},
    {Collective::send_recv, "direct"},
    {Collective::barrier, "dissemination recursive_doubling"},
};

// The base component of Open MPI, from which the tuned one chooses, without algorithms for two
// ranks only, and without variants that differ in how messages are waited for.
constexpr Menu::Line kOpenMpi[] = {
    {Collective::broadcast,
     "linear chain binary_tree binomial_near binomial_far scatter_all_gather"},
    {Collective::reduce, "linear chain binary_tree binomial_far"},
    {Collective::all_reduce, "central recursive_doubling ring halving_doubling"},
    {Collective::reduce_scatter, "recursive_halving ring"},
    {Collective::all_gather, "bruck recursive_doubling ring neighbour_exchange sparbit direct"},
    {Collective::all_to_all, "direct pairwise bruck"},
    {Collective::gather, "linear binomial"},
    {Collective::scatter, "linear binomial"},
    {Collective::send_recv, "direct"},
    {Collective::barrier, "central double_ring recursive_doubling dissemination binomial"},
    {Collective::scan, "chain"},
    {Collective::exscan, "chain"},
};

// UCC's transport over UCP: "k-nomial" names trees and butterflies of any radix, "dbt" the double
// binary tree. It has no messages between two ranks and no scans.
constexpr Menu::Line kUcc[] = {
    {Collective::broadcast, "binomial_far double_tree"},
    {Collective::reduce, "binomial_far double_tree"},
    {Collective::all_reduce, "recursive_doubling halving_doubling_far double_tree"},
    {Collective::reduce_scatter, "ring recursive_halving"},
    {Collective::all_gather, "recursive_doubling ring neighbour_exchange bruck sparbit direct"},
    {Collective::all_to_all, "pairwise bruck"},
    {Collective::gather, "binomial"},
    {Collective::scatter, "binomial"},
    {Collective::barrier, "recursive_doubling"},
};

constexpr Menu kMenus[] = {
    {"all", "the whole catalogue"},
    {"mpich", "MPICH 4, src/mpi/coll/coll_algorithms.txt", kMpich},
    {"nccl", "NCCL 2.28, NCCL_ALGO", kNccl},
    {"openmpi", "Open MPI 5, ompi/mca/coll/base", kOpenMpi},
    {"ucc", "UCC 1.3, src/components/tl/ucp", kUcc},
};

}  // namespace

bool Menu::has(const Algorithm& algorithm) const {
  const std::string wanted = " " + std::string(algorithm.name) + " ";
  return lines.empty() || std::any_of(lines.begin(), lines.end(), [&](const Line& line) {
           const std::string names = " " + std::string(line.algorithms) + " ";
           return line.collective == algorithm.collective && names.find(wanted) != names.npos;
         });
}

std::span<const Menu> menus() { return kMenus; }

const Menu* find_menu(std::string_view name) {
  const auto found = std::find_if(std::begin(kMenus), std::end(kMenus),
                                  [name](const Menu& menu) { return menu.name == name; });
  return found == std::end(kMenus) ? nullptr : found;
}

}  // namespace rankine
