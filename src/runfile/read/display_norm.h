/* display_norm.h -- the display name of a site's normalization. */
#ifndef RUNFILE_READ_DISPLAY_NORM_H
#define RUNFILE_READ_DISPLAY_NORM_H

#include "statrec/runfile.h"

/* Fills site->called from its norm and layer scale. */
void display_norm_fill(sr_run_site *site);

#endif
