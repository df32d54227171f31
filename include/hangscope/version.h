#ifndef HANGSCOPE_VERSION_H
#define HANGSCOPE_VERSION_H

/* The one place where the version is written; CMake reads it from here. */
#define HANGSCOPE_VERSION "0.1.0"

#endif
