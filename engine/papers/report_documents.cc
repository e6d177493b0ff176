// The report as a document: Markdown and HTML, one table of rows per paper.
#include <fmt/format.h>

#include <ostream>

#include "engine/papers/report.h"
#include "engine/papers/report_row.h"

namespace rankine::claims {
namespace {

std::string in_markdown(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '|' || c == '<') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

std::string in_html(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

// The cells of a row, in the order of the head.
constexpr std::string_view kHead[] = {"where",        "the paper says", "verdict", "kind",
                                      "as a formula", "found",          "why"};
std::vector<std::string> cells(const Finding& finding) {
  const Claim& claim = *finding.claim;
  const ReportRow row = report_row(finding);
  std::string formula = row.stated;
  if (!claim.found.empty()) formula += fmt::format(" {} {}", row.relation, claim.found);
  std::string found = row.own;
  std::vector<std::string> rest = {row.shown, row.cases};
  rest.insert(rest.begin() + 1, row.again.begin(), row.again.end());
  if (!row.needs.empty()) rest.push_back("needs " + row.needs);
  for (const std::string& more : rest) {
    if (!more.empty()) found += (found.empty() ? "" : "; ") + more;
  }
  return {claim.where, claim.text, row.verdict, std::string(name_of(claim.kind)),
          formula,     found,      row.why};
}

// Calls begin(paper) and end() around the rows of each paper that has any.
template <class Begin, class Row, class End>
void for_each_paper(const std::vector<Finding>& findings, const Filter& filter, const Begin& begin,
                    const Row& row, const End& end) {
  const Paper* paper = nullptr;
  for (const Finding& finding : findings) {
    if (!filter.shows(finding)) continue;
    if (finding.paper != paper) {
      if (paper != nullptr) end();
      begin(*finding.paper);
      paper = finding.paper;
    }
    row(finding);
  }
  if (paper != nullptr) end();
}

constexpr std::string_view kStyle =
    "body{font:15px/1.4 sans-serif;margin:2rem auto;max-width:90rem;padding:0 1rem}"
    "table{border-collapse:collapse;width:100%}th,td{border:1px solid #bbb;padding:.3rem .5rem;"
    "text-align:left;vertical-align:top}code{font-size:.9em}.holds td:nth-child(3){color:#17692a}"
    ".conditional td:nth-child(3){color:#8a5a00}.fails td:nth-child(3){color:#a31515}.beyond_model "
    "td:nth-child(3){color:#555}"
    "@media print{body{font-size:10px;margin:0}}";

}  // namespace

void print_markdown(std::ostream& out, const std::vector<Finding>& findings, const Filter& filter) {
  out << "# Claims of the papers\n\n";
  for (const std::string& line : summary_lines(totals_of(findings))) out << "- " << line << "\n";
  for_each_paper(
      findings, filter,
      [&out](const Paper& paper) {
        out << fmt::format("\n## {}\n\n{}\n\n|", paper.title, paper.letters);
        for (const std::string_view name : kHead) out << " " << name << " |";
        out << "\n|";
        for (std::size_t i = 0; i < std::size(kHead); ++i) out << "---|";
        out << "\n";
      },
      [&out](const Finding& finding) {
        out << "|";
        for (const std::string& cell : cells(finding)) out << " " << in_markdown(cell) << " |";
        out << "\n";
      },
      [] {});
}

void print_html(std::ostream& out, const std::vector<Finding>& findings, const Filter& filter) {
  out << "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Claims of the "
         "papers</title><style>"
      << kStyle << "</style></head><body>\n<h1>Claims of the papers</h1>\n<ul>\n";
  for (const std::string& line : summary_lines(totals_of(findings))) {
    out << "<li>" << in_html(line) << "</li>\n";
  }
  out << "</ul>\n";
  for_each_paper(
      findings, filter,
      [&out](const Paper& paper) {
        out << fmt::format("<h2>{}</h2>\n<p>{}</p>\n<table>\n<tr>", in_html(paper.title),
                           in_html(paper.letters));
        for (const std::string_view name : kHead) out << "<th>" << name << "</th>";
        out << "</tr>\n";
      },
      [&out](const Finding& finding) {
        out << fmt::format("<tr id=\"{}\" class=\"{}\">", in_html(finding.claim->id),
                           name_of(finding.verdict));
        for (const std::string& cell : cells(finding)) out << "<td>" << in_html(cell) << "</td>";
        out << "</tr>\n";
      },
      [&out] { out << "</table>\n"; });
  out << "</body></html>\n";
}

}  // namespace rankine::claims
