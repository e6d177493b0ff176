#include "engine/papers/tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <mutex>
#include <numeric>
#include <random>
#include <set>

#include "algorithms/catalogue.h"
#include "algorithms/circulant.h"
#include "algorithms/formula.h"
#include "engine/base/parallel.h"
#include "engine/read/count.h"
#include "engine/read/verify.h"

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

namespace {

using Cases = std::vector<TraffCase>;

// All numbers up to `all_up_to`, and above it numbers around powers of two and some more, up to
// `most`.
std::vector<int> numbers(int all_up_to, int most) {
  std::set<int> out;
  for (int p = 2; p <= std::min(all_up_to, most); ++p) out.insert(p);
  for (const int p : {100, 127, 128, 129, 255, 256, 257, 333,  384,  500,
                      511, 512, 513, 640, 729, 768, 900, 1000, 1023, 1024}) {
    if (p <= most) out.insert(p);
  }
  return {out.begin(), out.end()};
}
std::vector<int> counted() { return numbers(1024, 1024); }
std::vector<int> proved() { return numbers(64, 256); }
std::vector<int> with_every_scheme() { return numbers(96, 256); }
std::vector<int> sized() { return numbers(64, 512); }
std::vector<int> searched() { return numbers(40, 40); }
std::vector<int> example() { return {22}; }

TraffCase compared(long long stated, long long found, std::string_view what, int p) {
  return {stated == found, fmt::format("p = {}: {} {}", p, stated, what),
          fmt::format("{} {}", found, what)};
}

Schedule circulant(Collective collective, int p, const std::vector<int>& skips = {}) {
  Params params{.ranks = p};
  params.skips = skips;
  return find_algorithm(collective, "circulant")->make(params);
}

// "exactly": each rank has the stated number, so least and most must both be equal to it.
Cases each_rank(Collective collective, int p, long long stated, std::string_view what,
                std::int64_t RankCounts::*of_rank, const std::vector<int>& skips = {}) {
  const Counts counts = count(circulant(collective, p, skips));
  Cases out;
  const auto [least, most] = std::minmax_element(
      counts.ranks.begin(), counts.ranks.end(),
      [&](const RankCounts& a, const RankCounts& b) { return a.*of_rank < b.*of_rank; });
  out.push_back(compared(stated, (*least).*of_rank, what, p));
  out.push_back(compared(stated, (*most).*of_rank, what, p));
  return out;
}

Cases rounds(Collective collective, int p, long long stated, const std::vector<int>& skips = {}) {
  return {compared(stated, count(circulant(collective, p, skips)).rounds, "rounds", p)};
}

Cases solved(Collective collective, int p, const std::vector<int>& skips = {}) {
  const Schedule schedule = circulant(collective, p, skips);
  const CollectiveSpec goal{.collective = collective, .ranks = p, .blocks = schedule.blocks};
  const auto violation = verify(schedule, goal);
  const std::string who = skips.empty() ? fmt::format("p = {}", p)
                                        : fmt::format("p = {}, skips {}", p, skips_text(skips));
  return {{!violation, who + ": solved", violation ? violation->text : "proved"}};
}

// The sum over the rounds of the largest message, if block b has sizes[b] elements.
long long slowest(const Schedule& schedule, const std::vector<long long>& sizes) {
  long long total = 0;
  for (int k = 0; k < schedule.rounds; ++k) {
    long long most = 0;
    for_each_transfer(schedule, k, [&](const Transfer& t) {
      long long size = 0;
      t.what.list.for_each([&](Block b) { size += sizes[static_cast<std::size_t>(b)]; });
      most = std::max(most, size);
    });
    total += most;
  }
  return total;
}

long long log2_rounds(int p) { return ceil_log2(p); }

Cases time_of(int p) {
  // In elements of a vector of p * (p - 1): rounds and elements are the factors of alpha and of
  // beta (and of gamma, since each arriving element is added).
  const Schedule schedule = circulant(Collective::reduce_scatter, p);
  const long long block = p - 1, m = block * p;
  const std::vector<long long> sizes(static_cast<std::size_t>(p), block);
  return {compared((p - 1) * block, slowest(schedule, sizes), fmt::format("of {} elements", m), p),
          compared(log2_rounds(p), count(schedule).rounds, "rounds", p)};
}

Cases every_scheme(int p) {
  Cases out;
  for (const SkipScheme& scheme : skip_schemes()) {
    const std::vector<int> skips = scheme.skips(p);
    for (auto& each : solved(Collective::reduce_scatter, p, skips)) out.push_back(std::move(each));
    for (auto& each :
         rounds(Collective::reduce_scatter, p, static_cast<long long>(skips.size()), skips)) {
      out.push_back(std::move(each));
    }
    for (auto& each :
         each_rank(Collective::reduce_scatter, p, p - 1, "blocks sent", &RankCounts::sent, skips)) {
      out.push_back(std::move(each));
    }
  }
  return out;
}

// Random lists of falling skips that end with 1, such that each distance below p is a sum of
// different skips and no skip is superfluous; equal lists at every call.
std::vector<std::vector<int>> some_skips(int p) {
  constexpr int kTried = 60;
  std::mt19937 random(static_cast<unsigned>(p));
  std::set<std::vector<int>, std::greater<>> found;
  for (int attempt = 0; attempt < kTried; ++attempt) {
    std::set<int, std::greater<>> skips = {1};
    const int want = ceil_log2(p) + static_cast<int>(random() % 4);
    while (static_cast<int>(skips.size()) < std::min(want, p - 1)) {
      skips.insert(1 + static_cast<int>(random() % static_cast<unsigned>(p - 1)));
    }
    std::vector<int> list(skips.begin(), skips.end());
    if (!skips_refusal(list, p)) found.insert(std::move(list));
  }
  return {found.begin(), found.end()};
}

Cases any_skips(int p) {
  Cases out;
  for (const auto& skips : some_skips(p)) {
    for (auto& each : solved(Collective::reduce_scatter, p, skips)) out.push_back(std::move(each));
  }
  return out;
}

// Algorithm 1 to the letter, counted: the number of contributions in each R[i]. R[s] ... R[s' - 1]
// are added to R[0] ... R[s' - s - 1] for any skips.
int contributions_by_the_letter(int p, const std::vector<int>& skips) {
  std::vector<int> made_of(static_cast<std::size_t>(p), 1);
  int before = p;
  for (const int s : skips) {
    const std::vector<int> sent = made_of;
    for (int i = s; i < before; ++i) {
      made_of[static_cast<std::size_t>(i - s)] += sent[static_cast<std::size_t>(i)];
    }
    before = s;
  }
  return made_of[0];
}

Cases by_the_letter(int p, bool windows_only) {
  Cases out;
  for (const auto& skips : some_skips(p)) {
    if (windows_only && !are_windows(skips, p)) continue;
    TraffCase each = compared(p, contributions_by_the_letter(p, skips), "contributions", p);
    each.stated = fmt::format("p = {}, skips {}: all {} contributions", p, skips_text(skips), p);
    out.push_back(std::move(each));
  }
  return out;
}

Cases scheme_rounds(std::string_view scheme, int p, long long stated) {
  return rounds(Collective::reduce_scatter, p, stated, find_skip_scheme(scheme)->skips(p));
}

Cases about_square_root(int p) {
  const auto skips = find_skip_scheme("square_root")->skips(p);
  const double root = std::sqrt(p);
  const auto found =
      static_cast<double>(count(circulant(Collective::reduce_scatter, p, skips)).rounds);
  return {{found <= root + ceil_log2(p), fmt::format("p = {}: about {:.1f} rounds", p, root),
           fmt::format("{:.0f} rounds", found)}};
}

Cases irregular(int p) {
  constexpr int kDraws = 8;
  const Schedule schedule = circulant(Collective::reduce_scatter, p);
  std::mt19937 random(static_cast<unsigned>(p));
  Cases out;
  for (int draw = 0; draw < kDraws; ++draw) {
    std::vector<long long> sizes(static_cast<std::size_t>(p));
    for (long long& size : sizes) {
      // Some draws are nearly even, others have few large blocks.
      size = random() % 8 < static_cast<unsigned>(draw) ? 0 : 1 + random() % 1000;
    }
    const long long m = std::accumulate(sizes.begin(), sizes.end(), 0LL);
    const long long bound = log2_rounds(p) * m, found = slowest(schedule, sizes);
    out.push_back({found <= bound,
                   fmt::format("p = {}: at most {} elements one after the other", p, bound),
                   std::to_string(found)});
  }
  return out;
}

Cases one_block(int p) {
  constexpr long long kM = 1000;
  std::vector<long long> sizes(static_cast<std::size_t>(p), 0);
  sizes[static_cast<std::size_t>(p / 2)] = kM;
  return {compared(log2_rounds(p) * kM, slowest(circulant(Collective::reduce_scatter, p), sizes),
                   "elements one after the other", p)};
}

Cases longest(int p) {
  const Schedule schedule = circulant(Collective::reduce_scatter, p);
  int most = 0;
  for (int k = 0; k < schedule.rounds; ++k) {
    for_each_transfer(schedule, k,
                      [&most](const Transfer& t) { most = std::max(most, t.what.list.size()); });
  }
  return {{most <= (p + 1) / 2, fmt::format("p = {}: at most {} blocks", p, (p + 1) / 2),
           fmt::format("{} blocks", most)}};
}

// The messages that processor 21 of 22 receives for block 21, round by round: the sender, and the
// ranks with contributions in it.
struct Received {
  Rank from;
  std::set<Rank> of;
};
std::vector<Received> received_by_21() {
  constexpr int kP = 22;
  constexpr Rank kReceiver = 21;
  const Schedule schedule = circulant(Collective::reduce_scatter, kP);
  std::vector<std::set<Rank>> made_of(kP);
  for (Rank r = 0; r < kP; ++r) made_of[static_cast<std::size_t>(r)] = {r};
  std::vector<Received> out;
  for (int k = 0; k < schedule.rounds; ++k) {
    const auto before = made_of;
    for_each_transfer(schedule, k, [&](const Transfer& t) {
      bool carries = false;
      t.what.list.for_each([&](Block b) { carries = carries || b == kReceiver; });
      if (!carries) return;
      const Rank from = t.from.front(), to = t.to.front();
      const std::set<Rank>& of = before[static_cast<std::size_t>(from)];
      made_of[static_cast<std::size_t>(to)].insert(of.begin(), of.end());
      if (to == kReceiver) out.push_back({from, of});
    });
  }
  return out;
}

Cases example_skips(int p) {
  const std::string found = skips_text(halving_skips(p));
  return {{found == "11,6,3,2,1", "11,6,3,2,1", found}};
}

Cases example_from(int) {
  constexpr Rank kPrinted[] = {10, 15, 18, 19, 20};
  const auto received = received_by_21();
  Cases out;
  for (std::size_t k = 0; k < std::size(kPrinted); ++k) {
    const Rank found = k < received.size() ? received[k].from : -1;
    out.push_back({found == kPrinted[k], fmt::format("round {}: from {}", k, kPrinted[k]),
                   fmt::format("from {}", found)});
  }
  return out;
}

Cases example_sums(int) {
  const std::set<Rank> printed[] = {
      {10}, {15, 4}, {18, 7, 12, 1}, {19, 8, 13, 2, 16, 5}, {20, 9, 14, 3, 17, 6, 11, 0}};
  const auto text = [](const std::set<Rank>& of) {
    std::string list;
    for (const Rank r : of) list += (list.empty() ? "x" : " + x") + std::to_string(r);
    return list;
  };
  const auto received = received_by_21();
  Cases out;
  for (std::size_t k = 0; k < std::size(printed); ++k) {
    const std::set<Rank> found = k < received.size() ? received[k].of : std::set<Rank>();
    out.push_back(
        {found == printed[k], fmt::format("round {}: {}", k, text(printed[k])), text(found)});
  }
  return out;
}

// clang-format off
constexpr auto kReduceScatter = Collective::reduce_scatter;
constexpr auto kAllReduce = Collective::all_reduce;

constexpr TraffStatement kStatements[] = {
    {"traff-reproduce-theorem1", "Theorem 1", "Algorithm 1 solves the reduce-scatter problem", proved,
     [](int p) { return solved(kReduceScatter, p); }},
    {"traff-reproduce-theorem1-rounds", "Theorem 1", "in ceil(log2 p) send-receive rounds", counted,
     [](int p) { return rounds(kReduceScatter, p, log2_rounds(p)); }},
    {"traff-reproduce-theorem1-sent", "Theorem 1", "each processor sends exactly p - 1 blocks", counted,
     [](int p) { return each_rank(kReduceScatter, p, p - 1, "blocks sent", &RankCounts::sent); }},
    {"traff-reproduce-theorem1-received", "Theorem 1", "and receives exactly p - 1 blocks", counted,
     [](int p) { return each_rank(kReduceScatter, p, p - 1, "blocks received", &RankCounts::received); }},
    {"traff-reproduce-theorem1-reduced", "Theorem 1", "and applies the operator to exactly p - 1 blocks", counted,
     [](int p) { return each_rank(kReduceScatter, p, p - 1, "blocks added", &RankCounts::reduced); }},
    {"traff-reproduce-corollary1", "Corollary 1",
     "T(m,p) = alpha ceil(log2 p) + (beta + gamma) (p-1)/p m: as many rounds, and (p-1)/p m elements one after the other", sized,
     time_of},
    {"traff-reproduce-corollary2-schemes", "Corollary 2, examples",
     "any skips that reach every distance work: halving, powers of two, linear, square root; nearest first, too", with_every_scheme,
     every_scheme},
    {"traff-reproduce-corollary2-any", "Corollary 2",
     "on any circulant graph of falling skips of which every i < p is a sum of different ones, 60 draws for each p", searched, any_skips},
    {"traff-reproduce-corollary2-letter", "Corollary 2",
     "\"the proof of Theorem 1 did not use any particular properties [...] except for the fact that it allows any i to be written as a sum of different s_k\": Algorithm 1 to the letter, with such skips", searched,
     [](int p) { return by_the_letter(p, false); },
     "where a skip is less than half of the one before, a part of Algorithm 1's sums in R[i] is never sent on, or is sent before it has arrived; the corollary itself stands, with another choice of the blocks of each round (circulant.h)"},
    {"traff-reproduce-corollary2-windows", "Corollary 2",
     "Algorithm 1 to the letter, where no skip is less than half of the one before, as in all of the paper's schemes", searched,
     [](int p) { return by_the_letter(p, true); }},
    {"traff-reproduce-corollary2-folklore", "Corollary 2, examples", "p - 1 rounds with the skips p-1, p-2, ... 1", with_every_scheme,
     [](int p) { return scheme_rounds("linear", p, p - 1); }},
    {"traff-reproduce-corollary2-straight", "Corollary 2, examples", "another ceil(log2 p) rounds with powers of two", counted,
     [](int p) { return scheme_rounds("powers_of_two", p, log2_rounds(p)); }},
    {"traff-reproduce-corollary2-root", "Corollary 2, examples",
     "\"a square root of p number of rounds\" with p - k ceil(sqrt p) (at most log2 p more)", counted, about_square_root},
    {"traff-reproduce-corollary3", "Corollary 3", "blocks of different sizes: at most ceil(log2 p) (alpha + beta m + gamma m), random sizes", sized,
     irregular},
    {"traff-reproduce-corollary3-one", "Corollary 3", "all elements in one block: \"partial results of all m elements will be sent [...] in every communication round\"", sized,
     one_block},
    {"traff-reproduce-theorem2", "Theorem 2", "Algorithm 2 solves the allreduce problem", proved,
     [](int p) { return solved(kAllReduce, p); }},
    {"traff-reproduce-theorem2-rounds", "Theorem 2", "in 2 ceil(log2 p) send-receive rounds", counted,
     [](int p) { return rounds(kAllReduce, p, 2 * log2_rounds(p)); }},
    {"traff-reproduce-theorem2-sent", "Theorem 2", "each processor sends exactly 2(p - 1) blocks", counted,
     [](int p) { return each_rank(kAllReduce, p, 2LL * (p - 1), "blocks sent", &RankCounts::sent); }},
    {"traff-reproduce-theorem2-received", "Theorem 2", "and receives exactly 2(p - 1) blocks", counted,
     [](int p) { return each_rank(kAllReduce, p, 2LL * (p - 1), "blocks received", &RankCounts::received); }},
    {"traff-reproduce-theorem2-reduced", "Theorem 2", "and applies the operator to exactly p - 1 blocks", counted,
     [](int p) { return each_rank(kAllReduce, p, p - 1, "blocks added", &RankCounts::reduced); }},
    {"traff-reproduce-longest", "3", "no sequence of blocks is longer than ceil(p/2)", counted, longest},
    {"traff-reproduce-example-skips", "2.1, example p = 22", "the skips are 11, 6, 3, 2, 1", example, example_skips},
    {"traff-reproduce-example-from", "2.1, example p = 22", "processor 21 receives from 10, 15, 18, 19 and 20", example, example_from},
    {"traff-reproduce-example-sums", "2.1, example p = 22", "and in each round the partial sum that is printed", example, example_sums},
    {"traff-reproduce-all-to-all", "4", "all-to-all in the same number of rounds", proved,
     [](int p) { return rounds(Collective::all_to_all, p, log2_rounds(p)); }},
};
// clang-format on

// "2..64, 100, 127..129"
std::string ranges(const std::vector<int>& sorted) {
  std::string text;
  for (std::size_t first = 0, last = 0; first < sorted.size(); first = last + 1) {
    last = first;
    while (last + 1 < sorted.size() && sorted[last + 1] == sorted[last] + 1) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ",", sorted[first]);
    if (last > first) text += fmt::format("..{}", sorted[last]);
  }
  return text;
}

}  // namespace

std::span<const TraffStatement> traff_statements() { return kStatements; }

std::vector<TraffOutcome> traff_outcomes(const ProgressReport& progress) {
  struct Piece {
    std::size_t statement;
    int p;
    Cases cases{};
  };
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < std::size(kStatements); ++i) {
    for (const int p : kStatements[i].processors()) pieces.push_back({i, p});
  }
  // Many processors first: so no core gets the longest piece last.
  std::vector<std::size_t> order(pieces.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return pieces[a].p > pieces[b].p; });
  std::mutex reporting;
  std::size_t done = 0;
  parallel_for(order.size(), [&](std::size_t i) {
    Piece& piece = pieces[order[i]];
    piece.cases = kStatements[piece.statement].cases(piece.p);
    if (!progress) return;
    const std::lock_guard lock(reporting);
    progress(++done, order.size());
  });

  std::vector<TraffOutcome> out(std::size(kStatements));
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i].statement = &kStatements[i];
    out[i].processors = ranges(kStatements[i].processors());
  }
  for (const Piece& piece : pieces) {
    TraffOutcome& outcome = out[piece.statement];
    for (const TraffCase& each : piece.cases) {
      // The first disagreeing case stays.
      if (outcome.agrees()) outcome.shown = each;
      ++outcome.cases;
      outcome.agreeing += each.agrees ? 1 : 0;
    }
  }
  return out;
}

std::string verdict_text(const TraffOutcome& outcome) {
  if (outcome.agrees()) return "holds";
  return fmt::format("does not hold in {} of {} cases", outcome.cases - outcome.agreeing,
                     outcome.cases);
}

}  // namespace rankine::reproduce
