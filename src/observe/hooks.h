/* hooks.h -- between the normalization layers and the recorder. */
#ifndef OBSERVE_HOOKS_H
#define OBSERVE_HOOKS_H

#include "nets/models.h"
#include "observe/observe.h"
#include "observe/shard_stats.h"
#include "statrec/record.h"

typedef struct hooks hooks;
/* Called in training for every forward pass of a hooked site. site: of the model. */
typedef void hooks_look_fn(void *context, int site, const norm_view *o, sr_failure *why);

/* The sites that a list (globs.h) chooses, [sites of the model], malloc'd. observed: batch
 * statistics are observed, so "last-bn" may be any layer. NULL on failure, also when a word
 * matches no site. */
bool *hooks_choose(const model *m, const char *list, bool observed, sr_failure *why);
/* Shards of a batch (src/train/shards.c). */
typedef struct hooks_shares {
    int shares, own; /* shards of a batch; in this process */
    bool each;       /* record every shard: sites NAME@1 ... after the first */
    bool together;   /* batch statistics cover all rows: scalars are merged over the processes */
} hooks_shares;

/* Declares and hooks every chosen site. NULL on failure. shares NULL: one. r NULL: another process
 * records this one's statistics (hooks_exchange). want_rows: compute scalars that need rows, too.
 * Recorder and model outlive it. */
hooks *hooks_create(model *m, sr_recorder *r, const bool *chosen, bool want_rows,
                    const hooks_shares *shares, sr_failure *why);
/* Removes the hooks. */
void hooks_free(hooks *h);

/* Call before the passes of a step. */
void hooks_begin_step(hooks *h);
/* Call before the passes of this process's shard `number`, from 0. */
void hooks_enter(hooks *h, int number);
/* (all processes) After the passes of a step: sends statistics to the first process, which records
 * them. Does nothing without each and together. */
sr_status hooks_exchange(hooks *h, const run_exchange *x, sr_failure *why);
/* wanted: the next steps record spectra of every site's x and dx. */
void hooks_want_spectra(hooks *h, bool wanted);
/* Sets the function called for forward passes; fn NULL: none. The context outlives the hooks. */
void hooks_on_forward(hooks *h, hooks_look_fn *fn, void *context);
/* Further functions, called in training for both passes of this process's first shard; NULL: none.
 * Backward only where batch statistics are in use (not frozen). */
typedef struct hooks_looks {
    hooks_look_fn *forward, *backward;
    void *context;
} hooks_looks;
void hooks_on_passes(hooks *h, const hooks_looks *looks);
/* The first failure of a hook, or NULL. */
const sr_failure *hooks_failure(const hooks *h);
/* True when a site of the model is hooked. Its number in this process's recorder; -1: none. */
bool hooks_watches(const hooks *h, int site_of_model);
int hooks_site(const hooks *h, int site_of_model);
/* [features] running mean of a site's position encoding; NULL: none. */
double *hooks_position(const hooks *h, int site_of_model);

/* Seconds spent in the recorder on behalf of the sites since the last call. */
double hooks_seconds(hooks *h);

/* look: the next backward pass also searches rows for NaN and infinity, at sites without a
 * statistic that shows them. */
void hooks_look_at_rows(hooks *h, bool look);
/* Name of the first site with NaN or infinity since the last call, or NULL. Inputs go first, in the
 * order of the forward pass, then gradients. *what: "input" or "gradient". */
const char *hooks_nonfinite(hooks *h, const char **what);

#endif
