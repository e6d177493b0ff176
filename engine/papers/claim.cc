#include "engine/papers/claim.h"

#include <toml++/toml.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <stdexcept>
#include <utility>

#include "engine/base/names.h"
#include "engine/base/units.h"

namespace rankine::reproduce {
namespace {

constexpr std::string_view kMeasures[] = {
    "gain",  "greatest_gain", "latency_gain",   "spread", "overtaken", "latest_overtaken",
    "shift", "wins_from",     "change_of_form", "delay"};

}  // namespace

std::string_view name_of(Measure measure) { return kMeasures[static_cast<std::size_t>(measure)]; }

std::optional<Measure> parse_measure(std::string_view text) {
  return enumerator_of<Measure>(kMeasures, text);
}

std::string_view name_of(Unit unit) {
  constexpr std::string_view kNames[] = {"percent", "bytes", "factor"};
  return kNames[static_cast<std::size_t>(unit)];
}

Unit unit_of(Measure measure) {
  switch (measure) {
    case Measure::gain:
    case Measure::greatest_gain:
    case Measure::latency_gain:
    case Measure::spread:
      return Unit::percent;
    case Measure::overtaken:
    case Measure::latest_overtaken:
    case Measure::wins_from:
      return Unit::bytes;
    case Measure::shift:
    case Measure::change_of_form:
    case Measure::delay:
      return Unit::factor;
  }
  return Unit::factor;
}

}  // namespace rankine::reproduce

namespace rankine::claims {
namespace {

using reproduce::Statement;

// One table of a file. Each field is taken once; end() refuses fields that were not taken.
class TomlRow {
 public:
  TomlRow(const toml::table& table, std::string name) : table_(table), name_(std::move(name)) {}

  [[noreturn]] void fail(const std::string& what) const {
    throw std::logic_error(name_ + ": " + what);
  }

  std::string text(std::string_view field, bool needed = false) {
    const toml::node* node = take(field, needed);
    if (node == nullptr) return {};
    const auto value = node->value<std::string>();
    if (!value || value->empty())
      fail("'" + std::string(field) + "' is no text; allowed are texts");
    return *value;
  }
  std::vector<std::string> texts(std::string_view field) {
    std::vector<std::string> out;
    const toml::node* node = take(field, false);
    if (node == nullptr) return out;
    if (!node->is_array())
      fail("'" + std::string(field) + "' is no list; allowed are lists of texts");
    for (const toml::node& each : *node->as_array()) {
      out.push_back(each.value<std::string>().value_or(""));
    }
    return out;
  }
  double number(std::string_view field, double otherwise) {
    const toml::node* node = take(field, false);
    return node == nullptr ? otherwise : number_of(field, *node);
  }
  // A list of two numbers.
  std::pair<double, double> range(std::string_view field, std::pair<double, double> otherwise) {
    const toml::node* node = take(field, false);
    if (node == nullptr) return otherwise;
    const toml::array* both = node->as_array();
    if (both == nullptr || both->size() != 2) {
      fail("'" + std::string(field) + "' is no range; allowed are lists of two numbers");
    }
    return {number_of(field, (*both)[0]), number_of(field, (*both)[1])};
  }
  void leave() { ++taken_; }  // counts a nested table, which is read separately
  void end() const {
    if (taken_ != table_.size()) fail("a field is unknown; remove it or correct its name");
  }

 private:
  // A number, or a size as a text ("8 MiB").
  double number_of(std::string_view field, const toml::node& node) const {
    if (const auto size = node.value<std::string>()) {
      const auto bytes = parse_size(field, *size);
      if (!bytes.ok()) fail(std::string(bytes.status().text()));
      return static_cast<double>(*bytes);
    }
    const auto value = node.value<double>();
    if (!value) fail("'" + std::string(field) + "' is no number; allowed are numbers and sizes");
    return *value;
  }

  const toml::node* take(std::string_view field, bool needed) {
    const toml::node* node = table_.get(field);
    if (node != nullptr) ++taken_;
    if (node == nullptr && needed) fail("'" + std::string(field) + "' is missing");
    return node;
  }

  const toml::table& table_;
  std::string name_;
  std::size_t taken_ = 0;
};

// Replaces each "$name" by the text of that name in the file's table [names].
std::string spelled_out(std::string text, const toml::table& names, const TomlRow& row) {
  for (std::size_t at = text.find('$'); at != std::string::npos; at = text.find('$', at)) {
    std::size_t end = at + 1;
    while (end < text.size() &&
           (std::isalnum(static_cast<unsigned char>(text[end])) != 0 || text[end] == '_'))
      ++end;
    const std::string name = text.substr(at + 1, end - at - 1);
    const auto value = names[name].value<std::string>();
    if (!value) row.fail("'$" + name + "' is not in [names]; add it");
    text.replace(at, end - at, *value);
  }
  return text;
}

Kind kind_of(const std::string& text, const Claim& claim, const TomlRow& row) {
  if (text.empty()) {
    return claim.runs.empty() && claim.needs.empty() ? Kind::arithmetic : Kind::executed;
  }
  for (const Kind kind : {Kind::definition, Kind::own_formula}) {
    if (name_of(kind) == text) return kind;
  }
  row.fail("kind is '" + text + "'; allowed are definition and own_formula, or no kind");
}

// The place of a row; a row without one has the place of the row before.
std::string place_of(TomlRow& row, std::string_view before) {
  std::string place = row.text("where", before.empty());
  return place.empty() ? std::string(before) : place;
}

// The sides and the relation of a field `check`, for example "N-1 <= rounds" or "1 ~ sent within
// 1/20". The relation is the first one outside parentheses.
void read_check(std::string_view text, Claim& claim, const TomlRow& row) {
  constexpr std::string_view kSigns = "<>=~", kWithin = " within ";
  std::size_t at = 0;
  for (int depth = 0; at < text.size(); ++at) {
    if (depth == 0 && kSigns.find(text[at]) != kSigns.npos) break;
    depth += (text[at] == '(' ? 1 : 0) - (text[at] == ')' ? 1 : 0);
  }
  const std::size_t end = std::min(text.find(' ', at), text.size());
  const std::size_t within = std::min(text.rfind(kWithin), text.size());
  claim.relation = text.substr(std::min(at, text.size()), end - at);
  const bool is_near = claim.relation == "~";
  if (at < 2 || end == text.size() || is_near != (within < text.size())) {
    row.fail("check is '" + std::string(text) +
             "'; allowed are two sides with =, <, <=, > or >= between them, or 'a ~ b within x'");
  }
  claim.stated = text.substr(0, at - 1);
  claim.found = text.substr(end + 1, within - end - 1);
  if (is_near) claim.relation += " " + std::string(text.substr(within + kWithin.size()));
}

Claim read_claim(TomlRow row, std::string_view id, const Paper& paper, const toml::table& names) {
  const auto text = [&](std::string_view field) {
    return spelled_out(row.text(field), names, row);
  };
  Claim claim{.id = std::string(id),
              .where = place_of(row, paper.claims.empty() ? "" : paper.claims.back().where),
              .text = row.text("text", true)};
  claim.printed = row.text("printed");
  claim.stated = text("stated");
  claim.runs = text("runs");
  claim.found = text("found");
  claim.sets = text("sets");
  if (const std::string check = text("check"); !check.empty()) {
    if (!claim.stated.empty() || !claim.found.empty())
      row.fail("check is set beside stated or found; allowed is one of them");
    read_check(check, claim, row);
  }
  claim.own = text("own");
  claim.degenerate = text("degenerate");
  claim.when = text("when");
  claim.condition = row.text("condition");
  claim.why = row.text("why");
  claim.needs = row.text("needs");
  claim.kind = kind_of(row.text("kind"), claim, row);
  claim.but_where = text("but_where");
  if (!claim.but_where.empty()) {
    if (!claim.when.empty()) row.fail("when and but_where are both set; allowed is one of them");
    claim.when = claim.but_where;
  }
  if (claim.when.empty() != claim.condition.empty())
    row.fail("one of when and condition is missing; give both or none");
  row.end();
  if (claim.sets.empty() && !claim.runs.empty()) claim.sets = paper.sets;
  if (claim.own.empty()) claim.own = paper.own;
  if (claim.degenerate.empty()) claim.degenerate = paper.degenerate;
  return claim;
}

Statement read_statement(TomlRow row, std::string_view id, const Paper& paper) {
  const std::string measure = row.text("measure", true);
  const auto known = reproduce::parse_measure(measure);
  if (!known) row.fail("measure is '" + measure + "', which is unknown");
  const auto sizes = row.range("sizes", {0, 0});
  const auto stated = row.range("range", {0, reproduce::kNoLimit});
  Statement out{
      .id = std::string(id),
      .where = place_of(row, paper.statements.empty() ? "" : paper.statements.back().where),
      .text = row.text("text", true),
      .measure = *known,
      .panels = row.text("panels", true),
      .others = row.text("others"),
      .from = sizes.first,
      .to = sizes.second,
      .low = stated.first,
      .high = stated.second,
      .allowed = row.number("allowed", 0),
      .why = row.text("why")};
  row.end();
  return out;
}

struct IdentifiedRow {
  std::string id;
  toml::table fields;
};
using RowsByLine = std::multimap<toml::source_index, IdentifiedRow>;

// Adds the rows of the lists [[names]]: a cell for each of the first `columns`.
void add_lists(TomlRow& paper, const toml::table& file, const std::string& name, RowsByLine& rows) {
  if (!file.contains(name + "s")) return;
  paper.leave();
  const toml::array* lists = file[name + "s"].as_array();
  if (lists == nullptr || !lists->is_array_of_tables()) {
    paper.fail(name + "s is no list; allowed are lists [[" + name + "s]]");
  }
  for (const toml::node& list : *lists) {
    toml::table common = *list.as_table();
    const std::vector<std::string> columns = TomlRow(common, name + "s").texts("columns");
    const toml::table* listed = (*list.as_table())["row"].as_table();
    if (listed == nullptr) paper.fail(name + "s without rows; allowed are rows row.ID = [...]");
    common.erase("columns");
    common.erase("row");
    for (const auto& [id, cells] : *listed) {
      IdentifiedRow row{.id = std::string(id.str()), .fields = common};
      const toml::array* values = cells.as_array();
      bool fits = values != nullptr && values->size() <= columns.size();
      for (std::size_t i = 0; fits && i < values->size(); ++i) {
        fits = row.fields.insert(columns[i], (*values)[i]).second;
      }
      if (!fits) paper.fail("row '" + row.id + "' is no list of values of the first columns");
      rows.emplace(id.source().begin.line, std::move(row));
    }
  }
}

// Visits the tables [name.ID] and the rows of the lists [[names]] in the order of their lines.
template <class Visit>
void for_each_row(TomlRow& paper, const toml::table& file, const std::string& name,
                  const Visit& visit) {
  RowsByLine rows;
  if (file.contains(name)) {
    paper.leave();
    const std::string form = name + " is no table; allowed are tables [" + name + ".ID]";
    const toml::table* tables = file[name].as_table();
    if (tables == nullptr) paper.fail(form);
    for (const auto& [id, row] : *tables) {
      if (!row.is_table()) paper.fail(form);
      rows.emplace(row.source().begin.line, IdentifiedRow{std::string(id.str()), *row.as_table()});
    }
  }
  add_lists(paper, file, name, rows);
  std::set<std::string_view> ids;
  for (const auto& [line, row] : rows) {
    const TomlRow read(row.fields, name + " '" + row.id + "'");
    if (!ids.insert(row.id).second) read.fail("the row stands twice; remove one");
    visit(read, row.id);
  }
}

// The numbers of a section: "2.4; 3.1" is {2, 4}, "Appendix B" is {101 + 1}, "Abstract" {0}; empty:
// a place without a number, such as a heading or a table.
std::vector<int> section_of(std::string_view where) {
  std::vector<int> out;
  for (const std::string_view name : {"Appendix ", "Theorem ", "Lemma "}) {
    const std::size_t point = where.find('.');
    if (where.starts_with(name) && (name == "Appendix " || point == name.size() + 1)) {
      where.remove_prefix(name.size());
    }
  }
  if (where.starts_with("Abstract")) return {0};
  const std::size_t end = std::min(where.find_first_not_of("0123456789.ABCDEFGH"), where.size());
  constexpr int kAppendices = 100;
  for (std::size_t at = 0; at < end; ++at) {
    const char c = where[at];
    if (c >= 'A') {  // a word that is no letter of an appendix
      if (end > 1 && where[1] != '.') return {};
      if (end == 1 && where.size() > 1 && where[1] != ',' && where[1] != ';') return {};
      out.push_back(kAppendices + c - 'A');
    } else if (c != '.') {
      if (at > 0 && where[at - 1] >= '0' && where[at - 1] <= '9') {
        out.back() = 10 * out.back() + (c - '0');
      } else {
        out.push_back(c - '0');
      }
    }
  }
  return out;
}

// By section; a place without a number follows the row before its first mention.
void sort_by_place(std::vector<Claim>& claims) {
  std::map<std::string, std::vector<int>> named;
  std::vector<std::pair<std::vector<int>, Claim>> keyed;
  std::vector<int> before;
  for (Claim& claim : claims) {
    std::vector<int> section = section_of(claim.where);
    if (section.empty()) {
      section = named.emplace(claim.where.substr(0, claim.where.find(';')), before).first->second;
    }
    before = section;
    keyed.emplace_back(std::move(section), std::move(claim));
  }
  std::stable_sort(keyed.begin(), keyed.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (std::size_t i = 0; i < claims.size(); ++i) claims[i] = std::move(keyed[i].second);
}

}  // namespace

std::string_view name_of(Kind kind) {
  constexpr std::string_view kNames[kKinds] = {"executed", "arithmetic", "definition",
                                               "own_formula"};
  return kNames[static_cast<std::size_t>(kind)];
}

Paper read_paper(std::string_view text) {
  toml::table file;
  try {
    file = toml::parse(text);
  } catch (const toml::parse_error& wrong) {
    throw std::logic_error("a paper's file, line " + std::to_string(wrong.source().begin.line) +
                           ": " + std::string(wrong.description()));
  }
  TomlRow row(file, "paper");
  Paper paper{.key = row.text("key", true),
              .title = row.text("title", true),
              .letters = row.text("letters", true),
              .runs = row.text("runs", true),
              .own = row.text("own"),
              .degenerate = row.text("degenerate"),
              .useful = row.texts("useful")};
  static const toml::table kNone;
  const toml::table* const found = file["names"].as_table();
  if (found != nullptr) row.leave();
  const toml::table& names = found != nullptr ? *found : kNone;
  paper.sets = spelled_out(row.text("sets"), names, row);
  for_each_row(row, file, "claim", [&](const TomlRow& each, std::string_view id) {
    paper.claims.push_back(read_claim(each, id, paper, names));
  });
  for_each_row(row, file, "statement", [&](const TomlRow& each, std::string_view id) {
    paper.statements.push_back(read_statement(each, id, paper));
  });
  row.end();
  for (const Statement& each : paper.statements) {
    paper.claims.push_back({.id = each.id,
                            .where = each.where,
                            .text = each.text,
                            .why = each.why,
                            .reproduced = true});
  }
  sort_by_place(paper.claims);
  return paper;
}

bool is_at(const Claim& claim, std::string_view place) {
  constexpr std::string_view kAppendix = "Appendix ";
  if (place.starts_with(kAppendix)) place.remove_prefix(kAppendix.size());
  for (std::string_view rest = claim.where; !place.empty() && !rest.empty();) {
    const std::size_t end = std::min(rest.find("; "), rest.size());
    std::string_view part = rest.substr(0, end);
    rest.remove_prefix(std::min(rest.size(), end + 2));
    if (part.starts_with(kAppendix)) part.remove_prefix(kAppendix.size());
    if (!part.starts_with(place)) continue;
    if (part.size() == place.size() ||
        std::isalnum(static_cast<unsigned char>(part[place.size()])) == 0) {
      return true;
    }
  }
  return false;
}

std::span<const Paper> papers() {
  static const std::vector<Paper> kPapers = [] {
    std::vector<Paper> all;
    for (const std::string_view text : paper_texts()) all.push_back(read_paper(text));
    return all;
  }();
  return kPapers;
}

const Paper* find_paper(std::string_view key) {
  for (const Paper& paper : papers()) {
    if (paper.key == key) return &paper;
  }
  return nullptr;
}

}  // namespace rankine::claims
