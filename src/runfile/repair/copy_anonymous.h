/* copy_anonymous.h -- texts of a copy that names no person and no machine. */
#ifndef RUNFILE_REPAIR_COPY_ANONYMOUS_H
#define RUNFILE_REPAIR_COPY_ANONYMOUS_H

#include "runfile/repair/copy_plan.h"

/* Empties host, git, command, parent, times and reason, and program and version of other programs.
 * model and data too if they contain a path or one of the identifying words. */
void copy_anonymous_info(const sr_runfile *f, sr_run_info *info);
/* Lines of the configuration of `statrec train` whose option `shares` allows and that identify
 * nobody; "" of other programs. malloc'd; NULL when out of memory. */
char *copy_anonymous_config(const sr_runfile *f, bool (*shares)(const char *key));
/* Replaces the names in the texts of /copy by "-"; empties all texts if they contain identifying
 * words. */
void copy_anonymous_texts(const sr_runfile *f, char *text[COPY_TEXTS]);
/* SR_USAGE if a copied name, unit or definition contains a path or an identifying word. Such words
 * are the host, the revision, and the user whose directory a path of the command or configuration
 * names. */
sr_status copy_anonymous_check(const sr_runfile *f, const copy_choice *choice, sr_failure *why);

#endif
