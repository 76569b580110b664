/* shadow.h -- batch statistics of a site that does not use them; see shadow.c. */
#ifndef NORM_SHADOW_H
#define NORM_SHADOW_H

#include "norm/norm_site.h"

/* From forward to backward of one call. */
typedef struct shadow_call shadow_call;

/* After the method's forward: fills the batch statistics and running values in c->stat that the
 * method left out, and advances the shadow. *kept stays NULL where the site is not observed or the
 * call is not NORM_TRAIN. */
sr_status shadow_forward(const norm_site *site, norm_call *c, const real *x, shadow_call **kept);

/* After the method's backward: c->stat sum_g and sum_gx are then the shadow's; c->dgamma and
 * c->dbeta stay where the method left them. NULL kept: nothing happens. */
sr_status shadow_backward(shadow_call *kept, norm_call *c, const real *x, const real *dy);

#endif
