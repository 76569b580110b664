/* cmd_text_files.c -- reads the lines of input texts; opens and renames the output. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/output_file.h"
#include "cli/text/text_files.h"
#include "text/text_lines.h"

/* -- reading ----------------------------------------------------------------------------------- */

static sr_status read_file(const char *path, text_taker take, void *context, sr_failure *why) {
    text_lines *t = text_lines_open(path, why);
    if (!t) return why->status;
    const char *line;
    size_t length;
    sr_status status;
    while ((status = text_lines_next(t, &line, &length, why)) == SR_OK && line) {
        for (size_t bytes; length && status == SR_OK; line += bytes, length -= bytes) {
            sr_failure reason = {0};
            bytes = text_first_line(line, length);
            status = take(context, line, bytes, &reason);
            if (status == SR_FORMAT)
                text_lines_fail(t, status, reason.text, why);
            else if (status != SR_OK)
                sr_fail(why, status, "%s", reason.text);
        }
        if (status != SR_OK) break;
    }
    text_lines_close(t);
    return status;
}

sr_status text_files_read(char *const *path, int files, text_taker take, void *context,
                          sr_failure *why) {
    sr_status status = SR_OK;
    if (files == 0) return read_file("-", take, context, why);
    for (int i = 0; status == SR_OK && i < files; i++)
        status = read_file(path[i], take, context, why);
    return status;
}

/* -- writing ----------------------------------------------------------------------------------- */

static sr_status fail_output(const text_output *o, sr_failure *why) {
    return sr_fail(why, SR_IO, "%s: %s", o->path, errno ? strerror(errno) : "write failed");
}

sr_status text_output_open(text_output *o, const char *path, bool force, sr_failure *why) {
    struct stat s;
    *o = (text_output){.path = path, .out = stdout};
    if (!*path) return SR_OK;
    bool exists = stat(path, &s) == 0, regular = !exists || S_ISREG(s.st_mode);
    if (exists && regular && !force) {
        sr_fail(why, SR_EXISTS, "%s: exists", path);
        sr_hint(why, "--force replaces it");
        return SR_EXISTS;
    }
    if (regular) { /* a device or a pipe must not be replaced */
        if (!(o->part = malloc(strlen(path) + 6))) return sr_fail(why, SR_MEMORY, "out of memory");
        strcpy(o->part, path);
        strcat(o->part, ".part");
    }
    o->out = o->part ? output_file_open(o->part, path, why) : output_file_device(path, why);
    if (o->out) return SR_OK;
    free(o->part);
    o->part = NULL;
    return why->status;
}

sr_status text_output_finish(text_output *o, sr_status status, sr_failure *why) {
    if (!*o->path) return status;
    if (o->part) {
        status = output_file_publish(o->out, o->part, o->path, status, why);
    } else {
        errno = 0;
        bool failed = ferror(o->out) != 0;
        if (fclose(o->out) != 0) failed = true;
        if (status == SR_OK && failed) status = fail_output(o, why);
    }
    free(o->part);
    return status;
}

int text_output_close(text_output *o, const tool *t, sr_status status, sr_failure *why) {
    if (!*o->path && ferror(stdout)) return TOOL_FAILED;
    status = text_output_finish(o, status, why);
    return status == SR_OK ? TOOL_DONE : tool_report(t, why);
}
