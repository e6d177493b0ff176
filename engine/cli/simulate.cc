// The command `rankine simulate`: answers questions and prints them as tables, round ends, traces,
// pictures, curves over ranks or a batch of JSON lines.

#include "engine/cli/simulate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <istream>
#include <memory>
#include <mutex>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/files.h"
#include "engine/base/json_text.h"
#include "engine/base/parallel.h"
#include "engine/base/status.h"
#include "engine/base/units.h"
#include "engine/cli/arguments.h"
#include "engine/cli/console.h"
#include "engine/cli/drawing.h"
#include "engine/cli/question.h"
#include "engine/cli/table.h"
#include "engine/cli/text.h"
#include "engine/cli/tool.h"
#include "engine/network/fabric.h"
#include "engine/network/port_model.h"

namespace rankine::tools {

std::size_t answer_batch(std::istream& in, std::ostream& out) {
  constexpr std::size_t kAtOnce = 1024;
  LineReader reader(in, kMostJsonBytes);
  std::size_t errors = 0;
  using Line = LineReader::Line;
  for (std::vector<Line> lines; !(lines = reader.next(kAtOnce)).empty();) {
    std::erase_if(lines, [](const Line& line) {
      return line.text.find_first_not_of(" \t\r") == std::string::npos;
    });
    std::mutex writing;
    std::vector<std::optional<BatchAnswer>> answers(lines.size());
    std::size_t written = 0;  // answers keep the order of the lines
    parallel_for(lines.size(), [&](std::size_t i) {
      BatchAnswer answer = answer_request(lines[i].text, lines[i].number);
      const std::lock_guard lock(writing);
      answers[i] = std::move(answer);
      for (; written < answers.size() && answers[written]; answers[written++].reset()) {
        // Each answer is flushed, because the client may wait for it before asking again.
        out << answers[written]->line << '\n' << std::flush;
        errors += answers[written]->ok ? 0 : 1;
      }
    });
  }
  return errors;
}

namespace {

// The time of one algorithm on `ranks` ranks. `may_take`: see SimulateOptions.
Result<double> seconds_among(QuestionArguments arguments, const std::string& algorithm, int ranks,
                             std::function<Status(std::uint64_t)> may_take) {
  arguments.algorithm.algorithms = algorithm;
  arguments.algorithm.take("ranks");
  arguments.algorithm.begin.ranks = ranks;
  auto question = question_of(arguments);
  if (!question.ok()) return question.status();
  question->options.ideal_blocks = true;
  question->options.may_take = std::move(may_take);
  const auto answered = answer(std::move(*question));
  if (!answered.ok()) return answered.status();
  return answered->seconds();
}

// Predicts the steps of an algorithm for twice the ranks from the steps for fewer ranks.
class Growth {
 public:
  void took(int ranks, std::uint64_t steps) {
    if (!seen_.empty() && seen_.back().ranks * 2 != ranks) seen_.clear();
    seen_.push_back({ranks, static_cast<double>(steps)});
  }
  // By the lesser of the last two factors; none before two factors are known.
  std::optional<double> guess(int ranks) const {
    if (seen_.size() < 3 || seen_.back().ranks * 2 != ranks) return std::nullopt;
    const auto factor = [this](std::size_t back) {
      const std::size_t at = seen_.size() - back;
      return seen_[at].steps / seen_[at - 1].steps;
    };
    return seen_.back().steps * std::min(factor(1), factor(2));
  }

 private:
  struct Seen {
    int ranks;
    double steps;
  };
  std::vector<Seen> seen_;
};

// "4G" for 2^32, in the units of parse_size(); rounded.
std::string about(double steps) {
  constexpr std::string_view kLetters = "KMGT";
  std::size_t unit = 0;
  for (; steps >= 1024 && unit < kLetters.size(); ++unit) steps /= 1024;
  const std::string_view letter = unit == 0 ? "" : kLetters.substr(unit - 1, 1);
  return fmt::format("{:.{}f}{}", steps, steps < 10 && unit > 0 ? 1 : 0, letter);
}

}  // namespace

Result<Scaling> scale(const QuestionArguments& arguments, int most, std::uint64_t most_steps,
                      Console& console) {
  Scaling out;
  const auto params = read_params(arguments.algorithm).value();
  const int fewest = params.ranks;
  if (most <= fewest) {
    return invalid_argument(fmt::format(
        "--ranks-to is {}; allowed are more than the {} ranks of --ranks", most, fewest));
  }
  for (int n = fewest; n<most; n = n> most / 2 ? most : 2 * n) out.ranks.push_back(n);
  out.ranks.push_back(most);
  std::vector<std::string> left_out;
  const auto questions = questions_of(arguments, left_out).value();
  Progress progress(console);
  for (const Question& question : questions) {
    ScalingCurve& curve = out.curves.emplace_back();
    curve.algorithm = question.algorithm->name;
    std::string missing;
    bool ends = false;  // true: more ranks would take even more steps
    Growth growth;
    for (const int n : out.ranks) {
      const auto tell = [&] {
        if (!progress.due()) return;
        progress.show(fmt::format("{} of {}: {}, {} ranks", out.curves.size(), questions.size(),
                                  curve.algorithm, n));
      };
      tell();
      std::uint64_t taken = 0;
      const auto may_take = [&](std::uint64_t steps) -> Status {
        tell();
        taken = steps;
        ends = steps > most_steps;
        if (!ends) return {};
        return invalid_argument(fmt::format("that takes {} steps or more; --most-steps allows {}",
                                            about(static_cast<double>(steps)),
                                            format_size(most_steps)));
      };
      const auto answered = [&]() -> Result<double> {
        const auto guess = growth.guess(n);
        ends = guess && *guess > static_cast<double>(most_steps);
        if (!ends) return seconds_among(arguments, curve.algorithm, n, may_take);
        return invalid_argument(fmt::format("an estimate is {} steps; --most-steps allows {}",
                                            about(*guess), format_size(most_steps)));
      };
      const auto seconds = answered();
      if (seconds.ok()) {
        growth.took(n, taken);
        curve.seconds.emplace_back(n, *seconds);
      } else if (missing.empty() || ends) {
        missing += fmt::format("{}{} among {}{} is left out: {}", missing.empty() ? "" : "; ",
                               curve.algorithm, counted(n, "rank"), ends ? " and more" : "",
                               seconds.status().text());
      }
      if (ends) break;
    }
    if (!missing.empty()) out.notes.push_back(missing);
  }
  std::erase_if(out.curves, [](const ScalingCurve& curve) { return curve.seconds.empty(); });
  if (out.curves.empty()) return invalid_argument(out.notes.front());
  return out;
}

Table table_of(const Scaling& scaling) {
  Table table("ranks");
  for (const ScalingCurve& curve : scaling.curves) {
    table.columns.push_back(as::model_time(curve.algorithm, "", "-"));
  }
  for (const int n : scaling.ranks) {
    auto& row = table.add(n);
    for (const ScalingCurve& curve : scaling.curves) {
      row.emplace_back();
      for (const auto& [ranks, seconds] : curve.seconds) {
        if (ranks == n) row.back() = seconds;
      }
    }
  }
  return table;
}

std::string json_of(const Scaling& scaling) {
  std::string lines;
  for (const ScalingCurve& curve : scaling.curves) {
    for (const auto& [ranks, seconds] : curve.seconds) {
      const Json line = {{"algorithm", curve.algorithm}, {"ranks", ranks}, {"time", seconds}};
      lines += line.dump() + "\n";
    }
  }
  return lines;
}

std::string svg_of(const Scaling& scaling, const std::string& title) {
  constexpr double kMicroseconds = 1e6;
  Plot plot{.title = title,
            .y_label = "microseconds",
            .log_y = true,
            .baseline = {},
            .x_label = "ranks",
            .log_x = true};
  for (const ScalingCurve& curve : scaling.curves) {
    PlotCurve& drawn = plot.curves.emplace_back();
    drawn.name = curve.algorithm;
    for (const auto& [ranks, seconds] : curve.seconds) {
      if (seconds > 0)
        drawn.points.push_back({static_cast<double>(ranks), seconds * kMicroseconds});
    }
  }
  fade_all_but_least(plot);
  fit_axes(plot);
  return to_svg(plot);
}

namespace {

// The time in flight of each message of an answer, with its ports and links: for trace viewers and
// as a picture. Both require an answer with a trace (SimulateOptions::trace). Errors: a fidelity
// other than eq1, which has no such times; too many messages or, for the picture, ports.
constexpr std::size_t kMostTraced = std::size_t{1} << 20;
constexpr int kMostGanttRows = 512;

Status check(const Answer& answer) {
  if (answer.carried) {
    return invalid_argument(fmt::format("--fidelity is {}; a trace is of fidelity eq1",
                                        name_of(answer.question.fidelity)));
  }
  const std::size_t messages = answer.result.trace.size();
  if (messages <= kMostTraced) return {};
  return invalid_argument(fmt::format("--trace: {} messages are too many; at most {} are allowed",
                                      messages, kMostTraced));
}

// The number of ports used: networks may have more than any rank needs.
int ports_used(const Simulation& result) {
  int most = 0;
  for (const TracedMessage& m : result.trace) {
    most = std::max({most, m.send_port, m.receive_port});
  }
  return most + 1;
}

double seconds_of(const Answer& answer, Ticks ticks) {
  return nearest_double(ticks, answer.result.ticks_per_second);
}

Json named(const char* what, int rank, int track, const std::string& name) {
  return {{"ph", "M"}, {"name", what}, {"pid", rank}, {"tid", track}, {"args", {{"name", name}}}};
}

Json arguments_of(const Answer& answer, const Routes& routes, const TracedMessage& m) {
  const Fabric& fabric = answer.question.fabric;
  const int from = fabric.place_of(m.from), to = fabric.place_of(m.to);
  Json out = {{"round", m.round},
              {"transfer", m.transfer},
              {"from", m.from},
              {"to", m.to},
              {"bytes", bytes_of(m.weight, answer.result.weight_per_byte)},
              {"hops", routes.hops(from, to)}};
  Json links = Json::array();
  routes.for_each_link(from, to, [&links](int link, int) { links.push_back(link); });
  if (!links.empty()) out["links"] = std::move(links);
  if (fabric.kind_between(m.from, m.to) % 2 == 1) out["between"] = true;
  return out;
}

// Trace Event Format, the input of Perfetto and Chrome's tracing: a process per rank, and in it a
// track per port and direction; times in microseconds. Arguments of a message: round, transfer,
// from, to, bytes, hops, its links (numbers of shared links in Routes), and `between` for a message
// between groups.
Result<std::string> trace_json(const Answer& answer) {
  check(answer).throw_if_error();
  const Fabric& fabric = answer.question.fabric;
  const auto routes = Routes::make(fabric.wiring, fabric.places_among(answer.params.ranks)).value();
  Json events = Json::array();
  const int ports = ports_used(answer.result);
  for (Rank r = 0; r < answer.params.ranks; ++r) {
    events.push_back(named("process_name", r, 0, fmt::format("rank {}", r)));
    for (int port = 0; port < ports; ++port) {
      events.push_back(named("thread_name", r, 2 * port, fmt::format("send port {}", port)));
      events.push_back(named("thread_name", r, 2 * port + 1, fmt::format("receive port {}", port)));
    }
  }
  for (const TracedMessage& m : answer.result.trace) {
    const double start = seconds_of(answer, m.start) * 1e6;
    Json event = {{"ph", "X"},
                  {"name", fmt::format("{} to {}", m.from, m.to)},
                  {"cat", fmt::format("round {}", m.round)},
                  {"ts", start},
                  {"dur", seconds_of(answer, m.end - m.start) * 1e6},
                  {"pid", m.from},
                  {"tid", 2 * std::max(0, m.send_port)},
                  {"args", arguments_of(answer, routes, m)}};
    events.push_back(event);
    event["pid"] = m.to;
    event["tid"] = 2 * std::max(0, m.receive_port) + 1;
    events.push_back(std::move(event));
  }
  const Json out = {{"displayTimeUnit", "ns"},
                    {"otherData", {{"question", describe(answer.question)}}},
                    {"traceEvents", std::move(events)}};
  return out.dump() + "\n";
}

// A Gantt chart: a row per send port, a colour per round, and the receiver's number in the bar if
// it fits.
Result<std::string> trace_svg(const Answer& answer) {
  check(answer).throw_if_error();
  const int ports = ports_used(answer.result), rows = answer.params.ranks * ports;
  if (rows > kMostGanttRows) {
    return invalid_argument(fmt::format(
        "--trace: a picture of {} ports is too tall; at most {} are allowed, and .json has all",
        rows, kMostGanttRows));
  }
  constexpr int kLeft = 64, kWide = 960, kRow = 18, kTop = 34, kFont = 12;
  const double end = seconds_of(answer, answer.result.end);
  const double per_second = end > 0 ? (kWide - kLeft - 10) / end : 0;
  std::string body =
      fmt::format("<text x=\"{}\" y=\"20\">{}: {}</text>\n", kLeft,
                  xml_text(answer.question.algorithm->name), xml_text(describe(answer.question)));
  for (Rank r = 0; r < answer.params.ranks; ++r) {
    const int y = kTop + r * ports * kRow;
    body += fmt::format("<text x=\"8\" y=\"{}\">rank {}</text>\n", y + kRow - 5, r);
    body += fmt::format("<path d=\"M8 {0}H{1}\" stroke=\"#ccc\"/>\n", y, kWide - 10);
  }
  for (const TracedMessage& m : answer.result.trace) {
    const double x = kLeft + seconds_of(answer, m.start) * per_second;
    const double width = std::max(0.5, seconds_of(answer, m.end - m.start) * per_second - 1);
    const int y = kTop + (m.from * ports + std::max(0, m.send_port)) * kRow;
    // Colours of neighbouring rounds are far apart.
    body += fmt::format(
        "<rect x=\"{:.2f}\" y=\"{}\" width=\"{:.2f}\" height=\"{}\" fill=\"hsl({} 60% 68%)\">"
        "<title>round {}: {} to {}, {}, {} to {}</title></rect>\n",
        x, y + 1, width, kRow - 2, (m.round * 47 + 205) % 360, m.round, m.from, m.to,
        format_bytes(bytes_of(m.weight, answer.result.weight_per_byte)),
        format_duration(seconds_of(answer, m.start)), format_duration(seconds_of(answer, m.end)));
    constexpr double kFits = 26;
    if (width < kFits) continue;
    body += fmt::format("<text x=\"{:.2f}\" y=\"{}\" text-anchor=\"middle\">&#8594;{}</text>\n",
                        x + width / 2, y + kRow - 5, m.to);
  }
  const int bottom = kTop + rows * kRow;
  constexpr int kTicks = 4;
  for (int tick = 0; tick <= kTicks; ++tick) {
    body += fmt::format("<text x=\"{:.2f}\" y=\"{}\" text-anchor=\"{}\">{}</text>\n",
                        kLeft + end * per_second * tick / kTicks, bottom + 18,
                        tick == kTicks ? "end" : "middle", format_duration(end * tick / kTicks));
  }
  return svg_picture(kWide, bottom + 28, kFont, body);
}

// Prints the ports that each algorithm needs, unless it needs only one. Among several algorithms
// only those are printed that need more ports than the network has.
void print_port_budgets(const std::vector<Answer>& answers, Console& console) {
  for (const Answer& a : answers) {
    const int needed = a.result.ports_needed(), ports = a.question.fabric.ports;
    if (needed <= 1 || (answers.size() > 1 && !rounds_serialise(needed, ports))) continue;
    console.out << fmt::format("{} {}\n", a.question.algorithm->name, port_budget(needed, ports));
  }
}

// A bar proportional to the time relative to the longest; at least one mark for a positive time.
std::string bar(double seconds, double longest) {
  constexpr double kLongest = 20;
  if (!(longest > 0) || !(seconds > 0)) return {};
  return std::string(static_cast<std::size_t>(std::max(1.0, kLongest * seconds / longest)), '#');
}

Table rounds_of(const std::vector<Answer>& answers, bool shared) {
  Table table(as::data("algorithm"), "round", as::model_time("ends at"),
              as::bytes("link").when(shared), As("{:g}")("congestion").when(shared),
              as::number("hops").when(shared));
  for (const Answer& a : answers) {
    for (std::size_t k = 0; k < a.result.round_end.size(); ++k) {
      auto& row = table.add(a.question.algorithm->name, k, a.round_end(k));
      if (!shared) continue;
      const RoundTraffic& round = a.result.traffic[k];
      row.insert(row.end(), {bytes_of_load(round.load, a.result.weight_per_byte),
                             round.congestion(), round.hops});
    }
  }
  return table;
}

// Prints the answers of one question, by at least one algorithm. The fastest comes first; equals
// keep the catalogue's order. As CSV: the table, or with `rounds` each round's end.
void print(std::vector<Answer> answers, bool rounds, bool csv, Console& console) {
  std::stable_sort(answers.begin(), answers.end(),
                   [](const Answer& a, const Answer& b) { return a.seconds() < b.seconds(); });
  const bool contest = answers.size() > 1;
  const bool shared = answers.front().question.fabric.wiring.shares_links();
  Table table(as::text("algorithm", "-"), as::data("algorithm"), as::number("P", "segments", "-"),
              as::model_time("time"), as::text("").when(contest),
              As("{:.2f}")("algbw", "algbw_gbs"), As("{:.2f}")("busbw", "busbw_gbs"),
              As("{:.1f}%")("eta", "", "-"), "rounds", "messages", as::bytes("sent"),
              as::bytes("received"), as::bytes("reduced"), "partners", "ports",
              as::bytes("link", "", "-").when(shared), As("{:g}")("congestion").when(shared),
              as::number("hops").when(shared));
  for (const Answer& a : answers) {
    const Simulation& r = a.result;
    const std::string name(a.question.algorithm->name);
    const std::string_view mark = !contest ? "" : &a == answers.data() ? "* " : "  ";
    const auto size = [&r](const std::vector<std::int64_t>& weights) {
      return bytes_of(greatest(weights), r.weight_per_byte);
    };
    auto& row =
        table.add(std::string(mark) + name, name,
                  a.question.algorithm->takes("segments") ? Cell(a.params.segments) : Cell(),
                  a.seconds(), bar(a.seconds(), answers.back().seconds()), a.algbw() * 1e-9,
                  a.busbw() * 1e-9, a.eta(), r.rounds, r.messages, size(r.sent), size(r.received),
                  size(r.reduced), r.partners_max, r.ports_needed());
    if (!shared) continue;
    row.insert(
        row.end(),
        {r.traffic.empty() ? Cell() : bytes_of_load(busiest_round(r).load, r.weight_per_byte),
         congestion_max(r), hops_max(r)});
  }
  if (csv) {
    console.out << to_csv(rounds ? rounds_of(answers, shared) : table);
    return;
  }
  console.out << describe(answers.front().question);
  if (const std::vector<Ticks>& starts = answers.front().question.options.starts; !starts.empty()) {
    const double late = nearest_double(starts.back(), answers.front().result.ticks_per_second);
    console.out << ", the last rank " << format_duration(late) << " late";
  }
  console.out << "\n";
  if (const Question& question = answers.front().question; question.fidelity == Fidelity::flow) {
    console.out << "fidelity flow: messages share links max-min fairly in continuous time\n";
  } else if (question.fidelity == Fidelity::packet) {
    console.out << fmt::format(
        "fidelity packet: links store and forward packets of {}, first come, first served\n",
        format_bytes(question.fabric.mtu));
  }
  console.out << "\n";
  console.out
      << to_text(table) << (contest ? "\n* the fastest" : "")
      << "\nP: segments; algbw and busbw in GB/s; eta: busbw over the peak; sent, received, "
         "reduced, partners and\nports of the busiest rank.\n"
      << (shared ? "link, congestion and hops: the busiest link's load in a round, in "
                   "bytes and in messages of the\n"
                   "round's largest size, and the links of the longest route; each in "
                   "the worst round.\n"
                 : "");
  print_port_budgets(answers, console);
  if (!rounds) return;
  for (const Answer& a : answers) {
    console.out << "\n" << a.question.algorithm->name << "\n" << to_text(rounds_of({a}, shared));
  }
}

struct SimulateArguments {
  QuestionArguments question;
  Fidelity fidelity = Fidelity::eq1;
  bool ideal_blocks = false, rounds = false, json = false, csv = false;
  std::string batch;  // a file, or "-"
  std::string trace;  // a file
  std::string plot;   // a file
  std::optional<int> ranks_to;
  std::optional<std::size_t> most_steps;
  std::optional<int> mtu;  // bytes
  std::optional<std::size_t> memory;
  Rational late{};
};

Result<int> read_mtu(std::string_view argument, std::string_view text) {
  const auto bytes = parse_size(argument, text);
  if (!bytes.ok()) return bytes.status();
  if (*bytes < 1 || *bytes > Fabric::kMostMtu) {
    return invalid_argument(fmt::format("{} is '{}'; allowed are 1 to {} bytes", argument, text,
                                        format_size(Fabric::kMostMtu)));
  }
  return static_cast<int>(*bytes);
}

// Reads a number of steps, written like a size without bytes.
Result<std::size_t> read_steps(std::string_view argument, std::string_view text) {
  auto steps = parse_size(argument, text);
  if (steps.ok() && *steps > 0) return steps;
  return invalid_argument(fmt::format(
      "{} is '{}'; allowed are numbers of steps from 1 to 8388607T, such as 500M or 64G", argument,
      text));
}

// True if an argument besides --batch and --json differs from its default.
bool conflicts_with_batch(const SimulateArguments& a) {
  const QuestionArguments& q = a.question;
  const bool algorithm =
      q.algorithm.collective || !q.algorithm.algorithms.empty() || !q.algorithm.given.empty();
  const bool question = q.bytes != QuestionArguments().bytes || !q.counts.empty() ||
                        q.network != NetworkArguments{} || q.sync != Sync::dataflow ||
                        a.fidelity != Fidelity::eq1 || a.mtu || a.ideal_blocks || a.late != 0;
  return algorithm || question || a.rounds || a.ranks_to || a.most_steps || a.memory ||
         !a.trace.empty() || !a.plot.empty();
}

// Writes a trace in the format of the file's name.
Status write_trace(const std::string& file, const Answer& answer) {
  const bool svg = file.ends_with(".svg");
  if (!svg && !file.ends_with(".json")) {
    return invalid_argument(
        fmt::format("--trace is '{}'; allowed are files that end in .json or .svg", file));
  }
  const auto text = (svg ? trace_svg(answer) : trace_json(answer)).value();
  return of_option("--trace", replace_file(file, text));
}

Result<Exit> run_scaling(const SimulateArguments& a, Console& console) {
  if (!a.trace.empty() || a.rounds || a.fidelity != Fidelity::eq1 || a.late != 0) {
    return invalid_argument(
        "--ranks-to tells times among many numbers of ranks; --trace, --rounds, --late and "
        "another --fidelity than eq1 are for one");
  }
  if (!a.question.algorithm.written.empty()) {
    return invalid_argument(fmt::format("--ranks-to is {}; {} has one number of ranks", *a.ranks_to,
                                        a.question.algorithm.written.front()->name));
  }
  if (!a.question.counts.empty()) {
    return invalid_argument("--counts fit one number of ranks; leave out --ranks-to");
  }
  const auto scaling =
      scale(a.question, *a.ranks_to, a.most_steps.value_or(kMostScaledSteps), console).value();
  if (!a.plot.empty()) {
    const auto network = network_of(a.question.network);
    const Collective collective = *a.question.algorithm.collective;
    const std::string title =
        fmt::format("{} of {} on {}", name_of(collective),
                    format_bytes(vector_bytes(collective, a.question.bytes)), network->name);
    write_picture("--plot", a.plot, svg_of(scaling, title)).throw_if_error();
  }
  for (const std::string& note : scaling.notes) {
    console.err << "rankine simulate: " << note << "\n";
  }
  const Table table = table_of(scaling);
  console.out << (a.json ? json_of(scaling) : a.csv ? to_csv(table) : to_text(table));
  return Exit::ok;
}

// The last rank begins `late` seconds after the others.
Status begin_last_rank_late(const Rational& late, Question& question) {
  const auto prepared = prepare(question);
  if (!prepared.ok()) return prepared.status();
  const auto pricing =
      pricing_of(question.fabric, prepared->goal, question.bytes, question.options);
  if (!pricing.ok()) return pricing.status();
  question.options.starts.assign(static_cast<std::size_t>(prepared->goal.ranks), 0);
  question.options.starts.back() = (late * Rational(pricing->ticks_per_second(), 1)).floor().top();
  return {};
}

Result<Exit> run_simulate(const SimulateArguments& a, Console& console) {
  if (!a.batch.empty()) {
    if (conflicts_with_batch(a)) {
      return invalid_argument(fmt::format(
          "--batch is '{}'; its requests contain all arguments; leave out all others but --json",
          a.batch));
    }
    std::size_t errors = 0;
    Status status = read_input("--batch", a.batch, [&](std::istream& requests) {
      errors = answer_batch(requests, console.out);
    });
    if (!status.ok()) return status;
    if (errors > 0) {
      console.err << fmt::format("rankine simulate: {} could not be answered; see 'error'\n",
                                 counted(errors, "request"));
    }
    return errors > 0 ? Exit::wrong : Exit::ok;
  }
  if (!a.question.algorithm.collective) {
    return invalid_argument(
        "collective is required, or --batch, as in 'rankine simulate all_reduce --algo ring "
        "--ranks "
        "8'; 'rankine list' shows all");
  }
  if (!a.plot.empty() && !a.ranks_to) {
    return invalid_argument(
        fmt::format("--plot is '{}'; it draws the times of --ranks-to, which is missing", a.plot));
  }
  if (a.most_steps && !a.ranks_to) {
    return invalid_argument(fmt::format(
        "--most-steps is {}; it limits --ranks-to, which is missing", format_size(*a.most_steps)));
  }
  if (a.mtu && a.fidelity != Fidelity::packet) {
    return invalid_argument(fmt::format("--mtu is {}; packets need --fidelity packet",
                                        format_size(static_cast<std::size_t>(*a.mtu))));
  }
  if (a.late != 0 && (a.fidelity != Fidelity::eq1 || a.ideal_blocks)) {
    return invalid_argument(
        fmt::format("--late is {}; late ranks need --fidelity eq1, without --ideal-blocks",
                    format_duration(a.late.to_double())));
  }
  check_output_files({{"--trace", a.trace}, {"--plot", a.plot}}).throw_if_error();
  if (a.ranks_to) return run_scaling(a, console);
  std::vector<std::string> notes;
  auto questions = questions_of(a.question, notes).value();
  if (!a.trace.empty() && questions.size() + notes.size() > 1) {
    return one_algorithm_only(a.question.algorithm);
  }
  std::vector<Answer> answers;
  Progress progress(console);
  std::size_t number = 0;
  for (Question& question : questions) {
    ++number;
    question.options.most_bytes = a.memory.value_or(0);
    question.options.may_take = [&, name = question.algorithm->name](std::uint64_t steps) {
      if (progress.due()) {
        progress.show(fmt::format(
            "{}{}: {:.1f} G steps, each about a nanosecond or a byte",
            questions.size() > 1 ? fmt::format("{} of {}, ", number, questions.size()) : "", name,
            static_cast<double>(steps) / 1e9));
      }
      return Status();
    };
    question.options.ideal_blocks = a.ideal_blocks;
    question.fidelity = a.fidelity;
    if (a.mtu) question.fabric.mtu = *a.mtu;
    question.options.trace = !a.trace.empty();
    const std::string name(question.algorithm->name);
    Status begun = a.late == 0 ? Status() : begin_last_rank_late(a.late, question);
    auto answered = begun.ok() ? answer(std::move(question)) : Result<Answer>(std::move(begun));
    if (answered.ok()) {
      answers.push_back(std::move(*answered));
    } else if (a.question.algorithm.all()) {
      notes.push_back(fmt::format("left out: {}: {}", name, answered.status().text()));
    } else {
      const std::string hint =
          answered.status().text().find("lower the schedule") == std::string::npos
              ? ""
              : "; --lower turns it into messages";
      return Status(answered.status().code(), answered.status().text() + hint);
    }
  }
  progress.clear();
  if (answers.empty()) return invalid_argument(notes.back());
  if (!a.trace.empty()) {
    write_trace(a.trace, answers.front()).throw_if_error();
  }
  for (const std::string& note : notes) console.err << "rankine simulate: " << note << "\n";
  if (a.json) {
    for (const Answer& one : answers) {
      Json line = to_json(one, a.rounds);
      if (a.late != 0) line["late"] = a.late.to_double();
      console.out << line.dump() << "\n";
    }
  } else {
    print(std::move(answers), a.rounds, a.csv, console);
  }
  return Exit::ok;
}

}  // namespace

Subcommand add_simulate(Command tool) {
  auto owned = std::make_shared<SimulateArguments>();
  SimulateArguments& a = *owned;
  const Command app = tool.add_subcommand(
      "simulate", "how long algorithms take on a network of the alpha-beta model, exactly");
  add_algorithm_arguments(app, a.question.algorithm,
                          {.algorithms = "names of the catalogue, or all", .files = true});
  add_model_arguments(app, a.question);
  add_network_arguments(app, a.question.network);
  add_argument(app, "--fidelity", a.fidelity, by_name(parse_fidelity, fidelity_names()), "NAME",
               "if messages share links: eq1, each pays for its busiest link's load of the "
               "round; flow, they share links max-min fairly in continuous time; or packet, "
               "links store and forward packets of --mtu bytes, first come, first served (eq1)");
  add_argument(app, "--mtu", a.mtu, read_mtu, "SIZE",
               "bytes of the largest packet: 1500, 4K (the network's, or 4K)");
  app.add_flag("--ideal-blocks", a.ideal_blocks,
               "blocks of exactly M / B bytes, even if that is not a whole number");
  add_argument(app, "--late", a.late, parse_seconds, "TIME",
               "the last rank begins this much after the others, from whose beginning times count "
               "(0)");
  app.add_flag("--rounds", a.rounds, "also when each round ends");
  add_formats(app, a.json, a.csv, "one line of JSON per algorithm");
  add_text(app, "--trace", a.trace, "FILE",
           "times, ports and links of each message of one algorithm: .json for Perfetto and "
           "other trace viewers, .svg for a Gantt chart");
  add_argument(app, "--ranks-to", a.ranks_to, Whole{2, 1 << 20}, "N",
               "times among more and more ranks, from --ranks to N, doubling; blocks are ideal "
               "ones");
  add_argument(app, "--most-steps", a.most_steps, read_steps, "COUNT",
               "limit of --ranks-to: a curve ends before a time that takes the simulator more "
               "steps, each about a nanosecond or a byte (2G)");
  add_argument(
      app, "--memory", a.memory, parse_size, "SIZE",
      "memory of one simulation; more is refused with the estimate (the available memory)");
  add_picture_file(app, "--plot", a.plot, "times of --ranks-to over ranks");
  add_text(app, "--batch", a.batch, "FILE",
           "answer requests, one JSON object per line; '-': standard input");
  app.footer(
      "Examples:\n"
      "  rankine simulate all_reduce --algo ring --ranks 8 --bytes 64M --alpha 1us "
      "--bandwidth 100GB/s\n"
      "  rankine simulate all_reduce --algo all --ranks 64 --bytes 1M --network scale_out "
      "--segments auto\n"
      "  rankine simulate all_reduce --algo ring,double_tree,halving_doubling --segments auto\n"
      "  rankine simulate broadcast --algo switch --ranks 8 --lower --json\n"
      "  rankine simulate all_reduce --algo double_tree --ranks 8 --trace double_tree.svg\n"
      "  rankine simulate all_reduce --algo ring,halving_doubling --ranks 16 --ranks-to 1000000 "
      "--plot scaling.svg\n"
      "  rankine simulate reduce_scatter --algo circulant,ring --ranks 5 --counts 1K,4K,1K,5K,2K\n"
      "  rankine simulate --batch requests.jsonl\n"
      "Requests have collective, algorithm, ranks and bytes (or counts, the bytes of each block), "
      "and may have " +
      request_network_members() +
      " (as in network files: 'rankine network --help'), network (a preset, a file or an object "
      "like one), sync, fidelity, lower, ideal_blocks, id (anything), " +
      parameter_names(true) + " (a number or \"auto\") and params ({" + parameter_names(false) +
      "}).\n"
      "Each gives one line, in order: its own members, then time (seconds), busbw (bytes per "
      "second), eta (of the peak, if there is one), rounds, messages, sent_max, received_max, "
      "reduced_max (bytes of the busiest rank), sent (bytes per rank), partners_max, "
      "targets_max, sources_max, ports_needed and serialises (they are more than the network's); "
      "if messages share links also link_max (bytes that the busiest link carries in a round), "
      "congestion_max (that load in messages of the round's largest size) and hops_max; or its "
      "members, line and error. The exit code is 1 if a request could not be answered. Numbers "
      "are read by their shortest decimal text, exactly.\n" +
      kBusbwConvention + kPeakConvention + "Networks:\n" + describe_presets());
  return {app, [owned](Console& console) { return run_simulate(*owned, console); }};
}

}  // namespace rankine::tools
