// ProcessLook's threads of Ruby: where they stand, what they wait for, and who has it.
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file_system.h"
#include "process/process_look.h"
#include "process/signal_sets.h"

namespace hangscope {
namespace {

constexpr size_t kMostRubyThreads = 4096;

bool IsOfRuby(const MemoryMapping& mapping) {
  const std::string name = NameOf(mapping.path);
  return name.starts_with("libruby") || name.starts_with("ruby");
}

// The interpreter wakes threads that sleep by a descriptor, which one of them polls; programs of
// Ruby have none of the kind. What descriptors are a core dump does not tell.
bool IsOfInterpreter(const WaitFile& file, int pid, bool is_kept) {
  if (is_kept) return file.kind == FileKind::kFile || file.kind == FileKind::kUnknown;
  return file.kind == FileKind::kEvent && !file.others_unknown &&
         std::all_of(file.others.begin(), file.others.end(),
                     [&](const auto& other) { return other.first == pid; });
}

}  // namespace

void ProcessLook::FindRuby() {
#if defined(__x86_64__)
  if (facts_.is_32_bit) return;
  std::string why_not;
  for (const MemoryMapping& mapping : mappings_) {
    if (!mapping.executable || !IsOfRuby(mapping)) continue;
    auto ruby = RubyReader::Open(
        [&](std::string_view name) { return walker_->AddressOf(mapping.begin, name); },
        read_memory_);
    if (ruby.ok()) {
      ruby_ = std::move(*ruby);
      ruby_module_ = NameOf(mapping.path);
      break;
    }
    why_not = ruby.status().message();
  }
  if (ruby_ == nullptr) {
    if (!why_not.empty())
      Warn(fmt::format("ruby threads: {}; rbspy dump --pid {} shows where Ruby is", why_not, pid_));
    return;
  }
  // Handlers that Ruby has for itself wake its main thread, or raise in it what ends the program.
  constexpr uint64_t kOfRuby = SignalBit(SIGHUP) | SignalBit(SIGINT) | SignalBit(SIGQUIT) |
                               SignalBit(SIGTERM) | SignalBit(SIGALRM) | SignalBit(SIGUSR1) |
                               SignalBit(SIGUSR2) | SignalBit(SIGCHLD) | SignalBit(SIGVTALRM) |
                               SignalBit(SIGPIPE) | SignalBit(SIGSYS) | SignalBit(SIGSEGV) |
                               SignalBit(SIGBUS) | SignalBit(SIGILL);
  facts_.runtime_signals |= kOfRuby & ~ruby_->HandledSignals();
#endif
}

void ProcessLook::AddRuby() {
  if (ruby_ == nullptr || context_.IsLate()) return;
  std::string warning;
  for (RubyThread& ruby : ruby_->Threads(kMostRubyThreads, &warning)) {
    // Of a process that fork() made, Ruby has the number of the thread that called it.
    const auto outer = outer_ids_.find(ruby.tid);
    const int tid = outer != outer_ids_.end() ? outer->second : ruby.is_main ? pid_ : 0;
    if (tid != 0) ruby_threads_.emplace(tid, std::move(ruby));
  }
  for (size_t i = 0; i < work_.size() && !context_.IsLate(); ++i) {
    work_[i].ruby = RubySitesOf(facts_.threads[i].tid);
    AddRubyTo(&work_[i], &facts_.threads[i]);
  }
  if (!warning.empty()) Warn("ruby threads: " + warning);
}

std::vector<RubySite> ProcessLook::RubySitesOf(int tid) const {
  const auto ruby = ruby_threads_.find(tid);
  return ruby == ruby_threads_.end() ? std::vector<RubySite>()
                                     : ruby_->SitesOf(ruby->second.address);
}

// What the thread has called from Ruby on, then the frames of Ruby. What the interpreter called to
// get there says nothing.
void ProcessLook::AddRubyTo(Work* work, ThreadFacts* thread) {
  const auto ruby = ruby_threads_.find(thread->tid);
  if (ruby == ruby_threads_.end()) return;
  const std::vector<RubySite> sites = std::exchange(work->ruby, {});
  const std::vector<RubyFrame> frames = ruby_->FramesOf(sites, context_.options.most_frames);
  ExplainRubyWait(ruby->second, *work, thread);
  if (thread->wait.kind != WaitKind::kNone && ruby_->HasTimeLimit(sites)) {
    thread->wait.has_timeout = true;
    thread->wait.owner.reset();  // who tries again and again gives up each time
  }
  if (!ruby->second.name.empty()) thread->name = ruby->second.name;
  if (frames.empty() || !context_.options.stacks) return;
  const auto of_ruby =
      std::find_if(thread->stack.begin(), thread->stack.end(),
                   [&](const StackFrame& frame) { return frame.module == ruby_module_; });
  thread->stack.erase(of_ruby, thread->stack.end());
  for (const RubyFrame& frame : frames) thread->stack.push_back(RubyReader::Name(frame));
  if (thread->stack.size() > context_.options.most_frames)
    thread->stack.resize(context_.options.most_frames);
  thread->stack_incomplete = false;
  thread->stack_warning.clear();
}

void ProcessLook::ExplainRubyWait(const RubyThread& ruby, const Work& work, ThreadFacts* thread) {
  ThreadWait& known = thread->wait;
  const bool is_kept = context_.kept != nullptr;
  if (known.kind == WaitKind::kPoll && (!is_kept || ruby.wait.kind != RubyWaitKind::kNone))
    std::erase_if(known.files,
                  [&](const WaitFile& file) { return IsOfInterpreter(file, pid_, is_kept); });
  const WaitKind native = work.meaning.kind;
  // It may have gone on since Ruby wrote what it waits for.
  if (thread->state != ThreadState::kSleeping || ruby.wait.kind == RubyWaitKind::kNone ||
      (native != WaitKind::kFutex && (native != WaitKind::kPoll || !known.files.empty())))
    return;
  ThreadWait wait;
  wait.has_timeout = known.has_timeout;
  wait.timeout = known.timeout;
  wait.address = ruby.wait.object;
  wait.object_type = ruby.wait.type;
  const auto other = ThreadOfRuby(ruby.wait.thread);
  switch (ruby.wait.kind) {
    case RubyWaitKind::kMutex:
      wait.kind = WaitKind::kMutex;
      wait.owner = other;
      wait.may_be_interrupted = true;
      break;
    case RubyWaitKind::kJoin:
      wait.kind = WaitKind::kJoin;
      wait.thread = other;
      wait.may_be_interrupted = true;
      break;
    case RubyWaitKind::kWakeup:
      wait.object_type = "Thread#wakeup";
      [[fallthrough]];
    case RubyWaitKind::kObject:
      wait.kind = WaitKind::kCondition;
      break;
    case RubyWaitKind::kChildEnd: {
      CallMeaning meaning;
      meaning.children = ruby.wait.child > 0     ? ChildChoice::kProcess
                         : ruby.wait.child == -1 ? ChildChoice::kAny
                                                 : ChildChoice::kGroup;
      meaning.child =
          ruby.wait.child < 0 ? static_cast<int>(-int64_t{ruby.wait.child}) : ruby.wait.child;
      wait.kind = WaitKind::kChild;
      ExplainChildWait(meaning, &wait);
      break;
    }
    case RubyWaitKind::kSleep:
      if (wait.has_timeout && native == WaitKind::kFutex) return;
      wait.kind = wait.has_timeout ? WaitKind::kTime : WaitKind::kSignal;
      wait.signals = facts_.caught_signals;
      break;
    case RubyWaitKind::kInterpreter:
      ExplainInterpreterOfRuby(ruby.wait.thread, &wait);
      break;
    case RubyWaitKind::kNone:
      return;
  }
  known = std::move(wait);
}

// Who runs gives way after a tenth of a second; who sleeps with the lock, as in a library that does
// not let go of it, does not.
void ProcessLook::ExplainInterpreterOfRuby(uint64_t holder, ThreadWait* wait) const {
  wait->kind = WaitKind::kMutex;
  const auto owner = ThreadOfRuby(holder);
  const bool sleeps =
      owner &&
      std::any_of(facts_.threads.begin(), facts_.threads.end(), [&](const ThreadFacts& thread) {
        return thread.tid == *owner && thread.state == ThreadState::kSleeping;
      });
  if (sleeps)
    wait->owner = owner;
  else
    wait->has_timeout = true;
}

std::optional<int> ProcessLook::ThreadOfRuby(uint64_t address) const {
  for (const auto& [tid, ruby] : ruby_threads_) {
    if (ruby.address == address && address != 0) return tid;
  }
  return std::nullopt;
}

}  // namespace hangscope
