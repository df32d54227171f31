// A catalog, damaged in any way, and records that read by it.
#include <string>

#include "base/utf8.h"
#include "fuzz.h"
#include "scope/scope_catalog.h"

namespace hangscope::fuzz {

// The first byte: how many parameters a record has.
void FuzzCatalog(std::string_view input) {
  if (input.empty()) return;
  ScopeCatalog catalog;
  const Status status = catalog.Add(input.substr(1));
  FUZZ_REQUIRE(status.ok() || !status.message().empty());
  ScopeEvent event;
  event.parameter_count =
      static_cast<uint8_t>(input[0]) % uint32_t{ScopeEvent::kMostParameters + 1};
  for (size_t i = 0; i < event.parameters.size(); ++i)
    event.parameters[i] = 0x80ffff41u + static_cast<uint32_t>(i) * 0x01010101u;
  for (uint32_t id = 0; id < 2048; ++id) {
    event.id = id;
    for (const uint32_t word_bytes : {4u, 8u}) {
      const std::string text = catalog.Format(event, word_bytes);
      FUZZ_REQUIRE(text == Printable(text));
      (void)catalog.Fields(event, word_bytes);
    }
    if (catalog.Find(id) == nullptr) FUZZ_REQUIRE(catalog.Name(id).starts_with("event "));
  }
}

}  // namespace hangscope::fuzz
