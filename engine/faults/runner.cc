#include "engine/faults/runner.h"

#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>

#include "engine/base/json_text.h"
#include "engine/faults/judge.h"
#include "engine/faults/tally_json.h"
#include "engine/run/machine.h"
#include "numa/cpu_budget.h"
#include "numa/warnings.h"

namespace rankine::faults {
namespace {

using Json = nlohmann::json;

// read(2) or write(2), until all bytes have gone.
template <class Step, class Byte>
bool move_all(const Step& step, int file, Byte* at, std::size_t bytes) {
  while (bytes > 0) {
    const ssize_t n = step(file, at, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n;
    bytes -= static_cast<std::size_t>(n);
  }
  return true;
}

bool write_all(int file, const void* data, std::size_t bytes) {
  return move_all(write, file, static_cast<const char*>(data), bytes);
}

bool read_all(int file, void* data, std::size_t bytes) {
  return move_all(read, file, static_cast<char*>(data), bytes);
}

// What a process does: cases by their numbers, one after the other, until nobody asks any more.
[[noreturn]] void work(std::span<const FaultCase> cases, int asked, int answers) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  set_warning_sink([](std::string_view, std::string_view) {});
  std::uint64_t number = 0;
  while (read_all(asked, &number, sizeof(number))) {
    const std::int64_t begin_ns = now_ns();
    const Tally tally = play(cases[number]);
    const double seconds = static_cast<double>(now_ns() - begin_ns) / 1e9;
    const std::string text = text_of(Json{json_of(tally), seconds});
    const std::uint64_t bytes = text.size();
    if (!write_all(answers, &bytes, sizeof(bytes)) || !write_all(answers, text.data(), bytes)) {
      break;
    }
  }
  _exit(0);
}

// A process that plays cases, and what its watcher knows of it.
class Worker {
 public:
  ~Worker() { stop(); }
  Worker() = default;
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  bool alive() const { return pid_ > 0; }
  bool busy() const { return busy_; }
  std::size_t current() const { return current_; }
  int answers() const { return answers_; }

  Status start(std::span<const FaultCase> cases) {
    int questions[2], replies[2];
    if (finished_ == nullptr) {
      void* page = mmap(nullptr, sizeof(*finished_), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
      if (page == MAP_FAILED) return {Code::system, std::string("mmap: ") + std::strerror(errno)};
      finished_ = new (page) std::atomic<std::int64_t>(0);
    }
    if (pipe(questions) != 0) return {Code::system, std::string("pipe: ") + std::strerror(errno)};
    if (pipe(replies) != 0) {
      close(questions[0]);
      close(questions[1]);
      return {Code::system, std::string("pipe: ") + std::strerror(errno)};
    }
    pid_ = fork();
    if (pid_ == 0) {
      close(questions[1]);
      close(replies[0]);
      finished_calls = finished_;
      work(cases, questions[0], replies[1]);
    }
    close(questions[0]);
    close(replies[1]);
    questions_ = questions[1];
    answers_ = replies[0];
    if (pid_ < 0) {
      stop();
      return {Code::system, std::string("fork: ") + std::strerror(errno)};
    }
    return {};
  }

  // `now`, here and below: by the clock of patience.
  void ask(std::size_t number, std::int64_t now) {
    const std::uint64_t wide = number;
    busy_ = true;
    current_ = number;
    seen_ = finished_->load(std::memory_order_relaxed);
    moved_ns_ = now;
    begin_ns_ = now_ns();
    // A process that is gone shows when its answer is read.
    static_cast<void>(write_all(questions_, &wide, sizeof(wide)));
  }

  // After poll() has said that something is there. nullopt: it has died.
  std::optional<CaseResult> answer(const FaultCase& test) {
    std::uint64_t bytes = 0;
    if (!read_all(answers_, &bytes, sizeof(bytes))) return std::nullopt;
    std::string text(bytes, ' ');
    if (!read_all(answers_, text.data(), bytes)) return std::nullopt;
    busy_ = false;
    const Json json = read_json("an answer", text).value();
    return CaseResult{test, tally_of(json[0]), json[1]};
  }

  // Whether any of its calls has come to an end lately.
  bool moves(std::int64_t patience_ns, std::int64_t now) {
    const std::int64_t finished = finished_->load(std::memory_order_relaxed);
    if (finished != seen_) {
      seen_ = finished;
      moved_ns_ = now;
    }
    return now - moved_ns_ < patience_ns;
  }
  double seconds() const { return static_cast<double>(now_ns() - begin_ns_) / 1e9; }

  // Kills it and all its children. How it ended.
  int stop() {
    int status = 0;
    if (pid_ > 0) {
      kill(-pid_, SIGKILL);
      kill(pid_, SIGKILL);  // it may not have made a group yet
      while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
      }
    }
    if (questions_ >= 0) close(questions_);
    if (answers_ >= 0) close(answers_);
    pid_ = questions_ = answers_ = -1;
    busy_ = false;
    return status;
  }
  // After its pipe has closed: how it died by itself.
  int bury() {
    int status = 0;
    const pid_t pid = std::exchange(pid_, -1);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    kill(-pid, SIGKILL);  // what it leaves behind
    stop();
    return status;
  }

 private:
  pid_t pid_ = -1;
  int questions_ = -1, answers_ = -1;
  bool busy_ = false;
  std::size_t current_ = 0;
  std::atomic<std::int64_t>* finished_ = nullptr;  // shared with the process
  std::int64_t seen_ = 0, moved_ns_ = 0, begin_ns_ = 0;
};

std::string how_it_died(int status) {
  if (WIFSIGNALED(status)) {
    return "the process died of signal " + std::to_string(WTERMSIG(status)) + " (" +
           strsignal(WTERMSIG(status)) + ")";
  }
  return "the process ended with exit code " + std::to_string(WEXITSTATUS(status));
}

// Cases that take processor time from one another answer late: by the quota, where there is one.
int default_jobs() {
  const CpuBudget budget = cpu_budget();
  const double quota = budget.quota ? budget.quota->cores : budget.cpus;
  return std::max(1, static_cast<int>(std::min<double>(budget.cpus, quota)));
}

}  // namespace

Result<std::vector<CaseResult>> run_cases(std::span<const FaultCase> cases,
                                          const RunnerOptions& options) {
  const std::size_t jobs = std::min(
      cases.size(), static_cast<std::size_t>(options.jobs > 0 ? options.jobs : default_jobs()));
  // A process that has gone must not take us with it when we write to it.
  struct sigaction ignore {
  }, before{};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &ignore, &before);
  std::vector<CaseResult> results(cases.size());
  std::vector<Worker> workers(jobs);
  std::size_t next = 0, done = 0;
  Status status;
  const auto finish = [&](Worker& worker, CaseResult result) {
    const std::size_t number = worker.current();
    results[number] = std::move(result);
    ++done;
    if (options.progress) options.progress(done, cases[number]);
  };
  const auto broken = [&](Worker& worker, const std::string& what, std::int64_t Tally::*count) {
    CaseResult result{cases[worker.current()], {}, worker.seconds()};
    result.tally.cases = 1;
    ++(result.tally.*count);
    result.tally.remark(to_string(result.test) + ": " + what);
    return result;
  };
  while (done < cases.size() && status.ok()) {
    std::vector<pollfd> polled;
    std::vector<Worker*> of_polled;
    for (Worker& worker : workers) {
      if (!worker.busy() && next < cases.size()) {
        // A fault that changes its process for good gets one that nothing has been played in.
        if (worker.alive() && cases[next].fault->poisons) worker.stop();
        if (!worker.alive()) status = worker.start(cases);
        if (!status.ok()) break;
        worker.ask(next++, options.clock());
      }
      if (!worker.busy()) continue;
      polled.push_back({worker.answers(), POLLIN, 0});
      of_polled.push_back(&worker);
    }
    if (!status.ok()) break;
    constexpr int kLookMs = 200;
    poll(polled.data(), polled.size(), kLookMs);
    for (std::size_t i = 0; i < polled.size(); ++i) {
      Worker& worker = *of_polled[i];
      const FaultCase& test = cases[worker.current()];
      if (polled[i].revents != 0) {
        if (auto result = worker.answer(test)) {
          finish(worker, std::move(*result));
          if (test.fault->poisons) worker.stop();
        } else {
          CaseResult dead = broken(worker, "", &Tally::undocumented);
          dead.tally.remarks = {to_string(test) + ": " + how_it_died(worker.bury())};
          finish(worker, std::move(dead));
        }
      } else if (!worker.moves(options.patience_ns, options.clock())) {
        CaseResult hung = broken(worker,
                                 "no call has come to its end for " +
                                     std::to_string(options.patience_ns / 1'000'000'000) + " s",
                                 &Tally::hangs);
        worker.stop();
        finish(worker, std::move(hung));
      }
    }
  }
  sigaction(SIGPIPE, &before, nullptr);
  if (!status.ok()) return status;
  return results;
}

}  // namespace rankine::faults
