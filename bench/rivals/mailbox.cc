// Measures the mailbox against a bare cache line and two well-known SPSC queues: one-way latency of
// a ping-pong and throughput of 8-byte messages between two pinned threads.
//
//   third_party/bazel run //bench/rivals:mailbox -- --json mailbox.json
//
// All take turns, round by round. Each round begins with the bare line's latency (LatencyProbe in
// engine/cli/harness.h), and a queue's latency is compared with this value. Runs in which the value
// moved are repeated. bench/RESULTS.md has the figures. Exit status: 0, 2 usage, 3 no second CPU or
// no file.
#include <readerwriterqueue/readerwriterqueue.h>

#include <algorithm>
#include <array>
#if __has_include(<boost/lockfree/spsc_queue.hpp>)
#include <boost/lockfree/spsc_queue.hpp>
#define RANKINE_HAS_BOOST 1
#endif
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "bench/rivals/protocol.h"
#include "engine/base/files.h"
#include "engine/base/statistics.h"
#include "engine/cli/harness.h"
#include "engine/cli/workbench.h"
#include "engine/run/mailbox.h"
#include "engine/run/rank_control.h"
#include "engine/run/wait.h"
#include "nlohmann/json.hpp"

namespace rankine {
namespace {

// A one-way channel of 8-byte messages; one thread uses each of its two sides.
class Channel {
 public:
  virtual ~Channel() = default;
  virtual void send(std::uint64_t message) = 0;
  virtual std::uint64_t receive() = 0;
};

// Aborts if a queue loses or repeats a message: its time would be wrong.
void check(std::uint64_t got, std::uint64_t expected) {
  if (got == expected) return;
  std::fprintf(stderr, "mailbox: message %llu in place of %llu\n",
               static_cast<unsigned long long>(got), static_cast<unsigned long long>(expected));
  std::abort();
}

class OurMailbox final : public Channel {
 public:
  OurMailbox() : rank_control_(2, WaitPolicy{}, 30'000'000'000) {
    for (std::uint32_t i = 0; i < kSlots; ++i) new (slots_[i].bytes) PostHeader;
    out_.mailbox = in_.mailbox = {slots_[0].bytes, sizeof(Slot), &credit_};
    sender_ = {.rank_control = &rank_control_, .rank = 0};
    receiver_ = {.rank_control = &rank_control_, .rank = 1};
  }
  void send(std::uint64_t message) override {
    out_.send(sender_, 1, sent_++, &message, sizeof(message), 0);
  }
  std::uint64_t receive() override {
    PostHeader* slot = in_.wait(receiver_, 0, received_, 0);
    std::uint64_t message;
    std::memcpy(&message, payload(*slot), sizeof(message));
    in_.release(receiver_, ++received_, false);
    return message;
  }

 private:
  struct alignas(kCacheLine) Slot {
    std::byte bytes[kCacheLine];
  };
  std::array<Slot, kSlots> slots_;
  Counter credit_;
  RankControl rank_control_;
  alignas(kCacheLine) Outbox out_;
  Waiter sender_;
  std::uint32_t sent_ = 0;
  alignas(kCacheLine) Inbox in_;
  Waiter receiver_;
  std::uint32_t received_ = 0;
};

#ifdef RANKINE_HAS_BOOST
class BoostQueue final : public Channel {
 public:
  void send(std::uint64_t message) override {
    while (!queue_.push(message)) pause_cpu();
  }
  std::uint64_t receive() override {
    std::uint64_t message;
    while (!queue_.pop(message)) pause_cpu();
    return message;
  }

 private:
  boost::lockfree::spsc_queue<std::uint64_t, boost::lockfree::capacity<kSlots>> queue_;
};
#endif

class MoodycamelQueue final : public Channel {
 public:
  void send(std::uint64_t message) override {
    while (!queue_.try_enqueue(message)) pause_cpu();
  }
  std::uint64_t receive() override {
    std::uint64_t message;
    while (!queue_.try_dequeue(message)) pause_cpu();
    return message;
  }

 private:
  moodycamel::ReaderWriterQueue<std::uint64_t> queue_{kSlots};
};

struct ChannelKind {
  const char* name;
  std::unique_ptr<Channel> (*make)();
};
template <class T>
std::unique_ptr<Channel> make_channel() {
  return std::make_unique<T>();
}
constexpr ChannelKind kChannelKinds[] = {
    {"mailbox", make_channel<OurMailbox>},
#ifdef RANKINE_HAS_BOOST
    {"boost_spsc_queue", make_channel<BoostQueue>},
#endif
    {"moodycamel_rwq", make_channel<MoodycamelQueue>},
};

// Both threads call it at once, as rank 0 and rank 1.
void play_ping_pong(int rank, Channel& there, Channel& back, std::uint64_t trips) {
  for (std::uint64_t i = 1; i <= trips; ++i) {
    if (rank == 0) {
      there.send(i);
      check(back.receive(), i);
    } else {
      back.send(there.receive());
    }
  }
}

// As play_ping_pong(), for messages one after the other, until the last is answered.
void play_stream(int rank, Channel& channel, Channel& done, std::uint64_t messages) {
  if (rank == 0) {
    for (std::uint64_t i = 1; i <= messages; ++i) channel.send(i);
    check(done.receive(), messages);
  } else {
    for (std::uint64_t i = 1; i <= messages; ++i) check(channel.receive(), i);
    done.send(messages);
  }
}

// The least time of a few series on rank 0, in ns; both threads play each.
template <class Play>
double least_ns(Team& team, int series, const Play& play) {
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  const Status done = team.run([&](Member& me) {
    for (int i = 0; i < series; ++i) {
      const std::int64_t ns = *tools::time_warm(now_ns, now_ns, 1, [&] { play(me.rank()); });
      if (me.rank() == 0) least = std::min(least, ns);
    }
  });
  done.throw_if_error();
  return static_cast<double>(least);
}

// Half a round trip, in ns: the least of a few short series, as the bare line is measured.
double latency_ns(Team& team, Channel& there, Channel& back) {
  constexpr std::uint64_t kTrips = 500;
  return least_ns(team, 7, [&](int rank) { play_ping_pong(rank, there, back, kTrips); }) /
         (2.0 * kTrips);
}

// Messages one after the other, in millions a second: the best of a few series.
double throughput(Team& team, Channel& channel, Channel& done) {
  constexpr std::uint64_t kMessages = 20'000;
  return 1000.0 * kMessages /
         least_ns(team, 5, [&](int rank) { play_stream(rank, channel, done, kMessages); });
}

constexpr std::size_t kCount = std::size(kChannelKinds);

// One value per round.
struct Figures {
  std::vector<double> latency_ns, million_per_s;
};

struct Run {
  std::vector<double> bare_ns;  // before each round and after the last
  std::array<Figures, kCount> figures;
  int repeats = 0;
};

Run measure(Team& team, int rounds) {
  Run run;
  std::array<std::array<std::unique_ptr<Channel>, 2>, kCount> channels;
  for (std::size_t k = 0; k < kCount; ++k)
    channels[k] = {kChannelKinds[k].make(), kChannelKinds[k].make()};
  for (int round = 0; round < rounds; ++round) {
    run.bare_ns.push_back(tools::probe_latency(team).value());
    for (std::size_t k = 0; k < kCount; ++k) {
      const std::size_t i = (k + static_cast<std::size_t>(round)) % kCount;
      auto& [there, back] = channels[i];
      Figures& figures = run.figures[i];
      figures.latency_ns.push_back(latency_ns(team, *there, *back));
      figures.million_per_s.push_back(throughput(team, *there, *back));
    }
  }
  run.bare_ns.push_back(tools::probe_latency(team).value());
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
                                {"latency_ratio", median_ratio(figures.latency_ns, run.bare_ns)},
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
  const std::vector<int> cpus = allowed_cpus();
  if (cpus.size() < 2) {
    std::fprintf(stderr, "mailbox: this process may use one CPU; two are needed\n");
    return 3;
  }
  const auto team = rivals::make_team(2, cpus);
  int repeats = 0;
  Run best = tools::calmest([&] { return measure(*team, rounds); },
                            [](const Run& one) { return tools::drift(one.bare_ns); }, repeats);
  best.repeats = repeats;
  const nlohmann::json result = to_json(best, machine);
  print(result);
  if (json_path.empty()) return 0;
  const Status status = replace_file(rivals::output_path(json_path), result.dump(1) + "\n");
  if (status.ok()) return 0;
  std::fprintf(stderr, "mailbox: --json: %s\n", status.text().c_str());
  return 3;
}

}  // namespace
}  // namespace rankine

int main(int argc, char** argv) { return rankine::run(argc, argv); }
