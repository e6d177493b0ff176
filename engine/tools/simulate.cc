#include "engine/tools/simulate.h"

#include <fmt/format.h>

#include <istream>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/files.h"
#include "engine/base/units.h"
#include "engine/tools/answer.h"
#include "engine/tools/answer_batch.h"
#include "engine/tools/goal_text.h"
#include "engine/tools/input_stream.h"
#include "engine/tools/metrics.h"
#include "engine/tools/parameters_json.h"
#include "engine/tools/question_arguments.h"
#include "engine/tools/question_json.h"
#include "engine/tools/scaling.h"
#include "engine/tools/simulate_report.h"
#include "engine/tools/text.h"
#include "engine/tools/trace.h"

namespace rankine::tools {
namespace {

struct SimulateArguments {
  QuestionArguments question;
  Fidelity fidelity = Fidelity::eq1;
  bool ideal_blocks = false, rounds = false, json = false, csv = false;
  std::string batch;  // a file, or "-"
  std::string trace;  // a file
  std::string goal;   // a file
  std::string plot;   // a file
  std::optional<int> ranks_to;
  std::optional<std::size_t> most_steps;
  std::optional<int> mtu;  // bytes
  std::optional<std::size_t> memory;
};

Result<Fidelity> read_fidelity(std::string_view argument, std::string_view text) {
  if (const auto fidelity = parse_fidelity(text)) return *fidelity;
  return unknown_name(argument, text, fidelity_names());
}

Result<std::optional<int>> read_mtu(std::string_view argument, std::string_view text) {
  const auto bytes = parse_size(argument, text);
  if (!bytes.ok()) return bytes.status();
  if (*bytes < 1 || *bytes > Fabric::kMostMtu) {
    return invalid_argument(fmt::format("{} is '{}'; allowed are 1 to {} bytes", argument, text,
                                        format_size(Fabric::kMostMtu)));
  }
  return std::optional(static_cast<int>(*bytes));
}

// Written as sizes are, but no bytes.
Result<std::optional<std::size_t>> read_steps(std::string_view argument, std::string_view text) {
  const auto steps = parse_size(argument, text);
  if (!steps.ok() || *steps == 0) {
    return invalid_argument(fmt::format(
        "{} is '{}'; allowed are numbers of steps from 1 to 8388607T, such as 500M or 64G",
        argument, text));
  }
  return std::optional(*steps);
}

// Whether there is more than --batch and --json, as far as it differs from what is so anyway.
bool is_asked_beside_batch(const SimulateArguments& a) {
  const QuestionArguments& q = a.question;
  const bool algorithm =
      q.algorithm.collective || !q.algorithm.algorithms.empty() || !q.algorithm.given.empty();
  const bool question = q.bytes != QuestionArguments().bytes || !q.counts.empty() ||
                        q.network != NetworkArguments{} || q.sync != Sync::dataflow ||
                        a.fidelity != Fidelity::eq1 || a.mtu || a.ideal_blocks;
  return algorithm || question || a.rounds || a.ranks_to || a.most_steps || a.memory || !a.trace.empty() ||
         !a.goal.empty() || !a.plot.empty();
}

// As the file's name asks.
Status write_trace(const std::string& file, const Answer& answer) {
  const bool svg = file.ends_with(".svg");
  if (!svg && !file.ends_with(".json")) {
    return invalid_argument(
        fmt::format("--trace is '{}'; allowed are files that end in .json or .svg", file));
  }
  const auto text = svg ? trace_svg(answer) : trace_json(answer);
  if (!text.ok()) return text.status();
  return of_option("--trace", replace_file(file, *text));
}

Status write_goal(const std::string& file, const Question& question) {
  if (question.options.ideal_blocks) {
    return invalid_argument("--goal has blocks of whole bytes; --ideal-blocks has others");
  }
  const auto prepared = prepare(question);
  if (!prepared.ok()) return prepared.status();
  const auto text = goal_text(prepared->schedule, prepared->goal, question.bytes, question.options);
  if (!text.ok()) return text.status();
  return of_option("--goal", replace_file(file, *text));
}

Result<Exit> run_scaling(const SimulateArguments& a, Console& console) {
  if (!a.trace.empty() || !a.goal.empty() || a.rounds || a.fidelity != Fidelity::eq1) {
    return invalid_argument(
        "--ranks-to tells times among many numbers of ranks; --trace, --goal, --rounds and "
        "another --fidelity than eq1 are for one");
  }
  if (!a.question.counts.empty()) {
    return invalid_argument("--counts are of one number of ranks; --ranks-to has many");
  }
  const auto scaling =
      scale(a.question, *a.ranks_to, a.most_steps.value_or(kMostScaledSteps), console);
  if (!scaling.ok()) return scaling.status();
  if (!a.plot.empty()) {
    const auto network = network_of(a.question.network);
    const Collective collective = *a.question.algorithm.collective;
    const std::string title =
        fmt::format("{} of {} on {}", name_of(collective),
                    format_bytes(vector_bytes(collective, a.question.bytes)), network->name);
    Status status = write_picture("--plot", a.plot, svg_of(*scaling, title));
    if (!status.ok()) return status;
  }
  for (const std::string& note : scaling->notes) {
    console.err << "rankine simulate: " << note << "\n";
  }
  const Table table = table_of(*scaling);
  console.out << (a.json ? json_of(*scaling) : a.csv ? to_csv(table) : to_text(table));
  return Exit::ok;
}

Result<Exit> run_simulate(const SimulateArguments& a, Console& console) {
  if (!a.batch.empty()) {
    if (is_asked_beside_batch(a)) {
      return invalid_argument(fmt::format(
          "--batch is '{}'; its requests say everything themselves, so it goes with no other "
          "argument but --json",
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
  if (Status s = check_output_file("--goal", a.goal); !s.ok()) return s;
  if (!a.question.algorithm.collective) {
    return invalid_argument("collective is required, or --batch, as in 'rankine simulate all_reduce --algo ring --ranks "
        "8'; 'rankine list' shows all");
  }
  if (!a.plot.empty() && !a.ranks_to) {
    return invalid_argument(
        fmt::format("--plot is '{}', without --ranks-to, whose times it shows", a.plot));
  }
  if (a.most_steps && !a.ranks_to) {
    return invalid_argument(fmt::format(
        "--most-steps is {}, without --ranks-to, whose times it ends", format_size(*a.most_steps)));
  }
  if (a.mtu && a.fidelity != Fidelity::packet) {
    return invalid_argument(
        fmt::format("--mtu is {}; nothing is sent in packets but with --fidelity packet",
                    format_size(static_cast<std::size_t>(*a.mtu))));
  }
  const Status files =
      check_output_files({{"--trace", a.trace}, {"--goal", a.goal}, {"--plot", a.plot}});
  if (!files.ok()) return files;
  if (a.ranks_to) return run_scaling(a, console);
  std::vector<std::string> notes;
  auto questions = questions_of(a.question, notes);
  if (!questions.ok()) return questions.status();
  const bool of_one = !a.trace.empty() || !a.goal.empty();
  if (of_one && questions->size() + notes.size() > 1) {
    return one_algorithm_only(a.question.algorithm);
  }
  std::vector<Answer> answers;
  Progress progress(console);
  std::size_t number = 0;
  for (Question& question : *questions) {
    ++number;
    question.options.most_bytes = a.memory.value_or(0);
    question.options.may_take = [&, name = question.algorithm->name](std::uint64_t steps) {
      if (progress.due()) {
        progress.show(fmt::format("{}{}: {:.1f} G steps, each about a nanosecond or a byte",
                                  questions->size() > 1
                                      ? fmt::format("{} of {}, ", number, questions->size())
                                      : "",
                                  name, static_cast<double>(steps) / 1e9));
      }
      return Status();
    };
    question.options.ideal_blocks = a.ideal_blocks;
    question.fidelity = a.fidelity;
    if (a.mtu) question.fabric.mtu = *a.mtu;
    question.options.trace = !a.trace.empty();
    const std::string name(question.algorithm->name);
    auto answered = answer(std::move(question));
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
    if (Status status = write_trace(a.trace, answers.front()); !status.ok()) return status;
  }
  if (!a.goal.empty()) {
    Status status = write_goal(a.goal, answers.front().question);
    if (!status.ok()) return status;
  }
  for (const std::string& note : notes) console.err << "rankine simulate: " << note << "\n";
  if (a.json) {
    for (const Answer& one : answers) console.out << to_json(one, a.rounds).dump() << "\n";
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
                          {.algorithms = "names of the catalogue, or all"});
  add_model_arguments(app, a.question);
  add_network_arguments(app, a.question.network);
  add_argument(app, "--fidelity", a.fidelity, read_fidelity, "NAME",
               "where messages share links: eq1, each pays for its busiest link's load of the "
               "round; flow, they share links max-min fairly in continuous time; or packet, links "
               "store and forward packets of --mtu bytes, first come, first served (eq1)");
  add_argument(app, "--mtu", a.mtu, read_mtu, "SIZE",
               "of the largest packet: 1500, 4K (the network's, or 4K)");
  app.add_flag("--ideal-blocks", a.ideal_blocks,
               "blocks of exactly M / B bytes, also where that is no whole number");
  app.add_flag("--rounds", a.rounds, "also when each round ends");
  add_formats(app, a.json, a.csv, "one line of JSON per algorithm");
  add_text(app, "--trace", a.trace, "FILE",
           "of one algorithm, when each message held which ports and links: .json for Perfetto and "
           "other trace viewers, .svg a Gantt chart");
  add_text(app, "--goal", a.goal, "FILE",
           "of one algorithm, each rank's sends and receives and what they wait for, as GOAL, the "
           "input of LogGOPSim");
  add_argument(app, "--ranks-to", a.ranks_to, Whole{2, 1 << 20}, "N",
               "times among more and more ranks, from --ranks to N, doubling; blocks are ideal "
               "ones");
  add_argument(app, "--most-steps", a.most_steps, read_steps, "COUNT",
               "of --ranks-to: a curve ends where the next time would take the simulator more "
               "steps, each of about a nanosecond or a byte (2G)");
  add_argument(
      app, "--memory", a.memory,
      [](std::string_view argument, std::string_view text) -> Result<std::optional<std::size_t>> {
        const auto bytes = parse_size(argument, text);
        if (!bytes.ok()) return bytes.status();
        return std::optional(*bytes);
      },
      "SIZE", "that one simulation may take; more is refused with the estimate (what is available)");
  add_picture_file(app, "--plot", a.plot, "of --ranks-to: time over ranks");
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
      "  rankine simulate all_reduce --algo ring --ranks 8 --goal ring.goal\n"
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
      "second), eta (of the peak, where there is one), rounds, messages, sent_max, "
      "received_max, reduced_max (bytes of the busiest rank), sent (bytes per rank), "
      "partners_max, targets_max, sources_max, ports_needed and serialises (they are more "
      "than the network's); where messages share links also link_max (bytes that the "
      "busiest one carries in a round), congestion_max (the same in messages of the round's "
      "largest size) and hops_max; or its members, line and error. The exit code is 1 where a "
      "request could not be answered. Numbers are read by their shortest decimal text, "
      "exactly.\n" +
      kBusbwConvention + kPeakConvention + "Networks:\n" + describe_presets());
  return {app, [owned](Console& console) { return run_simulate(*owned, console); }};
}

}  // namespace rankine::tools
