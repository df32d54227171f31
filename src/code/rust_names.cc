#include "code/rust_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace hangscope {
namespace {

constexpr int kMostDepth = 96;            // of parts within one another
constexpr size_t kMostText = 4096;        // bytes of a name: back references can double it
constexpr size_t kMostCodePoints = 1024;  // of an identifier
constexpr size_t kHashDigits = 16;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsHex(char c) { return IsDigit(c) || (c >= 'a' && c <= 'f'); }

std::string Utf8(uint32_t code) {
  std::string text;
  if (code < 0x80) {
    text += static_cast<char>(code);
  } else if (code < 0x800) {
    text += static_cast<char>(0xc0 | code >> 6);
    text += static_cast<char>(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    text += static_cast<char>(0xe0 | code >> 12);
    text += static_cast<char>(0x80 | (code >> 6 & 0x3f));
    text += static_cast<char>(0x80 | (code & 0x3f));
  } else {
    text += static_cast<char>(0xf0 | code >> 18);
    text += static_cast<char>(0x80 | (code >> 12 & 0x3f));
    text += static_cast<char>(0x80 | (code >> 6 & 0x3f));
    text += static_cast<char>(0x80 | (code & 0x3f));
  }
  return text;
}

// RFC 3492, with '_' for its '-'. Nothing: it is none.
std::optional<std::string> DecodePunycode(std::string_view text) {
  constexpr uint32_t kBase = 36, kLeast = 1, kMost = 26, kSkew = 38, kDamp = 700;
  std::vector<uint32_t> codes;
  if (const size_t end = text.rfind('_'); end != std::string_view::npos) {
    codes.assign(text.begin(), text.begin() + static_cast<long>(end));
    text.remove_prefix(end + 1);
  }
  uint32_t code = 0x80, bias = 72, damp = kDamp;
  uint64_t at = 0;
  while (!text.empty()) {
    const uint64_t before = at;
    uint64_t weight = 1;
    for (uint32_t k = kBase;; k += kBase) {
      if (text.empty()) return std::nullopt;
      const char c = text.front();
      text.remove_prefix(1);
      if (!IsDigit(c) && !(c >= 'a' && c <= 'z')) return std::nullopt;
      const auto digit = static_cast<uint32_t>(IsDigit(c) ? c - '0' + 26 : c - 'a');
      at += digit * weight;
      const uint32_t least = k <= bias ? kLeast : std::min(k - bias, kMost);
      if (digit < least) break;
      weight *= kBase - least;
      if (weight > UINT32_MAX || at > UINT32_MAX) return std::nullopt;
    }
    const uint64_t length = codes.size() + 1;
    uint64_t delta = (at - before) / damp;
    damp = 2;
    delta += delta / length;
    bias = 0;
    for (; delta > (kBase - kLeast) * kMost / 2; bias += kBase) delta /= kBase - kLeast;
    bias += static_cast<uint32_t>((kBase - kLeast + 1) * delta / (delta + kSkew));
    const uint64_t next = code + at / length;
    if (next > 0x10ffff || (next >= 0xd800 && next < 0xe000) || length > kMostCodePoints)
      return std::nullopt;
    code = static_cast<uint32_t>(next);
    at %= length;
    codes.insert(codes.begin() + static_cast<long>(at), code);
    ++at;
  }
  std::string plain;
  for (const uint32_t each : codes) plain += Utf8(each);
  return plain;
}

const char* BasicType(char tag) {
  switch (tag) {
    case 'a':
      return "i8";
    case 'b':
      return "bool";
    case 'c':
      return "char";
    case 'd':
      return "f64";
    case 'e':
      return "str";
    case 'f':
      return "f32";
    case 'h':
      return "u8";
    case 'i':
      return "isize";
    case 'j':
      return "usize";
    case 'l':
      return "i32";
    case 'm':
      return "u32";
    case 'n':
      return "i128";
    case 'o':
      return "u128";
    case 'p':
      return "_";
    case 's':
      return "i16";
    case 't':
      return "u16";
    case 'u':
      return "()";
    case 'v':
      return "...";
    case 'x':
      return "i64";
    case 'y':
      return "u64";
    case 'z':
      return "!";
    default:
      return nullptr;
  }
}

// Reads a name of the newer scheme from left to right, and writes as it goes.
class V0Reader {
 public:
  explicit V0Reader(std::string_view text) : text_(text) {}

  std::optional<std::string> Read() {
    Path(true);
    // The crate for which it was made from a generic one says nothing that people know.
    if (ok_ && at_ < text_.size() && text_[at_] != '.') {
      silent_ = true;
      Path(false);
      silent_ = false;
    }
    const bool ends = at_ == text_.size() || text_[at_] == '.';
    return ok_ && ends ? std::optional(std::move(out_)) : std::nullopt;
  }

 private:
  class Depth {
   public:
    explicit Depth(V0Reader* reader) : reader_(reader) {
      if (++reader->depth_ > kMostDepth) reader->ok_ = false;
    }
    ~Depth() { --reader_->depth_; }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;

   private:
    V0Reader* const reader_;
  };

  char Next() {
    if (at_ < text_.size()) return text_[at_++];
    ok_ = false;
    return '\0';
  }
  bool Take(char c) {
    if (!ok_ || at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void Write(std::string_view text) {
    if (silent_) return;
    out_ += text;
    if (out_.size() > kMostText) ok_ = false;
  }

  uint64_t Base62() {
    if (Take('_')) return 0;
    uint64_t number = 0;
    while (ok_) {
      const char c = Next();
      if (c == '_') return number + 1;
      const bool fits = IsDigit(c) || std::isalpha(static_cast<unsigned char>(c)) != 0;
      if (!fits || number > (std::numeric_limits<uint64_t>::max() - 62) / 62) ok_ = false;
      number = number * 62 + static_cast<uint64_t>(IsDigit(c)             ? c - '0'
                                                   : c >= 'a' && c <= 'z' ? c - 'a' + 10
                                                                          : c - 'A' + 36);
    }
    return 0;
  }
  uint64_t OptionalBase62(char tag) {
    if (!Take(tag)) return 0;
    const uint64_t number = Base62();
    return number < std::numeric_limits<uint64_t>::max() ? number + 1 : number;
  }

  std::string Identifier() {
    const bool is_punycode = Take('u');
    size_t length = 0;
    if (!Take('0')) {
      if (at_ >= text_.size() || !IsDigit(text_[at_])) ok_ = false;
      while (ok_ && at_ < text_.size() && IsDigit(text_[at_])) {
        length = length * 10 + static_cast<size_t>(text_[at_++] - '0');
        if (length > text_.size()) ok_ = false;
      }
    }
    Take('_');
    if (!ok_ || length > text_.size() - at_) {
      ok_ = false;
      return {};
    }
    const std::string_view bytes = text_.substr(at_, length);
    at_ += length;
    if (!is_punycode) return std::string(bytes);
    const auto plain = DecodePunycode(bytes);
    return plain ? *plain : fmt::format("punycode{{{}}}", bytes);
  }

  // Reads what stands where `Base62` says, which is before here.
  template <typename Reading>
  void BackReference(Reading read) {
    const size_t here = at_ - 1;
    const uint64_t target = Base62();
    if (!ok_ || target >= here) {
      ok_ = false;
      return;
    }
    if (silent_) return;
    const size_t behind = std::exchange(at_, static_cast<size_t>(target));
    read();
    at_ = behind;
  }

  // `in_value`: a function's or a constant's, whose generic arguments stand behind "::".
  void Path(bool in_value) {
    const Depth depth(this);
    if (!ok_) return;
    switch (Next()) {
      case 'C':
        OptionalBase62('s');
        Write(Identifier());
        return;
      case 'M':
        ImplPath();
        SelfType();
        return;
      case 'X':
        ImplPath();
        [[fallthrough]];
      case 'Y':
        Write("<");
        Type();
        Write(" as ");
        Path(false);
        Write(">");
        return;
      case 'N':
        Nested(in_value);
        return;
      case 'I':
        Path(in_value);
        if (in_value) Write("::");
        Write("<");
        Separated([this] { GenericArgument(); }, ", ");
        Write(">");
        return;
      case 'B':
        return BackReference([&] { Path(in_value); });
      default:
        ok_ = false;
    }
  }

  // Where the implementation stands, which nobody asks for.
  void ImplPath() {
    OptionalBase62('s');
    const bool before = std::exchange(silent_, true);
    Path(false);
    silent_ = before;
  }

  // Of methods of its own: "Queue<u8>::pop", but "<[u8]>::len".
  void SelfType() {
    const bool named = at_ < text_.size() && BasicType(text_[at_]) == nullptr &&
                       std::string_view("CMXYNIB").find(text_[at_]) != std::string_view::npos;
    if (!named) Write("<");
    Type();
    if (!named) Write(">");
  }

  void Nested(bool in_value) {
    const char space = Next();
    if (std::isalpha(static_cast<unsigned char>(space)) == 0) ok_ = false;
    Path(in_value);
    const uint64_t number = OptionalBase62('s');
    const std::string name = Identifier();
    if (space >= 'a') {
      if (!name.empty()) Write("::" + name);
      return;
    }
    const std::string kind = space == 'C'   ? "closure"
                             : space == 'S' ? "shim"
                                            : std::string(1, space);
    Write(fmt::format("::{{{}{}{}#{}}}", kind, name.empty() ? "" : ":", name, number));
  }

  // Until an E.
  template <typename Reading>
  size_t Separated(Reading read, std::string_view between) {
    size_t count = 0;
    while (ok_ && !Take('E')) {
      if (count++ != 0) Write(between);
      read();
    }
    return count;
  }

  void GenericArgument() {
    if (Take('L')) return Lifetime();
    if (Take('K')) return Constant();
    Type();
  }

  void Lifetime() {
    const uint64_t number = Base62();
    if (number == 0 || number > bound_) return Write("'_");
    const uint64_t name = bound_ - number;
    Write(name < 26 ? fmt::format("'{}", static_cast<char>('a' + name))
                    : fmt::format("'_{}", name));
  }

  void Type() {
    const Depth depth(this);
    if (!ok_) return;
    const char tag = Next();
    if (const char* const basic = BasicType(tag)) return Write(basic);
    switch (tag) {
      case 'R':
      case 'Q':
        Write("&");
        if (Take('L')) {
          const uint64_t lifetime = Base62();
          if (lifetime > bound_) ok_ = false;
        }
        if (tag == 'Q') Write("mut ");
        return Type();
      case 'P':
      case 'O':
        Write(tag == 'P' ? "*const " : "*mut ");
        return Type();
      case 'A':
      case 'S':
        Write("[");
        Type();
        if (tag == 'A') {
          Write("; ");
          Constant();
        }
        return Write("]");
      case 'T': {
        Write("(");
        if (Separated([this] { Type(); }, ", ") == 1) Write(",");
        return Write(")");
      }
      case 'F':
        return Function();
      case 'D':
        return Dynamic();
      case 'B':
        return BackReference([this] { Type(); });
      default:
        --at_;
        Path(false);
    }
  }

  uint64_t Binder() {
    const uint64_t count = OptionalBase62('G');
    if (count > kMostText) ok_ = false;
    return count;
  }

  void Function() {
    const uint64_t own = Binder();
    bound_ += own;
    if (Take('U')) Write("unsafe ");
    if (Take('K')) {
      std::string convention = Take('C') ? "C" : Identifier();
      std::replace(convention.begin(), convention.end(), '_', '-');
      Write(fmt::format("extern \"{}\" ", convention));
    }
    Write("fn(");
    Separated([this] { Type(); }, ", ");
    Write(")");
    if (!Take('u')) {
      Write(" -> ");
      Type();
    }
    bound_ -= own;
  }

  void Dynamic() {
    Write("dyn ");
    const uint64_t own = Binder();
    bound_ += own;
    Separated([this] { DynamicTrait(); }, " + ");
    bound_ -= own;
    if (!Take('L')) {
      ok_ = false;
      return;
    }
    (void)Base62();
  }

  void DynamicTrait() {
    Path(false);
    while (ok_ && Take('p')) {
      Write("<" + Identifier() + " = ");
      Type();
      Write(">");
    }
  }

  void Constant() {
    const Depth depth(this);
    if (!ok_) return;
    if (Take('B')) return BackReference([this] { Constant(); });
    const char type = Next();
    if (type == 'p') return Write("_");
    if (std::string_view("abchijlmnostxy").find(type) == std::string_view::npos) {
      ok_ = false;  // strings and structures, which stable Rust does not have
      return;
    }
    const bool negative = Take('n');
    const size_t begin = at_;
    while (ok_ && at_ < text_.size() && IsHex(text_[at_])) ++at_;
    const std::string_view digits = text_.substr(begin, at_ - begin);
    if (!Take('_')) {
      ok_ = false;
      return;
    }
    if (digits.size() > kHashDigits) return Write(fmt::format("0x{}", digits));
    uint64_t number = 0;
    for (const char c : digits)
      number = number * 16 + static_cast<uint64_t>(IsDigit(c) ? c - '0' : c - 'a' + 10);
    if (type == 'b') return Write(number != 0 ? "true" : "false");
    if (type == 'c' && number >= 0x20 && number != 0x7f && number <= 0x10ffff)
      return Write("'" + Utf8(static_cast<uint32_t>(number)) + "'");
    Write(fmt::format("{}{}", negative ? "-" : "", number));
  }

  const std::string_view text_;
  size_t at_ = 0;
  std::string out_;
  bool ok_ = true;
  bool silent_ = false;
  int depth_ = 0;
  uint64_t bound_ = 0;  // lifetimes of the functions and traits around
};

// One part of an older name: "$LT$u8$GT$" and ".." are what C's rules have no letters for.
std::optional<std::string> DecodeLegacyPart(std::string_view part) {
  static constexpr std::pair<std::string_view, std::string_view> kEscapes[] = {
      {"SP", "@"}, {"BP", "*"}, {"RF", "&"}, {"LT", "<"},
      {"GT", ">"}, {"LP", "("}, {"RP", ")"}, {"C", ","},
  };
  std::string plain;
  if (part.starts_with("_$")) part.remove_prefix(1);
  while (!part.empty()) {
    if (part.starts_with("..")) {
      plain += "::";
      part.remove_prefix(2);
      continue;
    }
    if (part[0] != '$') {
      plain += part[0];
      part.remove_prefix(1);
      continue;
    }
    const size_t end = part.find('$', 1);
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view escape = part.substr(1, end - 1);
    part.remove_prefix(end + 1);
    const auto* const known = std::find_if(std::begin(kEscapes), std::end(kEscapes),
                                           [&](const auto& each) { return each.first == escape; });
    if (known != std::end(kEscapes)) {
      plain += known->second;
      continue;
    }
    if (escape.size() < 2 || escape.size() > 7 || escape[0] != 'u' ||
        !std::all_of(escape.begin() + 1, escape.end(), IsHex))
      return std::nullopt;
    uint32_t code = 0;
    for (const char c : escape.substr(1))
      code = code * 16 + static_cast<uint32_t>(IsDigit(c) ? c - '0' : c - 'a' + 10);
    if (code < 0x20 || code > 0x10ffff) return std::nullopt;
    plain += Utf8(code);
  }
  return plain;
}

// `text` begins behind "_ZN".
std::optional<std::string> DemangleLegacy(std::string_view text) {
  std::vector<std::string_view> parts;
  size_t at = 0;
  while (at < text.size() && text[at] != 'E') {
    size_t length = 0;
    const size_t begin = at;
    for (; at < text.size() && IsDigit(text[at]) && length < kMostText; ++at)
      length = length * 10 + static_cast<size_t>(text[at] - '0');
    if (at == begin || length == 0 || length > text.size() - at) return std::nullopt;
    parts.push_back(text.substr(at, length));
    at += length;
  }
  const bool ends = at < text.size() && (at + 1 == text.size() || text[at + 1] == '.');
  if (!ends || parts.size() < 2) return std::nullopt;
  const std::string_view hash = parts.back();
  if (hash.size() != kHashDigits + 1 || hash[0] != 'h' ||
      !std::all_of(hash.begin() + 1, hash.end(), IsHex))
    return std::nullopt;
  parts.pop_back();
  std::string plain;
  for (const std::string_view part : parts) {
    const auto text_of_part = DecodeLegacyPart(part);
    if (!text_of_part) return std::nullopt;
    plain += (plain.empty() ? "" : "::") + *text_of_part;
    if (plain.size() > kMostText) return std::nullopt;
  }
  return plain;
}

// The crate that a demangled name begins with: of "<bank::Queue as core::ops::Drop>::drop" bank.
std::string_view CrateOf(std::string_view plain) {
  const size_t begin = plain.find_first_not_of("<&*[(");
  if (begin == std::string_view::npos) return {};
  plain.remove_prefix(begin);
  for (const std::string_view word : {"mut ", "const ", "dyn "}) {
    if (plain.starts_with(word)) plain.remove_prefix(word.size());
  }
  size_t end = 0;
  while (end < plain.size() &&
         (std::isalnum(static_cast<unsigned char>(plain[end])) != 0 || plain[end] == '_'))
    ++end;
  const bool is_path = plain.substr(end).starts_with("::");
  return is_path ? plain.substr(0, end) : std::string_view();
}

}  // namespace

std::optional<std::string> DemangleRust(std::string_view name) {
  if (name.starts_with("_ZN")) return DemangleLegacy(name.substr(3));
  // A digit would be the version of a scheme to come.
  const bool is_v0 = name.starts_with("_R") && name.size() > 2 && name[2] >= 'A' && name[2] <= 'Z';
  return is_v0 ? V0Reader(name.substr(2)).Read() : std::nullopt;
}

bool IsOfRustLibraries(std::string_view name) {
  const auto plain = DemangleRust(name);
  if (!plain) return false;
  if (plain->find("{shim:") != std::string::npos) return true;  // made by the compiler
  const std::string_view crate = CrateOf(*plain);
  // Of no path: "<T as ...>", a type of the language itself.
  if (crate.empty()) return plain->starts_with('<');
  for (const char* known : {"std", "core", "alloc", "parking_lot", "parking_lot_core", "lock_api",
                            "crossbeam_channel", "crossbeam_utils"}) {
    if (crate == known) return true;
  }
  return false;
}

}  // namespace hangscope
