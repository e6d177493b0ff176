#include "tests/engine/run/reference.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <type_traits>
#include <utility>

#include "engine/run/kernels/integer_reductions.h"

namespace rankine {
namespace {

using Bytes = std::vector<std::byte>;

struct Held {
  Bytes bytes;
  std::int64_t contributions = 0;
  Rank lowest = 0;  // that contributes
};

// What a round brings to one place.
struct Arrival {
  bool adds = false;
  std::vector<const Held*> parts;
};

// The type that a fold of T accumulates in: unsigned where it must wrap, float for small floats.
template <class T>
struct TotalOf {
  using type = float;
};
template <class T>
requires std::is_integral_v<T>
struct TotalOf<T> {
  using type = std::uint64_t;
};
template <>
struct TotalOf<double> {
  using type = double;
};

template <class T>
requires std::is_same_v<T, Bool> T fold(const std::vector<T>& values, ReduceOp op, int) {
  Bool total = values[0];
  for (std::size_t i = 1; i < values.size(); ++i) total = combined(op, total, values[i]);
  return total;
}

template <Complex T>
T fold(const std::vector<T>& values, ReduceOp op, int divisor) {
  T total = values[0];
  for (std::size_t i = 1; i < values.size(); ++i) {
    const T x = total, y = values[i];
    total = op == ReduceOp::prod ? T(x.real() * y.real() - x.imag() * y.imag(),
                                     x.real() * y.imag() + x.imag() * y.real())
                                 : x + y;
  }
  return divisor == 0 ? total : total / static_cast<typename T::value_type>(divisor);
}

template <class T>
T fold(const std::vector<T>& values, ReduceOp op, int divisor) {
  using Total = typename TotalOf<T>::type;
  const auto less = [](T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      return a < b;
    } else {
      return static_cast<Total>(a) < static_cast<Total>(b);
    }
  };
  if (op == ReduceOp::min) return *std::min_element(values.begin(), values.end(), less);
  if (op == ReduceOp::max) return *std::max_element(values.begin(), values.end(), less);
  auto total = static_cast<Total>(values[0]);
  for (std::size_t i = 1; i < values.size(); ++i) {
    const auto value = static_cast<Total>(values[i]);
    total = op == ReduceOp::prod ? total * value : total + value;
  }
  if (divisor == 0) return static_cast<T>(total);
  if constexpr (std::is_integral_v<T>) {
    using Wide = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
    return static_cast<T>(static_cast<Wide>(static_cast<T>(total)) / static_cast<Wide>(divisor));
  } else {
    return static_cast<T>(total / static_cast<Total>(divisor));
  }
}

template <class T>
Bytes folded(const std::vector<const Held*>& parts, ReduceOp op, int divisor) {
  Bytes out(parts[0]->bytes.size());
  std::vector<T> values(parts.size());
  for (std::size_t i = 0; i < out.size() / sizeof(T); ++i) {
    for (std::size_t p = 0; p < parts.size(); ++p) {
      std::memcpy(&values[p], parts[p]->bytes.data() + i * sizeof(T), sizeof(T));
    }
    const T result = fold(values, op, divisor);
    std::memcpy(out.data() + i * sizeof(T), &result, sizeof(T));
  }
  return out;
}

}  // namespace

std::vector<Image> execute_literally(const Schedule& schedule, const Goal& goal,
                                     const Layout& layout, DataType type, ReduceOp op,
                                     std::vector<Image> before) {
  using Where = std::pair<Rank, int>;  // a place of a rank
  std::map<Where, Held> memory;
  for (Rank r = 0; r < schedule.ranks; ++r) {
    const Image& image = before[static_cast<std::size_t>(r)];
    for (Block b = 0; b < schedule.blocks; ++b) {
      if (!goal.starts(r, b)) continue;
      const BlockHome& home = layout.blocks[static_cast<std::size_t>(b)];
      const auto begin =
          image.bytes.begin() + static_cast<std::ptrdiff_t>(image.input + home.input);
      memory[{r, b}] = {Bytes(begin, begin + static_cast<std::ptrdiff_t>(home.bytes)), 1, r};
    }
  }
  for (int k = 0; k < schedule.rounds; ++k) {
    std::map<Where, Arrival> arrivals;
    for_each_transfer(schedule, k, [&](const Transfer& t) {
      const std::vector<int> from = t.from.to_vector(), to = t.to.to_vector();
      const std::vector<int> what = t.what.list.to_vector(), where = t.where.list.to_vector();
      for (const Rank receiver : to) {
        for (const Rank sender : from) {
          for (std::size_t i = 0; i < what.size(); ++i) {
            Arrival& arrival = arrivals[{receiver, place_of(schedule, where[i], t.where.plane)}];
            arrival.adds = t.act == Act::reduce;
            arrival.parts.push_back(
                &memory.at({sender, place_of(schedule, what[i], t.what.plane)}));
          }
        }
      }
    });
    std::vector<std::pair<Where, Held>> news;
    for (auto& [where, arrival] : arrivals) {
      const auto own = memory.find(where);
      if (arrival.adds && own != memory.end()) {
        arrival.parts.insert(arrival.parts.begin(), &own->second);
      }
      std::stable_sort(arrival.parts.begin(), arrival.parts.end(),
                       [](const Held* a, const Held* b) { return a->lowest < b->lowest; });
      Held held;
      held.lowest = arrival.parts[0]->lowest;
      for (const Held* part : arrival.parts) held.contributions += part->contributions;
      const bool divides = op == ReduceOp::avg && held.contributions == goal.ranks;
      held.bytes =
          arrival.parts.size() == 1 ? arrival.parts[0]->bytes : with_element(type, [&]<class T>() {
            return folded<T>(arrival.parts, op, divides ? goal.ranks : 0);
          });
      news.emplace_back(where, std::move(held));
    }
    for (auto& [where, held] : news) memory[where] = std::move(held);
  }
  for (Rank r = 0; r < schedule.ranks; ++r) {
    Image& image = before[static_cast<std::size_t>(r)];
    for (Block b = 0; b < schedule.blocks; ++b) {
      const auto held = memory.find({r, b});
      if (!goal.needs(r, b) || held == memory.end()) continue;
      const BlockHome& home = layout.blocks[static_cast<std::size_t>(b)];
      if (home.bytes == 0) continue;
      std::memcpy(image.bytes.data() + image.output + home.output, held->second.bytes.data(),
                  home.bytes);
    }
  }
  return before;
}

}  // namespace rankine
