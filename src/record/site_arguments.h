/* site_arguments.h -- the site argument of calls within a step. */
#ifndef RECORD_SITE_ARGUMENTS_H
#define RECORD_SITE_ARGUMENTS_H

#include "record/recorder.h"

/* The site's state, or NULL after keeping a failure: outside a step, or no such site. */
site_state *recorder_site(sr_recorder *r, int site, const char *call);

#endif
