// Names that rustc gives to functions, as Rust writes them: its older scheme, which looks like
// C++'s with a hash behind it, and the newer one (v0, RFC 2603).
#ifndef HANGSCOPE_CODE_RUST_NAMES_H
#define HANGSCOPE_CODE_RUST_NAMES_H

#include <optional>
#include <string>
#include <string_view>

namespace hangscope {

// "_RNCNvCs1234_4bank4main0" -> "bank::main::{closure#0}". Nothing: rustc made no such name. What
// a linker or LLVM appended (".llvm.17") is left out. The result has a few thousand bytes at most.
std::optional<std::string> DemangleRust(std::string_view name);

// Whether rustc made `name` for a function of Rust's own libraries, or of a crate that locks and
// waits for others: it is how a program waits, not where.
bool IsOfRustLibraries(std::string_view name);

}  // namespace hangscope

#endif
