#include "engine/api/process_settings.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "engine/api/first_count.h"
#include "engine/api/this_machine.h"
#include "engine/api/tuning.h"
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
  return mixed(hash,
               environment.transport ? 1 + static_cast<std::uint64_t>(*environment.transport) : 0);
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

std::string difference(const ProcessSettings& one, const std::string& who,
                       const ProcessSettings& other, const std::string& whose) {
  const auto say = [&](const char* what, const std::string& a, const std::string& b) {
    return std::string(what) + " is " + a + " of " + who + " and " + b + " of " + whose;
  };
  const auto say_hash = [&](const char* what, const char* where) {
    return std::string(what) + " of " + who + " differ from those of " + whose + ": " + where;
  };
  const auto text = [](const char* value) { return std::string(value); };
  if (std::strcmp(one.host, other.host) != 0) return say("host", one.host, other.host);
  if (std::strcmp(one.boot, other.boot) != 0) return say("boot id", one.boot, other.boot);
  if (one.pid_namespace != other.pid_namespace) {
    return say("pid namespace", std::to_string(one.pid_namespace),
               std::to_string(other.pid_namespace));
  }
  if (std::strcmp(one.version, other.version) != 0) {
    return say("version", text(one.version), text(other.version));
  }
  if (one.ranks != other.ranks) {
    return say("ranks", std::to_string(one.ranks), std::to_string(other.ranks));
  }
  if (std::strcmp(one.isa, other.isa) != 0) {
    return say("instruction set", text(one.isa), text(other.isa));
  }
  if (one.environment != other.environment) {
    return say_hash("variables", "RANKINE_ALGO or RANKINE_TRANSPORT");
  }
  if (one.tuning != other.tuning) return say_hash("choices", "the tuning table or tuned");
  if (one.costs != other.costs) return say_hash("costs", "the tuning table's or those given");
  return say_hash("options", "levels, order or plan_bytes");
}

}  // namespace rankine
