#include "engine/cli/formats/buffers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <queue>
#include <tuple>
#include <utility>

#include "engine/network/port_model.h"

namespace rankine::tools {

Status at_line(int line, const std::string& text) {
  return invalid_argument(fmt::format("line {}: {}", line, text));
}

void wrong(const Json& object, const std::string& text) {
  const bool known = object.is_object() && object.contains("line");
  throw WrongObject{at_line(known ? object["line"].get<int>() : 1, text)};
}

namespace {

const Json& member_of(const Json& object, const char* member) {
  if (!object.is_object() || !object.contains(member)) {
    wrong(object, fmt::format("{} is missing", member));
  }
  return object[member];
}

}  // namespace

const Json& list(const Json& object, const char* member) {
  static const Json none = Json::array();
  if (object.is_object() && !object.contains(member)) return none;
  const Json& value = member_of(object, member);
  if (!value.is_array()) wrong(object, bad_member(member, value, "lists").text());
  return value;
}

std::string word(const Json& object, const char* member) {
  const Json& value = member_of(object, member);
  if (!value.is_string()) wrong(object, bad_member(member, value, "texts").text());
  return value.get<std::string>();
}

int number(const Json& object, const char* member, const Json& value, int lowest, int highest) {
  const auto read = parse_whole(member, value.is_string() ? value.get<std::string>() : value.dump(),
                                lowest, highest);
  if (!read.ok()) wrong(object, read.status().text());
  return *read;
}
int number(const Json& object, const char* member, int lowest, int highest) {
  return number(object, member, member_of(object, member), lowest, highest);
}
int number_or(int otherwise, const Json& object, const char* member, int lowest, int highest) {
  return object.contains(member) ? number(object, member, lowest, highest) : otherwise;
}

char buffer(const Json& object, const char* member) {
  const std::string name = word(object, member);
  if (name != "i" && name != "o" && name != "s") {
    wrong(object, fmt::format("{} is '{}'; allowed are i, o and s", member, legible(name)));
  }
  return name[0];
}

Result<std::string_view> library_name(Collective collective, std::string_view reduce_scatter) {
  constexpr std::string_view kNames[] = {"broadcast", "reduce",    "allreduce",
                                         "",          "allgather", "alltoall"};
  const auto index = static_cast<std::size_t>(collective);
  if (collective == Collective::reduce_scatter) return reduce_scatter;
  if (index < std::size(kNames)) return kNames[index];
  return invalid_argument(fmt::format("the format has no {}", name_of(collective)));
}

Collective read_library_name(const Json& object, const char* member,
                             std::string_view reduce_scatter) {
  const std::string name = word(object, member);
  std::vector<std::string_view> allowed;
  for (const Collective c : all_collectives()) {
    const auto own = library_name(c, reduce_scatter);
    if (own.ok() && *own == name) return c;
    if (own.ok()) allowed.push_back(*own);
  }
  wrong(object, unknown_name(member, name, allowed).text());
}

BufferProgram begin_program(const Json& head, Collective collective, int ranks, int chunks,
                            bool in_place) {
  const bool pairs = collective == Collective::all_to_all;
  constexpr std::int64_t kMostChunks = std::int64_t{1} << 26;
  const std::int64_t blocks = std::int64_t{chunks} * (pairs ? ranks : 1);
  if (blocks > kMostWrittenBlocks || blocks * ranks > kMostChunks) {
    wrong(head, fmt::format("{} chunks among {} ranks are too many", chunks, ranks));
  }
  ScheduleHead begin{.collective = collective, .ranks = ranks, .blocks = static_cast<int>(blocks)};
  if (has_root(collective)) begin.root = number_or(0, head, "root", 0, ranks - 1);
  const auto begun = begin_schedule(begin);
  if (!begun.ok()) wrong(head, begun.status().text());
  return {.goal = begun->goal, .layout = BufferLayout(begun->goal, in_place)};
}

Result<WrittenSchedule> read_objects(const std::function<BufferProgram()>& read) {
  try {
    return schedule_of(read());
  } catch (const WrongObject& error) {
    return error.status;
  }
}

BufferLayout::BufferLayout(const CollectiveSpec& goal, bool is_in_place)
    : in_place(is_in_place),
      input(static_cast<std::size_t>(goal.ranks)),
      output(input),
      scratch(input.size(), 0) {
  for (Rank r = 0; r < goal.ranks; ++r) {
    for (Block b = 0; b < goal.blocks; ++b) {
      if (goal.initially_holds(r, b)) at(input, r).push_back(b);
      if (goal.must_hold(r, b)) at(output, r).push_back(b);
    }
  }
}

BufferLayout BufferLayout::of_planes(const CollectiveSpec& goal, int planes) {
  BufferLayout out(goal, true);
  for (Rank r = 0; r < goal.ranks; ++r) {
    at(out.input, r).assign(static_cast<std::size_t>(goal.blocks), -1);
    at(out.output, r) = at(out.input, r);
    for (Block b = 0; b < goal.blocks; ++b) {
      if (goal.initially_holds(r, b)) at(at(out.input, r), b) = b;
      if (goal.must_hold(r, b)) at(at(out.output, r), b) = b;
    }
    at(out.scratch, r) = (planes - 1) * goal.blocks;
  }
  return out;
}

int BufferLayout::chunks(Rank r, char buffer) const {
  if (buffer == 's') return at(scratch, r);
  const auto size = [&](const auto& blocks) { return static_cast<int>(at(blocks, r).size()); };
  // In place the name of either buffer may stand for both.
  if (in_place) return std::max(size(input), size(output));
  return buffer == 'i' ? size(input) : size(output);
}

BufferPlace BufferLayout::named(BufferPlace place) const {
  if (!in_place || place.buffer == 's') return place;
  const auto& in = at(input, place.rank);
  const auto& out = at(output, place.rank);
  const bool is_input = place.buffer == 'i';
  const bool in_input = in.size() >= out.size();  // the longer one, which holds both
  if (is_input == in_input) return place;
  const auto& held = in_input ? out : in;
  const auto& holds = in_input ? in : out;
  if (!held.empty() && held.size() < holds.size()) {
    const auto first = std::find(holds.begin(), holds.end(), held.front());
    if (first != holds.end()) place.chunk += static_cast<int>(first - holds.begin());
  }
  place.buffer = in_input ? 'i' : 'o';
  return place;
}

BufferPlace BufferLayout::place_of(Rank r, Block b) const {
  for (const char buffer : {'i', 'o'}) {
    const auto& blocks = at(buffer == 'i' ? input : output, r);
    const auto found = std::lower_bound(blocks.begin(), blocks.end(), b);
    if (found == blocks.end() || *found != b) continue;
    return named({r, buffer, static_cast<int>(found - blocks.begin())});
  }
  return {r, 's', -1};
}

bool BufferStep::is_local() const {
  if (mate >= 0) return false;
  std::optional<Rank> rank;
  for (const auto* places : {&from, &to}) {
    for (const BufferPlace& place : *places) {
      if (rank.value_or(place.rank) != place.rank) return false;
      rank = place.rank;
    }
  }
  return true;
}

namespace {

std::string text_of(const BufferPlace& place) {
  const char* name = place.buffer == 'i' ? "input" : place.buffer == 'o' ? "output" : "scratch";
  return fmt::format("chunk {} of rank {}'s {}", place.chunk, place.rank, name);
}

// Follows every chunk. A value is one block's partial sum at one rank, and never changes. Values
// get planes at the end, when their last reads are known.
class Follower {
 public:
  explicit Follower(const BufferProgram& program) : program_(program), layout_(program.layout) {}

  Result<WrittenSchedule> run() {
    for (Rank r = 0; r < program_.goal.ranks; ++r) {
      const auto& blocks = at(layout_.input, r);
      for (std::size_t i = 0; i < blocks.size(); ++i) {
        if (blocks[i] < 0) continue;
        cells_[layout_.named({r, 'i', static_cast<int>(i)})].value =
            add_value({.rank = r, .block = blocks[i]});
      }
    }
    for (Status status : {follow_all(), take_outputs()}) {
      if (!status.ok()) return status;
    }
    for (int v = 0; v < static_cast<int>(values_.size()); ++v) {
      if (!at(values_, v).taken) settle(v);
    }
    return write();
  }

 private:
  struct Value {
    Rank rank = 0;
    Block block = 0;
    int made = -1;       // the round that makes it; -1: there at the start
    int last_read = -1;  // the last round that reads it
    int line = 0, group = 0;
    int source = -1;       // a message: the value that it copies
    bool settled = false;  // a message: it is a transfer of its own
    bool taken = false;    // a message: a sum took it directly
    bool joined = false;   // a message: others of its round are added to it
    int base = -1;         // a sum: the value that it adds to
    int sum = -1;          // the last sum that adds to this value
    bool is_output = false;
    int chain = -1;
  };
  struct Edge {
    int round, from, to;
    TransferKind kind;
    int line, group;
  };
  struct Cell {
    int value = -1, line = 0;
    std::vector<int> writers{}, readers{};  // steps since the last write that replaced it
  };
  // Values that share a place: each but the first adds to the one before.
  struct Chain {
    Rank rank = 0;
    Block block = 0;
    int made = -1, end = 0;  // rounds: written, and read for the last time
    bool is_output = false, is_first = false;
    bool fresh = false;  // it begins with reductions into an empty place
    int plane = -1, last = -1;
  };

  int add_value(Value value) {
    values_.push_back(value);
    return static_cast<int>(values_.size()) - 1;
  }
  int ready(int v) const { return at(values_, v).made + 1; }
  void read(int v, int round) {
    settle(v);
    at(values_, v).last_read = std::max(at(values_, v).last_read, round);
  }
  // Makes a message a transfer of its own, into a place of its own.
  void settle(int v) {
    Value& value = at(values_, v);
    if (value.source < 0 || value.settled) return;
    value.settled = true;
    const TransferKind kind = value.joined ? TransferKind::reduce : TransferKind::copy;
    const Edge edge{value.made, value.source, v, kind, value.line, value.group};
    read(edge.from, edge.round);
    edges_.push_back(edge);
  }

  // --- Order

  Status follow_all() {
    const std::size_t all = program_.steps.size(), threads = program_.threads.size();
    constexpr std::uint64_t kMostClocks = std::uint64_t{1} << 32;
    if (std::uint64_t{all} * threads > kMostClocks) {
      return invalid_argument(fmt::format("{} steps of {} threads are too many", all, threads));
    }
    std::vector<int> waits(all, 0), last(threads, -1);
    std::vector<std::vector<std::pair<int, bool>>> next(all);  // true: an order that the file gives
    position_.resize(all);
    level_.assign(all, 0);
    results_.resize(all);
    clock_.resize(all);
    group_.resize(all);
    send_free_.assign(threads, 0);
    receive_free_.assign(threads, 0);
    before_.resize(all);
    for (int i = 0; i < static_cast<int>(all); ++i) {
      const BufferStep& step = at(program_.steps, i);
      const auto wait = [&](int before, bool given) {
        ++at(waits, i);
        at(next, before).emplace_back(i, given);
        at(before_, i).push_back(before);
      };
      const int previous = std::exchange(at(last, step.thread), i);
      at(position_, i) = previous < 0 ? 1 : at(position_, previous) + 1;
      at(group_, i) = previous >= 0 && is_one_message(at(program_.steps, previous), step)
                          ? at(group_, previous)
                          : i;
      if (previous >= 0) wait(previous, true);
      if (step.mate >= 0) wait(step.mate, true);
      for (const int before : step.after) wait(before, true);
      for (const int before : step.executed) wait(before, false);
    }
    std::priority_queue<int, std::vector<int>, std::greater<>> ready;
    for (int i = 0; i < static_cast<int>(all); ++i) {
      if (at(waits, i) == 0) ready.push(i);
    }
    std::size_t done = 0;
    for (; !ready.empty(); ++done) {
      const int i = ready.top();
      ready.pop();
      std::vector<int>& clock = at(clock_, i);
      clock.resize(threads, 0);
      if (Status status = follow(i); !status.ok()) return at_line(line_, status.text());
      at(clock, at(program_.steps, i).thread) = at(position_, i);
      for (const auto& [other, given] : at(next, i)) {
        if (given) {
          std::vector<int>& later = at(clock_, other);
          later.resize(threads, 0);
          std::transform(clock.begin(), clock.end(), later.begin(), later.begin(),
                         [](int a, int b) { return std::max(a, b); });
        }
        if (--at(waits, other) == 0) ready.push(other);
      }
      std::vector<int>().swap(clock);
    }
    return done == all ? Status() : circle(waits);
  }

  // Pieces of one message: neighbours of a thread with equal peers and one given round.
  bool is_one_message(const BufferStep& a, const BufferStep& b) const {
    const auto thread_of = [this](int step) {
      return step < 0 ? -1 : at(program_.steps, step).thread;
    };
    return a.round >= 0 && a.round == b.round && thread_of(a.mate) == thread_of(b.mate);
  }

  // The error of steps that wait for each other.
  Status circle(const std::vector<int>& waits) const {
    std::vector<bool> seen(waits.size(), false);
    int i = static_cast<int>(std::find_if(waits.begin(), waits.end(), [](int n) { return n > 0; }) -
                             waits.begin());
    while (!seen[static_cast<std::size_t>(i)]) {
      seen[static_cast<std::size_t>(i)] = true;
      for (const int before : at(before_, i)) {
        if (at(waits, before) > 0) i = before;
      }
    }
    int other = i;
    for (const int before : at(before_, i)) other = at(waits, before) > 0 ? before : other;
    return at_line(at(program_.steps, i).line,
                   fmt::format("the step waits for itself, by the step of line {}",
                               at(program_.steps, other).line));
  }

  bool is_before(int a, int b) const {
    return at(at(clock_, b), at(program_.steps, a).thread) >= at(position_, a);
  }

  // --- One step

  Status follow(int i) {
    const BufferStep& step = at(program_.steps, i);
    line_ = step.line;
    const Rank home = at(program_.threads, step.thread).rank;
    int round = std::max(step.round, 0);
    for (const int before : at(before_, i)) round = std::max(round, at(level_, before));
    // The operands of each chunk, in the order in which they are added.
    std::vector<std::vector<int>> operands(static_cast<std::size_t>(step.count));
    for (const BufferPlace& first : step.from) {
      for (int c = 0; c < step.count; ++c) {
        const auto value = read_cell(i, {first.rank, first.buffer, first.chunk + c});
        if (!value.ok()) return value.status();
        at(operands, c).push_back(*value);
      }
    }
    std::vector<int>& result = at(results_, i);
    if (step.mate >= 0) {
      const std::vector<int>& sent = at(results_, step.mate);
      if (static_cast<int>(sent.size()) != step.count) {
        return invalid_argument(
            fmt::format("the message has {} chunks, and the step of line {} sends {}", step.count,
                        at(program_.steps, step.mate).line, sent.size()));
      }
      for (int c = 0; c < step.count; ++c) at(operands, c).push_back(at(sent, c));
    }
    const bool moves = !step.is_local();
    if (moves) {
      round = std::max(round, message_round(step));
      for (const auto& values : operands) {
        for (std::size_t n = 0; n < values.size(); ++n) {
          const bool is_base = n == 0 && values.size() > 1;
          if (!is_base || !joins(step, values[n])) round = std::max(round, ready(values[n]));
        }
      }
      if (step.mate >= 0) at(send_free_, at(program_.steps, step.mate).thread) = round + 1;
      (step.mate >= 0 ? at(receive_free_, step.thread) : at(send_free_, step.thread)) = round + 1;
    }
    for (int c = 0; c < step.count; ++c) {
      auto sum = sum_of(i, home, round, at(operands, c));
      if (!sum.ok()) return sum.status();
      result.push_back(*sum);
      for (const BufferPlace& first : step.to) {
        Status status = write_cell(i, {first.rank, first.buffer, first.chunk + c}, *sum, round);
        if (!status.ok()) return status;
      }
    }
    at(level_, i) = round;
    return {};
  }

  // Several additions of one given round are one addition.
  bool joins(const BufferStep& step, int v) const {
    const Value& value = at(values_, v);
    const bool can = value.base >= 0 || (value.source >= 0 && !value.settled);
    return can && step.round >= 0 && value.made == step.round;
  }

  // A thread sends one message in a round, and receives one; given rounds go before.
  int message_round(const BufferStep& step) const {
    if (step.round >= 0) return step.round;
    if (step.mate < 0) return at(send_free_, step.thread);
    return std::max(at(receive_free_, step.thread),
                    at(send_free_, at(program_.steps, step.mate).thread));
  }

  Result<int> read_cell(int i, BufferPlace place) {
    const auto found = cells_.find(layout_.named(place));
    if (found == cells_.end() || found->second.value < 0) {
      return invalid_argument(text_of(place) + " is read before anything is there");
    }
    const BufferStep& step = at(program_.steps, i);
    const auto holds = [&](const BufferPlace& to) {
      return std::tie(to.rank, to.buffer) == std::tie(place.rank, place.buffer) &&
             place.chunk >= to.chunk && place.chunk < to.chunk + step.count;
    };
    const bool adds = program_.renames && step.adds() && holds(step.to.front());
    for (const int writer : found->second.writers) {
      if (!adds && !is_before(writer, i)) return disordered("reads", place, writer);
    }
    found->second.readers.push_back(i);
    return found->second.value;
  }

  Status write_cell(int i, BufferPlace place, int value, int round) {
    Cell& cell = cells_[layout_.named(place)];
    const BufferStep& step = at(program_.steps, i);
    // Additions in any order give one sum; of bits, the one of the file's order.
    const bool adds = program_.renames && step.adds();
    for (const auto* steps : {&cell.writers, &cell.readers}) {
      if (adds || (program_.renames && steps == &cell.readers)) continue;
      for (const int other : *steps) {
        if (other != i && !is_before(other, i)) return disordered("overwrites", place, other);
      }
    }
    if (!adds) cell.writers.clear();
    cell.writers.push_back(i);
    cell.readers.clear();
    cell.line = step.line;
    cell.value = moved(i, value, place.rank, std::max(round, ready(value)));
    return {};
  }

  Status disordered(std::string_view does, BufferPlace place, int other) const {
    return invalid_argument(
        fmt::format("the step {} {}, and nothing says that the step of line {} ends before", does,
                    text_of(place), at(program_.steps, other).line));
  }

  // The value at rank r: itself, or its copy by a message of that round.
  int moved(int i, int v, Rank r, int round) {
    const Value& value = at(values_, v);
    if (value.rank == r) return v;
    return add_value({.rank = r,
                      .block = value.block,
                      .made = round,
                      .line = line_,
                      .group = at(group_, i),
                      .source = v});
  }

  Result<int> sum_of(int i, Rank home, int round, const std::vector<int>& operands) {
    if (operands.empty()) return invalid_argument("the step has no data");
    const BufferStep& step = at(program_.steps, i);
    // A single operand stays where it is until its receiver stores it; a message has arrived.
    int sum = operands.front();
    if (operands.size() > 1 || step.mate >= 0) sum = moved(i, sum, home, round);
    for (std::size_t n = 1; n < operands.size(); ++n) {
      const bool is_message = at(values_, operands[n]).rank != home;
      const int other = moved(i, operands[n], home, round);
      Value& added = at(values_, other);
      Value& base = at(values_, sum);
      if (base.block != added.block) {
        return invalid_argument(
            fmt::format("the step adds block {} to block {}", added.block, base.block));
      }
      const bool joined = joins(step, sum);
      base.joined = base.joined || joined;
      settle(sum);
      const int base_ready = joined ? base.made : ready(sum);
      Value made{
          .rank = home, .block = base.block, .line = line_, .group = at(group_, i), .base = sum};
      const bool arrives = added.source >= 0 && !added.settled && !added.taken;
      const bool in_time =
          is_message || (base_ready <= added.made && (step.round < 0 || step.round == added.made));
      int from = other;
      if (arrives && in_time) {  // the message itself is added, at its end
        added.taken = true;
        from = added.source;
        made.made = std::max(added.made, base_ready);
        made.group = added.group;
      } else {
        made.made = std::max({std::max(step.round, 0), base_ready, ready(other)});
      }
      if (base.sum < 0 || at(values_, base.sum).made <= made.made) {
        base.sum = static_cast<int>(values_.size());
      }
      read(from, made.made);
      sum = add_value(made);
      edges_.push_back({made.made, from, sum, TransferKind::reduce, line_, made.group});
    }
    return sum;
  }

  // --- Outputs and planes

  Status take_outputs() {
    for (Rank r = 0; r < program_.goal.ranks; ++r) {
      const auto& blocks = at(layout_.output, r);
      for (int c = 0; c < static_cast<int>(blocks.size()); ++c) {
        const BufferPlace place{r, 'o', c};
        const auto found = cells_.find(layout_.named(place));
        if (found == cells_.end() || found->second.value < 0 || at(blocks, c) < 0) continue;
        settle(found->second.value);
        Value& value = at(values_, found->second.value);
        if (value.block != at(blocks, c)) {
          return at_line(found->second.line,
                         fmt::format("{} ends with block {}, and needs block {}", text_of(place),
                                     value.block, at(blocks, c)));
        }
        value.is_output = true;
      }
    }
    return {};
  }

  Status make_chains() {
    for (int v = 0; v < static_cast<int>(values_.size()); ++v) {
      Value& value = at(values_, v);
      if (value.taken && !value.settled) continue;  // no place of its own
      const int end = std::max(value.last_read, value.made + 1);
      if (value.base >= 0) {
        const Value& base = at(values_, value.base);
        if (base.sum == v && !base.is_output && base.last_read <= value.made) {
          value.chain = base.chain;
        }
      }
      if (value.chain < 0) {
        value.chain = static_cast<int>(chains_.size());
        chains_.push_back({.rank = value.rank,
                           .block = value.block,
                           .made = value.made,
                           .is_first = value.made < 0,
                           .fresh = value.base >= 0 || (value.source >= 0 && value.joined)});
        if (value.base >= 0 && ready(value.base) > value.made) {
          return at_line(value.line, "the step gives the round of a sum that is read before");
        }
        if (value.base >= 0) {  // the base stays, so the sum gets it by a second addition
          read(value.base, value.made);
          Chain& kept = at(chains_, at(values_, value.base).chain);
          kept.end = std::max(kept.end, value.made);
          edges_.push_back(
              {value.made, value.base, v, TransferKind::reduce, value.line, value.group});
        }
      }
      Chain& chain = at(chains_, value.chain);
      chain.end = std::max(chain.end, end);
      chain.is_output = chain.is_output || value.is_output;
      chain.last = v;
    }
    return {};
  }

  // Plane 0 is for what a rank has at the start and what it needs at the end.
  void choose_planes() {
    std::map<std::pair<Rank, Block>, std::vector<Chain*>> cells;
    for (Chain& chain : chains_) cells[{chain.rank, chain.block}].push_back(&chain);
    for (auto& cell : cells) {
      std::vector<Chain*>& chains = cell.second;
      std::stable_sort(chains.begin(), chains.end(), [](const Chain* a, const Chain* b) {
        return std::tuple(!a->is_first, !a->is_output, a->made) <
               std::tuple(!b->is_first, !b->is_output, b->made);
      });
      constexpr int kEver = 1 << 30;
      for (std::size_t n = 0; n < chains.size(); ++n) {
        Chain& chain = *chains[n];
        const auto fits = [&](int plane) {
          return std::none_of(chains.begin(), chains.begin() + static_cast<std::ptrdiff_t>(n),
                              [&](const Chain* other) {
                                if (other->plane != plane) return false;
                                const int end = other->is_output ? kEver : other->end;
                                return chain.fresh || other->fresh ||
                                       (chain.made < end && other->made < chain.end) ||
                                       (chain.is_output && other->made > chain.made);
                              });
        };
        while (!fits(++chain.plane)) {
        }
        planes_ = std::max(planes_, chain.plane + 1);
      }
      for (const Chain* chain : chains) {
        if (!chain->is_output || chain->plane == 0) continue;
        int round = std::max(at(values_, chain->last).made + 1, 0);
        for (const Chain* other : chains) {
          if (other->plane == 0) round = std::max(round, other->end);
        }
        copies_.push_back(
            {round, chain->last, -1, TransferKind::copy, at(values_, chain->last).line, -1});
      }
    }
  }

  Result<WrittenSchedule> write() {
    if (Status status = make_chains(); !status.ok()) return status;
    choose_planes();
    edges_.insert(edges_.end(), copies_.begin(), copies_.end());
    std::stable_sort(edges_.begin(), edges_.end(),
                     [](const Edge& a, const Edge& b) { return a.round < b.round; });
    WrittenSchedule out{.goal = program_.goal, .planes = planes_, .rounds = {}};
    TransferWriter writer(out);
    const auto plane_of = [this](int v) { return at(chains_, at(values_, v).chain).plane; };
    for (std::size_t i = 0; i < edges_.size();) {
      const int k = edges_[i].round;
      while (static_cast<int>(out.rounds.size()) <= k) {
        if (Status status = writer.begin_round(); !status.ok()) return status;
      }
      std::vector<WrittenTransfer> round;
      std::map<std::tuple<int, Rank, Rank, TransferKind, int, int>, std::size_t> index;
      for (; i < edges_.size() && edges_[i].round == k; ++i) {
        const Edge& edge = edges_[i];
        const Value& value = at(values_, edge.from);
        const Rank to = edge.to < 0 ? value.rank : at(values_, edge.to).rank;
        const int what = plane_of(edge.from), where = edge.to < 0 ? 0 : plane_of(edge.to);
        const auto [found, is_new] = index.try_emplace(
            std::tuple(edge.group, value.rank, to, edge.kind, what, where), round.size());
        if (is_new) {
          round.push_back({{value.rank, to, {{}, what}, {{}, where}, edge.kind}, edge.line});
        }
        Transfer& t = round[found->second].transfer;
        t.what.list.append(Run{value.block, 1, 1});
        t.where.list.append(Run{value.block, 1, 1});
      }
      std::stable_sort(round.begin(), round.end(), [](const auto& a, const auto& b) {
        return a.transfer.from.front() < b.transfer.from.front();
      });
      for (WrittenTransfer& one : round) {
        if (Status status = writer.add(std::move(one)); !status.ok()) return status;
      }
    }
    return out;
  }

  const BufferProgram& program_;
  const BufferLayout& layout_;
  std::map<BufferPlace, Cell> cells_;
  std::vector<Value> values_;
  std::vector<Edge> edges_, copies_;
  std::vector<Chain> chains_;
  int planes_ = 1, line_ = 0;
  // By step: its number in its thread, its round, the values that it gives, the steps of each
  // thread that have ended before it, its message, and the steps it waits for.
  std::vector<int> position_, level_;
  std::vector<std::vector<int>> results_, clock_;
  std::vector<int> group_;
  std::vector<std::vector<int>> before_;
  std::vector<int> send_free_, receive_free_;  // by thread: the first round for its next message
};

// Writes the transfers of each round as steps: first all that read at ranks, then all that write.
class Unroller {
 public:
  Unroller(const Schedule& schedule, const CollectiveSpec& goal)
      : schedule_(schedule),
        out_{.goal = goal,
             .layout = BufferLayout(goal, goal.collective != Collective::all_to_all)} {}

  Result<BufferProgram> run() {
    copy_own_blocks();
    for (round_ = 0; round_ < schedule_.rounds; ++round_) {
      Status status;
      // Local work writes first: what it fills, messages add to.
      for (const bool local : {true, false}) {
        for_each_transfer(schedule_, round_, [&](const Transfer& t) {
          if (status.ok() && rankine::is_local(t) == local) status = read_part(t);
        });
      }
      for (Piece& piece : pieces_) {
        if (status.ok() && piece.is_local) status = work_locally(piece);
      }
      for (Piece& piece : pieces_) {
        if (!piece.is_local) receive(piece);
      }
      pieces_.clear();
      if (!status.ok()) return invalid_argument(fmt::format("round {}: {}", round_, status.text()));
    }
    return std::move(out_);
  }

 private:
  struct Piece {
    BufferPlace from, to;
    int count;
    bool adds;
    bool is_local;
    int step = -1;
  };
  struct Cell {
    bool is_filled = false;
    int writer = -1;
    std::vector<int> readers{};
  };

  int thread(Rank rank, Rank to, Rank from) {
    const auto [found, is_new] =
        threads_.try_emplace(std::tuple(rank, to, from), static_cast<int>(out_.threads.size()));
    if (is_new) out_.threads.push_back({rank, to, from});
    return found->second;
  }

  int add(int thread, std::vector<BufferPlace> from, std::vector<BufferPlace> to, int count) {
    out_.steps.push_back({.thread = thread,
                          .from = std::move(from),
                          .to = std::move(to),
                          .count = count,
                          .round = round_});
    return static_cast<int>(out_.steps.size()) - 1;
  }

  // Blocks that a rank has and needs, in two places (all_to_all).
  void copy_own_blocks() {
    round_ = -1;
    for (Rank r = 0; r < schedule_.ranks && !out_.layout.in_place; ++r) {
      for (int c = 0; c < out_.layout.chunks(r, 'o'); ++c) {
        const BufferPlace from = out_.layout.place_of(r, at(at(out_.layout.output, r), c));
        if (from.buffer == 'i') add(thread(r, -1, -1), {from}, {{r, 'o', c}}, 1);
      }
    }
  }

  BufferPlace place(Rank r, Block b, int plane) {
    if (plane == 0) {
      const BufferPlace own = out_.layout.place_of(r, b);
      if (own.chunk >= 0) return own;
    }
    const auto [found, is_new] =
        scratch_.try_emplace(std::tuple(r, plane, b), at(out_.layout.scratch, r));
    if (is_new) ++at(out_.layout.scratch, r);
    return {r, 's', found->second};
  }

  Cell& cell(const BufferPlace& place) {
    const auto [found, is_new] = cells_.try_emplace(place);
    if (is_new && place.buffer != 's') {
      const auto& [rank, buffer, chunk] = place;
      const auto& blocks = at(buffer == 'i' ? out_.layout.input : out_.layout.output, rank);
      found->second.is_filled = out_.goal.initially_holds(rank, at(blocks, chunk));
    }
    return found->second;
  }
  template <class Visit>
  void for_each_cell(BufferPlace place, int count, const Visit& visit) {
    for (const int end = place.chunk + count; place.chunk < end; ++place.chunk) visit(cell(place));
  }

  Status read_part(const Transfer& t) {
    if (t.from.size() != 1 || t.to.size() != 1) {
      return invalid_argument(
          fmt::format("'{}' is a switch's transfer, and the format has messages between two ranks "
                      "only; --lower turns it into messages",
                      transfer_text(t)));
    }
    std::vector<Piece> pieces;
    for (int i = 0; i < t.what.list.runs(); ++i) {
      const Run& what = t.what.list.run(i);
      for (int j = 0; j < what.count; ++j) {
        const Block b = what.first + j * what.stride;
        const BufferPlace from = place(t.from.front(), b, t.what.plane);
        const BufferPlace to = place(t.to.front(), b, t.where.plane);
        const bool adds = t.kind == TransferKind::reduce && cell(to).is_filled;
        const auto follows = [](const BufferPlace& first, int count, const BufferPlace& next) {
          return first.buffer == next.buffer && first.chunk + count == next.chunk;
        };
        if (!pieces.empty()) {
          Piece& last = pieces.back();
          if (last.adds == adds && follows(last.from, last.count, from) &&
              follows(last.to, last.count, to)) {
            ++last.count;
            continue;
          }
        }
        pieces.push_back({from, to, 1, adds, from.rank == to.rank});
      }
    }
    for (Piece& piece : pieces) {
      if (!piece.is_local) send(piece);
      for_each_cell(piece.to, piece.count, [](Cell& cell) { cell.is_filled = true; });
    }
    pieces_.insert(pieces_.end(), pieces.begin(), pieces.end());
    return {};
  }

  void reads(int step, const BufferPlace& from, int count) {
    for_each_cell(from, count, [&](Cell& cell) {
      if (cell.writer >= 0) at(out_.steps, step).after.push_back(cell.writer);
      cell.readers.push_back(step);
    });
  }

  void send(Piece& piece) {
    piece.step = add(thread(piece.from.rank, piece.to.rank, -1), {piece.from}, {}, piece.count);
    reads(piece.step, piece.from, piece.count);
  }

  Status work_locally(Piece& piece) {
    const Rank rank = piece.to.rank;
    Status status;
    for_each_cell(piece.from, piece.count, [&](const Cell& cell) {
      if (cell.writer < 0 || at(out_.steps, cell.writer).round != round_) return;
      status = invalid_argument("a local transfer reads what another one overwrites in the round");
    });
    std::vector<BufferPlace> from = {piece.from};
    if (piece.adds) from.insert(from.begin(), piece.to);
    piece.step = add(thread(rank, -1, -1), std::move(from), {piece.to}, piece.count);
    reads(piece.step, piece.from, piece.count);
    writes(piece.step, piece);
    return status;
  }

  void receive(const Piece& piece) {
    std::vector<BufferPlace> base;
    if (piece.adds) base.push_back(piece.to);
    const int step =
        add(thread(piece.to.rank, -1, piece.from.rank), std::move(base), {piece.to}, piece.count);
    at(out_.steps, step).mate = piece.step;
    writes(step, piece);
  }

  void writes(int step, const Piece& piece) {
    for_each_cell(piece.to, piece.count, [&](Cell& cell) {
      std::vector<int>& after = at(out_.steps, step).after;
      if (cell.writer >= 0) after.push_back(cell.writer);
      for (const int reader : cell.readers) {
        if (reader != step) after.push_back(reader);
      }
      cell = {true, step, {}};
    });
  }

  const Schedule& schedule_;
  BufferProgram out_;
  int round_ = 0;
  std::vector<Piece> pieces_;  // of the round
  std::map<std::tuple<Rank, Rank, Rank>, int> threads_;
  std::map<std::tuple<Rank, int, Block>, int> scratch_;
  std::map<BufferPlace, Cell> cells_;
};

}  // namespace

Result<WrittenSchedule> schedule_of(const BufferProgram& program) {
  return Follower(program).run();
}

Result<BufferProgram> program_of(const Schedule& schedule, const CollectiveSpec& goal) {
  return Unroller(schedule, goal).run();
}

}  // namespace rankine::tools
