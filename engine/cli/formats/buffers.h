// BufferProgram is a schedule as the libraries' own formats have it: threads of each rank execute
// steps, which move and add chunks of named buffers. schedule_of() follows the data from chunk to
// chunk and gives the blocks and planes that move; program_of() is its inverse.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/schedule/collective.h"
#include "algorithms/schedule/schedule.h"
#include "engine/base/status.h"
#include "engine/cli/formats/formats.h"

namespace rankine::tools {

struct BufferPlace {
  Rank rank = 0;
  char buffer = 'i';  // 'i': input, 'o': output, 's': scratch
  int chunk = 0;
  auto operator<=>(const BufferPlace&) const = default;
};

// The blocks of each rank's input and output, by chunk; -1: none.
struct BufferLayout {
  // A rank's input is the blocks that it initially holds, its output those that it needs, both
  // ascending; in place, the shorter one lies in the longer one.
  BufferLayout(const CollectiveSpec& goal, bool in_place);
  // One chunk per block in place; scratch has planes 1 and up, one after the other.
  static BufferLayout of_planes(const CollectiveSpec& goal, int planes);

  // One place has one name, also in place.
  BufferPlace named(BufferPlace place) const;
  int chunks(Rank r, char buffer) const;
  // Where the block lies on plane 0: in the input if the rank holds it initially, else in the
  // output; chunk -1: in neither.
  BufferPlace place_of(Rank r, Block b) const;

  bool in_place = false;
  std::vector<std::vector<Block>> input{}, output{};  // by rank
  std::vector<int> scratch{};                         // chunks by rank
};

struct BufferStep {
  int line = 0;    // in the file
  int thread = 0;  // steps of a thread run in the order of BufferProgram::steps
  // The first of `count` neighbouring chunks each. The data at `from` and the message of `mate` are
  // added up in this order, and stored at each place of `to`.
  std::vector<BufferPlace> from{}, to{};
  int count = 1;
  int mate = -1;                // the step whose result arrives here as a message
  std::vector<int> after{};     // steps that have ended when this one begins
  std::vector<int> executed{};  // steps to follow earlier, although the file does not say so
  int round = -1;               // as given in the file
  bool is_local() const;        // its places are one rank's
  bool adds() const { return !from.empty() && !to.empty() && from.front() == to.front(); }
};

struct BufferThread {
  Rank rank = 0, to = -1, from = -1;  // the only peers of its messages, where the format needs them
};

struct BufferProgram {
  CollectiveSpec goal;
  BufferLayout layout;
  std::vector<BufferThread> threads{};
  std::vector<BufferStep> steps{};
  // True: a step reads the data of the steps that it follows, whatever overwrites them (GOAL).
  bool renames = false;
};

// Errors, with line: steps that wait for each other; a read and a write of one chunk in no order;
// an empty chunk that is read; a sum of two blocks; an output that ends with another block.
Result<WrittenSchedule> schedule_of(const BufferProgram& program);

// A thread for each peer and direction, and one for local work. A step waits for steps above it
// only. Errors: transfers by switches; a local transfer that reads what another one overwrites.
Result<BufferProgram> program_of(const Schedule& schedule, const CollectiveSpec& goal);

Status at_line(int line, const std::string& text);  // "line 3: ..."

// Files of objects: their readers throw, and read_objects() catches. An object has its line as the
// member "line".

struct WrongObject {
  Status status;
};
[[noreturn]] void wrong(const Json& object, const std::string& text);
const Json& list(const Json& object, const char* member);  // missing: an empty list
std::string word(const Json& object, const char* member);
// A number, or a text of one.
int number(const Json& object, const char* member, int lowest, int highest);
int number(const Json& object, const char* member, const Json& value, int lowest, int highest);
int number_or(int otherwise, const Json& object, const char* member, int lowest, int highest);
char buffer(const Json& object, const char* member);  // i, o or s

// The collectives in MSCCL's and MSCCL++'s files.
Collective read_library_name(const Json& object, const char* member,
                             std::string_view reduce_scatter);
Result<std::string_view> library_name(Collective collective, std::string_view reduce_scatter);
// A program without threads for the file's head; `chunks` is the length of the longest buffer.
BufferProgram begin_program(const Json& head, Collective collective, int ranks, int chunks,
                            bool in_place);
Result<WrittenSchedule> read_objects(const std::function<BufferProgram()>& read);

}  // namespace rankine::tools
