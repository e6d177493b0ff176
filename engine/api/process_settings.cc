#include "engine/api/process_settings.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <string_view>

#include "engine/api/first_count.h"
#include "engine/api/this_machine.h"
#include "engine/api/tuning/tuning.h"
#include "engine/api/version.h"
#include "engine/base/splitmix.h"
#include "engine/network/write_network.h"
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

// Of all that decides over plans and times. Errors: a number that no network file can say.
Result<std::uint64_t> hash_of(const std::shared_ptr<const CallNetwork>& network) {
  if (network == nullptr) return std::uint64_t{0};
  const auto file = write_network(network->fabric);
  if (!file.ok()) {
    return Status(file.status().code(),
                  "network: ranks that are processes compare it as a file: " + file.status().text());
  }
  std::uint64_t hash = mixed(kSplitMixStep, hash_of(*file));
  hash = mixed(hash, static_cast<std::uint64_t>(network->sync));
  hash = mixed(hash, network->lower ? 1 : 0);
  hash = mixed(hash, static_cast<std::uint64_t>(network->clock));
  hash = mixed(hash, std::bit_cast<std::uint64_t>(network->dilate));
  return mixed(hash, static_cast<std::uint64_t>(network->tolerance_ns));
}

std::uint64_t hash_of(const Environment& environment) {
  std::uint64_t hash = kSplitMixStep;
  for (const Algorithm* line : environment.algorithm) {
    hash = mixed(hash, line == nullptr ? 0 : hash_of(line->name));
  }
  return mixed(hash,
               environment.transport ? 1 + static_cast<std::uint64_t>(*environment.transport) : 0);
}

std::uint64_t hash_of(const CommunicatorOptions& options) {
  std::uint64_t hash = mixed(kSplitMixStep, options.plan_bytes);
  hash = mixed(hash, options.order ? 1 + static_cast<std::uint64_t>(*options.order) : 0);
  hash = mixed(hash, static_cast<std::uint64_t>(options.ports));
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
  const auto of_environment = hash_of(environment.network), of_options = hash_of(options.network);
  if (!of_environment.ok()) return of_environment.status();
  if (!of_options.ok()) return of_options.status();
  out.environment = mixed(hash_of(environment), *of_environment);
  const TuningTable* table = options.tuned ? machine_tuning() : nullptr;
  out.tuning = table == nullptr ? 0 : hash_of(to_json(*table));
  out.costs = hash_of(costs);
  out.options = mixed(hash_of(options), *of_options);
  return out;
}

}  // namespace rankine
