/* running_moves.h -- how far the running mean of a site moved in a step, and how far the batch mean
 * lay: custom scalars mu_moved and mu_apart (docs/definitions.md). */
#ifndef OBSERVE_RUNNING_MOVES_H
#define OBSERVE_RUNNING_MOVES_H

#include "norm/norm_site.h"
#include "statrec/record.h"

enum { MOVE_MOVED, MOVE_APART, MOVES };

/* True if the site normalizes over the batch and has its own running mean, not an observer's. */
bool running_moves_of(const norm_site *s);
extern const char *const running_moves_name[MOVES], *const running_moves_definition[MOVES];
/* The scalars' ids; check sr_failed. */
void running_moves_declare(sr_recorder *r, int id[MOVES]);
/* Takes the moves of a pass, after its forward pass. NaN without such a running mean, and without
 * rows. */
void running_moves_take(const norm_view *o, double value[MOVES]);

#endif
