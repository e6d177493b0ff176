#include "engine/api/mpi/preload_backend.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <new>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/api/communicator.h"
#include "engine/api/mpi/member.h"
#include "engine/api/mpi/process.h"
#include "engine/api/mpi/rank_locations.h"
#include "engine/api/threads.h"
#include "engine/base/memory.h"
#include "engine/base/numbers.h"
#include "engine/run/wait.h"

namespace rankine::mpi {
namespace {

// MPI has no timeouts: a program may let other ranks wait for any time.
constexpr auto kForever = std::chrono::milliseconds::max();

// The ranks of this backend agree on each kind of call before its first call: all ranks must have a
// plan and memory for it. A kind consists of the properties of a call that are equal on all ranks.
// In place or not is no part of it, because the ranks agree on both cases together.
class Agreeing : public Backend {
 public:
  Agreeing(Rank rank, int ranks) : rank_(rank), ranks_(ranks) {}

  // Makes the plans of the agreement calls, before the first agreement.
  virtual Status prepare() { return has_plan(agreement()); }

  std::optional<Passed> leaves_to_mpi(const Call& call, Status& failed) override {
    finish_started();
    // A barrier needs no memory.
    const bool is_barrier = call.collective == Collective::barrier;
    Kind kind = is_barrier ? Kind::planned : ask_for(call);
    if (has_questions()) {
      failed = agree();
      if (!failed.ok()) return Passed::refused;
      if (!is_barrier) kind = kinds_.at(kind_of(call));
    }
    return kind == Kind::refused ? std::optional(Passed::refused) : std::nullopt;
  }

 protected:
  enum class Kind : std::uint8_t {
    asked_for,  // ranks have not yet reported memory for it
    planned,
    refused,  // no plan, or no memory on some rank
  };
  static constexpr std::size_t kMostKinds = 65'536, kMostAskedFor = 64;

  // Makes the call's plan, and its memory. May throw std::bad_alloc.
  virtual Status plan(const Call& call) = 0;
  Status has_plan(const Call& call) noexcept {
    try {
      return plan(call);
    } catch (const std::bad_alloc&) {
      return make_error(Code::out_of_memory, [] { return "no memory for a plan"; });
    }
  }
  virtual void finish_started() {}
  // A further question beside the kinds: has_questions() tells if it is open, answer() gives this
  // rank's answer, hear() receives the common answer of all ranks.
  virtual bool has_questions() const { return !asked_for_.empty(); }
  virtual bool answer() { return true; }
  virtual void hear(bool) {}

  static std::uint64_t kind_of(const Call& call) {
    std::uint64_t kind = 0;
    const auto mix = [&kind](std::uint64_t n) { kind = mixed(kind, n); };
    mix(static_cast<std::uint64_t>(call.collective) << 16 |
        static_cast<std::uint64_t>(call.type) << 8 | static_cast<std::uint64_t>(call.op));
    mix(call.count);
    mix(static_cast<std::uint64_t>(call.root));
    for (const std::size_t count : call.counts) mix(count);
    return kind;
  }
  bool knows(const Call& call) const { return kinds_.contains(kind_of(call)); }
  std::size_t asked_for() const { return asked_for_.size(); }
  // Returns the state of the call's kind, equal on all ranks. A new kind is queued for the next
  // agreement.
  Kind ask_for(const Call& call) {
    const std::uint64_t kind = kind_of(call);
    if (kind == last_planned_) return Kind::planned;  // fast path: repeats of the same kind
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
  // Prints only the first time.
  void say_no_room(const Status& status) {
    if (!std::exchange(said_no_room_, true))
      std::fprintf(stderr, "rankine: calls are left to MPI: %s\n", status.text().c_str());
  }
  Rank rank() const { return rank_; }
  int ranks() const { return ranks_; }

 private:
  struct AskedFor {
    Call call;
    std::vector<std::size_t> counts;  // storage for call.counts
    std::uint64_t kind;
  };
  // One more kind may come with the call that triggers the agreement, and there is one further
  // question.
  using Answers = std::array<std::uint8_t, kMostAskedFor + 2>;

  // Distinguishes the agreement from calls of the program, so different calls are reported as a
  // mismatch.
  static constexpr std::uint64_t kTag = 0x6167726565;  // "agree"
  Call agreement() {
    return {.collective = Collective::all_reduce,
            .in = mine_.data(),
            .out = all_.data(),
            .count = mine_.size(),
            .type = DataType::u8,
            .op = ReduceOp::min,
            .options = {.timeout = kForever, .tag = kTag}};
  }

  // This rank's part of the agreement: plans for separate buffers and for buffers in place, and
  // scratch.
  Status have_memory(Call call) {
    // The plan does not depend on these addresses.
    std::byte* const here = reinterpret_cast<std::byte*>(mine_.data());
    const Traffic traffic = traffic_of(call, rank_, ranks_);
    call.in = here;
    call.out = all_.data();
    Status status = has_plan(call);
    if (!status.ok() || call.collective == Collective::barrier) return status;
    call.out = here;
    status = has_plan(call);
    if (!status.ok()) return status;
    // Both sides may be packed, in parts that are rounded to cache lines.
    const std::size_t bytes = traffic.in + traffic.out + 4 * kCacheLine;
    if (scratch().have(bytes)) return {};
    return make_error(Code::out_of_memory, [&] {
      return "the system refuses " + std::to_string(bytes) + " bytes for packed data";
    });
  }

  // Asks if every rank has the memory for the new kinds; the memory stays allocated. Ranks agree
  // before any data move, because a rank that finds no memory during a call must end the
  // communicator for all ranks.
  Status agree() {
    mine_.fill(1);
    std::size_t next = 0;
    for (AskedFor& asked : asked_for_) {
      asked.call.counts = asked.counts;
      const Status status = have_memory(asked.call);
      mine_[next++] = status.ok() ? 1 : 0;
      // invalid_argument means that no rank has a plan; the report shows this.
      if (!status.ok() && status.code() != Code::invalid_argument) say_no_room(status);
    }
    mine_.back() = answer() ? 1 : 0;
    Call call = agreement();
    if (Status status = this->call(call); !status.ok()) return status;
    next = 0;
    for (const AskedFor& asked : asked_for_)
      kinds_[asked.kind] = all_[next++] != 0 ? Kind::planned : Kind::refused;
    asked_for_.clear();
    hear(all_.back() != 0);
    return {};
  }

  const Rank rank_;
  const int ranks_;
  Answers mine_{}, all_{};
  std::unordered_map<std::uint64_t, Kind> kinds_;
  std::optional<std::uint64_t> last_planned_;  // always in kinds_
  std::vector<AskedFor> asked_for_;
  bool said_no_room_ = false;
};

class OverMessages : public Agreeing {
 public:
  explicit OverMessages(std::unique_ptr<Member> member)
      : Agreeing(member->rank(), member->ranks()), member_(std::move(member)) {}
  Status call(Call& call) override { return member_->call(call); }
  Status barrier() override { return member_->barrier(); }
  std::optional<Passed> leaves_start_to_mpi(const Call&) override { return Passed::not_waited_for; }
  Status start(Call&, std::shared_ptr<StartedCollective>, MPI_Request*) override {
    return {Code::invalid_argument, "calls by messages are not started"};  // as we have said
  }
  Result<PostLog*> post_log() override { return static_cast<PostLog*>(nullptr); }
  void end(const Status& why) override { member_->abort(why.text()); }
  bool is_over_memory() const override { return false; }
  const std::string& name() const override { return name_; }

 private:
  Status plan(const Call& call) override { return member_->plan_of(call).status(); }

  const std::string name_;
  std::unique_ptr<Member> member_;
};

// While a rank waits in shared memory, another rank may wait in MPI for a message of this one
// before it makes the same call. So the waiting rank also makes MPI progress, and calls that were
// started on other communicators.
class LettingMpiGoOn : public YieldCallback {
 public:
  LettingMpiGoOn(MPI_Comm comm, const WaitPolicy& policy) : comm_(comm), idling_(policy) {}

  void give_way(int turn) noexcept override {
    if (turn == 0) idling_.begin_again();
    requests().move_on();
    // Probe for any message, on a communicator of several processes: for messages of a process to
    // itself MPICH answers at once, without progress.
    int flag = 0;
    if (turn % kTurnsPerLook == kTurnsPerLook - 1 || turn > kMostBareTurns)
      MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm_, &flag, MPI_STATUS_IGNORE);
    idling_.once();
  }

 private:
  // Most waits end soon; in a long wait there is time to probe at every turn.
  static constexpr int kTurnsPerLook = 32, kMostBareTurns = 128;

  const MPI_Comm comm_;
  Idling idling_;
};

// For processes of one node; they meet as all processes do (communicator.h).
class OverMemory : public Agreeing {
 public:
  OverMemory(MPI_Comm comm, std::string name, std::unique_ptr<rankine::Member> member,
             const WaitPolicy& policy)
      : Agreeing(member->rank(), member->ranks()),
        name_(std::move(name)),
        policy_(policy),
        work_(comm, policy_),
        addresses_(static_cast<std::size_t>(member->ranks())),
        member_(std::move(member)) {
    member_->set_yield_callback(&work_);
  }
  // Waits until no rank reads this rank's posts; if that fails, the roll reports the reason.
  ~OverMemory() override {
    finish_started();
    if (post_log_) post_log_->end();
  }
  Status prepare() override {
    Status status = Agreeing::prepare();
    return status.ok() ? has_plan(exchange_of_addresses()) : status;
  }
  Status call(Call& call) override {
    call.options.timeout = kForever;
    return member_->call(call);
  }
  Status barrier() override { return member_->barrier({.timeout = kForever}); }
  std::optional<Passed> leaves_start_to_mpi(const Call& call) override {
    asks_to_start_ = true;
    // Each kind gets its plan at the agreement.
    if (asked_for() >= kMostAskedFor && !knows(call)) return Passed::first_calls;
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
  Result<PostLog*> post_log() override {
    finish_started();
    if (!post_log_ && !has_no_log_) {
      if (Status status = open_post_log(); !status.ok()) return status;
    }
    return post_log_ ? &*post_log_ : nullptr;
  }
  void end(const Status& why) override { member_->communicator().abort(why); }
  bool is_over_memory() const override { return true; }
  const std::string& name() const override { return name_; }

 private:
  Status plan(const Call& call) override { return member_->plan_of(call).status(); }
  bool has_questions() const override {
    return Agreeing::has_questions() || (asks_to_start_ && !starts_);
  }
  bool answer() override {
    if (!asks_to_start_ || starts_) return true;
    const Status status = requests().begin();
    if (!status.ok())
      std::fprintf(stderr, "rankine: started calls are left to MPI: %s\n", status.text().c_str());
    return status.ok();
  }
  void hear(bool all_begin) override {
    if (asks_to_start_ && !starts_) starts_ = all_begin;
  }
  // Blocking calls run after the calls started here; all ranks start those first.
  void finish_started() override {
    // Acquire: pairs with the release in Requests::complete().
    for (int turn = 0; under_way_.load(std::memory_order_acquire) > 0; ++turn) work_.give_way(turn);
  }
  Call exchange_of_addresses() {
    return {.collective = Collective::all_gather,
            .in = &address_,
            .out = addresses_.data(),
            .count = sizeof(address_),
            .type = DataType::u8,
            .options = {.timeout = kForever, .tag = kAddresses}};
  }
  Status open_post_log() {
    auto log = PostLog::make(*member_, kForever);
    if (!log.ok()) say_no_room(log.status());
    address_ = log.ok() ? log->address() : nullptr;
    Call call = exchange_of_addresses();
    if (Status status = this->call(call); !status.ok()) return status;
    has_no_log_ = std::ranges::find(addresses_, nullptr) != addresses_.end();
    if (has_no_log_) return {};
    log->meet(addresses_);
    post_log_.emplace(std::move(*log));
    return {};
  }
  static constexpr std::uint64_t kAddresses = 0x706f737473;  // "posts"

  const std::string name_;
  const WaitPolicy policy_;
  LettingMpiGoOn work_;
  const std::byte* address_ = nullptr;       // address of this rank's posts
  std::vector<const std::byte*> addresses_;  // by rank
  std::unique_ptr<rankine::Member> member_;  // destroyed before work_
  std::optional<PostLog> post_log_;          // destroyed before member_
  bool asks_to_start_ = false;
  std::optional<bool> starts_;
  bool has_no_log_ = false;
  std::atomic<int> under_way_{0};  // calls started here and not complete
};

// True once this process has waited in vain for processes that seemed able to share memory with it.
// Set by a thread in a collective call on a communicator, read by any thread; it guards no data.
std::atomic<bool> has_waited_in_vain{false};

// Asked before ranks meet, because the meeting waits for absent ranks until its deadline. The
// result is equal on all ranks. If ranks of one machine cannot meet, rank 0 prints a message.
bool can_share_memory(MPI_Comm comm, int rank) {
  const SharedHost& here = shared_host();
  const bool is_willing = !has_waited_in_vain.load(std::memory_order_relaxed);
  const std::array<std::uint64_t, 5> mine = {here.machine, ~here.machine, here.memory, ~here.memory,
                                             is_willing ? 1U : 0U};
  std::array<std::uint64_t, 5> least{};
  MPI_Allreduce(mine.data(), least.data(), static_cast<int>(mine.size()), MPI_UINT64_T, MPI_MIN,
                comm);
  const bool one_machine = least[0] == ~least[1], one_memory = least[2] == ~least[3];
  static std::atomic<bool> said{false};
  if (one_machine && !one_memory && rank == 0 && !said.exchange(true, std::memory_order_relaxed)) {
    std::fprintf(stderr,
                 "rankine: calls go by messages, not through shared memory: ranks of this machine "
                 "see different /dev/shm, or are in different containers\n");
  }
  return one_machine && one_memory && least[4] != 0;
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

// Returns nullptr, on all ranks alike, if the calls cannot go over memory. If only resources are
// missing, rank 0 prints the reason.
std::unique_ptr<Backend> over_memory(MPI_Comm comm) {
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  if (!can_share_memory(comm, rank)) return nullptr;
  std::unique_ptr<OverMemory> made;
  Status status;
  try {
    std::string name = common_name(comm);
    auto met = meet(comm, rank, name);
    status = met.status();
    if (status.ok()) {
      made =
          std::make_unique<OverMemory>(comm, std::move(name), std::move(met->member), met->policy);
      status = made->prepare();
    }
  } catch (const std::bad_alloc&) {
    status = make_error(Code::out_of_memory, [] { return "no memory for a communicator"; });
  }
  if (status.code() == Code::timeout) has_waited_in_vain.store(true, std::memory_order_relaxed);
  if (all_say(comm, status.ok())) return made;
  if (rank == 0) {
    std::fprintf(stderr, "rankine: calls go by messages, not through shared memory: %s\n",
                 status.ok() ? "another rank has none" : status.text().c_str());
  }
  return nullptr;
}

}  // namespace

Traffic traffic_of(const Call& call, Rank rank, int ranks) {
  const auto all = static_cast<std::size_t>(ranks), self = static_cast<std::size_t>(rank);
  const std::size_t size = size_of(call.type);
  // Total bytes of `number` blocks: first, first + step, ...
  const auto bytes = [&](std::size_t first, std::size_t number, std::size_t step = 1) {
    std::size_t elements = call.counts.empty() ? number * call.count : 0;
    for (std::size_t i = 0; !call.counts.empty() && i < number; ++i)
      elements += call.counts[first + i * step];
    return elements * size;
  };
  const bool is_root = rank == call.root;
  const auto before = static_cast<std::ptrdiff_t>(bytes(0, self));
  switch (call.collective) {
    case Collective::all_gather:
      return {bytes(self, 1), bytes(0, all), before};
    case Collective::gather:
      return {bytes(self, 1), is_root ? bytes(0, all) : 0, before};
    case Collective::reduce_scatter:
      return {bytes(0, all), bytes(self, 1), -before};
    case Collective::scatter:
      return {is_root ? bytes(0, all) : 0, bytes(self, 1), -before};
    case Collective::all_to_all:
      return {bytes(self * all, all), bytes(self, all, all)};
    case Collective::barrier:
      return {};
    default:  // a single vector
      return {bytes(0, 1), bytes(0, 1)};
  }
}

Result<std::unique_ptr<Backend>> make_backend(MPI_Comm comm, bool messages) {
  if (!messages) {
    if (auto backend = over_memory(comm)) return backend;
  }
  auto member = join(comm, {.timeout = kForever});
  if (!member.ok()) return member.status();
  auto made = std::make_unique<OverMessages>(std::move(*member));
  Status status = made->prepare();
  if (all_say(comm, status.ok())) return std::unique_ptr<Backend>(std::move(made));
  if (!status.ok()) return status;
  return make_error(Code::out_of_memory, [] { return "another rank has no memory for plans"; });
}

}  // namespace rankine::mpi
