#include "engine/api/mpi/preload_taking.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <span>
#include <string>

#include "engine/api/mpi/posted_calls.h"
#include "engine/api/mpi/preload_backend.h"
#include "engine/api/mpi/preload_kinds.h"
#include "engine/api/mpi/preload_requests.h"
#include "engine/api/mpi/preload_settings.h"

namespace rankine::mpi {

Taking::Taking(Function function, const Manner& manner, MPI_Comm comm, std::function<int()> pass_on)
    : function_(function), manner_(manner), comm_(comm), pass_on_(std::move(pass_on)) {
  if (Inside::is_now()) return;
  if (!preload_settings().takes) return;
  counts_ = true;
  if (starts_prepared()) {
    rank = prepared().rank;
    ranks = prepared().ranks;
    going_ = true;
    return;
  }
  if (comm == MPI_COMM_NULL || (manner.form != Form::waited_for && manner.request == nullptr)) {
    return;
  }
  attached_ = communicators().find(comm);
  if (attached_ == nullptr) {
    why_ = Passed::intercommunicator;
    return;
  }
  rank = attached_->rank;
  ranks = attached_->ranks;
  going_ = true;
}

Taking& Taking::reduces(Collective collective, int count, MPI_Datatype type, MPI_Op op) {
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

MPI_Datatype Taking::type(MPI_Datatype given) const {
  return manner_.form == Form::prepared ? prepared().ours(given) : given;
}

std::vector<MPI_Datatype> Taking::types(const MPI_Datatype* given) const {
  std::vector<MPI_Datatype> all;
  for (int r = 0; given != nullptr && r < ranks; ++r) all.push_back(type(given[r]));
  return all;
}

Bytes Taking::kept(Bytes bytes) const {
  if (makes_ready()) {
    prepared().keep(bytes.type());
    prepared().packs |= bytes.is_packed();
  }
  return starts() ? std::move(bytes).kept() : std::move(bytes);
}

int Taking::pass() const {
  if (counts_) report().passed(function_, why_, manner_.form);
  const Inside now;  // of an implementation that calls one by another
  return pass_on_();
}

int Taking::run_for(Call& call, std::size_t bytes, std::function<void()> then) {
  if (makes_ready()) return make_ready(call) ? MPI_SUCCESS : pass();
  if (starts_prepared())
    return start(*prepared().channel->backend, call, bytes, clock(), std::move(then));
  Backend* const found = find_backend();
  if (found == nullptr) return pass();
  Backend& backend = *found;
  {
    const Inside now;
    if (const auto why =
            starts() ? backend.leaves_start_to_mpi(call) : backend.leaves_to_mpi(call)) {
      return pass(*why);
    }
  }
  const Clock::time_point began = clock();
  if (starts()) return start(backend, call, bytes, began, std::move(then));
  Status status;
  {
    const Inside now;
    status = call.collective == Collective::barrier ? backend.barrier() : backend.call(call);
    // What has no plan has none on any rank; else it is this rank's buffers that are wrong.
    if (status.code() == Code::invalid_argument && !backend.can(call).ok()) {
      return pass(Passed::refused);
    }
  }
  if (!status.ok()) return fail(status);
  then();
  count_taken(bytes, began);
  return MPI_SUCCESS;
}

int Taking::post(Rank root, const Blocks& sends, const Blocks& receives) {
  if (makes_ready()) return share_lengths(root, sends, receives);
  if (starts_prepared()) return start_with_lengths(sends, receives);
  // A rank that hears only later that it is MPI's would begin it after others that it has started
  // meanwhile.
  if (starts()) return pass(Passed::not_waited_for);
  Backend* const backend = find_backend();
  if (backend == nullptr) return pass();
  const Clock::time_point began = clock();
  std::size_t sent = 0, received = 0;
  {
    const Inside now;
    PostLog* const log = backend->post_log();
    if (log == nullptr) {
      return pass(backend->is_over_memory() ? Passed::refused : Passed::lengths);
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

bool Taking::make_ready(const Call& call) {
  const Inside now;
  Channels* const all = channels();
  auto channel = all == nullptr ? nullptr : all->find(&why_);
  if (channel == nullptr) return false;
  Backend& backend = *channel->backend;
  auto why = backend.leaves_start_to_mpi(call);
  if (why == Passed::first_calls) {  // as it is asked for the first time
    why = backend.leaves_to_mpi(call);
    if (!why) why = backend.leaves_start_to_mpi(call);
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

int Taking::share_lengths(Rank root, const Blocks& sends, const Blocks& receives) {
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
  return run(
      {.collective = Collective::all_to_all, .type = DataType::u8, .counts = prepared().lengths},
      0);
}

int Taking::start_with_lengths(const Blocks& sends, const Blocks& receives) {
  std::vector<Block> to;
  std::size_t sent = 0, received = 0;
  for (Rank r = 0; r < ranks; ++r) {
    const auto out = sends.of(r);
    to.push_back(receives.of(r).value_or(Block{}));
    if (!out || out->bytes() != length(rank, r) || to.back().bytes() != length(r, rank))
      return fail({Code::invalid_argument,
                   "its lengths are no more what they were when it was "
                   "made ready"},
                  MPI_ERR_ARG);
    sent += out->bytes();
    received += to.back().bytes();
  }
  // Also of nothing, which has no address.
  std::vector<std::byte> packed(sent + 1), unpacked(received + 1);
  std::byte* next = packed.data();
  for (Rank r = 0; r < ranks; ++r) {
    const Block out = *sends.of(r);
    out.pack(next, comm_);
    next += out.bytes();
  }
  Call call{.collective = Collective::all_to_all,
            .in = packed.data(),
            .out = unpacked.data(),
            .type = DataType::u8,
            .counts = prepared().lengths};
  return run(std::move(call), std::max(sent, received),
             [comm = comm_, to = std::move(to), packed = std::move(packed),
              unpacked = std::move(unpacked)] {
               const std::byte* from = unpacked.data();
               for (const Block& block : to) {
                 block.unpack(from, comm);
                 from += block.bytes();
               }
             });
}

Channels* Taking::channels() {
  why_ = Passed::not_waited_for;
  if (preload_settings().messages) return nullptr;
  auto& found = attached_->channels;
  const Inside now;
  if (found == nullptr) found = std::make_unique<Channels>(comm_);
  return found.get();
}

Backend* Taking::find_backend() {
  Attached& here = *attached_;
  const bool is_first = !here.made && !Communicators::begin_call(here, manner_.form);
  if (here.backend != nullptr) return here.backend.get();
  why_ = is_first ? Passed::first_calls : Passed::refused;
  return nullptr;
}

int Taking::start(Backend& backend, Call& call, std::size_t bytes, Clock::time_point began,
                  std::function<void()> then) {
  const Inside now;
  auto started = std::make_shared<StartedCollective>();
  started->function = function_;
  started->form = manner_.form;
  if (starts_prepared()) {
    started->prepared = *manner_.prepared;
    started->restarts = !prepared().packs;
    if (started->restarts) prepared().again = started;
  }
  started->rank = rank;
  started->comm = comm_;
  started->bytes = bytes;
  started->began = began;
  started->then = std::move(then);
  const Status status = backend.start(call, std::move(started), manner_.request);
  if (!status.ok() && starts_prepared()) prepared().again = nullptr;
  return status.ok() ? MPI_SUCCESS : fail(status);
}

bool Taking::fill_in(const PostLog::Room& room, const Blocks& sends, const Blocks& receives) const {
  std::size_t bytes = 0;
  for (Rank r = 0; r < ranks; ++r) {
    const auto sent = sends.of(r), received = receives.of(r);
    if (!sent || !received) return false;
    room.sends[static_cast<std::size_t>(r)] = sent->bytes();
    room.receives[static_cast<std::size_t>(r)] = received->bytes();
    bytes += sent->bytes();
  }
  std::byte* to = room.data;
  for (Rank r = 0; bytes <= kMostPosted && r < ranks; ++r) {
    const Block block = *sends.of(r);
    block.pack(to, comm_);
    to += block.bytes();
  }
  return true;
}

Taking::Clock::time_point Taking::clock() {
  return preload_settings().reports ? Clock::now() : Clock::time_point();
}

void Taking::count_taken(std::size_t bytes, Clock::time_point began) const {
  if (!preload_settings().reports) return;
  const std::chrono::duration<double> took = Clock::now() - began;
  report().taken(function_, bytes, took.count());
}

int Taking::fail(const Status& status) const {
  return fail(status, status.code() == Code::invalid_argument ? MPI_ERR_BUFFER : MPI_ERR_OTHER);
}

int Taking::fail(const Status& status, int error) const {
  std::fprintf(stderr, "rankine: %s of rank %d: %s: %s\n", name_of(function_, manner_.form).c_str(),
               rank, std::string(rankine::name_of(status.code())).c_str(), status.text().c_str());
  MPI_Comm_call_errhandler(comm_, error);
  return error;
}

}  // namespace rankine::mpi
