// What `hangscope doctor` found, as people and programs read it.
#ifndef HANGSCOPE_TOOLS_DOCTOR_TEXT_H
#define HANGSCOPE_TOOLS_DOCTOR_TEXT_H

#include <string>

#include "model/doctor.h"

namespace hangscope {

// The first line says what works; a line for each check, and below those that fail why and what to
// do.
std::string DoctorText(const DoctorReport& report);
// One object, one line.
std::string DoctorJson(const DoctorReport& report);

}  // namespace hangscope

#endif
