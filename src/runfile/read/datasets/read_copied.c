/* read_copied.c -- reads the texts of /copy. */
#include "runfile/read/datasets/read_copied.h"

#include "runfile/read/file/open_file_cache.h"

sr_status reader_copied(const sr_runfile *f, char *text[COPY_TEXTS], sr_failure *why) {
    for (int i = 0; i < COPY_TEXTS; i++) text[i] = NULL;
    sr_status status = reader_wake(f, why);
    if (status != SR_OK) return status;
    if (!h5_has(reader_file(f), "/copy")) return SR_OK;
    for (int i = 0; i < COPY_TEXTS && status == SR_OK; i++) {
        void *read = NULL;
        status =
            h5_get_attribute(reader_file(f), "/copy", run_copy_names[i], H5_TEXT, &read, NULL, why);
        text[i] = read;
    }
    return status;
}
