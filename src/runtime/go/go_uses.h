// Which functions of a program of Go may come to a variable: those whose code has its address,
// those that call these or take their addresses, and so on. Of Go 1.19 on x86-64, where code and
// data are addressed from the instruction on.
//
// It errs to the side of too many: where an instruction cannot be told, it counts as a use.
#ifndef HANGSCOPE_RUNTIME_GO_GO_USES_H
#define HANGSCOPE_RUNTIME_GO_GO_USES_H

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "proc/process_memory.h"
#include "runtime/go/go_code.h"

namespace hangscope {

// All code from which a variable may be used.
struct GoUsers {
  std::set<uint64_t> functions;  // where they begin
  std::set<uint64_t> places;     // in their code: of a use, a call or an address taken
};

enum class GoFunctionKind {
  kPlain,
  kMethod,  // others may call it over an interface, or what describes its type
  kOver,    // it has ended, or never calls anything again that it has called before
};
using KindOfGoFunction = std::function<GoFunctionKind(uint64_t function)>;

class GoUses {
 public:
  // A sentence where there is too much code, or it cannot be read.
  static Result<GoUses> Read(const GoCode& code, const ReadMemory& read);

  // Nothing: others may come to it in ways that are not followed, or there is no time for it.
  std::optional<GoUsers> UsersOf(uint64_t begin, uint64_t end, const KindOfGoFunction& kind_of,
                                 const std::function<bool()>& is_late) const;
  // Whether one of the places is on a way that the function takes from `pc` on; also where that
  // cannot be told.
  bool MayComeTo(const std::set<uint64_t>& places, uint64_t pc, uint64_t function_end) const;

 private:
  using Places = std::vector<std::pair<uint64_t, uint64_t>>;  // what is led to, from where; sorted

  explicit GoUses(const GoCode& code) : code_(code) {}
  struct Search {
    const KindOfGoFunction& kind_of;
    const std::function<bool()>& is_late;
    GoUsers users;
    std::vector<uint64_t> open;  // functions whose users are still to be found
  };
  bool AddUsers(uint64_t begin, uint64_t end, Search* search) const;
  bool IsUse(uint64_t place, uint64_t function, uint64_t begin, uint64_t end) const;
  bool IsInTypes(uint64_t function) const;

  GoCode code_;
  std::string text_;
  uint64_t text_begin_ = 0;
  Places from_code_;
  Places from_data_;
  std::vector<uint32_t> words_of_types_;  // sorted
};

}  // namespace hangscope

#endif
