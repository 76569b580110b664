/* statistic_owner.c -- whether a statistic belongs to a site's method or to the observer (`statrec
 * train --observe batch`, /sites/observed). The method owns mu, sigma2 and psi2 if it uses them
 * over the batch. The observer owns all other batch statistics of an observed site. The site owns
 * row statistics and counts.
 */
#include <string.h>

#include "statrec/runfile.h"

static bool begins_with_one(const char *text, const char *const *word) {
    for (; *word; word++)
        if (strncmp(text, *word, strlen(*word)) == 0) return true;
    return false;
}

/* A name without any of the three, as tid_mean, is about mean and standard deviation. */
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
