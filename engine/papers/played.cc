#include "engine/papers/played.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/catalogue.h"
#include "algorithms/torus.h"
#include "engine/api/check.h"
#include "engine/api/communicator.h"
#include "engine/api/network.h"
#include "engine/network/predict.h"
#include "engine/network/prices.h"
#include "engine/read/sweep.h"

namespace rankine::claims {
namespace {

// The sum of the weights of the messages that pass the test.
template <class Test>
std::int64_t sum_of(const std::vector<Message>& messages, const Test& test) {
  std::int64_t sum = 0;
  for (const Message& each : messages) sum += test(each) ? each.weight : 0;
  return sum;
}

// Loads of the links of a torus in one round: a link up and one down per rank and dimension.
class LinkLoads {
 public:
  explicit LinkLoads(const std::vector<int>& dims)
      : torus_(dims), loads_(2 * dims.size() * static_cast<std::size_t>(torus_.ranks())) {}

  void add(const Message& message) {
    Rank at = message.from;
    for (int d = 0; d < torus_.dimensions(); ++d) {
      const int size = torus_.size(d);
      const int up = (torus_.coordinate(message.to, d) - torus_.coordinate(at, d) + size) % size;
      const bool rises = up <= size - up;
      for (int hop = 0; hop < (rises ? up : size - up); ++hop) {
        loads_[link(at, d, rises)] += message.weight;
        at = neighbour(at, d, rises);
      }
    }
  }
  std::int64_t most() const { return *std::max_element(loads_.begin(), loads_.end()); }
  void clear() { std::fill(loads_.begin(), loads_.end(), 0); }

 private:
  Rank neighbour(Rank rank, int dimension, bool rises) const {
    const int size = torus_.size(dimension), x = torus_.coordinate(rank, dimension);
    return rank + ((x + (rises ? 1 : size - 1)) % size - x) * torus_.stride(dimension);
  }
  std::size_t link(Rank rank, int dimension, bool rises) const {
    const int number = (rank * torus_.dimensions() + dimension) * 2 + (rises ? 1 : 0);
    return static_cast<std::size_t>(number);
  }

  Torus torus_;
  std::vector<std::int64_t> loads_;
};

}  // namespace

std::vector<Message> messages_of(const Schedule& schedule, const Pricing& pricing) {
  std::vector<Message> out;
  int round = 0;
  for (int k = 0; k < schedule.rounds; ++k) {
    const std::size_t before = out.size();
    for_each_transfer(schedule, k, [&](const Transfer& t) {
      const std::int64_t weight = pricing.weight(t.what.list);
      t.from.for_each([&](Rank from) {
        t.to.for_each([&](Rank to) {
          if (from != to) out.push_back({round + 1, from, to, weight});
        });
      });
    });
    if (out.size() > before) ++round;
  }
  return out;
}

std::int64_t sent_between(const std::vector<Message>& messages, Rank from, Rank to) {
  return sum_of(messages, [&](const Message& m) { return m.from == from && m.to == to; });
}

std::int64_t sent_between(const std::vector<Message>& messages, int round, Rank from, Rank to) {
  return sum_of(messages,
                [&](const Message& m) { return m.round == round && m.from == from && m.to == to; });
}

std::int64_t sent_by(const std::vector<Message>& messages, Rank rank) {
  return sum_of(messages, [&](const Message& m) { return m.from == rank; });
}

std::int64_t largest_message(const std::vector<Message>& messages) {
  std::int64_t most = 0;
  for (const Message& each : messages) most = std::max(most, each.weight);
  return most;
}

std::int64_t most_sent_in(const std::vector<Message>& messages, int round) {
  std::vector<std::int64_t> sent;
  for (const Message& each : messages) {
    if (each.round != round) continue;
    const auto from = static_cast<std::size_t>(each.from);
    if (sent.size() <= from) sent.resize(from + 1);
    sent[from] += each.weight;
  }
  return sent.empty() ? 0 : *std::max_element(sent.begin(), sent.end());
}

int first_round_of(const std::vector<Message>& messages, Rank rank) {
  for (const Message& each : messages) {
    if (each.from == rank) return each.round;
  }
  return 0;
}

int last_round_of(const std::vector<Message>& messages, Rank rank) {
  int last = 0;
  for (const Message& each : messages) {
    if (each.from == rank) last = each.round;
  }
  return last;
}

std::int64_t one_path_load(const std::vector<Message>& messages, const std::vector<int>& dims) {
  LinkLoads loads(dims);
  std::int64_t total = 0;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    loads.add(messages[i]);
    if (i + 1 < messages.size() && messages[i + 1].round == messages[i].round) continue;
    total += loads.most();
    loads.clear();
  }
  return total;
}

namespace {

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

// Gives rank 0 `slow` times the seconds per byte of the others.
void slow_rank_0(const Rational& slow, Fabric& fabric) {
  fabric.odd.clear();
  if (slow != 1) fabric.odd = {{.at = 0, .beta = fabric.link.beta * slow}};
}

// Options with words as values.
struct Word {
  std::string_view option;
  void (*read)(Setup&, std::string_view text);
};
auto known(const auto& value, std::string_view option, std::string_view text) {
  if (!value) {
    throw std::logic_error(std::string(option) + " is '" + std::string(text) +
                           "', which is unknown");
  }
  return *value;
}
constexpr Word kWords[] = {
    {"sync", [](Setup& s,
                std::string_view text) { s.options.sync = known(parse_sync(text), "sync", text); }},
    {"wiring",
     [](Setup& s, std::string_view text) {
       s.fabric.wiring.kind = known(parse_wiring(text), "wiring", text);
       open_ports(s.fabric);
     }},
    {"routing",
     [](Setup& s, std::string_view text) {
       s.fabric.wiring.routing = known(parse_routing(text), "routing", text);
     }},
};
// nullptr: the option is no word.
const Word* find_word(std::string_view option) {
  const auto* found = std::find_if(std::begin(kWords), std::end(kWords),
                                   [option](const Word& word) { return word.option == option; });
  return found == std::end(kWords) ? nullptr : found;
}

bool is_list(std::string_view option) {
  const Parameter* row = find_parameter(option);
  return row != nullptr && row->list != nullptr;
}

}  // namespace

std::int64_t whole(const Value& value, std::string_view what) {
  if (!value.whole() || value.rational().top() > std::numeric_limits<std::int64_t>::max() ||
      value.rational().top() < std::numeric_limits<std::int64_t>::min()) {
    throw std::logic_error(std::string(what) + " is " + to_string(value) +
                           "; allowed are whole numbers");
  }
  return static_cast<std::int64_t>(value.rational().top());
}

Setup set_up(const RunText& run, const Letters& letters) {
  Setup s;
  const auto collective = parse_collective(run.collective);
  if (!collective)
    throw std::logic_error("collective is '" + run.collective + "', which is unknown");
  s.algorithm = find_algorithm(*collective, run.algorithm);
  if (s.algorithm == nullptr) {
    throw NotInCatalogue("the catalogue has no " + run.collective + " '" + run.algorithm + "' yet");
  }
  bool adds = true;
  for (const auto& [option, text] : run.options) {
    if (const Word* word = find_word(option)) {
      word->read(s, text);
      continue;
    }
    if (is_list(option) || option == "dimensions") continue;  // read below: they need the ranks
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
    } else if (option == "slow") {
      s.slow = exactly(value, option);
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
  slow_rank_0(s.slow, s.fabric);
  auto wired = wire(s.fabric, *s.algorithm, s.params);
  if (const auto untaken = s.algorithm->untaken(s.params)) throw std::logic_error(*untaken);
  if (const auto refusal = s.algorithm->refusal(s.params)) throw NotDefined(*refusal);
  if (!wired.ok()) throw std::logic_error(wired.status().text());
  s.fabric = std::move(*wired);
  return s;
}

std::string key_of(const RunText& run, const Letters& letters) {
  std::map<std::string, std::string> options;
  for (const auto& [option, text] : run.options) {
    if (find_word(option) != nullptr || is_list(option)) {
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

Played::Played(Setup setup)
    : setup_(std::move(setup)),
      schedule_(setup_.algorithm->make(setup_.params)),
      goal_(goal_of(*setup_.algorithm, setup_.params, schedule_)) {}

Value Played::time_with(int alpha, bool beta) {
  Fabric fabric = setup_.fabric;
  const Rational per_byte =
      beta ? Rational(1, static_cast<Int128>(std::max<std::uint64_t>(1, setup_.bytes)))
           : Rational(0);
  fabric.link = fabric.between = {alpha, per_byte};
  slow_rank_0(setup_.slow, fabric);
  fabric.alpha_switch = alpha;
  fabric.alpha_hop = fabric.gamma = 0;
  return timed(fabric);
}

std::optional<Value> Played::quantity(std::string_view name) {
  if (name == "time") return time();
  if (name == "n_alpha") return time_with(1, false);
  if (name == "n_beta") return time_with(0, true);
  if (name == "crossing") return crossing(true);
  if (name == "rank_crossing") return crossing(false);
  if (name == "delay") return delay(setup_.fabric.wiring);
  if (name == "ring_load") return delay({.kind = WiringKind::ring});
  if (name == "one_path_delay") return one_path_delay();
  if (name == "largest") return bytes_of(largest_message(messages()));
  const Simulation& s = simulated();
  const auto most = [&s](const std::vector<std::int64_t>& weights) {
    return Rational(std::ranges::max(weights), s.weight_per_byte);
  };
  const auto least = [&s](const std::vector<std::int64_t>& weights) {
    return Rational(std::ranges::min(weights), s.weight_per_byte);
  };
  if (name == "send_ports") return s.send_ports_needed;
  if (name == "receive_ports") return s.receive_ports_needed;
  if (name == "rounds") return s.rounds;
  if (name == "messages") return static_cast<long long>(s.messages);
  if (name == "sent") return most(s.sent);
  if (name == "received") return most(s.received);
  if (name == "reduced") return most(s.reduced);
  if (name == "least_sent") return least(s.sent);
  if (name == "least_received") return least(s.received);
  if (name == "ports") return s.ports_needed();
  if (name == "partners") return s.partners_max;
  return std::nullopt;
}

std::optional<Value> Played::quantity(std::string_view name, std::span<const Value> arguments) {
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

std::uint64_t Played::moves() {
  const Simulation& s = simulated();
  std::int64_t received = 0;
  for (const std::int64_t weight : s.received) received += weight;
  const std::int64_t block =
      s.weight_per_byte * static_cast<std::int64_t>(setup_.bytes) / blocks_per_m(goal_);
  const auto blocks = static_cast<std::uint64_t>(block == 0 ? 0 : received / block);
  return std::max(blocks, s.messages);
}

Executed Played::execute_setup(const Setup& made) {
  const auto seconds = execute(*made.algorithm, made.params, made.fabric, made.bytes,
                               made.options.sync, made.options.lower);
  if (!seconds.ok()) return {.fault = std::string(seconds.status().text())};
  if (*seconds == simulated().seconds) return {.seconds = *seconds};
  return {.fault = "executed in " + std::to_string(*seconds) + " s, simulated " +
                   to_string(time()) + " s",
          .seconds = *seconds};
}

Pricing Played::priced(const Fabric& fabric) const {
  auto pricing = Pricing::make(fabric, goal_, setup_.bytes, true);
  if (!pricing.ok()) throw std::logic_error(pricing.status().text());
  return *pricing;
}

Simulation Played::simulate_on(const Fabric& fabric) const {
  auto result = simulate(schedule_, goal_, fabric, setup_.bytes, setup_.options);
  if (!result.ok()) throw NotDefined(result.status().text());
  return std::move(*result);
}

Value Played::timed(const Fabric& fabric) const {
  return Rational(simulate_on(fabric).end, priced(fabric).ticks_per_second());
}

const Simulation& Played::simulated() {
  if (!simulation_) simulation_ = simulate_on(setup_.fabric);
  return *simulation_;
}

const std::vector<Message>& Played::messages() {
  if (messages_.empty()) messages_ = messages_of(schedule_, priced(setup_.fabric));
  return messages_;
}

Value Played::bytes_of(std::int64_t weight) const {
  return Rational(weight, priced(setup_.fabric).weight_per_byte());
}

Value Played::crossing(bool of_nodes) {
  if (setup_.nodes == 0) throw std::logic_error("crossing asks for the option nodes");
  std::vector<std::int64_t> out(static_cast<std::size_t>(setup_.params.ranks), 0);
  for (const Message& m : messages()) {
    if (m.from / setup_.nodes == m.to / setup_.nodes) continue;
    out[static_cast<std::size_t>(of_nodes ? m.from / setup_.nodes : m.from)] += m.weight;
  }
  return bytes_of(*std::max_element(out.begin(), out.end()));
}

// Compared with the ideal: one vector divided over the dimensions of the network.
Value Played::delay(const Wiring& wiring) const {
  const auto found = profile(schedule_, goal_, wiring);
  if (!found.ok()) throw std::logic_error(found.status().text());
  const Value dimensions(static_cast<long long>(std::max<std::size_t>(1, wiring.dims.size())));
  return Value(Rational(found->total_load(), found->per_m)) * dimensions;
}

Value Played::one_path_delay() {
  std::vector<int> dims = setup_.fabric.wiring.dims;
  if (dims.empty()) dims = {setup_.params.ranks};
  return bytes_of(one_path_load(messages(), dims)) *
         Rational(static_cast<Int128>(dims.size()), static_cast<Int128>(setup_.bytes));
}

// The time first falls, then rises with the number of segments: a ternary search finds the minimum.
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

void Turns::run(int ranks, const std::function<void(Rank)>& part,
                const std::function<void()>& stuck) {
  ended_.assign(static_cast<std::size_t>(ranks), false);
  awaited_.assign(static_cast<std::size_t>(ranks), {});  // an empty wait: each rank can begin
  left_ = ranks;
  in_vain_ = 0;
  stuck_ = &stuck;
  std::vector<std::function<void()>> bodies;
  for (Rank r = 0; r < ranks; ++r) {
    bodies.emplace_back([this, &part, r] {
      part(r);
      ended_[static_cast<std::size_t>(r)] = true;
      --left_;
      in_vain_ = 0;
    });
  }
  // A call disables cancellation of its thread and restores the state from before. Here calls end
  // in any order, so all of them must find the same state.
  int before = PTHREAD_CANCEL_ENABLE;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
  fibers_.run(std::move(bodies), 0, [this] { return next(); });
  pthread_setcancelstate(before, nullptr);
}

void Turns::wait_for(const WaitTarget& awaited) noexcept {
  awaited_[static_cast<std::size_t>(fibers_.current())] = awaited;
}

void Turns::give_way(int turn) noexcept {
  if (turn == 0) {  // a new wait: this rank has made progress
    in_vain_ = 0;
  } else if (++in_vain_ > left_ && stuck_ != nullptr) {
    (*std::exchange(stuck_, nullptr))();
  }
  fibers_.go_to(next());
}

int Turns::next() const {
  const int ranks = static_cast<int>(ended_.size());
  int waits = -1;
  for (int i = 1; i <= ranks; ++i) {
    const int rank =
        fibers_.current() + i < ranks ? fibers_.current() + i : fibers_.current() + i - ranks;
    if (ended_[static_cast<std::size_t>(rank)]) continue;
    if (awaited_[static_cast<std::size_t>(rank)].is_reached()) return rank;
    if (waits < 0) waits = rank;
  }
  return waits;
}

namespace {

constexpr std::size_t kPerBlock = 16;  // elements: a cache line, so that no block is empty

// Input of rank r for element e of natural block b; sums of thousands of them fit in 32 bits.
std::uint32_t contribution(Rank r, Block b, std::size_t e) {
  std::uint32_t x = static_cast<std::uint32_t>(r) * 2654435761U ^
                    static_cast<std::uint32_t>(b) * 40503U ^ static_cast<std::uint32_t>(e) * 97U;
  x ^= x >> 15;
  return x % 65521U;
}

// The expected outputs. The sums continue those of the previous call of of(), so that a scan costs
// one addition per rank, and ranks that need the same sum share it.
class Expected {
 public:
  explicit Expected(const CollectiveSpec& goal)
      : goal_(goal), of_(static_cast<std::size_t>(goal.blocks)) {}

  // The expected elements of block b at rank `at`; valid until the next call.
  std::span<const std::uint32_t> of(Rank at, Block b, std::size_t elements) {
    const Run heard = goal_.contributors(at, b);
    Sums& s = of_[static_cast<std::size_t>(b)];
    if (s.first != heard.first || s.count > heard.count || s.elements.size() != elements) {
      s.first = heard.first;
      s.count = 0;
      s.elements.assign(elements, 0);
    }
    for (; s.count < heard.count; ++s.count) {
      for (std::size_t e = 0; e < elements; ++e) {
        s.elements[e] += contribution(s.first + s.count, b, e);
      }
    }
    return s.elements;
  }

 private:
  struct Sums {
    Rank first = 0;
    int count = 0;
    std::vector<std::uint32_t> elements;
  };
  const CollectiveSpec& goal_;
  std::vector<Sums> of_;
};

// One rank's buffers, with the call's natural blocks.
struct RankData {
  std::vector<std::uint32_t> input, output;

  void fill(const CollectiveSpec& goal, const Layout& layout, Rank r) {
    const BufferRule rule = buffer_rule(layout, goal, r);
    input.resize(rule.input_bytes / 4);
    output.resize(rule.output_bytes / 4);
    for (Block b = 0; b < goal.blocks; ++b) {
      if (!goal.initially_holds(r, b)) continue;
      const BlockHome& home = layout.blocks[static_cast<std::size_t>(b)];
      for (std::size_t e = 0; e < home.bytes / 4; ++e) {
        input[home.input / 4 + e] = contribution(r, b, e);
      }
    }
  }
  std::string wrong(const CollectiveSpec& goal, const Layout& layout, Rank r,
                    Expected& expected) const {
    for (Block b = 0; b < goal.blocks; ++b) {
      if (!goal.must_hold(r, b)) continue;
      const BlockHome& home = layout.blocks[static_cast<std::size_t>(b)];
      const auto right = expected.of(r, b, home.bytes / 4);
      for (std::size_t e = 0; e < right.size(); ++e) {
        if (output[home.output / 4 + e] != right[e]) {
          return "rank " + std::to_string(r) + ", block " + std::to_string(b) + ", element " +
                 std::to_string(e) + " is wrong";
        }
      }
    }
    return {};
  }
};

Call call_of(const Algorithm& algorithm, const Params& params, int blocks_per_natural) {
  Call call{.collective = algorithm.collective,
            .count = static_cast<std::size_t>(blocks_per_natural) * kPerBlock,
            .type = DataType::u32,
            .root = params.root,
            .peer = params.peer,
            .options = {.algorithm = algorithm.name}};
  // A barrier may combine a rank's input twice; "or" allows that.
  if (is_idempotent(call.collective)) call.op = ReduceOp::bor;
  set_parameters(params, call.options);
  return call;
}

}  // namespace

Result<double> execute(const Algorithm& algorithm, const Params& params, const Fabric& fabric,
                       std::uint64_t bytes, Sync sync, bool lower) {
  const Schedule schedule = algorithm.make(params);
  const int natural = natural_blocks(algorithm.collective, params.ranks);
  const Call call = call_of(algorithm, params, schedule.blocks / natural);
  const CollectiveSpec goal{call.collective, params.ranks, natural, call.root, call.peer};
  const Layout layout =
      make_layout(goal, natural_counts(call, params.ranks), size_of(call.type), Borders::plain);
  const auto real = static_cast<std::uint64_t>(blocks_per_m(goal_of(algorithm, params, schedule))) *
                    kPerBlock * size_of(call.type);

  auto network = std::make_shared<CallNetwork>();
  // A call of `real` bytes then costs as much as one of `bytes` bytes.
  network->fabric = slowed(fabric, Rational(static_cast<Int128>(bytes), static_cast<Int128>(real)));
  network->sync = sync;
  network->lower = lower;
  CommunicatorOptions options{.ranks = params.ranks, .timeout = std::chrono::minutes(10)};
  options.plan_bytes = std::size_t{16} << 30;  // plans of a thousand ranks are large
  options.tuned = false;
  options.network = std::move(network);
  // Probing is useless: data arrive only when another rank has had its turn.
  options.wait = WaitPolicy{.mode = WaitPolicy::Mode::yield, .probes = 0};
  const auto communicator = Communicator::create(options);
  if (!communicator.ok()) return communicator.status();

  const auto n = static_cast<std::size_t>(params.ranks);
  std::vector<RankData> data(n);
  Turns turns;
  std::vector<std::unique_ptr<Member>> members;
  for (Rank r : ranks(params.ranks)) {
    auto member = (*communicator)->join(r);
    if (!member.ok()) return member.status();
    (*member)->set_yield_callback(&turns);
    members.push_back(std::move(*member));
  }
  std::vector<Status> ended(n);
  const auto part = [&](Rank rank) {
    const auto r = static_cast<std::size_t>(rank);
    // Allocates when the rank's turn has come, after the first rank has planned: planning takes
    // most of the memory.
    try {
      data[r].fill(goal, layout, rank);
    } catch (const std::bad_alloc&) {
      (*communicator)->abort({Code::out_of_memory, "the data of rank " + std::to_string(rank)});
    }
    Call mine = call;
    mine.in = data[r].input.data();
    mine.out = data[r].output.data();
    ended[r] = members[r]->call(mine);
  };
  turns.run(params.ranks, part, [&] { (*communicator)->abort("all ranks wait for each other"); });
  Expected expected(goal);
  for (std::size_t r = 0; r < n; ++r) {
    if (!ended[r].ok()) return ended[r];
    if (call.collective == Collective::barrier) continue;  // no output to check
    const std::string wrong = data[r].wrong(goal, layout, static_cast<Rank>(r), expected);
    if (!wrong.empty()) return Status(Code::remote_error, wrong);
  }
  return (*communicator)->network_report().seconds;
}

}  // namespace rankine::claims
