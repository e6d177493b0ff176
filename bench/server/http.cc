// Serves the language model of //bench/server over HTTP (http_front.h), or measures it with a load.
//
//   third_party/bazel --with-http run //bench/server:http -- --port 8080
//   curl -d '{"prompt": [1, 2, 3], "max_tokens": 8}' localhost:8080/v1/completions
//   third_party/bazel --with-http run //bench/server:http -- --requests 32
//
// With --requests the program sends requests to itself over HTTP, with --clients clients at once.
// It prints the latencies and compares the tokens with those of the same requests without HTTP.
// Exit status: 0, 1 the tokens differ, 2 usage, 3 a system error.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "bench/server/crews.h"
#include "bench/server/decoder.h"
#include "bench/server/http_front.h"
#include "bench/server/service.h"
#include "engine/base/statistics.h"
#include "engine/base/status.h"

namespace rankine::server {
namespace {

struct Settings {
  int ranks = 2, layers = 8, divisor = 4, port = 0, clients = 8;
  std::uint64_t model_seed = 1;
  Load load{.requests = 0};
};

sigset_t interruptions() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM}) sigaddset(&signals, signal);
  return signals;
}

// Serves until a signal interrupts.
void serve(const HttpFront& front) {
  const sigset_t signals = interruptions();
  std::printf("http://127.0.0.1:%d/v1/completions\n", front.port());
  std::fflush(stdout);
  int came = 0;
  sigwait(&signals, &came);
}

bool measure(const HttpFront& front, Desk& desk, const Settings& settings) {
  using Clock = std::chrono::steady_clock;
  const auto requests = requests_of(settings.load);
  std::vector<std::vector<int>> tokens(requests.size());
  std::vector<double> took(requests.size());
  std::atomic<std::size_t> next{0};
  const auto begin = Clock::now();
  std::vector<std::thread> clients;
  for (int c = 0; c < std::min(settings.clients, settings.load.requests); ++c) {
    clients.emplace_back([&] {
      for (std::size_t i = next++; i < requests.size(); i = next++) {
        const auto asked = Clock::now();
        tokens[i] = ask_over_http(front.port(), requests[i].second);
        took[i] = std::chrono::duration<double>(Clock::now() - asked).count();
      }
    });
  }
  for (std::thread& client : clients) client.join();
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  std::size_t all = 0;
  bool same = true;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    all += tokens[i].size();
    same = same && tokens[i] == desk.answer(requests[i].second);
  }
  std::printf(
      "%zu requests of %d clients in %.2f s: %.1f tokens/s; an answer takes %.0f ms, 95 %% %.0f "
      "ms\n",
      requests.size(), settings.clients, seconds, static_cast<double>(all) / seconds,
      median(took) * 1e3, quantile(took, 0.95) * 1e3);
  std::printf("tokens over HTTP: %s\n", same ? "the same" : "different");
  return same;
}

int run(int argc, char** argv) {
  Settings settings;
  CLI::App app("A language model that answers requests over HTTP, on 127.0.0.1.");
  app.add_option("--port", settings.port, "port for requests; 0: any free port")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  app.add_option("--requests", settings.load.requests, "requests to itself; 0: serve other clients")
      ->check(CLI::Range(0, 100'000))
      ->capture_default_str();
  app.add_option("--clients", settings.clients, "clients that send requests at once")
      ->check(CLI::Range(1, 32))
      ->capture_default_str();
  app.add_option("--ranks", settings.ranks, "threads that share the model")
      ->check(CLI::Range(1, 8))
      ->capture_default_str();
  app.add_option("--layers", settings.layers, "layers of the model")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_option("--divisor", settings.divisor, "divides the widths of Llama 3.2 1B")
      ->check(CLI::IsMember({1, 2, 4, 8}))
      ->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  const tools::Model model = llama_shape(settings.layers, settings.divisor);
  settings.load.vocabulary = model.vocabulary;
  // Blocks the signals before any thread starts, so that serve() receives them.
  const sigset_t signals = interruptions();
  if (settings.load.requests == 0) pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  try {
    check_ranks(model, settings.ranks).throw_if_error();
    Desk desk([&](Line line, Line&) {
      return hire_threads(model, settings.model_seed, settings.ranks, Library::rankine,
                          std::move(line));
    });
    const HttpFront front(desk, model.vocabulary, settings.port);
    if (settings.load.requests > 0) return measure(front, desk, settings) ? 0 : 1;
    serve(front);
  } catch (const Error& error) {
    std::fprintf(stderr, "http: %s\n", error.what());
    return error.code() == Code::invalid_argument ? 2 : 3;
  }
  return 0;
}

}  // namespace
}  // namespace rankine::server

int main(int argc, char** argv) { return rankine::server::run(argc, argv); }
