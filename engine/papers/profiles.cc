#include "engine/papers/profiles.h"

#include <tbb/parallel_for.h>
#include <tbb/partitioner.h>

#include <algorithm>
#include <mutex>
#include <stdexcept>
#include <utility>

#include "algorithms/catalogue.h"
#include "algorithms/torus.h"

namespace rankine::reproduce {
namespace {

Params params_of(const ProfileKey& key) {
  Params params{.ranks = key.ranks()};
  params.dims = key.dims;
  return params;
}

Profile worked_out(const ProfileKey& key) {
  const Algorithm& line = *find_algorithm(Collective::all_reduce, key.line);
  const Params params = params_of(key);
  const Schedule schedule = line.make(params);
  auto result = profile(schedule, goal_of(line, params, schedule),
                        {.kind = WiringKind::torus, .dims = key.dims, .routing = key.routing});
  if (result.ok()) return std::move(*result);
  throw std::runtime_error(key.line + " on " + dims_text(key.dims) + ": " +
                           std::string(result.status().text()));
}

}  // namespace

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
  std::vector<Profile> found(keys.size());
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
  if (before != known_.end()) return before->second;
  return known_.emplace(key, worked_out(key)).first->second;
}

}  // namespace rankine::reproduce
