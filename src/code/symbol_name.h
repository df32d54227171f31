// Names of functions as people write them: of C++ and Rust, short enough to be read.
#ifndef HANGSCOPE_CODE_SYMBOL_NAME_H
#define HANGSCOPE_CODE_SYMBOL_NAME_H

#include <string>
#include <string_view>

namespace hangscope {

// Of a name in a symbol table or in debug information: "_ZZ4mainENKUlvE_clEv" -> "main::<lambda>".
// Without a library's version ("read@@GLIBC_2.2.5") and without what compilers append to their
// copies (".isra.0", ".cold"); of a function without the type that it returns. Template arguments
// that make it long are "...", the innermost first. Whatever is no such name stays as it is.
std::string ReadableName(std::string_view name);

}  // namespace hangscope

#endif
