#include "tests/engine/run/replay.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>

#include "engine/run/interpret.h"
#include "engine/run/mailbox.h"
#include "engine/run/rank_control.h"

namespace rankine {
namespace {

constexpr std::byte kPoison{0xdb};

// The rank's buffers of each kind, at the call in which it announced them.
using Memories = std::array<std::byte*, 3>;

struct Slot {
  std::uint32_t flag = 0;
  std::size_t call = 0;                // the call of run() whose message is in it
  const std::byte* address = nullptr;  // if by address; else
  std::vector<std::byte> data;         // the data
};

struct Box {
  std::array<Slot, kSlots> slots;
  std::uint32_t credit = 0;

  Slot& slot(std::uint32_t number) { return slots[number % kSlots]; }
};

struct Posted {
  std::uint32_t flag = 0;
  std::size_t call = 0;       // the call of run() that posted
  std::uint32_t written = 0;  // the flag of the post stored or being stored here
  std::vector<std::byte> bytes;
};

struct Actor {
  std::size_t call = 0;  // in run()
  std::size_t pc = 0, operand = 0;
  bool inside = false;  // has begun that call
  std::uint32_t base = 0;
  std::uint32_t number = 0;  // number of the call, as in entries
  std::uint32_t posts = 0;
  std::vector<std::uint32_t> sent, received;  // before this call, by peer
  std::vector<Memories> known;
  std::vector<std::size_t> known_at;  // by peer: 1 + the call at which its entry was read
  std::vector<std::byte> region, scratch;
  // As in RankState.
  Scratch places;
  struct Reader {
    std::size_t rank = 0;
    std::uint32_t progress = 0;
  };
  struct {
    std::uint32_t call = 0;
    std::vector<Reader> all;
  } readers[2];
  int sent_in_flight = 0, received_in_flight = 0;  // messages, in calls with a budget of ports
};

struct OwnEntry {
  std::uint32_t call = 0;
  std::size_t at = 0;  // call of run()
  Memories memory{};
};

}  // namespace

struct Replay::Machine {
  Machine(const ReplayOptions& o, Random& source) : options(o), random(source) {
    const auto n = static_cast<std::size_t>(options.ranks);
    actors.resize(n);
    entries.resize(n);
    progress.assign(n, options.first_count);
    boxes.resize(n * n);
    boards.resize(n);
    for (Actor& actor : actors) {
      actor.base = actor.number = actor.posts = options.first_count;
      actor.sent.assign(n, options.first_count);
      actor.received.assign(n, options.first_count);
      actor.known.resize(n);
      actor.known_at.assign(n, 0);
    }
    for (auto& both : entries) {
      for (OwnEntry& entry : both) entry.call = options.first_count;
    }
    for (auto& halves : boards) {
      for (Posted& half : halves) {
        half.flag = half.written = options.first_count;
        half.bytes.assign(board_stride(kTestBoard), kPoison);
      }
    }
    for (Box& box : boxes) {
      box.credit = options.first_count;
      for (Slot& slot : box.slots) slot.flag = options.first_count;
    }
  }

  Box& box(std::size_t from, std::size_t to) { return boxes[from * actors.size() + to]; }

  Posted& half(std::size_t r, std::uint32_t number) {
    const HalfPlace place = half_place(options.ranks, r, options.one_half ? 0 : number);
    return boards[place.rank][place.half];
  }

  std::string run(std::span<const TestCall* const> all) {
    calls = all;
    fault.clear();
    for (std::size_t r = 0; r < actors.size(); ++r) {
      std::size_t bytes = 0, scratch = 0;
      for (const TestCall* call : calls) {
        bytes = std::max(bytes, call->before[r].bytes.size());
        scratch = std::max(scratch, call->plan.rank[r].scratch_bytes);
      }
      actors[r].region.assign(bytes, kPoison);
      actors[r].scratch.assign(4 * scratch, kPoison);
      actors[r].places = {.begin = actors[r].scratch.data(), .ring_bytes = 4 * scratch};
      for (auto& readers : actors[r].readers) readers.all.clear();
      actors[r].call = 0;
      actors[r].inside = false;
      std::fill(actors[r].known_at.begin(), actors[r].known_at.end(), 0);
    }
    std::vector<std::size_t> order(actors.size());  // the order in which ranks are asked
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    const auto shuffle = [&] {
      for (std::size_t i = order.size(); i > 1; --i) {
        std::swap(order[i - 1], order[static_cast<std::size_t>(random.below(static_cast<int>(i)))]);
      }
    };
    shuffle();
    // The average number of steps before the order changes: 1 is always a new order, 400 lets ranks
    // run far ahead.
    const int patience = std::array{1, 6, 40, 400}[static_cast<std::size_t>(random.below(4))];
    std::size_t done = 0;
    while (done < actors.size()) {
      if (random.one_in(patience)) shuffle();
      bool moved = false;
      for (const std::size_t r : order) {
        if (actors[r].call == calls.size() || !step(r)) continue;
        moved = true;
        ++steps;
        if (!fault.empty()) return fault;
        if (actors[r].call == calls.size()) ++done;
        break;
      }
      if (!moved) return stuck();
    }
    return {};
  }

  // Returns false if the rank must wait.
  bool step(std::size_t r) {
    Actor& me = actors[r];
    const TestCall& call = *calls[me.call];
    if (!me.inside) {
      enter(r, call);
      return true;
    }
    const RankPlan& plan = call.plan.rank[r];
    const Op& op = plan.ops[me.pc];
    const std::size_t peer = op.peer;
    switch (op.code) {
      case OpCode::end:
        leave(r, call);
        return true;
      case OpCode::enter:
        entries[r][me.number & 1] = {me.number, me.call, me.known[r]};
        break;
      case OpCode::wait_readers: {
        const auto is_awaited = [&](const auto& readers) {
          return op.value == 1 || readers.call + 1 != me.number;
        };
        for (const auto& readers : me.readers) {
          for (const Actor::Reader& reader : readers.all) {
            if (is_awaited(readers) && !reached(progress[reader.rank], reader.progress))
              return false;
          }
        }
        for (auto& readers : me.readers) {
          if (is_awaited(readers)) readers.all.clear();
        }
        const std::size_t bytes = call.plan.rank[r].scratch_bytes;
        std::byte* const place = me.places.place(op.value == 1, bytes);
        std::fill_n(place, bytes, kPoison);
        me.known[r][static_cast<std::size_t>(Memory::scratch)] = place;
        break;
      }
      case OpCode::leave_reader:
        me.readers[me.number & 1].call = me.number;
        me.readers[me.number & 1].all.push_back({peer, me.base + op.value});
        break;
      case OpCode::wait_entry: {
        const OwnEntry& entry = entries[peer][me.number & 1];
        if (!reached(entry.call, me.number)) return false;
        if (entry.at != me.call) fail(r, op, "finds the entry of another call");
        me.known[peer] = entry.memory;
        me.known_at[peer] = me.call + 1;
        break;
      }
      case OpCode::wait_progress:
        if (!reached(progress[peer], me.base + op.value)) return false;
        break;
      case OpCode::wait_message: {
        Slot& slot = box(peer, r).slot(me.received[peer] + op.value);
        if (!reached(slot.flag, me.received[peer] + op.value + 1)) return false;
        if (slot.call != me.call) fail(r, op, "finds a message of another call");
        break;
      }
      case OpCode::wait_credit:
        if (!reached(box(r, peer).credit, me.sent[peer] + op.value)) return false;
        break;
      case OpCode::send: {
        Box& to = box(r, peer);
        const std::uint32_t number = me.sent[peer] + op.value;
        if (!reached(to.credit, number + 1 - kSlots)) return false;
        Slot& slot = to.slot(number);
        slot.flag = number + 1;
        slot.call = me.call;
        const std::byte* data = address(r, op, plan.operands[me.operand++]);
        slot.address = (op.flags & kByAddress) != 0 ? data : nullptr;
        slot.data.clear();
        if (call.plan.ports > 0) {
          ++me.sent_in_flight;
          ++actors[peer].received_in_flight;
          if (me.sent_in_flight > call.plan.ports) fail(r, op, "sends without a port");
          if (actors[peer].received_in_flight > call.plan.ports) {
            fail(r, op, "sends to a rank without a port");
          }
        }
        if (data != nullptr && slot.address == nullptr) {
          if (op.bytes > options.slot_payload) fail(r, op, "puts too much into a slot");
          slot.data.assign(data, data + op.bytes);
        }
        break;
      }
      case OpCode::fold:
      case OpCode::apply:
        fold(r, op, call);
        break;
      case OpCode::widen:
      case OpCode::narrow:
      case OpCode::choose:
      case OpCode::chosen:
      case OpCode::reach:
        fail(r, op, "is of no plan that a program is lowered to");
        return true;
      case OpCode::finish:  // writes nothing that others see
      case OpCode::count_ports:
        break;
      case OpCode::post:
        post(r, op, plan);
        break;
      case OpCode::wait_post:
      case OpCode::wait_posts:
        for (std::size_t q = 0; q < actors.size(); ++q) {
          if (q == r || (op.code == OpCode::wait_post && q != peer)) continue;
          const Posted& theirs = half(q, me.posts - 1);
          if (!reached(theirs.flag, me.posts)) return false;
          if (theirs.call != me.call) fail(r, op, "finds the post of another call");
        }
        break;
      case OpCode::release: {
        const std::uint32_t number = me.received[peer] + op.value;
        if ((op.flags & kByAddress) != 0 || number % kUnderWay == 0) {
          if (call.plan.ports > 0) {
            actors[peer].sent_in_flight -= static_cast<int>(number - box(peer, r).credit);
          }
          box(peer, r).credit = number;
        }
        break;
      }
    }
    ++me.pc;
    return true;
  }

  void post(std::size_t r, const Op& op, const RankPlan& plan) {
    Actor& me = actors[r];
    Posted& mine = half(r, me.posts);
    mine.written = me.posts + 1;
    if (op.operands > 0) {
      if (op.offset < sizeof(PostHeader) || op.offset + op.bytes > mine.bytes.size()) {
        return fail(r, op, "posts outside its board");
      }
      const std::byte* data = address(r, op, plan.operands[me.operand++]);
      if (data != nullptr)
        std::copy_n(data, op.bytes, mine.bytes.begin() + static_cast<std::ptrdiff_t>(op.offset));
    }
    if ((op.flags & kMoreToPost) != 0) return;
    mine.flag = ++me.posts;
    mine.call = me.call;
  }

  void enter(std::size_t r, const TestCall& call) {
    Actor& me = actors[r];
    const Image& image = call.before[r];
    std::copy(image.bytes.begin(), image.bytes.end(), me.region.begin());
    me.inside = true;
    me.pc = me.operand = 0;
    ++me.number;
    me.known[r] = {me.region.data() + image.input, me.region.data() + image.output,
                   me.scratch.data()};
    me.known_at[r] = me.call + 1;
  }

  void leave(std::size_t r, const TestCall& call) {
    Actor& me = actors[r];
    const Image& wanted = call.after[r];
    if (std::memcmp(me.region.data(), wanted.bytes.data(), wanted.bytes.size()) != 0) {
      Image got = wanted;
      std::copy_n(me.region.begin(), got.bytes.size(), got.bytes.begin());
      fault = "call " + std::to_string(me.call) + ", rank " + std::to_string(r) + ": " +
              difference_between(got, wanted);
    }
    std::fill(me.region.begin(), me.region.end(), kPoison);
    if (me.readers[0].all.empty() && me.readers[1].all.empty())
      std::fill(me.scratch.begin(), me.scratch.end(), kPoison);
    for (const Traffic& traffic : call.plan.rank[r].traffic) {
      me.sent[traffic.peer] += traffic.sent;
      me.received[traffic.peer] += traffic.received;
    }
    me.base += call.plan.span;
    ++me.call;
    me.inside = false;
  }

  void fold(std::size_t r, const Op& op, const TestCall& call) {
    Actor& me = actors[r];
    std::vector<const void*> sources;
    for (int i = 0; i < op.operands; ++i) {
      const Operand& operand = call.plan.rank[r].operands[me.operand++];
      const std::byte* source = address(r, op, operand);
      if (source == nullptr) return;
      if (call.plan.ports > 0 && operand.memory == Memory::message) --me.received_in_flight;
      sources.push_back(source);
    }
    if (sources.empty()) {
      progress[r] = me.base + op.value;
      return;
    }
    std::byte* destination = me.known[r][static_cast<std::size_t>(op.memory)] + op.offset;
    if (!is_in(destination, op.bytes, r)) return fail(r, op, "writes outside its buffers");
    if (sources.size() == 1) {
      std::memmove(destination, sources[0], op.bytes);
    } else {
      const int divisor = (op.flags & kDivides) != 0 ? call.plan.divisor : 0;
      call.plan.fold(destination, sources.data(), op.operands, op.bytes / call.plan.element_bytes,
                     divisor);
    }
    for (int i = 0; i < op.copies; ++i) {
      const std::byte* to = address(r, op, call.plan.rank[r].operands[me.operand++]);
      if (to == nullptr) return;
      std::memcpy(const_cast<std::byte*>(to), destination, op.bytes);
    }
    if (op.value != 0) progress[r] = me.base + op.value;
  }

  // The address of an operand; nullptr after a fault.
  const std::byte* address(std::size_t r, const Op& op, const Operand& operand) {
    Actor& me = actors[r];
    const std::size_t from = operand.rank;
    const std::byte* found = nullptr;
    if (operand.memory == Memory::message) {
      const Slot& slot = box(from, r).slot(me.received[from] + operand.message);
      if (slot.flag != me.received[from] + operand.message + 1) {
        fail(r, op, "uses a slot that holds another message");
        return nullptr;
      }
      if (slot.address == nullptr) {
        if (slot.data.size() == op.bytes) return slot.data.data();
        fail(r, op, "finds a message of another size");
        return nullptr;
      }
      found = slot.address;
    } else if (operand.memory == Memory::board) {
      const Posted& there = half(from, me.posts - 1);
      if (there.flag != me.posts || there.written != me.posts) {
        fail(r, op, "uses a half that holds another post");
      } else if (op.bytes > 0 && operand.offset + op.bytes > there.bytes.size()) {
        fail(r, op, "reads outside the board of rank " + std::to_string(from));
      } else {
        return there.bytes.data() + operand.offset;
      }
      return nullptr;
    } else {
      if (me.known_at[from] != me.call + 1) {
        fail(r, op, "does not know the addresses of rank " + std::to_string(from));
        return nullptr;
      }
      if (operand.memory < Memory::scratch && actors[from].call != me.call) {
        fail(r, op, "uses a buffer of rank " + std::to_string(from) + ", which has returned");
        return nullptr;
      }
      found = me.known[from][static_cast<std::size_t>(operand.memory)] + operand.offset;
    }
    if (is_in(found, op.bytes, from)) return found;
    fail(r, op, "reads outside the buffers of rank " + std::to_string(from));
    return nullptr;
  }

  bool is_in(const std::byte* begin, std::size_t bytes, std::size_t r) const {
    const auto within = [&](const std::vector<std::byte>& memory) {
      return begin >= memory.data() && begin + bytes <= memory.data() + memory.size();
    };
    return within(actors[r].region) || within(actors[r].scratch);
  }

  void fail(std::size_t r, const Op& op, const std::string& what) {
    if (!fault.empty()) return;
    fault = "call " + std::to_string(actors[r].call) + ", rank " + std::to_string(r) + ", round " +
            std::to_string(op.round) + ": " + what;
  }

  std::string stuck() const {
    std::string text = "everybody is stuck:";
    for (std::size_t r = 0; r < actors.size(); ++r) {
      const Actor& me = actors[r];
      text += "\n  rank " + std::to_string(r);
      if (me.call == calls.size()) {
        text += " has finished";
        continue;
      }
      const Op& op = calls[me.call]->plan.rank[r].ops[me.pc];
      text += ": call " + std::to_string(me.call) + ", op " + std::to_string(me.pc) + " (code " +
              std::to_string(static_cast<int>(op.code)) + "), peer " + std::to_string(op.peer) +
              ", round " + std::to_string(op.round) + ", value " + std::to_string(op.value);
    }
    return text;
  }

  const ReplayOptions options;
  Random& random;
  std::span<const TestCall* const> calls;
  std::vector<Actor> actors;
  std::vector<std::array<OwnEntry, 2>> entries;  // by the last bit of the call's number
  std::vector<std::uint32_t> progress;
  std::vector<Box> boxes;
  std::vector<std::array<Posted, 2>> boards;
  std::string fault;
  std::uint64_t steps = 0;
};

Replay::Replay(const ReplayOptions& options, Random& random)
    : machine_(std::make_unique<Machine>(options, random)) {}
Replay::~Replay() = default;
std::string Replay::run(std::span<const TestCall* const> calls) { return machine_->run(calls); }
std::uint64_t Replay::steps() const { return machine_->steps; }

std::string fault_of(const Plan& plan, bool in_turns) {
  std::vector<std::map<std::uint32_t, int>> published(plan.rank.size());  // value -> round
  std::vector<std::vector<std::uint32_t>> sent(plan.rank.size()), received(plan.rank.size());
  for (std::size_t r = 0; r < plan.rank.size(); ++r) {
    std::uint32_t last = 0;
    for (const Op& op : plan.rank[r].ops) {
      if (op.code != OpCode::fold || op.value == 0) continue;
      if (op.value <= last) return "progress falls at rank " + std::to_string(r);
      last = op.value;
      published[r][op.value] = op.round;
    }
    if (last > 0 && last >= plan.span) return "the span is too small";
  }
  std::ptrdiff_t posts = 0;
  for (std::size_t r = 0; r < plan.rank.size(); ++r) {
    const RankPlan& mine = plan.rank[r];
    const auto posted = std::count_if(mine.ops.begin(), mine.ops.end(), [](const Op& op) {
      return op.code == OpCode::post && (op.flags & kMoreToPost) == 0;
    });
    if (r == 0) posts = posted;
    if (posted != posts) return "rank " + std::to_string(r) + " makes another number of posts";
    const std::string who = "rank " + std::to_string(r) + ": ";
    if (mine.ops.empty() || mine.ops.back().code != OpCode::end) return who + "no end";
    std::size_t operands = 0;
    for (const Op& op : mine.ops) {
      operands += op.operands;
      operands += op.copies;
      if (op.operands > plan.most_operands && op.code == OpCode::fold) {
        return who + "more operands than the plan says";
      }
      if (op.code == OpCode::end || op.code == OpCode::enter || op.code == OpCode::fold ||
          op.code == OpCode::post || op.code == OpCode::wait_posts ||
          op.code == OpCode::wait_readers || op.code == OpCode::count_ports) {
        continue;
      }
      if (op.peer == r) return who + "waits for itself";
      if (op.code != OpCode::wait_progress) continue;
      const auto found = published[op.peer].find(op.value);
      if (found == published[op.peer].end()) {
        return who + "waits for progress that rank " + std::to_string(op.peer) + " never makes";
      }
      // Ranks wait for ports within a round as well; the replay finds cycles.
      if (!in_turns && plan.ports == 0 && found->second >= op.round) {
        return who + "waits in round " + std::to_string(op.round) + " for round " +
               std::to_string(found->second) + " of rank " + std::to_string(op.peer);
      }
    }
    if (operands != mine.operands.size()) return who + "operands do not add up";
  }
  return {};
}

namespace {

constexpr std::uint32_t kSignChange = std::uint32_t{1} << 31;

}  // namespace

Session random_session(Random& random, SessionRules rules) {
  Session session;
  rules.calls.ranks = random.between(1, rules.calls.ranks);
  rules.calls.slot_payload = random.pick(std::vector<std::size_t>{8, 48, 112, 304});
  if (random.one_in(2)) rules.calls.most_elements = std::min(24, rules.calls.most_elements);
  session.ranks = rules.calls.ranks;
  session.slot_payload = rules.calls.slot_payload;
  const auto before = static_cast<std::uint32_t>(random.below(40));
  if (random.one_in(3)) {
    session.first_count = 0U - before;
  } else if (random.one_in(2)) {
    session.first_count = kSignChange - before;
  }
  for (int i = 0; i < rules.schedules; ++i) {
    session.made.push_back(random_call(random, rules.calls));
    const TestCall& call = session.made.back();
    session.fault = call.before.empty()  ? call.text
                    : rules.checks_plans ? fault_of(call.plan, call.in_turns)
                                         : std::string();
    if (!session.fault.empty()) {
      session.fault += "\n" + call.text + "\n" + to_string(call.schedule);
      return session;
    }
  }
  for (const TestCall& call : session.made) session.calls.push_back(&call);
  for (int i = random.below(rules.repetitions + 1); i > 0; --i) {
    session.calls.push_back(&random.pick(session.made));
  }
  for (std::size_t i = session.calls.size(); i > 1; --i) {
    std::swap(session.calls[i - 1],
              session.calls[static_cast<std::size_t>(random.below(static_cast<int>(i)))]);
  }
  return session;
}

std::string Session::explain(const std::string& what) const {
  std::string text = what + "\n" + std::to_string(ranks) + " ranks, slots of " +
                     std::to_string(slot_payload) + " bytes, counters from " +
                     std::to_string(first_count);
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const std::string name = "call " + std::to_string(i);
    text += "\n" + name + ": " + calls[i]->text;
    if (what.find(name + ",") != std::string::npos) text += "\n" + to_string(calls[i]->schedule);
  }
  return text;
}

}  // namespace rankine
