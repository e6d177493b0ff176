#include "engine/api/mpi/posted_calls.h"

#include <algorithm>
#include <string>

namespace rankine::mpi {
namespace {

bool has_root(Function function) {
  return function == Function::gatherv || function == Function::scatterv;
}

std::string text_of(const PostedCall& call, std::size_t rank) {
  return "rank " + std::to_string(rank) + " calls " + std::string(name_of(call.function)) +
         (has_root(call.function) ? " with root " + std::to_string(call.root) : "");
}

// The first block whose sender and receiver say different lengths, or ok.
Status compare_lengths(std::span<const PostedCall> posts) {
  for (std::size_t from = 0; from < posts.size(); ++from) {
    for (std::size_t to = 0; to < posts.size(); ++to) {
      const std::uint64_t sent = posts[from].sends[to], received = posts[to].receives[from];
      if (sent == received) continue;
      return make_error(Code::invalid_argument, [&] {
        return "rank " + std::to_string(from) + " sends rank " + std::to_string(to) + " " +
               std::to_string(sent) + " bytes, which receives " + std::to_string(received);
      });
    }
  }
  return {};
}

}  // namespace

bool is_short(std::span<const std::uint64_t> sends) {
  std::uint64_t bytes = 0;  // at most twice the limit, so it does not wrap
  return std::ranges::all_of(sends, [&bytes](std::uint64_t length) {
    if (length > kMostPosted) return false;
    bytes += length;
    return bytes <= kMostPosted;
  });
}

Result<std::optional<Passed>> conclude(std::span<const PostedCall> posts) {
  for (std::size_t r = 1; r < posts.size(); ++r) {
    if (posts[r].function == posts[0].function && posts[r].root == posts[0].root) continue;
    return make_error(Code::invalid_argument,
                      [&] { return text_of(posts[r], r) + ", and " + text_of(posts[0], 0); });
  }
  if (std::ranges::any_of(posts, &PostedCall::is_mpis)) return std::optional(Passed::arguments);
  if (Status status = compare_lengths(posts); !status.ok()) return status;
  if (!std::ranges::all_of(posts, is_short, &PostedCall::sends)) return std::optional(Passed::large);
  return std::optional<Passed>();
}

}  // namespace rankine::mpi
