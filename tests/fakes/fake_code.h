#ifndef HANGSCOPE_TESTS_FAKES_FAKE_CODE_H
#define HANGSCOPE_TESTS_FAKES_FAKE_CODE_H

#include <initializer_list>
#include <map>
#include <string>
#include <vector>

#include "code/code_source.h"

namespace hangscope {

// A program written as instruction words, one function after the other.
class FakeCode final : public CodeSource {
 public:
  // Places `words` (16-bit ones are compressed) at `pc` and returns their places.
  std::vector<uint64_t> Add(uint64_t pc, std::initializer_list<uint32_t> words,
                            const std::string& function = "") {
    std::vector<uint64_t> places;
    const uint64_t begin = pc;
    for (const uint32_t word : words) {
      insns_[pc] = word;
      places.push_back(pc);
      pc += (word & 3) == 3 ? 4 : 2;
    }
    if (!function.empty()) functions_[begin] = function;
    return places;
  }

  std::optional<uint32_t> InsnAt(uint64_t pc) override {
    const auto at = insns_.find(pc);
    if (at == insns_.end()) return std::nullopt;
    return at->second;
  }
  Location Locate(uint64_t pc) override {
    auto at = functions_.upper_bound(pc);
    if (at == functions_.begin()) return {};
    --at;
    return {at->second, at->first, at->second + ".c", static_cast<uint32_t>(pc - at->first + 1)};
  }
  bool InMemory(uint64_t address) override { return address >= 0x1000 && address < 0x100000; }
  int xlen() const override { return register_bits; }

  int register_bits = 32;

 private:
  std::map<uint64_t, uint32_t> insns_;
  std::map<uint64_t, std::string> functions_;
};

}  // namespace hangscope

#endif
