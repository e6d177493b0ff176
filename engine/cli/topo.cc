// The command `rankine topo`: measures the places of ranks and memory, and draws the machine as
// SVG.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <ostream>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/api/team.h"
#include "engine/api/tuning/tuning.h"
#include "engine/base/files.h"
#include "engine/base/units.h"
#include "engine/cli/drawing.h"
#include "engine/cli/machine.h"
#include "engine/cli/text.h"
#include "engine/cli/tool.h"
#include "numa/cpus.h"
#include "numa/memory.h"

namespace rankine::tools {
namespace {

constexpr int kCpuWidth = 54, kCpuHeight = 34, kGap = 6, kTitle = 18, kCoresPerRow = 8,
              kNodesPerRow = 2, kSheetMargin = 16;
// Ranks blue, shared cores orange, distinguishable with colour blindness (Okabe & Ito); the rest is
// grey.
constexpr std::string_view kRank = "#0072b2", kShared = "#d55e00", kIdle = "#f2f2f2";

struct Point {
  int x = 0, y = 0;
};
struct Size {
  int width = 0, height = 0;
};

// Boxes of the drawing. The size of each box follows from its content, before drawing.
struct Core {
  std::vector<const Cpu*> cpus;
};
struct Cache {
  const Cpu* first = nullptr;  // the first of the cache's CPUs
  std::vector<Core> cores;
};
struct Node {
  const NumaNode* node = nullptr;
  std::vector<Cache> caches;
};
struct Package {
  int number = 0;
  std::vector<Node> nodes;
};

// Packages by first appearance. A node with CPUs in several packages appears in each of them.
std::vector<Package> packages_of(const Topology& topology) {
  std::vector<Package> packages;
  const auto find_or_add = [](auto& all, auto one, auto is) -> auto& {
    const auto found = std::find_if(all.begin(), all.end(), is);
    return found != all.end() ? *found : all.emplace_back(std::move(one));
  };
  for (const Cpu& cpu : topology.cpus()) {
    Package& package = find_or_add(packages, Package{cpu.package, {}},
                                   [&](const Package& p) { return p.number == cpu.package; });
    const NumaNode* home = topology.find_node(cpu.numa_node);
    Node& node =
        find_or_add(package.nodes, Node{home, {}}, [&](const Node& n) { return n.node == home; });
    Cache& cache = find_or_add(node.caches, Cache{&cpu, {}},
                               [&](const Cache& c) { return c.first->l3 == cpu.l3; });
    Core& core = find_or_add(cache.cores, Core{},
                             [&](const Core& c) { return c.cpus.front()->core == cpu.core; });
    core.cpus.push_back(&cpu);
  }
  return packages;
}

// Places of boxes in rows, and their total size.
struct Rows {
  std::vector<Point> places;  // the left upper corner of each box
  Size all;
};

Rows in_rows(const std::vector<Size>& boxes, int per_row) {
  Rows rows;
  int x = 0, y = 0, height = 0;
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    if (i > 0 && i % static_cast<std::size_t>(per_row) == 0) {
      x = 0;
      y += height + kGap;
      height = 0;
    }
    rows.places.push_back({x, y});
    x += boxes[i].width + kGap;
    height = std::max(height, boxes[i].height);
    rows.all.width = std::max(rows.all.width, x - kGap);
    rows.all.height = y + height;
  }
  return rows;
}

class Drawing {
 public:
  explicit Drawing(const TopoView& view) : view_(view) {}

  std::string draw() {
    const std::vector<Package> packages = packages_of(view_.topology);
    std::vector<Size> sizes;
    for (const Package& package : packages) sizes.push_back(size_of(package));
    const Rows rows = in_rows(sizes, 1);
    const std::vector<std::string> notes = notes_below();
    const int top = kSheetMargin + 2 * kTitle;
    for (std::size_t i = 0; i < packages.size(); ++i) {
      draw(packages[i], kSheetMargin, top + rows.places[i].y, {rows.all.width, sizes[i].height});
    }
    int y = top + rows.all.height + kTitle + kGap;
    for (const std::string& note : notes) {
      text(kSheetMargin, y, note, "note");
      y += kTitle;
    }
    const std::string summary = view_.topology.summary();
    int width = std::max(rows.all.width, 8 * static_cast<int>(summary.size())) + 2 * kSheetMargin;
    for (const std::string& note : notes) {
      width = std::max(width, 7 * static_cast<int>(note.size()) + 2 * kSheetMargin);
    }
    return svg_picture(
        width, y, 11,
        "<style>.title{font-weight:bold;font-size:13px}.box{fill:white;stroke:#555555}"
        ".label{fill:#333333}.note{fill:#333333}.rank{fill:white;font-weight:bold}</style>\n" +
            fmt::format("<text x=\"{}\" y=\"{}\" class=\"title\">{}</text>\n", kSheetMargin,
                        kSheetMargin + kTitle - 4, xml_text(summary)) +
            body_);
  }

 private:
  static Size size_of(const Core& core) {
    const int cpus = static_cast<int>(core.cpus.size());
    return {kCpuWidth + 2 * kGap, kTitle + cpus * (kCpuHeight + kGap)};
  }
  Size size_of(const Cache& cache) const {
    return around(in_rows(sizes_of(cache.cores), kCoresPerRow));
  }
  Size size_of(const Node& node) const {
    Size size = around(in_rows(sizes_of(node.caches), 1));
    size.height += kTitle * static_cast<int>(memory_lines(node).size());
    for (const std::string& line : memory_lines(node)) {
      size.width = std::max(size.width, 6 * static_cast<int>(line.size()) + 2 * kGap);
    }
    return size;
  }
  Size size_of(const Package& package) const {
    return around(in_rows(sizes_of(package.nodes), kNodesPerRow));
  }
  template <class Box>
  std::vector<Size> sizes_of(const std::vector<Box>& boxes) const {
    std::vector<Size> sizes;
    for (const Box& box : boxes) sizes.push_back(size_of(box));
    return sizes;
  }
  // The size of the rows with a title above and a border around.
  static Size around(const Rows& rows) {
    return {rows.all.width + 2 * kGap, rows.all.height + kTitle + kGap};
  }

  void draw(const Package& package, int x, int y, Size size) {
    frame(x, y, size, fmt::format("package {}", package.number));
    draw_all(package.nodes, kNodesPerRow, x, y);
  }
  void draw(const Node& node, int x, int y, Size size) {
    std::string title = fmt::format("node {}", node.node->os_index);
    if (node.node->memory_bytes > 0) {
      title += ", " + format_bytes(node.node->memory_bytes);
    }
    frame(x, y, size, title);
    draw_all(node.caches, 1, x, y);
    const std::vector<std::string> lines = memory_lines(node);
    int below = y + size.height - kTitle * static_cast<int>(lines.size());
    for (const std::string& line : lines) {
      text(x + kGap, below + kTitle - 8, line, "label");
      below += kTitle;
    }
  }
  void draw(const Cache& cache, int x, int y, Size size) {
    const Cpu& cpu = *cache.first;
    frame(x, y, size,
          !cpu.has_l3          ? "no L3"
          : cpu.caches.l3 == 0 ? fmt::format("L3 {}", cpu.l3)
                               : fmt::format("L3 {}, {}", cpu.l3, format_bytes(cpu.caches.l3)));
    draw_all(cache.cores, kCoresPerRow, x, y);
  }
  void draw(const Core& core, int x, int y, Size size) {
    frame(x, y, size, fmt::format("core {}", core.cpus.front()->core));
    for (std::size_t i = 0; i < core.cpus.size(); ++i) {
      draw_cpu(*core.cpus[i], x + kGap, y + kTitle + static_cast<int>(i) * (kCpuHeight + kGap));
    }
  }
  void draw_cpu(const Cpu& cpu, int x, int y) {
    const std::vector<int> ranks = view_.ranks_on_cpu(cpu.os_index);
    const bool shared =
        ranks.size() > 1 ||
        (!ranks.empty() &&
         view_.placement.ranks[static_cast<std::size_t>(ranks.front())].core_shared);
    body_ += fmt::format(
        "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"3\" fill=\"{}\" "
        "stroke=\"#999999\"/>\n",
        x, y, kCpuWidth, kCpuHeight, ranks.empty() ? kIdle : (shared ? kShared : kRank));
    const char* const style = ranks.empty() ? "label" : "rank";
    text(x + 4, y + 14, fmt::format("cpu {}", cpu.os_index), style);
    if (ranks.empty()) return;
    // As many as fit; the text and the JSON name all.
    std::string who = format_cpu_list(ranks);
    if (who.size() > 8) who = fmt::format("{} ranks", ranks.size());
    text(x + 4, y + 28, ranks.size() == 1 ? "rank " + who : who, style);
  }
  template <class Box>
  void draw_all(const std::vector<Box>& boxes, int per_row, int x, int y) {
    const std::vector<Size> sizes = sizes_of(boxes);
    const Rows rows = in_rows(sizes, per_row);
    for (std::size_t i = 0; i < boxes.size(); ++i) {
      draw(boxes[i], x + kGap + rows.places[i].x, y + kTitle + rows.places[i].y, sizes[i]);
    }
  }

  // The contents of a node's memory.
  std::vector<std::string> memory_lines(const Node& node) const {
    std::vector<std::string> lines;
    const int number = node.node->os_index;
    const std::vector<int> ranks = view_.ranks_on_node(number);
    if (!ranks.empty() && view_.topology.knows_nodes()) {
      lines.push_back("memory of ranks " + format_cpu_list(ranks));
    }
    if (!view_.real) return lines;
    const auto on_node = [number](const Residency& where) {
      const auto found = where.bytes_on_node.find(number);
      return found == where.bytes_on_node.end() ? std::size_t{0} : found->second;
    };
    std::size_t mailboxes = 0, scratch = 0;
    for (const RankMemoryView& rank : view_.real->memory) {
      mailboxes += on_node(rank.mailboxes);
      scratch += on_node(rank.scratch);
    }
    const auto add = [&lines](const char* what, std::size_t bytes) {
      if (bytes > 0) {
        lines.push_back(fmt::format("{}: {}", what, format_bytes(bytes)));
      }
    };
    add("mailboxes", mailboxes);
    add("scratch", scratch);
    add("staging", on_node(view_.real->staging.where));
    return lines;
  }

  std::vector<std::string> notes_below() const {
    std::vector<std::string> notes;
    notes.push_back(fmt::format("{} ranks, {}: blue has a separate core, orange shares one",
                                view_.ranks, to_string(view_.policy)));
    for (const std::string& line : nodes_without_cpus(view_.topology)) notes.push_back(line);
    if (!view_.real) {
      notes.push_back("nothing is enforced: this is a synthetic machine");
      return notes;
    }
    for (const std::string& refusal : refusals(view_.real->report)) notes.push_back(refusal);
    return notes;
  }

  void frame(int x, int y, Size size, const std::string& title) {
    body_ +=
        fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"4\" class=\"box\"/>\n",
                    x, y, size.width, size.height);
    text(x + kGap, y + kTitle - 5, title, "label");
  }
  void text(int x, int y, std::string_view what, std::string_view style) {
    body_ += fmt::format("<text x=\"{}\" y=\"{}\" class=\"{}\">{}</text>\n", x, y, style,
                         xml_text(what));
  }

  const TopoView& view_;
  std::string body_;
};

}  // namespace

std::string to_svg(const TopoView& view) { return Drawing(view).draw(); }

namespace {

// Small and large calls on all transports create mailboxes, boards, scratch and plans.
void use(Team& team) {
  constexpr std::size_t kSmall = 64, kLarge = 16 * 1024;
  const auto call = [](Member& me) {
    std::vector<float> in(kLarge), out(kLarge);
    for (const Transport transport : {Transport::mailbox, Transport::direct}) {
      for (const std::size_t count : {kSmall, kLarge}) {
        const CallOptions options{.transport = transport};
        me.all_reduce(std::span<const float>(in.data(), count), std::span<float>(out.data(), count),
                      ReduceOp::sum, options)
            .throw_if_error();
      }
    }
    me.all_reduce(std::span<const float>(in.data(), 1), std::span<float>(out.data(), 1))
        .throw_if_error();
  };
  team.run(call).throw_if_error();
}

// Touches a page for every node in use, to show its real node.
StagingView try_staging(Team& team, const Placement& placement) {
  StagingView view;
  for (const RankPlace& place : placement.ranks) {
    if (place.node >= 0 && place.node < kMaxNodes) {
      view.nodes.set(static_cast<std::size_t>(place.node));
    }
  }
  const std::size_t bytes = std::max<std::size_t>(1, view.nodes.count()) * page_bytes();
  if (void* const memory = team.staging().allocate(bytes, page_bytes())) {
    std::memset(memory, 1, bytes);
    view.where = residency_of(MemoryRange{memory, bytes});
  }
  view.binding = team.staging().binding();
  return view;
}

TopoView::Real try_out(const TopoOptions& options, int ranks, const Placement& placement) {
  TopoView::Real real;
  real.machine = read_machine();
  real.costs = machine_costs();
  if (const TuningTable* table = machine_tuning()) {
    real.table = tuning_file().path;
    real.table_made = table->made();
  }
  auto team =
      machine_team(
          {.ranks = ranks, .placement = options.placement, .lock_memory = options.lock_memory})
          .value();
  Communicator& communicator = team->communicator();
  real.waiting = to_string(communicator.wait_policy());
  real.memory_idle = communicator.memory_bytes();
  use(*team);
  real.memory_used = communicator.memory_bytes();
  real.report = team->report();
  real.shared = communicator.shared_memory();
  for (Rank r = 0; r < ranks; ++r) {
    RankMemory memory = communicator.memory_of(r);
    RankMemoryView view{{},
                        residency_of(memory.lines.ranges),
                        residency_of(memory.mailboxes.ranges),
                        residency_of(memory.scratch.ranges)};
    view.memory = std::move(memory);
    real.memory.push_back(std::move(view));
  }
  real.staging = try_staging(*team, placement);
  return real;
}

}  // namespace

Result<Exit> topo(const TopoOptions& options, Console& console) {
  const Topology topology = options.synthetic ? *options.synthetic : Topology::detect();
  int ranks = options.ranks;
  if (ranks == 0) {
    ranks = std::max(2, options.synthetic ? topology.cores() : cpu_budget().cores);
    ranks = std::min(ranks, Communicator::kMaxRanks);
  }
  TopoView view{.topology = topology,
                .ranks = ranks,
                .policy = options.placement,
                .placement = place_ranks(topology, ranks, options.placement),
                .real = std::nullopt};
  if (!view.placement.ok()) return invalid_argument("--placement: " + view.placement.error);
  if (!options.synthetic) view.real = try_out(options, ranks, view.placement);
  if (!options.svg.empty()) {
    write_picture("--svg", options.svg, to_svg(view)).throw_if_error();
  }
  if (options.json) {
    console.out << to_json(view).dump(2) << "\n";
  } else {
    print(view, console.out);
  }
  return Exit::ok;
}

Subcommand add_topo(Command tool) {
  auto owned = std::make_shared<TopoOptions>();
  TopoOptions& o = *owned;
  const Command app =
      tool.add_subcommand("topo", "draw the machine with the place of every rank and its memory");
  add_argument(app, "-t,--ranks", o.ranks, Whole{1, Communicator::kMaxRanks}, "N",
               "number of ranks (usable cores, at least 2)");
  add_argument(app, "--placement", o.placement, read_placement, "NAME",
               "compact, scatter, one_per_node, none or CPUs such as 0,2,4-7 (compact)");
  add_argument(
      app, "--synthetic", o.synthetic,
      [](std::string_view argument, std::string_view text) -> Result<Topology> {
        TopologyResult parsed = Topology::synthetic(text);
        if (parsed.ok()) return std::move(*parsed.topology);
        return invalid_argument(fmt::format("{}: {}", argument, parsed.error));
      },
      "TEXT", "a synthetic machine in hwloc's notation instead of this one");
  app.add_flag("--lock", o.lock_memory, "keep the engine's memory from being swapped out");
  add_picture_file(app, "--svg", o.svg, "draw a picture into this file");
  app.add_flag("--json", o.json, "the report as JSON");
  app.footer(
      "Examples:\n"
      "  rankine topo --ranks 4 --placement scatter --svg topo.svg\n"
      "  rankine topo --ranks 32 --synthetic \"pack:2 [numa] l3:4 core:8 pu:2\"");
  return {app, [owned](Console& console) { return topo(*owned, console); }};
}

}  // namespace rankine::tools
