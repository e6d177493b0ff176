// Errors are reported and no rank hangs: a wrong argument, a rank that calls another collective, a
// rank that does not come in time.
//
//   bazel run //engine/api/examples:errors
#include <chrono>
#include <cstdio>
#include <span>

#include "engine/api/team.h"

int main() {
  using std::chrono_literals::operator""ms;
  const auto team = [] { return rankine::Team::create({.ranks = 3, .timeout = 100ms}).value(); };
  float one[1] = {1}, two[2] = {};

  // Found before any byte moves: the communicator continues.
  auto works = team();
  works
      ->run([&](rankine::Member& me) {
        const auto status = me.all_reduce(std::span<const float>(one), std::span<float>(two));
        if (me.rank() == 0) std::printf("%s\n", status.text().c_str());
      })
      .throw_if_error();

  // The other errors end the communicator on all ranks, with one text that names the waiting rank
  // and its peer.
  const auto sum = team()->run([&](rankine::Member& me) {
    float mine[1] = {1};
    const auto op = me.rank() == 2 ? rankine::ReduceOp::max : rankine::ReduceOp::sum;
    me.all_reduce(std::span<float>(mine), op).throw_if_error();
  });
  std::printf("%s\n", std::string(name_of(sum.code())).c_str());
  auto late = team();
  const auto missing = late->run([&](rankine::Member& me) {
    if (me.rank() != 1) me.barrier().throw_if_error();
    while (me.rank() == 1 && late->communicator().health().ok()) {
    }
  });
  std::printf("%s: %s\n", std::string(name_of(missing.code())).c_str(),
              missing.text().substr(0, missing.text().find(':')).c_str());
}
