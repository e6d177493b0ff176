#include "engine/tools/plan/bucket_sizes.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "algorithms/catalogue.h"
#include "algorithms/closed_form.h"
#include "engine/api/buckets.h"
#include "engine/api/network.h"
#include "engine/api/team.h"
#include "engine/base/units.h"
#include "engine/network/predict.h"
#include "engine/tools/memory.h"
#include "engine/tools/network.h"
#include "engine/tools/plan/hidden_time.h"
#include "engine/tools/plan/play_step.h"
#include "engine/tools/table.h"

namespace rankine::tools {
namespace {

struct BucketArguments {
  std::string algorithm = "ring";
  int ranks = 8;
  std::size_t tensors = 1000, tensor_bytes = 1'000'000, bucket = 25'000'000;
  Rational backward;
  NetworkArguments network;
  bool play = false, json = false;

  std::size_t all_bytes() const { return tensors * tensor_bytes; }
};

struct Row {
  std::size_t tensors = 0, bytes = 0, calls = 0;  // of a bucket
  double each = 0;                                // seconds of a bucket, by the simulator
  double last = 0;                                // of the last one, which may not be full
  std::optional<double> formula{};                // the same by the catalogue's closed forms
  double exposed = 0;
  std::optional<double> played{};  // all of them, by ranks on threads

  double all() const { return static_cast<double>(calls - 1) * each + last; }
};

// Rounds times alpha and the busiest rank's bytes times beta; nothing where either is computed, or
// where messages are not all alike.
std::optional<double> closed_form(const Algorithm& line, const Params& params, const Fabric& fabric,
                                  std::size_t bytes) {
  if (line.rounds == kComputed || line.sent == kComputed) return {};
  if (fabric.two_level() || fabric.wiring.shares_links() || !fabric.odd.empty()) return {};
  return evaluate(line.rounds, params).to_double() * fabric.link.latency().to_double() +
         evaluate(line.sent, params).to_double() * static_cast<double>(bytes) *
             fabric.link.per_byte().to_double();
}

Result<Row> row_of(const BucketArguments& a, const Algorithm& line, const Fabric& fabric,
                   std::size_t tensors) {
  Row row{.tensors = tensors, .bytes = tensors * a.tensor_bytes};
  row.calls = (a.tensors + tensors - 1) / tensors;
  Params params;
  params.ranks = a.ranks;
  params.segments = 0;
  const auto found = predict_one(line, line.only_taken(params), row.bytes, fabric);
  if (!found.ok()) return found.status();
  if (!found->ok()) return invalid_argument("--algo is '" + a.algorithm + "': " + found->refusal);
  row.each = row.last = found->seconds;
  if (const std::size_t rest = a.tensors % tensors; rest > 0) {
    const auto last = predict_one(line, line.only_taken(params), rest * a.tensor_bytes, fabric);
    if (!last.ok()) return last.status();
    row.last = last->seconds;
  }
  row.formula = closed_form(line, found->params, fabric, row.bytes);
  const double backward = a.backward.to_double();
  row.exposed =
      backward > 0 ? exposed_behind(backward, static_cast<double>(row.calls), row.each) : row.all();
  return row;
}

// Real tensors through Buckets, on threads on the network. Tensors are thinned (play_step.h) to
// what keeps whole bytes in every rank's block.
Result<double> play(const BucketArguments& a, const Algorithm& line, const Fabric& fabric,
                    const Row& row) {
  constexpr std::size_t kThinBytes = 1000;
  const auto ranks = static_cast<std::size_t>(a.ranks);
  const bool thin =
      a.tensor_bytes > kThinBytes && a.tensor_bytes % kThinBytes == 0 && kThinBytes % ranks == 0;
  const std::size_t bytes = thin ? kThinBytes : a.tensor_bytes;
  const Rational slower(static_cast<Int128>(a.tensor_bytes), static_cast<Int128>(bytes));
  const auto network =
      std::make_shared<const CallNetwork>(CallNetwork{.fabric = slowed(fabric, slower)});
  if (Status s = check_memory(ranks * a.tensors * bytes, "tensors", fmt::format("{} ranks", ranks));
      !s.ok()) {
    return s;
  }
  auto team = Team::create({.ranks = a.ranks, .network = network});
  if (!team.ok()) return team.status();
  std::atomic<std::size_t> wrong{0};
  const Status status = (*team)->run([&](Member& me) {
    std::vector<std::uint8_t> data(a.tensors * bytes, 1);
    std::vector<std::span<std::uint8_t>> tensors;
    for (std::size_t t = 0; t < a.tensors; ++t) {
      tensors.push_back(std::span(data).subspan(t * bytes, bytes));
    }
    Buckets buckets(me, row.tensors * bytes);
    buckets
        .all_reduce(std::span<const std::span<std::uint8_t>>(tensors), ReduceOp::sum,
                    {.algorithm = line.name})
        .throw_if_error();
    const auto sum = static_cast<std::uint8_t>(a.ranks);
    wrong += data.size() - static_cast<std::size_t>(std::count(data.begin(), data.end(), sum)) +
             (buckets.calls() == row.calls ? 0 : 1);
  });
  if (!status.ok()) return status;
  if (wrong != 0) return Status{Code::mismatch, "played buckets have wrong sums"};
  return (*team)->communicator().network_report().seconds;
}

// One tensor, two, four ... all of them; and what PyTorch would take, or whoever asks.
std::vector<std::size_t> sizes_of(const BucketArguments& a) {
  std::vector<std::size_t> sizes = {
      a.tensors, std::clamp<std::size_t>(a.bucket / a.tensor_bytes, 1, a.tensors)};
  for (std::size_t n = 1; n < a.tensors; n *= 2) sizes.push_back(n);
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

// Where alpha's part of a call is a and the backward pass takes T, n calls keep n a + M beta - (n -
// 1) T / n waiting beyond it, which is least at n = sqrt(T / a).
std::string optimum_text(const BucketArguments& a, const Algorithm& line, const Fabric& fabric) {
  Params params;
  params.ranks = a.ranks;
  const auto latency = closed_form(line, line.only_taken(params), fabric, 0);
  const double backward = a.backward.to_double();
  if (!latency || !(*latency > 0) || !(backward > 0)) return {};
  const double calls =
      std::clamp(std::sqrt(backward / *latency), 1.0, static_cast<double>(a.tensors));
  return fmt::format(
      "where communication takes longer than the backward pass, sqrt(T / a) = {:.1f} calls wait "
      "least: buckets of {}\n",
      calls, format_bytes(static_cast<double>(a.all_bytes()) / calls));
}

std::string text_of(const BucketArguments& a, const Algorithm& line, const Fabric& fabric,
                    const std::vector<Row>& rows) {
  const Row& best = *std::min_element(
      rows.begin(), rows.end(), [](const Row& x, const Row& y) { return x.exposed < y.exposed; });
  const bool hides = a.backward.to_double() > 0;
  std::vector<std::vector<std::string>> lines = {
      {"bucket", "tensors", "calls", "each", "formula", "all", hides ? "exposed" : "", "gain"}};
  const bool played = rows.front().played.has_value();
  if (played) lines.front().push_back("played");
  for (const Row& row : rows) {
    lines.push_back({format_bytes(row.bytes), std::to_string(row.tensors),
                     std::to_string(row.calls), format_duration(row.each),
                     row.formula ? format_duration(*row.formula) : "", format_duration(row.all()),
                     hides ? format_duration(row.exposed) : "",
                     fmt::format("{:.2f} x", rows.front().exposed / row.exposed)});
    if (played) lines.back().push_back(format_duration(*row.played));
    if (&row == &best) lines.back().push_back("best");
  }
  return fmt::format(
      "{} tensors of {} among {} ranks on {}, all_reduce {}{}\n\n{}\n{}", a.tensors,
      format_bytes(a.tensor_bytes), a.ranks, describe(fabric), line.name,
      hides ? fmt::format(", behind a backward pass of {}", format_duration(a.backward.to_double()))
            : "",
      columns(lines, played ? "rrrrrrrrr" : "rrrrrrrr"), optimum_text(a, line, fabric));
}

std::string json_of(const std::vector<Row>& rows) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const Row& row : rows) {
    out.push_back({{"bytes", row.bytes},
                   {"tensors", row.tensors},
                   {"calls", row.calls},
                   {"seconds_each", row.each},
                   {"seconds", row.all()},
                   {"exposed", row.exposed}});
    if (row.played) out.back()["played"] = *row.played;
    if (row.formula) out.back()["formula_each"] = *row.formula;
  }
  return out.dump() + "\n";
}

Result<Exit> run_buckets(const BucketArguments& a, Console& console) {
  if (a.play && a.backward.to_double() > 0) {
    return invalid_argument("--play is of tensors that are all there; leave --backward out");
  }
  const Algorithm* line = find_algorithm(Collective::all_reduce, a.algorithm);
  if (line == nullptr) {
    return invalid_argument(fmt::format(
        "--algo is '{}'; 'rankine list all_reduce' shows what is allowed", a.algorithm));
  }
  const auto network = network_of(a.network);
  if (!network.ok()) return network.status();
  const auto asked = wired_for(*network, a.ranks);
  if (!asked.ok()) return asked.status();
  std::vector<Row> rows;
  for (const std::size_t tensors : sizes_of(a)) {
    auto row = row_of(a, *line, *asked, tensors);
    if (!row.ok()) return row.status();
    rows.push_back(*row);
    if (!a.play) continue;
    const auto played = play(a, *line, *asked, *row);
    if (!played.ok()) return played.status();
    rows.back().played = *played;
  }
  console.out << (a.json ? json_of(rows) : text_of(a, *line, *asked, rows));
  return Exit::ok;
}

Result<std::size_t> read_some_bytes(std::string_view argument, std::string_view text) {
  const auto bytes = parse_size(argument, text);
  if (bytes.ok() && *bytes == 0) {
    return invalid_argument(fmt::format("{} is '{}'; it must be positive", argument, text));
  }
  return bytes;
}

}  // namespace

Subcommand add_buckets(Command tool) {
  auto owned = std::make_shared<BucketArguments>();
  BucketArguments& a = *owned;
  const Command app = tool.add_subcommand(
      "buckets", "what the size of gradient buckets costs, alone and behind a backward pass");
  add_text(app, "--algo", a.algorithm, "NAME", "of all_reduce (ring)");
  add_argument(app, "--ranks", a.ranks, Whole{2, 1 << 14}, "N", "ranks (8)");
  add_argument(
      app, "--tensors", a.tensors,
      [](std::string_view argument, std::string_view text) -> Result<std::size_t> {
        const auto n = Whole{1, 1'000'000}(argument, text);
        if (!n.ok()) return n.status();
        return static_cast<std::size_t>(*n);
      },
      "N", "how many tensors (1000)");
  add_argument(app, "--tensor", a.tensor_bytes, read_some_bytes, "SIZE", "of each (1000000)");
  add_argument(app, "--bucket", a.bucket, read_some_bytes, "SIZE",
               "a size to be among those shown (25000000)");
  add_argument(app, "--backward", a.backward, parse_seconds, "TIME",
               "of the pass that makes the tensors one after the other (0: all are there)");
  add_network_arguments(app, a.network);
  app.add_flag("--play", a.play, "real tensors through Buckets as well, on threads on the network");
  app.add_flag("--json", a.json, "as JSON");
  app.footer(
      "Examples:\n"
      "  rankine buckets --alpha 10us --bandwidth 100GB/s --play\n"
      "  rankine buckets --tensors 150 --tensor 4M --network scale_out --ranks 64 --backward "
      "60ms\n");
  return {app, [owned](Console& console) { return run_buckets(*owned, console); }};
}

}  // namespace rankine::tools
