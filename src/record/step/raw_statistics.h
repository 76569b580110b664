/* raw_statistics.h -- statistics of a step from raw tensors or sums. */
#ifndef RECORD_STEP_RAW_STATISTICS_H
#define RECORD_STEP_RAW_STATISTICS_H

#include "record/recorder.h"

/* Puts the vectors and scalars of all sites that had passes in this step. */
sr_status raw_end_step(sr_recorder *r);

#endif
