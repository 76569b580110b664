/* put_step.h -- statistics that the host puts, and scalars derived from them. */
#ifndef RECORD_STEP_PUT_STEP_H
#define RECORD_STEP_PUT_STEP_H

#include "record/recorder.h"

/* Forgets the values of the previous step. */
void put_step_begin(sr_recorder *r);
/* Derives and stores the scalars of all sites. */
sr_status put_step_end(sr_recorder *r);
/* Rejects a negative mean of squares: value [width] of a site. name: in the message. */
sr_status put_step_squares(sr_recorder *r, int site, const char *call, const char *name,
                           const double *value);
/* sr_put_vector for sites of any family. */
sr_status recorder_put_vector(sr_recorder *r, int site, sr_vector which, const double *value);

#endif
