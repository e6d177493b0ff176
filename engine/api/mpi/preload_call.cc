#include "engine/api/mpi/preload_call.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <new>
#include <optional>
#include <span>
#include <string>

#include "engine/api/mpi/post_log.h"
#include "engine/api/mpi/preload_backend.h"
#include "engine/api/mpi/preload_blocks.h"
#include "engine/api/mpi/preload_report.h"
#include "engine/api/mpi/preload_requests.h"

namespace rankine::mpi {

InterceptedCall::InterceptedCall(Function function, const CallMode& mode, MPI_Comm comm,
                                 std::function<int()> pass_on)
    : function_(function), mode_(mode), comm_(comm), pass_on_(std::move(pass_on)) {
  if (Inside::is_now()) return;
  if (!preload_settings().takes) return;
  counts_ = true;
  if (mode_.form == Form::prepared && prepared().channel != nullptr) {
    backend_ = prepared().channel->backend.get();
    backend_->scratch().clear();
    rank = prepared().rank;
    ranks = prepared().ranks;
    going_ = true;
    return;
  }
  makes_ready_ = mode_.form == Form::prepared;
  if (comm == MPI_COMM_NULL || (mode.form != Form::waited_for && mode.request == nullptr)) {
    return;
  }
  attached_ = communicators().find(comm);
  if (attached_ == nullptr) {
    why_ = Passed::intercommunicator;
    return;
  }
  rank = attached_->rank;
  ranks = attached_->ranks;
  if (!attached_->is_ours) {
    why_ = Passed::processes;
    return;
  }
  // Count also invalid and passed calls, so that all ranks count alike.
  if (!attached_->made) ++attached_->calls;
  going_ = true;
}

InterceptedCall& InterceptedCall::reduces(Collective collective, std::int64_t count,
                                          MPI_Datatype type, MPI_Op op) {
  unless(count < 0);
  if (!going_) return *this;
  const auto ours = data_type_of(type);
  const auto by = reduce_op_of(op);
  unless(!by, Passed::operation).unless(!ours, Passed::type);
  if (!going_) return *this;
  unless(!takes(collective, *ours, *by), Passed::operation);
  kind = *ours;
  operation = *by;
  return *this;
}

MPI_Datatype InterceptedCall::type(MPI_Datatype given) const {
  return mode_.form == Form::prepared ? prepared().ours(given) : given;
}

std::vector<MPI_Datatype> InterceptedCall::types(const MPI_Datatype* given) const {
  std::vector<MPI_Datatype> all;
  for (int r = 0; given != nullptr && r < ranks; ++r) all.push_back(type(given[r]));
  return all;
}

bool InterceptedCall::is_taken(const Call& call, std::size_t largest_block) {
  if (starts_prepared()) return going_;
  unless(largest_block == 0, Passed::empty);
  // Some rank may need to pack the block.
  unless(!rankine::reduces(call.collective) && largest_block > kMostPacked, Passed::large);
  if (!going_) return false;
  if (makes_ready_) return going_ = make_ready(call);
  backend_ = find_backend();
  going_ = backend_ != nullptr && !leaves_to_mpi(call);
  return going_;
}

bool InterceptedCall::leaves_to_mpi(const Call& call) {
  const Inside now;
  backend_->scratch().clear();
  const auto why =
      starts() ? backend_->leaves_start_to_mpi(call) : backend_->leaves_to_mpi(call, failed_);
  if (why) why_ = *why;
  return why.has_value();
}

Block InterceptedCall::block(const void* buffer, std::size_t count, MPI_Datatype given) const {
  const MPI_Datatype ours = type(given);
  return {const_cast<void*>(buffer), count, ours, elements_of(ours)};
}

std::byte* InterceptedCall::room(std::size_t bytes) {
  std::byte* found = nullptr;
  if (starts()) {
    rooms_.emplace_back(new (std::nothrow) std::byte[bytes]);
    found = rooms_.back().get();
  } else {
    if (mode_.form == Form::prepared) prepared().packs = true;
    found = backend_->scratch().take(bytes);
  }
  lacks_room_ = lacks_room_ || found == nullptr;
  return found;
}

Bytes InterceptedCall::bytes(const Block& block) {
  return {block, block.elements.is_plain || block.bytes() == 0 ? nullptr : room(block.bytes()),
          comm_};
}

const void* InterceptedCall::copy_of(const void* in, std::size_t bytes) {
  std::byte* const copy = room(bytes);
  if (copy == nullptr) return in;
  std::memcpy(copy, in, bytes);
  return copy;
}

void InterceptedCall::lay_apart(Call& call) {
  const Traffic traffic = traffic_of(call, rank, ranks);
  const auto* const in = static_cast<const std::byte*>(call.in);
  const auto* const out = static_cast<const std::byte*>(call.out);
  if (in == nullptr || out == nullptr || in == out + traffic.in_place) return;
  const std::less<> before;
  if (!before(in, out + traffic.out) || !before(out, in + traffic.in)) return;
  call.in = copy_of(in, traffic.in);
}

Bytes InterceptedCall::kept(Bytes bytes) const {
  if (makes_ready_) prepared().keep(bytes.type());
  return starts() ? std::move(bytes).kept() : std::move(bytes);
}

int InterceptedCall::pass() const {
  if (!failed_.ok()) return fail(failed_);
  if (counts_) report().passed(function_, why_, mode_.form);
  const Inside now;  // some MPIs implement one function by another
  return pass_on_();
}

int InterceptedCall::end(const Status& why) const {
  const Inside now;
  backend_->end({Code::aborted, "rank " + std::to_string(rank) + ", " +
                                    name_of(function_, mode_.form) + ": " + why.text()});
  return fail(why);
}

int InterceptedCall::run_for(Call& call, std::size_t bytes, std::function<void()> then) {
  if (makes_ready_) return MPI_SUCCESS;
  const Clock::time_point began = clock();
  if (mode_.form != Form::waited_for) {
    lay_apart(call);
    if (!lacks_room_) return start(call, bytes, began, std::move(then));
  }
  Status status;
  if (!lacks_room_) {
    const Inside now;
    const auto make = [&] {
      return call.collective == Collective::barrier ? backend_->barrier() : backend_->call(call);
    };
    status = make();
    // The call had no effect: the engine refused the buffers.
    if (status.code() == Code::invalid_argument) {
      lay_apart(call);
      if (!lacks_room_) status = make();
    }
  }
  if (lacks_room_)
    status = make_error(Code::out_of_memory, [] { return "no memory for packed data"; });
  if (lacks_room_ || status.code() == Code::invalid_argument) return end(status);
  if (!status.ok()) return fail(status);
  then();
  count_taken(bytes, began);
  return MPI_SUCCESS;
}

int InterceptedCall::post(Rank root, const Blocks& sends, const Blocks& receives) {
  if (makes_ready_) return share_lengths(root, sends, receives);
  if (starts_prepared()) return start_with_lengths(sends, receives);
  // Ranks learn only from all posts if the call is MPI's. A started call would then begin after
  // later calls, in another order than on other ranks.
  if (starts()) return pass(Passed::not_waited_for);
  backend_ = find_backend();
  if (backend_ == nullptr) return pass();
  const Clock::time_point began = clock();
  std::size_t sent = 0, received = 0;
  {
    const Inside now;
    const auto found = backend_->post_log();
    if (!found.ok()) return fail(found.status(), MPI_ERR_OTHER);
    PostLog* const log = *found;
    if (log == nullptr) {
      return pass(backend_->is_over_memory() ? Passed::refused : Passed::lengths);
    }
    const PostLog::Room room = log->begin(function_, root);
    const bool right = root >= 0 && root < ranks && fill_in(room, sends, receives);
    if (!right) log->leave_to_mpi();
    if (Status status = log->call_roll(); !status.ok()) return fail(status, MPI_ERR_OTHER);
    const auto concluded = conclude(log->posts());
    if (!concluded.ok()) return fail(concluded.status(), MPI_ERR_OTHER);
    if (*concluded) return pass(**concluded);
    for (Rank r = 0; r < ranks; ++r) {
      const Block block = *receives.of(r);
      block.unpack(log->block_from(r), comm_);
      received += block.bytes();
      sent += static_cast<std::size_t>(room.sends[static_cast<std::size_t>(r)]);
    }
  }
  count_taken(std::max(sent, received), began);
  return MPI_SUCCESS;
}

bool InterceptedCall::make_ready(const Call& call) {
  const Inside now;
  Channels* const all = channels();
  auto channel = all == nullptr ? nullptr : all->find(&why_);
  if (channel == nullptr) return false;
  backend_ = channel->backend.get();
  backend_->scratch().clear();
  auto why = backend_->leaves_start_to_mpi(call);
  if (why == Passed::first_calls) {  // the kind is new
    why = backend_->leaves_to_mpi(call, failed_);
    if (!why) why = backend_->leaves_start_to_mpi(call);
  }
  if (why) {
    why_ = *why;
    return false;
  }
  prepared().rank = rank;
  prepared().ranks = ranks;
  prepared().channel = std::move(channel);
  return true;
}

int InterceptedCall::share_lengths(Rank root, const Blocks& sends, const Blocks& receives) {
  Channels* const meeting = channels();
  if (meeting == nullptr) return pass();
  const std::size_t all = static_cast<std::size_t>(ranks), post = 2 + 2 * all;
  std::vector<std::uint64_t> mine(post), posts(post * all);
  bool right = root >= 0 && root < ranks;
  for (Rank r = 0; r < ranks; ++r) {
    const auto sent = sends.of(r), received = receives.of(r);
    right = right && sent && received;
    if (!right) break;
    mine[2 + static_cast<std::size_t>(r)] = sent->bytes();
    mine[2 + all + static_cast<std::size_t>(r)] = received->bytes();
    prepared().keep(sent->type);
    prepared().keep(received->type);
  }
  mine[0] = static_cast<std::uint64_t>(function_) << 1 | (right ? 0 : 1);
  mine[1] = static_cast<std::uint64_t>(std::max(root, 0));
  {
    const Inside now;
    MPI_Allgather(mine.data(), static_cast<int>(post), MPI_UINT64_T, posts.data(),
                  static_cast<int>(post), MPI_UINT64_T, meeting->comm());
  }
  std::vector<PostedCall> calls;
  for (std::size_t r = 0; r < all; ++r) {
    const std::span said(posts.data() + r * post, post);
    calls.push_back({.function = static_cast<Function>(said[0] >> 1),
                     .root = static_cast<Rank>(said[1]),
                     .is_mpis = (said[0] & 1) != 0,
                     .sends = said.subspan(2, all),
                     .receives = said.subspan(2 + all, all)});
    prepared().lengths.insert(prepared().lengths.end(), calls.back().sends.begin(),
                              calls.back().sends.end());
  }
  prepared().packs = true;
  const auto concluded = conclude(calls);
  if (!concluded.ok()) return fail(concluded.status(), MPI_ERR_OTHER);
  if (*concluded) return pass(**concluded);
  const Call call{
      .collective = Collective::all_to_all, .type = DataType::u8, .counts = prepared().lengths};
  const std::size_t largest = *std::ranges::max_element(prepared().lengths);
  return is_taken(call, largest) ? MPI_SUCCESS : pass();
}

int InterceptedCall::start_with_lengths(const Blocks& sends, const Blocks& receives) {
  std::vector<Block> from, to;
  std::size_t sent = 0, received = 0;
  for (Rank r = 0; r < ranks; ++r) {
    from.push_back(sends.of(r).value_or(Block{}));
    to.push_back(receives.of(r).value_or(Block{}));
    if (from.back().bytes() != length(rank, r) || to.back().bytes() != length(r, rank)) {
      return fail({Code::invalid_argument, "its lengths have changed since the call was prepared"},
                  MPI_ERR_ARG);
    }
    sent += from.back().bytes();
    received += to.back().bytes();
  }
  const std::byte* in = side_by_side(from);
  std::byte* out = side_by_side(to);
  const bool hands_out = out == nullptr && received > 0;
  if (hands_out) out = room(received);
  if (sent > 0 && (in == nullptr || in == out)) {
    std::byte* next = room(sent);
    in = next;
    for (const Block& block : from) {
      if (next == nullptr) break;
      block.pack(next, comm_);
      next += block.bytes();
    }
  }
  if (!hands_out) to.clear();
  Call call{.collective = Collective::all_to_all,
            .in = in,
            .out = out,
            .type = DataType::u8,
            .counts = prepared().lengths};
  return run(std::move(call), std::max(sent, received), [comm = comm_, to = std::move(to), out] {
    const std::byte* next = out;
    for (const Block& block : to) {
      block.unpack(next, comm);
      next += block.bytes();
    }
  });
}

Channels* InterceptedCall::channels() {
  why_ = Passed::not_waited_for;
  if (preload_settings().messages) return nullptr;
  auto& found = attached_->channels;
  const Inside now;
  if (found == nullptr) found = std::make_unique<Channels>(comm_);
  return found.get();
}

Backend* InterceptedCall::find_backend() {
  Attached& here = *attached_;
  const bool is_first = !here.made && !Communicators::begin_call(here, mode_.form);
  if (here.backend != nullptr) return here.backend.get();
  why_ = is_first ? Passed::first_calls : Passed::refused;
  return nullptr;
}

int InterceptedCall::start(Call& call, std::size_t bytes, Clock::time_point began,
                           std::function<void()> then) {
  const Inside now;
  auto started = std::make_shared<StartedCollective>();
  started->function = function_;
  started->form = mode_.form;
  if (starts_prepared()) {
    started->prepared = *mode_.prepared;
    started->restarts = !prepared().packs;
    if (started->restarts) prepared().again = started;
  }
  started->rank = rank;
  started->comm = comm_;
  started->bytes = bytes;
  started->began = began;
  started->then = std::move(then);
  if (!rooms_.empty())
    started->then = [rooms = std::move(rooms_), then = std::move(started->then)] { then(); };
  const Status status = backend_->start(call, std::move(started), mode_.request);
  if (status.ok()) return MPI_SUCCESS;
  if (starts_prepared()) prepared().again = nullptr;
  return status.code() == Code::invalid_argument ? end(status) : fail(status);
}

bool InterceptedCall::fill_in(const PostLog::Room& room, const Blocks& sends,
                              const Blocks& receives) const {
  for (Rank r = 0; r < ranks; ++r) {
    const auto sent = sends.of(r), received = receives.of(r);
    if (!sent || !received) return false;
    room.sends[static_cast<std::size_t>(r)] = sent->bytes();
    room.receives[static_cast<std::size_t>(r)] = received->bytes();
  }
  if (!is_short(room.sends)) return true;
  std::byte* to = room.data;
  for (Rank r = 0; r < ranks; ++r) {
    const Block block = *sends.of(r);
    block.pack(to, comm_);
    to += block.bytes();
  }
  return true;
}

InterceptedCall::Clock::time_point InterceptedCall::clock() {
  return preload_settings().reports ? Clock::now() : Clock::time_point();
}

void InterceptedCall::count_taken(std::size_t bytes, Clock::time_point began) const {
  if (!preload_settings().reports) return;
  const std::chrono::duration<double> took = Clock::now() - began;
  report().taken(function_, bytes, took.count());
}

int InterceptedCall::fail(const Status& status) const {
  return fail(status, status.code() == Code::invalid_argument ? MPI_ERR_BUFFER
                      : status.code() == Code::out_of_memory  ? MPI_ERR_NO_MEM
                                                              : MPI_ERR_OTHER);
}

int InterceptedCall::fail(const Status& status, int error) const {
  std::fprintf(stderr, "rankine: %s of rank %d: %s: %s\n", name_of(function_, mode_.form).c_str(),
               rank, std::string(rankine::name_of(status.code())).c_str(), status.text().c_str());
  MPI_Comm_call_errhandler(comm_, error);
  return error;
}

}  // namespace rankine::mpi
