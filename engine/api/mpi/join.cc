// Joins ranks to a communicator over MPI: finds their locations, compares their settings, and makes
// their shared memory.
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "engine/api/communicator.h"
#include "engine/api/mpi/process.h"
#include "engine/api/mpi/rank_locations.h"
#include "engine/api/version.h"
#include "engine/base/numbers.h"
#include "engine/network/fabric.h"
#include "engine/network/network_members.h"
#include "numa/refusals.h"

namespace rankine::mpi {
namespace {

// Checks made before any call on the communicator.
Status check_mpi(MPI_Comm comm) {
  int initialized = 0;
  MPI_Initialized(&initialized);
  if (initialized == 0) return invalid_argument("MPI is not initialized; call MPI_Init first");
  if (mpi_is_over()) return invalid_argument("MPI has been finalized; join before MPI_Finalize");
  if (comm == MPI_COMM_NULL)
    return invalid_argument("comm is MPI_COMM_NULL; allowed are intracommunicators");
  int is_inter = 0;
  MPI_Comm_test_inter(comm, &is_inter);
  if (is_inter != 0)
    return invalid_argument("comm is an intercommunicator; allowed are intracommunicators");
  return {};
}

// Makes another communicator with the same ranks. MPI_Comm_dup would run the callbacks of the
// user's attributes.
Status make_comm(MPI_Comm comm, int rank, MPI_Comm& made) {
  const int code = MPI_Comm_split(comm, 0, rank, &made);
  if (code != MPI_SUCCESS) return mpi_status("MPI_Comm_split", code);
  MPI_Comm_set_errhandler(made, MPI_ERRORS_RETURN);
  return {};
}

// A communicator of the processes of this process's node.
class NodeComm {
 public:
  NodeComm() = default;
  ~NodeComm() {
    if (comm_ != MPI_COMM_NULL) MPI_Comm_free(&comm_);
  }
  NodeComm(const NodeComm&) = delete;
  NodeComm& operator=(const NodeComm&) = delete;

  // `made_up`: the number of the made-up node within the machine; 0 without made-up nodes.
  // Processes of one machine that cannot share memory, such as processes in different containers,
  // get different nodes.
  Status make(MPI_Comm comm, int rank, int made_up) {
    MPI_Comm machine = MPI_COMM_NULL;
    int code = MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &machine);
    if (code != MPI_SUCCESS) return mpi_status("MPI_Comm_split_type", code);
    const std::uint64_t node = mixed(shared_host().memory, static_cast<std::uint64_t>(made_up));
    constexpr std::uint64_t kColors = std::numeric_limits<int>::max();
    code = MPI_Comm_split(machine, static_cast<int>(node & kColors), rank, &comm_);
    MPI_Comm_free(&machine);
    if (code != MPI_SUCCESS) return mpi_status("MPI_Comm_split", code);
    MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
    return {};
  }
  MPI_Comm comm() const { return comm_; }
  // The process ids of the node's processes.
  Result<std::vector<int>> processes() const {
    int mine = getpid(), number = 1;
    MPI_Comm_size(comm_, &number);
    std::vector<int> all(static_cast<std::size_t>(number));
    const int code = MPI_Allgather(&mine, 1, MPI_INT, all.data(), 1, MPI_INT, comm_);
    if (code != MPI_SUCCESS) return mpi_status("MPI_Allgather", code);
    return all;
  }

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;
};

// Returns the number of this process's made-up node.
Result<int> made_up_of(const JoinOptions& options) {
  if (options.node) {
    if (*options.node >= 0) return *options.node;
    return invalid_argument("node is " + std::to_string(*options.node) +
                            "; allowed are 0 and more");
  }
  const auto sizes = read_made_up_nodes();
  if (!sizes.ok()) return sizes.status();
  if (sizes->empty()) return 0;
  int number = 0;  // made-up nodes divide the machine, not the communicator
  MPI_Comm_rank(MPI_COMM_WORLD, &number);
  return made_up_node(*sizes, number);
}

Result<RankLocations> find_locations(MPI_Comm comm, MPI_Comm node, int rank, int threads) {
  int mine[2] = {rank, threads};
  MPI_Bcast(mine, 1, MPI_INT, 0, node);  // rank of the node's first process
  int processes = 1;
  MPI_Comm_size(comm, &processes);
  std::vector<int> said(2 * static_cast<std::size_t>(processes));
  const int code = MPI_Allgather(mine, 2, MPI_INT, said.data(), 2, MPI_INT, comm);
  if (code != MPI_SUCCESS) return mpi_status("MPI_Allgather", code);
  std::vector<ProcessLocation> all;
  for (std::size_t i = 0; i < said.size(); i += 2) all.push_back({said[i], said[i + 1]});
  return RankLocations(all);
}

CallNetwork network_for(const JoinOptions& options, const Environment& environment,
                        const RankLocations& locations) {
  CallNetwork network;
  if (options.network != nullptr) {
    network = *options.network;
  } else if (environment.network != nullptr) {
    network = *environment.network;
  } else if (locations.group() > 1) {
    network.fabric = find_regime("two_level")->fabric;
    network.fabric.group = locations.group();
  } else {
    network.fabric = find_regime("scale_out")->fabric;
  }
  network.lower = true;                     // processes exchange messages between each pair
  network.clock = ClockMode::virtual_time;  // no code reads this clock
  return network;
}

std::string name_of_level(int level) {
  return level == MPI_THREAD_MULTIPLE     ? "MPI_THREAD_MULTIPLE"
         : level == MPI_THREAD_SERIALIZED ? "MPI_THREAD_SERIALIZED"
         : level == MPI_THREAD_FUNNELED   ? "MPI_THREAD_FUNNELED"
                                          : "MPI_THREAD_SINGLE";
}

int thread_level() {
  int level = MPI_THREAD_SINGLE;
  MPI_Query_thread(&level);
  return level;
}

Carriers carriers_of(const JoinOptions& options) {
  return options.carriers.value_or(thread_level() == MPI_THREAD_MULTIPLE ? Carriers::each
                                                                         : Carriers::leader);
}

Status check_threads(const JoinOptions& options, int threads) {
  if (threads < 1 || threads > Communicator::kMaxRanks) {
    return invalid_argument("threads is " + std::to_string(threads) + "; allowed are 1 to " +
                            std::to_string(Communicator::kMaxRanks));
  }
  const int level = thread_level();
  int is_main = 0;
  MPI_Is_thread_main(&is_main);
  if (level < MPI_THREAD_SERIALIZED && is_main == 0) {
    return invalid_argument(
        "this thread may not call MPI; allowed are the main thread, and other threads with "
        "MPI_THREAD_SERIALIZED or more");
  }
  if (threads == 1) return {};
  if (level < MPI_THREAD_FUNNELED) {
    return invalid_argument("threads is " + std::to_string(threads) +
                            "; allowed with MPI_THREAD_SINGLE is 1; initialize MPI with "
                            "MPI_THREAD_FUNNELED or more");
  }
  if (carriers_of(options) == Carriers::each && level < MPI_THREAD_MULTIPLE) {
    return invalid_argument("carriers is each, and MPI_Init_thread gave " + name_of_level(level) +
                            "; allowed is leader, and each with MPI_THREAD_MULTIPLE");
  }
  return {};
}

// Returns the largest tag.
int most_tag(MPI_Comm comm) {
  int* most = nullptr;
  int found = 0;
  MPI_Comm_get_attr(comm, MPI_TAG_UB, static_cast<void*>(&most), &found);
  return found != 0 ? *most : 32767;  // the minimum that MPI guarantees
}

Status check_tags(MPI_Comm comm, const RankLocations& locations) {
  const int most = locations.most_threads();
  if (most * most <= most_tag(comm)) return {};
  return invalid_argument("threads is " + std::to_string(most) +
                          " in some process; allowed are fewer, because MPI's tags end at " +
                          std::to_string(most_tag(comm)));
}

// Equal on all nodes: no table or costs of the machine.
CommunicatorOptions common_options(const JoinOptions& options, int ranks) {
  CommunicatorOptions common{.ranks = ranks, .timeout = options.timeout};
  common.tuned = false;
  common.plan_bytes = options.plan_bytes;
  common.order = options.order;
  return common;
}

Status check_options(const JoinOptions& options, const Environment& environment, int ranks) {
  if (Status status = check_communicator(common_options(options, ranks)); !status.ok()) {
    return status;
  }
  constexpr std::size_t kMost = std::size_t{1} << 30;
  if (options.most_message_bytes < 1 || options.most_message_bytes > kMost) {
    return invalid_argument("most_message_bytes is " + std::to_string(options.most_message_bytes) +
                            "; allowed are 1 to " + std::to_string(kMost));
  }
  if (environment.transport.value_or(Transport::mailbox) != Transport::mailbox) {
    return invalid_argument("RANKINE_TRANSPORT is " + std::string(name_of(*environment.transport)) +
                            "; allowed over MPI are mailbox and auto");
  }
  return {};
}

std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = text.size();
  for (const char c : text) hash = mixed(hash, static_cast<unsigned char>(c));
  return hash;
}

// A setting that must be equal on all ranks, because each rank plans for itself.
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
          {"most_message_bytes", options.most_message_bytes},
          {"within", options.within ? 1 + static_cast<std::uint64_t>(*options.within) : 0}};
}

// Error: the first setting that differs between ranks, or an error of any rank.
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
  if (least[0] == 0)
    return invalid_argument("another rank was refused; its error gives the reason");
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (least[1 + 2 * i] == ~least[2 + 2 * i]) continue;
    return invalid_argument(std::string(all[i].name) +
                            " differs between ranks; allowed is one value on all ranks");
  }
  return {};
}

struct Joined {
  std::unique_ptr<Communicator> communicator;
  std::vector<std::unique_ptr<rankine::Member>> members;
};

// Makes the communicator in this process, or joins the one of the node's processes, and its ranks.
Result<Joined> join_ranks(CommunicatorOptions options, const std::string& name, bool is_first) {
  const WireOptions& wire = *options.wire;
  std::vector<Rank> more(wire.here.begin() + 1, wire.here.end());
  if (!name.empty()) {
    // One process of the node stands for the ranks of other nodes.
    const std::vector<bool> far = wire.far_from(wire.here.front());
    for (Rank r = 0; is_first && r < options.ranks; ++r) {
      if (far[static_cast<std::size_t>(r)]) more.push_back(r);
    }
    options.rank = wire.here.front();
    options.more_ranks = more;
    options.name = name;
  }
  auto communicator = Communicator::create(options);
  if (!communicator.ok()) return communicator.status();
  Joined out;
  for (const Rank r : wire.here) {
    auto member = (*communicator)->join_for_another_thread(r);
    if (!member.ok()) return member.status();
    out.members.push_back(std::move(*member));
  }
  out.communicator = std::move(*communicator);
  return out;
}

// As join_ranks(), through the node's memory if it is wanted and all nodes have it. Collective.
Result<Joined> meet(MPI_Comm comm, MPI_Comm node, const RankLocations& locations, int process,
                    CommunicatorOptions options, WireOptions& wire, std::optional<Within> asked) {
  const Within within = asked.value_or(locations.nodes() > 1 ? Within::memory : Within::messages);
  const int processes = locations[locations.ranks() - 1].process + 1;
  if (within == Within::memory && processes > locations.nodes()) {
    for (Rank r = 0; r < locations.ranks(); ++r)
      wire.node[static_cast<std::size_t>(r)] = locations[r].node;
    const std::string name = common_name(node);
    const Rank first = locations.on_node(locations[wire.here.front()].node).front();
    auto joined =
        name.empty()
            ? Result<Joined>(make_error(Code::system, [] { return "there are no random numbers"; }))
            : join_ranks(options, name, locations[first].process == process);
    Status mine = joined.status();
    if (all_say(comm, mine.ok())) return joined;
    if (mine.ok())
      mine = make_error(Code::system, [] { return "another node has no memory to share"; });
    if (asked) return mine;
    warn_once("mpi.within", "messages within nodes go over MPI: " + mine.text());
  }
  for (Rank r = 0; r < locations.ranks(); ++r)
    wire.node[static_cast<std::size_t>(r)] = locations[r].process;
  auto joined = join_ranks(options, "", false);
  if (all_say(comm, joined.ok()) || !joined.ok()) return joined;
  return make_error(Code::out_of_memory, [] { return "another rank has no memory"; });
}

}  // namespace

Result<std::vector<std::unique_ptr<Member>>> join_threads(MPI_Comm comm, int threads,
                                                          const JoinOptions& options) try {
  if (Status status = check_mpi(comm); !status.ok()) return status;
  int number = 0;
  MPI_Comm_rank(comm, &number);
  Comms comms;
  if (Status status = make_comm(comm, number, comms.data); !status.ok()) return status;
  if (Status status = make_comm(comm, number, comms.alarms); !status.ok()) return status;
  // After an error this rank continues until all ranks have exchanged their errors.
  Status mine = check_threads(options, threads);
  const auto made_up = made_up_of(options);
  if (mine.ok()) mine = made_up.status();
  NodeComm node;
  Status status = node.make(comms.data, number, made_up.ok() ? *made_up : 0);
  if (!status.ok()) return status;
  const auto found = find_locations(comms.data, node.comm(), number, mine.ok() ? threads : 1);
  if (!found.ok()) return found.status();
  const RankLocations& locations = *found;
  const auto environment = read_environment();
  const Environment known = environment.ok() ? *environment : Environment();
  if (mine.ok()) mine = environment.status();
  if (mine.ok()) mine = check_options(options, known, locations.ranks());
  if (mine.ok()) mine = check_tags(comms.data, locations);
  const CallNetwork network = network_for(options, known, locations);
  const Rank first = locations.first_of(number);
  const auto on_node = static_cast<int>(locations.on_node(locations[first].node).size());
  const auto neighbouring = node.processes();
  if (!neighbouring.ok()) return neighbouring.status();
  const WaitPolicy policy = choose_wait_policy(on_node, {}, *neighbouring);
  std::shared_ptr<const CallClock> clock;
  if (mine.ok()) {
    auto made = CallClock::make(network, locations.ranks(), policy);
    mine = made.status();
    if (made.ok()) clock = std::move(*made);
  }
  status = compare(comms.data, mine, agreed(options, known, network));
  if (!status.ok()) return status;
  const auto wire = std::make_shared<WireOptions>();
  wire->node.resize(static_cast<std::size_t>(locations.ranks()));
  wire->here = locations.in_process(number);
  wire->network = std::move(clock);
  CommunicatorOptions common = common_options(options, locations.ranks());
  common.wire = wire;
  common.wait = policy;
  common.wait->probes = 0;  // a waiting rank moves messages at once
  auto joined = meet(comms.data, node.comm(), locations, number, common, *wire, options.within);
  if (!joined.ok()) return joined.status();
  const int most = most_tag(comms.data);
  const auto process =
      make_shared_at_home<Process>(std::move(comms), locations, most, carriers_of(options), policy,
                                   std::move(joined->communicator));
  std::vector<std::unique_ptr<Member>> members;
  for (int t = 0; t < threads; ++t) {
    members.push_back(std::unique_ptr<Member>(new Member(make_process_owned<Member::State>(
        process, first + t, options, known, wire,
        std::move(joined->members[static_cast<std::size_t>(t)])))));
  }
  return members;
} catch (const std::bad_alloc&) {
  return make_error(Code::out_of_memory, [] { return "no memory for ranks over MPI"; });
}

Result<std::unique_ptr<Member>> join(MPI_Comm comm, const JoinOptions& options) {
  auto members = join_threads(comm, 1, options);
  if (!members.ok()) return members.status();
  return std::move(members->front());
}

}  // namespace rankine::mpi
