// Measures the mailbox against a bare cache line and two well-known SPSC queues: one-way latency of
// a ping-pong and throughput of 8-byte messages between two pinned threads.
//
//   third_party/bazel run //bench/mailbox -- --json mailbox.json
//
// All take turns, round by round. Each round begins with the bare line's latency (LatencyProbe in
// engine/cli/probe.h), and a queue's latency is compared with this value. Runs in which the value
// moved are repeated. bench/RESULTS.md has the figures; :benchmark measures the same with Google
// Benchmark, to compare runs. Exit status: 0, 2 usage, 3 no second CPU or no file.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "bench/mailbox/channels.h"
#include "bench/rivals/crew.h"
#include "engine/base/files.h"
#include "engine/base/statistics.h"
#include "engine/cli/probe.h"
#include "nlohmann/json.hpp"

namespace rankine {
namespace {

// Half a round trip, in ns: the least of a few short series, as the bare line is measured.
double latency_ns(rivals::Crew& crew, Channel& there, Channel& back) {
  constexpr int kSeries = 7;
  constexpr std::uint64_t kTrips = 500;
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  crew.run([&](int rank) {
    for (int series = 0; series < kSeries; ++series) {
      const std::int64_t ns = play_ping_pong(rank, there, back, kTrips);
      if (rank == 0) least = std::min(least, ns);
    }
  });
  return static_cast<double>(least) / (2.0 * kTrips);
}

// Messages one after the other, in millions a second: the best of a few series, each until the last
// message has been answered.
double throughput(rivals::Crew& crew, Channel& channel, Channel& done) {
  constexpr int kSeries = 5;
  constexpr std::uint64_t kMessages = 20'000;
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  crew.run([&](int rank) {
    for (int series = 0; series < kSeries; ++series) {
      const std::int64_t ns = play_stream(rank, channel, done, kMessages);
      if (rank == 0) least = std::min(least, ns);
    }
  });
  return 1000.0 * static_cast<double>(kMessages) / static_cast<double>(least);
}

constexpr std::size_t kCount = std::size(kChannelKinds);

// One value per round.
struct Figures {
  std::vector<double> latency_ns, ratio, million_per_s;
};

struct Run {
  std::vector<double> bare_ns;  // before each round and after the last
  std::array<Figures, kCount> figures;
  int repeats = 0;
};

Run measure(rivals::Crew& crew, int rounds) {
  Run run;
  std::array<std::array<std::unique_ptr<Channel>, 2>, kCount> channels;
  for (std::size_t k = 0; k < kCount; ++k)
    channels[k] = {kChannelKinds[k].make(), kChannelKinds[k].make()};
  for (int round = 0; round < rounds; ++round) {
    run.bare_ns.push_back(crew.ping_pong_ns());
    for (std::size_t k = 0; k < kCount; ++k) {
      const std::size_t i = (k + static_cast<std::size_t>(round)) % kCount;
      auto& [there, back] = channels[i];
      Figures& figures = run.figures[i];
      figures.latency_ns.push_back(latency_ns(crew, *there, *back));
      figures.ratio.push_back(figures.latency_ns.back() / run.bare_ns.back());
      figures.million_per_s.push_back(throughput(crew, *there, *back));
    }
  }
  run.bare_ns.push_back(crew.ping_pong_ns());
  return run;
}

nlohmann::json to_json(const Run& run, const nlohmann::json& machine) {
  nlohmann::json json = {{"machine", machine},
                         {"bare_line_ns", run.bare_ns},
                         {"repeats", run.repeats},
                         {"steady", tools::drift(run.bare_ns) <= tools::kSteady}};
  for (std::size_t k = 0; k < kCount; ++k) {
    const Figures& figures = run.figures[k];
    json["channels"].push_back({{"name", kChannelKinds[k].name},
                                {"latency_ns", median(figures.latency_ns)},
                                {"latency_ratio", median(figures.ratio)},
                                {"latency_spread", relative_spread(figures.latency_ns)},
                                {"million_messages_per_s", median(figures.million_per_s)},
                                {"throughput_spread", relative_spread(figures.million_per_s)}});
  }
  return json;
}

void print(const nlohmann::json& result) {
  std::printf("# 8 B messages between two pinned threads; medians over rounds in turns\n");
  std::printf("%-18s %12s %14s %18s\n", "", "latency (ns)", "over the line", "million messages/s");
  const auto bare = result.at("bare_line_ns").get<std::vector<double>>();
  std::printf("%-18s %12.1f %14.2f %18s\n", "bare cache line", median(bare), 1.0, "-");
  for (const auto& channel : result.at("channels")) {
    std::printf("%-18s %12.1f %14.2f %18.1f\n", channel.at("name").get<std::string>().c_str(),
                channel.at("latency_ns").get<double>(), channel.at("latency_ratio").get<double>(),
                channel.at("million_messages_per_s").get<double>());
  }
  if (!result.at("steady").get<bool>()) std::printf("# machine unsteady: do not quote\n");
}

int run(int argc, char** argv) {
  int rounds = 15;
  std::string json_path;
  CLI::App app("The engine's mailbox against a bare cache line and two well-known SPSC queues.");
  app.add_option("--rounds", rounds, "rounds; all channels take turns")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
  app.add_option("--json", json_path, "file for the same figures as JSON");
  app.footer("Example:\n  mailbox --rounds 50 --json mailbox.json");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  const nlohmann::json machine = rivals::machine_json();
  std::vector<int> cpus = rivals::allowed_cpus();
  if (cpus.size() < 2) {
    std::fprintf(stderr, "mailbox: this process may use one CPU; two are needed\n");
    return 3;
  }
  rivals::Crew crew(2, cpus);
  int repeats = 0;
  Run best = tools::calmest([&] { return measure(crew, rounds); },
                            [](const Run& one) { return tools::drift(one.bare_ns); }, repeats);
  best.repeats = repeats;
  const nlohmann::json result = to_json(best, machine);
  print(result);
  if (json_path.empty()) return 0;
  // `bazel run` changes the current folder.
  const char* const folder = std::getenv("BUILD_WORKING_DIRECTORY");
  const auto path = std::filesystem::path(folder == nullptr ? "" : folder) / json_path;
  const Status status = replace_file(path.string(), result.dump(1) + "\n");
  if (status.ok()) return 0;
  std::fprintf(stderr, "mailbox: --json: %s\n", status.text().c_str());
  return 3;
}

}  // namespace
}  // namespace rankine

int main(int argc, char** argv) { return rankine::run(argc, argv); }
