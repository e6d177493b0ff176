// The course as it lies in the sources, and how its text gets the engine's figures.
//
// Lessons are Markdown. A block that begins with ```console holds commands, one a line, each as
// "$ rankine ...", and nothing else: what each prints goes below it when the lesson is written, and
// an empty line between two, so no figure of the course is typed. A command may end with "| head
// -N". A block that begins with
// ```sh is for the reader's shell and stays as it is.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/status.h"
#include "engine/cli/text.h"

namespace rankine::tools {

// The lessons, tasks, answers and examples, by their places in the folder.
std::vector<EmbeddedFile> course_files();
// The same without the two examples of engine/cli; embed.py writes the function.
std::vector<EmbeddedFile> course_texts();

// A command's words without the program's name: what it prints, and its errors.
using AnswerCommand = std::function<Result<std::string>(const std::vector<std::string>& words)>;

// The text with the answers of all its commands. Errors: a command that is written otherwise, and
// those of `answer`; both name the command.
Result<std::string> with_answers(std::string_view markdown, const AnswerCommand& answer);

// As a shell takes it apart where nothing but '...' is special.
std::vector<std::string> command_words(std::string_view command);

}  // namespace rankine::tools
