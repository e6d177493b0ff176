#include "engine/api/mpi/post_log.h"

#include <numeric>
#include <utility>

#include "engine/base/cache_line.h"

namespace rankine::mpi {
namespace {

// Tells the roll from a barrier of the program's.
constexpr std::uint64_t kRoll = 0x726f6c6c;  // "roll"

CallOptions roll_options(std::chrono::milliseconds timeout) {
  return {.timeout = timeout, .tag = kRoll};
}

}  // namespace

struct PostLog::Head {
  Function function;
  bool is_mpis;
  Rank root;

  static std::size_t lengths() { return sizeof(std::uint64_t); }  // where they begin
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
