#include "engine/tools/machine.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <utility>

#include "engine/api/tuning/tuning.h"
#include "engine/run/kernels/reduce.h"
#include "numa/cpus.h"

namespace rankine::tools {
namespace {

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
}

}  // namespace

MachineReport read_machine() {
  MachineReport machine;
  machine.host = host_name();
  machine.cpu = cpu_model();
  machine.topology = Topology::detect();
  machine.budget = cpu_budget();
  machine.isa = name_of(best_isa());
  return machine;
}

std::string describe_placement(const std::vector<RankReport>& ranks) {
  std::vector<int> cpus;
  for (const RankReport& rank : ranks) {
    if (rank.place.cpu == kNotPlaced || !rank.pin.enforced()) continue;
    if (std::find(cpus.begin(), cpus.end(), rank.place.cpu) == cpus.end()) {
      cpus.push_back(rank.place.cpu);
    }
  }
  if (cpus.empty()) return "not pinned";
  const std::string list =
      fmt::format("{} {}", cpus.size() == 1 ? "cpu" : "cpus", format_cpu_list(cpus));
  return cpus.size() == ranks.size() ? list : fmt::format("{} ranks on {}", ranks.size(), list);
}

std::vector<std::string> refusals(const std::vector<RankReport>& ranks) {
  std::vector<std::pair<std::string, std::vector<int>>> lines;
  for (const RankReport& rank : ranks) {
    std::string what;
    const auto add = [&what](const Enforcement& wish, std::string_view text) {
      if (!wish.refused()) return;
      what += fmt::format("{}{}: {}", what.empty() ? "" : "; ", text, wish.why());
    };
    add(rank.pin, "not pinned");
    add(rank.binding, "memory not bound");
    add(rank.huge_pages, "no huge pages");
    add(rank.locking, "memory not locked");
    if (what.empty()) continue;
    const auto same = std::find_if(lines.begin(), lines.end(),
                                   [&](const auto& line) { return line.first == what; });
    if (same == lines.end()) {
      lines.push_back({std::move(what), {rank.rank}});
    } else {
      same->second.push_back(rank.rank);
    }
  }
  std::vector<std::string> out;
  for (const auto& [what, who] : lines) {
    out.push_back(
        fmt::format("{} {}: {}", who.size() == 1 ? "rank" : "ranks", format_cpu_list(who), what));
  }
  return out;
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", utc);
}

std::string local_now() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  return fmt::format("{:%Y-%m-%d %H:%M:%S}", local);
}

}  // namespace rankine::tools
