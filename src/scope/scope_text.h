// A scope as people and programs read it: hangscope show.
#ifndef HANGSCOPE_SCOPE_SCOPE_TEXT_H
#define HANGSCOPE_SCOPE_SCOPE_TEXT_H

#include <string>
#include <vector>

#include "model/scope.h"
#include "scope/scope_catalog.h"
#include "scope/scope_reader.h"

namespace hangscope {

// "12.000345", or "4711 ticks" where no frequency is known; "~" before what may be wrong.
std::string ScopeTimeText(uint64_t time, bool ambiguous, const ScopeLayout& layout);

// One line each, with its newline.
std::string ScopeCoreText(const ScopeCore& core);
std::string TaskWaitText(const TaskWait& task, const ScopeLayout& layout,
                         const ScopeCatalog& catalog);
std::string ScopeEventText(const ScopeEvent& event, const ScopeLayout& layout,
                           const ScopeCatalog& catalog);
std::string EventLossText(const EventLoss& loss);
std::string CorruptionText(const Corruption& corruption);

// Of a corruption, as it is, the part of the target: "core 3"; and what is wrong in it: "state 77:
// 0 to 2 are states".
std::string CorruptPart(const Corruption& corruption);
std::string CorruptField(const Corruption& corruption);

// The same as JSON Lines (docs/json.md).
std::string ScopeJson(const ScopeLayout& layout);
std::string ScopeCoreJson(const ScopeCore& core);
// That what follows is of the memory of a device that has this name; or, `unread`, why nothing is.
std::string MemoryJson(const std::string& name, const std::string& unread);
std::string TaskWaitJson(const TaskWait& task, const ScopeLayout& layout,
                         const ScopeCatalog& catalog);
std::string ScopeEventJson(const ScopeEvent& event, const ScopeLayout& layout,
                           const ScopeCatalog& catalog);
std::string EventLossJson(const EventLoss& loss);
std::string CorruptionJson(const Corruption& corruption);

}  // namespace hangscope

#endif
