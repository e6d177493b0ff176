#include "engine/read/mailbox_replay.h"

#include <algorithm>

namespace rankine {
namespace {

constexpr std::size_t kSmallestChannelTable = 64;
constexpr std::size_t kLongestCircle = 8;  // ranks that the text names

std::uint64_t scattered(std::uint64_t key) { return (key * 0x9e3779b97f4a7c15ULL) >> 20; }

}  // namespace

MailboxReplay::MailboxReplay(int ranks, int capacity, MessageOrder order)
    : ranks_(static_cast<std::uint64_t>(ranks)),
      capacity_(static_cast<std::uint32_t>(std::max(1, capacity))),
      order_(order),
      programs_(static_cast<std::size_t>(ranks)) {}

MailboxReplay::MailboxReplay(const Everyone& all, int capacity, MessageOrder order)
    : MailboxReplay(1, capacity, order) {
  ranks_ = static_cast<std::uint64_t>(all.rotation().ranks());
  rotation_ = &all.rotation();
}

std::uint32_t MailboxReplay::mailbox_of(Rank from, Rank to) {
  const std::uint64_t key =
      static_cast<std::uint64_t>(from) * ranks_ + static_cast<std::uint64_t>(to);
  std::size_t i = scattered(key) & (table_.size() - 1);
  while (table_[i] != 0) {
    const Mailbox& mailbox = mailboxes_[table_[i] - 1];
    if (mailbox.from == from && mailbox.to == to) return table_[i] - 1;
    i = (i + 1) & (table_.size() - 1);
  }
  mailboxes_.push_back({from, to});
  table_[i] = static_cast<std::uint32_t>(mailboxes_.size());
  return table_[i] - 1;
}

void MailboxReplay::sort_into_sub_rounds(std::uint32_t sub_rounds) {
  sub_round_ends_.assign(sub_rounds + 1, 0);
  for (const Message& message : messages_) ++sub_round_ends_[message.sub_round + 1];
  for (std::uint32_t s = 0; s < sub_rounds; ++s) sub_round_ends_[s + 1] += sub_round_ends_[s];
  if (sub_rounds == 1) return;
  sorted_.resize(messages_.size());
  for (const Message& message : messages_) {
    sorted_[sub_round_ends_[message.sub_round]++] = message;
  }
  messages_.swap(sorted_);
  // Each entry has moved on to where the next sub-round begins.
  for (std::uint32_t s = sub_rounds; s > 0; --s) sub_round_ends_[s] = sub_round_ends_[s - 1];
  sub_round_ends_[0] = 0;
}

void MailboxReplay::push(Rank rank, std::uint32_t mailbox, bool is_send) {
  Program& program = programs_[static_cast<std::size_t>(rank)];
  if (program.actions.empty()) busy_.push_back(rank);
  program.actions.push_back({mailbox, is_send});
}

void MailboxReplay::write_programs() {
  std::uint32_t sub_rounds = 1;
  for (Message& message : messages_) {
    message.mailbox = mailbox_of(message.from, message.to);
    const std::uint32_t j = mailboxes_[message.mailbox].stated++;
    message.sub_round = order_ == MessageOrder::sub_rounds ? j / capacity_ : 0;
    sub_rounds = std::max(sub_rounds, message.sub_round + 1);
  }
  sort_into_sub_rounds(sub_rounds);
  for (std::uint32_t s = 0; s < sub_rounds; ++s) {
    const auto each = [&](auto visit) {
      for (std::uint32_t m = sub_round_ends_[s]; m < sub_round_ends_[s + 1]; ++m)
        visit(messages_[m]);
    };
    const auto send = [&](const Message& m) { push(m.from, m.mailbox, true); };
    const auto receive = [&](const Message& m) { push(doer(m.to), m.mailbox, false); };
    switch (order_) {
      case MessageOrder::sub_rounds:
      case MessageOrder::sends_first:
        each(send);
        each(receive);
        break;
      case MessageOrder::receives_first:
        each(receive);
        each(send);
        break;
      case MessageOrder::statement:
        each([&](const Message& m) {
          send(m);
          receive(m);
        });
        break;
    }
  }
}

void MailboxReplay::run(Rank rank) {
  Program& program = programs_[static_cast<std::size_t>(rank)];
  for (; program.next < program.actions.size(); ++program.next) {
    const Action action = program.actions[program.next];
    Mailbox& mailbox = mailboxes_[action.mailbox];
    if (action.is_send) {
      if (mailbox.unread == capacity_) {
        mailbox.sender_waits = true;
        return;
      }
      ++mailbox.unread;
      if (mailbox.receiver_waits) {
        mailbox.receiver_waits = false;
        ready_.push_back(doer(mailbox.to));
      }
    } else {
      if (mailbox.unread == 0) {
        mailbox.receiver_waits = true;
        return;
      }
      --mailbox.unread;
      if (mailbox.sender_waits) {
        mailbox.sender_waits = false;
        ready_.push_back(mailbox.from);
      }
    }
  }
}

std::optional<MailboxReplay::Circle> MailboxReplay::end_round() {
  if (messages_.empty()) return std::nullopt;
  std::size_t size = kSmallestChannelTable;
  while (size < 2 * messages_.size()) size *= 2;
  table_.assign(size, 0);
  mailboxes_.clear();
  write_programs();
  messages_.clear();

  ready_ = busy_;
  while (!ready_.empty()) {
    const Rank rank = ready_.back();
    ready_.pop_back();
    run(rank);
  }
  std::optional<Circle> found = circle();
  for (const Rank rank : busy_) {
    programs_[static_cast<std::size_t>(rank)].actions.clear();
    programs_[static_cast<std::size_t>(rank)].next = 0;
  }
  busy_.clear();
  return found;
}

std::optional<MailboxReplay::Circle> MailboxReplay::circle() const {
  const auto program = [&](Rank r) -> const Program& {
    return programs_[static_cast<std::size_t>(doer(r))];
  };
  const auto waits = [&](Rank r) { return program(r).next < program(r).actions.size(); };
  const auto awaited = [&](Rank r) {
    const Action action = program(r).actions[program(r).next];
    const Mailbox& mailbox = mailboxes_[action.mailbox];
    if (rotation_ == nullptr) return action.is_send ? mailbox.to : mailbox.from;
    // All wait as the one does: for whom it sees there.
    return rotation_->rotated(r, action.is_send ? mailbox.to : rotation_->back(mailbox.to));
  };
  const auto stuck = std::find_if(busy_.begin(), busy_.end(), waits);
  if (stuck == busy_.end()) return std::nullopt;

  // Whoever a waiting rank waits for waits too: after as many steps as there are ranks the walk is
  // on the circle.
  Rank on = *stuck;
  for (std::size_t i = 0; i < busy_.size(); ++i) on = awaited(on);
  std::vector<Rank> members{on};
  for (Rank r = awaited(on); r != on; r = awaited(r)) members.push_back(r);
  std::rotate(members.begin(), std::min_element(members.begin(), members.end()), members.end());

  Circle out{members[0], ""};
  for (std::size_t i = 0; i < members.size() && i < kLongestCircle; ++i) {
    const Action action = program(members[i]).actions[program(members[i]).next];
    if (i > 0) out.text += ", ";
    out.text += "rank " + std::to_string(members[i]);
    out.text += action.is_send ? " waits to send to " : " waits to receive from ";
    out.text += std::to_string(awaited(members[i]));
    if (action.is_send) {
      out.text += " (" + std::to_string(mailboxes_[action.mailbox].unread) + " messages unread)";
    }
  }
  if (members.size() > kLongestCircle) {
    out.text += ", ... a circle of " + std::to_string(members.size()) + " ranks";
  }
  return out;
}

}  // namespace rankine
