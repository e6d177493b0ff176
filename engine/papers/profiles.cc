#include "engine/papers/profiles.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/catalogue.h"
#include "algorithms/schedule/rotation_symmetric.h"
#include "algorithms/torus.h"
#include "engine/base/parallel.h"
#include "engine/network/port_model.h"
#include "engine/network/wiring.h"
#include "engine/read/flow.h"

namespace rankine::reproduce {
namespace {

Params params_of(const ProfileKey& key) {
  Params params{.ranks = key.ranks()};
  params.dims = key.dims;
  return params;
}

struct Made {
  Schedule schedule;
  CollectiveSpec goal;
};
Made made(const ProfileKey& key) {
  const Algorithm& entry = *find_algorithm(Collective::all_reduce, key.line);
  const Params params = params_of(key);
  Schedule schedule = entry.make(params);
  const CollectiveSpec goal = goal_of(entry, params, schedule);
  return {std::move(schedule), goal};
}

// A copy of the schedule that notes the messages of each visited round.
Schedule noted(const Schedule& schedule, SentByRound& messages) {
  messages.resize(static_cast<std::size_t>(schedule.rounds));
  Schedule out = schedule;
  out.round = [&schedule, &messages](int k, Send send) {
    auto& of_round = messages[static_cast<std::size_t>(k)];
    of_round.clear();
    take_each_transfer(schedule, k, [&](Transfer&& t) {
      if (!is_local(t)) {
        of_round.push_back({t.from.front(), t.to.front(), t.what.list.size()});
      }
      send.exactly(std::move(t));
    });
  };
  return out;
}

}  // namespace

Profiles::Known Profiles::worked_out(const ProfileKey& key) {
  const Made of = made(key);
  const Wiring torus{.kind = WiringKind::torus, .dims = key.dims, .routing = key.routing};
  // If one rank stands for all, skeleton_of() visits its messages later, if they are asked for.
  const bool all = symmetry_for(of.schedule, of.goal) == nullptr;
  SentByRound messages;
  auto result = profile(all ? noted(of.schedule, messages) : of.schedule, of.goal, torus);
  if (!result.ok()) {
    throw std::runtime_error(key.line + " on " + dims_text(key.dims) + ": " +
                             std::string(result.status().text()));
  }
  Known known{std::move(*result)};
  if (all) known.skeleton = rankine::skeleton_of(messages, of.goal, key.dims);
  return known;
}

const Skeleton& Profiles::skeleton_of(const Profile& profile) {
  const auto found = std::find_if(known_.begin(), known_.end(), [&profile](const auto& known) {
    return &known.second.profile == &profile;
  });
  if (found == known_.end()) throw std::logic_error("the profile is in no cache of profiles");
  auto& skeleton = found->second.skeleton;
  if (!skeleton) {
    const Made of = made(found->first);
    auto part = rankine::skeleton_of(of.schedule, of.goal, found->first.dims);
    if (!part.ok()) throw std::runtime_error(std::string(part.status().text()));
    skeleton = std::move(*part);
  }
  return *skeleton;
}

int ProfileKey::ranks() const {
  int product = 1;
  for (const int size : dims) product *= size;
  return product;
}

bool ProfileKey::defined() const {
  const Algorithm* found = find_algorithm(Collective::all_reduce, line);
  return found != nullptr && !found->refusal(found->only_taken(params_of(*this)));
}

void Profiles::work_out(std::vector<ProfileKey> keys, const ProgressReport& progress) {
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  std::erase_if(keys,
                [this](const ProfileKey& key) { return known_.contains(key) || !key.defined(); });
  // Keys with many ranks first: so no core gets the longest piece last.
  std::stable_sort(keys.begin(), keys.end(),
                   [](const ProfileKey& a, const ProfileKey& b) { return a.ranks() > b.ranks(); });
  std::vector<Known> found(keys.size());
  std::mutex reporting;
  std::size_t done = 0;
  parallel_for(keys.size(), [&](std::size_t i) {
    found[i] = worked_out(keys[i]);
    if (!progress) return;
    const std::lock_guard lock(reporting);
    progress(++done, keys.size());
  });
  for (std::size_t i = 0; i < keys.size(); ++i) {
    known_.emplace(std::move(keys[i]), std::move(found[i]));
  }
}

const Profile& Profiles::at(const ProfileKey& key) {
  const auto before = known_.find(key);
  if (before != known_.end()) return before->second.profile;
  return known_.emplace(key, worked_out(key)).first->second.profile;
}

namespace {

constexpr Contender kContenders[] = {
    {"Bucket", "", "bucket"},
    {"Recursive doubling", "torus_doubling_latency", "torus_doubling", true},
    {"Swing", "swing_latency", "swing", true},
    {"Bruck", "bruck_ternary_latency", "bruck_ternary"},
    {"Trivance", "trivance_latency", "trivance"},
};

}  // namespace

std::string_view letter_of(Form form) { return form == Form::latency ? "L" : "B"; }

std::span<const Contender> contenders() { return kContenders; }

const Contender& trivance() { return *find_contender("Trivance"); }

const Contender* find_contender(std::string_view name) {
  for (const Contender& each : kContenders) {
    if (each.name == name) return &each;
  }
  return nullptr;
}

namespace {

Fabric fabric_of(int gigabits) {
  Fabric fabric = find_regime("torus")->fabric;
  fabric.link.beta = Rational(1, Int128{gigabits} * 125'000'000);
  return fabric;
}

Routes routes_of(const Skeleton& skeleton) {
  return *Routes::make({.kind = WiringKind::torus, .dims = skeleton.dims}, skeleton.goal.ranks);
}

double busiest_load(const Skeleton& skeleton) {
  const Routes routes = routes_of(skeleton);
  std::vector<double> loads(static_cast<std::size_t>(skeleton.alike.links()), 0);
  for (const auto& round : skeleton.messages) {
    for (const Sent& m : round) {
      routes.for_each_link(m.from, m.to, [&](int link, int halves) {
        loads[static_cast<std::size_t>(skeleton.alike.class_of_link(link))] += m.blocks * halves;
      });
    }
  }
  return *std::max_element(loads.begin(), loads.end()) / 2 / blocks_per_m(skeleton.goal);
}

// The end of all messages if each message was alone on its links.
double unhindered(const Skeleton& skeleton, const Fabric& fabric, double bytes) {
  const Routes routes = routes_of(skeleton);
  const double alpha = fabric.link.alpha.to_double(), hop = fabric.alpha_hop.to_double(),
               block = fabric.link.beta.to_double() * bytes / blocks_per_m(skeleton.goal);
  std::vector<double> ready(static_cast<std::size_t>(skeleton.alike.classes()), 0), next = ready;
  for (const auto& round : skeleton.messages) {
    for (const Sent& m : round) {
      // A message that is split between both ways may take half as long.
      const double end = ready[static_cast<std::size_t>(skeleton.alike.class_of(m.from))] + alpha +
                         routes.hops(m.from, m.to) * hop + m.blocks * block / 2;
      double& there = next[static_cast<std::size_t>(skeleton.alike.class_of(m.to))];
      there = std::max(there, end);
    }
    ready = next;
  }
  return *std::max_element(ready.begin(), ready.end());
}

}  // namespace

double Carriage::at_least(const Profile& profile, int gigabits, double bytes) {
  const auto known = known_.find({&profile, gigabits, std::round(bytes)});
  if (known != known_.end()) return known->second;
  const Skeleton& skeleton = profiles_.skeleton_of(profile);
  auto load = loads_.find(&profile);
  if (load == loads_.end()) load = loads_.emplace(&profile, busiest_load(skeleton)).first;
  const Fabric fabric = fabric_of(gigabits);
  constexpr double kRounding = 1 - 1e-9;
  return kRounding * std::max(load->second * std::round(bytes) * fabric.link.beta.to_double(),
                              unhindered(skeleton, fabric, std::round(bytes)));
}

double Carriage::seconds(const Profile& profile, int gigabits, double bytes) {
  const Key key{&profile, gigabits, std::round(bytes)};
  const auto known = known_.find(key);
  if (known != known_.end()) return known->second;
  const Skeleton& skeleton = profiles_.skeleton_of(profile);
  const Fabric fabric = fabric_of(gigabits);
  const auto whole = static_cast<std::uint64_t>(std::llround(bytes));
  const auto taken = [](const auto& times) {
    if (!times.ok()) throw std::runtime_error(std::string(times.status().text()));
    return times->seconds;
  };
  const double seconds = fidelity_ == Fidelity::flow
                             ? taken(simulate_flow(skeleton, fabric, whole))
                             : taken(simulate_packets(skeleton, fabric, whole));
  known_.emplace(key, seconds);
  return seconds;
}

}  // namespace rankine::reproduce
