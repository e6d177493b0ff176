// GOAL.

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

#include "algorithms/schedule/combine.h"
#include "engine/cli/formats/buffers.h"
#include "engine/network/cells.h"
#include "engine/network/fabric.h"
#include "engine/network/port_model.h"
#include "engine/network/prices.h"

namespace rankine::tools {
namespace {

// A line of a rank's program, from 1; 0: data present at the start.
using Label = int;

class GoalWriter {
 public:
  GoalWriter(const Schedule& schedule, const CollectiveSpec& goal, const Pricing& pricing,
             std::int64_t most_lines)
      : schedule_(schedule),
        goal_(goal),
        pricing_(pricing),
        most_lines_(most_lines),
        programs_(static_cast<std::size_t>(schedule.ranks)),
        made_by_(schedule, goal, programs_.size()) {}

  Result<std::string> run() {
    for (int& k = round_; k < schedule_.rounds; ++k) {
      for_each_transfer(schedule_, k, [this](const Transfer& t) {
        if (lines_ <= most_lines_) transfer(t);
      });
      settle();
      if (lines_ > most_lines_) {
        return invalid_argument(fmt::format(
            "{} ranks have more than {} sends, receives and sums, which are allowed in GOAL",
            schedule_.ranks, most_lines_));
      }
    }
    const Schedule head{.ranks = schedule_.ranks,
                        .blocks = schedule_.blocks,
                        .rounds = 0,
                        .round = {},
                        .planes = schedule_.planes};
    std::string text =
        fmt::format("// {}num_ranks {}\n", schedule_text(head, goal_), schedule_.ranks);
    for (std::size_t r = 0; r < programs_.size(); ++r) {
      text += fmt::format("\nrank {} {{\n{}}}\n", r, programs_[r].text);
    }
    return text;
  }

 private:
  struct Program {
    std::string text;
    Label last = 0;
  };
  struct Arrival {
    Rank rank;
    int plane;
    Run blocks;
    Label label;
    bool adds;
  };

  // `remark`: the transfer that a send or local work is.
  Label add(Rank r, const std::string& what, std::vector<Label> waits_for,
            const std::string& remark = "") {
    ++lines_;
    Program& program = programs_[static_cast<std::size_t>(r)];
    if (!remark.empty()) program.text += fmt::format("// {} {}\n", round_, remark);
    const Label label = ++program.last;
    program.text += fmt::format("l{}: {}\n", label, what);
    std::sort(waits_for.begin(), waits_for.end());
    waits_for.erase(std::unique(waits_for.begin(), waits_for.end()), waits_for.end());
    for (const Label other : waits_for) {
      if (other != 0) program.text += fmt::format("l{} requires l{}\n", label, other);
    }
    return label;
  }

  // A round reads the data present at its beginning; arrivals count from its end on.
  void transfer(const Transfer& t) {
    const Rank from = t.from.front(), to = t.to.front();
    std::vector<Label> makers;
    for (int i = 0; i < t.what.list.runs(); ++i) {
      made_by_.read(static_cast<std::size_t>(from), t.what.plane, t.what.list.run(i),
                    [&makers](Block, int, Label label) { makers.push_back(label); });
    }
    Label arrived = 0;
    if (from == to) {
      arrived = add(from, "calc 0", std::move(makers), transfer_text(t));
    } else {
      const std::int64_t bytes = pricing_.weight(t.what.list);
      add(from, fmt::format("send {}b to {} tag {}", bytes, to, ++messages_), std::move(makers),
          transfer_text(t));
      arrived = add(to, fmt::format("recv {}b from {} tag {}", bytes, from, messages_), {});
    }
    for (int i = 0; i < t.where.list.runs(); ++i) {
      arrivals_.push_back(
          {to, t.where.plane, t.where.list.run(i), arrived, t.kind == TransferKind::reduce});
    }
  }
  void settle() {
    for (const Arrival& a : arrivals_) {
      Label before = 0, sum = 0;  // for the preceding stretch
      made_by_.change(static_cast<std::size_t>(a.rank), a.plane, a.blocks,
                      [&](Block, int, Label& label) {
                        if (!a.adds || label == 0) {
                          label = a.label;
                          return;
                        }
                        if (sum == 0 || label != before) {
                          before = label;
                          sum = add(a.rank, "calc 0", {before, a.label});
                        }
                        label = sum;
                      });
    }
    arrivals_.clear();
  }

  const Schedule& schedule_;
  const CollectiveSpec& goal_;
  const Pricing& pricing_;
  const std::int64_t most_lines_;
  std::vector<Program> programs_;
  CellTable<Label> made_by_;  // by cell: the line that made its content
  std::vector<Arrival> arrivals_;
  std::int64_t lines_ = 0;
  int messages_ = 0, round_ = 0;
};

}  // namespace

Result<std::string> goal_text(const Schedule& schedule, const CollectiveSpec& goal,
                              std::uint64_t bytes, const SimulateOptions& options,
                              std::int64_t most_lines) {
  const auto pricing = pricing_of(plain_regime().fabric, goal, bytes, options);
  if (!pricing.ok()) return pricing.status();
  const Schedule messages = lower(schedule, {});
  return GoalWriter(messages, goal, *pricing, most_lines).run();
}

namespace {

class GoalReader {
 public:
  Result<WrittenSchedule> read(std::string_view text) {
    Status status;
    int last = 0;
    for_each_line(text, [&](int line, const Words& words) {
      if (!status.ok()) return;
      last = line;
      status = words[0] == "//" ? read_remark(words) : read_line(line, words);
      if (!status.ok()) status = at_line(line, status.text());
    });
    if (status.ok() && rank_ >= 0) status = at_line(last, "'}' is missing");
    if (status.ok() && ranks_ == 0) status = invalid_argument("num_ranks is missing");
    if (status.ok()) status = connect();
    if (status.ok()) status = take_goal();
    if (status.ok()) status = write_steps();
    if (!status.ok()) return status;
    return schedule_of(*program_);
  }

 private:
  struct Op {
    int line = 0;
    Rank rank = 0, peer = 0;
    std::string_view what;  // send, recv or calc
    std::int64_t bytes = 0;
    int tag = 0, mate = -1;
    int round = -1;  // of the remark
    std::optional<Transfer> transfer{};
    std::vector<int> after{}, starts_after{};
    std::vector<int> steps{};
  };

  // "// all_reduce 4 blocks 4" before the ranks, and "// 3 0 -> 1: 0..3 +" (round and transfer)
  // before a send or local work. Other remarks are for people.
  Status read_remark(const Words& words) {
    if (words.size() < 2) return {};
    if (ranks_ == 0 && !head_ && parse_collective(words[1])) {
      const std::string text = join(std::span(words).subspan(1), " ");
      auto head = read_schedule_text(text);
      if (!head.ok()) return head.status();
      head_ = std::move(*head);
    } else if (head_ && words.size() > 3 && words[3] == "->") {
      const auto round = parse_whole("the round", words[1], 0, kMostWrittenBlocks);
      if (!round.ok()) return round.status();
      auto transfers = read_transfer(Words(words.begin() + 2, words.end()), *head_);
      if (!transfers.ok()) return transfers.status();
      if (transfers->front().from.size() > 1 || transfers->front().to.size() > 1) {
        return invalid_argument("the remark is of several messages; allowed is one");
      }
      next_ = std::pair(*round, std::move(transfers->front()));
    }
    return {};
  }

  Status read_line(int line, const Words& words) {
    const auto wrong = [&] {
      return invalid_argument(
          fmt::format("'{}' is no statement here; allowed are num_ranks N, then rank R {{, then L: "
                      "send Bb to R tag T, L: recv Bb from R tag T, L: calc N, L requires L and }}",
                      legible(join(words, " "))));
    };
    if (ranks_ == 0) {
      if (words[0] != "num_ranks" || words.size() != 2) return wrong();
      const auto ranks = parse_whole("num_ranks", words[1], 1, kMostWrittenRanks);
      if (!ranks.ok()) return ranks.status();
      ranks_ = *ranks;
      if (head_ && head_->goal.ranks != ranks_) {
        return invalid_argument(
            fmt::format("num_ranks is {}; the remark above says {}", ranks_, head_->goal.ranks));
      }
      return {};
    }
    if (rank_ < 0) {
      if (words[0] != "rank" || words.size() != 3 || words[2] != "{") return wrong();
      const auto rank = parse_whole("rank", words[1], 0, ranks_ - 1);
      if (!rank.ok()) return rank.status();
      rank_ = *rank;
      return {};
    }
    if (words[0] == "}") {
      if (words.size() != 1) return wrong();
      rank_ = -1;
      labels_.clear();
      return {};
    }
    if (words.size() == 3 && (words[1] == "requires" || words[1] == "irequires")) {
      const auto later = labels_.find(words[0]), before = labels_.find(words[2]);
      for (const auto& [found, word] : {std::pair{later, words[0]}, {before, words[2]}}) {
        if (found != labels_.end()) continue;
        return invalid_argument(fmt::format("rank {} has no label '{}'", rank_, legible(word)));
      }
      Op& op = at(ops_, later->second);
      (words[1] == "requires" ? op.after : op.starts_after).push_back(before->second);
      return {};
    }
    return read_op(line, words) ? Status() : wrong();
  }

  // False: the words are no operation.
  bool read_op(int line, const Words& words) {
    std::size_t next = 0;
    Op op{.line = line, .rank = rank_, .what = {}};
    if (words[0].ends_with(':')) {
      const std::string_view label = words[next++];
      const auto op_number = static_cast<int>(ops_.size());
      if (!labels_.emplace(label.substr(0, label.size() - 1), op_number).second) return false;
    }
    if (next + 1 >= words.size()) return false;
    op.what = words[next++];
    const bool is_send = op.what == "send", is_calc = op.what == "calc";
    if (!is_send && !is_calc && op.what != "recv") return false;
    std::string_view size = words[next++];
    if (!is_calc && size.ends_with('b')) size.remove_suffix(1);
    const auto number = [](std::string_view word, int most) {
      const auto value = parse_whole("", word, 0, most);
      return value.ok() ? *value : -1;
    };
    op.bytes = number(size, std::numeric_limits<int>::max());
    if (op.bytes < 0) return false;
    if (!is_calc) {
      if (next + 1 >= words.size() || words[next] != (is_send ? "to" : "from")) return false;
      op.peer = number(words[next + 1], ranks_ - 1);
      if (op.peer < 0 || op.peer == rank_) return false;
      next += 2;
    }
    for (; next + 1 < words.size(); next += 2) {
      const int value = number(words[next + 1], std::numeric_limits<int>::max());
      if (value < 0 || (words[next] != "tag" && words[next] != "cpu" && words[next] != "nic")) {
        return false;
      }
      if (words[next] == "tag") op.tag = value;
    }
    if (next != words.size()) return false;
    if (next_ && op.what != "recv") {
      op.round = next_->first;
      op.transfer = std::move(next_->second);
      next_.reset();
    }
    ops_.push_back(std::move(op));
    return true;
  }

  // The n-th send with a tag meets the n-th receive.
  Status connect() {
    std::map<std::tuple<Rank, Rank, int>, std::vector<int>> open;  // sends
    for (int i = 0; i < static_cast<int>(ops_.size()); ++i) {
      const Op& op = at(ops_, i);
      if (op.what == "send") open[{op.rank, op.peer, op.tag}].push_back(i);
    }
    std::map<std::tuple<Rank, Rank, int>, std::size_t> met;
    for (Op& op : ops_) {
      if (op.what != "recv") continue;
      const auto& sends = open[{op.peer, op.rank, op.tag}];
      std::size_t& n = met[{op.peer, op.rank, op.tag}];
      if (n == sends.size()) {
        return at_line(op.line, fmt::format("rank {} does not send this message", op.peer));
      }
      op.mate = sends[n++];
      const Op& send = at(ops_, op.mate);
      if (send.bytes != op.bytes) {
        return at_line(op.line, fmt::format("{} bytes are received, and line {} sends {}", op.bytes,
                                            send.line, send.bytes));
      }
    }
    for (const auto& [key, sends] : open) {
      if (met[key] < sends.size()) {
        return at_line(at(ops_, sends[met[key]]).line,
                       fmt::format("rank {} does not receive this message", std::get<1>(key)));
      }
    }
    return {};
  }

  Status take_goal() {
    if (head_) {
      for (const Op& op : ops_) {
        const bool is_send = op.what == "send";
        if (!op.transfer && !is_send) continue;
        const Rank to = is_send ? op.peer : op.rank;
        if (op.transfer && op.transfer->from.front() == op.rank && op.transfer->to.front() == to) {
          continue;
        }
        return at_line(
            op.line,
            fmt::format("a remark '// ROUND {} -> {}: BLOCKS' must be before it", op.rank, to));
      }
      program_.emplace(BufferProgram{.goal = head_->goal,
                                     .layout = BufferLayout::of_planes(head_->goal, head_->planes),
                                     .renames = true});
      return {};
    }
    std::vector<int> sends(static_cast<std::size_t>(ranks_), 0), receives = sends;
    const Op* first = nullptr;
    for (const Op& op : ops_) {
      if (op.what == "calc") continue;
      ++at(op.what == "send" ? sends : receives, op.rank);
      if (first == nullptr) first = &op;
      if (op.bytes != first->bytes) {
        return at_line(op.line,
                       fmt::format("the message has {} bytes, and line {} has {}: GOAL does not "
                                   "name data; without remarks a file must be of one block",
                                   op.bytes, first->line, first->bytes));
      }
    }
    const auto root_of = [&](const std::vector<int>& counts) {  // -1: not all others have one
      const auto root = std::find(counts.begin(), counts.end(), 0);
      const bool one = std::count(counts.begin(), counts.end(), 0) == 1 &&
                       std::count(counts.begin(), counts.end(), 1) + 1 == ranks_;
      return one ? static_cast<Rank>(root - counts.begin()) : -1;
    };
    const Rank broadcasts = root_of(receives), reduces = root_of(sends);
    const Collective collective = broadcasts >= 0 ? Collective::broadcast
                                  : reduces >= 0  ? Collective::reduce
                                                  : Collective::barrier;
    ScheduleHead head{.collective = collective, .ranks = ranks_};
    if (has_root(collective)) head.root = std::max(broadcasts, reduces);
    const auto begun = begin_schedule(head);
    if (!begun.ok()) return begun.status();
    program_.emplace(BufferProgram{
        .goal = begun->goal, .layout = BufferLayout::of_planes(begun->goal, 1), .renames = true});
    for (Op& op : ops_) {
      if (op.what == "send") op.transfer = whole(op.rank, op.peer, collective);
    }
    return {};
  }
  static Transfer whole(Rank from, Rank to, Collective collective) {
    const bool copies = collective == Collective::broadcast;
    return {from, to, block(0), block(0), copies ? TransferKind::copy : TransferKind::reduce};
  }

  // Sends before receives, so that a step's mate is there.
  Status write_steps() {
    std::vector<int> extended(ops_.size(), -1);  // by operation: the next one of its thread
    auto& program = *program_;
    for (int i = 0; i < static_cast<int>(ops_.size()); ++i) {
      Op& op = at(ops_, i);
      const bool receives = op.what == "recv";
      const auto& transfer = receives ? at(ops_, op.mate).transfer : op.transfer;
      const Transfer* t = transfer ? &*transfer : nullptr;
      int thread = -1;
      for (const int before : op.after) {
        if (thread >= 0 || before >= i || at(extended, before) >= 0) continue;
        thread = at(program.steps, at(ops_, before).steps.front()).thread;
        at(extended, before) = i;
      }
      if (thread < 0) {
        thread = static_cast<int>(program.threads.size());
        program.threads.push_back({op.rank});
      }
      const auto add = [&](int count) -> BufferStep& {
        op.steps.push_back(static_cast<int>(program.steps.size()));
        BufferStep& step = program.steps.emplace_back();
        step = {.line = op.line, .thread = thread, .count = count, .round = op.round};
        if (receives) step.round = at(ops_, op.mate).round;
        return step;
      };
      if (t == nullptr) add(0);
      for (int n = 0; t != nullptr && n < t->what.list.runs(); ++n) {
        const Run& run = t->what.list.run(n);
        const int pieces = run.stride == 1 ? 1 : run.count;
        for (int piece = 0; piece < pieces; ++piece) {
          BufferStep& step = add(run.count / pieces);
          const int first = run.first + piece * run.stride;
          const BufferPlace from = place(op.rank, t->what.plane, first),
                            to = place(op.rank, t->where.plane, first);
          if (op.what != "send") step.to = {to};
          if (op.what != "send" && t->kind == TransferKind::reduce) step.from = {to};
          if (!receives) step.from.push_back(from);
        }
      }
    }
    for (Op& op : ops_) {
      for (std::size_t n = 0; op.what == "recv" && n < op.steps.size(); ++n) {
        at(program.steps, op.steps[n]).mate = at(ops_, op.mate).steps[n];
      }
      BufferStep& first = at(program.steps, op.steps.front());
      for (const int before : op.after) first.after.push_back(at(ops_, before).steps.back());
      for (const int before : op.starts_after) {
        first.executed.push_back(at(ops_, before).steps.front());
      }
    }
    follow_lines();
    return {};
  }

  BufferPlace place(Rank rank, int plane, Block b) const {
    if (plane == 0) return {rank, 'i', b};
    return {rank, 's', (plane - 1) * program_->goal.blocks + b};
  }

  // Steps on one chunk are followed in the order of their lines, in a given round sends, local
  // work, receives: what a rank reads is what stands above, and must be required.
  void follow_lines() {
    struct Uses {
      std::vector<int> readers{}, writers{};
    };
    std::map<BufferPlace, Uses> all;
    std::vector<int> order(program_->steps.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [this](int a, int b) {
      const auto key = [this](int i) {
        const BufferStep& step = at(program_->steps, i);
        const int place_in_round = step.mate >= 0 ? 2 : step.to.empty() ? 0 : 1;
        return std::pair(step.round, step.round < 0 ? 0 : place_in_round);
      };
      return key(a) < key(b);
    });
    for (const int i : order) {
      BufferStep& step = at(program_->steps, i);
      if (step.adds()) {  // to an empty place: stores
        const auto& [rank, buffer, chunk] = step.to.front();
        const bool held = buffer == 'i' && at(at(program_->layout.input, rank), chunk) >= 0;
        if (!held && all[step.to.front()].writers.empty()) step.from.erase(step.from.begin());
      }
      const auto follow = [&](const std::vector<int>& others) {
        for (const int other : others) {
          if (other != i) step.executed.push_back(other);
        }
      };
      for (const auto* places : {&step.from, &step.to}) {
        for (BufferPlace at_place : *places) {
          for (int c = 0; c < step.count; ++c, ++at_place.chunk) {
            Uses& uses = all[at_place];
            follow(uses.writers);
            if (places == &step.from) {
              uses.readers.push_back(i);
            } else {
              follow(uses.readers);
              if (!step.adds()) uses = {};
              uses.writers.push_back(i);
            }
          }
        }
      }
    }
  }

  int ranks_ = 0;
  Rank rank_ = -1;
  std::vector<Op> ops_;
  std::map<std::string_view, int> labels_;  // of the rank
  std::optional<WrittenSchedule> head_;
  std::optional<std::pair<int, Transfer>> next_;  // the remark of the next operation
  std::optional<BufferProgram> program_;
};

}  // namespace

Result<WrittenSchedule> read_goal(std::string_view text) { return GoalReader().read(text); }

}  // namespace rankine::tools
