// The collective calls of a program that knows nothing of Rankine, taken over by MPI's profiling
// interface:
//
//   LD_PRELOAD=librankine_mpi_openmpi.so RANKINE_MPI=report mpirun -n 4 program
//
// A call is taken where it is on an intracommunicator and either adds up a basic type by a
// predefined operation that the engine has, or moves data, whatever their type: then it is the
// bytes that are moved. Where all ranks know how many, all decide alike, since each decides by what
// MPI wants them to give alike: the communicator, the operation, in reductions the type, and never
// by what may differ (buffers, derived types, what only a root has). Where each knows its own
// lengths only, it posts them, with what it sends, and all decide by all posts (post_log.h).
// Everything else is passed on, and so are arguments that MPI has errors for.
//
// Calls that are started and waited for later (MPI_Iallreduce) are decided on in the same way, and
// by nothing that ranks would have to ask each other first (preload_requests.h, and Backend). Those
// that are made ready (MPI_Allreduce_init) are decided on there, by all ranks at once, and run
// through the same functions again each time that they are started (preload_prepared.h).
//
// RANKINE_MPI (preload_settings.h) says whether, how, and whether to report it at the end.
#include <mpi.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/api/call.h"
#include "engine/api/mpi/post_log.h"
#include "engine/api/mpi/posted_calls.h"
#include "engine/api/mpi/preload_backend.h"
#include "engine/api/mpi/preload_blocks.h"
#include "engine/api/mpi/preload_kinds.h"
#include "engine/api/mpi/preload_prepared.h"
#include "engine/api/mpi/preload_report.h"
#include "engine/api/mpi/preload_requests.h"
#include "engine/api/mpi/preload_settings.h"

namespace rankine::mpi {
namespace {

struct Attached;

// What a thread knows. The library is there when the program starts, so this is found without a
// call, as a program's own.
struct Thread {
  int inside = 0;
  // Its last communicator, as long as none has gone since.
  MPI_Comm comm{};
  Attached* attached = nullptr;
  std::uint64_t gone = 0;
};
[[gnu::tls_model("initial-exec")]] thread_local Thread thread;

// Calls of MPI that the engine itself makes are not taken.
struct Inside {
  Inside() { ++thread.inside; }
  ~Inside() { --thread.inside; }
};

// A communicator that is made for a call or two is not worth a backend: its first calls are MPI's.
// All ranks count alike, since all make the same calls.
constexpr int kFirstCalls = 3;

// A communicator's backend is its attribute, so it goes when the communicator does.
struct Attached {
  MPI_Comm comm = MPI_COMM_NULL;
  int rank = 0, ranks = 1;
  int calls = 0;      // that might have been taken, before
  bool made = false;  // the backend, if one could be, on all ranks alike
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Channels> channels;  // of calls that are made ready, once there are any

  std::string_view name() const {
    if (backend == nullptr) return {};
    return backend->name();
  }
};

class Communicators {
 public:
  // nullptr: an intercommunicator.
  Attached* find(MPI_Comm comm) {
    const std::uint64_t gone = gone_.load(std::memory_order_acquire);  // pairs with forget()
    if (thread.comm == comm && thread.gone == gone && thread.attached != nullptr)
      return thread.attached;
    const Inside now;
    int is_inter = 0;
    MPI_Comm_test_inter(comm, &is_inter);
    if (is_inter != 0) return nullptr;
    thread.comm = comm;
    thread.attached = &attached_to(comm);
    thread.gone = gone;
    return thread.attached;
  }
  // Its next call begins, of all ranks where that makes the backend: a call that waits for them.
  // Whether there is one now, or cannot be.
  static bool begin_call(Attached& attached, Form form) {
    if (attached.made) return true;
    if (attached.calls < kFirstCalls) {
      ++attached.calls;
      return false;
    }
    if (form != Form::waited_for) return false;
    const Inside now;
    make(attached);
    return true;
  }
  // Before MPI ends. In one order on all ranks, whose lists may have another: who has posted calls
  // waits for the others.
  void forget_all() {
    const Inside now;
    all_.sort([](const Attached& a, const Attached& b) { return a.name() < b.name(); });
    while (!all_.empty()) MPI_Comm_delete_attr(all_.front().comm, keyval_);
    if (keyval_ != MPI_KEYVAL_INVALID) MPI_Comm_free_keyval(&keyval_);
  }

 private:
  Attached& attached_to(MPI_Comm comm) {
    const std::lock_guard lock(mutex_);
    if (keyval_ == MPI_KEYVAL_INVALID) {
      MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget, &keyval_, this);
    }
    Attached* attached = nullptr;
    int found = 0;
    MPI_Comm_get_attr(comm, keyval_, static_cast<void*>(&attached), &found);
    if (found == 0) {
      attached = &all_.emplace_back();
      attached->comm = comm;
      MPI_Comm_rank(comm, &attached->rank);
      MPI_Comm_size(comm, &attached->ranks);
      MPI_Comm_set_attr(comm, keyval_, attached);
    }
    return *attached;
  }
  static void make(Attached& attached) {
    attached.made = true;
    auto backend = make_backend(attached.comm, preload_settings().messages);
    if (backend.ok()) {
      attached.backend = std::move(*backend);
      report().communicator(attached.backend->is_over_memory());
      return;
    }
    std::fprintf(stderr, "rankine: a communicator is left to MPI: %s\n",
                 backend.status().text().c_str());
  }
  static int forget(MPI_Comm, int, void* attribute, void* self) {
    const Inside now;
    auto& mine = *static_cast<Communicators*>(self);
    std::list<Attached> gone;  // its end waits for other ranks: after the lock
    const std::lock_guard lock(mine.mutex_);
    // Another communicator may have its handle next. Pairs with find().
    mine.gone_.fetch_add(1, std::memory_order_release);
    for (auto at = mine.all_.begin(); at != mine.all_.end(); ++at) {
      if (&*at != attribute) continue;
      gone.splice(gone.end(), mine.all_, at);
      break;
    }
    return MPI_SUCCESS;
  }

  std::mutex mutex_;
  int keyval_ = MPI_KEYVAL_INVALID;
  std::list<Attached> all_;
  std::atomic<std::uint64_t> gone_{0};  // communicators
};

Communicators& communicators() {
  static auto* all = new Communicators;  // MPI may end after static objects have
  return *all;
}

// How a call is made: waited for at once; or started, and MPI's request is to be found there; or
// made ready, and then, once it has a channel, started again and again.
struct Manner {
  MPI_Datatype type(MPI_Datatype given) const {
    return prepared == nullptr ? given : (*prepared)->ours(given);
  }
  std::vector<MPI_Datatype> types(const MPI_Datatype* given, int count) const {
    std::vector<MPI_Datatype> all;
    for (int i = 0; given != nullptr && i < count; ++i) all.push_back(type(given[i]));
    return all;
  }

  Form form = Form::waited_for;
  MPI_Request* request = nullptr;
  const std::shared_ptr<Prepared>* prepared = nullptr;
};
constexpr Manner kWaitedFor{};
Manner started(MPI_Request* request) { return {Form::started, request}; }

// One call of a program's.
class Taking {
 public:
  Taking(Function function, const Manner& manner, MPI_Comm comm)
      : function_(function), manner_(manner), comm_(comm) {
    if (thread.inside > 0) return;
    if (!preload_settings().takes) return;
    counts_ = true;
    if (starts_prepared()) {
      rank = prepared().rank;
      ranks = prepared().ranks;
      going_ = true;
      return;
    }
    if (comm == MPI_COMM_NULL || (manner.form != Form::waited_for && manner.request == nullptr)) {
      why_ = Passed::arguments;
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

  explicit operator bool() const { return going_; }
  // Nothing of this may be wrong, or MPI says so.
  Taking& unless(bool wrong) { return unless(wrong, Passed::arguments); }
  Taking& root(int root) { return unless(root < 0 || root >= ranks); }
  Taking& moves(int count, MPI_Datatype type) {
    return unless(count < 0 || type == MPI_DATATYPE_NULL);
  }
  Taking& reduces(Collective collective, int count, MPI_Datatype type, MPI_Op op) {
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

  bool starts() const { return manner_.form == Form::started; }
  // What `then` of run() may hold. What is made ready keeps the type for all that is started of it.
  Bytes kept(Bytes bytes) const {
    if (makes_ready()) {
      prepared().keep(bytes.type());
      prepared().packs |= bytes.is_packed();
    }
    return starts() ? std::move(bytes).kept() : std::move(bytes);
  }

  // What is left is MPI's own.
  template <class Pass>
  int pass(const Pass& pass_on) const {
    if (counts_) report().passed(function_, why_, manner_.form);
    const Inside now;  // of an implementation that calls one by another
    return pass_on();
  }
  // Where the call is started, `then` and what it holds stay until that is over.
  template <class Pass, class Then>
  int run(Call&& call, std::size_t bytes, const Pass& pass_on, Then&& then) {
    if (makes_ready()) return make_ready(call) ? MPI_SUCCESS : pass(pass_on);
    if (starts_prepared())
      return start(*prepared().channel->backend, call, bytes, clock(), std::forward<Then>(then));
    Backend* const found = find_backend();
    if (found == nullptr) return pass(pass_on);
    Backend& backend = *found;
    {
      const Inside now;
      if (const auto why =
              starts() ? backend.leaves_start_to_mpi(call) : backend.leaves_to_mpi(call)) {
        why_ = *why;
        return pass(pass_on);
      }
    }
    const Clock::time_point began = clock();
    if (starts()) return start(backend, call, bytes, began, std::forward<Then>(then));
    Status status;
    {
      const Inside now;
      status = call.collective == Collective::barrier ? backend.barrier() : backend.call(call);
      // What has no plan has none on any rank; else it is this rank's buffers that are wrong.
      if (status.code() == Code::invalid_argument && !backend.can(call).ok()) {
        why_ = Passed::refused;
        return pass(pass_on);
      }
    }
    if (!status.ok()) return fail(status);
    then();
    count_taken(bytes, began);
    return MPI_SUCCESS;
  }
  // Of which each rank knows only its own lengths. Reported are the bytes that it sends or, if they
  // are more, receives.
  template <class Pass>
  int post(Rank root, const Blocks& sends, const Blocks& receives, const Pass& pass_on) {
    if (makes_ready()) return share_lengths(root, sends, receives, pass_on);
    if (starts_prepared()) return start_with_lengths(sends, receives, pass_on);
    Backend* const backend = find_backend();
    if (backend == nullptr) return pass(pass_on);
    const Clock::time_point began = clock();
    std::size_t sent = 0, received = 0;
    {
      const Inside now;
      PostLog* const log = backend->post_log();
      if (log == nullptr) {
        why_ = backend->is_over_memory() ? Passed::refused : Passed::lengths;
        return pass(pass_on);
      }
      const PostLog::Room room = log->begin(function_, root);
      const bool right = root >= 0 && root < ranks && fill_in(room, sends, receives);
      if (!right) log->leave_to_mpi();
      if (Status status = log->call_roll(); !status.ok()) return fail(status, MPI_ERR_OTHER);
      const auto concluded = conclude(log->posts());
      if (!concluded.ok()) return fail(concluded.status(), MPI_ERR_OTHER);
      if (*concluded) {
        why_ = **concluded;
        return pass(pass_on);
      }
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
  template <class Pass>
  int run(Call&& call, std::size_t bytes, const Pass& pass_on) {
    return run(std::move(call), bytes, pass_on, [] {});
  }

  int rank = 0, ranks = 1;
  DataType kind = DataType::u8;
  ReduceOp operation = ReduceOp::sum;

 private:
  using Clock = std::chrono::steady_clock;

  bool makes_ready() const {
    return manner_.form == Form::prepared && prepared().channel == nullptr;
  }
  bool starts_prepared() const {
    return manner_.form == Form::prepared && prepared().channel != nullptr;
  }
  Prepared& prepared() const { return **manner_.prepared; }
  // A call of all ranks, which find it a channel and agree there on its kind. Else it is MPI's:
  // why_ says why.
  bool make_ready(const Call& call) {
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
  // What is made ready has its lengths posted once, by MPI, as its calls are of all ranks then. So
  // it is an all-to-all of lengths that are known.
  template <class Pass>
  int share_lengths(Rank root, const Blocks& sends, const Blocks& receives, const Pass& pass_on) {
    Channels* const meeting = channels();
    if (meeting == nullptr) return pass(pass_on);
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
    if (*concluded) {
      why_ = **concluded;
      return pass(pass_on);
    }
    return run(
        {.collective = Collective::all_to_all, .type = DataType::u8, .counts = prepared().lengths},
        0, pass_on);
  }
  template <class Pass>
  int start_with_lengths(const Blocks& sends, const Blocks& receives, const Pass& pass_on) {
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
    return run(std::move(call), std::max(sent, received), pass_on,
               [comm = comm_, to = std::move(to), packed = std::move(packed),
                unpacked = std::move(unpacked)] {
                 const std::byte* from = unpacked.data();
                 for (const Block& block : to) {
                   block.unpack(from, comm);
                   from += block.bytes();
                 }
               });
  }
  std::size_t length(Rank from, Rank to) const {
    return prepared().lengths[static_cast<std::size_t>(from) * static_cast<std::size_t>(ranks) +
                              static_cast<std::size_t>(to)];
  }
  // A call of all ranks, the first time. nullptr: calls go by messages, so there are none.
  Channels* channels() {
    why_ = Passed::not_waited_for;
    if (preload_settings().messages) return nullptr;
    auto& found = attached_->channels;
    const Inside now;
    if (found == nullptr) found = std::make_unique<Channels>(comm_);
    return found.get();
  }
  // nullptr: why_ says why not.
  Backend* find_backend() {
    Attached& here = *attached_;
    const bool is_first = !here.made && !Communicators::begin_call(here, manner_.form);
    if (here.backend != nullptr) return here.backend.get();
    why_ = is_first ? Passed::first_calls : Passed::refused;
    return nullptr;
  }
  template <class Then>
  int start(Backend& backend, Call& call, std::size_t bytes, Clock::time_point began, Then&& then) {
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
    // A function has copies, and what this one holds has none.
    started->then = [held = std::make_shared<Then>(std::forward<Then>(then))] { (*held)(); };
    const Status status = backend.start(call, std::move(started), manner_.request);
    if (!status.ok() && starts_prepared()) prepared().again = nullptr;
    return status.ok() ? MPI_SUCCESS : fail(status);
  }
  // This rank's post; false: MPI has an error for the call.
  bool fill_in(const PostLog::Room& room, const Blocks& sends, const Blocks& receives) const {
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
  // Neither is asked nor counted for nobody.
  static Clock::time_point clock() {
    return preload_settings().reports ? Clock::now() : Clock::time_point();
  }
  void count_taken(std::size_t bytes, Clock::time_point began) const {
    if (!preload_settings().reports) return;
    const std::chrono::duration<double> took = Clock::now() - began;
    report().taken(function_, bytes, took.count());
  }
  int fail(const Status& status) const {
    return fail(status, status.code() == Code::invalid_argument ? MPI_ERR_BUFFER : MPI_ERR_OTHER);
  }
  int fail(const Status& status, int error) const {
    std::fprintf(stderr, "rankine: %s of rank %d: %s: %s\n",
                 name_of(function_, manner_.form).c_str(), rank,
                 std::string(rankine::name_of(status.code())).c_str(), status.text().c_str());
    MPI_Comm_call_errhandler(comm_, error);
    return error;
  }
  Taking& unless(bool wrong, Passed why) {
    if (going_ && wrong) {
      going_ = false;
      why_ = why;
    }
    return *this;
  }

  const Function function_;
  const Manner manner_;
  const MPI_Comm comm_;
  Attached* attached_ = nullptr;
  bool counts_ = false, going_ = false;
  Passed why_ = Passed::arguments;
};

std::size_t of(int n) { return static_cast<std::size_t>(n); }
const void* at(const void* buffer, std::size_t bytes) {
  return static_cast<const std::byte*>(buffer) + bytes;
}

// A reduction, which is in place where `in` says so.
template <class Pass>
int reduction(const Manner& manner, Function function, Collective collective, const void* in,
              void* out, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm,
              const Pass& pass) {
  Taking taking(function, manner, comm);
  taking.root(root).reduces(collective, count, type, op);
  if (!taking) return taking.pass(pass);
  return taking.run({.collective = collective,
                     .in = in == MPI_IN_PLACE ? out : in,
                     .out = out,
                     .count = of(count),
                     .type = taking.kind,
                     .op = taking.operation,
                     .root = root},
                    of(count) * size_of(taking.kind), pass);
}

// Blocks of a reduction, of those counts; in place they come out at the beginning of `out`.
template <class Pass>
int reduce_blocks(const Manner& manner, Function function, const void* in, void* out,
                  const int* counts, int equal, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                  const Pass& pass) {
  Taking taking(function, manner, comm);
  taking.unless(counts == nullptr && equal < 0).reduces(Collective::reduce_scatter, 0, type, op);
  std::vector<std::size_t> sizes;
  for (int r = 0; taking && r < taking.ranks; ++r) {
    const int size = counts == nullptr ? equal : counts[r];
    taking.unless(size < 0);
    sizes.push_back(of(size));
  }
  if (!taking) return taking.pass(pass);
  const std::size_t mine = sizes[of(taking.rank)] * size_of(taking.kind);
  std::vector<std::byte> block(in == MPI_IN_PLACE ? mine : 0);
  Call call{.collective = Collective::reduce_scatter,
            .in = in == MPI_IN_PLACE ? out : in,
            .out = in == MPI_IN_PLACE ? block.data() : out,
            .type = taking.kind,
            .op = taking.operation,
            .counts = sizes};
  return taking.run(std::move(call), mine, pass, [out, block = std::move(block)] {
    if (!block.empty()) std::memcpy(out, block.data(), block.size());
  });
}

template <class Pass>
int broadcast(const Manner& manner, void* buffer, int count, MPI_Datatype type, int root,
              MPI_Comm comm, const Pass& pass) {
  Taking taking(Function::bcast, manner, comm);
  taking.root(root).moves(count, type);
  if (!taking) return taking.pass(pass);
  Bytes data(buffer, of(count), type, comm);
  void* const memory = data.to_receive();
  const bool sends = taking.rank == root;
  const std::size_t bytes = data.size();
  Call call{.collective = Collective::broadcast,
            .in = sends ? data.to_send() : memory,
            .out = memory,
            .count = bytes,
            .type = DataType::u8,
            .root = root};
  return taking.run(std::move(call), bytes, pass,
                    [sends, data = taking.kept(std::move(data))]() mutable {
                      if (!sends) data.received();
                    });
}

template <class Pass>
int all_gather(const Manner& manner, const void* in, int in_count, MPI_Datatype in_type, void* out,
               int out_count, MPI_Datatype out_type, MPI_Comm comm, const Pass& pass) {
  Taking taking(Function::allgather, manner, comm);
  const bool in_place = in == MPI_IN_PLACE;
  taking.moves(out_count, out_type);
  if (!in_place) taking.moves(in_count, in_type);
  if (!taking) return taking.pass(pass);
  Bytes all(out, of(out_count) * of(taking.ranks), out_type, comm);
  const std::size_t block = all.size() / of(taking.ranks);
  Bytes mine(in, in_place ? 0 : of(in_count), in_place ? MPI_BYTE : in_type, comm);
  if (!in_place && mine.size() != block) return taking.unless(true).pass(pass);
  void* const to = all.to_receive();
  // In place the own block is packed with the rest.
  const void* const from = in_place ? at(all.to_send(), block * of(taking.rank)) : mine.to_send();
  const std::size_t bytes = all.size();
  return taking.run({.collective = Collective::all_gather,
                     .in = from,
                     .out = to,
                     .count = block,
                     .type = DataType::u8},
                    bytes, pass,
                    [mine = taking.kept(std::move(mine)),
                     all = taking.kept(std::move(all))]() mutable { all.received(); });
}

template <class Pass>
int all_gatherv(const Manner& manner, const void* in, int in_count, MPI_Datatype in_type, void* out,
                const int* counts, const int* places, MPI_Datatype out_type, MPI_Comm comm,
                const Pass& pass) {
  Taking taking(Function::allgatherv, manner, comm);
  const bool in_place = in == MPI_IN_PLACE;
  taking.moves(0, out_type);
  if (!in_place) taking.moves(in_count, in_type);
  for (int r = 0; taking && r < taking.ranks; ++r) taking.unless(counts[r] < 0);
  if (!taking) return taking.pass(pass);
  // Where blocks lie is each rank's own affair: what is gathered is handed out afterwards.
  MPI_Aint begin = 0, extent = 0;
  MPI_Type_get_extent(out_type, &begin, &extent);
  std::vector<Bytes> blocks;
  std::vector<std::size_t> sizes;
  std::size_t total = 0, before = 0;
  for (int r = 0; r < taking.ranks; ++r) {
    blocks.emplace_back(static_cast<std::byte*>(out) + extent * places[r], of(counts[r]), out_type,
                        comm);
    sizes.push_back(blocks.back().size());
    if (r < taking.rank) before += sizes.back();
    total += sizes.back();
  }
  std::vector<std::byte> gathered(total);
  Bytes mine(in, in_place ? 0 : of(in_count), in_place ? MPI_BYTE : in_type, comm);
  if (!in_place && mine.size() != sizes[of(taking.rank)]) return taking.unless(true).pass(pass);
  const void* const from = in_place ? blocks[of(taking.rank)].to_send() : mine.to_send();
  Call call{.collective = Collective::all_gather,
            .in = from,
            .out = gathered.data(),
            .type = DataType::u8,
            .counts = sizes};
  for (Bytes& block : blocks) block = taking.kept(std::move(block));
  return taking.run(std::move(call), total, pass,
                    [mine = taking.kept(std::move(mine)), blocks = std::move(blocks),
                     gathered = std::move(gathered)]() mutable {
                      std::size_t next = 0;
                      for (Bytes& block : blocks) {
                        std::memcpy(block.to_receive(), gathered.data() + next, block.size());
                        block.received();
                        next += block.size();
                      }
                    });
}

template <class Pass>
int all_to_all(const Manner& manner, const void* in, int in_count, MPI_Datatype in_type, void* out,
               int out_count, MPI_Datatype out_type, MPI_Comm comm, const Pass& pass) {
  Taking taking(Function::alltoall, manner, comm);
  const bool in_place = in == MPI_IN_PLACE;
  taking.moves(out_count, out_type);
  if (!in_place) taking.moves(in_count, in_type);
  if (!taking) return taking.pass(pass);
  Bytes to(out, of(out_count) * of(taking.ranks), out_type, comm);
  Bytes from(in, in_place ? 0 : of(in_count) * of(taking.ranks), in_place ? MPI_BYTE : in_type,
             comm);
  if (!in_place && from.size() != to.size()) return taking.unless(true).pass(pass);
  void* const received = to.to_receive();
  const std::size_t bytes = to.size();
  Call call{.collective = Collective::all_to_all,
            .in = in_place ? to.to_send() : from.to_send(),
            .out = received,
            .count = bytes / of(taking.ranks),
            .type = DataType::u8};
  return taking.run(std::move(call), bytes, pass,
                    [from = taking.kept(std::move(from)),
                     to = taking.kept(std::move(to))]() mutable { to.received(); });
}

template <class Pass>
int gather(const Manner& manner, const void* in, int in_count, MPI_Datatype in_type, void* out,
           int out_count, MPI_Datatype out_type, int root, MPI_Comm comm, const Pass& pass) {
  Taking taking(Function::gather, manner, comm);
  taking.root(root);
  const bool at_root = taking && taking.rank == root, in_place = in == MPI_IN_PLACE;
  if (at_root) taking.moves(out_count, out_type);
  if (!in_place) taking.moves(in_count, in_type);
  if (!taking) return taking.pass(pass);
  Bytes all(out, at_root ? of(out_count) * of(taking.ranks) : 0, at_root ? out_type : MPI_BYTE,
            comm);
  Bytes mine(in, in_place ? 0 : of(in_count), in_place ? MPI_BYTE : in_type, comm);
  const std::size_t block = at_root ? all.size() / of(taking.ranks) : mine.size();
  if (!in_place && mine.size() != block) return taking.unless(true).pass(pass);
  void* const to = all.to_receive();
  Call call{.collective = Collective::gather,
            .in = in_place ? at(all.to_send(), block * of(root)) : mine.to_send(),
            .out = to,
            .count = block,
            .type = DataType::u8,
            .root = root};
  return taking.run(std::move(call), block, pass,
                    [mine = taking.kept(std::move(mine)),
                     all = taking.kept(std::move(all))]() mutable { all.received(); });
}

template <class Pass>
int scatter(const Manner& manner, const void* in, int in_count, MPI_Datatype in_type, void* out,
            int out_count, MPI_Datatype out_type, int root, MPI_Comm comm, const Pass& pass) {
  Taking taking(Function::scatter, manner, comm);
  taking.root(root);
  const bool at_root = taking && taking.rank == root, in_place = out == MPI_IN_PLACE;
  if (at_root) taking.moves(in_count, in_type);
  if (!in_place) taking.moves(out_count, out_type);
  if (!taking) return taking.pass(pass);
  Bytes all(in, at_root ? of(in_count) * of(taking.ranks) : 0, at_root ? in_type : MPI_BYTE, comm);
  Bytes mine(out, in_place ? 0 : of(out_count), in_place ? MPI_BYTE : out_type, comm);
  const std::size_t block = at_root ? all.size() / of(taking.ranks) : mine.size();
  if (!in_place && mine.size() != block) return taking.unless(true).pass(pass);
  const void* const from = all.to_send();
  Call call{.collective = Collective::scatter,
            .in = from,
            .out = in_place ? const_cast<void*>(at(from, block * of(root))) : mine.to_receive(),
            .count = block,
            .type = DataType::u8,
            .root = root};
  return taking.run(
      std::move(call), block, pass,
      [in_place, all = taking.kept(std::move(all)), mine = taking.kept(std::move(mine))]() mutable {
        if (!in_place) mine.received();
      });
}

// Of whose lengths each rank knows only its own.
template <class Pass>
int all_to_allv(const Manner& manner, const void* in, const int* in_counts, const int* in_places,
                MPI_Datatype in_type, void* out, const int* out_counts, const int* out_places,
                MPI_Datatype out_type, MPI_Comm comm, const Pass& pass) {
  Taking taking(Function::alltoallv, manner, comm);
  if (!taking) return taking.pass(pass);
  const Blocks to = Blocks::in_elements(out, out_counts, out_places, out_type);
  if (in == MPI_IN_PLACE) return taking.post(0, to, to, pass);
  return taking.post(0, Blocks::in_elements(in, in_counts, in_places, in_type), to, pass);
}

template <class Pass>
int all_to_allw(const Manner& manner, const void* in, const int* in_counts, const int* in_places,
                const MPI_Datatype* in_types, void* out, const int* out_counts,
                const int* out_places, const MPI_Datatype* out_types, MPI_Comm comm,
                const Pass& pass) {
  Taking taking(Function::alltoallw, manner, comm);
  if (!taking) return taking.pass(pass);
  const bool in_place = in == MPI_IN_PLACE;
  std::vector<MPI_Datatype> in_list, out_list;
  if (manner.prepared != nullptr) {
    out_list = manner.types(out_types, taking.ranks);
    if (out_types != nullptr) out_types = out_list.data();
    if (!in_place) in_list = manner.types(in_types, taking.ranks);
    if (!in_place && in_types != nullptr) in_types = in_list.data();
  }
  const Blocks to = Blocks::in_bytes(out, out_counts, out_places, out_types);
  if (in_place) return taking.post(0, to, to, pass);
  return taking.post(0, Blocks::in_bytes(in, in_counts, in_places, in_types), to, pass);
}

template <class Pass>
int gatherv(const Manner& manner, const void* in, int in_count, MPI_Datatype in_type, void* out,
            const int* counts, const int* places, MPI_Datatype out_type, int root, MPI_Comm comm,
            const Pass& pass) {
  Taking taking(Function::gatherv, manner, comm);
  if (!taking) return taking.pass(pass);
  const bool at_root = taking.rank == root, in_place = at_root && in == MPI_IN_PLACE;
  const Blocks to = at_root ? Blocks::in_elements(out, counts, places, out_type) : Blocks::none();
  if (in_place) return taking.post(root, Blocks::none(), to.but_for(root), pass);
  return taking.post(root, Blocks::for_one(in, in_count, in_type, root), to, pass);
}

template <class Pass>
int scatterv(const Manner& manner, const void* in, const int* counts, const int* places,
             MPI_Datatype in_type, void* out, int out_count, MPI_Datatype out_type, int root,
             MPI_Comm comm, const Pass& pass) {
  Taking taking(Function::scatterv, manner, comm);
  if (!taking) return taking.pass(pass);
  const bool at_root = taking.rank == root, in_place = at_root && out == MPI_IN_PLACE;
  const Blocks from = at_root ? Blocks::in_elements(in, counts, places, in_type) : Blocks::none();
  if (in_place) return taking.post(root, from.but_for(root), Blocks::none(), pass);
  return taking.post(root, from, Blocks::for_one(out, out_count, out_type, root), pass);
}

template <class Pass>
int barrier(const Manner& manner, MPI_Comm comm, const Pass& pass) {
  Taking taking(Function::barrier, manner, comm);
  if (!taking) return taking.pass(pass);
  return taking.run({.collective = Collective::barrier}, 0, pass);
}

// Makes a call ready that begins by `begin(manner, comm, pass)`, one of the functions above: now,
// to see whose it is, and each time that it is started.
template <class Begin, class Pass>
int prepare(MPI_Comm comm, MPI_Request* request, const Begin& begin, const Pass& pass) {
  const auto call = std::make_shared<Prepared>();
  const int error = begin(Manner{Form::prepared, request, &call}, comm, pass);
  if (call->channel == nullptr) return error;
  call->start = [begin](const std::shared_ptr<Prepared>& mine) {
    // MPI wants its arguments to stay as they were.
    return begin(Manner{Form::prepared, nullptr, &mine}, mine->channel->on->comm,
                 [] { return MPI_ERR_ARG; });
  };
  const Status status = prepared_calls().add(call, request);
  if (status.ok()) return MPI_SUCCESS;
  std::fprintf(stderr, "rankine: %s\n", status.text().c_str());
  PMPI_Comm_call_errhandler(comm, MPI_ERR_OTHER);
  return MPI_ERR_OTHER;
}

}  // namespace
}  // namespace rankine::mpi

using namespace rankine;
using namespace rankine::mpi;

extern "C" {

int MPI_Allreduce(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op,
                  MPI_Comm comm) {
  return reduction(kWaitedFor, Function::allreduce, Collective::all_reduce, in, out, count, type,
                   op, 0, comm, [&] { return PMPI_Allreduce(in, out, count, type, op, comm); });
}

int MPI_Iallreduce(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op,
                   MPI_Comm comm, MPI_Request* request) {
  return reduction(started(request), Function::allreduce, Collective::all_reduce, in, out, count,
                   type, op, 0, comm,
                   [&] { return PMPI_Iallreduce(in, out, count, type, op, comm, request); });
}

int MPI_Reduce(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, int root,
               MPI_Comm comm) {
  return reduction(kWaitedFor, Function::reduce, Collective::reduce, in, out, count, type, op, root,
                   comm, [&] { return PMPI_Reduce(in, out, count, type, op, root, comm); });
}

int MPI_Ireduce(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, int root,
                MPI_Comm comm, MPI_Request* request) {
  return reduction(started(request), Function::reduce, Collective::reduce, in, out, count, type, op,
                   root, comm,
                   [&] { return PMPI_Ireduce(in, out, count, type, op, root, comm, request); });
}

int MPI_Scan(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  return reduction(kWaitedFor, Function::scan, Collective::scan, in, out, count, type, op, 0, comm,
                   [&] { return PMPI_Scan(in, out, count, type, op, comm); });
}

int MPI_Iscan(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
              MPI_Request* request) {
  return reduction(started(request), Function::scan, Collective::scan, in, out, count, type, op, 0,
                   comm, [&] { return PMPI_Iscan(in, out, count, type, op, comm, request); });
}

int MPI_Exscan(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  return reduction(kWaitedFor, Function::exscan, Collective::exscan, in, out, count, type, op, 0,
                   comm, [&] { return PMPI_Exscan(in, out, count, type, op, comm); });
}

int MPI_Iexscan(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                MPI_Request* request) {
  return reduction(started(request), Function::exscan, Collective::exscan, in, out, count, type, op,
                   0, comm, [&] { return PMPI_Iexscan(in, out, count, type, op, comm, request); });
}

int MPI_Reduce_scatter(const void* in, void* out, const int* counts, MPI_Datatype type, MPI_Op op,
                       MPI_Comm comm) {
  return reduce_blocks(kWaitedFor, Function::reduce_scatter, in, out, counts, 0, type, op, comm,
                       [&] { return PMPI_Reduce_scatter(in, out, counts, type, op, comm); });
}

int MPI_Ireduce_scatter(const void* in, void* out, const int* counts, MPI_Datatype type, MPI_Op op,
                        MPI_Comm comm, MPI_Request* request) {
  return reduce_blocks(
      started(request), Function::reduce_scatter, in, out, counts, 0, type, op, comm,
      [&] { return PMPI_Ireduce_scatter(in, out, counts, type, op, comm, request); });
}

int MPI_Reduce_scatter_block(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op,
                             MPI_Comm comm) {
  return reduce_blocks(kWaitedFor, Function::reduce_scatter_block, in, out, nullptr, count, type,
                       op, comm,
                       [&] { return PMPI_Reduce_scatter_block(in, out, count, type, op, comm); });
}

int MPI_Ireduce_scatter_block(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op,
                              MPI_Comm comm, MPI_Request* request) {
  return reduce_blocks(
      started(request), Function::reduce_scatter_block, in, out, nullptr, count, type, op, comm,
      [&] { return PMPI_Ireduce_scatter_block(in, out, count, type, op, comm, request); });
}

int MPI_Bcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  return broadcast(kWaitedFor, buffer, count, type, root, comm,
                   [&] { return PMPI_Bcast(buffer, count, type, root, comm); });
}

int MPI_Ibcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm,
               MPI_Request* request) {
  return broadcast(started(request), buffer, count, type, root, comm,
                   [&] { return PMPI_Ibcast(buffer, count, type, root, comm, request); });
}

int MPI_Allgather(const void* in, int in_count, MPI_Datatype in_type, void* out, int out_count,
                  MPI_Datatype out_type, MPI_Comm comm) {
  return all_gather(kWaitedFor, in, in_count, in_type, out, out_count, out_type, comm, [&] {
    return PMPI_Allgather(in, in_count, in_type, out, out_count, out_type, comm);
  });
}

int MPI_Iallgather(const void* in, int in_count, MPI_Datatype in_type, void* out, int out_count,
                   MPI_Datatype out_type, MPI_Comm comm, MPI_Request* request) {
  return all_gather(started(request), in, in_count, in_type, out, out_count, out_type, comm, [&] {
    return PMPI_Iallgather(in, in_count, in_type, out, out_count, out_type, comm, request);
  });
}

int MPI_Allgatherv(const void* in, int in_count, MPI_Datatype in_type, void* out, const int* counts,
                   const int* places, MPI_Datatype out_type, MPI_Comm comm) {
  return all_gatherv(kWaitedFor, in, in_count, in_type, out, counts, places, out_type, comm, [&] {
    return PMPI_Allgatherv(in, in_count, in_type, out, counts, places, out_type, comm);
  });
}

int MPI_Iallgatherv(const void* in, int in_count, MPI_Datatype in_type, void* out,
                    const int* counts, const int* places, MPI_Datatype out_type, MPI_Comm comm,
                    MPI_Request* request) {
  return all_gatherv(started(request), in, in_count, in_type, out, counts, places, out_type, comm,
                     [&] {
                       return PMPI_Iallgatherv(in, in_count, in_type, out, counts, places, out_type,
                                               comm, request);
                     });
}

int MPI_Alltoall(const void* in, int in_count, MPI_Datatype in_type, void* out, int out_count,
                 MPI_Datatype out_type, MPI_Comm comm) {
  return all_to_all(kWaitedFor, in, in_count, in_type, out, out_count, out_type, comm, [&] {
    return PMPI_Alltoall(in, in_count, in_type, out, out_count, out_type, comm);
  });
}

int MPI_Ialltoall(const void* in, int in_count, MPI_Datatype in_type, void* out, int out_count,
                  MPI_Datatype out_type, MPI_Comm comm, MPI_Request* request) {
  return all_to_all(started(request), in, in_count, in_type, out, out_count, out_type, comm, [&] {
    return PMPI_Ialltoall(in, in_count, in_type, out, out_count, out_type, comm, request);
  });
}

int MPI_Alltoallv(const void* in, const int* in_counts, const int* in_places, MPI_Datatype in_type,
                  void* out, const int* out_counts, const int* out_places, MPI_Datatype out_type,
                  MPI_Comm comm) {
  return all_to_allv(kWaitedFor, in, in_counts, in_places, in_type, out, out_counts, out_places,
                     out_type, comm, [&] {
                       return PMPI_Alltoallv(in, in_counts, in_places, in_type, out, out_counts,
                                             out_places, out_type, comm);
                     });
}

int MPI_Alltoallw(const void* in, const int* in_counts, const int* in_places,
                  const MPI_Datatype* in_types, void* out, const int* out_counts,
                  const int* out_places, const MPI_Datatype* out_types, MPI_Comm comm) {
  return all_to_allw(kWaitedFor, in, in_counts, in_places, in_types, out, out_counts, out_places,
                     out_types, comm, [&] {
                       return PMPI_Alltoallw(in, in_counts, in_places, in_types, out, out_counts,
                                             out_places, out_types, comm);
                     });
}

int MPI_Gatherv(const void* in, int in_count, MPI_Datatype in_type, void* out, const int* counts,
                const int* places, MPI_Datatype out_type, int root, MPI_Comm comm) {
  return gatherv(kWaitedFor, in, in_count, in_type, out, counts, places, out_type, root, comm, [&] {
    return PMPI_Gatherv(in, in_count, in_type, out, counts, places, out_type, root, comm);
  });
}

int MPI_Scatterv(const void* in, const int* counts, const int* places, MPI_Datatype in_type,
                 void* out, int out_count, MPI_Datatype out_type, int root, MPI_Comm comm) {
  return scatterv(
      kWaitedFor, in, counts, places, in_type, out, out_count, out_type, root, comm, [&] {
        return PMPI_Scatterv(in, counts, places, in_type, out, out_count, out_type, root, comm);
      });
}

int MPI_Gather(const void* in, int in_count, MPI_Datatype in_type, void* out, int out_count,
               MPI_Datatype out_type, int root, MPI_Comm comm) {
  return gather(kWaitedFor, in, in_count, in_type, out, out_count, out_type, root, comm, [&] {
    return PMPI_Gather(in, in_count, in_type, out, out_count, out_type, root, comm);
  });
}

int MPI_Igather(const void* in, int in_count, MPI_Datatype in_type, void* out, int out_count,
                MPI_Datatype out_type, int root, MPI_Comm comm, MPI_Request* request) {
  return gather(started(request), in, in_count, in_type, out, out_count, out_type, root, comm, [&] {
    return PMPI_Igather(in, in_count, in_type, out, out_count, out_type, root, comm, request);
  });
}

int MPI_Scatter(const void* in, int in_count, MPI_Datatype in_type, void* out, int out_count,
                MPI_Datatype out_type, int root, MPI_Comm comm) {
  return scatter(kWaitedFor, in, in_count, in_type, out, out_count, out_type, root, comm, [&] {
    return PMPI_Scatter(in, in_count, in_type, out, out_count, out_type, root, comm);
  });
}

int MPI_Iscatter(const void* in, int in_count, MPI_Datatype in_type, void* out, int out_count,
                 MPI_Datatype out_type, int root, MPI_Comm comm, MPI_Request* request) {
  return scatter(
      started(request), in, in_count, in_type, out, out_count, out_type, root, comm, [&] {
        return PMPI_Iscatter(in, in_count, in_type, out, out_count, out_type, root, comm, request);
      });
}

int MPI_Barrier(MPI_Comm comm) {
  return barrier(kWaitedFor, comm, [&] { return PMPI_Barrier(comm); });
}

int MPI_Ibarrier(MPI_Comm comm, MPI_Request* request) {
  return barrier(started(request), comm, [&] { return PMPI_Ibarrier(comm, request); });
}

// Calls that are made ready: MPI's since its version 4, Open MPI's before under names of its own
// (in mpi-ext.h), unless it was built without.
#define RANKINE_LIST(...) __VA_ARGS__
#define RANKINE_PREPARED(function, arguments, begin, ...)                                          \
  [[gnu::weak]] int P##function(__VA_ARGS__, MPI_Comm comm, MPI_Info info, MPI_Request* made);     \
  int function(__VA_ARGS__, MPI_Comm comm, MPI_Info info, MPI_Request* request) {                  \
    return prepare(                                                                                \
        comm, request, [=](const Manner& manner, MPI_Comm on, const auto& pass) { return begin; }, \
        [&] { return P##function(RANKINE_LIST arguments, comm, info, request); });                 \
  }
#define RANKINE_ALL_PREPARED(prefix)                                                               \
  RANKINE_PREPARED(prefix##_Allreduce_init, (in, out, count, type, op),                            \
                   reduction(manner, Function::allreduce, Collective::all_reduce, in, out, count,  \
                             type, op, 0, on, pass),                                               \
                   const void* in, void* out, int count, MPI_Datatype type, MPI_Op op)             \
  RANKINE_PREPARED(                                                                                \
      prefix##_Scan_init, (in, out, count, type, op),                                              \
      reduction(manner, Function::scan, Collective::scan, in, out, count, type, op, 0, on, pass),  \
      const void* in, void* out, int count, MPI_Datatype type, MPI_Op op)                          \
  RANKINE_PREPARED(prefix##_Exscan_init, (in, out, count, type, op),                               \
                   reduction(manner, Function::exscan, Collective::exscan, in, out, count, type,   \
                             op, 0, on, pass),                                                     \
                   const void* in, void* out, int count, MPI_Datatype type, MPI_Op op)             \
  RANKINE_PREPARED(prefix##_Reduce_init, (in, out, count, type, op, root),                         \
                   reduction(manner, Function::reduce, Collective::reduce, in, out, count, type,   \
                             op, root, on, pass),                                                  \
                   const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, int root)   \
  RANKINE_PREPARED(                                                                                \
      prefix##_Reduce_scatter_init, (in, out, counts, type, op),                                   \
      reduce_blocks(manner, Function::reduce_scatter, in, out, counts, 0, type, op, on, pass),     \
      const void* in, void* out, const int* counts, MPI_Datatype type, MPI_Op op)                  \
  RANKINE_PREPARED(prefix##_Reduce_scatter_block_init, (in, out, count, type, op),                 \
                   reduce_blocks(manner, Function::reduce_scatter_block, in, out, nullptr, count,  \
                                 type, op, on, pass),                                              \
                   const void* in, void* out, int count, MPI_Datatype type, MPI_Op op)             \
  RANKINE_PREPARED(prefix##_Bcast_init, (buffer, count, type, root),                               \
                   broadcast(manner, buffer, count, manner.type(type), root, on, pass),            \
                   void* buffer, int count, MPI_Datatype type, int root)                           \
  RANKINE_PREPARED(prefix##_Allgather_init, (in, in_count, in_type, out, out_count, out_type),     \
                   all_gather(manner, in, in_count, manner.type(in_type), out, out_count,          \
                              manner.type(out_type), on, pass),                                    \
                   const void* in, int in_count, MPI_Datatype in_type, void* out, int out_count,   \
                   MPI_Datatype out_type)                                                          \
  RANKINE_PREPARED(prefix##_Allgatherv_init,                                                       \
                   (in, in_count, in_type, out, counts, places, out_type),                         \
                   all_gatherv(manner, in, in_count, manner.type(in_type), out, counts, places,    \
                               manner.type(out_type), on, pass),                                   \
                   const void* in, int in_count, MPI_Datatype in_type, void* out,                  \
                   const int* counts, const int* places, MPI_Datatype out_type)                    \
  RANKINE_PREPARED(prefix##_Alltoall_init, (in, in_count, in_type, out, out_count, out_type),      \
                   all_to_all(manner, in, in_count, manner.type(in_type), out, out_count,          \
                              manner.type(out_type), on, pass),                                    \
                   const void* in, int in_count, MPI_Datatype in_type, void* out, int out_count,   \
                   MPI_Datatype out_type)                                                          \
  RANKINE_PREPARED(prefix##_Gather_init, (in, in_count, in_type, out, out_count, out_type, root),  \
                   gather(manner, in, in_count, manner.type(in_type), out, out_count,              \
                          manner.type(out_type), root, on, pass),                                  \
                   const void* in, int in_count, MPI_Datatype in_type, void* out, int out_count,   \
                   MPI_Datatype out_type, int root)                                                \
  RANKINE_PREPARED(prefix##_Scatter_init, (in, in_count, in_type, out, out_count, out_type, root), \
                   scatter(manner, in, in_count, manner.type(in_type), out, out_count,             \
                           manner.type(out_type), root, on, pass),                                 \
                   const void* in, int in_count, MPI_Datatype in_type, void* out, int out_count,   \
                   MPI_Datatype out_type, int root)                                                \
  RANKINE_PREPARED(prefix##_Alltoallv_init,                                                        \
                   (in, in_counts, in_places, in_type, out, out_counts, out_places, out_type),     \
                   all_to_allv(manner, in, in_counts, in_places, manner.type(in_type), out,        \
                               out_counts, out_places, manner.type(out_type), on, pass),           \
                   const void* in, const int* in_counts, const int* in_places,                     \
                   MPI_Datatype in_type, void* out, const int* out_counts, const int* out_places,  \
                   MPI_Datatype out_type)                                                          \
  RANKINE_PREPARED(prefix##_Alltoallw_init,                                                        \
                   (in, in_counts, in_places, in_types, out, out_counts, out_places, out_types),   \
                   all_to_allw(manner, in, in_counts, in_places, in_types, out, out_counts,        \
                               out_places, out_types, on, pass),                                   \
                   const void* in, const int* in_counts, const int* in_places,                     \
                   const MPI_Datatype* in_types, void* out, const int* out_counts,                 \
                   const int* out_places, const MPI_Datatype* out_types)                           \
  RANKINE_PREPARED(prefix##_Gatherv_init,                                                          \
                   (in, in_count, in_type, out, counts, places, out_type, root),                   \
                   gatherv(manner, in, in_count, manner.type(in_type), out, counts, places,        \
                           manner.type(out_type), root, on, pass),                                 \
                   const void* in, int in_count, MPI_Datatype in_type, void* out,                  \
                   const int* counts, const int* places, MPI_Datatype out_type, int root)          \
  RANKINE_PREPARED(prefix##_Scatterv_init,                                                         \
                   (in, counts, places, in_type, out, out_count, out_type, root),                  \
                   scatterv(manner, in, counts, places, manner.type(in_type), out, out_count,      \
                            manner.type(out_type), root, on, pass),                                \
                   const void* in, const int* counts, const int* places, MPI_Datatype in_type,     \
                   void* out, int out_count, MPI_Datatype out_type, int root)                      \
  [[gnu::weak]] int P##prefix##_Barrier_init(MPI_Comm comm, MPI_Info info, MPI_Request* made);     \
  int prefix##_Barrier_init(MPI_Comm comm, MPI_Info info, MPI_Request* request) {                  \
    return prepare(                                                                                \
        comm, request,                                                                             \
        [](const Manner& manner, MPI_Comm on, const auto& pass) {                                  \
          return barrier(manner, on, pass);                                                        \
        },                                                                                         \
        [&] { return P##prefix##_Barrier_init(comm, info, request); });                            \
  }

#if MPI_VERSION >= 4
RANKINE_ALL_PREPARED(MPI)
#endif
#ifdef OPEN_MPI
RANKINE_ALL_PREPARED(MPIX)
#endif

#ifdef MPICH_VERSION
// Which asks no generalized request here.
int MPI_Request_get_status(MPI_Request request, int* is_complete, MPI_Status* status) {
  requests().move_on_in_mpi();
  return PMPI_Request_get_status(request, is_complete, status);
}
#endif

int MPI_Finalize() {
  prepared_calls().end();
  communicators().forget_all();
  requests().end();
  if (preload_settings().reports) {
    int rank = 0, ranks = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (rank == 0) report().print(rank, ranks);
  }
  return PMPI_Finalize();
}
}
