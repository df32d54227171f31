#include "runtime/go/go_uses.h"

#include "base/build_features.h"
#if HANGSCOPE_HAS_CAPSTONE && defined(__x86_64__)
#define HANGSCOPE_FOLLOWS_GO 1
#include <capstone/capstone.h>
#else
#define HANGSCOPE_FOLLOWS_GO 0
#endif

#include <algorithm>
#include <cstring>
#include <string_view>

namespace hangscope {
namespace {

constexpr uint64_t kMostText = 16 << 20;
constexpr uint64_t kMostData = 64 << 20;
constexpr size_t kMostUsers = 20'000;
constexpr size_t kMostInstructions = 20'000;  // of one function, the same ones once
constexpr uint64_t kDataAtOnce = 64 << 10;

#if HANGSCOPE_FOLLOWS_GO

class Decoder {
 public:
  Decoder() { is_open_ = cs_open(CS_ARCH_X86, CS_MODE_64, &capstone_) == CS_ERR_OK; }
  ~Decoder() {
    if (instruction_ != nullptr) cs_free(instruction_, 1);
    if (is_open_) cs_close(&capstone_);
  }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  // The instruction at `at`, which begins `code`; null: there is none.
  const cs_insn* At(uint64_t at, std::string_view code) {
    if (!is_open_) return nullptr;
    if (instruction_ == nullptr) {
      cs_option(capstone_, CS_OPT_DETAIL, CS_OPT_ON);
      instruction_ = cs_malloc(capstone_);
    }
    const auto* bytes = reinterpret_cast<const uint8_t*>(code.data());
    size_t left = code.size();
    return cs_disasm_iter(capstone_, &bytes, &left, &at, instruction_) ? instruction_ : nullptr;
  }
  bool IsIn(const cs_insn& instruction, unsigned group) const {
    return cs_insn_group(capstone_, &instruction, static_cast<uint8_t>(group));
  }

 private:
  csh capstone_ = 0;
  bool is_open_ = false;
  cs_insn* instruction_ = nullptr;
};

// Where its operands lead, counted from behind it.
bool LeadsInto(const cs_insn& instruction, uint64_t begin, uint64_t end) {
  const cs_x86& x86 = instruction.detail->x86;
  for (uint8_t i = 0; i < x86.op_count; ++i) {
    const cs_x86_op& operand = x86.operands[i];
    uint64_t to = 0;
    if (operand.type == X86_OP_IMM)
      to = static_cast<uint64_t>(operand.imm);
    else if (operand.type == X86_OP_MEM && operand.mem.base == X86_REG_RIP)
      to = instruction.address + instruction.size + static_cast<uint64_t>(operand.mem.disp);
    if (to >= begin && to < end) return true;
  }
  return false;
}

#endif

// Of those whose address begins with one in the range.
std::pair<size_t, size_t> RangeOf(const std::vector<std::pair<uint64_t, uint64_t>>& places,
                                  uint64_t begin, uint64_t end) {
  const auto at = [&](uint64_t wanted) {
    return static_cast<size_t>(
        std::lower_bound(places.begin(), places.end(), std::pair(wanted, uint64_t{0})) -
        places.begin());
  };
  return {at(begin), at(end)};
}

}  // namespace

Result<GoUses> GoUses::Read(const GoCode& code, const ReadMemory& read) {
  const GoCode::Extent extent = code.extent();
  if (extent.text_end <= extent.text_begin || extent.end <= extent.data_begin ||
      extent.text_end - extent.text_begin > kMostText || extent.end - extent.data_begin > kMostData)
    return Status::Io("the program has too much code to look for uses of its variables");
  GoUses uses(code);
  uses.text_begin_ = extent.text_begin;
  uses.text_.resize(extent.text_end - extent.text_begin);
  if (!read(extent.text_begin, uses.text_.data(), uses.text_.size()))
    return Status::Io("the program's code cannot be read");
  const auto in_module = [&](uint64_t address) {
    return (address >= extent.text_begin && address < extent.text_end) ||
           (address >= extent.data_begin && address < extent.end);
  };
  // The distance stands at the end of an instruction, or before a number of so many bytes.
  constexpr uint64_t kDistance = 4;
  for (uint64_t i = 0; i + kDistance <= uses.text_.size(); ++i) {
    int32_t distance = 0;
    std::memcpy(&distance, uses.text_.data() + i, sizeof distance);
    for (const uint64_t number : {0, 1, 2, 4}) {
      const uint64_t to =
          extent.text_begin + i + kDistance + number + static_cast<uint64_t>(int64_t{distance});
      if (in_module(to)) uses.from_code_.emplace_back(to, extent.text_begin + i);
    }
  }
  std::string bytes(kDataAtOnce, '\0');
  for (uint64_t begin = extent.data_begin; begin < extent.end; begin += kDataAtOnce) {
    const size_t count = std::min<uint64_t>(kDataAtOnce, extent.end - begin);
    if (!read(begin, bytes.data(), count)) continue;
    for (size_t i = 0; i + sizeof(uint64_t) <= count; i += sizeof(uint64_t)) {
      uint64_t to = 0;
      std::memcpy(&to, bytes.data() + i, sizeof to);
      if (in_module(to)) uses.from_data_.emplace_back(to, begin + i);
    }
  }
  uses.words_of_types_.resize((extent.types_end - extent.types_begin) / sizeof(uint32_t));
  if (!read(extent.types_begin, uses.words_of_types_.data(),
            uses.words_of_types_.size() * sizeof(uint32_t)))
    return Status::Io("the program's types cannot be read");
  std::sort(uses.from_code_.begin(), uses.from_code_.end());
  std::sort(uses.from_data_.begin(), uses.from_data_.end());
  std::sort(uses.words_of_types_.begin(), uses.words_of_types_.end());
  return uses;
}

// Whether the bytes at `place` are what an instruction leads into the range by.
bool GoUses::IsUse(uint64_t place, uint64_t function, uint64_t begin, uint64_t end) const {
#if HANGSCOPE_FOLLOWS_GO
  Decoder decoder;
  for (uint64_t at = function; at <= place && at >= text_begin_;) {
    const cs_insn* const instruction =
        decoder.At(at, std::string_view(text_).substr(at - text_begin_));
    if (instruction == nullptr) return true;
    const uint64_t next = at + instruction->size;
    if (place < next) return LeadsInto(*instruction, begin, end);
    at = next;
  }
#else
  (void)place, (void)function, (void)begin, (void)end;
#endif
  return true;
}

// A method of a type that is made an interface, or that reflection may find.
bool GoUses::IsInTypes(uint64_t function) const {
  return std::binary_search(words_of_types_.begin(), words_of_types_.end(),
                            static_cast<uint32_t>(function - text_begin_));
}

bool GoUses::AddUsers(uint64_t begin, uint64_t end, Search* search) const {
  const auto [first, last] = RangeOf(from_code_, begin, end);
  for (size_t i = first; i < last; ++i) {
    const uint64_t place = from_code_[i].second;
    const auto function = code_.FunctionBeginAt(place);
    if (!function || search->is_late()) return false;
    if (search->kind_of(*function) == GoFunctionKind::kOver || !IsUse(place, *function, begin, end))
      continue;
    search->users.places.insert(place);
    if (search->users.functions.insert(*function).second) search->open.push_back(*function);
    if (search->users.functions.size() > kMostUsers) return false;
  }
  return true;
}

std::optional<GoUsers> GoUses::UsersOf(uint64_t begin, uint64_t end,
                                       const KindOfGoFunction& kind_of,
                                       const std::function<bool()>& is_late) const {
  Search search{kind_of, is_late, {}, {}};
  // What has its address in its data is not followed.
  if (const auto [first, last] = RangeOf(from_data_, begin, end); first != last)
    return std::nullopt;
  if (!AddUsers(begin, end, &search)) return std::nullopt;
  while (!search.open.empty()) {
    const uint64_t function = search.open.back();
    search.open.pop_back();
    if ((kind_of(function) == GoFunctionKind::kMethod && IsInTypes(function)) ||
        !AddUsers(function, function + 1, &search))
      return std::nullopt;
    // Values of functions lie in the data; the code has their addresses.
    const auto [first, last] = RangeOf(from_data_, function, function + 1);
    for (size_t i = first; i < last; ++i) {
      const uint64_t value = from_data_[i].second;
      const auto [named, named_end] = RangeOf(from_code_, value, value + 1);
      const auto [held, held_end] = RangeOf(from_data_, value, value + 1);
      if (named == named_end || held != held_end || !AddUsers(value, value + 1, &search))
        return std::nullopt;
    }
  }
  return std::move(search.users);
}

bool GoUses::MayComeTo(const std::set<uint64_t>& places, uint64_t pc, uint64_t function_end) const {
#if HANGSCOPE_FOLLOWS_GO
  if (pc < text_begin_ || function_end > text_begin_ + text_.size()) return true;
  Decoder decoder;
  std::set<uint64_t> seen;
  std::vector<uint64_t> open = {pc};
  while (!open.empty()) {
    uint64_t at = open.back();
    open.pop_back();
    while (seen.insert(at).second) {
      if (seen.size() > kMostInstructions || at >= function_end || at < text_begin_) return true;
      const cs_insn* const instruction =
          decoder.At(at, std::string_view(text_).substr(at - text_begin_, function_end - at));
      if (instruction == nullptr) return true;
      const uint64_t next = at + instruction->size;
      const auto used = places.lower_bound(at);
      if (used != places.end() && *used < next) return true;
      const cs_x86_op& operand = instruction->detail->x86.operands[0];
      if (decoder.IsIn(*instruction, CS_GRP_JUMP)) {
        if (operand.type != X86_OP_IMM) return true;  // over a table
        open.push_back(static_cast<uint64_t>(operand.imm));
      }
      if (decoder.IsIn(*instruction, CS_GRP_RET) || instruction->id == X86_INS_JMP ||
          instruction->id == X86_INS_UD2 || instruction->id == X86_INS_INT3)
        break;
      at = next;
    }
  }
  return false;
#else
  (void)places, (void)pc, (void)function_end;
  return true;
#endif
}

}  // namespace hangscope
