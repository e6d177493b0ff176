#include "engine/tools/stage.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "engine/api/check.h"
#include "engine/base/statistics.h"
#include "engine/network/wall.h"
#include "engine/tools/machine_team.h"
#include "engine/tools/meeting.h"
#include "engine/tools/memory.h"
#include "engine/tools/test_data.h"
#include "engine/tools/text.h"
#include "numa/topology.h"

namespace rankine::tools {
Stage::Stage(std::unique_ptr<Team> team, const Call& call)
    : team_(std::move(team)),
      call_(call),
      goal_(natural_goal(call, team_->ranks())),
      layout_(natural_layout(call, team_->ranks())),
      seats_(static_cast<std::size_t>(team_->ranks())) {}

Result<std::unique_ptr<Stage>> Stage::create(const TeamOptions& options, const Call& call) {
  auto team = machine_team(options);
  if (!team.ok()) return team.status();
  std::unique_ptr<Stage> stage(new Stage(std::move(*team), call));
  Status status = stage->allocate();
  if (!status.ok()) return status;
  return stage;
}

Status Stage::check_memory(const Call& call, int ranks) {
  const Goal goal = natural_goal(call, ranks);
  const Layout layout = natural_layout(call, ranks);
  std::size_t needed = 0;
  for (Rank r = 0; r < ranks; ++r) {
    needed += input_bytes(layout, goal, r) + output_bytes(layout, goal, r);
  }
  return rankine::tools::check_memory(needed, "buffers", counted(ranks, "rank"));
}

Status Stage::allocate() {
  const Topology topology = Topology::detect();
  for (const RankReport& report : team_->report()) {
    ArenaOptions options = arena_options(topology, report.place);
    options.chunk_bytes = 4096;  // each buffer gets a chunk of its own size
    arenas_.emplace_back(options);
    const auto i = arenas_.size() - 1;
    Seat& seat = seats_[i];
    seat.input_bytes = input_bytes(layout_, goal_, static_cast<int>(i));
    seat.output_bytes = output_bytes(layout_, goal_, static_cast<int>(i));
    // An address even where there is nothing to point to: a call wants buffers that are not null.
    constexpr std::size_t kLine = 64;
    seat.input = static_cast<std::byte*>(arenas_[i].allocate(seat.input_bytes + kLine));
    seat.output = static_cast<std::byte*>(arenas_[i].allocate(seat.output_bytes + kLine));
    if (seat.input == nullptr || seat.output == nullptr) {
      return {Code::out_of_memory,
              fmt::format("buffers of rank {}: {} bytes", i, seat.input_bytes + seat.output_bytes)};
    }
  }
  return {};
}

Result<Stage::Played> Stage::play() {
  team_->communicator().restart_model_time();
  const TestData data(call_.collective, team_->ranks(), call_.type, call_.op, seed_++);
  constexpr int kLooks = 4;  // ranks may outnumber cores
  Meeting meeting(team_->ranks(), kLooks);
  for (Seat& seat : seats_) seat.status = {};
  Status run = team_->run([&](Member& me) {
    Seat& mine = seats_[static_cast<std::size_t>(me.rank())];
    constexpr int kSpoilt = 0xa5;
    if (mine.output_bytes > 0) std::memset(mine.output, kSpoilt, mine.output_bytes);
    if (mine.input_bytes > 0) data.fill(goal_, layout_, me.rank(), mine.input);
    Call call = call_;
    call.in = mine.input;
    call.out = mine.output;
    if (!meeting.arrive()) return;
    mine.begin_ns = now_ns();
    mine.status = mine.perturbation != nullptr ? me.call(call, *mine.perturbation) : me.call(call);
    mine.end_ns = now_ns();
    mine.wrong =
        mine.output_bytes == 0 ? 0 : data.count_wrong(goal_, layout_, me.rank(), mine.output);
  });
  Played played;
  std::int64_t begin = seats_.front().begin_ns, end = seats_.front().end_ns;
  for (const Seat& seat : seats_) {
    if (!seat.status.ok()) return seat.status;
    begin = std::min(begin, seat.begin_ns);
    end = std::max(end, seat.end_ns);
    played.wrong += seat.wrong;
  }
  if (!run.ok()) return run;
  played.seconds = static_cast<double>(end - begin) * 1e-9;
  return played;
}

void Stage::perturb(std::uint64_t seed) {
  for (std::size_t r = 0; r < seats_.size(); ++r) {
    seats_[r].perturbation = std::make_unique<Perturbation>(seed, static_cast<Rank>(r));
  }
}

std::int64_t Stage::delays() const {
  std::int64_t delays = 0;
  for (const Seat& seat : seats_) {
    if (seat.perturbation != nullptr) delays += seat.perturbation->delays();
  }
  return delays;
}

Result<std::vector<double>> Stage::wake_ups() {
  constexpr int kSleeps = 12;
  constexpr std::int64_t kSleepNs = 1'500'000;
  const WaitPolicy policy = team_->communicator().wait_policy();
  std::vector<std::vector<std::int64_t>> late(seats_.size());
  Status status = team_->run([&](Member& me) {
    late[static_cast<std::size_t>(me.rank())] = measure_wake_ups(kSleeps, kSleepNs, policy);
  });
  if (!status.ok()) return status;
  std::vector<double> seconds;
  for (const auto& rank : late) {
    for (const std::int64_t ns : rank) seconds.push_back(static_cast<double>(ns) * 1e-9);
  }
  return seconds;
}

Result<WallDemands> Stage::demands(double total, double least) {
  auto late = wake_ups();
  if (!late.ok()) return late.status();
  WallDemands demands{.total = total, .least = least};
  constexpr double kNineOfTen = 0.9;
  demands.resolution = quantile(std::move(*late), kNineOfTen);
  std::vector<double> unclocked;
  constexpr int kPlays = 4;
  for (int i = 0; i < kPlays; ++i) {
    const auto played = play();
    if (!played.ok()) return played.status();
    if (i > 0) unclocked.push_back(played->seconds);  // the first one compiles
  }
  demands.data = median(std::move(unclocked));
  return demands;
}

}  // namespace rankine::tools
