#include "engine/papers/runs.h"

#include <malloc.h>
#include <tbb/parallel_for.h>
#include <tbb/partitioner.h>

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <limits>
#include <map>
#include <mutex>

#include "algorithms/catalogue.h"
#include "algorithms/schedule/combine.h"
#include "algorithms/torus.h"
#include "engine/network/simulate.h"
#include "engine/network/ticks.h"
#include "engine/network/wire.h"
#include "engine/papers/execute.h"
#include "engine/papers/messages.h"
#include "engine/papers/statements.h"
#include "engine/read/profile.h"

namespace rankine::claims {
namespace {

// What live ranks take in memory, about: plans of many moves, and what each rank has beside them.
std::size_t bytes_for(std::uint64_t moves, int ranks) {
  constexpr std::size_t kPerMove = 250, kPerRank = std::size_t{128} << 10;
  return kPerMove * moves + kPerRank * static_cast<std::size_t>(ranks);
}

// What runs that are not small hold, of all that are being made.
class Room {
 public:
  static bool is_small(std::size_t bytes) { return bytes <= (std::size_t{64} << 20); }

  // There is always room for one.
  bool has(std::size_t bytes) const {
    constexpr std::size_t kTogether = std::size_t{3} << 30;
    return is_small(bytes) || held_ == 0 || held_ + bytes <= kTogether;
  }
  void take(std::size_t bytes) { held_ += is_small(bytes) ? 0 : bytes; }
  void give_back(std::size_t bytes) { held_ -= is_small(bytes) ? 0 : bytes; }

 private:
  std::size_t held_ = 0;
};

// Runs that wait to be made, each of so many bytes. Whoever makes them, on as many cores as there
// are, takes one that there is room for in this process.
class Queue {
 public:
  explicit Queue(std::vector<std::size_t> bytes) : bytes_(std::move(bytes)) {}

  // The number of the first one, when there is any. To be asked once for each.
  std::size_t take() {
    std::unique_lock lock(mutex());
    while (true) {
      for (std::size_t i = 0; i < bytes_.size(); ++i) {
        if (bytes_[i] == kTaken || !room().has(bytes_[i])) continue;
        room().take(bytes_[i]);
        bytes_[i] = kTaken;
        return i;
      }
      given_back().wait(lock);
    }
  }
  // One of so many bytes has been made.
  static void give_back(std::size_t bytes) {
    // What it had lies in pieces all over the heap.
    if (!Room::is_small(bytes)) malloc_trim(0);
    const std::lock_guard lock(mutex());
    room().give_back(bytes);
    given_back().notify_all();
  }

 private:
  static constexpr std::size_t kTaken = std::numeric_limits<std::size_t>::max();
  static std::mutex& mutex() {
    static std::mutex one;
    return one;
  }
  static std::condition_variable& given_back() {
    static std::condition_variable one;
    return one;
  }
  static Room& room() {  // under the mutex
    static Room one;
    return one;
  }

  std::vector<std::size_t> bytes_;
};

// A run with its letters filled in.
struct Setup {
  const Algorithm* algorithm = nullptr;
  Params params;
  Fabric fabric;
  std::uint64_t bytes = 0;
  int nodes = 0;
  SimulateOptions options{.sync = Sync::rounds, .ideal_blocks = true};
};

std::int64_t whole(const Value& value, std::string_view what) {
  if (!value.whole() || value.rational().top() > std::numeric_limits<std::int64_t>::max() ||
      value.rational().top() < std::numeric_limits<std::int64_t>::min()) {
    throw std::logic_error(std::string(what) + " is " + to_string(value) + ", no whole number");
  }
  return static_cast<std::int64_t>(value.rational().top());
}

Rational exactly(const Value& value, std::string_view what) {
  if (!value.exact()) throw std::logic_error(std::string(what) + " is no exact number");
  return value.rational();
}

Rational* exact_option(Fabric& fabric, std::string_view option) {
  if (option == "alpha") return &fabric.link.alpha;
  if (option == "beta") return &fabric.link.beta;
  if (option == "hop") return &fabric.alpha_hop;
  if (option == "gamma") return &fabric.gamma;
  if (option == "far_alpha") return &fabric.between.alpha;
  if (option == "far_beta") return &fabric.between.beta;
  return option == "switch_alpha" ? &fabric.alpha_switch : nullptr;
}

// Options that are words. False: it is none of them.
bool read_word(Setup& s, std::string_view option, std::string_view text) {
  const auto known = [&](const auto& value) {
    if (!value)
      throw std::logic_error("no " + std::string(option) + " is called '" + std::string(text) +
                             "'");
    return *value;
  };
  if (option == "sync") {
    s.options.sync = known(parse_sync(text));
  } else if (option == "wiring") {
    s.fabric.wiring.kind = known(parse_wiring(text));
    open_ports(s.fabric);
  } else if (option == "routing") {
    s.fabric.wiring.routing = known(parse_routing(text));
  } else {
    return false;
  }
  return true;
}

// Whether an option is a text of its own, in place of a number that is worked out.
bool is_text(std::string_view option) {
  const Parameter* row = find_parameter(option);
  return (row != nullptr && row->list != nullptr) || option == "sync" || option == "wiring" ||
         option == "routing";
}

Setup set_up(const RunText& run, const Letters& letters) {
  Setup s;
  const auto collective = parse_collective(run.collective);
  if (!collective) throw std::logic_error("no collective is called '" + run.collective + "'");
  s.algorithm = find_algorithm(*collective, run.algorithm);
  if (s.algorithm == nullptr) {
    throw NotInCatalogue("the catalogue has no " + run.collective + " '" + run.algorithm + "' yet");
  }
  bool adds = true;
  for (const auto& [option, text] : run.options) {
    if (is_text(option) || option == "dimensions") {
      read_word(s, option, text);
      continue;  // lists are below: they need the ranks
    }
    const Value value = formulas::evaluate(text, letters);
    const auto number = [&, name = std::string_view(option)] {
      return static_cast<int>(whole(value, name));
    };
    const Parameter* row = find_parameter(option);
    if (row != nullptr) {
      s.params.*row->number = number();
    } else if (option == "bytes") {
      s.bytes = static_cast<std::uint64_t>(whole(value, option));
    } else if (Rational* into = exact_option(s.fabric, option)) {
      *into = exactly(value, option);
      if (option == "switch_alpha") s.fabric.multicast = s.fabric.alu = true;
    } else if (option == "ports") {
      s.fabric.ports = number();
    } else if (option == "nodes") {
      s.nodes = s.fabric.group = number();
    } else if (option == "permute") {
      s.fabric.permute = number() != 0;
    } else if (option == "adds") {
      adds = number() != 0;
    } else if (option == "lower") {
      s.options.lower = number() != 0;
    } else {
      throw std::logic_error("a run has no option '" + option + "'");
    }
  }
  for (const auto& [option, text] : run.options) {
    const Parameter* row = find_parameter(option);
    if (row != nullptr && row->list != nullptr) {
      if (!row->read(text, s.params)) {
        throw std::logic_error(option + " is '" + text + "'; allowed are " + row->allowed());
      }
    } else if (option == "dimensions") {
      s.params.dims = balanced_dims(
          s.params.ranks, static_cast<int>(whole(formulas::evaluate(text, letters), option)));
    }
  }
  s.fabric.alu = s.fabric.alu && adds;
  auto wired = wire(s.fabric, *s.algorithm, s.params);
  if (const auto untaken = s.algorithm->untaken(s.params)) throw std::logic_error(*untaken);
  if (const auto refusal = s.algorithm->refusal(s.params)) throw NotDefined(*refusal);
  if (!wired.ok()) throw std::logic_error(wired.status().text());
  s.fabric = std::move(*wired);
  return s;
}

Value value_of(Ticks time, Ticks per_second) { return Rational(time, per_second); }

// One setup, simulated; what is asked for later is worked out later.
class Played {
 public:
  explicit Played(Setup setup)
      : setup_(std::move(setup)),
        schedule_(setup_.algorithm->make(setup_.params)),
        goal_(goal_of(*setup_.algorithm, setup_.params, schedule_)) {}

  Value time() { return timed(setup_.fabric); }

  Value time_with(int alpha, bool beta) {
    Fabric fabric = setup_.fabric;
    const Rational per_byte =
        beta ? Rational(1, static_cast<Int128>(std::max<std::uint64_t>(1, setup_.bytes)))
             : Rational(0);
    fabric.link = fabric.between = {alpha, per_byte};
    fabric.alpha_switch = alpha;
    fabric.alpha_hop = fabric.gamma = 0;
    return timed(fabric);
  }

  std::optional<Value> quantity(std::string_view name) {
    if (name == "time") return time();
    if (name == "n_alpha") return time_with(1, false);
    if (name == "n_beta") return time_with(0, true);
    if (name == "crossing") return crossing(true);
    if (name == "rank_crossing") return crossing(false);
    if (name == "delay") return delay(setup_.fabric.wiring);
    if (name == "ring_load") return delay({.kind = WiringKind::ring});
    if (name == "one_path_delay") return one_path_delay();
    if (name == "largest") return bytes_of(largest_message(messages()));
    if (name == "send_ports" || name == "receive_ports") {
      return name == "send_ports" ? simulated().send_ports_needed
                                  : simulated().receive_ports_needed;
    }
    const Simulation& s = simulated();
    const auto most = [&s](const std::vector<std::int64_t>& weights) {
      return Rational(*std::max_element(weights.begin(), weights.end()), s.weight_per_byte);
    };
    if (name == "rounds") return s.rounds;
    if (name == "messages") return static_cast<long long>(s.messages);
    if (name == "sent") return most(s.sent);
    if (name == "received") return most(s.received);
    if (name == "reduced") return most(s.reduced);
    const auto least = [&s](const std::vector<std::int64_t>& weights) {
      return Rational(*std::min_element(weights.begin(), weights.end()), s.weight_per_byte);
    };
    if (name == "least_sent") return least(s.sent);
    if (name == "least_received") return least(s.received);
    if (name == "ports") return s.ports_needed();
    if (name == "partners") return s.partners_max;
    return std::nullopt;
  }

  // Those of single messages; nullopt: there is no such one, or it has other arguments.
  std::optional<Value> quantity(std::string_view name, std::span<const Value> arguments) {
    if (arguments.empty()) return quantity(name);
    std::vector<int> a;
    for (const Value& value : arguments) a.push_back(static_cast<int>(whole(value, name)));
    const std::vector<Message>& all = messages();
    if (name == "sends" && a.size() == 2) return bytes_of(sent_between(all, a[0], a[1]));
    if (name == "sends" && a.size() == 3) return bytes_of(sent_between(all, a[0], a[1], a[2]));
    if (a.size() != 1) return std::nullopt;
    if (name == "sent_by") return bytes_of(sent_by(all, a[0]));
    if (name == "sent_in") return bytes_of(most_sent_in(all, a[0]));
    if (name == "first_round") return first_round_of(all, a[0]);
    if (name == "last_round") return last_round_of(all, a[0]);
    return std::nullopt;
  }

  std::uint64_t moves() {
    const Simulation& s = simulated();
    std::int64_t received = 0;
    for (const std::int64_t weight : s.received) received += weight;
    const std::int64_t block =
        s.weight_per_byte * static_cast<std::int64_t>(setup_.bytes) / blocks_per_m(goal_);
    const auto blocks = static_cast<std::uint64_t>(block == 0 ? 0 : received / block);
    return std::max(blocks, s.messages);
  }

  // The time of ranks that make `made`, and what is wrong with it or with their data.
  Executed execute_it(const Setup& made) {
    const auto seconds = execute(*made.algorithm, made.params, made.fabric, made.bytes,
                                 made.options.sync, made.options.lower);
    if (!seconds.ok()) return {.fault = std::string(seconds.status().text())};
    if (*seconds == simulated().seconds) return {.seconds = *seconds};
    return {.fault = "executed in " + std::to_string(*seconds) + " s, simulated " +
                     to_string(time()) + " s",
            .seconds = *seconds};
  }

 private:
  Pricing priced(const Fabric& fabric) const {
    auto pricing = Pricing::make(fabric, goal_, setup_.bytes, true);
    if (!pricing.ok()) throw std::logic_error(pricing.status().text());
    return *pricing;
  }
  Simulation simulate_on(const Fabric& fabric) const {
    auto result = simulate(schedule_, goal_, fabric, setup_.bytes, setup_.options);
    if (!result.ok()) throw NotDefined(result.status().text());
    return std::move(*result);
  }
  Value timed(const Fabric& fabric) const {
    return value_of(simulate_on(fabric).end, priced(fabric).ticks_per_second());
  }
  const Simulation& simulated() {
    if (!simulation_) simulation_ = simulate_on(setup_.fabric);
    return *simulation_;
  }

  const std::vector<Message>& messages() {
    if (messages_.empty()) messages_ = messages_of(schedule_, priced(setup_.fabric));
    return messages_;
  }
  Value bytes_of(std::int64_t weight) const {
    return Rational(weight, priced(setup_.fabric).weight_per_byte());
  }

  Value crossing(bool of_nodes) {
    if (setup_.nodes == 0) throw std::logic_error("crossing asks for the option nodes");
    std::vector<std::int64_t> out(static_cast<std::size_t>(setup_.params.ranks), 0);
    for (const Message& m : messages()) {
      if (m.from / setup_.nodes == m.to / setup_.nodes) continue;
      out[static_cast<std::size_t>(of_nodes ? m.from / setup_.nodes : m.from)] += m.weight;
    }
    return bytes_of(*std::max_element(out.begin(), out.end()));
  }

  // Against the ideal of one vector over the dimensions of the network.
  Value delay(const Wiring& wiring) const {
    const auto found = profile(schedule_, goal_, wiring);
    if (!found.ok()) throw std::logic_error(found.status().text());
    const Value dimensions(static_cast<long long>(std::max<std::size_t>(1, wiring.dims.size())));
    return Value(Rational(found->total_load(), found->per_m)) * dimensions;
  }
  Value one_path_delay() {
    std::vector<int> dims = setup_.fabric.wiring.dims;
    if (dims.empty()) dims = {setup_.params.ranks};
    return bytes_of(one_path_load(messages(), dims)) *
           Rational(static_cast<Int128>(dims.size()), static_cast<Int128>(setup_.bytes));
  }

  Setup setup_;
  Schedule schedule_;
  Goal goal_;
  std::optional<Simulation> simulation_;
  std::vector<Message> messages_;  // none: not asked for yet
};

// The number of segments with the least time. The time falls, then rises: thirds close in on it.
std::pair<Value, int> best_of(const Setup& setup) {
  std::map<int, Value> known;
  const auto time_at = [&](int segments) {
    const auto found = known.find(segments);
    if (found != known.end()) return found->second;
    Setup tried = setup;
    tried.params.segments = segments;
    return known.emplace(segments, Played(tried).time()).first->second;
  };
  int low = 1, high = kMostSegments;
  while (high - low > 4) {
    const int a = low + (high - low) / 3, b = high - (high - low) / 3;
    if (less(time_at(b), time_at(a))) {
      low = a;
    } else {
      high = b;
    }
  }
  int best = low;
  for (int s = low; s <= high; ++s) {
    if (less(time_at(s), time_at(best))) best = s;
  }
  return {time_at(best), best};
}

// Two setups are the same where their options' values are.
std::string key_of(const RunText& run, const Letters& letters) {
  std::map<std::string, std::string> options;
  for (const auto& [option, text] : run.options) {
    if (is_text(option)) {
      options[option] = text;
      continue;
    }
    const Value value = formulas::evaluate(text, letters);
    options[option] = value.exact() ? value.rational().to_string() : to_string(value);
  }
  std::string key = run.collective + " " + run.algorithm;
  for (const auto& [option, value] : options) key += " " + option + "=" + value;
  return key;
}

}  // namespace

struct Runs::State {
  std::map<std::string, std::map<std::string, Value, std::less<>>> known;  // by key and quantity
  std::map<std::string, std::uint64_t> moves;                              // by key
  std::map<std::string, Executed> executed;  // by key, and that of what was made in its place
  reproduce::Profiles profiles;
  std::vector<reproduce::Panel> by_eq_1;
  std::vector<reproduce::Outcome> outcomes;  // all of them, or none yet
  // By flow and packet; panels point to the carriages.
  std::map<Fidelity, reproduce::Carriage> carriages{};
  std::map<Fidelity, std::vector<reproduce::Panel>> panels{};
  std::map<std::pair<Fidelity, std::string>, reproduce::Outcome> again{};
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

const reproduce::Outcome& Runs::reproduced(std::string_view id) {
  auto& outcomes = state_->outcomes;
  if (outcomes.empty()) outcomes = reproduce::outcomes(panels());
  const auto found = std::find_if(outcomes.begin(), outcomes.end(), [id](const auto& outcome) {
    return outcome.statement->id == id;
  });
  if (found == outcomes.end()) {
    throw std::logic_error("no statement is called '" + std::string(id) + "'");
  }
  return *found;
}

const reproduce::Outcome& Runs::reproduced(std::string_view id, Fidelity fidelity) {
  const std::pair key(fidelity, std::string(id));
  if (const auto found = state_->again.find(key); found != state_->again.end()) {
    return found->second;
  }
  auto& panels = state_->panels[fidelity];
  if (panels.empty()) {
    auto& carriage =
        state_->carriages.try_emplace(fidelity, fidelity, state_->profiles).first->second;
    panels = reproduce::panels(state_->profiles);
    for (reproduce::Panel& panel : panels) panel.carriage = &carriage;
  }
  const reproduce::Statement& statement = *reproduced(id).statement;
  return state_->again.emplace(key, outcome_of(statement, panels)).first->second;
}

std::span<const reproduce::Panel> Runs::panels() {
  auto& panels = state_->by_eq_1;
  if (panels.empty()) panels = reproduce::panels(state_->profiles);
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
    Executed* result = nullptr;  // in a map: it stays where it is
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
  // Large ones first: no core is left with the longest of them at the end.
  std::stable_sort(to_make.begin(), to_make.end(),
                   [](const ToMake& a, const ToMake& b) { return a.bytes > b.bytes; });
  std::vector<std::size_t> bytes;
  for (const ToMake& each : to_make) bytes.push_back(each.bytes);
  Queue queue(std::move(bytes));
  std::mutex reporting;
  std::size_t done = 0;
  tbb::parallel_for(
      std::size_t{0}, to_make.size(),
      [&](std::size_t) {
        ToMake& each = to_make[queue.take()];
        try {
          *each.result = Played(std::move(each.setup)).execute_it(each.made);
        } catch (...) {  // others may wait for the room
          Queue::give_back(each.bytes);
          throw;
        }
        Queue::give_back(each.bytes);
        if (!progress) return;
        const std::lock_guard lock(reporting);
        progress(++done, to_make.size());
      },
      tbb::simple_partitioner());
  std::vector<Executed> out;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    out.push_back(*results[i]);
    out.back().first = first[i];
  }
  return out;
}

}  // namespace rankine::claims
