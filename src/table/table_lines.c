/* Lines of the data files of stat-table: tab-separated cells, `#` comments, failures with file and
 * line.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/file_kind.h"
#include "base/program/install_files.h"
#include "table/table.h"

sr_status table_lines_open(table_lines *l, const char *given, const char *name,
                           char path[TABLE_PATH], sr_failure *why) {
    *l = (table_lines){.path = path};
    snprintf(path, TABLE_PATH, "%s", given);
    if (!given[0]) {
        sr_status status = install_files_find("STATREC_PLOTS", "plots", name, path, why);
        if (status != SR_OK) return status;
    }
    sr_status status = install_files_check_file(path, why);
    if (status != SR_OK) return status;
    status = file_kind_check_path(path, 0, "a table of tab-separated text", why);
    if (status != SR_OK) return status;
    l->in = fopen(path, "r");
    return l->in ? SR_OK : sr_fail(why, SR_IO, "%s: %s", path, strerror(errno));
}

void table_lines_close(table_lines *l) {
    if (l->in) fclose(l->in);
    free(l->line);
    *l = (table_lines){0};
}

sr_status table_lines_next(table_lines *l, bool *more, sr_failure *why) {
    ssize_t length;
    *more = true;
    errno = 0;
    while ((length = getline(&l->line, &l->size, l->in)) >= 0) {
        l->number++;
        if (strlen(l->line) != (size_t)length) return table_lines_wrong(l, why, "a zero byte");
        l->line[strcspn(l->line, "\r\n")] = 0;
        if (!l->line[0] || l->line[0] == '#') continue;
        l->cells = 0;
        for (char *at = l->line; at; l->cells++) {
            if (l->cells == TABLE_CELLS)
                return table_lines_wrong(l, why, "more than %d cells", TABLE_CELLS);
            l->cell[l->cells] = at;
            if ((at = strchr(at, '\t'))) *at++ = 0;
        }
        return SR_OK;
    }
    *more = false;
    if (ferror(l->in)) return sr_fail(why, SR_IO, "%s: %s", l->path, strerror(errno));
    return SR_OK;
}

sr_status table_lines_wrong(const table_lines *l, sr_failure *why, const char *format, ...) {
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return sr_fail(why, SR_FORMAT, "%s:%lld: %s", l->path, (long long)l->number, text);
}
