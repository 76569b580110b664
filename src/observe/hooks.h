/* hooks.h -- between the normalization layers and the recorder. */
#ifndef OBSERVE_HOOKS_H
#define OBSERVE_HOOKS_H

#include "nets/models.h"
#include "observe/observe.h"
#include "observe/shard_stats.h"
#include "statrec/record.h"

typedef struct hooks hooks;
/* Is told of the forward passes of the sites that are watched, in training. site: of the model. */
typedef void hooks_look_fn(void *context, int site, const norm_view *o, sr_failure *why);

/* Which sites a list of globs.h means, [sites of the model], to be freed; observed: batch
 * statistics will be observed there, which makes every layer one of "last-bn". NULL on failure,
 * also when a word means no site. */
bool *hooks_choose(const model *m, const char *list, bool observed, sr_failure *why);
/* Where batches are shared out (src/train/shards.c). */
typedef struct hooks_shares {
    int shares, own; /* of every batch, of this process */
    bool each;     /* every share's statistics are recorded, as sites NAME@1 ... behind the first */
    bool together; /* batch statistics are of all rows: scalars are merged over the processes */
} hooks_shares;

/* Declares every chosen site of the model and watches it. NULL on failure. shares NULL: one. r
 * NULL: a process whose statistics another one records (hooks_exchange). want_rows: the scalars
 * that need the rows too. The recorder and the model outlive it. */
hooks *hooks_create(model *m, sr_recorder *r, const bool *chosen, bool want_rows,
                    const hooks_shares *shares, sr_failure *why);
/* Stops watching. */
void hooks_free(hooks *h);

/* The passes that follow are of another step. */
void hooks_begin_step(hooks *h);
/* Passes from now on are of this process's share `number`, from 0. */
void hooks_enter(hooks *h, int number);
/* (all processes) What the passes of a step found in every process, into the recorder of the first;
 * nothing where each or together is not wanted. */
sr_status hooks_exchange(hooks *h, const run_exchange *x, sr_failure *why);
/* Whether the steps from now on also record the spectra of every site's x and dx. */
void hooks_want_spectra(hooks *h, bool wanted);
/* Who looks at the forward passes from now on; fn NULL: nobody. The context outlives that. */
void hooks_on_forward(hooks *h, hooks_look_fn *fn, void *context);
/* The first failure of a watcher, or NULL. */
const sr_failure *hooks_failure(const hooks *h);
/* Whether a site of the model is watched, and its number in the recorder of this process; -1:
   none. */
bool hooks_watches(const hooks *h, int site_of_model);
int hooks_site(const hooks *h, int site_of_model);
/* [features] running mean of the position encoding of a site of the model; NULL: none. */
double *hooks_position(const hooks *h, int site_of_model);

/* Seconds spent in the recorder on behalf of the sites since the last call. */
double hooks_seconds(hooks *h);

/* Whether the backward pass that follows also looks for NaN and infinity among the rows of sites
 * that have no statistic which would tell. */
void hooks_look_at_rows(hooks *h, bool look);
/* Name of the site where NaN or infinity came up since the last call, or NULL: the first in the
 * forward pass with such an input, otherwise the first in the backward pass with such a gradient;
 * *what = "input" or "gradient". */
const char *hooks_nonfinite(hooks *h, const char **what);

#endif
