// An all-reduce runs while its rank computes; it is prepared once and started for every batch.
//
//   bazel run //engine/api/examples:overlap
//   RANKINE_NETWORK=scale_out bazel run //engine/api/examples:overlap
#include <cstdio>
#include <numeric>
#include <span>
#include <vector>

#include "engine/api/request.h"
#include "engine/api/team.h"

int main() {
  auto team = rankine::Team::create({.ranks = 4});
  team.status().throw_if_error();
  (*team)
      ->run([](rankine::Member& me) {
        std::vector<float> gradient(1 << 20, 1.0F);
        std::vector<double> work(1000);
        rankine::Request sum =
            me.prepare({.in = gradient.data(), .out = gradient.data(), .count = gradient.size()})
                .value();
        for (int batch = 0; batch < 3; ++batch) {
          sum.start().throw_if_error();
          for (int part = 0; part < 100; ++part) {  // touches other data
            std::iota(work.begin(), work.end(), part);
            me.progress().throw_if_error();  // now and then
          }
          // Work of that duration on a modelled network; an error at full speed.
          static_cast<void>(me.compute(1e-3));
          sum.wait().throw_if_error();
        }
        if (me.rank() == 0) {
          std::printf("every element: %g; model time: %g s\n", gradient.back(), me.model_time());
        }
      })
      .throw_if_error();
}
