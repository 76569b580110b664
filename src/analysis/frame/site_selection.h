/* site_selection.h -- the statistics and the sites that a table is about. */
#ifndef ANALYSIS_FRAME_SITE_SELECTION_H
#define ANALYSIS_FRAME_SITE_SELECTION_H

#include "analysis/series/custom_statistics.h"
#include "analysis/series/series.h"
#include "base/globs.h"

/* One site of one run, and which of the wanted statistics it has. */
typedef struct site_choice {
    int run;
    int64_t site;
    bool has[ANALYSIS_STATISTICS]; /* by index in `wanted` */
} site_choice;

typedef struct choice {
    const statistic *wanted[ANALYSIS_STATISTICS];
    own_statistic *own[ANALYSIS_STATISTICS]; /* contains wanted[i]; NULL: one of format.h */
    int statistics;
    site_choice *site; /* [sites], runs in their order, sites in forward order */
    int64_t sites, capacity;
    /* [statistics]: sr_differences of the first run with the statistic and of all others, joined */
    unsigned differences[ANALYSIS_STATISTICS];
    site_choice first[ANALYSIS_STATISTICS]; /* that run's first site with it, where has[0] */
} choice;

/* words: comma-separated `word`s of stats[count], or custom scalars per site of a run of the set
 * (NULL: no custom scalars). */
sr_status choice_set_statistics(choice *c, const statistic *stats, int count, const run_set *set,
                                const char *words, sr_failure *why);
/* Notes on custom scalars: declared_warn, and a warning where one has the name of another
 * statistic. define: also writes a `# statistic:` line for each. */
void choice_note_own(const choice *c, const run_set *set, bool define, tsv *table);
/* No site but final norms of stacks normalizes over the batch. */
bool choice_only_observes(const sr_runfile *run);
/* True for a site that "last-bn" may mean. Its method has batch statistics (in a run that only
 * observes them: the observer has), and it is not the final norm of a stack (NAME.final). In the
 * models of the RBN paper that norm is no BN. */
bool choice_is_bn_layer(const sr_run_site *site, bool only_observes);
/* globs_choose for the sites of a run: "first", "middle", "last" and "last-bn" mean sites with
 * may[i]; NULL: any site. */
bool choice_match(const sr_runfile *run, const bool *may, const char *pattern, bool *chosen,
                  char missed[GLOBS_WORD]);
/* Sites of one run that match the pattern, whatever they record; [sites], the caller frees it.
 * Skips words without a site. NULL: out of memory. */
bool *choice_in_run(const sr_runfile *run, const char *pattern);
/* "a, b, c ...": names of the sites without replicas, as many as fit. */
void choice_list_sites(const sr_runfile *run, char *text, size_t size);
/* pattern: words as globs_choose takes them. Places such as "last" mean sites with any of the
 * wanted statistics. Fails if a glob matches no site of a run, or
 * if no site is left. Writes `# note:` lines for sites that it leaves out. */
sr_status choice_set_sites(choice *c, const run_set *set, const char *pattern, series_source source,
                           tsv *table, sr_failure *why);
/* Writes a `# warning:` line for each wanted statistic that depends on a setting in which the runs
 * with it differ. The line names a statistic that may be compared. */
void comparable_warn(const choice *c, tsv *table);
void choice_free(choice *c);

#endif
