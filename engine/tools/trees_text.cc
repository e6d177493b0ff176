#include "engine/tools/trees_text.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "engine/read/draw.h"

namespace rankine::tools {
namespace {

// Child to its parent, and the first round of a message between them.
struct Edge {
  Rank parent = 0;
  int round = 0;
  bool operator==(const Edge&) const = default;
};
using Edges = std::map<Rank, Edge>;

struct Tree {
  Rank root = 0;
  Edges edges{};
};

struct Moves {
  Edges edges{};
  bool is_tree = true;

  void add(Rank child, Rank parent, int round) {
    const auto [found, is_new] = edges.try_emplace(child, Edge{parent, round});
    is_tree = is_tree && (is_new || found->second.parent == parent);
  }
};

// One root that all get to, and somebody who has two children.
std::optional<Tree> tree_of(const Moves& moves) {
  if (!moves.is_tree || moves.edges.empty()) return std::nullopt;
  std::set<Rank> roots;
  std::map<Rank, int> children;
  for (const auto& [child, edge] : moves.edges) {
    if (!moves.edges.contains(edge.parent)) roots.insert(edge.parent);
    ++children[edge.parent];
    Rank up = child;
    std::size_t steps = 0;
    for (auto at = moves.edges.find(up); at != moves.edges.end(); at = moves.edges.find(up)) {
      up = at->second.parent;
      if (++steps > moves.edges.size()) return std::nullopt;  // a circle
    }
  }
  const bool branches = std::any_of(children.begin(), children.end(),
                                    [](const auto& each) { return each.second > 1; });
  if (roots.size() != 1 || !branches) return std::nullopt;
  return Tree{*roots.begin(), moves.edges};
}

void draw_below(const Edges& edges, Rank parent, const std::string& margin, bool utf8,
                std::string& out) {
  std::vector<std::pair<int, Rank>> children;  // by round
  for (const auto& [child, edge] : edges) {
    if (edge.parent == parent) children.push_back({edge.round, child});
  }
  std::sort(children.begin(), children.end());
  for (const auto& [round, child] : children) {
    const bool last = child == children.back().second;
    const std::string_view branch = utf8 ? (last ? "└─ " : "├─ ") : (last ? "`- " : "|- ");
    out += fmt::format("{}{}{} (round {})\n", margin, branch, child, round);
    draw_below(edges, child, margin + (last ? "   " : utf8 ? "│  " : "|  "), utf8, out);
  }
}

std::string list_of(const std::vector<Block>& blocks) {
  if (blocks.size() == 1) return fmt::format("block {}", blocks.front());
  const bool run = blocks.back() - blocks.front() + 1 == static_cast<Block>(blocks.size());
  if (run) return fmt::format("blocks {} to {}", blocks.front(), blocks.back());
  return fmt::format("blocks {}, {}{}", blocks[0], blocks[1],
                     blocks.size() > 2 ? fmt::format(", ... {}", blocks.back()) : "");
}

// The same tree, whenever its blocks are on their way.
bool alike(const Tree& a, const Tree& b) {
  return a.root == b.root && std::equal(a.edges.begin(), a.edges.end(), b.edges.begin(),
                                        b.edges.end(), [](const auto& x, const auto& y) {
                                          return x.first == y.first &&
                                                 x.second.parent == y.second.parent;
                                        });
}

}  // namespace

std::string trees_text(const Schedule& schedule, const Goal& goal, bool utf8) {
  // Phases in their order, then additions before copies, then blocks.
  std::vector<std::string> phases;
  std::map<std::pair<std::size_t, bool>, std::map<Block, Moves>> moves;
  for (const RoundView& view : view_rounds(schedule, goal)) {
    if (view.round < 0) continue;
    if (phases.empty() || phases.back() != view.phase) phases.push_back(view.phase);
    for (const TransferView& transfer : view.transfers) {
      const bool copies = transfer.act == Act::copy;
      for (const Rank from : transfer.from) {
        for (const Rank to : transfer.to) {
          if (from == to) continue;
          for (const Block block : transfer.what) {
            moves[{phases.size() - 1, copies}][block].add(copies ? to : from, copies ? from : to,
                                                          view.round);
          }
        }
      }
    }
  }
  std::string out;
  for (const auto& [key, blocks] : moves) {
    std::vector<std::pair<Tree, std::vector<Block>>> trees;
    for (const auto& [block, all] : blocks) {
      const auto tree = tree_of(all);
      if (!tree) continue;
      const auto same = std::find_if(trees.begin(), trees.end(),
                                     [&](const auto& each) { return alike(each.first, *tree); });
      if (same != trees.end()) {
        same->second.push_back(block);
      } else {
        trees.push_back({*tree, {block}});
      }
    }
    constexpr std::size_t kMostTrees = 4;
    for (std::size_t i = 0; i < std::min(kMostTrees, trees.size()); ++i) {
      const auto& [tree, of] = trees[i];
      const std::string& phase = phases[key.first];
      out += fmt::format("{}{} {} the tree{}\n{}\n", phase.empty() ? "" : phase + ": ", list_of(of),
                         key.second ? "down" : "up",
                         of.size() > 1 ? fmt::format(", rounds of block {}", of.front()) : "",
                         tree.root);
      draw_below(tree.edges, tree.root, "", utf8, out);
      out += "\n";
    }
    if (trees.size() > kMostTrees) {
      out += fmt::format("and {} trees more, rooted elsewhere or of other blocks\n\n",
                         trees.size() - kMostTrees);
    }
  }
  return out;
}

}  // namespace rankine::tools
