// One call of a program's, which is taken or passed on.
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
#pragma once

#include <mpi.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "engine/api/call.h"
#include "engine/api/mpi/post_log.h"
#include "engine/api/mpi/preload_blocks.h"
#include "engine/api/mpi/preload_communicators.h"
#include "engine/api/mpi/preload_prepared.h"
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
  // Nothing of this may be wrong, or MPI says so.
  Taking& unless(bool wrong) { return unless(wrong, Passed::arguments); }
  Taking& root(int root) { return unless(root < 0 || root >= ranks); }
  Taking& moves(int count, MPI_Datatype type) {
    return unless(count < 0 || type == MPI_DATATYPE_NULL);
  }
  Taking& reduces(Collective collective, int count, MPI_Datatype type, MPI_Op op);

  // The same types, where the program may have freed its own since it made the call ready.
  MPI_Datatype type(MPI_Datatype given) const;
  std::vector<MPI_Datatype> types(const MPI_Datatype* given) const;  // of each rank, or none
  Bytes bytes(const void* buffer, std::size_t count, MPI_Datatype given) const {
    return {buffer, count, type(given), comm_};
  }
  // What `then` of run() may hold. What is made ready keeps the type for all that is started of it.
  Bytes kept(Bytes bytes) const;

  // What is left is MPI's own.
  int pass() const;
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
  bool makes_ready() const {
    return manner_.form == Form::prepared && prepared().channel == nullptr;
  }
  bool starts_prepared() const {
    return manner_.form == Form::prepared && prepared().channel != nullptr;
  }
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
  int run_for(Call& call, std::size_t bytes, std::function<void()> then);
  int start(Backend& backend, Call& call, std::size_t bytes, Clock::time_point began,
            std::function<void()> then);
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
  bool counts_ = false, going_ = false;
  Passed why_ = Passed::arguments;
};

}  // namespace rankine::mpi
