/* bn_observer.h -- batch statistics at a site whose method does not use them (bn_observer.c). */
#ifndef NORM_BN_OBSERVER_H
#define NORM_BN_OBSERVER_H

#include "norm/norm_site.h"

/* State of one call, from forward to backward. */
typedef struct bn_observer_call bn_observer_call;

/* Call after the method's forward. Fills the batch and running statistics that the method left out
 * of c->stat, and advances the observer. *kept stays NULL without an observer, or outside
 * NORM_TRAIN. */
sr_status bn_observer_forward(const norm_site *site, norm_call *c, const real *x,
                              bn_observer_call **kept);

/* Call after the method's backward. Replaces sum_g and sum_gx in c->stat by the observer's;
 * c->dgamma and c->dbeta stay. Does nothing for kept NULL. */
sr_status bn_observer_backward(bn_observer_call *kept, norm_call *c, const real *x, const real *dy);

#endif
