#include "engine/api/mpi/message_plan.h"

#include <algorithm>
#include <map>
#include <utility>

#include "engine/api/mpi/last_touches.h"
#include "engine/base/cache_line.h"

namespace rankine {
namespace {

// A round in which the rank does anything.
struct Round {
  int number = 0;  // as ops count them
  std::vector<int> received, sent;
  std::vector<MessageStep> tasks;  // work, and waits for what it uses or what is only stored
  std::size_t staged = 0;          // bytes of its half
};

class Maker {
 public:
  Maker(const RankPlan& plan, std::optional<std::ptrdiff_t> in_place_offset)
      : plan_(plan), in_place_offset_(in_place_offset) {}

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
  // --- what there is to do, round by round ----------------------------------------------------

  void read_ops() {
    std::size_t operand = 0;
    for (const Op& op : plan_.ops) {
      if (op.code == OpCode::end) break;
      if (op.code == OpCode::send) {
        const Operand& from = plan_.operands[operand];
        add_piece(parcel(op, op.peer, true), {from.memory, from.offset, op.bytes});
      } else if (op.code == OpCode::fold || op.code == OpCode::apply) {
        read_fold(op, operand);
      } else if (op.code == OpCode::finish) {
        add_work(op);
      }  // waits follow from what is touched, and nobody waits for releases
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
        // Where in its round's half; place_staged() says where that begins.
        source = {source.rank, Memory::message, 0, round.staged};
        add_piece(from, {Memory::message, round.staged, op.bytes});
        round.staged += (op.bytes + kCacheLine - 1) / kCacheLine * kCacheLine;
        add_wait(round, from);
      }
      out_.operands.push_back(source);
    }
    add_work(op, of_work);
  }

  Round& round_of(const Op& op) {
    // Rows may be finished later than in the round that has written them last.
    if (rounds_.empty() || rounds_.back().number < op.round) {
      rounds_.push_back({op.round, {}, {}, {}, 0});
      ends_.clear();
    }
    return rounds_.back();
  }

  // The round's one parcel to or from that rank.
  int parcel(const Op& op, int peer, bool sends) {
    Round& round = round_of(op);
    const auto [at, is_new] = ends_.try_emplace({peer, sends}, 0);
    if (is_new) {
      at->second = static_cast<int>(out_.parcels.size());
      out_.parcels.push_back({peer, op.round, sends, 0, {}});
      (sends ? round.sent : round.received).push_back(at->second);
    }
    return at->second;
  }

  void add_piece(int index, Piece piece) {
    Parcel& to = out_.parcels[static_cast<std::size_t>(index)];
    to.bytes += piece.bytes;
    if (!to.pieces.empty()) {
      Piece& last = to.pieces.back();
      if (last.memory == piece.memory && last.offset + last.bytes == piece.offset) {
        last.bytes += piece.bytes;
        return;
      }
    }
    to.pieces.push_back(piece);
  }

  void add_wait(Round& round, int parcel) {
    round.tasks.push_back({MessageStep::Kind::wait, parcel});
  }
  void add_work(const Op& op, std::size_t first_operand = 0) {
    round_of(op).tasks.push_back({MessageStep::Kind::work, static_cast<int>(out_.work.size())});
    out_.work.push_back({op, first_operand});
  }

  // --- in which order -------------------------------------------------------------------------

  // Where the address of a byte stands among those of its memory; input and output may be one.
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
  // Calls visit(Bytes) for what a parcel reads or writes; halves for what is staged are free.
  template <class Visit>
  void for_each_piece(int parcel, const Visit& visit) const {
    for (const Piece& piece : out_.parcels[static_cast<std::size_t>(parcel)].pieces) {
      if (piece.memory == Memory::message) continue;
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
    out_.steps.push_back({MessageStep::Kind::wait, parcel});
  }
  // Until nobody is sent these bytes any more.
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
      for_each_piece(p, [&](const Bytes& piece) { touch(piece, now); });
    }
    for (const int p : rounds_[i].sent) {
      for_each_piece(p, [&](const Bytes& piece) { touch(piece, now, p); });
    }
    for (const MessageStep& task : rounds_[i].tasks) {
      if (task.kind != MessageStep::Kind::work) continue;
      const Work& work = out_.work[static_cast<std::size_t>(task.index)];
      touch(written_by(work), now);
      for (std::size_t o = 0; o < work.op.operands; ++o) {
        const Operand& read = out_.operands[work.first_operand + o];
        if (read.memory == Memory::message) continue;
        touch(bytes_of(read.memory, read.offset, work.op.bytes), now);
      }
    }
  }
  // Whether nothing has touched what is received since round `i` began.
  bool is_free(int parcel, std::size_t i) const {
    bool free = true;
    for_each_piece(parcel, [&](const Bytes& piece) {
      touches_[piece.memory].for_each(piece.begin, piece.bytes, [&](const LastTouches::Stretch& s) {
        free &= s.round < static_cast<int>(i);
      });
    });
    return free;
  }

  void order(std::size_t i) {
    for (const int p : rounds_[i].received) {
      if (!started_[static_cast<std::size_t>(p)]) start_receiving(p);
    }
    for (const int p : rounds_[i].sent) start(p);
    touch_all(i);
    if (i + 1 < rounds_.size()) {
      for (const int p : rounds_[i + 1].received) {
        if (is_free(p, i)) start_receiving(p);
      }
    }
    for (const MessageStep& task : rounds_[i].tasks) {
      if (task.kind == MessageStep::Kind::wait) {
        wait(task.index);
        continue;
      }
      const Work& work = out_.work[static_cast<std::size_t>(task.index)];
      if (work.op.code != OpCode::finish) wait_for_senders(written_by(work));
      out_.steps.push_back(task);
    }
  }

  // Behind the plan's scratch: the halves of even and odd rounds.
  void place_staged() {
    std::size_t half[2] = {0, 0};
    for (std::size_t i = 0; i < rounds_.size(); ++i) {
      half[i % 2] = std::max(half[i % 2], rounds_[i].staged);
    }
    const std::size_t begin[2] = {plan_.scratch_bytes, plan_.scratch_bytes + half[0]};
    out_.scratch_bytes = plan_.scratch_bytes + half[0] + half[1];
    for (std::size_t i = 0; i < rounds_.size(); ++i) {
      const auto place = [here = begin[i % 2]](auto& what) {
        if (what.memory != Memory::message) return;
        what.memory = Memory::scratch;
        what.offset += here;
      };
      for (const int p : rounds_[i].received) {
        for (Piece& piece : out_.parcels[static_cast<std::size_t>(p)].pieces) place(piece);
      }
      for (const MessageStep& task : rounds_[i].tasks) {
        if (task.kind != MessageStep::Kind::work) continue;
        const Work& work = out_.work[static_cast<std::size_t>(task.index)];
        for (std::size_t o = 0; o < work.op.operands; ++o) {
          place(out_.operands[work.first_operand + o]);
        }
      }
    }
  }

  const RankPlan& plan_;
  const std::optional<std::ptrdiff_t> in_place_offset_;
  MessagePlan out_;
  std::vector<Round> rounds_;
  std::map<std::pair<int, bool>, int> ends_;  // of the latest round: peer, whether it sends there
  std::vector<bool> started_, waited_;        // by parcel
  std::array<LastTouches, 3> touches_;        // by Memory
};

const std::byte* address(const Operand& operand, const Addresses& memory) {
  return memory[static_cast<std::size_t>(operand.memory)] + operand.offset;
}

}  // namespace

MessagePlan message_plan(const RankPlan& plan, std::optional<std::ptrdiff_t> in_place_offset) {
  return Maker(plan, in_place_offset).make();
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
  for (std::size_t i = 0; i < op.operands; ++i) {
    const Operand& from = messages.operands[work.first_operand + i];
    operands[i] = const_cast<std::byte*>(address(from, call.memory));
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
