// Messages of a call between ranks that reach the same memory: a word of mail brings the data, or
// where its pieces lie.
#include <cstddef>
#include <cstring>
#include <string>

#include "engine/api/mpi/waits.h"
#include "engine/base/cache_line.h"
#include "engine/run/fingerprint.h"

namespace rankine::mpi {

void Member::State::lay_out_pieces(Ready& ready) {
  std::size_t addresses = 0;
  for (const Parcel& parcel : ready.messages.parcels) {
    ready.first_address.push_back(addresses);
    if (parcel.way != Way::wire) addresses += parcel.pieces.size();
  }
  ready.addresses.resize(addresses);
  ready.pieces.resize(ready.messages.parcels.size());
  ready.number.resize(ready.messages.parcels.size());
  ready.lists = whole_lines(ready.messages.scratch_bytes);
}

// The word has the data, or where they are, or where that stands of each piece.
Status Member::State::post_pieces(Ready& ready, int parcel, const CallWork& work) {
  const auto index = static_cast<std::size_t>(parcel);
  const Parcel& of = ready.messages.parcels[index];
  const int peer = on_mail(of.peer);
  std::byte* word = nullptr;
  Status status = wait_until(
      [&](bool& done) {
        done = (word = mail_->room(peer)) != nullptr;
        return Status();
      },
      [&] { return late(ready, parcel); });
  if (!status.ok()) return status;
  const auto address = [&work](const Piece& piece) {
    return work.memory[static_cast<std::size_t>(piece.memory)] + piece.offset;
  };
  if (of.with_the_word()) {
    for (const Piece& piece : of.pieces) {
      std::memcpy(word, address(piece), piece.bytes);
      word += piece.bytes;
    }
  } else {
    std::byte* where = address(of.pieces.front());
    if (of.pieces.size() > 1) {
      where = work.memory[static_cast<std::size_t>(Memory::scratch)] + ready.lists +
              ready.first_address[index] * sizeof(std::byte*);
      auto* const list = reinterpret_cast<const std::byte**>(where);
      for (std::size_t i = 0; i < of.pieces.size(); ++i) list[i] = address(of.pieces[i]);
    }
    std::memcpy(word, &where, sizeof(where));
  }
  ready.number[index] = mail_->post(peer, mark_ + static_cast<std::uint32_t>(of.round));
  return {};
}

Status Member::State::test_memory(Ready& ready, int parcel, bool& done) noexcept {
  const auto index = static_cast<std::size_t>(parcel);
  const Parcel& of = ready.messages.parcels[index];
  const int peer = on_mail(of.peer);
  if (of.sends) {
    done = of.with_the_word() || mail_->is_used(peer, ready.number[index]);
    return {};
  }
  const NodeMail::Message message = mail_->next(peer);
  if (message.data == nullptr) return {};
  if (message.tag != mark_ + static_cast<std::uint32_t>(of.round)) {
    return make_error(Code::mismatch, [&] {
      return "rank " + std::to_string(of.peer) + " has sent a message of another call than " +
             describe(ready.prepared->fingerprint) + " by " + ready.prepared->algorithm +
             ", in which rank " + std::to_string(rank) + " waits for it in round " +
             std::to_string(of.round - 1);
    });
  }
  take_pieces(ready, parcel, message.data);
  done = true;
  return {};
}

void Member::State::take_pieces(Ready& ready, int parcel, const std::byte* data) noexcept {
  const auto index = static_cast<std::size_t>(parcel);
  const Parcel& of = ready.messages.parcels[index];
  const std::byte** const own = ready.addresses.data() + ready.first_address[index];
  ready.pieces[index] = own;
  if (of.with_the_word()) {
    for (std::size_t i = 0; i < of.pieces.size(); ++i) {
      own[i] = data;
      data += of.pieces[i].bytes;
    }
    return;
  }
  const std::byte* where = nullptr;
  std::memcpy(&where, data, sizeof(where));
  if (of.pieces.size() > 1) {
    ready.pieces[index] = reinterpret_cast<const std::byte* const*>(where);
  } else {
    own[0] = where;
  }
}

}  // namespace rankine::mpi
