#include "code/cost_marks.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace hangscope {
namespace {

constexpr uint64_t kBegin = 1;
constexpr uint64_t kEnd = 2;

struct Mark {
  uint64_t kind = 0;
  uint64_t address = 0;
};

// Entry by entry: kind (4 bytes), address (a word), name with a NUL, up to a multiple of 4.
class Reader {
 public:
  Reader(std::string_view bytes, bool big_endian) : bytes_(bytes), big_endian_(big_endian) {}

  bool AtEnd() const { return at_ >= bytes_.size(); }

  bool Number(size_t size, uint64_t* value) {
    if (bytes_.size() - at_ < size) return false;
    *value = 0;
    for (size_t i = 0; i < size; ++i) {
      const size_t from = big_endian_ ? i : size - 1 - i;
      *value = *value << 8 | static_cast<unsigned char>(bytes_[at_ + from]);
    }
    at_ += size;
    return true;
  }

  bool Name(std::string* name) {
    const size_t end = bytes_.find('\0', at_);
    if (end == std::string_view::npos) return false;
    *name = bytes_.substr(at_, end - at_);
    at_ = std::min(bytes_.size(), (end + 4) & ~size_t{3});
    return true;
  }

 private:
  const std::string_view bytes_;
  const bool big_endian_;
  size_t at_ = 0;
};

}  // namespace

Result<std::map<std::string, MarkedCode>> ReadCostMarks(std::string_view bytes, int xlen,
                                                        bool big_endian) {
  std::map<std::string, MarkedCode> marks;
  std::map<std::string, Mark> last;
  for (Reader reader(bytes, big_endian); !reader.AtEnd();) {
    Mark mark;
    std::string name;
    const bool whole = reader.Number(4, &mark.kind) &&
                       reader.Number(static_cast<size_t>(xlen) / 8, &mark.address) &&
                       reader.Name(&name);
    if (!whole || (mark.kind != kBegin && mark.kind != kEnd)) {
      return Status::Corrupt(fmt::format("the section {} of the ELF is damaged", kMarkSection));
    }
    MarkedCode& code = marks[name];
    const Mark before = std::exchange(last[name], mark);
    if (mark.kind == kBegin) {
      code.begins.push_back(mark.address);
    } else if (before.kind == kBegin && before.address == mark.address) {
      code.begins.pop_back();  // nothing stands between these two
    } else {
      code.ends.push_back(mark.address);
    }
  }
  return marks;
}

}  // namespace hangscope
