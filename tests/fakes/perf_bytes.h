// perf's records by hand, field by field.
#ifndef HANGSCOPE_TESTS_FAKES_PERF_BYTES_H
#define HANGSCOPE_TESTS_FAKES_PERF_BYTES_H

#include <linux/perf_event.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace hangscope {

// Whether numbers are written as on a machine of the other byte order, from now on.
inline bool& PerfBytesTurned() {
  static bool turned = false;
  return turned;
}

// Numbers of any width, in this machine's byte order, one behind the other.
template <typename... Numbers>
std::string PerfBytes(Numbers... numbers) {
  std::string bytes;
  const auto add = [&bytes](auto number) {
    std::string one(reinterpret_cast<const char*>(&number), sizeof number);
    if (PerfBytesTurned()) std::reverse(one.begin(), one.end());
    bytes += one;
  };
  (add(numbers), ...);
  return bytes;
}

inline std::string PerfWord(uint64_t word) { return PerfBytes(word); }
// A process and a thread.
inline std::string PerfIds(int pid, int tid) { return PerfBytes(pid, tid); }

// With a NUL at least, and as many as fill the last word.
inline std::string PerfText(std::string_view text) {
  std::string bytes(text);
  do bytes += '\0';
  while (bytes.size() % 8 != 0);
  return bytes;
}

inline std::string PerfRecordOf(uint32_t type, const std::string& body, uint16_t misc = 0) {
  return PerfBytes(type, misc, static_cast<uint16_t>(8 + body.size())) + body;
}

}  // namespace hangscope

#endif
