/* custom_scalars.h -- custom scalars, and the two columns of overhead_limit.c. */
#ifndef RECORD_RUN_CUSTOM_SCALARS_H
#define RECORD_RUN_CUSTOM_SCALARS_H

#include "record/recorder.h"

#define RECORDER_SECONDS "recorder_seconds"
#define RECORDER_EVERY   "vectors_every"

/* Whether the options ask for these two columns. */
bool recorder_is_paced(const sr_options *o);
/* sr_declare_scalar, for the names of these columns too. */
int recorder_declare_scalar(sr_recorder *r, const char *name, const char *unit,
                            const char *definition, sr_scope scope);

#endif
