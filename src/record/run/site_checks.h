/* site_checks.h -- checks of a recorder's sites. */
#ifndef RECORD_RUN_SITE_CHECKS_H
#define RECORD_RUN_SITE_CHECKS_H

#include "record/recorder.h"

/* One site, when it is added. */
sr_status site_check(sr_recorder *r, const sr_site *s);
/* Checks all sites before the first row: numbers depths that were left 0 and removes alphas without
 * effect. Rejects equal depths, and replicas NAME@K without their site. */
sr_status site_settle(sr_recorder *r);

#endif
