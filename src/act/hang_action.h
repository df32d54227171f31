// What a recorder does about a hang beyond saying so: --on-hang.
#ifndef HANGSCOPE_ACT_HANG_ACTION_H
#define HANGSCOPE_ACT_HANG_ACTION_H

#include <string>

namespace hangscope {

// All but kNone take a snapshot first.
enum class OnHang { kSnapshot, kKill, kExec, kNone };

struct HangAction {
  OnHang what = OnHang::kSnapshot;
  std::string command;  // of kExec, for a shell

  bool TakesSnapshot() const { return what != OnHang::kNone; }
  // Something that --act-on may keep it from.
  bool Acts() const { return what == OnHang::kKill || what == OnHang::kExec; }
};

// What the report of a partial hang says where --act-on leaves it alone.
inline constexpr const char* kPartialIsLeftAlone =
    "others go on, so --on-hang does nothing without --act-on partial";

}  // namespace hangscope

#endif
