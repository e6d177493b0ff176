#include "engine/tools/plan/play_buckets.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "engine/api/buckets.h"
#include "engine/api/network.h"
#include "engine/api/team.h"
#include "engine/base/units.h"
#include "engine/tools/memory.h"
#include "engine/tools/plan/play_step.h"

namespace rankine::tools {

Result<double> play_buckets(const BucketQuestion& q, const BucketRow& row) {
  constexpr std::size_t kThinBytes = 1000;
  const auto ranks = static_cast<std::size_t>(q.ranks);
  const bool thin =
      q.tensor_bytes > kThinBytes && q.tensor_bytes % kThinBytes == 0 && kThinBytes % ranks == 0;
  const std::size_t bytes = thin ? kThinBytes : q.tensor_bytes;
  const Rational slower(static_cast<Int128>(q.tensor_bytes), static_cast<Int128>(bytes));
  const auto network =
      std::make_shared<const CallNetwork>(CallNetwork{.fabric = slowed(q.fabric, slower)});
  if (Status s = check_memory(ranks * q.tensors * bytes, "tensors", counted(ranks, "rank"));
      !s.ok()) {
    return s;
  }
  auto team = Team::create({.ranks = q.ranks, .network = network});
  if (!team.ok()) return team.status();
  std::atomic<std::size_t> wrong{0};
  const Status status = (*team)->run([&](Member& me) {
    std::vector<std::uint8_t> data(q.tensors * bytes, 1);
    std::vector<std::span<std::uint8_t>> tensors;
    for (std::size_t t = 0; t < q.tensors; ++t) {
      tensors.push_back(std::span(data).subspan(t * bytes, bytes));
    }
    Buckets buckets(me, row.tensors * bytes);
    buckets
        .all_reduce(std::span<const std::span<std::uint8_t>>(tensors), ReduceOp::sum,
                    {.algorithm = q.algorithm->name})
        .throw_if_error();
    const auto sum = static_cast<std::uint8_t>(q.ranks);
    wrong += data.size() - static_cast<std::size_t>(std::count(data.begin(), data.end(), sum)) +
             (buckets.calls() == row.calls ? 0 : 1);
  });
  if (!status.ok()) return status;
  if (wrong != 0) return Status{Code::mismatch, "played buckets have wrong sums"};
  return (*team)->communicator().network_report().seconds;
}

}  // namespace rankine::tools
