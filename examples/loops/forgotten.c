/* Hart 1 waits for jobs of hart 0, which forgets it after the fourth and works on for ever. */
#include "loops.h"

#define JOBS 4u
#define BETWEEN_JOBS_MS 500u
#define JOB_MS 200u

static volatile uint32_t jobs_given;

static void work_for(unsigned hart, uint32_t ms) {
  const uint64_t end = platform_mtime() + platform_ms_to_ticks(ms);
  while (platform_mtime() < end) {
    work_once(hart);
  }
}

SPIN_FUNCTION static void wait_for_job(uint32_t jobs_done) {
  while (jobs_given == jobs_done) {
  }
}

void hart_main(unsigned hart) {
  work_warm_up(hart, WARM_UP_PORTIONS);
  if (hart == 0) {
    for (uint32_t job = 1; job <= JOBS; job++) {
      work_for(hart, BETWEEN_JOBS_MS);
      jobs_given = job;
    }
    work_for_ever(hart);
  } else if (hart == 1) {
    for (uint32_t job = 0;; job++) {
      wait_for_job(job);
      work_for(hart, JOB_MS);
    }
  }
}
