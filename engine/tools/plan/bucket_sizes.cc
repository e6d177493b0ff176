#include "engine/tools/plan/bucket_sizes.h"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/units.h"
#include "engine/tools/catalogue_names.h"
#include "engine/tools/network.h"
#include "engine/tools/plan/bucket_times.h"
#include "engine/tools/plan/play_buckets.h"

namespace rankine::tools {
namespace {

struct BucketArguments {
  std::string algorithm = "ring";
  BucketQuestion question;  // but for algorithm, network and time
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
        "\nwhere communication takes longer than the backward pass, sqrt(T / a) = {:.1f} calls wait "
        "least: buckets of {}",
        *calls, format_bytes(static_cast<double>(q.all_bytes()) / *calls)));
  }
  return table;
}

Result<Exit> run_buckets(const BucketArguments& a, Console& console) {
  if (a.play && a.backward.to_double() > 0) {
    return invalid_argument("--play is of tensors that are all there; leave --backward out");
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
  add_argument(app, "-t,--ranks", a.question.ranks, Whole{2, 1 << 14}, "N", "ranks (8)");
  add_argument(
      app, "--tensors", a.question.tensors,
      [](std::string_view argument, std::string_view text) -> Result<std::size_t> {
        const auto n = Whole{1, 1'000'000}(argument, text);
        if (!n.ok()) return n.status();
        return static_cast<std::size_t>(*n);
      },
      "N", "how many tensors (1000)");
  add_argument(app, "--tensor", a.question.tensor_bytes, read_some_bytes, "SIZE",
               "of each (1000000)");
  add_argument(app, "--bucket", a.question.bucket, read_some_bytes, "SIZE",
               "a size to be among those shown (25000000)");
  add_argument(app, "--backward", a.backward, parse_seconds, "TIME",
               "of the pass that makes the tensors one after the other (0: all are there)");
  add_network_arguments(app, a.network);
  app.add_flag("--play", a.play, "real tensors through Buckets as well, on threads on the network");
  add_formats(app, a.json, a.csv, "as JSON");
  app.footer(
      "Examples:\n"
      "  rankine buckets --alpha 10us --bandwidth 100GB/s --play\n"
      "  rankine buckets --tensors 150 --tensor 4M --network scale_out --ranks 64 --backward "
      "60ms\n");
  return {app, [owned](Console& console) { return run_buckets(*owned, console); }};
}

}  // namespace rankine::tools
