#include "engine/api/c/settings.h"

#include <utility>

#include "engine/api/environment.h"
#include "engine/api/network.h"

namespace rankine {

Status check_size(std::string_view name, std::size_t size, std::size_t first, std::size_t known) {
  if (size >= first && size <= known && size % alignof(void*) == 0) return {};
  return invalid_argument(std::string(name) + ".size is " + std::to_string(size) +
                          "; allowed are " + std::to_string(known) +
                          ", set by the initializer in rankine.h, and the sizes of older headers");
}

Result<std::chrono::milliseconds> read_timeout(std::int64_t milliseconds) {
  if (milliseconds == -1) return std::chrono::milliseconds::max();
  if (milliseconds >= 0) return std::chrono::milliseconds(milliseconds);
  return invalid_argument("timeoutMs is " + std::to_string(milliseconds) +
                          "; allowed are -1 (for ever), 0 (the default) and more");
}

Result<std::vector<int>> read_list(std::string_view name, const int* list, int n) {
  if (n < 0 || (n > 0 && list == nullptr)) {
    return invalid_argument(std::string(name) + " is " + (list == nullptr ? "NULL" : "a list") +
                            " of " + std::to_string(n) + " numbers; allowed are " +
                            (list == nullptr ? "0 numbers" : "0 and more"));
  }
  return n == 0 ? std::vector<int>() : std::vector<int>(list, list + n);
}

Result<std::optional<Order>> read_order(const char* name) {
  if (name == nullptr) return std::optional<Order>();
  if (const auto order = parse_order(name)) return order;
  std::string all;
  for (int i = 0; i < kOrders; ++i) {
    all += (i == 0 ? "" : ", ") + std::string(name_of(static_cast<Order>(i)));
  }
  return invalid_argument("order is '" + std::string(name) + "'; allowed are " + all +
                          ", and NULL");
}

Result<Settings> read_settings(const rkConfig_t* given, int ranks) {
  if (given == nullptr) return Settings();
  const auto grown = grown_to_this("config", given, kFirstConfig, rkConfig_t RK_CONFIG_INITIALIZER);
  if (!grown.ok()) return grown.status();
  const rkConfig_t* const config = &*grown;
  Settings settings;
  if (const auto timeout = read_timeout(config->timeoutMs); !timeout.ok()) return timeout.status();
  settings.timeout_ms = config->timeoutMs;
  if (config->wait != nullptr) settings.wait = config->wait;
  if (config->network != nullptr) settings.network = config->network;
  // An invalid number of ranks is refused later, with the communicator; do not read a list for it.
  if (config->nodes != nullptr && ranks >= 1 && ranks <= Communicator::kMaxOnNetwork) {
    settings.nodes.assign(config->nodes, config->nodes + ranks);
  }
  for (std::size_t r = 0; r < settings.nodes.size(); ++r) {
    if (settings.nodes[r] >= kAnyNode) continue;
    return invalid_argument("nodes[" + std::to_string(r) + "] is " +
                            std::to_string(settings.nodes[r]) + "; allowed are -1 (any) and more");
  }
  auto levels = read_list("levels", config->levels, config->levelCount);
  if (!levels.ok()) return levels.status();
  settings.levels = std::move(*levels);
  for (const auto& [name, value] :
       {std::pair("tuned", config->tuned), std::pair("recordTimes", config->recordTimes)}) {
    if (value != 0 && value != 1) {
      return invalid_argument("config." + std::string(name) + " is " + std::to_string(value) +
                              "; allowed are 0 and 1");
    }
  }
  settings.tuned = config->tuned == 1;
  settings.record_times = config->recordTimes == 1;
  settings.plan_bytes = config->planBytes;
  const auto order = read_order(config->order);
  if (!order.ok()) return order.status();
  settings.order = *order;
  if (config->progressCore < -1) {
    return invalid_argument("progressCore is " + std::to_string(config->progressCore) +
                            "; allowed are -1 (none) and numbers of CPUs");
  }
  settings.progress_core = config->progressCore;
  if (config->placement != nullptr) {
    settings.placement = config->placement;
    const PolicyResult policy = parse_placement_policy(settings.placement);
    if (settings.placement.empty() || !policy.ok()) {
      return invalid_argument(settings.placement.empty()
                                  ? "placement is \"\"; allowed are compact, scatter, "
                                    "one_per_node, none, CPUs such as 0,2,4-7, and NULL"
                                  : policy.error);
    }
  }
  if (config->ports < 0) {
    return invalid_argument("ports is " + std::to_string(config->ports) +
                            "; allowed are 0 (no budget) and more");
  }
  settings.ports = config->ports;
  return settings;
}

std::string_view difference(const Settings& a, const Settings& b) {
  if (a.timeout_ms != b.timeout_ms) return "timeoutMs";
  if (a.wait != b.wait) return "wait";
  if (a.network != b.network) return "network";
  if (a.nodes != b.nodes) return "nodes";
  if (a.levels != b.levels) return "levels";
  if (a.tuned != b.tuned) return "tuned";
  if (a.record_times != b.record_times) return "recordTimes";
  if (a.plan_bytes != b.plan_bytes) return "planBytes";
  if (a.order != b.order) return "order";
  if (a.progress_core != b.progress_core) return "progressCore";
  if (a.placement != b.placement) return "placement";
  if (a.ports != b.ports) return "ports";
  return {};
}

Status check_as_first(int ranks, const Settings& settings, int first_ranks, const Settings& first) {
  if (ranks != first_ranks) {
    return invalid_argument("ranks is " + std::to_string(ranks) + "; allowed is " +
                            std::to_string(first_ranks) +
                            ", the value of the first rank of this id");
  }
  const std::string_view name = difference(first, settings);
  if (name.empty()) return {};
  return invalid_argument(
      "config." + std::string(name) +
      " differs from the value of the first rank of this id; allowed is one value");
}

Status with_options(const Settings& settings, int ranks,
                    const std::function<Status(CommunicatorOptions&)>& use) {
  std::vector<ArenaOptions> arenas;
  for (const int node : settings.nodes) {
    arenas.emplace_back();
    arenas.back().node = node;
  }
  CommunicatorOptions options{.ranks = ranks,
                              .arenas = arenas,
                              .levels = settings.levels,
                              .tuned = settings.tuned,
                              .record_times = settings.record_times,
                              .order = settings.order,
                              .ports = settings.ports};
  if (!settings.placement.empty()) {
    PlacementPolicy policy = parse_placement_policy(settings.placement).policy;
    if (policy.kind != PlacementPolicy::Kind::none) options.placement = std::move(policy);
  }
  if (settings.progress_core != -1) options.progress_core = settings.progress_core;
  if (settings.timeout_ms != 0) options.timeout = *read_timeout(settings.timeout_ms);
  if (settings.plan_bytes != 0) options.plan_bytes = settings.plan_bytes;
  if (!settings.wait.empty()) {
    const auto mode = parse_wait_mode(settings.wait);
    if (!mode.ok()) return mode.status();
    if (*mode) {
      options.wait = choose_wait_policy(ranks);
      options.wait->mode = **mode;
    }
  }
  if (!settings.network.empty()) {
    auto network = find_call_network(settings.network);
    if (!network.ok()) return network.status();
    options.network = std::move(*network);
  }
  return use(options);
}

Result<std::shared_ptr<Communicator>> make_communicator(
    const Settings& settings, int ranks, const std::optional<ProcessPlace>& process) {
  std::shared_ptr<Communicator> out;
  Status status = with_options(settings, ranks, [&](CommunicatorOptions& options) -> Status {
    if (process) {
      options.rank = process->rank;
      options.name = process->name;
      options.more_ranks = process->more;
    }
    auto made = Communicator::create(options);
    if (made.ok()) out = std::move(*made);
    return made.status();
  });
  if (!status.ok()) return status;
  return out;
}

}  // namespace rankine
