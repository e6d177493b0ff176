#include "engine/api/mpi/preload_backend.h"

#include <sys/random.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/api/communicator.h"
#include "engine/api/idling.h"
#include "engine/api/mpi/member.h"
#include "engine/base/splitmix.h"
#include "engine/run/other_work.h"

namespace rankine::mpi {
namespace {

class OverMessages : public Backend {
 public:
  explicit OverMessages(std::unique_ptr<Member> member) : member_(std::move(member)) {}
  Status call(Call& call) override { return member_->call(call); }
  Status barrier() override { return member_->barrier(); }
  Status can(const Call& call) override { return member_->plan_of(call).status(); }
  std::optional<Passed> leaves_to_mpi(const Call&) override { return std::nullopt; }
  std::optional<Passed> leaves_start_to_mpi(const Call&) override { return Passed::not_waited_for; }
  Status start(Call&, std::shared_ptr<StartedCollective>, MPI_Request*) override {
    return {Code::invalid_argument, "calls by messages are not started"};  // as we have said
  }
  PostLog* post_log() override { return nullptr; }
  bool is_over_memory() const override { return false; }
  const std::string& name() const override { return name_; }

 private:
  const std::string name_;
  std::unique_ptr<Member> member_;
};

bool all_say(MPI_Comm comm, bool yes) {
  int mine = yes ? 1 : 0, all = 0;
  MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, comm);
  return all != 0;
}

// Whoever waits in shared memory may be the one whom another rank waits for in MPI, before it makes
// the same call: for a message that he has started to send, say. So MPI goes on as well, and so do
// calls that are started on other communicators.
class LettingMpiGoOn : public OtherWork {
 public:
  LettingMpiGoOn(MPI_Comm comm, const WaitPolicy& policy) : comm_(comm), idling_(policy) {}

  void give_way(int turn) noexcept override {
    if (turn == 0) idling_.begin_again();
    requests().move_on();
    // Asked after any message, on a communicator of several processes: MPICH answers at once, and
    // goes on with nothing, where it is asked about a process's messages to itself.
    int flag = 0;
    if (turn % kTurnsPerLook == kTurnsPerLook - 1 || turn > kMostBareTurns)
      MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm_, &flag, MPI_STATUS_IGNORE);
    idling_.once();
  }

 private:
  // Most waits end soon; who waits long has time to look at every turn.
  static constexpr int kTurnsPerLook = 32, kMostBareTurns = 128;

  const MPI_Comm comm_;
  Idling idling_;
};

// Of processes of one node: they meet as any processes do (communicator.h).
class OverMemory : public Backend {
 public:
  OverMemory(MPI_Comm comm, std::string name, std::unique_ptr<rankine::Member> member,
             const WaitPolicy& policy)
      : comm_(comm),
        name_(std::move(name)),
        policy_(policy),
        work_(comm, policy_),
        member_(std::move(member)) {
    member_->give_way_to(&work_);
  }
  // Where it has failed, nobody reads any more, or the roll says why.
  ~OverMemory() override {
    finish_started();
    if (post_log_) post_log_->end();
  }
  Status call(Call& call) override {
    call.options.timeout = kForever;
    return member_->call(call);
  }
  Status barrier() override { return member_->barrier({.timeout = kForever}); }
  Status can(const Call& call) override { return member_->plan_of(call).status(); }
  std::optional<Passed> leaves_to_mpi(const Call& call) override {
    finish_started();
    // There is always room for a barrier.
    const bool is_barrier = call.collective == Collective::barrier;
    Kind kind = is_barrier ? Kind::planned : ask_for(call);
    if (!asked_for_.empty() || (asks_to_start_ && !starts_)) {
      agree();
      if (!is_barrier) kind = kinds_.at(kind_of(call));
    }
    return kind == Kind::refused ? std::optional(Passed::refused) : std::nullopt;
  }
  std::optional<Passed> leaves_start_to_mpi(const Call& call) override {
    asks_to_start_ = true;
    // Each is planned when they are agreed on.
    if (asked_for_.size() >= kMostAskedFor && !kinds_.contains(kind_of(call)))
      return Passed::first_calls;
    switch (ask_for(call)) {
      case Kind::asked_for:
        return Passed::first_calls;
      case Kind::refused:
        return Passed::refused;
      case Kind::planned:
        break;
    }
    if (!starts_) return Passed::first_calls;
    return *starts_ ? std::nullopt : std::optional(Passed::not_waited_for);
  }
  Status start(Call& call, std::shared_ptr<StartedCollective> started,
               MPI_Request* handle) override {
    call.options.timeout = kForever;
    started->under_way = &under_way_;
    started->yields = policy_.mode == WaitPolicy::Mode::yield;
    return requests().start([&] { return member_->start(planned(call)); }, std::move(started),
                            handle);
  }
  PostLog* post_log() override {
    finish_started();
    if (!post_log_ && !has_no_log_) open_post_log();
    return post_log_ ? &*post_log_ : nullptr;
  }
  bool is_over_memory() const override { return true; }
  const std::string& name() const override { return name_; }

 private:
  enum class Kind : std::uint8_t {
    asked_for,  // all ranks have yet to say whether they have the memory
    planned,
    refused,  // there is no plan for it, or no room on some rank
  };
  struct AskedFor {
    Call call;
    std::vector<std::size_t> counts;  // the call's
    std::uint64_t kind;
  };

  static constexpr std::size_t kMostKinds = 65'536, kMostAskedFor = 64;

  static std::uint64_t kind_of(const Call& call) {
    std::uint64_t kind = 0;
    const auto mix = [&kind](std::uint64_t n) { kind = mixed(kind, n); };
    mix(static_cast<std::uint64_t>(call.collective) << 16 |
        static_cast<std::uint64_t>(call.type) << 8 | static_cast<std::uint64_t>(call.op));
    mix(call.count);
    mix(static_cast<std::uint64_t>(call.root));
    for (const std::size_t count : call.counts) mix(count);
    const bool all_know_where =
        call.collective == Collective::all_reduce || call.collective == Collective::all_to_all;
    mix(all_know_where && call.in == call.out ? 1 : 0);
    return kind;
  }
  // What is known of its kind, as all ranks see it; a new one is to be asked for.
  Kind ask_for(const Call& call) {
    const std::uint64_t kind = kind_of(call);
    if (kind == last_planned_) return Kind::planned;  // many calls are like the one before
    if (kinds_.size() >= kMostKinds) {
      kinds_.clear();
      last_planned_.reset();
      asked_for_.clear();
    }
    const auto [known, is_new] = kinds_.try_emplace(kind, Kind::asked_for);
    if (is_new) {
      AskedFor asked{planned(call), {call.counts.begin(), call.counts.end()}, kind};
      asked.call.counts = {};
      asked_for_.push_back(std::move(asked));
    }
    if (known->second == Kind::planned) last_planned_ = kind;
    return known->second;
  }
  static Call planned(const Call& call) {
    if (call.collective != Collective::barrier) return call;
    return {.collective = Collective::barrier,
            .count = 1,
            .type = DataType::u32,
            .op = ReduceOp::bor,
            .options = call.options};
  }

  // Whether every rank has the memory that calls of the new kinds take; what is there stays there.
  // Asked before anything is moved, since who finds none in the midst of a call ends it for all.
  void agree() {
    std::vector<unsigned char> has;
    for (AskedFor& asked : asked_for_) {
      asked.call.counts = asked.counts;
      const Status status = member_->plan_of(asked.call).status();
      has.push_back(status.ok() ? 1 : 0);
      // What has no plan has none on any rank, and says so when it is called.
      if (!status.ok() && status.code() != Code::invalid_argument) say_no_room(status);
    }
    MPI_Allreduce(MPI_IN_PLACE, has.data(), static_cast<int>(has.size()), MPI_UNSIGNED_CHAR,
                  MPI_MIN, comm_);
    for (std::size_t i = 0; i < has.size(); ++i)
      kinds_[asked_for_[i].kind] = has[i] != 0 ? Kind::planned : Kind::refused;
    asked_for_.clear();
    if (asks_to_start_ && !starts_) {
      const Status status = requests().begin();
      starts_ = all_say(comm_, status.ok());
      if (!status.ok())
        std::fprintf(stderr, "rankine: started calls are left to MPI: %s\n", status.text().c_str());
    }
  }
  // A call that waits comes after those that are started here, which all ranks start before it.
  void finish_started() {
    // Acquire: pairs with the release in Requests::complete().
    for (int turn = 0; under_way_.load(std::memory_order_acquire) > 0; ++turn) work_.give_way(turn);
  }
  // Once: there may be many such calls.
  void say_no_room(const Status& status) {
    if (!std::exchange(said_no_room_, true))
      std::fprintf(stderr, "rankine: calls are left to MPI: %s\n", status.text().c_str());
  }
  void open_post_log() {
    auto log = PostLog::make(*member_, kForever);
    if (!log.ok()) say_no_room(log.status());
    has_no_log_ = !all_say(comm_, log.ok());
    if (has_no_log_) return;
    const std::byte* const mine = log->address();
    std::vector<const std::byte*> all(static_cast<std::size_t>(member_->ranks()));
    MPI_Allgather(&mine, sizeof(mine), MPI_BYTE, all.data(), sizeof(mine), MPI_BYTE, comm_);
    log->meet(std::move(all));
    post_log_.emplace(std::move(*log));
  }
  // MPI knows no deadlines: a program may let the others wait as long as it likes.
  static constexpr auto kForever = std::chrono::milliseconds::max();

  const MPI_Comm comm_;
  const std::string name_;
  const WaitPolicy policy_;
  LettingMpiGoOn work_;
  std::unique_ptr<rankine::Member> member_;  // goes before its work
  std::optional<PostLog> post_log_;          // goes before the member
  std::unordered_map<std::uint64_t, Kind> kinds_;
  std::optional<std::uint64_t> last_planned_;  // is in kinds_
  std::vector<AskedFor> asked_for_;
  bool asks_to_start_ = false;
  std::optional<bool> starts_;
  bool has_no_log_ = false, said_no_room_ = false;
  std::atomic<int> under_way_{0};  // that are started here and not complete
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

struct Met {
  std::unique_ptr<rankine::Member> member;
  WaitPolicy policy;
};

Result<Met> meet(MPI_Comm comm, int rank, const std::string& name) {
  CommunicatorOptions options{.rank = rank};
  MPI_Comm_size(comm, &options.ranks);
  if (name.empty()) {
    return make_error(Code::system, [] { return "getrandom: " + std::string(strerror(errno)); });
  }
  options.name = name;
  auto communicator = Communicator::create(options);
  if (!communicator.ok()) return communicator.status();
  auto member = (*communicator)->join(rank);
  if (!member.ok()) return member.status();
  return Met{std::move(*member), (*communicator)->wait_policy()};
}

// nullptr, on all ranks alike: not over memory. Rank 0 says why, where it might have been.
std::unique_ptr<Backend> over_memory(MPI_Comm comm) {
  if (!is_on_one_node(comm)) return nullptr;
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  std::string name = common_name(comm, rank);
  auto met = meet(comm, rank, name);
  if (all_say(comm, met.ok())) {
    return std::make_unique<OverMemory>(comm, std::move(name), std::move(met->member), met->policy);
  }
  if (rank == 0) {
    std::fprintf(stderr, "rankine: calls go by messages, not through shared memory: %s\n",
                 met.ok() ? "another rank has none" : met.status().text().c_str());
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
