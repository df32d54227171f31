#include "stream/trace_line.h"

#include "base/hash.h"

namespace hangscope {
namespace {

// Reads a line from left to right; every Take leaves the cursor where it was if
// it fails.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : at_(text.data()), end_(text.data() + text.size()) {}

  bool AtEnd() const { return at_ == end_; }
  std::string_view rest() const { return {at_, static_cast<size_t>(end_ - at_)}; }

  void SkipSpaces() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\t')) ++at_;
  }
  // Colours: ESC [ digits m.
  void SkipSpacesAndColours() {
    for (;;) {
      SkipSpaces();
      if (at_ == end_ || *at_ != '\033') return;
      while (at_ != end_ && *at_ != 'm') ++at_;
      if (at_ != end_) ++at_;
    }
  }
  bool Take(char c) {
    if (at_ == end_ || *at_ != c) return false;
    ++at_;
    return true;
  }
  bool Take(std::string_view word) {
    if (!rest().starts_with(word)) return false;
    at_ += word.size();
    return true;
  }
  bool ScanDecimal(uint64_t* value) {
    const char* from = at_;
    *value = 0;
    while (at_ != end_ && *at_ >= '0' && *at_ <= '9') {
      *value = *value * 10 + static_cast<uint64_t>(*at_++ - '0');
    }
    return at_ != from;
  }
  // Bare hexadecimal digits; more than 16 are not a number of ours.
  bool ScanHex(uint64_t* value, int* digits = nullptr) {
    const char* from = at_;
    *value = 0;
    int nibble = 0;
    while (at_ != end_ && (nibble = Nibble(*at_)) >= 0) {
      *value = *value << 4 | static_cast<uint64_t>(nibble);
      ++at_;
    }
    const auto count = at_ - from;
    if (digits != nullptr) *digits = static_cast<int>(count);
    if (count >= 1 && count <= 16) return true;
    at_ = from;
    return false;
  }
  bool TakeHex0x(uint64_t* value, int* digits = nullptr) {
    const char* from = at_;
    if (Take("0x") && ScanHex(value, digits)) return true;
    at_ = from;
    return false;
  }
  std::string_view ScanToken() {
    const char* from = at_;
    while (at_ != end_ && *at_ != ' ' && *at_ != '\t' && *at_ != '\033') ++at_;
    return {from, static_cast<size_t>(at_ - from)};
  }
  std::string_view ScanUntil(char c) {
    const char* from = at_;
    while (at_ != end_ && *at_ != c) ++at_;
    return {from, static_cast<size_t>(at_ - from)};
  }

 private:
  static int Nibble(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
  }

  const char* at_;
  const char* end_;
};

// What a line says beyond its columns: blanks and colours do not count.
uint64_t HashVisible(std::string_view text) {
  uint64_t hash = kHashSeed;
  for (const char c : text) {
    if (c == ' ' || c == '\t' || c == '\r') continue;
    hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3u;
  }
  return hash;
}

// Trace 0: 0x7efc37e00ac0 [00000000/80000032/00109003/ff000200] symbol
TraceLine ParseQemuTrace(Cursor in) {
  TraceLine line;
  uint64_t core = 0;
  uint64_t ignored = 0;
  if (!in.ScanDecimal(&core) || !in.Take(": ") || !in.TakeHex0x(&ignored) || !in.Take(" ["))
    return line;
  int digits = 0;
  if (!in.ScanHex(&ignored) || !in.Take('/') || !in.ScanHex(&line.pc, &digits) || !in.Take('/'))
    return line;
  line.wide = digits > 8;
  (void)in.ScanUntil(']');
  if (!in.Take(']')) return line;
  in.SkipSpaces();
  line.function = in.ScanToken();
  line.core = static_cast<uint32_t>(core);
  line.kind = TraceLine::Kind::kStep;
  line.format = TraceFormat::kQemuExec;
  line.starts_block = true;
  return line;
}

// Stopped execution of TB chain before 0x7f0048000640 [80000024] symbol
TraceLine ParseQemuStopped(Cursor in) {
  TraceLine line;
  uint64_t ignored = 0;
  if (!in.TakeHex0x(&ignored) || !in.Take(" [") || !in.ScanHex(&line.pc) || !in.Take(']'))
    return line;
  line.kind = TraceLine::Kind::kCancel;
  line.format = TraceFormat::kQemuExec;
  return line;
}

// The register dump of -d cpu: " x4/tp    00000000 x5/t0 ..." or " mhartid  00000001".
TraceLine ParseQemuState(Cursor in) {
  TraceLine line;
  in.SkipSpaces();
  const std::string_view all = in.rest();
  const std::string_view name = in.ScanToken();
  in.SkipSpaces();
  uint64_t value = 0;
  if (name.size() >= 3 && name[0] == 'x' && name.find('/') != std::string_view::npos &&
      name[1] >= '0' && name[1] <= '9') {
    if (!in.ScanHex(&value)) return line;
    line.kind = TraceLine::Kind::kState;
    line.values = HashVisible(all);
    line.has_values = true;
  } else if (name == "mhartid" && in.ScanHex(&value)) {
    line.kind = TraceLine::Kind::kHart;
    line.core = static_cast<uint32_t>(value);
  } else if (name == "V" || in.ScanHex(&value)) {
    in.SkipSpaces();
    if (name != "V" && !in.AtEnd()) return line;
    line.kind = TraceLine::Kind::kDetail;
  } else {
    return line;
  }
  line.format = TraceFormat::kQemuExec;
  return line;
}

// 0x80000008:  4501              mv                      a0,zero
TraceLine ParseQemuInAsm(Cursor in) {
  TraceLine line;
  uint64_t bits = 0;
  int digits = 0;
  if (!in.TakeHex0x(&line.pc, &digits) || !in.Take(':')) return line;
  line.wide = digits > 8;
  in.SkipSpaces();
  if (!in.ScanHex(&bits, &digits) || (digits != 4 && digits != 8)) return line;
  in.SkipSpaces();
  line.mnemonic = in.ScanToken();
  line.bits = static_cast<uint32_t>(bits);
  line.has_bits = true;
  line.kind = TraceLine::Kind::kCode;
  line.format = TraceFormat::kQemuInAsm;
  return line;
}

// core   0: 3 0x80000036 (0x00028023) mem 0x8000019c 0x00
TraceLine ParseSpike(Cursor in) {
  TraceLine line;
  uint64_t core = 0;
  uint64_t bits = 0;
  in.SkipSpaces();
  if (!in.ScanDecimal(&core) || !in.Take(": ")) return line;
  line.core = static_cast<uint32_t>(core);
  if (in.rest().starts_with(">>>>") || in.rest().starts_with("exception") ||
      in.rest().starts_with("tval")) {
    line.kind = TraceLine::Kind::kDetail;
    line.format = TraceFormat::kSpike;
    return line;
  }
  bool commit = false;
  int digits = 0;
  if (!in.TakeHex0x(&line.pc, &digits)) {
    uint64_t privilege = 0;
    if (!in.ScanDecimal(&privilege) || !in.Take(' ') || !in.TakeHex0x(&line.pc, &digits))
      return line;
    commit = true;
  }
  if (!in.Take(" (") || !in.TakeHex0x(&bits) || !in.Take(')')) return line;
  line.bits = static_cast<uint32_t>(bits);
  line.has_bits = true;
  line.format = TraceFormat::kSpike;
  line.wide = digits > 8;
  if (!commit) {
    in.SkipSpaces();
    line.mnemonic = in.ScanToken();
    line.kind = TraceLine::Kind::kStep;
    return line;
  }
  line.kind = TraceLine::Kind::kCommit;
  line.values = HashVisible(in.rest());
  line.has_values = true;
  const size_t memory = in.rest().find(" mem 0x");
  if (memory != std::string_view::npos) {
    Cursor address(in.rest().substr(memory + 5));
    uint64_t value = 0;
    if (address.TakeHex0x(&value)) line.address = value;
  }
  return line;
}

// What follows the mode and the pc is the same in both forms of gvsoc.
void ParseGvsocValues(std::string_view rest, TraceLine* line) {
  line->values = HashVisible(rest);
  line->has_values = true;
  const size_t at = rest.rfind("PA:");
  if (at != std::string_view::npos) {
    Cursor address(rest.substr(at + 3));
    uint64_t value = 0;
    if (address.ScanHex(&value)) line->address = value;
  }
  line->kind = TraceLine::Kind::kStep;
  line->format = TraceFormat::kGvsoc;
}

bool ScanMode(Cursor* in) {
  const std::string_view rest = in->rest();
  if (rest.size() < 2 || rest[1] != ' ' || rest[0] < 'A' || rest[0] > 'Z') return false;
  (void)in->Take(rest.substr(0, 1));
  in->SkipSpaces();
  return true;
}

bool ScanPc(Cursor* in, TraceLine* line) {
  int digits = 0;
  if (!in->ScanHex(&line->pc, &digits) || (digits != 8 && digits != 16)) return false;
  line->wide = digits == 16;
  return true;
}

// "func:65" -> func, 65; "-:0" -> nothing.
void SplitFunction(std::string_view token, TraceLine* line) {
  const size_t colon = token.rfind(':');
  if (colon == std::string_view::npos) return;
  uint64_t number = 0;
  Cursor digits(token.substr(colon + 1));
  if (!digits.ScanDecimal(&number)) return;
  line->source_line = static_cast<uint32_t>(number);
  if (token.substr(0, colon) != "-") line->function = token.substr(0, colon);
}

// 400000: 4: [/soc/host/insn] func:line M 0000000000001000 auipc t0, 0x0 t0=...
TraceLine ParseGvsocLong(Cursor in) {
  TraceLine line;
  in.SkipSpaces();
  uint64_t cycles = 0;
  if (!in.ScanDecimal(&cycles) || !in.Take(": [")) return line;
  in.SkipSpacesAndColours();
  const std::string_view path = in.ScanToken();
  in.SkipSpacesAndColours();
  // Without colours the bracket belongs to the token: "/chip/insn]".
  std::string_view core = path;
  if (core.ends_with(']')) {
    core.remove_suffix(1);
  } else if (!in.Take(']')) {
    return line;
  }
  if (!core.ends_with("/insn")) return line;
  core.remove_suffix(5);
  in.SkipSpacesAndColours();
  if (!ScanMode(&in)) {
    SplitFunction(in.ScanToken(), &line);
    in.SkipSpaces();
    if (!ScanMode(&in)) return TraceLine{};
  }
  if (!ScanPc(&in, &line)) return TraceLine{};
  in.SkipSpaces();
  line.core_path = core;
  line.cycle = cycles;
  ParseGvsocValues(in.rest(), &line);
  line.mnemonic = in.ScanToken();
  return line;
}

// 20300000ps 203 M 0000000080000036 0000000000028023 sb x0,0(x5)   x5:0000000080000135
TraceLine ParseGvsocShort(Cursor in) {
  TraceLine line;
  uint64_t cycles = 0;
  uint64_t bits = 0;
  in.SkipSpaces();
  if (!in.ScanDecimal(&cycles)) return line;
  in.SkipSpaces();
  if (!ScanMode(&in) || !ScanPc(&in, &line)) return TraceLine{};
  line.cycle = cycles;
  in.SkipSpaces();
  int digits = 0;
  if (in.ScanHex(&bits, &digits) && digits >= 4) {
    line.bits = static_cast<uint32_t>(bits);
    line.has_bits = true;
  }
  in.SkipSpaces();
  ParseGvsocValues(in.rest(), &line);
  line.mnemonic = in.ScanToken();
  return line;
}

TraceLine ParseGvsoc(Cursor in) {
  uint64_t picoseconds = 0;
  if (!in.ScanDecimal(&picoseconds)) return {};
  if (in.Take("ps ")) return ParseGvsocShort(in);
  if (in.Take(": ")) return ParseGvsocLong(in);
  return {};
}

TraceLine Detail(TraceFormat format, bool chained = false) {
  TraceLine line;
  line.kind = TraceLine::Kind::kDetail;
  line.format = format;
  line.chained = chained;
  return line;
}

}  // namespace

std::string_view TraceFormatName(TraceFormat format) {
  switch (format) {
    case TraceFormat::kNone:
      return "none";
    case TraceFormat::kQemuExec:
      return "QEMU exec";
    case TraceFormat::kQemuInAsm:
      return "QEMU in_asm";
    case TraceFormat::kSpike:
      return "Spike";
    case TraceFormat::kGvsoc:
      return "gvsoc";
  }
  return "none";
}

TraceLine ParseTraceLine(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (line.empty()) return {};
  Cursor in(line);
  switch (line[0]) {
    case 'T':
      if (in.Take("Trace ")) return ParseQemuTrace(in);
      break;
    case 'c':
      if (in.Take("core ")) return ParseSpike(in);
      break;
    case ' ':
      return ParseQemuState(in);
    case '0':
      if (line.starts_with("0x")) return ParseQemuInAsm(in);
      return ParseGvsoc(in);
    case '-':
      if (line == "----------------") {
        TraceLine head = Detail(TraceFormat::kQemuInAsm);
        head.begins_listing = true;
        return head;
      }
      break;
    case 'I':
      if (in.Take("IN: ")) return Detail(TraceFormat::kQemuInAsm);
      break;
    case 'P':
      if (in.Take("Priv: ")) {  // only RISC-V prints its privilege here
        TraceLine privilege = Detail(TraceFormat::kQemuInAsm);
        privilege.riscv_listing = true;
        return privilege;
      }
      break;
    case 'L':
      if (in.Take("Linking TBs ")) return Detail(TraceFormat::kQemuExec, true);
      break;
    case 'S':
      if (in.Take("Stopped execution of TB chain before ")) return ParseQemuStopped(in);
      break;
    default:
      if (line[0] >= '1' && line[0] <= '9') return ParseGvsoc(in);
      break;
  }
  return {};
}

}  // namespace hangscope
