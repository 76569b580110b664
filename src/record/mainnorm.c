#include <string.h>

#include "statrec/runfile.h"

const char *sr_run_main_norm(const sr_runfile *f) {
    const sr_run_site *site;
    for (int64_t i = 0; (site = sr_run_get_site(f, i)); i++)
        if (strcmp(site->norm, "none") != 0) return site->norm;
    return "none";
}
