// Instructions, and loops made of them.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "code/riscv.h"
#include "fuzz.h"
#include "stream/loop_body.h"
#include "stream/program_code.h"

namespace hangscope::fuzz {
namespace {

constexpr size_t kMostSteps = 16;

// Code at an address, without names.
class CodeAt final : public CodeSource {
 public:
  CodeAt(uint64_t begin, std::string_view bytes, int xlen)
      : begin_(begin), bytes_(bytes), xlen_(xlen) {}

  std::optional<uint32_t> InsnAt(uint64_t pc) override {
    Choices at(bytes_.substr(std::min<uint64_t>(pc - begin_, bytes_.size())));
    const auto low = at.rest().size() >= 2 ? at.Take<uint16_t>() : uint16_t{0};
    if ((low & 3) != 3) return low == 0 ? std::nullopt : std::optional<uint32_t>(low);
    if (at.rest().size() < 2) return std::nullopt;
    return low | uint32_t{at.Take<uint16_t>()} << 16;
  }
  Location Locate(uint64_t) override { return {}; }
  bool InMemory(uint64_t address) override { return address - begin_ < bytes_.size(); }
  int xlen() const override { return xlen_; }

 private:
  uint64_t begin_;
  std::string_view bytes_;
  int xlen_;
};

void CheckInsns(CodeAt* code, uint64_t begin, size_t count) {
  for (size_t at = 0; at < count; at += 2) {
    const auto bits = code->InsnAt(begin + at);
    if (!bits) continue;
    const riscv::Insn insn = riscv::Decode(*bits, code->xlen());
    FUZZ_REQUIRE(insn.rd < 64 && insn.rs1 < 64 && insn.rs2 < 64 && insn.rs3 < 64);
    FUZZ_REQUIRE(insn.length == ((*bits & 3) == 3 ? 4 : 2));
    FUZZ_REQUIRE(!insn.ends_run() || insn.ends_block());
  }
}

std::vector<Step> SomeSteps(Choices* choices, uint64_t begin, size_t code_bytes) {
  std::vector<Step> steps(choices->UpTo(kMostSteps));
  for (Step& step : steps) {
    const auto choice = choices->Take<uint16_t>();
    step.pc = begin + (choice >> 1) % (code_bytes + 2) / 2 * 2;
    step.starts_block = (choice & 1) != 0;
  }
  return steps;
}

void CheckBody(const std::vector<Step>& round, const std::vector<Step>& lead_in, CodeAt* code) {
  const LoopBody body = ExamineLoopBody(round, *code, lead_in);
  const LoopBody again = ExamineLoopBody(round, *code, lead_in);
  FUZZ_REQUIRE(body.kind == again.kind && body.polls == again.polls);
  FUZZ_REQUIRE(!round.empty() || body.kind == LoopBody::Kind::kUnknown);
  const bool narrow = code->xlen() == 32;
  for (const uint64_t address : body.polls) FUZZ_REQUIRE(!narrow || address >> 32 == 0);
  for (const uint64_t address : StoredAddresses(round, *code))
    FUZZ_REQUIRE(!narrow || address >> 32 == 0);
}

}  // namespace

// One byte chooses, 8 say where the code is, then come the steps of the lead-in
// and of the round; the rest is the code.
void FuzzCode(std::string_view input) {
  Choices choices(input);
  const int xlen = choices.UpTo(1) == 0 ? 32 : 64;
  const auto begin = choices.Take<uint64_t>() & (xlen == 32 ? 0xfffffffe : ~uint64_t{1});
  const size_t code_bytes = choices.rest().size();
  const std::vector<Step> lead_in = SomeSteps(&choices, begin, code_bytes);
  const std::vector<Step> round = SomeSteps(&choices, begin, code_bytes);
  CodeAt code(begin, choices.rest(), xlen);
  CheckInsns(&code, begin, choices.rest().size());
  CheckBody(round, lead_in, &code);
  ProgramCode program(&code);
  for (const Step& step : round) {
    const StepEnd end = program.EndOf(step);
    (void)end.MayLeadTo(begin);
  }
}

}  // namespace hangscope::fuzz
