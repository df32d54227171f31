// Signals as people know them.
#ifndef HANGSCOPE_BASE_SIGNAL_TEXT_H
#define HANGSCOPE_BASE_SIGNAL_TEXT_H

#include <string>

namespace hangscope {

// "signal 11 (Segmentation fault)".
std::string SignalText(int number);

}  // namespace hangscope

#endif
