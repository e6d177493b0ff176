// LastTouches records, for the bytes of one memory, the round of the last read or write and the
// messages that are being sent from them. It keeps disjoint stretches of equal history.

#include "engine/api/mpi/message_plan.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "engine/base/memory.h"

namespace rankine {

class LastTouches {
 public:
  struct Stretch {
    std::ptrdiff_t end = 0;
    int round = 0;
    std::vector<int> sent;  // parcel numbers
  };

  // Calls visit(stretch) for each stretch that overlaps these bytes.
  template <class Visit>
  void for_each(std::ptrdiff_t begin, std::size_t bytes, const Visit& visit) const {
    const auto end = begin + static_cast<std::ptrdiff_t>(bytes);
    for (auto at = first_beyond(begin); at != stretches_.end() && at->first < end; ++at) {
      visit(at->second);
    }
  }
  // Marks these bytes as touched in `round`, and calls change(stretch) for each of their stretches.
  template <class Change>
  void touch(std::ptrdiff_t begin, std::size_t bytes, int round, const Change& change) {
    if (bytes == 0) return;
    const auto end = begin + static_cast<std::ptrdiff_t>(bytes);
    split(begin);
    split(end);
    while (begin < end) {
      auto at = stretches_.lower_bound(begin);
      if (at == stretches_.end() || at->first > begin) {
        const auto gap_ends = at == stretches_.end() ? end : std::min(end, at->first);
        at = stretches_.insert({begin, Stretch{gap_ends, round, {}}}).first;
      }
      at->second.round = round;
      change(at->second);
      begin = at->second.end;
    }
  }

 private:
  using IntervalMap = std::map<std::ptrdiff_t, Stretch>;  // by begin

  // Returns the first stretch that ends behind `place`.
  IntervalMap::const_iterator first_beyond(std::ptrdiff_t place) const {
    auto at = stretches_.upper_bound(place);
    if (at != stretches_.begin() && std::prev(at)->second.end > place) --at;
    return at;
  }
  void split(std::ptrdiff_t place) {
    const auto at = stretches_.lower_bound(place);
    if (at == stretches_.begin()) return;
    Stretch& before = std::prev(at)->second;
    if (before.end <= place) return;
    Stretch behind = before;
    before.end = place;
    stretches_.emplace_hint(at, place, std::move(behind));
  }

  IntervalMap stretches_;
};

namespace {

// Operand::message of an operand that came over the wire and so is no piece of a parcel.
constexpr std::uint32_t kStaged = ~std::uint32_t{0};

// The position of an operation within its round; operations of one round do not depend on each
// other. Data that came through memory are used first: their senders continue sooner, and messages
// over the wire get time to arrive. Rows are finished last.
enum class Turn : std::uint8_t { memory, local, wire, last };

// A work item, or a wait for its operands or for data that are only stored.
struct Task {
  MessageStep step;
  Turn turn = Turn::local;  // position of the task's operation
};

// A round in which this rank has tasks.
struct Round {
  int number = 0;  // as ops count rounds
  std::vector<int> received, sent;
  std::vector<Task> tasks;
  bool through_memory = false;  // true if a message goes through memory
  std::size_t staged = 0;       // bytes of the round's staging half
};

class Maker {
 public:
  Maker(const RankPlan& plan, std::optional<std::ptrdiff_t> in_place_offset,
        std::span<const Way> ways)
      : plan_(plan), in_place_offset_(in_place_offset), ways_(ways) {}

  MessagePlan make() {
    read_ops();
    started_.resize(out_.parcels.size());
    waited_.resize(out_.parcels.size());
    for (std::size_t i = 0; i < rounds_.size(); ++i) order(i);
    for (std::size_t p = 0; p < out_.parcels.size(); ++p) {
      if (out_.parcels[p].sends) wait(static_cast<int>(p));
    }
    place_staged();
    return std::move(out_);
  }

 private:
  // --- read the plan's tasks, round by round --------------------------------------------------

  void read_ops() {
    std::size_t operand = 0;
    for (const Op& op : plan_.ops) {
      if (op.code == OpCode::end) break;
      if (op.code == OpCode::send) {
        const Operand& from = plan_.operands[operand];
        add_piece(parcel(op, op.peer, true), {from.memory, from.offset, op.bytes});
      } else if (op.code == OpCode::fold || op.code == OpCode::apply) {
        std::vector<Task>& tasks = round_of(op).tasks;
        const std::size_t first = tasks.size();
        read_fold(op, operand);
        const auto of_op = std::span(tasks).subspan(first);
        Turn turn = Turn::local;
        for (const Task& task : of_op) {
          if (!is_wait(task)) continue;
          turn = std::max(turn == Turn::local ? Turn::memory : turn,
                          goes_by_wire(task.step.index) ? Turn::wire : Turn::memory);
        }
        for (Task& task : of_op) task.turn = turn;
      } else if (op.code == OpCode::widen || op.code == OpCode::narrow) {
        out_.operands.push_back(plan_.operands[operand]);
        add_work(op, out_.operands.size() - 1);
      } else if (op.code == OpCode::finish) {
        add_work(op);
        round_of(op).tasks.back().turn = Turn::last;
      }  // waits follow from touched memory; releases are not needed
      operand += std::size_t{op.operands} + op.copies;
    }
  }

  void read_fold(const Op& op, std::size_t operand) {
    Round& round = round_of(op);
    const auto is_message = [](const Operand& o) { return o.memory == Memory::message; };
    const auto first = plan_.operands.begin() + static_cast<std::ptrdiff_t>(operand);
    if (op.operands == 1 && is_message(*first)) {
      const int from = parcel(op, first->rank, false);
      add_piece(from, {op.memory, op.offset, op.bytes});
      add_wait(round, from);
      return;
    }
    const std::size_t of_work = out_.operands.size();
    for (std::size_t i = 0; i < op.operands; ++i) {
      Operand source = *(first + static_cast<std::ptrdiff_t>(i));
      if (is_message(source)) {
        const int from = parcel(op, source.rank, false);
        if (goes_by_wire(from)) {
          // The offset within the round's staging half; place_staged() adds the half's begin.
          source = {source.rank, Memory::message, kStaged, round.staged};
          add_piece(from, {Memory::message, round.staged, op.bytes});
          round.staged += whole_lines(op.bytes);
        } else {
          source = {source.rank, Memory::message, static_cast<std::uint32_t>(from),
                    parcel_at(from).pieces.size()};
          add_piece(from, {Memory::message, 0, op.bytes});
          ++uses_[static_cast<std::size_t>(from)];
        }
        add_wait(round, from);
      }
      out_.operands.push_back(source);
    }
    add_work(op, of_work);
  }

  Round& round_of(const Op& op) {
    // Rows may be finished in a later round than their last write.
    if (rounds_.empty() || rounds_.back().number < op.round) {
      rounds_.emplace_back().number = op.round;
      ends_.clear();
    }
    return rounds_.back();
  }

  // The round's single parcel to or from rank `peer`.
  int parcel(const Op& op, int peer, bool sends) {
    Round& round = round_of(op);
    const auto [at, is_new] = ends_.try_emplace({peer, sends}, 0);
    if (is_new) {
      at->second = static_cast<int>(out_.parcels.size());
      const Way way = ways_.empty() ? Way::wire : ways_[static_cast<std::size_t>(peer)];
      out_.parcels.push_back({peer, op.round, sends, way, 0, {}});
      uses_.push_back(0);
      (sends ? round.sent : round.received).push_back(at->second);
      round.through_memory |= way != Way::wire;
    }
    return at->second;
  }

  Parcel& parcel_at(int index) { return out_.parcels[static_cast<std::size_t>(index)]; }
  bool goes_by_wire(int parcel) { return parcel_at(parcel).way == Way::wire; }
  static bool is_wait(const Task& task) { return task.step.kind == MessageStep::Kind::wait; }
  static bool is_work(const Task& task) { return task.step.kind == MessageStep::Kind::work; }

  void add_piece(int index, Piece piece) {
    Parcel& to = parcel_at(index);
    to.bytes += piece.bytes;
    if (to.way == Way::wire && !to.pieces.empty()) {
      Piece& last = to.pieces.back();
      if (last.memory == piece.memory && last.offset + last.bytes == piece.offset) {
        last.bytes += piece.bytes;
        return;
      }
    }
    to.pieces.push_back(piece);
  }

  void add_wait(Round& round, int parcel) {
    round.tasks.push_back({{MessageStep::Kind::wait, parcel}});
  }
  void add_work(const Op& op, std::size_t first_operand = 0) {
    round_of(op).tasks.push_back({{MessageStep::Kind::work, static_cast<int>(out_.work.size())}});
    out_.work.push_back({op, first_operand});
  }

  // --- order the steps --------------------------------------------------------------------------

  // Bytes with their position in their memory; input and output may be one memory.
  struct Bytes {
    std::size_t memory = 0;
    std::ptrdiff_t begin = 0;
    std::size_t bytes = 0;
  };
  Bytes bytes_of(Memory memory, std::size_t offset, std::size_t bytes) const {
    const auto begin = static_cast<std::ptrdiff_t>(offset);
    if (memory == Memory::input && in_place_offset_) {
      return {static_cast<std::size_t>(Memory::output), begin + *in_place_offset_, bytes};
    }
    return {static_cast<std::size_t>(memory), begin, bytes};
  }
  // Calls visit(Bytes) for the bytes that a parcel reads or writes, except staged bytes.
  template <class Visit>
  void for_each_piece(int parcel, const Visit& visit) const {
    for (const Piece& piece : out_.parcels[static_cast<std::size_t>(parcel)].pieces) {
      if (piece.memory == Memory::message) continue;  // staging memory has no other writer
      visit(bytes_of(piece.memory, piece.offset, piece.bytes));
    }
  }

  void start(int parcel) {
    out_.steps.push_back({MessageStep::Kind::start, parcel});
    started_[static_cast<std::size_t>(parcel)] = true;
  }
  void wait(int parcel) {
    if (waited_[static_cast<std::size_t>(parcel)]) return;
    waited_[static_cast<std::size_t>(parcel)] = true;
    const Parcel& of = parcel_at(parcel);
    const bool through_memory = !of.sends && of.way != Way::wire;
    // The wait stores the parcel's data.
    if (through_memory) {
      for_each_piece(parcel, [this](const Bytes& piece) { wait_for_senders(piece); });
    }
    out_.steps.push_back({MessageStep::Kind::wait, parcel});
    if (through_memory && uses_[static_cast<std::size_t>(parcel)] == 0) done(parcel);
  }
  void done(int parcel) { out_.steps.push_back({MessageStep::Kind::done, parcel}); }
  // Adds a done for each parcel that `work` uses for the last time.
  void done_by(const Work& work) {
    for (std::size_t o = 0; o < work.op.operands; ++o) {
      const Operand& read = out_.operands[work.first_operand + o];
      if (read.memory != Memory::message || read.message == kStaged) continue;
      if (--uses_[read.message] == 0) done(static_cast<int>(read.message));
    }
  }
  // Waits until no message is sent from these bytes any more.
  void wait_for_senders(const Bytes& of) {
    std::vector<int> all;
    touches_[of.memory].for_each(of.begin, of.bytes, [&](const LastTouches::Stretch& stretch) {
      all.insert(all.end(), stretch.sent.begin(), stretch.sent.end());
    });
    for (const int parcel : all) wait(parcel);
  }
  void start_receiving(int parcel) {
    for_each_piece(parcel, [this](const Bytes& piece) { wait_for_senders(piece); });
    start(parcel);
  }

  // --- copies in scratch for other ranks
  // ----------------------------------------------------------

  // A copy; valid until its original is overwritten.
  struct Shown {
    std::ptrdiff_t end = 0;
    std::size_t place = 0;  // in scratch
  };
  using ShownByBegin = std::map<std::ptrdiff_t, Shown>;

  void forget_shown(const Bytes& of) {
    ShownByBegin& all = shown_[of.memory];
    const std::ptrdiff_t end = of.begin + static_cast<std::ptrdiff_t>(of.bytes);
    auto at = all.upper_bound(of.begin);
    if (at != all.begin() && std::prev(at)->second.end > of.begin) --at;
    while (at != all.end() && at->first < end) at = all.erase(at);
  }
  // Makes the parcel's pieces lie in scratch: copies bytes that lie elsewhere, unless a valid copy
  // exists.
  void show(int parcel, int round) {
    Parcel& of = parcel_at(parcel);
    if (of.way != Way::scratch || of.with_the_word()) return;
    for (Piece& piece : of.pieces) {
      if (piece.memory == Memory::scratch) continue;
      const Bytes bytes = bytes_of(piece.memory, piece.offset, piece.bytes);
      const auto end = bytes.begin + static_cast<std::ptrdiff_t>(bytes.bytes);
      ShownByBegin& all = shown_[bytes.memory];
      auto found = all.find(bytes.begin);
      if (found == all.end() || found->second.end != end) {
        forget_shown(bytes);
        found = all.insert({bytes.begin, {end, plan_.scratch_bytes + shown_bytes_}}).first;
        shown_bytes_ += whole_lines(piece.bytes);
        out_.steps.push_back({MessageStep::Kind::work, static_cast<int>(out_.work.size())});
        out_.work.push_back({{.code = OpCode::fold,
                              .operands = 1,
                              .round = static_cast<std::uint16_t>(of.round),
                              .memory = Memory::scratch,
                              .offset = found->second.place,
                              .bytes = piece.bytes},
                             out_.operands.size()});
        out_.operands.push_back({0, piece.memory, 0, piece.offset});
        touch(bytes, round);
      }
      piece = {Memory::scratch, found->second.place, piece.bytes};
    }
  }

  void touch(const Bytes& of, int round, int sent = -1) {
    touches_[of.memory].touch(of.begin, of.bytes, round, [&](LastTouches::Stretch& stretch) {
      std::erase_if(stretch.sent, [this](int p) { return waited_[static_cast<std::size_t>(p)]; });
      if (sent >= 0) stretch.sent.push_back(sent);
    });
  }
  Bytes written_by(const Work& work) const {
    return bytes_of(work.op.memory, work.op.offset, work.op.bytes);
  }
  void touch_all(std::size_t i) {
    const int now = static_cast<int>(i);
    for (const int p : rounds_[i].received) {
      for_each_piece(p, [&](const Bytes& piece) {
        touch(piece, now);
        forget_shown(piece);
      });
    }
    for (const int p : rounds_[i].sent) {
      for_each_piece(p, [&](const Bytes& piece) { touch(piece, now, p); });
    }
    for (const Task& task : rounds_[i].tasks) {
      if (!is_work(task)) continue;
      const Work& work = out_.work[static_cast<std::size_t>(task.step.index)];
      touch(written_by(work), now);
      if (work.op.code != OpCode::finish) forget_shown(written_by(work));
      for (std::size_t o = 0; o < work.op.operands; ++o) {
        const Operand& read = out_.operands[work.first_operand + o];
        if (read.memory == Memory::message) continue;
        touch(bytes_of(read.memory, read.offset, work.op.bytes), now);
      }
    }
  }
  // Returns true if the parcel's destination was not touched in round `i` or later.
  bool is_free(int parcel, std::size_t i) const {
    bool free = true;
    for_each_piece(parcel, [&](const Bytes& piece) {
      touches_[piece.memory].for_each(piece.begin, piece.bytes, [&](const LastTouches::Stretch& s) {
        free &= s.round < static_cast<int>(i);
      });
    });
    return free;
  }

  // Local work that overwrites bytes sent through memory goes last, after all work that other ranks
  // wait for. Otherwise two ranks that send to each other would deadlock.
  void put_in_turn(Round& round) {
    const auto is_held_up = [&](const Task& task) {
      if (task.turn != Turn::local || !is_work(task)) return false;
      const Bytes written = written_by(out_.work[static_cast<std::size_t>(task.step.index)]);
      bool held_up = false;
      touches_[written.memory].for_each(
          written.begin, written.bytes, [&](const LastTouches::Stretch& stretch) {
            for (const int p : stretch.sent) {
              held_up |= !goes_by_wire(p) && parcel_at(p).round == round.number;
            }
          });
      return held_up;
    };
    for (Task& task : round.tasks) {
      if (is_held_up(task)) task.turn = Turn::last;
    }
    std::stable_sort(round.tasks.begin(), round.tasks.end(),
                     [](const Task& a, const Task& b) { return a.turn < b.turn; });
  }

  void order(std::size_t i) {
    for (const int p : rounds_[i].received) {
      if (goes_by_wire(p) && !started_[static_cast<std::size_t>(p)]) start_receiving(p);
    }
    // Start messages over the wire first, because they take longest.
    for (const bool by_wire : {true, false}) {
      for (const int p : rounds_[i].sent) {
        if (goes_by_wire(p) != by_wire) continue;
        show(p, static_cast<int>(i));
        start(p);
      }
    }
    touch_all(i);
    if (i + 1 < rounds_.size()) {
      for (const int p : rounds_[i + 1].received) {
        if (goes_by_wire(p) && is_free(p, i)) start_receiving(p);
      }
    }
    if (rounds_[i].through_memory) put_in_turn(rounds_[i]);
    for (const Task& task : rounds_[i].tasks) {
      if (is_wait(task)) {
        wait(task.step.index);
        continue;
      }
      const Work& work = out_.work[static_cast<std::size_t>(task.step.index)];
      if (work.op.code != OpCode::finish) wait_for_senders(written_by(work));
      out_.steps.push_back(task.step);
      done_by(work);
    }
  }

  // Places the staging halves of even and odd rounds behind the plan's scratch and the copies.
  void place_staged() {
    std::size_t half[2] = {0, 0};
    for (std::size_t i = 0; i < rounds_.size(); ++i) {
      half[i % 2] = std::max(half[i % 2], rounds_[i].staged);
    }
    const std::size_t halves = plan_.scratch_bytes + shown_bytes_;
    const std::size_t begin[2] = {halves, halves + half[0]};
    out_.scratch_bytes = halves + half[0] + half[1];
    for (std::size_t i = 0; i < rounds_.size(); ++i) {
      const auto place = [here = begin[i % 2]](auto& what) {
        if (what.memory != Memory::message) return;
        what.memory = Memory::scratch;
        what.offset += here;
      };
      for (const int p : rounds_[i].received) {
        if (!goes_by_wire(p)) continue;
        for (Piece& piece : parcel_at(p).pieces) place(piece);
      }
      for (const Task& task : rounds_[i].tasks) {
        if (!is_work(task)) continue;
        const Work& work = out_.work[static_cast<std::size_t>(task.step.index)];
        for (std::size_t o = 0; o < work.op.operands; ++o) {
          Operand& operand = out_.operands[work.first_operand + o];
          if (operand.message == kStaged) place(operand);
        }
      }
    }
  }

  const RankPlan& plan_;
  const std::optional<std::ptrdiff_t> in_place_offset_;
  const std::span<const Way> ways_;
  MessagePlan out_;
  std::vector<Round> rounds_;
  std::vector<int> uses_;              // by parcel received through memory: uses as an operand
  std::array<ShownByBegin, 3> shown_;  // by Memory
  std::size_t shown_bytes_ = 0;
  std::map<std::pair<int, bool>, int> ends_;  // latest round: peer and direction, to parcel
  std::vector<bool> started_, waited_;        // by parcel
  std::array<LastTouches, 3> touches_;        // by Memory
};

const std::byte* address(const Operand& operand, const CallWork& call) {
  if (operand.memory == Memory::message) return call.pieces[operand.message][operand.offset];
  return call.memory[static_cast<std::size_t>(operand.memory)] + operand.offset;
}

}  // namespace

MessagePlan message_plan(const RankPlan& plan, std::optional<std::ptrdiff_t> in_place_offset,
                         std::span<const Way> ways) {
  return Maker(plan, in_place_offset, ways).make();
}

void store_pieces(const MessagePlan& messages, const Plan& plan, int parcel,
                  const CallWork& call) noexcept {
  const std::vector<Piece>& pieces = messages.parcels[static_cast<std::size_t>(parcel)].pieces;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const Piece& piece = pieces[i];
    if (piece.memory == Memory::message) continue;
    copy_bytes(call.memory[static_cast<std::size_t>(piece.memory)] + piece.offset,
               call.pieces[parcel][i], piece.bytes, plan.costs);
  }
}

bool do_work(const MessagePlan& messages, const Plan& plan, int index, const CallWork& call,
             std::vector<void*>& operands, std::string& why) noexcept {
  const Work& work = messages.work[static_cast<std::size_t>(index)];
  const Op& op = work.op;
  std::byte* to = call.memory[static_cast<std::size_t>(op.memory)] + op.offset;
  if (op.code == OpCode::finish) {
    return finish_rows(*call.epilogue, to, op.offset / plan.row_bytes, op.bytes / plan.row_bytes,
                       why);
  }
  if (op.code == OpCode::widen || op.code == OpCode::narrow) {
    const bool widens = op.code == OpCode::widen;
    (widens ? plan.conversions.widen : plan.conversions.narrow)(
        to, address(messages.operands[work.first_operand], call),
        op.bytes / (widens ? sizeof(float) : plan.narrow_bytes));
    return true;
  }
  for (std::size_t i = 0; i < op.operands; ++i) {
    const Operand& from = messages.operands[work.first_operand + i];
    operands[i] = const_cast<std::byte*>(address(from, call));
  }
  if (op.code == OpCode::apply) {
    void* const destination = to;
    return combine(*call.user_op, &destination, 1, operands.data(), op.operands, op.bytes, why);
  }
  if (op.operands == 1) {
    if (operands[0] != to) copy_bytes(to, operands[0], op.bytes, plan.costs);
  } else {
    plan.fold(to, operands.data(), op.operands, op.bytes / plan.element_bytes,
              (op.flags & kDivides) != 0 ? plan.divisor : 0);
  }
  return true;
}

}  // namespace rankine
