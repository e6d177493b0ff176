// Runs of claims: their texts, their cached quantities, and the queue of live runs, which bounds
// the memory of all runs in progress.

#include "engine/papers/runs.h"

#include <malloc.h>

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <mutex>
#include <vector>

#include "engine/base/parallel.h"
#include "engine/papers/played.h"
#include "engine/papers/statements.h"

namespace rankine::claims {

namespace {

// Memory of all runs in progress that are not small.
class Room {
 public:
  static bool is_small(std::size_t bytes) { return bytes <= (std::size_t{64} << 20); }

  // There is always room for one run.
  bool has(std::size_t bytes) const {
    constexpr std::size_t kTogether = std::size_t{3} << 30;
    return is_small(bytes) || held_ == 0 || held_ + bytes <= kTogether;
  }
  void take(std::size_t bytes) { held_ += is_small(bytes) ? 0 : bytes; }
  void give_back(std::size_t bytes) { held_ -= is_small(bytes) ? 0 : bytes; }

 private:
  std::size_t held_ = 0;
};

std::mutex mutex;
std::condition_variable given_back;
Room room;  // guarded by the mutex

// Estimate of the memory of a live run: plans of many moves, and the data of each rank.
std::size_t bytes_for(std::uint64_t moves, int ranks) {
  constexpr std::size_t kPerMove = 250, kPerRank = std::size_t{128} << 10;
  return kPerMove * moves + kPerRank * static_cast<std::size_t>(ranks);
}

// A queue of live runs of these sizes in bytes. Each thread that makes runs takes the first run for
// which this process has room. Thread-safe.
class LiveQueue {
 public:
  explicit LiveQueue(std::vector<std::size_t> bytes) : bytes_(std::move(bytes)) {}

  // Waits for room, then returns the index of the first run that fits. Call it once per run.
  std::size_t take() {
    std::unique_lock lock(mutex);
    while (true) {
      for (std::size_t i = 0; i < bytes_.size(); ++i) {
        if (bytes_[i] == kTaken || !room.has(bytes_[i])) continue;
        room.take(bytes_[i]);
        bytes_[i] = kTaken;
        return i;
      }
      given_back.wait(lock);
    }
  }
  // A run of this size has ended.
  static void give_back(std::size_t bytes) {
    // The freed memory is fragmented over the heap.
    if (!Room::is_small(bytes)) malloc_trim(0);
    const std::lock_guard lock(mutex);
    room.give_back(bytes);
    given_back.notify_all();
  }

 private:
  static constexpr std::size_t kTaken = std::numeric_limits<std::size_t>::max();
  std::vector<std::size_t> bytes_;
};

}  // namespace

struct Runs::State {
  std::map<std::string, std::map<std::string, Value, std::less<>>> known;  // by key and quantity
  std::map<std::string, std::uint64_t> moves;                              // by key
  std::map<std::string, Executed> executed;  // by key, with the key of `made`
  reproduce::Profiles profiles;
  std::map<Fidelity, reproduce::Carriage> carriages{};  // panels point to them
  std::map<reproduce::By, std::vector<reproduce::Panel>> panels{};
  std::map<std::pair<reproduce::By, std::string>, reproduce::Outcome> outcomes{};
};

Runs::Runs() : state_(std::make_unique<State>()) {}
Runs::~Runs() = default;

std::vector<RunText> read_runs(std::string_view runs, std::string_view before) {
  std::vector<RunText> out;
  for (const std::string_view text : formulas::split_outside(runs, '|')) {
    RunText run;
    std::string_view rest = text;
    const auto read_options = [&run](std::string_view options) {
      for (const std::string_view option : formulas::split_outside(options, ';')) {
        if (option.empty()) continue;
        const std::size_t sign = option.find('=');
        if (sign == std::string_view::npos) {
          throw std::logic_error("'" + std::string(option) + "' is no option of a run");
        }
        const std::string key(formulas::trimmed(option.substr(0, sign)));
        const auto same = [&key](const auto& each) { return each.first == key; };
        std::erase_if(run.options, same);
        run.options.emplace_back(key, formulas::trimmed(option.substr(sign + 1)));
      }
    };
    read_options(before);
    const std::size_t end = rest.find(';');
    std::string_view head = rest.substr(0, end);
    if (end != std::string_view::npos) read_options(rest.substr(end + 1));
    const std::size_t colon = head.find(':');
    if (colon != std::string_view::npos) {
      run.name = formulas::trimmed(head.substr(0, colon));
      head = formulas::trimmed(head.substr(colon + 1));
    }
    const std::size_t space = head.find(' ');
    if (space == std::string_view::npos) {
      throw std::logic_error("'" + std::string(text) + "' names no collective and algorithm");
    }
    run.collective = formulas::trimmed(head.substr(0, space));
    run.algorithm = formulas::trimmed(head.substr(space + 1));
    out.push_back(std::move(run));
  }
  return out;
}

std::optional<Value> Runs::quantity(const std::vector<RunText>& runs, const Letters& letters,
                                    std::string_view name, std::span<const Value> arguments) {
  const std::size_t point = name.find('.');
  const std::string_view who = point == std::string_view::npos ? "" : name.substr(0, point);
  const std::string_view what = point == std::string_view::npos ? name : name.substr(point + 1);
  const auto run = std::find_if(runs.begin(), runs.end(),
                                [who](const RunText& each) { return each.name == who; });
  if (run == runs.end()) return std::nullopt;
  std::string quantity(what);
  for (const Value& each : arguments) quantity += "," + to_string(each);
  auto& known = state_->known[key_of(*run, letters)];
  if (const auto found = known.find(quantity); found != known.end()) return found->second;
  const Setup setup = set_up(*run, letters);
  if (what == "best" || what == "best_segments") {
    const auto [time, segments] = best_of(setup);
    known.emplace("best", time);
    known.emplace("best_segments", segments);
    return what == "best" ? time : Value(segments);
  }
  const auto value = Played(setup).quantity(what, arguments);
  if (value) known.emplace(std::move(quantity), *value);
  return value;
}

const reproduce::Outcome& Runs::reproduced(std::string_view id, reproduce::By by) {
  const std::pair key(by, std::string(id));
  if (const auto found = state_->outcomes.find(key); found != state_->outcomes.end()) {
    return found->second;
  }
  const auto all = reproduce::statements();
  const auto statement =
      std::find_if(all.begin(), all.end(), [id](const auto& each) { return each.id == id; });
  if (statement == all.end()) {
    throw std::logic_error("no statement is called '" + std::string(id) + "'");
  }
  return state_->outcomes.emplace(key, outcome_of(*statement, panels(by))).first->second;
}

std::span<const reproduce::Panel> Runs::panels(reproduce::By by) {
  using reproduce::By, reproduce::Panel;
  std::vector<Panel>& panels = state_->panels[by];
  if (!panels.empty()) return panels;
  const auto carried = [&](Panel panel, Fidelity fidelity) {
    panel.carriage =
        &state_->carriages.try_emplace(fidelity, fidelity, state_->profiles).first->second;
    return panel;
  };
  for (const Panel& panel : reproduce::panels(state_->profiles)) {
    panels.push_back(by == By::flow        ? carried(panel, Fidelity::flow)
                     : by == By::packet    ? carried(panel, Fidelity::packet)
                     : by == By::formulas  ? by_formulas(panel)
                     : by == By::distances ? at_printed_distances(panel)
                                           : panel);
  }
  return panels;
}

int Runs::ranks_of(const RunText& run, const Letters& letters) const {
  return set_up(run, letters).params.ranks;
}

std::uint64_t Runs::moves_of(const RunText& run, const Letters& letters) {
  std::string key = key_of(run, letters);
  if (const auto known = state_->moves.find(key); known != state_->moves.end()) {
    return known->second;
  }
  const std::uint64_t moves = Played(set_up(run, letters)).moves();
  return state_->moves.emplace(std::move(key), moves).first->second;
}

std::vector<Executed> Runs::execute(
    std::span<const LiveRun> runs,
    const std::function<void(std::size_t done, std::size_t all)>& progress) {
  struct ToMake {
    Setup setup, made;
    std::size_t bytes = 0;
    Executed* result = nullptr;  // stable: an element of a map
  };
  std::vector<ToMake> to_make;
  std::vector<const Executed*> results;
  std::vector<bool> first;
  for (const LiveRun& live : runs) {
    std::string key = key_of(live.run, live.letters);
    if (live.made) key += " made as " + key_of(*live.made, live.letters);
    auto known = state_->executed.find(key);
    first.push_back(known == state_->executed.end());
    if (first.back()) {
      Setup setup = set_up(live.run, live.letters);
      Setup made = live.made ? set_up(*live.made, live.letters) : setup;
      const std::size_t bytes = bytes_for(moves_of(live.run, live.letters), setup.params.ranks);
      known = state_->executed.try_emplace(std::move(key)).first;
      to_make.push_back({std::move(setup), std::move(made), bytes, &known->second});
    }
    results.push_back(&known->second);
  }
  // Large runs first: so no core gets the longest one last.
  std::stable_sort(to_make.begin(), to_make.end(),
                   [](const ToMake& a, const ToMake& b) { return a.bytes > b.bytes; });
  std::vector<std::size_t> bytes;
  for (const ToMake& each : to_make) bytes.push_back(each.bytes);
  LiveQueue queue(std::move(bytes));
  std::mutex reporting;
  std::size_t done = 0;
  parallel_for(to_make.size(), [&](std::size_t) {
    ToMake& each = to_make[queue.take()];
    try {
      *each.result = Played(std::move(each.setup)).execute_setup(each.made);
    } catch (...) {  // other threads may wait for the room
      LiveQueue::give_back(each.bytes);
      throw;
    }
    LiveQueue::give_back(each.bytes);
    if (!progress) return;
    const std::lock_guard lock(reporting);
    progress(++done, to_make.size());
  });
  std::vector<Executed> out;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    out.push_back(*results[i]);
    out.back().first = first[i];
  }
  return out;
}

}  // namespace rankine::claims
