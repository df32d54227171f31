// One line of an instruction trace, as simulators print it.
//
// Recognised (samples are in docs/traces.md and tests/data):
//   QEMU -d exec[,nochain]     Trace 0: 0x7efc37e00ac0 [00000000/80000032/00109003/ff000200] symbol
//                              Stopped execution of TB chain before 0x7efc37e00ac0 [80000032]
//                              symbol
//   QEMU -d ...,cpu             x4/tp    00000000 x5/t0    80000000 ...   (after the Trace line)
//   QEMU -d in_asm             0x00001000:  00000297          auipc   t0,0x0
//   Spike -l                   core   0: 0x80000036 (0x00028023) sb      zero, 0(t0)
//   Spike --log-commits        core   0: 3 0x80000036 (0x00028023) mem 0x8000019c 0x00
//   gvsoc --trace=insn         400000: 4: [/soc/host/insn] func:line M 00001000 auipc t0, 0x0
//                              t0=...
//   gvsoc, short               20300000ps 203 M 0000000080000036 0000000000028023 sb x0,0(x5) ...
//
// Columns grow and colours come and go within one run, so lines are read by
// tokens. A line is never trusted: whatever does not fit is kOther.
#ifndef HANGSCOPE_STREAM_TRACE_LINE_H
#define HANGSCOPE_STREAM_TRACE_LINE_H

#include <cstdint>
#include <optional>
#include <string_view>

namespace hangscope {

enum class TraceFormat : uint8_t { kNone, kQemuExec, kQemuInAsm, kSpike, kGvsoc };

std::string_view TraceFormatName(TraceFormat format);

struct TraceLine {
  enum class Kind : uint8_t {
    kOther,   // not of a trace: a boot log, a warning, half a line
    kStep,    // a core is at `pc`
    kCommit,  // the instruction at `pc` has taken effect; a step of its own if none was announced
    kState,   // machine state of the step announced last; `values` identifies it
    kHart,    // the following state belongs to hart `core`
    kCancel,  // the step announced at `pc` did not happen after all
    kCode,    // the instruction at `pc` exists; nobody says when it runs
    kDetail,  // part of a trace without a place
  };

  Kind kind = Kind::kOther;
  TraceFormat format = TraceFormat::kNone;
  bool has_values = false;
  bool starts_block = false;    // kStep: `pc` begins a translation block, not one instruction
  bool wide = false;            // addresses are printed with 64 bits
  bool begins_listing = false;  // kDetail: of a translated block
  bool riscv_listing = false;   // kDetail: and it is RISC-V code
  bool chained = false;         // kDetail: QEMU links blocks, so not every step is printed
  uint32_t core = 0;            // its number; where the trace gives a path instead: core_path
  uint64_t pc = 0;
  uint64_t values = 0;  // hash of registers and addresses, if has_values
  uint32_t bits = 0;    // the instruction word
  bool has_bits = false;
  std::optional<uint64_t> address;  // of its memory access
  std::optional<uint64_t> cycle;    // of simulated time, where the trace has it
  std::string_view core_path;       // "/soc/host", without "/insn"; points into the line
  std::string_view mnemonic;
  std::string_view function;  // as the trace names it; may be empty
  uint32_t source_line = 0;   // of `function`, 0 if unknown
};

// `line` has no newline.
TraceLine ParseTraceLine(std::string_view line);

}  // namespace hangscope

#endif
