/* exchange.h -- what every share of a batch found, from all processes. */
#ifndef OBSERVE_EXCHANGE_H
#define OBSERVE_EXCHANGE_H

#include "observe/observe.h"

/* Of every batch, over all processes. */
int exchange_count(const run_exchange *x);
/* (all processes) own [this process's shares, each] -> *all [shares, each] in the order of shares,
 * whichever process has them; to be freed, NULL on failure. */
sr_status exchange_shares(const run_exchange *x, const double *own, int64_t each, double **all,
                          sr_failure *why);

#endif
