// Execution plans of MSCCL++.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <utility>

#include "engine/base/json_text.h"
#include "engine/cli/formats/buffers.h"

namespace rankine::tools {
namespace {

constexpr std::string_view kMscclppReduceScatter = "reducescatter";

struct MscclppOp {
  std::string_view name;
  // pairs: the i-th source goes to the i-th destination; spread: the first one to all; sum: all are
  // added up. none: no data.
  enum class Data : unsigned char { none, pairs, spread, sum } data = Data::none;
  bool reads_packets = false, writes_packets = false;  // a reader waits for the flags in the data
  bool signals = false, waits = false;
};
using enum MscclppOp::Data;
constexpr std::array<MscclppOp, 24> kMscclppOps = {{
    {"nop"},
    {"flush"},
    {.name = "barrier"},
    {.name = "signal", .signals = true},
    {.name = "rlxsignal", .signals = true},
    {.name = "wait", .waits = true},
    {.name = "rlxwait", .waits = true},
    {.name = "put", .data = pairs},
    {.name = "pws", .data = pairs, .signals = true},
    {.name = "pwsf", .data = pairs, .signals = true},
    {.name = "get", .data = pairs},
    {.name = "copy", .data = pairs},
    {.name = "re", .data = sum},
    {.name = "res", .data = sum},
    {.name = "rre", .data = sum},
    {.name = "rres", .data = sum},
    {.name = "ppkt", .data = pairs, .writes_packets = true},
    {.name = "cpkt", .data = pairs, .writes_packets = true},
    {.name = "upkt", .data = pairs, .reads_packets = true},
    {.name = "rppkt", .data = spread, .reads_packets = true, .writes_packets = true},
    {.name = "repkt", .data = sum, .reads_packets = true},
    {.name = "respkt", .data = sum, .reads_packets = true, .writes_packets = true},
    {.name = "recpkt", .data = sum, .reads_packets = true, .writes_packets = true},
    {.name = "recspkt", .data = sum, .reads_packets = true, .writes_packets = true},
}};

// Gives every object its line, as the member "line": objects begin, in the document's order, at the
// brackets outside of strings.
void add_lines(std::string_view text, Json& document) {
  std::vector<int> begins;
  int line = 1;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\n') ++line;
    if (text[i] == '{') begins.push_back(line);
    if (text[i] != '"') continue;
    for (++i; text[i] != '"'; ++i) i += text[i] == '\\' ? 1 : 0;
  }
  std::size_t next = 0;
  const auto visit = [&](const auto& self, Json& value) -> void {
    const int begin = value.is_object() ? begins[next++] : 0;
    for (Json& each : value) {
      if (each.is_structured()) self(self, each);
    }
    if (value.is_object()) value["line"] = begin;
  };
  if (document.is_structured()) visit(visit, document);
}

class MscclppReader {
 public:
  static BufferProgram read(const Json& plan) {
    const Collective collective = read_library_name(plan, "collective", kMscclppReduceScatter);
    const Json& gpus = list(plan, "gpus");
    int chunks = 0;
    for (const Json& gpu : gpus) {
      for (const char* side : {"input_chunks", "output_chunks"}) {
        chunks = std::max(chunks, number(gpu, side, 0, kMostWrittenBlocks));
      }
    }
    const bool in_place = plan.contains("inplace") && plan["inplace"] == true;
    MscclppReader reader(
        begin_program(plan, collective, static_cast<int>(gpus.size()), chunks, in_place));
    for (const Json& gpu : gpus) reader.read_gpu(gpu);
    for (const Json& gpu : gpus) {
      for (const Json& block : list(gpu, "threadblocks")) {
        reader.read_block(number(gpu, "id", 0, kMostWrittenRanks), block);
      }
    }
    reader.connect();
    return std::move(reader.program_);
  }

 private:
  explicit MscclppReader(BufferProgram program) : program_(std::move(program)) {}

  static std::string channel_type(const Json& object, const char* name) {
    const std::string type = word(object, name);
    if (type == "memory" || type == "port") return type;
    wrong(object, fmt::format("{} is '{}'; messages of memory and port channels can be read, and "
                              "switches cannot",
                              name, legible(type)));
  }

  struct Gpu {
    std::map<std::string, std::vector<Rank>> channels{};  // by type: the peers
    std::vector<std::pair<Rank, char>> remote{};
  };
  struct ThreadBlock {
    Rank rank = 0;
    int thread = 0;
    std::map<std::string, std::vector<int>> channels{}, remote{};  // by type: numbers of the gpu
  };

  void read_gpu(const Json& gpu) {
    const int rank = static_cast<int>(gpus_.size()), last = program_.goal.ranks - 1;
    number(gpu, "id", rank, rank);
    at(program_.layout.scratch, rank) = number(gpu, "scratch_chunks", 0, kMostWrittenBlocks);
    Gpu& out = gpus_.emplace_back();
    for (const Json& channel : list(gpu, "channels")) {
      if (word(channel, "channel_type") == "switch") continue;  // an error where it is used
      for (const Json& peer : list(channel, "connected_to")) {
        out.channels[channel_type(channel, "channel_type")].push_back(
            number(channel, "connected_to", peer, 0, last));
      }
    }
    for (const Json& remote : list(gpu, "remote_buffers")) {
      out.remote.emplace_back(number(remote, "rank", 0, last), buffer(remote, "type"));
    }
  }

  void read_block(Rank rank, const Json& block) {
    ThreadBlock out{.rank = rank, .thread = static_cast<int>(program_.threads.size())};
    program_.threads.push_back({rank});
    const Gpu& gpu = at(gpus_, rank);
    for (const Json& channel : list(block, "channels")) {
      if (word(channel, "channel_type") == "switch") continue;
      const std::string type = channel_type(channel, "channel_type");
      const auto own = gpu.channels.find(type);
      const int all = own == gpu.channels.end() ? 0 : static_cast<int>(own->second.size());
      for (const Json& id : list(channel, "channel_ids")) {
        out.channels[type].push_back(number(channel, "channel_ids", id, 0, all - 1));
      }
    }
    for (const Json& refs : list(block, "remote_buffer_refs")) {
      for (const Json& id : list(refs, "remote_buffer_ids")) {
        out.remote[channel_type(refs, "access_channel_type")].push_back(
            number(refs, "remote_buffer_ids", id, 0, static_cast<int>(gpu.remote.size()) - 1));
      }
    }
    std::map<int, int> met;  // barriers of this block, by number
    for (const Json& op : list(block, "ops")) read_op(op, out, met);
  }

  int add(const Json& op, const ThreadBlock& block, int count = 0) {
    program_.steps.push_back({.line = op["line"],
                              .thread = block.thread,
                              .count = count,
                              .round = number_or(-1, op, "round", 0, kMostWrittenBlocks)});
    return static_cast<int>(program_.steps.size()) - 1;
  }

  struct Part {
    BufferPlace place;
    int count;
  };
  Part part(const Json& op, const ThreadBlock& block, const Json& ref) const {
    BufferPlace place{.rank = block.rank};
    if (ref.is_object() && ref.contains("switch_channel_id")) {
      wrong(ref, "a switch channel moves the data; only messages between two ranks can be read");
    }
    if (ref.is_object() && ref.contains("buffer_id")) {
      const auto known = block.remote.find(channel_type(op, "channel_type"));
      const int all = known == block.remote.end() ? 0 : static_cast<int>(known->second.size());
      const auto& [rank, type] =
          at(at(gpus_, block.rank).remote, at(known->second, number(ref, "buffer_id", 0, all - 1)));
      place.rank = rank;
      place.buffer = type;
    } else {
      place.buffer = buffer(ref, "type");
    }
    const int all = program_.layout.chunks(place.rank, place.buffer);
    const int count = number(ref, "size", 1, kMostWrittenBlocks);
    place.chunk = number(ref, "index", 0, kMostWrittenBlocks);
    if (place.chunk > all - count) {
      wrong(ref, fmt::format("index is {}, and size is {}; that buffer of rank {} has {} chunks",
                             place.chunk, count, place.rank, all));
    }
    return {place, count};
  }

  void read_op(const Json& op, const ThreadBlock& block, std::map<int, int>& met) {
    const std::string name = word(op, "name");
    const auto kind = std::find_if(kMscclppOps.begin(), kMscclppOps.end(),
                                   [&](const MscclppOp& each) { return each.name == name; });
    if (kind == kMscclppOps.end()) {
      std::vector<std::string_view> names;
      for (const MscclppOp& each : kMscclppOps) names.push_back(each.name);
      wrong(op,
            fmt::format("'{}' cannot be read; ops that can be are {}", legible(name), join(names)));
    }
    if (op.contains("tbg_info") && number(op["tbg_info"], "tbg_size", 1, kMostWrittenBlocks) > 1) {
      wrong(op, "several thread blocks share the chunk; only whole chunks can be read");
    }
    if (name == "barrier") {
      const int id = number(op, "barrier_id", 0, kMostWrittenBlocks);
      const int arrival = add(op, block);
      barriers_[{block.rank, id, met[id]++}].emplace_back(arrival, add(op, block));
    }
    if (kind->data != none) read_data(op, block, *kind);
    if (!kind->signals && !kind->waits) return;
    const std::string type = channel_type(op, "channel_type");
    const auto known = block.channels.find(type);
    const int all = known == block.channels.end() ? 0 : static_cast<int>(known->second.size());
    for (const Json& id : list(op, "channel_ids")) {
      const int channel = at(known->second, number(op, "channel_ids", id, 0, all - 1));
      const auto& peers = at(gpus_, block.rank).channels.at(type);
      const Rank peer = at(peers, channel);
      // The n-th channels of two ranks to each other are one.
      const auto which = std::count(peers.begin(), peers.begin() + channel, peer);
      const auto from = kind->signals ? block.rank : peer, to = kind->signals ? peer : block.rank;
      Ends& ends = ends_[{from, to, type, static_cast<int>(which)}];
      (kind->signals ? ends.signals : ends.waits).push_back(add(op, block));
    }
  }

  void read_data(const Json& op, const ThreadBlock& block, const MscclppOp& kind) {
    std::vector<Part> from, to;
    for (const Json& ref : list(op, "src_buff")) from.push_back(part(op, block, ref));
    for (const Json& ref : list(op, "dst_buff")) to.push_back(part(op, block, ref));
    if (from.empty() || to.empty()) wrong(op, "src_buff or dst_buff is empty");
    // The packets come first, then the rank's own data.
    if (kind.data == sum && kind.reads_packets) {
      std::rotate(from.begin(), from.begin() + 1, from.end());
    }
    if (kind.data == pairs && from.size() != to.size()) {
      wrong(op, fmt::format("src_buff has {} parts, and dst_buff has {}", from.size(), to.size()));
    }
    const std::size_t steps = kind.data == pairs ? from.size() : 1;
    for (std::size_t n = 0; n < steps; ++n) {
      const int index = add(op, block, from[n].count);
      BufferStep& step = program_.steps.back();
      const auto take = [&](const std::vector<Part>& parts, std::vector<BufferPlace>& places,
                            bool all) {
        for (std::size_t i = all ? 0 : n; i < (all ? parts.size() : n + 1); ++i) {
          if (parts[i].count != step.count) {
            wrong(op, fmt::format("sizes of its parts are {} and {}; allowed are equal ones",
                                  step.count, parts[i].count));
          }
          places.push_back(parts[i].place);
        }
      };
      take(from, step.from, kind.data == sum);
      take(to, step.to, kind.data != pairs);
      for (const auto& [places, packets] :
           {std::pair{&step.from, kind.reads_packets}, {&step.to, kind.writes_packets}}) {
        for (const BufferPlace& place : *places) {
          if (!packets || place.buffer != 's') continue;
          for (int c = 0; c < step.count; ++c) {
            auto& of = places == &step.from ? packet_readers_ : packet_writers_;
            of[{place.rank, 's', place.chunk + c}].push_back(index);
          }
        }
      }
    }
  }

  // Waits for signals, for blocks at a barrier, and for packets.
  void connect() {
    auto& steps = program_.steps;
    for (const auto& [key, ends] : ends_) {
      const auto& [from, to, type, which] = key;
      const auto& [signals, waits] = ends;
      if (waits.size() > signals.size()) {
        fail(waits[signals.size()], fmt::format("rank {} waits for {} signals of rank {} on a {} "
                                                "channel, which gives {}",
                                                to, waits.size(), from, type, signals.size()));
      }
      for (std::size_t n = 0; n < waits.size(); ++n) {
        at(steps, waits[n]).after.push_back(signals[n]);
      }
    }
    for (const auto& [key, blocks] : barriers_) {
      for (const auto& [own, leave] : blocks) {
        for (const auto& [arrival, other] : blocks) {
          if (arrival != own) at(steps, leave).after.push_back(arrival);
        }
      }
    }
    for (const auto& [place, readers] : packet_readers_) {
      const std::vector<int>& writers = packet_writers_[place];
      for (const int reader : readers) {
        if (writers.size() != 1) {
          fail(reader, fmt::format("packets in scratch chunk {} of rank {} are read, and {} steps "
                                   "write them; allowed is one",
                                   place.chunk, place.rank, writers.size()));
        }
        at(steps, reader).after.push_back(writers.front());
      }
    }
  }
  [[noreturn]] void fail(int step, const std::string& text) const {
    wrong({{"line", at(program_.steps, step).line}}, text);
  }

  struct Ends {
    std::vector<int> signals{}, waits{};
  };
  BufferProgram program_;
  std::vector<Gpu> gpus_;
  std::map<std::tuple<Rank, Rank, std::string, int>, Ends> ends_;  // by sender, receiver, type
  // By rank, barrier and how often: arrival and end in each thread block.
  std::map<std::tuple<Rank, int, int>, std::vector<std::pair<int, int>>> barriers_;
  std::map<BufferPlace, std::vector<int>> packet_readers_, packet_writers_;
};

}  // namespace

Result<WrittenSchedule> read_mscclpp(std::string_view text) {
  auto plan = read_json<Json>("the plan", text);
  if (!plan.ok()) return plan.status();
  add_lines(text, *plan);
  return read_objects([&] { return MscclppReader::read(*plan); });
}

Result<std::string> mscclpp_text(const Schedule& schedule, const CollectiveSpec& goal) {
  const auto name = library_name(goal.collective, kMscclppReduceScatter);
  if (!name.ok()) return name.status();
  auto made = program_of(schedule, goal);
  if (!made.ok()) return made.status();
  BufferProgram& program = *made;
  struct Gpu {
    std::vector<std::string> ops{};
    std::vector<Rank> peers{};   // by channel
    std::vector<Rank> remote{};  // whose scratch
  };
  std::vector<Gpu> gpus(static_cast<std::size_t>(goal.ranks));
  // A message is put into scratch of its own, so that no sender waits for its receiver.
  std::vector<BufferPlace> put(program.steps.size());
  for (std::size_t i = 0; i < program.steps.size(); ++i) {
    const BufferStep& step = program.steps[i];
    const BufferThread& thread = at(program.threads, step.thread);
    Gpu& gpu = at(gpus, thread.rank);
    const auto number_of = [](std::vector<Rank>& known, Rank one) {
      const auto found = std::find(known.begin(), known.end(), one);
      const auto number = found - known.begin();
      if (found == known.end()) known.push_back(one);
      return number;
    };
    const auto sync = [&](std::string_view op, Rank peer) {
      gpu.ops.push_back(
          fmt::format(R"({{"name": "{}", "channel_ids": [{}], "channel_type": "memory"}})", op,
                      number_of(gpu.peers, peer)));
    };
    const auto part = [&](const BufferPlace& place) {
      const std::string where =
          place.rank == thread.rank
              ? fmt::format(R"("type": "{}")", place.buffer)
              : fmt::format(R"("buffer_id": {})", number_of(gpu.remote, place.rank));
      return fmt::format(R"({{{}, "index": {}, "size": {}}})", where, place.chunk, step.count);
    };
    const auto op = [&](std::string_view kind, const std::vector<BufferPlace>& from,
                        const BufferPlace& to, const std::string& more) {
      std::vector<std::string> texts;
      for (const BufferPlace& place : from) texts.push_back(part(place));
      // A nop lets the threads of the block wait for each other.
      gpu.ops.emplace_back(R"({"name": "nop"})");
      gpu.ops.push_back(
          fmt::format(R"({{"name": "{}", "src_buff": [{}], "dst_buff": [{}]{}{}}})", kind,
                      fmt::join(texts, ", "), part(to), more,
                      step.round < 0 ? "" : fmt::format(R"(, "round": {})", step.round)));
      gpu.ops.emplace_back(R"({"name": "nop"})");
    };
    if (step.to.empty()) {  // a send
      put[i] = {thread.to, 's', at(program.layout.scratch, thread.to)};
      at(program.layout.scratch, thread.to) += step.count;
      op("put", step.from, put[i],
         fmt::format(R"(, "channel_ids": [{}], "channel_type": "memory")",
                     number_of(gpu.peers, thread.to)));
      sync("signal", thread.to);
      continue;
    }
    std::vector<BufferPlace> from = step.from;
    if (step.mate >= 0) {
      from.push_back(at(put, step.mate));
      sync("wait", thread.from);
    }
    const bool adds = from.size() > 1;
    op(adds ? "re" : "copy", from, step.to.front(), adds ? R"(, "reduce_op": "sum")" : "");
  }
  std::string out = fmt::format(
      R"({{"name": "{0}", "collective": "{0}", "protocol": "Simple", "inplace": {1},{2}
 "reuse_resources": false, "num_threads_per_block": 1024, "use_double_scratch_buffer": false,
 "buffer_alignment": 16, "min_message_size": 0, "max_message_size": 18446744073709551615,
 "gpus": [)",
      *name, program.layout.in_place,
      has_root(goal.collective) ? fmt::format(R"( "root": {},)", goal.root) : "");
  for (Rank r = 0; r < goal.ranks; ++r) {
    const Gpu& gpu = at(gpus, r);
    std::vector<std::string> remote;
    for (const Rank rank : gpu.remote) {
      remote.push_back(
          fmt::format(R"({{"rank": {}, "type": "s", "access_channel_types": ["memory"]}})", rank));
    }
    const auto numbers = [](std::size_t count) {
      std::vector<std::size_t> all;
      while (all.size() < count) all.push_back(all.size());
      return fmt::format("{}", fmt::join(all, ", "));
    };
    out += fmt::format(
        R"({}
  {{"id": {}, "input_chunks": {}, "output_chunks": {}, "scratch_chunks": {}, "semaphores": [],
   "channels": [{{"channel_type": "memory", "connected_to": [{}]}}],
   "remote_buffers": [{}],
   "threadblocks": [{{"id": 0,
    "channels": [{{"channel_type": "memory", "channel_ids": [{}]}}],
    "remote_buffer_refs": [{{"access_channel_type": "memory", "remote_buffer_ids": [{}]}}],
    "ops": [
     {}]}}]}})",
        r == 0 ? "" : ",", r, at(program.layout.input, r).size(),
        at(program.layout.output, r).size(), at(program.layout.scratch, r),
        fmt::join(gpu.peers, ", "), fmt::join(remote, ", "), numbers(gpu.peers.size()),
        numbers(gpu.remote.size()), fmt::join(gpu.ops, ",\n     "));
  }
  return out + "]}\n";
}

}  // namespace rankine::tools
