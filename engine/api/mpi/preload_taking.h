// One call of a program's, which is taken or passed on.
//
// A call is taken where it is on an intracommunicator of processes of one MPI_COMM_WORLD that all
// have this library, moves at least a byte, and either adds up a basic type by a predefined
// operation that the engine has, or moves data, whatever their type: then it is the bytes that are
// moved. All ranks must decide alike, so each decides by what MPI wants them to give alike:
//   - the communicator, the function, the root, and how many calls came before;
//   - in reductions the count (counts), the type and the operation;
//   - in moves the bytes of a block (of each block): MPI wants equal type signatures;
// and by nothing that may differ: addresses, MPI_IN_PLACE, derived types, arguments that only a
// root has, and the memory that a rank has left, unless all ranks have told it (preload_backend.h).
// Where each knows its own lengths only, it posts them, with what it sends, and all decide by all
// posts (post_log.h). Everything else is passed on, and so are arguments that MPI has errors for.
// Arguments that do not go together, which MPI may not notice, end the communicator's calls here on
// all ranks, and each says why.
//
// Calls that are started and waited for later (MPI_Iallreduce) are decided on in the same way, and
// by nothing that ranks would have to ask each other first (preload_requests.h, and Backend). Those
// that are made ready (MPI_Allreduce_init) are decided on there, by all ranks at once, and run
// through the same functions again each time that they are started (preload_prepared.h).
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

// How a call is made: waited for at once; or started, and MPI's request is to be found there; or
// made ready, and then, once it has a channel, started again and again.
struct Manner {
  Form form = Form::waited_for;
  MPI_Request* request = nullptr;
  const std::shared_ptr<Prepared>* prepared = nullptr;
};

class Taking {
 public:
  // `pass_on` makes the call by MPI.
  Taking(Function function, const Manner& manner, MPI_Comm comm, std::function<int()> pass_on);

  explicit operator bool() const { return going_; }
  MPI_Comm comm() const { return comm_; }
  // Nothing of this may be wrong, or MPI says so.
  Taking& unless(bool wrong) { return unless(wrong, Passed::arguments); }
  Taking& root(int root) { return unless(root < 0 || root >= ranks); }
  Taking& moves(std::int64_t count, MPI_Datatype type) {
    return unless(count < 0 || type == MPI_DATATYPE_NULL);
  }
  Taking& reduces(Collective collective, std::int64_t count, MPI_Datatype type, MPI_Op op);

  // Whose the call is. `call` has no buffers, and is the same on all ranks, as are the bytes of its
  // largest block. False: pass() is next. True: end() or run() is.
  bool is_taken(const Call& call, std::size_t largest_block);

  // The same types, where the program may have freed its own since it made the call ready.
  MPI_Datatype type(MPI_Datatype given) const;
  std::vector<MPI_Datatype> types(const MPI_Datatype* given) const;  // of each rank, or none
  Block block(const void* buffer, std::size_t count, MPI_Datatype given) const;

  // Of calls that are taken. Memory until the call is over; nullptr: there is none, and run() ends
  // the communicator's calls.
  std::byte* room(std::size_t bytes);
  Bytes bytes(const Block& block);
  // `in`, or a copy where `out` is the same memory: a program that means MPI_IN_PLACE says so.
  const void* apart_from(const void* out, const void* in, std::size_t bytes) {
    return in == out ? copy_of(in, bytes) : in;
  }
  // What `then` of run() may hold. What is made ready keeps the type for all that is started of it.
  Bytes kept(Bytes bytes) const;

  // What is left is MPI's own, or has failed.
  int pass() const;
  // This rank cannot make the call, and no other rank shall wait for it. An error of MPI's.
  int end(const Status& why) const;
  // Where the call is started, `then` and what it holds stay until that is over. `bytes` are what
  // is reported.
  template <class Then>
  int run(Call&& call, std::size_t bytes, Then then) {
    if (manner_.form == Form::waited_for) return run_for(call, bytes, std::ref(then));
    // A function has copies, and what this one holds has none.
    return run_for(call, bytes, [held = std::make_shared<Then>(std::move(then))] { (*held)(); });
  }
  int run(Call&& call, std::size_t bytes) {
    return run_for(call, bytes, [] {});
  }
  // Of which each rank knows only its own lengths. Reported are the bytes that it sends or, if they
  // are more, receives.
  int post(Rank root, const Blocks& sends, const Blocks& receives);

  int rank = 0, ranks = 1;
  DataType kind = DataType::u8;
  ReduceOp operation = ReduceOp::sum;

 private:
  using Clock = std::chrono::steady_clock;

  bool starts() const { return manner_.form == Form::started; }
  bool starts_prepared() const { return manner_.form == Form::prepared && !makes_ready_; }
  Prepared& prepared() const { return **manner_.prepared; }
  // A call of all ranks, which find it a channel and agree there on its kind. Else it is MPI's:
  // why_ says why.
  bool make_ready(const Call& call);
  // What is made ready has its lengths posted once, by MPI, as its calls are of all ranks then. So
  // it is an all-to-all of lengths that are known.
  int share_lengths(Rank root, const Blocks& sends, const Blocks& receives);
  int start_with_lengths(const Blocks& sends, const Blocks& receives);
  std::size_t length(Rank from, Rank to) const {
    return prepared().lengths[static_cast<std::size_t>(from) * static_cast<std::size_t>(ranks) +
                              static_cast<std::size_t>(to)];
  }
  // A call of all ranks, the first time. nullptr: calls go by messages, so there are none.
  Channels* channels();
  // nullptr: why_ says why not.
  Backend* find_backend();
  bool leaves_to_mpi(const Call& call);
  const void* copy_of(const void* in, std::size_t bytes);
  // The engine wants buffers to lie apart that MPI looks at less closely.
  void lay_apart(Call& call);
  int run_for(Call& call, std::size_t bytes, std::function<void()> then);
  int start(Call& call, std::size_t bytes, Clock::time_point began, std::function<void()> then);
  // This rank's post; false: MPI has an error for the call.
  bool fill_in(const PostLog::Room& room, const Blocks& sends, const Blocks& receives) const;
  // Neither is asked nor counted for nobody.
  static Clock::time_point clock();
  void count_taken(std::size_t bytes, Clock::time_point began) const;
  int fail(const Status& status) const;
  int fail(const Status& status, int error) const;
  int pass(Passed why) {
    why_ = why;
    return pass();
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
  const std::function<int()> pass_on_;
  Attached* attached_ = nullptr;
  Backend* backend_ = nullptr;  // once the call is taken
  bool counts_ = false, going_ = false, lacks_room_ = false;
  bool makes_ready_ = false;  // and does not start what it has made ready
  Passed why_ = Passed::arguments;
  Status failed_;  // while ranks decided
  std::vector<std::shared_ptr<std::byte[]>> rooms_;  // of a call that is started
};

// What each collective function of MPI does with its buffers, in whichever form it is called: the
// engine's call of the same.

// int allreduce(Taking& call, const void* in, ...), and so on: an error of MPI's.
#define RANKINE_COLLECTIVE(Name, name, PARAMETERS) \
  int name(Taking& call PARAMETERS(RANKINE_ALSO_DECLARED));
RANKINE_FUNCTIONS(RANKINE_COLLECTIVE, RANKINE_COLLECTIVE)
#undef RANKINE_COLLECTIVE

}  // namespace rankine::mpi
