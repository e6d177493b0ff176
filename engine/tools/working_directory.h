// Where the user stands, and so where paths that people write begin: under 'bazel run' a program
// starts somewhere else.
#pragma once

namespace rankine::tools {

// Goes to where RANKINE_WITH_WORKING_DIRECTORY says (third_party/bazel sets it), else
// BUILD_WORKING_DIRECTORY (Bazel does), if this process stands in a program's runfiles; else, and
// where that directory is not to be had, stays. Both variables are inherited by whatever a program
// under 'bazel run' starts, which may have gone elsewhere: hence the condition.
void stand_where_the_user_stands();

}  // namespace rankine::tools
