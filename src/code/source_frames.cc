#include "code/source_frames.h"

#include <dwarf.h>
#include <elfutils/libdw.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "code/rust_names.h"
#include "code/symbol_name.h"

namespace hangscope {
namespace {

constexpr size_t kMostInlined = 32;       // functions within one another
constexpr size_t kMostEntries = 1 << 22;  // of a unit that are looked at
constexpr size_t kMostNesting = 64;       // of namespaces, types and blocks

bool MayHoldFunctions(int tag, bool nested) {
  switch (tag) {
    case DW_TAG_namespace:
    case DW_TAG_module:
    case DW_TAG_class_type:
    case DW_TAG_structure_type:
    case DW_TAG_union_type:
    case DW_TAG_enumeration_type:
      return true;
    case DW_TAG_subprogram:
    case DW_TAG_lexical_block:
      return nested;
    default:
      return false;
  }
}

// Of namespaces, types and functions around it, for a name that says nothing of them.
std::string Qualified(Dwarf_Die* die, const char* name) {
  Dwarf_Attribute attribute;
  Dwarf_Die at = *die;
  // Where it was declared.
  for (const unsigned link : {DW_AT_abstract_origin, DW_AT_specification}) {
    Dwarf_Die next;
    if (dwarf_attr(&at, link, &attribute) != nullptr &&
        dwarf_formref_die(&attribute, &next) != nullptr)
      at = next;
  }
  Dwarf_Die* scopes = nullptr;
  const int count = dwarf_getscopes_die(&at, &scopes);
  std::string text = name;
  for (int i = 1; i < count; ++i) {
    const int tag = dwarf_tag(&scopes[i]);
    const char* const around = dwarf_diename(&scopes[i]);
    if (tag == DW_TAG_compile_unit || tag == DW_TAG_partial_unit) break;
    // An operator of a type without a name in a function, or, with -g1, of no type, is a lambda.
    if (tag == DW_TAG_subprogram && text == "operator()") text = "<lambda>";
    if (around != nullptr && *around != '\0') text = std::string(around) + "::" + text;
  }
  free(scopes);
  return text;
}

// Sets the name, and whether that is one of a library's.
void SetName(Dwarf_Die* die, SourceFrame* frame) {
  frame->of_library = false;
  Dwarf_Attribute attribute;
  const char* const name = dwarf_diename(die);
  for (const unsigned kind : {DW_AT_linkage_name, DW_AT_MIPS_linkage_name}) {
    Dwarf_Attribute* const found = dwarf_attr_integrate(die, kind, &attribute);
    const char* const text = found != nullptr ? dwarf_formstring(found) : nullptr;
    if (text == nullptr) continue;
    std::string readable = ReadableName(text);
    frame->of_library = IsOfRustLibraries(text);
    // The older names of Rust number no closures.
    constexpr std::string_view kClosure = "{{closure}}";
    if (readable.ends_with(kClosure) && name != nullptr &&
        std::string_view(name).starts_with("{closure"))
      readable.replace(readable.size() - kClosure.size(), kClosure.size(),
                       std::string_view(name).substr(0, std::string_view(name).find('}') + 1));
    frame->function = std::move(readable);
    return;
  }
  const std::string_view plain(name == nullptr ? "" : name);
  const bool wants_more = plain == "operator()" || plain.starts_with('{');
  frame->function = wants_more ? Qualified(die, name) : ReadableName(plain);
}

// From the root on, where the unit says in which folder it was compiled.
std::string WholePath(Dwarf_Die* unit, const char* path) {
  if (path[0] == '/') return path;
  Dwarf_Attribute attribute;
  const char* const folder = dwarf_formstring(dwarf_attr(unit, DW_AT_comp_dir, &attribute));
  return folder == nullptr ? std::string(path) : std::string(folder) + "/" + path;
}

// Where an inlined function was called from.
void SetCall(Dwarf_Die* inlined, SourceFrame* frame) {
  frame->path.clear();
  frame->line = 0;
  Dwarf_Attribute attribute;
  Dwarf_Word file = 0;
  Dwarf_Word number = 0;
  Dwarf_Die unit;
  Dwarf_Files* files = nullptr;
  size_t count = 0;
  if (dwarf_formudata(dwarf_attr(inlined, DW_AT_call_file, &attribute), &file) != 0 ||
      dwarf_formudata(dwarf_attr(inlined, DW_AT_call_line, &attribute), &number) != 0 ||
      dwarf_diecu(inlined, &unit, nullptr, nullptr) == nullptr ||
      dwarf_getsrcfiles(&unit, &files, &count) != 0 || file >= count || number > INT_MAX)
    return;
  const char* const source = dwarf_filesrc(files, file, nullptr, nullptr);
  if (source == nullptr) return;
  frame->path = WholePath(&unit, source);
  frame->line = static_cast<int>(number);
}

// The inlined functions that have `address`, the innermost first.
std::vector<Dwarf_Die> InlinedAt(const Dwarf_Die& function, uint64_t address) {
  std::vector<Dwarf_Die> inlined;
  Dwarf_Die around = function;
  for (size_t depth = 0; depth < kMostNesting && inlined.size() < kMostInlined; ++depth) {
    Dwarf_Die child;
    bool goes_on = false;
    if (dwarf_child(&around, &child) != 0) break;
    do {
      const int tag = dwarf_tag(&child);
      const bool is_block = tag == DW_TAG_lexical_block || tag == DW_TAG_try_block ||
                            tag == DW_TAG_catch_block || tag == DW_TAG_inlined_subroutine;
      if (!is_block || dwarf_haspc(&child, address) <= 0) continue;
      if (tag == DW_TAG_inlined_subroutine) inlined.push_back(child);
      around = child;
      goes_on = true;
      break;
    } while (dwarf_siblingof(&child, &child) == 0);
    if (!goes_on) break;
  }
  std::reverse(inlined.begin(), inlined.end());
  return inlined;
}

}  // namespace

bool IsLibrarySource(const std::string& path) {
  // clang finds gcc's headers by ways like /usr/bin/../lib/gcc/x86_64-linux-gnu/12/../../include.
  const std::string plain = path.find("/../") == std::string::npos
                                ? path
                                : std::filesystem::path(path).lexically_normal().string();
  for (const char* folder : {"/usr/include/", "/usr/local/include/", "/usr/lib/", "/rustc/",
                             "/usr/src/rustc-", "/usr/share/cargo/registry/", "/usr/local/go/"}) {
    if (plain.starts_with(folder)) return true;
  }
  for (const char* part : {"/include/c++/", "/.cargo/registry/", "/.cargo/git/",
                           "/.rustup/toolchains/", "/rustlib/src/rust/", "/pkg/mod/"}) {
    if (plain.find(part) != std::string::npos) return true;
  }
  return false;
}

std::string QualifiedName(Dwarf_Die* die) {
  const char* const name = dwarf_diename(die);
  return name == nullptr ? std::string() : Qualified(die, name);
}

void SourceFrames::CollectFunctions(Dwarf_Die* root, bool nested, std::vector<Function>* into) {
  std::vector<Dwarf_Die> around;  // whose next child is to come
  Dwarf_Die entry;
  size_t entries = 0;
  bool has_entry = dwarf_child(root, &entry) == 0;
  while (entries++ < kMostEntries) {
    if (!has_entry) {
      if (around.empty()) break;
      entry = around.back();
      around.pop_back();
      has_entry = dwarf_siblingof(&entry, &entry) == 0;
      continue;
    }
    const int tag = dwarf_tag(&entry);
    if (tag == DW_TAG_subprogram) {
      Dwarf_Addr base = 0, begin = 0, end = 0;
      for (ptrdiff_t at = 0; (at = dwarf_ranges(&entry, at, &base, &begin, &end)) > 0;) {
        // Of a function that was dropped both are 0, or it begins there.
        if (begin != 0 && begin < end) into->push_back({begin, end, entry});
      }
    }
    Dwarf_Die child;
    if (MayHoldFunctions(tag, nested) && around.size() < kMostNesting &&
        dwarf_child(&entry, &child) == 0) {
      around.push_back(entry);
      entry = child;
    } else {
      has_entry = dwarf_siblingof(&entry, &entry) == 0;
    }
  }
  std::stable_sort(into->begin(), into->end(),
                   [](const Function& a, const Function& b) { return a.begin < b.begin; });
}

const SourceFrames::Function* SourceFrames::FindFunction(Dwarf_Die* unit, uint64_t address) {
  const auto [at, is_new] = functions_.try_emplace(dwarf_dieoffset(unit));
  Unit& known = at->second;
  if (is_new) CollectFunctions(unit, false, &known.functions);
  for (;;) {
    auto behind = std::upper_bound(
        known.functions.begin(), known.functions.end(), address,
        [](uint64_t wanted, const Function& function) { return wanted < function.begin; });
    if (behind != known.functions.begin() && address < std::prev(behind)->end)
      return &*std::prev(behind);
    if (known.has_nested) return nullptr;
    // Within other functions are those of Fortran, Ada, and of gcc's C.
    known.has_nested = true;
    known.functions.clear();
    CollectFunctions(unit, true, &known.functions);
  }
}

std::optional<SourceFrames::Place> SourceFrames::PlaceAt(uint64_t pc) {
  Place place;
  Dwarf_Addr bias = 0;
  Dwarf_Die* const found = units_.Find(pc, &bias);
  if (found == nullptr) return std::nullopt;
  place.unit = *found;
  place.bias = bias;
  place.address = pc - bias;
  const Function* const function = FindFunction(&place.unit, place.address);
  if (function == nullptr) return std::nullopt;
  place.function = function->die;
  return place;
}

std::vector<SourceFrame> SourceFrames::At(uint64_t pc) {
  std::vector<SourceFrame> frames;
  Dwarf_Addr bias = 0;
  Dwarf_Die* const found = units_.Find(pc, &bias);
  if (found == nullptr) return frames;
  Dwarf_Die unit = *found;
  const uint64_t address = pc - bias;
  SourceFrame frame;
  if (Dwarf_Line* const line = dwarf_getsrc_die(&unit, address); line != nullptr) {
    const char* const path = dwarf_linesrc(line, nullptr, nullptr);
    if (dwarf_lineno(line, &frame.line) == 0 && frame.line > 0 && path != nullptr)
      frame.path = WholePath(&unit, path);
    else
      frame.line = 0;
  }
  const auto add = [&frames](SourceFrame each) {
    each.of_library = each.of_library || IsLibrarySource(each.path);
    frames.push_back(std::move(each));
  };
  const Function* const function = FindFunction(&unit, address);
  if (function == nullptr) {
    add(std::move(frame));
    return frames;
  }
  for (Dwarf_Die& inlined : InlinedAt(function->die, address)) {
    SetName(&inlined, &frame);
    frame.is_inlined = true;
    add(frame);
    SetCall(&inlined, &frame);
  }
  Dwarf_Die outer = function->die;
  SetName(&outer, &frame);
  frame.is_inlined = false;
  add(std::move(frame));
  return frames;
}

}  // namespace hangscope
