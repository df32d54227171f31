// What a command may cost that reads what anybody may have written.
#ifndef HANGSCOPE_CLI_COST_LIMITS_H
#define HANGSCOPE_CLI_COST_LIMITS_H

namespace hangscope::cli {

// From now on this process has that much CPU time at most, and 8 GiB of addresses. Who comes to an
// end of them is told so in one sentence, with status 3. Lower limits of the caller's stay. With
// HANGSCOPE_NO_LIMITS=1 in the environment there are none.
void LimitCost(unsigned cpu_seconds);

}  // namespace hangscope::cli

#endif
