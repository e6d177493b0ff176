// Declares the course's files, and inserts the engine's output into the text of a lesson.
//
// Lessons are Markdown. A block that begins with ```console contains only commands, one per line,
// each as "$ rankine ...". with_answers() writes each command's output below it, with an empty line
// between two commands, so no figure of the course is typed. A command may end with "| head -N". A
// block that begins with ```sh is for the reader's shell and stays unchanged.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/status.h"
#include "engine/cli/text.h"

namespace rankine::tools {

// The lessons, tasks, answers and examples, each with its path in the folder.
std::vector<EmbeddedFile> course_files();
// The files of course/, for course_files(): tasks.txt and answers.txt hold the files of a folder
// each, and two examples are those of engine/cli. embed.py generates this function.
std::vector<EmbeddedFile> course_texts();

// Runs a command, given as words without the program's name: returns its output, or its errors.
using AnswerCommand = std::function<Result<std::string>(const std::vector<std::string>& words)>;

// The text with the output of all its commands. Errors: a command has another form, and errors of
// `answer`; both name the command.
Result<std::string> with_answers(std::string_view markdown, const AnswerCommand& answer);

// Splits a command into words like a shell in which only '...' is special.
std::vector<std::string> command_words(std::string_view command);

}  // namespace rankine::tools
