#include "runtime/jvm/jvm_objects.h"

#include <algorithm>
#include <iterator>

#include "base/utf8.h"

namespace hangscope {
namespace {

constexpr size_t kMostSymbol = 512;
constexpr size_t kMostClasses = 32768;
constexpr size_t kMostFields = 4096;  // of a class
constexpr size_t kMostSupers = 64;
constexpr size_t kMostLoaders = 4096;
constexpr uint64_t kForwarded = 3;  // the lowest bits of the mark of an object that was moved
constexpr uint16_t kStatic = 8;

const JavaClass kNoClass;

}  // namespace

std::string JvmObjects::SymbolAt(uint64_t symbol) {
  if (symbol == 0) return {};
  const size_t length = memory_.Kept<uint16_t>(symbol + layout_.symbol_length);
  if (length == 0 || length > kMostSymbol) return {};
  std::string text(length, '\0');
  if (!memory_.KeptInto(symbol + layout_.symbol_body, text.data(), length)) return {};
  const bool is_name = std::none_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) < ' ' || c == '\x7f';
  });
  return is_name ? text : std::string();
}

std::string JvmObjects::TextOfPool(uint64_t pool, uint32_t index) {
  if (index == 0 || index >= memory_.Kept<uint32_t>(pool + layout_.pool_length)) return {};
  return SymbolAt(memory_.Kept<uint64_t>(pool + layout_.pool_size + index * kBytesOfWord));
}

const JavaClass& JvmObjects::ClassAt(uint64_t address) {
  if (address == 0 || address % kBytesOfWord != 0) return kNoClass;
  const auto known = classes_.find(address);
  if (known != classes_.end()) return known->second;
  if (classes_.size() == kMostClasses) return kNoClass;
  JavaClass& made = classes_[address];
  made.address = address;
  made.name = SymbolAt(memory_.Kept<uint64_t>(address + layout_.klass_name));
  made.super = memory_.Kept<uint64_t>(address + layout_.klass_super);
  made.is_known = !made.name.empty();
  return made;
}

const std::vector<JavaField>& JvmObjects::FieldsOf(const JavaClass& of) {
  const auto known = fields_.find(of.address);
  if (known != fields_.end()) return known->second;
  std::vector<JavaField>& fields = fields_[of.address];
  if (!of.is_known || of.name.starts_with('[')) return fields;
  const uint64_t list = memory_.Kept<uint64_t>(of.address + layout_.fields);
  const uint64_t pool = memory_.Kept<uint64_t>(of.address + layout_.constants);
  const uint64_t slots = layout_.field_slots;
  const size_t parts = memory_.Kept<uint32_t>(list + layout_.array_length);
  if (list == 0 || slots == 0) return fields;
  const size_t own = memory_.Kept<uint16_t>(of.address + layout_.field_count);
  const auto part = [&](size_t field, uint64_t which) {
    return memory_.Kept<uint16_t>(list + layout_.array_of_u2 + 2 * (field * slots + which));
  };
  for (size_t i = 0; i < std::min({own, parts / slots, kMostFields}); ++i) {
    JavaField field;
    field.name = TextOfPool(pool, part(i, layout_.field_name));
    field.signature = TextOfPool(pool, part(i, layout_.field_signature));
    field.is_static = (part(i, layout_.field_flags) & kStatic) != 0;
    const uint32_t packed =
        static_cast<uint32_t>(part(i, layout_.field_high)) << 16 | part(i, layout_.field_low);
    field.offset = packed >> (layout_.field_tag_bits & 31);
    if (!field.name.empty()) fields.push_back(std::move(field));
  }
  return fields;
}

uint64_t JvmObjects::MirrorOf(const JavaClass& of) {
  return of.is_known ? HandleAt(of.address + layout_.klass_mirror) : 0;
}

uint64_t JvmObjects::Resolve(uint64_t object) const {
  if (object == 0 || object % kBytesOfWord != 0) return 0;
  const auto mark = memory_.Now<uint64_t>(object + layout_.object_mark);
  return (mark & kForwarded) == kForwarded && mark > kForwarded ? mark & ~kForwarded : object;
}

uint64_t JvmObjects::ReferenceAt(uint64_t address) const {
  if (!layout_.narrow_oops) return Resolve(memory_.Now<uint64_t>(address));
  const uint64_t narrow = memory_.Now<uint32_t>(address);
  return narrow == 0 ? 0 : Resolve(layout_.oop_base + (narrow << layout_.oop_shift));
}

uint64_t JvmObjects::HandleAt(uint64_t address) const {
  const auto slot = memory_.Now<uint64_t>(address);
  return slot == 0 ? 0 : Resolve(memory_.Now<uint64_t>(slot));
}

const JavaClass& JvmObjects::ClassOf(uint64_t object) {
  if (object == 0) return kNoClass;
  if (!layout_.narrow_klasses) return ClassAt(memory_.Now<uint64_t>(object + layout_.object_klass));
  const uint64_t narrow = memory_.Now<uint32_t>(object + layout_.object_klass);
  return narrow == 0 ? kNoClass : ClassAt(layout_.klass_base + (narrow << layout_.klass_shift));
}

bool JvmObjects::IsA(uint64_t object, std::string_view class_name) {
  const JavaClass* at = &ClassOf(object);
  for (size_t i = 0; i < kMostSupers && at->is_known; ++i) {
    if (at->name == class_name) return true;
    at = &ClassAt(at->super);
  }
  return false;
}

const JavaField* JvmObjects::FindField(const JavaClass& of, std::string_view name) {
  const JavaClass* at = &of;
  for (size_t i = 0; i < kMostSupers && at->is_known; ++i) {
    for (const JavaField& field : FieldsOf(*at)) {
      if (field.name == name) return &field;
    }
    at = &ClassAt(at->super);
  }
  return nullptr;
}

uint64_t JvmObjects::Reference(uint64_t object, std::string_view field) {
  const JavaField* const found = FindField(ClassOf(object), field);
  return found == nullptr || found->is_static || !found->IsReference()
             ? 0
             : ReferenceAt(object + found->offset);
}

uint64_t JvmObjects::StaticReference(const JavaClass& of, std::string_view field) {
  for (const JavaField& each : FieldsOf(of)) {
    if (each.is_static && each.name == field && each.IsReference())
      return ReferenceAt(MirrorOf(of) + each.offset);
  }
  return 0;
}

// The length stands behind the class, and the elements begin at a whole word.
uint64_t JvmObjects::ArrayLengthAt() const {
  return layout_.object_klass + (layout_.narrow_klasses ? 4 : 8);
}

std::vector<uint64_t> JvmObjects::ElementsOf(uint64_t array, size_t most) {
  if (array == 0 || !ClassOf(array).name.starts_with("[L")) return {};
  const uint64_t length_at = ArrayLengthAt();
  const uint64_t begin = (length_at + 4 + kBytesOfWord - 1) / kBytesOfWord * kBytesOfWord;
  const uint64_t bytes = layout_.narrow_oops ? 4 : kBytesOfWord;
  std::vector<uint64_t> elements(std::min<size_t>(memory_.Now<uint32_t>(array + length_at), most));
  for (size_t i = 0; i < elements.size(); ++i) elements[i] = ReferenceAt(array + begin + i * bytes);
  return elements;
}

std::string JvmObjects::StringAt(uint64_t object, size_t most) {
  const uint64_t bytes = Reference(object, "value");
  if (bytes == 0 || ClassOf(bytes).name != "[B") return {};
  const bool is_wide = Value<uint8_t>(object, "coder") != 0;
  const uint64_t length_at = ArrayLengthAt();
  const uint64_t begin = (length_at + 4 + kBytesOfWord - 1) / kBytesOfWord * kBytesOfWord;
  const size_t unit = is_wide ? 2 : 1;
  const size_t length = std::min<size_t>(memory_.Now<uint32_t>(bytes + length_at) / unit, most);
  std::string raw(length * unit, '\0');
  if (!memory_.ReadInto(bytes + begin, raw.data(), raw.size())) return {};
  std::string text;
  for (size_t i = 0; i < length; ++i) {
    const auto byte = [&](size_t at) { return static_cast<unsigned char>(raw[at]); };
    const unsigned c =
        is_wide ? byte(2 * i) | static_cast<unsigned>(byte(2 * i + 1)) << 8 : byte(i);
    AppendUtf8(c >= 0xd800 && c < 0xe000 ? U'?' : static_cast<char32_t>(c), &text);
  }
  return text;
}

void JvmObjects::VisitClasses(const std::function<bool(const JavaClass&)>& visit) {
  uint64_t loader = memory_.Kept<uint64_t>(layout_.class_loaders_at);
  size_t classes = 0;
  for (size_t loaders = 0; loader != 0 && loaders < kMostLoaders; ++loaders) {
    uint64_t klass = memory_.Kept<uint64_t>(loader + layout_.loader_klasses);
    while (klass != 0 && ++classes < kMostClasses) {
      const JavaClass& each = ClassAt(klass);
      if (!each.is_known) break;
      if (visit(each)) return;
      klass = memory_.Kept<uint64_t>(klass + layout_.klass_next);
    }
    loader = memory_.Kept<uint64_t>(loader + layout_.loader_next);
  }
}

const JavaClass& JvmObjects::FindClass(std::string_view name) {
  const JavaClass* found = &kNoClass;
  VisitClasses([&](const JavaClass& each) {
    if (each.name != name) return false;
    found = &each;
    return true;
  });
  return *found;
}

std::string DottedName(std::string_view class_name) {
  std::string dotted(class_name);
  std::replace(dotted.begin(), dotted.end(), '/', '.');
  return dotted;
}

std::string SimpleName(std::string_view class_name) {
  return std::string(class_name.substr(class_name.rfind('/') + 1));
}

bool IsOfJavaLibrary(std::string_view class_name) {
  constexpr std::string_view kPackages[] = {"java/", "javax/", "jdk/", "sun/", "com/sun/"};
  // A class that the machine makes for a lambda has a number behind its name.
  return class_name.find("$$Lambda$") != std::string_view::npos ||
         std::any_of(std::begin(kPackages), std::end(kPackages),
                     [&](std::string_view package) { return class_name.starts_with(package); });
}

}  // namespace hangscope
