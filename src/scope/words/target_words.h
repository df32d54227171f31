// Words of the program's own that it wants shown beside what its cores say, or dumped
// (target/show.h): which there are, and what stands in them.
#ifndef HANGSCOPE_SCOPE_WORDS_TARGET_WORDS_H
#define HANGSCOPE_SCOPE_WORDS_TARGET_WORDS_H

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "code/code_source.h"
#include "model/finding.h"
#include "scope/scope_catalog.h"
#include "scope/scope_view.h"

namespace hangscope {

struct TargetWord {
  enum class Per { kAll, kCore, kNode };

  std::string name;
  EventField field;     // its type
  bool is_hex = false;  // shown in hexadecimal
  Per per = Per::kAll;
  bool is_shown = false;  // or on a dump only
  uint32_t address = 0;   // the low half of the first's
  uint32_t stride = 0;    // bytes from one to the next
};

// Those of a catalog, in its order; what is no word that can be understood is left out.
std::vector<TargetWord> TargetWords(const ScopeCatalog& catalog);

// Which are wanted, and what their owners are called.
struct WordChoice {
  bool dumped = false;  // those that are for dumps only, too
  uint32_t cores = 0;   // there are, numbered from 0
  uint32_t nodes = 0;
  // Empty: nothing of this owner is wanted. The index of kAll is 0.
  std::function<std::string(TargetWord::Per, uint32_t index)> owner;
  // Its memory is where the scope is, which may be elsewhere than it says; what lies outside of it
  // is where the word says. Null: nobody knows.
  CodeSource* program = nullptr;
};

// The words of `catalog` that are wanted: those of all first, then by node, then by core. Reads the
// target. `symbol`: where the program of the catalog says that the scope is; nothing: the scope's
// own program does.
std::vector<ShownWord> ReadWords(const ScopeView& view, const ScopeCatalog& catalog,
                                 std::optional<uint64_t> symbol, const WordChoice& choice);

// A line for each owner, in the order of `words`: "core 3 writer (0,0)  cb0 received 12, cb0 acked
// 11".
std::vector<std::string> WordLines(const std::vector<ShownWord>& words);

}  // namespace hangscope

#endif
