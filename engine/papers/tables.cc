#include "engine/papers/tables.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <utility>

namespace rankine::reproduce {
namespace {

// Rounds and bytes do not depend on the dimensions (section 5), except the rounds of Ring
// and Bucket.
constexpr Formulas kLog2Twice{.printed = "2*log2(3)", .derived = "2*log2(n)/log3(n)"};
constexpr Formulas kLog2Once{.printed = "log2(3)", .derived = "log2(n)/log3(n)"};
constexpr Formulas kTwo{.printed = "2", .derived = "2"};
constexpr Formulas kOne{.printed = "1", .derived = "1"};
constexpr Formulas kShare{.printed = "1", .derived = "(n-1)/n"};
constexpr Formulas kHalfLog2{.printed = "log2(n)/2", .derived = "log2(n)/2"};
constexpr Formulas kLog3{.printed = "log3(n)", .derived = "log3(n)"};

constexpr Formulas kBruckB{
    .printed = "2*log3(n)",
    .closed = "3*(pow(3,D)-1)/(pow(3,D)-3)",
    .columns = {"4", "3.25", "3.06"},
    .derived = "2*sum(d, 0, D-1, sum(k, 0, log3(a)-1, 3*pow(3,k)/pow(3,1+d+D*k)))"};
constexpr Formulas kBruckL{.printed = "3*n/2",
                           .closed = "3*D/2*a",
                           .columns = {"3*a", "9/2*a", "6*a"},
                           .derived = "D*sum(k, 0, log3(a)-1, 3*pow(3,k))"};

constexpr std::string_view kShorterWay =
    "the larger distance of the last round, 2/3 of the ring, is 1/3 the other way round: then "
    "Bruck is no worse than Trivance";

constexpr TableLine kLines[] = {
    {.name = "Ring",
     .line = "hamiltonian",
     .base = 0,
     .lambda = {.printed = "2*n/log3(n)", .derived = "2*(n-1)/log3(n)"},
     .delta = kShare,
     .theta = {.printed = "1", .derived = "(n-1)/n"}},
    {.name = "Bucket",
     .line = "bucket",
     .base = 0,
     .lambda = {.printed = "2*D*a/log3(n)", .derived = "2*D*(a-1)/log3(n)"},
     .delta = kShare,
     .theta = {.printed = "1", .closed = "1", .columns = {"1", "1", "1"}, .derived = "(n-1)/n"}},
    {.name = "Rec.Doub. (B)",
     .line = "torus_doubling",
     .base = 2,
     .lambda = kLog2Twice,
     .delta = kShare,
     .theta = {.printed = "log2(n)/2",
               .closed = "(pow(2,D)-1)/(pow(2,D)-2)",
               .columns = {"1.5", "1.17", "1.07"},
               .derived = "sum(d, 0, D-1, sum(k, 0, log2(a)-1, pow(2,k)/pow(2,1+d+D*k)))"},
     .why = "an exchange already loads its links both ways; the mirrored collective, with half of "
            "the data, meets nearly the same busy links instead of idle ones",
     .why_tori = "as on a ring: the mirrored collective meets the busy links of the first, not "
                 "idle ones"},
    {.name = "Swing (B)",
     .line = "swing",
     .base = 2,
     .lambda = kLog2Twice,
     .delta = kShare,
     .theta = {.printed = "log2(n)/3",
               .closed = "pow(2,D)*(pow(2,D)-1)/((pow(2,D)-2)*(pow(2,D)+1))",
               .columns = {"1.2", "1.04", "1.01"},
               .derived = "sum(d, 0, D-1, sum(k, 0, log2(a)-1, "
                          "(pow(2,k+1)-pow(-1,k+1))/3/pow(2,1+d+D*k)))"}},
    {.name = "Bruck (B), one way",
     .line = "bruck_ternary",
     .base = 3,
     .routing = Routing::one_way,
     .lambda = kTwo,
     .delta = kShare,
     .theta = kBruckB},
    {.name = "Bruck (B), shortest",
     .line = "bruck_ternary",
     .base = 3,
     .lambda = kTwo,
     .delta = kShare,
     .theta = kBruckB,
     .why = kShorterWay,
     .why_tori = kShorterWay},
    {.name = "Trivance (B)",
     .line = "trivance",
     .base = 3,
     .lambda = kTwo,
     .delta = kShare,
     .theta = {.printed = "2/3*log3(n)",
               .closed = "(pow(3,D)-1)/(pow(3,D)-3)",
               .columns = {"1.33", "1.08", "1.02"},
               .derived = "2*sum(d, 0, D-1, sum(k, 0, log3(a)-1, pow(3,k)/pow(3,1+d+D*k)))"}},
    {.name = "Rec.Doub. (L)",
     .line = "torus_doubling_latency",
     .base = 2,
     .lambda = kLog2Once,
     .delta = kHalfLog2,
     .theta = {.printed = "n",
               .closed = "D*D*a",
               .columns = {"4*a", "6*a", "8*a"},
               .derived = "D*D*sum(k, 0, log2(a)-1, pow(2,k))"},
     .why = "the last partners are antipodes, half of whose traffic goes each way: 3a/4 - 1",
     .why_tori = "as on a ring, antipodes use both ways: 3a/4 - 1 per dimension"},
    {.name = "Swing (L)",
     .line = "swing_latency",
     .base = 2,
     .lambda = kLog2Once,
     .delta = kHalfLog2,
     .theta = {.printed = "n/3",
               .closed = "D*D/3*a",
               .columns = {"4/3*a", "3*a", "16/3*a"},
               .derived = "if(D=1, sum(k, 0, log2(a)-1, ceil((pow(2,k+1)-pow(-1,k+1))/6)), "
                          "D*D*sum(k, 0, log2(a)-1, ceil((pow(2,k+1)-pow(-1,k+1))/3)))"},
     .why_tori = "B.2 divides by 3, B.1 divides by 6 because half of the nodes send each way; with "
                 "6 the sum equals the found value"},
    {.name = "Bruck (L), one way",
     .line = "bruck_ternary_latency",
     .base = 3,
     .routing = Routing::one_way,
     .lambda = kOne,
     .delta = kLog3,
     .theta = kBruckL},
    {.name = "Bruck (L), shortest",
     .line = "bruck_ternary_latency",
     .base = 3,
     .lambda = kOne,
     .delta = kLog3,
     .theta = kBruckL,
     .why = kShorterWay,
     .why_tori = kShorterWay},
    {.name = "Trivance (L)",
     .line = "trivance_latency",
     .base = 3,
     .lambda = kOne,
     .delta = kLog3,
     .theta = {.printed = "n/2",
               .closed = "D/2*a",
               .columns = {"a", "3/2*a", "2*a"},
               .derived = "D*sum(k, 0, log3(a)-1, pow(3,k))"}},
};

// The tori on which a line is tried: as large as a quick profile allows.
std::vector<std::vector<int>> tori_of(const TableLine& line) {
  if (line.line == "hamiltonian") return {{64}, {81}};  // table 1 only
  if (line.base == 0) return {{32, 32}, {16, 16, 16}, {8, 8, 8, 8}};
  if (line.base == 2) return {{64}, {256}, {32, 32}, {16, 16, 16}, {8, 8, 8, 8}};
  return {{81}, {243}, {27, 27}, {9, 9, 9}, {9, 9, 9, 9}};
}

ProfileKey key_of(const TableLine& line, const std::vector<int>& dims) {
  return {std::string(line.line), dims, line.routing};
}

std::optional<Value> worked_out(std::string_view formula, const formulas::Letters& letters) {
  if (formula.empty()) return std::nullopt;
  return formulas::evaluate(formula, letters);
}

TableEntry entry_of(const Formulas& formulas, const formulas::Letters& letters,
                    std::size_t dimensions, Value found) {
  std::string_view printed = formulas.printed;
  if (dimensions > 1 && !formulas.closed.empty()) printed = formulas.columns[dimensions - 2];
  return {worked_out(printed, letters), worked_out(formulas.derived, letters), found};
}

}  // namespace

std::span<const TableLine> table_lines() { return kLines; }

bool TableEntry::exact() const { return derived && equal(*derived, found); }

Profile formula_profile(std::string_view line, const std::vector<int>& dims) {
  const TableLine& of = *std::find_if(std::begin(kLines), std::end(kLines),
                                      [line](const TableLine& each) { return each.line == line; });
  const ProfileKey key = key_of(of, dims);
  const auto dimensions = static_cast<std::int64_t>(dims.size());
  const formulas::Letters letters = {{"n", key.ranks()}, {"D", dimensions}, {"a", dims.front()}};
  const auto value = [&letters](std::string_view formula) {
    return static_cast<double>(formulas::evaluate(formula, letters).approximate());
  };
  const bool closed = dims.size() > 1 && !of.theta.closed.empty();
  constexpr std::int64_t kPerM = 1'000'000;
  Profile profile;
  profile.ranks = key.ranks();
  profile.per_m = kPerM;
  const double rounds = value(of.lambda.printed) * value("log3(n)");
  const double delay = value(closed ? of.theta.closed : of.theta.printed);
  profile.rounds.assign(static_cast<std::size_t>(std::ceil(rounds - 1e-9)),
                        {{.hops = 0, .load = 0}});
  profile.rounds.front().front().load =
      std::llround(delay * kPerM / static_cast<double>(dimensions));
  return profile;
}

std::vector<ProfileKey> table_keys() {
  std::vector<ProfileKey> keys;
  for (const TableLine& line : kLines) {
    for (const auto& dims : tori_of(line)) keys.push_back(key_of(line, dims));
  }
  return keys;
}

std::vector<TableRow> table_rows(Profiles& profiles) {
  std::vector<TableRow> rows;
  for (const TableLine& line : kLines) {
    for (const auto& dims : tori_of(line)) {
      const ProfileKey key = key_of(line, dims);
      const Profile& profile = profiles.at(key);
      const formulas::Letters letters = {
          {"n", key.ranks()}, {"D", static_cast<long long>(dims.size())}, {"a", dims.front()}};
      const Value dimensions = letters.at("D");
      TableRow row{.table = dims.size() == 1 ? 1 : 2, .line = &line, .dims = dims};
      row.lambda = entry_of(line.lambda, letters, dims.size(),
                            Value(profile.round_count()) / formulas::logarithm(key.ranks(), 3));
      row.delta = entry_of(line.delta, letters, dims.size(),
                           Rational(profile.most_sent(), 2 * profile.per_m));
      row.theta = entry_of(line.theta, letters, dims.size(),
                           Value(Rational(profile.total_load(), profile.per_m)) * dimensions);
      if (!row.theta.exact()) row.why = dims.size() == 1 ? line.why : line.why_tori;
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

}  // namespace rankine::reproduce
