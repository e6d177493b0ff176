#include "bench/rivals/rival.h"

#if defined(RANKINE_HAS_UCC)
#include <ucc/api/ucc.h>
#include <unistd.h>

#include "bench/rivals/batch.h"
#include "engine/api/communicator.h"
#include "engine/api/request.h"
#endif

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>

namespace rankine::rivals {
namespace {

#if defined(RANKINE_HAS_UCC)

void check(ucc_status_t status, const char* call) {
  if (status < 0) throw std::runtime_error(std::string(call) + ": " + ucc_status_string(status));
}

// The all-gather by which UCC's ranks find each other: Rankine's. One at a time.
struct Meeting {
  std::unique_ptr<Communicator> communicator;
  std::unique_ptr<Member> member;
  Request request;
};

ucc_oob_coll_t meet_by(Meeting& meeting, int ranks, int rank) {
  ucc_oob_coll_t oob = {};
  oob.allgather = [](void* own, void* all, std::size_t bytes, void* by, void** request) {
    Meeting& its = *static_cast<Meeting*>(by);
    auto started = its.member->start({.collective = rankine::Collective::all_gather,
                                      .in = own,
                                      .out = all,
                                      .count = bytes,
                                      .type = DataType::u8});
    if (!started.ok()) return UCC_ERR_NO_RESOURCE;
    its.request = std::move(*started);
    *request = by;
    return UCC_OK;
  };
  oob.req_test = [](void* request) {
    const Result<bool> over = static_cast<Meeting*>(request)->request.test();
    return !over.ok() ? UCC_ERR_NO_MESSAGE : *over ? UCC_OK : UCC_INPROGRESS;
  };
  oob.req_free = [](void* request) {
    return static_cast<Meeting*>(request)->request.wait().ok() ? UCC_OK : UCC_ERR_NO_MESSAGE;
  };
  oob.coll_info = &meeting;
  oob.n_oob_eps = static_cast<std::uint32_t>(ranks);
  oob.oob_ep = static_cast<std::uint32_t>(rank);
  return oob;
}

// Ranks exit without destructors.
class Ucc final : public Rival {
 public:
  explicit Ucc(const Setup& setup)
      : Rival("ucc", Family::kOther),
        ranks_(setup.ranks),
        crowded_(setup.crowded),
        meeting_name_("rankine_rivals_ucc_" + std::to_string(getpid())) {}

  bool takes(Collective, std::size_t) const override { return true; }

  void start(int rank) override {
    settle();
    meeting_.communicator =
        Communicator::create({.ranks = ranks_, .tuned = false, .rank = rank, .name = meeting_name_})
            .value();
    meeting_.member = meeting_.communicator->join(rank).value();

    ucc_lib_config_h lib_config = nullptr;
    check(ucc_lib_config_read(nullptr, nullptr, &lib_config), "ucc_lib_config_read");
    ucc_lib_params_t lib_params = {};
    lib_params.mask = UCC_LIB_PARAM_FIELD_THREAD_MODE;
    lib_params.thread_mode = UCC_THREAD_SINGLE;
    ucc_lib_h lib = nullptr;
    check(ucc_init(&lib_params, lib_config, &lib), "ucc_init");
    ucc_lib_config_release(lib_config);

    ucc_context_config_h context_config = nullptr;
    check(ucc_context_config_read(lib, nullptr, &context_config), "ucc_context_config_read");
    ucc_context_params_t context_params = {};
    context_params.mask = UCC_CONTEXT_PARAM_FIELD_OOB;
    context_params.oob = meet_by(meeting_, ranks_, rank);
    check(ucc_context_create(lib, &context_params, context_config, &context_),
          "ucc_context_create");
    ucc_context_config_release(context_config);

    ucc_team_params_t team_params = {};
    team_params.mask =
        UCC_TEAM_PARAM_FIELD_OOB | UCC_TEAM_PARAM_FIELD_EP | UCC_TEAM_PARAM_FIELD_EP_RANGE;
    team_params.oob = context_params.oob;
    team_params.ep = static_cast<std::uint64_t>(rank);
    team_params.ep_range = UCC_COLLECTIVE_EP_RANGE_CONTIG;
    check(ucc_team_create_post(&context_, 1, &team_params, &team_), "ucc_team_create_post");
    for (ucc_status_t status = UCC_INPROGRESS; status == UCC_INPROGRESS;) {
      check(ucc_context_progress(context_), "ucc_context_progress");
      status = ucc_team_create_test(team_);
      check(status, "ucc_team_create_test");
    }
  }

  void call(Collective collective, int rank, const float* in, float* out,
            std::size_t block) noexcept override {
    try {
      make({collective, const_cast<float*>(in), out, block}, rank);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "rivals: ucc: %s\n", error.what());
      std::abort();  // the others would wait for this rank
    }
  }

 private:
  // Settings for one machine, as a user would tune both libraries. The times are for two ranks; for
  // more ranks UCC chooses the algorithms.
  static void settle() {
    const auto set = [](const char* name, const char* value) { setenv(name, value, 1); };
    // As start_mpi sets them for MPICH: shared memory only (POSIX's or System V's, and CMA, which
    // reads large messages in place), and no rendezvous below 64 KiB: moves of 32 KiB take half of
    // the time.
    set("UCX_TLS", "self,sm");
    set("UCX_RNDV_THRESH", "65536");
    // Whole vectors in one step, beyond 4 KiB too: at 4 to 16 KiB in 0.6 to 0.9 of the time.
    set("UCC_TL_UCP_TUNE", "allreduce:0-64k:[2-2]:@knomial");
    // One ring in place of two with half of the data each: from 64 B on in 0.55 to 0.9 of the time.
    set("UCC_TL_UCP_REDUCE_SCATTER_RING_BIDIRECTIONAL", "n");
  }

  struct Arguments {
    Collective collective = Collective::all_reduce;
    float* in = nullptr;
    float* out = nullptr;
    std::size_t block = 0;
    bool operator==(const Arguments&) const = default;
  };

  ucc_coll_args_t told(const Arguments& a, int rank) const {
    ucc_coll_args_t args = {};
    args.mask = UCC_COLL_ARGS_FIELD_FLAGS;
    args.flags = UCC_COLL_ARGS_FLAG_PERSISTENT;
    args.op = UCC_OP_SUM;
    args.root = 0;
    const auto set = [&](ucc_coll_type_t type, std::size_t in, std::size_t out) {
      args.coll_type = type;
      args.src.info = {a.in, in, UCC_DT_FLOAT32, UCC_MEMORY_TYPE_HOST};
      args.dst.info = {a.out, out, UCC_DT_FLOAT32, UCC_MEMORY_TYPE_HOST};
    };
    const std::size_t all = a.block * static_cast<std::size_t>(ranks_);
    switch (a.collective) {
      case Collective::all_reduce:
        set(UCC_COLL_TYPE_ALLREDUCE, a.block, a.block);
        if (a.in == a.out) args.flags |= UCC_COLL_ARGS_FLAG_IN_PLACE;
        break;
      case Collective::broadcast:  // one buffer on each rank
        set(UCC_COLL_TYPE_BCAST, a.block, 0);
        if (rank != 0) args.src.info.buffer = a.out;
        break;
      case Collective::all_gather:
        set(UCC_COLL_TYPE_ALLGATHER, a.block, all);
        break;
      case Collective::reduce_scatter:
        set(UCC_COLL_TYPE_REDUCE_SCATTER, all, a.block);
        break;
      case Collective::all_to_all:
        set(UCC_COLL_TYPE_ALLTOALL, all, all);
        break;
      case Collective::reduce:
        set(UCC_COLL_TYPE_REDUCE, a.block, a.block);
        break;
    }
    return args;
  }

  // Posts a persistent request while calls have the same arguments on all ranks: a new request for
  // each call takes 0.2 to 0.35 us more.
  void make(const Arguments& wanted, int rank) {
    if (request_ == nullptr || wanted != arguments_) {
      if (request_ != nullptr) check(ucc_collective_finalize(request_), "ucc_collective_finalize");
      request_ = nullptr;
      ucc_coll_args_t args = told(wanted, rank);
      check(ucc_collective_init(&args, &request_, team_), "ucc_collective_init");
      arguments_ = wanted;
    }
    check(ucc_collective_post(request_), "ucc_collective_post");
    tools::SpinBudget patience = patience_of(crowded_);
    while (ucc_collective_test(request_) == UCC_INPROGRESS) {
      check(ucc_context_progress(context_), "ucc_context_progress");
      if (crowded_) patience.wait();
    }
    check(ucc_collective_test(request_), "ucc_collective_test");
  }

  const int ranks_;
  const bool crowded_;
  const std::string meeting_name_;
  Meeting meeting_;
  ucc_context_h context_ = nullptr;
  ucc_team_h team_ = nullptr;
  ucc_coll_req_h request_ = nullptr;  // for `arguments_`
  Arguments arguments_;
};

#endif

}  // namespace

std::unique_ptr<Rival> make_ucc([[maybe_unused]] const Setup& setup) {
#if defined(RANKINE_HAS_UCC)
  return std::make_unique<Ucc>(setup);
#else
  return std::make_unique<NotInstalled>("ucc", "UCC, at UCC_HOME or where pkg-config knows it");
#endif
}

}  // namespace rankine::rivals
