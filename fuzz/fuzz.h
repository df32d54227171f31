// What every fuzzer needs: its entry point's type, the list of them, a check that
// holds in any build, and random choices taken from the input.
#ifndef HANGSCOPE_FUZZ_FUZZ_H
#define HANGSCOPE_FUZZ_FUZZ_H

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string_view>

namespace hangscope::fuzz {

// One input, any bytes. Deterministic: the same input does the same again.
using Entry = void (*)(std::string_view input);

struct Fuzzer {
  std::string_view name;
  Entry entry;
};
std::span<const Fuzzer> Fuzzers();
// Null: there is none of this name.
Entry FindFuzzer(std::string_view name);

[[noreturn]] inline void Fail(const char* what, const char* file, int line) {
  fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, what);
  abort();
}
#define FUZZ_REQUIRE(condition) \
  ((condition) ? void() : ::hangscope::fuzz::Fail(#condition, __FILE__, __LINE__))

// The input as a sequence of choices; behind its end they are all zero.
class Choices {
 public:
  explicit Choices(std::string_view bytes) : rest_(bytes) {}

  bool empty() const { return rest_.empty(); }
  std::string_view rest() const { return rest_; }
  template <typename Number>
  Number Take() {
    Number number{};
    const std::string_view bytes = ReadBytes(sizeof number);
    std::memcpy(&number, bytes.data(), bytes.size());
    return number;
  }
  // 0 ... most
  uint32_t UpTo(uint8_t most) { return Take<uint8_t>() % (uint32_t{most} + 1); }
  std::string_view ReadBytes(size_t most) {
    const std::string_view bytes = rest_.substr(0, most);
    rest_.remove_prefix(bytes.size());
    return bytes;
  }
  // Up to the first `end`, which is taken, too.
  std::string_view ScanUntil(char end) {
    const std::string_view bytes = rest_.substr(0, rest_.find(end));
    rest_.remove_prefix(bytes.size() < rest_.size() ? bytes.size() + 1 : bytes.size());
    return bytes;
  }

 private:
  std::string_view rest_;
};

// A view of a part of `whole`, or of nothing.
inline bool PointsInto(std::string_view whole, std::string_view part) {
  return part.empty() ||
         (part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size());
}

}  // namespace hangscope::fuzz

#endif
