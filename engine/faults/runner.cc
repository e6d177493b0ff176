// The processes of fault cases: a tally as text, the processes that are ranks, and the runner of
// cases.

#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <exception>
#include <filesystem>
#include <new>
#include <optional>
#include <string>

#include "engine/api/processes/identity.h"
#include "engine/base/child_process.h"
#include "engine/base/files.h"
#include "engine/base/json_text.h"
#include "engine/faults/fault.h"
#include "engine/faults/fixture.h"
#include "engine/run/machine.h"
#include "numa/cpus.h"
#include "numa/refusals.h"

namespace rankine::faults {

using Json = nlohmann::json;

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Tally, cases, returned, hangs, wrong, undocumented, late,
                                   impossible, why_impossible, remarks)

namespace {

// JSON as text. Bytes of remarks that are no UTF-8 are replaced.
std::string text_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string next_name() {
  static int stages = 0;
  return "faults_" + std::to_string(getpid()) + "_" + std::to_string(++stages);
}

// Counts an undocumented outcome, with a remark.
void blame(Tally& tally, const std::string& who, const std::string& what) {
  ++tally.undocumented;
  tally.remark(who + ": " + what);
}

}  // namespace

ProcessFixture::ProcessFixture(int ranks)
    : ranks_(ranks), name_(next_name()), processes_(static_cast<std::size_t>(ranks)) {
  bytes_ = sizeof(Page) + static_cast<std::size_t>(ranks) * sizeof(Place);
  void* const memory =
      mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    throw Error(Code::system, std::string("mmap for a stage: ") + std::strerror(errno));
  }
  page_ = new (memory) Page{};  // all zeroes, and so are the places
  places_ = reinterpret_cast<Place*>(page_ + 1);
  for (Rank r = 0; r < ranks; ++r) new (&places_[r]) Place;
}

ProcessFixture::~ProcessFixture() {
  processes_.clear();
  munmap(page_, bytes_);
}

void ProcessFixture::run_act(Rank r, const Play& play) {
  Report report;
  try {
    play.first(r);
    // The end of this process has been arranged and is on its way.
    while (place(r).state.load() == State::going) pause();
    place(r).state.store(State::played);  // pairs with the parent's load
    wait_for([&] { return page_->afresh.load() > 0; });
    play.afresh(place(r).rank_afresh, page_->afresh.load());
    report = play.report();
  } catch (const std::exception& error) {
    report = play.report();
    blame(report.tally, "rank " + std::to_string(r), std::string("threw ") + error.what());
  }
  tell(r, report);
}

int ProcessFixture::live(Rank r, const Play& play) {
  const rlimit no_core{};
  setrlimit(RLIMIT_CORE, &no_core);
  for (int now = act(); now < play.acts; ++now) {
    wait_for([&] { return act() >= now; });
    run_act(r, play);
    place(r).state.store(State::told);  // pairs with the parent's load
  }
  return 0;
}

void ProcessFixture::start_missing(const Play& play) {
  for (Rank r = 0; r < ranks_; ++r) {
    if (process(r).runs()) continue;
    process(r) = ChildProcess([&] { return live(r, play); });
    if (!process(r).runs()) {
      throw Error(Code::system, "no process for rank " + std::to_string(r) + " of " +
                                    std::to_string(ranks_) + ": " + std::strerror(errno));
    }
  }
}

void ProcessFixture::begin_act(int act) {
  for (Rank r = 0; r < ranks_; ++r) {
    place(r).state.store(State::playing);
    place(r).bytes = 0;
  }
  page_->fault_ns.store(0);
  for (std::atomic<int>* count : {&page_->started, &page_->done, &page_->arrived, &page_->afresh}) {
    count->store(0);
  }
  page_->act.store(act);
}

void ProcessFixture::tell(Rank r, const Report& report) {
  Tally tally = report.tally;
  std::string text;
  do {
    text = text_of({tally, report.text ? Json(*report.text) : Json()});
    if (text.size() <= sizeof(Place::report)) break;
    if (tally.remarks.empty()) return;  // the parent blames the missing report
    tally.remarks.pop_back();
  } while (true);
  std::memcpy(place(r).report, text.data(), text.size());
  place(r).bytes = static_cast<std::uint32_t>(text.size());
}

std::optional<ProcessFixture::Report> ProcessFixture::hear(Rank r) {
  if (place(r).bytes == 0) return std::nullopt;
  const auto json = read_json("a rank's report", std::string(place(r).report, place(r).bytes));
  if (!json.ok()) return std::nullopt;
  Report report{(*json)[0].get<Tally>(), {}};
  if ((*json)[1].is_string()) report.text = (*json)[1].get<std::string>();
  return report;
}

bool ProcessFixture::has_ended(Rank r, const std::string& who, Tally& tally) {
  if (!process(r).runs()) return true;
  const std::optional<int> status = process(r).wait({});
  if (!status) return false;
  const bool announced = place(r).state.load() == State::going;
  if (!announced && *status != 0) {
    blame(tally, who,
          "rank " + std::to_string(r) + "'s process ended with " + describe_end(*status));
  }
  return true;
}

std::vector<ProcessFixture::Report> ProcessFixture::run(const Play& play, const std::string& who,
                                                        Tally& tally) {
  const auto all = [&](const auto& holds) {
    bool so = true;
    for (Rank r = 0; r < ranks_; ++r) so = holds(r) && so;
    return so;
  };
  const std::string ours = shared_path(name_);
  std::vector<Report> reports;
  for (int act = 0; act < play.acts; ++act) {
    begin_act(act);
    start_missing(play);
    // A rank in State::going may stop for ever or become another program: the loop does not wait
    // for its end.
    wait_for([&] {
      return all([&](Rank r) {
        return has_ended(r, who, tally) || place(r).state.load() != State::playing;
      });
    });
    int left = 0;
    for (Rank r = 0; r < ranks_; ++r) {
      if (place(r).state.load() != State::played) process(r).end();
      if (process(r).runs()) place(r).rank_afresh = left++;
    }
    page_->afresh.store(left);
    const bool is_last = act + 1 == play.acts;
    wait_for([&] {
      return all([&](Rank r) {
        return has_ended(r, who, tally) || (!is_last && place(r).state.load() == State::told);
      });
    });
    for (Rank r = 0; r < ranks_; ++r) {
      const State state = place(r).state.load();
      if (state == State::playing || state == State::going) continue;
      auto report = hear(r);
      if (!report) blame(tally, who, "rank " + std::to_string(r) + " has reported nothing");
      if (report) reports.push_back(std::move(*report));
    }
    for (const auto& entry : std::filesystem::directory_iterator(kSharedFolder)) {
      if (entry.path().string().starts_with(ours)) {
        blame(tally, who, "left behind: " + entry.path().string());
      }
    }
  }
  return reports;
}

namespace {

bool read_all(int file, void* data, std::size_t bytes) {
  for (char* at = static_cast<char*>(data); bytes > 0;) {
    const ssize_t n = read(file, at, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n;
    bytes -= static_cast<std::size_t>(n);
  }
  return true;
}

// Writes the bytes of a number.
bool write_number(int file, std::uint64_t number) {
  return write_all(file, {reinterpret_cast<const char*>(&number), sizeof(number)}) == 0;
}

// Body of a child process: plays the cases of the asked numbers until the pipe of numbers closes.
int work(std::span<const FaultCase> cases, int asked, int answers) {
  set_warning_sink([](std::string_view, std::string_view) {});
  std::uint64_t number = 0;
  while (read_all(asked, &number, sizeof(number))) {
    const std::int64_t begin_ns = now_ns();
    const Tally tally = play(cases[number]);
    const double seconds = static_cast<double>(now_ns() - begin_ns) / 1e9;
    const std::string text = text_of({tally, seconds});
    if (!write_number(answers, text.size()) || write_all(answers, text) != 0) break;
  }
  return 0;
}

// A process that plays cases, as seen by its watcher.
class Worker {
 public:
  ~Worker() { stop(); }
  Worker() = default;
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  bool alive() const { return process_.runs(); }
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
    const auto child = [&] {
      close(questions[1]);
      close(replies[0]);
      finished_calls = finished_;
      return work(cases, questions[0], replies[1]);
    };
    process_ = ChildProcess(child, {.leads_group = true});
    const int error = errno;
    close(questions[0]);
    close(replies[1]);
    questions_ = questions[1];
    answers_ = replies[0];
    if (!alive()) return {Code::system, std::string("fork: ") + std::strerror(error)};
    return {};
  }

  // `now`, here and below: time of the clock of patience.
  void ask(std::size_t number, std::int64_t now) {
    busy_ = true;
    current_ = number;
    seen_ = finished_->load(std::memory_order_relaxed);
    moved_ns_ = now;
    begin_ns_ = now_ns();
    // The death of the process shows later, when its answer is read.
    static_cast<void>(write_number(questions_, number));
  }

  // Call it after poll() has reported data. nullopt: the process has died.
  std::optional<CaseResult> answer(const FaultCase& test) {
    std::uint64_t bytes = 0;
    if (!read_all(answers_, &bytes, sizeof(bytes))) return std::nullopt;
    std::string text(bytes, ' ');
    if (!read_all(answers_, text.data(), bytes)) return std::nullopt;
    busy_ = false;
    const Json json = read_json("an answer", text).value();
    return CaseResult{test, json[0].get<Tally>(), json[1]};
  }

  // Returns true if a call has returned, or the case has begun, within `patience_ns`.
  bool moves(std::int64_t patience_ns, std::int64_t now) {
    const std::int64_t finished = finished_->load(std::memory_order_relaxed);
    if (finished != seen_) {
      seen_ = finished;
      moved_ns_ = now;
    }
    return now - moved_ns_ < patience_ns;
  }
  double seconds() const { return static_cast<double>(now_ns() - begin_ns_) / 1e9; }

  // Kills the process and all its children.
  void stop() {
    process_.end();
    if (questions_ >= 0) close(questions_);
    if (answers_ >= 0) close(answers_);
    questions_ = answers_ = -1;
    busy_ = false;
  }
  // Call it after the pipe has closed. Returns the wait status of the dead process.
  int bury() {
    const int status = process_.wait();
    stop();
    return status;
  }

 private:
  ChildProcess process_;
  int questions_ = -1, answers_ = -1;
  bool busy_ = false;
  std::size_t current_ = 0;
  std::atomic<std::int64_t>* finished_ = nullptr;  // shared with the process
  std::int64_t seen_ = 0, moved_ns_ = 0, begin_ns_ = 0;
};

// One job per processor, or per processor of the quota if there is one: cases that share processor
// time answer late.
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
  // Writing to a dead process must not end this one.
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
        // A fault that changes its process for good gets a process without earlier cases.
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
          dead.tally.remarks = {to_string(test) + ": the process ended with " +
                                describe_end(worker.bury())};
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
