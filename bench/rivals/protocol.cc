#include "bench/rivals/protocol.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "engine/base/statistics.h"
#include "engine/cli/machine.h"
#include "engine/cli/workbench.h"

namespace rankine::rivals {
namespace {

// Ends the program if the work in its scope takes too long: threads that spin for ever cannot be
// ended in another way.
class Watchdog {
 public:
  explicit Watchdog(const std::string& contender) {
    std::snprintf(message, sizeof(message), "\nrivals: %s did not finish a batch within %u s\n",
                  contender.c_str(), kBatchLimitS);
    struct sigaction action {};
    action.sa_handler = bark;
    sigaction(SIGALRM, &action, nullptr);
    alarm(kBatchLimitS);
  }
  ~Watchdog() { alarm(0); }
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  static void bark(int /*signal*/) {
    // Coprocesses end with this process: see mpi_contender.cc.
    [[maybe_unused]] const auto written = write(STDERR_FILENO, message, std::strlen(message));
    _exit(124);
  }
  static char message[200];
};

char Watchdog::message[200];

}  // namespace

Setup make_setup(int ranks, std::size_t max_bytes, bool processes) {
  Setup setup{ranks, max_bytes, false, allowed_cpus(), processes};
  setup.crowded = static_cast<std::size_t>(ranks) > setup.cpus.size();
  return setup;
}

std::unique_ptr<Team> make_team(int ranks, const std::vector<int>& cpus) {
  const PlacementPolicy placement{.kind = PlacementPolicy::Kind::listed, .cpus = cpus};
  return Team::create({.ranks = ranks, .placement = placement, .tuned = false}).value();
}

std::string output_path(const std::string& path) {
  const char* const folder = std::getenv("BUILD_WORKING_DIRECTORY");
  return folder == nullptr || path.empty() ? path : (std::filesystem::path(folder) / path).string();
}

nlohmann::json machine_json() {
  const tools::MachineReport machine = tools::read_machine();
  struct utsname system {};
  uname(&system);
  const CacheSizes& caches = machine.topology.caches();
  return {{"cpu", machine.cpu},
          {"kernel", std::string(system.sysname) + " " + system.release},
          {"summary", machine.topology.summary()},
          {"cores", machine.budget.why},
          {"l1d_bytes", caches.l1d},
          {"l2_bytes", caches.l2},
          {"l3_bytes", caches.l3},
          {"time", tools::utc_now()}};
}

InProcess::Stage::Stage(Team& its_team, const Setup& setup)
    : team(its_team), cpus(setup.cpus), batch_barrier(std::make_unique<BatchBarrier>()) {
  batch_barrier->ranks = team.ranks();
  batch_barrier->crowded = setup.crowded;
  for (int r = 0; r < team.ranks(); ++r) {
    ins.emplace_back(setup.max_bytes);
    outs.emplace_back(setup.max_bytes);
  }
}

InProcess::InProcess(std::unique_ptr<Rival> rival, Stage& stage)
    : Contender(rival->name, rival->family), rival_(std::move(rival)), stage_(stage) {
  missing = rival_->missing;
}

Measured InProcess::run(const Batch& batch) {
  const Watchdog watchdog(name);
  const auto body = [&](int rank) {
    const auto r = static_cast<std::size_t>(rank);
    run_batch(batch, *stage_.batch_barrier, rank, stage_.ins[r].data(), stage_.outs[r].data(),
              [&](float* in, float* out, const Shape& s) {
                rival_->call(batch.collective, rank, in, out, s.block);
              });
  };
  const auto pinned_body = [&](int rank) {
    pin_this_thread(stage_.cpus[static_cast<std::size_t>(rank) % stage_.cpus.size()]);
    body(rank);
  };
  // A rival's own threads may include the calling thread, so its affinity is restored.
  cpu_set_t before;
  pthread_getaffinity_np(pthread_self(), sizeof(before), &before);
  const bool own_threads = rival_->run_ranks(pinned_body);
  pthread_setaffinity_np(pthread_self(), sizeof(before), &before);
  if (!own_threads) {
    stage_.team.run([&](Member& me) { body(me.rank()); }).throw_if_error();
  }
  missing = rival_->missing;
  if (!missing.empty()) return {};
  Measured measured = summarise(batch, *stage_.batch_barrier);
  if (!rival_->has_result()) measured.wrong = 0;
  return measured;
}

std::optional<std::size_t> Row::best(
    unsigned families, const std::vector<std::unique_ptr<Contender>>& contenders) const {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if ((contenders[i]->family & families) == 0 || cells[i].us.empty() || cells[i].wrong > 0)
      continue;
    if (!best || median(cells[i].us) < median(cells[*best].us)) best = i;
  }
  return best;
}

double Row::limit_ratio(std::size_t a) const {
  std::vector<double> us;
  for (const Limit& limit : limits) us.push_back(limit.us);
  return median_ratio(cells[a].us, us);
}

Limit Row::limit() const {
  if (limits.empty()) return {};
  std::vector<Limit> rising = limits;
  std::sort(rising.begin(), rising.end(),
            [](const Limit& a, const Limit& b) { return a.us < b.us; });
  return rising[rising.size() / 2];
}

namespace {

// The contender at place k of a round. Each round starts with another contender, and every other
// round runs backwards, so that no contender always finds the caches as the same predecessor left
// them.
std::size_t turn(int round, std::size_t k, std::size_t contenders) {
  const std::size_t forward = (k + static_cast<std::size_t>(round)) % contenders;
  return round % 2 == 0 ? forward : contenders - 1 - forward;
}

Row measure_once(std::vector<std::unique_ptr<Contender>>& contenders, const Plan& plan,
                 const Batch& common, const std::vector<int>& calls, Team& team,
                 LimitProbe& limits) {
  Row row;
  row.bytes = common.bytes;
  row.protocol = common.protocol;
  row.cells.resize(contenders.size());
  for (int round = 0; round < plan.rounds; ++round) {
    row.ping_pong_ns.push_back(tools::probe_latency(team).value());
    Rates rates = limits.measure(common);
    rates.latency_us = row.ping_pong_ns.back() / 1000;
    row.limits.push_back(limit_of(common, team.ranks(), limits.share(), rates));
    for (std::size_t k = 0; k < contenders.size(); ++k) {
      const std::size_t i = turn(round, k, contenders.size());
      Contender& contender = *contenders[i];
      if (calls[i] == 0 || !contender.missing.empty()) continue;
      Batch batch = common;
      batch.calls = calls[i];
      batch.warmups = plan.warmups >= 0 ? plan.warmups : planned_warmups(batch.calls);
      batch.seed = static_cast<std::uint32_t>(round) * 64 + static_cast<std::uint32_t>(i);
      const Measured measured = contender.run(batch);
      Cell& cell = row.cells[i];
      if (!contender.missing.empty()) {
        cell = {};  // broke during the row: a partial row is invalid
        continue;
      }
      cell.us.push_back(measured.us);
      if (!measured.percentiles.empty()) cell.percentiles.push_back(measured.percentiles);
      cell.wrong += measured.wrong;
      cell.calls = batch.calls;
    }
  }
  row.ping_pong_ns.push_back(tools::probe_latency(team).value());
  return row;
}

}  // namespace

Row measure_row(std::vector<std::unique_ptr<Contender>>& contenders, const Plan& plan,
                std::size_t bytes, Protocol protocol, Team& team, LimitProbe& limits) {
  Batch common;
  common.collective = plan.collective;
  common.bytes = bytes;
  common.protocol = protocol;
  common.in_place = plan.in_place;
  std::vector<int> calls(contenders.size(), 0);
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    Contender& contender = *contenders[i];
    if (!contender.missing.empty() || !contender.takes(plan.collective, bytes)) continue;
    const auto run = [&](const Batch& batch) {
      return contender.missing.empty() ? contender.run(batch) : Measured{};
    };
    calls[i] = plan.calls > 0 ? plan.calls : calibrated_calls(common, plan.batch_us, run);
  }
  int repeats = 0;
  Row best =
      tools::calmest([&] { return measure_once(contenders, plan, common, calls, team, limits); },
                     [](const Row& row) { return row.drift(); }, repeats);
  best.repeats = repeats;
  return best;
}

}  // namespace rankine::rivals
