#include "engine/tools/perf.h"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <ostream>

#include "engine/base/files.h"
#include "engine/base/units.h"
#include "engine/tools/interrupt.h"
#include "engine/tools/machine.h"
#include "engine/tools/perf_arguments.h"
#include "engine/tools/perf_curves.h"
#include "engine/tools/perf_report.h"
#include "engine/tools/process_copies.h"
#include "engine/tools/text.h"

namespace rankine::tools {
namespace {

// What -f and -g come to.
Status take_nccl_tests_flags(PerfOptions& options) {
  if (options.given_factor > 1 && options.step_bytes) {
    return invalid_argument(
        "--stepfactor and --stepbytes exclude each other, but for a factor of 1");
  }
  options.step_factor = options.given_factor.value_or(options.step_factor);
  if (options.given_factor == 1 && !options.step_bytes) options.step_bytes = std::size_t{1} << 20;
  if (options.ranks_per_thread == 1) return {};
  const std::string threads_text = options.algorithm.take("ranks").value_or("1");
  const auto threads = parse_whole("--ranks", threads_text, 1, Communicator::kMaxRanks);
  if (!threads.ok()) return threads.status();
  const std::int64_t all = std::int64_t{*threads} * options.ranks_per_thread;
  if (all > Communicator::kMaxRanks) {
    return invalid_argument(fmt::format("--ngpus is {}, with {}; together they are at most {} ranks",
                                        options.ranks_per_thread,
                                        counted(*threads, "thread"),
                                        static_cast<int>(Communicator::kMaxRanks)));
  }
  const std::string text = std::to_string(all);
  options.algorithm.given.push_back(
      {find_parameter("ranks"), text, "--ranks", fmt::format("'{}'", text)});
  return {};
}

// What can be known to fail before minutes of measuring.
Status check_files(const PerfOptions& options, const PerfCases& cases) {
  if (options.csv && options.json_file == "-") {
    return invalid_argument("--json is '-' and --csv is there; standard output has one of them");
  }
  const std::string needed = options.plot_file.empty() ? "" : why_no_plot(options, cases);
  if (!needed.empty()) {
    return invalid_argument(fmt::format("--plot is '{}'; {}", options.plot_file, needed));
  }
  const std::string json = options.json_file == "-" ? "" : options.json_file;
  return check_output_files({{"--json", json}, {"--plot", options.plot_file}});
}

// What --stats would be left with.
Status check_statistics(const PerfOptions& options) {
  if (options.skip_batches == 0) return {};
  if (!options.stats) {
    return invalid_argument(fmt::format(
        "--per_iter_skip is {}; it leaves batches out of --stats (-I 1), which is not asked for",
        options.skip_batches));
  }
  const bool given = options.measure.batches > 0;
  const int fewest = given ? options.measure.batches : MeasureOptions::kFewestBatches;
  if (options.skip_batches < fewest) return {};
  return invalid_argument(fmt::format("--per_iter_skip is {}; allowed are 0 to {}{}",
                                      options.skip_batches, fewest - 1,
                                      given ? ", below --iters" : "; more with --iters"));
}

// What does not go with a budget of ports.
Status check_ports(const PerfOptions& options) {
  if (options.ports == 0) return {};
  if (!options.networks.empty()) {
    return invalid_argument(fmt::format(
        "--ports is {}, and networks have their own ports; leave out --network", options.ports));
  }
  const Transport transport = options.transport.value_or(Transport::mailbox);
  if (transport == Transport::mailbox) return {};
  return invalid_argument(
      fmt::format("--ports is {}, --transport is {}; only the mailbox transport has ports",
                  options.ports, name_of(transport)));
}

// What ranks that are processes have not.
Status check_processes(const PerfOptions& options) {
  if (!options.processes && options.shared_payloads) {
    return invalid_argument("--shared-payloads is of processes; add --processes");
  }
  if (!options.processes) return {};
  if (!options.networks.empty()) {
    return invalid_argument("--network is measured among threads; leave out --processes");
  }
  if (options.probe) {
    return invalid_argument("--probe is between threads; leave out --processes");
  }
  return {};
}

// "12 of 60: 4 KiB, 20 s left"; nothing of an end where there is none.
std::string progress_text(std::size_t done, std::size_t rows, std::size_t bytes, double seconds) {
  if (rows == 0) return fmt::format("row {}: {}", done + 1, format_size(bytes));
  return fmt::format("{} of {}: {}{}", done + 1, rows, format_size(bytes),
                     time_left(done, rows, seconds));
}

}  // namespace

Result<Exit> perf(const PerfOptions& asked, Console& console) {
  const MachineReport machine = read_machine();
  PerfOptions options = asked;
  if (!options.networks.empty()) options.measure.seconds = PerfOptions::kSecondsOnNetwork;
  options.measure.seconds = options.seconds.value_or(options.measure.seconds);
  if (Status status = take_nccl_tests_flags(options); !status.ok()) return status;
  if (!options.without_effect.empty()) {
    console.err << fmt::format("rankine perf: without effect here: {}\n",
                               fmt::join(options.without_effect, ", "));
  }
  const auto all = all_cases_of(options, machine.budget.cores);
  if (!all.ok()) return all.status();
  Status files = check_files(options, all->front());
  if (!files.ok()) return files;
  if (Status status = check_statistics(options); !status.ok()) return status;
  if (Status status = check_processes(options); !status.ok()) return status;
  if (Status status = check_ports(options); !status.ok()) return status;
  options.measure.each_rank = options.stats;
  const bool json_to_out = options.json_file == "-";
  const bool json_to_file = !options.json_file.empty() && !json_to_out;
  const InterruptGuard guard;
  std::optional<ProcessCopies> copies;
  if (options.processes) {
    auto made = ProcessCopies::make(all->front().ranks);
    if (!made.ok()) return made.status();
    copies.emplace(std::move(*made));
  }

  std::size_t rows = 0;
  for (const PerfCases& cases : *all) rows += cases.rows.size();
  rows *= static_cast<std::size_t>(options.cycles);  // 0: nobody knows
  const auto unfinished = [&](std::size_t done) { return rows == 0 || done < rows; };
  PerfRun run{.options = options,
              .machine = machine,
              .ranks = all->front().ranks,
              .started = utc_now(),
              .arguments = console.arguments};

  PerfTable table(console.out, options);
  const bool show_table = !options.csv && !json_to_out;
  Status failure;
  const double begun = seconds_now();
  for (int cycle = 0; options.cycles == 0 || cycle < options.cycles; ++cycle) {
    for (const PerfCases& cases : *all) {
      if (!failure.ok() || interruption() != 0) break;
      Workbench::Options bench = cases.bench;
      if (copies) bench.process = {copies->rank(), copies->name(cycle)};
      bench.shared_payloads = options.shared_payloads;
      auto workbench = Workbench::create(bench);
      if (!workbench.ok()) return workbench.status();
      if (cycle == 0 && &cases == all->data()) {
        run.describe(**workbench);
        if (show_table) table.begin(run);
        if (options.csv) console.out << to_csv(perf_table(run, {})) << std::flush;
      }
      if (show_table && cases.on != nullptr) table.network(cases);
      if (show_table && cycle == 0) {
        for (const std::string& note : cases.notes) table.note(note);
      }
      Progress progress(console);
      for (const PerfCase& one : cases.rows) {
        if (interruption() != 0) break;
        progress.show(progress_text(run.rows.size(), rows, one.bytes, seconds_now() - begun));
        auto row = measure_row(**workbench, one, cases, options);
        progress.clear();
        if (!row.ok()) {
          const bool stopped = row.status().code() == Code::aborted && interruption() != 0;
          if (!stopped) failure = row.status();
          break;
        }
        run.totals.add(*row);
        if (show_table) table.row(*row);
        if (options.csv) {
          console.out << to_csv(perf_table(run, {&*row, 1}), false) << std::flush;
        }
        run.rows.push_back(std::move(*row));
      }
    }
    if (!failure.ok() || interruption() != 0) break;
  }
  if (copies && copies->rank() > 0) return Exit::ok;  // the first one tells
  // One that comes after the last row has nothing left to interrupt.
  const bool interrupted = failure.ok() && unfinished(run.rows.size());
  if (interrupted) {
    run.error = rows == 0 ? "interrupted after " + counted(run.rows.size(), "row")
                          : fmt::format("interrupted after {} of {}", run.rows.size(),
                                        counted(rows, "row"));
  } else {
    run.error = failure.text();
  }
  const bool crossing = !options.networks.empty() && options.cycles == 1 && run.error.empty() &&
                        why_no_curves(all->front()).empty();
  if (crossing) run.curves = curves_of(*all, run.rows);
  if (show_table && interrupted) table.note(run.error);
  if (show_table && failure.ok()) table.end(run);
  // A file that is there is not given up for one without a row.
  if (json_to_out || (json_to_file && (run.error.empty() || !run.rows.empty()))) {
    const std::string text =
        perf_json(run).dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
    if (json_to_out) {
      console.out << text;
    } else {
      Status status = of_option("--json", replace_file(options.json_file, text));
      if (!status.ok()) return status;
    }
  }
  if (!options.plot_file.empty() && run.error.empty()) {
    const std::string what =
        fmt::format("{} among {}", name_of(options.collective()), counted(run.ranks, "rank"));
    const std::string svg = options.networks.empty() ? machine_svg(what, all->front(), run.rows)
                                                     : crossovers_svg(what, run.curves);
    Status status = write_picture("--plot", options.plot_file, svg);
    if (!status.ok()) return status;
  }
  if (!failure.ok()) return failure;
  if (interrupted) {
    console.err << "rankine perf: " << run.error << "\n";
    return exit_of_interruption();
  }
  if (run.totals.wrong > 0) {
    console.err << fmt::format("rankine perf: {} wrong\n", counted(run.totals.wrong, "element"));
    return Exit::wrong;
  }
  if (!run.above_floor()) {
    console.err << fmt::format(
        "rankine perf: the average busbw is {:.3g} GB/s; --min-busbw asks for {:g}\n",
        run.totals.average_busbw(), options.min_busbw);
    return Exit::wrong;
  }
  return Exit::ok;
}

Subcommand add_perf(Command tool) {
  auto options = std::make_shared<PerfOptions>();
  const Command app = tool.add_subcommand(
      "perf", "measure a collective on pinned threads and check its results, as nccl-tests");
  add_perf_arguments(app, *options);
  return {app, [options](Console& console) { return perf(*options, console); }};
}

}  // namespace rankine::tools
