#include "bench/server/crews.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bench/rivals/crew.h"
#include "bench/rivals/protocol.h"
#include "bench/rivals/rival.h"
#include "bench/server/decoder.h"
#include "bench/server/service.h"
#include "engine/api/communicator.h"
#include "engine/api/team.h"
#include "engine/base/status.h"

namespace rankine::server {
namespace {

class Rankine : public ProcessLibrary {
 public:
  void play(const Place& place, const std::function<void(Exchange&)>& part) override {
    // Creates the communicator before it pins the thread, because the ranks' wait policy depends on
    // the number of usable cores.
    const auto communicator =
        Communicator::create({.ranks = place.ranks, .rank = place.rank, .name = place.name})
            .value();
    rivals::pin_this_thread(place.cpu);
    const auto me = communicator->join(place.rank).value();
    RankineExchange exchange(*me);
    part(exchange);
  }
};

class OfRival : public ProcessLibrary {
 public:
  explicit OfRival(std::unique_ptr<rivals::Rival> rival) : rival_(std::move(rival)) {
    if (!rival_->missing.empty()) throw Error(Code::system, rival_->name + ": " + rival_->missing);
  }
  void play(const Place& place, const std::function<void(Exchange&)>& part) override {
    rival_->start(place.rank);
    rivals::pin_this_thread(place.cpu);
    RivalExchange exchange(*rival_, place.rank, place.ranks);
    part(exchange);
  }

 private:
  std::unique_ptr<rivals::Rival> rival_;
};

}  // namespace

std::unique_ptr<ProcessLibrary> make_rankine() { return std::make_unique<Rankine>(); }

std::unique_ptr<ProcessLibrary> make_gloo(int ranks) {
  rivals::Setup setup;
  setup.ranks = ranks;
  setup.processes = true;
  return std::make_unique<OfRival>(rivals::make_gloo(setup));
}

namespace {

using std::chrono::milliseconds;

// Reads all waiting requests. False: the clients have hung up.
bool hear_requests(const Line& clients, Scheduler& scheduler) {
  Request request;
  while (clients.has_news(milliseconds(scheduler.is_idle() ? 100 : 0))) {
    if (!clients.hear(request)) return false;
    scheduler.add(request);
  }
  return true;
}

}  // namespace

void work(Decoder& decoder, Exchange& ranks, const Line& clients) {
  const bool leads = ranks.rank() == 0;
  Scheduler scheduler;
  for (;;) {
    Batch batch;
    if (leads) {
      batch.stop = !hear_requests(clients, scheduler);
      if (!batch.stop) batch = scheduler.next();
    }
    ranks.broadcast(std::as_writable_bytes(std::span(&batch, 1)));
    if (batch.stop) return;
    const std::vector<int> tokens = decoder.step(batch);
    if (!leads) continue;
    for (Event& event : scheduler.take(tokens)) {
      event.step_seconds = decoder.times().steps;
      event.sum_seconds = decoder.times().sums;
      // The clients have hung up; the next hear_requests() reports it
      if (!clients.say(event)) break;
    }
  }
}

namespace {

class ThreadCrew : public Crew {
 public:
  ThreadCrew(const Model& model, std::uint64_t seed, int ranks, Library library, Line line)
      : line_(std::move(line)),
        barrier_(ranks),
        team_(Team::create({.ranks = ranks}).value()),
        clerk_([this, model, seed, library] {
          const Status status = team_->run([&](Member& me) {
            RankineExchange rankine(me);
            BarrierExchange barrier(barrier_, me.rank());
            Exchange& ours =
                library == Library::rankine ? static_cast<Exchange&>(rankine) : barrier;
            Decoder decoder(model, kPositions, seed, ours);
            work(decoder, ours, line_);
          });
          if (!status.ok()) line_.say(lost(Error(status.code(), status.text()).what()));
        }) {}
  ~ThreadCrew() override { clerk_.join(); }

 private:
  Line line_;
  Barrier barrier_;
  std::unique_ptr<Team> team_;
  std::thread clerk_;  // waits for the ranks
};

}  // namespace

std::unique_ptr<Crew> hire_threads(const Model& model, std::uint64_t seed, int ranks,
                                   Library library, Line line) {
  return std::make_unique<ThreadCrew>(model, seed, ranks, library, std::move(line));
}

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

namespace {

// A temporary folder, removed by the destructor.
class Folder {
 public:
  Folder() : path_((std::filesystem::temp_directory_path() / "rankine_server_XXXXXX").string()) {
    if (mkdtemp(path_.data()) == nullptr)
      throw Error(Code::system, path_ + ": cannot create a temporary folder");
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace

MpiCrew::MpiCrew(const MpiJob& job, int ranks, Line line) {
  const Folder folder;
  const bool crowded = static_cast<std::size_t>(ranks) > rivals::allowed_cpus().size();
  mpirun_ = std::make_unique<rivals::Coprocess>(std::vector<std::string>{
      rivals::find_start_mpi(), job.settings, std::to_string(ranks), crowded ? "crowded" : "roomy",
      "--program", job.program, std::to_string(job.layers), std::to_string(job.divisor),
      std::to_string(job.seed), folder.file("line")});
  // When all ranks have met, rank 0 prints a line and then collects the Line.
  if (!mpirun_->receive(60)) {
    const int status = mpirun_->stop();
    const std::string words = mpirun_->last_words();
    throw Error(Code::system, job.settings + ": " +
                                  (status == rivals::kNotInstalled
                                       ? words
                                       : "the job ended with status " + std::to_string(status) +
                                             (words.empty() ? "" : ": " + words)));
  }
  line.hand_over(folder.file("line"), std::chrono::seconds(10));
}

}  // namespace rankine::server
