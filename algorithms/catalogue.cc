#include "algorithms/catalogue.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "algorithms/bruck.h"
#include "algorithms/circulant.h"
#include "algorithms/direct.h"
#include "algorithms/exchange.h"
#include "algorithms/halving_doubling.h"
#include "algorithms/hierarchical.h"
#include "algorithms/levels.h"
#include "algorithms/parameters.h"
#include "algorithms/pat.h"
#include "algorithms/recursive_doubling.h"
#include "algorithms/ring.h"
#include "algorithms/scan.h"
#include "algorithms/straggler.h"
#include "algorithms/torus.h"
#include "algorithms/torus_all_to_all.h"
#include "algorithms/torus_rings.h"
#include "algorithms/tree.h"
#include "algorithms/trivance.h"

namespace rankine {
namespace {

using enum Collective;

constexpr Collective kReduce = Collective::reduce;  // `reduce` alone is the TransferKind

constexpr std::string_view kEqualGroups = "divides(G,N)";
constexpr std::string_view kEqualGroupsInWords =
    "the number of ranks must be a multiple of the group";
constexpr std::string_view kNested = "divides(outermost,N)";
constexpr std::string_view kNestedInWords =
    "the number of ranks must be a multiple of the largest group";
constexpr std::string_view kLeadersAndGroups = "and(divides(outermost,N),3>=L)";
constexpr std::string_view kLeadersAndGroupsInWords =
    "the number of ranks must be a multiple of the largest group, and at most two sizes of groups "
    "are allowed";
constexpr std::string_view kAggregation = "and(pow2(A),max(1,pow(2,clog2(N)-1))>=A)";
constexpr std::string_view kAggregationInWords =
    "the aggregation must be a power of two that is less than the number of ranks";
constexpr std::string_view kAggregationOfGroups = "and(divides(G,N),pow2(A))";
constexpr std::string_view kAggregationOfGroupsInWords =
    "the number of ranks must be a multiple of the group, and the aggregation a power of two";

// Common formulas. kOne: 1, but 0 among one rank.
constexpr std::string_view kOne = "min(1,N-1)";
constexpr std::string_view kTwo = "2*min(1,N-1)";
constexpr std::string_view kShare = "(N-1)/N";
constexpr std::string_view kTwoShares = "2*(N-1)/N";

// Whole vectors travel, and every rank joins other runs of ranks.
constexpr std::string_view kOwnBrackets = "its ranks add in different brackets";

// On a torus. If sizes differ, the largest dimension goes on alone: D - 1 times the rounds of the
// next one, plus the rounds of the largest.
constexpr std::string_view kAllPorts = "2*D*min(1,N-1)";
constexpr std::string_view kBucketPorts = "2*each(a>1)";
constexpr std::string_view kPortPerDimension = "D*min(1,N-1)";
// Two messages per dimension; when all collectives meet in the largest dimension, two of each, but
// one of each if they meet for one round only and its ternary digit of a - 1 is 1.
constexpr std::string_view kTwoPerDimension =
    "max(each(min(2,a-1)),(most(clog3(a))>next(clog3(a)))*D*"
    "(1+or(most(clog3(a))-next(clog3(a))>=2,most(a)>2*pow(3,most(clog3(a))-1))))";
// Trivance on all ports: any line, and tori with sizes that are one power of 2D + 1.
constexpr std::string_view kCross =
    "or(D=1,and(3>=D,and(N=pow(most(a),D),most(a)=pow(2*D+1,flog(2*D+1,most(a))))))";
constexpr std::string_view kCrossInWords =
    "the sizes of a torus must be equal and a power of 5 in two dimensions, of 7 in three, and "
    "other dimensions are not allowed";
constexpr std::string_view kCrossRounds = "D*clog(2*D+1,most(a))";
constexpr std::string_view kCrossPorts = "min(2*D,N-1)";
constexpr std::string_view kCycles = "or(D=1,each(a<3)=0)";
constexpr std::string_view kCyclesInWords =
    "every size of a torus of two dimensions and more must be at least 3";
constexpr std::string_view kLog3Rounds = "(D-1)*next(clog3(a))+most(clog3(a))";
constexpr std::string_view kTwiceLog3Rounds = "2*((D-1)*next(clog3(a))+most(clog3(a)))";
// Lines with a size that is no power of two (Swing: an odd size) are folded: two rounds for each of
// them, and the vector once more to and from a rank of each.
constexpr std::string_view kDoublingLineRounds =
    "(D-1)*next(flog2(a))+most(flog2(a))+2*each(1-pow2(a))";
constexpr std::string_view kTwiceDoublingLineRounds =
    "2*((D-1)*next(flog2(a))+most(flog2(a)))+2*each(1-pow2(a))";
constexpr std::string_view kDoublingShares =
    "2*(times(pow(2,flog2(a)))-1)/times(pow(2,flog2(a)))+each(1-pow2(a))";
constexpr std::string_view kSwingRounds =
    "(D-1)*next(clog2(a-mod(a,2)*(a>1)))+most(clog2(a-mod(a,2)*(a>1)))+2*each(mod(a,2)*(a>1))";
constexpr std::string_view kTwiceSwingRounds =
    "2*((D-1)*next(clog2(a-mod(a,2)*(a>1)))+most(clog2(a-mod(a,2)*(a>1))))+2*each(mod(a,2)*(a>1))";
constexpr std::string_view kSwingShares =
    "2*(times(a-mod(a,2)*(a>1))-1)/times(a-mod(a,2)*(a>1))+each(mod(a,2)*(a>1))";
// For whole vectors; the ranks of a line beyond a power of two are folded.
constexpr std::string_view kExchangeRounds = "each(flog2(a)+2*(1-pow2(a)))";
constexpr std::string_view kExchanges = "each(flog2(a)+1-pow2(a))";
// Messages of Bruck's latency-optimal form: two a round, but one in the first round if the first
// ternary digit of a - 1 is 1.
constexpr std::string_view kBruckSums = "each(min(1,a-1)*(2*clog3(a)-(2*pow(3,clog3(a)-1)>=a)))";

// With radix K. At a k-nomial tree's root, and in dissemination: the messages of all rounds, K - 1
// each except in the last; in a pipeline those of P rounds at once. Butterflies fold sizes that are
// no power of K: Q is the largest power, and ceil(N/Q) - 1 ranks are folded into the first of the
// core.
constexpr std::string_view kKnomialRounds = "clog(K,N)";
constexpr std::string_view kKnomial = "if(N-1,(K-1)*(clog(K,N)-1)+ceil(N/pow(K,clog(K,N)-1))-1,0)";
constexpr std::string_view kKnomialPipeline = "if(N-1,clog(K,N)+P-1,0)";
constexpr std::string_view kKnomialPorts =
    "if(N-1,min(P*(K-1),(K-1)*(clog(K,N)-1)+ceil(N/pow(K,clog(K,N)-1))-1),0)";
constexpr std::string_view kLargestSubtree =
    "if(N-1,max(min(ceil(N/pow(K,clog(K,N)-1))-2,1)*pow(K,clog(K,N)-1),"
    "max(N-(ceil(N/pow(K,clog(K,N)-1))-1)*pow(K,clog(K,N)-1),floor(pow(K,clog(K,N)-2))))/N,0)";
constexpr std::string_view kRadixPorts = "(K-1)*min(1,N-1)";
constexpr std::string_view kFoldedRounds = "flog(K,N)+2*(Q<N)";
constexpr std::string_view kTwiceFoldedRounds = "2*flog(K,N)+2*(Q<N)";
constexpr std::string_view kFoldedVectors = "(K-1)*flog(K,N)+ceil(N/Q)-1";
constexpr std::string_view kFoldedShares = "2*(Q-1)/Q+ceil(N/Q)-1";
// Padded to a power of two.
constexpr std::string_view kGhostShares = "2*(1-1/pow(2,clog2(N)))";
constexpr std::string_view kGhostPorts = "if(pow2(N),min(1,N-1),2)";
constexpr std::string_view kFoldedGather =
    "(sum(i,0,flog(K,N)-1,(K-1)*(pow(K,i)*floor(N/Q)+min(pow(K,i),mod(N,Q))))"
    "+(ceil(N/Q)-1)*(N-1))/N";
constexpr std::string_view kFoldedFarGather =
    "(sum(i,0,flog(K,N)-1,(K-1)*(pow(K,i)*floor(N/Q)+ceil(mod(N,Q)*pow(K,i)/Q)))"
    "+(ceil(N/Q)-1)*(N-1))/N";
constexpr std::string_view kDigits =
    "sum(i,0,clog(K,N)-1,N-floor(N/pow(K,i+1))*pow(K,i)-min(pow(K,i),mod(N,pow(K,i+1))))/N";
constexpr std::string_view kDigitsInGroups =
    "sum(i,0,clog(K,G)-1,G-floor(G/pow(K,i+1))*pow(K,i)-min(pow(K,i),mod(G,pow(K,i+1))))/G+1-G/N";
// Rank 1 of a k-ary tree sends up and down, if it has children.
constexpr std::string_view kUpAndDown = "max(min(K,N-1),min(1,N-1)+min(K,max(0,N-1-K)))";
constexpr std::string_view kUpAndDownPorts =
    "if(P>=3,max(min(K,N-1),min(1,N-1)+min(K,max(0,N-1-K))),min(K,N-1))";

// Two levels. In a small last group a member holds up to ceil(G/last) blocks of every other group.
constexpr std::string_view kTwoLevelRounds = "(N>G)+(G>1)";
constexpr std::string_view kTwoLevelAllReduceRounds = "2*((N>G)+(G>1))";
constexpr std::string_view kHolders =
    "(groups-1+max(groups*(G-1),(1+(groups-1)*ceil(G/last))*(last-1)))/N";
constexpr std::string_view kHoldersAndShare =
    "(N-1+groups-1+max(groups*(G-1),(1+(groups-1)*ceil(G/last))*(last-1)))/N";
constexpr std::string_view kHolderPorts = "max(groups-1,G-1)";
constexpr std::string_view kMemberPorts = "max((groups-1)*ceil(G/last),G-1)";

// Several leaders in groups of `outermost` ranks: each sends and receives its part in its group.
constexpr std::string_view kLeaderPorts = "max(outermost-1,N>outermost)";
constexpr std::string_view kMemberOfLeadersPorts =
    "max(max(outermost/leaders-1,leaders-(outermost=leaders)),N>outermost)";
constexpr std::string_view kLeadersRounds = "(outermost>leaders)+clog2(N/outermost)+(outermost>1)";
constexpr std::string_view kLeaderGather = "((N-2)*outermost/leaders+1)/N";

// Doubling with segments in flight: the rounds of one segment, and a message in each of them.
constexpr std::string_view kDoublingPorts = "min(P,flog2(N)+1-pow2(N))";
constexpr std::string_view kDoublingRounds = "if(N-1,flog2(N)+2*(1-pow2(N))+P-1,0)";

// n-block circulant algorithms: the root sends a block in every round.
constexpr std::string_view kBlockRounds = "if(N-1,clog2(N)+P-1,0)";
constexpr std::string_view kRootBlocks = "if(N-1,(clog2(N)+P-1)/P,0)";

// A ring of all ranks but one, twice, and the blocks of that one.
constexpr std::string_view kOfOneStraggler = "min(1,N-1)*(2*N-3)/max(1,N-1)";

// Up one tree, down the other: two children and a parent, and the parent in the other tree.
constexpr std::string_view kPortsOfDoubleTree =
    "if(N>=5,if(P>flog2(N+4),4,if(or(P>=3,and(P>=2,5>=N)),3,2)),if(N>=3,min(3,P+1),min(2,P)*(N-1))"
    ")";

constexpr std::string_view kPatarasuk = "Patarasuk & Yuan, JPDC 69(2), 2009";
constexpr std::string_view kThakur = "Thakur, Rabenseifner & Gropp, IJHPCA 19(1), 2005";
constexpr std::string_view kRabenseifner = "Rabenseifner & Traff, EuroPVM/MPI 2004";
constexpr std::string_view kJohnsson = "Johnsson & Ho, IEEE Trans. Computers 38(9), 1989";
constexpr std::string_view kSanders = "Sanders, Speck & Traff, Parallel Computing 35(12), 2009";
constexpr std::string_view kNccl = "Jeaugey, NCCL 2.4 (ncclGetDtree), 2019";
constexpr std::string_view kBruck = "Bruck et al., IEEE TPDS 8(11), 1997";
constexpr std::string_view kPat = "Jeaugey, arXiv:2506.20252; NCCL 2.23";
constexpr std::string_view kBarnett = "Barnett et al., Supercomputing 1994";
constexpr std::string_view kSharp = "Graham et al., SHArP, COMHPC 2016; NVLink SHARP";
constexpr std::string_view kHensgen = "Hensgen, Finkel & Manber, IJPP 17(1), 1988";
constexpr std::string_view kLu = "Lu, Collective Algorithms, 2026";
constexpr std::string_view kLesson = "collectives lesson, hierarchical all-reduce";
constexpr std::string_view kChapter = "ring and tree chapter, hierarchical algorithms";
constexpr std::string_view kTraff = "Traff, Non-pipelined Reduce-scatter and Allreduce, 2025";
constexpr std::string_view kTraffBlocks =
    "Traff, Optimal Broadcast Schedules, ACM TOPC 2025; MPICH 5";
constexpr std::string_view kBine = "De Sensi et al., Bine Trees, SC 2025";
constexpr std::string_view kFan = "Fan et al., ParLogNa and ParLinNa, HPDC 2025";
constexpr std::string_view kTori = "Traff, all-to-all in tori, arXiv:2605.29970, 2026";
constexpr std::string_view kTrivance = "Juerss, Addanki & Schmid, Trivance, 2026";
constexpr std::string_view kSwing = "De Sensi et al., Swing, NSDI 2024";
constexpr std::string_view kBae = "Bae & Bose, IEEE Trans. Computers 52(10), 2003";
constexpr std::string_view kBucket = "Jain & Sabharwal, ICS 2010";
constexpr std::string_view kSack = "Sack & Gropp, ACM TOPC 1(2), 2015";
constexpr std::string_view kLi = "Li, Hoefler & Snir, HPDC 2013";
constexpr std::string_view kJain = "Jain et al., SC 2018";
constexpr std::string_view kChen = "Chen et al., HPC Asia 2005; Open MPI";
constexpr std::string_view kLoch = "Loch & Koslovski, arXiv:2109.08751; Open MPI";
constexpr std::string_view kOpenMpi = "Open MPI 5, coll/base";
constexpr std::string_view kDpml = "Bayatpour et al., DPML, SC 2017";
constexpr std::string_view kKandalla = "Kandalla et al., multi-leader all-gather, CAC 2009";
constexpr std::string_view kDevraj = "Devraj et al., StragglAR, arXiv:2505.23523, 2025";
constexpr std::string_view kChenFailures = "Chen et al., OptCC, arXiv:2606.01680, 2026";
constexpr std::string_view kRougier = "Traff & Rougier, EuroMPI/ASIA 2014";
constexpr std::string_view kRecursiveExchange = "MPICH 4, recursive exchange (distance halving)";
constexpr std::string_view kMpich = "MPICH 4, tree algorithms (kary)";
constexpr std::string_view kBlelloch = "Blelloch, Prefix sums and their applications, 1990";
constexpr std::string_view kBrent = "Brent & Kung, IEEE Trans. Computers C-31(3), 1982";
constexpr std::string_view kHillis = "Hillis & Steele, CACM 29(12), 1986";
constexpr std::string_view kExscan = "Traff, exclusive prefix sums, arXiv:2507.04785, 2025";
constexpr std::string_view kFolklore = "folklore";

SharedRounds circulant(const Params& a) {
  return std::make_shared<const CirculantRounds>(a.ranks, resolved(a).skips);
}

std::string title(const Algorithm& entry) {
  return std::string(name_of(entry.collective)) + " '" + std::string(entry.name) + "'";
}

// The reason why a number is out of range for params.ranks ranks; nullopt if it is in range.
std::optional<std::string> outside(const Parameter& row, const Params& params) {
  const int value = row.count(params);
  const int first = row.has_default() ? std::max(1, row.least) : row.least;
  const int last = row.most_among != nullptr ? row.most_among(params.ranks) : row.most;
  if (value >= first && value <= last) return std::nullopt;
  return std::string(row.name) + " is " + std::to_string(value) + "; allowed are " +
         std::to_string(first) + " to " + std::to_string(last) +
         (row.has_default() ? ", and 0 for the default" : "");
}

// The reason why there are too many ranks: more blocks than can be counted (parameters.cc), or too
// many pairs of ranks for algorithms that visit all pairs when they are made. nullopt if there are
// not.
std::optional<std::string> too_many_blocks(const Algorithm& entry, const Params& params) {
  constexpr int kMostPaired = 1 << 14;
  constexpr std::int64_t kMostSegments = std::int64_t{1} << 28;
  const bool pairs = entry.collective == all_to_all || entry.name.ends_with("_push");
  if (pairs && params.ranks > kMostPaired) {
    return "ranks is " + std::to_string(params.ranks) + "; allowed are 1 to " +
           std::to_string(kMostPaired) + " for algorithms with blocks per pair of ranks";
  }
  if (entry.takes("segments") && std::int64_t{params.ranks} * params.segments > kMostSegments) {
    return "ranks is " + std::to_string(params.ranks) + ", segments is " +
           std::to_string(params.segments) + "; their product may be up to " +
           std::to_string(kMostSegments);
  }
  return std::nullopt;
}

int radix(const Params& a) { return resolved(a).radix; }

Leaders leaders_of(const Params& a) { return {a.ranks, resolved(a).levels}; }

Schedule star_from(int n, Rank root) { return rooted_at(root, direct_broadcast(n)); }

Tree levels_of(const Params& a) { return level_tree(a.ranks, a.root, resolved(a).levels); }

// Among equally expensive entries the first is chosen (engine/network/predict.h): add a new entry
// at the end of its collective, so that it changes a choice only if it is better.
// clang-format off
constinit const Algorithm kCatalogue[] = {
    {.collective = broadcast, .name = "chain", .make = [](const Params& a) { return chain_broadcast(a.ranks, a.root, a.segments); },
     .parameters = "segments", .rounds = "if(N-1,N+P-2,0)", .sent = kOne, .received = kOne, .send_ports = kOne, .receive_ports = kOne,
     .summary = "segments handed from neighbour to neighbour", .citation = kPatarasuk},
    {.collective = broadcast, .name = "binomial_near",
     .make = [](const Params& a) { return tree_broadcast(knomial_near(a.ranks, radix(a)), a.root, a.segments); },
     .parameters = "segments,radix", .rounds = kKnomialPipeline, .sent = kKnomial, .received = kOne, .send_ports = kKnomialPorts,
     .receive_ports = kOne,
     .summary = "every rank with the data sends to the rank 1, then 2, then 4 ... further on", .citation = kJohnsson},
    {.collective = broadcast, .name = "binomial_far",
     .make = [](const Params& a) { return tree_broadcast(knomial_far(a.ranks, radix(a)), a.root, a.segments); },
     .parameters = "segments,radix", .rounds = kKnomialPipeline, .sent = kKnomial, .received = kOne, .send_ports = kKnomialPorts,
     .receive_ports = kOne,
     .summary = "every rank with the data sends to the rank ... 4, then 2, then 1 further on", .citation = kJohnsson},
    {.collective = broadcast, .name = "binary_tree",
     .make = [](const Params& a) { return tree_broadcast(k_ary_tree(a.ranks, radix(a)), a.root, a.segments); },
     .parameters = "segments,radix", .rounds = "if(N-1,flog(K,(K-1)*(N-1)+1)+P-1,0)", .sent = "min(K,N-1)", .received = kOne,
     .send_ports = "min(K,N-1)", .receive_ports = kOne,
     .summary = "from every rank to both of its children at once", .citation = kLu},
    {.collective = broadcast, .name = "quaternary_tree",
     .make = [](const Params& a) { return tree_broadcast(k_ary_tree(a.ranks, 4), a.root, a.segments); },
     .parameters = "segments", .rounds = "if(N-1,floor(flog2(3*N-2)/2)+P-1,0)", .sent = "min(4,N-1)", .received = kOne,
     .send_ports = "min(4,N-1)", .receive_ports = kOne,
     .summary = "from every rank to all four of its children at once", .citation = kMpich},
    {.collective = broadcast, .name = "double_tree",
     .make = [](const Params& a) { return double_tree_broadcast(a.ranks, a.root, a.segments); },
     .parameters = "segments", .rounds = "if(N-1,flog2(N-1)+P,0)", .sent = kOne, .received = kOne, .send_ports = kTwo,
     .receive_ports = "if(or(P>1,1-pow2(N+1)),2,1)*min(1,N-1)",
     .summary = "two binary trees below the root, half of the vector down each", .citation = kSanders},
    {.collective = broadcast, .name = "two_tree", .make = [](const Params& a) { return two_tree_broadcast(a.ranks, a.root, a.segments); },
     .parameters = "segments", .rounds = "if(N-1,2*flog2(N-1)+max(pow2(N),pow2(N+1))+2*P-1,0)", .sent = kOne, .received = kOne,
     .send_ports = kOne, .receive_ports = kOne,
     .summary = "the double tree in two colours: one message in and one out per round", .citation = kSanders},
    {.collective = broadcast, .name = "scatter_all_gather",
     .make = [](const Params& a) { return scatter_all_gather_broadcast(a.ranks, a.root); },
     .rounds = "if(N-1,clog2(N)+N-1,0)", .sent = kTwoShares, .received = kOne, .send_ports = kOne, .receive_ports = kOne,
     .summary = "binomial scatter, then ring all-gather of the missing blocks", .citation = kBarnett},
    {.collective = broadcast, .name = "linear", .make = [](const Params& a) { return tree_broadcast(star(a.ranks), a.root, 1); },
     .rounds = "N-1", .sent = "N-1", .received = kOne, .send_ports = kOne, .receive_ports = kOne,
     .summary = "the root sends to one rank after the other", .citation = kFolklore},
    {.collective = broadcast, .name = "direct_two_shot",
     .make = [](const Params& a) { return direct_broadcast_two_shot(a.ranks, a.root); },
     .rounds = kTwo, .sent = kTwoShares, .received = kOne, .send_ports = "N-1", .receive_ports = "N-1",
     .summary = "every rank fetches one block, then sends it to all others", .citation = kFolklore},
    {.collective = broadcast, .name = "level_tree", .make = [](const Params& a) { return tree_broadcast(levels_of(a), 0, a.segments); },
     .parameters = "segments,levels", .rounds = "if(N-1,L+P-1,0)", .sent = kComputed, .received = kOne, .send_ports = kComputed,
     .receive_ports = kOne,
     .summary = "from leader to leader, a round per level of the machine", .citation = kJain},
    {.collective = broadcast, .name = "two_level",
     .make = [](const Params& a) { return two_level_broadcast(a.ranks, resolved(a).group, a.root); },
     .allowed_when = kEqualGroups, .needs = kEqualGroupsInWords, .parameters = "group", .rounds = "min(1,N-1)+(G>1)", .sent = "(N+G-2)/G",
     .received = kOne, .send_ports = "N-1", .receive_ports = "max(min(1,N-1),G-1)",
     .summary = "a part to each member of every group, then among the members", .citation = kLi},
    {.collective = broadcast, .name = "circulant", .make = [](const Params& a) { return circulant_broadcast(circulant(a), a.root); },
     .parameters = "skips", .rounds = "S", .sent = kComputed, .received = kOne, .send_ports = kOne, .receive_ports = kOne,
     .summary = "the circulant reduce reversed in time", .citation = kTraff},
    {.collective = broadcast, .name = "switch", .make = [](const Params& a) { return switch_broadcast(a.ranks, a.root); },
     .rounds = kOne, .sent = kOne, .received = kOne, .send_ports = kOne, .receive_ports = kOne,
     .summary = "one message that the switch copies to all ranks", .citation = kSharp},
    {.collective = broadcast, .name = "trivance", .make = [](const Params& a) { return trivance_broadcast(resolved(a).dims, a.root); },
     .parameters = "dims", .rounds = kLog3Rounds, .sent = kComputed, .received = kOne, .send_ports = kComputed,
     .receive_ports = kPortPerDimension,
     .summary = "the trivance all-gather's transfers of the root's blocks", .citation = kTrivance},
    {.collective = broadcast, .name = "circulant_pipelined",
     .make = [](const Params& a) { return broadcast_of(circulant_pipelined_all_gather(a.ranks, a.segments), a.root); },
     .parameters = "segments", .rounds = kBlockRounds, .sent = kRootBlocks, .received = kOne, .send_ports = kOne, .receive_ports = kOne,
     .summary = "n blocks in the fewest rounds, n - 1 + ceil(log2 N): a new block from the root in each", .citation = kTraffBlocks},
    {.collective = broadcast, .name = "bine", .make = [](const Params& a) { return tree_broadcast(bine(a.ranks), a.root, a.segments); },
     .parameters = "segments", .rounds = kBlockRounds, .sent = "clog2(N)", .received = kOne, .send_ports = "min(P,clog2(N))",
     .receive_ports = kOne,
     .summary = "to the mirror image in half of the ranks left: distances ... -5, 3, -1, 1", .citation = kBine},

    {.collective = kReduce, .name = "chain", .make = [](const Params& a) { return chain_reduce(a.ranks, a.root, a.segments); },
     .parameters = "segments", .rounds = "if(N-1,N+P-2,0)", .sent = kOne, .received = kOne, .send_ports = kOne, .receive_ports = kOne,
     .summary = "the chain broadcast reversed in time", .citation = kPatarasuk},
    {.collective = kReduce, .name = "binomial_near",
     .make = [](const Params& a) { return tree_reduce(knomial_near(a.ranks, radix(a)), a.root, a.segments); },
     .parameters = "segments,radix", .rounds = kKnomialPipeline, .sent = kOne, .received = kKnomial, .send_ports = kOne,
     .receive_ports = kKnomialPorts,
     .summary = "the near-first binomial broadcast reversed in time: distances ... 4, 2, 1", .citation = kJohnsson},
    {.collective = kReduce, .name = "binomial_far",
     .make = [](const Params& a) { return tree_reduce(knomial_far(a.ranks, radix(a)), a.root, a.segments); },
     .parameters = "segments,radix", .rounds = kKnomialPipeline, .sent = kOne, .received = kKnomial, .send_ports = kOne,
     .receive_ports = kKnomialPorts,
     .summary = "the far-first binomial broadcast reversed in time: distances 1, 2, 4 ...", .citation = kJohnsson},
    {.collective = kReduce, .name = "binary_tree",
     .make = [](const Params& a) { return tree_reduce(k_ary_tree(a.ranks, radix(a)), a.root, a.segments); },
     .parameters = "segments,radix", .rounds = "if(N-1,flog(K,(K-1)*(N-1)+1)+P-1,0)", .sent = kOne, .received = "min(K,N-1)",
     .send_ports = kOne, .receive_ports = "min(K,N-1)",
     .summary = "from both children at once to every rank", .citation = kLu},
    {.collective = kReduce, .name = "double_tree", .make = [](const Params& a) { return double_tree_reduce(a.ranks, a.root, a.segments); },
     .parameters = "segments", .rounds = "if(N-1,flog2(N-1)+P,0)", .sent = kOne, .received = kOne,
     .send_ports = "if(or(P>1,1-pow2(N+1)),2,1)*min(1,N-1)", .receive_ports = kTwo,
     .summary = "two binary trees below the root, half of the vector up each", .citation = kSanders},
    {.collective = kReduce, .name = "two_tree", .make = [](const Params& a) { return two_tree_reduce(a.ranks, a.root, a.segments); },
     .parameters = "segments", .rounds = "if(N-1,2*flog2(N-1)+max(pow2(N),pow2(N+1))+2*P-1,0)", .sent = kOne, .received = kOne,
     .send_ports = kOne, .receive_ports = kOne,
     .summary = "the double tree in two colours: one message in and one out per round", .citation = kSanders},
    {.collective = kReduce, .name = "reduce_scatter_gather",
     .make = [](const Params& a) { return reduce_scatter_gather_reduce(a.ranks, a.root); },
     .rounds = "if(N-1,clog2(N)+N-1,0)", .sent = kOne, .received = kTwoShares, .send_ports = kOne, .receive_ports = kOne,
     .summary = "scatter_all_gather reversed in time: ring reduce-scatter, then binomial gather", .citation = kBarnett},
    {.collective = kReduce, .name = "linear", .make = [](const Params& a) { return tree_reduce(star(a.ranks), a.root, 1); },
     .rounds = "N-1", .sent = kOne, .received = "N-1", .send_ports = kOne, .receive_ports = kOne,
     .summary = "the root receives from one rank after the other", .citation = kFolklore},
    {.collective = kReduce, .name = "direct_two_shot", .make = [](const Params& a) { return direct_reduce_two_shot(a.ranks, a.root); },
     .rounds = kTwo, .sent = kOne, .received = kTwoShares, .send_ports = "N-1", .receive_ports = "N-1",
     .summary = "every rank adds up one block, then sends it to the root", .citation = kFolklore},
    {.collective = kReduce, .name = "level_tree", .make = [](const Params& a) { return tree_reduce(levels_of(a), 0, a.segments); },
     .parameters = "segments,levels", .rounds = "if(N-1,L+P-1,0)", .sent = kOne, .received = kComputed, .send_ports = kOne,
     .receive_ports = kComputed,
     .summary = "the level_tree broadcast reversed in time", .citation = kJain},
    {.collective = kReduce, .name = "two_level",
     .make = [](const Params& a) { return two_level_reduce(a.ranks, resolved(a).group, a.root); },
     .allowed_when = kEqualGroups, .needs = kEqualGroupsInWords, .parameters = "group", .rounds = "min(1,N-1)+(G>1)", .sent = kOne,
     .received = "(N+G-2)/G", .send_ports = "max(min(1,N-1),G-1)", .receive_ports = "N-1",
     .summary = "the two_level broadcast reversed in time", .citation = kLi},
    {.collective = kReduce, .name = "circulant", .make = [](const Params& a) { return circulant_reduce(circulant(a), a.root); },
     .parameters = "skips", .rounds = "S", .sent = kOne, .received = kComputed, .send_ports = kOne, .receive_ports = kOne,
     .summary = "the circulant reduce-scatter with all of the vector in the root's block", .citation = kTraff},
    {.collective = kReduce, .name = "switch", .make = [](const Params& a) { return switch_reduce(a.ranks, a.root); },
     .rounds = kOne, .sent = kOne, .received = kOne, .send_ports = kOne, .receive_ports = kOne,
     .summary = "the switch adds all ranks' messages up on their way to the root", .citation = kSharp},
    {.collective = kReduce, .name = "trivance", .make = [](const Params& a) { return trivance_reduce(resolved(a).dims, a.root); },
     .parameters = "dims", .rounds = kLog3Rounds, .sent = kOne, .received = kComputed, .send_ports = kPortPerDimension,
     .receive_ports = kComputed,
     .summary = "the trivance broadcast reversed in time", .citation = kTrivance},
    {.collective = kReduce, .name = "circulant_pipelined",
     .make = [](const Params& a) { return reduce_of(circulant_pipelined_all_gather(a.ranks, a.segments), a.root); },
     .parameters = "segments", .rounds = kBlockRounds, .sent = kOne, .received = kRootBlocks, .send_ports = kOne, .receive_ports = kOne,
     .summary = "the circulant_pipelined broadcast reversed in time", .citation = kTraffBlocks},
    {.collective = kReduce, .name = "bine", .make = [](const Params& a) { return tree_reduce(bine(a.ranks), a.root, a.segments); },
     .parameters = "segments", .rounds = kBlockRounds, .sent = kOne, .received = "clog2(N)", .send_ports = kOne,
     .receive_ports = "min(P,clog2(N))",
     .summary = "the bine broadcast reversed in time", .citation = kBine},

    {.collective = all_reduce, .name = "ring", .make = [](const Params& a) { return ring_all_reduce(a.ranks); },
     .rounds = "2*(N-1)", .sent = kTwoShares, .received = kTwoShares, .send_ports = kOne, .receive_ports = kOne,
     .summary = "ring reduce-scatter, then ring all-gather", .citation = kPatarasuk},
    {.collective = all_reduce, .name = "ring_mirrored", .make = [](const Params& a) { return ring_mirrored_all_reduce(a.ranks); },
     .rounds = "2*(N-1)", .sent = kTwoShares, .received = kTwoShares, .send_ports = kTwo, .receive_ports = kTwo,
     .summary = "two rings in opposite directions, half of every block round each", .citation = kPatarasuk},
    {.collective = all_reduce, .name = "ring_shortest", .make = [](const Params& a) { return ring_shortest_all_reduce(a.ranks); },
     .rounds = "2*floor(N/2)", .sent = kTwoShares, .received = kTwoShares, .send_ports = kTwo, .receive_ports = kTwo,
     .summary = "both directions of the ring, every block the shorter way", .citation = kPatarasuk},
    {.collective = all_reduce, .name = "chain", .make = [](const Params& a) { return chain_all_reduce(a.ranks, a.segments); },
     .parameters = "segments", .rounds = "if(N-1,2*(N+P-2),0)", .sent = "min(2,N-1)", .received = "min(2,N-1)", .send_ports = kOne,
     .receive_ports = kOne,
     .summary = "chain reduce to rank 0, then chain broadcast: a baseline", .citation = kLu},
    {.collective = all_reduce, .name = "binomial_near",
     .make = [](const Params& a) { return tree_reduce_then_broadcast(knomial_near(a.ranks, radix(a)), a.segments); },
     .parameters = "segments,radix", .rounds = "if(N-1,2*(clog(K,N)+P-1),0)", .sent = kKnomial, .received = kKnomial,
     .send_ports = kKnomialPorts, .receive_ports = kKnomialPorts,
     .summary = "near-first binomial tree, up to rank 0 and down again: a baseline", .citation = kLu},
    {.collective = all_reduce, .name = "binomial_far",
     .make = [](const Params& a) { return tree_reduce_then_broadcast(knomial_far(a.ranks, radix(a)), a.segments); },
     .parameters = "segments,radix", .rounds = "if(N-1,2*(clog(K,N)+P-1),0)", .sent = kKnomial, .received = kKnomial,
     .send_ports = kKnomialPorts, .receive_ports = kKnomialPorts,
     .summary = "far-first binomial tree, up to rank 0 and down again: a baseline", .citation = kChapter},
    {.collective = all_reduce, .name = "binary_tree",
     .make = [](const Params& a) { return tree_all_reduce(k_ary_tree(a.ranks, radix(a)), a.segments); },
     .parameters = "segments,radix", .rounds = "if(N-1,2*flog(K,(K-1)*(N-1)+1)+P-1,0)", .sent = kUpAndDown, .received = kUpAndDown,
     .send_ports = kUpAndDownPorts, .receive_ports = kUpAndDownPorts,
     .summary = "up one binary tree and down again, segments meeting on the way", .citation = kLu},
    {.collective = all_reduce, .name = "double_tree", .make = [](const Params& a) { return double_tree_all_reduce(a.ranks, a.segments); },
     .parameters = "segments", .rounds = "if(N-1,2*flog2(N)+P-1,0)", .sent = "if(N>=5,2,if(N>=3,3/2,N-1))",
     .received = "if(N>=5,2,if(N>=3,3/2,N-1))", .send_ports = kPortsOfDoubleTree, .receive_ports = kPortsOfDoubleTree,
     .summary = "half of the vector up and down each of two trees, no rank interior in both", .citation = kSanders},
    {.collective = all_reduce, .name = "double_tree_nccl",
     .make = [](const Params& a) { return nccl_double_tree_all_reduce(a.ranks, a.segments); },
     .parameters = "segments", .rounds = "if(N-1,2*(clog2(N)+P-1),0)", .sent = "if(N>=4,2,if(N-1,N/2,0))",
     .received = "if(N>=4,2,if(N-1,N/2,0))", .send_ports = "if(N>=4,2,if(N>=3,min(2,P),N-1))",
     .receive_ports = "if(N>=4,2,if(N>=3,min(2,P),N-1))",
     .summary = "NCCL's two trees, half of the vector up each, then down", .citation = kNccl},
    {.collective = all_reduce, .name = "two_tree", .make = [](const Params& a) { return two_tree_all_reduce(a.ranks, a.segments); },
     .parameters = "segments", .rounds = "if(N-1,2*(2*flog2(N-1)+max(pow2(N),pow2(N+1))+2*P-1),0)", .sent = "if(N>=4,2,if(N-1,N/2,0))",
     .received = "if(N>=4,2,if(N-1,N/2,0))", .send_ports = kOne, .receive_ports = kOne,
     .summary = "the double tree in two colours: one message in and one out per round", .citation = kSanders},
    {.collective = all_reduce, .name = "recursive_doubling",
     .make = [](const Params& a) { return recursive_doubling_all_reduce(a.ranks, radix(a)); },
     .parameters = "radix", .rounds = kFoldedRounds, .sent = kFoldedVectors, .received = kFoldedVectors, .send_ports = kRadixPorts,
     .receive_ports = kRadixPorts,
     .summary = "partners at distance 2^k exchange everything; surplus ranks folded", .citation = kThakur},
    {.collective = all_reduce, .name = "halving_doubling",
     .make = [](const Params& a) { return halving_doubling_all_reduce(a.ranks, radix(a)); },
     .parameters = "radix", .rounds = kTwiceFoldedRounds, .sent = kFoldedShares, .received = kFoldedShares, .send_ports = kRadixPorts,
     .receive_ports = kRadixPorts,
     .summary = "halve between partners at distance 1, 2, 4 ..., then double; surplus ranks folded", .citation = kRabenseifner},
    {.collective = all_reduce, .name = "halving_doubling_far",
     .make = [](const Params& a) { return halving_doubling_far_all_reduce(a.ranks, radix(a)); },
     .parameters = "radix", .rounds = kTwiceFoldedRounds, .sent = kFoldedShares, .received = kFoldedShares, .send_ports = kRadixPorts,
     .receive_ports = kRadixPorts,
     .summary = "halve between partners at distance ... 4, 2, 1, then double; surplus ranks folded", .citation = kThakur},
    {.collective = all_reduce, .name = "halving_doubling_half_exchange",
     .make = [](const Params& a) { return halving_doubling_half_exchange_all_reduce(a.ranks); },
     .rounds = "2*flog2(N)+3*(Q<N)", .sent = "2*(Q-1)/Q+3/2*(Q<N)", .received = "2*(Q-1)/Q+(Q<N)", .send_ports = kOne,
     .receive_ports = kOne,
     .summary = "halving and doubling; a surplus rank and its partner first add up one half each", .citation = kRabenseifner},
    {.collective = all_reduce, .name = "direct_one_shot", .make = [](const Params& a) { return direct_all_reduce_one_shot(a.ranks); },
     .rounds = kOne, .sent = "N-1", .received = "N-1", .send_ports = "N-1", .receive_ports = "N-1",
     .summary = "every rank reads all vectors and adds them up", .citation = kFolklore},
    {.collective = all_reduce, .name = "direct_two_shot", .make = [](const Params& a) { return direct_all_reduce_two_shot(a.ranks); },
     .rounds = kTwo, .sent = kTwoShares, .received = kTwoShares, .send_ports = "N-1", .receive_ports = "N-1",
     .summary = "every rank adds up one block, then sends it to all", .citation = kFolklore},
    {.collective = all_reduce, .name = "direct_one_shot_push",
     .make = [](const Params& a) { return direct_all_reduce_one_shot_push(a.ranks); },
     .rounds = kOne, .sent = "N-1", .received = "N-1", .send_ports = "N-1", .receive_ports = "N-1",
     .summary = "every rank stores its vector beside every other rank's, and each adds them up", .citation = kFolklore},
    {.collective = all_reduce, .name = "direct_two_shot_push",
     .make = [](const Params& a) { return direct_all_reduce_two_shot_push(a.ranks); },
     .rounds = kTwo, .sent = kTwoShares, .received = kTwoShares, .send_ports = "N-1", .receive_ports = "N-1",
     .summary = "every rank stores its parts at their owners; owners add up and send to all", .citation = kFolklore},
    {.collective = all_reduce, .name = "central", .make = [](const Params& a) { return central_all_reduce(a.ranks); },
     .rounds = kTwo, .sent = "N-1", .received = "N-1", .send_ports = "N-1", .receive_ports = "N-1",
     .summary = "all vectors to rank 0, the sum back to all: the naive baseline", .citation = kLesson},
    {.collective = all_reduce, .name = "hierarchical",
     .make = [](const Params& a) { return hierarchical_all_reduce(a.ranks, resolved(a).group, a.segments); },
     .parameters = "segments,group", .rounds = "2*if(G>1,G+P-2,0)+2*(ceil(N/G)-1)", .sent = "max(min(2,G-1),min(1,G-1)+2*(1-1/ceil(N/G)))",
     .received = "max(min(2,G-1),min(1,G-1)+2*(1-1/ceil(N/G)))", .send_ports = kOne, .receive_ports = kOne,
     .summary = "reduce in groups of G, ring among their first ranks, broadcast in groups", .citation = kLesson},
    {.collective = all_reduce, .name = "ring_2d", .make = [](const Params& a) { return ring_2d_all_reduce(a.ranks, resolved(a).group); },
     .allowed_when = kEqualGroups, .needs = kEqualGroupsInWords, .parameters = "group", .rounds = "2*(G-1)+2*(N/G-1)", .sent = kTwoShares,
     .received = kTwoShares, .send_ports = kOne, .receive_ports = kOne,
     .summary = "rings of G reduce-scatter, rings across all-reduce, rings of G all-gather", .citation = kChapter},
    {.collective = all_reduce, .name = "ring_tree",
     .make = [](const Params& a) { return ring_tree_all_reduce(a.ranks, resolved(a).group, a.segments); },
     .allowed_when = kEqualGroups, .needs = kEqualGroupsInWords, .parameters = "segments,group",
     .rounds = "2*(G-1)+if(N>G,2*flog2(N/G)+P-1,0)", .sent = "2*(G-1)/G+if(N/G>=5,3,min(2,N/G-1))/G",
     .received = "2*(G-1)/G+if(N/G>=5,3,min(2,N/G-1))/G", .send_ports = "max(min(1,G-1),if(and(N/G>=5,P>=3),3,min(2,N/G-1)))",
     .receive_ports = "max(min(1,G-1),if(and(N/G>=5,P>=3),3,min(2,N/G-1)))",
     .summary = "rings of G reduce-scatter, binary trees across all-reduce, rings of G all-gather", .citation = kChapter},
    {.collective = all_reduce, .name = "two_level",
     .make = [](const Params& a) { return two_level_all_reduce(a.ranks, resolved(a).group); },
     .parameters = "group", .rounds = kTwoLevelAllReduceRounds, .sent = kHoldersAndShare, .received = kHoldersAndShare,
     .send_ports = kMemberPorts, .receive_ports = kMemberPorts,
     .summary = "sums of groups cross once and results cross once, every member its part", .citation = kLi},
    {.collective = all_reduce, .name = "leaders", .make = [](const Params& a) { return leaders_all_reduce(a.ranks, resolved(a).group); },
     .parameters = "group", .rounds = "2*(G>1)+(N>G)", .sent = "if(N-1,ceil(N/G)+G-2,0)", .received = "if(N-1,ceil(N/G)+G-2,0)",
     .send_ports = kHolderPorts, .receive_ports = kHolderPorts,
     .summary = "to the leaders of groups of G, among all leaders at once, and back", .citation = kLi},
    {.collective = all_reduce, .name = "level_tree", .make = [](const Params& a) { return tree_all_reduce(levels_of(a), 1); },
     .parameters = "levels", .rounds = "2*L", .sent = kComputed, .received = kComputed, .send_ports = kComputed,
     .receive_ports = kComputed,
     .summary = "up from leader to leader, a round per level of the machine, and down again", .citation = kJain},
    {.collective = all_reduce, .name = "circulant", .make = [](const Params& a) { return circulant_all_reduce(circulant(a)); },
     .parameters = "skips", .rounds = "2*S", .sent = kTwoShares, .received = kTwoShares, .send_ports = kOne, .receive_ports = kOne,
     .summary = "circulant reduce-scatter, then all-gather: the fewest rounds and blocks for any N", .citation = kTraff},
    {.collective = all_reduce, .name = "recursive_doubling_pipelined",
     .make = [](const Params& a) { return pipelined_doubling_all_reduce(a.ranks, a.segments); },
     .parameters = "segments", .rounds = kDoublingRounds, .sent = "flog2(N)+1-pow2(N)", .received = "flog2(N)+1-pow2(N)",
     .send_ports = kDoublingPorts, .receive_ports = kDoublingPorts,
     .summary = "recursive doubling of segments in flight, each with another partner", .citation = kLu},
    {.collective = all_reduce, .name = "halving_doubling_pipelined",
     .make = [](const Params& a) { return pipelined_halving_doubling_all_reduce(a.ranks, a.segments); },
     .parameters = "segments", .rounds = "if(N-1,2*flog2(N)+2*(1-pow2(N))+P-1,0)", .sent = "2*(Q-1)/Q+1-pow2(N)",
     .received = "2*(Q-1)/Q+1-pow2(N)", .send_ports = "min(P,2*flog2(N)+1-pow2(N))", .receive_ports = "min(P,2*flog2(N)+1-pow2(N))",
     .summary = "halving and doubling of segments in flight, each with another partner", .citation = kLu},
    {.collective = all_reduce, .name = "hamiltonian", .make = [](const Params& a) { return hamiltonian_all_reduce(resolved(a).dims); },
     .parameters = "dims", .rounds = "2*(N-1)", .sent = kTwoShares, .received = kTwoShares, .send_ports = kTwo, .receive_ports = kTwo,
     .summary = "ring both ways along a Hamiltonian cycle of the torus", .citation = kPatarasuk},
    {.collective = all_reduce, .name = "bucket", .make = [](const Params& a) { return bucket_all_reduce(resolved(a).dims); },
     .parameters = "dims", .rounds = "2*D*most(a-1)", .sent = kTwoShares, .received = kTwoShares, .send_ports = kBucketPorts,
     .receive_ports = kBucketPorts,
     .summary = "rings along one dimension after the other, 2D of them side by side", .citation = kBucket},
    {.collective = all_reduce, .name = "torus_doubling",
     .make = [](const Params& a) { return torus_doubling_all_reduce(resolved(a).dims); },
     .parameters = "dims", .rounds = kTwiceDoublingLineRounds, .sent = kDoublingShares, .received = kDoublingShares,
     .send_ports = kAllPorts, .receive_ports = kAllPorts,
     .summary = "halving and doubling, dimensions in turn, 2D of them side by side", .citation = kSack},
    {.collective = all_reduce, .name = "torus_doubling_latency",
     .make = [](const Params& a) { return torus_doubling_latency_all_reduce(resolved(a).dims); },
     .parameters = "dims", .rounds = kExchangeRounds, .sent = kExchanges, .received = kExchanges, .send_ports = kOne,
     .receive_ports = kOne,
     .summary = "recursive doubling of whole vectors along the dimensions in turn", .citation = kSack},
    {.collective = all_reduce, .name = "swing", .make = [](const Params& a) { return swing_all_reduce(resolved(a).dims); },
     .parameters = "dims", .rounds = kTwiceSwingRounds, .sent = kSwingShares, .received = kSwingShares, .send_ports = kAllPorts,
     .receive_ports = kAllPorts,
     .summary = "Swing: partners at 1, -1, 3, -5 ...; halving and doubling, 2D side by side", .citation = kSwing},
    {.collective = all_reduce, .name = "swing_latency", .make = [](const Params& a) { return swing_latency_all_reduce(resolved(a).dims); },
     .parameters = "dims", .rounds = kExchangeRounds, .sent = kExchanges, .received = kExchanges, .send_ports = kOne,
     .receive_ports = kOne,
     .summary = "Swing with whole vectors along the dimensions in turn", .citation = kSwing, .other_bits = kOwnBrackets},
    {.collective = all_reduce, .name = "bruck_ternary", .make = [](const Params& a) { return bruck_ternary_all_reduce(resolved(a).dims); },
     .parameters = "dims", .rounds = kTwiceLog3Rounds, .sent = kTwoShares, .received = kTwoShares, .send_ports = kTwoPerDimension,
     .receive_ports = kTwoPerDimension,
     .summary = "partners at 3^k and 2 3^k on one side; D of them side by side", .citation = kBruck},
    {.collective = all_reduce, .name = "bruck_ternary_latency",
     .make = [](const Params& a) { return bruck_ternary_latency_all_reduce(resolved(a).dims); },
     .parameters = "dims", .rounds = kLog3Rounds, .sent = kBruckSums, .received = kBruckSums, .send_ports = kComputed,
     .receive_ports = kComputed,
     .summary = "whole vectors from 3^k and 2 3^k on one side; D of them side by side", .citation = kBruck, .other_bits = kOwnBrackets},
    {.collective = all_reduce, .name = "trivance", .make = [](const Params& a) { return trivance_all_reduce(resolved(a).dims); },
     .parameters = "dims", .rounds = kTwiceLog3Rounds, .sent = kTwoShares, .received = kTwoShares, .send_ports = kComputed,
     .receive_ports = kComputed,
     .summary = "partners at 3^k on both sides; D of them side by side", .citation = kTrivance},
    {.collective = all_reduce, .name = "trivance_latency",
     .make = [](const Params& a) { return trivance_latency_all_reduce(resolved(a).dims); },
     .parameters = "dims", .rounds = kLog3Rounds, .sent = kComputed, .received = kComputed, .send_ports = kComputed,
     .receive_ports = kComputed,
     .summary = "whole vectors from 3^k on both sides; D of them side by side", .citation = kTrivance, .other_bits = kOwnBrackets},
    {.collective = all_reduce, .name = "switch", .make = [](const Params& a) { return switch_all_reduce(a.ranks); },
     .rounds = kOne, .sent = kOne, .received = kOne, .send_ports = kOne, .receive_ports = kOne,
     .summary = "the switch adds all ranks' messages up and copies the sum to all ranks", .citation = kSharp},
    {.collective = all_reduce, .name = "binomial_multicast", .make = [](const Params& a) { return tree_reduce_then_multicast(a.ranks); },
     .rounds = "if(N-1,clog2(N)+1,0)", .sent = kOne, .received = "clog2(N)", .send_ports = kOne, .receive_ports = kOne,
     .summary = "far-first binomial tree up to rank 0; the switch copies the sum to all ranks", .citation = kLu},
    {.collective = all_reduce, .name = "double_tree_nccl_split",
     .make = [](const Params& a) { return nccl_split_tree_all_reduce(a.ranks, a.segments); },
     .parameters = "segments", .rounds = "if(N-1,2*clog2(N)+P-1,0)", .sent = "if(N>=4,2,if(N-1,N/2,0))",
     .received = "if(N>=4,2,if(N-1,N/2,0))", .send_ports = kComputed, .receive_ports = kComputed,
     .summary = "NCCL's two trees, segments on their way down meeting those on their way up", .citation = kNccl},
    {.collective = all_reduce, .name = "level_exchange",
     .make = [](const Params& a) { return level_exchange_all_reduce(a.ranks, resolved(a).levels); },
     .allowed_when = kNested, .needs = kNestedInWords, .parameters = "levels", .rounds = "2*L", .sent = kTwoShares, .received = kTwoShares,
     .send_ports = kComputed, .receive_ports = kComputed,
     .summary = "direct exchanges level by level, the innermost first, and back", .citation = kRougier},
    {.collective = all_reduce, .name = "trivance_powers",
     .make = [](const Params& a) { return trivance_powers_all_reduce(resolved(a).dims); },
     .parameters = "dims", .rounds = kTwiceLog3Rounds, .sent = kTwoShares, .received = kTwoShares, .send_ports = kTwoPerDimension,
     .receive_ports = kTwoPerDimension,
     .summary = "trivance at distances 3^k whatever the sizes; D of them side by side", .citation = kTrivance},
    {.collective = all_reduce, .name = "halving_doubling_ghosts",
     .make = [](const Params& a) { return halving_doubling_ghosts_all_reduce(a.ranks); },
     .rounds = "2*clog2(N)", .sent = kGhostShares, .received = kGhostShares, .send_ports = kGhostPorts, .receive_ports = kGhostPorts,
     .summary = "recursive halving, then doubling, padded to 2^k with ghosts that other ranks play", .citation = kThakur},
    {.collective = all_reduce, .name = "hamiltonian_disjoint",
     .make = [](const Params& a) { return hamiltonian_disjoint_all_reduce(resolved(a).dims); },
     .allowed_when = kCycles, .needs = kCyclesInWords, .parameters = "dims", .rounds = "2*(N-1)", .sent = kTwoShares,
     .received = kTwoShares, .send_ports = kAllPorts, .receive_ports = kAllPorts,
     .summary = "rings both ways along Hamiltonian cycles that share no link: all ports of the torus", .citation = kBae},
    {.collective = all_reduce, .name = "trivance_cross",
     .make = [](const Params& a) { return trivance_cross_all_reduce(resolved(a).dims); },
     .allowed_when = kCross, .needs = kCrossInWords, .parameters = "dims", .rounds = "2*D*clog(2*D+1,most(a))", .sent = kTwoShares,
     .received = kTwoShares, .send_ports = kCrossPorts, .receive_ports = kCrossPorts,
     .summary = "trivance on all 2D ports at once, partners on crosses", .citation = kTrivance},
    {.collective = all_reduce, .name = "trivance_cross_latency",
     .make = [](const Params& a) { return trivance_cross_latency_all_reduce(resolved(a).dims); },
     .allowed_when = kCross, .needs = kCrossInWords, .parameters = "dims", .rounds = kCrossRounds, .sent = kComputed,
     .received = kComputed, .send_ports = kCrossPorts, .receive_ports = kCrossPorts,
     .summary = "whole vectors from all 2D ends of crosses; a line as in trivance_latency", .citation = kTrivance,
     .other_bits = kOwnBrackets},
    {.collective = all_reduce, .name = "circulant_pipelined",
     .make = [](const Params& a) { return reduce_scatter_then(circulant_pipelined_all_gather(a.ranks, a.segments)); },
     .parameters = "segments", .rounds = "if(N-1,2*(clog2(N)+P-1),0)", .sent = kTwoShares, .received = kTwoShares, .send_ports = kOne,
     .receive_ports = kOne,
     .summary = "circulant_pipelined reduce-scatter, then all-gather: n blocks of each rank's part", .citation = kTraffBlocks},
    {.collective = all_reduce, .name = "bine", .make = [](const Params& a) { return bine_all_reduce(a.ranks); },
     .rounds = kTwiceSwingRounds, .sent = kSwingShares, .received = kSwingShares, .send_ports = kOne, .receive_ports = kOne,
     .summary = "halve between partners at 1, -1, 3, -5 ..., then double; an odd rank is folded", .citation = kBine},
    {.collective = all_reduce, .name = "recursive_multiplying",
     .make = [](const Params& a) { return recursive_multiplying_all_reduce(a.ranks, resolved(a).levels); },
     .allowed_when = kNested, .needs = kNestedInWords, .parameters = "levels", .rounds = "L", .sent = kComputed, .received = kComputed,
     .send_ports = kComputed, .receive_ports = kComputed,
     .summary = "whole vectors among the ranks at one position, level by level, the innermost first",
     .citation = "Ruefenacht, Bull & Booth, Parallel Computing 69, 2017"},
    {.collective = all_reduce, .name = "multi_leader",
     .make = [](const Params& a) {
       const Leaders leaders = leaders_of(a);
       return multi_leader_all_reduce(leaders, star_from, recursive_doubling_all_reduce(leaders.groups()));
     },
     .allowed_when = kLeadersAndGroups, .needs = kLeadersAndGroupsInWords, .parameters = "levels",
     .rounds = "2*(outermost>1)+flog2(N/outermost)+2*(1-pow2(N/outermost))",
     .sent = "(leaders+outermost-2+flog2(N/outermost)+1-pow2(N/outermost))/leaders",
     .received = "(leaders+outermost-2+flog2(N/outermost)+1-pow2(N/outermost))/leaders", .send_ports = kLeaderPorts,
     .receive_ports = kLeaderPorts,
     .summary = "parts to the leaders of a group, recursive doubling among the leaders of each part, back", .citation = kDpml},
    {.collective = all_reduce, .name = "multi_leader_ring",
     .make = [](const Params& a) {
       const Leaders leaders = leaders_of(a);
       return multi_leader_all_reduce(leaders, star_from, ring_all_reduce(leaders.groups()));
     },
     .allowed_when = kLeadersAndGroups, .needs = kLeadersAndGroupsInWords, .parameters = "levels",
     .rounds = "2*(outermost>1)+2*(N/outermost-1)", .sent = "(leaders+outermost-2*outermost/N)/leaders",
     .received = "(leaders+outermost-2*outermost/N)/leaders", .send_ports = kLeaderPorts, .receive_ports = kLeaderPorts,
     .summary = "parts to the leaders of a group, a ring of the leaders of each part, and back", .citation = kDpml},
    {.collective = all_reduce, .name = "multi_leader_binomial",
     .make = [](const Params& a) {
       const Leaders leaders = leaders_of(a);
       const auto tree = [](int n, Rank root) { return tree_broadcast(binomial_far(n), root, 1); };
       return multi_leader_all_reduce(leaders, tree, halving_doubling_all_reduce(leaders.groups()));
     },
     .allowed_when = kLeadersAndGroups, .needs = kLeadersAndGroupsInWords, .parameters = "levels",
     .rounds = "2*clog2(outermost)+2*flog2(N/outermost)+2*(1-pow2(N/outermost))", .sent = kComputed, .received = kComputed,
     .send_ports = kComputed, .receive_ports = kComputed,
     .summary = "parts up binomial trees to their leaders, halving-doubling across, and down", .citation = kDpml},
    {.collective = all_reduce, .name = "stragglar", .make = [](const Params& a) { return stragglar_all_reduce(a.ranks); },
     .allowed_when = "or(256>=N,and(pow2(N),16384>=N))",
     .needs = "the number of ranks must be up to 256, or a power of two up to 16384", .rounds = kComputed, .sent = kComputed,
     .received = kOfOneStraggler, .send_ports = kOne, .receive_ports = kOne,
     .summary = "reduce-scatter until the last rank arrives; it adds block by block while these spread",
     .citation = kDevraj},
    {.collective = all_reduce, .name = "optcc", .make = [](const Params& a) { return optcc_all_reduce(a.ranks, a.root, a.segments); },
     .parameters = "segments,root", .rounds = "if(N-1,(P+1)*(2*N-3),0)", .sent = kOfOneStraggler, .received = kOfOneStraggler,
     .send_ports = kOne, .receive_ports = kOne,
     .summary = "a ring of all but a slow rank, the root, which exchanges each block with its owner", .citation = kChenFailures},
    {.collective = all_reduce, .name = "bucket_short",
     .make = [](const Params& a) { return bucket_all_reduce(resolved(a).dims, Turns::whole); },
     .parameters = "dims", .rounds = "2*((D-1)*next(a-1)+most(a-1))", .sent = kTwoShares, .received = kTwoShares, .send_ports = kAllPorts,
     .receive_ports = kAllPorts,
     .summary = "bucket in fewer rounds on uneven tori, where collectives meet in the largest dimension", .citation = kBucket},

    {.collective = all_gather, .name = "ring", .make = [](const Params& a) { return ring_all_gather(a.ranks); },
     .rounds = "N-1", .sent = kShare, .received = kShare, .send_ports = kOne, .receive_ports = kOne,
     .summary = "every rank passes a block to the right", .citation = kPatarasuk},
    {.collective = all_gather, .name = "ring_mirrored", .make = [](const Params& a) { return ring_mirrored_all_gather(a.ranks); },
     .rounds = "N-1", .sent = kShare, .received = kShare, .send_ports = kTwo, .receive_ports = kTwo,
     .summary = "two rings in opposite directions, half of every block round each", .citation = kPatarasuk},
    {.collective = all_gather, .name = "ring_shortest", .make = [](const Params& a) { return ring_shortest_all_gather(a.ranks); },
     .rounds = "floor(N/2)", .sent = kShare, .received = kShare, .send_ports = kTwo, .receive_ports = kTwo,
     .summary = "both directions of the ring, every block the shorter way", .citation = kPatarasuk},
    {.collective = all_gather, .name = "recursive_doubling",
     .make = [](const Params& a) { return recursive_doubling_all_gather(a.ranks, radix(a)); },
     .parameters = "radix", .rounds = kFoldedRounds, .sent = kFoldedGather, .received = kShare, .send_ports = kRadixPorts,
     .receive_ports = kRadixPorts,
     .summary = "partners at distance 1, 2, 4 ... exchange all they have; surplus ranks folded", .citation = kThakur},
    {.collective = all_gather, .name = "bruck", .make = [](const Params& a) { return bruck_all_gather(a.ranks, radix(a)); },
     .parameters = "radix", .rounds = kKnomialRounds, .sent = kShare, .received = kShare, .send_ports = kRadixPorts,
     .receive_ports = kRadixPorts,
     .summary = "all blocks of a rank, up to the missing ones, to the rank 2^k to the left", .citation = kBruck},
    {.collective = all_gather, .name = "pat", .make = [](const Params& a) { return pat_all_gather(a.ranks, resolved(a).aggregation); },
     .allowed_when = kAggregation, .needs = kAggregationInWords, .parameters = "aggregation",
     .rounds = "flog2(A)+min(N,pow(2,clog2(N))/A)-1", .sent = kShare, .received = kShare, .send_ports = kOne, .receive_ports = kOne,
     .summary = "a binomial tree for every block, far first, at most A blocks per message", .citation = kPat},
    {.collective = all_gather, .name = "direct", .make = [](const Params& a) { return direct_all_gather(a.ranks); },
     .rounds = kOne, .sent = kShare, .received = kShare, .send_ports = "N-1", .receive_ports = "N-1",
     .summary = "all ranks to all ranks at once", .citation = kFolklore},
    {.collective = all_gather, .name = "two_level",
     .make = [](const Params& a) { return two_level_all_gather(a.ranks, resolved(a).group); },
     .parameters = "group", .rounds = kTwoLevelRounds, .sent = kHolders, .received = kShare, .send_ports = kHolderPorts,
     .receive_ports = kMemberPorts,
     .summary = "every block once into every group, then among its members", .citation = kLi},
    {.collective = all_gather, .name = "circulant", .make = [](const Params& a) { return circulant_all_gather(circulant(a)); },
     .parameters = "skips", .rounds = "S", .sent = kShare, .received = kShare, .send_ports = kOne, .receive_ports = kOne,
     .summary = "the circulant reduce-scatter reversed in time", .citation = kTraff},
    {.collective = all_gather, .name = "recursive_doubling_pipelined",
     .make = [](const Params& a) { return pipelined_doubling_all_gather(a.ranks, a.segments); },
     .parameters = "segments", .rounds = kDoublingRounds,
     .sent = "if(pow2(N),N-1,N+Q-3+2*pow(2,flog2(N-Q))+(N-Q)*(flog2(N)-1-flog2(N-Q)))/N", .received = kShare, .send_ports = kDoublingPorts,
     .receive_ports = kDoublingPorts,
     .summary = "recursive doubling of segments in flight, each with another partner", .citation = kLu},
    {.collective = all_gather, .name = "hamiltonian", .make = [](const Params& a) { return hamiltonian_all_gather(resolved(a).dims); },
     .parameters = "dims", .rounds = "N-1", .sent = kShare, .received = kShare, .send_ports = kTwo, .receive_ports = kTwo,
     .summary = "ring both ways along a Hamiltonian cycle of the torus", .citation = kPatarasuk},
    {.collective = all_gather, .name = "bucket", .make = [](const Params& a) { return bucket_all_gather(resolved(a).dims); },
     .parameters = "dims", .rounds = "D*most(a-1)", .sent = kShare, .received = kShare, .send_ports = kBucketPorts,
     .receive_ports = kBucketPorts,
     .summary = "rings along one dimension after the other, 2D of them side by side", .citation = kBucket},
    {.collective = all_gather, .name = "torus_doubling",
     .make = [](const Params& a) { return torus_doubling_all_gather(resolved(a).dims); },
     .parameters = "dims", .rounds = kDoublingLineRounds, .sent = kComputed, .received = kShare, .send_ports = kAllPorts,
     .receive_ports = kAllPorts,
     .summary = "doubling, farthest first, dimensions in turn, 2D of them side by side", .citation = kSack},
    {.collective = all_gather, .name = "swing", .make = [](const Params& a) { return swing_all_gather(resolved(a).dims); },
     .parameters = "dims", .rounds = kSwingRounds, .sent = kComputed, .received = kShare, .send_ports = kAllPorts,
     .receive_ports = kAllPorts,
     .summary = "Swing: partners at ... -5, 3, -1, 1; 2D of them side by side", .citation = kSwing},
    {.collective = all_gather, .name = "bruck_ternary", .make = [](const Params& a) { return bruck_ternary_all_gather(resolved(a).dims); },
     .parameters = "dims", .rounds = kLog3Rounds, .sent = kShare, .received = kShare, .send_ports = kTwoPerDimension,
     .receive_ports = kTwoPerDimension,
     .summary = "to the ranks 3^k and 2 3^k further on, farthest first; D side by side", .citation = kBruck},
    {.collective = all_gather, .name = "trivance", .make = [](const Params& a) { return trivance_all_gather(resolved(a).dims); },
     .parameters = "dims", .rounds = kLog3Rounds, .sent = kShare, .received = kShare, .send_ports = kComputed, .receive_ports = kComputed,
     .summary = "to the ranks 3^k to both sides, farthest first; D side by side", .citation = kTrivance},
    {.collective = all_gather, .name = "switch", .make = [](const Params& a) { return switch_all_gather(a.ranks); },
     .rounds = kOne, .sent = "min(1,N-1)/N", .received = kShare, .send_ports = kOne, .receive_ports = "N-1",
     .summary = "every rank's message copied to all ranks by the switch", .citation = kSharp},
    {.collective = all_gather, .name = "recursive_doubling_far",
     .make = [](const Params& a) { return recursive_doubling_far_all_gather(a.ranks, radix(a)); },
     .parameters = "radix", .rounds = kFoldedRounds, .sent = kFoldedFarGather, .received = kShare, .send_ports = kRadixPorts,
     .receive_ports = kRadixPorts,
     .summary = "partners at distance ... 4, 2, 1 exchange all they have; surplus ranks folded", .citation = kRecursiveExchange},
    {.collective = all_gather, .name = "neighbour_exchange",
     .make = [](const Params& a) { return neighbour_exchange_all_gather(a.ranks); },
     .rounds = "if(divides(2,N),N/2,N-1)", .sent = kShare, .received = kShare, .send_ports = kOne, .receive_ports = kOne,
     .summary = "two blocks to either neighbour in turn; the ring if N is odd", .citation = kChen},
    {.collective = all_gather, .name = "sparbit", .make = [](const Params& a) { return sparbit_all_gather(a.ranks); },
     .rounds = "clog2(N)", .sent = kShare, .received = kShare, .send_ports = "floor(N/2)", .receive_ports = "floor(N/2)",
     .summary = "a binomial tree for every block, far first, each block in a separate message", .citation = kLoch},
    {.collective = all_gather, .name = "pat_ring",
     .make = [](const Params& a) { return pat_ring_all_gather(a.ranks, resolved(a).group, resolved(a).aggregation); },
     .allowed_when = kAggregationOfGroups, .needs = kAggregationOfGroupsInWords, .parameters = "group,aggregation",
     .rounds = "flog2(min(A,max(1,pow(2,clog2(N/G)-1))))+min(N/G,pow(2,clog2(N/G))/min(A,max(1,pow(2,clog2(N/G)-1))))-1+G-1",
     .sent = kShare, .received = kShare, .send_ports = kOne, .receive_ports = kOne,
     .summary = "PAT among the ranks at one position in groups of G, then rings in the groups", .citation = kPat},
    {.collective = all_gather, .name = "level_exchange",
     .make = [](const Params& a) { return level_exchange_all_gather(a.ranks, resolved(a).levels); },
     .allowed_when = kNested, .needs = kNestedInWords, .parameters = "levels", .rounds = "L", .sent = kShare, .received = kShare,
     .send_ports = kComputed, .receive_ports = kComputed,
     .summary = "direct exchanges level by level of the machine, the outermost first", .citation = kRougier},
    {.collective = all_gather, .name = "hamiltonian_disjoint",
     .make = [](const Params& a) { return hamiltonian_disjoint_all_gather(resolved(a).dims); },
     .allowed_when = kCycles, .needs = kCyclesInWords, .parameters = "dims", .rounds = "N-1", .sent = kShare, .received = kShare,
     .send_ports = kAllPorts, .receive_ports = kAllPorts,
     .summary = "rings both ways along Hamiltonian cycles that share no link: all ports of the torus", .citation = kBae},
    {.collective = all_gather, .name = "trivance_cross",
     .make = [](const Params& a) { return trivance_cross_all_gather(resolved(a).dims); },
     .allowed_when = kCross, .needs = kCrossInWords, .parameters = "dims", .rounds = kCrossRounds, .sent = kShare, .received = kShare,
     .send_ports = kCrossPorts, .receive_ports = kCrossPorts,
     .summary = "to the 2D ends of crosses, farthest first, on all ports at once", .citation = kTrivance},
    {.collective = all_gather, .name = "circulant_pipelined",
     .make = [](const Params& a) { return circulant_pipelined_all_gather(a.ranks, a.segments); },
     .parameters = "segments", .rounds = kBlockRounds, .sent = kShare, .received = kShare, .send_ports = kOne, .receive_ports = kOne,
     .summary = "circulant_pipelined broadcasts of n blocks from all ranks at once", .citation = kTraffBlocks},
    {.collective = all_gather, .name = "bine", .make = [](const Params& a) { return bine_all_gather(a.ranks); },
     .rounds = kSwingRounds, .sent = kComputed, .received = kShare, .send_ports = kOne, .receive_ports = kOne,
     .summary = "partners at ... -5, 3, -1, 1 exchange what the other lacks; an odd rank is folded", .citation = kBine},
    {.collective = all_gather, .name = "multi_leader",
     .make = [](const Params& a) {
       const Leaders leaders = leaders_of(a);
       return multi_leader_all_gather(leaders, bruck_all_gather(leaders.groups()));
     },
     .allowed_when = kLeadersAndGroups, .needs = kLeadersAndGroupsInWords, .parameters = "levels", .rounds = kLeadersRounds,
     .sent = kLeaderGather, .received = kShare, .send_ports = kLeaderPorts, .receive_ports = kMemberOfLeadersPorts,
     .summary = "to the leaders of a group, Bruck among the leaders at one position, to all members", .citation = kKandalla},
    {.collective = all_gather, .name = "bucket_short",
     .make = [](const Params& a) { return bucket_all_gather(resolved(a).dims, Turns::whole); },
     .parameters = "dims", .rounds = "(D-1)*next(a-1)+most(a-1)", .sent = kShare, .received = kShare, .send_ports = kAllPorts,
     .receive_ports = kAllPorts,
     .summary = "bucket in fewer rounds on uneven tori, where collectives meet in the largest dimension", .citation = kBucket},

    {.collective = reduce_scatter, .name = "ring", .make = [](const Params& a) { return ring_reduce_scatter(a.ranks); },
     .rounds = "N-1", .sent = kShare, .received = kShare, .send_ports = kOne, .receive_ports = kOne,
     .summary = "the ring all-gather reversed in time", .citation = kPatarasuk},
    {.collective = reduce_scatter, .name = "ring_mirrored", .make = [](const Params& a) { return ring_mirrored_reduce_scatter(a.ranks); },
     .rounds = "N-1", .sent = kShare, .received = kShare, .send_ports = kTwo, .receive_ports = kTwo,
     .summary = "two rings in opposite directions, half of every block round each", .citation = kPatarasuk},
    {.collective = reduce_scatter, .name = "ring_shortest", .make = [](const Params& a) { return ring_shortest_reduce_scatter(a.ranks); },
     .rounds = "floor(N/2)", .sent = kShare, .received = kShare, .send_ports = kTwo, .receive_ports = kTwo,
     .summary = "both directions of the ring, every block the shorter way", .citation = kPatarasuk},
    {.collective = reduce_scatter, .name = "recursive_halving",
     .make = [](const Params& a) { return recursive_halving_reduce_scatter(a.ranks, radix(a)); },
     .parameters = "radix", .rounds = kFoldedRounds, .sent = kShare, .received = kFoldedGather, .send_ports = kRadixPorts,
     .receive_ports = kRadixPorts,
     .summary = "the recursive doubling all-gather reversed in time; surplus ranks folded", .citation = kThakur},
    {.collective = reduce_scatter, .name = "bruck", .make = [](const Params& a) { return bruck_reduce_scatter(a.ranks, radix(a)); },
     .parameters = "radix", .rounds = kKnomialRounds, .sent = kShare, .received = kShare, .send_ports = kRadixPorts,
     .receive_ports = kRadixPorts,
     .summary = "Bruck's all-gather reversed in time", .citation = kBruck},
    {.collective = reduce_scatter, .name = "pat",
     .make = [](const Params& a) { return pat_reduce_scatter(a.ranks, resolved(a).aggregation); },
     .allowed_when = kAggregation, .needs = kAggregationInWords, .parameters = "aggregation",
     .rounds = "flog2(A)+min(N,pow(2,clog2(N))/A)-1", .sent = kShare, .received = kShare, .send_ports = kOne, .receive_ports = kOne,
     .summary = "the PAT all-gather reversed in time", .citation = kPat},
    {.collective = reduce_scatter, .name = "direct", .make = [](const Params& a) { return direct_reduce_scatter(a.ranks); },
     .rounds = kOne, .sent = kShare, .received = kShare, .send_ports = "N-1", .receive_ports = "N-1",
     .summary = "every rank collects its own block from all", .citation = kFolklore},
    {.collective = reduce_scatter, .name = "two_level",
     .make = [](const Params& a) { return two_level_reduce_scatter(a.ranks, resolved(a).group); },
     .parameters = "group", .rounds = kTwoLevelRounds, .sent = kShare, .received = kHolders, .send_ports = kMemberPorts,
     .receive_ports = kHolderPorts,
     .summary = "the two_level all-gather reversed in time", .citation = kLi},
    {.collective = reduce_scatter, .name = "circulant", .make = [](const Params& a) { return circulant_reduce_scatter(circulant(a)); },
     .parameters = "skips", .rounds = "S", .sent = kShare, .received = kShare, .send_ports = kOne, .receive_ports = kOne,
     .summary = "in round k partial sums of all blocks to the rank skips[k] further on", .citation = kTraff},
    {.collective = reduce_scatter, .name = "recursive_halving_pipelined",
     .make = [](const Params& a) { return pipelined_halving_reduce_scatter(a.ranks, a.segments); },
     .parameters = "segments", .rounds = kDoublingRounds, .sent = kShare,
     .received = "if(pow2(N),N-1,N+Q-3+2*pow(2,flog2(N-Q))+(N-Q)*(flog2(N)-1-flog2(N-Q)))/N", .send_ports = kDoublingPorts,
     .receive_ports = kDoublingPorts,
     .summary = "recursive halving of segments in flight, each with another partner", .citation = kLu},
    {.collective = reduce_scatter, .name = "hamiltonian",
     .make = [](const Params& a) { return hamiltonian_reduce_scatter(resolved(a).dims); },
     .parameters = "dims", .rounds = "N-1", .sent = kShare, .received = kShare, .send_ports = kTwo, .receive_ports = kTwo,
     .summary = "the hamiltonian all-gather reversed in time", .citation = kPatarasuk},
    {.collective = reduce_scatter, .name = "bucket", .make = [](const Params& a) { return bucket_reduce_scatter(resolved(a).dims); },
     .parameters = "dims", .rounds = "D*most(a-1)", .sent = kShare, .received = kShare, .send_ports = kBucketPorts,
     .receive_ports = kBucketPorts,
     .summary = "the bucket all-gather reversed in time", .citation = kBucket},
    {.collective = reduce_scatter, .name = "torus_doubling",
     .make = [](const Params& a) { return torus_doubling_reduce_scatter(resolved(a).dims); },
     .parameters = "dims", .rounds = kDoublingLineRounds, .sent = kShare, .received = kComputed, .send_ports = kAllPorts,
     .receive_ports = kAllPorts,
     .summary = "the torus_doubling all-gather reversed in time", .citation = kSack},
    {.collective = reduce_scatter, .name = "swing", .make = [](const Params& a) { return swing_reduce_scatter(resolved(a).dims); },
     .parameters = "dims", .rounds = kSwingRounds, .sent = kShare, .received = kComputed, .send_ports = kAllPorts,
     .receive_ports = kAllPorts,
     .summary = "the swing all-gather reversed in time", .citation = kSwing},
    {.collective = reduce_scatter, .name = "bruck_ternary",
     .make = [](const Params& a) { return bruck_ternary_reduce_scatter(resolved(a).dims); },
     .parameters = "dims", .rounds = kLog3Rounds, .sent = kShare, .received = kShare, .send_ports = kTwoPerDimension,
     .receive_ports = kTwoPerDimension,
     .summary = "the bruck_ternary all-gather reversed in time, in a mirror", .citation = kBruck},
    {.collective = reduce_scatter, .name = "trivance", .make = [](const Params& a) { return trivance_reduce_scatter(resolved(a).dims); },
     .parameters = "dims", .rounds = kLog3Rounds, .sent = kShare, .received = kShare, .send_ports = kComputed, .receive_ports = kComputed,
     .summary = "the trivance all-gather reversed in time", .citation = kTrivance},
    {.collective = reduce_scatter, .name = "switch", .make = [](const Params& a) { return switch_reduce_scatter(a.ranks); },
     .rounds = kOne, .sent = kShare, .received = "min(1,N-1)/N", .send_ports = "N-1", .receive_ports = kOne,
     .summary = "the switch adds every rank's block up on its way there", .citation = kSharp},
    {.collective = reduce_scatter, .name = "recursive_halving_near",
     .make = [](const Params& a) { return recursive_halving_near_reduce_scatter(a.ranks, radix(a)); },
     .parameters = "radix", .rounds = kFoldedRounds, .sent = kShare, .received = kFoldedFarGather, .send_ports = kRadixPorts,
     .receive_ports = kRadixPorts,
     .summary = "the recursive_doubling_far all-gather reversed in time; surplus ranks folded", .citation = kRecursiveExchange},
    {.collective = reduce_scatter, .name = "pat_ring",
     .make = [](const Params& a) { return pat_ring_reduce_scatter(a.ranks, resolved(a).group, resolved(a).aggregation); },
     .allowed_when = kAggregationOfGroups, .needs = kAggregationOfGroupsInWords, .parameters = "group,aggregation",
     .rounds = "flog2(min(A,max(1,pow(2,clog2(N/G)-1))))+min(N/G,pow(2,clog2(N/G))/min(A,max(1,pow(2,clog2(N/G)-1))))-1+G-1",
     .sent = kShare, .received = kShare, .send_ports = kOne, .receive_ports = kOne,
     .summary = "the pat_ring all-gather reversed in time", .citation = kPat},
    {.collective = reduce_scatter, .name = "level_exchange",
     .make = [](const Params& a) { return level_exchange_reduce_scatter(a.ranks, resolved(a).levels); },
     .allowed_when = kNested, .needs = kNestedInWords, .parameters = "levels", .rounds = "L", .sent = kShare, .received = kShare,
     .send_ports = kComputed, .receive_ports = kComputed,
     .summary = "the level_exchange all-gather reversed in time", .citation = kRougier},
    {.collective = reduce_scatter, .name = "hamiltonian_disjoint",
     .make = [](const Params& a) { return hamiltonian_disjoint_reduce_scatter(resolved(a).dims); },
     .allowed_when = kCycles, .needs = kCyclesInWords, .parameters = "dims", .rounds = "N-1", .sent = kShare, .received = kShare,
     .send_ports = kAllPorts, .receive_ports = kAllPorts,
     .summary = "the hamiltonian_disjoint all-gather reversed in time", .citation = kBae},
    {.collective = reduce_scatter, .name = "trivance_cross",
     .make = [](const Params& a) { return trivance_cross_reduce_scatter(resolved(a).dims); },
     .allowed_when = kCross, .needs = kCrossInWords, .parameters = "dims", .rounds = kCrossRounds, .sent = kShare, .received = kShare,
     .send_ports = kCrossPorts, .receive_ports = kCrossPorts,
     .summary = "the trivance_cross all-gather reversed in time", .citation = kTrivance},
    {.collective = reduce_scatter, .name = "circulant_pipelined",
     .make = [](const Params& a) { return dual(circulant_pipelined_all_gather(a.ranks, a.segments)); },
     .parameters = "segments", .rounds = kBlockRounds, .sent = kShare, .received = kShare, .send_ports = kOne, .receive_ports = kOne,
     .summary = "the circulant_pipelined all-gather reversed in time", .citation = kTraffBlocks},
    {.collective = reduce_scatter, .name = "bine", .make = [](const Params& a) { return bine_reduce_scatter(a.ranks); },
     .rounds = kSwingRounds, .sent = kShare, .received = kComputed, .send_ports = kOne, .receive_ports = kOne,
     .summary = "the bine all-gather reversed in time", .citation = kBine},
    {.collective = reduce_scatter, .name = "multi_leader",
     .make = [](const Params& a) {
       const Leaders leaders = leaders_of(a);
       return dual(multi_leader_all_gather(leaders, bruck_all_gather(leaders.groups())));
     },
     .allowed_when = kLeadersAndGroups, .needs = kLeadersAndGroupsInWords, .parameters = "levels", .rounds = kLeadersRounds,
     .sent = kShare, .received = kLeaderGather, .send_ports = kMemberOfLeadersPorts, .receive_ports = kLeaderPorts,
     .summary = "the multi_leader all-gather reversed in time", .citation = kKandalla},
    {.collective = reduce_scatter, .name = "bucket_short",
     .make = [](const Params& a) { return bucket_reduce_scatter(resolved(a).dims, Turns::whole); },
     .parameters = "dims", .rounds = "(D-1)*next(a-1)+most(a-1)", .sent = kShare, .received = kShare, .send_ports = kAllPorts,
     .receive_ports = kAllPorts,
     .summary = "the bucket_short all-gather reversed in time", .citation = kBucket},

    {.collective = all_to_all, .name = "ring", .make = [](const Params& a) { return ring_all_to_all(a.ranks); },
     .rounds = "floor(N/2)", .sent = "floor(N*N/4)/N", .received = "floor(N*N/4)/N", .send_ports = kTwo, .receive_ports = kTwo,
     .summary = "relayed round the ring the shorter way, one message per direction and round", .citation = kLu},
    {.collective = all_to_all, .name = "ring_relay", .make = [](const Params& a) { return ring_relay_all_to_all(a.ranks); },
     .rounds = "floor(N/2)*(floor(N/2)+1)/2", .sent = "floor(N*N/4)/N", .received = "floor(N*N/4)/N", .send_ports = "min(2,N-1)",
     .receive_ports = "min(2,N-1)",
     .summary = "relayed round the ring the shorter way, one block per direction and round", .citation = kLu},
    {.collective = all_to_all, .name = "pairwise", .make = [](const Params& a) { return pairwise_all_to_all(a.ranks); },
     .rounds = "N-1", .sent = kShare, .received = kShare, .send_ports = kOne, .receive_ports = kOne,
     .summary = "one partner after the other, staggered so that no rank receives twice", .citation = kThakur},
    {.collective = all_to_all, .name = "bruck", .make = [](const Params& a) { return bruck_all_to_all(a.ranks, radix(a)); },
     .parameters = "radix", .rounds = kKnomialRounds, .sent = kDigits, .received = kDigits, .send_ports = kRadixPorts,
     .receive_ports = kRadixPorts,
     .summary = "in round k all blocks with bit k in their way to go", .citation = kBruck},
    {.collective = all_to_all, .name = "circulant", .make = [](const Params& a) { return circulant_all_to_all(circulant(a)); },
     .parameters = "skips", .rounds = "S", .sent = kComputed, .received = kComputed, .send_ports = kOne, .receive_ports = kOne,
     .summary = "the circulant reduce-scatter with concatenation for the sum", .citation = kTraff},
    {.collective = all_to_all, .name = "direct", .make = [](const Params& a) { return direct_all_to_all(a.ranks); },
     .rounds = kOne, .sent = kShare, .received = kShare, .send_ports = "N-1", .receive_ports = "N-1",
     .summary = "all ranks to all ranks at once", .citation = kFolklore},
    {.collective = all_to_all, .name = "level_exchange",
     .make = [](const Params& a) { return level_exchange_all_to_all(a.ranks, resolved(a).levels); },
     .allowed_when = kNested, .needs = kNestedInWords, .parameters = "levels", .rounds = "L", .sent = kComputed, .received = kComputed,
     .send_ports = kComputed, .receive_ports = kComputed,
     .summary = "direct exchanges level by level, all blocks for one group in one message", .citation = kRougier},
    {.collective = all_to_all, .name = "parlogna", .make = [](const Params& a) { return parlogna_all_to_all(a.ranks, radix(a)); },
     .parameters = "radix", .rounds = kKnomial, .sent = kDigits, .received = kDigits, .send_ports = kOne, .receive_ports = kOne,
     .summary = "Bruck's with a round per digit: from Bruck at radix 2 to pairwise at radix N", .citation = kFan},
    {.collective = all_to_all, .name = "parlinna",
     .make = [](const Params& a) { return parlinna_all_to_all(a.ranks, resolved(a).group, radix(a)); },
     .allowed_when = kEqualGroups, .needs = kEqualGroupsInWords, .parameters = "group,radix",
     .rounds = "if(G-1,(K-1)*(clog(K,G)-1)+ceil(G/pow(K,clog(K,G)-1))-1,0)+N/G-1", .sent = kDigitsInGroups, .received = kDigitsInGroups,
     .send_ports = kOne, .receive_ports = kOne,
     .summary = "parlogna in groups of G, then pairwise among the ranks at one position", .citation = kFan},
    {.collective = all_to_all, .name = "torus", .make = [](const Params& a) { return torus_all_to_all(resolved(a).dims); },
     .allowed_when = "2147483647>=2*D*N*N", .needs = "twice the dimensions times N * N must be less than 2^31", .parameters = "dims",
     .rounds = "each(floor(a/2))", .sent = "each(floor(a*a/4)/a)", .received = "each(floor(a*a/4)/a)", .send_ports = kAllPorts,
     .receive_ports = kAllPorts,
     .summary = "relayed along one dimension after the other, D of them side by side", .citation = kTori},

    {.collective = gather, .name = "binomial", .make = [](const Params& a) { return tree_gather(knomial_far(a.ranks, radix(a)), a.root); },
     .parameters = "radix", .rounds = kKnomialRounds, .sent = kLargestSubtree, .received = kShare, .send_ports = kOne,
     .receive_ports = kRadixPorts,
     .summary = "the binomial scatter reversed in time", .citation = kJohnsson},
    {.collective = gather, .name = "linear", .make = [](const Params& a) { return tree_gather(star(a.ranks), a.root); },
     .rounds = "N-1", .sent = "min(1,N-1)/N", .received = kShare, .send_ports = kOne, .receive_ports = kOne,
     .summary = "the root receives from one rank after the other", .citation = kFolklore},
    {.collective = gather, .name = "chain", .make = [](const Params& a) { return chain_gather(a.ranks, a.root); },
     .rounds = "N-1", .sent = kShare, .received = kShare, .send_ports = kOne, .receive_ports = kOne,
     .summary = "the chain scatter reversed in time", .citation = kFolklore},
    {.collective = gather, .name = "circulant", .make = [](const Params& a) { return circulant_gather(circulant(a), a.root); },
     .parameters = "skips", .rounds = "S", .sent = kComputed, .received = kShare, .send_ports = kOne, .receive_ports = kOne,
     .summary = "the circulant scatter reversed in time", .citation = kTraff},
    {.collective = gather, .name = "bine", .make = [](const Params& a) { return tree_gather(bine(a.ranks), a.root); },
     .rounds = "clog2(N)", .sent = "floor(N/2)/N", .received = kShare, .send_ports = kOne, .receive_ports = kOne,
     .summary = "the bine scatter reversed in time", .citation = kBine},

    {.collective = scatter, .name = "binomial",
     .make = [](const Params& a) { return tree_scatter(knomial_far(a.ranks, radix(a)), a.root); },
     .parameters = "radix", .rounds = kKnomialRounds, .sent = kShare, .received = kLargestSubtree, .send_ports = kRadixPorts,
     .receive_ports = kOne,
     .summary = "every rank sends half of its blocks to the other half of its ranks", .citation = kJohnsson},
    {.collective = scatter, .name = "linear", .make = [](const Params& a) { return tree_scatter(star(a.ranks), a.root); },
     .rounds = "N-1", .sent = kShare, .received = "min(1,N-1)/N", .send_ports = kOne, .receive_ports = kOne,
     .summary = "the root serves one after the other", .citation = kFolklore},
    {.collective = scatter, .name = "chain", .make = [](const Params& a) { return chain_scatter(a.ranks, a.root); },
     .rounds = "N-1", .sent = kShare, .received = kShare, .send_ports = kOne, .receive_ports = kOne,
     .summary = "handed from neighbour to neighbour, the farthest rank's block first", .citation = kFolklore},
    {.collective = scatter, .name = "circulant", .make = [](const Params& a) { return circulant_scatter(circulant(a), a.root); },
     .parameters = "skips", .rounds = "S", .sent = kShare, .received = kComputed, .send_ports = kOne, .receive_ports = kOne,
     .summary = "the circulant all-to-all with the blocks of one rank", .citation = kTraff},
    {.collective = scatter, .name = "bine", .make = [](const Params& a) { return tree_scatter(bine(a.ranks), a.root); },
     .rounds = "clog2(N)", .sent = kShare, .received = "floor(N/2)/N", .send_ports = kOne, .receive_ports = kOne,
     .summary = "half of the blocks to the mirror image in half of the ranks left", .citation = kBine},

    {.collective = send_recv, .name = "direct", .make = [](const Params& a) { return direct_send_recv(a.ranks, a.root, a.peer); },
     .rounds = "H", .sent = "H", .received = "H", .send_ports = "H", .receive_ports = "H",
     .summary = "one hop", .citation = kFolklore},

    {.collective = barrier, .name = "dissemination", .make = [](const Params& a) { return dissemination_barrier(a.ranks, radix(a)); },
     .parameters = "radix", .rounds = kKnomialRounds, .sent = kKnomial, .received = kKnomial, .send_ports = kRadixPorts,
     .receive_ports = kRadixPorts,
     .summary = "in round k every rank signals the rank 2^k to the right", .citation = kHensgen},
    {.collective = barrier, .name = "recursive_doubling",
     .make = [](const Params& a) { return recursive_doubling_all_reduce(a.ranks, radix(a)); },
     .parameters = "radix", .rounds = kFoldedRounds, .sent = kFoldedVectors, .received = kFoldedVectors, .send_ports = kRadixPorts,
     .receive_ports = kRadixPorts,
     .summary = "partners at distance 2^k signal each other; surplus ranks folded", .citation = kThakur},
    {.collective = barrier, .name = "binomial",
     .make = [](const Params& a) { return up_and_down(tree_hops(knomial_far(a.ranks, radix(a)))); },
     .parameters = "radix", .rounds = "2*clog(K,N)", .sent = kKnomial, .received = kKnomial, .send_ports = kRadixPorts,
     .receive_ports = kRadixPorts,
     .summary = "up a binomial tree to rank 0, and down again", .citation = kJohnsson},
    {.collective = barrier, .name = "double_ring", .make = [](const Params& a) { return double_ring_barrier(a.ranks); },
     .rounds = "2*(N-1)", .sent = "min(2,N-1)", .received = "min(2,N-1)", .send_ports = kOne, .receive_ports = kOne,
     .summary = "a token goes round the ring twice", .citation = kOpenMpi},
    {.collective = barrier, .name = "central", .make = [](const Params& a) { return central_all_reduce(a.ranks); },
     .rounds = kTwo, .sent = "N-1", .received = "N-1", .send_ports = "N-1", .receive_ports = "N-1",
     .summary = "every rank signals rank 0, which signals all: the naive baseline", .citation = kFolklore},

    {.collective = scan, .name = "direct", .make = [](const Params& a) { return direct_scan(a.ranks); },
     .rounds = kOne, .sent = "N-1", .received = "N-1", .send_ports = "N-1", .receive_ports = "N-1",
     .summary = "every rank reads all vectors before its own and adds them up", .citation = kFolklore},
    {.collective = scan, .name = "chain", .make = [](const Params& a) { return chain_scan(a.ranks, a.segments); },
     .parameters = "segments", .rounds = "if(N-1,N+P-2,0)", .sent = kOne, .received = kOne, .send_ports = kOne, .receive_ports = kOne,
     .summary = "every rank adds its vector to its neighbour's sum and passes it on, in segments", .citation = kBlelloch},
    {.collective = scan, .name = "binomial", .make = [](const Params& a) { return binomial_scan(a.ranks); },
     .rounds = "flog2(N)+flog2(2*N/3)", .sent = "flog2(N)", .received = "flog2(N)", .send_ports = kOne, .receive_ports = kOne,
     .summary = "sums of 2, 4, 8 ... ranks up a tree, prefixes down it", .citation = kBrent},
    {.collective = scan, .name = "hillis_steele", .make = [](const Params& a) { return hillis_steele_scan(a.ranks); },
     .rounds = "clog2(N)", .sent = "clog2(N)", .received = "clog2(N)", .send_ports = kOne, .receive_ports = kOne,
     .summary = "in round k every rank sends its sum to the rank 2^k to the right", .citation = kHillis},

    {.collective = exscan, .name = "direct", .make = [](const Params& a) { return direct_exscan(a.ranks); },
     .rounds = kOne, .sent = "N-1", .received = "N-1", .send_ports = "N-1", .receive_ports = "N-1",
     .summary = "every rank reads all vectors before its own and adds them up", .citation = kFolklore},
    {.collective = exscan, .name = "chain", .make = [](const Params& a) { return chain_exscan(a.ranks, a.segments); },
     .parameters = "segments", .rounds = "if(N-1,N+P-2,0)", .sent = kOne, .received = kOne, .send_ports = kOne, .receive_ports = kOne,
     .summary = "every rank keeps its neighbour's sum, and passes that plus its own vector on", .citation = kBlelloch},
    {.collective = exscan, .name = "binomial", .make = [](const Params& a) { return binomial_exscan(a.ranks); },
     .rounds = "min(1,N-1)+flog2(N-1)+flog2(2*(N-1)/3)", .sent = "min(1,N-1)+flog2(N-1)", .received = "min(1,N-1)+flog2(N-1)",
     .send_ports = kOne, .receive_ports = kOne,
     .summary = "a shift by one rank, then the binomial scan among all but rank 0", .citation = kBrent},
    {.collective = exscan, .name = "hillis_steele", .make = [](const Params& a) { return hillis_steele_exscan(a.ranks); },
     .rounds = "min(1,N-1)+clog2(N-1)", .sent = "min(1,N-1)+clog2(N-1)", .received = "min(1,N-1)+clog2(N-1)", .send_ports = kOne,
     .receive_ports = kOne,
     .summary = "a shift by one rank, then distances 1, 2, 4 ... among all but rank 0", .citation = kExscan},
    {.collective = exscan, .name = "doubling_123", .make = [](const Params& a) { return doubling_123_exscan(a.ranks); },
     .rounds = "clog2(4*(N-1)/3)", .sent = "clog2(4*(N-1)/3)", .received = "clog2(4*(N-1)/3)", .send_ports = kOne, .receive_ports = kOne,
     .summary = "distances 1, 2, 3, 6, 12 ...: a rank's sum doubles in length from the third on", .citation = kExscan},
};
// clang-format on

}  // namespace

std::span<const Algorithm> catalogue() { return kCatalogue; }

GivenAlgorithm given_algorithm(std::string name, const CollectiveSpec& goal, Schedule schedule) {
  struct Owner {
    std::string name;
    GivenSchedule given;
    Algorithm entry;

    Owner(std::string name_, const CollectiveSpec& goal_, Schedule schedule_)
        : name(std::move(name_)),
          given{goal_, std::move(schedule_)},
          entry{.collective = goal_.collective,
                .name = name,
                .make = given,
                .rounds = kComputed,
                .sent = kComputed,
                .received = kComputed,
                .send_ports = kComputed,
                .receive_ports = kComputed,
                .summary = "a schedule from outside the catalogue",
                .citation = "its author",
                .other_bits = goal_.same_bits ? "" : "the schedule says so"} {}
  };
  auto owner = std::make_shared<const Owner>(std::move(name), goal, std::move(schedule));
  const Algorithm* entry = &owner->entry;
  return {std::move(owner), entry};
}

const Algorithm* find_algorithm(Collective collective, std::string_view name,
                                std::span<const GivenAlgorithm> more) {
  const auto is = [&](const Algorithm& entry) {
    return entry.collective == collective && entry.name == name;
  };
  for (const GivenAlgorithm& given : more) {
    if (is(*given)) return given.get();
  }
  for (const Algorithm& entry : kCatalogue) {
    if (is(entry)) return &entry;
  }
  return nullptr;
}

std::string algorithm_names(Collective collective) {
  std::string names;
  for (const Algorithm& entry : kCatalogue) {
    if (entry.collective != collective) continue;
    if (!names.empty()) names += ", ";
    names += entry.name;
  }
  return names;
}

bool Algorithm::takes(std::string_view parameter) const {
  if (parameter == "ranks") return true;
  if (parameter == "root" && has_root(collective)) return true;
  if (parameter == "peer") return collective == send_recv;
  return parameters.find(parameter) != std::string_view::npos;
}

Params Algorithm::only_taken(Params params) const {
  const Params begin;
  for (const Parameter& row : rankine::parameters()) {
    if (takes(row.name)) continue;
    if (row.number != nullptr) params.*row.number = begin.*row.number;
    if (row.list != nullptr) (params.*row.list).clear();
  }
  return params;
}

std::optional<std::string> Algorithm::untaken(const Params& params) const {
  std::string taken;
  const Parameter* wrong = nullptr;
  for (const Parameter& row : rankine::parameters()) {
    if (takes(row.name)) {
      if (row.name != "ranks") taken += (taken.empty() ? "" : ", ") + std::string(row.name);
    } else if (wrong == nullptr && !row.open(params)) {
      wrong = &row;
    }
  }
  if (wrong == nullptr) return std::nullopt;
  return title(*this) + ": " + std::string(wrong->name) + " is " + wrong->text(params) +
         ", which it does not take; it takes " + (taken.empty() ? "no parameter" : taken);
}

std::optional<std::string> Algorithm::refusal(const Params& given) const {
  Params params = given;
  std::string all;  // parameters that allowed_when may use
  for (const Parameter& row : rankine::parameters()) {
    if (!takes(row.name)) continue;
    if (row.number != nullptr) {
      if (const auto why = outside(row, params)) return title(*this) + ": " + *why;
      if (row.has_default()) params.*row.number = row.count(params);
    } else {
      if ((params.*row.list).empty()) params.*row.list = row.default_list(params.ranks);
      const auto why = row.list_refusal(params.*row.list, params.ranks);
      if (why) return title(*this) + ": " + *why;
    }
    if (row.letter.empty() || (row.open(params) && row.name != "ranks")) continue;
    all += (all.empty() ? "" : ", ") + std::string(row.name) + " is " + row.text(params);
  }
  if (auto why = untaken(given)) return why;
  if (const auto why = too_many_blocks(*this, params)) return title(*this) + ": " + *why;
  if (evaluate(allowed_when, params) == 0) {
    return title(*this) + ": " + all + "; " + std::string(needs);
  }
  if (make.given() == nullptr) return std::nullopt;
  const CollectiveSpec& goal = make.given()->goal;
  const Params only{.ranks = goal.ranks, .root = goal.root, .peer = goal.peer};
  for (const Parameter& row : rankine::parameters()) {
    if (!takes(row.name) || params.*row.number == only.*row.number) continue;
    return title(*this) + ": " + std::string(row.name) + " is " + row.text(params) +
           "; its schedule is for " + row.text(only);
  }
  return std::nullopt;
}

std::string Algorithm::text_of(const Params& params) const {
  std::string text;
  for (const Parameter& row : rankine::parameters()) {
    if (!takes(row.name) || row.name == "ranks") continue;
    if (row.open(params) && (row.letter.empty() || row.has_default())) continue;
    if (!text.empty()) text += ", ";
    const bool by_letter = row.number != nullptr && !row.letter.empty();
    text += by_letter ? std::string(row.letter) + " = " : std::string(row.name) + " ";
    text += row.text(params);
  }
  return text;
}

CollectiveSpec goal_of(const Algorithm& algorithm, const Params& params, const Schedule& schedule) {
  const Rank root = has_root(algorithm.collective) ? params.root : 0;
  return {algorithm.collective,        params.ranks, schedule.blocks, root, params.peer,
          algorithm.other_bits.empty()};
}

int blocks_per_m(const CollectiveSpec& goal) {
  return goal.collective == all_to_all ? goal.blocks / goal.ranks : goal.blocks;
}

namespace {

// NCCL's names for algorithms.
struct Alias {
  std::string_view typed, name;
};
constexpr Alias kAliases[] = {{"tree", "double_tree"}, {"nvls", "switch"}};

// Removes upper case and separators, so that spellings compare equal.
std::string plain(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (c == '_' || c == '-' || c == ' ') continue;
    out += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return out;
}

}  // namespace

std::optional<Collective> find_typed_collective(std::string_view typed) {
  const std::string wanted = plain(typed);
  for (const Collective collective : all_collectives()) {
    if (plain(name_of(collective)) == wanted) return collective;
  }
  return std::nullopt;
}

const Algorithm* find_typed_algorithm(Collective collective, std::string_view typed) {
  const std::string wanted = plain(typed);
  for (const Algorithm& entry : catalogue()) {
    if (entry.collective == collective && plain(entry.name) == wanted) return &entry;
  }
  for (const Alias& alias : kAliases) {
    if (wanted == alias.typed) return find_algorithm(collective, alias.name);
  }
  return nullptr;
}

std::vector<const Algorithm*> find_typed_algorithms(std::string_view typed) {
  std::vector<const Algorithm*> entries;
  for (const Collective collective : all_collectives()) {
    if (const Algorithm* entry = find_typed_algorithm(collective, typed)) entries.push_back(entry);
  }
  std::sort(entries.begin(), entries.end());  // they lie in one array
  return entries;
}

}  // namespace rankine
