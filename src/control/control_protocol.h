// What is said over a recorder's control socket: one line of JSON each way, see
// docs/control.md.
#ifndef HANGSCOPE_CONTROL_CONTROL_PROTOCOL_H
#define HANGSCOPE_CONTROL_CONTROL_PROTOCOL_H

#include <string>
#include <string_view>

#include "base/status.h"
#include "model/recorder_status.h"

namespace hangscope {

constexpr int kControlVersion = 1;
constexpr size_t kLongestRequest = 4096;
constexpr size_t kLongestReply = 256 * 1024;

struct ControlRequest {
  enum class Command { kStatus, kSnap };
  Command command = Command::kStatus;
  bool now = false;         // of kSnap: without --post
  bool since_last = false;  // of kSnap
};

// Lines without their newline.
std::string RequestLine(const ControlRequest& request);
Result<ControlRequest> ParseRequest(std::string_view line);

std::string StatusReply(const RecorderStatus& status);
std::string SnapReply(const std::string& folder);
std::string FailedReply(const std::string& why);

// The failure that a reply tells is the Status.
Result<RecorderStatus> ParseStatusReply(std::string_view line);
Result<std::string> ParseSnapReply(std::string_view line);

// For `hangscope ls --json`.
std::string RecorderJson(const RecorderStatus& status);

}  // namespace hangscope

#endif
