/* site_method.c -- the method of a site: its family, the axis of its statistics, the statistics
 * that it uses (SR_FAMILIES, SR_METHOD_TEXTS of statrec/format.h). The host program declares them,
 * or they follow from the family. For older files, which lack them, they follow from the method's
 * name, in this file only.
 */
#include <stdio.h>
#include <string.h>

#include "runfile/site_method.h"

/* -- families -------------------------------------------------------------------------------- */

#define FAMILY_NAME(NAME, name, definition) #name,
static const char *const family_names[] = {SR_FAMILIES(FAMILY_NAME)};

const char *sr_family_name(sr_family family) {
    return (unsigned)family < SR_FAMILY_COUNT ? family_names[family] : "";
}

sr_family sr_family_find(const char *name) {
    int i = 0;
    while (i < SR_FAMILY_COUNT && !(name && strcmp(family_names[i], name) == 0)) i++;
    return (sr_family)i;
}

/* -- words ----------------------------------------------------------------------------------- */

/* True when `word` is one of the words of "mu,sigma2". */
bool method_has_word(const char *words, const char *word, size_t length) {
    for (const char *at = words; *at; at += strcspn(at, ","), at += *at == ',')
        if (strcspn(at, ",") == length && memcmp(at, word, length) == 0) return true;
    return false;
}

bool method_has_words(const char *words, const char *some) {
    for (const char *at = some; *at; at += strcspn(at, ","), at += *at == ',')
        if (!method_has_word(words, at, strcspn(at, ","))) return false;
    return true;
}

bool sr_run_uses(const sr_run_site *site, const char *statistic) {
    return method_has_word(site->uses, statistic, strlen(statistic));
}

bool sr_run_is_constant(const sr_run_site *site, const char *statistic) {
    return method_has_word(site->constants, statistic, strlen(statistic));
}

bool sr_run_over_batch(const sr_run_site *site) {
    return strcmp(site->axis, "batch") == 0;
}

/* -- older files ----------------------------------------------------------------------------- */

/* The methods of files without descriptions. OWN: their g_* are never derived from vectors. */
static const struct {
    const char *norm, *axis, *uses, *constants;
    sr_family family;
    bool layer_scale_own;
} known[] = {
    {"bn", "batch", "mu,sigma2", "", SR_FAMILY_SIGMA, false},
    {"rbn", "batch", "mu,sigma2", "", SR_FAMILY_SIGMA, false},
    {"brn", "batch", "mu,sigma2", "", SR_FAMILY_OWN, false},
    {"bn-powernorm", "batch", "mu,sigma2", "", SR_FAMILY_OWN, true},
    {"rbn-released", "batch", "mu,sigma2", "", SR_FAMILY_OWN, false},
    {"pnv", "batch", "psi2", "", SR_FAMILY_PSI, false},
    {"mabn", "batch", "psi2", "", SR_FAMILY_PSI, false},
    {"pn", "batch", "psi2", "", SR_FAMILY_PN, false},
    {"pn-released", "batch", "psi2", "", SR_FAMILY_OWN, true},
    {"ln", "row", "mu,sigma2", "", SR_FAMILY_ROW, false},
    {"ln-simple", "row", "mu,sigma2", "", SR_FAMILY_ROW, false},
    {"adanorm", "row", "mu,sigma2", "", SR_FAMILY_ROW, false},
    {"detach-mean", "row", "mu,sigma2", "mu", SR_FAMILY_ROW, false},
    {"detach-std", "row", "mu,sigma2", "sigma2", SR_FAMILY_ROW, false},
    {"detach-both", "row", "mu,sigma2", "mu,sigma2", SR_FAMILY_ROW, false},
    {"rmsnorm", "row", "psi2", "", SR_FAMILY_ROW, false},
    {"groupnorm", "sample", "mu,sigma2", "", SR_FAMILY_ROW, false},
    {"instancenorm", "sample", "mu,sigma2", "", SR_FAMILY_ROW, false},
};

void method_copy(char to[SR_KIND_SIZE], const char *from) {
    snprintf(to, SR_KIND_SIZE, "%.*s", SR_KIND_SIZE - 1, from);
}

/* A partly known method is treated as unknown. */
void method_forget(sr_run_site *site) {
    site->family = SR_FAMILY_NONE;
    method_copy(site->axis, "-");
    method_copy(site->uses, "");
    method_copy(site->constants, "");
}

void method_guess(sr_run_site *site) {
    method_forget(site);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(known[i].norm, site->norm) != 0) continue;
        method_copy(site->axis, known[i].axis);
        method_copy(site->uses, known[i].uses);
        method_copy(site->constants, known[i].constants);
        site->family = known[i].family;
        site->layer_scale_own = known[i].layer_scale_own;
    }
}
