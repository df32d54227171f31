#include "runtime/python/python_instructions.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <utility>

namespace hangscope {
namespace {

// As CPython's Include/opcode.h of 3.11 numbers them, those included that the interpreter puts in
// the place of others once it knows their operands.
constexpr uint8_t kExtendedArguments[] = {144, 34};
constexpr uint8_t kReads[] = {124, 136, 137, 148, 45, 46};  // LOAD_FAST, CLOSURE, DEREF, CLASSDEREF
constexpr uint8_t kPushesNull = 2;                          // before what is called next
constexpr uint8_t kReturns = 83;
constexpr uint8_t kLoadsVariable[] = {124, 137};  // LOAD_FAST, LOAD_DEREF
constexpr uint8_t kLoadsName = 101;
constexpr uint8_t kLoadsGlobal[] = {116, 47, 48, 55};  // of their arguments the lowest bit: called
constexpr uint8_t kLoadsAttribute[] = {106, 39, 40, 41, 42, 43};
constexpr uint8_t kLoadsMethod[] = {160, 56, 57, 58, 59, 62, 63};
// DELETE_SUBSCR, LOAD_BUILD_CLASS, RETURN_GENERATOR, IMPORT_STAR, YIELD_VALUE, DELETE_ATTR,
// DELETE_GLOBAL, IMPORT_NAME, SEND, GET_AWAITABLE, MAKE_FUNCTION, BEFORE_ASYNC_WITH
constexpr uint8_t kTellsNothing[] = {61, 71, 75, 84, 86, 96, 98, 108, 123, 131, 132, 52};
constexpr uint8_t kJumpsBack[] = {134, 140, 38, 173, 174, 175, 176};
// Behind an instruction lie so many units of notes (_PyOpcode_Caches).
constexpr uint8_t kOneNote[] = {3,   4,   5,   6,   7,   8,   13,  14,  16,  60,  64,  65,  66,
                                67,  72,  73,  76,  77,  78,  79,  80,  81,  92,  113, 121, 122,
                                127, 141, 143, 166, 168, 169, 170, 177, 178, 179, 180};
constexpr uint8_t kTwoNotes[] = {26, 27, 28, 29, 107};
constexpr uint8_t kFourNotes[] = {17, 18, 19, 20, 21,  22,  23,  24,  25,  39, 40,
                                  41, 42, 43, 95, 106, 153, 154, 158, 159, 171};
constexpr uint8_t kFiveNotes[] = {47, 48, 55, 116};
constexpr uint8_t kTenNotes[] = {56, 57, 58, 59, 62, 63, 160};

template <size_t kCount>
bool IsAmong(uint8_t opcode, const uint8_t (&list)[kCount]) {
  return std::find(std::begin(list), std::end(list), opcode) != std::end(list);
}

std::array<uint8_t, 256> NotesByOpcode() {
  std::array<uint8_t, 256> notes = {};
  for (const uint8_t opcode : kOneNote) notes[opcode] = 1;
  for (const uint8_t opcode : kTwoNotes) notes[opcode] = 2;
  for (const uint8_t opcode : kFourNotes) notes[opcode] = 4;
  for (const uint8_t opcode : kFiveNotes) notes[opcode] = 5;
  for (const uint8_t opcode : kTenNotes) notes[opcode] = 10;
  return notes;
}

}  // namespace

PythonInstructions::PythonInstructions(std::string_view code) {
  static const std::array<uint8_t, 256> notes = NotesByOpcode();
  uint64_t extended = 0;
  for (size_t unit = 0; unit * 2 + 1 < code.size();) {
    const auto opcode = static_cast<uint8_t>(code[unit * 2]);
    const uint64_t argument =
        (extended << 8 | static_cast<uint8_t>(code[unit * 2 + 1])) & 0xffffffff;
    instructions_.push_back({unit, opcode, argument});
    extended = IsAmong(opcode, kExtendedArguments) ? argument : 0;
    unit += 1 + size_t{notes[opcode]};
  }
}

// The first of those that can come from `unit` on.
uint64_t PythonInstructions::BeginFrom(uint64_t unit) const {
  uint64_t begin = unit;
  // From the last on: where one leads back to, all between are known to follow.
  for (uint64_t before = begin + 1; before != begin;) {
    before = begin;
    for (const Instruction& each : instructions_) {
      if (each.unit < begin || !IsAmong(each.opcode, kJumpsBack)) continue;
      const uint64_t next = each.unit + 1;
      begin = std::min(begin, next - std::min(next, each.argument));
    }
  }
  return begin;
}

bool PythonInstructions::MayUseFrom(uint64_t unit, uint32_t variable) const {
  if (instructions_.empty() || unit > instructions_.back().unit) return true;
  const uint64_t begin = BeginFrom(unit);
  return std::any_of(instructions_.begin(), instructions_.end(), [&](const Instruction& each) {
    return each.unit >= begin && each.argument == variable && IsAmong(each.opcode, kReads);
  });
}

std::vector<PythonNameUse> PythonInstructions::NamesFrom(uint64_t unit) const {
  using Kind = PythonNameUse::Kind;
  std::vector<PythonNameUse> names;
  if (instructions_.empty() || unit > instructions_.back().unit) return {PythonNameUse()};
  const uint64_t begin = BeginFrom(unit);
  bool is_called = false;  // what comes next, or what is loaded from that
  bool of_last = false;    // the instruction before has loaded something by its name
  for (auto each = instructions_.begin(); each != instructions_.end(); ++each) {
    if (each->unit < begin || IsAmong(each->opcode, kExtendedArguments)) continue;
    const auto next = std::find_if(std::next(each), instructions_.end(), [](const auto& other) {
      return !IsAmong(other.opcode, kExtendedArguments);
    });
    const bool is_global = IsAmong(each->opcode, kLoadsGlobal);
    const bool pushes_null = is_global && (each->argument & 1) != 0;
    const bool was_called = is_called || pushes_null;
    const bool goes_on = next != instructions_.end() && IsAmong(next->opcode, kLoadsAttribute);
    const bool for_method = next != instructions_.end() && IsAmong(next->opcode, kLoadsMethod);
    // What a call gives is called.
    const bool is_hidden = (was_called && for_method) || (is_called && pushes_null);
    const bool loads = is_global || each->opcode == kLoadsName ||
                       IsAmong(each->opcode, kLoadsAttribute) ||
                       IsAmong(each->opcode, kLoadsVariable);
    is_called = each->opcode == kPushesNull || (was_called && goes_on);
    const bool was_loaded = std::exchange(of_last, loads && (goes_on || for_method));
    if (is_hidden) {
      names.push_back({Kind::kUnknown, 0});
    } else if (is_global || each->opcode == kLoadsName) {
      names.push_back({was_called && !goes_on ? Kind::kCalled : Kind::kGlobal,
                       is_global ? each->argument >> 1 : each->argument});
    } else if (IsAmong(each->opcode, kLoadsAttribute)) {
      const Kind kind = was_called && !goes_on ? Kind::kMethod : Kind::kAttribute;
      names.push_back({kind, each->argument, was_loaded});
    } else if (IsAmong(each->opcode, kLoadsMethod)) {
      names.push_back({Kind::kMethod, each->argument, was_loaded});
    } else if (IsAmong(each->opcode, kLoadsVariable) && (goes_on || for_method)) {
      names.push_back({Kind::kVariable, each->argument});
    } else if ((was_called && !goes_on) || IsAmong(each->opcode, kTellsNothing)) {
      names.push_back({Kind::kUnknown, 0});
    }
  }
  return names;
}

bool PythonInstructions::MayReturnFrom(uint64_t unit) const {
  if (instructions_.empty() || unit > instructions_.back().unit) return true;
  const uint64_t begin = BeginFrom(unit);
  return std::any_of(instructions_.begin(), instructions_.end(), [begin](const Instruction& each) {
    return each.unit >= begin && each.opcode == kReturns;
  });
}

}  // namespace hangscope
