#include "engine/api/mpi/member.h"

#include <new>
#include <string>
#include <utility>

#include "engine/api/mpi/member_state.h"

namespace rankine::mpi {
namespace {

bool mpi_is_over() noexcept {
  int over = 0;
  MPI_Finalized(&over);
  return over != 0;
}

}  // namespace

Member::State::State(const JoinOptions& options_, const Environment& environment,
                     std::shared_ptr<const CallClock> network_, const WaitPolicy& waits,
                     std::shared_ptr<Process> process_, Rank rank_, Within within, int tag_bases_)
    : process(std::move(process_)),
      rank(rank_),
      thread(process->homes()[rank].thread),
      options(options_),
      forced(environment),
      network(std::move(network_)),
      policy(waits),
      ways(process->homes().ways_of(rank, within == Within::memory)),
      tag_bases(tag_bases_),
      mail_numbers_(ways.size(), -1) {
  const std::vector<Rank>& others = process->mail_ranks();
  for (std::size_t i = 0; i < others.size(); ++i) {
    mail_numbers_[static_cast<std::size_t>(others[i])] = static_cast<int>(i);
  }
  mail_self_ = on_mail(rank);
  if (others.size() > 1)
    mail_.emplace(process->mail(), static_cast<int>(others.size()), mail_self_);
}

Member::State::~State() = default;

Member::Member(ProcessOwned<State> state) : state_(std::move(state)) {}

Member::~Member() {
  // Of another process, or of an MPI that is no more.
  if (!state_.get_deleter().home.is_this() || mpi_is_over()) static_cast<void>(state_.release());
}

Rank Member::rank() const { return state_->rank; }
int Member::ranks() const { return state_->process->homes().ranks(); }
const Homes& Member::homes() const { return state_->process->homes(); }
Sent Member::sent() const { return state_->sent; }

namespace {

// What an inherited handle is told, and one that has outlived MPI.
Status usable(const ProcessOwned<Member::State>& state) noexcept {
  if (!state.get_deleter().home.is_this()) {
    return make_error(Code::forked, [] {
      return "this process was forked from the one whose rank this is, and has no MPI of its own";
    });
  }
  if (mpi_is_over()) return make_error(Code::system, [] { return "MPI has been finalized"; });
  return {};
}

}  // namespace

Status Member::call(const Call& call) try {
  if (Status status = usable(state_); !status.ok()) return status;
  return state_->whole_call(call);
} catch (const std::bad_alloc&) {
  abort("no memory");
  return make_error(Code::out_of_memory, [&] {
    return "rank " + std::to_string(rank()) + " has no memory for " +
           std::string(name_of(call.collective));
  });
}

Status Member::barrier(const CallOptions& options) {
  return call(barrier_of(state_->barrier_in, state_->barrier_out, options));
}

Result<std::string> Member::plan_of(const Call& call) {
  if (Status status = usable(state_); !status.ok()) return status;
  state_->begin_waiting(call.options);
  const auto found = state_->find(call);
  if (!found.ok()) return found.status();
  if (Status status = state_->make_room(**found); !status.ok()) return status;
  const Prepared& prepared = *(*found)->prepared;
  return std::string(prepared.algorithm) +
         (prepared.parameters.empty() ? "" : ", " + prepared.parameters) + ", " +
         state_->ways_in_words();
}

Result<OrderSet> Member::orders_of(const Call& call) {
  if (Status status = usable(state_); !status.ok()) return status;
  state_->begin_waiting(call.options);
  const auto found = state_->find(call);
  if (!found.ok()) return found.status();
  return (*found)->prepared->orders;
}

void Member::abort(std::string_view why) {
  if (!usable(state_).ok()) return;
  static_cast<void>(state_->end_with(Status(Code::aborted, std::string(why))));
}

Status Member::health() const {
  Status status = usable(state_);
  return status.ok() ? state_->process->reason() : status;
}

}  // namespace rankine::mpi
