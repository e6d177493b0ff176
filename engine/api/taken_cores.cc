#include "engine/api/taken_cores.h"

#include <mutex>
#include <set>
#include <utility>

#include "engine/run/process_wide.h"

namespace rankine {
namespace {

struct Taken {
  std::mutex mutex;
  std::multiset<int> cpus;
};

}  // namespace

TakenCores::TakenCores(std::vector<int> cpus) : cpus_(std::move(cpus)) {
  // Where there is no memory for all of them none is taken: nobody would give them back.
  std::multiset<int> more(cpus_.begin(), cpus_.end());
  Taken& taken = process_wide<Taken>();
  const std::lock_guard lock(taken.mutex);
  taken.cpus.merge(more);
}

TakenCores::~TakenCores() {
  Taken& taken = process_wide<Taken>();
  const std::lock_guard lock(taken.mutex);
  for (const int cpu : cpus_) {
    if (const auto found = taken.cpus.find(cpu); found != taken.cpus.end()) taken.cpus.erase(found);
  }
}

std::vector<int> TakenCores::all() {
  Taken& taken = process_wide<Taken>();
  const std::lock_guard lock(taken.mutex);
  return {taken.cpus.begin(), taken.cpus.end()};
}

}  // namespace rankine
