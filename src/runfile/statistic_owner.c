/* Whose statistic is it: the method's that normalises at a site, or only the observer's (`statrec
 * train --observe batch`, /sites/observed)? What of mu, sigma2 and psi2 the method uses over the
 * batch is its own; everything else about batches at an observed site is the observer's. Row
 * statistics and counts are always of the site itself.
 */
#include <string.h>

#include "statrec/runfile.h"

static bool begins_with_one(const char *text, const char *const *word) {
    for (; *word; word++)
        if (strncmp(text, *word, strlen(*word)) == 0) return true;
    return false;
}

/* A name without any of the three, as tid_mean, is about mean and deviation. */
static bool is_own(const sr_run_site *site, const char *statistic) {
    if (!sr_run_over_batch(site)) return false;
    if (strstr(statistic, "psi")) return sr_run_uses(site, "psi2");
    if (strstr(statistic, "sigma")) return sr_run_uses(site, "sigma2");
    return sr_run_uses(site, "mu") || (!strstr(statistic, "mu") && sr_run_uses(site, "sigma2"));
}

bool sr_run_only_observed(const sr_run_site *site, const char *statistic) {
    static const char *const about_rows[] = {"row", "nonfinite", "Gamma_max", NULL};
    if (!site->observed || begins_with_one(statistic, about_rows)) return false;
    return !is_own(site, statistic);
}
