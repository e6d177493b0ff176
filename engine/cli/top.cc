// The command `rankine top`: reads the records of call sites of a running program
// (engine/api/processes/call_sites.h) and shows them as a table, JSON, metrics or a trace.

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "algorithms/catalogue.h"
#include "engine/api/processes/call_sites.h"
#include "engine/base/files.h"
#include "engine/cli/arguments.h"
#include "engine/cli/console.h"
#include "engine/cli/table.h"
#include "engine/cli/text.h"
#include "engine/cli/tool.h"
#include "engine/run/machine.h"

namespace rankine::tools {
namespace {

constexpr double kNs = 1e-9;

struct TopArguments {
  std::string target, trace;
  std::chrono::milliseconds every{1000};
  bool once = false, json = false, metrics = false;
};

// One rank's calls of one collective at one site.
struct RankFigures {
  std::uint64_t calls = 0;
  double took = 0, waited = 0;  // seconds
  std::array<std::uint64_t, TimeClasses::kClasses> times{};

  void add(const RankFigures& other, bool subtracts = false) {
    const double sign = subtracts ? -1 : 1;
    calls = subtracts ? calls - other.calls : calls + other.calls;
    took += sign * other.took;
    waited += sign * other.waited;
    for (std::size_t i = 0; i < times.size(); ++i) {
      times[i] = subtracts ? times[i] - other.times[i] : times[i] + other.times[i];
    }
  }
  // The time that the fraction `part` of all calls does not exceed, to a sixteenth.
  double quantile(double part) const {
    const int of =
        TimeClasses::quantile(part, [&](int c) { return times[static_cast<std::size_t>(c)]; });
    return of < 0 ? 0 : TimeClasses::middle(of) * kNs;
  }
};

using SiteAndCall = std::pair<std::string, std::string>;
struct CallUnderWay {
  Rank rank = 0;
  SiteAndCall where;
  double since = 0;  // seconds
  std::optional<Rank> waits_for;
};
struct CommunicatorFigures {
  std::string name;
  int ranks = 0;
  std::map<SiteAndCall, std::map<Rank, RankFigures>> sites;
  std::vector<CallUnderWay> under_way;
};
// By name, group, and for communicators without a name a number.
using AllFigures =
    std::map<std::tuple<std::string, std::string, std::uint64_t>, CommunicatorFigures>;

SiteAndCall site_and_call(const RankCalls& calls, std::uint32_t kind) {
  const std::uint32_t site = RankCalls::site_in(kind);
  const std::uint32_t collective = RankCalls::collective_in(kind);
  const auto name = collective == RankCalls::kVarious
                        ? std::string("various")
                        : std::string(name_of(static_cast<Collective>(collective)));
  return {site < RankCalls::kSites ? calls.sites[site].get() : "?", name};
}

std::string name_of_communicator(const CallSiteHead& head) {
  std::string name = head.name;
  if (name.empty()) name = fmt::format("process {}", head.process.id);
  return head.group[0] == 0 ? name : fmt::format("{}, {}", name, head.group);
}

// Calls use(reader, calls) for each rank with records.
template <class Use>
void for_each_rank(const FoundCallSites& found, const Use& use) {
  for (const CallSiteReader& reader : found.files) {
    for (std::int32_t i = 0; i < reader.head().here; ++i) {
      const auto calls = reader.read(static_cast<std::size_t>(i));
      if (calls != nullptr) use(reader, *calls);
    }
  }
}

constexpr auto kRelaxed = std::memory_order_relaxed;

AllFigures figures_of(const FoundCallSites& found) {
  AllFigures all;
  const std::int64_t now = now_ns();
  for_each_rank(found, [&](const CallSiteReader& reader, const RankCalls& calls) {
    const CallSiteHead& head = reader.head();
    auto& one = all[{head.name, head.group, head.name[0] == 0 ? reader.inode() : 0}];
    one.name = name_of_communicator(head);
    one.ranks = head.ranks;
    const Rank rank = calls.rank.load(kRelaxed);
    for (const SiteCalls& row : calls.rows) {
      const std::uint32_t kind = row.kind.load(kRelaxed);
      if (kind == 0) break;
      RankFigures figures{.calls = row.calls.load(kRelaxed),
                          .took = static_cast<double>(row.took_ns.load(kRelaxed)) * kNs,
                          .waited = static_cast<double>(row.waited_ns.load(kRelaxed)) * kNs};
      for (std::size_t i = 0; i < figures.times.size(); ++i) {
        figures.times[i] = row.times[i].load(kRelaxed);
      }
      one.sites[site_and_call(calls, kind)][rank].add(figures);
    }
    const std::int64_t began = calls.begin_ns.load(kRelaxed);
    if (began == 0) return;
    const Rank peer = calls.waits_for.load(kRelaxed);
    one.under_way.push_back({rank, site_and_call(calls, calls.kind.load(kRelaxed)),
                             static_cast<double>(now - began) * kNs,
                             peer > 0 ? std::optional(peer - 1) : std::nullopt});
  });
  return all;
}

// The figures of `now` without those of `before`.
AllFigures since(AllFigures now, const AllFigures& before) {
  for (auto& [key, one] : now) {
    const auto earlier = before.find(key);
    if (earlier == before.end()) continue;
    for (const auto& [where, ranks] : earlier->second.sites) {
      for (const auto& [rank, figures] : ranks) one.sites[where][rank].add(figures, true);
    }
    std::erase_if(one.sites, [](const auto& site) {
      return std::all_of(site.second.begin(), site.second.end(),
                         [](const auto& rank) { return rank.second.calls == 0; });
    });
  }
  return now;
}

// The rank that waits least: the others wait for it.
Rank slowest_of(const std::map<Rank, RankFigures>& ranks) {
  return std::min_element(
             ranks.begin(), ranks.end(),
             [](const auto& a, const auto& b) { return a.second.waited < b.second.waited; })
      ->first;
}

Table table_of(const CommunicatorFigures& one) {
  Table table(as::text("site"), as::text("call"), as::number("calls"), as::measured_time("p50"),
              as::measured_time("p99"), as::measured_time("total"), As("{:.0f} %")("waiting"),
              as::number("slowest rank", "", "-"));
  table.title = fmt::format("{}: {}", legible(one.name), counted(one.ranks, "rank"));
  std::vector<std::pair<double, std::vector<Cell>>> rows;  // the longest time first
  for (const auto& [where, ranks] : one.sites) {
    RankFigures sum;
    std::uint64_t calls = 0;
    for (const auto& [rank, figures] : ranks) {
      sum.add(figures);
      calls = std::max(calls, figures.calls);
    }
    const double total = sum.took / static_cast<double>(ranks.size());
    rows.push_back(
        {total,
         {legible(where.first), where.second, static_cast<std::int64_t>(calls), sum.quantile(0.5),
          sum.quantile(0.99), total, sum.took > 0 ? sum.waited / sum.took : 0,
          ranks.size() > 1 ? Cell(slowest_of(ranks)) : Cell()}});
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  for (auto& row : rows) table.rows.push_back(std::move(row.second));
  constexpr double kLong = 0.1;  // seconds: shorter calls are no news
  for (const CallUnderWay& call : one.under_way) {
    if (call.since < kLong) continue;
    const std::string& site = call.where.first;
    table.notes.push_back(
        fmt::format("rank {} has been in {}{} for {}{}", call.rank, call.where.second,
                    site.empty() ? "" : " at " + legible(site), format_seconds(call.since),
                    call.waits_for ? fmt::format(" and waits for rank {}", *call.waits_for) : ""));
  }
  return table;
}

Json json_of(const CommunicatorFigures& one) {
  Json out = {{"communicator", one.name}, {"ranks", one.ranks}};
  out["sites"] = Json::array();
  for (const auto& [where, ranks] : one.sites) {
    Json each = Json::array();
    for (const auto& [rank, figures] : ranks) {
      each.push_back({{"rank", rank},
                      {"calls", figures.calls},
                      {"seconds", figures.took},
                      {"waited_seconds", figures.waited},
                      {"p50", figures.quantile(0.5)},
                      {"p99", figures.quantile(0.99)}});
    }
    out["sites"].push_back({{"site", where.first},
                            {"call", where.second},
                            {"slowest_rank", slowest_of(ranks)},
                            {"ranks", std::move(each)}});
  }
  out["under_way"] = Json::array();
  for (const CallUnderWay& call : one.under_way) {
    out["under_way"].push_back({{"rank", call.rank},
                                {"site", call.where.first},
                                {"call", call.where.second},
                                {"seconds", call.since},
                                {"waits_for", call.waits_for ? Json(*call.waits_for) : Json()}});
  }
  return out;
}

// Prometheus' text format.
std::string metrics_of(const AllFigures& all) {
  std::string calls = "# TYPE rankine_calls_total counter\n";
  std::string seconds = "# TYPE rankine_call_seconds_total counter\n";
  std::string waited = "# TYPE rankine_wait_seconds_total counter\n";
  const auto quoted = [](const std::string& text) {  // its escapes are those of JSON
    return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
  };
  for (const auto& [key, one] : all) {
    for (const auto& [where, ranks] : one.sites) {
      for (const auto& [rank, figures] : ranks) {
        const std::string labels =
            fmt::format("{{communicator={},site={},call=\"{}\",rank=\"{}\"}}", quoted(one.name),
                        quoted(where.first), where.second, rank);
        calls += fmt::format("rankine_calls_total{} {}\n", labels, figures.calls);
        seconds += fmt::format("rankine_call_seconds_total{} {}\n", labels, figures.took);
        waited += fmt::format("rankine_wait_seconds_total{} {}\n", labels, figures.waited);
      }
    }
  }
  return calls + seconds + waited;
}

// Trace Event Format, as `rankine simulate --trace` writes it: a process per rank, and in it a
// track per communicator; times in microseconds of the machine's monotonic clock.
std::string trace_of(const FoundCallSites& found) {
  Json events = Json::array();
  std::map<std::uint64_t, int> tracks;
  for_each_rank(found, [&](const CallSiteReader& reader, const RankCalls& calls) {
    const Rank rank = calls.rank.load(kRelaxed);
    const int track =
        tracks.try_emplace(reader.inode(), static_cast<int>(tracks.size())).first->second;
    const auto name = [&](const char* what, const std::string& text) {
      events.push_back(
          {{"ph", "M"}, {"name", what}, {"pid", rank}, {"tid", track}, {"args", {{"name", text}}}});
    };
    name("process_name", fmt::format("rank {}", rank));
    name("thread_name", name_of_communicator(reader.head()));
    const std::uint64_t ended = calls.ended.load(kRelaxed);
    for (std::uint64_t n = ended - std::min(ended, std::uint64_t{RankCalls::kPast}); n < ended;
         ++n) {
      const RankCalls::Past& call = calls.past[n % RankCalls::kPast];
      const auto [site, what] = site_and_call(calls, call.kind.load(kRelaxed));
      const auto us = [](std::int64_t ns) { return static_cast<double>(ns) / 1000; };
      const std::int64_t begin = call.begin_ns.load(kRelaxed), end = call.end_ns.load(kRelaxed);
      const Fingerprint print{call.fingerprint.load(kRelaxed)};
      const auto line = static_cast<std::size_t>(print.algorithm());
      events.push_back({{"ph", "X"},
                        {"name", site.empty() ? what : site},
                        {"cat", what},
                        {"ts", us(begin)},
                        {"dur", us(end - begin)},
                        {"pid", rank},
                        {"tid", track},
                        {"args",
                         {{"call", describe(print)},
                          {"algorithm", line < catalogue().size() ? catalogue()[line].name : "?"},
                          {"waited_us", us(call.waited_ns.load(kRelaxed))}}}});
    }
  });
  const Json out = {{"displayTimeUnit", "ns"}, {"traceEvents", std::move(events)}};
  return out.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

// The error of a target without records.
Status nothing_at(const TopArguments& a, const FoundCallSites& found) {
  const std::string remedy =
      "make it with record_times (C++, Python) or recordTimes = 1 (C), or start the program with "
      "RANKINE_FLIGHT_TIMES=1";
  if (!found.without_times.empty()) {
    return invalid_argument(
        fmt::format("target is '{}'; this communicator of process {} records "
                    "no times; {}",
                    legible(a.target), fmt::join(found.without_times, ", "), remedy));
  }
  std::string names;
  for (const std::string& name : found.names) names += (names.empty() ? "" : ", ") + legible(name);
  std::string hidden;
  if (!found.others.empty()) {
    hidden = fmt::format("; {} of other users cannot be read: run this as the program's user",
                         counted(found.others.size(), "process", "processes"));
  }
  return invalid_argument(fmt::format(
      "target is '{}'; allowed are processes, and names of communicators, that record times: {}{}; "
      "for others, {}",
      legible(a.target), names.empty() ? "no name is in use" : names, hidden, remedy));
}

void print(const TopArguments& a, const AllFigures& all, Console& console) {
  if (a.metrics) {
    console.out << metrics_of(all);
    return;
  }
  if (a.json) {
    Json out = Json::array();
    for (const auto& [key, one] : all) out.push_back(json_of(one));
    console.out << out.dump(a.once ? 2 : -1, ' ', false, Json::error_handler_t::replace) << '\n';
    return;
  }
  if (!a.once && console.out_is_terminal) console.out << "\x1b[H\x1b[J";  // from the top
  for (const auto& [key, one] : all) console.out << to_text(table_of(one)) << '\n';
}

Result<Exit> run_top(const TopArguments& a, Console& console) {
  if (Status files = check_output_files({{"--trace", a.trace}}); !files.ok()) return files;
  auto found = find_call_sites(a.target);
  if (!found.ok()) return found.status();
  if (found->files.empty()) return nothing_at(a, *found);
  if (!a.trace.empty()) {
    if (Status status = replace_file(a.trace, trace_of(*found)); !status.ok())
      return of_option("--trace", status);
    return Exit::ok;
  }
  const InterruptGuard guard;
  AllFigures before;
  for (;;) {
    const bool ended = std::all_of(found->files.begin(), found->files.end(),
                                   [](const CallSiteReader& one) { return one.has_ended(); });
    AllFigures now = figures_of(*found);
    print(a, a.once || a.json || a.metrics ? now : since(now, before), console);
    console.out.flush();
    if (ended) {
      std::string ids;
      for (const CallSiteReader& one : found->files) {
        ids += fmt::format("{}{}", ids.empty() ? "" : ", ", one.head().process.id);
      }
      console.err << fmt::format("rankine top: the program has ended (process {})\n", ids);
    }
    if (a.once || ended) return Exit::ok;
    before = std::move(now);
    const auto next = std::chrono::steady_clock::now() + a.every;
    while (std::chrono::steady_clock::now() < next) {
      if (interruption() != 0) return exit_of_interruption();
      constexpr std::chrono::milliseconds kNap{20};
      std::this_thread::sleep_for(std::min<std::chrono::steady_clock::duration>(
          kNap, next - std::chrono::steady_clock::now()));
    }
    // New processes and communicators appear; those of an ended program stay until none is left.
    if (auto again = find_call_sites(a.target); again.ok() && !again->files.empty()) {
      found = std::move(again);
    }
  }
}

}  // namespace

Subcommand add_top(Command tool) {
  auto owned = std::make_shared<TopArguments>();
  TopArguments& a = *owned;
  const Command app = tool.add_subcommand(
      "top", "the calls of a running program by call site: times, waits and the slowest rank");
  add_text(app, "target", a.target, "NAME",
           "name of a communicator of processes, or the number of a process")
      .required();
  add_argument(app, "--every", a.every, parse_duration, "TIME", "time between two tables (1s)");
  app.add_flag("--once", a.once, "print the figures since the program's start once");
  const Option json = app.add_flag("--json", a.json, "JSON, with the figures of each rank");
  app.add_flag("--metrics", a.metrics, "Prometheus' text format").excludes(json);
  add_output_file(
      app, "--trace", a.trace,
      "write the last calls of each rank, for Perfetto and other trace viewers, and end");
  app.footer(
      "The program must record times: record_times in C++ and Python, recordTimes in C, or "
      "RANKINE_FLIGHT_TIMES=1. Call sites have the names that it gives (set_call_site). A table "
      "shows the calls since the table before it: their number, median and 99th percentile, the "
      "mean of the ranks' total times, the share of waiting for other ranks, and the rank that "
      "waits least. Reading does not disturb the program; only its user may read.\n"
      "Examples:\n"
      "  rankine top job\n"
      "  rankine top 4711 --once --json\n"
      "  rankine top job --trace calls.json");
  return {app, [owned](Console& console) { return run_top(*owned, console); }};
}

}  // namespace rankine::tools
