/* copy_declare.h -- declares a recorder like a run file. */
#ifndef RUNFILE_REPAIR_COPY_DECLARE_H
#define RUNFILE_REPAIR_COPY_DECLARE_H

#include "runfile/repair/copy.h"

/* Rejects PATH or PATH.part if it is the file to be read. */
sr_status copy_check_target(const char *broken, const char *path, sr_failure *why);
/* Options of a recorder of the same datasets; texts, seed and threads come from info. */
sr_options copy_options_like(const sr_runfile *f, const sr_run_info *info);

/* Declares sites, embeddings, metrics and custom scalars. Notes what a recorder rejects. choice:
 * declares those alone, and no metric or scalar twice; NULL: all. */
void copy_add_sites(sr_recorder *r, const sr_runfile *f, const copy_choice *choice,
                    unreadable_data *losses);
void copy_add_embeddings(sr_recorder *r, const sr_runfile *f, unreadable_data *losses);
void copy_add_metrics(sr_recorder *r, const sr_runfile *f, const copy_choice *choice,
                      unreadable_data *losses);
/* Takes the texts of /copy over, so that a recovered copy remains one. */
void copy_take_texts(sr_recorder *r, const sr_runfile *f, unreadable_data *losses);

/* The recorder's message about a rejected declaration, without the path; NULL: none. */
const char *copy_refused(const sr_recorder *r);

#endif
