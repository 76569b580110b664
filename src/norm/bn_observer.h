/* bn_observer.h -- batch statistics of a site that does not use them; see bn_observer.c. */
#ifndef NORM_BN_OBSERVER_H
#define NORM_BN_OBSERVER_H

#include "norm/norm_site.h"

/* From forward to backward of one call. */
typedef struct bn_observer_call bn_observer_call;

/* After the method's forward: fills the batch statistics and running values in c->stat that the
 * method left out, and advances the shadow. *kept stays NULL where the site is not observed or the
 * call is not NORM_TRAIN. */
sr_status bn_observer_forward(const norm_site *site, norm_call *c, const real *x,
                              bn_observer_call **kept);

/* After the method's backward: c->stat sum_g and sum_gx are then the shadow's; c->dgamma and
 * c->dbeta stay where the method left them. NULL kept: nothing happens. */
sr_status bn_observer_backward(bn_observer_call *kept, norm_call *c, const real *x, const real *dy);

#endif
