/* Whose statistic is it: the method's that normalises at a site, or only the observer's (`statrec
 * train --observe batch`, /sites/observed)? bn and its relatives have mu_B and sigma2_B of their
 * own, pn and its relatives psi2_B; everything else about batches at an observed site is the
 * observer's. Row statistics and counts are always of the site itself.
 */
#include <string.h>

#include "statrec/runfile.h"

static bool begins_with_one(const char *text, const char *const *word) {
    for (; *word; word++)
        if (strncmp(text, *word, strlen(*word)) == 0) return true;
    return false;
}

bool sr_run_only_observed(const sr_run_site *site, const char *statistic) {
    static const char *const about_rows[] = {"row", "nonfinite", "Gamma_max", NULL};
    static const char *const with_sigma[] = {"bn", "rbn", "brn", NULL};
    static const char *const with_psi[] = {"pn", "mabn", NULL};
    if (!site->observed || begins_with_one(statistic, about_rows)) return false;
    return !begins_with_one(site->norm, strstr(statistic, "psi") ? with_psi : with_sigma);
}
