#include "engine/read/menu.h"

#include <algorithm>

namespace rankine {
namespace {


// Its "Tree" is the double tree, up and down; its rings pipeline what goes to or from one root,
// which is a chain; NVLS and CollNet add up and copy in switches. The rest is built of sends.
constexpr Menu::Line kNccl[] = {
    {Collective::broadcast, "chain"},    {Collective::reduce, "chain"},
    {Collective::all_reduce, "ring"},    {Collective::all_reduce, "double_tree_nccl"},
    {Collective::all_reduce, "switch"},  {Collective::reduce_scatter, "ring"},
    {Collective::reduce_scatter, "pat"}, {Collective::reduce_scatter, "switch"},
    {Collective::all_gather, "ring"},    {Collective::all_gather, "pat"},
    {Collective::all_gather, "switch"},  {Collective::all_to_all, "direct"},
    {Collective::gather, "linear"},      {Collective::scatter, "linear"},
    {Collective::send_recv, "direct"},
};

// Between the ranks of one communicator, blocking; its variants of another radix are the same lines
// with one.
constexpr Menu::Line kMpich[] = {
    {Collective::broadcast, "binomial_far"},
    {Collective::broadcast, "scatter_all_gather"},
    {Collective::broadcast, "binary_tree"},
    {Collective::broadcast, "quaternary_tree"},
    {Collective::broadcast, "chain"},
    {Collective::reduce, "binomial_far"},
    {Collective::reduce, "reduce_scatter_gather"},
    {Collective::all_reduce, "recursive_doubling"},
    {Collective::all_reduce, "halving_doubling"},
    {Collective::all_reduce, "ring"},
    {Collective::all_reduce, "binary_tree"},
    {Collective::all_reduce, "halving_doubling_far"},
    {Collective::reduce_scatter, "recursive_halving"},
    {Collective::all_gather, "recursive_doubling"},
    {Collective::all_gather, "recursive_doubling_far"},
    {Collective::all_gather, "bruck"},
    {Collective::all_gather, "ring"},
    {Collective::all_to_all, "bruck"},
    {Collective::all_to_all, "pairwise"},
    {Collective::all_to_all, "direct"},
    {Collective::gather, "binomial"},
    {Collective::gather, "linear"},
    {Collective::scatter, "binomial"},
    {Collective::scatter, "linear"},
    {Collective::send_recv, "direct"},
    {Collective::barrier, "dissemination"},
    {Collective::barrier, "recursive_doubling"},
};

// Its base component, which the tuned one chooses from; without what is for two ranks only, and
// without the variants that differ in how messages are waited for.
constexpr Menu::Line kOpenMpi[] = {
    {Collective::broadcast, "linear"},
    {Collective::broadcast, "chain"},
    {Collective::broadcast, "binary_tree"},
    {Collective::broadcast, "binomial_near"},
    {Collective::broadcast, "binomial_far"},
    {Collective::broadcast, "scatter_all_gather"},
    {Collective::reduce, "linear"},
    {Collective::reduce, "chain"},
    {Collective::reduce, "binary_tree"},
    {Collective::reduce, "binomial_far"},
    {Collective::all_reduce, "central"},
    {Collective::all_reduce, "recursive_doubling"},
    {Collective::all_reduce, "ring"},
    {Collective::all_reduce, "halving_doubling"},
    {Collective::reduce_scatter, "recursive_halving"},
    {Collective::reduce_scatter, "ring"},
    {Collective::all_gather, "bruck"},
    {Collective::all_gather, "recursive_doubling"},
    {Collective::all_gather, "ring"},
    {Collective::all_gather, "neighbour_exchange"},
    {Collective::all_gather, "sparbit"},
    {Collective::all_gather, "direct"},
    {Collective::all_to_all, "direct"},
    {Collective::all_to_all, "pairwise"},
    {Collective::all_to_all, "bruck"},
    {Collective::gather, "linear"},
    {Collective::gather, "binomial"},
    {Collective::scatter, "linear"},
    {Collective::scatter, "binomial"},
    {Collective::send_recv, "direct"},
    {Collective::barrier, "central"},
    {Collective::barrier, "double_ring"},
    {Collective::barrier, "recursive_doubling"},
    {Collective::barrier, "dissemination"},
    {Collective::barrier, "binomial"},
    {Collective::scan, "chain"},
    {Collective::exscan, "chain"},
};

// Its transport over UCP; k-nomial is what it calls trees and butterflies of any radix, "dbt" the
// double binary tree. Messages between two ranks and scans are not its business.
constexpr Menu::Line kUcc[] = {
    {Collective::broadcast, "binomial_far"},
    {Collective::broadcast, "double_tree"},
    {Collective::reduce, "binomial_far"},
    {Collective::reduce, "double_tree"},
    {Collective::all_reduce, "recursive_doubling"},
    {Collective::all_reduce, "halving_doubling_far"},
    {Collective::all_reduce, "double_tree"},
    {Collective::reduce_scatter, "ring"},
    {Collective::reduce_scatter, "recursive_halving"},
    {Collective::all_gather, "recursive_doubling"},
    {Collective::all_gather, "ring"},
    {Collective::all_gather, "neighbour_exchange"},
    {Collective::all_gather, "bruck"},
    {Collective::all_gather, "sparbit"},
    {Collective::all_gather, "direct"},
    {Collective::all_to_all, "pairwise"},
    {Collective::all_to_all, "bruck"},
    {Collective::gather, "binomial"},
    {Collective::scatter, "binomial"},
    {Collective::barrier, "recursive_doubling"},
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
