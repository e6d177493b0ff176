// The guide's programs, run as a user would run them, at full speed and on modelled networks, with
// the simulator's output expected. Typed calls and typed names of algorithms are tested too.

#include <cctype>
#include <complex>

#include "algorithms/catalogue.h"
#include "engine/api/network.h"
#include "engine/api/team.h"
#include "engine/api/typed_calls.h"
#include "engine/network/predict.h"
#include "engine/network/simulate.h"
#include "tests/engine/api/child_process.h"
#include "tests/numa/fixtures.h"
#include "tests/testing.h"

namespace rankine {
namespace {

// Returns the output of the program, run in this process's environment.
std::string output_of(const std::string& program) {
  return testing_processes::Spawned({program}).finish();
}

std::string own_threads_on(const char* network) {
  const ScopedEnv variable("RANKINE_NETWORK", network);
  return output_of("engine/api/examples/own_threads");
}

std::string expected(double model_time) {
  char text[64];
  std::snprintf(text, sizeof text, "every element: 16\nmodel time: %.17g s\n", model_time);
  return text;
}

TEST(OwnThreads, AddUpAtFullSpeed) {
  EXPECT_EQ(output_of("engine/api/examples/own_threads"), expected(0));
}

TEST(OwnThreads, PrintTheSimulatorsTimesOnNetworks) {
  const Algorithm& ring = *find_algorithm(Collective::all_reduce, "ring");
  for (const char* name : {"scale_up", "scale_out", R"({"preset": "torus", "dims": "4x4"})"}) {
    Params params{.ranks = 16};
    const auto found = find_call_network(name).value();
    const auto wired = wire(found->fabric, ring, params).value();
    const Schedule schedule = ring.make(params);
    const auto simulated =
        simulate(schedule, goal_of(ring, params, schedule), wired, 4 << 16).value();
    EXPECT_GT(simulated.seconds, 0);
    EXPECT_EQ(own_threads_on(name), expected(simulated.seconds)) << name;
  }
}

struct Example {
  const char *name, *output;
};

TEST(Examples, PrintWhatTheGuideSays) {
  for (const auto& [name, output] : {
           Example{"ring_by_messages", "every element: 10, in 0 us of the model\n"},
           Example{"groups",
                   "rank 0: activations 3, gradients 3\n"
                   "rank 1: activations 3, gradients 5\n"
                   "rank 2: activations 3, gradients 7\n"
                   "rank 3: activations 12, gradients 3\n"
                   "rank 4: activations 12, gradients 5\n"
                   "rank 5: activations 12, gradients 7\n"},
           Example{"overlap", "every element: 64; model time: 0 s\n"},
           Example{"epilogue", "stream 2.5, quantised 127 of scale 0.0157, mean 4\n"},
           Example{"fft", "wave 3: 1.000000\nwave 1000: 0.500000\n"},
           Example{"sample_sort", "40000 keys, in order, no rank with many more than its part\n"},
           Example{"experts",
                   "capacity 0: 40 of 40 tokens have both results, 0 rows dropped\n"
                   "capacity 12: 30 of 40 tokens have both results, 11 rows dropped\n"},
           Example{"errors",
                   "out has 2 elements; allowed are 1, by the other argument and 3 ranks\n"
                   "mismatch\n"
                   "timeout: no answer within 100 ms\n"},
       }) {
    EXPECT_EQ(output_of(std::string("engine/api/examples/") + name), output);
  }
  const ScopedEnv variable("RANKINE_NETWORK", "scale_out");
  // Three calls, each hidden behind a millisecond of work.
  EXPECT_EQ(output_of("engine/api/examples/overlap"), "every element: 64; model time: 0.003 s\n");
}

// Which forms of typed calls compile, and which do not.

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
static_assert(AllReduces<std::vector<internal::NativeHalf>&>);
#endif
#if defined(__STDCPP_BFLOAT16_T__)
static_assert(AllReduces<std::vector<decltype(0.0bf16)>&>);
#endif
static_assert(Broadcasts<Floats&>);
static_assert(Broadcasts<std::span<float>>);

// Outputs must be writable and must outlive the call.
static_assert(!AllReduces<const Floats&>);
static_assert(!AllReduces<Floats>);
static_assert(!AllReduces<std::span<const float>>);
static_assert(!AllReduces<Floats&, const Floats&>);
static_assert(!AllReduces<Floats&, std::span<const float>>);
static_assert(!AllReduces<std::span<const float>, std::span<const float>>);
static_assert(!Broadcasts<const Floats&>);
static_assert(!Broadcasts<std::span<const float>>);
// Both sides have the same element type, and std::vector<bool> has no elements.
static_assert(!AllReduces<Floats&, Doubles&>);
static_assert(!AllReduces<std::vector<bool>&>);
// A factor must suit the type of the elements, and an operation must have that type.
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
    std::vector<internal::NativeHalf> halves(3, static_cast<internal::NativeHalf>(mine));
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
  });
  EXPECT_TRUE(status.ok()) << status.text();
}

// Different spellings of a name mean exactly the catalogue's name.

using enum Collective;

// Environment variables are tested with typed names, too (communicator_test).
TEST(TypedNames, AreFoundHoweverTheyAreWritten) {
  const auto typed = [](std::string_view name, char instead, bool upper) {
    std::string out;
    for (const char c : name) {
      if (c == '_' && instead == 0) continue;
      out += c == '_' ? instead
             : upper  ? static_cast<char>(std::toupper(static_cast<unsigned char>(c)))
                      : c;
    }
    return out;
  };
  for (const Algorithm& entry : catalogue()) {
    for (const std::string& name :
         {std::string(entry.name), typed(entry.name, '-', false), typed(entry.name, 0, true)}) {
      EXPECT_EQ(find_typed_algorithm(entry.collective, name), &entry) << name;
    }
    EXPECT_EQ(find_typed_collective(typed(name_of(entry.collective), 0, true)), entry.collective);
  }
  EXPECT_EQ(find_typed_collective("all reduce"), all_reduce);
  EXPECT_EQ(find_typed_collective("all_reduced"), std::nullopt);
  EXPECT_EQ(find_typed_algorithm(all_gather, "tree"), nullptr);  // NCCL's word for double_tree
  EXPECT_EQ(find_typed_algorithm(all_reduce, "trees"), nullptr);
  // A name alone means every line that has it.
  const auto lines = find_typed_algorithms("Tree");
  EXPECT_GE(lines.size(), 2u);
  EXPECT_TRUE(std::is_sorted(lines.begin(), lines.end()));
  EXPECT_EQ(static_cast<std::ptrdiff_t>(lines.size()),
            std::count_if(catalogue().begin(), catalogue().end(),
                          [](const Algorithm& entry) { return entry.name == "double_tree"; }));
  for (const Algorithm* entry : lines) EXPECT_EQ(entry->name, "double_tree");
}

}  // namespace
}  // namespace rankine
