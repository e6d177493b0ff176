#include "engine/api/mpi/post_log.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "engine/base/memory.h"

namespace rankine::mpi {
namespace {

bool has_root(Function function) {
  return function == Function::gatherv || function == Function::scatterv;
}

std::string text_of(const PostedCall& call, std::size_t rank) {
  return "rank " + std::to_string(rank) + " calls " + std::string(name_of(call.function)) +
         (has_root(call.function) ? " with root " + std::to_string(call.root) : "");
}

// Error: the first block for which sender and receiver state different lengths.
Status compare_lengths(std::span<const PostedCall> posts) {
  for (std::size_t from = 0; from < posts.size(); ++from) {
    for (std::size_t to = 0; to < posts.size(); ++to) {
      const std::uint64_t sent = posts[from].sends[to], received = posts[to].receives[from];
      if (sent == received) continue;
      return make_error(Code::invalid_argument, [&] {
        return "rank " + std::to_string(from) + " sends " + std::to_string(sent) +
               " bytes to rank " + std::to_string(to) + "; rank " + std::to_string(to) +
               " receives " + std::to_string(received);
      });
    }
  }
  return {};
}

}  // namespace

bool is_short(std::span<const std::uint64_t> sends) {
  std::uint64_t bytes = 0;  // below twice the limit: cannot wrap
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
  if (!std::ranges::all_of(posts, is_short, &PostedCall::sends))
    return std::optional(Passed::large);
  return std::optional<Passed>();
}

namespace {

// The tag that distinguishes the roll from the program's barriers.
constexpr std::uint64_t kRoll = 0x726f6c6c;  // "roll"

CallOptions roll_options(std::chrono::milliseconds timeout) {
  return {.timeout = timeout, .tag = kRoll};
}

}  // namespace

struct PostLog::Head {
  Function function;
  bool is_mpis;
  Rank root;

  static std::size_t lengths() { return sizeof(std::uint64_t); }  // offset of the lengths
  static std::size_t data(std::size_t ranks) {
    return whole_lines(lengths() + 2 * ranks * sizeof(std::uint64_t));
  }
};

PostLog::PostLog(Member& member, std::chrono::milliseconds timeout, Payload<std::byte> memory)
    : member_(&member),
      timeout_(timeout),
      memory_(std::move(memory)),
      half_bytes_(memory_.span().size() / 2),
      posts_(static_cast<std::size_t>(member.ranks())) {
  static_assert(sizeof(Head) <= sizeof(std::uint64_t));
}

Result<PostLog> PostLog::make(Member& member, std::chrono::milliseconds timeout) {
  std::uint32_t in = 0, out = 0;
  const auto plan = member.plan_of(barrier_of(in, out, roll_options(timeout)));
  if (!plan.ok()) return plan.status();
  const std::size_t half = Head::data(static_cast<std::size_t>(member.ranks())) + kMostPosted;
  auto memory = member.allocate<std::byte>(2 * half);
  if (!memory.ok()) return memory.status();
  return PostLog(member, timeout, std::move(*memory));
}

PostLog::Room PostLog::begin(Function function, Rank root) {
  ++number_;
  std::byte* const post = memory_.span().data() + offset_of_half();
  *reinterpret_cast<Head*>(post) = {function, false, root};
  const std::size_t ranks = posts_.size();
  auto* const lengths = reinterpret_cast<std::uint64_t*>(post + Head::lengths());
  return {{lengths, ranks}, {lengths + ranks, ranks}, post + Head::data(ranks)};
}

void PostLog::leave_to_mpi() {
  reinterpret_cast<Head*>(memory_.span().data() + offset_of_half())->is_mpis = true;
}

Status PostLog::call_roll() { return member_->barrier(roll_options(timeout_)); }

std::span<const PostedCall> PostLog::posts() {
  const std::size_t ranks = posts_.size();
  for (std::size_t r = 0; r < ranks; ++r) {
    const std::byte* const post = addresses_[r] + offset_of_half();
    const auto& head = *reinterpret_cast<const Head*>(post);
    const auto* const lengths = reinterpret_cast<const std::uint64_t*>(post + Head::lengths());
    posts_[r] = {
        head.function, head.root, head.is_mpis, {lengths, ranks}, {lengths + ranks, ranks}};
  }
  return posts_;
}

const std::byte* PostLog::block_from(Rank from) const {
  const auto& sends = posts_[static_cast<std::size_t>(from)].sends;
  const auto before =
      std::accumulate(sends.begin(), sends.begin() + member_->rank(), std::size_t{0});
  return addresses_[static_cast<std::size_t>(from)] + offset_of_half() + Head::data(posts_.size()) +
         before;
}

}  // namespace rankine::mpi
