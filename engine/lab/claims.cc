#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <ostream>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/api/communicator.h"
#include "engine/base/files.h"
#include "engine/cli/text.h"
#include "engine/lab/commands.h"
#include "engine/papers/claim.h"
#include "engine/papers/report.h"

namespace rankine::tools {
namespace {

struct ClaimsOptions {
  std::string paper;           // its key; empty: all
  std::string only;            // the name of a verdict or of a kind of claim; empty: all
  std::string id;              // begin of the ids of the selected claims; empty: all
  std::string markdown, html;  // files for the report; empty: none
  bool all = false;            // prints each claim instead of the totals and the failed claims
  bool json = false, golden = false;
  bool no_execute = false;
  int most_ranks = 81;  // the largest number of ranks for which live ranks repeat a run
};

Result<std::string> read_paper(std::string_view argument, std::string_view text) {
  if (claims::find_paper(text) != nullptr) return std::string(text);
  std::vector<std::string_view> keys;
  for (const claims::Paper& paper : claims::papers()) keys.push_back(paper.key);
  return unknown_name(argument, text, keys);
}

std::vector<std::string_view> verdicts_and_kinds() {
  std::vector<std::string_view> names;
  for (int v = 0; v < claims::kVerdicts; ++v)
    names.push_back(name_of(static_cast<claims::Verdict>(v)));
  for (int k = 0; k < claims::kKinds; ++k) names.push_back(name_of(static_cast<claims::Kind>(k)));
  return names;
}

Result<std::string> read_only(std::string_view argument, std::string_view text) {
  const auto names = verdicts_and_kinds();
  if (std::find(names.begin(), names.end(), text) != names.end()) return std::string(text);
  return unknown_name(argument, text, names);
}

claims::Filter filter_of(const ClaimsOptions& options) {
  claims::Filter filter{.paper = options.paper, .id = options.id};
  for (int v = 0; v < claims::kVerdicts; ++v) {
    const auto verdict = static_cast<claims::Verdict>(v);
    if (name_of(verdict) == options.only) filter.verdict = verdict;
  }
  for (int k = 0; k < claims::kKinds; ++k) {
    const auto kind = static_cast<claims::Kind>(k);
    if (name_of(kind) == options.only) filter.kind = kind;
  }
  return filter;
}

using Printer = void (*)(std::ostream&, const std::vector<claims::Finding>&, const claims::Filter&);

// Checks that the file can be written before the work begins, so that no work is lost.
Status write_file(std::string_view option, const std::string& file, Printer print,
                  const std::vector<claims::Finding>& findings, const claims::Filter& filter) {
  if (file.empty()) return {};
  std::ostringstream text;
  print(text, findings, filter);
  return of_option(option, replace_file(file, text.str()));
}

// Exit::wrong: an executed run differs from the simulated one. A refuted claim is no error.
Result<Exit> claims_report(const ClaimsOptions& options, Console& console) {
  if (options.json && options.golden) {
    return invalid_argument("--json and --golden are given; allowed is one of them");
  }
  Status status = check_output_files({{"--markdown", options.markdown}, {"--html", options.html}});
  if (!status.ok()) return status;
  Progress progress(console);
  using Clock = std::chrono::steady_clock;
  std::string_view under_way;
  Clock::time_point begin;
  const claims::Filter filter = filter_of(options);
  const auto findings = claims::find_out(
      filter, {.execute = !options.no_execute && !options.golden, .most_ranks = options.most_ranks},
      [&](std::string_view what, std::size_t done, std::size_t all) {
        if (what != std::exchange(under_way, what)) begin = Clock::now();
        const std::chrono::duration<double> took = Clock::now() - begin;
        progress.show(
            fmt::format("{} of {} {}{}", done, all, what, time_left(done, all, took.count())));
      });
  progress.clear();
  if (findings.empty()) {
    return invalid_argument(fmt::format(
        "id is '{}'; no claim's id begins with it and no claim is at that place; 'rankine claims "
        "--all' lists the ids and places",
        options.id));
  }
  Status written =
      write_file("--markdown", options.markdown, claims::print_markdown, findings, filter);
  if (written.ok())
    written = write_file("--html", options.html, claims::print_html, findings, filter);
  if (!written.ok()) return written;
  if (options.json) {
    console.out << to_json(findings, filter).dump(2) << "\n";
  } else if (options.golden) {
    for (const claims::Finding& finding : findings) console.out << golden_line(finding) << "\n";
  } else if (options.markdown.empty() && options.html.empty()) {
    if (options.all || !options.id.empty() || !options.only.empty()) {
      print_text(console.out, findings, filter);
    } else {
      print_brief(console.out, findings, filter);
      console.out
          << "\n--all prints every claim with its result, --only does_not_hold those that do not "
             "hold, an id or a place some of them.\n";
    }
  }
  return totals_of(findings).faults > 0 ? Exit::wrong : Exit::ok;
}

}  // namespace

Subcommand add_claims(Command tool) {
  auto options = std::make_shared<ClaimsOptions>();
  const Command app = tool.add_subcommand(
      "claims", "every quantitative claim of the papers, computed and compared with the engine");
  add_text(app, "id", options->id, "TEXT",
           "only claims with an id that begins with TEXT, or at that place (C.5, 'Table 1')");
  add_argument(app, "-p,--paper", options->paper, read_paper,
               "only one paper's: lesson, chapter, lu, traff, trivance or optcc");
  add_argument(app, "--only", options->only, read_only,
               "only rows with that verdict (holds, holds_if, does_not_hold, not_reproduced) or of "
               "that kind (executed, arithmetic, definition, own_formula)");
  app.add_flag("--all", options->all,
               "each claim with its result, not only the totals and the failed claims");
  app.add_flag("--json", options->json, "as JSON");
  add_output_file(app, "--markdown", options->markdown,
                  "write the report there, as Markdown tables");
  add_output_file(app, "--html", options->html, "write the report there, as a page to hand out");
  app.add_flag("--golden", options->golden, "as the list in tests/golden/claims.txt");
  app.add_flag("--no-execute", options->no_execute, "simulate only; no live ranks");
  add_argument(app, "--execute-to", options->most_ranks, Whole{1, Communicator::kMaxRanks}, "N",
               "live ranks repeat runs of up to N ranks (81); a row without such a run repeats its "
               "smallest");
  app.footer(
      "Examples:\n"
      "  rankine claims --only does_not_hold\n"
      "  rankine claims --paper lu --html claims.html\n"
      "  rankine claims lu-5.2\n"
      "  rankine claims C.5");
  return {app, [options](Console& console) { return claims_report(*options, console); }};
}

}  // namespace rankine::tools
