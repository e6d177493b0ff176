#include <algorithm>
#include <bit>
#include <cstring>
#include <new>
#include <string>
#include <utility>

#include "engine/api/mpi/process.h"
#include "engine/base/status.h"

namespace rankine::mpi {
namespace {

// A parcel begins with the fingerprint of its call. In a slot, the data of a small message follow
// the fingerprint directly. A parcel of one message outside a slot has no head, because MPI sends
// contiguous data faster; its tag has a hash of the fingerprint.
constexpr std::size_t kHead = sizeof(std::uint64_t);

// The slot of a received message has an address only.
constexpr std::size_t kAddressStride = kCacheLine;

void free_request(MPI_Request& request) noexcept {
  if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
}

}  // namespace

Wire::Wire(Process& process, Rank rank, const WireOptions& options, std::size_t most_bytes)
    : process_(process),
      rank_(rank),
      thread_(process.locations()[rank].thread),
      options_(options),
      most_bytes_(most_bytes),
      slot_stride_(mailbox_shape(static_cast<int>(options.node.size())).stride),
      idling_(process.policy()),
      moves_(process.calls_mpi(thread_)),
      peers_(options.node.size()),
      near_rounds_(options.node.size(), -1) {}

Wire::~Wire() {
  if (!has_failed_.load(std::memory_order_acquire)) return;  // pairs with run()
  cancel();
  // MPI may still read the slots.
  for (auto& peer : peers_) static_cast<void>(peer.release());
}

// --- a plan's parcels
// ------------------------------------------------------------------------------

Wire::Parcel& Wire::add(bool sends, Rank far, const Op& op, std::uint32_t number, bool by_address) {
  std::vector<Parcel>& parcels = sends ? sends_ : receives_;
  std::unique_ptr<Peer>& peer = peers_[static_cast<std::size_t>(far)];
  int& last = sends ? peer->last_sent : peer->last_received;
  const auto message = static_cast<int>(messages_.size());
  messages_.push_back({.bytes = op.bytes, .by_address = by_address});
  if (last < 0 || parcels[static_cast<std::size_t>(last)].round != op.round) {
    const auto index = static_cast<int>(parcels.size());
    if (last >= 0) parcels[static_cast<std::size_t>(last)].next = index;
    parcels.push_back(
        {.peer = far, .round = op.round, .number = number, .first = message, .is_first = last < 0});
    last = index;
  } else {
    messages_[static_cast<std::size_t>(parcels[static_cast<std::size_t>(last)].last)].next =
        message;
  }
  Parcel& parcel = parcels[static_cast<std::size_t>(last)];
  parcel.last = message;
  ++parcel.count;
  parcel.bytes += op.bytes;
  return parcel;
}

void Wire::read(const RankPlan& plan) {
  sends_.clear();
  receives_.clear();
  messages_.clear();
  of_call_ = {};
  for (const Traffic& traffic : plan.traffic) {
    near_rounds_[traffic.peer] = -1;
    if (!is_far(traffic.peer)) continue;
    std::unique_ptr<Peer>& peer = peers_[traffic.peer];
    if (peer == nullptr) peer = std::make_unique<Peer>();
    peer->last_sent = peer->last_received = -1;
  }
  const Operand* operand = plan.operands.data();
  int credits = 0;
  for (const Op& op : plan.ops) {
    if (op.code == OpCode::wait_credit) ++credits;
    if (op.code == OpCode::send) {
      if (is_far(op.peer)) {
        add(true, op.peer, op, op.value, (op.flags & kByAddress) != 0);
      } else {
        int& round = near_rounds_[op.peer];
        if (std::exchange(round, op.round) != op.round) ++of_call_.messages_within;
        of_call_.bytes_within += op.bytes;
      }
    } else if (op.code == OpCode::fold || op.code == OpCode::apply) {
      for (std::size_t i = 0; i < op.operands; ++i) {
        if (operand[i].memory != Memory::message || !is_far(operand[i].rank)) continue;
        Parcel& parcel = add(false, operand[i].rank, op, operand[i].message, true);
        const bool stores = op.code == OpCode::fold && op.operands == 1 && op.copies == 0 &&
                            (op.flags & ~kOnlyIfMoved) == 0;
        parcel.is_direct = stores && moves_ && head_of(parcel) == 0;
        parcel.memory = op.memory;
        parcel.offset = op.offset;
        parcel.credits = credits;
      }
    }
    operand += std::size_t{op.operands} + op.copies;
  }
  of_call_.messages = sends_.size();
  for (const Parcel& parcel : sends_) of_call_.bytes += parcel.bytes;
  lay_out();
}

// Places receptions in the staging halves: the data of each parcel begin at a cache line.
void Wire::lay_out() {
  std::size_t half[2] = {0, 0}, end = 0;
  int turn = -1, round = -1;
  for (Parcel& parcel : receives_) {
    if (parcel.round != round) {
      ++turn;
      round = parcel.round;
      end = 0;
    }
    parcel.turn = turn;
    if (parcel.is_direct) continue;
    parcel.place = end + kCacheLine - kHead;
    end += kCacheLine + whole_lines(parcel.bytes);
    half[turn % 2] = std::max(half[turn % 2], end);
  }
  half_bytes_[0] = half[0];
  half_bytes_[1] = half[1];
  for (Parcel& parcel : receives_) {
    if (parcel.turn % 2 != 0) parcel.place += half[0];
  }
}

void Wire::provide(Mailbox& box, Counter& credit, std::unique_ptr<std::byte[]>& slots,
                   std::uint32_t count, std::size_t stride, std::uint32_t base) {
  // A parcel may be posted while the former one is in flight.
  const std::uint32_t capacity = std::bit_ceil(2 * std::max(count, 2U));
  if (box.slots != nullptr && box.capacity >= capacity) return;
  slots = std::make_unique<std::byte[]>(capacity * stride + kCacheLine);
  const auto begin = reinterpret_cast<std::uintptr_t>(slots.get());
  box = {slots.get() + (kCacheLine - begin % kCacheLine) % kCacheLine,
         static_cast<std::uint32_t>(stride), &credit, capacity};
  for (std::uint32_t i = 0; i < capacity; ++i) {
    (new (box.slots + std::size_t{i} * stride) PostHeader)
        ->flag.store(base, std::memory_order_relaxed);  // read after the call has begun
  }
}

void Wire::make_room(const Plan& plan, RankState& state) {
  read(plan.rank[static_cast<std::size_t>(rank_)]);
  if (const std::size_t bytes = half_bytes_[0] + half_bytes_[1] + kCacheLine;
      staging_.size() < bytes) {
    staging_.resize(bytes);
    const auto begin = reinterpret_cast<std::uintptr_t>(staging_.data());
    staged_ = staging_.data() + (kCacheLine - begin % kCacheLine) % kCacheLine;
  }
  std::size_t parts = 0;
  for (const auto* parcels : {&sends_, &receives_}) {
    for (const Parcel& parcel : *parcels) {
      Peer& far = peer(parcel.peer);
      const auto i = static_cast<std::size_t>(parcel.peer);
      if (parcels == &sends_) {
        provide(far.out, far.out_credit, far.out_slots, parcel.count, slot_stride_,
                state.outbox[i].base);
      } else {
        provide(far.in, far.in_credit, far.in_slots, parcel.count, kAddressStride,
                state.inbox[i].base);
      }
      parts += (head_of(parcel) + parcel.bytes + most_bytes_ - 1) / most_bytes_;
    }
  }
  requests_.reserve(parts);
  parts_.reserve(parts);
  pieces_.reserve(messages_.size() + 1);
  part_.reserve(messages_.size() + 1);
}

// --- a call, on the rank's thread
// ------------------------------------------------------------------

void Wire::connect(const RankPlan& plan, RankState& state) {
  state_ = &state;
  reached_round_ = -1;
  rank_control_ = state.waiter.rank_control;
  fingerprint_ = state.waiter.fingerprint;
  for (const Traffic& traffic : plan.traffic) {
    if (!is_far(traffic.peer)) continue;
    Peer& far = peer(traffic.peer);
    Outbox& out = state.outbox[traffic.peer];
    Inbox& in = state.inbox[traffic.peer];
    // Everything before this call has been used.
    far.out_base = out.base;
    far.in_base = in.base;
    far.out_credit.value.store(out.base, std::memory_order_relaxed);
    far.in_credit.value.store(in.base, std::memory_order_relaxed);
    out.mailbox = far.out;
    out.credit_seen = out.base;
    in.mailbox = far.in;
  }
}

// The end of a call waits until the progress of all ranks is near (bound_counter_skew() in walk.h).
// Far ranks publish none here; their messages keep them near.
void Wire::advance_far_ranks(const Plan& plan, RankState& state) noexcept {
  constexpr std::uint32_t kStretch = 1U << 29;
  const std::uint32_t next = state.progress_base + plan.span;
  if ((state.progress_base ^ next) < kStretch) return;
  for (Rank r = 0; r < plan.ranks; ++r) {
    if (is_far(r)) publish(*rank_control_, r, rank_control_->progress(r).value, next);
  }
}

bool Wire::run(const Plan& plan, RankState& state) noexcept {
  const RankPlan& mine = plan.rank[static_cast<std::size_t>(rank_)];
  read(mine);  // make_room() has reserved the memory
  connect(mine, state);
  advance_far_ranks(plan, state);
  sent_.messages += of_call_.messages;
  sent_.bytes += of_call_.bytes;
  sent_.messages_within += of_call_.messages_within;
  sent_.bytes_within += of_call_.bytes_within;
  const bool has_parcels = !sends_.empty() || !receives_.empty();
  if (has_parcels) {
    // Pairs with move().
    begun_.value.store(begun_.value.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }
  if (interpret(plan, state) && (!has_parcels || flush(plan.rounds, state))) return true;
  has_failed_.store(true, std::memory_order_release);  // pairs with move() and ~Wire()
  if (!moves_) return false;
  other_caller_ = sender_of_another_call();
  cancel();
  return false;
}

// Waits until MPI has sent all parcels.
bool Wire::flush(int rounds, RankState& state) noexcept {
  if (moves_) move();
  return wait_until(state.waiter, over_.value, begun_.value.load(std::memory_order_relaxed),
                    last_peer(), rounds + 1);
}

void Wire::wait_for(const WaitTarget& awaited) noexcept {
  const auto& far = peers_[static_cast<std::size_t>(awaited.owner)];
  if (far == nullptr || far->in.slots == nullptr) return;
  if (awaited.word != &far->in.slot(awaited.value - 1).flag) return;  // it waits for credit
  const std::uint32_t number = awaited.value - 1 - far->in_base;
  for (std::size_t i = used_; i < receives_.size(); ++i) {
    const Parcel& parcel = receives_[i];
    if (parcel.peer != awaited.owner || number - parcel.number >= parcel.count) continue;
    reached_round_ = parcel.round;
    reached_credits_ = parcel.credits;
    return;
  }
}

void Wire::give_way(int turn) noexcept {
  constexpr int kTurnsPerAlarm = 8;
  if (turn == 0) idling_.begin_again();
  process_.move(thread_);
  const bool is_late = static_cast<std::uint32_t>(turn) >= process_.policy().probes;
  if (!is_late) {
    pause_cpu();
  } else if (idling_.once() || turn % kTurnsPerAlarm == 0) {
    static_cast<void>(process_.heard(thread_));
  }
}

// --- the thread that calls MPI
// ---------------------------------------------------------------------

bool Wire::is_posted(const Peer& peer, const Parcel& parcel) {
  const std::uint32_t end = peer.out_base + parcel.number + parcel.count;
  // Acquire: pairs with the interpreter's post().
  return reached(peer.out.slot(end - 1).flag.load(std::memory_order_acquire), end);
}

bool Wire::is_used(const Peer& peer, const Parcel& parcel) {
  const std::uint32_t end = peer.in_base + parcel.number + parcel.count;
  // Acquire: pairs with Inbox::release().
  return reached(peer.in_credit.value.load(std::memory_order_acquire), end);
}

// A staging half is free when the round before the last one has been used.
bool Wire::may_receive(const Parcel& parcel) {
  while (used_ < next_receive_ && is_used(peer(receives_[used_].peer), receives_[used_])) ++used_;
  if (parcel.is_direct) {
    return parcel.round < reached_round_ ||
           (parcel.round == reached_round_ && parcel.credits <= reached_credits_);
  }
  return used_ == next_receive_ || receives_[used_].turn > parcel.turn - 2;
}

// The place of a received parcel's data.
std::byte* Wire::place_of(const Parcel& parcel) const {
  return parcel.is_direct
             ? state_->memory_of(static_cast<std::size_t>(rank_), parcel.memory) + parcel.offset
             : staged_ + parcel.place + kHead;
}

std::size_t Wire::head_of(const Parcel& parcel) const {
  return parcel.count == 1 && parcel.bytes > payload_of(slot_stride_) ? 0 : kHead;
}

int Wire::tag_of(const Parcel& parcel, Rank from, Rank to) const {
  const int hash = head_of(parcel) > 0 ? 0 : process_.tag_hash(fingerprint_);
  return process_.tag_of(from, to, hash);
}

Status Wire::start_part(int index, std::size_t bytes) {
  const Parcel& parcel = sends_[static_cast<std::size_t>(index)];
  void* buffer = part_.front().begin;
  auto count = static_cast<int>(bytes);
  MPI_Datatype type = MPI_BYTE;
  if (part_.size() > 1) {
    std::vector<int> lengths;
    std::vector<MPI_Aint> places;
    for (const Piece& piece : part_) {
      MPI_Aint place = 0;
      MPI_Get_address(piece.begin, &place);
      places.push_back(place);
      lengths.push_back(static_cast<int>(piece.bytes));
    }
    buffer = MPI_BOTTOM;
    count = 1;
    int code = MPI_Type_create_hindexed(static_cast<int>(lengths.size()), lengths.data(),
                                        places.data(), MPI_BYTE, &type);
    if (code == MPI_SUCCESS) code = MPI_Type_commit(&type);
    if (code != MPI_SUCCESS) return mpi_status("MPI_Type_create_hindexed", code);
  }
  MPI_Request request = MPI_REQUEST_NULL;
  const int code = MPI_Isend(buffer, count, type, process_.locations()[parcel.peer].process,
                             tag_of(parcel, rank_, parcel.peer), process_.comm(), &request);
  if (type != MPI_BYTE) MPI_Type_free(&type);  // the request keeps it
  if (code != MPI_SUCCESS) return mpi_status("MPI_Isend", code);
  requests_.push_back(request);
  parts_.push_back({true, index, static_cast<int>(bytes)});
  part_.clear();
  return {};
}

Status Wire::start_send(int index) {
  Parcel& parcel = sends_[static_cast<std::size_t>(index)];
  const Peer& far = peer(parcel.peer);
  pieces_.clear();
  const auto add = [this](std::byte* begin, std::size_t bytes) {
    if (!pieces_.empty() && pieces_.back().begin + pieces_.back().bytes == begin) {
      pieces_.back().bytes += bytes;
    } else {
      pieces_.push_back({begin, bytes});
    }
  };
  std::uint32_t number = far.out_base + parcel.number;
  const std::size_t head = head_of(parcel);
  if (head > 0) add(reinterpret_cast<std::byte*>(&far.out.slot(number).fingerprint), head);
  for (int m = parcel.first; m >= 0; m = messages_[static_cast<std::size_t>(m)].next) {
    const Message& message = messages_[static_cast<std::size_t>(m)];
    std::byte* data = payload(far.out.slot(number++));
    if (message.by_address) std::memcpy(&data, data, sizeof(data));
    add(data, message.bytes);
  }
  part_.clear();
  std::size_t bytes = 0;
  for (Piece rest : pieces_) {
    while (rest.bytes > 0) {
      const std::size_t now = std::min(rest.bytes, most_bytes_ - bytes);
      part_.push_back({rest.begin, now});
      bytes += now;
      rest.begin += now;
      rest.bytes -= now;
      if (bytes < most_bytes_) continue;
      ++parcel.parts;
      if (Status status = start_part(index, std::exchange(bytes, 0)); !status.ok()) return status;
    }
  }
  if (bytes == 0) return {};
  ++parcel.parts;
  return start_part(index, bytes);
}

Status Wire::start_receive(int index) {
  Parcel& parcel = receives_[static_cast<std::size_t>(index)];
  std::byte* to = place_of(parcel) - head_of(parcel);
  for (std::size_t left = head_of(parcel) + parcel.bytes; left > 0;) {
    const auto bytes = static_cast<int>(std::min(left, most_bytes_));
    MPI_Request request = MPI_REQUEST_NULL;
    // Persistent: MPICH reports a message that is too long to the handler of the communicator only
    // if the request outlives the error.
    int code = MPI_Recv_init(to, bytes, MPI_BYTE, process_.locations()[parcel.peer].process,
                             tag_of(parcel, parcel.peer, rank_), process_.comm(), &request);
    if (code == MPI_SUCCESS) code = MPI_Start(&request);
    if (code != MPI_SUCCESS) return mpi_status("MPI_Recv_init", code);
    requests_.push_back(request);
    parts_.push_back({false, index, bytes});
    ++parcel.parts;
    to += bytes;
    left -= static_cast<std::size_t>(bytes);
  }
  return {};
}

Status Wire::misfit(const Parcel& parcel, const char* what) const {
  return make_error(Code::mismatch, [&] {
    return "rank " + std::to_string(parcel.peer) + " sent " + what + " the " +
           std::to_string(parcel.bytes) + " bytes that rank " + std::to_string(rank_) +
           " expects of it in round " + std::to_string(parcel.round - 1) + ": their calls differ";
  });
}

// Gives credit in the order of the messages.
void Wire::credit(Parcel& done) {
  Peer& far = peer(done.peer);
  for (Parcel* parcel = &done; parcel->is_first && parcel->is_done;) {
    publish(*rank_control_, parcel->peer, far.out_credit.value,
            far.out_base + parcel->number + parcel->count);
    if (parcel->next < 0) return;
    parcel = &sends_[static_cast<std::size_t>(parcel->next)];
    parcel->is_first = true;
  }
}

void Wire::deliver(const Parcel& parcel) {
  const Peer& far = peer(parcel.peer);
  std::byte* data = place_of(parcel);
  std::uint64_t fingerprint = fingerprint_;
  if (head_of(parcel) > 0) std::memcpy(&fingerprint, data - kHead, kHead);
  if (fingerprint != fingerprint_) {
    // The reader of the message will report the difference; the far rank's count is not known here.
    CallRecord& mine = rank_control_->record(rank_);
    const auto call = mine.number.load(std::memory_order_relaxed);
    for (Atomic<std::uint64_t>& count : rank_control_->record(parcel.peer).count)
      count.store(mine.of(call).count.load(std::memory_order_relaxed), std::memory_order_relaxed);
  }
  std::uint32_t number = far.in_base + parcel.number;
  for (int m = parcel.first; m >= 0; m = messages_[static_cast<std::size_t>(m)].next, ++number) {
    PostHeader& slot = far.in.slot(number);
    slot.bytes_or_history = 0;  // an address: no message has 0 bytes
    slot.fingerprint = fingerprint;
    std::memcpy(payload(slot), &data, sizeof(data));
    data += messages_[static_cast<std::size_t>(m)].bytes;
    publish(*rank_control_, parcel.peer, slot.flag, number + 1);
  }
}

Status Wire::finish(const Part& part, const MPI_Status& status) {
  Parcel& parcel = (part.sends ? sends_ : receives_)[static_cast<std::size_t>(part.parcel)];
  if (!part.sends) {
    int got = 0;
    MPI_Get_count(&status, MPI_BYTE, &got);
    if (got != part.bytes) return misfit(parcel, "less than");
  }
  if (--parcel.parts > 0) return {};
  --open_;
  parcel.is_done = true;
  if (part.sends) {
    credit(parcel);
  } else {
    deliver(parcel);
  }
  return {};
}

Status Wire::test() {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    const MPI_Request request = std::exchange(requests_[i], MPI_REQUEST_NULL);
    const Part part = parts_[i];
    MPI_Status status;
    int done = 0;
    requests_[kept] = request;
    const int code = MPI_Test(&requests_[kept], &done, &status);
    if (done != 0 || code != MPI_SUCCESS) free_request(requests_[kept]);
    if (code != MPI_SUCCESS) {
      return class_of(code) == MPI_ERR_TRUNCATE
                 ? misfit(receives_[static_cast<std::size_t>(part.parcel)], "more than")
                 : mpi_status("MPI_Test", code);
    }
    if (done == 0) {
      parts_[kept++] = part;
    } else if (Status finished = finish(part, status); !finished.ok()) {
      return finished;
    }
  }
  requests_.resize(kept);
  parts_.resize(kept);
  return {};
}

// Sends come first: to start a reception of a message that is there may take as long as its copy.
Status Wire::step() {
  for (; next_send_ < sends_.size(); ++open_) {
    const Parcel& next = sends_[next_send_];
    if (!is_posted(peer(next.peer), next)) break;
    if (Status status = start_send(static_cast<int>(next_send_++)); !status.ok()) return status;
  }
  for (; next_receive_ < receives_.size() && may_receive(receives_[next_receive_]); ++open_) {
    if (Status status = start_receive(static_cast<int>(next_receive_++)); !status.ok())
      return status;
  }
  return requests_.empty() ? Status() : test();
}

void Wire::move() noexcept {
  if (begun_.value.load(std::memory_order_acquire) == moved_) return;  // pairs with run()
  if (has_failed_.load(std::memory_order_acquire)) return cancel();    // pairs with run()
  Status status;
  try {
    status = step();
  } catch (const std::bad_alloc&) {
    status = make_error(Code::out_of_memory, [] { return "no memory for the messages of a call"; });
  }
  if (!status.ok()) {
    rank_control_->abort(std::move(status));
    return;
  }
  if (open_ > 0 || next_send_ < sends_.size() || next_receive_ < receives_.size()) return;
  next_send_ = next_receive_ = used_ = 0;
  ++moved_;
  publish(*rank_control_, last_peer(), over_.value, moved_);
}

// A message that is there although one that was sent before it is missing belongs to another call.
Rank Wire::sender_of_another_call() noexcept {
  if (process_.locations().most_threads() > 1) return -1;  // it may be another thread's
  for (const Part& part : parts_) {
    if (part.sends) continue;
    const Rank from = receives_[static_cast<std::size_t>(part.parcel)].peer;
    int other = 0;
    MPI_Iprobe(process_.locations()[from].process, MPI_ANY_TAG, process_.comm(), &other,
               MPI_STATUS_IGNORE);
    if (other != 0) return from;
  }
  return -1;
}

void Wire::cancel() noexcept {
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    if (parts_[i].sends || requests_[i] == MPI_REQUEST_NULL) continue;
    MPI_Cancel(&requests_[i]);
    MPI_Wait(&requests_[i], MPI_STATUS_IGNORE);
    free_request(requests_[i]);
  }
  requests_.clear();  // freeing a pending send is legal but useless here
  moved_ = begun_.value.load(std::memory_order_relaxed);
}

}  // namespace rankine::mpi
