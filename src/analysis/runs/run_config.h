/* run_config.h -- options, data set and counted units of a run, from its stored configuration. */
#ifndef ANALYSIS_RUNS_RUN_CONFIG_H
#define ANALYSIS_RUNS_RUN_CONFIG_H

#include <stdbool.h>
#include <stddef.h>

#include "statrec/runfile.h"

enum { RUN_WORD = 96 }; /* names and labels */
typedef char run_word[RUN_WORD];

/* Appends to a text, after the separator if it is not empty; cuts the text to the size. */
void text_append(char *text, size_t size, const char *separator, const char *more);

/* True for runs of `statrec train`, also for their evaluations that `statrec study` restores from
 * an archive, with their configuration. Other programs may use names of its options for something
 * else. */
bool run_is_trained(const sr_run_info *info);
/* The unit of /steps/tokens, from the units of the metrics: "image" if the first loss is in nats
 * per image. "" if no metric has such a unit. */
void run_counts(const sr_runfile *run, run_word what);
/* True if a run of `statrec train` had this option and used it. */
bool run_has_option(const sr_runfile *run, const char *key);
/* Its value without quotes and escapes, cut to size; "" where the run has none. */
void run_option(const sr_runfile *run, const char *key, char *value, size_t size);
double run_option_number(const sr_runfile *run, const char *key); /* NaN if the run has none */
/* alpha_bwd of a PN site, as recorded. Older files of statrec train have it in the configuration;
 * NaN if that has several for sites it does not name. Else the site's alpha. */
double run_alpha_backward(const sr_runfile *run, const sr_run_site *site);
/* Name of the data set: the last part of data-dir, with the direction of a translation,
 * "multi30k-de-en"; else `data`. */
void run_data_name(const sr_runfile *run, char *name, size_t size);

#endif
