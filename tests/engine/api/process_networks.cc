// Ranks that are processes, on modelled networks: after every call each rank's time must be the
// simulator's, to the last digit, and the data right.
#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/catalogue.h"
#include "engine/api/check.h"
#include "engine/api/network.h"
#include "engine/faults/collective_case.h"
#include "engine/network/predict.h"
#include "engine/network/prices.h"
#include "engine/network/simulate.h"
#include "tests/engine/api/process_play.h"

namespace rankine::testing_processes {
namespace {

// The times of all ranks, as a simulator has them that is told of every call.
class Told {
 public:
  Told(CallNetwork network, int ranks)
      : network_(std::move(network)), ends_(static_cast<std::size_t>(ranks), 0) {
    network_.fabric.size = network_.fabric.places_among(ranks);
  }

  // Among these of all ranks, in that order.
  std::optional<Params> params_for(const Algorithm& line, const std::vector<Rank>& members,
                                   Rank root) const {
    const auto n = static_cast<int>(members.size());
    Params params;
    params.ranks = n;
    params.root = root;
    params.peer = (root + 1) % n;
    params.segments = 3;
    const Fabric fabric = among(members);
    if (!wire(fabric, line, params).ok()) return std::nullopt;
    params = line.only_taken(params);
    if (line.refusal(params)) return std::nullopt;
    const Schedule schedule = line.make(params);
    bool able = true;
    for (int k = 0; k < schedule.rounds; ++k) {
      for_each_transfer(schedule, k, [&](const Transfer& t) {
        able = able && check_ability(t, fabric).ok();
      });
    }
    return able ? std::optional(params) : std::nullopt;
  }

  Status call(const Algorithm& line, const Params& params, const std::vector<Rank>& members,
              std::size_t bytes) {
    SimulateOptions options{.sync = network_.sync};
    for (const Rank r : members) options.starts.push_back(ends_[static_cast<std::size_t>(r)]);
    const Schedule schedule = line.make(params);
    const auto simulated =
        simulate(schedule, goal_of(line, params, schedule), among(members), bytes, options);
    if (!simulated.ok()) return simulated.status();
    for (std::size_t i = 0; i < members.size(); ++i) {
      ends_[static_cast<std::size_t>(members[i])] = simulated->rank_end[i];
    }
    ticks_per_second_ = simulated->ticks_per_second;
    return {};
  }

  double seconds(Rank r) const {
    return nearest_double(ends_[static_cast<std::size_t>(r)], ticks_per_second_);
  }

 private:
  Fabric among(const std::vector<Rank>& members) const {
    Fabric fabric = network_.fabric;
    fabric.places.clear();
    for (const Rank r : members) fabric.places.push_back(network_.fabric.place_of(r));
    return fabric;
  }

  CallNetwork network_;
  std::vector<Ticks> ends_;
  Ticks ticks_per_second_ = 1;
};

// Every line of the catalogue that this network can carry; how many there are.
int call_all(Member& me, Rank of_all, const std::vector<Rank>& members, Told& told) {
  const auto n = static_cast<int>(members.size());
  CaseBuffers buffers;
  int made = 0;
  for (const Algorithm& line : catalogue()) {
    if (line.collective == Collective::barrier) continue;
    const auto params = told.params_for(line, members, n / 2);
    if (!params) continue;
    const std::size_t count = 250 + static_cast<std::size_t>(made);
    CollectiveCase test{.collective = line.collective,
                        .ranks = n,
                        .count = count,
                        .type = DataType::u32,
                        .root = params->root,
                        .peer = line.takes("peer") ? params->peer : (params->root + 1) % n,
                        .seed = static_cast<std::uint64_t>(made),
                        .options = {.algorithm = line.name}};
    set_parameters(*params, test.options);
    if (const std::string fault = run_case(me, test, buffers); !fault.empty()) {
      throw Error(Code::remote_error, std::string(line.name) + ": " + fault);
    }
    const std::size_t blocks =
        static_cast<std::size_t>(natural_blocks(line.collective, n)) /
        (line.collective == Collective::all_to_all ? static_cast<std::size_t>(n) : 1);
    told.call(line, *params, members, count * blocks * 4).throw_if_error();
    if (me.model_time() != told.seconds(of_all)) {
      throw Error(Code::remote_error, std::string(line.name) + ": the model's time is " +
                                          std::to_string(me.model_time() * 1e6) + " us, not " +
                                          std::to_string(told.seconds(of_all) * 1e6));
    }
    ++made;
  }
  return made;
}

// All of them, groups of them that share their time, and messages between them.
int keep_simulated_time(const Given& given) {
  const auto network = find_call_network(std::getenv("RANKINE_NETWORK")).value();
  const Joined joined = join(given.options());
  Member& me = *joined.member;
  Told told(*network, given.ranks);
  std::vector<Rank> all, halves[2];
  for (Rank r = 0; r < given.ranks; ++r) {
    all.push_back(r);
    halves[r % 2].push_back(r);
  }
  int made = call_all(me, given.rank, all, told);
  // A split is an all-gather, of whichever algorithm: time begins again after it.
  const auto group = me.split(given.rank % 2, given.rank).value();
  me.barrier().throw_if_error();
  joined.communicator->restart_model_time();
  Told of_groups(*network, given.ranks);
  made += call_all(*group, given.rank, halves[given.rank % 2], of_groups);
  std::vector<std::int32_t> data(1000, given.rank);
  if (given.rank == 0) me.send(std::span<const std::int32_t>(data), 1).throw_if_error();
  const double before = me.model_time();
  if (given.rank == 1) {
    me.recv(std::span(data), 0).throw_if_error();
    if (data[999] != 0) return say("wrong message");
    if (me.model_time() <= before) return say("a message takes no time");
  }
  me.barrier().throw_if_error();
  return say(made > 60 ? "ok" : "only " + std::to_string(made) + " calls");
}

// The processes agree on how far their wall clocks are stretched, and keep deadlines.
int keep_wall_time(const Given& given) {
  const Joined joined = join(given.options());
  if (Status status = add_up(*joined.member, 1000, 5); !status.ok()) return say(status);
  joined.communicator->restart_model_time();
  if (Status status = add_up(*joined.member, 1000, 5); !status.ok()) return say(status);
  const NetworkReport report = joined.communicator->network_report();
  if (report.lateness.deadlines == 0) return say("no deadlines");
  const double least = report.seconds * report.dilate;  // of real time
  if (report.elapsed < least) return say("time runs too fast");
  return say("dilated " + std::to_string(report.dilate));
}

}  // namespace

const Plays& network_plays() {
  static const Plays all = {{"keeps_simulated_time", keep_simulated_time},
                            {"keeps_wall_time", keep_wall_time}};
  return all;
}

}  // namespace rankine::testing_processes
