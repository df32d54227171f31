// Who waits for an answer over a bus of D-Bus to a call that came back to its own process:
// ProcessLook's part.
#include <algorithm>
#include <optional>
#include <string_view>

#include "process/process_look.h"
#include "runtime/bus/bus_reader.h"

namespace hangscope {
namespace {

struct BlockingCall {
  std::string_view function;
  BusLibrary library;
};

// What all of a library's calls that wait for their answer come through.
constexpr BlockingCall kBlockingCalls[] = {
    {"g_dbus_connection_send_message_with_reply_sync", BusLibrary::kGlib},
    {"dbus_connection_send_with_reply_and_block", BusLibrary::kLibdbus},
    {"dbus_pending_call_block", BusLibrary::kLibdbus},
};

std::optional<BusLibrary> LibraryOfCall(const std::vector<StackFrame>& stack) {
  for (const StackFrame& frame : stack) {
    for (const BlockingCall& call : kBlockingCalls) {
      if (frame.function == call.function) return call.library;
    }
  }
  return std::nullopt;
}

}  // namespace

void ProcessLook::ExplainOwnCall(ThreadFacts* thread) {
  if (thread->wait.kind != WaitKind::kPoll || thread->wait.has_timeout) return;
  const auto library = LibraryOfCall(thread->stack);
  thread->wait.of_own_call = library && CalledItself(*library, mappings_, read_memory_);
}

}  // namespace hangscope
