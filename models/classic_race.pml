/* How a ring is written that has an index and a count of their own, a step for each: the way that the
 * recording protocol does not go. Two writers of one core, memory that all see at once; spin must find
 * that records are lost, or mixed, and nobody counts them. */
#define CAPACITY 4

byte index;
byte count;
byte word0[CAPACITY];
byte word1[CAPACITY];
byte finished;

proctype writer(byte me) {
  byte at = index;
  word0[at] = me;
  word1[at] = me;
  index = (at + 1) % CAPACITY;
  count = count + 1;
  finished++
}

init {
  byte n;
  byte returned;
  atomic { run writer(1); run writer(2) };
  (finished == 2);
  d_step {
    for (n : 0 .. CAPACITY - 1) {
      assert(word0[n] == word1[n]); /* none is mixed */
      if
      :: word0[n] != 0 -> returned++
      :: else
      fi
    }
    assert(returned == count && count == 2) /* emitted = returned: there is room for all */
  }
}
