/* site_checks.h -- what a recorder rejects about its sites. */
#ifndef RECORD_RUN_SITE_CHECKS_H
#define RECORD_RUN_SITE_CHECKS_H

#include "record/recorder.h"

/* One site, when it is added. */
sr_status site_check(sr_recorder *r, const sr_site *s);
/* All sites, before the first row: numbers depths that were left 0, removes alphas that weigh
 * nothing, rejects equal depths and replicas NAME@K without their site. */
sr_status site_settle(sr_recorder *r);

#endif
