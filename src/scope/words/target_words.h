// Words of the program's own that it wants shown beside what its cores say, or dumped
// (target/show.h): which there are, and what stands in them.
#ifndef HANGSCOPE_SCOPE_WORDS_TARGET_WORDS_H
#define HANGSCOPE_SCOPE_WORDS_TARGET_WORDS_H

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scope/scope_catalog.h"
#include "scope/scope_view.h"
#include "scope/watch_text.h"

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

struct WordValue {
  size_t word = 0;                // of the words, which
  uint32_t index = 0;             // of a core or node
  std::optional<uint64_t> value;  // nothing: it cannot be read
  std::string text;               // by the format; or why it cannot be read
};

// Those of a catalog, in its order; what is no word that can be understood is left out.
std::vector<TargetWord> TargetWords(const ScopeCatalog& catalog);

// Each of the words for all, of the first `cores` cores and of the first `nodes` nodes. Reads the
// target.
std::vector<WordValue> ReadWords(const ScopeView& view, const ScopeCatalog& catalog,
                                 const std::vector<TargetWord>& words, uint32_t cores,
                                 uint32_t nodes);

// A line for all, and one for each node and each core of `values` that has any, in this order:
// "core 3 writer (0,0)  cb0 received 12, cb0 acked 11".
std::vector<std::string> WordLines(const std::vector<TargetWord>& words,
                                   const std::vector<WordValue>& values, const WatchScene& scene);

}  // namespace hangscope

#endif
