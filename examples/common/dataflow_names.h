/* What the watched device and the watched Linux program have in common: who does what in a node, what is
 * waited for, and what each is called. C and C++. */
#ifndef EXAMPLES_COMMON_DATAFLOW_NAMES_H
#define EXAMPLES_COMMON_DATAFLOW_NAMES_H

#define DATAFLOW_ROLES(NAME)    \
  NAME(0, "reader")             \
  NAME(1, "unpack")             \
  NAME(2, "math")               \
  NAME(3, "pack")               \
  NAME(4, "writer")

/* What is waited for, of each node. A buffer is two channels: what it has, and what it has room for. */
#define RESOURCE_CB 1u        /* + buffer: a block in it */
#define RESOURCE_CB_ROOM 5u   /* + buffer */
#define RESOURCE_CREDIT 9u    /* the writer gives one back for each block */
#define RESOURCE_LINK 10u     /* a block from the node before */
#define RESOURCE_LINK_ROOM 11u /* of the next node, for one more block */
#define RESOURCE_LOCK 12u     /* + role: one at a time has it */
#define RESOURCE_BALL 17u     /* + side: of the hand-overs */
#define DATAFLOW_RESOURCES(NAME)\
  NAME(1, "cb0")                \
  NAME(2, "cb1")                \
  NAME(3, "cb2")                \
  NAME(4, "cb3")                \
  NAME(5, "room in cb0")        \
  NAME(6, "room in cb1")        \
  NAME(7, "room in cb2")        \
  NAME(8, "room in cb3")        \
  NAME(9, "credit")             \
  NAME(10, "link")              \
  NAME(11, "room in link")      \
  NAME(12, "reader_lock")       \
  NAME(13, "unpack_lock")       \
  NAME(14, "math_lock")         \
  NAME(15, "pack_lock")         \
  NAME(16, "writer_lock")       \
  NAME(17, "ball_here")         \
  NAME(18, "ball_there")

/* A word of each node that nobody writes to. */
#define DATAFLOW_GUARDS(NAME)   \
  NAME(0, "guard of node 0")    \
  NAME(1, "guard of node 1")    \
  NAME(2, "guard of node 2")    \
  NAME(3, "guard of node 3")
#define GUARD_WORD 0x5afe5afeu

#endif
