/* read_custom.h -- custom scalars of a run file, and the ranks whose rows it has. */
#ifndef RUNFILE_READ_DATASETS_READ_CUSTOM_H
#define RUNFILE_READ_DATASETS_READ_CUSTOM_H

#include "runfile/read/file/reader.h"

typedef struct reader_declared {
    char name[SR_NAME_SIZE], unit[SR_NAME_SIZE], definition[SR_DEFINITION_SIZE];
    run_column column;
    sr_run_declared shown;
} reader_declared;

/* Fills f->declared and f->info.ranks. */
sr_status reader_list_declared(sr_runfile *f, sr_failure *why);
/* The custom scalar with this name and scope, or NULL. */
const run_column *reader_declared_column(const sr_runfile *f, const char *name, sr_scope scope);
/* Reads an attribute that fits into text [size] and is one line; lines: it may have several. */
sr_status reader_line(const sr_runfile *f, const char *object, const char *attribute, bool lines,
                      char *text, size_t size, sr_failure *why);

#endif
