// A plan is a program that is ready to run: for each rank a flat array of 32-byte ops that the
// interpreter walks once per call. Plans are immutable; all ranks share one. The layout gives the
// places of a schedule's blocks in the users' buffers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/schedule/collective.h"
#include "engine/base/costs.h"
#include "engine/base/memory.h"
#include "engine/run/kernels/reduce.h"
#include "engine/run/policy.h"

namespace rankine {

// Memory that a rank brings to a call. `message`: in a slot, or at the address stored there;
// `board`: in the half that the rank has posted last (plans only).
enum class Memory : std::uint8_t { input, output, scratch, message, board };

enum class OpCode : std::uint8_t {
  end,  // `value` 1: this form of the call has no messages, but another one has (choose)
  // offers this rank's buffers to the others; nothing is published before. Direct transport only,
  // and not for a single rank
  enter,
  // at the beginning: waits until no rank reads the scratch of earlier calls, but for the call
  // before this one; `value` 1: not even of that
  wait_readers,
  // `peer` may read this rank's scratch until its progress in this call reaches `value`; the call
  // ends nevertheless, and a later wait_readers waits for that
  leave_reader,
  wait_entry,     // waits until `peer` has entered this call: then its buffers' addresses are known
  wait_progress,  // waits until `peer`'s progress in this call reaches `value`
  wait_message,   // waits until message `value` of this call from `peer` has come
  wait_credit,    // waits until `peer` has taken all messages of this call before number `value`
  // destination and copies = operand 0 op operand 1 op ...; then publishes `value`, if not 0.
  // Without operands it only publishes
  fold,
  send,     // message `value` of this call to `peer`: operand 0
  release,  // messages from `peer` before number `value` have been used
  // copies operand 0, if any, to `offset` in the current half of this rank's board; without
  // kMoreToPost, it then publishes the half
  post,
  wait_post,   // waits until `peer` has made the post with the number of this rank's last post
  wait_posts,  // wait_post of all other ranks
  apply,       // fold with the user's operation (user_functions.h)
  widen,       // destination, f32 = operand 0, of the users' type (Plan::conversions)
  narrow,      // destination, of the users' type = operand 0, f32, rounded
  finish,      // passes these rows of the output to the call's epilogue (user_functions.h)
  // fold, if ranks are processes: places in other ranks' input or output lie in private memory, and
  // are reached by system calls (RankProcesses::read)
  reach,
  // the plan has several forms, each with an end, and ranks measure which is fastest
  // (form_trials.h); in calls that end a trial it waits for all. kForms such ops stand at the
  // beginning: form i begins behind op `value` of op i, `offset` operands further on
  choose,
  chosen,  // the form that was chosen ends
  // for reports, if ranks have a budget of ports. `value` 0: counts this rank's messages in flight;
  // otherwise counts the messages in flight to it, `value` of which are used next
  count_ports,
};

enum OpFlag : std::uint8_t {
  kDivides = 1,      // fold completes the reduction: avg divides
  kOnlyIfMoved = 2,  // skip if destination and source have the same address
  kStreams = 4,      // store past the caches
  kByAddress = 8,    // send: the message carries an address; release: credit is due at once
  kClaims = 16,      // fold: the copies' memory is in other cores' caches (copy_bytes_claiming)
  kMoreToPost = 32,  // post: the next op continues it
  kStages = 64,      // fold: others read the result; past the caches or not (staging_stores.h)
  kFetches = 128,    // fold: reads data stored with kStages
};

struct Op {
  OpCode code = OpCode::end;
  std::uint8_t flags = 0;
  std::uint16_t operands = 0;
  std::uint16_t peer = 0;
  std::uint16_t round = 0;  // for reports: 1 + the schedule's round
  std::uint32_t value = 0;
  // memory of the destination, this rank's; `message`: there are only copies
  Memory memory = Memory::output;
  std::uint16_t copies = 0;  // number of further destinations, among the operands after the sources
  std::size_t offset = 0;    // offset of the destination, bytes
  std::size_t bytes = 0;
};
static_assert(sizeof(Op) == 32);

struct Operand {  // a source of an op, or a further destination
  std::uint16_t rank = 0;
  Memory memory = Memory::input;
  std::uint32_t message = 0;  // Memory::message: its number in this call
  std::size_t offset = 0;
};
static_assert(sizeof(Operand) == 16);

// Traffic of one rank with one peer: advances the message counters from call to call.
struct Traffic {
  std::uint16_t peer = 0;
  std::uint32_t sent = 0, received = 0;
};

struct RankPlan {
  std::vector<Op> ops;            // ends with OpCode::end
  std::vector<Operand> operands;  // in the order in which the ops use them
  std::vector<Traffic> traffic;   // mailbox transport; empty with direct
  std::size_t scratch_bytes = 0;
  // Sizes of the users' buffers, for the check that ranks do not share them; 0: no check.
  std::size_t input_bytes = 0, output_bytes = 0;
};

// The choice that a plan with several forms leaves to trials (form_trials.h).
struct TrialOf {
  std::uint16_t trial_class = 0;
  Form first = Form::posts;  // until a trial decides
  std::uint8_t forms = 0;    // 1 << each form that the plan has
  std::uint32_t bytes = 0;   // M
  bool has(Form form) const { return (forms >> static_cast<unsigned>(form) & 1) != 0; }
};

struct Plan {
  Transport transport = Transport::direct;
  int ranks = 0;
  int rounds = 0;  // of the schedule
  // True if no rank that gets data can end a call before all ranks that bring or get data have
  // begun it; false if the check does not need it.
  bool all_meet = false;
  bool stages = false;      // some op has kStages
  bool runs_ahead = false;  // some op is OpCode::leave_reader
  bool reaches = false;     // some op is OpCode::reach
  bool exchanges = false;   // is_exchange(): calls are made in one piece (exchange.h)
  TrialOf trials;           // of a plan with OpCode::choose
  struct FurtherForm {
    Form form = Form::posts;
    Transport transport = Transport::direct;
    std::string algorithm;
  };
  std::vector<FurtherForm> further_forms;  // in the order of forms
  std::vector<RankPlan> rank;
  std::uint32_t span = 1;  // the advance of the progress counters' base per call: 1 .. 2^29
  int most_operands = 0;   // maximum over ops, destinations included
  std::size_t element_bytes = 1;
  std::size_t row_bytes = 0;  // bytes of an epilogue's row; 0: no epilogue
  int divisor = 0;            // avg: the number of ranks
  int ports = 0;              // maximum of a rank's messages in flight per direction; 0: unlimited
  ReduceKernel fold = nullptr;    // nullptr: nothing is reduced
  SpreadKernel spread = nullptr;  // fold to several destinations
  // For sums added up in f32 and rounded to the users' type at the end: the conversions, and the
  // bytes of an element of that type. `element_bytes` is then that of f32.
  Conversions conversions;
  std::size_t narrow_bytes = 0;
  Costs costs;            // of moving bytes
  std::string algorithm;  // for reports
};

inline bool uses_boards(const Plan& plan) {
  return plan.transport == Transport::board ||
         std::ranges::any_of(plan.further_forms, [](const Plan::FurtherForm& further) {
           return further.transport == Transport::board;
         });
}

// Slots of mailboxes and halves of boards begin with a header of this size (mailbox.h). On a board,
// data that fit behind it share its line.
inline constexpr std::size_t kPostHeader = 16;

// For Plan::exchanges: true if two ranks post their inputs once, wait for each other and add up, or
// copy their own data and the other's side by side.
bool is_exchange(const Plan& plan);
// The most bytes that are joined: a rank copies longer data of its own while it waits.
inline constexpr std::size_t kMostJoined = 512;

// BlockHome gives the place of a schedule's block in the users' buffers.
//
// A block has one size. It has one offset in the input at the ranks that start with it
// (CollectiveSpec::initially_holds), and one offset in the output at the ranks that need it
// (CollectiveSpec::must_hold). Neither depends on the rank.

struct BlockHome {
  std::size_t input = 0;   // bytes from the start of an input that holds the block
  std::size_t output = 0;  // bytes from the start of an output that holds it
  std::size_t bytes = 0;
};

struct Layout {
  std::size_t element_bytes = 1;
  HugeVector<BlockHome> blocks;  // one per block of the schedule
};

// Borders between the parts of one natural block. `plain` gives the first M mod B parts one element
// more (the users' and the model's view). `cache_lines` moves borders to multiples of 64 bytes, so
// that no two ranks store into one line (two ranks on one line cost 15 to 25 %).
enum class Borders : unsigned char { plain, cache_lines };

// counts[i]: elements of natural block i (natural_blocks(collective, N) of them).
Layout make_layout(const CollectiveSpec& goal, std::span<const std::size_t> counts,
                   std::size_t element_bytes, Borders borders);

// Bytes of the input and the output buffer of rank r.
std::size_t input_bytes(const Layout& layout, const CollectiveSpec& goal, Rank r);
std::size_t output_bytes(const Layout& layout, const CollectiveSpec& goal, Rank r);

// The ops of a plan in words: `rankine show --plan` prints them, and tests compare them.

// An op of one rank, with the members that the op uses. plan.h explains the codes.
struct OpView {
  std::string_view code;       // "send", "wait_message"; "publish": a fold without operands
  std::optional<int> round{};  // of the schedule
  std::optional<Rank> peer{};  // the rank that the op sends to or waits for
  std::optional<std::uint32_t> number{};  // of a message, of a progress, or of published progress
  std::size_t bytes = 0;
  std::vector<std::string> to{};        // places that the op writes: "output+64", "2: output+64"
  std::vector<std::string> from{};      // places that the op reads: "input+0", "message 3 of 1"
  std::vector<std::string_view> how{};  // "by address", "divides", "streams" ...
};

std::vector<OpView> view_ops(const Plan& plan, Rank rank);

// The ops in short: "send* 1:0 wait_message 1:0 fold end". A pair is a peer and a number, an
// asterisk means `by address`, an ampersand `more to post`, and a post has its offset and bytes.
std::string ops_text(const Plan& plan, Rank rank);

}  // namespace rankine
