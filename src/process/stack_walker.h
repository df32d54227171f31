// Follows the stacks of a live process's threads, from images of them, and names what is on them.
//
// libdw does the work, with the unwind tables, symbols and lines of the files that the process has
// mapped. The files are the target's, so anything may be in them; what cannot be made sense of ends
// the stack, and says so.
#ifndef HANGSCOPE_PROCESS_STACK_WALKER_H
#define HANGSCOPE_PROCESS_STACK_WALKER_H

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/status.h"
#include "code/call_depth.h"
#include "code/source_frames.h"
#include "code/source_variables.h"
#include "model/process.h"
#include "proc/proc_text.h"
#include "proc/process_memory.h"
#include "proc/thread_image.h"
#include "process/kept/kept_process.h"

struct Dwfl;
struct Dwfl_Module;

namespace hangscope {

// A frame as it is in memory, whatever was inlined into it.
struct StackPlace {
  uint64_t pc = 0;     // within the instruction that is being carried out
  bool calls = false;  // that is a call, to the place before
  std::optional<uint64_t> stack_pointer;
  std::optional<uint64_t> frame_pointer;
  // by DWARF's numbers, those below 16; those that are not known are nothing
  std::array<std::optional<uint64_t>, 16> registers;
};

struct StackWalk {
  std::vector<StackFrame> frames;  // innermost first
  std::vector<StackPlace> places;  // likewise
  bool complete = false;           // down to where the thread began
  std::string warning;             // why it is not complete or sure; a sentence
  // It ends before any frame of the program: the thread's registers may lead on.
  bool wants_registers = false;
};

struct StackTrail {
  std::vector<StackPlace> places;  // innermost first
  bool complete = false;
  std::string trouble;             // why not, behind a colon
  std::optional<size_t> guess_at;  // the first place that a guess led to
};

// One thread. Not movable: libdw knows where it is.
class StackWalker {
 public:
  // `mappings` are those of process `pid`, of its code at least, which `read` reads, and
  // `proc_root` is where /proc is.
  static Result<std::unique_ptr<StackWalker>> Open(const std::string& proc_root, int pid,
                                                   std::vector<MemoryMapping> mappings,
                                                   ReadMemory read);
  // Of one that a file has kept, which outlives the walker.
  static Result<std::unique_ptr<StackWalker>> OpenKept(const KeptProcess& process,
                                                       std::vector<MemoryMapping> mappings);
  ~StackWalker();
  StackWalker(const StackWalker&) = delete;
  StackWalker& operator=(const StackWalker&) = delete;

  // At most `most_frames` frames, inlined functions counted.
  StackWalk Walk(const ThreadImage& image, size_t most_frames);
  // The function that `address` is in; nothing: nobody says.
  struct Function {
    uint64_t begin = 0;
    uint64_t bytes = 0;
    std::string name;
  };
  std::optional<Function> FunctionAt(uint64_t address);
  // The variable that `address` is in: "lock_a", "queue+16"; empty: nobody says.
  std::string Variable(uint64_t address);
  // What the source calls `address`, by the functions at `places`, the innermost first, and then by
  // the variables outside of functions that their sources have: "savings.lock in main". Where it is
  // a part of a variable, that is its only name; `is_within`: none but such a one.
  std::vector<std::string> SourceNames(const std::vector<StackPlace>& places, uint64_t address,
                                       bool is_within);
  // The program's pointer to `address`, or else to `begin`, or to the nearest place between them:
  // "*state", "*state+16"; empty: there is none.
  std::string PointerTo(uint64_t begin, uint64_t address);
  // `address` is among the variables of a library that the system or a compiler has.
  bool IsOfSystemLibrary(uint64_t address) const;
  // Where the variable `name` of the file mapped at `in_module` lies.
  std::optional<uint64_t> AddressOf(uint64_t in_module, std::string_view name);
  // Whether debug information, or what it was told, says where in its source that file is.
  bool KnowsLines(uint64_t in_module);
  // What else says something of the code of a file.
  struct CodeNames {
    std::vector<Function> functions;  // by address
    std::vector<Function> variables;
    std::function<std::vector<SourceFrame>(uint64_t pc)> frames_at;
  };
  // Before anything is asked of the file mapped at `in_module`; symbols of its own come first.
  void Tell(uint64_t in_module, CodeNames names);

  // For libdw's callbacks.
  bool ReadWord(uint64_t address, uint64_t* word) const;
  const ThreadImage* image() const { return image_; }
  int OpenModule(const std::string& path, uint64_t begin) const;

 private:
  struct ModuleSymbols;
  struct ModuleSource {
    bool of_system = false;
    std::unique_ptr<SourceFrames> frames;        // null: it has no lines, or nobody wants them
    std::unique_ptr<SourceVariables> variables;  // if `frames`
    CodeNames told;
    std::vector<SourceFrame> At(uint64_t pc) const;
  };

  StackWalker(std::string proc_root, int pid, std::vector<MemoryMapping> mappings, ReadMemory read);
  Status Begin(int error);
  StackTrail Follow(const ThreadImage& image, size_t most_frames);
  StackWalk Named(const StackTrail& trail, size_t most_frames);
  std::string NameOfCall(uint64_t back, uint64_t pc);
  bool StepByCode(const ThreadImage& image, const StackPlace& place, ThreadImage* caller);
  bool StepOverSignal(const StackPlace& place, ThreadImage* interrupted) const;
  std::optional<CallDepth> DepthOf(const StackPlace& place);
  std::optional<CallDepth> DepthFrom(uint64_t begin, uint64_t pc);
  bool ReadCodeAt(uint64_t address, void* into, size_t bytes);
  bool HasTable(uint64_t pc);
  bool IsFirst(uint64_t pc);
  bool GuessFramePointer(const ThreadImage& image, size_t most_frames, size_t begin,
                         StackTrail* best);
  std::vector<uint64_t> FramePointerCandidates(const ThreadImage& image, uint64_t stuck_pc);
  bool IsOutermost(uint64_t pc) const;
  bool MayHaveCalled(uint64_t back, uint64_t pc);
  const std::vector<StackFrame>& Name(uint64_t pc);
  std::vector<StackFrame> FindNames(uint64_t pc);
  Dwfl_Module* ModuleOfVariable(uint64_t address) const;
  std::optional<VariableSymbol> SymbolOfVariable(uint64_t address);
  ModuleSource& SourceOf(Dwfl_Module* module);

  const std::string proc_root_;
  const int pid_;
  const std::vector<MemoryMapping> mappings_;
  const ReadMemory read_;
  const ReadMemory code_;              // the same, and keeps what it reads of code
  const KeptProcess* kept_ = nullptr;  // null: it lives
  std::string program_;                // the path of the file that the process runs
  bool is_static_ = false;             // that has all its libraries in it
  Dwfl* dwfl_ = nullptr;
  const ThreadImage* image_ = nullptr;  // that is being walked
  // by pc: what is inlined there first
  std::unordered_map<uint64_t, std::vector<StackFrame>> names_;
  std::unordered_map<uint64_t, bool> has_table_;                              // by pc
  std::map<std::pair<uint64_t, uint64_t>, std::optional<CallDepth>> depths_;  // by function and pc
  std::unordered_map<uint64_t, std::string> code_pages_;
  std::unordered_map<Dwfl_Module*, std::unique_ptr<ModuleSymbols>> symbols_;
  std::unordered_map<Dwfl_Module*, ModuleSource> sources_;
  ModuleSymbols& SymbolsOf(Dwfl_Module* module);
  static void AddTold(const CodeNames& told, ModuleSymbols* symbols);
};

}  // namespace hangscope

#endif
