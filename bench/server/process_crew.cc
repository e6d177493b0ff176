#include "bench/server/process_crew.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <string>
#include <thread>
#include <utility>

#include "bench/rivals/crew.h"
#include "bench/server/work.h"
#include "engine/base/status.h"

namespace rankine::server {
namespace {

[[noreturn]] void live(ProcessLibrary& library, const ProcessLibrary::Place& place,
                       const Model& model, std::uint64_t seed, const Line& line) {
  try {
    library.play(place, [&](Exchange& exchange) {
      Decoder decoder(model, kPositions, seed, exchange);
      work(decoder, exchange, line);
    });
    _exit(0);
  } catch (const std::exception& error) {
    line.say(lost(error.what()));
    _exit(3);
  }
}

}  // namespace

ProcessCrew::ProcessCrew(const Model& model, std::uint64_t seed, int ranks, Line line,
                         Line& clients, std::unique_ptr<ProcessLibrary> library)
    : library_(std::move(library)) {
  static int crews = 0;
  const std::string name =
      "rankine_server_" + std::to_string(getpid()) + "_" + std::to_string(++crews);
  const std::vector<int> cpus = rivals::allowed_cpus();
  for (int rank = 0; rank < ranks; ++rank) {
    const pid_t process = fork();
    if (process < 0) throw Error(Code::system, std::string("fork: ") + std::strerror(errno));
    if (process == 0) {
      clients.hang_up();
      const int cpu = cpus[static_cast<std::size_t>(rank) % cpus.size()];
      live(*library_, {name, rank, ranks, cpu}, model, seed, line);
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
