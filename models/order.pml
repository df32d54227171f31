/* In which order the values of a node's cores were written, where no instruction adds to a shared word
 * (include/hangscope/target/debug.h, hangscope_debug_draw), for spin. models/check runs it, and its mutants.
 *
 * A core looks at the newest order of each core, takes one more than the largest, keeps that as its own newest, and
 * publishes the value with it. What must hold: a value that was published before another core began to look has a
 * smaller order than that one's. Values that are written at the same time may have one order.
 *
 * Weak memory: a core's newest order goes into memory some time after it was stored (`newest` is what others see,
 * `stored` what the core has), at the latest with what it publishes then: that store has a fence before it. */

#ifndef CORES
#define CORES 3
#endif
#ifndef EACH
#define EACH 2
#endif

byte newest[CORES];
byte stored[CORES];
byte published[CORES]; /* the order of each core's newest published value */
#ifdef SHARED_WORD
byte shared;
#endif

proctype memory() {
end:
  do
  :: atomic { newest[0] != stored[0] -> newest[0] = stored[0] }
  :: atomic { newest[1] != stored[1] -> newest[1] = stored[1] }
  :: atomic { newest[2] != stored[2] -> newest[2] = stored[2] }
#if CORES == 4
  :: atomic { newest[3] != stored[3] -> newest[3] = stored[3] }
#endif
  od
}

proctype writer(byte self) {
  byte written = 0;
  byte before, largest, i;
  do
  :: written < EACH ->
    /* Specification: the largest order of all that was published until now. */
    d_step {
      before = 0;
      i = 0;
      do
      :: i < CORES -> if :: published[i] > before -> before = published[i] :: else fi; i++
      :: i == CORES -> i = 0; break
      od
    }
#ifdef SHARED_WORD
    largest = shared;
    shared = largest + 1;
    stored[self] = largest + 1;
#else
    largest = stored[self];
#ifndef OWN_ONLY
    i = 0;
    do
    :: atomic { i < CORES -> if :: newest[i] > largest -> largest = newest[i] :: else fi; i++ }
    :: atomic { i == CORES -> i = 0; break }
    od;
#endif
    stored[self] = largest + 1;
#endif
#ifndef WITHOUT_FENCE
    newest[self] = stored[self];
#endif
    d_step { assert(stored[self] > before); before = 0; largest = 0 }
#ifdef NONE_ARE_EQUAL
    i = 0;
    do
    :: i < CORES -> assert(i == self || published[i] != stored[self]); i++
    :: i == CORES -> break
    od;
    i = 0;
#endif
    d_step { published[self] = stored[self]; written++ }
  :: written == EACH -> break
  od
}

init {
  byte n = 0;
  atomic {
    run memory();
    do
    :: n < CORES -> run writer(n); n++
    :: n == CORES -> break
    od
  }
}
