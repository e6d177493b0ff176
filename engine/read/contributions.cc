#include "engine/read/contributions.h"

#include <algorithm>
#include <bit>

namespace rankine {
namespace {

constexpr std::size_t kSmallestTable = 64;

// The finaliser of MurmurHash3: every bit of the input reaches every bit of the output.
std::uint64_t mixed(std::uint64_t x) {
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccdULL;
  x ^= x >> 33;
  x *= 0xc4ceb9fe1a85ec53ULL;
  return x ^ (x >> 33);
}

void set_range(std::vector<std::uint64_t>& bits, std::uint32_t from, std::uint32_t to) {
  for (std::uint32_t i = from; i < to;) {
    const std::uint32_t in_word = i % 64, here = std::min(64 - in_word, to - i);
    const std::uint64_t ones = here == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << here) - 1;
    bits[i / 64] |= ones << in_word;
    i += here;
  }
}

// The first rank from `from` on whose bit equals `in`; `ranks` if there is no such rank.
std::uint32_t next(std::span<const std::uint64_t> bits, std::uint32_t from, bool in,
                   std::uint32_t ranks) {
  for (std::uint32_t w = from / 64; w < bits.size(); ++w) {
    std::uint64_t found = in ? bits[w] : ~bits[w];
    if (w == from / 64) found &= ~std::uint64_t{0} << (from % 64);
    if (found != 0) {
      return std::min(ranks, 64 * w + static_cast<std::uint32_t>(std::countr_zero(found)));
    }
  }
  return ranks;
}

std::uint64_t hash_of(std::span<const std::uint64_t> words) {
  std::uint64_t hash = 0;
  for (const std::uint64_t word : words) hash = mixed(hash + word);
  return hash;
}

}  // namespace

ContributionPool::Parts ContributionPool::parts_of(Set set) const {
  Parts parts;
  if (set == kEmpty) return parts;
  if (is_interval(set)) {
    const std::uint32_t end = first(set) + count(set);
    if (end > ranks_) parts.push_back({0, end - ranks_});
    parts.push_back({first(set), std::min(end, ranks_)});
    return parts;
  }
  const auto words = words_of(set);
  if (is_bits(words)) {
    append_parts_of_bits(words, parts);
  } else {
    for (const std::uint64_t word : words) parts.push_back({first(word), count(word)});
  }
  return parts;
}

void ContributionPool::append_parts_of_bits(std::span<const std::uint64_t> bits,
                                            Parts& parts) const {
  for (std::uint32_t r = next(bits, 0, true, ranks_); r < ranks_;) {
    const std::uint32_t end = next(bits, r, false, ranks_);
    parts.push_back({r, end});
    r = next(bits, end, true, ranks_);
  }
}

std::vector<Rank> ContributionPool::ranks_of(const Parts& parts) {
  std::vector<Rank> out;
  for (const Part& part : parts) {
    for (std::uint32_t r = part.first; r < part.end; ++r) out.push_back(static_cast<Rank>(r));
  }
  return out;
}

std::vector<Rank> ContributionPool::members(Set set) const { return ranks_of(parts_of(set)); }

std::string ContributionPool::to_string(Set set) const { return text_of_set(members(set)); }

std::string ContributionPool::common(Set a, Set b) const {
  const Parts of_b = parts_of(b);
  Parts both;
  auto other = of_b.begin();
  for (const Part& part : parts_of(a)) {
    while (other != of_b.end() && other->end <= part.first) ++other;
    for (auto at = other; at != of_b.end() && at->first < part.end; ++at) {
      both.push_back({std::max(part.first, at->first), std::min(part.end, at->end)});
    }
  }
  return text_of_set(ranks_of(both));
}

ContributionPool::Set ContributionPool::rotated_part_by_part(Set set, const Rotation& rotation,
                                                             Rank by) {
  const bool on_ring = rotation.dims().size() == 1;  // then neighbours stay neighbours
  Words bits(words_, 0);
  for (const Part& part : parts_of(set)) {
    const std::uint32_t step = on_ring ? part.end - part.first : 1;
    for (std::uint32_t r = part.first; r < part.end; r += step) {
      const auto to = static_cast<std::uint32_t>(rotation.rotated(static_cast<Rank>(r), by));
      set_range(bits, to, std::min(to + step, ranks_));
      if (to + step > ranks_) set_range(bits, 0, to + step - ranks_);
    }
  }
  return set_of(bits);
}

ContributionPool::Set ContributionPool::remembered(Set a, Set b, bool disjoint) {
  if (a > b) std::swap(a, b);
  std::vector<Remembered>& table = sums_[disjoint];
  std::size_t& held = sums_held_[disjoint];
  if (2 * (held + 1) > table.size()) {
    std::vector<Remembered> larger(std::max(kSmallestTable, 2 * table.size()));
    for (const Remembered& entry : table) {
      if (entry.a == kEmpty) continue;
      std::size_t i = mixed(entry.a + mixed(entry.b)) & (larger.size() - 1);
      while (larger[i].a != kEmpty) i = (i + 1) & (larger.size() - 1);
      larger[i] = entry;
    }
    table.swap(larger);
  }
  std::size_t i = mixed(a + mixed(b)) & (table.size() - 1);
  while (table[i].a != kEmpty) {
    if (table[i].a == a && table[i].b == b) return table[i].result;
    i = (i + 1) & (table.size() - 1);
  }
  const Set result = computed(a, b, disjoint);
  table[i] = {a, b, result};
  ++held;
  return result;
}

ContributionPool::Set ContributionPool::computed(Set a, Set b, bool disjoint) {
  if (size_of(a) + size_of(b) >= words_) {
    write_bits(a, left_);
    write_bits(b, right_);
    for (std::size_t w = 0; w < words_; ++w) {
      if (disjoint && (left_[w] & right_[w]) != 0) return kOverlap;
      left_[w] |= right_[w];
    }
    return set_of(left_);
  }
  const Parts of_a = parts_of(a), of_b = parts_of(b);
  Parts all(of_a.size() + of_b.size());
  std::merge(of_a.begin(), of_a.end(), of_b.begin(), of_b.end(), all.begin(),
             [](const Part& x, const Part& y) { return x.first < y.first; });
  auto last = all.begin();
  for (auto part = last + 1; part != all.end(); ++part) {
    if (disjoint && part->first < last->end) return kOverlap;
    if (part->first <= last->end) {
      last->end = std::max(last->end, part->end);
    } else {
      *++last = *part;
    }
  }
  all.erase(last + 1, all.end());
  return set_of(all);
}

void ContributionPool::write_bits(Set set, Words& bits) const {
  if (!is_interval(set) && is_bits(words_of(set))) {
    bits.assign(words_of(set).begin(), words_of(set).end());
    return;
  }
  bits.assign(words_, 0);
  for (const Part& part : parts_of(set)) set_range(bits, part.first, part.end);
}

ContributionPool::Set ContributionPool::set_of(const Parts& parts) {
  if (parts.empty()) return kEmpty;
  const Part& front = parts.front();
  const Part& back = parts.back();
  if (parts.size() == 1) return interval(front.first, front.end - front.first);
  if (parts.size() == 2 && front.first == 0 && back.end == ranks_) {
    return interval(back.first, back.end - back.first + front.end);
  }
  if (parts.size() < words_) {
    Words words;
    for (const Part& part : parts) words.push_back(std::uint64_t{part.first} << 32 | part.end);
    return keep(words);
  }
  Words bits(words_, 0);
  for (const Part& part : parts) set_range(bits, part.first, part.end);
  return keep(bits);
}

ContributionPool::Set ContributionPool::set_of(const Words& bits) {
  std::size_t parts = 0;
  std::uint64_t carry = 0;
  for (const std::uint64_t word : bits) {
    parts += static_cast<std::size_t>(std::popcount(word & ~(word << 1 | carry)));
    carry = word >> 63;
  }
  if (parts > 2 && parts >= words_) return keep(bits);  // no interval
  Parts few;
  append_parts_of_bits(bits, few);
  return set_of(few);
}

ContributionPool::Set ContributionPool::keep(std::span<const std::uint64_t> words) {
  if (2 * (sets_.size() + 1) > index_.size()) {
    std::vector<std::uint32_t> larger(std::max(kSmallestTable, 2 * index_.size()), 0);
    for (const std::uint32_t entry : index_) {
      if (entry == 0) continue;
      std::size_t i = hash_of(sets_[entry - 1]) & (larger.size() - 1);
      while (larger[i] != 0) i = (i + 1) & (larger.size() - 1);
      larger[i] = entry;
    }
    index_.swap(larger);
  }
  std::size_t i = hash_of(words) & (index_.size() - 1);
  for (; index_[i] != 0; i = (i + 1) & (index_.size() - 1)) {
    const auto kept = sets_[index_[i] - 1];
    if (std::equal(words.begin(), words.end(), kept.begin(), kept.end())) {
      return kKept | (index_[i] - 1);
    }
  }
  if (chunks_.empty() || chunks_.back().capacity() - chunks_.back().size() < words.size()) {
    const std::size_t before = chunks_.empty() ? kSmallestTable : chunks_.back().capacity();
    chunks_.emplace_back().reserve(std::max(words.size(), 2 * before));
  }
  Words& chunk = chunks_.back();
  chunk.insert(chunk.end(), words.begin(), words.end());
  sets_.emplace_back(chunk.data() + chunk.size() - words.size(), words.size());
  index_[i] = static_cast<std::uint32_t>(sets_.size());
  return kKept | (sets_.size() - 1);
}

RotatedTree SumTrees::sum(std::vector<RotatedTree> parts) {
  std::sort(parts.begin(), parts.end());
  const auto [found, is_new] =
      numbers_.try_emplace(parts, static_cast<int>(parts_.size()) + kLeaf + 1);
  if (is_new) parts_.push_back(std::move(parts));
  return {found->second, 0};
}

Rank SumTrees::lowest(RotatedTree tree) const {
  if (tree.tree == kLeaf) return tree.by;
  Rank least = rotation_.ranks();
  for (const RotatedTree part : parts_of(tree.tree)) {
    least = std::min(least, lowest(rotated(part, tree.by)));
  }
  return least;
}

std::vector<std::pair<Rank, RotatedTree>> SumTrees::in_order(RotatedTree tree) const {
  std::vector<std::pair<Rank, RotatedTree>> out;
  for (const RotatedTree part : parts_of(tree.tree)) {
    const RotatedTree there = rotated(part, tree.by);
    out.emplace_back(lowest(there), there);
  }
  std::sort(out.begin(), out.end());
  return out;
}

bool SumTrees::same(RotatedTree a, RotatedTree b) {
  if (a == b) return true;
  if (a.tree <= kLeaf || b.tree <= kLeaf) return false;
  if (parts_of(a.tree).size() != parts_of(b.tree).size()) return false;
  if (const auto found = compared_.find({a, b}); found != compared_.end()) return found->second;
  const auto of_a = in_order(a), of_b = in_order(b);
  bool alike = true;
  for (std::size_t i = 0; i < of_a.size() && alike; ++i) {
    alike = of_a[i].first == of_b[i].first && same(of_a[i].second, of_b[i].second);
  }
  compared_[{a, b}] = alike;
  return alike;
}

namespace {

constexpr std::size_t kSmallestChannelTable = 64;
constexpr std::size_t kLongestCircle = 8;  // ranks named in the text

std::uint64_t scattered(std::uint64_t key) { return (key * 0x9e3779b97f4a7c15ULL) >> 20; }

}  // namespace

MailboxReplay::MailboxReplay(int ranks, int capacity, MessageOrder order)
    : ranks_(static_cast<std::uint64_t>(ranks)),
      capacity_(static_cast<std::uint32_t>(std::max(1, capacity))),
      order_(order),
      programs_(static_cast<std::size_t>(ranks)) {}

MailboxReplay::MailboxReplay(const RotationSymmetric& all, int capacity, MessageOrder order)
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
  // Each entry was moved to the begin of the next sub-round.
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
    // All ranks wait as rank 0 does, rotated.
    return rotation_->rotated(r, action.is_send ? mailbox.to : rotation_->back(mailbox.to));
  };
  const auto stuck = std::find_if(busy_.begin(), busy_.end(), waits);
  if (stuck == busy_.end()) return std::nullopt;

  // The rank that a waiting rank waits for is waiting too: after as many steps as there are ranks
  // the walk is on the circle.
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
