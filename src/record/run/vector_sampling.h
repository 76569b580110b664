/* vector_sampling.h -- which steps record vectors. */
#ifndef RECORD_RUN_VECTOR_SAMPLING_H
#define RECORD_RUN_VECTOR_SAMPLING_H

#include "record/recorder.h"

/* Whether to record the vectors of this step. The spacing grows with the run. */
bool vector_sampling_wants_vectors(sr_recorder *r, int64_t step);

#endif
