#include "engine/faults/process_stage.h"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <exception>
#include <filesystem>
#include <new>

#include "engine/api/processes/name.h"
#include "engine/base/json_text.h"
#include "engine/faults/scene.h"
#include "engine/faults/tally_json.h"

namespace rankine::faults {
namespace {

std::string next_name() {
  static int stages = 0;
  return "faults_" + std::to_string(getpid()) + "_" + std::to_string(++stages);
}

// Broken, with a remark.
void blame(Tally& tally, const std::string& who, const std::string& what) {
  ++tally.undocumented;
  tally.remark(who + ": " + what);
}

}  // namespace

ProcessStage::ProcessStage(int ranks)
    : ranks_(ranks), name_(next_name()), processes_(static_cast<std::size_t>(ranks)) {
  bytes_ = sizeof(Page) + static_cast<std::size_t>(ranks) * sizeof(Place);
  void* const memory =
      mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    throw Error(Code::system, std::string("mmap for a stage: ") + std::strerror(errno));
  }
  page_ = new (memory) Page{};  // all zeroes, as the places are
  places_ = reinterpret_cast<Place*>(page_ + 1);
  for (Rank r = 0; r < ranks; ++r) new (&places_[r]) Place;
}

ProcessStage::~ProcessStage() {
  for (Rank r = 0; r < ranks_; ++r) end(r);
  munmap(page_, bytes_);
}

void ProcessStage::play_act(Rank r, const Play& play) {
  Report report;
  try {
    play.first(r);
    // What is to end it is on its way.
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

void ProcessStage::live(Rank r, const Play& play) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const rlimit no_core{};
  setrlimit(RLIMIT_CORE, &no_core);
  for (int now = act(); now < play.acts; ++now) {
    wait_for([&] { return act() >= now; });
    play_act(r, play);
    place(r).state.store(State::told);  // pairs with the parent's load
  }
  _exit(0);
}

void ProcessStage::start_missing(const Play& play) {
  for (Rank r = 0; r < ranks_; ++r) {
    if (processes_[static_cast<std::size_t>(r)] != 0) continue;
    const pid_t process = fork();
    if (process == 0) live(r, play);
    if (process < 0) {
      throw Error(Code::system, "no process for rank " + std::to_string(r) + " of " +
                                    std::to_string(ranks_) + ": " + std::strerror(errno));
    }
    processes_[static_cast<std::size_t>(r)] = process;
  }
}

void ProcessStage::begin_act(int act) {
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

void ProcessStage::tell(Rank r, const Report& report) {
  Tally tally = report.tally;
  std::string text;
  do {
    text = text_of({json_of(tally), report.text ? nlohmann::json(*report.text) : nlohmann::json()});
    if (text.size() <= sizeof(Place::report)) break;
    if (tally.remarks.empty()) return;  // said by the parent: nothing has been reported
    tally.remarks.pop_back();
  } while (true);
  std::memcpy(place(r).report, text.data(), text.size());
  place(r).bytes = static_cast<std::uint32_t>(text.size());
}

std::optional<ProcessStage::Report> ProcessStage::hear(Rank r) {
  if (place(r).bytes == 0) return std::nullopt;
  const auto json = read_json("a rank's report", std::string(place(r).report, place(r).bytes));
  if (!json.ok()) return std::nullopt;
  Report report{tally_of((*json)[0]), {}};
  if ((*json)[1].is_string()) report.text = (*json)[1].get<std::string>();
  return report;
}

bool ProcessStage::has_ended(Rank r, const std::string& who, Tally& tally) {
  pid_t& process = processes_[static_cast<std::size_t>(r)];
  int status = 0;
  if (process == 0) return true;
  if (waitpid(process, &status, WNOHANG) != process) return false;
  process = 0;
  const bool announced = place(r).state.load() == State::going;
  if (!announced && status != 0) {
    blame(
        tally, who,
        "rank " + std::to_string(r) + "'s process " +
            (WIFSIGNALED(status) ? std::string("died of ") + strsignal(WTERMSIG(status))
                                 : "ended with exit code " + std::to_string(WEXITSTATUS(status))));
  }
  return true;
}

void ProcessStage::end(Rank r) {
  pid_t& process = processes_[static_cast<std::size_t>(r)];
  if (process == 0) return;
  kill(process, SIGKILL);
  while (waitpid(process, nullptr, 0) < 0 && errno == EINTR) {
  }
  process = 0;
}

std::vector<ProcessStage::Report> ProcessStage::run(const Play& play, const std::string& who,
                                                    Tally& tally) {
  const auto all = [&](const auto& is_so) {
    bool so = true;
    for (Rank r = 0; r < ranks_; ++r) so = is_so(r) && so;
    return so;
  };
  const std::string ours = shared_path(name_);
  std::vector<Report> reports;
  for (int act = 0; act < play.acts; ++act) {
    begin_act(act);
    start_missing(play);
    // Those that go may stop for ever, or be another program: all others are waited for.
    wait_for([&] {
      return all([&](Rank r) {
        return has_ended(r, who, tally) || place(r).state.load() != State::playing;
      });
    });
    int left = 0;
    for (Rank r = 0; r < ranks_; ++r) {
      if (place(r).state.load() != State::played) end(r);
      if (processes_[static_cast<std::size_t>(r)] != 0) place(r).rank_afresh = left++;
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

}  // namespace rankine::faults
