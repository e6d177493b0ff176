#include "engine/run/fingerprint.h"

namespace rankine {

Fingerprint make_fingerprint(Collective collective, DataType type, ReduceOp op, bool in_place,
                             Transport transport, int root, int algorithm,
                             std::uint64_t count_hash) {
  const auto put = [](auto value, int shift) { return static_cast<std::uint64_t>(value) << shift; };
  const std::uint64_t mixed = (count_hash * kSplitMixStep) >> 44;  // the best mixed bits
  return {put(collective, 0) | put(type, 4) | put(op, 8) | put(in_place, 12) | put(transport, 13) |
          put(root & 0xfff, 16) | put(algorithm & 0xff, 28) | put(mixed, 44)};
}

std::string describe(Fingerprint print) {
  std::string text(name_of(print.collective()));
  text += ' ';
  text += name_of(print.type());
  if (reduces(print.collective())) {
    text += ' ';
    text += name_of(print.op());
  }
  return text;
}

std::string difference(const Called& one, const Called& other) {
  const Fingerprint a = one.print, b = other.print;
  const auto say = [&](const std::string& field, const std::string& x, const std::string& y) {
    return field + " is " + x + " at rank " + std::to_string(one.rank) + " and " + y + " at rank " +
           std::to_string(other.rank);
  };
  const auto yes_or_no = [](bool yes) { return std::string(yes ? "yes" : "no"); };
  if (a.collective() != b.collective()) {
    return say("collective", std::string(name_of(a.collective())),
               std::string(name_of(b.collective())));
  }
  if (a.call() != b.call()) {
    return say("number of the call (modulo 256)", std::to_string(a.call()),
               std::to_string(b.call()));
  }
  if (one.count != other.count) {
    return say("count", std::to_string(one.count), std::to_string(other.count));
  }
  if (a.type() != b.type()) {
    return say("type", std::string(name_of(a.type())), std::string(name_of(b.type())));
  }
  if (a.op() != b.op()) {
    return say("operation", std::string(name_of(a.op())), std::string(name_of(b.op())));
  }
  if (a.root() != b.root()) {
    return say("root", std::to_string(a.root()), std::to_string(b.root()));
  }
  if (a.in_place() != b.in_place()) {
    return say("in place", yes_or_no(a.in_place()), yes_or_no(b.in_place()));
  }
  if (a.algorithm() != b.algorithm()) {
    const auto name = [](const Called& call) {
      return std::string(call.algorithm != nullptr ? call.algorithm : "?");
    };
    return say("algorithm", name(one), name(other));
  }
  if (a.transport() != b.transport()) {
    return say("transport", std::string(name_of(a.transport())),
               std::string(name_of(b.transport())));
  }
  return say(
      "a count, a parameter, the order, the rows of an epilogue or the tag (tensors in buckets: a "
      "shape; split: an option)",
      "one", "another");
}

}  // namespace rankine
