/* recorder_options.h -- takes and checks sr_options. */
#ifndef RECORD_RUN_RECORDER_OPTIONS_H
#define RECORD_RUN_RECORDER_OPTIONS_H

#include "record/recorder.h"

/* Fills r->options; NULL: the defaults. copies: texts come from an existing file. */
sr_status recorder_take_options(sr_recorder *r, const sr_options *given, bool copies,
                                sr_failure *why);

#endif
