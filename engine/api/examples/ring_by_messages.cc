// A ring all-reduce made of messages, as in textbooks: reduce-scatter, then all-gather; each step
// is an isend to the right and an irecv from the left.
//
//   bazel run //engine/api/examples:ring_by_messages
#include <cstdio>
#include <span>
#include <vector>

#include "engine/api/request.h"
#include "engine/api/team.h"

using Chunk = std::vector<float>;

void ring_all_reduce(rankine::Member& me, std::vector<Chunk>& chunks) {
  const int rank = me.rank(), world_size = me.ranks();
  const int send_to = (rank + 1) % world_size, recv_from = (rank - 1 + world_size) % world_size;
  const auto chunk = [&](int i) -> Chunk& {
    return chunks[static_cast<std::size_t>((i + 2 * world_size) % world_size)];
  };
  const auto exchange = [&](const Chunk& sent, Chunk& received) {
    auto send_op = me.async().send(sent, send_to);
    auto recv_op = me.async().recv(received, recv_from);
    send_op.value().wait().throw_if_error();
    recv_op.value().wait().throw_if_error();
  };

  // Phase 1: reduce-scatter
  for (int step = 0; step < world_size - 1; ++step) {
    Chunk received(chunk(rank - step - 1).size());
    exchange(chunk(rank - step), received);
    Chunk& mine = chunk(rank - step - 1);
    for (std::size_t i = 0; i < mine.size(); ++i) mine[i] += received[i];
  }
  // Phase 2: all-gather
  for (int step = 0; step < world_size - 1; ++step) {
    exchange(chunk(rank - step + 1), chunk(rank - step));
  }
}

int main() {
  constexpr int kRanks = 4;
  auto team = rankine::Team::create({.ranks = kRanks});
  team.status().throw_if_error();
  (*team)
      ->run([](rankine::Member& me) {
        std::vector<Chunk> chunks(kRanks, Chunk(1000, static_cast<float>(me.rank() + 1)));
        ring_all_reduce(me, chunks);
        if (me.rank() == 0) {
          std::printf("every element: %g, in %g us of the model\n", chunks[3][999],
                      me.model_time() * 1e6);
        }
      })
      .throw_if_error();
}
