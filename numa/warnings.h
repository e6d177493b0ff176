// Warnings of a library that owns no logger: one line per cause, once per process.
#pragma once

#include <functional>
#include <string_view>

namespace rankine {

// Receives each warning once. `key` names the cause ("numa.mbind"), `text` is one line without its
// end. Called under the lock of this file: it is never called twice at a time, and must not call
// warn_once itself. What it throws is dropped.
using WarningSink = std::function<void(std::string_view key, std::string_view text)>;

// Passes `text` to the sink the first time that `key` is seen in this process; later calls do
// nothing. Line breaks in `text` become spaces. Thread-safe. Never throws: when memory is short the
// warning is dropped.
void warn_once(std::string_view key, std::string_view text) noexcept;

// Replaces the sink and returns the one before; an empty sink brings back the default, which writes
// "rankine: warning: <text>\n" to stderr in one write. Thread-safe; once this has returned, the old
// sink is not called any more.
WarningSink set_warning_sink(WarningSink sink);

// Forgets which keys have been seen, so that the next warning of each is heard again. For tests.
void forget_warnings() noexcept;

}  // namespace rankine
