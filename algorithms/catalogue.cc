#include "algorithms/catalogue.h"

#include "algorithms/all_to_all.h"
#include "algorithms/bruck.h"
#include "algorithms/bruck_ternary.h"
#include "algorithms/bucket.h"
#include "algorithms/chain.h"
#include "algorithms/circulant.h"
#include "algorithms/direct.h"
#include "algorithms/dissemination.h"
#include "algorithms/double_tree.h"
#include "algorithms/formula.h"
#include "algorithms/halving_doubling.h"
#include "algorithms/hierarchical.h"
#include "algorithms/in_network.h"
#include "algorithms/levels.h"
#include "algorithms/pat.h"
#include "algorithms/recursive_doubling.h"
#include "algorithms/ring.h"
#include "algorithms/scatter_all_gather.h"
#include "algorithms/skips.h"
#include "algorithms/swing.h"
#include "algorithms/torus.h"
#include "algorithms/torus_doubling.h"
#include "algorithms/tree.h"
#include "algorithms/trivance.h"
#include "algorithms/two_level.h"

namespace rankine {
namespace {

using enum Collective;

// Places are counted in an int: these bounds leave room for every algorithm's blocks.
constexpr int kMostRanks = 1 << 14;
constexpr int kMostSegments = 1 << 14;

constexpr Collective kReduce = Collective::reduce;  // `reduce` alone is the Act

constexpr std::string_view kAnyN = "1";
constexpr std::string_view kEqualGroups = "divides(G,N)";
constexpr std::string_view kEqualGroupsInWords =
    "the number of ranks must be a multiple of the group";
constexpr std::string_view kAggregation = "and(pow2(A),max(1,exp2(clog2(N)-1))>=A)";
constexpr std::string_view kAggregationInWords =
    "the aggregation must be a power of two that is less than the number of ranks";

// Formulas that recur. kOne: 1, but nothing among one rank.
constexpr std::string_view kOne = "min(1,N-1)";
constexpr std::string_view kTwo = "2*min(1,N-1)";
constexpr std::string_view kShare = "(N-1)/N";
constexpr std::string_view kTwoShares = "2*(N-1)/N";

// On a torus. Dimensions that differ in size let turns pass, so the largest one says how many.
constexpr std::string_view kAllPorts = "2*D*min(1,N-1)";
constexpr std::string_view kTwoPerDimension = "each(min(2,a-1))";
constexpr std::string_view kPowersOfTwo = "1-min(1,each(1-pow2(a)))";
constexpr std::string_view kPowersOfTwoInWords =
    "every size of the torus must be a power of two";
constexpr std::string_view kLog3Rounds = "D*most(clog3(a))";
constexpr std::string_view kTwiceLog3Rounds = "2*D*most(clog3(a))";
constexpr std::string_view kLog2Rounds = "D*most(log2(a))";
constexpr std::string_view kTwiceLog2Rounds = "2*D*most(log2(a))";
constexpr std::string_view kExchanges = "each(log2(a))";
// Messages of Bruck's latency-optimal form: two a round, but one in the first round where the first
// ternary digit of a - 1 is 1.
constexpr std::string_view kBruckSums =
    "each(min(1,a-1)*(2*clog3(a)-(2*exp3(clog3(a)-1)>=a)))";
constexpr std::string_view kBruckSumPorts =
    "max(each(min(1,a-1)*(2-(2*exp3(clog3(a)-1)>=a))),each(2*(a>3)))";

// Two levels, with m = ceil(N/G) groups of which the last has N - (m-1) G members. In a small last
// group a member holds up to ceil(G / its members) blocks of every other group.
constexpr std::string_view kTwoLevelRounds = "(N>G)+(G>1)";
constexpr std::string_view kTwoLevelAllReduceRounds = "2*((N>G)+(G>1))";
constexpr std::string_view kHolders =
    "(ceil(N/G)-1+max(ceil(N/G)*(G-1),(1+(ceil(N/G)-1)*ceil(G/(N-(ceil(N/G)-1)*G)))*"
    "(N-(ceil(N/G)-1)*G-1)))/N";
constexpr std::string_view kHoldersAndShare =
    "(N-1+ceil(N/G)-1+max(ceil(N/G)*(G-1),(1+(ceil(N/G)-1)*ceil(G/(N-(ceil(N/G)-1)*G)))*"
    "(N-(ceil(N/G)-1)*G-1)))/N";
constexpr std::string_view kHolderPorts = "max(ceil(N/G)-1,G-1)";
constexpr std::string_view kMemberPorts =
    "max((ceil(N/G)-1)*ceil(G/(N-(ceil(N/G)-1)*G)),G-1)";

// Up one tree, down the other: two children and a parent, and the parent in the other tree.
constexpr std::string_view kPortsOfDoubleTree =
    "if(N>=5,if(P>log2(N+4),4,if(or(P>=3,and(P>=2,5>=N)),3,2)),if(N>=3,min(3,P+1),min(2,P)*(N-1)))";

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
constexpr std::string_view kTrivance = "Juerss, Addanki & Schmid, Trivance, 2026";
constexpr std::string_view kSwing = "De Sensi et al., Swing, NSDI 2024";
constexpr std::string_view kBucket = "Jain & Sabharwal, ICS 2010";
constexpr std::string_view kSack = "Sack & Gropp, ACM TOPC 1(2), 2015";
constexpr std::string_view kLi = "Li, Hoefler & Snir, HPDC 2013";
constexpr std::string_view kJain = "Jain et al., SC 2018";
constexpr std::string_view kFolklore = "folklore";

SharedRounds circulant(const Params& a) {
  return std::make_shared<const CirculantRounds>(a.ranks, resolved(a).skips);
}

Tree levels_of(const Params& a) { return level_tree(a.ranks, a.root, resolved(a).levels); }

// clang-format off
const Algorithm kCatalogue[] = {
    // collective, name, make, allowed when, parameters,
    //     rounds, sent, received, send ports, receive ports,
    //     summary, citation, what allowed_when says in words

    {broadcast, "chain", [](const Params& a) { return chain_broadcast(a.ranks, a.root, a.segments); }, kAnyN, "segments",
     "if(N-1,N+P-2,0)", kOne, kOne, kOne, kOne,
     "segments handed from neighbour to neighbour", kPatarasuk},
    {broadcast, "binomial_near", [](const Params& a) { return tree_broadcast(binomial_near(a.ranks), a.root, a.segments); }, kAnyN, "segments",
     "if(N-1,clog2(N)+P-1,0)", "clog2(N)", kOne, "min(P,clog2(N))", kOne,
     "everyone who has it tells the rank 1, then 2, then 4 ... further on", kJohnsson},
    {broadcast, "binomial_far", [](const Params& a) { return tree_broadcast(binomial_far(a.ranks), a.root, a.segments); }, kAnyN, "segments",
     "if(N-1,clog2(N)+P-1,0)", "clog2(N)", kOne, "min(P,clog2(N))", kOne,
     "everyone who has it tells the rank ... 4, then 2, then 1 further on", kJohnsson},
    {broadcast, "binary_tree", [](const Params& a) { return tree_broadcast(heap(a.ranks), a.root, a.segments); }, kAnyN, "segments",
     "if(N-1,log2(N)+P-1,0)", "min(2,N-1)", kOne, "min(2,N-1)", kOne,
     "from every rank to both of its children at once", kLu},
    {broadcast, "double_tree", [](const Params& a) { return double_tree_broadcast(a.ranks, a.root, a.segments); }, kAnyN, "segments",
     "if(N-1,log2(N-1)+P,0)", kOne, kOne, kTwo, "if(or(P>1,1-pow2(N+1)),2,1)*min(1,N-1)",
     "two binary trees below the root, half of the vector down each", kSanders},
    {broadcast, "two_tree", [](const Params& a) { return two_tree_broadcast(a.ranks, a.root, a.segments); }, kAnyN, "segments",
     "if(N-1,2*log2(N-1)+max(pow2(N),pow2(N+1))+2*P-1,0)", kOne, kOne, kOne, kOne,
     "the double tree in two colours: one message in and one out per round", kSanders},
    {broadcast, "scatter_all_gather", [](const Params& a) { return scatter_all_gather_broadcast(a.ranks, a.root); }, kAnyN, "",
     "if(N-1,clog2(N)+N-1,0)", kTwoShares, kOne, kOne, kOne,
     "binomial scatter, then ring all-gather of what is missing", kBarnett},
    {broadcast, "linear", [](const Params& a) { return tree_broadcast(star(a.ranks), a.root, 1); }, kAnyN, "",
     "N-1", "N-1", kOne, kOne, kOne,
     "the root tells one after the other", kFolklore},
    {broadcast, "direct_two_shot", [](const Params& a) { return direct_broadcast_two_shot(a.ranks, a.root); }, kAnyN, "",
     kTwo, kTwoShares, kOne, "N-1", "N-1",
     "everyone fetches one block, then hands it to all others", kFolklore},
    {broadcast, "level_tree", [](const Params& a) { return tree_broadcast(levels_of(a), 0, a.segments); }, kAnyN, "segments,levels",
     "if(N-1,L+P-1,0)", "children(L)", kOne, "children(P)", kOne,
     "from leader to leader, a round per level of the machine", kJain},
    {broadcast, "two_level", [](const Params& a) { return two_level_broadcast(a.ranks, resolved(a).group, a.root); }, kEqualGroups, "group",
     "min(1,N-1)+(G>1)", "(N+G-2)/G", kOne, "N-1", "max(min(1,N-1),G-1)",
     "a part to each member of every group, then among the members", kLi, kEqualGroupsInWords},
    {broadcast, "circulant", [](const Params& a) { return circulant_broadcast(circulant(a), a.root); }, kAnyN, "skips",
     "S", "C", kOne, kOne, kOne,
     "the circulant reduce reversed in time", kTraff},
    {broadcast, "switch", [](const Params& a) { return switch_broadcast(a.ranks, a.root); }, kAnyN, "",
     kOne, kOne, kOne, kOne, kOne,
     "one message that the switch copies to everyone", kSharp},

    {kReduce, "chain", [](const Params& a) { return chain_reduce(a.ranks, a.root, a.segments); }, kAnyN, "segments",
     "if(N-1,N+P-2,0)", kOne, kOne, kOne, kOne,
     "the chain broadcast reversed in time", kPatarasuk},
    {kReduce, "binomial_near", [](const Params& a) { return tree_reduce(binomial_near(a.ranks), a.root, a.segments); }, kAnyN, "segments",
     "if(N-1,clog2(N)+P-1,0)", kOne, "clog2(N)", kOne, "min(P,clog2(N))",
     "the near-first binomial broadcast reversed in time: distances ... 4, 2, 1", kJohnsson},
    {kReduce, "binomial_far", [](const Params& a) { return tree_reduce(binomial_far(a.ranks), a.root, a.segments); }, kAnyN, "segments",
     "if(N-1,clog2(N)+P-1,0)", kOne, "clog2(N)", kOne, "min(P,clog2(N))",
     "the far-first binomial broadcast reversed in time: distances 1, 2, 4 ...", kJohnsson},
    {kReduce, "binary_tree", [](const Params& a) { return tree_reduce(heap(a.ranks), a.root, a.segments); }, kAnyN, "segments",
     "if(N-1,log2(N)+P-1,0)", kOne, "min(2,N-1)", kOne, "min(2,N-1)",
     "from both children at once to every rank", kLu},
    {kReduce, "double_tree", [](const Params& a) { return double_tree_reduce(a.ranks, a.root, a.segments); }, kAnyN, "segments",
     "if(N-1,log2(N-1)+P,0)", kOne, kOne, "if(or(P>1,1-pow2(N+1)),2,1)*min(1,N-1)", kTwo,
     "two binary trees below the root, half of the vector up each", kSanders},
    {kReduce, "two_tree", [](const Params& a) { return two_tree_reduce(a.ranks, a.root, a.segments); }, kAnyN, "segments",
     "if(N-1,2*log2(N-1)+max(pow2(N),pow2(N+1))+2*P-1,0)", kOne, kOne, kOne, kOne,
     "the double tree in two colours: one message in and one out per round", kSanders},
    {kReduce, "reduce_scatter_gather", [](const Params& a) { return reduce_scatter_gather_reduce(a.ranks, a.root); }, kAnyN, "",
     "if(N-1,clog2(N)+N-1,0)", kOne, kTwoShares, kOne, kOne,
     "scatter_all_gather reversed in time: ring reduce-scatter, then binomial gather", kBarnett},
    {kReduce, "linear", [](const Params& a) { return tree_reduce(star(a.ranks), a.root, 1); }, kAnyN, "",
     "N-1", kOne, "N-1", kOne, kOne,
     "the root hears one after the other", kFolklore},
    {kReduce, "direct_two_shot", [](const Params& a) { return direct_reduce_two_shot(a.ranks, a.root); }, kAnyN, "",
     kTwo, kOne, kTwoShares, "N-1", "N-1",
     "everyone adds up one block, then hands it to the root", kFolklore},
    {kReduce, "level_tree", [](const Params& a) { return tree_reduce(levels_of(a), 0, a.segments); }, kAnyN, "segments,levels",
     "if(N-1,L+P-1,0)", kOne, "children(L)", kOne, "children(P)",
     "the level_tree broadcast reversed in time", kJain},
    {kReduce, "two_level", [](const Params& a) { return two_level_reduce(a.ranks, resolved(a).group, a.root); }, kEqualGroups, "group",
     "min(1,N-1)+(G>1)", kOne, "(N+G-2)/G", "max(min(1,N-1),G-1)", "N-1",
     "the two_level broadcast reversed in time", kLi, kEqualGroupsInWords},
    {kReduce, "circulant", [](const Params& a) { return circulant_reduce(circulant(a), a.root); }, kAnyN, "skips",
     "S", kOne, "C", kOne, kOne,
     "the circulant reduce-scatter with all of the vector in the root's block", kTraff},
    {kReduce, "switch", [](const Params& a) { return switch_reduce(a.ranks, a.root); }, kAnyN, "",
     kOne, kOne, kOne, kOne, kOne,
     "the switch adds everyone's message up on its way to the root", kSharp},

    {all_reduce, "ring", [](const Params& a) { return ring_all_reduce(a.ranks); }, kAnyN, "",
     "2*(N-1)", kTwoShares, kTwoShares, kOne, kOne,
     "ring reduce-scatter, then ring all-gather", kPatarasuk},
    {all_reduce, "ring_mirrored", [](const Params& a) { return ring_mirrored_all_reduce(a.ranks); }, kAnyN, "",
     "2*(N-1)", kTwoShares, kTwoShares, kTwo, kTwo,
     "two rings in opposite directions, half of every block round each", kPatarasuk},
    {all_reduce, "ring_shortest", [](const Params& a) { return ring_shortest_all_reduce(a.ranks); }, kAnyN, "",
     "2*floor(N/2)", kTwoShares, kTwoShares, kTwo, kTwo,
     "both directions of the ring, every block the shorter way", kPatarasuk},
    {all_reduce, "chain", [](const Params& a) { return chain_all_reduce(a.ranks, a.segments); }, kAnyN, "segments",
     "if(N-1,2*(N+P-2),0)", "min(2,N-1)", "min(2,N-1)", kOne, kOne,
     "chain reduce to rank 0, then chain broadcast: a baseline", kLu},
    {all_reduce, "binomial_near", [](const Params& a) { return tree_reduce_then_broadcast(binomial_near(a.ranks), a.segments); }, kAnyN, "segments",
     "if(N-1,2*(clog2(N)+P-1),0)", "clog2(N)", "clog2(N)", "min(P,clog2(N))", "min(P,clog2(N))",
     "near-first binomial tree, up to rank 0 and down again: a baseline", kLu},
    {all_reduce, "binomial_far", [](const Params& a) { return tree_reduce_then_broadcast(binomial_far(a.ranks), a.segments); }, kAnyN, "segments",
     "if(N-1,2*(clog2(N)+P-1),0)", "clog2(N)", "clog2(N)", "min(P,clog2(N))", "min(P,clog2(N))",
     "far-first binomial tree, up to rank 0 and down again: a baseline", kChapter},
    {all_reduce, "binary_tree", [](const Params& a) { return tree_all_reduce(heap(a.ranks), a.segments); }, kAnyN, "segments",
     "if(N-1,2*log2(N)+P-1,0)", "if(N>=5,3,min(2,N-1))", "if(N>=5,3,min(2,N-1))",
     "if(and(N>=5,P>=3),3,min(2,N-1))", "if(and(N>=5,P>=3),3,min(2,N-1))",
     "up one binary tree and down again, segments meeting on the way", kLu},
    {all_reduce, "double_tree", [](const Params& a) { return double_tree_all_reduce(a.ranks, a.segments); }, kAnyN, "segments",
     "if(N-1,2*log2(N)+P-1,0)", "if(N>=5,2,if(N>=3,3/2,N-1))", "if(N>=5,2,if(N>=3,3/2,N-1))", kPortsOfDoubleTree, kPortsOfDoubleTree,
     "half of the vector up and down each of two trees, nobody interior in both", kSanders},
    {all_reduce, "double_tree_nccl", [](const Params& a) { return nccl_double_tree_all_reduce(a.ranks, a.segments); }, kAnyN, "segments",
     "if(N-1,2*(clog2(N)+P-1),0)", "if(N>=4,2,if(N-1,N/2,0))", "if(N>=4,2,if(N-1,N/2,0))", "if(N>=4,2,if(N>=3,min(2,P),N-1))", "if(N>=4,2,if(N>=3,min(2,P),N-1))",
     "NCCL's two trees, half of the vector up each, then down", kNccl},
    {all_reduce, "two_tree", [](const Params& a) { return two_tree_all_reduce(a.ranks, a.segments); }, kAnyN, "segments",
     "if(N-1,2*(2*log2(N-1)+max(pow2(N),pow2(N+1))+2*P-1),0)", "if(N>=4,2,if(N-1,N/2,0))", "if(N>=4,2,if(N-1,N/2,0))", kOne, kOne,
     "the double tree in two colours: one message in and one out per round", kSanders},
    {all_reduce, "recursive_doubling", [](const Params& a) { return recursive_doubling_all_reduce(a.ranks); }, kAnyN, "",
     "log2(N)+2*(1-pow2(N))", "log2(N)+1-pow2(N)", "log2(N)+1-pow2(N)", kOne, kOne,
     "partners at distance 2^k exchange everything; surplus ranks folded", kThakur},
    {all_reduce, "halving_doubling", [](const Params& a) { return halving_doubling_all_reduce(a.ranks); }, kAnyN, "",
     "2*log2(N)+2*(1-pow2(N))", "2*(Q-1)/Q+1-pow2(N)", "2*(Q-1)/Q+1-pow2(N)", kOne, kOne,
     "halve between partners at distance 1, 2, 4 ..., then double; surplus ranks folded", kRabenseifner},
    {all_reduce, "halving_doubling_far", [](const Params& a) { return halving_doubling_far_all_reduce(a.ranks); }, kAnyN, "",
     "2*log2(N)+2*(1-pow2(N))", "2*(Q-1)/Q+1-pow2(N)", "2*(Q-1)/Q+1-pow2(N)", kOne, kOne,
     "halve between partners at distance ... 4, 2, 1, then double; surplus ranks folded", kThakur},
    {all_reduce, "direct_one_shot", [](const Params& a) { return direct_all_reduce_one_shot(a.ranks); }, kAnyN, "",
     kOne, "N-1", "N-1", "N-1", "N-1",
     "everyone reads all vectors and adds them up", kFolklore},
    {all_reduce, "direct_two_shot", [](const Params& a) { return direct_all_reduce_two_shot(a.ranks); }, kAnyN, "",
     kTwo, kTwoShares, kTwoShares, "N-1", "N-1",
     "everyone adds up one block, then hands it to all", kFolklore},
    {all_reduce, "direct_one_shot_push", [](const Params& a) { return direct_all_reduce_one_shot_push(a.ranks); }, kAnyN, "",
     kOne, "N-1", "N-1", "N-1", "N-1",
     "everyone stores its vector beside everyone else's, who adds them up", kFolklore},
    {all_reduce, "direct_two_shot_push", [](const Params& a) { return direct_all_reduce_two_shot_push(a.ranks); }, kAnyN, "",
     kTwo, kTwoShares, kTwoShares, "N-1", "N-1",
     "everyone stores its parts with their owners, who add up and hand to all", kFolklore},
    {all_reduce, "central", [](const Params& a) { return central_all_reduce(a.ranks); }, kAnyN, "",
     kTwo, "N-1", "N-1", "N-1", "N-1",
     "all vectors to rank 0, the sum back to all: the naive baseline", kLesson},
    {all_reduce, "hierarchical", [](const Params& a) { return hierarchical_all_reduce(a.ranks, resolved(a).group, a.segments); }, kAnyN, "segments,group",
     "2*if(G>1,G+P-2,0)+2*(ceil(N/G)-1)", "max(min(2,G-1),min(1,G-1)+2*(1-1/ceil(N/G)))", "max(min(2,G-1),min(1,G-1)+2*(1-1/ceil(N/G)))", kOne, kOne,
     "reduce in groups of G, ring among their first ranks, broadcast in groups", kLesson},
    {all_reduce, "ring_2d", [](const Params& a) { return ring_2d_all_reduce(a.ranks, resolved(a).group); }, kEqualGroups, "group",
     "2*(G-1)+2*(N/G-1)", kTwoShares, kTwoShares, kOne, kOne,
     "rings of G reduce-scatter, rings across all-reduce, rings of G all-gather", kChapter, kEqualGroupsInWords},
    {all_reduce, "ring_tree", [](const Params& a) { return ring_tree_all_reduce(a.ranks, resolved(a).group, a.segments); }, kEqualGroups, "segments,group",
     "2*(G-1)+if(N>G,2*log2(N/G)+P-1,0)", "2*(G-1)/G+if(N/G>=5,3,min(2,N/G-1))/G", "2*(G-1)/G+if(N/G>=5,3,min(2,N/G-1))/G",
     "max(min(1,G-1),if(and(N/G>=5,P>=3),3,min(2,N/G-1)))", "max(min(1,G-1),if(and(N/G>=5,P>=3),3,min(2,N/G-1)))",
     "rings of G reduce-scatter, binary trees across all-reduce, rings of G all-gather", kChapter, kEqualGroupsInWords},
    {all_reduce, "two_level", [](const Params& a) { return two_level_all_reduce(a.ranks, resolved(a).group); }, kAnyN, "group",
     kTwoLevelAllReduceRounds, kHoldersAndShare, kHoldersAndShare, kMemberPorts, kMemberPorts,
     "sums of groups cross once and results cross once, every member its part", kLi},
    {all_reduce, "leaders", [](const Params& a) { return leaders_all_reduce(a.ranks, resolved(a).group); }, kAnyN, "group",
     "2*(G>1)+(N>G)", "if(N-1,ceil(N/G)+G-2,0)", "if(N-1,ceil(N/G)+G-2,0)", kHolderPorts, kHolderPorts,
     "to the leaders of groups of G, among all leaders at once, and back", kLi},
    {all_reduce, "level_tree", [](const Params& a) { return tree_all_reduce(levels_of(a), 1); }, kAnyN, "levels",
     "2*L", "J", "J", "children(1)", "children(1)",
     "up from leader to leader, a round per level of the machine, and down again", kJain},
    {all_reduce, "circulant", [](const Params& a) { return circulant_all_reduce(circulant(a)); }, kAnyN, "skips",
     "2*S", kTwoShares, kTwoShares, kOne, kOne,
     "circulant reduce-scatter, then all-gather: the fewest rounds and blocks for any N", kTraff},
    {all_reduce, "hamiltonian", [](const Params& a) { return hamiltonian_all_reduce(resolved(a).dims); }, kAnyN, "dims",
     "2*(N-1)", kTwoShares, kTwoShares, kTwo, kTwo,
     "ring both ways along a Hamiltonian cycle of the torus", kPatarasuk},
    {all_reduce, "bucket", [](const Params& a) { return bucket_all_reduce(resolved(a).dims); }, kAnyN, "dims",
     "2*D*(most(a)-1)", kTwoShares, kTwoShares, kAllPorts, kAllPorts,
     "rings along one dimension after the other, 2D of them side by side", kBucket},
    {all_reduce, "torus_doubling", [](const Params& a) { return torus_doubling_all_reduce(resolved(a).dims); }, kPowersOfTwo, "dims",
     kTwiceLog2Rounds, kTwoShares, kTwoShares, kAllPorts, kAllPorts,
     "halving and doubling, dimensions in turn, 2D of them side by side", kSack, kPowersOfTwoInWords},
    {all_reduce, "torus_doubling_latency", [](const Params& a) { return torus_doubling_latency_all_reduce(resolved(a).dims); }, kPowersOfTwo, "dims",
     kExchanges, kExchanges, kExchanges, kOne, kOne,
     "recursive doubling of whole vectors along the dimensions in turn", kSack, kPowersOfTwoInWords},
    {all_reduce, "swing", [](const Params& a) { return swing_all_reduce(resolved(a).dims); }, kPowersOfTwo, "dims",
     kTwiceLog2Rounds, kTwoShares, kTwoShares, kAllPorts, kAllPorts,
     "Swing: partners at 1, -1, 3, -5 ...; halving and doubling, 2D side by side", kSwing, kPowersOfTwoInWords},
    {all_reduce, "swing_latency", [](const Params& a) { return swing_latency_all_reduce(resolved(a).dims); }, kPowersOfTwo, "dims",
     kExchanges, kExchanges, kExchanges, kOne, kOne,
     "Swing with whole vectors along the dimensions in turn", kSwing, kPowersOfTwoInWords},
    {all_reduce, "bruck_ternary", [](const Params& a) { return bruck_ternary_all_reduce(resolved(a).dims); }, kAnyN, "dims",
     kTwiceLog3Rounds, kTwoShares, kTwoShares, kTwoPerDimension, kTwoPerDimension,
     "partners at 3^k and 2 3^k on one side; D of them side by side", kBruck},
    {all_reduce, "bruck_ternary_latency", [](const Params& a) { return bruck_ternary_latency_all_reduce(resolved(a).dims); }, kAnyN, "dims",
     kLog3Rounds, kBruckSums, kBruckSums, kBruckSumPorts, kBruckSumPorts,
     "whole vectors from 3^k and 2 3^k on one side; D of them side by side", kBruck},
    {all_reduce, "trivance", [](const Params& a) { return trivance_all_reduce(resolved(a).dims); }, kAnyN, "dims",
     kTwiceLog3Rounds, kTwoShares, kTwoShares, kTwoPerDimension, kTwoPerDimension,
     "partners at 3^k on both sides; D of them side by side", kTrivance},
    {all_reduce, "trivance_latency", [](const Params& a) { return trivance_latency_all_reduce(resolved(a).dims); }, kAnyN, "dims",
     kLog3Rounds, "each(messages(a))", "each(messages(a))", "T", "T",
     "whole vectors from 3^k on both sides; D of them side by side", kTrivance},
    {all_reduce, "switch", [](const Params& a) { return switch_all_reduce(a.ranks); }, kAnyN, "",
     kOne, kOne, kOne, kOne, kOne,
     "the switch adds everyone's message up and copies the sum to everyone", kSharp},

    {all_gather, "ring", [](const Params& a) { return ring_all_gather(a.ranks); }, kAnyN, "",
     "N-1", kShare, kShare, kOne, kOne,
     "everyone passes a block to the right", kPatarasuk},
    {all_gather, "ring_mirrored", [](const Params& a) { return ring_mirrored_all_gather(a.ranks); }, kAnyN, "",
     "N-1", kShare, kShare, kTwo, kTwo,
     "two rings in opposite directions, half of every block round each", kPatarasuk},
    {all_gather, "ring_shortest", [](const Params& a) { return ring_shortest_all_gather(a.ranks); }, kAnyN, "",
     "floor(N/2)", kShare, kShare, kTwo, kTwo,
     "both directions of the ring, every block the shorter way", kPatarasuk},
    {all_gather, "recursive_doubling", [](const Params& a) { return recursive_doubling_all_gather(a.ranks); }, kAnyN, "",
     "log2(N)+2*(1-pow2(N))", "if(pow2(N),N-1,N+Q-3+2*exp2(log2(N-Q))+(N-Q)*(log2(N)-1-log2(N-Q)))/N", kShare, kOne, kOne,
     "partners at distance 1, 2, 4 ... exchange all they have; surplus ranks folded", kThakur},
    {all_gather, "bruck", [](const Params& a) { return bruck_all_gather(a.ranks); }, kAnyN, "",
     "clog2(N)", kShare, kShare, kOne, kOne,
     "all one has, up to what is missing, to the rank 2^k to the left", kBruck},
    {all_gather, "pat", [](const Params& a) { return pat_all_gather(a.ranks, resolved(a).aggregation); }, kAggregation, "aggregation",
     "log2(A)+min(N,exp2(clog2(N))/A)-1", kShare, kShare, kOne, kOne,
     "a binomial tree for every block, far first, at most A blocks per message", kPat, kAggregationInWords},
    {all_gather, "direct", [](const Params& a) { return direct_all_gather(a.ranks); }, kAnyN, "",
     kOne, kShare, kShare, "N-1", "N-1",
     "everyone to everyone at once", kFolklore},
    {all_gather, "two_level", [](const Params& a) { return two_level_all_gather(a.ranks, resolved(a).group); }, kAnyN, "group",
     kTwoLevelRounds, kHolders, kShare, kHolderPorts, kMemberPorts,
     "every block once into every group, then among its members", kLi},
    {all_gather, "circulant", [](const Params& a) { return circulant_all_gather(circulant(a)); }, kAnyN, "skips",
     "S", kShare, kShare, kOne, kOne,
     "the circulant reduce-scatter reversed in time", kTraff},
    {all_gather, "hamiltonian", [](const Params& a) { return hamiltonian_all_gather(resolved(a).dims); }, kAnyN, "dims",
     "N-1", kShare, kShare, kTwo, kTwo,
     "ring both ways along a Hamiltonian cycle of the torus", kPatarasuk},
    {all_gather, "bucket", [](const Params& a) { return bucket_all_gather(resolved(a).dims); }, kAnyN, "dims",
     "D*(most(a)-1)", kShare, kShare, kAllPorts, kAllPorts,
     "rings along one dimension after the other, 2D of them side by side", kBucket},
    {all_gather, "torus_doubling", [](const Params& a) { return torus_doubling_all_gather(resolved(a).dims); }, kPowersOfTwo, "dims",
     kLog2Rounds, kShare, kShare, kAllPorts, kAllPorts,
     "doubling, farthest first, dimensions in turn, 2D of them side by side", kSack, kPowersOfTwoInWords},
    {all_gather, "swing", [](const Params& a) { return swing_all_gather(resolved(a).dims); }, kPowersOfTwo, "dims",
     kLog2Rounds, kShare, kShare, kAllPorts, kAllPorts,
     "Swing: partners at ... -5, 3, -1, 1; 2D of them side by side", kSwing, kPowersOfTwoInWords},
    {all_gather, "bruck_ternary", [](const Params& a) { return bruck_ternary_all_gather(resolved(a).dims); }, kAnyN, "dims",
     kLog3Rounds, kShare, kShare, kTwoPerDimension, kTwoPerDimension,
     "to the ranks 3^k and 2 3^k further on, farthest first; D side by side", kBruck},
    {all_gather, "trivance", [](const Params& a) { return trivance_all_gather(resolved(a).dims); }, kAnyN, "dims",
     kLog3Rounds, kShare, kShare, kTwoPerDimension, kTwoPerDimension,
     "to the ranks 3^k to both sides, farthest first; D side by side", kTrivance},
    {all_gather, "switch", [](const Params& a) { return switch_all_gather(a.ranks); }, kAnyN, "",
     kOne, "min(1,N-1)/N", kShare, kOne, "N-1",
     "everyone's message copied to everyone by the switch", kSharp},

    {reduce_scatter, "ring", [](const Params& a) { return ring_reduce_scatter(a.ranks); }, kAnyN, "",
     "N-1", kShare, kShare, kOne, kOne,
     "the ring all-gather reversed in time", kPatarasuk},
    {reduce_scatter, "ring_mirrored", [](const Params& a) { return ring_mirrored_reduce_scatter(a.ranks); }, kAnyN, "",
     "N-1", kShare, kShare, kTwo, kTwo,
     "two rings in opposite directions, half of every block round each", kPatarasuk},
    {reduce_scatter, "ring_shortest", [](const Params& a) { return ring_shortest_reduce_scatter(a.ranks); }, kAnyN, "",
     "floor(N/2)", kShare, kShare, kTwo, kTwo,
     "both directions of the ring, every block the shorter way", kPatarasuk},
    {reduce_scatter, "recursive_halving", [](const Params& a) { return recursive_halving_reduce_scatter(a.ranks); }, kAnyN, "",
     "log2(N)+2*(1-pow2(N))", kShare, "if(pow2(N),N-1,N+Q-3+2*exp2(log2(N-Q))+(N-Q)*(log2(N)-1-log2(N-Q)))/N", kOne, kOne,
     "the recursive doubling all-gather reversed in time; surplus ranks folded", kThakur},
    {reduce_scatter, "bruck", [](const Params& a) { return bruck_reduce_scatter(a.ranks); }, kAnyN, "",
     "clog2(N)", kShare, kShare, kOne, kOne,
     "Bruck's all-gather reversed in time", kBruck},
    {reduce_scatter, "pat", [](const Params& a) { return pat_reduce_scatter(a.ranks, resolved(a).aggregation); }, kAggregation, "aggregation",
     "log2(A)+min(N,exp2(clog2(N))/A)-1", kShare, kShare, kOne, kOne,
     "the PAT all-gather reversed in time", kPat, kAggregationInWords},
    {reduce_scatter, "direct", [](const Params& a) { return direct_reduce_scatter(a.ranks); }, kAnyN, "",
     kOne, kShare, kShare, "N-1", "N-1",
     "everyone collects its own block from all", kFolklore},
    {reduce_scatter, "two_level", [](const Params& a) { return two_level_reduce_scatter(a.ranks, resolved(a).group); }, kAnyN, "group",
     kTwoLevelRounds, kShare, kHolders, kMemberPorts, kHolderPorts,
     "the two_level all-gather reversed in time", kLi},
    {reduce_scatter, "circulant", [](const Params& a) { return circulant_reduce_scatter(circulant(a)); }, kAnyN, "skips",
     "S", kShare, kShare, kOne, kOne,
     "in round k partial sums of all blocks to the rank skips[k] further on", kTraff},
    {reduce_scatter, "hamiltonian", [](const Params& a) { return hamiltonian_reduce_scatter(resolved(a).dims); }, kAnyN, "dims",
     "N-1", kShare, kShare, kTwo, kTwo,
     "the hamiltonian all-gather reversed in time", kPatarasuk},
    {reduce_scatter, "bucket", [](const Params& a) { return bucket_reduce_scatter(resolved(a).dims); }, kAnyN, "dims",
     "D*(most(a)-1)", kShare, kShare, kAllPorts, kAllPorts,
     "the bucket all-gather reversed in time", kBucket},
    {reduce_scatter, "torus_doubling", [](const Params& a) { return torus_doubling_reduce_scatter(resolved(a).dims); }, kPowersOfTwo, "dims",
     kLog2Rounds, kShare, kShare, kAllPorts, kAllPorts,
     "the torus_doubling all-gather reversed in time", kSack, kPowersOfTwoInWords},
    {reduce_scatter, "swing", [](const Params& a) { return swing_reduce_scatter(resolved(a).dims); }, kPowersOfTwo, "dims",
     kLog2Rounds, kShare, kShare, kAllPorts, kAllPorts,
     "the swing all-gather reversed in time", kSwing, kPowersOfTwoInWords},
    {reduce_scatter, "bruck_ternary", [](const Params& a) { return bruck_ternary_reduce_scatter(resolved(a).dims); }, kAnyN, "dims",
     kLog3Rounds, kShare, kShare, kTwoPerDimension, kTwoPerDimension,
     "the bruck_ternary all-gather reversed in time, in a mirror", kBruck},
    {reduce_scatter, "trivance", [](const Params& a) { return trivance_reduce_scatter(resolved(a).dims); }, kAnyN, "dims",
     kLog3Rounds, kShare, kShare, kTwoPerDimension, kTwoPerDimension,
     "the trivance all-gather reversed in time", kTrivance},
    {reduce_scatter, "switch", [](const Params& a) { return switch_reduce_scatter(a.ranks); }, kAnyN, "",
     kOne, kShare, "min(1,N-1)/N", "N-1", kOne,
     "the switch adds every rank's block up on its way there", kSharp},

    {all_to_all, "ring", [](const Params& a) { return ring_all_to_all(a.ranks); }, kAnyN, "",
     "floor(N/2)", "floor(N*N/4)/N", "floor(N*N/4)/N", kTwo, kTwo,
     "relayed round the ring the shorter way, one message per direction and round", kLu},
    {all_to_all, "ring_relay", [](const Params& a) { return ring_relay_all_to_all(a.ranks); }, kAnyN, "",
     "floor(N/2)*(floor(N/2)+1)/2", "floor(N*N/4)/N", "floor(N*N/4)/N", "min(2,N-1)", "min(2,N-1)",
     "relayed round the ring the shorter way, one block per direction and round", kLu},
    {all_to_all, "pairwise", [](const Params& a) { return pairwise_all_to_all(a.ranks); }, kAnyN, "",
     "N-1", kShare, kShare, kOne, kOne,
     "one partner after the other, staggered so that nobody receives twice", kThakur},
    {all_to_all, "bruck", [](const Params& a) { return bruck_all_to_all(a.ranks); }, kAnyN, "",
     "clog2(N)", "ones(N)/N", "ones(N)/N", kOne, kOne,
     "in round k all blocks whose way to go has bit k", kBruck},
    {all_to_all, "circulant", [](const Params& a) { return circulant_all_to_all(circulant(a)); }, kAnyN, "skips",
     "S", "W/N", "W/N", kOne, kOne,
     "the circulant reduce-scatter with concatenation for the sum", kTraff},
    {all_to_all, "direct", [](const Params& a) { return direct_all_to_all(a.ranks); }, kAnyN, "",
     kOne, kShare, kShare, "N-1", "N-1",
     "everyone to everyone at once", kFolklore},

    {gather, "binomial", [](const Params& a) { return tree_gather(binomial_far(a.ranks), a.root); }, kAnyN, "",
     "clog2(N)", "if(N>1,max(N-exp2(clog2(N)-1),floor(exp2(clog2(N)-2)))/N,0)", kShare, kOne, kOne,
     "the binomial scatter reversed in time", kJohnsson},
    {gather, "linear", [](const Params& a) { return tree_gather(star(a.ranks), a.root); }, kAnyN, "",
     "N-1", "min(1,N-1)/N", kShare, kOne, kOne,
     "the root hears one after the other", kFolklore},
    {gather, "chain", [](const Params& a) { return chain_gather(a.ranks, a.root); }, kAnyN, "",
     "N-1", kShare, kShare, kOne, kOne,
     "the chain scatter reversed in time", kFolklore},
    {gather, "circulant", [](const Params& a) { return circulant_gather(circulant(a), a.root); }, kAnyN, "skips",
     "S", "V/N", kShare, kOne, kOne,
     "the circulant scatter reversed in time", kTraff},

    {scatter, "binomial", [](const Params& a) { return tree_scatter(binomial_far(a.ranks), a.root); }, kAnyN, "",
     "clog2(N)", kShare, "if(N>1,max(N-exp2(clog2(N)-1),floor(exp2(clog2(N)-2)))/N,0)", kOne, kOne,
     "every rank hands half of what it has to the other half of its ranks", kJohnsson},
    {scatter, "linear", [](const Params& a) { return tree_scatter(star(a.ranks), a.root); }, kAnyN, "",
     "N-1", kShare, "min(1,N-1)/N", kOne, kOne,
     "the root serves one after the other", kFolklore},
    {scatter, "chain", [](const Params& a) { return chain_scatter(a.ranks, a.root); }, kAnyN, "",
     "N-1", kShare, kShare, kOne, kOne,
     "handed from neighbour to neighbour, the farthest rank's block first", kFolklore},
    {scatter, "circulant", [](const Params& a) { return circulant_scatter(circulant(a), a.root); }, kAnyN, "skips",
     "S", kShare, "V/N", kOne, kOne,
     "the circulant all-to-all with the blocks of one rank", kTraff},

    {send_recv, "direct", [](const Params& a) { return direct_send_recv(a.ranks, a.root, a.peer); }, kAnyN, "",
     "H", "H", "H", "H", "H",
     "one hop", kFolklore},

    {barrier, "dissemination", [](const Params& a) { return dissemination_barrier(a.ranks); }, kAnyN, "",
     "clog2(N)", "clog2(N)", "clog2(N)", kOne, kOne,
     "in round k everyone tells the rank 2^k to the right", kHensgen},
};
// clang-format on

}  // namespace

std::span<const Algorithm> catalogue() { return kCatalogue; }

Params resolved(Params params) {
  if (params.group == 0) params.group = middle_divisor(params.ranks);
  if (params.aggregation == 0) params.aggregation = pat_default_aggregation(params.ranks);
  if (params.dims.empty()) params.dims = {params.ranks};
  if (params.skips.empty()) params.skips = halving_skips(params.ranks);
  if (params.levels.empty()) params.levels = {middle_divisor(params.ranks)};
  return params;
}

const Algorithm* find_algorithm(Collective collective, std::string_view name) {
  for (const Algorithm& line : kCatalogue) {
    if (line.collective == collective && line.name == name) return &line;
  }
  return nullptr;
}

std::string algorithm_names(Collective collective) {
  std::string names;
  for (const Algorithm& line : kCatalogue) {
    if (line.collective != collective) continue;
    if (!names.empty()) names += ", ";
    names += line.name;
  }
  return names;
}

bool Algorithm::takes(std::string_view parameter) const {
  return parameters.find(parameter) != std::string_view::npos;
}

std::optional<std::string> Algorithm::refusal(const Params& given) const {
  const std::string who = std::string(name_of(collective)) + " '" + std::string(name) + "'";
  const auto outside = [&who](const char* what, int value, int first, int last) {
    return who + ": " + what + " is " + std::to_string(value) + "; allowed are " +
           std::to_string(first) + " to " + std::to_string(last);
  };
  if (given.ranks < 1 || given.ranks > kMostRanks) {
    return outside("ranks", given.ranks, 1, kMostRanks);
  }
  if (given.segments < 1 || given.segments > kMostSegments) {
    return outside("segments", given.segments, 1, kMostSegments);
  }
  if (given.root < 0 || given.root >= given.ranks) {
    return outside("root", given.root, 0, given.ranks - 1);
  }
  if (collective == send_recv && (given.peer < 0 || given.peer >= given.ranks)) {
    return outside("peer", given.peer, 0, given.ranks - 1);
  }
  const Params params = resolved(given);
  if (takes("group") && (params.group < 1 || params.group > params.ranks)) {
    return outside("group", params.group, 1, params.ranks) + ", and 0 for the default";
  }
  if (takes("aggregation") && params.aggregation < 1) {
    return outside("aggregation", params.aggregation, 1, pat_default_aggregation(params.ranks)) +
           ", and 0 for the default";
  }
  if (takes("dims")) {
    if (const auto why = dims_refusal(params.dims, params.ranks)) return who + ": " + *why;
  }
  if (takes("skips")) {
    if (const auto why = skips_refusal(params.skips, params.ranks)) return who + ": " + *why;
  }
  if (takes("levels")) {
    if (const auto why = levels_refusal(params.levels, params.ranks)) return who + ": " + *why;
  }
  if (evaluate(allowed_when, params) == 0) {
    std::string text = who + ": ranks is " + std::to_string(params.ranks);
    if (takes("group")) text += ", group is " + std::to_string(params.group);
    if (takes("aggregation")) text += ", aggregation is " + std::to_string(params.aggregation);
    if (takes("dims")) text += ", dims is " + dims_text(params.dims);
    return text + "; " + std::string(needs);
  }
  return std::nullopt;
}

Goal goal_of(const Algorithm& algorithm, const Params& params, const Schedule& schedule) {
  return {algorithm.collective, params.ranks, schedule.blocks, params.root, params.peer};
}

int blocks_per_m(const Goal& goal) {
  return goal.collective == all_to_all ? goal.blocks / goal.ranks : goal.blocks;
}

}  // namespace rankine
