// The fields of an event as text, by a format like printf's (abi/catalog.h), or by their names.
#ifndef HANGSCOPE_MODEL_EVENT_FORMAT_H
#define HANGSCOPE_MODEL_EVENT_FORMAT_H

#include <string>
#include <string_view>
#include <vector>

#include "model/trace.h"

namespace hangscope {

// One field by itself: "12", "-1", "0x80001234", "true", the name that its value has; "?" where it
// is not known. Printable.
std::string FieldText(const TraceField& field, const TraceValue& value);

// The fields as `format` wants them; one without a conversion follows as "name=value", so without a
// format all are told so. `format` is never trusted to fit the fields. Printable.
std::string FormatFields(std::string_view format, const std::vector<TraceField>& fields,
                         const std::vector<TraceValue>& values);

// The low `count` characters of `bits`, the first in the low byte, without zeros at the end; as
// they are.
std::string CharactersOf(uint64_t bits, int count);

}  // namespace hangscope

#endif
