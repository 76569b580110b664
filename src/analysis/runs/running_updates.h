/* running_updates.h -- how often a step of a run moves the running mean of a site. */
#ifndef ANALYSIS_RUNS_RUNNING_UPDATES_H
#define ANALYSIS_RUNS_RUNNING_UPDATES_H

#include "statrec/runfile.h"

/* *updates: k = log(1 - v)/log(alpha) per step, v = sum mu_moved / sum mu_apart over the steps that
 * move it (docs/definitions.md, "Moves of the running mean"). 1 where k is at most 1.1, where the
 * run lacks the scalars, or alpha is not in (0, 1). The old value keeps the weight alpha^k in a
 * step: k micro-batches are merged, or the site is called k times. */
sr_status running_updates(const sr_runfile *run, int64_t site, double *updates, sr_failure *why);
/* *alpha: alpha^k, the weight of the old value after a step. */
sr_status running_step_alpha(const sr_runfile *run, int64_t site, double *alpha, sr_failure *why);

#endif
