/* mainnorm.c -- what sites and runs are called by their norms. */
#include <stdio.h>
#include <string.h>

#include "reader.h"

/* Releases of which a layer scale is a part (docs/norms.md 2, 12). */
static const char *const with_scale[] = {"pn-released", "bn-powernorm"};

void reader_call_site(sr_run_site *site) {
    bool own = false;
    for (size_t i = 0; i < sizeof with_scale / sizeof *with_scale; i++)
        own = own || strcmp(site->norm, with_scale[i]) == 0;
    snprintf(site->called, sizeof site->called, "%s%s", site->norm,
             site->layer_scale > 0 && !own ? "+ls" : "");
}

const char *sr_run_main_norm(const sr_runfile *f) {
    const sr_run_site *site;
    for (int64_t i = 0; (site = sr_run_get_site(f, i)); i++)
        if (strcmp(site->norm, "none") != 0) return site->called;
    return "none";
}
