// A window over many rings as JSON: the line `window` of why perf.data, and `window` in
// manifest.json; the schema is in docs/json.md.
#ifndef HANGSCOPE_WINDOW_WINDOW_JSON_H
#define HANGSCOPE_WINDOW_WINDOW_JSON_H

#include <nlohmann/json_fwd.hpp>

#include "model/window.h"

namespace hangscope {

nlohmann::ordered_json RingNameObject(const RingName& ring);
// Everything, unbounded: programs read it.
nlohmann::ordered_json WindowObject(const Window& window);

}  // namespace hangscope

#endif
