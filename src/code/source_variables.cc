#include "code/source_variables.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

namespace hangscope {
namespace {

constexpr int kMostDeep = 16;        // of types, of blocks
constexpr size_t kMostLooks = 1024;  // at members and elements, for a variable
constexpr size_t kMostLooksInAll = 1 << 17;
constexpr size_t kMostMembers = 1024;  // of a type
constexpr size_t kMostVariables = 1 << 14;
constexpr size_t kMostElements = 64;  // of an array whose elements are pointers
constexpr size_t kMostPath = 80;
constexpr int kPointerRounds = 3;  // pointers and references behind one another

std::string_view NameIn(Dwarf_Die* die) {
  const char* const name = dwarf_diename(die);
  return name == nullptr ? std::string_view() : std::string_view(name);
}

// The C library's names and the compiler's: "__data", "_M_mutex".
bool IsReserved(std::string_view name) {
  return name.size() > 1 && name[0] == '_' &&
         (name[1] == '_' || (name[1] >= 'A' && name[1] <= 'Z'));
}

// Without its qualifiers and its other names. Nothing: it is void, or not known.
std::optional<Dwarf_Die> TypeOf(Dwarf_Die die) {
  for (int i = 0; i < kMostDeep; ++i) {
    Dwarf_Attribute attribute;
    Dwarf_Die type;
    if (dwarf_attr_integrate(&die, DW_AT_type, &attribute) == nullptr ||
        dwarf_formref_die(&attribute, &type) == nullptr)
      return std::nullopt;
    switch (dwarf_tag(&type)) {
      case DW_TAG_typedef:
      case DW_TAG_const_type:
      case DW_TAG_volatile_type:
      case DW_TAG_restrict_type:
      case DW_TAG_atomic_type:
        die = type;
        break;
      default:
        return type;
    }
  }
  return std::nullopt;
}

bool IsRecord(Dwarf_Die type) {
  const int tag = dwarf_tag(&type);
  return tag == DW_TAG_structure_type || tag == DW_TAG_class_type || tag == DW_TAG_union_type;
}

bool IsReference(Dwarf_Die type) {
  const int tag = dwarf_tag(&type);
  return tag == DW_TAG_reference_type || tag == DW_TAG_rvalue_reference_type;
}

bool IsPointer(Dwarf_Die type) { return dwarf_tag(&type) == DW_TAG_pointer_type; }

uint64_t SizeOf(Dwarf_Die type) {
  Dwarf_Word size = 0;
  return dwarf_aggregate_size(&type, &size) == 0 ? size : 0;
}

struct Member {
  std::string name;  // empty: of a base, or it has none
  uint64_t offset = 0;
  Dwarf_Die type;
};

// Those that have a place in each object.
std::vector<Member> ReadMembers(Dwarf_Die record) {
  std::vector<Member> members;
  const bool is_lambda = NameIn(&record).starts_with("<lambda");
  Dwarf_Die child;
  if (dwarf_child(&record, &child) != 0) return members;
  do {
    const int tag = dwarf_tag(&child);
    if ((tag != DW_TAG_member && tag != DW_TAG_inheritance) ||
        dwarf_hasattr(&child, DW_AT_external))
      continue;
    const auto type = TypeOf(child);
    Dwarf_Attribute attribute;
    Dwarf_Word offset = 0;  // of unions, where nothing says it
    if (!type || (dwarf_attr(&child, DW_AT_data_member_location, &attribute) != nullptr &&
                  dwarf_formudata(&attribute, &offset) != 0))
      continue;
    std::string_view name = tag == DW_TAG_member ? NameIn(&child) : std::string_view();
    // What a lambda captures: "__lock" is the lock of the function around it.
    if (is_lambda && name.starts_with("__")) name.remove_prefix(2);
    members.push_back({std::string(name), offset, *type});
  } while (dwarf_siblingof(&child, &child) == 0 && members.size() < kMostMembers);
  return members;
}

// What types have is read once.
class Types {
 public:
  const std::vector<Member>& MembersOf(const Dwarf_Die& record) {
    const auto [at, is_new] = members_.try_emplace(record.addr);
    if (is_new) at->second = ReadMembers(record);
    return at->second;
  }

 private:
  std::unordered_map<const void*, std::vector<Member>> members_;
};

// ".accounts[1].lock" of what lies at `offset` in an object: members of a library's types have no
// names that anybody knows.
std::string PartAt(Dwarf_Die type, uint64_t offset, Types* types, bool in_library = false,
                   int depth = 0) {
  if (depth > kMostDeep) return {};
  if (dwarf_tag(&type) == DW_TAG_array_type) {
    const auto element = TypeOf(type);
    const uint64_t bytes = element ? SizeOf(*element) : 0;
    if (bytes == 0 || (in_library && !IsRecord(*element))) return {};
    return fmt::format("[{}]", offset / bytes) +
           PartAt(*element, offset % bytes, types, in_library, depth + 1);
  }
  if (!IsRecord(type)) return {};
  for (const Member& member : types->MembersOf(type)) {
    if (offset < member.offset || offset - member.offset >= SizeOf(member.type)) continue;
    const bool is_reserved = IsReserved(member.name);
    const std::string part =
        PartAt(member.type, offset - member.offset, types, in_library || is_reserved, depth + 1);
    return is_reserved || member.name.empty() ? part : "." + member.name + part;
  }
  return {};
}

// Looks for an address in objects, and where the pointers in them lead to.
class PointerSearch {
 public:
  // *looks_left: at members and elements; taken from.
  PointerSearch(const ReadCode& read, Types* types, size_t* looks_left, uint64_t address)
      : read_(read), types_(types), looks_left_(looks_left), address_(address) {}

  // By as few pointers as lead there. `is_pointer`: `value` is that of a pointer of `type`; else an
  // object of `type` is there.
  std::optional<std::string> From(Dwarf_Die type, uint64_t value, bool is_pointer,
                                  const std::string& path) {
    for (int pointers = 1; pointers <= kPointerRounds; ++pointers) {
      auto found = is_pointer ? ByPointer(type, value, path, pointers, 0)
                              : ByObject(type, value, path, pointers, 0);
      if (found) return found;
    }
    return std::nullopt;
  }

 private:
  static std::string Join(const std::string& path, const std::string& name) {
    if (name.empty() || IsReserved(name) || path.size() > kMostPath) return path;
    return path.empty() || path.ends_with("->") ? path + name : path + "." + name;
  }

  std::optional<std::string> ByObject(Dwarf_Die type, uint64_t begin, const std::string& path,
                                      int pointers, int depth) {
    if (depth > kMostDeep || ++looks_ > kMostLooks || *looks_left_ == 0) return std::nullopt;
    --*looks_left_;
    if (IsPointer(type) || IsReference(type)) {
      uint64_t value = 0;
      if (!read_(begin, &value, sizeof value)) return std::nullopt;
      return ByPointer(type, value, path, pointers, depth);
    }
    if (dwarf_tag(&type) == DW_TAG_array_type) {
      const auto element = TypeOf(type);
      const uint64_t bytes = element ? SizeOf(*element) : 0;
      return bytes == 0 ? std::nullopt
                        : ByElements(*element, begin, SizeOf(type) / bytes, path, pointers, depth);
    }
    if (!IsRecord(type)) return std::nullopt;
    const std::vector<Member>& members = types_->MembersOf(type);
    if (auto found = InVector(members, begin, path, pointers, depth)) return found;
    for (const Member& member : members) {
      if (auto found = ByObject(member.type, begin + member.offset, Join(path, member.name),
                                pointers, depth + 1))
        return found;
    }
    return std::nullopt;
  }

  std::optional<std::string> ByPointer(Dwarf_Die type, uint64_t value, const std::string& path,
                                       int pointers, int depth) {
    if (pointers == 0 || value == 0) return std::nullopt;
    const bool is_reference = IsReference(type);
    const auto object = TypeOf(type);
    const uint64_t bytes = object ? SizeOf(*object) : 0;
    // The type of what is there may be a secret of a library's.
    if (value == address_ && bytes == 0) return is_reference ? path : "*" + path;
    if (!object) return std::nullopt;
    if (value <= address_ && address_ - value < bytes) {
      const std::string part = PartAt(*object, address_ - value, types_);
      if (is_reference) return path + part;
      return part.starts_with('.') ? path + "->" + part.substr(1) : "*" + path + part;
    }
    if (!IsRecord(*object)) return std::nullopt;
    return ByObject(*object, value, is_reference ? path : path + "->", pointers - 1, depth + 1);
  }

  std::optional<std::string> ByElements(Dwarf_Die element, uint64_t begin, uint64_t count,
                                        const std::string& path, int pointers, int depth) {
    const uint64_t bytes = SizeOf(element);
    for (uint64_t i = 0; i < std::min<uint64_t>(count, kMostElements); ++i) {
      if (auto found = ByObject(element, begin + i * bytes, fmt::format("{}[{}]", path, i),
                                pointers, depth + 1))
        return found;
    }
    return std::nullopt;
  }

  // The elements of a std::vector lie between two of its pointers.
  std::optional<std::string> InVector(const std::vector<Member>& members, uint64_t begin,
                                      const std::string& path, int pointers, int depth) {
    const auto value_of = [&](std::string_view name) -> uint64_t {
      uint64_t value = 0;
      for (const Member& member : members) {
        if (member.name == name && IsPointer(member.type) &&
            !read_(begin + member.offset, &value, sizeof value))
          return 0;
      }
      return value;
    };
    const uint64_t first = value_of("_M_start"), last = value_of("_M_finish");
    if (pointers == 0 || first == 0 || last <= first) return std::nullopt;
    const auto start = std::find_if(members.begin(), members.end(),
                                    [](const Member& each) { return each.name == "_M_start"; });
    const auto element = TypeOf(start->type);
    const uint64_t bytes = element ? SizeOf(*element) : 0;
    if (bytes == 0) return std::nullopt;
    if (first <= address_ && address_ < last)
      return fmt::format("{}[{}]", path, (address_ - first) / bytes) +
             PartAt(*element, (address_ - first) % bytes, types_);
    return ByElements(*element, first, (last - first) / bytes, path, pointers - 1, depth);
  }

  const ReadCode& read_;
  Types* const types_;
  size_t* const looks_left_;
  const uint64_t address_;
  size_t looks_ = 0;
};

// Where a variable is: at an address, or `value` is what it has.
struct VariablePlace {
  uint64_t value = 0;
  bool is_address = true;
};

class LocationReader {
 public:
  LocationReader(const VariableFrame* frame, uint64_t bias, const ReadCode& read)
      : frame_(frame), bias_(bias), read_(read) {}

  // `address` is the unit's. Nothing: it is nowhere then, or in parts, or it is not known.
  std::optional<VariablePlace> Find(Dwarf_Die* variable, Dwarf_Die* function,
                                    uint64_t address) const {
    Dwarf_Attribute attribute;
    Dwarf_Op* steps = nullptr;
    size_t count = 0;
    if (dwarf_attr_integrate(variable, DW_AT_location, &attribute) == nullptr ||
        dwarf_getlocation_addr(&attribute, address, &steps, &count, 1) != 1)
      return std::nullopt;
    return Evaluate({steps, count}, function, address);
  }

 private:
  std::optional<uint64_t> Register(uint64_t number) const {
    if (frame_ == nullptr || number >= frame_->registers.size()) return std::nullopt;
    return frame_->registers[number];
  }

  std::optional<uint64_t> FrameBase(Dwarf_Die* function, uint64_t address) const {
    Dwarf_Attribute attribute;
    Dwarf_Op* steps = nullptr;
    size_t count = 0;
    if (function == nullptr ||
        dwarf_attr_integrate(function, DW_AT_frame_base, &attribute) == nullptr ||
        dwarf_getlocation_addr(&attribute, address, &steps, &count, 1) != 1)
      return std::nullopt;
    // It is none of its own.
    const auto place = Evaluate({steps, count}, nullptr, address);
    return place ? std::optional(place->value) : std::nullopt;
  }

  // What compilers write of variables that are there whole.
  std::optional<VariablePlace> Evaluate(std::span<const Dwarf_Op> steps, Dwarf_Die* function,
                                        uint64_t address) const {
    std::vector<uint64_t> stack;
    bool is_address = true;
    const auto push = [&stack](std::optional<uint64_t> value) {
      if (value) stack.push_back(*value);
      return value.has_value();
    };
    for (const Dwarf_Op& step : steps) {
      const unsigned atom = step.atom;
      bool is_known = false;
      if (atom >= DW_OP_reg0 && atom <= DW_OP_reg31 && steps.size() == 1) {
        is_address = false;
        is_known = push(Register(atom - DW_OP_reg0));
      } else if (atom >= DW_OP_breg0 && atom <= DW_OP_breg31) {
        const auto base = Register(atom - DW_OP_breg0);
        is_known = push(base ? std::optional(*base + step.number) : std::nullopt);
      } else if (atom >= DW_OP_lit0 && atom <= DW_OP_lit31) {
        is_known = push(atom - DW_OP_lit0);
      } else if (atom == DW_OP_addr) {
        is_known = push(step.number + bias_);
      } else if (atom == DW_OP_fbreg) {
        const auto base = FrameBase(function, address);
        is_known = push(base ? std::optional(*base + step.number) : std::nullopt);
      } else if (atom == DW_OP_call_frame_cfa) {
        is_known = push(frame_ == nullptr ? std::nullopt : frame_->frame_address);
      } else if (atom == DW_OP_plus_uconst && !stack.empty()) {
        stack.back() += step.number;
        is_known = true;
      } else if (atom == DW_OP_deref && !stack.empty()) {
        is_known = read_(stack.back(), &stack.back(), sizeof stack.back());
      } else if (atom == DW_OP_stack_value && !stack.empty()) {
        is_address = false;
        is_known = true;
      }
      if (!is_known) return std::nullopt;
    }
    if (stack.empty()) return std::nullopt;
    return VariablePlace{stack.back(), is_address};
  }

  const VariableFrame* const frame_;  // null: of none
  const uint64_t bias_;
  const ReadCode& read_;
};

struct Tools {
  const ReadCode& read;
  Types types;
  size_t looks_left = kMostLooksInAll;
};

// Of one variable that is called `name`.
std::optional<SourceVariable> ThroughVariable(Dwarf_Die type, const VariablePlace& place,
                                              const std::string& name, uint64_t address,
                                              Tools& tools) {
  PointerSearch search(tools.read, &tools.types, &tools.looks_left, address);
  const bool is_pointer = IsPointer(type) || IsReference(type);
  SourceVariable found;
  if (place.is_address) {
    if (place.value <= address && address - place.value < SizeOf(type)) {
      found.path = name + PartAt(type, address - place.value, &tools.types);
      found.is_within = true;
      return found;
    }
  } else if (!is_pointer) {
    return std::nullopt;
  }
  const auto path = search.From(type, place.value, is_pointer && !place.is_address, name);
  if (!path) return std::nullopt;
  found.path = *path;
  return found;
}

bool IsOfLibrary(Dwarf_Die* function) {
  const char* const path = dwarf_decl_file(function);
  return path != nullptr && IsLibrarySource(path);
}

class FrameSearch {
 public:
  FrameSearch(const VariableFrame& frame, const SourceFrames::Place& place, uint64_t wanted,
              Tools& tools)
      : place_(place), wanted_(wanted), tools_(tools), reader_(&frame, place.bias, tools.read) {}

  std::optional<SourceVariable> Search() {
    Dwarf_Die function = place_.function;
    Look(function, function, IsOfLibrary(&function), 0);
    return best_;
  }

 private:
  // What it is a part of comes first, then what the innermost function has a pointer to.
  void Look(Dwarf_Die scope, Dwarf_Die named, bool of_library, int depth) {
    Dwarf_Die child;
    if (depth > kMostDeep || dwarf_child(&scope, &child) != 0) return;
    do {
      const int tag = dwarf_tag(&child);
      if (tag == DW_TAG_formal_parameter || tag == DW_TAG_variable) {
        if (!of_library && ++variables_ < kMostVariables) LookAt(child, named, depth);
        continue;
      }
      const bool is_block = tag == DW_TAG_lexical_block || tag == DW_TAG_inlined_subroutine ||
                            tag == DW_TAG_try_block || tag == DW_TAG_catch_block;
      if (!is_block || dwarf_haspc(&child, place_.address) <= 0) continue;
      if (tag == DW_TAG_inlined_subroutine)
        Look(child, child, IsOfLibrary(&child), depth + 1);
      else
        Look(child, named, of_library, depth + 1);
    } while (dwarf_siblingof(&child, &child) == 0);
  }

  void LookAt(Dwarf_Die variable, Dwarf_Die named, int depth) {
    std::string name(NameIn(&variable));
    const auto type = TypeOf(variable);
    if (name.empty() || !type) return;
    Dwarf_Die function = place_.function;
    const auto place = reader_.Find(&variable, &function, place_.address);
    if (!place) return;
    // What a lambda captures has the names of the variables around it.
    if (name == "__closure") name.clear();
    if (IsReserved(name)) return;
    auto found = ThroughVariable(*type, *place, name, wanted_, tools_);
    if (!found) return;
    const auto worth = [](const SourceVariable& each, int at) {
      return std::pair(each.is_within, at);
    };
    if (best_ && worth(*found, depth) <= worth(*best_, best_depth_)) return;
    if (name.empty()) {
      // "->bank->lock", or "*" of it
      const size_t arrow = found->path.find("->");
      if (arrow == std::string::npos) return;
      found->path = found->path.substr(0, arrow) + found->path.substr(arrow + 2);
    }
    found->function = QualifiedName(&named);
    best_ = std::move(found);
    best_depth_ = depth;
  }

  const SourceFrames::Place& place_;
  const uint64_t wanted_;
  Tools& tools_;
  const LocationReader reader_;
  std::optional<SourceVariable> best_;
  int best_depth_ = 0;
  size_t variables_ = 0;
};

// The unit's variables, namespaces' included.
void CollectVariables(Dwarf_Die scope, int depth, std::vector<Dwarf_Die>* into) {
  Dwarf_Die child;
  if (depth > kMostDeep || dwarf_child(&scope, &child) != 0) return;
  do {
    const int tag = dwarf_tag(&child);
    if (into->size() >= kMostVariables) return;
    if (tag == DW_TAG_variable) into->push_back(child);
    if (tag == DW_TAG_namespace) CollectVariables(child, depth + 1, into);
  } while (dwarf_siblingof(&child, &child) == 0);
}

bool IsCalled(Dwarf_Die* variable, std::string_view symbol) {
  Dwarf_Attribute attribute;
  Dwarf_Attribute* const linkage = dwarf_attr_integrate(variable, DW_AT_linkage_name, &attribute);
  const char* const text = linkage != nullptr ? dwarf_formstring(linkage) : nullptr;
  return text != nullptr ? symbol == text : symbol == NameIn(variable);
}

}  // namespace

struct SourceVariables::Known {
  Tools tools;
  std::unordered_map<const void*, std::vector<Dwarf_Die>> of_units;  // variables
};

SourceVariables::SourceVariables(SourceFrames& frames, ReadCode read)
    : frames_(frames), read_(std::move(read)), known_(new Known{{read_, {}}, {}}) {}

SourceVariables::~SourceVariables() = default;

std::optional<SourceVariable> SourceVariables::OfFrame(const VariableFrame& frame,
                                                       uint64_t address) {
  const auto place = frames_.PlaceAt(frame.pc);
  if (!place) return std::nullopt;
  return FrameSearch(frame, *place, address, known_->tools).Search();
}

std::optional<SourceVariable> SourceVariables::OfUnits(
    std::span<const uint64_t> pcs, uint64_t address, const std::optional<VariableSymbol>& symbol) {
  std::set<const void*> seen;
  std::optional<SourceVariable> found;
  for (const uint64_t pc : pcs) {
    const auto place = frames_.PlaceAt(pc);
    if (!place || !seen.insert(place->unit.addr).second) continue;
    auto each = OfUnit(*place, address, symbol);
    if (each && each->is_within) return each;
    if (each && !found) found = std::move(each);
  }
  return found;
}

std::optional<SourceVariable> SourceVariables::OfUnit(const SourceFrames::Place& place,
                                                      uint64_t address,
                                                      const std::optional<VariableSymbol>& symbol) {
  const auto [variables, is_new] = known_->of_units.try_emplace(place.unit.addr);
  if (is_new) CollectVariables(place.unit, 0, &variables->second);
  const LocationReader reader(nullptr, place.bias, read_);
  std::optional<SourceVariable> found;
  for (Dwarf_Die& variable : variables->second) {
    const auto type = TypeOf(variable);
    auto at = reader.Find(&variable, nullptr, place.address);
    if (!at && symbol && IsCalled(&variable, symbol->name)) at = VariablePlace{symbol->begin, true};
    const bool is_wanted = at && type && (!symbol || at->value == symbol->begin);
    if (!is_wanted || NameIn(&variable).empty()) continue;
    auto each = ThroughVariable(*type, *at, QualifiedName(&variable), address, known_->tools);
    if (each && each->is_within) return each;
    if (each && !found) found = std::move(each);
  }
  return found;
}

}  // namespace hangscope
