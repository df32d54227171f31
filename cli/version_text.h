// What `hangscope --version` prints.
#ifndef HANGSCOPE_CLI_VERSION_TEXT_H
#define HANGSCOPE_CLI_VERSION_TEXT_H

#include <string>

namespace hangscope::cli {

// "hangscope 0.1.0\n"; `verbose`: and for each library that a build may be without, whether this
// one is, and what that takes away.
std::string VersionText(bool verbose);

}  // namespace hangscope::cli

#endif
