#include "bench/server/process_crew.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <string>
#include <thread>

#include "bench/rivals/crew.h"
#include "bench/server/rankine_exchange.h"
#include "bench/server/work.h"
#include "engine/api/communicator.h"

namespace rankine::server {
namespace {

[[noreturn]] void live(const Model& model, std::uint64_t seed, int ranks, int rank,
                       const std::string& name, int cpu, const Line& line) {
  try {
    // Before the thread is pinned: how ranks wait depends on how many cores they may use.
    const auto communicator =
        Communicator::create({.ranks = ranks, .rank = rank, .name = name}).value();
    rivals::pin_this_thread(cpu);
    const auto me = communicator->join(rank).value();
    RankineExchange exchange(*me);
    Decoder decoder(model, kPositions, seed, exchange);
    work(decoder, exchange, line);
    _exit(0);
  } catch (const std::exception& error) {
    line.say(lost(error.what()));
    _exit(3);
  }
}

}  // namespace

ProcessCrew::ProcessCrew(const Model& model, std::uint64_t seed, int ranks, Line line,
                         Line& clients) {
  static int crews = 0;
  const std::string name =
      "rankine_server_" + std::to_string(getpid()) + "_" + std::to_string(++crews);
  const std::vector<int> cpus = rivals::allowed_cpus();
  for (int rank = 0; rank < ranks; ++rank) {
    const pid_t process = fork();
    if (process < 0) throw Error(Code::system, std::string("fork: ") + std::strerror(errno));
    if (process == 0) {
      clients.hang_up();
      live(model, seed, ranks, rank, name, cpus[static_cast<std::size_t>(rank) % cpus.size()],
           line);
    }
    processes_.push_back(process);
  }
}

ProcessCrew::~ProcessCrew() {
  using Clock = std::chrono::steady_clock;
  const auto patience = Clock::now() + std::chrono::seconds(2);
  for (const pid_t process : processes_) {
    while (waitpid(process, nullptr, WNOHANG) == 0) {
      if (Clock::now() > patience) kill(process, SIGKILL);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
}

}  // namespace rankine::server
