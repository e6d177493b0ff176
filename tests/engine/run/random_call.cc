#include "tests/engine/run/random_call.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <type_traits>
#include <utility>

#include "algorithms/schedule/combine.h"
#include "engine/compile/lower.h"
#include "engine/compile/passes.h"
#include "tests/engine/run/kernels/scalar_reference.h"

namespace rankine {
namespace {

using Bytes = std::vector<std::byte>;

struct Held {
  Bytes bytes;
  std::int64_t contributions = 0;
  Rank lowest = 0;  // the lowest contributing rank
};

// The arrivals of a round at one place.
struct Arrival {
  bool adds = false;
  std::vector<const Held*> parts;
};

template <class T>
Bytes folded(const std::vector<const Held*>& parts, ReduceOp op, int divisor) {
  Bytes out(parts[0]->bytes.size());
  std::vector<T> values(parts.size());
  for (std::size_t i = 0; i < out.size() / sizeof(T); ++i) {
    for (std::size_t p = 0; p < parts.size(); ++p) {
      std::memcpy(&values[p], parts[p]->bytes.data() + i * sizeof(T), sizeof(T));
    }
    const T result = reference::reduce(op, values.data(), static_cast<int>(values.size()), divisor);
    std::memcpy(out.data() + i * sizeof(T), &result, sizeof(T));
  }
  return out;
}

}  // namespace

std::vector<Image> execute_literally(const Schedule& schedule, const CollectiveSpec& goal,
                                     const Layout& layout, DataType type, ReduceOp op,
                                     std::vector<Image> before) {
  using Where = std::pair<Rank, int>;  // a place of a rank
  std::map<Where, Held> memory;
  for (Rank r = 0; r < schedule.ranks; ++r) {
    const Image& image = before[static_cast<std::size_t>(r)];
    for (Block b = 0; b < schedule.blocks; ++b) {
      if (!goal.initially_holds(r, b)) continue;
      const BlockHome& home = layout.blocks[static_cast<std::size_t>(b)];
      const auto begin =
          image.bytes.begin() + static_cast<std::ptrdiff_t>(image.input + home.input);
      memory[{r, b}] = {Bytes(begin, begin + static_cast<std::ptrdiff_t>(home.bytes)), 1, r};
    }
  }
  for (int k = 0; k < schedule.rounds; ++k) {
    std::map<Where, Arrival> arrivals;
    for_each_transfer(schedule, k, [&](const Transfer& t) {
      const std::vector<int> from = t.from.to_vector(), to = t.to.to_vector();
      const std::vector<int> what = t.what.list.to_vector(), where = t.where.list.to_vector();
      for (const Rank receiver : to) {
        for (const Rank sender : from) {
          for (std::size_t i = 0; i < what.size(); ++i) {
            Arrival& arrival = arrivals[{receiver, slot_of(schedule, where[i], t.where.plane)}];
            arrival.adds = t.kind == TransferKind::reduce;
            arrival.parts.push_back(&memory.at({sender, slot_of(schedule, what[i], t.what.plane)}));
          }
        }
      }
    });
    std::vector<std::pair<Where, Held>> news;
    for (auto& [where, arrival] : arrivals) {
      const auto own = memory.find(where);
      if (arrival.adds && own != memory.end()) {
        arrival.parts.insert(arrival.parts.begin(), &own->second);
      }
      std::stable_sort(arrival.parts.begin(), arrival.parts.end(),
                       [](const Held* a, const Held* b) { return a->lowest < b->lowest; });
      Held held;
      held.lowest = arrival.parts[0]->lowest;
      for (const Held* part : arrival.parts) held.contributions += part->contributions;
      const bool divides = op == ReduceOp::avg && held.contributions == goal.ranks;
      held.bytes =
          arrival.parts.size() == 1 ? arrival.parts[0]->bytes : with_element(type, [&]<class T>() {
            return folded<T>(arrival.parts, op, divides ? goal.ranks : 0);
          });
      news.emplace_back(where, std::move(held));
    }
    for (auto& [where, held] : news) memory[where] = std::move(held);
  }
  for (Rank r = 0; r < schedule.ranks; ++r) {
    Image& image = before[static_cast<std::size_t>(r)];
    for (Block b = 0; b < schedule.blocks; ++b) {
      const auto held = memory.find({r, b});
      if (!goal.must_hold(r, b) || held == memory.end()) continue;
      const BlockHome& home = layout.blocks[static_cast<std::size_t>(b)];
      if (home.bytes == 0) continue;
      std::memcpy(image.bytes.data() + image.output + home.output, held->second.bytes.data(),
                  home.bytes);
    }
  }
  return before;
}

namespace {

constexpr std::size_t kGuard = 64;  // bytes around buffers, which must not change

// --- Schedules

class Generator {
 public:
  Generator(Random& random, const CollectiveSpec& goal, const Layout& layout)
      : random_(random), goal_(goal), layout_(layout), planes_(1 + random.below(3)) {
    const auto places = static_cast<std::size_t>(goal.ranks * goal.blocks * planes_);
    present_.assign(places, false);
    written_.assign(places, Written::nothing);
    for (Rank r = 0; r < goal.ranks; ++r) {
      for (Block b = 0; b < goal.blocks; ++b) {
        if (goal.initially_holds(r, b)) present_[cell(r, b, 0)] = true;
      }
    }
  }

  Schedule make() {
    const int count = random_.below(7);
    auto all = std::make_shared<std::vector<std::vector<Transfer>>>();
    for (int k = 0; k < count; ++k) {
      round_.clear();
      std::fill(written_.begin(), written_.end(), Written::nothing);
      for (int i = random_.between(1, 4); i > 0; --i) add_pattern();
      for (std::size_t i = 0; i < present_.size(); ++i) {
        if (written_[i] != Written::nothing) present_[i] = true;
      }
      all->push_back(round_);
    }
    Schedule schedule{goal_.ranks, goal_.blocks, count, {}, {}, planes_};
    schedule.round = [all](int k, Send send) {
      for (const Transfer& t : (*all)[static_cast<std::size_t>(k)]) send.exactly(t);
    };
    return schedule;
  }

 private:
  enum class Written : std::uint8_t { nothing, copied, added };

  std::size_t cell(Rank r, Block b, int plane) const {
    return static_cast<std::size_t>((r * planes_ + plane) * goal_.blocks + b);
  }

  // Adds the transfer if it is legal beside the transfers of the round.
  void add(const RankSet& from, const RankSet& to, const BlockSet& what, const BlockSet& where,
           TransferKind kind) {
    const Transfer t{from.modulo(goal_.ranks),
                     to.modulo(goal_.ranks),
                     {what.list.modulo(goal_.blocks), what.plane},
                     {where.list.modulo(goal_.blocks), where.plane},
                     kind};
    const std::vector<int> sources = t.what.list.to_vector(), targets = t.where.list.to_vector();
    if (sources.size() != targets.size()) return;
    if (kind == copy && t.from.size() > 1) return;
    for (std::size_t i = 0; i < sources.size(); ++i) {
      if (bytes(sources[i]) != bytes(targets[i])) return;
      bool legal = true;
      t.from.for_each([&](Rank r) { legal &= present_[cell(r, sources[i], what.plane)]; });
      t.to.for_each([&](Rank r) {
        const Written written = written_[cell(r, targets[i], where.plane)];
        legal &= written == Written::nothing || (written == Written::added && kind == reduce);
      });
      if (!legal) return;
    }
    if (kind == copy && (has_twice(targets) || has_twice(t.to.to_vector()))) return;
    for (const int target : targets) {
      t.to.for_each([&](Rank r) {
        written_[cell(r, target, where.plane)] = kind == copy ? Written::copied : Written::added;
      });
    }
    round_.push_back(t);
  }

  static bool has_twice(std::vector<int> values) {
    std::sort(values.begin(), values.end());
    return std::adjacent_find(values.begin(), values.end()) != values.end();
  }

  std::size_t bytes(Block b) const { return layout_.blocks[static_cast<std::size_t>(b)].bytes; }
  Rank any_rank() { return random_.below(goal_.ranks); }
  int any_plane() { return random_.one_in(2) ? 0 : random_.below(planes_); }
  TransferKind any_act() { return random_.one_in(2) ? copy : reduce; }

  RankSet any_ranks() {
    if (random_.one_in(3)) return ranks_from(any_rank(), goal_.ranks);
    if (random_.one_in(2)) return ranks_from(any_rank(), random_.between(1, goal_.ranks));
    return IndexList(any_rank()) + IndexList(any_rank());
  }

  IndexList any_blocks() {
    const int b = random_.below(goal_.blocks);
    switch (random_.below(5)) {
      case 0:
        return IndexList(Run{0, goal_.blocks, 1});
      case 1:
        return IndexList(Run{b, random_.between(1, goal_.blocks), 1});
      case 2:
        return IndexList(Run{b, random_.between(1, (goal_.blocks + 1) / 2), 2});
      case 3:
        return IndexList(b) + IndexList(random_.below(goal_.blocks));
      default:
        return IndexList(b);
    }
  }

  void add_pattern() {
    const int n = goal_.ranks;
    const TransferKind kind = any_act();
    const int plane = any_plane(), to_plane = random_.one_in(3) ? any_plane() : plane;
    const IndexList list = any_blocks();
    const BlockSet what{list, plane}, where{list, to_plane};
    switch (random_.below(10)) {
      case 0: {  // partners exchange, as in recursive doubling
        const int distance = 1 << random_.below(4);
        for (Rank r = 0; r < n; ++r) {
          if ((r ^ distance) < n) add(r, r ^ distance, what, where, kind);
        }
        break;
      }
      case 1: {  // every rank passes on, as in a ring
        const int step = random_.between(1, n), slope = random_.between(0, 2);
        const int b = random_.below(goal_.blocks);
        for (Rank r = 0; r < n; ++r) {
          add(r, r + step, block(b + slope * r, plane), block(b + slope * r, to_plane), kind);
        }
        break;
      }
      case 2:  // multicast
        add(any_rank(), any_ranks(), what, where, kind);
        break;
      case 3:  // many to one
        add(any_ranks(), any_rank(), what, where, reduce);
        break;
      case 4:  // many to many
        add(any_ranks(), any_ranks(), what, where, reduce);
        break;
      case 5: {  // local work
        const Rank r = any_rank();
        add(r, r, what, where, kind);
        break;
      }
      case 6: {  // two blocks exchange their places
        const Rank r = any_rank(), q = any_rank();
        const int a = random_.below(goal_.blocks), b = random_.below(goal_.blocks);
        add(r, q, block(a, plane), block(b, to_plane), kind);
        add(q, r, block(b, to_plane), block(a, plane), kind);
        break;
      }
      case 7: {  // all to all, each rank sends one block
        const int b = random_.below(goal_.blocks);
        for (Rank r = 0; r < n; ++r) {
          for (Rank q = 0; q < n; ++q) {
            if (q != r) add(r, q, block(b + q, plane), block(b + q, to_plane), kind);
          }
        }
        break;
      }
      case 8: {  // every rank sends to all others
        for (Rank r = 0; r < n; ++r) add(r, ranks_from(r + 1, n - 1), what, where, kind);
        break;
      }
      default:
        add(any_rank(), any_rank(), what, BlockSet{any_blocks(), to_plane}, kind);
    }
  }

  Random& random_;
  const CollectiveSpec& goal_;
  const Layout& layout_;
  const int planes_;
  std::vector<bool> present_;
  std::vector<Written> written_;
  std::vector<Transfer> round_;
};

// --- Sizes and memory

std::vector<std::size_t> random_counts(Random& random, std::size_t blocks, int most) {
  const int style = random.below(5);
  const int common = style == 0 ? random.below(4) : random.below(most + 1);
  std::vector<std::size_t> counts(blocks, static_cast<std::size_t>(common));
  if (style == 4) {
    for (auto& n : counts)
      n = static_cast<std::size_t>(random.one_in(3) ? 0 : random.below(most + 1));
  }
  return counts;
}

// Values with finite sums; float types also stay free of NaN.
void fill_with_values(Random& random, DataType type, std::vector<std::byte>& bytes,
                      std::size_t begin, std::size_t end) {
  with_element(type, [&]<class T>() {
    for (std::size_t i = begin; i + sizeof(T) <= end; i += sizeof(T)) {
      T value;
      if constexpr (std::is_integral_v<T>) {
        value = static_cast<T>(random.next());
      } else if constexpr (std::is_same_v<T, Bool>) {
        value = Bool((random.next() & 1) != 0);
      } else if constexpr (Complex<T>) {
        const auto part = [&] {
          return static_cast<typename T::value_type>(random.below(1 << 12)) / 2048;
        };
        value = T(part(), part());
      } else {
        value = static_cast<T>(static_cast<float>(random.below(1 << 12)) / 2048.0F);
      }
      std::memcpy(bytes.data() + i, &value, sizeof(T));
    }
  });
}

std::ptrdiff_t in_place_offset(const Layout& layout, const CollectiveSpec& goal, Rank r,
                               bool& possible) {
  possible = false;
  if (goal.collective == Collective::all_to_all) {
    possible = true;
    return 0;
  }
  for (Block b = 0; b < goal.blocks; ++b) {
    const BlockHome& home = layout.blocks[static_cast<std::size_t>(b)];
    if (home.bytes == 0 || !goal.initially_holds(r, b) || !goal.must_hold(r, b)) continue;
    possible = true;
    return static_cast<std::ptrdiff_t>(home.output) - static_cast<std::ptrdiff_t>(home.input);
  }
  return 0;
}

Image random_image(Random& random, const TestCall& call, const Layout& layout, bool in_place,
                   Rank r) {
  const std::size_t in = input_bytes(layout, call.goal, r);
  const std::size_t out = output_bytes(layout, call.goal, r);
  const auto skew = static_cast<std::size_t>(random.one_in(2) ? 0 : random.below(70));
  Image image;
  bool possible = false;
  const std::ptrdiff_t ahead = in_place_offset(layout, call.goal, r, possible);  // in - out
  if (in_place && possible) {
    image.output = kGuard + skew + (ahead < 0 ? static_cast<std::size_t>(-ahead) : 0);
    image.input = static_cast<std::size_t>(static_cast<std::ptrdiff_t>(image.output) + ahead);
  } else if (random.one_in(2)) {
    image.input = kGuard + skew;
    image.output = image.input + in + kGuard;
  } else {
    image.output = kGuard + skew;
    image.input = image.output + out + kGuard;
  }
  image.bytes.resize(std::max(image.input + in, image.output + out) + kGuard);
  for (auto& byte : image.bytes) byte = static_cast<std::byte>(random.next());
  fill_with_values(random, call.type, image.bytes, image.input, image.input + in);
  return image;
}

bool fits(const Layout& layout, std::size_t slot_payload) {
  std::size_t bytes = 0;  // neighbouring blocks may travel together
  for (const BlockHome& block : layout.blocks) bytes += block.bytes;
  return bytes <= slot_payload;
}

}  // namespace

Schedule random_schedule(Random& random, const CollectiveSpec& goal, const Layout& layout) {
  return Generator(random, goal, layout).make();
}

Result<Plan> make_plan(const Schedule& schedule, const CollectiveSpec& goal, const Layout& layout,
                       Buffers buffers, Transport transport, const LowerOptions& lower,
                       const ProgramOptions& program_options, const Passes& passes) {
  const bool copies = passes.copy_then_reduce && goal.collective == Collective::all_reduce &&
                      transport == Transport::direct && buffers == Buffers::apart;
  auto program =
      make_program(schedule, goal, layout, copies ? Buffers::in_place : buffers, program_options);
  if (!program.ok()) return program.status();
  if (transport == Transport::mailbox) return lower_mailbox(*program, lower);
  if (transport == Transport::board) return lower_board(*program, lower);
  if (passes.stages.has_value()) {
    StageOptions stages = *passes.stages;
    stages.element_bytes = layout.element_bytes;
    if (passes.turns.has_value()) {
      *program = in_turns(std::move(*program), schedule, goal, layout, buffers, program_options,
                          *passes.turns);
    }
    LowerOptions staged = lower;
    staged.staged_first = stages.piece;
    staged.ahead_max_bytes = passes.ahead_max_bytes;
    return lower_direct(stage(*program, stages), staged);
  }
  if (copies) *program = copy_then_reduce(std::move(*program));
  if (goal.collective == Collective::all_reduce) {
    if (passes.copy_local_first_from > 0)
      *program = copy_local_first(*program, buffers, passes.copy_local_first_from);
    if (passes.pushes) push(*program, buffers, passes.push_mutant);
  } else if (goal.collective == Collective::reduce && passes.pushes) {
    push(*program, Buffers::in_place, passes.push_mutant);
  } else if (passes.shares.has_value() && !reduces(goal.collective)) {
    *program = split_copies(*program, *passes.shares);
  }
  return lower_direct(*program, lower);
}

namespace {

// Options for the sizes of random calls.
std::optional<ShareOptions> random_shares(Random& random) {
  if (random.one_in(2)) return std::nullopt;
  return ShareOptions{.from = 1, .streams = random.one_in(2), .stream_from = 1};
}
std::optional<StageOptions> random_stages(Random& random) {
  if (random.one_in(4)) return std::nullopt;
  return StageOptions{.stream = random.one_in(2) ? std::size_t{1} : std::size_t{1} << 20,
                      .piece = static_cast<std::size_t>(random.between(1, 300))};
}

std::optional<TurnOptions> random_turns(Random& random) {
  if (random.one_in(3)) return std::nullopt;
  return TurnOptions{.scratch = static_cast<std::size_t>(random.between(1, 600)),
                     .part = static_cast<std::size_t>(random.between(1, 200))};
}

}  // namespace

TestCall random_call(Random& random, const CallRules& rules) {
  static const std::vector<Collective> kCollectivesWithData = {
      Collective::broadcast,  Collective::reduce,     Collective::all_reduce,
      Collective::all_reduce, Collective::all_reduce, Collective::reduce_scatter,
      Collective::all_gather, Collective::all_to_all, Collective::gather,
      Collective::scatter,    Collective::send_recv,  Collective::scan,
      Collective::exscan};
  static const std::vector<DataType> kTypes = {DataType::u32, DataType::f32, DataType::u8,
                                               DataType::f64, DataType::i64, DataType::bf16};
  static const std::vector<ReduceOp> kOps = {ReduceOp::sum, ReduceOp::sum, ReduceOp::max,
                                             ReduceOp::avg};
  for (;;) {
    TestCall call;
    call.type = random.pick(kTypes);
    call.op = random.pick(kOps);
    CollectiveSpec& goal = call.goal;
    goal.ranks = rules.ranks;
    goal.root = random.below(goal.ranks);
    goal.peer = random.below(goal.ranks);
    if (rules.algorithm != nullptr) {
      Params params{.ranks = goal.ranks, .root = goal.root, .peer = goal.peer};
      if (rules.algorithm->takes("segments")) params.segments = random.between(1, 4);
      call.schedule = rules.algorithm->make(params);
      goal = goal_of(*rules.algorithm, params, call.schedule);
    } else {
      goal.collective = random.pick(kCollectivesWithData);
    }
    const int natural = natural_blocks(goal.collective, goal.ranks);
    if (rules.algorithm == nullptr) {
      const bool whole = random.one_in(2) || natural > 12;
      goal.blocks = natural * (whole ? 1 : random.between(1, natural == 1 ? 9 : 3));
    }
    const auto counts = random_counts(random, static_cast<std::size_t>(natural),
                                      natural > 12 ? rules.most_elements / 8 : rules.most_elements);
    const Borders borders =
        natural == 1 && !random.one_in(3) ? Borders::cache_lines : Borders::plain;
    const Layout layout = make_layout(goal, counts, size_of(call.type), borders);
    const bool in_place = random.one_in(2);
    const bool matters =
        goal.collective == Collective::all_reduce || goal.collective == Collective::all_to_all;
    const Buffers buffers = in_place && matters ? Buffers::in_place : Buffers::apart;
    if (rules.algorithm == nullptr) call.schedule = random_schedule(random, goal, layout);
    const Transport transport = rules.transport.value_or(random.one_in(3)   ? Transport::board
                                                         : random.one_in(2) ? Transport::direct
                                                                            : Transport::mailbox);
    LowerOptions lower;
    lower.slot_payload = rules.slot_payload;
    lower.board_bytes = kTestBoard;
    lower.mutant = rules.mutant;
    lower.nodes = rules.nodes;
    lower.mailbox_capacity = rules.mailbox_capacity;
    if (rules.mailbox_capacity == 0) {
      lower.mailbox_capacity = random.one_in(2) ? 8 : random.between(1, 8);
    }
    lower.ports = rules.ports.value_or(random.one_in(3) ? random.between(1, 4) : 0);
    ProgramOptions program = rules.program;
    program.eager =
        transport == Transport::board ||
        (transport == Transport::mailbox && fits(layout, rules.slot_payload) && random.one_in(2));
    program.staged &= !program.eager;
    // Stages exclude the other passes.
    const Passes passes = rules.program.staged
                              ? rules.passes.value_or(Passes{
                                    .stages = random_stages(random),
                                    .turns = random_turns(random),
                                    .ahead_max_bytes = random.one_in(2) ? std::size_t{1} << 20 : 0})
                              : rules.passes.value_or(Passes{
                                    .copy_then_reduce = random.one_in(2),
                                    .pushes = random.one_in(2),
                                    .copy_local_first_from = random.one_in(2)   ? std::size_t{0}
                                                             : random.one_in(2) ? 1u
                                                                                : 200u,
                                    .shares = random_shares(random)});
    auto plan = make_plan(call.schedule, goal, layout, buffers, transport, lower, program, passes);
    if (!plan.ok()) {
      // A legal schedule may be refused for these reasons: too many messages at once, too much to
      // post.
      if (plan.status().text().starts_with(std::string(name_of(transport)) + ":")) continue;
      call.text = plan.status().text() + "\n" + to_string(call.schedule);
      return call;  // without memory: the caller's check fails and shows the text
    }
    call.plan = std::move(*plan);
    if (rules.program.staged) await_readers(call.plan);
    call.in_turns = passes.turns.has_value();
    call.plan.exchanges = is_exchange(call.plan);
    call.plan.fold = find_reduce(call.type, call.op);
    call.plan.spread = find_spread(call.type, call.op, best_isa());
    call.plan.element_bytes = size_of(call.type);
    call.plan.divisor = call.op == ReduceOp::avg ? goal.ranks : 0;
    for (Rank r = 0; r < goal.ranks; ++r) {
      call.before.push_back(random_image(random, call, layout, in_place, r));
    }
    call.layout = layout;
    call.after = execute_literally(call.schedule, goal, layout, call.type, call.op, call.before);
    if (rules.algorithm != nullptr) call.text = std::string(rules.algorithm->name) + " ";
    call.text += std::string(name_of(goal.collective)) + " " + std::string(name_of(call.type)) +
                 " " + std::string(name_of(call.op)) + ", " + std::to_string(goal.ranks) +
                 " ranks, root " + std::to_string(goal.root) + ", " +
                 std::string(name_of(transport)) + (in_place ? ", in place" : ", apart") +
                 (program.staged ? ", staged" : "") + ", counts";
    for (const std::size_t n : counts) call.text += " " + std::to_string(n);
    return call;
  }
}

std::string to_string(const Schedule& schedule) {
  const auto list = [](const IndexList& indices) {
    std::string text;
    indices.for_each([&](int i) { text += (text.empty() ? "" : ",") + std::to_string(i); });
    return text;
  };
  const auto place = [&](const BlockSet& set) {
    return "[" + list(set.list) + "]" + (set.plane > 0 ? "'" + std::to_string(set.plane) : "");
  };
  std::string text = std::to_string(schedule.ranks) + " ranks, " + std::to_string(schedule.blocks) +
                     " blocks, " + std::to_string(schedule.planes) + " planes\n";
  for (int k = 0; k < schedule.rounds; ++k) {
    text += "round " + std::to_string(k) + "\n";
    for_each_transfer(schedule, k, [&](const Transfer& t) {
      text += "  " + list(t.from) + " -> " + list(t.to) + "  " + place(t.what) + " -> " +
              place(t.where) + (t.kind == copy ? "  copy\n" : "  reduce\n");
    });
  }
  return text;
}

std::string difference_between(const Image& got, const Image& wanted) {
  for (std::size_t i = 0; i < wanted.bytes.size(); ++i) {
    if (got.bytes[i] == wanted.bytes[i]) continue;
    return "byte " + std::to_string(i) + " (in " + std::to_string(wanted.input) + ", out " +
           std::to_string(wanted.output) + ", all " + std::to_string(wanted.bytes.size()) +
           ") is " + std::to_string(static_cast<int>(got.bytes[i])) + ", should be " +
           std::to_string(static_cast<int>(wanted.bytes[i]));
  }
  return {};
}

}  // namespace rankine
