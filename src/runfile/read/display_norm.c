/* display_norm.c -- display names of the normalization of sites and runs. */
#include "runfile/read/display_norm.h"

#include <stdio.h>
#include <string.h>

void display_norm_fill(sr_run_site *site) {
    snprintf(site->called, sizeof site->called, "%s%s", site->norm,
             site->layer_scale > 0 && !site->layer_scale_own ? "+ls" : "");
}

/* Compares the name, since a host program may declare a method without a family. */
const sr_run_site *sr_run_main_site(const sr_runfile *f) {
    const sr_run_site *site;
    for (int64_t i = 0; (site = sr_run_get_site(f, i)); i++)
        if (strcmp(site->norm, "none") != 0) return site;
    return NULL;
}

const char *sr_run_main_norm(const sr_runfile *f) {
    const sr_run_site *site = sr_run_main_site(f);
    return site ? site->called : "none";
}
