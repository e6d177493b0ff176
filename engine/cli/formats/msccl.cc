// MSCCL XML.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "engine/cli/formats/buffers.h"

namespace rankine::tools {
namespace {

// Reads an element as an object: its attributes are texts; `tag`, `line`, and the list `inside`.
class XmlReader {
 public:
  explicit XmlReader(std::string_view text) : text_(text) { skip_blanks(); }

  Json element(int depth = 0) {
    Json out = {{"line", line_}};
    constexpr int kMostDepth = 8;
    if (depth > kMostDepth || !take("<")) wrong(out, "here must be an element <name ...>");
    const std::string name(word_here());
    out["tag"] = name;
    while (!take(">")) {
      if (take("/>")) return out;
      const std::string attribute(word_here());
      const bool equals = take("=");
      const char mark = at_ < text_.size() ? text_[at_] : ' ';
      const std::size_t end = mark == '"' || mark == '\'' ? text_.find(mark, at_ + 1) : text_.npos;
      if (attribute.empty() || !equals || end == text_.npos || out.contains(attribute)) {
        wrong({{"line", line_}},
              fmt::format("<{}> must have attributes such as s=\"0\", each once, and '>'",
                          legible(name)));
      }
      out[attribute] = text_.substr(at_ + 1, end - at_ - 1);
      skip_to(end + 1);
      skip_blanks();
    }
    Json& inside = out["inside"] = Json::array();
    while (!take("</")) inside.push_back(element(depth + 1));
    if (word_here() != name || !take(">")) {
      wrong({{"line", line_}}, fmt::format("here must be </{}>", legible(name)));
    }
    return out;
  }

 private:
  void skip_to(std::size_t end) {
    for (; at_ < std::min(end, text_.size()); ++at_) line_ += text_[at_] == '\n' ? 1 : 0;
  }
  // Remarks, too.
  void skip_blanks() {
    for (;;) {
      skip_to(text_.find_first_not_of(" \t\r\n", at_));
      const std::string_view rest = text_.substr(at_);
      const std::string_view end = rest.starts_with("<!--") ? "-->" : "?>";
      if (end == "?>" && !rest.starts_with("<?")) return;
      const std::size_t found = text_.find(end, at_);
      skip_to(found == text_.npos ? found : found + end.size());
    }
  }
  std::string_view word_here() {
    const std::size_t begin = at_;
    at_ = std::min(text_.find_first_of(" \t\r\n=/<>\"'", at_), text_.size());
    const std::string_view word = text_.substr(begin, at_ - begin);
    skip_blanks();
    return word;
  }
  bool take(std::string_view sign) {
    if (!text_.substr(at_).starts_with(sign)) return false;
    at_ += sign.size();
    skip_blanks();
    return true;
  }

  const std::string_view text_;
  std::size_t at_ = 0;
  int line_ = 1;
};

struct MscclStep {
  std::string_view type;
  bool receives, adds, sends, stores, reads;
};
constexpr std::array<MscclStep, 9> kMscclSteps = {{
    //        receives adds  sends  stores reads
    {"s", false, false, true, false, true},
    {"r", true, false, false, true, false},
    {"rcs", true, false, true, true, false},
    {"rrc", true, true, false, true, true},
    {"rrs", true, true, true, false, true},
    {"rrcs", true, true, true, true, true},
    {"cpy", false, false, false, true, true},
    {"re", false, true, false, true, true},
    {"nop", false, false, false, false, false},
}};

constexpr int kMost = kMostWrittenBlocks;
constexpr std::string_view kMscclReduceScatter = "reduce_scatter";

class MscclReader {
 public:
  static BufferProgram read(const Json& algo) {
    const Collective collective = read_library_name(algo, "coll", kMscclReduceScatter);
    const int ranks = number(algo, "ngpus", 1, kMostWrittenRanks);
    MscclReader reader(begin_program(algo, collective, ranks,
                                     number(algo, "nchunksperloop", 1, kMost),
                                     number(algo, "inplace", 0, 1) == 1));
    for (const Json& gpu : inside(algo, "gpu")) reader.read_gpu(gpu);
    if (static_cast<int>(reader.gpus_.size()) < ranks) {
      wrong(algo, fmt::format("ngpus is {}, and {} gpus are here", ranks, reader.gpus_.size()));
    }
    reader.connect();
    return std::move(reader.program_);
  }

 private:
  using Ends = std::vector<const Json*>;  // steps, in their order

  explicit MscclReader(BufferProgram program) : program_(std::move(program)) {}

  static const Json& inside(const Json& element, std::string_view tag) {
    for (const Json& each : list(element, "inside")) {
      if (each["tag"] == tag) continue;
      wrong(each, fmt::format("<{}> is here; allowed is <{}>", legible(word(each, "tag")), tag));
    }
    return list(element, "inside");
  }

  void read_gpu(const Json& gpu) {
    const int last = program_.goal.ranks - 1, rank = number(gpu, "id", 0, last);
    if (!gpus_.insert(rank).second) wrong(gpu, fmt::format("gpu {} is here twice", rank));
    at(program_.layout.scratch, rank) = number(gpu, "s_chunks", 0, kMost);
    std::map<int, std::vector<int>> steps;                 // by tb
    std::vector<std::tuple<const Json*, int, int>> waits;  // step, tb, number of its step
    for (const Json& tb : inside(gpu, "tb")) {
      const int send = number(tb, "send", -1, last), receive = number(tb, "recv", -1, last),
                channel = number(tb, "chan", -1, kMost);
      if (send == rank || receive == rank) wrong(tb, fmt::format("rank {} is its own peer", rank));
      const bool is_new = (send < 0 || sends_.try_emplace({rank, send, channel}).second) &&
                          (receive < 0 || receives_.try_emplace({receive, rank, channel}).second);
      const auto [own, is_first] = steps.try_emplace(number(tb, "id", 0, kMost));
      if (!is_new || !is_first) wrong(tb, "another tb of the gpu has this id, or peer and channel");
      program_.threads.push_back({rank, send, receive});
      for (const Json& step : inside(tb, "step")) {
        const int next = static_cast<int>(own->second.size());
        number(step, "s", next, next);
        own->second.push_back(static_cast<int>(program_.steps.size()));
        indices_[&step] = own->second.back();
        read_step(step, channel);
        const int other = number(step, "depid", -1, kMost), dep = number(step, "deps", -1, kMost);
        if (other >= 0 && dep >= 0) waits.emplace_back(&step, other, dep);
      }
    }
    for (const auto& [step, tb, dep] : waits) {
      const auto found = steps.find(tb);
      if (found == steps.end() || dep >= static_cast<int>(found->second.size())) {
        wrong(*step,
              fmt::format("it waits for step {} of tb {}, which gpu {} has not", dep, tb, rank));
      }
      at(program_.steps, indices_.at(step)).after.push_back(at(found->second, dep));
    }
  }

  void read_step(const Json& tag, int channel) {
    const BufferThread& thread = program_.threads.back();
    const std::string name = word(tag, "type");
    const auto type = std::find_if(kMscclSteps.begin(), kMscclSteps.end(),
                                   [&](const MscclStep& each) { return each.type == name; });
    if (type == kMscclSteps.end()) {
      wrong(tag, fmt::format("type is '{}'; allowed are s, r, rcs, rrc, rrs, rrcs, cpy, re and nop",
                             legible(name)));
    }
    BufferStep step{.line = tag["line"], .thread = static_cast<int>(program_.threads.size()) - 1};
    step.round = number_or(-1, tag, "round", 0, kMost);
    step.count = type->reads || type->stores ? number(tag, "cnt", 1, kMost) : 0;
    const auto place = [&](const char* name_of_buffer, const char* name_of_chunk) {
      BufferPlace out{thread.rank, buffer(tag, name_of_buffer), 0};
      const int all = program_.layout.chunks(thread.rank, out.buffer);
      out.chunk = number(tag, name_of_chunk, 0, kMost);
      if (out.chunk > all - step.count) {
        wrong(tag, fmt::format("{} is {}, and cnt is {}; that buffer of rank {} has {} chunks",
                               name_of_chunk, out.chunk, step.count, thread.rank, all));
      }
      return out;
    };
    if (type->stores) step.to = {place("dstbuf", "dstoff")};
    if (type->type == "re") step.from = step.to;  // adds to its destination
    if (type->reads) step.from.push_back(place("srcbuf", "srcoff"));
    if ((type->sends && thread.to < 0) || (type->receives && thread.from < 0)) {
      wrong(tag, fmt::format("type is {}, and the tb has no peer for it", name));
    }
    if (type->sends) sends_[{thread.rank, thread.to, channel}].push_back(&tag);
    if (type->receives) receives_[{thread.from, thread.rank, channel}].push_back(&tag);
    program_.steps.push_back(std::move(step));
  }

  // The n-th send of a connection meets the n-th receive.
  void connect() {
    for (const auto& [key, received] : receives_) sends_.try_emplace(key);
    for (const auto& [key, sent] : sends_) {
      const Ends& received = receives_[key];
      const auto& [from, to, channel] = key;
      const std::size_t both = std::min(sent.size(), received.size());
      if (sent.size() != received.size()) {
        wrong(sent.size() > both ? *sent[both] : *received[both],
              fmt::format("rank {} sends {} messages to rank {} on channel {}, which receives {}",
                          from, sent.size(), to, channel, received.size()));
      }
      for (std::size_t n = 0; n < both; ++n) {
        at(program_.steps, indices_.at(received[n])).mate = indices_.at(sent[n]);
      }
    }
  }

  BufferProgram program_;
  std::set<int> gpus_;
  std::map<const Json*, int> indices_;                            // of steps
  std::map<std::tuple<Rank, Rank, int>, Ends> sends_, receives_;  // by sender, receiver, channel
};

}  // namespace

Result<WrittenSchedule> read_msccl(std::string_view text) {
  return read_objects([text] { return MscclReader::read(XmlReader(text).element()); });
}

Result<std::string> msccl_text(const Schedule& schedule, const CollectiveSpec& goal) {
  const auto name = library_name(goal.collective, kMscclReduceScatter);
  if (!name.ok()) return name.status();
  const auto made = program_of(schedule, goal);
  if (!made.ok()) return made.status();
  const BufferProgram& program = *made;
  // A step waits for the steps of other threads of its rank: one by its own attributes, the others
  // by nops before it.
  struct Written {
    int number = 0;
    std::vector<int> waits{};
  };
  std::vector<Written> written(program.steps.size());
  std::vector<std::vector<int>> of_thread(program.threads.size());
  std::vector<bool> awaited(program.steps.size(), false);
  for (int i = 0; i < static_cast<int>(program.steps.size()); ++i) {
    const BufferStep& step = at(program.steps, i);
    std::map<int, int> latest;  // by thread
    for (const int before : step.after) {
      int& last = latest.try_emplace(at(program.steps, before).thread, before).first->second;
      last = std::max(last, before);
    }
    for (const auto& [thread, before] : latest) {
      if (thread == step.thread) continue;
      at(written, i).waits.push_back(before);
      awaited[static_cast<std::size_t>(before)] = true;
    }
    at(of_thread, step.thread).push_back(i);
  }
  std::vector<int> ids(program.threads.size());
  std::vector<int> threads(static_cast<std::size_t>(goal.ranks), 0);
  for (std::size_t t = 0; t < ids.size(); ++t) {
    ids[t] = at(threads, program.threads[t].rank)++;
    int number = 0;
    for (const int i : of_thread[t]) {
      number += std::max(1, static_cast<int>(at(written, i).waits.size()));
      at(written, i).number = number - 1;
    }
  }
  std::vector<std::string> gpus(threads.size());
  for (std::size_t t = 0; t < ids.size(); ++t) {
    const BufferThread& thread = program.threads[t];
    std::string& out = at(gpus, thread.rank);
    out += fmt::format("    <tb id=\"{}\" send=\"{}\" recv=\"{}\" chan=\"0\">\n", ids[t], thread.to,
                       thread.from);
    for (const int i : of_thread[t]) {
      const BufferStep& step = at(program.steps, i);
      const auto& [number, waits] = at(written, i);
      const auto line = [&](int s, std::string_view type, BufferPlace from, BufferPlace to,
                            int count, int wait, bool has_dep) {
        const int tb = wait < 0 ? -1 : at(ids, at(program.steps, wait).thread);
        out += fmt::format(
            "      <step s=\"{}\" type=\"{}\" srcbuf=\"{}\" srcoff=\"{}\" dstbuf=\"{}\" "
            "dstoff=\"{}\" cnt=\"{}\" depid=\"{}\" deps=\"{}\" hasdep=\"{}\"{}/>\n",
            s, type, from.buffer, from.chunk, to.buffer, to.chunk, count, tb,
            wait < 0 ? -1 : at(written, wait).number, has_dep ? 1 : 0,
            step.round < 0 ? "" : fmt::format(" round=\"{}\"", step.round));
      };
      const int extra = std::max(0, static_cast<int>(waits.size()) - 1);
      for (int n = 0; n < extra; ++n) {
        line(number - extra + n, "nop", {0, 'i', -1}, {0, 'o', -1}, 0, at(waits, n), false);
      }
      const bool adds = step.from.size() + (step.mate >= 0 ? 1u : 0u) > 1;
      const std::string_view type = step.mate >= 0    ? (adds ? "rrc" : "r")
                                    : step.to.empty() ? "s"
                                                      : (adds ? "re" : "cpy");
      const BufferPlace from = step.from.empty() ? step.to.front() : step.from.back();
      const BufferPlace to = step.to.empty() ? from : step.to.front();
      line(number, type, from, to, step.count, waits.empty() ? -1 : waits.back(),
           awaited[static_cast<std::size_t>(i)]);
    }
    out += "    </tb>\n";
  }
  const int vector =
      goal.collective == Collective::all_to_all ? goal.blocks / goal.ranks : goal.blocks;
  std::string out = fmt::format(
      "<algo name=\"{0}\" proto=\"Simple\" nchannels=\"1\" nchunksperloop=\"{1}\" ngpus=\"{2}\" "
      "coll=\"{0}\" inplace=\"{3}\" outofplace=\"{4}\" minBytes=\"0\" maxBytes=\"0\"{5}>\n",
      *name, vector, goal.ranks, program.layout.in_place ? 1 : 0, program.layout.in_place ? 0 : 1,
      has_root(goal.collective) ? fmt::format(" root=\"{}\"", goal.root) : "");
  for (Rank r = 0; r < goal.ranks; ++r) {
    out += fmt::format(
        "  <gpu id=\"{}\" i_chunks=\"{}\" o_chunks=\"{}\" "
        "s_chunks=\"{}\">\n{}  </gpu>\n",
        r, at(program.layout.input, r).size(), at(program.layout.output, r).size(),
        at(program.layout.scratch, r), at(gpus, r));
  }
  return out + "</algo>\n";
}

}  // namespace rankine::tools
