#include "engine/papers/profiles.h"

#include <tbb/parallel_for.h>
#include <tbb/partitioner.h>

#include <algorithm>
#include <mutex>
#include <stdexcept>
#include <utility>

#include "algorithms/catalogue.h"
#include "algorithms/schedule/everyone.h"
#include "algorithms/torus.h"
#include "engine/network/port_model.h"

namespace rankine::reproduce {
namespace {

Params params_of(const ProfileKey& key) {
  Params params{.ranks = key.ranks()};
  params.dims = key.dims;
  return params;
}

struct Made {
  Schedule schedule;
  Goal goal;
};
Made made(const ProfileKey& key) {
  const Algorithm& line = *find_algorithm(Collective::all_reduce, key.line);
  const Params params = params_of(key);
  Schedule schedule = line.make(params);
  const Goal goal = goal_of(line, params, schedule);
  return {std::move(schedule), goal};
}

// The same schedule, which notes the messages of each round that it is asked for.
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
  // One rank's part is gone through again where that is asked for.
  const bool all = everyone_for(of.schedule, of.goal) == nullptr;
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
  if (found == known_.end()) throw std::logic_error("a profile of no schedule has no messages");
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
  // Many ranks first: no core is left with the longest piece at the end.
  std::stable_sort(keys.begin(), keys.end(),
                   [](const ProfileKey& a, const ProfileKey& b) { return a.ranks() > b.ranks(); });
  std::vector<Known> found(keys.size());
  std::mutex reporting;
  std::size_t done = 0;
  tbb::parallel_for(
      std::size_t{0}, keys.size(),
      [&](std::size_t i) {
        found[i] = worked_out(keys[i]);
        if (!progress) return;
        const std::lock_guard lock(reporting);
        progress(++done, keys.size());
      },
      tbb::simple_partitioner());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    known_.emplace(std::move(keys[i]), std::move(found[i]));
  }
}

const Profile& Profiles::at(const ProfileKey& key) {
  const auto before = known_.find(key);
  if (before != known_.end()) return before->second.profile;
  return known_.emplace(key, worked_out(key)).first->second.profile;
}

}  // namespace rankine::reproduce
