// What typed calls may be written like, and what does not compile.
#include "engine/api/typed_calls.h"

#include <gtest/gtest.h>

#include <array>
#include <complex>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "engine/api/team.h"

namespace rankine {
namespace {

template <class... Arguments>
concept AllReduces = requires(Member& me, Arguments... arguments) {
  me.all_reduce(std::forward<Arguments>(arguments)...);
};
template <class... Arguments>
concept Broadcasts = requires(Member& me, Arguments... arguments) {
  me.broadcast(std::forward<Arguments>(arguments)..., 0);
};

using Floats = std::vector<float>;
using Doubles = std::vector<double>;

static_assert(AllReduces<Floats&>);
static_assert(AllReduces<Floats&, ReduceOp>);
static_assert(AllReduces<Floats&, Floats&>);
static_assert(AllReduces<const Floats&, Floats&>);
static_assert(AllReduces<std::span<const float>, std::span<float>>);
static_assert(AllReduces<std::span<float>, std::span<float>, ReduceOp, CallOptions>);
static_assert(AllReduces<std::span<float, 4>>);
static_assert(AllReduces<std::array<double, 3>&, std::array<double, 3>&>);
static_assert(AllReduces<int (&)[3]>);
static_assert(AllReduces<bool (&)[3]>);
static_assert(AllReduces<std::vector<std::complex<float>>&>);
static_assert(AllReduces<Floats&, PreMulSum<double>>);
static_assert(AllReduces<const float (&)[4], Floats&>);
#if defined(__FLT16_MANT_DIG__)
static_assert(AllReduces<std::vector<_Float16>&>);
#endif
#if defined(__STDCPP_BFLOAT16_T__)
static_assert(AllReduces<std::vector<decltype(0.0bf16)>&>);
#endif
static_assert(Broadcasts<Floats&>);
static_assert(Broadcasts<std::span<float>>);

// Outputs are written, and are there when the call has returned.
static_assert(!AllReduces<const Floats&>);
static_assert(!AllReduces<Floats>);
static_assert(!AllReduces<std::span<const float>>);
static_assert(!AllReduces<Floats&, const Floats&>);
static_assert(!AllReduces<Floats&, std::span<const float>>);
static_assert(!AllReduces<std::span<const float>, std::span<const float>>);
static_assert(!Broadcasts<const Floats&>);
static_assert(!Broadcasts<std::span<const float>>);
// Elements are the same on both sides, and bits are no elements.
static_assert(!AllReduces<Floats&, Doubles&>);
static_assert(!AllReduces<std::vector<bool>&>);
// A factor is of the elements' kind, an operation of their type.
static_assert(!AllReduces<Floats&, PreMulSum<std::complex<double>>>);
static_assert(!AllReduces<Floats&, TypedUserOp<int>>);
static_assert(AllReduces<Floats&, TypedUserOp<float>>);

TEST(Spellings, AllMeanTheSame) {
  const auto team = Team::create({.ranks = 2}).value();
  const Status status = team->run([](Member& me) {
    const float mine = static_cast<float>(me.rank() + 1);
    std::vector<float> vector(4, mine), sum(4);
    std::array<float, 4> array{mine, mine, mine, mine};
    float plain[4] = {mine, mine, mine, mine};
    me.all_reduce(vector, sum).throw_if_error();
    EXPECT_EQ(sum, std::vector<float>(4, 3.0F));
    me.all_reduce(std::span<const float>(vector), std::span(sum), ReduceOp::max,
                  {.algorithm = "direct_two_shot"})
        .throw_if_error();
    EXPECT_EQ(sum, std::vector<float>(4, 2.0F));
    me.all_reduce(vector, ReduceOp::prod, {.transport = Transport::mailbox}).throw_if_error();
    EXPECT_EQ(vector, std::vector<float>(4, 2.0F));
    me.all_reduce(array).throw_if_error();
    EXPECT_EQ(array[3], 3.0F);
    me.all_reduce(std::span(plain)).throw_if_error();
    EXPECT_EQ(plain[3], 3.0F);
    me.all_reduce(plain, PreMulSum{0.5}).throw_if_error();
    EXPECT_EQ(plain[0], 3.0F);

    std::vector<std::uint16_t> words(3, BFloat16(mine).bits);
    me.all_reduce(as_bf16(std::span(words))).throw_if_error();
    EXPECT_EQ(words[2], BFloat16(3.0F).bits);
    std::vector<std::uint8_t> bytes(3, Float8E4M3(mine * 200).bits);
    me.all_reduce(as_f8e4m3(std::span(bytes))).throw_if_error();
    EXPECT_EQ(bytes[2], Float8E4M3(448.0F).bits);
#if defined(__FLT16_MANT_DIG__)
    std::vector<_Float16> halves(3, static_cast<_Float16>(mine));
    me.all_reduce(halves).throw_if_error();
    EXPECT_EQ(static_cast<float>(halves[2]), 3.0F);
#endif
    bool flags[2] = {me.rank() == 0, true};
    me.all_reduce(flags).throw_if_error();
    EXPECT_TRUE(flags[0]);
    me.all_reduce(flags, ReduceOp::min).throw_if_error();
    EXPECT_TRUE(flags[0] && flags[1]);
    std::complex<double> z[1] = {{mine, 1}};
    me.all_reduce(z, ReduceOp::prod).throw_if_error();
    EXPECT_EQ(z[0], std::complex<double>(1, 3));

    std::vector<float> all(8);
    me.all_gather(array, all).throw_if_error();
    me.reduce_scatter(all, array).throw_if_error();
    EXPECT_EQ(array[0], 6.0F);
    me.broadcast(array, 1).throw_if_error();
    me.reduce(array, sum, 0).throw_if_error();
    me.gather(array, all, 1).throw_if_error();
    me.scatter(all, array, 1).throw_if_error();
    std::vector<float> swapped(8);
    me.all_to_all(all, swapped).throw_if_error();
    me.send_recv(swapped, 0, 1).throw_if_error();
  });
  EXPECT_TRUE(status.ok()) << status.text();
}

}  // namespace
}  // namespace rankine
