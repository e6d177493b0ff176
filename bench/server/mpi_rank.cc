// Runs a rank of the server over one MPI. The server starts its mpirun (MpiCrew in crews.h).
//
//   mpi_rank LAYERS DIVISOR SEED LINE    LINE: the path at which rank 0 collects its line
#include <mpi.h>

#include <chrono>
#include <cstdio>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/server/crews.h"
#include "bench/server/decoder.h"
#include "bench/server/service.h"

namespace rankine::server {
namespace {

class MpiExchange : public Exchange {
 public:
  MpiExchange() {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
  }
  int rank() const override { return rank_; }
  int ranks() const override { return ranks_; }

  void broadcast(std::span<std::byte> data) override {
    MPI_Bcast(data.data(), whole(data.size()), MPI_BYTE, 0, MPI_COMM_WORLD);
  }
  std::span<float> addends(std::size_t n) override {
    addends_.resize(n);
    return addends_;
  }
  void all_reduce(std::span<float> x, const Epilogue& then) override {
    MPI_Allreduce(MPI_IN_PLACE, x.data(), whole(x.size()), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    apply(then, x.data(), x.size() / then.row_elements);
  }
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    const int bytes = whole(mine.size());
    MPI_Allgather(mine.data(), bytes, MPI_BYTE, all.data(), bytes, MPI_BYTE, MPI_COMM_WORLD);
  }

 private:
  static int whole(std::size_t n) { return static_cast<int>(n); }

  int rank_ = 0, ranks_ = 0;
  std::vector<float> addends_;
};

// An MPI error or an exception of a rank ends the job.
int run(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  try {
    if (argc != 5) throw std::invalid_argument("usage: mpi_rank LAYERS DIVISOR SEED LINE");
    const Model model = llama_shape(std::stoi(argv[1]), std::stoi(argv[2]));
    MpiExchange exchange;
    MPI_Barrier(MPI_COMM_WORLD);
    std::optional<Line> line;
    if (exchange.rank() == 0) {
      std::puts("all have met");
      std::fflush(stdout);
      line = Line::collect(argv[4], std::chrono::seconds(10));
    } else {
      line = Line::make().first;  // unused
    }
    Decoder decoder(model, kPositions, std::stoull(argv[3]), exchange);
    work(decoder, exchange, *line);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "mpi_rank: %s\n", error.what());
    MPI_Abort(MPI_COMM_WORLD, 3);
  }
  MPI_Finalize();
  return 0;
}

}  // namespace
}  // namespace rankine::server

int main(int argc, char** argv) { return rankine::server::run(argc, argv); }
