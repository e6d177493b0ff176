// Plays the collectives of a planned step, and implements rankine buckets, which plays gradient
// buckets on threads.

#include "engine/lab/planner/play_step.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/catalogue.h"
#include "engine/api/buckets.h"
#include "engine/api/network.h"
#include "engine/api/split.h"
#include "engine/api/team.h"
#include "engine/base/statistics.h"
#include "engine/base/units.h"
#include "engine/cli/arguments.h"
#include "engine/cli/question.h"
#include "engine/cli/text.h"
#include "engine/cli/workbench.h"
#include "engine/lab/commands.h"
#include "engine/lab/planner/step.h"

namespace rankine::tools {
namespace {

using Byte = std::uint8_t;

// The input byte of a group's member at a place.
Byte brought(int member, std::size_t place) {
  return static_cast<Byte>(static_cast<std::size_t>(member) * 37 + place * 11 + place / 251);
}

// The sum of all members' input bytes at a place.
Byte sum_at(int members, std::size_t place) {
  unsigned sum = 0;
  for (int m = 0; m < members; ++m) sum += brought(m, place);
  return static_cast<Byte>(sum);
}

// One rank's part in one collective of its group.
class Part {
 public:
  Part(const PlannedCollective& planned, std::uint64_t bytes, std::unique_ptr<Member> group)
      : planned_(planned),
        group_(std::move(group)),
        me_(group_->rank()),
        all_(static_cast<std::size_t>(bytes)),
        block_(all_ / static_cast<std::size_t>(planned.price.ranks)) {
    in_.resize(is_any({Collective::all_gather, Collective::gather}) ? block_ : all_);
    out_.resize(is_any({Collective::reduce_scatter, Collective::scatter}) ? block_ : all_);
    for (std::size_t i = 0; i < in_.size(); ++i) in_[i] = brought(me_, i);
  }

  Member& group() { return *group_; }

  Status play() {
    const Price& price = planned_.price;
    if (planned_.collective == Collective::send_recv) {  // between two of the group's stages
      if (sends()) return group_->send(std::span<const Byte>(in_), me_ + 1);
      return receives() ? group_->recv(std::span(out_), me_ - 1) : Status();
    }
    return group_->call(
        {.collective = planned_.collective,
         .in = in_.data(),
         .out = out_.data(),
         .count = count_for(planned_.collective, price.ranks, all_, sizeof(Byte)),
         .type = DataType::u8,
         .options = {.algorithm = price.algorithm->name,
                     .segments = price.params.segments > 1 ? price.params.segments : 0}});
  }

  std::int64_t wrong() const {
    if (planned_.collective == Collective::send_recv && !receives()) return 0;
    if (is_any({Collective::reduce, Collective::gather}) && me_ != 0) return 0;  // not the root
    std::int64_t wrong = 0;
    for (std::size_t i = 0; i < out_.size(); ++i) wrong += out_[i] != expected(i) ? 1 : 0;
    return wrong;
  }

 private:
  Byte expected(std::size_t i) const {
    const std::size_t mine = static_cast<std::size_t>(me_) * block_;
    switch (planned_.collective) {
      case Collective::all_reduce:
      case Collective::reduce:
        return sum_at(planned_.price.ranks, i);
      case Collective::reduce_scatter:
        return sum_at(planned_.price.ranks, mine + i);
      case Collective::all_gather:
      case Collective::gather:
        return brought(static_cast<int>(i / block_), i % block_);
      case Collective::broadcast:
        return brought(0, i);
      case Collective::scatter:
        return brought(0, mine + i);
      case Collective::all_to_all:
        return brought(static_cast<int>(i / block_), mine + i % block_);
      default:
        return brought(planned_.price.sender, i);
    }
  }
  bool is_any(std::initializer_list<Collective> some) const {
    return std::ranges::find(some, planned_.collective) != some.end();
  }
  bool sends() const { return me_ == planned_.price.sender; }
  bool receives() const { return me_ == planned_.price.sender + 1; }

  const PlannedCollective& planned_;
  const std::unique_ptr<Member> group_;
  const int me_;
  const std::size_t all_, block_;
  std::vector<Byte> in_, out_;
};

// The plan's collectives, with those of equal group, collective and bytes merged.
std::vector<PlannedCollective> distinct(const StepPlan& plan) {
  std::vector<PlannedCollective> found;
  for (const PlannedCollective& c : plan.collectives) {
    const auto same = std::find_if(found.begin(), found.end(), [&](const PlannedCollective& other) {
      return other.collective == c.collective && other.price.group == c.price.group &&
             other.price.bytes == c.price.bytes;
    });
    if (same == found.end()) {
      found.push_back(c);
    } else {
      same->times += c.times;
      same->hidden += c.hidden;
      same->what = "several";
    }
  }
  return found;
}

// A collective's play: the buffers' bytes, and the factor by which a byte takes longer.
struct Thinned {
  std::uint64_t bytes = 0;
  Rational slower{1};
};

Thinned thinned(const Price& price, const PlayOptions& options) {
  if (!options.network || price.bytes <= options.most_bytes) return {price.bytes};
  const Schedule schedule = price.algorithm->make(price.params);
  const auto blocks =
      static_cast<std::uint64_t>(blocks_per_m(goal_of(*price.algorithm, price.params, schedule)));
  if (price.bytes % blocks != 0) return {price.bytes};
  const std::uint64_t bytes = std::max<std::uint64_t>(1, options.most_bytes / blocks) * blocks;
  return {bytes, Rational(static_cast<Int128>(price.bytes), static_cast<Int128>(bytes))};
}

// Runs all ranks with a grid of the mapping's axes.
class Player {
 public:
  // A byte takes `slower` times as long on the network.
  Player(const StepPlan& plan, const PlayOptions& options, const Rational& slower)
      : plan_(plan), options_(options), slower_(slower) {}

  const Rational& slower() const { return slower_; }

  Status begin() {
    const int ranks = plan_.mapping.ranks();
    TeamOptions team{.ranks = ranks, .timeout = options_.timeout};
    if (options_.network) {
      team.network = std::make_shared<const CallNetwork>(
          CallNetwork{.fabric = slowed(plan_.machine.network, slower_)});
    }
    auto made = Team::create(team);
    if (!made.ok()) return made.status();
    team_ = std::move(*made);
    grids_.resize(static_cast<std::size_t>(ranks));
    return team_->run([&](Member& me) {
      auto grid = Grid::make(me, axes());
      grid.status().throw_if_error();
      grids_[static_cast<std::size_t>(me.rank())] = std::make_unique<Grid>(std::move(*grid));
    });
  }

  Result<PlayedCollective> play(const PlannedCollective& planned, std::uint64_t bytes) {
    constexpr int kRepeats = 5;
    std::vector<std::unique_ptr<Part>> parts(grids_.size());
    if (Status s = prepare(planned, bytes, parts); !s.ok()) return s;
    PlayedCollective played{planned, bytes};
    std::vector<double> seconds;
    // At full speed, the first call also makes the plan, so one call is extra.
    for (int i = 0; i < (options_.network ? 1 : 1 + kRepeats); ++i) {
      const auto once = play_once(parts);
      if (!once.ok()) return once.status();
      if (options_.network || i > 0) seconds.push_back(*once);
    }
    played.seconds = median(seconds);
    for (const auto& part : parts) played.wrong += part->wrong();
    if (Status s =
            team_->run([&](Member& me) { parts[static_cast<std::size_t>(me.rank())].reset(); });
        !s.ok()) {
      return s;
    }
    return played;
  }

  Status end() {
    return team_->run([&](Member& me) { grids_[static_cast<std::size_t>(me.rank())].reset(); });
  }

 private:
  // The axes from the outside in, the order of a grid.
  std::vector<GridAxis> axes() const {
    std::vector<GridAxis> axes;
    const auto& nested = plan_.mapping.nested;
    for (auto axis = nested.rbegin(); axis != nested.rend(); ++axis) {
      axes.push_back({std::string(name_of(*axis)), plan_.mapping[*axis]});
    }
    return axes;
  }

  Status prepare(const PlannedCollective& planned, std::uint64_t bytes,
                 std::vector<std::unique_ptr<Part>>& parts) {
    std::vector<std::string> names;
    const std::vector<Axis>& along = planned.along;
    for (const GridAxis& axis : axes()) {
      const bool is_along = std::any_of(along.begin(), along.end(),
                                        [&](Axis one) { return name_of(one) == axis.name; });
      if (is_along) names.push_back(axis.name);
    }
    return team_->run([&](Member& me) {
      const auto rank = static_cast<std::size_t>(me.rank());
      auto group = grids_[rank]->across(names);
      group.status().throw_if_error();
      parts[rank] = std::make_unique<Part>(planned, bytes, std::move(*group));
    });
  }

  // Returns the seconds until the last rank is done.
  Result<double> play_once(std::vector<std::unique_ptr<Part>>& parts) {
    using Clock = std::chrono::steady_clock;
    if (options_.network) team_->communicator().restart_model_time();
    std::vector<double> seconds(parts.size());
    std::vector<Clock::time_point> ends(parts.size());
    Clock::time_point begin;
    const Status status = team_->run([&](Member& me) {
      const auto rank = static_cast<std::size_t>(me.rank());
      if (!options_.network) {
        me.barrier().throw_if_error();
        if (rank == 0) begin = Clock::now();
      }
      parts[rank]->play().throw_if_error();
      ends[rank] = Clock::now();
      seconds[rank] = parts[rank]->group().model_time();
    });
    if (!status.ok()) return status;
    if (options_.network) return *std::max_element(seconds.begin(), seconds.end());
    return std::chrono::duration<double>(*std::max_element(ends.begin(), ends.end()) - begin)
        .count();
  }

  const StepPlan& plan_;
  const PlayOptions& options_;
  const Rational slower_;
  std::unique_ptr<Team> team_;
  std::vector<std::unique_ptr<Grid>> grids_;
};

}  // namespace

Result<std::vector<PlayedCollective>> play_collectives(const StepPlan& plan,
                                                       const PlayOptions& options) {
  const std::vector<PlannedCollective> collectives = distinct(plan);
  std::vector<Thinned> buffers;
  for (const PlannedCollective& c : collectives) {
    buffers.push_back(thinned(c.price, options));
    const Call call{.collective = Collective::all_reduce,
                    .count = static_cast<std::size_t>(buffers.back().bytes),
                    .type = DataType::u8};
    const int ranks = plan.mapping.ranks();
    Status memory = Workbench::check_memory(
        {.team = {.ranks = ranks}, .buffers = buffer_bytes(call, ranks)}, counted(ranks, "rank"));
    if (!memory.ok()) return memory;
  }
  std::vector<PlayedCollective> played;
  std::optional<Player> player;
  for (std::size_t i = 0; i < collectives.size(); ++i) {
    if (player && player->slower() != buffers[i].slower) {
      if (Status s = player->end(); !s.ok()) return s;
      player.reset();
    }
    if (!player) {
      player.emplace(plan, options, buffers[i].slower);
      if (Status s = player->begin(); !s.ok()) return s;
    }
    auto one = player->play(collectives[i], buffers[i].bytes);
    if (!one.ok()) return one.status();
    played.push_back(std::move(*one));
  }
  if (!player) return played;
  if (Status s = player->end(); !s.ok()) return s;
  return played;
}

namespace {

// Sends real tensors through Buckets of the row's size, on the question's network; returns the
// modelled seconds. Tensors are reduced (play_step.h) to a size that gives every rank's block whole
// bytes. Errors: errors of Team, too little memory, and wrong sums or numbers of calls (mismatch).
Result<double> play_buckets(const BucketQuestion& q, const BucketRow& row) {
  constexpr std::size_t kThinBytes = 1000;
  const auto ranks = static_cast<std::size_t>(q.ranks);
  const bool thin =
      q.tensor_bytes > kThinBytes && q.tensor_bytes % kThinBytes == 0 && kThinBytes % ranks == 0;
  const std::size_t bytes = thin ? kThinBytes : q.tensor_bytes;
  const Rational slower(static_cast<Int128>(q.tensor_bytes), static_cast<Int128>(bytes));
  const auto network =
      std::make_shared<const CallNetwork>(CallNetwork{.fabric = slowed(q.fabric, slower)});
  if (Status s = check_memory(ranks * q.tensors * bytes, "tensors", counted(ranks, "rank"));
      !s.ok()) {
    return s;
  }
  auto team = Team::create({.ranks = q.ranks, .network = network});
  if (!team.ok()) return team.status();
  std::atomic<std::size_t> wrong{0};
  const Status status = (*team)->run([&](Member& me) {
    std::vector<std::uint8_t> data(q.tensors * bytes, 1);
    std::vector<std::span<std::uint8_t>> tensors;
    for (std::size_t t = 0; t < q.tensors; ++t) {
      tensors.push_back(std::span(data).subspan(t * bytes, bytes));
    }
    Buckets buckets(me, row.tensors * bytes);
    buckets
        .all_reduce(std::span<const std::span<std::uint8_t>>(tensors), ReduceOp::sum,
                    {.algorithm = q.algorithm->name})
        .throw_if_error();
    const auto sum = static_cast<std::uint8_t>(q.ranks);
    wrong += data.size() - static_cast<std::size_t>(std::count(data.begin(), data.end(), sum)) +
             (buckets.calls() == row.calls ? 0 : 1);
  });
  if (!status.ok()) return status;
  if (wrong != 0) return Status{Code::mismatch, "played buckets have wrong sums"};
  return (*team)->communicator().network_report().seconds;
}

struct BucketArguments {
  std::string algorithm = "ring";
  BucketQuestion question;  // without algorithm, network and time
  Rational backward;
  NetworkArguments network;
  bool play = false, json = false, csv = false;
};

Table table_of(const BucketQuestion& q, const std::vector<BucketRow>& rows) {
  const bool hides = q.backward > 0;
  Table table = bucket_table(rows, hides);
  table.title = fmt::format(
      "{} of {} among {} on {}, all_reduce {}{}", counted(q.tensors, "tensor"),
      format_bytes(q.tensor_bytes), counted(q.ranks, "rank"), describe(q.fabric), q.algorithm->name,
      hides ? fmt::format(", behind a backward pass of {}", format_duration(q.backward)) : "");
  if (const auto calls = best_calls(q)) {
    table.notes.push_back(fmt::format(
        "\nif communication takes longer than the backward pass, sqrt(T / a) = {:.1f} calls wait "
        "least: buckets of {}",
        *calls, format_bytes(static_cast<double>(q.all_bytes()) / *calls)));
  }
  return table;
}

Result<Exit> run_buckets(const BucketArguments& a, Console& console) {
  if (a.play && a.backward.to_double() > 0) {
    return invalid_argument("--play and --backward are given; allowed is one of them");
  }
  BucketQuestion question = a.question;
  const auto named = read_algorithms("--algo", a.algorithm, Collective::all_reduce);
  if (!named.ok()) return named.status();
  if (named->size() != 1) {
    return invalid_argument(fmt::format("--algo is '{}'; one algorithm is allowed", a.algorithm));
  }
  question.algorithm = named->front();
  const auto network = network_of(a.network);
  if (!network.ok()) return network.status();
  auto wired = wired_for(*network, question.ranks);
  if (!wired.ok()) return wired.status();
  question.fabric = std::move(*wired);
  question.backward = a.backward.to_double();
  auto rows = bucket_rows(question);
  if (!rows.ok()) return rows.status();
  for (BucketRow& row : *rows) {
    if (!a.play) break;
    const auto played = play_buckets(question, row);
    if (!played.ok()) return played.status();
    row.played = *played;
  }
  const Table table = table_of(question, *rows);
  console.out << (a.json ? to_json(table).dump() + "\n" : a.csv ? to_csv(table) : to_text(table));
  return Exit::ok;
}

Result<std::size_t> read_some_bytes(std::string_view argument, std::string_view text) {
  const auto bytes = parse_size(argument, text);
  if (bytes.ok() && *bytes == 0) {
    return invalid_argument(fmt::format("{} is '{}'; allowed are sizes from 1", argument, text));
  }
  return bytes;
}

}  // namespace

Subcommand add_buckets(Command tool) {
  auto owned = std::make_shared<BucketArguments>();
  BucketArguments& a = *owned;
  const Command app = tool.add_subcommand(
      "buckets",
      "the times of gradient buckets of several sizes, alone and behind a backward pass");
  add_text(app, "--algo", a.algorithm, "NAME", "an algorithm of all_reduce (ring)");
  add_argument(app, "-t,--ranks", a.question.ranks, Whole{2, 1 << 14}, "N", "ranks (8)");
  add_argument(
      app, "--tensors", a.question.tensors,
      [](std::string_view argument, std::string_view text) -> Result<std::size_t> {
        const auto n = Whole{1, 1'000'000}(argument, text);
        if (!n.ok()) return n.status();
        return static_cast<std::size_t>(*n);
      },
      "N", "number of tensors (1000)");
  add_argument(app, "--tensor", a.question.tensor_bytes, read_some_bytes, "SIZE",
               "bytes of each tensor (1000000)");
  add_argument(app, "--bucket", a.question.bucket, read_some_bytes, "SIZE",
               "a further size to show (25000000)");
  add_argument(app, "--backward", a.backward, parse_seconds, "TIME",
               "time of the pass that makes the tensors one after the other (0: all are ready)");
  add_network_arguments(app, a.network);
  app.add_flag("--play", a.play,
               "also send real tensors through Buckets, on threads on the network");
  add_formats(app, a.json, a.csv, "as JSON");
  app.footer(
      "Examples:\n"
      "  rankine buckets --alpha 10us --bandwidth 100GB/s --play\n"
      "  rankine buckets --tensors 150 --tensor 4M --network scale_out --ranks 64 --backward "
      "60ms\n");
  return {app, [owned](Console& console) { return run_buckets(*owned, console); }};
}

}  // namespace rankine::tools
