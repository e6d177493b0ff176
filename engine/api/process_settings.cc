#include "engine/api/process_settings.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "engine/api/first_count.h"
#include "engine/api/this_machine.h"
#include "engine/api/tuning/tuning.h"
#include "engine/api/version.h"
#include "engine/base/splitmix.h"
#include "engine/run/kernels/reduce.h"

namespace rankine {
namespace {

template <std::size_t n>
void put(char (&place)[n], std::string_view text) {
  const std::size_t length = std::min(text.size(), n - 1);
  std::memcpy(place, text.data(), length);
}

std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = kSplitMixStep;
  for (const char c : text) hash = mixed(hash, static_cast<unsigned char>(c));
  return hash;
}

std::uint64_t hash_of(const Costs& costs) {
  std::uint64_t hash = kSplitMixStep;
  for (const CostField& field : cost_fields()) hash = mixed(hash, costs.*field.value);
  return hash;
}

std::uint64_t hash_of(const Environment& environment) {
  std::uint64_t hash = kSplitMixStep;
  for (const Algorithm* line : environment.algorithm) {
    hash = mixed(hash, line == nullptr ? 0 : hash_of(line->name));
  }
  hash = mixed(hash,
               environment.transport ? 1 + static_cast<std::uint64_t>(*environment.transport) : 0);
  return mixed(hash, environment.network != nullptr ? 1 : 0);
}

std::uint64_t hash_of(const CommunicatorOptions& options) {
  std::uint64_t hash = mixed(kSplitMixStep, options.plan_bytes);
  hash = mixed(hash, options.order ? 1 + static_cast<std::uint64_t>(*options.order) : 0);
  for (const int size : options.levels) hash = mixed(hash, static_cast<std::uint64_t>(size));
  return mixed(hash, FirstCount::current());
}

}  // namespace

Result<ProcessSettings> process_settings(const CommunicatorOptions& options,
                                         const Environment& environment, const Costs& costs) {
  ProcessSettings out;
  const auto machine = this_machine();
  if (!machine.ok()) return machine.status();
  put(out.host, machine->host);
  put(out.boot, machine->boot);
  out.pid_namespace = machine->pid_namespace;
  put(out.version, kVersion);
  put(out.isa, name_of(best_isa()));
  out.ranks = options.ranks;
  out.environment = hash_of(environment);
  const TuningTable* table = options.tuned ? machine_tuning() : nullptr;
  out.tuning = table == nullptr ? 0 : hash_of(to_json(*table));
  out.costs = hash_of(costs);
  out.options = hash_of(options);
  return out;
}

}  // namespace rankine
