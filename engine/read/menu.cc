#include "engine/read/menu.h"

#include <algorithm>

namespace rankine {
namespace {

using enum Collective;

// Its "Tree" is the double tree, up and down; its rings pipeline what goes to or from one root,
// which is a chain; NVLS and CollNet add up and copy in switches. The rest is built of sends.
constexpr Menu::Line kNccl[] = {
    {broadcast, "chain"},    {Collective::reduce, "chain"},
    {all_reduce, "ring"},    {all_reduce, "double_tree_nccl"},
    {all_reduce, "switch"},  {reduce_scatter, "ring"},
    {reduce_scatter, "pat"}, {reduce_scatter, "switch"},
    {all_gather, "ring"},    {all_gather, "pat"},
    {all_gather, "switch"},  {all_to_all, "direct"},
    {gather, "linear"},      {scatter, "linear"},
    {send_recv, "direct"},
};

// Between the ranks of one communicator, blocking; its variants of another radix are the same lines
// with one.
constexpr Menu::Line kMpich[] = {
    {broadcast, "binomial_far"},
    {broadcast, "scatter_all_gather"},
    {broadcast, "binary_tree"},
    {broadcast, "quaternary_tree"},
    {broadcast, "chain"},
    {Collective::reduce, "binomial_far"},
    {Collective::reduce, "reduce_scatter_gather"},
    {all_reduce, "recursive_doubling"},
    {all_reduce, "halving_doubling"},
    {all_reduce, "ring"},
    {all_reduce, "binary_tree"},
    {all_reduce, "halving_doubling_far"},
    {reduce_scatter, "recursive_halving"},
    {all_gather, "recursive_doubling"},
    {all_gather, "recursive_doubling_far"},
    {all_gather, "bruck"},
    {all_gather, "ring"},
    {all_to_all, "bruck"},
    {all_to_all, "pairwise"},
    {all_to_all, "direct"},
    {gather, "binomial"},
    {gather, "linear"},
    {scatter, "binomial"},
    {scatter, "linear"},
    {send_recv, "direct"},
    {barrier, "dissemination"},
    {barrier, "recursive_doubling"},
};

// Its base component, which the tuned one chooses from; without what is for two ranks only, and
// without the variants that differ in how messages are waited for.
constexpr Menu::Line kOpenMpi[] = {
    {broadcast, "linear"},
    {broadcast, "chain"},
    {broadcast, "binary_tree"},
    {broadcast, "binomial_near"},
    {broadcast, "binomial_far"},
    {broadcast, "scatter_all_gather"},
    {Collective::reduce, "linear"},
    {Collective::reduce, "chain"},
    {Collective::reduce, "binary_tree"},
    {Collective::reduce, "binomial_far"},
    {all_reduce, "central"},
    {all_reduce, "recursive_doubling"},
    {all_reduce, "ring"},
    {all_reduce, "halving_doubling"},
    {reduce_scatter, "recursive_halving"},
    {reduce_scatter, "ring"},
    {all_gather, "bruck"},
    {all_gather, "recursive_doubling"},
    {all_gather, "ring"},
    {all_gather, "neighbour_exchange"},
    {all_gather, "sparbit"},
    {all_gather, "direct"},
    {all_to_all, "direct"},
    {all_to_all, "pairwise"},
    {all_to_all, "bruck"},
    {gather, "linear"},
    {gather, "binomial"},
    {scatter, "linear"},
    {scatter, "binomial"},
    {send_recv, "direct"},
    {barrier, "central"},
    {barrier, "double_ring"},
    {barrier, "recursive_doubling"},
    {barrier, "dissemination"},
    {barrier, "binomial"},
    {scan, "chain"},
    {exscan, "chain"},
};

// Its transport over UCP; k-nomial is what it calls trees and butterflies of any radix, "dbt" the
// double binary tree. Messages between two ranks and scans are not its business.
constexpr Menu::Line kUcc[] = {
    {broadcast, "binomial_far"},
    {broadcast, "double_tree"},
    {Collective::reduce, "binomial_far"},
    {Collective::reduce, "double_tree"},
    {all_reduce, "recursive_doubling"},
    {all_reduce, "halving_doubling_far"},
    {all_reduce, "double_tree"},
    {reduce_scatter, "ring"},
    {reduce_scatter, "recursive_halving"},
    {all_gather, "recursive_doubling"},
    {all_gather, "ring"},
    {all_gather, "neighbour_exchange"},
    {all_gather, "bruck"},
    {all_gather, "sparbit"},
    {all_gather, "direct"},
    {all_to_all, "pairwise"},
    {all_to_all, "bruck"},
    {gather, "binomial"},
    {scatter, "binomial"},
    {barrier, "recursive_doubling"},
};

constexpr Menu kMenus[] = {
    {"all", "the whole catalogue"},
    {"mpich", "MPICH 4, src/mpi/coll/coll_algorithms.txt", kMpich},
    {"nccl", "NCCL 2.28, NCCL_ALGO", kNccl},
    {"openmpi", "Open MPI 5, ompi/mca/coll/base", kOpenMpi},
    {"ucc", "UCC 1.3, src/components/tl/ucp", kUcc},
};

}  // namespace

bool Menu::has(const Algorithm& algorithm) const {
  return lines.empty() || std::any_of(lines.begin(), lines.end(), [&](const Line& line) {
           return line.collective == algorithm.collective && line.algorithm == algorithm.name;
         });
}

std::span<const Menu> menus() { return kMenus; }

const Menu* find_menu(std::string_view name) {
  const auto found = std::find_if(std::begin(kMenus), std::end(kMenus),
                                  [name](const Menu& menu) { return menu.name == name; });
  return found == std::end(kMenus) ? nullptr : found;
}

}  // namespace rankine
