#include "bench/rivals/document.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "bench/rivals/batch.h"
#include "bench/rivals/kernels.h"
#include "engine/base/statistics.h"
#include "engine/base/units.h"

namespace rankine::rivals {

const char* family_name(Family family) {
  switch (family) {
    case kRankine:
      return "rankine";
    case kExpert:
      return "expert";
    case kMpi:
      return "mpi";
    case kServer:
      return "server";
    case kReference:
      return "reference";
    case kExchange:
      return "exchange";
    case kRegistered:
      return "registered";
    case kOther:
      return "other";
  }
  return "";
}

std::optional<Compared> compare(const Comparison& comparison, const Row& row,
                                const Contenders& contenders) {
  const auto ours = row.best(comparison.ours, contenders);
  if (!ours) return std::nullopt;
  if (comparison.theirs == 0) {
    if (row.limits.empty()) return std::nullopt;
    return Compared{row.limit_ratio(*ours), "limit"};
  }
  const auto theirs = row.best(comparison.theirs, contenders);
  if (!theirs) return std::nullopt;
  return Compared{row.ratio(*ours, *theirs), contenders[*theirs]->name};
}

nlohmann::json context_json(const Plan& plan, const Setup& setup, const Contenders& contenders,
                            const std::vector<LevelRates>& levels, const nlohmann::json& machine) {
  nlohmann::json json = {{"collective", name_of(plan.collective)},
                         {"type", "float"},
                         {"redop", "sum"},
                         {"in_place", plan.in_place},
                         {"ranks", setup.ranks},
                         {"processes", setup.processes},
                         {"cpus", setup.cpus},
                         {"crowded", setup.crowded},
                         {"rounds", plan.rounds},
                         {"batch_us", plan.batch_us},
                         {"machine", machine},
                         {"kernels", kernels().name},
                         {"stamp_ns", stamp_cost_ns()}};
  for (const LevelRates& level : levels) {
    json["levels"].push_back({{"level", level.level},
                              {"bytes_per_core", level.bytes},
                              {"copy_gbs", level.copy},
                              {"add_gbs", level.add},
                              {"read_gbs", level.read},
                              {"cross_read_gbs", level.cross_read}});
  }
  for (const auto& contender : contenders) {
    json["contenders"][contender->name] = {{"family", family_name(contender->family)},
                                           {"version", contender->version},
                                           {"missing", contender->missing}};
    json["order"].push_back(contender->name);
  }
  return json;
}

nlohmann::json row_json(const Row& row, const Contenders& contenders) {
  nlohmann::json json = {{"size", row.bytes},
                         {"protocol", name_of(row.protocol)},
                         {"ping_pong_ns", row.ping_pong_ns},
                         {"repeats", row.repeats},
                         {"steady", row.steady()}};
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    const Cell& cell = row.cells[i];
    if (cell.us.empty()) continue;
    json["contenders"][contenders[i]->name] = {{"median_us", median(cell.us)},
                                               {"min_us", quantile(cell.us, 0)},
                                               {"p99_us", percentile_99(cell.us)},
                                               {"max_us", quantile(cell.us, 1)},
                                               {"spread", relative_spread(cell.us)},
                                               {"iterations", cell.calls},
                                               {"wrong", cell.wrong},
                                               {"batches_us", cell.us}};
  }
  if (!row.limits.empty()) {
    const Limit limit = row.limit();
    json["limit"] = {{"us", limit.us},
                     {"way", limit.way},
                     {"path", limit.path},
                     {"latency_us", limit.latency_us},
                     {"crossing_us", limit.crossing_us},
                     {"motion_us", limit.motion_us},
                     {"reading_us", limit.reading_us}};
  }
  for (const Comparison& comparison : kComparisons) {
    if (const auto compared = compare(comparison, row, contenders)) {
      json["ratios"][comparison.title] = compared->ratio;
      json["against"][comparison.title] = compared->against;
    }
  }
  return json;
}

std::string subject(const nlohmann::json& document) {
  const nlohmann::json& context = document.at("context");
  std::string text = context.at("collective");
  if (context.value("in_place", false)) text += " in place";
  text += ", " + std::to_string(context.at("ranks").get<int>()) +
          (context.value("processes", false) ? " processes" : " ranks");
  if (context.value("crowded", false))
    text += " on " + std::to_string(context.at("cpus").size()) + " cores";
  return text;
}

std::string our_name(const nlohmann::json& document) {
  return document.at("context").value("processes", false) ? "rankine_processes" : "rankine";
}

namespace {

using nlohmann::json;

std::string us_text(double us) {
  return fmt::format("{:.{}f}", us, us < 10 ? 3 : us < 100 ? 1 : 0);
}
std::string ratio_text(double ratio) { return fmt::format("{:.2f}", ratio); }
std::string spread_text(double spread) {
  return spread < 10 ? fmt::format("±{:.0f}%", 100 * spread) : "±>999%";
}

bool is_mailbox(const json& document) { return document.contains("channels"); }

// The document of this call, or nullptr.
const json* find(const std::vector<Source>& sources, Collective collective, int ranks,
                 bool in_place, bool processes = false) {
  for (const Source& source : sources) {
    if (is_mailbox(source.document)) continue;
    const json& context = source.document.at("context");
    if (context.at("collective") == name_of(collective) && context.at("ranks") == ranks &&
        context.value("in_place", false) == in_place &&
        context.value("processes", false) == processes)
      return &source.document;
  }
  return nullptr;
}

std::string left_out(const Ratios& ratios) {
  if (ratios.unsteady == 0) return "";
  return fmt::format("{} unsteady {} left out", ratios.unsteady,
                     ratios.unsteady == 1 ? "row" : "rows");
}

std::string joined(const std::string& a, const std::string& b) {
  return a.empty() || b.empty() ? a + b : a + "; " + b;
}

// The ratios that a target is about.
struct Asked {
  const json* document;  // nullptr: not measured
  std::string_view protocol;
  const char* title;
  std::size_t least_bytes = 0;

  Ratios ratios() const {
    return document == nullptr ? Ratios{} : ratios_of(*document, protocol, title, least_bytes);
  }
  // Empty if ranks share cores: then the limit does not include the cost of switching.
  Ratios limit_ratios() const {
    if (document == nullptr || document->at("context").value("crowded", false)) return {};
    return limit_ratios_of(*document, protocol, title, least_bytes);
  }
};

Verdict worst_verdict(std::string target, const Asked& asked, double allowed) {
  const Ratios ratios = asked.ratios();
  Verdict verdict{std::move(target), {}, allowed, left_out(ratios), {}};
  if (ratios.values.empty()) return verdict;
  const std::size_t worst = ratios.worst();
  verdict.reached = ratios.values[worst];
  const auto over = std::count_if(ratios.values.begin(), ratios.values.end(),
                                  [&](double value) { return value > allowed; });
  std::string where = "at " + format_bytes(ratios.sizes[worst]);
  if (over > 0)
    where +=
        fmt::format("; {} of {} sizes within",
                    ratios.values.size() - static_cast<std::size_t>(over), ratios.values.size());
  verdict.remark = joined(where, verdict.remark);
  return verdict;
}

Verdict mean_verdict(std::string target, const Asked& asked, double allowed) {
  const Ratios ratios = asked.ratios(), limits = asked.limit_ratios();
  Verdict verdict{std::move(target), {}, allowed, {}, {}};
  if (!limits.values.empty()) verdict.at_limit = limits.geometric_mean();
  if (!ratios.values.empty()) verdict.reached = ratios.geometric_mean();
  return verdict;
}

void mailbox_verdicts(const std::vector<Source>& sources, std::vector<Verdict>& all) {
  Verdict latency{"mailbox: one-way latency over the bare line's", {}, 1.2, "", {}};
  Verdict throughput{"mailbox: the better queue's throughput over its own", {}, 1, "", {}};
  for (const Source& source : sources) {
    if (!is_mailbox(source.document)) continue;
    double ours = 0, best = 0;
    for (const json& channel : source.document.at("channels")) {
      const double rate = channel.at("million_messages_per_s");
      if (channel.at("name") == "mailbox") {
        latency.reached = channel.at("latency_ratio").get<double>();
        ours = rate;
      } else {
        best = std::max(best, rate);
      }
    }
    if (ours > 0) throughput.reached = best / ours;
    if (!source.document.at("steady").get<bool>())
      latency.remark = throughput.remark = "the machine moved";
  }
  all.push_back(latency);
  all.push_back(throughput);
}

std::string verdict_cell(const Verdict& verdict) {
  std::string text =
      fmt::format("{} ({:.3g})", verdict.reached ? ratio_text(*verdict.reached) : "not measured",
                  verdict.allowed);
  if (verdict.reached) text += verdict.met() ? " met" : " **not met**";
  if (verdict.at_limit) {
    const bool beyond = verdict.reached && !verdict.met() && verdict.beyond_limit();
    text += (beyond ? ", nor at the limit " : "; limit ") + ratio_text(*verdict.at_limit);
  }
  return joined(text, verdict.remark);
}

// The rows of the table of verdicts: a worst size and the mean that follows share a row. A repeated
// call is not shown again.
std::string verdict_rows(const std::vector<Verdict>& all) {
  constexpr std::string_view kWorst = ", worst size", kMean = ", geometric mean";
  std::string text, call_before;
  for (std::size_t i = 0; i < all.size(); ++i) {
    std::string target = all[i].target, mean;
    if (target.ends_with(kWorst)) target.resize(target.size() - kWorst.size());
    const std::size_t colon = target.find(": ");
    const std::string call = target.substr(0, colon), cell = verdict_cell(all[i]);
    if (i + 1 < all.size() && all[i + 1].target == target + std::string(kMean))
      mean = verdict_cell(all[++i]);
    text += fmt::format("| {} | {} | {} | {} |\n", call == call_before ? "" : call,
                        target.substr(colon + 2), cell, mean);
    call_before = call;
  }
  return text;
}

// --- tables ---

std::string figure(const json& row, const std::string& name) {
  if (!row.contains("contenders") || !row.at("contenders").contains(name)) return "-";
  const json& cell = row.at("contenders").at(name);
  if (cell.at("wrong").get<std::uint64_t>() > 0) return "WRONG";
  return us_text(cell.at("median_us")) + " " + spread_text(cell.at("spread"));
}

std::string against(const json& row, const char* title) {
  if (!row.contains("against") || !row.at("against").contains(title)) return "-";
  const std::string name = row.at("against").at(title);
  return figure(row, name) + " " + name;
}

std::string ratio_cell(const json& row, const char* title) {
  if (!row.contains("ratios") || !row.at("ratios").contains(title)) return "-";
  return ratio_text(row.at("ratios").at(title));
}

std::string mean_cell(const json& document, std::string_view protocol, const char* title) {
  const Ratios ratios = ratios_of(document, protocol, title);
  return ratios.values.empty() ? "-" : ratio_text(ratios.geometric_mean());
}

// Ratios in the order of the columns. Processes have the last two, on memory that all ranks reach.
constexpr const char* kRatios[] = {"rankine/expert",   "rankine/library", "rankine/limit",
                                   "rankine/exchange", "rankine/chain",   "shared/library",
                                   "shared/limit"};

std::string row_text(const Source& source, const json& row) {
  const json& probes = row.at("ping_pong_ns");
  std::string text =
      fmt::format("\"{}\",{},{},{},{},{:.0f},{:.0f},{},{},{},{},{}", subject(source.document),
                  source.stem, row.at("protocol").get<std::string>(), format_bytes(row.at("size")),
                  row.at("steady").get<bool>() ? "yes" : "no", probes.front().get<double>(),
                  probes.back().get<double>(), figure(row, our_name(source.document)),
                  figure(row, "rankine_shared"), against(row, "rankine/expert"),
                  against(row, "rankine/library"),
                  row.contains("limit") ? us_text(row.at("limit").at("us")) : "-");
  for (const char* ratio : kRatios) text += "," + ratio_cell(row, ratio);
  return text + "\n";
}

// A row of the summary: the means over all sizes, protocol by protocol.
std::string summary_row(const json& document) {
  std::string text = fmt::format("| {} |", subject(document));
  for (const std::string_view protocol : kProtocolNames) {
    for (const char* ratio : {"rankine/expert", "rankine/library", "rankine/limit"})
      text += fmt::format(" {} |", mean_cell(document, protocol, ratio));
  }
  return text + "\n";
}

std::string summary(const std::vector<Source>& sources, const std::string& pictures) {
  std::string text = fmt::format(
      "## Rows\n\n[rows.csv]({}/rows.csv) has every row. Geometric means of the ratios over all "
      "sizes:\n\n"
      "| call | warm: rankine/expert | /library | /limit | fresh: rankine/expert | /library | "
      "/limit |\n|---|--:|--:|--:|--:|--:|--:|\n",
      pictures);
  std::string drawn;
  for (const Source& source : sources) {
    if (is_mailbox(source.document)) continue;
    bool curve = false;
    for (const std::string_view protocol : kProtocolNames) {
      const json& rows = source.document.at("rows");
      const auto count = std::count_if(rows.begin(), rows.end(), [&](const json& row) {
        return row.at("protocol") == protocol;
      });
      curve = curve || count > 1;
    }
    text += summary_row(source.document);
    if (curve)
      drawn += fmt::format("![{}]({}/{}.png)\n\n", subject(source.document), pictures, source.stem);
  }
  return text + "\n" + drawn;
}

std::string mailbox_section(const json& document) {
  const json& bare = document.at("bare_line_ns");
  std::string text = fmt::format(
      "## Mailbox\n\n8 B messages between two pinned threads, all in turns. A bare cache line "
      "takes "
      "{:.1f} ns one way before and {:.1f} ns after{}.\n\n"
      "| | latency (ns) | over the bare line | million messages/s |\n|---|--:|--:|--:|\n",
      bare.front().get<double>(), bare.back().get<double>(),
      document.at("steady").get<bool>() ? "" : "; the machine moved meanwhile (~)");
  for (const json& channel : document.at("channels")) {
    text += fmt::format(
        "| {} | {:.1f} ±{:.0f}% | {:.2f} | {:.1f} ±{:.0f}% |\n",
        channel.at("name").get<std::string>(), channel.at("latency_ns").get<double>(),
        100 * channel.at("latency_spread").get<double>(), channel.at("latency_ratio").get<double>(),
        channel.at("million_messages_per_s").get<double>(),
        100 * channel.at("throughput_spread").get<double>());
  }
  return text + "\n";
}

// --- what was measured where ---

std::string levels_table(const json& context) {
  if (!context.contains("levels")) return "";
  std::string text =
      "| all cores at once, GB/s of one core | working set | copy | add | read | read of "
      "data that another core has just written |\n|---|--:|--:|--:|--:|--:|\n";
  for (const json& level : context.at("levels")) {
    text +=
        fmt::format("| {} | {} | {:.0f} | {:.0f} | {:.0f} | {:.0f} |\n",
                    level.at("level").get<std::string>(), format_bytes(level.at("bytes_per_core")),
                    level.at("copy_gbs").get<double>(), level.at("add_gbs").get<double>(),
                    level.at("read_gbs").get<double>(), level.at("cross_read_gbs").get<double>());
  }
  return text + "\n";
}

std::string machine_text(const std::vector<Source>& sources) {
  std::set<std::string> machines, times;
  std::map<std::string, std::string> contenders;
  std::string levels;
  std::set<std::string> methods;
  for (const Source& source : sources) {
    const bool mailbox = is_mailbox(source.document);
    const json& where = mailbox ? source.document : source.document.at("context");
    const json& machine = where.at("machine");
    times.insert(machine.at("time").get<std::string>());
    machines.insert(
        fmt::format("{}; {}; L1d {}, L2 {}, L3 {}; {}", machine.at("cpu").get<std::string>(),
                    machine.at("summary").get<std::string>(), format_bytes(machine.at("l1d_bytes")),
                    format_bytes(machine.at("l2_bytes")), format_bytes(machine.at("l3_bytes")),
                    machine.at("kernel").get<std::string>()));
    if (mailbox) continue;
    if (levels.empty()) levels = levels_table(where);
    methods.insert(fmt::format("{} rounds of {:.3g} ms, {} loops", where.at("rounds").get<int>(),
                               where.at("batch_us").get<double>() / 1000,
                               where.at("kernels").get<std::string>()));
    for (const auto& [name, about] : where.at("contenders").items()) {
      const std::string missing = about.at("missing"), version = about.at("version");
      if (!missing.empty()) {
        contenders[name] = "missing: " + missing;
      } else if (!version.empty()) {
        contenders.emplace(name, version);
      }
    }
  }
  std::string text;
  if (!times.empty())
    text += fmt::format("Measured {} to {} on\n\n", *times.begin(), *times.rbegin());
  for (const std::string& machine : machines) text += "- " + machine + "\n";
  text += "\nMethod: [rivals/README.md](rivals/README.md).";
  for (const std::string& method : methods) text += " " + method + ".";
  text += "\n\n";
  for (const auto& [name, about] : contenders) text += fmt::format("- {}: {}\n", name, about);
  if (!contenders.empty()) text += "\n";
  return text + levels;
}

}  // namespace

double Ratios::geometric_mean() const {
  double logs = 0;
  for (const double value : values) logs += std::log(value);
  return values.empty() ? 0 : std::exp(logs / static_cast<double>(values.size()));
}

std::size_t Ratios::worst() const {
  return static_cast<std::size_t>(std::max_element(values.begin(), values.end()) - values.begin());
}

namespace {

// of_row: returns a row's ratio from its ratios; nullopt if the row has none.
template <class OfRow>
Ratios collect(const json& document, std::string_view protocol, std::size_t least_bytes,
               const OfRow& of_row) {
  Ratios ratios;
  for (const json& row : document.at("rows")) {
    const std::size_t size = row.at("size");
    if (row.at("protocol") != protocol || size < least_bytes || !row.contains("ratios")) continue;
    const std::optional<double> ratio = of_row(row.at("ratios"));
    if (!ratio) continue;
    if (!row.at("steady").get<bool>()) {
      ++ratios.unsteady;
      continue;
    }
    ratios.values.push_back(*ratio);
    ratios.sizes.push_back(size);
  }
  return ratios;
}

std::optional<double> ratio_in(const json& ratios, const std::string& title) {
  if (!ratios.contains(title)) return std::nullopt;
  return ratios.at(title).get<double>();
}

}  // namespace

Ratios ratios_of(const json& document, std::string_view protocol, const char* title,
                 std::size_t least_bytes) {
  return collect(document, protocol, least_bytes,
                 [&](const json& ratios) { return ratio_in(ratios, title); });
}

Ratios limit_ratios_of(const json& document, std::string_view protocol, const char* title,
                       std::size_t least_bytes) {
  // "rankine" from "rankine/library".
  const std::string_view whole = title;
  const std::string over_the_limit = std::string(whole.substr(0, whole.find('/'))) + "/limit";
  return collect(document, protocol, least_bytes, [&](const json& ratios) -> std::optional<double> {
    const auto over = ratio_in(ratios, title), over_limit = ratio_in(ratios, over_the_limit);
    if (!over || !over_limit) return std::nullopt;
    return *over / *over_limit;
  });
}

std::vector<Verdict> verdicts(const std::vector<Source>& sources) {
  constexpr std::size_t kKiB = 1024;
  std::vector<Verdict> all;
  for (const bool in_place : {false, true}) {
    const json* document = find(sources, Collective::all_reduce, 2, in_place);
    const std::string what =
        std::string("all-reduce, N = 2, fresh, ") + (in_place ? "in place" : "out of place") + ": ";
    const auto fresh = [&](const char* title, std::size_t least = 0) {
      return Asked{document, "fresh", title, least};
    };
    all.push_back(worst_verdict(what + "best expert, worst size", fresh("rankine/expert"), 1.05));
    all.push_back(
        mean_verdict(what + "best expert, geometric mean", fresh("rankine/expert"), 0.85));
    all.push_back(worst_verdict(what + "best library, worst size", fresh("rankine/library"), 1));
    all.push_back(
        mean_verdict(what + "best library, geometric mean", fresh("rankine/library"), 0.4));
    all.push_back(worst_verdict(what + "limit from 32 KiB, worst size",
                                fresh("rankine/limit", 32 * kKiB), 1.5));
    all.push_back(
        worst_verdict(what + "limit from 1 KiB, worst size", fresh("rankine/limit", kKiB), 3));
  }
  for (const Collective collective : {Collective::broadcast, Collective::all_gather,
                                      Collective::reduce_scatter, Collective::all_to_all}) {
    const json* document = find(sources, collective, 2, false);
    for (const std::string_view protocol : kProtocolNames) {
      const std::string what = fmt::format("{}, N = 2, {}: ", name_of(collective), protocol);
      const Asked mpi{document, protocol, "rankine/mpi"};
      all.push_back(worst_verdict(what + "better MPI, worst size", mpi, 1));
      all.push_back(mean_verdict(what + "better MPI, geometric mean", mpi, 0.4));
    }
  }
  for (const int ranks : {4, 8, 16}) {
    const json* document = find(sources, Collective::all_reduce, ranks, false);
    if (document != nullptr && !document->at("context").value("crowded", false)) document = nullptr;
    const std::string what = fmt::format("all-reduce, N = {} sharing cores, fresh: ", ranks);
    const Asked mpi{document, "fresh", "rankine/mpi"};
    all.push_back(worst_verdict(what + "better MPI, worst size", mpi, 1));
    all.push_back(mean_verdict(what + "better MPI, geometric mean", mpi, 1.0 / 3));
    all.push_back(worst_verdict(what + "best expert, worst size",
                                Asked{document, "fresh", "rankine/expert"}, 1));
  }
  const json* processes = find(sources, Collective::all_reduce, 2, false, true);
  for (const auto& [what, title] :
       {std::pair("private buffers", "rankine/library"), std::pair("shared", "shared/library")}) {
    const Asked asked{processes, "fresh", title};
    const std::string target = fmt::format("all-reduce, N = 2 processes, fresh, {}: ", what);
    all.push_back(worst_verdict(target + "best library, worst size", asked, 1));
    all.push_back(mean_verdict(target + "best library, geometric mean", asked, 0.4));
  }
  const json* many = find(sources, Collective::all_reduce, 64, false);
  for (const std::string_view protocol : kProtocolNames) {
    all.push_back(worst_verdict(
        fmt::format("all-reduce of 8 B, N = 64 sharing cores, {}: futex-only chain", protocol),
        Asked{many, protocol, "rankine/chain"}, 3));
  }
  mailbox_verdicts(sources, all);
  return all;
}

std::string rows_csv(const std::vector<Source>& sources) {
  std::string text =
      "call,picture,protocol,size,steady,ping-pong before (ns),ping-pong after (ns),rankine (us),"
      "rankine_shared (us),best expert,best library,limit";
  for (const char* ratio : kRatios) text += fmt::format(",{}", ratio);
  text += "\n";
  for (const Source& source : sources) {
    if (is_mailbox(source.document)) continue;
    for (const json& row : source.document.at("rows")) text += row_text(source, row);
  }
  return text;
}

std::string results_markdown(const std::vector<Source>& sources, const std::string& pictures) {
  std::string text =
      "# Results\n\nWritten by `bench/rivals/measure_all`; do not edit.\n\n" +
      machine_text(sources) +
      fmt::format(
          "Times are medians in us ± half the interquartile range. Ratios are Rankine's time over "
          "another's, medians over the rounds of the ratio within a round; below 1 Rankine is "
          "faster. Rows during which the cores moved (steady: no) count in no mean and no "
          "verdict.\n\n"
          "## Verdicts\n\nEach figure has its allowed maximum in brackets. *Limit*: the mean over "
          "equal rows if Rankine took the limit's time in each; above the allowed maximum the "
          "machine is the cause. [Notes]({}/notes.md) give causes, as measured.\n\n"
          "| | Rankine over | worst size | geometric mean |\n"
          "|---|---|---|---|\n",
          pictures);
  text += verdict_rows(verdicts(sources));
  text += "\n" + summary(sources, pictures);
  for (const Source& source : sources) {
    if (is_mailbox(source.document)) text += mailbox_section(source.document);
  }
  while (text.size() > 1 && text[text.size() - 2] == '\n') text.pop_back();
  return text;
}

}  // namespace rankine::rivals
