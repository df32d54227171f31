// Live recorders as a table for people.
#ifndef HANGSCOPE_CONTROL_RECORDER_TABLE_H
#define HANGSCOPE_CONTROL_RECORDER_TABLE_H

#include <string>
#include <vector>

#include "model/recorder_status.h"

namespace hangscope {

// A heading and one line each, in the given order. Lines are cut at `columns`,
// 0: never.
std::string RecorderTable(const std::vector<RecorderStatus>& recorders, size_t columns);

}  // namespace hangscope

#endif
