#include "engine/api/c/settings.h"

#include <utility>

#include "engine/api/environment.h"
#include "engine/api/network.h"

namespace rankine {

Status check_size(std::string_view name, std::size_t size, std::size_t known) {
  if (size == known) return {};
  return invalid_argument(std::string(name) + ".size is " + std::to_string(size) +
                          "; this library knows " + std::to_string(known) +
                          ", as the initializer in rankine.h sets it");
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
                            " of " + std::to_string(n) + " numbers");
  }
  return n == 0 ? std::vector<int>() : std::vector<int>(list, list + n);
}

Result<Settings> read_settings(const rkConfig_t* config, int ranks) {
  if (config == nullptr) return Settings();
  if (Status size = check_size("config", config->size, sizeof(rkConfig_t)); !size.ok()) return size;
  Settings settings;
  if (const auto timeout = read_timeout(config->timeoutMs); !timeout.ok()) return timeout.status();
  settings.timeout_ms = config->timeoutMs;
  if (config->wait != nullptr) settings.wait = config->wait;
  if (config->network != nullptr) settings.network = config->network;
  if (config->nodes != nullptr) {
    auto nodes = read_list("nodes", config->nodes, ranks);
    if (!nodes.ok()) return nodes.status();
    settings.nodes = std::move(*nodes);
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
  return {};
}

Result<std::shared_ptr<Communicator>> make_communicator(const Settings& settings, int ranks) {
  std::vector<ArenaOptions> arenas;
  for (const int node : settings.nodes) {
    arenas.emplace_back();
    arenas.back().node = node;
  }
  CommunicatorOptions options{.ranks = ranks,
                              .arenas = arenas,
                              .levels = settings.levels,
                              .tuned = settings.tuned,
                              .record_times = settings.record_times};
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
  auto made = Communicator::create(options);
  if (!made.ok()) return made.status();
  return std::shared_ptr<Communicator>(std::move(*made));
}

}  // namespace rankine
