#include "algorithms/parameters.h"

#include <algorithm>
#include <charconv>
#include <stdexcept>
#include <vector>

#include "algorithms/catalogue.h"
#include "algorithms/circulant.h"
#include "algorithms/formula.h"
#include "algorithms/hierarchical.h"
#include "algorithms/levels.h"
#include "algorithms/pat.h"
#include "algorithms/torus.h"

namespace rankine {
namespace {

// Places are counted in an int. Together with the bounds of Algorithm::refusal(), these bounds
// leave room for every algorithm's blocks.
constexpr int kMost = 1 << 14;
constexpr int kMostRanks = 1 << 20;

using Kind = Parameter::Kind;

constexpr int kLeastRadix = 2;

int two(int) { return kLeastRadix; }
int all_ranks_or_two(int ranks) { return std::max(ranks, kLeastRadix); }
int last_rank(int ranks) { return ranks - 1; }
int all_ranks(int ranks) { return ranks; }
std::vector<int> one_dimension(int ranks) { return {ranks}; }
std::vector<int> one_level(int ranks) { return {middle_divisor(ranks)}; }

// clang-format off
const Parameter kParameters[] = {
    {.name = "ranks", .number = &Params::ranks, .letter = "N", .in_request = true,
     .short_flag = 't', .argument = "N", .help = "ranks", .least = 1, .most = kMostRanks},
    {.name = "root", .number = &Params::root, .in_request = true, .short_flag = 'r',
     .argument = "RANK", .help = "of rooted collectives; the sender of send_recv; the slow rank of optcc (0)",
     .most = kMostRanks - 1, .most_among = last_rank},
    {.name = "peer", .number = &Params::peer,
     .argument = "RANK", .help = "the receiver of send_recv (the rank after the root)",
     .most = kMostRanks - 1, .most_among = last_rank},
    {.name = "segments", .number = &Params::segments, .letter = "P", .in_request = true,
     .argument = "P",
     .help = "of pipelined algorithms; auto: by size, and by the network if one is set",
     .least = 1, .most = kMost, .zero = "auto", .tried = "1;2;3"},
    {.name = "group", .number = &Params::group, .letter = "G",
     .argument = "G", .help = "ranks per group of hierarchical algorithms; 0: their default (0)",
     .most = kMostRanks, .most_among = all_ranks, .default_number = middle_divisor, .tried = "0;2;3;4"},
    {.name = "aggregation", .number = &Params::aggregation, .letter = "A",
     .argument = "A", .help = "blocks per message of pat; 0: its default (0)", .most = kMostRanks,
     .most_among = pat_default_aggregation, .default_number = pat_default_aggregation,
     .tried = "0;1;2;4"},
    {.name = "radix", .number = &Params::radix, .letter = "K", .argument = "K",
     .help = "children of trees, partners and messages per round plus one: 3, 4 ... (2)",
     .least = kLeastRadix, .most = kMost, .most_among = all_ranks_or_two, .default_number = two,
     .tried = "2;3;4"},
    {.name = "dims", .kind = Kind::torus, .list = &Params::dims, .letter = "D", .argument = "AxB",
     .help = "sizes of a torus or mesh, of the network and of algorithms on tori: 4x4, 3x3x3",
     .default_list = one_dimension, .list_refusal = dims_refusal},
    {.name = "skips", .kind = Kind::skips, .list = &Params::skips, .letter = "S",
     .argument = "LIST",
     .help = "of circulant algorithms, round by round: a scheme or a list (halving)",
     .default_list = halving_skips, .list_refusal = skips_refusal,
     .tried = "halving;powers_of_two;linear;square_root;halving_near"},
    {.name = "levels", .kind = Kind::sizes, .list = &Params::levels, .argument = "LIST",
     .help = "ranks per group at each level of the machine, innermost first: 4,16",
     .default_list = one_level, .list_refusal = levels_refusal,
     .tried = ";2;3;2,4;3,12;2,4,16"},
};
// clang-format on

std::optional<int> read_number(const Parameter& parameter, std::string_view text) {
  if (!parameter.zero.empty() && text == parameter.zero) return 0;
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (value < parameter.least || value > parameter.most) return std::nullopt;
  return value;
}

std::optional<std::vector<int>> read_list_of(Kind kind, std::string_view text, int ranks) {
  if (kind == Kind::torus) return read_dims(text);
  if (text.empty()) return std::vector<int>();  // the default
  if (kind == Kind::skips) return read_skips(text, ranks);
  return read_list(text, ',');
}

}  // namespace

bool Parameter::open(const Params& params) const {
  static const Params kBegin;
  if (number == nullptr) return (params.*list).empty();
  return params.*number == kBegin.*number || params.*number == 0;
}

int Parameter::count(const Params& params) const {
  if (number != nullptr) {
    const bool defaults = params.*number == 0 && default_number != nullptr;
    return defaults ? default_number(params.ranks) : params.*number;
  }
  const bool defaults = (params.*list).empty() && default_list != nullptr;
  return static_cast<int>(defaults ? default_list(params.ranks).size() : (params.*list).size());
}

std::string Parameter::text(const Params& params) const {
  if (number == nullptr) return list_text(params.*list, kind == Kind::torus ? 'x' : ',');
  return params.*number == 0 && !zero.empty() ? std::string(zero) : std::to_string(params.*number);
}

bool Parameter::read(std::string_view text, Params& params) const {
  if (number != nullptr) {
    const auto value = read_number(*this, text);
    if (value) params.*number = *value;
    return value.has_value();
  }
  auto value = read_list_of(kind, text, params.ranks);
  if (value) params.*list = std::move(*value);
  return value.has_value();
}

std::vector<std::string_view> Parameter::names() const {
  std::vector<std::string_view> out;
  if (!zero.empty()) out.push_back(zero);
  if (kind != Kind::skips) return out;
  for (const SkipScheme& scheme : skip_schemes()) out.push_back(scheme.name);
  return out;
}

std::string Parameter::allowed() const {
  switch (kind) {
    case Kind::number:
      return "whole numbers from " + std::to_string(least) + " to " + std::to_string(most) +
             (zero.empty() ? "" : ", and " + std::string(zero));
    case Kind::sizes:
      return "whole numbers with commas, as in 4,16";
    case Kind::skips:
      return skip_scheme_names() + ", and whole numbers with commas, as in 11,6,3,2,1";
    case Kind::torus:
      break;
  }
  return "up to " + std::to_string(kMostDims) + " sizes of 1 and more, such as 4x4 and 3x3x3";
}

std::span<const Parameter> parameters() { return kParameters; }

const Parameter* find_parameter(std::string_view name) {
  for (const Parameter& row : kParameters) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

Params resolved(Params params) {
  for (const Parameter& row : kParameters) {
    if (row.default_number != nullptr) params.*row.number = row.count(params);
    if (row.default_list == nullptr || !(params.*row.list).empty()) continue;
    params.*row.list = row.default_list(params.ranks);
  }
  return params;
}

namespace {

using formulas::Value;

int groups(const Params& params) { return (params.ranks - 1) / params.group + 1; }

// `params` come from resolved(). Q: the largest power of the radix that is not above N. Outermost:
// the largest group of `levels` below N; leaders: those of one (hierarchical.h).
std::optional<Value> letter(std::string_view name, const Params& params) {
  if (name == "Q") return power_of(params.radix, floor_log(params.radix, params.ranks));
  if (name == "H") return params.root == params.peer ? 0 : 1;
  if (name == "L") return static_cast<int>(nested_sizes(params.ranks, params.levels).size()) - 1;
  if (name == "outermost") return Leaders(params.ranks, params.levels).group;
  if (name == "leaders") return Leaders(params.ranks, params.levels).count();
  if (name == "groups") return groups(params);
  if (name == "last") return params.ranks - (groups(params) - 1) * params.group;
  for (const Parameter& row : parameters()) {
    if (name == row.letter) return row.count(params);
  }
  return std::nullopt;
}

}  // namespace

Rational evaluate(std::string_view formula, const Params& given) {
  const Params params = resolved(given);
  const auto lookup = [&](std::string_view name,
                          std::span<const Value> arguments) -> std::optional<Value> {
    return arguments.empty() ? letter(name, params) : std::nullopt;
  };
  const Value value = formulas::evaluate(formula, lookup, params.dims);
  if (!value.exact()) throw std::overflow_error("a number beyond 128 bits");
  return value.rational();
}

}  // namespace rankine
