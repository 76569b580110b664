/* plot_scratch.h -- folders for unfinished files. A process locks its own folders; folders of dead
 * processes have no lock and are removed. */
#ifndef PLOT_TEMPLATE_PLOT_SCRATCH_H
#define PLOT_TEMPLATE_PLOT_SCRATCH_H

#include <stdbool.h>

#include "plot/template/plot_sizes.h"
#include "statrec/base.h"

typedef struct plot_scratch {
    char path[PLOT_PATH]; /* "" : none */
    int lock;
} plot_scratch;

/* A locked folder of the prefix and six letters in the folder `base`. The folder is the user's
 * alone. */
sr_status plot_scratch_make(plot_scratch *s, const char *base, const char *prefix, sr_failure *why);
/* The same below TMPDIR. */
sr_status plot_scratch_create(plot_scratch *s, sr_failure *why);
/* With the files in it; nothing without a path. */
void plot_scratch_remove(plot_scratch *s);
/* Unlocks the folder, and leaves it in place. */
void plot_scratch_forget(plot_scratch *s);
/* Unlocks the folder, which stays under a name that is not swept; s->path becomes that name. */
void plot_scratch_keep(plot_scratch *s);
/* Removes the files of a folder, and the folder if nothing else is in it. */
void plot_folder_remove(const char *path);

/* Calls visit for each folder below `base` with this prefix that a dead process of this user left;
 * it is locked meanwhile. */
void plot_scratch_each_left(const char *base, const char *prefix,
                            void (*visit)(const char *path, void *context), void *context);
/* Removes those that dead processes left below TMPDIR. */
void plot_scratch_sweep(void);

#endif
