/* recorder_state.h -- checks that every call of the recorder makes first, and its clock. */
#ifndef RECORD_RECORDER_STATE_H
#define RECORD_RECORDER_STATE_H

#include "record/recorder.h"

/* sr_create. copies: options and sites come from an existing file and are not rejected. */
sr_recorder *recorder_create(const char *path, const sr_options *options, bool copies,
                             sr_failure *why);
/* SR_OK, or the status of the first failure. */
sr_status recorder_check(const sr_recorder *r);
/* True, after keeping a failure, in a process that was forked from the recorder's. */
bool recorder_in_fork(sr_recorder *r);
/* True, after keeping a failure, when nothing can be declared any more. */
bool recorder_too_late(sr_recorder *r, const char *call);
/* Whether a text is UTF-8; a copy keeps any. */
bool recorder_is_text(const sr_recorder *r, const char *text);
/* Checks the name, unit and definition of a metric or custom scalar. */
sr_status recorder_check_label(sr_recorder *r, const char *kind, const char *name, const char *unit,
                               const char *definition);
/* Declares the file, if that was not done. The first row causes it. */
sr_status recorder_declare(sr_recorder *r);
/* The same; SR_STATE while a run is to be resumed and its rows are not copied. */
sr_status recorder_start(sr_recorder *r);
bool recorder_has_metric(const sr_recorder *r, const char *name);
/* Seconds of a monotonic clock. */
double recorder_clock(void);

#endif
