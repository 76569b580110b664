/* running.h -- running statistics of the sites, as rows of /running. */
#ifndef RECORD_RUN_RUNNING_H
#define RECORD_RUN_RUNNING_H

#include "record/recorder.h"

/* Writes a row of /running with the current values, if a site has any. */
sr_status running_put(sr_recorder *r);
/* The values [width] of SR_RUNNING number `which`; NULL until the site was observed. */
double *running_values(const raw_state *raw, int which);

#endif
