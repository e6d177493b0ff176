#include "engine/api/mpi/preload_backend.h"

#include <sys/random.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>

#include "engine/api/communicator.h"
#include "engine/api/idling.h"
#include "engine/api/mpi/member.h"
#include "engine/api/request.h"

namespace rankine::mpi {
namespace {

class OverMessages : public Backend {
 public:
  explicit OverMessages(std::unique_ptr<Member> member) : member_(std::move(member)) {}
  Status call(const Call& call) override { return member_->call(call); }
  Status barrier() override { return member_->barrier(); }
  Status can(const Call& call) override { return member_->plan_of(call).status(); }
  bool is_over_memory() const override { return false; }

 private:
  std::unique_ptr<Member> member_;
};

// Of processes of one node: they meet as any processes do (communicator.h).
class OverMemory : public Backend {
 public:
  OverMemory(MPI_Comm comm, std::unique_ptr<rankine::Member> member)
      : comm_(comm), member_(std::move(member)), policy_(choose_wait_policy(member_->ranks())) {}
  Status call(const Call& call) override {
    Call endless = call;
    endless.options.timeout = kForever;
    return wait(member_->start(endless));
  }
  Status barrier() override { return wait(member_->async().barrier({.timeout = kForever})); }
  Status can(const Call& call) override { return member_->plan_of(call).status(); }
  bool is_over_memory() const override { return true; }

 private:
  // Looks that cost next to nothing, before MPI is asked to go on.
  static constexpr int kLooksPerMpi = 32;

  // Whoever waits here may be the one whom another rank waits for in MPI, before it makes this
  // call: for a message that he has started to send, say. So MPI goes on as well.
  Status wait(Result<Request> request) const {
    if (!request.ok()) return request.status();
    Idling idling(policy_);
    for (unsigned looks = 1;; ++looks) {
      const auto over = request->test();
      if (!over.ok()) return over.status();
      if (*over) return {};
      if (looks % kLooksPerMpi == 0 || looks > policy_.probes + policy_.yields) let_mpi_go_on();
      idling.once();
    }
  }
  // Asked after any message, on a communicator of several processes: MPICH answers at once, and
  // goes on with nothing, where it is asked about a process's messages to itself.
  void let_mpi_go_on() const {
    int flag = 0;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm_, &flag, MPI_STATUS_IGNORE);
  }

  // MPI knows no deadlines: a program may let the others wait as long as it likes.
  static constexpr auto kForever = std::chrono::milliseconds::max();

  const MPI_Comm comm_;  // the program's
  std::unique_ptr<rankine::Member> member_;
  const WaitPolicy policy_;
};

bool is_on_one_node(MPI_Comm comm) {
  MPI_Comm node = MPI_COMM_NULL;
  int all = 0, here = 0;
  MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  MPI_Comm_size(comm, &all);
  MPI_Comm_size(node, &here);
  MPI_Comm_free(&node);
  return here == all;
}

// A name that no other communicator has, the same on all ranks; an empty one where the system has
// no random numbers for rank 0.
std::string common_name(MPI_Comm comm, int rank) {
  char name[48] = {};
  std::uint64_t random[2];
  if (rank == 0 && getrandom(random, sizeof(random), 0) == sizeof(random)) {
    std::snprintf(name, sizeof(name), "mpi.%016llx%016llx",
                  static_cast<unsigned long long>(random[0]),
                  static_cast<unsigned long long>(random[1]));
  }
  MPI_Bcast(name, sizeof(name), MPI_CHAR, 0, comm);
  return name;
}

Result<std::unique_ptr<rankine::Member>> meet(MPI_Comm comm, int rank) {
  CommunicatorOptions options{.rank = rank};
  MPI_Comm_size(comm, &options.ranks);
  const std::string name = common_name(comm, rank);
  if (name.empty()) {
    return make_error(Code::system, [] { return "getrandom: " + std::string(strerror(errno)); });
  }
  options.name = name;
  auto communicator = Communicator::create(options);
  if (!communicator.ok()) return communicator.status();
  return (*communicator)->join(rank);
}

// nullptr, on all ranks alike: not over memory. Rank 0 says why, where it might have been.
std::unique_ptr<Backend> over_memory(MPI_Comm comm) {
  if (!is_on_one_node(comm)) return nullptr;
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  auto member = meet(comm, rank);
  int good = member.ok() ? 1 : 0, all_good = 0;
  MPI_Allreduce(&good, &all_good, 1, MPI_INT, MPI_MIN, comm);
  if (all_good != 0) return std::make_unique<OverMemory>(comm, std::move(*member));
  if (rank == 0) {
    std::fprintf(stderr, "rankine: calls go by messages, not through shared memory: %s\n",
                 member.ok() ? "another rank has none" : member.status().text().c_str());
  }
  return nullptr;
}

}  // namespace

Result<std::unique_ptr<Backend>> make_backend(MPI_Comm comm, bool messages) {
  if (!messages) {
    if (auto backend = over_memory(comm)) return backend;
  }
  // MPI knows no deadlines: a program may let the others wait as long as it likes.
  auto member = join(comm, {.timeout = std::chrono::milliseconds::max()});
  if (!member.ok()) return member.status();
  return std::unique_ptr<Backend>(std::make_unique<OverMessages>(std::move(*member)));
}

}  // namespace rankine::mpi
