/* take_method.h -- the method of a site: its axis, and the statistics that it uses. */
#ifndef RECORD_RUN_TAKE_METHOD_H
#define RECORD_RUN_TAKE_METHOD_H

#include "statrec/record.h"
#include "statrec/runfile.h"

/* Fills the method of `to` from the host's declaration; omitted parts follow from the family.
 * False when it contradicts the family. */
bool recorder_take_method(sr_run_site *to, const sr_site *s);

#endif
