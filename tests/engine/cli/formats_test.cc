// Tests of the formats of schedules: what is written is read back with the same messages, and files
// with an error are refused with its line.

#include <fmt/format.h>

#include "algorithms/catalogue.h"
#include "algorithms/ring.h"
#include "algorithms/schedule/combine.h"
#include "engine/base/files.h"
#include "engine/cli/formats/formats.h"
#include "engine/network/fabric.h"
#include "engine/network/simulate.h"
#include "engine/read/draw.h"
#include "engine/read/verify.h"
#include "tests/engine/cli/tool_fixtures.h"
#include "tests/testing.h"

namespace rankine::tools {
namespace {

constexpr std::uint64_t kBytes = 999'999;

const ScheduleFormat& format(std::string_view name) {
  const auto formats = schedule_formats();
  return *std::find_if(formats.begin(), formats.end(),
                       [name](const ScheduleFormat& each) { return each.name == name; });
}

// By round: the sender, receiver, block and contributions of each block that a message has.
using Message = std::tuple<int, Rank, Rank, Block, std::vector<Rank>>;
std::multiset<Message> messages_of(const Schedule& schedule, const CollectiveSpec& goal) {
  std::multiset<Message> out;
  const std::vector<RoundView> views = view_rounds(schedule, goal);
  for (std::size_t k = 1; k < views.size(); ++k) {
    for (const TransferView& t : views[k].transfers) {
      if (t.from == t.to) continue;  // local work
      const Rank from = t.from.front();
      for (const Block b : t.what) {
        std::vector<Rank> sum;
        for (const HoldingView& held : views[k - 1].ranks[static_cast<std::size_t>(from)]) {
          if (held.block == b && held.plane == t.what_plane) sum = held.contributions;
        }
        out.emplace(views[k].round, from, t.to.front(), b, sum);
      }
    }
  }
  return out;
}

TEST(Formats, HaveTheSameMessagesReadBackForTheCatalogue) {
  std::map<std::string_view, int> read_back;
  for (const Algorithm& entry : catalogue()) {
    for (const int ranks : {1, 2, 5, 8}) {
      const Params params =
          entry.only_taken(resolved({.ranks = ranks, .root = ranks - 1, .segments = 3}));
      if (entry.refusal(params)) continue;
      const Schedule schedule = lower(entry.make(params), {});
      const CollectiveSpec goal = goal_of(entry, params, schedule);
      for (const ScheduleFormat& each : schedule_formats()) {
        const std::string name =
            fmt::format("{} {} N={} {}", name_of(entry.collective), entry.name, ranks, each.name);
        const auto text = each.write(schedule, goal, kBytes);
        if (!text.ok()) {
          EXPECT_TRUE(has(text.status().text(), "has no") ||
                      has(text.status().text(), "overwrites in the round"))
              << name << ": " << text.status().text();
          continue;
        }
        const auto read = read_schedule(*text);
        ASSERT_TRUE(read.ok()) << name << ": " << read.status().text();
        const Schedule again = read->schedule();
        EXPECT_EQ(messages_of(again, goal), messages_of(schedule, goal)) << name;
        if (each.name == "text" || each.name == "json") {
          EXPECT_EQ(schedule_text(again, read->goal), schedule_text(schedule, goal)) << name;
        }
        CollectiveSpec proved = read->goal;
        EXPECT_EQ(proved.collective, goal.collective) << name;
        proved.same_bits = goal.same_bits;  // MSCCL and MSCCL++ do not say it
        const auto violation = verify(again, proved);
        EXPECT_FALSE(violation) << name << ": " << violation->text;
        ++read_back[each.name];
      }
    }
  }
  EXPECT_GT(read_back["text"], 250);
  EXPECT_EQ(read_back["json"], read_back["text"]);
  EXPECT_EQ(read_back["goal"], read_back["text"]);
  EXPECT_GT(read_back["msccl"], 100);
  EXPECT_EQ(read_back["mscclpp"], read_back["msccl"]);
}

// Among ports without limit GOAL's dependencies give the simulator's critical path, and its sends
// the simulator's bytes.
TEST(Formats, GoalTakesAsLongAsTheCriticalPath) {
  const Fabric& fabric = plain_regime().fabric;
  const SimulateOptions options{.unlimited_ports = true, .lower = true};
  for (const char* name : {"ring", "halving_doubling", "trivance", "double_tree"}) {
    const Algorithm& entry = *find_algorithm(Collective::all_reduce, name);
    const Params params = entry.only_taken(resolved({.ranks = 6, .segments = 3}));
    ASSERT_FALSE(entry.refusal(params)) << *entry.refusal(params);
    const Schedule schedule = entry.make(params);
    const CollectiveSpec goal = goal_of(entry, params, schedule);
    const std::string text = goal_text(schedule, goal, kBytes).value();
    const auto first = simulate(schedule, goal, fabric, kBytes, options).value();
    const auto again =
        simulate(read_goal(text).value().schedule(), goal, fabric, kBytes, options).value();
    EXPECT_EQ(Rational(first.end, first.ticks_per_second),
              Rational(again.end, again.ticks_per_second))
        << name;
    std::int64_t bytes = 0, all = 0;
    for (const std::string& line : lines_of(text)) {
      const std::size_t at = line.find("send ");
      if (at != line.npos) bytes += std::stoll(line.substr(at + 5));
    }
    for (const std::int64_t sent : first.sent) all += sent;
    EXPECT_EQ(bytes * first.weight_per_byte, all) << name;
  }
  const CollectiveSpec goal{Collective::all_gather, 4, 4};
  EXPECT_TRUE(goal_text(ring_all_gather(4), goal, 4, {}, 24).ok());
  EXPECT_TRUE(has(goal_text(ring_all_gather(4), goal, 4, {}, 23).status().text(), "23"));
}

std::string written(std::string_view name) {
  const Algorithm& ring = *find_algorithm(Collective::all_reduce, "ring");
  const Params params = resolved({.ranks = 3});
  const Schedule schedule = ring.make(params);
  return format(name).write(schedule, goal_of(ring, params, schedule), kBytes).value();
}

// "": proved; "line N: ..." of a refusal; else the violation's name.
std::string verdict(const std::string& text) {
  const auto read = read_schedule(text);
  if (!read.ok()) return read.status().text();
  const auto violation = verify(read->schedule(), read->goal);
  return violation ? std::string(name_of(violation->kind)) : "";
}

// Each line is left out once: no such file is proved, unless the line says nothing of the data.
TEST(Formats, AreRefusedOrWrongWithoutALine) {
  for (const char* name : {"msccl", "mscclpp", "goal", "text", "json"}) {
    const std::string text = written(name);
    ASSERT_EQ(verdict(text), "") << name;
    const std::vector<std::string> lines = lines_of(text);
    int noticed = 0, unnoticed = 0;
    for (std::size_t left_out = 0; left_out < lines.size(); ++left_out) {
      std::string other;
      for (std::size_t i = 0; i < lines.size(); ++i) {
        if (i != left_out) other += lines[i] + "\n";
      }
      const std::string found = verdict(other);
      ++(found.empty() ? unnoticed : noticed);
      const bool may_miss =
          lines[left_out].empty() ||
          std::ranges::any_of(std::array{"nop", "round ", "// all_reduce", "reuse_", "_alignment"},
                              [&](const char* word) { return has(lines[left_out], word); });
      EXPECT_TRUE(!found.empty() || may_miss) << name << " without " << lines[left_out];
    }
    EXPECT_GT(noticed, unnoticed) << name;
  }
}

struct Mutation {
  const char *format, *from, *to, *error;
};
TEST(Formats, NameTheLineOfAnError) {
  for (const Mutation& m : std::vector<Mutation>{
           {"msccl", "srcoff=\"1\"", "srcoff=\"9\"", ": srcoff is 9"},
           {"msccl", "recv=\"2\"", "recv=\"1\"", "line"},
           {"msccl", "type=\"rrc\"", "type=\"rcc\"", ": type is 'rcc'; allowed are"},
           {"msccl", "coll=\"allreduce\"", "coll=\"allreduse\"", "line 1: coll is 'allreduse'"},
           {"msccl", "depid=\"1\"", "depid=\"-1\"", "nothing says that the step of line"},
           {"msccl", "</gpu>", "", "line"},
           {"mscclpp", "\"index\": 1", "\"index\": 7", ": index is 7"},
           {"mscclpp", "\"wait\"", "\"nop\"", "is read before anything is there"},
           {"mscclpp", "\"put\"", "\"glres\"", ": 'glres' cannot be read"},
           {"goal", "requires l2", "requires l1", "nothing says that the step of line"},
           {"goal", "requires l2", "requires l77", "has no label 'l77'"},
           {"goal", "to 1 tag", "to 2 tag", "line"},
           {"goal", "333333b to", "333334b to", "bytes are received"},
           {"text", "0 -> 1", "0 -> 3",
            ": a receiver is '3'; allowed are whole numbers from 0 to 2"}}) {
    std::string text = written(m.format);
    const std::size_t at = text.find(m.from);
    ASSERT_NE(at, text.npos) << m.format << " " << m.from << "\n" << text;
    text.replace(at, std::string_view(m.from).size(), m.to);
    const std::string found = verdict(text);
    EXPECT_TRUE(has(found, m.error) && has(found, "line ")) << m.to << ": " << found;
  }
}

TEST(Formats, FindStepsThatWaitForEachOther) {
  const char* step = "<step s=\"{}\" type=\"nop\" depid=\"{}\" deps=\"0\"/>";
  const std::string text = fmt::format(
      "<algo coll=\"allreduce\" ngpus=\"1\" nchunksperloop=\"1\" inplace=\"1\">\n"
      "<gpu id=\"0\" s_chunks=\"0\">\n<tb id=\"0\" send=\"-1\" recv=\"-1\" chan=\"0\">\n{}\n</tb>\n"
      "<tb id=\"1\" send=\"-1\" recv=\"-1\" chan=\"0\">\n{}\n</tb></gpu></algo>\n",
      fmt::format(fmt::runtime(step), 0, 1), fmt::format(fmt::runtime(step), 0, 0));
  EXPECT_TRUE(has(verdict(text), "waits for itself")) << verdict(text);
}

// GOAL without remarks, as Schedgen writes it.
TEST(Formats, GoalOfOneBlockIsProved) {
  const std::string text =
      "num_ranks 3\nrank 0 {\nl1: send 8b to 1 tag 0\nl2: send 8b to 2 tag 0\n}\n"
      "rank 1 {\nl1: recv 8b from 0 tag 0\n}\nrank 2 {\nl1: recv 8b from 0 tag 0 cpu 0\n}\n";
  EXPECT_EQ(read_schedule(text)->goal.collective, Collective::broadcast);
  EXPECT_EQ(verdict(text), "");
}

TEST(Formats, SayWhatTheyCannotExpress) {
  const auto refusal = [](Collective collective, const char* algorithm, const char* name) {
    const Algorithm& entry = *find_algorithm(collective, algorithm);
    const Params params = resolved({.ranks = 4});
    const Schedule schedule = entry.make(params);
    return format(name).write(schedule, goal_of(entry, params, schedule), 64).status().text();
  };
  EXPECT_TRUE(has(refusal(Collective::scan, "chain", "msccl"), "the format has no scan"));
  EXPECT_TRUE(has(refusal(Collective::broadcast, "switch", "mscclpp"), "--lower"));
}

TEST(Formats, ServeShowSimulateRunAndCheck) {
  const std::string file = testing::TempDir() + "/ring.xml";
  const std::string xml = output_of("show all_reduce --algo ring --ranks 4 --format msccl");
  ASSERT_TRUE(replace_file(file, xml).ok());
  const auto sorted_lines = [](const std::string& command) {
    std::vector<std::string> lines = lines_of(output_of(command));
    std::ranges::sort(lines);  // the messages of a round have no order
    return lines;
  };
  EXPECT_EQ(sorted_lines("show " + file + " --format text"),
            sorted_lines("show all_reduce --algo ring --ranks 4 --format text"));
  EXPECT_TRUE(has(output_of("show " + file), "rank"));
  EXPECT_TRUE(has(output_of("show " + file + " --plan --rank 1"), "all_reduce by " + file));
  EXPECT_TRUE(has(output_of("check " + file), "proved"));
  const auto simulated = json_of("simulate " + file + " --bytes 64K --json");
  EXPECT_EQ(simulated["time"],
            json_of("simulate all_reduce --algo ring --ranks 4 --bytes 64K --json")["time"]);
  const auto run = json_of("run " + file + " --bytes 64K --json");
  EXPECT_EQ(run["equal"], true);
  EXPECT_EQ(run["wrong"], 0);
  std::string other = xml;
  other.replace(other.find("type=\"rrc\""), 10, "type=\"r\"");
  ASSERT_TRUE(replace_file(file, other).ok());
  const Captured refused = run_line("run " + file);
  EXPECT_EQ(refused.exit, 2);
  EXPECT_TRUE(has(refused.err, file) && has(refused.err, "is wrong")) << refused.err;
  EXPECT_TRUE(has(run_line("simulate " + file + " --ranks 4").err, "--ranks is given"));
  EXPECT_TRUE(has(run_line("show " + file + " --text").err, "--format text replaces it"));
  EXPECT_TRUE(
      has(run_line("simulate " + file + " --goal FILE").err, "'rankine show --format goal"));
}

}  // namespace
}  // namespace rankine::tools
