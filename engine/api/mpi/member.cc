#include "engine/api/mpi/member.h"

#include <algorithm>
#include <array>
#include <limits>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "engine/api/communicator.h"
#include "engine/api/mpi/member_state.h"
#include "engine/api/mpi/mpi_error.h"
#include "engine/api/version.h"
#include "engine/base/splitmix.h"
#include "engine/network/fabric.h"
#include "engine/network/write_network.h"

namespace rankine::mpi {
namespace {

bool mpi_is_over() noexcept {
  int over = 0;
  MPI_Finalized(&over);
  return over != 0;
}

// All but PMPI's so far calls for nothing on the communicator.
Status check_mpi(MPI_Comm comm) {
  int initialized = 0;
  MPI_Initialized(&initialized);
  if (initialized == 0) return invalid_argument("MPI is not initialized; MPI_Init comes first");
  if (mpi_is_over()) return invalid_argument("MPI has been finalized");
  if (comm == MPI_COMM_NULL) return invalid_argument("comm is MPI_COMM_NULL");
  int is_inter = 0;
  MPI_Comm_test_inter(comm, &is_inter);
  if (is_inter != 0) return invalid_argument("comm is an intercommunicator");
  return {};
}

// Another one of the same ranks. Not MPI_Comm_dup, which would ask the user's attributes.
Status make_comm(MPI_Comm comm, int rank, MPI_Comm& made) {
  const int code = MPI_Comm_split(comm, 0, rank, &made);
  if (code != MPI_SUCCESS) return mpi_status("MPI_Comm_split", code);
  MPI_Comm_set_errhandler(made, MPI_ERRORS_RETURN);
  return {};
}

// Which nodes have whom.
struct Nodes {
  int mine = 1;   // ranks on this one
  int equal = 0;  // each has so many neighbours; 0: not so
};

Nodes find_nodes(MPI_Comm comm, int rank, int ranks) {
  MPI_Comm node = MPI_COMM_NULL;
  MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node);
  Nodes found;
  MPI_Comm_size(node, &found.mine);
  int first = rank;
  MPI_Bcast(&first, 1, MPI_INT, 0, node);
  MPI_Comm_free(&node);
  std::vector<int> firsts(static_cast<std::size_t>(ranks));
  MPI_Allgather(&first, 1, MPI_INT, firsts.data(), 1, MPI_INT, comm);
  const auto of_first = std::count(firsts.begin(), firsts.end(), firsts.front());
  found.equal = static_cast<int>(of_first);
  for (int r = 0; r < ranks; ++r) {
    if (firsts[static_cast<std::size_t>(r)] != r / found.equal * found.equal) found.equal = 0;
    if (found.equal == 0) break;
  }
  return found;
}

CallNetwork network_for(const JoinOptions& options, const Environment& environment,
                        const Nodes& nodes, int ranks) {
  CallNetwork network;
  if (options.network != nullptr) {
    network = *options.network;
  } else if (environment.network != nullptr) {
    network = *environment.network;
  } else if (nodes.equal > 1 && nodes.equal < ranks) {
    network.fabric = find_regime("two_level")->fabric;
    network.fabric.group = nodes.equal;
  } else {
    network.fabric = find_regime("scale_out")->fabric;
  }
  network.lower = true;                     // processes have messages from one to one
  network.clock = ClockMode::virtual_time;  // that nobody asks
  return network;
}

Status check_options(const JoinOptions& options, const Environment& environment, int ranks) {
  CommunicatorOptions common{.ranks = ranks, .timeout = options.timeout};
  common.plan_bytes = options.plan_bytes;
  common.order = options.order;
  if (Status status = check_communicator(common); !status.ok()) return status;
  constexpr std::size_t kMost = std::size_t{1} << 30;
  if (options.most_message_bytes < 1 || options.most_message_bytes > kMost) {
    return invalid_argument("most_message_bytes is " + std::to_string(options.most_message_bytes) +
                            "; allowed are 1 to " + std::to_string(kMost));
  }
  if (environment.transport.value_or(Transport::mailbox) != Transport::mailbox) {
    return invalid_argument("RANKINE_TRANSPORT is " + std::string(name_of(*environment.transport)) +
                            "; over MPI all is messages: allowed are mailbox and auto");
  }
  int level = MPI_THREAD_SINGLE, is_main = 0;
  MPI_Query_thread(&level);
  MPI_Is_thread_main(&is_main);
  if (level < MPI_THREAD_SERIALIZED && is_main == 0) {
    return invalid_argument(
        "this thread may not call MPI; MPI_Init_thread allows others than the main one from "
        "MPI_THREAD_SERIALIZED on");
  }
  return {};
}

std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = text.size();
  for (const char c : text) hash = mixed(hash, static_cast<unsigned char>(c));
  return hash;
}

// What all ranks must have alike, since each plans for itself.
struct Agreed {
  std::string_view name;
  std::uint64_t hash = 0;
};

std::vector<Agreed> agreed(const JoinOptions& options, const Environment& environment,
                           const CallNetwork& network) {
  std::uint64_t algorithms = 0;
  for (const Algorithm* line : environment.algorithm) {
    algorithms = mixed(algorithms, line == nullptr ? 0 : hash_of(line->name));
  }
  const auto file = write_network(network.fabric);
  return {{"the version of Rankine", hash_of(kVersion)},
          {"RANKINE_ALGO", algorithms},
          {"network", hash_of(file.ok() ? *file : network.fabric.name)},
          {"order", options.order ? 1 + static_cast<std::uint64_t>(*options.order) : 0},
          {"plan_bytes", options.plan_bytes},
          {"most_message_bytes", options.most_message_bytes}};
}

// The first of them that differs among the ranks, or an error that another rank has found.
Status compare(MPI_Comm comm, const Status& mine, const std::vector<Agreed>& all) {
  std::vector<std::uint64_t> words = {mine.ok() ? 1U : 0U};
  for (const Agreed& one : all) {
    words.push_back(one.hash);
    words.push_back(~one.hash);
  }
  std::vector<std::uint64_t> least(words.size());
  const int code = MPI_Allreduce(words.data(), least.data(), static_cast<int>(words.size()),
                                 MPI_UINT64_T, MPI_MIN, comm);
  if (code != MPI_SUCCESS) return mpi_status("MPI_Allreduce", code);
  if (!mine.ok()) return mine;
  if (least[0] == 0) return invalid_argument("another rank was refused");
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (least[1 + 2 * i] == ~least[2 + 2 * i]) continue;
    return invalid_argument(std::string(all[i].name) +
                            " is not the same on all ranks; each plans for itself");
  }
  return {};
}

struct Comms {
  MPI_Comm data = MPI_COMM_NULL, alarms = MPI_COMM_NULL;
  ~Comms() {
    if (data != MPI_COMM_NULL) MPI_Comm_free(&data);
    if (alarms != MPI_COMM_NULL) MPI_Comm_free(&alarms);
  }
};

}  // namespace

Result<std::unique_ptr<Member>> join(MPI_Comm comm, const JoinOptions& options) try {
  if (Status status = check_mpi(comm); !status.ok()) return status;
  int rank = 0, ranks = 1;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &ranks);
  Comms comms;
  if (Status status = make_comm(comm, rank, comms.data); !status.ok()) return status;
  if (Status status = make_comm(comm, rank, comms.alarms); !status.ok()) return status;
  const Nodes nodes = find_nodes(comms.data, rank, ranks);
  const auto environment = read_environment();
  const Environment known = environment.ok() ? *environment : Environment();
  Status mine = environment.ok() ? check_options(options, known, ranks) : environment.status();
  const CallNetwork network = network_for(options, known, nodes, ranks);
  const WaitPolicy policy = choose_wait_policy(nodes.mine);
  std::unique_ptr<CallClock> clock;
  if (mine.ok()) {
    auto made = CallClock::make(network, ranks, policy);
    if (made.ok())
      clock = std::move(*made);
    else
      mine = made.status();
  }
  Status status = compare(comms.data, mine, agreed(options, known, network));
  if (!status.ok()) return status;
  Environment forced = known;
  forced.transport = Transport::mailbox;
  auto state = make_process_owned<Member::State>(options, forced, std::move(clock), policy,
                                                 comms.data, comms.alarms);
  comms.data = comms.alarms = MPI_COMM_NULL;
  return std::unique_ptr<Member>(new Member(std::move(state)));
} catch (const std::bad_alloc&) {
  return make_error(Code::out_of_memory, [] { return "a rank over MPI"; });
}

Member::State::State(const JoinOptions& options_, const Environment& environment,
                     std::unique_ptr<CallClock> network_, const WaitPolicy& waits, MPI_Comm data,
                     MPI_Comm alarms)
    : options(options_),
      forced(environment),
      network(std::move(network_)),
      policy(waits),
      comm(data),
      alarm_comm(alarms),
      alarm(alarms) {
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &ranks);
  int* most = nullptr;
  int found = 0;
  MPI_Comm_get_attr(comm, MPI_TAG_UB, static_cast<void*>(&most), &found);
  const int tags = found != 0 ? *most : 32767;  // the least that MPI allows
  tag_bases = std::max(1, tags / BoundRequests::kTags);
}

Member::State::~State() = default;

Member::Member(ProcessOwned<State> state) : state_(std::move(state)) {}

// After an error messages may be under way on the communicators, which so stay.
Member::~Member() {
  State& s = *state_;
  if (!state_.get_deleter().home.is_this() || mpi_is_over()) {
    static_cast<void>(state_.release());
    return;
  }
  MPI_Comm data = s.comm, alarms = s.alarm_comm;
  const bool ended_well = s.ended.ok();
  state_ = nullptr;
  if (!ended_well) return;
  MPI_Comm_free(&data);
  MPI_Comm_free(&alarms);
}

Rank Member::rank() const { return state_->rank; }
int Member::ranks() const { return state_->ranks; }
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
  return state_->call(call);
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
  const Prepared& prepared = *(*found)->prepared;
  return std::string(prepared.algorithm) +
         (prepared.parameters.empty() ? "" : ", " + prepared.parameters) + ", MPI";
}

Result<OrderSet> Member::orders_of(const Call& call) {
  if (Status status = usable(state_); !status.ok()) return status;
  state_->begin_waiting(call.options);
  const auto found = state_->find(call);
  if (!found.ok()) return found.status();
  return (*found)->prepared->orders;
}

void Member::abort(std::string_view why) {
  if (!usable(state_).ok() || !state_->ended.ok()) return;
  state_->ended = Status(Code::aborted, std::string(why));
  state_->alarm.raise(state_->ended);
}

Status Member::health() const {
  Status status = usable(state_);
  return status.ok() ? state_->ended : status;
}

}  // namespace rankine::mpi
