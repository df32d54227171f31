#include "stream/step_reader.h"

#include <algorithm>

#include "base/hash.h"

namespace hangscope {

uint32_t CoreNames::Add(std::string name, std::optional<uint32_t> hart) {
  const auto number = static_cast<uint32_t>(names_.size());
  by_name_.emplace(name, number);
  names_.push_back(std::move(name));
  harts_.push_back(hart);
  return number;
}

uint32_t CoreNames::Number(const TraceLine& line) {
  if (line.core_path.empty()) {
    const auto name = [&] { return "hart " + std::to_string(line.core); };
    if (line.core < by_number_.size()) {
      uint32_t& known = by_number_[line.core];
      if (known == 0) known = Add(name(), line.core) + 1;
      return known - 1;
    }
    const auto at = by_name_.find(name());
    return at != by_name_.end() ? at->second : Add(name(), line.core);
  }
  return Number(line.core_path);
}

uint32_t CoreNames::Number(std::string_view name) {
  const auto at = by_name_.find(name);
  return at != by_name_.end() ? at->second : Add(std::string(name), {});
}

StepReader::StepReader(CoreNames* cores, Learn learn, Sink sink)
    : cores_(cores), learn_(learn), sink_(std::move(sink)) {}

void StepReader::Flush() {
  for (uint32_t core = 0; core < pending_.size(); ++core) {
    // A dump that the end may have cut tells nothing.
    if (pending_[core].from_dump) pending_[core].step.has_values = false;
    HandOut(core);
  }
  DropPartial();
}

StepReader::Pending& StepReader::PendingOf(uint32_t core) {
  if (core >= pending_.size()) pending_.resize(core + 1);
  return pending_[core];
}

void StepReader::HandOut(uint32_t core) {
  Pending& pending = PendingOf(core);
  if (!pending.waiting) return;
  pending.waiting = false;
  sink_(core, pending.step);
}

void StepReader::HandleLine(std::string_view text, uint64_t offset) {
  ++lines_;
  const TraceLine line = ParseTraceLine(text);
  using Kind = TraceLine::Kind;
  if (line.kind == Kind::kOther || line.core >= kMostCores) return;
  if (!line.core_path.empty() && cores_->size() >= kMostCores) return;
  // The state of a dump belongs to a trace only where a step announced it.
  if (line.format == TraceFormat::kQemuExec && line.kind != Kind::kStep && !line.chained &&
      format_ != TraceFormat::kQemuExec) {
    return;
  }
  ++trace_lines_;
  if (line.chained) chained_ = true;
  if (line.wide) wide_ = true;
  const bool after_head = std::exchange(block_head_, line.kind == Kind::kDetail);
  switch (line.kind) {
    case Kind::kStep:
      Begin(line, offset);
      break;
    case Kind::kCommit: {
      const uint32_t core = cores_->Number(line);
      const Pending& pending = PendingOf(core);
      if (!pending.waiting || pending.committed || pending.step.pc != line.pc) Begin(line, offset);
      Pending& mine = PendingOf(core);
      mine.step.values = line.values;
      mine.step.has_values = true;
      mine.committed = true;
      if (learn_ == Learn::kAll) NoteCode(line);
      break;
    }
    case Kind::kState: {
      Pending& pending = PendingOf(state_core_);
      if (!pending.waiting) break;
      pending.step.values = HashWord(line.values, pending.step.values);
      pending.step.has_values = true;
      pending.from_dump = true;
      break;
    }
    case Kind::kHart:
      state_core_ = cores_->Number(line);
      break;
    case Kind::kCancel:
      Cancel(line.pc);
      break;
    case Kind::kCode:
      ++code_lines_;
      if (after_head) translated_pc_ = line.pc;
      if (riscv_listing_) NoteCode(line);
      break;
    case Kind::kDetail:
      if (line.begins_listing) riscv_listing_ = false;
      if (line.riscv_listing) riscv_listing_ = true;
      break;
    case Kind::kOther:
      break;
  }
}

void StepReader::Begin(const TraceLine& line, uint64_t offset) {
  const uint32_t core = cores_->Number(line);
  HandOut(core);
  Pending& pending = PendingOf(core);
  pending.step = {line.pc,           offset, line.values, line.has_values,
                  line.starts_block, false,  line.cycle};
  pending.waiting = true;
  pending.committed = pending.from_dump = false;
  state_core_ = core;
  format_ = line.format;
  ++steps_;
  if (learn_ == Learn::kAll) NoteCode(line);
}

// The line does not name the core: it is the one that spoke last, or another
// whose latest step is there.
void StepReader::Cancel(uint64_t pc) {
  const auto matches = [pc](const Pending& p) { return p.waiting && p.step.pc == pc; };
  if (matches(PendingOf(state_core_))) {
    pending_[state_core_].waiting = false;
    return;
  }
  const auto at = std::find_if(pending_.begin(), pending_.end(), matches);
  if (at != pending_.end()) at->waiting = false;
}

void StepReader::NoteCode(const TraceLine& line) {
  TracedCode& code = code_[line.pc];
  if (line.has_bits) {
    code.bits = line.bits;
    code.has_bits = true;
  }
  if (code.mnemonic.empty()) code.mnemonic = line.mnemonic;
  if (code.function.empty()) code.function = line.function;
  if (line.source_line != 0) code.source_line = line.source_line;
  if (line.address && code.addresses.size() < kMostAddresses &&
      std::find(code.addresses.begin(), code.addresses.end(), *line.address) ==
          code.addresses.end()) {
    code.addresses.push_back(*line.address);
  }
}

}  // namespace hangscope
