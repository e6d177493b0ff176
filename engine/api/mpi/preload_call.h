// InterceptedCall decides whether one collective call of the program is taken over or passed on to
// MPI, and runs it.
//
// A call is taken if its communicator is an intracommunicator, if all its processes have this
// library and share one MPI_COMM_WORLD, if it moves at least one byte, and if it either reduces a
// basic type by a predefined operation that the engine has, or moves data of any type (then it
// moves bytes). All ranks must decide alike, so each rank uses only values that MPI requires to be
// equal on all ranks:
//   - the communicator, the function, the root, and the number of earlier calls;
//   - in reductions the count (counts), the type and the operation;
//   - in moves the bytes of a block (of each block): MPI requires equal type signatures.
// It must not use values that may differ: addresses, MPI_IN_PLACE, derived types, arguments that
// only a root has, and the free memory of a rank, unless all ranks have exchanged it
// (preload_backend.h). If each rank knows only its own lengths, it posts them with its data, and
// all ranks decide from all posts (post_log.h). All other calls are passed on, also calls with
// arguments that MPI has errors for. If the ranks' arguments contradict each other, which MPI may
// not notice, the communicator's calls end on all ranks, and each rank reports the reason.
//
// Started calls (MPI_Iallreduce) are decided in the same way, without communication between ranks
// (preload_requests.h, Backend). Prepared calls (MPI_Allreduce_init) are decided by all ranks
// together when they are prepared; each start runs the same function again (Prepared,
// preload_communicators.h).
#pragma once

#include <mpi.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "engine/api/call.h"
#include "engine/api/mpi/post_log.h"
#include "engine/api/mpi/preload_blocks.h"
#include "engine/api/mpi/preload_communicators.h"
#include "engine/api/mpi/preload_report.h"
#include "engine/base/status.h"

namespace rankine::mpi {

// The form of a call: blocking; or started, with the place of MPI's request; or prepared: the first
// time without a channel, then once per start.
struct CallMode {
  Form form = Form::waited_for;
  MPI_Request* request = nullptr;
  const std::shared_ptr<Prepared>* prepared = nullptr;
};

class InterceptedCall {
 public:
  // `pass_on` makes the call by MPI.
  InterceptedCall(Function function, const CallMode& mode, MPI_Comm comm,
                  std::function<int()> pass_on);

  explicit operator bool() const { return going_; }
  MPI_Comm comm() const { return comm_; }
  // Passes the call on, so that MPI reports the error, if `wrong`.
  InterceptedCall& unless(bool wrong) { return unless(wrong, Passed::arguments); }
  InterceptedCall& root(int root) { return unless(root < 0 || root >= ranks); }
  InterceptedCall& moves(std::int64_t count, MPI_Datatype type) {
    return unless(count < 0 || type == MPI_DATATYPE_NULL);
  }
  InterceptedCall& reduces(Collective collective, std::int64_t count, MPI_Datatype type, MPI_Op op);

  // Decides the call. `call` has no buffers; `call` and the bytes of its largest block are equal on
  // all ranks. false: the caller must call pass(). true: the caller must call run() or end().
  bool is_taken(const Call& call, std::size_t largest_block);

  // For a prepared call returns the library's duplicate of a type, because the program may have
  // freed its own since.
  MPI_Datatype type(MPI_Datatype given) const;
  std::vector<MPI_Datatype> types(const MPI_Datatype* given) const;  // one per rank, or none
  Block block(const void* buffer, std::size_t count, MPI_Datatype given) const;

  // For taken calls. Memory until the call is over. nullptr: no memory; then run() ends the
  // communicator's calls.
  std::byte* room(std::size_t bytes);
  Bytes bytes(const Block& block);
  // Returns `in`, or a copy if `out` is the same memory: the program means MPI_IN_PLACE.
  const void* apart_from(const void* out, const void* in, std::size_t bytes) {
    return in == out ? copy_of(in, bytes) : in;
  }
  // Returns `bytes` for capture in `then` of run(). A prepared call keeps the type for all its
  // starts.
  Bytes kept(Bytes bytes) const;

  // Passes the call on to MPI, or returns the error if deciding has failed.
  int pass() const;
  // Ends the communicator's calls: this rank cannot make its call, and other ranks must not wait
  // for it. Returns an MPI error code.
  int end(const Status& why) const;
  // Makes the call, then calls `then`. For a started call `then` is kept until the call is over.
  // The report counts `bytes`.
  template <class Then>
  int run(Call&& call, std::size_t bytes, Then then) {
    if (mode_.form == Form::waited_for) return run_for(call, bytes, std::ref(then));
    // std::function copies its target, but `then` may hold move-only objects.
    return run_for(call, bytes, [held = std::make_shared<Then>(std::move(then))] { (*held)(); });
  }
  int run(Call&& call, std::size_t bytes) {
    return run_for(call, bytes, [] {});
  }
  // Makes a call in which each rank knows only its own lengths. The report counts sent or received
  // bytes, the larger number.
  int post(Rank root, const Blocks& sends, const Blocks& receives);

  int rank = 0, ranks = 1;
  DataType kind = DataType::u8;
  ReduceOp operation = ReduceOp::sum;

 private:
  using Clock = std::chrono::steady_clock;

  bool starts() const { return mode_.form == Form::started; }
  bool starts_prepared() const { return mode_.form == Form::prepared && !makes_ready_; }
  Prepared& prepared() const { return **mode_.prepared; }
  // Collective: finds a channel for the prepared call and agrees on its kind. On false the call is
  // passed on to MPI, with the reason in why_.
  bool make_ready(const Call& call);
  // For prepared calls: all ranks exchange their lengths once, through MPI, because preparing is
  // collective. The call becomes an all-to-all with known lengths.
  int share_lengths(Rank root, const Blocks& sends, const Blocks& receives);
  int start_with_lengths(const Blocks& sends, const Blocks& receives);
  std::size_t length(Rank from, Rank to) const {
    return prepared().lengths[static_cast<std::size_t>(from) * static_cast<std::size_t>(ranks) +
                              static_cast<std::size_t>(to)];
  }
  // The first call is collective. nullptr: calls go by messages, so prepared calls are passed on.
  Channels* channels();
  // nullptr: the reason is in why_.
  Backend* find_backend();
  bool leaves_to_mpi(const Call& call);
  const void* copy_of(const void* in, std::size_t bytes);
  // Copies the input if the buffers overlap in a way that MPI tolerates but the engine refuses.
  void lay_apart(Call& call);
  int run_for(Call& call, std::size_t bytes, std::function<void()> then);
  int start(Call& call, std::size_t bytes, Clock::time_point began, std::function<void()> then);
  // Fills in this rank's post. false: MPI has an error for the arguments.
  bool fill_in(const PostLog::Room& room, const Blocks& sends, const Blocks& receives) const;
  // Without a report these functions neither read the clock nor count.
  static Clock::time_point clock();
  void count_taken(std::size_t bytes, Clock::time_point began) const;
  int fail(const Status& status) const;
  int fail(const Status& status, int error) const;
  int pass(Passed why) {
    why_ = why;
    return pass();
  }
  InterceptedCall& unless(bool wrong, Passed why) {
    if (going_ && wrong) {
      going_ = false;
      why_ = why;
    }
    return *this;
  }

  const Function function_;
  const CallMode mode_;
  const MPI_Comm comm_;
  const std::function<int()> pass_on_;
  Attached* attached_ = nullptr;
  Backend* backend_ = nullptr;  // set once the call is taken
  bool counts_ = false, going_ = false, lacks_room_ = false;
  bool makes_ready_ = false;  // prepares the call now and does not start it
  Passed why_ = Passed::arguments;
  Status failed_;                                    // error of the ranks' decision
  std::vector<std::shared_ptr<std::byte[]>> rooms_;  // memory of a started call
};

// One function per collective function of MPI, for all its forms: prepares the buffers and makes
// the corresponding engine call.

// int allreduce(InterceptedCall& call, const void* in, ...) and so on. Each returns an MPI error
// code.
#define RANKINE_COLLECTIVE(Name, name, PARAMETERS) \
  int name(InterceptedCall& call PARAMETERS(RANKINE_ALSO_DECLARED));
RANKINE_FUNCTIONS(RANKINE_COLLECTIVE, RANKINE_COLLECTIVE)
#undef RANKINE_COLLECTIVE

}  // namespace rankine::mpi
