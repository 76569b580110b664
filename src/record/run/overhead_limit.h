/* overhead_limit.h -- keeps the time of recording within options.overhead. */
#ifndef RECORD_RUN_OVERHEAD_LIMIT_H
#define RECORD_RUN_OVERHEAD_LIMIT_H

#include "record/recorder.h"

/* Declares its two columns, recorder_seconds and vectors_every. */
void overhead_limit_declare(sr_recorder *r);
void overhead_limit_begin_step(sr_recorder *r);
/* Fills the two columns and adapts the spacing of vectors. */
void overhead_limit_end_step(sr_recorder *r);

#endif
