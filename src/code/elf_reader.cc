#include "code/elf_reader.h"

#include <fmt/format.h>

#include "base/bytes.h"
#include "code/elf_image.h"

namespace hangscope {
namespace {

// A request: what is asked, and an address. Both ends are the same program.
struct Question {
  char what;  // one of kInsn ... kVariable
  uint64_t address;
};
constexpr char kOpen = 'o';
constexpr char kInsn = 'i';
constexpr char kPlace = 'p';
constexpr char kMemory = 'm';
constexpr char kVariable = 'v';
// Its address is the pc; behind it come x0 to x31, which of them are known, where the program
// lies, and the stack.
constexpr char kUnwind = 'u';

// function_begin, line, and three texts, each with its end.
std::string Packed(const Location& place) {
  std::string bytes = BytesOf(place.function_begin) + BytesOf(place.line);
  for (const std::string* text : {&place.function, &place.file, &place.path})
    bytes.append(text->c_str(), text->size() + 1);
  return bytes;
}

Location Unpacked(std::string_view bytes) {
  Location place;
  const auto begin = ValueOf<uint64_t>(bytes);
  if (!begin || bytes.size() < sizeof(uint64_t) + sizeof(uint32_t)) return place;
  place.function_begin = *begin;
  bytes.remove_prefix(sizeof(uint64_t));
  place.line = *ValueOf<uint32_t>(bytes);
  bytes.remove_prefix(sizeof(uint32_t));
  for (std::string* text : {&place.function, &place.file, &place.path}) {
    const size_t end = bytes.find('\0');
    if (end == std::string_view::npos) break;
    *text = bytes.substr(0, end);
    bytes.remove_prefix(end + 1);
  }
  return place;
}

// The side process's part. The first answer is the register width, or a sentence.
class ElfAnswers {
 public:
  ElfAnswers(std::string path, const ProgramFile& file) : path_(std::move(path)), file_(file) {}

  std::string Answer(std::string_view request) {
    const auto question = ValueOf<Question>(request);
    if (!question) return {};
    if (question->what == kOpen) return Open();
    if (image_ == nullptr) return {};
    switch (question->what) {
      case kInsn: {
        const auto bits = image_->InsnAt(question->address);
        return bits ? BytesOf(*bits) : std::string();
      }
      case kPlace:
        return Packed(image_->Locate(question->address));
      case kMemory:
        return BytesOf(image_->InMemory(question->address));
      case kUnwind:
        return Unwound(question->address, request.substr(sizeof *question));
      default:
        return image_->Variable(question->address);
    }
  }

 private:
  std::string Unwound(uint64_t pc, std::string_view bytes) {
    CoreRegisters registers;
    registers.pc = pc;
    for (size_t i = 0; i < CoreRegisters::kCount; ++i) {
      const auto value = ValueOf<uint64_t>(bytes);
      if (!value) return {};
      registers.x.push_back(*value);
      bytes.remove_prefix(sizeof *value);
    }
    const auto known = ValueOf<uint32_t>(bytes);
    if (!known) return {};
    registers.known = *known;
    bytes.remove_prefix(sizeof *known);
    const auto program_at = ValueOf<uint64_t>(bytes);
    if (!program_at) return {};
    registers.program_at = *program_at;
    bytes.remove_prefix(sizeof *program_at);
    std::string answer;
    for (const uint64_t place : image_->Unwind(registers, bytes)) answer += BytesOf(place);
    return answer;
  }

  std::string Open() {
    auto image = ElfImage::OpenCopy(file_.Share(), path_);
    if (!image.ok()) return image.status().message();
    image_ = std::move(*image);
    return BytesOf(static_cast<char>(image_->xlen()));
  }

  const std::string path_;
  const ProgramFile& file_;
  std::unique_ptr<ElfImage> image_;
};

}  // namespace

Result<std::unique_ptr<ElfReader>> ElfReader::Open(const std::string& path) {
  auto file = ProgramFile::Copy(path);
  if (!file.ok()) return file.status();
  auto side = SideProcess::Start("elf-reader", {file->fd()},
                                 [reader = std::make_shared<ElfAnswers>(path, *file)](
                                     std::string_view request) { return reader->Answer(request); });
  if (!side.ok()) return side.status();
  const auto opened = (*side)->Ask(BytesOf(Question{kOpen, 0}));
  if (!opened.ok())
    return Status::Corrupt(fmt::format("'{}' cannot be read: {}", path, opened.status().message()));
  if (opened.value().size() != 1) return Status::Corrupt(opened.value());
  std::unique_ptr<ElfReader> reader(new ElfReader(std::move(*file), std::move(*side)));
  reader->xlen_ = opened.value()[0];
  return reader;
}

// Nothing, where the process has broken off.
std::string ElfReader::Ask(char what, uint64_t address) {
  return side_->Ask(BytesOf(Question{what, address})).value_or({});
}

std::optional<uint32_t> ElfReader::InsnAt(uint64_t pc) {
  if (const auto* known = insns_.Find(pc)) return *known;
  const auto bits = ValueOf<uint32_t>(Ask(kInsn, pc));
  insns_.Put(pc, bits);
  return bits;
}

Location ElfReader::Locate(uint64_t pc) {
  if (const auto* known = locations_.Find(pc)) return *known;
  const Location place = Unpacked(Ask(kPlace, pc));
  locations_.Put(pc, place);
  return place;
}

bool ElfReader::InMemory(uint64_t address) {
  return ValueOf<bool>(Ask(kMemory, address)).value_or(false);
}

std::string ElfReader::Variable(uint64_t address) { return Ask(kVariable, address); }

std::vector<uint64_t> ElfReader::Unwind(const CoreRegisters& registers, std::string_view stack) {
  std::string request = BytesOf(Question{kUnwind, registers.pc});
  for (const uint64_t value : registers.x) request += BytesOf(value);
  request += BytesOf(registers.known);
  request += BytesOf(registers.program_at);
  request += stack;
  const std::string answer = side_->Ask(request).value_or({});
  std::vector<uint64_t> places;
  for (std::string_view rest = answer; rest.size() >= sizeof(uint64_t);
       rest.remove_prefix(sizeof(uint64_t)))
    places.push_back(*ValueOf<uint64_t>(rest));
  return places;
}

std::string ElfReader::copy_path() const { return fmt::format("/proc/self/fd/{}", file_.fd()); }

}  // namespace hangscope
