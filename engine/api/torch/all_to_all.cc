#include "engine/api/torch/all_to_all.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <span>

namespace rankine::torch_backend {

void all_to_all(Member& me, Call call, const OwnCounts& own) {
  const auto n = static_cast<std::size_t>(me.ranks());
  // Of each rank: what it sends, then what it receives.
  std::vector<std::uint64_t> mine(own.sent.begin(), own.sent.end()), all(2 * n * n);
  mine.insert(mine.end(), own.received.begin(), own.received.end());
  me.all_gather(std::span<const std::uint64_t>(mine), std::span(all), call.options)
      .throw_if_error();
  std::vector<std::size_t> counts;  // from each rank to each
  for (std::size_t from = 0; from < n; ++from) {
    for (std::size_t to = 0; to < n; ++to) {
      const std::uint64_t sent = all[2 * n * from + to], received = all[2 * n * to + n + from];
      if (sent != received) {
        invalid_argument(fmt::format("rank {} sends {} elements to rank {}, which receives {} from "
                                     "it; allowed are equal numbers",
                                     from, sent, to, received))
            .throw_if_error();
      }
      counts.push_back(sent);
    }
  }
  call.collective = Collective::all_to_all;
  if (std::equal(counts.begin() + 1, counts.end(), counts.begin())) {
    call.count = counts.front();  // a plan that serves all such calls
  } else {
    call.counts = counts;
  }
  me.call(call).throw_if_error();
}

}  // namespace rankine::torch_backend
