/* metrics.h -- metrics of evaluations. */
#ifndef RECORD_RUN_METRICS_H
#define RECORD_RUN_METRICS_H

#include "record/recorder.h"

bool recorder_has_metric(const sr_recorder *r, const char *name);

#endif
