// The code and the names of the kernel that was recorded: of a hardware trace of its side.
//
// Code comes from a vmlinux of the recorded build, moved to where the kernel lay (KASLR); or from
// an image of its memory (a kcore), which has modules, too. Names come from the vmlinux, else from
// a list as /proc/kallsyms has it. Which is taken, the first that there is:
//
//   what was named: a vmlinux, a kcore, a folder with kcore and kallsyms; a kallsyms
//   kcore_dir beside the recording, as perf record --kcore makes it
//   ~/.debug/[kernel.kcore]/BUILDID/*, as perf buildid-cache -k keeps it
//   ~/.debug/.build-id/BU/ILDID, with a vmlinux or a kallsyms that perf kept
//   this machine's own, where its kernel has the recorded build id
//
// A kernel of another build id is never taken.
#ifndef HANGSCOPE_PERF_CODE_KERNEL_CODE_H
#define HANGSCOPE_PERF_CODE_KERNEL_CODE_H

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "code/code_source.h"
#include "perf/code/code_places.h"
#include "perf/perf_file.h"
#include "perf/perf_side_band.h"

namespace hangscope {

// Names by address, as /proc/kallsyms has them.
class KernelSymbols {
 public:
  struct Symbol {
    uint64_t address = 0;
    std::string name;  // "schedule", "nf_hook [nf_tables]"
  };
  // Lines "ffffffff81000000 T name [module]"; what is no such line is left out. False: it has no
  // addresses, as the kernel shows itself to those who may not see them.
  bool Parse(std::string_view text);
  void Add(Symbol symbol) { symbols_.push_back(std::move(symbol)); }
  void Sort();
  // The last at or before `address`; null: none.
  const Symbol* Find(uint64_t address) const;
  std::optional<uint64_t> AddressOf(std::string_view name) const;
  bool empty() const { return symbols_.empty(); }

 private:
  std::vector<Symbol> symbols_;  // by address
};

// One thread.
class KernelCode {
 public:
  // `facts` outlives it.
  KernelCode(const PerfFileFacts& facts, KernelPlaces places);
  ~KernelCode();
  KernelCode(const KernelCode&) = delete;
  KernelCode& operator=(const KernelCode&) = delete;

  // Of the process -1: "[kernel.kallsyms]_text", a module.
  void Add(const PerfMap& map);
  // Whether the kernel, or a module, was there.
  bool Covers(uint64_t address);
  size_t Read(uint64_t address, std::span<char> bytes);
  // Its function; without one: not known.
  Location Locate(uint64_t address);
  // "schedule+0x1f"; empty: not known.
  std::string PlaceOf(uint64_t address);
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  class Image;
  struct Mapping {
    uint64_t begin = 0;
    uint64_t bytes = 0;
    std::string path;
  };
  // All of it once, when it is first asked for.
  void Find();
  void FindNamed();
  bool TakeFolder(const std::string& folder);
  void FindCached(const std::string& id);
  void FindOwn();
  bool TakeVmlinux(std::unique_ptr<Image> image, const std::string& path);
  bool TakeSymbols(const std::string& path);
  std::string RecordedId() const;

  const PerfFileFacts& facts_;
  const KernelPlaces places_;
  std::vector<Mapping> mappings_;
  size_t covered_ = 0;     // of mappings_: what is asked for next most often lies there, too
  std::string build_id_;   // that a mapping said
  std::string reference_;  // the symbol whose recorded address is known: "_text"
  std::optional<uint64_t> reference_address_;
  bool looked_for_ = false;
  std::unique_ptr<Image> image_;
  uint64_t image_shift_ = 0;  // recorded address = the image's + this
  KernelSymbols symbols_;
  uint64_t symbol_shift_ = 0;
  std::vector<std::string> warnings_;
};

}  // namespace hangscope

#endif
