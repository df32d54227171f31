// What a stream printed last, without the lines of an instruction trace.
#ifndef HANGSCOPE_STREAM_LAST_OUTPUT_H
#define HANGSCOPE_STREAM_LAST_OUTPUT_H

#include <functional>
#include <string>
#include <vector>

#include "base/file_system.h"
#include "model/verdict.h"
#include "ring/block_reader.h"

namespace hangscope {

constexpr size_t kMostLastLines = 5;
constexpr size_t kLongestLastLine = 200;  // bytes of it; what is longer ends with "..."

// The newest lines that say something of the ring `prefix`, whose stream is called `name`. Reads
// 256 KiB of it; of a trace, in which they are rare, 32 MiB at most, and no further once `stop`
// says so. Lines before a loss are left out: what is missing behind them may be newer. Of a ring
// that cannot be read there are none.
LastOutput ReadLastOutput(FileSystem& files, const std::string& prefix, const std::string& name,
                          const std::function<bool()>& stop);

// The same of what is before `before`, an offset of the stream at which a line begins.
std::vector<std::string> ReadLinesBefore(BlockReader& reader, uint64_t before);

}  // namespace hangscope

#endif
