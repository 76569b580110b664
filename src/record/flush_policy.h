/* flush_policy.h -- when buffered rows are flushed. */
#ifndef RECORD_FLUSH_POLICY_H
#define RECORD_FLUSH_POLICY_H

#include "record/recorder.h"

/* Call it when a row of /steps has ended. */
void flush_policy_ended(sr_recorder *r);
/* Call it when something else was buffered: an evaluation, singular values. Flushes when due. */
sr_status flush_policy_beside(sr_recorder *r);
/* Flushes when the buffered rows are due, also within a step. */
sr_status flush_policy_when_due(sr_recorder *r);
sr_status flush_policy_now(sr_recorder *r);

#endif
