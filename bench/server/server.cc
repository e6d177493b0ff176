// Measures a language model that answers requests on the ranks of a communicator: tokens per
// second, times to the first token and per token, with Rankine and with other collectives.
//
//   third_party/bazel run //bench/server
//   third_party/mpi --server            beside gloo and both MPIs
//
// The model has the shape of Llama 3.2 1B with its widths divided, in f32, with generated
// parameters. The requests are generated and come at random times. Servers take turns, each turn
// with new ranks. Times are the clients', in milliseconds: `first token` since the request was due,
// `per token` the mean over the later tokens of an answer. `sums` is the part of rank 0's steps in
// all-reduces with their epilogues, including waits for other ranks. Exit status: 0, 2 usage, 3 a
// system error.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "bench/server/crews.h"
#include "bench/server/decoder.h"
#include "bench/server/service.h"
#include "engine/base/statistics.h"
#include "engine/cli/table.h"

namespace rankine::server {
namespace {

struct Settings {
  int ranks = 2, layers = 8, divisor = 4, rounds = 4;
  std::vector<std::string> over = {"rankine", "barrier"};
  std::string mpi_programs;  // the folder of mpi_rank_openmpi and mpi_rank_mpich
  int kill_after = 0;        // completed requests of a turn; 0: no kill
  std::uint64_t model_seed = 1;
  Load load;
};

Model model_of(const Settings& settings) { return llama_shape(settings.layers, settings.divisor); }

// A kind of server and the records of all its turns.
struct Contender {
  std::string name;
  Hire hire;
  std::function<void()> kill_last_rank{};  // for processes only
  std::vector<Record> records{};
};

void add_row(const Contender& contender, tools::Table& table) {
  std::vector<double> rates, first, per_token;
  double steps = 0, sums = 0;
  std::size_t lost = 0;
  for (const Record& record : contender.records) {
    double tokens = 0;
    for (const Answer& answer : record.answers) {
      tokens += static_cast<double>(answer.tokens.size());
      lost += answer.is_lost ? 1 : 0;
      if (!answer.is_done) continue;
      first.push_back((answer.first - answer.due) * 1e3);
      const auto later = static_cast<double>(answer.tokens.size() - 1);
      if (later > 0) per_token.push_back((answer.last - answer.first) / later * 1e3);
    }
    rates.push_back(tokens / record.seconds);
    steps += record.step_seconds, sums += record.sum_seconds;
  }
  table.add(contender.name, median(rates), median(first), quantile(first, 0.95), median(per_token),
            quantile(per_token, 0.95), steps > 0 ? sums / steps : 0.0, lost);
}

bool same_tokens(const std::vector<Contender>& contenders) {
  const auto tokens = [](const Record& record) {
    std::vector<std::vector<int>> all;
    for (const Answer& answer : record.answers) all.push_back(answer.tokens);
    return all;
  };
  const auto reference = tokens(contenders.front().records.front());
  for (const Contender& contender : contenders) {
    for (const Record& record : contender.records) {
      if (tokens(record) != reference) return false;
    }
  }
  return true;
}

using MakeLibrary = std::function<std::unique_ptr<ProcessLibrary>()>;

Contender contender_of(const std::string& library, const Settings& settings) {
  const Model model = model_of(settings);
  const std::uint64_t seed = settings.model_seed;
  const int ranks = settings.ranks;
  const auto threads = [&](Library which) {
    return Contender{library, [=](Line line, Line&) {
                       return hire_threads(model, seed, ranks, which, std::move(line));
                     }};
  };
  const auto processes = [&](const MakeLibrary& make) {
    const auto crew = std::make_shared<const ProcessCrew*>();
    const auto hire = [=](Line line, Line& clients) {
      auto hired =
          std::make_unique<ProcessCrew>(model, seed, ranks, std::move(line), clients, make());
      *crew = hired.get();
      return hired;
    };
    return Contender{library, hire, [crew] { kill((*crew)->processes().back(), SIGKILL); }};
  };
  if (library == "rankine") return threads(Library::rankine);
  if (library == "barrier") return threads(Library::barrier);
  if (library == "processes") return processes(make_rankine);
  if (library == "gloo") return processes([ranks] { return make_gloo(ranks); });
  const std::string mpi = library.substr(0, library.find('_'));
  const MpiJob job{library, settings.mpi_programs + "/mpi_rank_" + mpi, settings.layers,
                   settings.divisor, seed};
  return {library,
          [=](Line line, Line&) { return std::make_unique<MpiCrew>(job, ranks, std::move(line)); }};
}

Record turn(const Contender& contender, int round, const Settings& settings) {
  Service service(contender.hire);
  double killed = 0;
  int shown = -1;
  const bool shows = isatty(STDERR_FILENO) != 0;  // otherwise only the end
  const auto progress = [&](const Record& record) {
    if (record.over != shown && (shows || record.over == settings.load.requests)) {
      shown = record.over;
      std::fprintf(stderr, "%s%s, turn %d of %d: %d of %d requests ", shows ? "\r" : "",
                   contender.name.c_str(), round + 1, settings.rounds, shown,
                   settings.load.requests);
    }
    if (!contender.kill_last_rank || settings.kill_after == 0 || killed > 0 ||
        record.over < settings.kill_after) {
      return;
    }
    killed = record.seconds;
    contender.kill_last_rank();
  };
  const Record record = play(service, settings.load, progress);
  std::fprintf(stderr, "\n");
  if (killed > 0) std::printf("# the last rank was killed at %.3f s\n", killed);
  for (const Loss& loss : record.losses) {
    std::printf("# at %.3f s %d requests lost and the ranks begun anew: %s\n", loss.time,
                loss.requests, loss.why.c_str());
  }
  return record;
}

void measure(const Settings& settings) {
  const Model model = model_of(settings);
  check_ranks(model, settings.ranks).throw_if_error();
  std::vector<Contender> contenders;
  for (const std::string& library : settings.over) {
    contenders.push_back(contender_of(library, settings));
  }
  std::printf("# %d layers, hidden %d, vocabulary %d: %.0f million parameters in f32, %d ranks\n",
              model.layers, model.hidden, model.vocabulary, static_cast<double>(model.all()) * 1e-6,
              settings.ranks);
  std::printf("# %d requests, %g a second, seed %llu; turns: %d\n", settings.load.requests,
              settings.load.rate, static_cast<unsigned long long>(settings.load.seed),
              settings.rounds);
  std::fflush(stdout);
  for (int round = 0; round < settings.rounds; ++round) {
    // each contender is first in as many rounds
    for (std::size_t i = 0; i < contenders.size(); ++i) {
      Contender& contender = contenders[(i + static_cast<std::size_t>(round)) % contenders.size()];
      contender.records.push_back(turn(contender, round, settings));
    }
  }
  using tools::As;
  tools::Table table(tools::as::text(""), As("{:.1f}")("tokens/s"), As("{:.1f}")("first token"),
                     As("{:.1f}")("95 %"), As("{:.2f}")("per token"), As("{:.2f}")("95 %"),
                     As("{:.1f} %")("sums"), "lost");
  for (const Contender& contender : contenders) add_row(contender, table);
  std::printf("%s", to_text(table).c_str());
  if (contenders.size() > 1) {
    std::printf("# tokens of all turns: %s\n", same_tokens(contenders) ? "the same" : "different");
  }
}

int run(int argc, char** argv) {
  Settings settings;
  CLI::App app("A language model that answers requests, over Rankine and other collectives.");
  app.add_option("--ranks", settings.ranks, "threads or processes that share the model")
      ->check(CLI::Range(1, 8))
      ->capture_default_str();
  app.add_option("--over", settings.over,
                 "collectives of the ranks: Rankine's (rankine) or a std::barrier and loops "
                 "(barrier) among threads; Rankine's (processes) or gloo's among processes; an "
                 "MPI's (openmpi_ucx, openmpi_sm, mpich: third_party/mpi --server)")
      ->delimiter(',')
      ->check(CLI::IsMember(
          {"rankine", "barrier", "processes", "gloo", "openmpi_ucx", "openmpi_sm", "mpich"}))
      ->capture_default_str();
  app.add_option("--mpi-programs", settings.mpi_programs,
                 "the folder of mpi_rank_openmpi and mpi_rank_mpich")
      ->check(CLI::ExistingDirectory);
  app.add_option("--kill-after", settings.kill_after,
                 "processes and gloo: kills a rank once per turn, after this number of requests")
      ->check(CLI::PositiveNumber);
  app.add_option("--requests", settings.load.requests, "requests per turn")
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str();
  // CLI11's Range accepts "nan".
  const auto is_rate = [](const std::string& text) -> std::string {
    double rate = 0;
    if (CLI::detail::lexical_cast(text, rate) && rate >= 0.001 && rate <= 1e6) return "";
    return "'" + text + "' is not a rate; allowed is 0.001 to 1000000";
  };
  app.add_option("--rate", settings.load.rate, "requests a second, on average")
      ->check(is_rate)
      ->capture_default_str();
  app.add_option("--layers", settings.layers, "layers of the model")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_option("--divisor", settings.divisor, "divides the widths of Llama 3.2 1B")
      ->check(CLI::IsMember({1, 2, 4, 8}))
      ->capture_default_str();
  app.add_option("--rounds", settings.rounds, "turns of each server")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--seed", settings.load.seed, "seed of the requests")->capture_default_str();
  app.footer(
      "Examples:\n  server --ranks 4 --divisor 2 --rate 5\n"
      "  server --over rankine,processes,gloo --rounds 8\n"
      "  server --over processes --kill-after 8");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  for (const std::string& library : settings.over) {
    if (settings.mpi_programs.empty() && (library == "mpich" || library.starts_with("openmpi"))) {
      std::fprintf(stderr,
                   "server: --over %s needs --mpi-programs; third_party/mpi --server sets it\n",
                   library.c_str());
      return 2;
    }
  }
  settings.load.vocabulary = model_of(settings).vocabulary;
  try {
    measure(settings);
  } catch (const Error& error) {
    std::fprintf(stderr, "server: %s\n", error.what());
    return error.code() == Code::invalid_argument ? 2 : 3;
  }
  return 0;
}

}  // namespace
}  // namespace rankine::server

int main(int argc, char** argv) { return rankine::server::run(argc, argv); }
