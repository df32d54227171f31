/* For programs that include this file by its former name; it goes with the next version. */
#ifndef HANGSCOPE_TARGET_CONFIG_H
#define HANGSCOPE_TARGET_CONFIG_H

#include "hangscope/config.h"

#endif
