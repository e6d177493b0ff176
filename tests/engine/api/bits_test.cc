// The bits of results, which are equal for every processor, instruction set and transport, are
// those of tests/golden/bits.txt, made on x86-64. A NaN that is no minimum or maximum counts as
// equal to any NaN: processors differ in its sign and payload. To write the file anew:
//   export RANKINE_TEST_GOLDEN_OUT=$PWD/tests/golden/bits.txt

#include "engine/api/epilogues.h"
#include "engine/api/team.h"
#include "engine/base/child_process.h"
#include "engine/base/files.h"
#include "engine/run/kernels/reduce.h"
#include "tests/testing.h"

namespace rankine {
namespace {

constexpr int kRanks = 5;
constexpr std::size_t kCount = 1'037;  // whole registers of every width, and a remainder
constexpr std::size_t kRows = 3, kRow = 149;

std::uint64_t random_bits(Rank rank, std::size_t i) {
  const std::uint64_t x =
      (static_cast<std::uint64_t>(rank + 1) * 0x9e3779b97f4a7c15u + i) * 0xbf58476d1ce4e5b9u;
  return (x ^ x >> 31) * 0x94d049bb133111ebu;
}

// Values of both signs from 2^-4 to 2^4, whose sums round differently in every order.
float number(Rank rank, std::size_t i) {
  const std::uint64_t bits = random_bits(rank, i);
  const auto code = static_cast<std::uint32_t>(bits >> 32 & 0x807fffffU) |
                    static_cast<std::uint32_t>(123 + (bits & 7)) << 23;
  return std::bit_cast<float>(code);
}

// Mostly numbers; any bits in every eighth element, and subnormals in another eighth.
template <class T>
T element(Rank rank, std::size_t i) {
  const std::uint64_t bits = random_bits(rank, i + (std::size_t{1} << 20));
  if constexpr (Complex<T>) {
    return T(element<typename T::value_type>(rank, 2 * i),
             element<typename T::value_type>(rank, 2 * i + 1));
  } else if constexpr (std::is_same_v<T, Bool>) {
    return Bool((bits & 1) != 0);
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(bits);
  } else {
    if (i % 8 > 1) return T(number(rank, i));
    const std::uint64_t code =
        i % 8 == 0 ? bits : (bits & (~0ULL >> (64 - 8 * sizeof(T)))) >> (sizeof(T) == 1 ? 5 : 9);
    T any;
    std::memcpy(static_cast<void*>(&any), &code, sizeof(T));
    return any;
  }
}

template <class T>
bool is_nan(T value) {
  if constexpr (std::is_floating_point_v<T>) {
    return value != value;
  } else if constexpr (SmallFloat<T>) {
    return is_nan(static_cast<float>(value));
  } else {
    return false;
  }
}

class Hash {
 public:
  // FNV-1a
  void add_bytes(const void* from, std::size_t bytes) {
    const auto* byte = static_cast<const unsigned char*>(from);
    for (std::size_t i = 0; i < bytes; ++i) value_ = (value_ ^ byte[i]) * 0x100000001b3u;
  }
  template <class T>
  void add(const T& value, bool any_nan = true) {
    if constexpr (Complex<T>) {
      add(value.real());
      add(value.imag());
    } else if (any_nan && is_nan(value)) {
      add_bytes("NaN", 3);
    } else {
      add_bytes(&value, sizeof(T));
    }
  }
  std::string text() const {
    std::ostringstream out;
    out << " " << std::hex << value_;
    return out.str();
  }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325u;
};

// An all-reduce on each transport, of inputs times a factor if `scales`.
template <class T>
std::string all_reduce(Team& team, ReduceOp op, const CallOptions& options, bool scales) {
  Hash hash;
  const Status status = team.run([&](Member& me) {
    const auto factor = element<std::conditional_t<SmallFloat<T>, float, T>>(9, 5);
    for (const Transport transport : {Transport::direct, Transport::mailbox}) {
      std::vector<T> in, out(kCount);
      for (std::size_t i = 0; i < kCount; ++i) in.push_back(element<T>(me.rank(), i));
      Call call{
          .in = in.data(), .out = out.data(), .count = kCount, .type = data_type_of<T>, .op = op};
      if (scales) call.factor = &factor;
      call.options = options;
      call.options.transport = transport;
      me.call(call).throw_if_error();
      if (me.rank() != 0) continue;
      for (const T& value : out) hash.add(value, op != ReduceOp::min && op != ReduceOp::max);
    }
  });
  status.throw_if_error();
  return hash.text();
}

// A line per type and operation: the levels of order, the coherent one by a named algorithm, since
// its choice may depend on the machine; sums also with a factor.
void print_reductions(Team& team, std::ostream& out) {
  for (int t = 0; t < kDataTypes; ++t) {
    for (int o = 0; o < kReduceOps; ++o) {
      const auto type = static_cast<DataType>(t);
      const auto op = static_cast<ReduceOp>(o);
      if (!supports(type, op)) continue;
      out << name_of(type) << " " << name_of(op);
      with_element(type, [&]<class T>() {
        for (int level = 0; level < kOrders; ++level) {
          const auto order = static_cast<Order>(level);
          if (order == Order::group_invariant && op == ReduceOp::avg) continue;
          if (order == Order::tp_invariant) continue;  // group_invariant's bits, not among 5 ranks
          CallOptions options{.order = order};
          if (order == Order::coherent) options.algorithm = "ring";
          out << all_reduce<T>(team, op, options, false);
        }
        if (op == ReduceOp::sum && type != DataType::b8) {
          out << all_reduce<T>(team, op, {.order = Order::repeatable}, true);
        }
      });
      out << "\n";
    }
  }
}

template <class T, class Out>
std::string finished_rows(Team& team, Norm norm, Activation activation) {
  Hash hash;
  const Status status = team.run([&](Member& me) {
    std::vector<T> in, residual, bias, weight, shift, sum(kRows * kRow);
    for (std::size_t i = 0; i < kRows * kRow; ++i) {
      in.push_back(T(number(me.rank(), i)));
      residual.push_back(T(number(9, i)));
    }
    for (std::size_t i = 0; i < kRow; ++i) {
      bias.push_back(T(number(10, i)));
      weight.push_back(T(number(11, i)));
      shift.push_back(T(number(12, i)));
    }
    in[kRow / 2] = T(__builtin_inff());  // a row without a scale
    std::vector<Out> rows(kRows * kRow);
    std::vector<float> scales(kRows);
    const auto epilogue = RowEpilogue::make({
        .type = data_type_of<T>,
        .row_elements = kRow,
        .bias = bias.data(),
        .residual = residual.data(),
        .norm = norm,
        .weight = norm == Norm::none ? nullptr : weight.data(),
        .shift = norm == Norm::layer ? shift.data() : nullptr,
        .activation = activation,
        .out_type = data_type_of<Out>,
        .out = rows.data(),
        .scales = sizeof(Out) == 1 ? scales.data() : nullptr,
    });
    epilogue.status().throw_if_error();
    me.call({.in = in.data(),
             .out = sum.data(),
             .count = sum.size(),
             .type = data_type_of<T>,
             .options = {.order = Order::by_rank, .epilogue = &*epilogue}})
        .throw_if_error();
    if (me.rank() != 0) return;
    for (const T& value : residual) hash.add(value);
    for (const Out& value : rows) hash.add(value);
    for (const float value : scales) hash.add(value);
  });
  status.throw_if_error();
  return hash.text();
}

// A line per type, type of the rows and norm: the activations.
template <class T, class Out>
void print_rows(Team& team, std::ostream& out) {
  for (int norm = 0; norm < kNorms; ++norm) {
    out << name_of(data_type_of<T>) << " rows of " << name_of(data_type_of<Out>) << " " << norm;
    for (int activation = 0; activation < kActivations; ++activation) {
      out << finished_rows<T, Out>(team, static_cast<Norm>(norm),
                                   static_cast<Activation>(activation));
    }
    out << "\n";
  }
}

std::string all_bits() {
  std::ostringstream out;
  const auto team = Team::create({.ranks = kRanks, .timeout = std::chrono::minutes(4)}).value();
  print_reductions(*team, out);
  const auto print_type = [&]<class T>() {
    print_rows<T, T>(*team, out);
    print_rows<T, std::int8_t>(*team, out);
    print_rows<T, Float8E4M3>(*team, out);
  };
  print_type.operator()<float>();
  print_type.operator()<Half>();
  print_type.operator()<BFloat16>();
  return out.str();
}

std::string text_of(const std::string& path) { return read_small_file(path, 1 << 24).text; }

// In a process of its own, because a process reads RANKINE_ISA once.
std::string all_bits_with(Isa isa) {
  const std::string file = testing::TempDir() + "/bits." + std::string(name_of(isa));
  ChildProcess child([&] {
    setenv("RANKINE_ISA", std::string(name_of(isa)).c_str(), 1);
    std::ofstream(file) << all_bits();
    return 0;
  });
  EXPECT_EQ(child.wait(), 0) << name_of(isa);
  return text_of(file);
}

TEST(Bits, AreEqualForEveryInstructionSetAndThoseOfTheGoldenFile) {
  if (const char* path = std::getenv("RANKINE_TEST_GOLDEN_OUT")) {
    std::ofstream(path) << all_bits_with(Isa::portable);
  }
  const std::string golden = text_of("tests/golden/bits.txt");
  ASSERT_FALSE(golden.empty());
  for (int i = 0; i <= static_cast<int>(hardware_isa()); ++i) {
    const auto isa = static_cast<Isa>(i);
    EXPECT_EQ(all_bits_with(isa), golden) << name_of(isa);
  }
}

}  // namespace
}  // namespace rankine
