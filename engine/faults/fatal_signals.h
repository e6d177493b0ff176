// Signals that end a process which does nothing about them, and one that comes at any time.
#pragma once

#include <span>

namespace rankine::faults {

// All of them: of the real-time ones, which are alike, the first and the last.
std::span<const int> fatal_signals();

// The calling process gets that signal after that time, wherever it is then, and does nothing about
// it. False: no timer.
bool send_me_soon(int signal, int delay_us);

}  // namespace rankine::faults
