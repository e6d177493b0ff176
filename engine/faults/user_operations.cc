// Operations of the user's, and factors.
#include <atomic>
#include <cstdint>
#include <cstring>
#include <stdexcept>

#include "engine/faults/plays.h"
#include "engine/faults/scene.h"

namespace rankine::faults {
namespace {

// Sums of u32; `context`: how often it is still applied before it throws, or nullptr.
void add(const void* in, void* inout, std::size_t count, void* context) {
  auto* left = static_cast<std::atomic<int>*>(context);
  if (left != nullptr && left->fetch_sub(1) <= 0) throw std::runtime_error("no more");
  for (std::size_t i = 0; i < count; ++i) {
    std::uint32_t a, b;
    std::memcpy(&a, static_cast<const std::byte*>(in) + i * sizeof(a), sizeof(a));
    std::memcpy(&b, static_cast<std::byte*>(inout) + i * sizeof(b), sizeof(b));
    b += a;
    std::memcpy(static_cast<std::byte*>(inout) + i * sizeof(b), &b, sizeof(b));
  }
}

void add_otherwise(const void* in, void* inout, std::size_t count, void* context) {
  add(in, inout, count, context);
}

}  // namespace

void play_user_operations(const FaultCase& test, Tally& tally) {
  Dice dice(test.seed);
  CollectiveCase call = good_call(test, dice);
  call.type = DataType::u32;
  call.op = ReduceOp::sum;
  const Rank victim = dice.below(test.ranks);
  enum { throws, function_differs, size_differs, factors };
  const int kind = dice.below(4);
  std::atomic<int> left{dice.below(3)};
  UserOp good{.apply = add, .element_bytes = sizeof(std::uint32_t)};
  UserOp odd = good;
  if (kind == throws) odd.context = &left;
  if (kind == function_differs) odd.apply = add_otherwise;
  if (kind == size_differs) odd.element_bytes = 1;
  const std::uint32_t one = 1;
  const Promise promises[] = {{.documented = {Code::remote_error}},
                              {.documented = {Code::mismatch}},
                              {.documented = {Code::mismatch}},
                              {.timeout = kShort, .documented = {Code::timeout}}};
  {
    Scene scene(test, promises[kind], tally);
    scene.run([&](Seat& seat) {
      const bool is_victim = seat.rank() == victim;
      How how{.spoil = [&](Call& made) {
        if (kind == factors) {
          made.factor = &one;  // changes nothing
          if (is_victim) made.op = ReduceOp::max;
          return;
        }
        made.type = DataType::raw;
        made.op = ReduceOp::user;
        made.user_op = is_victim ? &odd : &good;
        if (is_victim && kind == size_differs) made.count *= sizeof(std::uint32_t);
      }};
      if (is_victim && kind == factors) how.documented = {{Code::invalid_argument}};
      if (seat.call(call, how)) seat.call(call);
    });
  }
  fresh_start(test, call, tally);
}

}  // namespace rankine::faults
