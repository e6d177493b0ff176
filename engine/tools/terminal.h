// How wide a reader's terminal is, and text that keeps to a width.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace rankine::tools {

// Of COLUMNS where that is a whole number from 20, else of the terminal that standard output is,
// else `otherwise`.
int terminal_width(int otherwise);

// Lines of words, none longer than `width` unless a word is, each behind `indent` blanks and ended
// by a line feed.
std::string wrapped(std::string_view text, int width, std::size_t indent);

// Paragraphs, a line each, wrapped(). Those that begin with a blank are to be copied and stay as
// they are, but for what stands in a second column, two blanks or more behind the first: that is
// wrapped.
std::string filled(std::string_view paragraphs, int width);

}  // namespace rankine::tools
