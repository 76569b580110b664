/* put_spectra.h -- the buffered row of singular values. */
#ifndef RECORD_RUN_PUT_SPECTRA_H
#define RECORD_RUN_PUT_SPECTRA_H

#include "record/recorder.h"

/* Allocates it. */
sr_status recorder_reserve_spectra(sr_recorder *r);
/* Begins the row of the current step, without values. */
void recorder_begin_spectra(sr_recorder *r);

#endif
