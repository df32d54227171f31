// Which delays a core has, and which ran, as people read it: set, watch and its log say the same.
#ifndef HANGSCOPE_SCOPE_DELAY_TEXT_H
#define HANGSCOPE_SCOPE_DELAY_TEXT_H

#include <array>
#include <string>

#include "model/watch.h"

namespace hangscope {

inline constexpr std::array<const char*, 3> kDelayKinds = {"reads", "writes", "atomics"};

// "reads 100, writes up to 500, seed 7"; empty: none is set.
std::string DelaysSetText(const CoreDetail& detail);
// "3 reads, 120 writes"; empty: none ran.
std::string DelaysDoneText(const std::array<uint32_t, 3>& done);
// What became of a core's delays: "120 writes delayed (writes up to 500, seed 7)"; empty: none is
// set, and none ran.
std::string DelaysText(const CoreDetail& detail);

}  // namespace hangscope

#endif
