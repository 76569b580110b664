/* h5_errors.c -- turns HDF5's error stack into one line of text. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hdf5/guard/h5_guard.h"
#include "hdf5/h5_private.h"

enum { REASON_SIZE = 400 };

h5_errors h5_quiet(void) {
    h5_errors q = {NULL, NULL};
    H5Eget_auto2(H5E_DEFAULT, &q.print, &q.context);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    return q;
}

typedef struct reason {
    char text[REASON_SIZE]; /* the innermost description */
    int system;             /* errno, or 0 */
    bool memory;
    bool refused; /* rejected by h5_guard.c */
} reason;

static herr_t keep_reason(unsigned n, const H5E_error2_t *error, void *context) {
    reason *r = context;
    if (!error->desc || !error->func_name) return 0; /* unreached: HDF5 1.10 fills both in */
    if (n == 0) snprintf(r->text, sizeof r->text, "%s", error->desc);
    if (strcmp(error->func_name, h5_guard_name) == 0) r->refused = true;
    /* "..., errno = 28, error message = 'No space left on device', ..." */
    const char *at = strstr(error->desc, "errno = ");
    int system = at ? atoi(at + strlen("errno = ")) : 0;
    if (!r->system && system) snprintf(r->text, sizeof r->text, "%s", strerror(system));
    if (!r->system) r->system = system;
    if (error->min_num == H5E_NOSPACE && error->maj_num == H5E_RESOURCE) r->memory = true;
    if (strstr(error->desc, "memory allocation failed")) r->memory = true;
    return 0;
}

/* Turns HDF5's error stack into one line "file: object: reason". */
static sr_status fail_from_stack(sr_failure *why, sr_status otherwise, hid_t id, const char *object,
                                 const char *action) {
    reason r = {"", 0, false, false};
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_reason, &r);
    if (!*r.text)
        snprintf(r.text, sizeof r.text, otherwise == SR_MEMORY ? "out of memory" : "unknown");
    char file[REASON_SIZE] = "", name[H5_NAME_SIZE] = "";
    if (id > 0) {
        H5Fget_name(id, file, sizeof file);
        if (!object && H5Iget_type(id) == H5I_DATASET) H5Iget_name(id, name, sizeof name);
    }
    if (object) snprintf(name, sizeof name, "%s", object);
    H5Eclear2(H5E_DEFAULT);
    for (char *c = r.text; *c; c++)
        if ((unsigned char)*c < ' ') *c = ' ';
    sr_status status = r.memory             ? SR_MEMORY
                       : r.system == EEXIST ? SR_EXISTS
                       : r.system           ? SR_IO
                                            : otherwise;
    if (r.refused) action = "refused";
    sr_fail(why, status, "%s%s%s%s%s%s: %s", file, *file && *name ? ": " : "", name,
            *file || *name ? ": " : "", status == SR_FORMAT && !r.refused ? "damaged: " : "",
            action, r.text);
    if (status == SR_FORMAT) sr_hint(why, "`statrec recover` copies the readable data");
    return status;
}

void h5_unquiet(h5_errors q) {
    H5Eclear2(H5E_DEFAULT);
    H5Eset_auto2(H5E_DEFAULT, q.print, q.context);
}

sr_status h5_end(h5_errors q, bool ok, sr_failure *why, sr_status otherwise, hid_t id,
                 const char *object, const char *action) {
    sr_status status = ok ? SR_OK : fail_from_stack(why, otherwise, id, object, action);
    H5Eset_auto2(H5E_DEFAULT, q.print, q.context);
    return status;
}
