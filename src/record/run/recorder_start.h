/* recorder_start.h -- the start of the run file, which the first row causes. */
#ifndef RECORD_RUN_RECORDER_START_H
#define RECORD_RUN_RECORDER_START_H

#include "record/recorder.h"

/* Declares the file, unless that was done. */
sr_status recorder_start(sr_recorder *r);

#endif
