// A stream over a descriptor that tells why it could not be written: what is printed and goes
// nowhere is no success.
#pragma once

#include <ostream>
#include <stdexcept>
#include <streambuf>
#include <string>
#include <vector>

namespace rankine::tools {

// "standard output cannot be written: No space left on device"
struct OutputError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Collects what is printed and writes it when it is flushed or full. Where that fails, what was
// collected is dropped and OutputError thrown, which a stream lets through whose exceptions() have
// badbit. Not flushed when it is destroyed: by then nobody could be told. Not thread-safe.
class DescriptorBuffer : public std::streambuf {
 public:
  // The descriptor stays the caller's. `name` is for errors: "standard output".
  DescriptorBuffer(int descriptor, std::string name);

 protected:
  int_type overflow(int_type c) override;
  int sync() override;

 private:
  void write_out();

  const int descriptor_;
  const std::string name_;
  std::vector<char> collected_;
};

}  // namespace rankine::tools
