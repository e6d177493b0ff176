#include "bench/rivals/rival.h"

#if defined(RANKINE_HAS_GLOO)
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/broadcast.h>
#include <gloo/math.h>
#include <gloo/reduce.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
#endif

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <string>

namespace rankine::rivals {
namespace {

#if defined(RANKINE_HAS_GLOO)

class Gloo final : public Rival {
 public:
  explicit Gloo(const Setup& setup) : Rival("gloo", Family::kOther), ranks_(setup.ranks) {
    folder_ = (std::filesystem::temp_directory_path() / "rankine_rivals_XXXXXX").string();
    if (mkdtemp(folder_.data()) == nullptr)
      missing = folder_ + ": cannot create a temporary folder: " + std::strerror(errno);
  }
  // Runs in the driver only; ranks exit without destructors.
  ~Gloo() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  bool takes(Collective collective, std::size_t bytes) const override {
    return collective != Collective::reduce_scatter && bytes > 0;
  }

  void start(int rank) override {
    gloo::transport::tcp::attr where;
    where.hostname = "localhost";
    auto device = gloo::transport::tcp::CreateDevice(where);
    gloo::rendezvous::FileStore store(folder_);
    auto context = std::make_shared<gloo::rendezvous::Context>(rank, ranks_);
    context->connectFullMesh(store, device);
    context_ = context;
  }

  void call(Collective collective, int rank, const float* in, float* out,
            std::size_t block) noexcept override {
    try {
      make(collective, rank, const_cast<float*>(in), out, block);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "rivals: gloo: %s\n", error.what());
      std::abort();  // the others would wait for this rank
    }
  }

 private:
  using Sum = void (*)(void*, const void*, const void*, std::size_t);

  void make(Collective collective, int rank, float* in, float* out, std::size_t block) {
    if (block == 0) return;  // gloo rejects empty calls
    const Sum sum = &gloo::sum<float>;
    const std::size_t all = block * static_cast<std::size_t>(ranks_);
    switch (collective) {
      case Collective::all_reduce: {
        gloo::AllreduceOptions options(context_);
        if (in != out) options.setInput(in, block);
        options.setOutput(out, block);
        options.setReduceFunction(sum);
        return gloo::allreduce(options);
      }
      case Collective::broadcast: {
        gloo::BroadcastOptions options(context_);
        options.setRoot(0);
        options.setOutput(rank == 0 ? in : out, block);
        return gloo::broadcast(options);
      }
      case Collective::all_gather: {
        gloo::AllgatherOptions options(context_);
        options.setInput(in, block);
        options.setOutput(out, all);
        return gloo::allgather(options);
      }
      case Collective::all_to_all: {
        gloo::AlltoallOptions options(context_);
        options.setInput(in, all);
        options.setOutput(out, all);
        return gloo::alltoall(options);
      }
      case Collective::reduce: {
        // On other ranks than the root the output is scratch; `out` has room for it.
        gloo::ReduceOptions options(context_);
        options.setRoot(0);
        options.setInput(in, block);
        options.setOutput(out, block);
        options.setReduceFunction(sum);
        return gloo::reduce(options);
      }
      case Collective::reduce_scatter:
        return;  // takes() returns false
    }
  }

  const int ranks_;
  std::string folder_;
  std::shared_ptr<gloo::Context> context_;
};

#endif

}  // namespace

std::unique_ptr<Rival> make_gloo([[maybe_unused]] const Setup& setup) {
#if defined(RANKINE_HAS_GLOO)
  return std::make_unique<Gloo>(setup);
#else
  return std::make_unique<NotInstalled>("gloo", "libgloo-dev");
#endif
}

}  // namespace rankine::rivals
