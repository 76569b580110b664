/* Which of the wanted statistics may not be compared between these runs (statrec/runfile.h). */
#include "analysis/frame/comparability.h"

/* The first chosen site of a run that has the statistic. */
static const site_choice *site_of_run(const choice *c, int run, int stat) {
    for (int64_t k = 0; k < c->sites; k++)
        if (c->site[k].run == run && c->site[k].has[stat]) return &c->site[k];
    return NULL;
}

void comparable_warn(const choice *c, const run_set *set, tsv *table) {
    for (int i = 0; i < c->statistics; i++) {
        const site_choice *first = NULL, *here;
        unsigned differences = 0;
        char text[512];
        for (int r = 0; r < set->count; r++) {
            if (!(here = site_of_run(c, r, i))) continue;
            if (!first) first = here;
            differences |=
                sr_differences(set->run[first->run], first->site, set->run[r], here->site);
        }
        if (!sr_comparable(c->wanted[i]->name, differences, text, sizeof text))
            tsv_note(table, "warning", "%s", text);
    }
}
